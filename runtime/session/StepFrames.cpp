// Propagation along edges, and the frames of loops.
//
// An iteration is over when nothing in it is ready or running, no inner loop is open, and the iteration before it is over
// (for the first: when all Enters have arrived). A frame is over with its last iteration; Exits that were dead then are dead
// in the parent.
#include "runtime/session/StepFrames.h"

#include "absl/strings/str_cat.h"

namespace lathe::rt {

namespace {
constexpr uint64_t kDead = uint64_t(1) << 32;
constexpr uint64_t kClaimed = uint64_t(1) << 31; // of a Merge: a live value has come
constexpr uint64_t kCount = kClaimed - 1;
} // namespace

void Step::activate(const OutEdge &edge, bool deadEdge, bool fromDeadEnter, Value *value, Frame *frame, Iteration *iteration,
                    Ready &ready) {
  const ExecNode &dst = executable->nodes()[edge.dst];
  std::atomic<uint64_t> &count = iteration->pending[dst.pendingIndex];
  bool isReady = false, dead = false;
  if (dst.kind != NodeKind::Merge) {
    uint64_t before;
    if (deadEdge) {
      before = count.fetch_add(kDead - 1, std::memory_order_acq_rel);
    } else {
      if (edge.slot >= 0)
        iteration->inputs[dst.inputStart + edge.slot] = edge.last ? std::move(*value) : *value;
      before = count.fetch_sub(1, std::memory_order_acq_rel);
    }
    isReady = (before & kCount) == 1;
    dead = (deadEdge || before >= kDead) && dst.kind != NodeKind::Trigger;
  } else if (edge.slot < 0) {
    uint64_t now = count.fetch_sub(2, std::memory_order_acq_rel) - 2;
    dead = now / kDead >= static_cast<uint64_t>(dst.numInputs);
    isReady = (now & kCount) == 0 || ((now & (kCount | kClaimed)) == 1 && dead);
    dead &= (now & kCount) == 1;
  } else if (deadEdge) {
    // a loop on a branch that was not taken has a Merge with one dead input; the other never comes
    uint64_t weight = fromDeadEnter ? dst.numInputs : 1;
    uint64_t now = count.fetch_add(kDead * weight, std::memory_order_acq_rel) + kDead * weight;
    dead = now / kDead >= static_cast<uint64_t>(dst.numInputs);
    isReady = dead && (now & (kCount | kClaimed)) == 1;
  } else {
    if (count.fetch_or(kClaimed, std::memory_order_acq_rel) & kClaimed)
      return; // a second live value: the first one counts
    iteration->inputs[dst.inputStart + edge.slot] = edge.last ? std::move(*value) : *value;
    uint64_t now = count.fetch_sub(1, std::memory_order_acq_rel) - 1;
    isReady = (now & kCount) == 0;
  }
  if (!isReady)
    return;
  if (frame != root.get())
    iteration->outstanding.fetch_add(1, std::memory_order_relaxed);
  ready.push_back({edge.dst, frame, iteration, dead});
}

/// All edges of a node into one iteration.
void Step::activateAll(const ExecNode &item, std::vector<Value> &outputs, bool dead, Frame *frame, Iteration *iteration,
                       Ready &ready) {
  bool fromDeadEnter = dead && item.kind == NodeKind::Enter;
  for (const OutEdge &edge : item.edges) {
    bool deadEdge = dead || (edge.port >= 0 && !outputs[edge.port].present());
    activate(edge, deadEdge, fromDeadEnter, edge.port >= 0 ? &outputs[edge.port] : nullptr, frame, iteration, ready);
  }
}

void Step::propagate(const Tagged &t, std::vector<Value> &outputs, Ready &ready) {
  const ExecNode &item = executable->nodes()[t.node];
  switch (item.kind) {
  case NodeKind::Enter: enter(t, outputs, ready); break;
  case NodeKind::NextIteration:
    if (!t.dead) // deadness ends here: the loop is over
      nextIteration(t, outputs, ready);
    break;
  case NodeKind::Exit:
    if (!t.dead) {
      activateAll(item, outputs, false, t.frame->parent, t.frame->parentIteration, ready);
      break;
    }
    {
      std::lock_guard<std::mutex> lock(t.frame->mutex);
      if (t.iteration->number == t.frame->lastNumber)
        t.frame->deadExits.push_back(t.node);
    }
    break;
  default: activateAll(item, outputs, t.dead, t.frame, t.iteration, ready); break;
  }
  if (t.frame != root.get())
    opDone(t.frame, t.iteration, ready);
}

Step::Frame *Step::childFrame(const ExecNode &enter, const Tagged &t) {
  std::lock_guard<std::mutex> lock(framesMutex);
  for (auto &child : children)
    if (child->index == enter.childFrame && child->parent == t.frame && child->parentIteration == t.iteration)
      return child.get();
  auto made = std::make_unique<Frame>(executable->frames()[enter.childFrame], enter.childFrame);
  made->parent = t.frame;
  made->parentIteration = t.iteration;
  made->maxParallel = enter.parallelIterations;
  made->id = absl::StrCat(t.frame->id, t.frame == root.get() ? "" : absl::StrCat("/", t.iteration->number, "/"), made->info.name);
  made->open(0);
  if (t.frame != root.get()) {
    std::lock_guard<std::mutex> parent(t.frame->mutex);
    ++t.iteration->openFrames;
  }
  children.push_back(std::move(made));
  return children.back().get();
}

void Step::enter(const Tagged &t, std::vector<Value> &outputs, Ready &ready) {
  const ExecNode &item = executable->nodes()[t.node];
  Frame *child = childFrame(item, t);
  bool over;
  {
    std::lock_guard<std::mutex> lock(child->mutex);
    if (item.constantEnter) {
      // each iteration gets it, those that are open now and those to come
      child->invariants.emplace_back(t.node, t.dead ? Value() : outputs[0]);
      for (auto &[number, iteration] : child->iterations) {
        std::vector<Value> copy = outputs;
        activateAll(item, copy, t.dead, child, iteration.get(), ready);
      }
    } else {
      // the first iteration waits for all Enters, so it is open
      activateAll(item, outputs, t.dead, child, child->find(0), ready);
    }
    --child->pendingEnters;
    over = cleanUp(child, 0, ready);
  }
  if (over)
    deleteFrame(child, ready);
}

/// A new iteration with the loop's invariants. Under the frame's lock.
Step::Iteration *Step::addIteration(Frame *frame, Ready &ready) {
  Iteration *iteration = frame->open(++frame->lastNumber);
  frame->deadExits.clear(); // only those of the last iteration count
  for (auto &[node, value] : frame->invariants) {
    std::vector<Value> copy(1, value);
    activateAll(executable->nodes()[node], copy, !value.present(), frame, iteration, ready);
  }
  return iteration;
}

void Step::nextIteration(const Tagged &t, std::vector<Value> &outputs, Ready &ready) {
  Frame *frame = t.frame;
  std::lock_guard<std::mutex> lock(frame->mutex);
  Iteration *next = nullptr;
  if (t.iteration->number < frame->lastNumber)
    next = frame->find(t.iteration->number + 1);
  else if (static_cast<int>(frame->iterations.size()) < frame->maxParallel)
    next = addIteration(frame, ready);
  if (next)
    activateAll(executable->nodes()[t.node], outputs, false, frame, next, ready);
  else
    frame->waiting.emplace_back(t.node, std::move(outputs[0]));
}

/// One node of an iteration is done; closes what is over.
void Step::opDone(Frame *frame, Iteration *iteration, Ready &ready) {
  bool over;
  {
    std::lock_guard<std::mutex> lock(frame->mutex);
    int64_t number = iteration->number;
    if (iteration->outstanding.fetch_sub(1, std::memory_order_acq_rel) != 1)
      return;
    over = cleanUp(frame, number, ready);
  }
  if (over)
    deleteFrame(frame, ready);
}

/// Closes iterations from `number` on while they are over. Under the frame's lock; true when the whole frame is over.
bool Step::cleanUp(Frame *frame, int64_t number, Ready &ready) {
  for (;; ++number) {
    Iteration *iteration = frame->find(number);
    if (!iteration)
      break;
    bool first = frame->iterations.begin()->first == number;
    if (iteration->outstanding.load(std::memory_order_acquire) != 0 || iteration->openFrames != 0 || !first ||
        frame->pendingEnters != 0)
      break;
    // the values that wait belong to the newest iteration and open the next
    if (!frame->waiting.empty() && static_cast<int>(frame->iterations.size()) <= frame->maxParallel) {
      std::vector<std::pair<int, Value>> waiting = std::move(frame->waiting);
      frame->waiting.clear();
      Iteration *next = addIteration(frame, ready);
      for (auto &[node, value] : waiting) {
        std::vector<Value> outputs(1, std::move(value));
        activateAll(executable->nodes()[node], outputs, false, frame, next, ready);
      }
    }
    frame->iterations.erase(number);
  }
  return frame->iterations.empty() && frame->pendingEnters == 0;
}

void Step::deleteFrame(Frame *frame, Ready &ready) {
  Frame *parent = frame->parent;
  Iteration *iteration = frame->parentIteration;
  std::vector<Value> none(1);
  for (int node : frame->deadExits)
    activateAll(executable->nodes()[node], none, true, parent, iteration, ready);
  {
    std::lock_guard<std::mutex> lock(framesMutex);
    for (auto &child : children)
      if (child.get() == frame) {
        std::swap(child, children.back());
        children.pop_back();
        break;
      }
  }
  if (parent == root.get())
    return;
  bool over;
  {
    std::lock_guard<std::mutex> lock(parent->mutex);
    --iteration->openFrames;
    over = cleanUp(parent, iteration->number, ready);
  }
  if (over)
    deleteFrame(parent, ready);
}

} // namespace lathe::rt
