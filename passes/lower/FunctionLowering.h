// Writes the functions of one entry: run, workspace, bound, dims.
#ifndef LATHE_PASSES_LOWER_FUNCTIONLOWERING_H
#define LATHE_PASSES_LOWER_FUNCTIONLOWERING_H

#include "passes/lower/KernelSet.h"
#include "passes/lower/MainBuilder.h"

namespace lathe::lower {

/// What the entries of a module share while they are written.
struct ModuleState {
  mlir::ModuleOp input, output;
  const LowerOptions &options;
  LoweredModule &result;
  KernelSet &kernels;
  llvm::SmallVector<mlir::AffineExpr> bounds; ///< by symbol: null for input symbols
};

class FunctionLowering {
public:
  FunctionLowering(ModuleState &state, mlir::func::FuncOp func, int entry, const MemoryPlan &plan);
  void run();

private:
  /// Slots of the context that all functions of an entry receive.
  enum Slot { Args, Inputs, Outputs, Variables, Workspace, Constants, Sizes, Err, Threads, Scratch, FirstGroup };
  /// The block that a function given to parallel_for receives, in slots of 8 bytes; pointers follow.
  enum BlockSlot { Chunks, Units, LeastUnits, ScratchBase, ScratchStride, SizesPtr, ErrPtr, FirstPointer };
  /// Further slots where kernels are launched.
  enum DeviceSlot { Call, DeviceSizes, Host, Table, NumDeviceSlots };
  // layout and sizes (FunctionSizes.cpp)
  mlir::Value boundedSizes(mlir::Value sizes);
  /// The largest value of an expression while each data symbol lies between 0 and what boundedSizes gives it.
  mlir::Value atMost(mlir::AffineExpr e, mlir::Value boundedSizes);
  std::pair<mlir::Value, mlir::Value> rangeOf(mlir::AffineExpr e, mlir::Value boundedSizes);
  bool isData(unsigned symbol) const;
  mlir::Value sizesInRange(mlir::Value sizes);
  mlir::Value layout(mlir::Value boundedSizes, mlir::Value threads, mlir::Value ctx);
  mlir::Value scratchOfCalls(mlir::Value sizes, mlir::Value threads);
  mlir::Value layoutOverflows(mlir::Value boundedSizes);
  /// The bounded sizes; the function returns -1 where sizes are out of range.
  mlir::Value checkedSizes(mlir::Value sizes);
  void emitWorkspaceFunction();
  void emitBoundFunction();
  void emitDimsFunction();

  // code
  void emitRunFunction();
  // separate heap blocks (SeparateBuffers.cpp)
  void emitSeparateRun(mlir::Value boundedSizes);
  mlir::Value allocate(mlir::Value slotAddress, mlir::Value bytes);
  void release(mlir::Value slotAddress);
  void allocateScratch(const KernelInfo &info);
  int64_t firstBlockSlot() const { return FirstGroup + 2 * (int64_t(plan.groups().size()) - 1); }
  // launches on a device (DeviceCalls.cpp)
  bool launches() const { return state.options.backend->launches(); }
  int64_t deviceSlot(DeviceSlot s) const { return firstBlockSlot() + int64_t(blocks.size()) + s; }
  mlir::Value deviceCall() { return b.loadPtr(ctx, 8 * deviceSlot(Call)); }
  /// Calls lathe_cuda_NAME and leaves the function when it fails.
  void device(llvm::StringRef name, llvm::ArrayRef<mlir::Value> args);
  mlir::Value deviceLayout(mlir::Value boundedSizes, mlir::Value ctx, llvm::SmallVectorImpl<mlir::Value> *places);
  mlir::Value deviceScratch(mlir::Value sizes);
  mlir::Value deviceScratch(mlir::Value scratch, mlir::Value units);
  /// Calls that may fail, each of which has a cell to say so.
  int64_t countCells();
  /// Leaves the function when a call has failed since the last look.
  void checkCells();
  void checkBeforeChange(const Buffer &buffer);
  void moveSizes(bool toDevice);
  int64_t tableSize();
  mlir::Value emitTable(llvm::ArrayRef<mlir::Value> pointers);
  /// Of what is read back, in the run's pinned memory, behind the sizes.
  int64_t flagOffset() const { return 8 * int64_t(state.result.symbols.size()); }
  void emitDeviceBlocks();
  void emitDeviceWorkspaceFunction();
  void emitDeviceRun(mlir::Value boundedSizes);
  void emitDeviceBody(llvm::StringRef name);
  void emitLaunch(mlir::Operation *op, const KernelInfo &info, llvm::ArrayRef<mlir::Value> pointers, mlir::Value units);
  /// How often a loop runs whose condition need not be read from the device.
  std::optional<int64_t> tripsWithoutWaiting(mlir::Operation *op);
  void emitCountedLoop(mlir::Operation *op, int64_t trips);
  /// `bytes` bytes of a buffer in the host's memory.
  mlir::Value onHost(mlir::Value pointer, int64_t bytes);
  /// The address of constant bytes in the host's memory.
  mlir::Value onHost(llvm::StringRef bytes);
  void emitOps(mlir::Block &block);
  void emitOp(mlir::Operation *op);
  void emitOps(llvm::ArrayRef<mlir::Operation *> ops);
  /// A function of the context that runs the ops and returns a code.
  void emitFunction(llvm::StringRef name, llvm::ArrayRef<mlir::Operation *> ops);
  // groups of sides (ParallelSides.cpp)
  void emitGroup(llvm::ArrayRef<mlir::Operation *> ops);
  int64_t sideScratch(llvm::ArrayRef<mlir::Operation *> ops);
  void emitKernelCall(mlir::Operation *op);
  void emitParallelCall(mlir::Operation *op, KernelInfo &info, llvm::ArrayRef<mlir::Value> pointers, mlir::Value units);
  void emitWhile(mlir::Operation *op);
  void emitBranches(mlir::Operation *op);
  void emitCopies(mlir::Operation *op);
  void emitFill(mlir::Value to, llvm::StringRef element, mlir::AffineExpr bytes);
  void emitShapeCheck(mlir::Operation *op);
  void emitTrace(int64_t step, int phase);
  /// Leaves the function with the failure when `bad`.
  void failIf(mlir::Value bad, int site, mlir::Value failure);
  /// Leaves the function with `code` when it is not zero.
  void returnIfNot0(mlir::Value code);
  mlir::Value slot(Slot s, mlir::Type type);
  mlir::Value pointer(const Buffer &buffer);
  mlir::Value pointer(mlir::Value v) { return b.offset(pointer(plan.of(v)), plan.offsetOf(v)); }
  mlir::Value sizes() { return slot(Sizes, b.ptrType()); }
  int siteOf(mlir::Operation *op);
  void ensureHelpers();
  void ensureThunk(KernelInfo &info);
  bool isParallel(const KernelInfo &info) { return !inSide && lower::isParallel(info, state.options); }

  ModuleState &state;
  mlir::func::FuncOp func;
  int entry;
  const MemoryPlan &plan;
  MainBuilder b;
  mlir::Value ctx;
  int pieces = 0, groups = 0;
  bool inSide = false;                            ///< what is written is a side of a group: no other threads
  bool unchecked = false;                         ///< launched calls may have failed
  std::optional<int64_t> numCells;                ///< what countCells found
  llvm::SmallVector<int32_t> cellsOfSites;        ///< site by cell
  int64_t tables = 0;                             ///< end of the tables in pinned memory so far
  llvm::DenseMap<const Buffer *, int64_t> blocks; ///< slot of a buffer that is a heap block
};

} // namespace lathe::lower

#endif
