#include "test/cuda/emulator/Device.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>

namespace lathe::emu {

Config Config::read() {
  Config c;
  auto text = [](const char *name) -> std::string {
    const char *v = std::getenv(name);
    return v ? v : "";
  };
  auto number = [&](const char *name, auto &to) {
    std::string v = text(name);
    if (!v.empty())
      to = static_cast<std::decay_t<decltype(to)>>(std::strtoull(v.c_str(), nullptr, 10));
  };
  number("LATHE_EMU_ARCH", c.arch);
  number("LATHE_EMU_DRIVER", c.driver);
  number("LATHE_EMU_SEED", c.seed);
  number("LATHE_EMU_SMS", c.sms);
  number("LATHE_EMU_FAIL_CALL", c.failCall);
  number("LATHE_EMU_FAIL_RESULT", c.failResult);
  number("LATHE_EMU_MEMORY", c.memory);
  number("LATHE_EMU_MAX_BRANCHES", c.maxBranches);
  number("LATHE_EMU_DEVICES", c.devices);
  c.devices = std::min(std::max(1, c.devices), Device::mostDevices);
  c.sms = std::max(1u, c.sms);
  c.keep = text("LATHE_EMU_KEEP");
  c.text = text("LATHE_EMU_TEXT");
  c.counts = text("LATHE_EMU_COUNTS");
  c.noDevice = !text("LATHE_EMU_NO_DEVICE").empty();
  std::string checks = "," + text("LATHE_EMU_CHECKS") + ",";
  c.initcheck = checks.find(",init,") != std::string::npos;
  c.racecheck = checks.find(",race,") != std::string::npos;
  c.log = text("LATHE_EMU_LOG");
  return c;
}

Device &Device::get() {
  static Device *device = new Device; // outlives what runs at exit
  return *device;
}

void Device::configure() {
  if (contextUses)
    return;
  config = Config::read();
  random.seed(config.seed);
  findings = Findings();
  findings.setLog(config.log);
  makeMemories();
  calls = 0;
  callsOf.clear();
  sticky = LATHE_CU_SUCCESS;
  initialized = true;
}

void Device::reset() {
  completeAll();
  auto tell = [&](size_t n, const char *what) {
    if (n)
      findings.add(Finding::Api, what, 0, "left behind: " + std::to_string(n) + " " + what);
  };
  size_t regions = 0;
  for (const auto &m : memories)
    regions += m->count(Region::Device);
  tell(regions, "allocations of device memory");
  tell(memories[0]->count(Region::Pinned), "allocations of pinned memory");
  tell(modules.size(), "modules");
  tell(streams.size(), "streams");
  tell(events.size(), "events");
  tell(graphs.size(), "graphs");
  tell(execs.size(), "instantiated graphs");
  if (!config.counts.empty()) {
    std::ofstream out(config.counts, std::ios::app);
    for (const auto &[name, n] : callsOf)
      out << name << " " << n << "\n";
  }
  callsOf.clear();
  for (Module *m : modules)
    delete m;
  for (Stream *s : streams)
    delete s;
  for (Event *e : events)
    delete e;
  for (Graph *g : graphs)
    delete g;
  for (Graph *g : execs)
    delete g;
  modules.clear();
  functions.clear();
  streams.clear();
  events.clear();
  graphs.clear();
  execs.clear();
  captures.clear();
  pending.clear();
  sticky = LATHE_CU_SUCCESS;
  makeMemories();
}

void Device::makeMemories() {
  memories.clear();
  for (int d = 0; d < mostDevices; ++d) {
    nullStreams[d] = Stream();
    nullStreams[d].ordinal = d;
    if (d >= config.devices)
      continue;
    memories.push_back(std::make_unique<Memory>());
    memories.back()->total = config.memory;
    memories.back()->initcheck = config.initcheck;
    memories.back()->poison = static_cast<uint8_t>(0xc0 + config.seed % 31);
  }
  enter(0);
}

void Device::enter(int device) {
  ordinal = device;
  memory = memories[static_cast<size_t>(device)].get();
}

Stream *Device::stream(lathe_cu_stream handle) {
  auto *s = reinterpret_cast<Stream *>(handle);
  if (!s)
    return &nullStream();
  return streams.count(s) && s->ordinal == ordinal ? s : nullptr;
}

std::shared_ptr<Command> Device::enqueue(Stream &s, Node::Kind kind, std::function<void()> run,
                                         std::vector<std::shared_ptr<Command>> after) {
  if (s.capture) {
    Node node;
    node.kind = kind;
    node.run = std::move(run);
    node.after = s.captureTail;
    s.captureTail = {s.capture->nodes.size()};
    s.capture->nodes.push_back(std::move(node));
    return nullptr;
  }
  auto c = std::make_shared<Command>();
  c->run = std::move(run);
  c->ordinal = s.ordinal;
  c->after = std::move(after);
  auto add = [&](const std::shared_ptr<Command> &before) {
    if (before && !before->done)
      c->after.push_back(before);
  };
  add(s.tail);
  Stream &nullStream = nullStreams[s.ordinal];
  if (&s == &nullStream) {
    // the legacy stream waits for all that do not say otherwise
    for (Stream *o : streams)
      if (o->blocking && o->ordinal == s.ordinal)
        add(o->tail);
  } else if (s.blocking) {
    add(nullStream.tail);
  }
  s.tail = c;
  pending.push_back(c);
  return c;
}

void Device::execute(Command &c) {
  c.done = true;
  c.after.clear();
  // after a failed kernel nothing runs any more
  const int before = ordinal;
  enter(c.ordinal);
  if (sticky == LATHE_CU_SUCCESS)
    c.run();
  enter(before);
  c.run = nullptr;
}

void Device::sweep() {
  pending.erase(std::remove_if(pending.begin(), pending.end(),
                               [](const std::shared_ptr<Command> &c) { return c->done; }),
                pending.end());
}

namespace {
bool ready(const Command &c) {
  return !c.done && std::all_of(c.after.begin(), c.after.end(),
                                [](const std::shared_ptr<Command> &b) { return b->done; });
}
} // namespace

void Device::complete(const std::shared_ptr<Command> &command) {
  if (!command || command->done)
    return;
  std::set<Command *> needed = {command.get()};
  std::vector<Command *> work = {command.get()};
  while (!work.empty()) {
    Command *c = work.back();
    work.pop_back();
    for (const auto &b : c->after)
      if (!b->done && needed.insert(b.get()).second)
        work.push_back(b.get());
  }
  // commands are listed in the order of their calls, so that each pass finds one that is ready
  while (!command->done) {
    bool ran = false;
    for (size_t k = 0; k < pending.size() && !command->done; ++k) {
      Command &c = *pending[k];
      if (!ready(c))
        continue;
      bool wanted = needed.count(&c);
      if (wanted ? (!ran || random() % 4) : random() % 8 == 0) {
        execute(c);
        ran |= wanted;
      }
    }
  }
  sweep();
}

void Device::completeAll() {
  while (!pending.empty()) {
    for (size_t k = 0; k < pending.size(); ++k)
      if (ready(*pending[k]) && random() % 2)
        execute(*pending[k]);
    sweep();
  }
}

void Device::progress() {
  for (const auto &c : pending)
    if (ready(*c) && random() % 2) {
      execute(*c);
      break;
    }
  sweep();
}

bool Device::breaksCapture() {
  bool broken = false;
  for (Capture *c : captures)
    if (c->mode == LATHE_CU_STREAM_CAPTURE_MODE_GLOBAL ||
        (c->mode == LATHE_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && c->thread == std::this_thread::get_id())) {
      c->invalid = true;
      broken = true;
    }
  return broken;
}

Call::Call(const char *name, Needs needs, bool releases) : device(Device::get()), lock(device.mutex) {
  uint64_t n = ++device.calls;
  ++device.callsOf[name];
  if (needs != Nothing && !device.initialized) {
    refused = LATHE_CU_ERROR_NOT_INITIALIZED;
    return;
  }
  if (device.initialized && n == device.config.failCall) {
    // what gives something back does so all the same, as calls that report an earlier failure do
    (releases ? late : refused) = device.config.failResult;
    if (!releases)
      return;
  }
  if (int current = currentOrdinal(); current >= 0 && device.initialized)
    device.enter(current);
  if (needs >= Context && !hasContext())
    refused = LATHE_CU_ERROR_INVALID_CONTEXT;
  else if (needs == Working && device.sticky != LATHE_CU_SUCCESS)
    refused = device.sticky;
}

lathe_cu_result Call::finish(lathe_cu_result result) {
  if (result != LATHE_CU_SUCCESS)
    return result;
  return late != LATHE_CU_SUCCESS ? late : device.sticky;
}

} // namespace lathe::emu
