#include "watch_flags.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "table.h"
#include "tenon/compile.h"

namespace tenon::cli {
namespace {

constexpr size_t most_shown = 10;  // names that --dump did not find

nlohmann::json to_json(const tools::ValueSummary& value) {
  nlohmann::json json = {
      {"name", value.name}, {"value", value.value}, {"origin", value.origin}, {"seen", value.is_seen}};
  if (value.is_seen) json["statistics"] = cli::to_json(value.stats);
  if (!value.first.empty()) json["first"] = value.first;
  return json;
}

nlohmann::json to_json(const std::vector<tools::ValueSummary>& values) {
  nlohmann::json json = nlohmann::json::array();
  for (const tools::ValueSummary& value : values) json.push_back(to_json(value));
  return json;
}

nlohmann::json to_json(const std::optional<tools::NanFinding>& finding) {
  if (!finding) return nullptr;
  return {{"node", finding->node},
          {"op_type", finding->op_type},
          {"attributes", finding->attributes},
          {"inputs", to_json(finding->inputs)},
          {"outputs", to_json(finding->outputs)}};
}

void print_dump(const tools::DumpReport& report, const std::string& folder) {
  fmt::print("dumped {} to {}, listed in index.json\n", count_text(static_cast<int64_t>(report.values.size()), "value"),
             folder);
  for (const auto& [name, reason] : report.left_out) fmt::print("left out {}: {}\n", name, reason);
  if (report.missing.empty()) return;
  fmt::print(
      "not there: {}, which the optimiser took away (--level none, --keep NAME), no output needs, or shapes alone "
      "decide\n",
      count_text(static_cast<int64_t>(report.missing.size()), "value"));
  for (size_t i = 0; i < std::min(most_shown, report.missing.size()); ++i) fmt::print("  {}\n", report.missing[i]);
  if (report.missing.size() > most_shown)
    fmt::print("  … and {} more, in index.json\n", report.missing.size() - most_shown);
}

}  // namespace

nlohmann::json to_json(const tools::TensorStats& stats) {
  return {{"elements", stats.elements}, {"nan", stats.nans}, {"infinite", stats.infinities}, {"zeros", stats.zeros},
          {"min", stats.min},           {"max", stats.max},  {"mean", stats.mean},           {"std", stats.std}};
}

void WatchFlags::add_to(CLI::App& command) {
  const std::string group = "Looking into the run (slower; --level none shows the model's own nodes)";
  command
      .add_flag("--watch-nan", nan, "Stop at the first node that makes NaN or infinite numbers, and show its inputs")
      ->group(group);
  command.add_flag("--allow-infinite", allow_infinite, "With --watch-nan: only NaN counts")->group(group);
  command.add_option("--dump", dump, "Save inputs and what every node makes there, as .npy files with an index.json")
      ->type_name("DIR")
      ->group(group);
  command.add_option("--filter", filters, "With --dump: only values of such names, as 'encoder/*'; may be repeated")
      ->allow_extra_args(false)
      ->type_name("GLOB")
      ->group(group);
}

Watching::Watching(const WatchFlags& flags, const std::string& model, const Session& session) : folder_(flags.dump) {
  if (flags.any() && !is_compiled(model)) model_ = tools::OnnxModel::load(model);
  const tools::OnnxModel* known = model_ ? &*model_ : nullptr;
  if (!flags.dump.empty()) watchers_.add(dump_.emplace(session, tools::DumpOptions{flags.dump, flags.filters}, known));
  if (flags.nan) watchers_.add(nan_.emplace(session, known, tools::NanWatchOptions{flags.allow_infinite}));
}

std::optional<NamedValues> Watching::run(const Session& session, const NamedValues& inputs, RunOptions options) {
  if (!watchers_.empty()) options.watcher = &watchers_;
  std::optional<NamedValues> outputs;
  try {
    outputs = session.run(inputs, options);
  } catch (const Error&) {
    if (!nan_ || !nan_->finding()) throw;
  }
  if (dump_) dumped_ = dump_->finish(inputs, outputs.value_or(NamedValues()));
  return outputs;
}

void Watching::print() const {
  if (nan_ && nan_->finding()) fmt::print("{}\n", tools::to_text(*nan_->finding()));
  if (nan_ && !nan_->finding())
    fmt::print("no node made NaN{}\n", nan_->bad_sources().empty() ? " or infinite numbers" : "");
  if (nan_) {
    for (const tools::ValueSummary& value : nan_->bad_sources())
      fmt::print("not finite to begin with: {}\n", tools::to_text(value));
  }
  if (dumped_) print_dump(*dumped_, folder_);
}

void Watching::add_to(nlohmann::json& json) const {
  if (nan_) {
    json["nan"] = to_json(nan_->finding());
    json["not_finite_to_begin_with"] = to_json(nan_->bad_sources());
  }
  if (!dumped_) return;
  nlohmann::json left_out = nlohmann::json::object();
  for (const auto& [name, reason] : dumped_->left_out) left_out[name] = reason;
  json["dump"] = {
      {"folder", folder_}, {"values", dumped_->values.size()}, {"not_there", dumped_->missing}, {"left_out", left_out}};
}

}  // namespace tenon::cli
