#include "tenon/tools/optimize.h"

#include <fmt/core.h>

#include <map>
#include <nlohmann/json.hpp>

#include "cli.h"
#include "tenon/tools/make_inputs.h"

namespace tenon::cli {
namespace {

namespace fs = std::filesystem;

struct OptimizeFlags {
  std::string model, output, level = "basic";
  std::vector<std::string> disabled, keep, libraries;
  InputFlags inputs;
  tools::Tolerance tolerance{1e-4, 1e-6};
  bool list = false, verify = false, force = false, json = false;
};

int list_passes(bool json) {
  // What models need to run at all, at level none too.
  constexpr std::string_view before[] = {"calls of the model's functions become their bodies",
                                         "operators become those of the newest operator set, with the same results"};
  nlohmann::json list = nlohmann::json::array();
  for (const OptimizationPass& pass : optimization_passes()) {
    const std::string_view level = name_of(pass.level);
    if (json)
      list.push_back({{"name", pass.name}, {"level", level}, {"exact", pass.exact}, {"does", pass.does}});
    else
      fmt::print("{:<22} {:<9} {:<8} {}\n", pass.name, level, pass.exact ? "exact" : "rounds", pass.does);
  }
  if (json)
    fmt::print("{}\n", nlohmann::json({{"always", before}, {"passes", list}}).dump(2));
  else
    fmt::print("\nalways, before these: {}; {}\n", before[0], before[1]);
  return fine;
}

std::vector<std::pair<std::string, int>> rewrites_by_pass(const std::vector<Rewrite>& rewrites) {
  std::map<std::string, int> counts;
  for (const Rewrite& rewrite : rewrites) ++counts[rewrite.pass];
  std::vector<std::pair<std::string, int>> result;
  for (const OptimizationPass& pass : optimization_passes()) {
    if (auto found = counts.find(std::string(pass.name)); found != counts.end()) result.emplace_back(*found);
  }
  return result;
}

void print(const tools::OptimizedModel& model) {
  for (const std::string& note : model.notes) fmt::print(stderr, "note: {}\n", note);
  fmt::print("nodes: {} before, {} after\n", model.nodes_before, model.nodes_after);
  for (const tools::OperatorChange& change : model.operators) {
    if (change.before != change.after) fmt::print("  {:>6} -> {:<6} {}\n", change.before, change.after, change.name);
  }
  fmt::print("rewrites: {} in {:.1f} ms\n", model.rewrites.size(), model.seconds * 1e3);
  for (const auto& [pass, count] : rewrites_by_pass(model.rewrites)) fmt::print("  {:>6}  {}\n", count, pass);
}

nlohmann::json to_json(const tools::OptimizedModel& model) {
  nlohmann::json operators = nlohmann::json::array(), rewrites = nlohmann::json::array();
  for (const tools::OperatorChange& change : model.operators)
    operators.push_back({{"name", change.name}, {"before", change.before}, {"after", change.after}});
  for (const Rewrite& rewrite : model.rewrites) {
    nlohmann::json renamed = nlohmann::json::object(), blocked = nlohmann::json::object();
    for (const auto& [from, to] : rewrite.renamed) renamed[from] = to;
    for (const Rewrite::BlockedImage& image : rewrite.blocked) blocked[image.from] = image.to;
    rewrites.push_back({{"pass", rewrite.pass},
                        {"before", rewrite.before},
                        {"after", rewrite.after},
                        {"renamed", renamed},
                        {"blocked", blocked}});
  }
  return {{"nodes_before", model.nodes_before},
          {"nodes_after", model.nodes_after},
          {"operators", operators},
          {"rewrites", rewrites},
          {"seconds", model.seconds},
          {"notes", model.notes}};
}

std::vector<tools::VerifyFailure> verify(const OptimizeFlags& flags, const tools::OptimizeOptions& options) {
  SessionOptions plain;
  plain.level = OptimizationLevel::none;
  plain.custom_operator_libraries = options.custom_operator_libraries;
  NamedValues inputs = tools::make_inputs(Session::load(flags.model, plain), flags.inputs.sources()).values;
  return tools::verify_optimization(flags.model, options, inputs, flags.tolerance);
}

int optimize(const OptimizeFlags& flags) {
  if (flags.list) return list_passes(flags.json);
  if (flags.model.empty()) throw Error(ErrorCode::invalid_argument, "no model is given");
  if (flags.output.empty() && !flags.verify)
    throw Error(ErrorCode::invalid_argument, "nothing to do", "give -o OUT, --verify or --list-passes");
  std::error_code ignored;
  if (!flags.output.empty() && !flags.force && fs::equivalent(flags.model, flags.output, ignored)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is the model itself", flags.output),
                "give another name, or --force to overwrite it");
  }
  tools::OptimizeOptions options{optimization_level(flags.level), flags.disabled, flags.keep};
  options.custom_operator_libraries.assign(flags.libraries.begin(), flags.libraries.end());
  tools::OptimizedModel model = tools::optimize(flags.model, options);
  std::vector<tools::VerifyFailure> failures;
  if (flags.verify) failures = verify(flags, options);
  if (failures.empty() && !flags.output.empty()) model.save(flags.output);
  if (flags.json) {
    nlohmann::json json = to_json(model);
    if (flags.verify) {
      json["failures"] = nlohmann::json::array();
      for (const tools::VerifyFailure& failure : failures)
        json["failures"].push_back({{"pass", failure.pass},
                                    {"node", failure.node},
                                    {"tensor", failure.tensor},
                                    {"difference", failure.difference}});
    }
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return failures.empty() ? fine : check_failed;
  }
  print(model);
  for (const tools::VerifyFailure& failure : failures) {
    fmt::print("verify: pass '{}' changes results\n", failure.pass);
    if (!failure.node.empty()) fmt::print("  node    {}\n", failure.node);
    if (!failure.tensor.empty()) fmt::print("  tensor  {}\n", failure.tensor);
    fmt::print("  {}\n", failure.difference);
  }
  if (flags.verify && failures.empty()) fmt::print("verify: every pass keeps the results\n");
  if (failures.empty() && !flags.output.empty()) fmt::print("wrote {}\n", flags.output);
  return failures.empty() ? fine : check_failed;
}

}  // namespace

