#include "tools/quantize/write_qdq.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "ir/verify.h"
#include "ir/visit.h"
#include "ops/operator.h"
#include "tools/quantize/constant_coder.h"
#include "tools/quantize/embeddings.h"
#include "tools/quantize/graph_writer.h"
#include "tools/quantize/write_qoperator.h"

namespace tenon::tools {
namespace {

constexpr double largest_bias = 1 << 30;  // in steps

class QdqWriter {
 public:
  QdqWriter(ir::Model& model, const Plan& plan, const QuantizeOptions& options, const Calibrated& calibrated,
            const std::set<size_t>& stay_float)
      : model_(model),
        plan_(plan),
        options_(options),
        calibrated_(calibrated),
        stay_float_(stay_float),
        constants_(model, options) {}

  void write() {
    for (ir::Value* value : plan_.coded()) code_activation(*value);
    for (size_t i = 0; i < plan_.entries().size(); ++i) {
      const Plan::Entry& entry = plan_.entries()[i];
      if (entry.is_quantized && entry.role == Role::product) code_constants(entry, i);
      if (stay_float_.contains(i) && calibrated_.has_codes_in_float(i) && entry.weight.value) code_weight(entry.weight);
    }
    share_weights();
    write_embeddings(plan_, constants_);
  }

 private:
  struct Codes {
    CodeMeaning meaning;
    ir::Value *scale, *zero;
  };

  // Values that move the same codes share what these stand for.
  const Codes& codes_of(ir::Value& value) {
    ir::Value& source = plan_.range_source(value);
    const auto found = codes_.find(&source);
    if (found != codes_.end()) return found->second;
    const auto range = calibrated_.ranges.find(source.name);
    TENON_CHECK(range != calibrated_.ranges.end());
    const CodeMeaning meaning = activation_meaning(source.name, range->second, options_);
    ir::Graph& graph = source.graph();
    Codes codes{meaning, &graph.add_constant(Tensor::scalar(meaning.scale), source.name + "/scale"),
                &graph.add_constant(zero_tensor(meaning.type, Shape{}, {{meaning.zero}}), source.name + "/zero_point")};
    return codes_.emplace(&source, codes).first->second;
  }

  void code_activation(ir::Value& value) {
    const Codes& codes = codes_of(value);
    ir::Graph& graph = value.graph();
    const std::string domain = quantize_domain(model_, codes.meaning.type);
    const std::vector<ir::Node*> readers = value.users();
    ir::Value& coded =
        add_operator(graph, "QuantizeLinear", domain, {&value, codes.scale, codes.zero}, value.name + "/codes");
    ir::Value& again =
        add_operator(graph, "DequantizeLinear", domain, {&coded, codes.scale, codes.zero}, value.name + "/dequantized");
    // Times are looked up by these names.
    coded.producer()->name = value.name + "/codes";
    again.producer()->name = value.name + "/dequantized";
    const bool made_of_codes = value.producer() && plan_.is_quantized(*value.producer());
    for (ir::Node* reader : readers) {
      const Plan::Entry& entry = plan_.entry(*reader);
      const bool is_inside = entry.is_quantized && entry.role == Role::function && entry.source != &value;
      if (plan_.reads_codes(*reader, value) || (made_of_codes && !is_inside)) replace_input(*reader, value, again);
    }
  }

  // A bias has the scale of products. Weights whose scale makes it too many steps get a larger one.
  void code_constants(const Plan::Entry& entry, size_t number) {
    const Weight& weight = entry.weight;
    if (!weight.value) return;
    const float step = codes_of(*entry.activation).meaning.scale;
    const std::optional<std::vector<double>> bias = bias_of(*entry.node, number);
    ConstantCoder::Coded& coded =
        constants_.code(*weight.value, weight.axis, bias ? least_scales(weight, *bias, step) : std::vector<double>());
    weight.reader->set_input(weight.input, &constants_.dequantized(*weight.value, coded, weight.axis));
    if (bias) set_bias(*entry.node, *bias, coded.scales, step);
  }

  // Of a product that reads them as floats.
  void code_weight(const Weight& weight) {
    ConstantCoder::Coded& coded = constants_.code(*weight.value, weight.axis);
    weight.reader->set_input(weight.input, &constants_.dequantized(*weight.value, coded, weight.axis));
  }

