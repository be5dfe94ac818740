#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "passes/match.h"
#include "passes/optimize/fusion.h"
#include "passes/optimize/quantized.h"

namespace tenon::passes {

bool is_function(const ir::Node& node) {
  static constexpr std::array names = {
      "Abs",     "Add",  "Ceil",        "Celu",     "Clip",      "Div",        "Elu",   "Erf",   "Exp",
      "Floor",   "Gelu", "IsNaN",       "Log",      "LeakyRelu", "HardSwish",  "Max",   "Min",   "Mish",
      "Mul",     "Neg",  "HardSigmoid", "PRelu",    "Pow",       "Reciprocal", "Relu",  "Round", "Selu",
      "Sigmoid", "Sign", "Softplus",    "Softsign", "Sqrt",      "Sub",        "Swish", "Tanh",  "ThresholdedRelu",
      "Where"};
  return node.domain.empty() && node.output_count() == 1 && std::ranges::find(names, node.op_type) != names.end();
}

namespace {

// Nodes between codes and codes; more are not searched.
constexpr size_t most_nodes = 16;

// In the order of unsigned bytes.
Tensor all_codes(ElementType type) {
  Tensor codes(type, Shape{256});
  auto* bytes = static_cast<uint8_t*>(codes.mutable_raw());
  std::iota(bytes, bytes + 256, uint8_t{0});
  return codes;
}

ir::Node* look_up(const ir::Value* value) {
  ir::Node* node = value->producer();
  return node && node->domain == ops::tenon_domain && node->op_type == "LookUp" ? node : nullptr;
}

// What a QuantizeLinear computes from the codes of one value alone.
class CodeFunction {
 public:
  CodeFunction(Editor& editor, ir::Node& quantize) : editor_(editor), quantize_(quantize) {
    found_ = visit(quantize.input(0)) && !sources_.empty() && has_one_source();
  }
  explicit operator bool() const { return found_; }
  ir::Value* source() const { return sources_.front(); }

  // Its results for all codes.
  ir::Value* table(Patch& patch) const {
    std::map<const ir::Value*, ir::Value*> values;
    const bool is_signed = element_type(editor_, source()) == ElementType::int8;
    values[source()] = patch.constant(all_codes(is_signed ? ElementType::int8 : ElementType::uint8));
    for (const ir::Node* node : nodes_) add(patch, *node, values);
    return patch.add_like(quantize_, {values.at(quantize_.input(0)), quantize_.input(1), quantize_.input(2)}).output(0);
  }

 private:
  static void add(Patch& patch, const ir::Node& node, std::map<const ir::Value*, ir::Value*>& values) {
    std::vector<ir::Value*> inputs;
    for (ir::Value* input : node.inputs()) {
      const auto found = values.find(input);
      inputs.push_back(found == values.end() ? input : found->second);
    }
    values[node.output(0)] = patch.add_like(node, inputs).output(0);
  }

  // Elements that it is combined with keep their shape.
  static bool is_single(const Tensor& constant) { return constant.elements() == 1 && constant.rank() <= 1; }

  // Collects the nodes above a value, inputs first, down from the codes that they depend on.
  bool visit(const ir::Value* value) {
    ir::Node* node = value->producer();
    if (!node || nodes_.size() >= most_nodes) return false;
    if (std::ranges::find(nodes_, node) != nodes_.end()) return true;
    if (node->domain.empty() && node->op_type == "DequantizeLinear") {
      const std::optional<Quantized> source = before(editor_, value);
      if (!source || !source->is_whole()) return false;
      if (Editor::constant(source->codes)) return is_single(*Editor::constant(source->codes));
      add_source(source->codes);
      nodes_.push_back(node);
      return true;
    }
    const ElementType type = element_type(editor_, value);
    if (!is_function(*node) || (type != ElementType::float32 && type != ElementType::boolean)) return false;
    for (const ir::Value* input : node->inputs()) {
      if (!input) continue;
      if (const Tensor* constant = Editor::constant(input)) {
        if (!is_single(*constant)) return false;
      } else if (!visit(input)) {
        return false;
      }
    }
    nodes_.push_back(node);
    return true;
  }

  void add_source(ir::Value* codes) {
    if (std::ranges::find(sources_, codes) == sources_.end()) sources_.push_back(codes);
  }

  // Codes that were looked up for others depend on those.
  bool has_one_source() {
    while (sources_.size() > 1) {
      const auto found =
          std::ranges::find_if(sources_, [](const ir::Value* codes) { return look_up(codes) != nullptr; });
      if (found == sources_.end() || nodes_.size() >= most_nodes) return false;
      ir::Node* node = look_up(*found);
      sources_.erase(found);
      nodes_.insert(nodes_.begin(), node);
      add_source(node->input(0));
    }
    return true;
  }

