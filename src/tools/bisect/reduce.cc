#include "tenon/tools/reduce.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/fail.h"
#include "ir/count.h"
#include "ir/graph.h"
#include "tenon/tools/extract.h"
#include "tools/all_outputs.h"
#include "tools/bisect/smallest_set.h"
#include "tools/graph_edit.h"

namespace tenon::tools {
namespace {

class Reducer {
 public:
  Reducer(const OnnxModel& model, const ReduceOptions& options)
      : options_(options), model_(sorted(model)), best_{model_, {}, 0, 0, 0, {}} {
    for (const ir::Node& node : model_.ir().graph->nodes()) nodes_.push_back(&node);
  }

  ReducedModel run() {
    find_values();
    if (!shows(model_, inputs_of(model_)))
      throw Error(ErrorCode::invalid_argument, "the whole model does not show what the check looks for",
                  "the check must fail, with the same exit code, for the model as it is");
    best_.inputs = inputs_of(model_);
    best_.nodes_before = best_.nodes_after = static_cast<int64_t>(ir::count_nodes(*model_.ir().graph));
    smallest_set(nodes_.size(), [&](const std::vector<size_t>& set) { return holds(set); });
    best_.tried = tried_;
    return std::move(best_);
  }

 private:
  // Nodes before those that read them, so that a beginning of the list is a part that can run.
  static OnnxModel sorted(const OnnxModel& model) {
    std::unique_ptr<ir::Model> copy = model.ir().clone();
    copy->graph->sort_topologically();
    return model.with(std::move(copy));
  }

  void find_values() {
    SessionOptions plain = options_.session;
    plain.level = OptimizationLevel::none;
    try {
      std::vector<std::string> names;
      const Session session = with_all_outputs(model_, names).open(plain);
      values_ = make_inputs(session, options_.inputs).values;
      values_.merge(session.run(values_));
    } catch (const Error& error) {
      best_.notes.push_back(fmt::format("the model does not run, so inputs of its parts are random: {}", error.what()));
    }
  }

  NamedValues inputs_of(const OnnxModel& part) const {
    InputSources sources;
    sources.seed = options_.inputs.seed;
    for (const ir::Value* input : part.ir().graph->inputs()) {
      if (auto found = values_.find(input->name); found != values_.end()) sources.values.insert(*found);
    }
    if (static_cast<size_t>(std::ranges::count_if(part.ir().graph->inputs(), [](const ir::Value* input) {
          return !input->is_initializer();
        })) == sources.values.size())
      return sources.values;
    SessionOptions plain = options_.session;
    plain.level = OptimizationLevel::none;
    return make_inputs(part.open(plain), sources).values;
  }

  bool shows(const OnnxModel& part, const NamedValues& inputs) {
    ++tried_;
    const bool result = options_.shows(part, inputs);
    if (options_.progress) options_.progress(tried_, best_.nodes_after);
    return result;
  }

  bool holds(const std::vector<size_t>& set) {
    if (set.empty()) return false;
    try {
      OnnxModel part = part_of(set);
      NamedValues inputs = inputs_of(part);
      if (!shows(part, inputs)) return false;
      const auto left = static_cast<int64_t>(ir::count_nodes(*part.ir().graph));
      best_ = {std::move(part), std::move(inputs), best_.nodes_before, left, 0, std::move(best_.notes)};
      return true;
    } catch (const Error&) {
      return false;  // no part that can be made, or be given inputs
    }
  }

  OnnxModel part_of(const std::vector<size_t>& set) const {
    std::set<const ir::Node*> inside;
    for (size_t i : set) inside.insert(nodes_[i]);
    ExtractOptions ends;
    std::set<const ir::Value*> inputs;
    const ir::Graph& graph = *model_.ir().graph;
    const auto read = [&](const ir::Value& value) {
      const bool is_outside = &value.graph() == &graph && !value.is_initializer() &&
                              !(value.producer() && inside.contains(value.producer()));
      if (is_outside && inputs.insert(&value).second) ends.inputs.push_back(value.name);
    };
    for (size_t i : set) for_each_read(*nodes_[i], read);
    for (size_t i : set) {
      for (const ir::Value* value : nodes_[i]->outputs()) {
        if (value && is_needed_outside(*value, inside)) ends.outputs.push_back(value->name);
      }
    }
    return extract(model_, ends).model;
  }

  bool is_needed_outside(const ir::Value& value, const std::set<const ir::Node*>& inside) const {
    const std::vector<ir::Value*>& outputs = model_.ir().graph->outputs();
    if (value.users().empty() || std::ranges::find(outputs, &value) != outputs.end()) return true;
    return std::ranges::any_of(value.users(), [&](const ir::Node* user) {
      const ir::Node* outer = user;
      while (outer->graph().owner()) outer = outer->graph().owner();
      return !inside.contains(outer);
    });
  }

  const ReduceOptions& options_;
  OnnxModel model_;
  ReducedModel best_;
  std::vector<const ir::Node*> nodes_;
  NamedValues values_;
  int64_t tried_ = 0;
};

}  // namespace

ReducedModel reduce(const OnnxModel& model, const ReduceOptions& options) { return Reducer(model, options).run(); }

}  // namespace tenon::tools
