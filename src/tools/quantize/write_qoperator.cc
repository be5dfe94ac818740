#include "tools/quantize/write_qoperator.h"

#include <algorithm>
#include <array>
#include <optional>

#include "ir/visit.h"
#include "ops/operator.h"
#include "tools/graph_edit.h"
#include "tools/quantize/codes.h"
#include "tools/quantize/graph_writer.h"

namespace tenon::tools {
namespace {

// How the operands of an operator on codes are arranged; each operand is codes, scale and zero point.
enum class Form : uint8_t {
  conv,      // x, w, scale and zero point of y, bias
  gemm,      // a, b, bias, scale and zero point of y
  operands,  // all inputs, scale and zero point of y
  concat,    // scale and zero point of y, all inputs
  move,      // the codes alone, in the operator that it was
};

struct Twin {
  std::string_view op, on_codes;
  Form form;
  bool is_microsoft;
  size_t operands = 1;  // inputs that are codes; 0: all
};
constexpr Twin twins[] = {
    {"Conv", "QLinearConv", Form::conv, false, 2},
    {"MatMul", "QLinearMatMul", Form::operands, false, 2},
    {"Gemm", "QGemm", Form::gemm, true, 2},
    {"Add", "QLinearAdd", Form::operands, true, 2},
    {"Mul", "QLinearMul", Form::operands, true, 2},
    {"Sigmoid", "QLinearSigmoid", Form::operands, true},
    {"LeakyRelu", "QLinearLeakyRelu", Form::operands, true},
    {"GlobalAveragePool", "QLinearGlobalAveragePool", Form::operands, true},
    {"Concat", "QLinearConcat", Form::concat, true, 0},
    {"DepthToSpace", "DepthToSpace", Form::move, false},
    {"Flatten", "Flatten", Form::move, false},
    {"MaxPool", "MaxPool", Form::move, false},
    {"Reshape", "Reshape", Form::move, false},
    {"Slice", "Slice", Form::move, false},
    {"SpaceToDepth", "SpaceToDepth", Form::move, false},
    {"Squeeze", "Squeeze", Form::move, false},
    {"Transpose", "Transpose", Form::move, false},
    {"Unsqueeze", "Unsqueeze", Form::move, false},
};

bool is_op(const ir::Node* node, std::string_view op) { return node && node->domain.empty() && node->op_type == op; }

class QOperatorWriter {
 public:
  explicit QOperatorWriter(ir::Model& model) : model_(model) {}

  void write() {
    ir::for_each_graph(*model_.graph, [&](ir::Graph& graph) {
      std::vector<ir::Node*> nodes;
      for (ir::Node& node : graph.nodes()) nodes.push_back(&node);
      for (ir::Node* node : nodes) write(*node);
    });
    std::vector<ModelChange> ignored;
    remove_unneeded(*model_.graph, ignored);
    finish(model_);
  }

 private:
  static ir::Node* sole_user(const ir::Value& value) {
    const auto& outputs = value.graph().outputs();
    const bool is_output = std::ranges::find(outputs, &value) != outputs.end();
    return value.users().size() == 1 && !is_output ? value.users()[0] : nullptr;
  }

  // The QuantizeLinear of a node's result. Its range ends where a Relu or Clip before it does.
  static ir::Node* quantizer_of(const ir::Node& node) {
    ir::Node* user = sole_user(*node.output(0));
    if (user && (is_op(user, "Relu") || is_op(user, "Clip"))) user = sole_user(*user->output(0));
    return is_op(user, "QuantizeLinear") ? user : nullptr;
  }

  // Codes, scale and zero point, which is added where it is left out.
  std::optional<std::array<ir::Value*, 3>> operand(ir::Value* value) const {
    const ir::Node* node = value ? value->producer() : nullptr;
    if (!is_op(node, "DequantizeLinear")) return std::nullopt;
    ir::Value* zero = node->input(2);
    if (!zero) {
      const Tensor& scale = node->input(1)->constant()->tensor;
      const Tensor* codes = node->input(0)->constant() ? &node->input(0)->constant()->tensor : nullptr;
      if (!codes) return std::nullopt;
      const std::vector<int64_t> zeros(static_cast<size_t>(scale.elements()), 0);
      zero = &value->graph().add_constant(zero_tensor(codes->type(), scale.shape(), zeros),
                                          node->input(0)->name + "/zero_point");
    }
    return std::array{node->input(0), node->input(1), zero};
  }

  // The int32 codes of a bias; null if it has none.
  static ir::Value* bias_of(const ir::Node& node) {
    const ir::Value* bias = node.input(2);
    return bias && is_op(bias->producer(), "DequantizeLinear") ? bias->producer()->input(0) : nullptr;
  }

  void write(ir::Node& node) {
    const auto twin = std::ranges::find(twins, node.op_type, &Twin::op);
    if (!node.domain.empty() || twin == std::end(twins)) return;
    ir::Node* quantize = quantizer_of(node);
    if (!quantize) return;
    std::vector<ir::Value*> operands, inputs;
    const size_t count = twin->operands == 0 ? node.input_count() : twin->operands;
    for (size_t i = 0; i < count; ++i) {
      const auto read = operand(node.input(i));
      if (!read) return;
      operands.insert(operands.end(), read->begin(), read->end());
    }
    ir::Value *scale = quantize->input(1), *zero = quantize->input(2);
    const auto add = [&](std::initializer_list<ir::Value*> values) { inputs.insert(inputs.end(), values); };
    const auto add_operands = [&] { inputs.insert(inputs.end(), operands.begin(), operands.end()); };
    switch (twin->form) {
      case Form::conv:
        add_operands();
        add({scale, zero, bias_of(node)});
        break;
      case Form::gemm:
        add_operands();
        add({bias_of(node), scale, zero});
        break;
      case Form::operands:
        add_operands();
        add({scale, zero});
        break;
      case Form::concat:
        add({scale, zero});
        add_operands();
        break;
      case Form::move:
        if (operands[1] != scale) return;  // another range
        add({operands[0]});
        for (size_t i = 1; i < node.input_count(); ++i) inputs.push_back(node.input(i));
        break;
    }
    become(*quantize, *twin, node, inputs);
  }

  // The QuantizeLinear becomes the operator, so that what it makes stays.
  void become(ir::Node& quantize, const Twin& twin, const ir::Node& node, const std::vector<ir::Value*>& inputs) {
    if (twin.is_microsoft) import_microsoft(model_);
    quantize.op_type = twin.on_codes;
    quantize.domain = twin.is_microsoft ? std::string(ops::microsoft) : "";
    quantize.name = node.name + "/quantized";
    std::map<const ir::Value*, ir::Value*> none;
    quantize.attributes.clear();
    for (const ir::Attribute& attribute : node.attributes) quantize.attributes.push_back(ir::clone(attribute, none));
    if (twin.form == Form::gemm) quantize.remove_attribute("beta");
    quantize.remove_trailing_inputs(0);
    for (ir::Value* input : inputs) quantize.add_input(input);
    while (!quantize.input(quantize.input_count() - 1)) quantize.remove_trailing_inputs(quantize.input_count() - 1);
  }

  ir::Model& model_;
};

}  // namespace

void write_qoperators(ir::Model& model) { QOperatorWriter(model).write(); }

}  // namespace tenon::tools
