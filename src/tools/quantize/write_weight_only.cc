#include "tools/quantize/write_weight_only.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/fail.h"
#include "ops/operator.h"
#include "tools/quantize/blocks.h"
#include "tools/quantize/embeddings.h"
#include "tools/quantize/graph_writer.h"

namespace tenon::tools {
namespace {

class WeightOnlyWriter {
 public:
  WeightOnlyWriter(ir::Model& model, const Plan& plan, const QuantizeOptions& options, const Calibration& calibration,
                   BlockCache& cache)
      : model_(model),
        plan_(plan),
        options_(options),
        calibration_(calibration),
        cache_(cache),
        constants_(model, options) {}

  void write() {
    for (const Plan::Entry& entry : plan_.entries()) {
      if (!entry.is_quantized || entry.role != Role::product) continue;
      if (entry.node->op_type == "Conv")
        dequantize_channels(entry.weight);
      else
        write_blocks(entry);
    }
    write_embeddings(plan_, constants_);
  }

 private:
  void dequantize_channels(const Weight& weight) {
    ConstantCoder::Coded& coded = constants_.code(*weight.value, weight.axis);
    weight.reader->set_input(weight.input, &constants_.dequantized(*weight.value, coded, weight.axis));
  }

  // Whether the stored matrix is [outputs, inputs].
  static bool is_transposed(const Plan::Entry& entry) {
    return (entry.weight.transpose != nullptr) !=
           (entry.node->op_type == "Gemm" && entry.node->int_attribute("transB", 0) != 0);
  }

  const BlockedCodes& codes_of(const Plan::Entry& entry) {
    std::optional<BlockedCodes>& codes = cache_[{entry.weight.value->name, is_transposed(entry)}];
    if (!codes) codes = make_codes(entry);
    return *codes;
  }

  BlockedCodes make_codes(const Plan::Entry& entry) const {
    const Tensor& tensor = entry.weight.value->constant()->tensor;
    const bool transposed = is_transposed(entry);
    const int64_t inputs = tensor.dim(transposed ? 1 : 0), outputs = tensor.dim(transposed ? 0 : 1);
    std::vector<float> matrix(tensor.data<float>().begin(), tensor.data<float>().end());
    if (transposed) {
      for (int64_t i = 0; i < inputs; ++i) {
        for (int64_t o = 0; o < outputs; ++o)
          matrix[static_cast<size_t>(i * outputs + o)] = tensor.data<float>()[static_cast<size_t>(o * inputs + i)];
      }
    }
    const ChannelProducts* products = nullptr;
    if (options_.weight_method == WeightMethod::gptq) {
      const auto found = calibration_.products.find(entry.activation->name);
      if (found != calibration_.products.end()) products = &found->second;
    }
    return code_blocks(std::move(matrix), inputs, outputs, options_.weights, options_.symmetric_weights,
                       options_.block_size, products);
  }

  void write_blocks(const Plan::Entry& entry) {
    constexpr int64_t has_blocks = 21;
    const bool is_byte = bits_of(options_.weights) == 8;
    const int64_t opset = model_.opset_imports.version("");
    const bool fits_plain = options_.block_size == 0 && is_byte;
    if (options_.format == QuantizeFormat::qdq && (opset >= has_blocks || fits_plain))
      dequantize_blocks(entry);
    else
      multiply_bits(entry);
  }

  static void store(void* bytes, int bits, int64_t index, int64_t code) {
    const auto byte = static_cast<uint8_t>(code & ((1 << bits) - 1));
    if (bits == 8)
      static_cast<uint8_t*>(bytes)[index] = byte;
    else
      store_packed(bytes, bits, index, byte);
  }

  static Tensor zeros_of(ElementType type, Shape shape) {
    Tensor tensor(type, std::move(shape));
    std::fill_n(static_cast<uint8_t*>(tensor.mutable_raw()), tensor.bytes(), uint8_t{0});
    return tensor;
  }

  static Tensor packed(ElementType type, Shape shape, const std::vector<int16_t>& codes) {
    Tensor tensor = zeros_of(type, std::move(shape));
    for (size_t i = 0; i < codes.size(); ++i)
      store(tensor.mutable_raw(), bits_of(type), static_cast<int64_t>(i), codes[i]);
    return tensor;
  }