  std::optional<std::vector<double>> bias_of(const ir::Node& node, size_t number) const {
    std::optional<std::vector<double>> bias;
    if (node.op_type == "MatMul") return bias;
    if (const ir::Value* value = node.input(2)) {
      const auto numbers = value->constant()->tensor.data<float>();
      bias.emplace(numbers.begin(), numbers.end());
    }
    const auto shift = calibrated_.bias_shifts.find(number);
    if (shift == calibrated_.bias_shifts.end()) return bias;
    if (!bias) bias.emplace(shift->second.size(), 0.0);
    for (size_t i = 0; i < bias->size(); ++i) (*bias)[i] += shift->second[shift->second.size() == 1 ? 0 : i];
    return bias;
  }

  // A bias that would be too many steps asks for larger ones.
  static std::vector<double> least_scales(const Weight& weight, const std::vector<double>& bias, float step) {
    std::vector<double> least;
    const Tensor& tensor = weight.value->constant()->tensor;
    if (weight.axis < 0 || tensor.dim(static_cast<int>(weight.axis)) != std::ssize(bias)) return least;
    for (double number : bias) least.push_back(std::abs(number) / largest_bias / static_cast<double>(step));
    return least;
  }

  void set_bias(ir::Node& node, const std::vector<double>& bias, const Tensor& scales, float step) {
    const auto count = std::ssize(bias);
    Tensor codes(ElementType::int32, Shape{count}), bias_scales(ElementType::float32, scales.shape());
    for (size_t i = 0; i < static_cast<size_t>(scales.elements()); ++i)
      bias_scales.mutable_data<float>()[i] = scales.data<float>()[i] * step;
    for (size_t i = 0; i < bias.size(); ++i) {
      const auto scale = static_cast<double>(bias_scales.data<float>()[scales.elements() == 1 ? 0 : i]);
      codes.mutable_data<int32_t>()[i] =
          static_cast<int32_t>(std::clamp(std::nearbyint(bias[i] / scale), -2 * largest_bias, 2 * largest_bias - 1));
    }
    ir::Graph& graph = node.graph();
    const std::string name = node.input(2) ? node.input(2)->name : node.output(0)->name + "/bias";
    ir::Value& dequantized =
        add_operator(graph, "DequantizeLinear", "",
                     {&graph.add_constant(codes, name + "/codes"), &graph.add_constant(bias_scales, name + "/scale")},
                     name + "/dequantized");
    if (scales.rank() == 1) dequantized.producer()->set_attribute({"axis", int64_t{0}});
    node.set_input(2, &dequantized);
  }

  // What else reads a constant that is stored as codes reads those too, so that it is stored once. Products in float
  // keep their own.
  void share_weights() {
    for (auto& [key, coded] : constants_.all()) {
      const std::vector<ir::Node*> readers = key.first->users();
      for (ir::Node* reader : readers) {
        if (coded.dequantized && !is_unit(plan_.entry(*reader).role))
          replace_input(*reader, *key.first, *coded.dequantized);
      }
    }
  }

  ir::Model& model_;
  const Plan& plan_;
  const QuantizeOptions& options_;
  const Calibrated& calibrated_;
  const std::set<size_t>& stay_float_;
  std::map<const ir::Value*, Codes> codes_;
  ConstantCoder constants_;
};

}  // namespace

CodeMeaning activation_meaning(const std::string& name, const Range& range, const QuantizeOptions& options) {
  TensorOverride given;
  if (const auto found = options.overrides.find(name); found != options.overrides.end()) given = found->second;
  return meaning_of({given.low.value_or(range.low), given.high.value_or(range.high)},
                    given.type.value_or(options.activations), given.symmetric.value_or(options.symmetric_activations));
}

std::unique_ptr<ir::Model> write_qdq(const ir::Model& prepared, const KnownTypes& types, const QuantizeOptions& options,
                                     const Calibrated& calibrated, const std::set<size_t>& stay_float) {
  std::unique_ptr<ir::Model> model = prepared.clone();
  const Plan plan(*model, types, options, stay_float);
  QdqWriter(*model, plan, options, calibrated, stay_float).write();
  finish(*model);
  if (options.format == QuantizeFormat::qoperator) write_qoperators(*model);
  return model;
}

}  // namespace tenon::tools
