#include "output_flags.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

namespace tenon::cli {

void OutputFlags::add_to(CLI::App& command) {
  command.add_option("-o,--output", path, "The file to write")->type_name("OUT");
  command
      .add_option("--external-data", external_data,
                  "Where tensors go: 'all' into OUT.data, 'none' into it (default: where each was)")
      ->type_name("all|none")
      ->check(CLI::IsMember({"all", "none"}));
  command
      .add_option("--external-from", external_from,
                  "With --external-data all: the smallest tensor that goes there, in bytes (default: 1024)")
      ->type_name("BYTES");
  command.add_flag("--force", force, "Overwrite files that the model was read from");
}

void OutputFlags::require() const {
  if (path.empty()) throw Error(ErrorCode::invalid_argument, "no file to write is given", "give -o OUT");
}

tools::SavedModel OutputFlags::save(const tools::OnnxModel& model) const {
  using Data = tools::SaveOptions::Data;
  tools::SaveOptions options;
  if (!external_data.empty()) options.data = external_data == "all" ? Data::outside : Data::inside;
  options.outside_from = external_from;
  options.overwrite = force;
  return model.save(path, options);
}

void print(const tools::SavedModel& saved) {
  for (const std::string& note : saved.notes) fmt::print(stderr, "note: {}\n", note);
  std::vector<std::string> names;
  for (const std::filesystem::path& file : saved.files) names.push_back(file.string());
  fmt::print("wrote {}\n", fmt::join(names, " and "));
}

nlohmann::json to_json(const tools::SavedModel& saved) {
  nlohmann::json files = nlohmann::json::array();
  for (const std::filesystem::path& file : saved.files) files.push_back(file.string());
  return {{"files", files}, {"notes", saved.notes}};
}

void print(const tools::RunComparison& comparison) {
  if (!comparison.ran()) {
    fmt::print("not verified: {}\n", comparison.why_not);
    return;
  }
  const std::string with = comparison.assumed.empty() ? "" : fmt::format(", {}", assumed_text(comparison.assumed));
  if (comparison.ok())
    fmt::print("verified: both were run, the largest difference is {:.2g}{}\n", comparison.largest_difference, with);
  else
    fmt::print("verify: results differ{}\n  {}\n", with, comparison.failure);
}

nlohmann::json to_json(const tools::RunComparison& comparison) {
  nlohmann::json json = {
      {"ran", comparison.ran()}, {"random_inputs", comparison.random}, {"assumed", comparison.assumed}};
  if (!comparison.ran()) {
    json["why_not"] = comparison.why_not;
    return json;
  }
  json["ok"] = comparison.ok();
  json["largest_difference"] = comparison.largest_difference;
  if (!comparison.ok()) json["failure"] = comparison.failure;
  return json;
}

}  // namespace tenon::cli
