#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tenon/session.h"
#include "tenon/tools/onnx_model.h"
#include "tenon/tools/tensor_stats.h"

// Watching runs: who made the first NaN, and what every node made. Both know more where they are given the model that
// the session runs: the attributes of its nodes, which values are constants, and the names that they had.
namespace tenon::tools {

// A value of a step, as reports show it.
struct ValueSummary {
  std::string name;
  std::string value;               // "float [2, 3]"
  std::string origin;              // "an input of the model", "a constant", "made by Exp 'e' (node 3)", …
  TensorStats stats;               // of a tensor, or of all tensors in it
  std::vector<std::string> first;  // elements of a tensor, as text
  bool is_seen = true;             // false of weights that only their kernel still has, rearranged
};

// A node that made NaN or infinite numbers.
struct NanFinding {
  std::string node;        // "Log 'l' (node 2)"
  std::string op_type;     // as it ran
  std::string attributes;  // as the model has them, "axis=1"; "" where there are none or no model was given
  std::vector<ValueSummary> inputs, outputs;
};

// Several lines for people: the node, its attributes, and each of its values.
std::string to_text(const NanFinding& finding);
// The same of one value.
std::string to_text(const ValueSummary& value);

struct NanWatchOptions {
  bool allow_infinite = false;  // only NaN counts
};

// Ends a run, with ErrorCode::invalid_value, at the first node that makes NaN or infinite numbers out of finite inputs,
// or NaN out of inputs that have none. Watches one run at a time.
class NanWatch : public RunWatcher {
 public:
  explicit NanWatch(const Session& session, const OnnxModel* model = nullptr, const NanWatchOptions& options = {});
  ~NanWatch() override;

  void before(const WatchedStep& step) override;
  void after(const WatchedStep& step) override;

  const std::optional<NanFinding>& finding() const;
  // Values that were not finite though no node that was watched made them so: inputs, and constants.
  const std::vector<ValueSummary>& bad_sources() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

// What a run with a NanWatch found.
struct NanReport {
  std::optional<NanFinding> finding;      // none: no node made NaN or infinite numbers
  std::vector<ValueSummary> bad_sources;  // as NanWatch has them
};
NanReport find_nan(const Session& session, const NamedValues& inputs, const OnnxModel* model = nullptr,
                   const NanWatchOptions& options = {});

// A value that was saved.
struct DumpedValue {
  std::string name;      // as the model's file has it
  std::string file;      // in the folder
  std::string node;      // that made it; "" of inputs, of views, and of what follows from weights and shapes
  std::string run_name;  // in the model as it ran
  std::string type;      // "float"
  Shape shape;
  TensorStats stats;
};

struct DumpReport {
  std::vector<DumpedValue> values;
  // Values of the model that no step read or made: the optimiser took them away, no output needs them, or they follow
  // from shapes alone.
  std::vector<std::string> missing;
  // Values that were there and could not be saved, with the reason.
  std::vector<std::pair<std::string, std::string>> left_out;
};

struct DumpOptions {
  std::filesystem::path folder;      // made if needed
  std::vector<std::string> filters;  // such as "encoder/*": names that match one are saved. None: all are
};

// Saves the inputs of a run and what its nodes make, as .npy files, by the names that the model's file has for them. A
// value that is made again, in a loop, is saved again with a number behind its name. Watches one run.
class Dump : public RunWatcher {
 public:
  // Throws ErrorCode::write_failed where the folder cannot be made.
  Dump(const Session& session, const DumpOptions& options, const OnnxModel* model = nullptr);
  ~Dump() override;

  void before(const WatchedStep& step) override;
  void after(const WatchedStep& step) override;

  // After the run: saves inputs and outputs that no step had, and writes index.json, which says what is in the files.
  DumpReport finish(const NamedValues& inputs, const NamedValues& outputs);

 private:
  class State;
  std::unique_ptr<State> state_;
};

// A run with a Dump.
DumpReport dump(const Session& session, const NamedValues& inputs, const DumpOptions& options,
                const OnnxModel* model = nullptr);

// Lets several watch one run, in order.
class Watchers : public RunWatcher {
 public:
  void add(RunWatcher& watcher) { all_.push_back(&watcher); }
  bool empty() const { return all_.empty(); }
  void before(const WatchedStep& step) override;
  void after(const WatchedStep& step) override;

 private:
  std::vector<RunWatcher*> all_;
};

}  // namespace tenon::tools
