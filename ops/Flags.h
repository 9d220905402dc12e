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
  Sizes,       ///< reads of its inputs, or of what is behind its handle, the shapes alone
  Free,        ///< no work: constants, sizes, inputs as they are or in another shape
  Idle,        ///< Passes, or has nothing to pass: no work in any case
  Placeholder, ///< what a run feeds
  Feedable,    ///< what a run feeds or may feed
  OldUnknown,  ///< a shape attribute of no dimensions meant an unknown shape before version 24 of graphs
  Argument,    ///< gives what a caller of the function brings, which may be a reference whatever the type says
  End,         ///< argument or result of a function
  PerRun,      ///< another value, or none, in another run or step
  // variables
  Variable,      ///< is one: a handle or a reference
  RefVariable,   ///< gives a reference to itself
  Handle,        ///< is one and gives a handle of itself
  Temporary,     ///< is one for a part of a run
  UsesVariable,  ///< its handle is a variable's, which it reads or changes
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
  Enter,
  Exit,
  Frames, ///< decides which nodes of version 1's control flow run, and how often
  // the run
  Effect,    ///< changes a variable, a stack or what it calls may; a function runs it although nothing reads it
  Outside,   ///< can be seen outside of the graph, or what it calls can
  Texts,     ///< makes a message of its inputs
  Forgets,   ///< has state, but keeps nothing of its inputs
  EndsInput, ///< tells by an error that there is no more of an input
  Blocks,    ///< waits for what another node of the run may have to do first
  Releases,  ///< does what such a node waits for
  Transfer,  ///< one end of an edge between devices
};

/// False for ops that nothing is known of.
bool is(std::string_view op, Flag flag);

/// An edge that closes a loop of version 1.
bool isBackEdge(std::string_view from, std::string_view to);

/// The ops with a flag, in order.
std::vector<std::string_view> opsWith(Flag flag);

} // namespace lathe::ops

#endif
