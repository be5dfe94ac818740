#include "tenon/tools/merge.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/fail.h"
#include "base/names.h"
#include "ir/copy_nodes.h"
#include "onnx/model_file.h"
#include "tenon/tools/convert.h"
#include "tenon/tools/rename.h"
#include "tools/graph_edit.h"
#include "tools/known_types.h"
#include "tools/type_edit.h"

namespace tenon::tools {
namespace {

using NameMap = std::map<std::string, std::string>;

template <typename Values>
std::vector<std::string_view> names_of(const Values& values) {
  std::vector<std::string_view> names;
  for (const ir::Value* value : values) names.push_back(value->name);
  return names;
}

ir::Value& named(const std::vector<ir::Value*>& values, const std::string& name, std::string_view what) {
  auto found = std::ranges::find(values, name, &ir::Value::name);
  if (found != values.end()) return **found;
  throw Error(ErrorCode::unknown_name, fmt::format("{} '{}' does not exist", what, name),
              nearest_hint(name, names_of(values)));
}

// The function as bytes, to tell whether two are the same.
std::string bytes_of(std::unique_ptr<ir::Function>& function) {
  ir::Model model;
  model.graph = std::make_unique<ir::Graph>();
  model.functions.push_back(std::move(function));
  std::string bytes = onnx::serialize_model(model);
  function = std::move(model.functions[0]);
  return bytes;
}

class Merger {
 public:
  Merger(std::unique_ptr<ir::Model> first, std::unique_ptr<ir::Model> second, const MergeOptions& options)
      : first_(std::move(first)), second_(std::move(second)), options_(options) {}

  std::unique_ptr<ir::Model> run() {
    agree_on_opsets();
    find_joints();
    match_types();
    add_functions();
    rename_clashes();
    append_graph();
    add_metadata();
    return std::move(first_);
  }

  std::vector<ModelChange> changes;
  std::vector<std::string> notes;

 private:
  struct Joint {
    ir::Value *output, *input;
  };

  void agree_on_opsets() {
    for (const auto& [domain, version] : std::vector(second_->opset_imports.entries())) {
      const int64_t other = first_->opset_imports.version(domain);
      if (other == 0) first_->opset_imports.set(domain, version);
      if (other == 0 || other == version) continue;
      const bool first_is_older = other < version;
      bring_up(first_is_older ? first_ : second_, domain, std::max(version, other));
      notes.push_back(fmt::format("the {} model was brought from version {} of {} to {}",
                                  first_is_older ? "first" : "second", std::min(version, other),
                                  domain.empty() ? "ai.onnx" : domain, std::max(version, other)));
    }
    first_->ir_version = std::max(first_->ir_version, second_->ir_version);
  }

  static void bring_up(std::unique_ptr<ir::Model>& model, const std::string& domain, int64_t version) {
    ConvertOptions options;
    options.opsets[std::string(ir::canonical_domain(domain))] = version;
    options.ir_version = model->ir_version;
    model = convert(OnnxModel(std::move(model)), options).require().ir().clone();
  }

  void find_joints() {
    const ir::Graph &a = *first_->graph, &b = *second_->graph;
    std::vector<std::pair<std::string, std::string>> map = options_.map;
    if (map.empty()) {
      for (const ir::Value* input : b.inputs()) {
        const auto outputs = names_of(a.outputs());
        if (std::ranges::find(outputs, input->name) != outputs.end()) map.emplace_back(input->name, input->name);
      }
    }
    if (map.empty()) {
      throw Error(ErrorCode::invalid_argument, "no output of the first model has the name of an input of the second",
                  fmt::format("say what belongs together; the first has outputs {}, the second inputs {}",
                              quoted_list(names_of(a.outputs())), quoted_list(names_of(b.inputs()))));
    }
    std::set<const ir::Value*> joined;
    for (const auto& [from, to] : map) {
      Joint joint{&named(a.outputs(), from, "the first model's output"),
                  &named(b.inputs(), to, "the second model's input")};
      if (!joined.insert(joint.input).second) fail(ErrorCode::invalid_argument, "the input '{}' is joined twice", to);
      joints_.push_back(joint);
      changes.push_back({"joined", from, to});
    }
  }

  // The joined values must be able to be the same; names of sizes in the second become those of the first.
  void match_types() {
    const KnownTypes known = known_types(*first_);
    NameMap dims;
    for (const Joint& joint : joints_) {
      auto found = known.types.find(joint.output->name);
      const ir::Type& from = found == known.types.end() ? joint.output->type : found->second;
      const ir::Type& to = joint.input->type;
      if (from.known() && to.known() && !ir::same_kind(to, from)) {
        throw Error(ErrorCode::type_mismatch,
                    fmt::format("the first model's output '{}' is {}, the second's input '{}' is {}",
                                joint.output->name, from.to_string(), joint.input->name, to.to_string()));
      }
      if (from.shape && to.shape) match_shapes(joint, *from.shape, *to.shape, dims);
    }
    std::erase_if(dims, [](const auto& entry) { return entry.first == entry.second; });
    change_dims(*second_->graph, [&](Dim& dim) {
      if (!dim.is_known() && !dim.has_unknown()) dim = Dim::symbol(replace_names(dim.to_string(), dims));
    });
    for (const auto& [from, to] : dims) changes.push_back({"renamed dimension", from, to});
    note_shared_dims(dims);
  }

