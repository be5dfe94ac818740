#include "tenon/tools/convert.h"

#include <fmt/core.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "cli.h"
#include "dtype_flags.h"
#include "output_flags.h"
#include "table.h"

namespace tenon::cli {
namespace {

struct ConvertFlags {
  std::string model;
  std::vector<std::string> opsets, libraries;
  int64_t ir_version = 0;
  InputFlags inputs;
  OutputFlags output;
  DtypeFlags dtype;
  tools::Tolerance tolerance{1e-4, 1e-6};
  bool no_verify = false, json = false;
};

// "13", "ai.onnx.ml=3"
std::pair<std::string, int64_t> parse_opset(const std::string& text) {
  const size_t mark = text.rfind('=');
  const std::string number = mark == std::string::npos ? text : text.substr(mark + 1);
  std::string domain = mark == std::string::npos ? "" : text.substr(0, mark);
  int64_t version = 0;
  auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), version);
  if (error != std::errc() || end != number.data() + number.size())
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no opset", text), "--opset 13, --opset ai.onnx.ml=3");
  return {domain == "ai.onnx" ? "" : std::move(domain), version};
}

tools::ConvertOptions options_of(const ConvertFlags& flags) {
  tools::ConvertOptions options;
  for (const std::string& text : flags.opsets) options.opsets.insert(parse_opset(text));
  options.ir_version = flags.ir_version;
  options.custom_operator_libraries.assign(flags.libraries.begin(), flags.libraries.end());
  return options;
}

void print_conversion(const tools::Conversion& conversion) {
  for (const std::string& note : conversion.notes) fmt::print(stderr, "note: {}\n", note);
  fmt::print("nodes: {} before, {} after\n", conversion.nodes_before, conversion.nodes_after);
}

void print_blockers(const tools::Conversion& conversion) {
  for (const std::string& note : conversion.notes) fmt::print(stderr, "note: {}\n", note);
  fmt::print("cannot be converted, nothing is written; {}:\n", count_text(conversion.blockers.size(), "blocker"));
  for (const tools::ConversionBlocker& blocker : conversion.blockers)
    fmt::print("  {}: {}\n", blocker.node, blocker.reason);
}

nlohmann::json conversion_json(const tools::Conversion& conversion) {
  nlohmann::json blockers = nlohmann::json::array();
  for (const tools::ConversionBlocker& blocker : conversion.blockers)
    blockers.push_back({{"node", blocker.node}, {"op_type", blocker.op_type}, {"reason", blocker.reason}});
  nlohmann::json json = {{"blockers", blockers}, {"notes", conversion.notes}};
  if (conversion.model) {
    json["nodes_before"] = conversion.nodes_before;
    json["nodes_after"] = conversion.nodes_after;
  }
  return json;
}

int finish(const nlohmann::json& json, bool wanted, int code) {
  if (wanted) fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  return code;
}

// The model in other operator sets, compared with what it was; nothing if it cannot be, or computes something else.
std::optional<tools::OnnxModel> convert_opsets(const ConvertFlags& flags, const tools::OnnxModel& model,
                                               nlohmann::json& json) {
  if (flags.opsets.empty() && flags.ir_version == 0) return model;
  const tools::ConvertOptions options = options_of(flags);
  const tools::Conversion conversion = tools::convert(model, options);
  json = conversion_json(conversion);
  if (!conversion.model) {
    if (!flags.json) print_blockers(conversion);
    return std::nullopt;
  }
  const tools::OnnxModel& converted = *conversion.model;
  if (!flags.json) print_conversion(conversion);
  if (flags.no_verify) return converted;
  SessionOptions session;
  session.custom_operator_libraries = options.custom_operator_libraries;
  const tools::RunComparison comparison =
      tools::compare_runs(model, converted, flags.inputs.sources(), flags.tolerance, session);
  json["verification"] = to_json(comparison);
  if (!flags.json) print(comparison);
  return comparison.ok() ? std::optional(converted) : std::nullopt;
}

int convert(const ConvertFlags& flags) {
  flags.output.require();
  nlohmann::json json = nlohmann::json::object();
  std::optional<tools::OnnxModel> model = convert_opsets(flags, tools::OnnxModel::load(flags.model), json);
  if (!model) return finish(json, flags.json, check_failed);
  if (flags.dtype.is_wanted()) {
    const tools::DtypeConversion conversion = flags.dtype.convert(*model, flags.inputs.sources());
    json["dtype"] = to_json(conversion);
    if (!flags.json) print(conversion);
    model = conversion.model;
  }
  const tools::SavedModel saved = flags.output.save(*model);
  json["written"] = to_json(saved);
  if (!flags.json) print(saved);
  return finish(json, flags.json, fine);
}

}  // namespace

void add_convert(CLI::App& program, Action& action) {
  auto flags = std::make_shared<ConvertFlags>();
  CLI::App* command = program.add_subcommand("convert", "Write the same model in other operator sets, types or files");
  command->add_option("model", flags->model, "The .onnx file")->required()->type_name("MODEL");
  command
      ->add_option("--opset", flags->opsets,
                   "The version of ai.onnx to convert to, 7 to 28, up or down; DOMAIN=N for another domain")
      ->type_name("N|DOMAIN=N");
  command->add_option("--ir-version", flags->ir_version,
                      "The version of the file format (default: as it is, or what the opset was released with)");
  flags->dtype.add_to(*command);
  flags->output.add_to(*command);
  command->add_flag("--no-verify", flags->no_verify, "Do not run both models to compare what they compute");
  flags->inputs.add_to(*command, "Inputs of the comparison (what is not given is random)");
  command->add_option("--rtol", flags->tolerance.relative,
                      "Allowed difference, times the largest number of the output (default: 1e-4)");
  command->add_option("--atol", flags->tolerance.absolute, "Allowed difference (default: 1e-6)");
  add_custom_operators(*command, flags->libraries);
  command->add_flag("--json", flags->json, "Print one JSON document");
  command->callback([flags, &action] { action = [flags] { return convert(*flags); }; });
}

}  // namespace tenon::cli
