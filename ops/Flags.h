// What an op is known for besides its signature: what it does to its inputs, to variables, to the run. One table (Flags.def) for
// all that would else compare names: importer, clustering, sessions, the C interface.
#ifndef LATHE_OPS_FLAGS_H
#define LATHE_OPS_FLAGS_H

#include <cstdint>
#include <string_view>
#include <vector>

namespace lathe::ops {

enum class Flag : uint8_t {
  // what comes out
  Passes,      ///< each output is the input in the same place
  Gates,       ///< its first input, where and when the control flow of version 1 lets it through
  Sizes,       ///< reads of its inputs their shapes alone
  Free,        ///< no work: constants, sizes, inputs as they are or in another shape
  Placeholder, ///< what a run feeds
  PerRun,      ///< another value, or none, in another run or step
  // variables
  Variable,      ///< is one: a handle or a reference
  RefVariable,   ///< gives a reference to itself
  ReadsVariable, ///< reads, of a handle's variable, its value or what is known of it, and changes nothing
  AsksVariable,  ///< is about the variable, not about its value
  Assigns,       ///< gives a variable a value whatever it had
  // flow
  Branch, ///< runs one of its functions on all inputs but the first
  Loop,   ///< runs its functions on its inputs again and again
  Call,   ///< runs the one function that an attribute names
  Switch,
  Merge,
  Next, ///< gives a value to the next step of a loop
  // the run
  Effect,   ///< changes a variable, a stack or what it calls may; a function runs it although nothing reads it
  Outside,  ///< can be seen outside of the graph, or what it calls can
  Texts,    ///< makes a message of its inputs
  Forgets,  ///< has state, but keeps nothing of its inputs
  Blocks,   ///< waits for what another node of the run may have to do first
  Releases, ///< does what such a node waits for
  Transfer, ///< one end of an edge between devices
};

/// False for ops that nothing is known of.
bool is(std::string_view op, Flag flag);

/// The ops with a flag, in order.
std::vector<std::string_view> opsWith(Flag flag);

} // namespace lathe::ops

#endif