  static void match_shapes(const Joint& joint, const SymbolicShape& from, const SymbolicShape& to, NameMap& dims) {
    bool conflict = from.size() != to.size();
    for (size_t i = 0; !conflict && i < from.size(); ++i) {
      conflict = from[i].is_known() && to[i].is_known() && !(from[i] == to[i]);
      if (!from[i].symbol_name().empty() && !to[i].symbol_name().empty())
        dims.emplace(to[i].symbol_name(), from[i].symbol_name());
    }
    if (!conflict) return;
    fail(ErrorCode::shape_mismatch, "the first model's output '{}' has shape {}, the second's input '{}' {}",
         joint.output->name, to_string(from), joint.input->name, to_string(to));
  }

  static std::set<std::string> dim_names(ir::Graph& graph) {
    std::set<std::string> names;
    change_dims(graph, [&](Dim& dim) {
      if (!dim.symbol_name().empty()) names.emplace(dim.symbol_name());
    });
    return names;
  }

  void note_shared_dims(const NameMap& joined) {
    const std::set<std::string> in_first = dim_names(*first_->graph);
    std::set<std::string> known;
    for (const auto& [_, name] : joined) known.insert(name);
    for (const Joint& joint : joints_) {
      if (!joint.input->type.shape) continue;
      for (const Dim& dim : *joint.input->type.shape) known.emplace(dim.symbol_name());
    }
    for (const std::string& name : dim_names(*second_->graph)) {
      if (in_first.contains(name) && !known.contains(name))
        notes.push_back(fmt::format("both models have a dimension '{}': it is one now", name));
    }
  }

  void add_functions() {
    for (auto& function : second_->functions) {
      auto same = std::ranges::find_if(first_->functions, [&](const auto& other) {
        return other->domain == function->domain && other->name == function->name &&
               other->overload == function->overload;
      });
      if (same == first_->functions.end()) {
        added_functions_.push_back(std::move(function));
      } else if (bytes_of(*same) != bytes_of(function)) {
        rename_function(*function);
        added_functions_.push_back(std::move(function));
      }
    }
    for (auto& function : added_functions_) first_->functions.push_back(std::move(function));
  }

  void rename_function(ir::Function& function) {
    std::string name = function.name;
    const auto taken = [&] {
      return std::ranges::any_of(first_->functions,
                                 [&](const auto& f) { return f->domain == function.domain && f->name == name; });
    };
    for (int i = 2; taken(); ++i) name = fmt::format("{}_{}", function.name, i);
    notes.push_back(fmt::format("the models have different functions '{}': that of the second is called '{}' now",
                                function.name, name));
    const auto rename_calls = [&](ir::Graph& graph) {
      for_each_graph(graph, [&](ir::Graph& inner) {
        for (ir::Node& node : inner.nodes()) {
          if (node.domain == function.domain && node.op_type == function.name && node.overload == function.overload)
            node.op_type = name;
        }
      });
    };
    rename_calls(*second_->graph);
    for (auto& other : second_->functions) {
      if (other) rename_calls(*other->body);
    }
    for (auto& other : added_functions_) rename_calls(*other->body);
    function.name = name;
  }

  // Names of the second model that the first has: in the second, what is joined will be gone.
  void rename_clashes() {
    std::set<std::string> values, nodes;
    for_each_graph(*first_->graph, [&](const ir::Graph& graph) {
      for (const ir::Value& value : graph.values()) values.insert(value.name);
      for (const ir::Node& node : graph.nodes()) nodes.insert(node.name);
    });
    std::set<const ir::Value*> joined;
    for (const Joint& joint : joints_) joined.insert(joint.input);
    std::set<std::string> own;
    for_each_graph(*second_->graph, [&](const ir::Graph& graph) {
      for (const ir::Value& value : graph.values()) own.insert(value.name);
    });
    NameMap renamed;
    for_each_graph(*second_->graph, [&](ir::Graph& graph) {
      for (ir::Value& value : graph.values()) {
        if (joined.contains(&value) || !values.contains(value.name) || value.name.empty()) continue;
        std::string name = options_.clash_prefix + value.name;
        while (values.contains(name) || own.contains(name)) name = options_.clash_prefix + name;
        const auto entry = renamed.emplace(value.name, std::move(name)).first;
        value.name = entry->second;
        if (value.is_initializer()) rename_initializer(value);
      }
      for (ir::Node& node : graph.nodes()) {
        if (!node.name.empty() && nodes.contains(node.name)) node.name = options_.clash_prefix + node.name;
      }
    });
    for (const auto& [from, to] : renamed) changes.push_back({"renamed value", from, to});
    rename_annotations(renamed);
  }

