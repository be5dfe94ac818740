#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli.h"
#include "tenon/tools/make_inputs.h"
#include "tenon/tools/value_files.h"
#include "tenon/tools/value_text.h"

namespace tenon::cli {
namespace {

struct RunFlags {
  std::string model;
  std::vector<std::string> inputs, shapes, dims, outputs;
  std::string output_dir;
  SessionFlags session;
  uint64_t seed = 0;
  int repeat = 1;
  bool placement = false, time = false, json = false;
};

NamedValues make_inputs(const Session& session, const RunFlags& flags) {
  const tools::InputSources sources = input_sources(flags.inputs, flags.shapes, flags.dims, flags.seed);
  tools::MadeInputs made = tools::make_inputs(session, sources);
  if (!made.random.empty() && !flags.json) {
    std::string text = fmt::format("{} input{} not given: random values (seed {})", made.random.size(),
                                   made.random.size() == 1 ? "" : "s", flags.seed);
    for (size_t i = 0; i < made.assumed.size(); ++i)
      text += fmt::format("{}{} = 1", i ? ", " : "; assumed ", made.assumed[i]);
    fmt::print(stderr, "note: {}\n", text);
  }
  return std::move(made.values);
}

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
  using Clock = std::chrono::steady_clock;
  auto milliseconds = [](Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); };
  auto start = Clock::now();
  Session session = Session::load(flags.model, flags.session.options());
  double load = milliseconds(Clock::now() - start);
  if (!flags.json) {
    for (const std::string& note : session.notes()) fmt::print(stderr, "note: {}\n", note);
  }
  NamedValues inputs = make_inputs(session, flags);
  RunOptions options;
  options.outputs = flags.outputs;
  NamedValues outputs;
  double first = 0, best = INFINITY;
  for (int i = 0; i < flags.repeat; ++i) {
    start = Clock::now();
    outputs = session.run(inputs, options);
    double took = milliseconds(Clock::now() - start);
    if (i == 0) first = took;
    best = std::min(best, took);
  }
  std::vector<std::string> written;
  if (!flags.output_dir.empty()) written = tools::write_values(flags.output_dir, outputs);

  if (flags.json) {
    nlohmann::json json = {
        {"model", flags.model}, {"load_ms", load}, {"run_ms", best}, {"notes", session.notes()}, {"files", written}};
    json["outputs"] = nlohmann::json::array();
    for (const auto& [name, value] : outputs) json["outputs"].push_back(output_json(name, value));
    if (flags.placement) {
      for (const NodePlacement& node : session.placement()) json["placement"].push_back(to_json(node));
    }
    fmt::print("{}\n", json.dump(2));
    return fine;
  }
  for (const ValueInfo& info : session.outputs()) {
    auto found = outputs.find(info.name);
    if (found != outputs.end()) fmt::print("{} = {}\n", info.name, tools::value_text(found->second));
  }
  for (const std::string& file : written) fmt::print("wrote {}\n", file);
  if (flags.placement) print_placement(session.placement());
  if (flags.time) {
    fmt::print("time: load {:.2f} ms, first run {:.3f} ms", load, first);
    if (flags.repeat > 1) fmt::print(", best of {} {:.3f} ms", flags.repeat, best);
    fmt::print("\n");
  }
  return fine;
}

}  // namespace

void add_run(CLI::App& program, Action& action) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command =
      program.add_subcommand("run", "Run a model once, on given or random inputs, and print its outputs");
  command->add_option("model", flags->model, "The .onnx file")->required()->type_name("MODEL");
  command->add_option("--input", flags->inputs, "An input from a file: .npy, .npz, .pb, .pgm, .ppm, .bin or .raw")
      ->type_name("NAME=FILE");
  command->add_option("--shape", flags->shapes, "The shape of a random input")->type_name("NAME=1x3x224x224");
  command->add_option("--dim", flags->dims, "The size of a named dimension of random inputs (default: 1)")
      ->type_name("NAME=SIZE");
  command->add_option("--seed", flags->seed, "Seed of random inputs (default: 0)");
  command->add_option("--output", flags->outputs, "Compute only these outputs")->type_name("NAME");
  command->add_option("--output-dir", flags->output_dir, "Save the outputs there as .npy files")->type_name("DIR");
  command->add_option("--repeat", flags->repeat, "Run this many times")->check(CLI::PositiveNumber);
  command->add_flag("--placement", flags->placement, "Print where each node ran");
  command->add_flag("--time", flags->time, "Print how long loading and running took");
  command->add_flag("--json", flags->json, "Print one JSON document");
  flags->session.add_to(*command);
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tenon::cli
