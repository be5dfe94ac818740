#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "tenon/custom_operator.h"
#include "tenon/error.h"
#include "tenon/optimization.h"
#include "tenon/precision.h"
#include "tenon/value.h"

namespace tenon::ir {
struct Model;
}

namespace tenon {

// What a session does for speed that takes memory.
enum class MemoryUse : unsigned char {
  normal,
  // No weights are held twice: kernels rearrange only those that no other node reads in another form, and no rearranged
  // copy of such weights is computed ahead. Between runs, the session holds no memory for the next one; its plans stay.
  // Nodes that share weights, and every run, are slower.
  low,
};

struct SessionOptions {
  // Threads to compute with. 0: the pool that all sessions of the process share, one thread per CPU that the process
  // may use (affinity and container quota). More: a pool of this session's own.
  int threads = 0;
  // Microseconds that threads wait for work before they sleep, with a pool of this session's own; within a run 50 times
  // as long, giving way to other threads of the system. 0 leaves the CPU to others at once. -1: as the shared pool, 20
  // or what the environment variable TENON_SPIN says.
  int spin_microseconds = -1;
  // Let nodes that do not depend on each other run at the same time, each on one thread, where estimates say that all
  // threads then have enough to do; outputs have the same bits. For models of many small branches; takes more memory.
  bool parallel_branches = false;
  // Take and give numbers too small for full precision as zero: faster where models compute with them.
  bool flush_denormals = false;
  // Which nodes compute in less than full precision, placement() says; notes() says so where there is no use in it.
  Precision precision = Precision::full;
  // Nodes, by name or as placement() has them, that compute in full precision all the same.
  std::vector<std::string> full_precision_nodes;
  // Providers in order of preference. One that cannot start is an error, unless allow_fallback.
  std::vector<std::string> providers = {"cpu"};
  // Go on without providers that cannot start; notes() and placement() say which and why.
  bool allow_fallback = false;
  // Most bytes that the session's runs may hold at once. 0: the smaller of the container's limit and what is available.
  int64_t memory_limit = 0;
  MemoryUse memory = MemoryUse::normal;
  // Operators to run as their decomposition into smaller ones even where a provider has a kernel; "all" for every one
  // that has a decomposition.
  std::vector<std::string> decompose;
  // How much the model is rewritten before it runs.
  OptimizationLevel level = OptimizationLevel::all;
  // Passes that do not run, by the names that optimization_passes() lists.
  std::vector<std::string> disabled_passes;
  // The optimiser stops after as many rewrites; -1: when it finds no more. Those that are made are the first ones of
  // all, so this finds the one that breaks a model.
  int64_t most_rewrites = -1;
  // Values that no rewrite may take away or rename, beside the model's outputs.
  std::vector<std::string> keep;
  // Sizes of dimensions that the model names, such as {"batch", 1}, or that its inputs denote, such as "DATA_BATCH".
  // Inputs of other sizes are then refused. What the model does not have is ignored; notes() says so.
  std::map<std::string, int64_t> sizes, denoted_sizes;
  // Whether dimensions of one name have one size, as ONNX has it; a run with others is refused. If not, names mean
  // nothing, and less is known of shapes before a run.
  bool trust_size_names = true;
  // Tensors to use in place of initializers of the main graph, by name; of the same type and shape. Their memory is not
  // copied, and external data that they replace need not be there.
  std::map<std::string, Tensor, std::less<>> initializers;
  // Operators of the user's own that this session knows beside Tenon's; see tenon/custom_operator.h.
  std::vector<CustomOperator> custom_operators;
  // Shared libraries with such operators. Their code runs in this process, so they must be trusted; they stay loaded
  // until it ends.
  std::vector<std::filesystem::path> custom_operator_libraries;
  // Hears what a user should know but need not act on, such as a declared shape that the model contradicts.
  std::function<void(const std::string&)> log;
};

// An input or output of a model.
struct ValueInfo {
  std::string name;
  std::string type;                              // as ONNX writes it: "tensor(float)", "seq(tensor(int64))"
  ElementType element = ElementType::undefined;  // of a tensor
  bool has_shape = false;
  std::vector<std::string> shape;  // sizes as text: "3", "batch", "2*seq"; "?" where nothing is known
  int64_t index_limit = 0;         // of an input whose elements are positions, as of tokens: they are below this
};

struct ModelInfo {
  int64_t ir_version = 0;
  std::vector<std::pair<std::string, int64_t>> opsets;
  std::string producer_name, producer_version, domain, graph_name, doc_string, graph_doc_string;
  int64_t model_version = 0;
  std::vector<std::pair<std::string, std::string>> metadata;
};

// Where a node runs, and why there.
struct NodePlacement {
  std::string node;     // "Conv 'stem' (node 0)"
  std::string op_type;  // after lifting to the newest operator set
  std::string provider;
  std::string kernel;
  std::vector<std::pair<std::string, std::string>> declined;  // providers asked before, with their reasons
  // Estimates, as numbers or expressions over the model's sizes; empty where the shapes are not known.
  std::string flops, bytes;
};

// A tensor that one provider makes and another one reads.
struct ValueCopy {
  std::string value, from, to;  // the tensor's name and two providers
  std::string bytes;            // a number or an expression; empty where the shape is not known
};

// What the nodes of one provider cost together: numbers or expressions, as of single nodes.
struct ProviderTotals {
  std::string provider;
  int64_t nodes = 0;
  std::string flops, bytes;
  int64_t unknown = 0;  // nodes that flops and bytes leave out, because their shapes are not known
};

// Where the nodes of a model run, and what that costs. The body of a loop counts once, whatever it will repeat.
struct PlacementReport {
  std::vector<ProviderTotals> providers;  // in the user's order; those that run nothing too
  std::string copied_bytes;               // by all copies together
  int64_t unknown_copies = 0;             // copies that copied_bytes leaves out
  std::vector<NodePlacement> nodes;       // as Session::placement
  std::vector<ValueCopy> copies;          // as Session::copies
};

// Bytes of memory of a session.
struct SessionMemory {
  int64_t weights = 0;  // initializers, in memory or mapped from the model's file, and what kernels made of them
  int64_t in_use = 0;   // by runs that go on, outputs that were not let go, and memory arranged for the next run
  int64_t cached = 0;   // free, kept for later
  int64_t peak = 0;     // the most that was in use since the session was made or trimmed
  int64_t limit = 0;    // what in_use may not exceed
};

// One step of a run.
struct StepProfile {
  std::string node;                          // "Conv 'stem' (node 0)"
  std::string op_type;                       // as it runs
  std::string provider, kernel;              // where, and with what
  int64_t start_ns = 0, duration_ns = 0;     // start on the clock of std::chrono::steady_clock
  int thread = 0;                            // of steps that ran side by side, from 1 on; 0: it ran by itself
  int64_t device_ns = 0;                     // of one repetition on a device: RunOptions::device_repeats
  std::vector<std::string> inputs, outputs;  // "float [1, 3, 224, 224]"
  double flops = 0, bytes = 0;               // estimates; 0 where there are none
};

using NamedValues = std::map<std::string, Value, std::less<>>;

// A step of a run for those who watch it: the node and its values, by the names they have where it runs.
struct WatchedStep {
  struct Operand {
    std::string_view name;  // "" if it is left out
    const Value* value;     // null if it is left out
  };
  std::string node;  // "Conv 'stem' (node 0)"
  std::string_view op_type;
  std::vector<Operand> inputs, outputs;
};

// Sees what is computed while it is computed. What it is given lasts as long as the call; an exception ends the run.
class RunWatcher {
 public:
  RunWatcher() = default;
  RunWatcher(const RunWatcher&) = delete;
  RunWatcher& operator=(const RunWatcher&) = delete;
  virtual ~RunWatcher() = default;
  // Before a step, which may write its outputs over its inputs: what the outputs hold is of no meaning yet. For steps
  // of a node's body this comes between the node's own two calls.
  virtual void before(const WatchedStep& step);
  // After it: what the inputs hold may be gone.
  virtual void after(const WatchedStep& step);
};

struct RunOptions {
  // Outputs to compute; only the nodes they need run. Empty: all.
  std::vector<std::string> outputs;
  // Memory of the caller that outputs are written to, by output name. Type and shape must be those the run produces.
  std::map<std::string, Tensor, std::less<>> destinations;
  // Ends the run between two nodes with ErrorCode::cancelled.
  std::stop_token cancel;
  // Receives what every step did, in the order in which they ended: those of a node's body come before the node.
  // Null: nothing is measured, and nothing is spent on it.
  std::vector<StepProfile>* profile = nullptr;
  // With a profile: each step on a device is also given to it so many times in one go, which measures the device alone,
  // without the host that gives the work and waits for it. 0: it is not.
  int device_repeats = 0;
  // false: a session in a stream of the caller's (tenon/device.h) may return before the device is done. What is given
  // to the stream next comes after the run, and so do later runs of the session; memory of inputs and destinations is
  // kept until then, but must not be written. What fails there is thrown by a later call. A run with an input or an
  // output in the host's memory waits all the same. Without a stream of the caller's: ErrorCode::invalid_argument.
  bool wait = true;
  // Is told of every step, one after the other. Values that follow from weights and shapes alone, and views of others,
  // are made by no step. Null: nothing is spent on it.
  RunWatcher* watcher = nullptr;
};

// The providers of this build that can start on this machine, by name.
std::vector<std::string> available_providers();

// A model that is ready to run. Cheap to move; `run` may be called from many threads at once.
class Session {
 public:
  // An ONNX file or one that compile() wrote. Throws Error if it is not there, is neither, or if a part cannot run.
  static Session load(const std::filesystem::path& path, const SessionOptions& options = {});
  // From a model in memory, which is copied. External data is looked for in `folder`.
  static Session from_bytes(std::span<const std::byte> bytes, const SessionOptions& options = {},
                            const std::filesystem::path& folder = {});

  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  const ModelInfo& model() const;
  const std::vector<ValueInfo>& inputs() const;
  const std::vector<ValueInfo>& outputs() const;
  // Initializers that are inputs too: a run may give them another value. Before version 4 of the format all had to be
  // inputs, so there they are constants.
  const std::vector<ValueInfo>& overridable_initializers() const;
  // Every node with its provider, kernel and reasons, in the order they run; subgraphs included.
  const std::vector<NodePlacement>& placement() const;
  // Every change that the optimiser made, in order.
  const std::vector<Rewrite>& rewrites() const;
  // Tensors that go from one provider to another.
  const std::vector<ValueCopy>& copies() const;
  // Both with totals. Estimates that follow from `input_shapes`, shapes by input, are numbers; the others stay
  // expressions. Throws where a node does not fit inputs of these shapes.
  PlacementReport placement_report(const std::map<std::string, Shape>& input_shapes = {}) const;
  // What the session did that a user may want to know.
  const std::vector<std::string>& notes() const;

  // That a run computes with.
  int threads() const;
  SessionMemory memory() const;
  // Gives back what is kept for later runs; the next ones are a little slower.
  void trim();

  // Runs the model. Throws Error on bad inputs or a failing node; the session stays usable.
  NamedValues run(const NamedValues& inputs, const RunOptions& options = {}) const;

 private:
  friend Session session_of(std::unique_ptr<ir::Model> model, const SessionOptions& options);
  class Implementation;
  explicit Session(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace tenon
