// The name under which an operator of a file stands in hlo as the file has it, between the frontend that reads it and the writer. What
// its config holds is said in compiler/export/tflite/Operators.h.
#ifndef LATHE_GRAPH_TFLITE_ASIS_H
#define LATHE_GRAPH_TFLITE_ASIS_H

namespace lathe::tflite {

constexpr const char *asIsTarget = "tfl.AS_IS";

} // namespace lathe::tflite

#endif
