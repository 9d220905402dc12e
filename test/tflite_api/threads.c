/* Interpreters of one model, and of models of the same file, in several threads at once: made, resized, run and deleted. All see the results
 * of the first. Prints the same with LiteRT's library and with ours. */
#include "tensorflow/lite/c/c_api.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kThreads = 8, kRounds = 2, kRuns = 5 };

static TfLiteModel *shared;
static const char *path;
static unsigned char *want[kRuns];
static size_t wantBytes;

/* What went wrong in one thread. */
typedef struct {
  int number, failed, different, runs;
} Work;

static void fill(TfLiteInterpreter *it) {
  for (int i = 0; i < TfLiteInterpreterGetInputTensorCount(it); ++i) {
    TfLiteTensor *t = TfLiteInterpreterGetInputTensor(it, i);
    unsigned char *to = TfLiteTensorData(t);
    for (size_t k = 0; k < TfLiteTensorByteSize(t); ++k)
      to[k] = (unsigned char)(k * 7 + 3);
    for (size_t k = 0; TfLiteTensorType(t) == kTfLiteFloat32 && k < TfLiteTensorByteSize(t) / 4; ++k) {
      const float v = (float)(k % 9) / 4;
      memcpy(to + 4 * k, &v, 4);
    }
  }
}

/* Sizes that the file leaves open come back to what they were, so that tensors are allocated twice. */
static int resized(TfLiteInterpreter *it) {
  const TfLiteTensor *t = TfLiteInterpreterGetInputTensor(it, 0);
  int dims[8], rank = TfLiteTensorNumDims(t);
  for (int i = 0; i < rank; ++i)
    dims[i] = TfLiteTensorDim(t, i);
  if (rank == 0 || dims[0] != 1)
    return 0;
  dims[0] = 3;
  int bad = TfLiteInterpreterResizeInputTensor(it, 0, dims, rank) || TfLiteInterpreterAllocateTensors(it);
  fill(it);
  bad |= TfLiteInterpreterInvoke(it) != kTfLiteOk;
  dims[0] = 1;
  return bad | (TfLiteInterpreterResizeInputTensor(it, 0, dims, rank) || TfLiteInterpreterAllocateTensors(it));
}

static void *work(void *arg) {
  Work *w = arg;
  for (int round = 0; round < kRounds; ++round) {
    TfLiteModel *own = (w->number + round) % 2 ? NULL : TfLiteModelCreateFromFile(path);
    TfLiteInterpreterOptions *options = TfLiteInterpreterOptionsCreate();
    TfLiteInterpreterOptionsSetNumThreads(options, 1 + w->number % 3);
    TfLiteInterpreter *it = TfLiteInterpreterCreate(own ? own : shared, options);
    TfLiteInterpreterOptionsDelete(options);
    TfLiteModelDelete(own); /* interpreters keep what they need of it */
    if (!it || TfLiteInterpreterAllocateTensors(it) || (w->number % 4 == 3 && resized(it))) {
      ++w->failed;
      TfLiteInterpreterDelete(it);
      continue;
    }
    /* a variable's value after a run depends on those before it */
    const int resizes = w->number % 4 == 3;
    for (int run = 0; run < kRuns; ++run, ++w->runs) {
      fill(it);
      if (TfLiteInterpreterInvoke(it)) {
        ++w->failed;
        break;
      }
      const TfLiteTensor *t = TfLiteInterpreterGetOutputTensor(it, 0);
      const size_t bytes = TfLiteTensorByteSize(t);
      if (!want[run]) { /* the first thread is alone */
        wantBytes = bytes;
        want[run] = malloc(bytes ? bytes : 1);
        memcpy(want[run], TfLiteTensorData(t), bytes);
      } else if (!resizes && (bytes != wantBytes || memcmp(want[run], TfLiteTensorData(t), bytes))) {
        ++w->different;
      } else if (resizes && bytes != wantBytes) {
        ++w->different;
      }
    }
    TfLiteInterpreterDelete(it);
  }
  return NULL;
}

int main(int argc, char **argv) {
  pthread_t threads[kThreads];
  Work w[kThreads] = {{0, 0, 0, 0}}, sum = {0, 0, 0, 0};
  if (argc != 2)
    return 2;
  path = argv[1];
  shared = TfLiteModelCreateFromFile(path);
  if (!shared)
    return 1;
  work(&w[0]);
  for (int i = 1; i < kThreads; ++i) {
    w[i].number = i;
    if (pthread_create(&threads[i], NULL, work, &w[i]))
      return 1;
  }
  for (int i = 1; i < kThreads; ++i)
    pthread_join(threads[i], NULL);
  for (int i = 0; i < kThreads; ++i) {
    sum.failed += w[i].failed;
    sum.different += w[i].different;
    sum.runs += w[i].runs;
  }
  printf("%d runs, %d failed, %d different\n", sum.runs, sum.failed, sum.different);
  for (int i = 0; i < kRuns; ++i)
    free(want[i]);
  TfLiteModelDelete(shared);
  return sum.failed != 0 || sum.different != 0;
}
