#include "tenon/tools/bisect.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "cli.h"
#include "error_flags.h"
#include "output_flags.h"
#include "table.h"

namespace tenon::cli {
namespace {

struct BisectFlags {
  std::string model, dtype, quantized;
  OutputFlags output;
  SessionFlags session;
  InputFlags inputs;
  ErrorFlags errors;
  bool json = false;
};

std::string error_text(const tools::OutputErrors& errors) {
  return fmt::format("output '{}' is off by {:.3g}, {:.3g} allowed", errors.output, errors.error, errors.limit);
}

nlohmann::json errors_json(const tools::OutputErrors& errors) {
  return {{"within", errors.within}, {"output", errors.output}, {"error", errors.error}, {"limit", errors.limit}};
}

int print_json(const nlohmann::json& json, bool holds) {
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  return holds ? fine : check_failed;
}

std::string joined(const std::vector<std::string>& words) {
  return words.empty() ? "nothing" : fmt::format("{}", fmt::join(words, ", "));
}

void print_found(const tools::RewriteBisection& found) {
  fmt::print("rewrite {} of {} breaks it: pass '{}'\n", found.number, found.rewrites, found.rewrite.pass);
  fmt::print("  before: {}\n  after:  {}\n", joined(found.rewrite.before), joined(found.rewrite.after));
  fmt::print("  without it: {}\n  with it:    {}\n", error_text(found.before), error_text(found.after));
  if (found.without_pass.within)
    fmt::print("--disable {} avoids it\n", found.rewrite.pass);
  else
    fmt::print("another rewrite breaks it too: with --disable {}, {}\n", found.rewrite.pass,
               error_text(found.without_pass));
}

int report(const tools::RewriteBisection& found, const BisectFlags& flags) {
  using Outcome = tools::RewriteBisection::Outcome;
  static constexpr const char* outcomes[] = {"found", "holds", "wrong already"};
  if (flags.json) {
    nlohmann::json json = {{"outcome", outcomes[static_cast<size_t>(found.outcome)]},
                           {"rewrites", found.rewrites},
                           {"runs", found.runs},
                           {"before", errors_json(found.before)},
                           {"after", errors_json(found.after)}};
    if (found.outcome == Outcome::found) {
      json["number"] = found.number;
      json["rewrite"] = {
          {"pass", found.rewrite.pass}, {"before", found.rewrite.before}, {"after", found.rewrite.after}};
      json["without_pass"] = errors_json(found.without_pass);
    }
    return print_json(json, found.outcome == Outcome::holds);
  }
  if (found.outcome == Outcome::holds)
    fmt::print("nothing to find: with all {}, {}\n", count_text(found.rewrites, "rewrite"), error_text(found.after));
  else if (found.outcome == Outcome::wrong_already)
    fmt::print("no rewrite is to blame: without any, {}\n", error_text(found.before));
  else
    print_found(found);
  fmt::print("{}\n", count_text(found.runs, "run"));
  return found.outcome == Outcome::holds ? fine : check_failed;
}

int report(const tools::NodeBisection& found, const BisectFlags& flags) {
  using Outcome = tools::NodeBisection::Outcome;
  static constexpr const char* outcomes[] = {"found", "holds", "wrong already", "nothing rounds"};
  const bool holds = found.outcome == Outcome::holds || found.outcome == Outcome::nothing_rounds;
  std::optional<tools::SavedModel> saved;
  if (!flags.output.path.empty() && found.outcome == Outcome::found) saved = flags.output.save(*found.model);
  if (flags.json) {
    nlohmann::json json = {{"outcome", outcomes[static_cast<size_t>(found.outcome)]},
                           {"candidates", found.candidates.size()},
                           {"keep", found.keep},
                           {"runs", found.runs},
                           {"before", errors_json(found.before)},
                           {"after", errors_json(found.after)}};
    if (saved) json["written"] = to_json(*saved);
    return print_json(json, holds);
  }
  if (found.outcome == Outcome::nothing_rounds)
    fmt::print("nothing to find: no node computes in less than full precision here\n");
  else if (found.outcome == Outcome::holds)
    fmt::print("nothing to find: with all {} rounded, {}\n", count_text(std::ssize(found.candidates), "node"),
               error_text(found.before));
  else if (found.outcome == Outcome::wrong_already)
    fmt::print("precision is not to blame: with every node in full precision, {}\n", error_text(found.after));
  if (found.outcome == Outcome::found) {
    fmt::print("{} of {} must keep full precision:\n", count_text(std::ssize(found.keep), "node"),
               found.candidates.size());
    for (const std::string& node : found.keep) fmt::print("  {}\n", node);
    fmt::print("with all rounded, {}\nwith these kept,  {}\n", error_text(found.before), error_text(found.after));
  }
  fmt::print("{}\n", count_text(found.runs, "run"));
  if (saved) print(*saved);
  return holds ? fine : check_failed;
}

ElementType dtype_of(const std::string& name) {
  if (name == "fp16" || name == "float16") return ElementType::float16;
  if (name == "bf16" || name == "bfloat16") return ElementType::bfloat16;
  throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no type to convert to", name), "fp16 or bf16");
}

int bisect(const BisectFlags& flags) {
  const tools::OnnxModel model = tools::OnnxModel::load(flags.model);
  tools::BisectOptions options;
  options.session = flags.session.options();
  options.limit = flags.errors.limit();
  options.inputs = flags.inputs.sources();
  std::optional<Progress> progress;
  options.progress = [&](int64_t done, int64_t estimate) {
    if (!progress) progress.emplace(static_cast<size_t>(estimate));
    progress->at(static_cast<size_t>(done), fmt::format("run {} of about {}", done, estimate));
  };
  if (!flags.output.path.empty() && flags.dtype.empty() && flags.quantized.empty()) {
    throw Error(ErrorCode::invalid_argument, "-o is there for --quantized and --dtype",
                "without them there is no other model to write");
  }
  if (!flags.quantized.empty())
    return report(tools::bisect_quantization(model, tools::OnnxModel::load(flags.quantized), options), flags);
  if (!flags.dtype.empty()) return report(tools::bisect_dtype(model, dtype_of(flags.dtype), options), flags);
  if (options.session.precision == Precision::fast) return report(tools::bisect_precision(model, options), flags);
  return report(tools::bisect_rewrites(model, options), flags);
}

}  // namespace

void add_bisect(CLI::App& program, Action& action) {
  auto flags = std::make_shared<BisectFlags>();
  CLI::App* command = program.add_subcommand(
      "bisect", "Find the rewrite of the optimiser, or the nodes in lower precision, that make outputs wrong");
  command->add_option("model", flags->model, "The .onnx file")->required()->type_name("MODEL");
  command
      ->add_option(
          "--dtype", flags->dtype,
          "Find the nodes that must stay float32 when the model becomes fp16 or bf16 (`tenon convert --dtype`)")
      ->type_name("TYPE");
  command
      ->add_option(
          "--quantized", flags->quantized,
          "Find the nodes of this quantized form of MODEL (with QuantizeLinear and DequantizeLinear) that must "
          "stay float")
      ->type_name("FILE")
      ->excludes("--dtype");
  flags->output.add_to(*command);
  flags->errors.add_to(*command);
  flags->session.add_to(*command);
  flags->inputs.add_to(*command);
  command->add_flag("--json", flags->json, "Print one JSON document");
  command->callback([flags, &action] { action = [flags] { return bisect(*flags); }; });
}

}  // namespace tenon::cli
