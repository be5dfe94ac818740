#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/fail.h"
#include "tenon/tools/value_files.h"
#include "tenon/tools/watch.h"
#include "tools/blocked_image.h"
#include "tools/patterns.h"
#include "tools/watched_model.h"

namespace tenon::tools {
namespace {

constexpr const char* why_missing =
    "no step of this run read or made it: the optimiser took it away, no output needs it, or it follows from shapes "
    "alone. --level none runs every node as the model has it, --keep NAME keeps a single value";

// A part of a file name: short, and without what has a meaning in paths or terminals.
std::string safe_name(const std::string& name) {
  constexpr size_t longest = 150;
  std::string safe = file_name_for(name);
  for (char& c : safe) {
    if (static_cast<unsigned char>(c) < 32 || c == 127) c = '_';
  }
  if (safe.size() > longest) safe = safe.substr(0, longest);
  return safe.empty() || safe[0] == '.' ? "_" + safe : safe;
}

nlohmann::ordered_json to_json(const TensorStats& stats) {
  return {{"elements", stats.elements}, {"nan", stats.nans}, {"infinite", stats.infinities}, {"zeros", stats.zeros},
          {"min", stats.min},           {"max", stats.max},  {"mean", stats.mean},           {"std", stats.std}};
}

nlohmann::ordered_json to_json(const DumpedValue& value) {
  return {{"name", value.name},
          {"file", value.file},
          {"node", value.node},
          {"run_name", value.run_name},
          {"type", value.type},
          {"shape", std::vector<int64_t>(value.shape.begin(), value.shape.end())},
          {"statistics", to_json(value.stats)}};
}

}  // namespace

class Dump::State {
 public:
  State(const Session& session, const DumpOptions& options, const OnnxModel* model)
      : model_(session, model), options_(options) {
    std::error_code error;
    std::filesystem::create_directories(options_.folder, error);
    if (error)
      fail(ErrorCode::write_failed, "cannot make the folder '{}': {}", options_.folder.string(), error.message());
  }

  // What no step made is seen here for the first time: inputs, views, and what follows from weights and shapes.
  void save_input(const WatchedStep::Operand& operand) {
    const bool is_known = model_.is_input(operand.name) || (model_.knows_model() && !model_.is_constant(operand.name));
    if (operand.value && is_known && !seen_.contains(operand.name)) save(operand.name, *operand.value, "");
  }

  void save(std::string_view run_name, const Value& value, const std::string& node) {
    seen_.emplace(run_name);
    const int64_t channels = model_.channels_in_blocks(run_name);
    const Value plain = channels > 0 ? Value(without_blocks(value.tensor(), channels)) : value;
    for (const std::string& name : model_.original_names(run_name)) {
      // The same numbers come again if a node needs them in the layout of the model.
      if (channels == 0 && from_blocks_.contains(name)) continue;
      if (channels > 0) from_blocks_.insert(name);
      saved_.insert(name);
      if (is_wanted(name)) save_as(name, run_name, plain, node);
    }
  }

  bool has_seen(const std::string& name) const { return seen_.contains(name) || saved_.contains(name); }

  DumpReport finish() {
    for (const std::string& name : model_.made_values()) {
      if (is_wanted(name) && !saved_.contains(name)) report_.missing.push_back(name);
    }
    write_index();
    return std::move(report_);
  }

 private:
  bool is_wanted(const std::string& name) const {
    const auto matches = [&](const std::string& filter) { return fits_pattern(name, filter); };
    return options_.filters.empty() || std::ranges::any_of(options_.filters, matches);
  }

  void save_as(const std::string& name, std::string_view run_name, const Value& value, const std::string& node) {
    if (value.is_tensor()) return save_tensor(name, run_name, value.tensor(), node);
    if (value.is_sequence()) {
      const std::vector<Value>& items = value.sequence().items;
      for (size_t i = 0; i < items.size(); ++i) save_as(fmt::format("{}[{}]", name, i), run_name, items[i], node);
    } else if (value.is_optional() && value.optional().item) {
      save_as(name, run_name, *value.optional().item, node);
    } else if (value.is_map()) {
      save_tensor(name + ".keys", run_name, value.map().keys, node);
      save_tensor(name + ".values", run_name, value.map().values, node);
    } else {
      report_.left_out.emplace_back(name, "NumPy has no file for " + value.describe());
    }
  }

  void save_tensor(const std::string& name, std::string_view run_name, const Tensor& tensor, const std::string& node) {
    if (tensor.elements() > 0 && !tensor.raw()) {
      report_.left_out.emplace_back(name, "only its kernel still has it, rearranged");
      return;
    }
    const std::string file = new_file(name);
    write_npy(options_.folder / file, tensor);
    report_.values.push_back({name, file, node, std::string(run_name), std::string(name_of(tensor.type())),
                              tensor.shape(), tensor_stats(tensor)});
  }

  // Names may differ in what file names cannot say.
  std::string new_file(const std::string& name) {
    const std::string stem = safe_name(name);
    std::string file = stem + ".npy";
    for (int number = files_per_stem_[stem]; !files_.insert(file).second;)
      file = fmt::format("{}.{}.npy", stem, ++number);
    ++files_per_stem_[stem];
    return file;
  }

  void write_index() const {
    nlohmann::ordered_json index;
    index["values"] = nlohmann::ordered_json::array();
    for (const DumpedValue& value : report_.values) index["values"].push_back(to_json(value));
    index["not_there"] = report_.missing;
    if (!report_.missing.empty()) index["why_not_there"] = why_missing;
    index["left_out"] = nlohmann::ordered_json::array();
    for (const auto& [name, reason] : report_.left_out)
      index["left_out"].push_back({{"name", name}, {"reason", reason}});
    const std::filesystem::path path = options_.folder / "index.json";
    std::ofstream file(path);
    file << index.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    if (!file.flush()) fail(ErrorCode::write_failed, "'{}' cannot be written", path.string());
  }

  const WatchedModel model_;
  const DumpOptions options_;
  DumpReport report_;
  std::set<std::string, std::less<>> seen_;  // names in the run
  std::set<std::string> saved_, files_;      // original names; files
  std::set<std::string> from_blocks_;        // original names of images that were saved from blocks of channels
  std::map<std::string, int> files_per_stem_;
};

Dump::Dump(const Session& session, const DumpOptions& options, const OnnxModel* model)
    : state_(std::make_unique<State>(session, options, model)) {}
Dump::~Dump() = default;

void Dump::before(const WatchedStep& step) {
  for (const WatchedStep::Operand& operand : step.inputs) state_->save_input(operand);
}

void Dump::after(const WatchedStep& step) {
  for (const WatchedStep::Operand& operand : step.outputs) {
    if (operand.value && operand.value->defined()) state_->save(operand.name, *operand.value, step.node);
  }
}

DumpReport Dump::finish(const NamedValues& inputs, const NamedValues& outputs) {
  for (const NamedValues* values : {&inputs, &outputs}) {
    for (const auto& [name, value] : *values) {
      if (!state_->has_seen(name)) state_->save(name, value, "");
    }
  }
  return state_->finish();
}

DumpReport dump(const Session& session, const NamedValues& inputs, const DumpOptions& options, const OnnxModel* model) {
  Dump watcher(session, options, model);
  RunOptions run;
  run.watcher = &watcher;
  const NamedValues outputs = session.run(inputs, run);
  return watcher.finish(inputs, outputs);
}

}  // namespace tenon::tools
