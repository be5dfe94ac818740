#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli.h"
#include "tenon/tools/inspect.h"
#include "tenon/tools/value_files.h"
#include "tenon/tools/value_text.h"
#include "watch_flags.h"

namespace tenon::cli {
namespace {

struct RunFlags {
  std::string model;
  InputFlags inputs;
  std::vector<std::string> outputs, keep;
  std::string output_dir;
  SessionFlags session;
  WatchFlags watch;
  int repeat = 1;
  bool placement = false, time = false, json = false;
};

nlohmann::json output_json(const std::string& name, const Value& value) {
  nlohmann::json json = {{"name", name}, {"value", value.describe()}};
  if (!value.is_tensor()) return json;
  const Tensor& tensor = value.tensor();
  json["type"] = std::string(name_of(tensor.type()));
  json["shape"] = std::vector<int64_t>(tensor.shape().begin(), tensor.shape().end());
  if (tensor.elements() <= 1000) json["data"] = tools::elements_as_text(tensor);
  return json;
}

int run(const RunFlags& flags) {
  if (flags.repeat > 1 && flags.watch.any())
    throw Error(ErrorCode::invalid_argument, "--watch-nan and --dump look into one run, --repeat asks for more");
  using Clock = std::chrono::steady_clock;
  auto milliseconds = [](Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); };
  auto start = Clock::now();
  SessionOptions session_options = flags.session.options();
  session_options.keep = flags.keep;
  Session session = Session::load(flags.model, session_options);
  double load = milliseconds(Clock::now() - start);
  if (!flags.json) {
    for (const std::string& note : session.notes()) fmt::print(stderr, "note: {}\n", note);
  }
  const NamedValues inputs = flags.inputs.make(session, flags.json);
  RunOptions options;
  options.outputs = flags.outputs;
  Watching watching(flags.watch, flags.model, session);
  std::optional<NamedValues> outputs;
  double first = 0, best = INFINITY;
  for (int i = 0; i < flags.repeat; ++i) {
    start = Clock::now();
    outputs = watching.run(session, inputs, options);
    if (!outputs) break;
    double took = milliseconds(Clock::now() - start);
    if (i == 0) first = took;
    best = std::min(best, took);
  }
  std::vector<std::string> written;
  if (!flags.output_dir.empty() && outputs) written = tools::write_values(flags.output_dir, *outputs);
  const int exit = outputs ? fine : check_failed;

  if (flags.json) {
    nlohmann::json json = {{"model", flags.model}, {"load_ms", load}, {"notes", session.notes()}, {"files", written}};
    json["run_ms"] = outputs ? nlohmann::json(best) : nlohmann::json();
    json["outputs"] = nlohmann::json::array();
    if (outputs) {
      for (const auto& [name, value] : *outputs) json["outputs"].push_back(output_json(name, value));
    }
    watching.add_to(json);
    if (flags.placement) json["placement"] = to_json(tools::placement_for(session, inputs));
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return exit;
  }
  watching.print();
  if (!outputs) return exit;
  for (const ValueInfo& info : session.outputs()) {
    auto found = outputs->find(info.name);
    if (found != outputs->end()) fmt::print("{} = {}\n", info.name, tools::value_text(found->second));
  }
  for (const std::string& file : written) fmt::print("wrote {}\n", file);
  if (flags.placement) print_placement(tools::placement_for(session, inputs));
  if (flags.time) {
    fmt::print("time: load {:.2f} ms, first run {:.3f} ms", load, first);
    if (flags.repeat > 1) fmt::print(", best of {} {:.3f} ms", flags.repeat, best);
    fmt::print("\n");
  }
  return exit;
}

}  // namespace

void add_run(CLI::App& program, Action& action) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command =
      program.add_subcommand("run", "Run a model once, on given or random inputs, and print its outputs");
  command->add_option("model", flags->model, "The .onnx file")->required()->type_name("MODEL");
  flags->inputs.add_to(*command);
  command->add_option("--output", flags->outputs, "Compute only these outputs")->type_name("NAME");
  command->add_option("--output-dir", flags->output_dir, "Save the outputs there as .npy files")->type_name("DIR");
  command->add_option("--repeat", flags->repeat, "Run this many times")->check(CLI::PositiveNumber);
  command->add_flag("--placement", flags->placement, "Print where each node ran and what that costs, totals first");
  command->add_flag("--time", flags->time, "Print how long loading and running took");
  command->add_flag("--json", flags->json, "Print one JSON document");
  command->add_option("--keep", flags->keep, "Values that stay under their names, beside the outputs")
      ->type_name("NAME");
  flags->watch.add_to(*command);
  flags->session.add_to(*command);
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tenon::cli
