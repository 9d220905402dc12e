// Streams, events, capture and graphs.
#include "test/cuda/emulator/Device.h"

#include <algorithm>
#include <chrono>

using namespace lathe::emu;

namespace {

double now() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void endCapture(Device &device, Capture &capture) {
  device.captures.erase(&capture);
  std::shared_ptr<Capture> held = capture.origin->capture;
  for (Stream *s : capture.streams) {
    s->capture = nullptr;
    s->captureTail.clear();
  }
}

/// Nodes that the given ones come after, themselves included.
std::vector<bool> before(const std::vector<Node> &nodes, const std::vector<size_t> &from) {
  std::vector<bool> seen(nodes.size(), false);
  std::vector<size_t> work = from;
  while (!work.empty()) {
    size_t n = work.back();
    work.pop_back();
    if (seen[n])
      continue;
    seen[n] = true;
    work.insert(work.end(), nodes[n].after.begin(), nodes[n].after.end());
  }
  return seen;
}

/// A graph's nodes in any order that their edges allow.
void runNodes(Device &device, const std::vector<Node> &nodes) {
  std::vector<bool> done(nodes.size(), false);
  for (size_t left = nodes.size(); left;) {
    size_t ran = 0;
    for (size_t n = 0; n < nodes.size(); ++n) {
      if (done[n] ||
          !std::all_of(nodes[n].after.begin(), nodes[n].after.end(), [&](size_t b) { return done[b]; }))
        continue;
      if (ran && device.random() % 2)
        continue;
      if (device.sticky == LATHE_CU_SUCCESS)
        nodes[n].run();
      done[n] = true;
      ++ran;
      --left;
    }
  }
}

} // namespace

extern "C" lathe_cu_result cuStreamCreate(lathe_cu_stream *stream, unsigned flags) {
  LATHE_EMU_CALL("cuStreamCreate", Call::Working);
  if (!stream || flags > 1)
    return LATHE_CU_ERROR_INVALID_VALUE;
  auto *s = new Stream;
  s->ordinal = device.ordinal;
  s->blocking = !(flags & LATHE_CU_STREAM_NON_BLOCKING);
  device.streams.insert(s);
  *stream = reinterpret_cast<lathe_cu_stream>(s);
  return LATHE_CU_SUCCESS;
}

extern "C" lathe_cu_result cuStreamDestroy(lathe_cu_stream stream) {
  LATHE_EMU_CALL("cuStreamDestroy", Call::Context, true);
  auto *s = reinterpret_cast<Stream *>(stream);
  if (!device.streams.count(s))
    return LATHE_CU_ERROR_INVALID_HANDLE;
  if (s->capture)
    endCapture(device, *s->capture);
  // what was put into it still runs
  device.streams.erase(s);
  delete s;
  return call.finish();
}

