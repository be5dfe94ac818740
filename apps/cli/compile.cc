#include "tenon/compile.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "cli.h"
#include "table.h"

namespace tenon::cli {
namespace {

constexpr int timed_loads = 3;

struct CompileFlags {
  std::string model, output;
  SessionFlags session;
  bool check = false, json = false;
};

// The best of a few: a first one also reads from the disk.
double load_seconds(const std::string& path, const SessionOptions& options) {
  using Clock = std::chrono::steady_clock;
  double best = 0;
  for (int i = 0; i < timed_loads; ++i) {
    const Clock::time_point start = Clock::now();
    Session::load(path, options);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = i == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

void print(const CompiledModelInfo& info) {
  fmt::print("{:<12}{:>8}  {}\n", "graph", size_text(info.graph_bytes), count_text(info.nodes, "node"));
  fmt::print("{:<12}{:>8}  {} that kernels read as they are\n", "tensors", size_text(info.tensor_bytes), info.tensors);
  fmt::print("{:<12}{:>8}  {} that kernels made of constants\n", "packed", size_text(info.packed_bytes), info.packed);
  fmt::print("{:<12}Tenon {}\n", "for", info.version);
  fmt::print("{:<12}{}\n", "", info.processor);
  for (const auto& [name, value] : info.options) fmt::print("{:<12}{}: {}\n", "", name, value);
}

nlohmann::json to_json(const CompiledModelInfo& info) {
  nlohmann::json options = nlohmann::json::object();
  for (const auto& [name, value] : info.options) options[name] = value;
  return {{"bytes", info.bytes},
          {"graph_bytes", info.graph_bytes},
          {"tensor_bytes", info.tensor_bytes},
          {"packed_bytes", info.packed_bytes},
          {"nodes", info.nodes},
          {"tensors", info.tensors},
          {"packed", info.packed},
          {"version", info.version},
          {"processor", info.processor},
          {"options", options},
          {"model", info.model.string()}};
}

int check(const CompileFlags& flags) {
  const CompiledModelInfo info = check_compiled(flags.model);
  if (flags.json) {
    fmt::print("{}\n", to_json(info).dump(2));
    return fine;
  }
  fmt::print("{:<12}{:>8}  of {}\n", "file", size_text(info.bytes), info.model.string());
  print(info);
  fmt::print("every byte is as it was written, and it is for this Tenon, this processor and the model as it is\n");
  return fine;
}

int compile(const CompileFlags& flags) {
  if (flags.check) return check(flags);
  if (flags.output.empty())
    throw Error(ErrorCode::invalid_argument, "no file to write is given", "give -o model.tenon, or --check");
  const SessionOptions options = flags.session.options();
  const CompiledModelInfo info = tenon::compile(flags.model, flags.output, options);
  const double before = load_seconds(flags.model, options), after = load_seconds(flags.output, options);
  if (flags.json) {
    nlohmann::json json = to_json(info);
    json["output"] = flags.output;
    json["load_seconds"] = {{"model", before}, {"compiled", after}};
    fmt::print("{}\n", json.dump(2));
    return fine;
  }
  fmt::print("{:<12}{:>8}  {}\n", "wrote", size_text(info.bytes), flags.output);
  print(info);
  fmt::print("{:<12}{} before, {} now\n", "load", quantity(before, "s"), quantity(after, "s"));
  return fine;
}

}  // namespace

void add_compile(CLI::App& program, Action& action) {
  auto flags = std::make_shared<CompileFlags>();
  CLI::App* command =
      program.add_subcommand("compile", "Write a model so that it loads at once: optimised, with packed weights");
  command->add_option("model", flags->model, "The .onnx file; with --check, the compiled one")
      ->required()
      ->type_name("MODEL");
  command->add_option("-o,--output", flags->output, "The file to write, for this version and this kind of processor")
      ->type_name("OUT");
  command->add_flag("--check", flags->check, "Read a compiled file in full: is it complete, unchanged and up to date?");
  flags->session.add_to(*command);
  command->add_flag("--json", flags->json, "Print one JSON document");
  command->callback([flags, &action] { action = [flags] { return compile(*flags); }; });
}

}  // namespace tenon::cli
