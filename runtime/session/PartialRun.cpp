// Runs in parts: a step whose arguments arrive one after the other.
#include "runtime/session/Core.h"

#include "absl/strings/str_cat.h"

#include <deque>
#include <map>
#include <set>

namespace lathe::rt {

int64_t newStepId();

/// Feeds and fetches of one partial run, and its step.
class PartialRun : public CallFrame, public std::enable_shared_from_this<PartialRun> {
public:
  PartialRun(std::shared_ptr<SessionCore> core, std::shared_ptr<const Prepared> prepared, std::vector<std::string> fetches)
      : core(std::move(core)), prepared(std::move(prepared)), fetches(std::move(fetches)), args(this->prepared->argTypes.size()),
        results(this->fetches.size()) {
    for (const Prepared::OnDevice &part : this->prepared->parts)
      callers.emplace_back(part.functions.get(), 1, nullptr, &stepResources);
  }

  bool takeArg(int index, Value *value, std::function<void(absl::StatusOr<Tensor>)> later) override {
    std::lock_guard<std::mutex> lock(mutex);
    Arg &arg = args[index];
    if (arg.value.valid()) {
      *value = Value(arg.value);
      return true;
    }
    if (cancelled) {
      core->devices->pool.schedule([later] { later(absl::CancelledError("the run was cancelled")); });
      return false;
    }
    arg.waiting = std::move(later);
    return false;
  }

  absl::Status setResult(int index, Tensor value) override {
    auto host = hostTensor(value);
    if (!host.ok())
      return host.status();
    std::lock_guard<std::mutex> lock(mutex);
    results[index] = *std::move(host);
    changed.notify_all();
    return absl::OkStatus();
  }

  void start(const StepOptions &base) {
    StepOptions o = base;
    o.stepResources = &stepResources;
    o.cancellation = &cancellation;
    Cancellation::Token token;
    cancellation.add(&token, [this] { dropWaiting(); });
    if (!core->closing.add(&closeToken, [this] { cancellation.cancel(); }))
      cancellation.cancel();
    open = prepared->parts.size();
    if (open > 1) {
      o.rendezvous = &rendezvous;
      cancellation.add(&token, [this] { rendezvous.abort(absl::CancelledError("the step was cancelled")); });
    }
    for (const Prepared::OnDevice &part : prepared->parts) {
      o.device = part.device;
      o.resources = part.resources;
      o.functions = &callers[steps.size()];
      o.hostFunctions = &callers[steps.size()].onHost;
      steps.push_back(std::make_unique<Step>(part.executable, o, *this));
    }
    // all but the first in the pool: a step may stay with its thread for long
    for (size_t i = 1; i < steps.size(); ++i)
      core->devices->pool.schedule([self = shared_from_this(), i] { self->steps[i]->start([self](absl::Status s) { self->stepDone(std::move(s)); }); });
    steps[0]->start([self = shared_from_this()](absl::Status s) { self->stepDone(std::move(s)); });
  }

  void stepDone(absl::Status s) {
    // nothing of this run is under way once it is over
    if (absl::Status settled = settle(*prepared); s.ok())
      s = std::move(settled);
    {
      std::lock_guard<std::mutex> lock(mutex);
      // what the others say once they are cancelled is not the cause
      if (!s.ok() && (status.ok() || (status.code() == absl::StatusCode::kCancelled && s.code() != absl::StatusCode::kCancelled)))
        status = std::move(s);
      over = --open == 0;
      if (!over)
        return;
      changed.notify_all();
    }
    core->devices->pool.schedule([self = shared_from_this()] { // remove() waits for a callback that may be above us
      self->core->closing.remove(self->closeToken);
      self->core->endStep();
    });
  }

  absl::Status feed(const Session::Feeds &feeds);
  absl::Status fetch(const std::vector<std::string> &names, std::vector<Tensor> *outputs);
  absl::Status canFetch(const std::vector<std::string> &names);
  bool isOver() {
    std::lock_guard<std::mutex> lock(mutex);
    return over && fetched.size() == std::set<std::string>(fetches.begin(), fetches.end()).size();
  }
  void findNeeds();

private:
  struct Arg {
    Tensor value;
    std::function<void(absl::StatusOr<Tensor>)> waiting;
  };
  void dropWaiting() {
    std::vector<std::function<void(absl::StatusOr<Tensor>)>> todo;
    {
      std::lock_guard<std::mutex> lock(mutex);
      cancelled = true;
      for (Arg &arg : args)
        if (arg.waiting)
          todo.push_back(std::move(arg.waiting)), arg.waiting = nullptr;
    }
    for (auto &f : todo)
      f(absl::CancelledError("the run was cancelled"));
  }

