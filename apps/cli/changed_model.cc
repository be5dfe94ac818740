#include "changed_model.h"

#include <fmt/core.h>

#include <map>
#include <nlohmann/json.hpp>

#include "table.h"

namespace tenon::cli {
namespace {

constexpr size_t most_shown = 8;  // changes of one kind

void print(const tools::ChangedModel& changed) {
  for (const std::string& note : changed.notes) fmt::print(stderr, "note: {}\n", note);
  std::vector<std::string> kinds;
  std::map<std::string, std::vector<const tools::ModelChange*>> by_kind;
  for (const tools::ModelChange& change : changed.changes) {
    auto& list = by_kind[change.kind];
    if (list.empty()) kinds.push_back(change.kind);
    list.push_back(&change);
  }
  for (const std::string& kind : kinds) {
    const auto& list = by_kind[kind];
    fmt::print("{}: {}\n", kind, list.size());
    for (size_t i = 0; i < std::min(list.size(), most_shown); ++i)
      fmt::print("  {}{}{}\n", list[i]->name, list[i]->detail.empty() ? "" : " -> ", list[i]->detail);
    if (list.size() > most_shown) fmt::print("  … and {} more\n", list.size() - most_shown);
  }
}

nlohmann::json to_json(const tools::ChangedModel& changed) {
  nlohmann::json changes = nlohmann::json::array();
  for (const tools::ModelChange& change : changed.changes)
    changes.push_back({{"kind", change.kind}, {"name", change.name}, {"detail", change.detail}});
  return {{"changes", changes}, {"notes", changed.notes}};
}

}  // namespace

void ModelFlags::add_to(CLI::App& command) {
  command.add_option("model", model, "The .onnx file")->required()->type_name("MODEL");
  output.add_to(command);
  command.add_flag("--json", json, "Print one JSON document");
}

tools::OnnxModel load_model(const ModelFlags& flags) {
  flags.output.require();
  return tools::OnnxModel::load(flags.model);
}

int write_changed(const tools::ChangedModel& changed, const ModelFlags& flags) {
  return write_changed(changed, flags, nlohmann::json::object());
}

int write_changed(const tools::ChangedModel& changed, const ModelFlags& flags, const nlohmann::json& more) {
  const tools::SavedModel saved = flags.output.save(changed.model);
  if (!flags.json) {
    print(changed);
    print(saved);
    return fine;
  }
  nlohmann::json json = to_json(changed);
  json.update(more);
  json["written"] = to_json(saved);
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  return fine;
}

std::vector<std::pair<std::string, std::string>> pairs(const std::vector<std::string>& texts, const char* option) {
  std::vector<std::pair<std::string, std::string>> result;
  for (const std::string& text : texts) {
    const size_t at = text.find('=');
    if (at == std::string::npos || at == 0 || at + 1 == text.size())
      throw Error(ErrorCode::invalid_argument, fmt::format("{}: '{}' has not the form A=B", option, text));
    result.emplace_back(text.substr(0, at), text.substr(at + 1));
  }
  return result;
}

}  // namespace tenon::cli
