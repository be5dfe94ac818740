#include "tenon/tools/extract.h"

#include <algorithm>

#include "base/fail.h"
#include "base/names.h"
#include "tools/graph_edit.h"
#include "tools/known_types.h"

namespace tenon::tools {
namespace {

class Extractor {
 public:
  Extractor(const ir::Model& model, const ExtractOptions& options)
      : model_(model.clone()), graph_(*model_->graph), options_(options), known_(known_types(model)) {}

  std::unique_ptr<ir::Model> run() {
    set_outputs();
    if (options_.inputs.empty())
      keep_needed_inputs();
    else
      set_inputs();
    remove_unneeded(graph_, changes);
    remove_unused_functions(*model_, changes);
    require_types();
    return std::move(model_);
  }

  std::vector<ModelChange> changes;
  std::vector<std::string> notes;

 private:
  const ir::Type& type_of(const ir::Value& value) const {
    auto found = known_.types.find(value.name);
    return found == known_.types.end() ? value.type : found->second;
  }

  void set_outputs() {
    if (options_.outputs.empty()) return;
    std::vector<ir::Value*> wanted;
    for (const std::string& name : options_.outputs) {
      ir::Value& value = defined_value(graph_, name);
      if (std::ranges::find(wanted, &value) != wanted.end())
        fail(ErrorCode::invalid_argument, "the output '{}' is named twice", name);
      wanted.push_back(&value);
    }
    while (!graph_.outputs().empty()) graph_.remove_output(graph_.outputs().size() - 1);
    for (ir::Value* value : wanted) {
      // An output is declared in its own list, so it needs no entry among the others.
      value->value_info_position = -1;
      graph_.add_output(*value, type_of(*value));
    }
  }

  void keep_needed_inputs() {
    const auto needed = needed_values(graph_);
    for (ir::Value* input : std::vector(graph_.inputs())) {
      if (needed.contains(input)) continue;
      changes.push_back({"removed input", input->name, ""});
      graph_.remove_input(*input);
    }
  }

  void set_inputs() {
    std::vector<ir::Value*> chosen;
    for (const std::string& name : options_.inputs) {
      ir::Value& input = cut(defined_value(graph_, name));
      if (std::ranges::find(chosen, &input) != chosen.end())
        fail(ErrorCode::invalid_argument, "the input '{}' is named twice", name);
      chosen.push_back(&input);
    }
    const auto needed = needed_values(graph_);
    require_others_unneeded(chosen, needed);
    for (ir::Value* input : std::vector(graph_.inputs())) {
      const bool is_default = input->is_initializer() && needed.contains(input);
      const bool stays = is_default || std::ranges::find(chosen, input) != chosen.end();
      if (!stays) changes.push_back({"removed input", input->name, ""});
      graph_.remove_input(*input);
      if (is_default && std::ranges::find(chosen, input) == chosen.end()) chosen.push_back(input);
    }
    for (ir::Value* input : chosen) {
      graph_.add_input(*input);
      if (!needed.contains(input)) notes.push_back(fmt::format("no output needs the input '{}'", input->name));
    }
  }

  // The value that takes the place of one that is computed, or stored, in the model.
  ir::Value& cut(ir::Value& value) {
    if (value.is_graph_input()) return value;
    changes.push_back({"new input", value.name, type_of(value).to_string()});
    value.type = type_of(value);
    value.value_info_position = -1;
    if (value.is_initializer()) {
      graph_.remove_initializer(value);
      return value;
    }
    ir::Value& input = graph_.add_value(value.name);
    input.type = value.type;
    input.doc_string = value.doc_string;
    input.metadata = value.metadata;
    replace_everywhere(graph_, value, input);
    // What computes it may still be needed for another of its outputs.
    value.name = graph_.add_value(value.name, /*fresh=*/true).name;
    return input;
  }

  void require_others_unneeded(const std::vector<ir::Value*>& chosen,
                               const std::unordered_set<const ir::Value*>& needed) const {
    std::vector<std::string_view> missing;
    for (const ir::Value* input : graph_.inputs()) {
      if (input->is_initializer() || !needed.contains(input)) continue;
      if (std::ranges::find(chosen, input) == chosen.end()) missing.push_back(input->name);
    }
    if (missing.empty()) return;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the outputs cannot be computed from the given inputs alone, they also need {}",
                            quoted_list(missing)),
                "add these to the inputs, or values between them and the outputs");
  }

  void require_types() {
    std::string reason = known_.problem.empty() ? "" : ": " + known_.problem;
    for (const ir::Value* input : graph_.inputs()) {
      if (!input->type.known())
        notes.push_back(fmt::format("the type of the input '{}' is not known{}", input->name, reason));
    }
  }

  std::unique_ptr<ir::Model> model_;
  ir::Graph& graph_;
  const ExtractOptions& options_;
  KnownTypes known_;
};

}  // namespace

ChangedModel extract(const OnnxModel& model, const ExtractOptions& options) {
  if (options.inputs.empty() && options.outputs.empty())
    fail(ErrorCode::invalid_argument, "neither inputs nor outputs are given");
  Extractor extractor(model.ir(), options);
  std::unique_ptr<ir::Model> part = extractor.run();
  return {model.with(std::move(part)), std::move(extractor.changes), std::move(extractor.notes)};
}

}  // namespace tenon::tools
