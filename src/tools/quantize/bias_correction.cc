#include "tools/quantize/bias_correction.h"

#include "ops/quantize/codec.h"
#include "tools/quantize/codes.h"

namespace tenon::tools {
namespace {

// Products with a bias that takes it up, and weights that nothing else has.
bool can_be_corrected(const Plan::Entry& entry) {
  return entry.role == Role::product && entry.is_quantized && entry.weight.value && !entry.weight.transpose &&
         entry.node->op_type != "MatMul";
}

int channel_axis(const ir::Node& node) { return node.op_type == "Conv" ? 1 : -1; }

// What the codes of a weight are off by.
std::vector<float> errors_of(const Weight& weight, const QuantizeOptions& options) {
  const Tensor& tensor = weight.value->constant()->tensor;
  const CodedWeight coded = code_weight(tensor, {options.weights, options.symmetric_weights, weight.axis, {}});
  std::vector<float> numbers(static_cast<size_t>(tensor.elements()));
  ops::load_as_float(coded.codes, 0, tensor.elements(), numbers.data());
  int64_t inner = 1;
  for (int i = static_cast<int>(weight.axis) + 1; i < tensor.rank(); ++i) inner *= tensor.dim(i);
  const int64_t channels = coded.scales.elements();
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto channel = channels == 1 ? 0 : static_cast<size_t>((static_cast<int64_t>(i) / inner) % channels);
    float zero = 0;
    if (coded.zeros) ops::load_as_float(*coded.zeros, static_cast<int64_t>(channel), 1, &zero);
    numbers[i] = tensor.data<float>()[i] - (numbers[i] - zero) * coded.scales.data<float>()[channel];
  }
  return numbers;
}

std::vector<double> shift_of_conv(const ir::Node& node, const Tensor& weight, const std::vector<float>& errors,
                                  const ChannelStatistics& input) {
  const int64_t outputs = weight.dim(0), inputs = weight.dim(1), taps = weight.elements() / outputs / inputs;
  const int64_t per_group = outputs / node.int_attribute("group", 1);
  std::vector<double> shift(static_cast<size_t>(outputs));
  for (int64_t o = 0; o < outputs; ++o) {
    for (int64_t i = 0; i < inputs; ++i) {
      double error = 0;
      for (int64_t t = 0; t < taps; ++t)
        error += static_cast<double>(errors[static_cast<size_t>((o * inputs + i) * taps + t)]);
      shift[static_cast<size_t>(o)] += error * input.mean(static_cast<size_t>(o / per_group * inputs + i));
    }
  }
  return shift;
}

std::vector<double> shift_of_gemm(const ir::Node& node, const Tensor& weight, const std::vector<float>& errors,
                                  const ChannelStatistics& input) {
  const bool transposed = node.int_attribute("transB", 0) != 0;
  const int64_t rows = weight.dim(0), columns = weight.dim(1);
  std::vector<double> shift(static_cast<size_t>(transposed ? rows : columns));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      const auto error = static_cast<double>(errors[static_cast<size_t>(r * columns + c)]);
      shift[static_cast<size_t>(transposed ? r : c)] += error * input.mean(static_cast<size_t>(transposed ? c : r));
    }
  }
  return shift;
}

}  // namespace

std::map<std::string, int, std::less<>> channels_to_correct(const Plan& plan) {
  std::map<std::string, int, std::less<>> wanted;
  for (const Plan::Entry& entry : plan.entries()) {
    if (can_be_corrected(entry)) wanted[entry.activation->name] = channel_axis(*entry.node);
  }
  return wanted;
}

std::map<size_t, std::vector<double>> bias_shifts(
    const Plan& plan, const QuantizeOptions& options,
    const std::map<std::string, ChannelStatistics, std::less<>>& channels) {
  std::map<size_t, std::vector<double>> shifts;
  for (size_t i = 0; i < plan.entries().size(); ++i) {
    const Plan::Entry& entry = plan.entries()[i];
    if (!can_be_corrected(entry)) continue;
    const auto input = channels.find(entry.activation->name);
    if (input == channels.end() || input->second.axis != channel_axis(*entry.node)) continue;
    const Tensor& weight = entry.weight.value->constant()->tensor;
    const std::vector<float> errors = errors_of(entry.weight, options);
    shifts[i] = entry.node->op_type == "Conv" ? shift_of_conv(*entry.node, weight, errors, input->second)
                                              : shift_of_gemm(*entry.node, weight, errors, input->second);
  }
  return shifts;
}

}  // namespace tenon::tools