  void dequantize_blocks(const Plan::Entry& entry) {
    ir::Node& node = *entry.node;
    const auto key = std::pair(entry.weight.value, is_transposed(entry));
    ir::Value*& dequantized = blocks_[key];
    if (!dequantized) {
      const BlockedCodes& coded = codes_of(entry);
      ir::Graph& graph = entry.weight.value->graph();
      const std::string& name = entry.weight.value->name;
      const Shape shape{coded.inputs, coded.outputs};
      const bool plain = options_.block_size == 0;
      const Shape scales = plain ? Shape{coded.outputs} : Shape{coded.blocks, coded.outputs};
      ir::Value* zeros = nullptr;
      if (std::ranges::any_of(coded.zeros, [](int16_t zero) { return zero != 0; }))
        zeros = &graph.add_constant(packed(coded.type, scales, coded.zeros), name + "/zero_point");
      dequantized = &add_operator(
          graph, "DequantizeLinear", "",
          {&graph.add_constant(packed(coded.type, shape, coded.codes), name + "/codes"),
           &graph.add_constant(Tensor(scales, std::span<const float>(coded.scales)), name + "/scale"), zeros},
          name + "/dequantized");
      dequantized->producer()->set_attribute({"axis", int64_t{plain ? 1 : 0}});
      if (!plain) dequantized->producer()->set_attribute({"block_size", coded.block});
    }
    node.set_input(1, dequantized);
    if (node.op_type == "Gemm") node.remove_attribute("transB");
  }

  // Codes of an output one after the other, two or four in a byte, the first in its lowest bits.
  static Tensor bytes_of(const BlockedCodes& coded, const std::vector<int16_t>& codes, int64_t rows, Shape shape,
                         int64_t per_row) {
    const int64_t lowest = code_limits(coded.type).low;
    Tensor tensor = zeros_of(ElementType::uint8, std::move(shape));
    auto* bytes = static_cast<uint8_t*>(tensor.mutable_raw());
    for (int64_t o = 0; o < coded.outputs; ++o) {
      for (int64_t i = 0; i < rows; ++i)
        store(bytes + o * per_row, bits_of(coded.type), i, codes[static_cast<size_t>(i * coded.outputs + o)] - lowest);
    }
    return tensor;
  }

  // The node becomes MatMulNBits, with a bias if it had one.
  void multiply_bits(const Plan::Entry& entry) {
    ir::Node& node = *entry.node;
    const BlockedCodes& coded = codes_of(entry);
    const int bits = bits_of(coded.type);
    if (coded.block < 16 || (coded.block & (coded.block - 1)) != 0)
      throw Error(ErrorCode::invalid_argument, fmt::format("MatMulNBits has no blocks of {}", coded.block),
                  "16, 32, 64, 128 and 256 are possible; or an opset from 21 on, which has DequantizeLinear in blocks");
    ir::Graph& graph = node.graph();
    const std::string name = entry.weight.value->name;
    const int64_t block_bytes = coded.block * bits / 8, zero_bytes = (coded.blocks * bits + 7) / 8;
    ir::Value& codes =
        graph.add_constant(bytes_of(coded, coded.codes, coded.inputs, Shape{coded.outputs, coded.blocks, block_bytes},
                                    coded.blocks * block_bytes),
                           name + "/codes");
    std::vector<float> scales;
    for (int64_t o = 0; o < coded.outputs; ++o) {
      for (int64_t b = 0; b < coded.blocks; ++b)
        scales.push_back(coded.scales[static_cast<size_t>(b * coded.outputs + o)]);
    }
    ir::Value& scale = graph.add_constant(Tensor(Shape{coded.outputs * coded.blocks}, std::span<const float>(scales)),
                                          name + "/scale");
    ir::Value* zeros = nullptr;
    if (!options_.symmetric_weights)
      zeros =
          &graph.add_constant(bytes_of(coded, coded.zeros, coded.blocks, Shape{coded.outputs * zero_bytes}, zero_bytes),
                              name + "/zero_point");
    ir::Value* bias = node.op_type == "Gemm" ? node.input(2) : nullptr;
    import_microsoft(model_);
    node.op_type = "MatMulNBits";
    node.domain = std::string(ops::microsoft);
    node.attributes.clear();
    node.remove_trailing_inputs(1);
    for (ir::Value* input : {&codes, &scale, zeros, static_cast<ir::Value*>(nullptr), bias}) node.add_input(input);
    while (!node.input(node.input_count() - 1)) node.remove_trailing_inputs(node.input_count() - 1);
    node.set_attribute({"K", coded.inputs});
    node.set_attribute({"N", coded.outputs});
    node.set_attribute({"bits", static_cast<int64_t>(bits)});
    node.set_attribute({"block_size", coded.block});
  }

  ir::Model& model_;
  const Plan& plan_;
  const QuantizeOptions& options_;
  const Calibration& calibration_;
  BlockCache& cache_;
  ConstantCoder constants_;
  std::map<std::pair<const ir::Value*, bool>, ir::Value*> blocks_;
};

}  // namespace

std::unique_ptr<ir::Model> write_weight_only(const ir::Model& prepared, const KnownTypes& types,
                                             const QuantizeOptions& options, const Calibration& calibration,
                                             const std::set<size_t>& stay_float, BlockCache& cache) {
  std::unique_ptr<ir::Model> model = prepared.clone();
  const Plan plan(*model, types, options, stay_float);
  WeightOnlyWriter(*model, plan, options, calibration, cache).write();
  finish(*model);
  return model;
}

}  // namespace tenon::tools
