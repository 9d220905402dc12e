// The variables of a SavedModel's functions by its objects.
#ifndef LATHE_GRAPH_SAVED_BINDVARIABLES_H
#define LATHE_GRAPH_SAVED_BINDVARIABLES_H

#include "proto/saved_model.pb.h"

namespace lathe::graphdef {

/// Gives calls of functions in the graph the variables that the checkpoint's values are assigned to.
///
/// The graph of a SavedModel has nodes for a function's variables and for what is restored. Where Keras has replaced its variables by others
/// (subclassed models of Keras 3 through tf.saved_model.save), these are different nodes: restoring leaves the ones that are read without a
/// value. Which object an input stands for, and which one a tensor of the checkpoint, the object graph says, by which Python's loader goes.
/// Inputs that are restored themselves stay, as does everything where the object graph says nothing. Of what does not fit nothing is used.
void bindVariables(tf::MetaGraphDef &meta);

} // namespace lathe::graphdef

#endif
