#include "tenon/tools/convert_dtype.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/fail.h"
#include "ops/operator.h"
#include "ops/type_history.h"
#include "tenon/tools/compare_values.h"
#include "tools/float_range.h"
#include "tools/graph_edit.h"
#include "tools/half_tensors.h"
#include "tools/known_types.h"
#include "tools/type_edit.h"

namespace tenon::tools {
namespace {

constexpr ElementType full = ElementType::float32;

// Operators that are better left in float.
struct Reason {
  std::string_view op, why;
};
constexpr Reason better_in_float[] = {
    {"Range", "its steps would be rounded"},
    {"CumSum", "its sums would be rounded at every step"},
    {"GridSample", "its coordinates need more digits"},
    {"AffineGrid", "its coordinates need more digits"},
    {"RoiAlign", "its coordinates need more digits"},
    {"MaxRoiPool", "its coordinates need more digits"},
};

bool fits(const std::string& pattern, const std::string& name) {
  const size_t star = pattern.find('*');
  if (star == std::string::npos) return pattern == name;
  const std::string_view head = std::string_view(pattern).substr(0, star),
                         tail = std::string_view(pattern).substr(star + 1);
  return name.size() >= head.size() + tail.size() && name.starts_with(head) && name.ends_with(tail);
}

// The parameter that input or output `i` of a node belongs to; null if there is none.
const ops::Parameter* parameter(const std::vector<ops::Parameter>& list, size_t i) {
  if (i < list.size()) return &list[i];
  return !list.empty() && list.back().count == ops::Parameter::Count::any_number ? &list.back() : nullptr;
}

class DtypeConverter {
 public:
  DtypeConverter(const OnnxModel& model, const DtypeOptions& options)
      : original_(model),
        options_(options),
        type_(options.type),
        model_(model.ir().clone()),
        graph_(*model_->graph),
        known_(known_types(model.ir())),
        magnitudes_(options.magnitudes),
        result_{model, {}, {}, 0, 0, {}, 0, {}} {}

  DtypeConversion run() {
    if (!known_.problem.empty())
      result_.notes.push_back("types are known as far as the model declares them: " + known_.problem);
    require_names();
    for_each_graph(graph_,
                   [&](const ir::Graph& graph) { outputs_.insert(graph.outputs().begin(), graph.outputs().end()); });
    find_magnitudes();
    for (ir::Node& node : graph_.nodes()) decide(node);
    convert_inputs();
    // Casts are added on the way, which are nodes too.
    std::vector<ir::Node*> nodes;
    for (ir::Node& node : graph_.nodes()) nodes.push_back(&node);
    for (ir::Node* node : nodes) convert_outputs_of(*node);
    for (ir::Node* node : nodes) connect(*node);
    convert_outputs();
    graph_.remove_unused_initializers(
        [](const ir::Value& value) { return value.constant() && value.constant()->tensor.type() == full; });
    result_.model = original_.with(std::move(model_));
    return std::move(result_);
  }

 private:
  bool is_float(const ir::Value* value) const {
    if (!value) return false;
    if (value->constant()) return value->constant()->tensor.type() == full;
    auto found = known_.types.find(value->name);
    const ir::Type& type = found == known_.types.end() ? value->type : found->second;
    return type.is_tensor() && type.element == full;
  }

  void require_names() const {
    std::set<std::string> names;
    for (const ir::Node& node : graph_.nodes()) names.insert({node.name, node.op_type});
    for (const auto* list : {&options_.only, &options_.keep}) {
      for (const std::string& pattern : *list) {
        if (std::ranges::any_of(names, [&](const std::string& name) { return fits(pattern, name); })) continue;
        throw Error(ErrorCode::unknown_name, fmt::format("the model has no node and no operator '{}'", pattern),
                    nearest_hint(pattern, {names.begin(), names.end()}));
      }
    }
  }

  void find_magnitudes() {
    if (type_ == ElementType::bfloat16) return;  // as wide as float
    if (!options_.check_overflow || !magnitudes_.empty()) return;
    try {
      magnitudes_ = largest_magnitudes(original_, make_inputs(original_.open(), options_.inputs).values);
    } catch (const Error& error) {
      result_.notes.push_back(
          fmt::format("nothing is known about overflows, the model could not be run: {}", error.what()));
    }
  }

  // Other inputs may make larger numbers than those that were seen.
  bool overflows(const ir::Value& value) const {
    const auto found = magnitudes_.find(value.name);
    return type_ != ElementType::bfloat16 && found != magnitudes_.end() && found->second > largest_of(type_) / 2;
  }

