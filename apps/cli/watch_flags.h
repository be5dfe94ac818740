// --watch-nan and --dump: looking into a run.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "cli.h"
#include "tenon/tools/watch.h"

namespace tenon::cli {

struct WatchFlags {
  std::string dump;
  std::vector<std::string> filters;
  bool nan = false, allow_infinite = false;
  void add_to(CLI::App& command);
  bool any() const { return nan || !dump.empty(); }
};

// Who watches a run, as the flags say.
class Watching {
 public:
  Watching(const WatchFlags& flags, const std::string& model, const Session& session);

  // The outputs of a run; none where a node made NaN.
  std::optional<NamedValues> run(const Session& session, const NamedValues& inputs, RunOptions options);

  void print() const;
  // Adds what was seen.
  void add_to(nlohmann::json& json) const;

 private:
  std::optional<tools::OnnxModel> model_;  // what is compiled has none
  std::optional<tools::NanWatch> nan_;
  std::optional<tools::Dump> dump_;
  std::optional<tools::DumpReport> dumped_;
  tools::Watchers watchers_;
  std::string folder_;
};

nlohmann::json to_json(const tools::TensorStats& stats);

}  // namespace tenon::cli
