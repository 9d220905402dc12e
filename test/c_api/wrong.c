/* Wrong uses on which TensorFlow's library ends the process; ours gives a status, or nothing where a function has none.
 * `wrong N` makes the Nth in a process of its own and prints its code, `wrong` how many there are. */
#include "support.h"

static TF_Graph *graph;
static TF_Operation *x, *sum;
static TF_Session *session;

static void done(const char *what) { printf("%s: %d\n", what, (int)TF_GetCode(status)); }

static void nullSession(void) {
  TF_Output o = at(sum, 0);
  TF_Tensor *out;
  TF_SessionRun(NULL, NULL, NULL, NULL, 0, &o, &out, 1, NULL, 0, NULL, status);
  done("run without a session");
}
static void nullFetch(void) {
  TF_Output o = {NULL, 0};
  TF_Tensor *out;
  TF_SessionRun(session, NULL, NULL, NULL, 0, &o, &out, 1, NULL, 0, NULL, status);
  done("fetch of no operation");
}
static void nullFeed(void) {
  TF_Output from = at(x, 0), to = at(sum, 0);
  TF_Tensor *in = NULL, *out;
  TF_SessionRun(session, NULL, &from, &in, 1, &to, &out, 1, NULL, 0, NULL, status);
  done("feed without a tensor");
}
static void nullTarget(void) {
  const TF_Operation *none = NULL;
  TF_SessionRun(session, NULL, NULL, NULL, 0, NULL, NULL, 0, &none, 1, NULL, status);
  done("target that is no operation");
}
static void nullGraphImport(void) {
  TF_Buffer *def = TF_NewBuffer();
  TF_GraphToGraphDef(graph, def, status);
  TF_GraphImportGraphDef(NULL, def, NULL, status);
  done("import into no graph");
}
static void nullBufferImport(void) {
  TF_ImportGraphDefOptions *o = TF_NewImportGraphDefOptions();
  TF_GraphImportGraphDef(graph, NULL, o, status);
  done("import of no GraphDef");
}
static void nullAttribute(void) {
  TF_OperationDescription *d = TF_NewOperation(graph, "Const", "n");
  TF_SetAttrTensor(d, "value", NULL, status);
  done("no tensor for an attribute");
}
static void nullOptions(void) {
  TF_NewSession(graph, NULL, status);
  done("session without options");
}
static void nullFolder(void) {
  TF_SessionOptions *o = TF_NewSessionOptions();
  TF_LoadSessionFromSavedModel(o, NULL, NULL, NULL, 0, TF_NewGraph(), NULL, status);
  done("SavedModel without a folder");
}
static void nullBody(void) {
  TF_GraphToFunction(NULL, "F", 0, -1, NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, status);
  done("function of no graph");
}
static void nullName(void) {
  TF_Output o = at(x, 0);
  TF_GraphToFunction(graph, NULL, 0, -1, NULL, 1, &o, 1, &o, NULL, NULL, NULL, status);
  done("function without a name");
}
static void negativeDimension(void) {
  int64_t dims[] = {-2, 3};
  TF_Tensor *t = TF_AllocateTensor(TF_FLOAT, dims, 2, 24);
  printf("tensor of negative size: %d\n", t != NULL);
}
static void beyondRank(void) {
  printf("dimension beyond the rank: %lld\n", (long long)TF_Dim(int32(1), 7));
}
static void nullTensor(void) { printf("dims of no tensor: %d, %d\n", TF_NumDims(NULL), TF_TensorData(NULL) != NULL); }
static void shapeOfNothing(void) {
  TF_GraphGetTensorNumDims(graph, (TF_Output){NULL, 0}, status);
  done("shape of no operation");
}
static void gradientOfNothing(void) {
  TF_Output y = {NULL, 0}, by = at(x, 0), grad;
  TF_AddGradients(graph, &y, 1, &by, 1, NULL, status, &grad);
  done("gradient of no operation");
}
static void gradientInNothing(void) {
  TF_Output y = at(sum, 0), by = at(x, 0), grad;
  TF_AddGradients(NULL, &y, 1, &by, 1, NULL, status, &grad);
  done("gradient in no graph");
}
static void loopOfNothing(void) {
  TF_Output start = {NULL, 0};
  TF_NewWhile(graph, &start, 1, status);
  done("loop over no operation");
}
static void evaluateNothing(void) {
  TF_Tensor *t;
  TF_TryEvaluateConstant(graph, (TF_Output){NULL, 0}, &t, status);
  done("constant of no operation");
}
static void configOfNothing(void) {
  TF_SetConfig(NULL, "", 0, status);
  done("config of no options");
}
static void attributeOfNothing(void) {
  int64_t value;
  TF_OperationGetAttrInt(NULL, "T", &value, status);
  done("attribute of no operation");
}
static void namesOfNothing(void) {
  const char *none[] = {NULL};
  TF_SessionOptions *o = TF_NewSessionOptions();
  TF_DeprecatedSession *s = TF_NewDeprecatedSession(o, status);
  TF_Run(s, NULL, NULL, NULL, 0, NULL, NULL, 0, none, 1, NULL, status);
  done("target without a name");
}
static void edgeOfNothing(void) {
  TF_UpdateEdge(graph, (TF_Output){NULL, 0}, (TF_Input){sum, 0}, status);
  done("edge from no operation");
}
static void opOfNothing(void) {
  TF_GraphGetOpDef(graph, NULL, TF_NewBuffer(), status);
  done("definition of an op without a name");
}
static void nodeOfNothing(void) {
  TF_OperationToNodeDef(NULL, TF_NewBuffer(), status);
  done("NodeDef of no operation");
}

int main(int argc, char **argv) {
  static void (*const cases[])(void) = {
      nullSession, nullFetch, nullFeed, nullTarget, nullGraphImport, nullBufferImport, nullAttribute, nullOptions, nullFolder,
      nullBody, nullName, negativeDimension, beyondRank, nullTensor, shapeOfNothing, gradientOfNothing, gradientInNothing,
      loopOfNothing, evaluateNothing, configOfNothing, attributeOfNothing, namesOfNothing, edgeOfNothing, opOfNothing,
      nodeOfNothing};
  const int count = (int)(sizeof cases / sizeof *cases);
  if (argc < 2) {
    printf("%d\n", count);
    return 0;
  }
  status = TF_NewStatus();
  graph = TF_NewGraph();
  x = placeholder(graph, "x", TF_INT32, NULL, 0);
  sum = binary(graph, "AddV2", "sum", at(x, 0), at(x, 0));
  session = newSession(graph);
  int n = atoi(argv[1]);
  if (n >= 0 && n < count)
    cases[n]();
  return 0;
}