  bool listed(const std::vector<std::string>& list, const ir::Node& node) const {
    return std::ranges::any_of(list, [&](const std::string& p) { return fits(p, node.name) || fits(p, node.op_type); });
  }

  // Why a node that reads or makes floats stays as it is; "" if it is converted.
  std::string why_kept(const ir::Node& node) const {
    if (listed(options_.keep, node)) return "it was asked for";
    if (!options_.only.empty() && !listed(options_.only, node)) return "it is not among those that were asked for";
    bool has_body = false;
    for_each_subgraph(node, [&](const ir::Graph&) { has_body = true; });
    if (has_body) return "what is inside of it stays float";
    const ops::Operator* op = ops::operators().find(node.domain, node.op_type);
    if (!op) return "it is a function or an operator that Tenon does not know";
    for (const Reason& reason : better_in_float) {
      if (reason.op == node.op_type) return std::string(reason.why);
    }
    if (std::string reason = why_no_type(*op, node); !reason.empty()) return reason;
    bool takes_half = false;
    for (size_t i = 0; i < node.input_count(); ++i) takes_half |= is_float(node.input(i)) && takes(*op, i);
    if (!takes_half) return fmt::format("it does not take {}", name_of(type_));
    return why_numbers(node);
  }

  // The operator of the model's opset may not take the type yet.
  std::string why_no_type(const ops::Operator& op, const ir::Node& node) const {
    const int64_t opset = model_->opset_imports.version(op.domain);
    const auto is_allowed = [&](int version) {
      const ir::Type type = ir::Type::tensor(type_);
      for (size_t i = 0; i < node.input_count(); ++i) {
        if (is_float(node.input(i)) && takes(op, i) && !ops::allows_input(op, version, i, type)) return false;
      }
      return true;
    };
    int current = 0;
    for (int version : op.versions) {
      if (version <= opset) current = version;
    }
    if (current == 0 || is_allowed(current)) return "";
    auto later = std::ranges::find_if(op.versions, [&](int version) { return version > opset && is_allowed(version); });
    if (later == op.versions.end()) return fmt::format("it does not take {}", name_of(type_));
    return fmt::format("opset {} has it without {}, opset {} with it", opset, name_of(type_), *later);
  }

  std::string why_numbers(const ir::Node& node) const {
    for (const ir::Value* value : node.inputs()) {
      if (!is_float(value)) continue;
      if (value->constant() && !is_bias_that_rounds_well(node, *value)) {
        if (std::string why = why_not_half(value->constant()->tensor, type_); !why.empty())
          return fmt::format("'{}': {}", value->name, why);
      }
      if (overflows(*value)) return overflow_text(value->name);
    }
    for (const ir::Value* value : node.outputs()) {
      if (value && overflows(*value)) return overflow_text(value->name);
    }
    return "";
  }
  std::string overflow_text(const std::string& name) const {
    return fmt::format("'{}' reaches {:.3g}", name, magnitudes_.at(name));
  }

  // Whether what rounding changes of a bias is less than rounding the largest of the sums it is added to.
  bool is_bias_that_rounds_well(const ir::Node& node, const ir::Value& value) const {
    const bool is_sum =
        node.domain.empty() && (node.op_type == "Conv" || node.op_type == "ConvTranspose" || node.op_type == "Gemm");
    if (!is_sum || node.input(2) != &value || node.input(1) == &value) return false;
    const auto sums = magnitudes_.find(node.output(0)->name);
    return sums != magnitudes_.end() &&
           largest_rounding_error(value.constant()->tensor, type_) < sums->second * rounding_of(type_);
  }

  bool takes(const ops::Operator& op, size_t input) const {
    const ops::Parameter* p = parameter(op.inputs, input);
    return p && p->types.contains(type_);
  }

  // Cast and Constant nodes say themselves what they make.
  static bool makes_what_it_says(const ir::Node& node) {
    return node.domain.empty() &&
           (node.op_type == "Cast" || node.op_type == "Constant" || node.op_type == "ConstantOfShape");
  }

  void decide(ir::Node& node) {
    bool touches_floats = false;
    for_each_read(node, [&](const ir::Value& value) { touches_floats |= is_float(&value); });
    for (const ir::Value* value : node.outputs()) touches_floats |= is_float(value);
    if (!touches_floats) return;
    if (makes_what_it_says(node)) return;
    const std::string reason = why_kept(node);
    if (reason.empty()) {
      converted_.insert(&node);
      ++result_.converted_nodes;
    } else {
      result_.kept.push_back({node.describe(), node.op_type, reason});
    }
  }

