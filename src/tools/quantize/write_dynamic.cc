#include "tools/quantize/write_dynamic.h"

#include <algorithm>

#include "tools/quantize/codes.h"
#include "tools/quantize/embeddings.h"
#include "tools/quantize/graph_writer.h"

namespace tenon::tools {
namespace {

Tensor transposed(const Tensor& matrix) {
  const int64_t rows = matrix.dim(0), columns = matrix.dim(1);
  Tensor result(ElementType::float32, Shape{columns, rows});
  const auto from = matrix.data<float>();
  const auto to = result.mutable_data<float>();
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c)
      to[static_cast<size_t>(c * rows + r)] = from[static_cast<size_t>(r * columns + c)];
  }
  return result;
}

class DynamicWriter {
 public:
  DynamicWriter(const Plan& plan, const QuantizeOptions& options) : plan_(plan), options_(options) {}

  void write() {
    for (const Plan::Entry& entry : plan_.entries()) {
      if (entry.is_quantized && entry.role == Role::product) write(entry);
    }
  }

 private:
  // DynamicQuantizeLinear's codes, scale and zero point of an activation.
  struct Codes {
    ir::Value *codes, *scale, *zero;
  };

  const Codes& codes_of(ir::Value& value) {
    const auto found = activations_.find(&value);
    if (found != activations_.end()) return found->second;
    ir::Graph& graph = value.graph();
    ir::Value& codes = add_operator(graph, "DynamicQuantizeLinear", "", {&value}, value.name + "/codes");
    ir::Value& scale = graph.add_value(value.name + "/scale", /*fresh=*/true);
    ir::Value& zero = graph.add_value(value.name + "/zero_point", /*fresh=*/true);
    codes.producer()->add_output(&scale);
    codes.producer()->add_output(&zero);
    return activations_.emplace(&value, Codes{&codes, &scale, &zero}).first->second;
  }

  struct CodedMatrix {
    ir::Value *codes, *scales, *zeros;  // zeros: null if all are 0
  };

  // Weights as MatMulInteger reads them: [inputs, outputs].
  const CodedMatrix& matrix_of(const Weight& weight, bool is_transposed) {
    const auto key = std::pair(weight.value, is_transposed);
    const auto found = matrices_.find(key);
    if (found != matrices_.end()) return found->second;
    const Tensor& tensor = weight.value->constant()->tensor;
    const CodedWeight coded = code_weight(is_transposed ? transposed(tensor) : tensor,
                                          {options_.weights, options_.symmetric_weights, weight.axis < 0 ? -1 : 1, {}});
    ir::Graph& graph = weight.value->graph();
    const std::string& name = weight.value->name;
    const CodedMatrix matrix{&graph.add_constant(coded.codes, name + "/codes"),
                             &graph.add_constant(coded.scales, name + "/scale"),
                             coded.zeros ? &graph.add_constant(*coded.zeros, name + "/zero_point") : nullptr};
    return matrices_.emplace(key, matrix).first->second;
  }

  // The node itself becomes the last of those that take its place, so that its result keeps its name.
  void write(const Plan::Entry& entry) {
    ir::Node& node = *entry.node;
    const bool swapped =
        (entry.weight.transpose != nullptr) != (node.op_type == "Gemm" && node.int_attribute("transB", 0) != 0);
    const CodedMatrix& matrix = matrix_of(entry.weight, swapped);
    const Codes& codes = codes_of(*entry.activation);
    ir::Graph& graph = node.graph();
    const std::string name = node.output(0)->name;
    ir::Value& sums =
        add_operator(graph, "MatMulInteger", "", {codes.codes, matrix.codes, codes.zero, matrix.zeros}, name + "/sums");
    ir::Value& numbers = add_operator(graph, "Cast", "", {&sums}, name + "/cast");
    numbers.producer()->set_attribute({"to", static_cast<int64_t>(ElementType::float32)});
    ir::Value& scale = add_operator(graph, "Mul", "", {codes.scale, matrix.scales}, name + "/scale");
    ir::Value* bias = node.op_type == "Gemm" ? node.input(2) : nullptr;
    node.attributes.clear();
    node.remove_trailing_inputs(0);
    if (!bias) {
      become(node, "Mul", numbers, scale);
      return;
    }
    ir::Value& product = add_operator(graph, "Mul", "", {&numbers, &scale}, name + "/product");
    become(node, "Add", product, *bias);
  }

  static void become(ir::Node& node, const char* op, ir::Value& a, ir::Value& b) {
    node.op_type = op;
    node.add_input(&a);
    node.add_input(&b);
  }

  const Plan& plan_;
  const QuantizeOptions& options_;
  std::map<const ir::Value*, Codes> activations_;
  std::map<std::pair<const ir::Value*, bool>, CodedMatrix> matrices_;
};

}  // namespace

std::unique_ptr<ir::Model> write_dynamic(const ir::Model& prepared, const KnownTypes& types,
                                         const QuantizeOptions& options, const std::set<size_t>& stay_float) {
  std::unique_ptr<ir::Model> model = prepared.clone();
  const Plan plan(*model, types, options, stay_float);
  DynamicWriter(plan, options).write();
  ConstantCoder coder(*model, options);
  write_embeddings(plan, coder);
  finish(*model);
  return model;
}

}  // namespace tenon::tools
