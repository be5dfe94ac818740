#include "tenon/tools/fix.h"

#include <algorithm>
#include <set>

#include "base/fail.h"
#include "passes/infer.h"
#include "tools/graph_edit.h"
#include "tools/known_types.h"
#include "tools/type_edit.h"

namespace tenon::tools {
namespace {

class Fixer {
 public:
  Fixer(ir::Model& model, const FixOptions& options) : model_(model), graph_(*model.graph), sizes_(options.dims) {
    require_dims_exist(options);
    for (const ir::Value& value : graph_.values()) declared_.emplace(value.name, value.type);
    for (const auto& [name, shape] : options.shapes) fix_input(name, shape);
  }

  void run() {
    change_dims(graph_, [&](Dim& dim) { dim = put_sizes_in(dim); });
    for (const auto& [name, size] : sizes_) changes.push_back({"fixed dimension", name, std::to_string(size)});
    infer();
  }

  std::vector<ModelChange> changes;
  std::vector<std::string> notes;

 private:
  void require_dims_exist(const FixOptions& options) {
    std::set<std::string> names;
    change_dims(graph_, [&](Dim& dim) {
      if (dim.is_known() || dim.has_unknown()) return;
      for (std::string& name : names_in(dim.to_string())) names.insert(std::move(name));
    });
    for (const auto& [name, size] : options.dims) {
      if (size < 0) fail(ErrorCode::invalid_argument, "the size given for '{}' is negative: {}", name, size);
      if (names.contains(name)) continue;
      throw Error(ErrorCode::unknown_name, fmt::format("the model has no dimension '{}'", name),
                  nearest_hint(name, {names.begin(), names.end()}));
    }
  }

  void fix_input(const std::string& name, const Shape& shape) {
    std::vector<std::string_view> names;
    for (const ir::Value* input : graph_.inputs()) names.push_back(input->name);
    auto found = std::ranges::find(graph_.inputs(), name, &ir::Value::name);
    if (found == graph_.inputs().end())
      throw Error(ErrorCode::unknown_name, fmt::format("the model has no input '{}'", name), nearest_hint(name, names));
    ir::Type& type = (*found)->type;
    if (type.known() && !type.is_tensor())
      throw Error(ErrorCode::type_mismatch, "the input is no tensor but " + type.to_string()).on_tensor(name);
    if (type.shape && type.shape->size() != shape.dims().size()) contradicts(name, shape, *type.shape);
    if (!type.shape) type.shape = SymbolicShape(shape.dims().size(), Dim::unknown());
    const SymbolicShape declared = *type.shape;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      Dim& dim = (*type.shape)[static_cast<size_t>(axis)];
      if (dim.is_known() && !dim.is(shape[axis])) contradicts(name, shape, declared);
      if (!dim.symbol_name().empty()) bind(std::string(dim.symbol_name()), shape[axis]);
      dim = shape[axis];
    }
    changes.push_back({"fixed input", name, shape.to_string()});
  }

  [[noreturn]] static void contradicts(const std::string& name, const Shape& shape, const SymbolicShape& declared) {
    throw Error(ErrorCode::shape_mismatch,
                fmt::format("it is to be {}, the model declares {}", shape.to_string(), to_string(declared)),
                "only sizes that are not numbers yet can be fixed; `tenon dynamic` frees one that is")
        .on_tensor(name);
  }

  void bind(const std::string& dim, int64_t size) {
    auto [at, added] = sizes_.emplace(dim, size);
    if (!added && at->second != size)
      fail(ErrorCode::shape_mismatch, "the dimension '{}' would be {} and {}", dim, at->second, size);
  }

  void infer() {
    std::unique_ptr<ir::Model> copy;
    try {
      copy = lifted_copy(model_);
      passes::infer_types(*copy->graph);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unknown_operator) throw;
      notes.push_back(fmt::format("shapes were not inferred: {}", error.what()));
      return;
    }
    for (const ir::Value& value : copy->graph->values()) note_wrong_shapes(value);
    write_types(*copy->graph);
  }

  // What a model declares of its values is often a leftover of its exporter: what is inferred is written.
  void note_wrong_shapes(const ir::Value& inferred) {
    auto before = declared_.find(inferred.name);
    if (before == declared_.end() || !inferred.type.shape || !before->second.shape) return;
    SymbolicShape fixed = *before->second.shape;
    for (Dim& dim : fixed) dim = put_sizes_in(dim);
    if (!contradicts(fixed, *inferred.type.shape)) return;
    notes.push_back(fmt::format("tensor '{}' was declared as {}; it is {}", inferred.name,
                                to_string(*before->second.shape), to_string(*inferred.type.shape)));
  }

  static bool contradicts(const SymbolicShape& a, const SymbolicShape& b) {
    if (a.size() != b.size()) return true;
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i].is_known() && b[i].is_known() && !(a[i] == b[i])) return true;
    }
    return false;
  }

  Dim put_sizes_in(const Dim& dim) const {
    if (dim.is_known() || dim.has_unknown()) return dim;
    return substitute(dim.to_string(), [&](const std::string& name) -> std::optional<Dim> {
      auto found = sizes_.find(name);
      return found == sizes_.end() ? std::nullopt : std::optional(Dim(found->second));
    });
  }

  void write_types(const ir::Graph& inferred) {
    std::map<std::string, const ir::Type*, std::less<>> types;
    for (const ir::Value& value : inferred.values()) types.emplace(value.name, &value.type);
    for (ir::Value& value : graph_.values()) {
      auto found = types.find(value.name);
      if (found == types.end() || value.is_graph_input()) continue;
      if (value.value_info_position >= 0) improve(value.type, *found->second);
    }
    for_each_output_type(graph_, [&](const ir::Value& value, ir::Type& type) {
      auto found = types.find(value.name);
      if (found == types.end() || !improve(type, *found->second)) return;
      changes.push_back({"inferred output", value.name, type.to_string()});
    });
  }

  // Takes the inferred shape, if there is one; says whether that changed anything.
  static bool improve(ir::Type& type, const ir::Type& inferred) {
    if (!inferred.is_tensor() || !inferred.shape) return false;
    const std::string before = type.to_string();
    const auto details = type.details;
    type = inferred;
    type.details = details;
    return type.to_string() != before;
  }

  ir::Model& model_;
  ir::Graph& graph_;
  std::map<std::string, int64_t> sizes_;
  std::map<std::string, ir::Type> declared_;  // before anything is fixed
};

}  // namespace

ChangedModel fix(const OnnxModel& model, const FixOptions& options) {
  if (options.shapes.empty() && options.dims.empty()) fail(ErrorCode::invalid_argument, "no sizes are given");
  std::unique_ptr<ir::Model> copy = model.ir().clone();
  Fixer fixer(*copy, options);
  fixer.run();
  return {model.with(std::move(copy)), std::move(fixer.changes), std::move(fixer.notes)};
}

}  // namespace tenon::tools
