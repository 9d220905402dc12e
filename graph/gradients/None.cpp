// Ops that have no gradient by nature, so that none is missing: what reaches their results goes no further.
#include "graph/gradients/Rules.h"

namespace lathe::graphdef {

void addNotDifferentiable(Rules &r) {
  r.addNone("has no inputs", {"Const", "Placeholder", "PlaceholderV2", "Timestamp", "VarHandleOp", "VariableV2", "Variable"});
  r.addNone("stops gradients on purpose", {"StopGradient"});
  r.addNone("its results are shapes or positions",
            {"Shape", "ShapeN", "Size", "Rank", "VariableShape", "BroadcastGradientArgs", "ConcatOffset", "InvertPermutation", "Range",
             "LinSpace", "OneHot", "ArgMax", "ArgMin", "Unique", "UniqueV2", "Where", "ListDiff", "SetSize", "EditDistance",
             "TensorListElementShape", "TensorListLength", "TensorListReserve", "EmptyTensorList", "SparseMatrixNNZ", "RaggedRange",
             "TensorArraySize", "TensorArraySizeV2", "TensorArraySizeV3", "InTopK", "InTopKV2"});
  r.addNone("its result does not depend on the values", {"ZerosLike", "OnesLike"});
  r.addNone("its results are truth values",
            {"Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual", "ApproximateEqual", "LogicalAnd", "LogicalOr", "LogicalNot",
             "IsNan", "IsInf", "IsFinite", "Any", "All", "VarIsInitializedOp"});
  r.addNone("works on integers or bits",
            {"BitwiseAnd", "BitwiseOr", "BitwiseXor", "Invert", "LeftShift", "RightShift", "PopulationCount", "Bitcast", "Bincount",
             "DenseBincount", "Bucketize"});
  r.addNone("draws samples whose parameters have no derivative",
            {"RandomUniform", "RandomStandardNormal", "TruncatedNormal", "ParameterizedTruncatedNormal", "Multinomial", "RandomShuffle",
             "RandomCrop", "RandomIndexShuffle", "StatelessMultinomial", "StatelessRandomBinomial", "StatelessRandomNormal",
             "StatelessRandomNormalV2", "StatelessRandomPoisson", "StatelessRandomUniform", "StatelessRandomUniformFullInt",
             "StatelessRandomUniformFullIntV2", "StatelessRandomUniformInt", "StatelessRandomUniformIntV2", "StatelessRandomUniformV2",
             "StatelessTruncatedNormal", "StatelessTruncatedNormalV2", "SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2"});
  r.addNone("a gradient whose own derivative TensorFlow does not define",
            {"FakeQuantWithMinMaxArgsGradient", "FakeQuantWithMinMaxVarsGradient", "FakeQuantWithMinMaxVarsPerChannelGradient",
             "ResizeBilinearGrad", "SparseAddGrad", "TensorArrayGrad", "TensorArrayGradV2", "TensorArrayGradV3", "TensorArrayGradWithShape"});
  r.addNone("TensorFlow defines none",
            {"CTCBeamSearchDecoder", "CTCGreedyDecoder", "DrawBoundingBoxes", "ExtractGlimpse", "GenerateBoundingBoxProposals", "HSVToRGB",
             "NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionWithOverlaps",
             "SparseConcat", "SparseMatrixZeros", "TensorListConcatLists", "TensorListPushBackBatch", "DenseToDenseSetOperation",
             "DenseToSparseSetOperation", "SparseToSparseSetOperation", "SparseSparseMaximum", "SparseSparseMinimum",
             "SparseDenseCwiseAdd"});
  r.addNone("changes a variable",
            {"Assign", "AssignAdd", "AssignSub", "AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp", "ScatterAdd",
             "ScatterSub", "ScatterMul", "ScatterDiv", "ScatterUpdate", "ScatterNdAdd", "ScatterNdSub", "ScatterNdUpdate"});
  r.addNone("makes or closes an array or a stack",
            {"TensorArray", "TensorArrayV2", "TensorArrayV3", "TensorArrayClose", "TensorArrayCloseV2", "TensorArrayCloseV3", "Stack", "StackV2",
             "StackClose", "StackCloseV2"});
  r.addNone("works on strings, files, tables or queues",
            {"AsString", "StringJoin", "StringSplit", "StringToNumber", "StringToHashBucket", "StringToHashBucketFast",
             "StringToHashBucketStrong", "ReduceJoin", "RegexReplace", "EncodeBase64", "DecodeBase64", "DecodeRaw", "DecodePaddedRaw",
             "ParseTensor", "SerializeTensor", "LookupTableFind", "LookupTableFindV2", "LookupTableInsert", "LookupTableInsertV2",
             "LookupTableSize", "LookupTableSizeV2", "HashTable", "HashTableV2", "MutableHashTable", "MutableHashTableV2",
             "MutableHashTableOfTensors", "MutableHashTableOfTensorsV2", "MutableDenseHashTable", "MutableDenseHashTableV2",
             "InitializeTable", "InitializeTableV2", "InitializeTableFromTextFile", "InitializeTableFromTextFileV2", "QueueClose",
             "QueueDequeue", "QueueDequeueMany", "QueueDequeueUpTo", "QueueEnqueue", "QueueEnqueueMany", "QueueSize", "ReaderRead",
             "ReaderReadUpTo", "ReaderReset", "ReaderRestoreState", "ReaderSerializeState", "ReaderNumRecordsProduced",
             "ReaderNumWorkUnitsCompleted", "TextLineReader", "TFRecordReader", "WholeFileReader", "FixedLengthRecordReader",
             "IdentityReader", "LMDBReader", "LoadAndRemapMatrix", "GenerateVocabRemapping", "DecodeProtoV2", "EncodeProto"});
  r.addNone("only looks", {"Assert", "NoOp", "AudioSummary", "AudioSummaryV2", "HistogramSummary", "ImageSummary", "ScalarSummary",
                           "MergeSummary", "TensorSummary", "TensorSummaryV2", "PrintV2"});
  r.addNone("keeps something for another session", {"GetSessionHandle", "GetSessionHandleV2", "GetSessionTensor", "DeleteSessionTensor"});
  r.addNone("keeps what gradients of loops of the first kind need", {"StackPush", "StackPushV2", "StackPop", "StackPopV2"});
  r.addMissing("references to variables do not pass loops",
               {"RefEnter", "RefExit", "RefNextIteration"});
  r.addNone("calls out of the graph", {"PyFunc", "PyFuncStateless", "EagerPyFunc"});
}

} // namespace lathe::graphdef