extern "C" lathe_cu_result cuStreamQuery(lathe_cu_stream stream) {
  LATHE_EMU_CALL("cuStreamQuery", Call::Working);
  Stream *s = device.stream(stream);
  if (!s)
    return LATHE_CU_ERROR_INVALID_HANDLE;
  if (s->capture) {
    s->capture->invalid = true;
    return LATHE_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  device.progress();
  if (s->tail && !s->tail->done)
    return LATHE_CU_ERROR_NOT_READY;
  return call.finish();
}

extern "C" lathe_cu_result cuStreamSynchronize(lathe_cu_stream stream) {
  LATHE_EMU_CALL("cuStreamSynchronize", Call::Working);
  Stream *s = device.stream(stream);
  if (!s)
    return LATHE_CU_ERROR_INVALID_HANDLE;
  if (s->capture) {
    s->capture->invalid = true;
    return LATHE_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  device.complete(s->tail);
  return call.finish();
}

extern "C" lathe_cu_result cuStreamWaitEvent(lathe_cu_stream stream, lathe_cu_event event, unsigned flags) {
  LATHE_EMU_CALL("cuStreamWaitEvent", Call::Working);
  Stream *s = device.stream(stream);
  auto *e = reinterpret_cast<Event *>(event);
  if (!s || !device.events.count(e) || flags > 1)
    return LATHE_CU_ERROR_INVALID_HANDLE;
  if (e->capture && device.captures.count(e->capture.get())) {
    if (s->capture && s->capture != e->capture)
      return LATHE_CU_ERROR_STREAM_CAPTURE_ISOLATION;
    s->capture = e->capture;
    e->capture->streams.insert(s);
    for (size_t n : e->nodes)
      if (std::find(s->captureTail.begin(), s->captureTail.end(), n) == s->captureTail.end())
        s->captureTail.push_back(n);
    return LATHE_CU_SUCCESS;
  }
  if (s->capture) {
    s->capture->invalid = true;
    return LATHE_CU_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (e->command && !e->command->done)
    device.enqueue(*s, Node::Empty, [] {}, {e->command});
  return LATHE_CU_SUCCESS;
}

extern "C" lathe_cu_result cuEventCreate(lathe_cu_event *event, unsigned flags) {
  LATHE_EMU_CALL("cuEventCreate", Call::Working);
  if (!event || flags > 7)
    return LATHE_CU_ERROR_INVALID_VALUE;
  auto *e = new Event;
  e->timing = !(flags & LATHE_CU_EVENT_DISABLE_TIMING);
  device.events.insert(e);
  *event = reinterpret_cast<lathe_cu_event>(e);
  return LATHE_CU_SUCCESS;
}

extern "C" lathe_cu_result cuEventDestroy(lathe_cu_event event) {
  LATHE_EMU_CALL("cuEventDestroy", Call::Context, true);
  auto *e = reinterpret_cast<Event *>(event);
  if (!device.events.count(e))
    return LATHE_CU_ERROR_INVALID_HANDLE;
  device.events.erase(e);
  delete e;
  return call.finish();
}

extern "C" lathe_cu_result cuEventRecord(lathe_cu_event event, lathe_cu_stream stream) {
  LATHE_EMU_CALL("cuEventRecord", Call::Working);
  Stream *s = device.stream(stream);
  auto *e = reinterpret_cast<Event *>(event);
  if (!s || !device.events.count(e))
    return LATHE_CU_ERROR_INVALID_HANDLE;
  if (s->capture) {
    e->capture = s->capture;
    e->nodes = s->captureTail;
    return LATHE_CU_SUCCESS;
  }
  e->capture = nullptr;
  e->time = std::make_shared<double>(0);
  e->command = device.enqueue(*s, Node::Empty, [time = e->time] { *time = now(); });
  return LATHE_CU_SUCCESS;
}

extern "C" lathe_cu_result cuEventQuery(lathe_cu_event event) {
  LATHE_EMU_CALL("cuEventQuery", Call::Working);
  auto *e = reinterpret_cast<Event *>(event);
  if (!device.events.count(e))
    return LATHE_CU_ERROR_INVALID_HANDLE;
  if (e->capture)
    return LATHE_CU_ERROR_CAPTURED_EVENT;
  device.progress();
  if (e->command && !e->command->done)
    return LATHE_CU_ERROR_NOT_READY;
  return call.finish();
}

extern "C" lathe_cu_result cuEventSynchronize(lathe_cu_event event) {
  LATHE_EMU_CALL("cuEventSynchronize", Call::Working);
  auto *e = reinterpret_cast<Event *>(event);
  if (!device.events.count(e))
    return LATHE_CU_ERROR_INVALID_HANDLE;
  if (e->capture)
    return LATHE_CU_ERROR_CAPTURED_EVENT;
  device.complete(e->command);
  return call.finish();
}

extern "C" lathe_cu_result cuEventElapsedTime(float *milliseconds, lathe_cu_event from, lathe_cu_event to) {
  LATHE_EMU_CALL("cuEventElapsedTime", Call::Working);
  auto *a = reinterpret_cast<Event *>(from), *b = reinterpret_cast<Event *>(to);
  if (!milliseconds || !device.events.count(a) || !device.events.count(b) || !a->timing || !b->timing ||
      !a->command || !b->command)
    return LATHE_CU_ERROR_INVALID_HANDLE;
  if (!a->command->done || !b->command->done)
    return LATHE_CU_ERROR_NOT_READY;
  *milliseconds = static_cast<float>(*b->time - *a->time);
  return LATHE_CU_SUCCESS;
}

extern "C" lathe_cu_result cuStreamBeginCapture(lathe_cu_stream stream, lathe_cu_capture_mode mode) {
  LATHE_EMU_CALL("cuStreamBeginCapture", Call::Working);
  Stream *s = device.stream(stream);
  if (!s)
    return LATHE_CU_ERROR_INVALID_HANDLE;
  // the legacy stream cannot be captured
  if (s == &device.nullStream() || s->capture || mode < 0 || mode > 2)
    return LATHE_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  s->capture = std::make_shared<Capture>();
  s->capture->mode = mode;
  s->capture->thread = std::this_thread::get_id();
  s->capture->origin = s;
  s->capture->streams.insert(s);
  s->captureTail.clear();
  device.captures.insert(s->capture.get());
  return LATHE_CU_SUCCESS;
}

extern "C" lathe_cu_result cuStreamEndCapture(lathe_cu_stream stream, lathe_cu_graph *graph) {
  LATHE_EMU_CALL("cuStreamEndCapture", Call::Context, true);
  Stream *s = device.stream(stream);
  if (!s || !graph || !s->capture)
    return LATHE_CU_ERROR_INVALID_HANDLE;
  *graph = nullptr;
  std::shared_ptr<Capture> capture = s->capture;
  if (capture->origin != s)
    return LATHE_CU_ERROR_STREAM_CAPTURE_UNMATCHED;
  std::vector<bool> joined = before(capture->nodes, s->captureTail);
  bool all = true;
  for (Stream *o : capture->streams)
    for (size_t n : o->captureTail)
      all &= joined[n];
  endCapture(device, *capture);
  if (capture->invalid)
    return LATHE_CU_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!all)
    return LATHE_CU_ERROR_STREAM_CAPTURE_UNJOINED;
  lathe_cu_result result = call.finish();
  if (result != LATHE_CU_SUCCESS)
    return result;
  auto *g = new Graph;
  g->nodes = std::move(capture->nodes);
  device.graphs.insert(g);
  *graph = reinterpret_cast<lathe_cu_graph>(g);
  return LATHE_CU_SUCCESS;
}

extern "C" lathe_cu_result cuStreamIsCapturing(lathe_cu_stream stream, lathe_cu_capture_status *status) {
  LATHE_EMU_CALL("cuStreamIsCapturing", Call::Context);
  Stream *s = device.stream(stream);
  if (!s || !status)
    return LATHE_CU_ERROR_INVALID_HANDLE;
  *status = !s->capture           ? LATHE_CU_STREAM_CAPTURE_STATUS_NONE
            : s->capture->invalid ? LATHE_CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                  : LATHE_CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return LATHE_CU_SUCCESS;
}

extern "C" lathe_cu_result cuStreamGetCaptureInfo(lathe_cu_stream stream, lathe_cu_capture_status *status, uint64_t *id,
                                                  lathe_cu_graph *graph, const lathe_cu_graph_node **last, size_t *count) {
  LATHE_EMU_CALL("cuStreamGetCaptureInfo", Call::Context);
  Stream *s = device.stream(stream);
  // who captures into which graph has no answer here
  if (!s || !status || id || graph)
    return LATHE_CU_ERROR_INVALID_VALUE;
  s->told.clear();
  *status = s->capture ? LATHE_CU_STREAM_CAPTURE_STATUS_ACTIVE : LATHE_CU_STREAM_CAPTURE_STATUS_NONE;
  if (s->capture && s->capture->invalid)
    *status = LATHE_CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  else if (s->capture)
    for (size_t n : s->captureTail)
      s->told.push_back(s->capture->nodes[n].handle());
  if (last)
    *last = s->told.data();
  if (count)
    *count = s->told.size();
  return LATHE_CU_SUCCESS;
}

extern "C" lathe_cu_result cuGraphInstantiateWithFlags(lathe_cu_graph_exec *exec, lathe_cu_graph graph,
                                                       unsigned long long flags) {
  LATHE_EMU_CALL("cuGraphInstantiateWithFlags", Call::Working);
  auto *g = reinterpret_cast<Graph *>(graph);
  if (!exec || !device.graphs.count(g) || flags)
    return LATHE_CU_ERROR_INVALID_VALUE;
  auto *e = new Graph(*g);
  device.execs.insert(e);
  *exec = reinterpret_cast<lathe_cu_graph_exec>(e);
  return LATHE_CU_SUCCESS;
}

extern "C" lathe_cu_result cuGraphExecUpdate(lathe_cu_graph_exec exec, lathe_cu_graph graph,
                                             lathe_cu_graph_node *node, lathe_cu_update_result *result) {
  LATHE_EMU_CALL("cuGraphExecUpdate", Call::Working);
  auto *e = reinterpret_cast<Graph *>(exec), *g = reinterpret_cast<Graph *>(graph);
  if (!device.execs.count(e) || !device.graphs.count(g) || !result)
    return LATHE_CU_ERROR_INVALID_VALUE;
  if (node)
    *node = nullptr;
  bool same = e->nodes.size() == g->nodes.size();
  for (size_t n = 0; same && n < e->nodes.size(); ++n)
    same = e->nodes[n].kind == g->nodes[n].kind && e->nodes[n].after == g->nodes[n].after;
  *result = same ? LATHE_CU_GRAPH_EXEC_UPDATE_SUCCESS : LATHE_CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  if (!same)
    return LATHE_CU_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  e->nodes = g->nodes;
  return LATHE_CU_SUCCESS;
}

extern "C" lathe_cu_result cuGraphExecKernelNodeSetParams(lathe_cu_graph_exec exec, lathe_cu_graph_node node,
                                                          const lathe_cu_kernel_node_params *p) {
  LATHE_EMU_CALL("cuGraphExecKernelNodeSetParams", Call::Working);
  auto *e = reinterpret_cast<Graph *>(exec);
  if (!device.execs.count(e) || !p)
    return LATHE_CU_ERROR_INVALID_VALUE;
  // the node is one of the graph that this was made of, which must still be there
  bool alive = false;
  for (const Graph *g : device.graphs)
    for (const Node &n : g->nodes)
      alive |= n.handle() == node;
  for (Node &n : e->nodes)
    if (alive && n.handle() == node && n.kind == Node::Kernel)
      return planLaunch(device, p->function, {p->grid_x, p->grid_y, p->grid_z}, {p->block_x, p->block_y, p->block_z}, p->shared,
                        p->parameters, p->extra, n.run);
  return LATHE_CU_ERROR_INVALID_VALUE;
}

extern "C" lathe_cu_result cuGraphLaunch(lathe_cu_graph_exec exec, lathe_cu_stream stream) {
  LATHE_EMU_CALL("cuGraphLaunch", Call::Working);
  auto *e = reinterpret_cast<Graph *>(exec);
  Stream *s = device.stream(stream);
  if (!device.execs.count(e) || !s || s->capture)
    return LATHE_CU_ERROR_INVALID_HANDLE;
  // later updates do not change a launch that waits
  device.enqueue(*s, Node::Empty, [&device, nodes = e->nodes] { runNodes(device, nodes); });
  return LATHE_CU_SUCCESS;
}

extern "C" lathe_cu_result cuGraphExecDestroy(lathe_cu_graph_exec exec) {
  LATHE_EMU_CALL("cuGraphExecDestroy", Call::Context, true);
  auto *e = reinterpret_cast<Graph *>(exec);
  if (!device.execs.erase(e))
    return LATHE_CU_ERROR_INVALID_VALUE;
  delete e;
  return call.finish();
}

extern "C" lathe_cu_result cuGraphDestroy(lathe_cu_graph graph) {
  LATHE_EMU_CALL("cuGraphDestroy", Call::Context, true);
  auto *g = reinterpret_cast<Graph *>(graph);
  if (!device.graphs.erase(g))
    return LATHE_CU_ERROR_INVALID_VALUE;
  delete g;
  return call.finish();
}