  void convert_inputs() {
    for (ir::Value* input : graph_.inputs()) {
      if (options_.keep_io || !is_float(input) || input->is_initializer()) continue;
      input->type.element = type_;
      half_.insert(input);
      result_.changes.push_back({"converted input", input->name, std::string(name_of(type_))});
    }
  }

  // Whether somebody would rather read the value as half.
  bool is_wanted_half(const ir::Value& value) const {
    return std::ranges::any_of(value.users(), [&](const ir::Node* user) { return converted_.contains(user); });
  }

  void convert_outputs_of(ir::Node& node) {
    if (makes_what_it_says(node)) {
      if (is_float(node.output(0)) && is_wanted_half(*node.output(0)) && !overflows(*node.output(0)))
        convert_source(node);
      return;
    }
    if (!converted_.contains(&node)) return;
    const ops::Operator& op = *ops::operators().find(node.domain, node.op_type);
    for (size_t i = 0; i < node.output_count(); ++i) {
      ir::Value* value = node.output(i);
      const ops::Parameter* p = parameter(op.outputs, i);
      if (is_float(value) && p && follows_inputs(op, node, *p)) become_half(*value);
    }
  }

  // Whether an output has the type of an input that is converted.
  bool follows_inputs(const ops::Operator& op, const ir::Node& node, const ops::Parameter& output) const {
    if (output.variable.empty()) return false;
    for (size_t i = 0; i < node.input_count(); ++i) {
      const ops::Parameter* p = parameter(op.inputs, i);
      if (p && p->variable == output.variable && is_float(node.input(i)) && takes(op, i)) return true;
    }
    return false;
  }

  void become_half(ir::Value& value) {
    half_.insert(&value);
    if (value.type.known()) value.type.element = type_;
  }

  void convert_source(ir::Node& node) {
    if (node.op_type == "Cast") {
      node.set_attribute({"to", static_cast<int64_t>(type_)});
    } else {
      const Tensor* tensor = node.tensor_attribute("value");
      if (!tensor || tensor->type() != full || !why_not_half(*tensor, type_).empty()) return;
      node.set_attribute({"value", cast_floats(*tensor, type_)});
    }
    become_half(*node.output(0));
  }

  // The value in another type: a weight that is converted, or a cast.
  ir::Value* as(ir::Value& value, ElementType wanted, ir::Node& user) {
    ir::Value*& made = casts_[{&value, wanted}];
    if (made) return made;
    if (is_weight(value) && wanted == type_) made = converted_weight(value);
    if (!made) made = &cast(value, wanted, &user);
    return made;
  }

  // The weight itself where nobody reads it as float, else another one; null if it is an input that must stay.
  ir::Value* converted_weight(ir::Value& value) {
    const bool is_free = !outputs_.contains(&value) && std::ranges::all_of(value.users(), [&](const ir::Node* reader) {
      return converted_.contains(reader) && reads_half(*reader, value);
    });
    if (value.is_graph_input() && !is_free) return nullptr;
    ir::Value& twin =
        is_free ? value : graph_.add_value(fmt::format("{}_{}", value.name, name_of(type_)), /*fresh=*/true);
    auto constant = std::make_shared<ir::Constant>(*value.constant());
    constant->tensor = cast_floats(constant->tensor, type_);
    constant->name = twin.name;
    if (constant->storage == ir::Constant::Storage::typed_fields) constant->storage = ir::Constant::Storage::raw;
    constant->external_data.clear();
    graph_.set_initializer(twin, ir::ConstantPtr(std::move(constant)));
    if (twin.type.known()) twin.type.element = type_;
    result_.changes.push_back({"converted weight", value.name, std::string(name_of(type_))});
    return &twin;
  }

  // Before version 4 of the format every weight had to be an input too.
  bool is_weight(const ir::Value& value) const {
    return value.constant() && (!value.is_graph_input() || (model_->ir_version > 0 && model_->ir_version < 4));
  }
  bool reads_half(const ir::Node& node, const ir::Value& value) const {
    const ops::Operator& op = *ops::operators().find(node.domain, node.op_type);
    for (size_t i = 0; i < node.input_count(); ++i) {
      if (node.input(i) == &value && !takes(op, i)) return false;
    }
    return std::ranges::find(node.inputs(), &value) != node.inputs().end();
  }

  // A Cast before a node, or at the end.
  ir::Value& cast(ir::Value& value, ElementType wanted, ir::Node* before) {
    ir::Node& node = graph_.add_node("Cast", "", before);
    node.origin = nullptr;
    node.add_input(&value);
    ir::Value& output = graph_.add_value(fmt::format("{}/as_{}", value.name, name_of(wanted)), /*fresh=*/true);
    node.add_output(&output);
    node.name = output.name;
    node.set_attribute({"to", static_cast<int64_t>(wanted)});
    ++result_.casts;
    return output;
  }