  void rename_annotations(const NameMap& names) {
    const auto replace = [&](std::string& name) {
      if (auto found = names.find(name); found != names.end()) name = found->second;
    };
    for (auto& [tensor, parameters] : second_->graph->quantization_annotations) {
      replace(tensor);
      for (auto& [_, name] : parameters) replace(name);
    }
  }

  void append_graph() {
    ir::Graph &to = *first_->graph, &from = *second_->graph;
    std::map<const ir::Value*, ir::Value*> values;
    for (const Joint& joint : joints_) values[joint.input] = joint.output;
    if (!options_.keep_joined) drop_joined_outputs();
    append_values(values);
    for (const ir::Value* input : from.inputs()) {
      if (&values.at(input)->graph() == &to && !is_joined(*input)) to.add_input(*values.at(input));
    }
    for (const ir::Value* value : from.initializers()) {
      if (is_joined(*value)) continue;
      if (value->constant()) to.set_initializer(*values.at(value), value->constant());
      if (value->sparse_constant()) to.set_initializer(*values.at(value), value->sparse_constant());
    }
    ir::append_nodes(to, from, values);
    for (size_t i = 0; i < from.outputs().size(); ++i)
      to.add_output(*values.at(from.outputs()[i]), from.declared_output_types()[i]);
    for (auto& annotation : from.quantization_annotations) to.quantization_annotations.push_back(annotation);
  }

  bool is_joined(const ir::Value& input) const {
    return std::ranges::any_of(joints_, [&](const Joint& joint) { return joint.input == &input; });
  }

  void drop_joined_outputs() {
    ir::Graph& graph = *first_->graph;
    for (size_t i = graph.outputs().size(); i-- > 0;) {
      const bool joined = std::ranges::any_of(joints_, [&](const Joint& j) { return j.output == graph.outputs()[i]; });
      if (joined) graph.remove_output(i);
    }
  }

  void append_values(std::map<const ir::Value*, ir::Value*>& values) {
    ir::Graph &to = *first_->graph, &from = *second_->graph;
    int position = 0;
    for (const ir::Value& value : to.values()) position = std::max(position, value.value_info_position + 1);
    for (const ir::Value& value : from.values()) {
      if (values.contains(&value)) continue;
      ir::Value& twin = to.add_value(value.name);
      twin.type = value.type;
      twin.doc_string = value.doc_string;
      twin.metadata = value.metadata;
      twin.other_fields = value.other_fields;
      if (value.value_info_position >= 0) twin.value_info_position = position + value.value_info_position;
      values[&value] = &twin;
    }
  }

  template <typename Text>
  void take(Text& ours, const Text& theirs, std::string_view what) {
    if (ours.empty()) {
      ours = theirs;
    } else if (!theirs.empty() && ours != theirs) {
      notes.push_back(fmt::format("the models differ in {}: that of the first stays", what));
    }
  }

  void add_metadata() {
    take(first_->producer_name, second_->producer_name, "their producer");
    take(first_->domain, second_->domain, "their domain");
    take(first_->doc_string, second_->doc_string, "their description");
    for (const auto& [key, value] : second_->metadata) {
      auto found = std::ranges::find(first_->metadata, key, &std::pair<std::string, std::string>::first);
      if (found == first_->metadata.end())
        first_->metadata.emplace_back(key, value);
      else if (found->second != value)
        notes.push_back(fmt::format("the models differ in the metadata '{}': that of the first stays", key));
    }
  }

  std::unique_ptr<ir::Model> first_, second_;
  const MergeOptions& options_;
  std::vector<Joint> joints_;
  std::vector<std::unique_ptr<ir::Function>> added_functions_;
};

// The map in the names that prefixes make.
MergeOptions with_prefixes(MergeOptions options) {
  for (auto& [from, to] : options.map) {
    from = options.first_prefix + from;
    to = options.second_prefix + to;
  }
  return options;
}

std::unique_ptr<ir::Model> prefixed(const OnnxModel& model, const std::string& prefix) {
  if (prefix.empty()) return model.ir().clone();
  return rename(model, {.values = {}, .nodes = {}, .dims = {}, .prefix = prefix}).model.ir().clone();
}

}  // namespace

ChangedModel merge(const OnnxModel& first, const OnnxModel& second, const MergeOptions& options) {
  const MergeOptions prefixed_options = with_prefixes(options);
  Merger merger(prefixed(first, options.first_prefix), prefixed(second, options.second_prefix), prefixed_options);
  std::unique_ptr<ir::Model> merged = merger.run();
  std::vector<std::filesystem::path> files = first.read_from();
  files.insert(files.end(), second.read_from().begin(), second.read_from().end());
  return {OnnxModel(std::move(merged), std::move(files)), std::move(merger.changes), std::move(merger.notes)};
}

}  // namespace tenon::tools