  Editor& editor_;
  const ir::Node& quantize_;
  std::vector<ir::Value*> sources_;
  std::vector<ir::Node*> nodes_;
  bool found_;
};

ir::Value* looked_up(Patch& patch, ir::Value* codes, ir::Value* table) {
  return patch.add("LookUp", {codes, table}, {}, std::string(ops::tenon_domain));
}

const std::string microsoft(ops::microsoft);

}  // namespace

void look_up_codes(Editor& editor, ir::Node& node) {
  const std::optional<Quantized> result = after(editor, node);
  if (!result || !result->is_whole()) return;
  const CodeFunction function(editor, node);
  if (!function) return;
  editor.rewrite(
      node, [&](Patch& patch) { patch.replace(node, *looked_up(patch, function.source(), function.table(patch))); });
}

void look_up_arithmetic(Editor& editor, ir::Node& node) {
  for (size_t i : {0, 3}) {
    const Tensor* constant = Editor::constant(node.input(i));
    ir::Value* codes = node.input(3 - i);
    if (!constant || constant->elements() != 1 || constant->rank() > editor.rank(codes) || Editor::constant(codes))
      continue;
    return editor.rewrite(node, [&](Patch& patch) {
      std::vector<ir::Value*> inputs(node.inputs().begin(), node.inputs().end());
      inputs[3 - i] = patch.constant(all_codes(constant->type()));
      patch.replace(node, *looked_up(patch, codes, patch.add_like(node, inputs).output(0)));
    });
  }
}

void simplify_look_up(Editor& editor, ir::Node& node) {
  const Tensor* table = Editor::constant(node.input(1));
  if (table && table->elements() == 256 && element_type(editor, node.input(0)) == table->type()) {
    const auto* bytes = static_cast<const uint8_t*>(table->raw());
    const bool changes_nothing =
        std::all_of(bytes, bytes + 256, [&](const uint8_t& byte) { return byte == &byte - bytes; });
    if (changes_nothing && editor.can_replace(*node.output(0), *node.input(0)))
      return editor.rewrite(node, [&](Patch& patch) { patch.replace(node, *node.input(0)); });
  }
  const ir::Node* first = look_up(node.input(0));
  if (!first || !editor.is_only_user(*node.input(0))) return;
  editor.rewrite(node, [&](Patch& patch) {
    patch.replace(node, *looked_up(patch, first->input(0), looked_up(patch, first->input(1), node.input(1))));
  });
}

void add_codes(Editor& editor, ir::Node& node) {
  const std::optional<Quantized> a = before(editor, node.input(0)), b = before(editor, node.input(1));
  if (!a || !b || !a->is_whole() || !b->is_whole() || a->type != b->type) return;
  // A function of one value's codes is looked up.
  if (a->codes == b->codes) return;
  ir::Node* quantize = quantizer_of(editor, node.output(0));
  const std::optional<Quantized> y = quantize ? after(editor, *quantize) : std::nullopt;
  if (!y || y->type != a->type || CodeFunction(editor, *quantize)) return;
  editor.rewrite(*quantize, [&](Patch& patch) {
    patch.name_after(node);
    patch.replace(*quantize, *patch.add(node.op_type == "Add" ? "QLinearAdd" : "QLinearMul",
                                        {a->codes, a->scale, zero_point(patch, *a), b->codes, b->scale,
                                         zero_point(patch, *b), y->scale, zero_point(patch, *y)},
                                        {}, microsoft));
  });
}

void softmax_of_codes(Editor& editor, ir::Node& node) {
  if (editor.target().is_device) return;  // which computes it in floats
  const std::optional<Quantized> x = before(editor, node.input(0));
  ir::Node* quantize = quantizer_of(editor, node.output(0));
  const std::optional<Quantized> y = quantize ? after(editor, *quantize) : std::nullopt;
  const int64_t axis = node.int_attribute("axis", -1);
  if (!x || !x->is_whole() || !y || x->type != y->type || (axis != -1 && axis != editor.rank(node.input(0)) - 1))
    return;
  editor.rewrite(*quantize, [&](Patch& patch) {
    patch.name_after(node);
    patch.replace(*quantize, *patch.add("QLinearSoftmax",
                                        {x->codes, x->scale, zero_point(patch, *x), y->scale, zero_point(patch, *y)},
                                        {{"axis", -1}, {"opset", 13}}, microsoft));
  });
}

void average_codes(Editor& editor, ir::Node& node) {
  const std::optional<Quantized> x = before(editor, node.input(0));
  ir::Node* quantize = quantizer_of(editor, node.output(0));
  const std::optional<Quantized> y = quantize ? after(editor, *quantize) : std::nullopt;
  if (!x || !x->is_whole() || !y || x->type != y->type || editor.rank(node.input(0)) < 3) return;
  editor.rewrite(*quantize, [&](Patch& patch) {
    patch.name_after(node);
    patch.replace(*quantize, *patch.add("QLinearGlobalAveragePool",
                                        {x->codes, x->scale, zero_point(patch, *x), y->scale, zero_point(patch, *y)},
                                        {}, microsoft));
  });
}

void recode_concat(Editor& editor, ir::Node& node) {
  ir::Node* quantize = quantizer_of(editor, node.output(0));
  const std::optional<Quantized> y = quantize ? after(editor, *quantize) : std::nullopt;
  if (!y) return;
  std::vector<Quantized> parts;
  for (const ir::Value* input : node.inputs()) {
    const std::optional<Quantized> part = before(editor, input);
    if (!part || !part->is_whole() || Editor::constant(part->codes)) return;
    parts.push_back(*part);
  }
  editor.rewrite(*quantize, [&](Patch& patch) {
    patch.name_after(node);
    std::vector<ir::Value*> inputs;
    for (const Quantized& part : parts) {
      if (part.same_meaning(*y)) {
        inputs.push_back(part.codes);
        continue;
      }
      ir::Value* numbers =
          patch.add("DequantizeLinear", {patch.constant(all_codes(part.type)), part.scale, part.zero_point});
      ir::Value* table = patch.add_like(*quantize, {numbers, quantize->input(1), quantize->input(2)}).output(0);
      inputs.push_back(looked_up(patch, part.codes, table));
    }
    patch.replace(*quantize, *patch.add_like(node, inputs).output(0));
  });
}

}  // namespace tenon::passes
