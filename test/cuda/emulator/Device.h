// The driver's state: its devices, which are alike, their primary contexts, what was made in them, and the commands
// that wait to run. Commands run as late as allowed, in any order that streams and events leave open.
#ifndef LATHE_TEST_CUDA_EMULATOR_DEVICE_H
#define LATHE_TEST_CUDA_EMULATOR_DEVICE_H

#include "runtime/cuda/driver/types.h"
#include "test/cuda/emulator/Exec.h"

#include <functional>
#include <mutex>
#include <set>
#include <thread>

namespace lathe::emu {

/// What environment variables say; read by cuInit while no context is there.
struct Config {
  int arch = 80;                             ///< LATHE_EMU_ARCH: 80, 90 or 100
  int driver = 13000;                        ///< LATHE_EMU_DRIVER: 11040, 12020, 13000
  uint64_t seed = 1;                         ///< LATHE_EMU_SEED
  unsigned sms = 4;                          ///< LATHE_EMU_SMS
  bool initcheck = false, racecheck = false; ///< LATHE_EMU_CHECKS: "init,race"
  uint64_t failCall = 0;                     ///< LATHE_EMU_FAIL_CALL: this call fails, counted from 1
  int failResult = LATHE_CU_ERROR_UNKNOWN;   ///< LATHE_EMU_FAIL_RESULT
  uint64_t memory = uint64_t(16) << 30;      ///< LATHE_EMU_MEMORY: bytes
  uint64_t maxBranches = 4000000000;         ///< LATHE_EMU_MAX_BRANCHES: of a launch
  int devices = 1;                           ///< LATHE_EMU_DEVICES: up to 4
  bool noDevice = false;                     ///< LATHE_EMU_NO_DEVICE
  std::string log;                           ///< LATHE_EMU_LOG: file for findings, else stderr
  std::string counts;                        ///< LATHE_EMU_COUNTS: file that gets how often each function was called
  std::string keep;                          ///< LATHE_EMU_KEEP: folder for the text of every module that is loaded
  std::string text;                          ///< LATHE_EMU_TEXT: file with the text that modules have in place of their own
  static Config read();
};

struct Command {
  std::function<void()> run;
  int ordinal = 0; ///< of the device
  std::vector<std::shared_ptr<Command>> after;
  bool done = false;
};

/// One operation of a captured graph.
struct Node {
  enum Kind : uint8_t { Kernel, Copy, Set, Empty } kind = Empty;
  std::function<void()> run;
  std::vector<size_t> after;
  std::shared_ptr<char> id = std::make_shared<char>(); ///< its address is the handle, the same in what is instantiated
  lathe_cu_graph_node handle() const { return reinterpret_cast<lathe_cu_graph_node>(id.get()); }
};

struct Capture {
  std::vector<Node> nodes;
  lathe_cu_capture_mode mode = 0;
  std::thread::id thread;
  bool invalid = false;
  struct Stream *origin = nullptr;
  std::set<struct Stream *> streams;
};

struct Stream {
  int ordinal = 0; ///< of the device
  bool blocking = true;
  std::shared_ptr<Command> tail;
  std::shared_ptr<Capture> capture;
  std::vector<size_t> captureTail;
  std::vector<lathe_cu_graph_node> told; ///< what cuStreamGetCaptureInfo answered
};

struct Event {
  std::shared_ptr<Command> command; ///< null: never recorded
  std::shared_ptr<double> time;
  bool timing = true;
  std::shared_ptr<Capture> capture; ///< recorded in a capture
  std::vector<size_t> nodes;
};

struct Graph {
  std::vector<Node> nodes;
};

struct Function;
struct Module {
  int ordinal = 0; ///< of the device
  std::unique_ptr<Image> image;
  std::vector<uint64_t> variables; ///< addresses
  std::map<std::string, std::unique_ptr<Function>> functions;
};
struct Function {
  Module *module = nullptr;
  const Code *code = nullptr;
  int maxDynamicShared = 0;
};

class Device {
public:
  Config config;
  static constexpr int mostDevices = 4;
  std::vector<std::unique_ptr<Memory>> memories; ///< by device; pinned memory is in the first
  int ordinal = 0;                               ///< the device that a call or a command is about
  Memory *memory = nullptr;                      ///< its memory
  Findings findings;
  int contextUses = 0, uses[mostDevices] = {}; ///< of all primary contexts, of each
  lathe_cu_result sticky = LATHE_CU_SUCCESS; ///< after a failed kernel, until the context is gone
  std::set<Module *> modules;
  std::set<Function *> functions;
  std::set<Stream *> streams;
  std::set<Event *> events;
  std::set<Graph *> graphs;
  std::set<Graph *> execs;
  std::set<Capture *> captures;
  Stream nullStreams[mostDevices];
  std::mt19937_64 random;
  uint64_t calls = 0, launches = 0;
  std::map<std::string, uint64_t> callsOf; ///< by function, since the first context was made
  bool initialized = false;
  std::recursive_mutex mutex;

  static Device &get();
  void enter(int device);
  Stream &nullStream() { return nullStreams[ordinal]; }
  void configure();
  /// Tells what was left behind and forgets it.
  void reset();

  /// The stream behind a handle; null when there is none.
  Stream *stream(lathe_cu_stream handle);
  std::shared_ptr<Command> enqueue(Stream &s, Node::Kind kind, std::function<void()> run,
                                   std::vector<std::shared_ptr<Command>> after = {});
  /// Runs what the command needs, and now and then something else.
  void complete(const std::shared_ptr<Command> &command);
  void completeAll();
  /// For queries: may run one command that is ready.
  void progress();
  /// Whether a call that a capture forbids would break one; the capture is invalid then.
  bool breaksCapture();

  unsigned sharedOptin() const { return config.arch == 80 ? 166912 : 232448; }
  unsigned sharedPerSm() const { return config.arch == 80 ? 167936 : 233472; }

private:
  std::vector<std::shared_ptr<Command>> pending;
  void makeMemories();
  void execute(Command &c);
  void sweep();
};

/// Opens every function of the interface: takes the lock, counts the call, fails it when asked to.
class Call {
public:
  enum Needs { Nothing, Initialized, Context, Working };
  Call(const char *name, Needs needs, bool releases = false);
  /// The result when the call may not go on, else success.
  lathe_cu_result refused = LATHE_CU_SUCCESS;
  /// What a call that has done its work returns: an earlier failure of a kernel, or the one asked for.
  lathe_cu_result finish(lathe_cu_result result = LATHE_CU_SUCCESS);
  Device &device;

private:
  std::lock_guard<std::recursive_mutex> lock;
  lathe_cu_result late = LATHE_CU_SUCCESS;
};

#define LATHE_EMU_CALL(name, ...)                                                                            \
  Call call(name, __VA_ARGS__);                                                                              \
  if (call.refused != LATHE_CU_SUCCESS)                                                                      \
    return call.refused;                                                                                     \
  Device &device = call.device;                                                                              \
  (void)device

/// What a launch does once it is its turn, in `run`; or why there can be none.
lathe_cu_result planLaunch(Device &device, lathe_cu_function function, const unsigned (&grid)[3], const unsigned (&block)[3],
                           unsigned shared, void **parameters, void **extra, std::function<void()> &run);

/// A device's context, as a handle.
lathe_cu_context contextHandle(int ordinal);
/// The device whose context is current, -1 when none is.
int currentOrdinal();
/// Whether the calling thread has a current context.
bool hasContext();

} // namespace lathe::emu

#endif
