#include "dtype_flags.h"

#include <fmt/core.h>

#include <map>
#include <nlohmann/json.hpp>

namespace tenon::cli {

void DtypeFlags::add_to(CLI::App& command) {
  const std::string group = "Types";
  command.add_option("--dtype", type, "Convert float weights and values to fp16 or bf16")
      ->check(CLI::IsMember({"fp16", "float16", "bf16", "bfloat16"}))
      ->type_name("fp16|bf16")
      ->group(group);
  command
      .add_option("--only", options.only,
                  "With --dtype: nodes, by name or operator, that are converted ('*': any text)")
      ->delimiter(',')
      ->type_name("NODE,…")
      ->group(group);
  command.add_option("--keep-float", options.keep, "With --dtype: nodes, by name or operator, that stay float")
      ->delimiter(',')
      ->type_name("NODE,…")
      ->group(group);
  command.add_flag("--keep-io", options.keep_io, "With --dtype: inputs and outputs stay float")->group(group);
  command
      .add_flag("--no-overflow-check", no_overflow_check,
                "With --dtype: do not run the model to find what must stay float because it would overflow")
      ->group(group);
}

tools::DtypeConversion DtypeFlags::convert(const tools::OnnxModel& model, const tools::InputSources& inputs) const {
  tools::DtypeOptions result = options;
  result.type = type.starts_with('b') ? ElementType::bfloat16 : ElementType::float16;
  result.check_overflow = !no_overflow_check;
  result.inputs = inputs;
  return tools::convert_dtype(model, result);
}

void print(const tools::DtypeConversion& conversion) {
  for (const std::string& note : conversion.notes) fmt::print(stderr, "note: {}\n", note);
  fmt::print("converted {} nodes, {} casts added, {} nodes stay float\n", conversion.converted_nodes, conversion.casts,
             conversion.kept.size());
  std::map<std::pair<std::string, std::string>, int> reasons;
  for (const tools::KeptNode& kept : conversion.kept) ++reasons[{kept.op_type, kept.reason}];
  for (const auto& [what, count] : reasons) fmt::print("  {:>5}  {}: {}\n", count, what.first, what.second);
  if (conversion.why_not.empty())
    fmt::print("compared: both were run, the largest difference is {:.2g}\n", conversion.largest_difference);
  else
    fmt::print("not compared: {}\n", conversion.why_not);
}

nlohmann::json to_json(const tools::DtypeConversion& conversion) {
  nlohmann::json kept = nlohmann::json::array();
  for (const tools::KeptNode& node : conversion.kept)
    kept.push_back({{"node", node.node}, {"op_type", node.op_type}, {"reason", node.reason}});
  nlohmann::json json = {{"converted_nodes", conversion.converted_nodes},
                         {"casts", conversion.casts},
                         {"kept", kept},
                         {"notes", conversion.notes},
                         {"largest_difference", conversion.largest_difference}};
  if (!conversion.why_not.empty()) json["why_not"] = conversion.why_not;
  return json;
}

}  // namespace tenon::cli