void add_optimize(CLI::App& program, Action& action) {
  auto flags = std::make_shared<OptimizeFlags>();
  CLI::App* command = program.add_subcommand("optimize", "Write a model that computes the same with fewer nodes");
  command->add_option("model", flags->model, "The .onnx file")->type_name("MODEL");
  command->add_option("-o,--output", flags->output, "The file to write, in the model's opsets and IR version")
      ->type_name("OUT");
  command->add_option("--level", flags->level, "none, exact, basic, extended or all (default: basic)")
      ->type_name("LEVEL");
  command->add_option("--disable", flags->disabled, "Passes to leave out")->delimiter(',')->type_name("PASS,…");
  command->add_option("--keep", flags->keep, "Values that stay under their names, beside the outputs")
      ->type_name("NAME");
  command->add_flag("--list-passes", flags->list,
                    "Print every pass: name, level, whether results stay exact, what it does");
  command->add_flag("--verify", flags->verify, "Run the model after each pass and compare, on given or random inputs");
  flags->inputs.add_to(*command, "With --verify");
  command->add_option("--rtol", flags->tolerance.relative,
                      "With --verify: allowed difference, times the largest number of the output (default: 1e-4)");
  command->add_option("--atol", flags->tolerance.absolute, "With --verify: allowed difference (default: 1e-6)");
  add_custom_operators(*command, flags->libraries);
  command->add_flag("--force", flags->force, "Overwrite the model itself");
  command->add_flag("--json", flags->json, "Print one JSON document");
  command->callback([flags, &action] { action = [flags] { return optimize(*flags); }; });
}

}  // namespace tenon::cli