  // Gives the node each float in the type that it computes in.
  void connect(ir::Node& node) {
    const bool converted = converted_.contains(&node);
    const ops::Operator* op = converted ? ops::operators().find(node.domain, node.op_type) : nullptr;
    for (size_t i = 0; i < node.input_count(); ++i) {
      ir::Value* value = node.input(i);
      if (!value) continue;
      const bool has_half = half_.contains(value);
      if (converted && takes(*op, i) && !has_half && is_float(value)) node.set_input(i, as(*value, type_, node));
      if (has_half && !makes_what_it_says(node) && !(converted && takes(*op, i)))
        node.set_input(i, as(*value, full, node));
    }
    for_each_subgraph(node, [&](ir::Graph& subgraph) { connect_inside(subgraph, node); });
  }

  void connect_inside(ir::Graph& graph, ir::Node& owner) {
    for_each_graph(graph, [&](ir::Graph& inner) {
      for (ir::Node& node : inner.nodes()) {
        for (size_t i = 0; i < node.input_count(); ++i) {
          if (half_.contains(node.input(i))) node.set_input(i, as(*node.input(i), full, owner));
        }
      }
      for (size_t i = 0; i < inner.outputs().size(); ++i) {
        if (half_.contains(inner.outputs()[i])) inner.set_output(i, *as(*inner.outputs()[i], full, owner));
      }
    });
  }

  // Outputs keep their names, so what is cast gets another one.
  void convert_outputs() {
    const ElementType wanted = options_.keep_io ? full : type_;
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      ir::Value& value = *graph_.outputs()[i];
      const bool has_half = half_.contains(&value);
      if (!has_half && !is_float(&value)) continue;
      if (has_half == (wanted == type_)) continue;
      if (value.is_graph_input()) {
        result_.notes.push_back(fmt::format("'{}' is an input too and keeps its type as an output", value.name));
        continue;
      }
      ir::Value& output = cast(value, wanted, nullptr);
      std::swap(output.name, value.name);
      output.type = value.type;
      if (output.type.known()) output.type.element = wanted;
      value.value_info_position = -1;
      graph_.set_output(i, output);
      if (value.is_initializer()) rename_initializer(value);
    }
    for_each_output_type(graph_, [&](const ir::Value& value, ir::Type& type) {
      const bool was_float = type.is_tensor() && type.element == full;
      if (!was_float || options_.keep_io || value.is_graph_input()) return;
      type.element = type_;
      result_.changes.push_back({"converted output", value.name, std::string(name_of(type_))});
    });
  }

  const OnnxModel& original_;
  const DtypeOptions& options_;
  ElementType type_;
  std::unique_ptr<ir::Model> model_;
  ir::Graph& graph_;
  KnownTypes known_;
  std::set<const ir::Value*> outputs_;        // of the graph and of those in it
  std::map<std::string, double> magnitudes_;  // of values, as far as they were seen
  std::set<const ir::Node*> converted_;
  std::set<const ir::Value*> half_;  // values that are of the new type now
  std::map<std::pair<const ir::Value*, ElementType>, ir::Value*> casts_;
  DtypeConversion result_;
};

NamedValues with_type(const NamedValues& values, ElementType from, ElementType to) {
  NamedValues result = values;
  for (auto& [_, value] : result) {
    if (value.is_tensor() && value.tensor().type() == from) value = cast_floats(value.tensor(), to);
  }
  return result;
}

void verify(const OnnxModel& original, const DtypeOptions& options, DtypeConversion& result) {
  try {
    const Session before = original.open(), after = result.model.open();
    const NamedValues inputs = make_inputs(before, options.inputs).values;
    const NamedValues expected = before.run(inputs);
    const NamedValues actual =
        after.run(options.keep_io ? inputs : with_type(inputs, ElementType::float32, options.type));
    result.largest_difference = largest_difference(with_type(actual, options.type, ElementType::float32), expected);
  } catch (const Error& error) {
    result.why_not = error.what();
  }
}

}  // namespace

DtypeConversion convert_dtype(const OnnxModel& model, const DtypeOptions& options) {
  if (!is_half(options.type))
    fail(ErrorCode::invalid_argument, "{} is neither float16 nor bfloat16", name_of(options.type));
  DtypeConversion result = DtypeConverter(model, options).run();
  if (options.compare) verify(model, options, result);
  return result;
}

}  // namespace tenon::tools
