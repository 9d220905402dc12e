// Losses and recurrent blocks.
#include "graph/gradients/Expr.h"
#include "graph/gradients/Rules.h"

namespace lathe::graphdef {
namespace {

/// What flows into the logits through the op's second output, which is itself a gradient: softmax minus labels.
Val throughBackprop(Grad &g, Val d) {
  Val softmax = Softmax(g.in(0));
  return (d - sumAt(d * softmax, -1, true)) * softmax;
}

void crossEntropy(Grad &g) {
  Val loss = expandAt(g.dy(0), -1);
  Val d = loss * g.out(1);
  if (g.has(1))
    d = d + throughBackprop(g, g.dy(1));
  g.set(0, d);
}

/// TensorFlow differentiates the second version with the op of the first, whose gates come in another order; this does not.
void blockLstm(Grad &g) {
  const char *op = g.node.op() == "BlockLSTM" ? "BlockLSTMGrad" : "BlockLSTMGradV2";
  std::vector<ArgVals> args;
  for (int i = 0; i < g.node.numInputs(); ++i)
    args.push_back(g.in(i));
  for (int i = 0; i < g.node.numOutputs(); ++i)
    args.push_back(g.out(i));
  args.push_back(g.dy(1)); // of the cells
  args.push_back(g.dy(6)); // of the outputs
  Val d = call(op, args, g.attrs({"use_peephole"}));
  for (int i = 0; i < 8; ++i)
    g.set(i + 1, d.at(i));
}

void cudnnRnn(Grad &g) {
  std::vector<ArgVals> args;
  for (int i = 0; i < 5; ++i)
    args.push_back(g.in(i));
  for (int i = 0; i < 3; ++i)
    args.push_back(g.out(i));
  for (int i = 0; i < 3; ++i)
    args.push_back(g.dy(i));
  args.push_back(g.out(3));
  args.push_back(g.out(4));
  Val d = call("CudnnRNNBackpropV3", args,
               g.attrs({"rnn_mode", "input_mode", "direction", "dropout", "seed", "seed2", "num_proj", "time_major"}));
  for (int i = 0; i < 4; ++i)
    g.set(i, d.at(i));
}

} // namespace

void addLossRules(Rules &r) {
  r.add({"SoftmaxCrossEntropyWithLogits"}, [](Grad &g) {
    crossEntropy(g);
    g.set(1, expandAt(g.dy(0), -1) * -LogSoftmax(g.in(0)));
  });
  r.add({"SparseSoftmaxCrossEntropyWithLogits"}, crossEntropy);
  r.add({"CTCLoss", "CTCLossV2"}, [](Grad &g) { g.set(0, expandAt(g.dy(0), -1) * g.out(1)); });
  r.add({"BlockLSTM", "BlockLSTMV2"}, blockLstm);
  r.add({"CudnnRNNV3"}, cudnnRnn);
}

} // namespace lathe::graphdef