  const std::shared_ptr<SessionCore> core;
  const std::shared_ptr<const Prepared> prepared;
  const std::vector<std::string> fetches;
  std::vector<std::set<int>> needs; ///< arguments that each result depends on
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Arg> args;
  std::vector<Tensor> results;
  std::set<std::string> fetched;
  bool over = false, cancelled = false;
  absl::Status status;
  Cancellation cancellation;
  Cancellation::Token closeToken = 0;
  ResourceManager stepResources;
  std::deque<StepFunctions> callers; ///< one a part
  Rendezvous rendezvous;
  size_t open = 0; ///< steps that have not ended
  std::vector<std::unique_ptr<Step>> steps;
};

/// Forward from each argument, and from each Send to its Recv on another device.
void PartialRun::findNeeds() {
  needs.resize(fetches.size());
  std::vector<const ExecNode *> nodes; // of all parts
  std::vector<int> firstOfPart;        // per node
  std::multimap<std::string, int> receivers;
  auto keyOf = [](const NodeInfo &info) {
    std::string key;
    for (const char *name : {"tensor_name", "send_device", "recv_device"})
      if (const auto *text = attrOf<std::string>(info, name))
        absl::StrAppend(&key, *text, ";");
    return key;
  };
  for (const Prepared::OnDevice &part : prepared->parts) {
    int first = static_cast<int>(nodes.size());
    for (const ExecNode &node : part.executable->nodes()) {
      if (node.info->op == "Recv")
        receivers.emplace(keyOf(*node.info), static_cast<int>(nodes.size()));
      nodes.push_back(&node);
      firstOfPart.push_back(first);
    }
  }
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (nodes[n]->kind != NodeKind::Arg)
      continue;
    std::vector<bool> seen(nodes.size());
    std::vector<int> work{static_cast<int>(n)};
    while (!work.empty()) {
      int i = work.back();
      work.pop_back();
      if (seen[i])
        continue;
      seen[i] = true;
      const ExecNode &node = *nodes[i];
      if (node.kind == NodeKind::Retval)
        needs[node.argIndex].insert(nodes[n]->argIndex);
      if (node.info->op == "Send")
        for (auto [it, end] = receivers.equal_range(keyOf(*node.info)); it != end; ++it)
          work.push_back(it->second);
      for (const OutEdge &e : node.edges)
        work.push_back(firstOfPart[i] + e.dst);
    }
  }
}

absl::Status PartialRun::canFetch(const std::vector<std::string> &names) {
  std::lock_guard<std::mutex> lock(mutex);
  for (const std::string &name : names) {
    bool known = false;
    for (size_t i = 0; i < fetches.size(); ++i) {
      if (fetches[i] != name)
        continue;
      known = true;
      for (int arg : needs[i])
        if (!args[arg].value.valid())
          return absl::InvalidArgumentError(absl::StrCat("Tensor ", name, " can't be computed from the feeds that have been fed so far."));
    }
    if (!known)
      return absl::NotFoundError(absl::StrCat("fetch '", name, "' was not named in PRunSetup"));
    if (fetched.count(name))
      return absl::InvalidArgumentError(absl::StrCat("fetch '", name, "' has been fetched already"));
  }
  return absl::OkStatus();
}

absl::Status PartialRun::feed(const Session::Feeds &feeds) {
  std::vector<std::pair<std::function<void(absl::StatusOr<Tensor>)>, Tensor>> todo;
  {
    std::lock_guard<std::mutex> lock(mutex);
    for (auto &[name, value] : feeds) {
      size_t i = 0;
      while (i < prepared->feeds.size() && prepared->feeds[i] != name)
        ++i;
      if (i == prepared->feeds.size())
        return absl::NotFoundError(absl::StrCat("feed '", name, "' was not named in PRunSetup"));
      if (args[i].value.valid())
        return absl::InvalidArgumentError(absl::StrCat("tensor '", name, "' has been fed already"));
      if (value.dtype() != prepared->argTypes[i])
        return absl::InvalidArgumentError(absl::StrCat("tensor '", name, "' is of type ", dtypeName(prepared->argTypes[i]), ", fed as ",
                                                       dtypeName(value.dtype())));
      args[i].value = value;
      if (args[i].waiting)
        todo.emplace_back(std::move(args[i].waiting), value), args[i].waiting = nullptr;
    }
  }
  for (auto &[later, value] : todo)
    later(value);
  return absl::OkStatus();
}

absl::Status PartialRun::fetch(const std::vector<std::string> &names, std::vector<Tensor> *outputs) {
  std::unique_lock<std::mutex> lock(mutex);
  std::vector<Tensor> found(names.size());
  for (size_t k = 0; k < names.size(); ++k)
    for (size_t i = 0; i < fetches.size(); ++i)
      if (fetches[i] == names[k]) {
        changed.wait(lock, [&] { return results[i].valid() || over; });
        found[k] = results[i];
      }
  if (over && !status.ok())
    return status;
  fetched.insert(names.begin(), names.end());
  if (outputs)
    *outputs = std::move(found);
  return absl::OkStatus();
}

absl::Status SessionCore::partialSetup(const std::vector<std::string> &feeds, const std::vector<std::string> &fetches,
                                       const std::vector<std::string> &targets, std::string *handle) {
  auto p = prepare(feeds, fetches, targets, true);
  if (!p.ok())
    return p.status();
  if (absl::Status s = beginStep(); !s.ok())
    return s;
  auto run = std::make_shared<PartialRun>(shared_from_this(), *std::move(p), fetches);
  run->findNeeds();
  {
    std::unique_lock<std::shared_mutex> lock(mutex);
    *handle = absl::StrCat("partial_run_", nextHandle++);
    partial[*handle] = run;
  }
  StepOptions o;
  o.pool = &devices->pool;
  o.stepId = newStepId();
  run->start(o);
  return absl::OkStatus();
}

absl::Status SessionCore::partialRun(const std::string &handle, const Session::Feeds &feeds, const std::vector<std::string> &fetches,
                                     std::vector<Tensor> *outputs) {
  std::shared_ptr<PartialRun> run;
  {
    std::shared_lock<std::shared_mutex> lock(mutex);
    if (auto it = partial.find(handle); it != partial.end())
      run = it->second;
  }
  if (!run)
    return absl::InvalidArgumentError("Must run 'setup' before performing partial runs!");
  absl::Status status = run->feed(feeds);
  if (status.ok())
    status = run->canFetch(fetches);
  if (status.ok())
    status = run->fetch(fetches, outputs);
  if (run->isOver()) {
    std::unique_lock<std::shared_mutex> lock(mutex);
    partial.erase(handle);
  }
  return status;
}

} // namespace lathe::rt
