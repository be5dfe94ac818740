#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/tools/changed_model.h"
#include "tenon/tools/samples.h"

namespace tenon::tools {

enum class QuantizeMode : unsigned char {
  static_,  // weights and activations in integers; the ranges of activations are calibrated with data
  dynamic,  // the same, the ranges are found in every run
  weight_only,
};

enum class QuantizeFormat : unsigned char {
  qdq,        // QuantizeLinear and DequantizeLinear around operators as they were
  qoperator,  // operators on codes: QLinearConv, QLinearMatMul, MatMulNBits, …
};

// How the range that the codes of an activation span follows from the numbers seen.
enum class RangeMethod : unsigned char {
  minmax,          // from the smallest to the largest
  moving_average,  // of the smallest and of the largest of each sample
  percentile,
  entropy,  // the least Kullback-Leibler divergence between numbers and codes
  mse,      // the least squared error
};

// How weights become codes.
enum class WeightMethod : unsigned char {
  round,  // each to the nearest code
  gptq,   // one column after the other, each making up for the errors of those before, as calibration data weighs them
};

// What is known better of a single tensor.
struct TensorOverride {
  std::optional<ElementType> type;
  std::optional<bool> symmetric;
  std::optional<double> low, high;  // the range; a constant's own is that of its numbers
};

// How far the outputs may be off, and who says how far they are.
struct LossBudget {
  // Share of the outputs' power that their error may have, 0.01 is an SQNR of 20 dB; or of the metric's value in float
  // that may be lost. Nodes that cost most of it stay float. None: all is quantized whatever it costs.
  std::optional<double> most = 0.01;
  // Says how good a model is: the larger, the better. None: the error of the outputs decides.
  std::function<double(const OnnxModel&)> metric;
};

struct QuantizeOptions {
  QuantizeMode mode = QuantizeMode::static_;
  QuantizeFormat format = QuantizeFormat::qdq;
  // Types of codes. Activations: uint8, int8, uint16 or int16; weights: int8, uint8, and for weight_only int4, uint4.
  ElementType activations = ElementType::uint8, weights = ElementType::int8;
  bool per_channel = true;             // a scale for each output channel of weights
  bool symmetric_activations = false;  // 0 in the middle of the codes
  bool symmetric_weights = true;
  RangeMethod range = RangeMethod::mse;
  double percentile = 99.99;
  // Nodes by name or operator; '*' stands for any text. `only` are quantized and no others, `keep` stay float.
  std::vector<std::string> only = {}, keep = {};
  std::map<std::string, TensorOverride> overrides = {};
  bool bias_correction = false;
  // SmoothQuant: how much of the differences between channels of activations goes into weights, 0 to 1.
  std::optional<double> smooth;
  WeightMethod weight_method = WeightMethod::round;
  int64_t block_size = 32;  // of rows of a weight that share a scale, for weight_only; 0: all
  LossBudget loss = {};
  // What stays float computes in this type, float32 or float16, in static quantization. None: in float16 where products
  // stay float to hold the budget, all of the model in float16 holds it, and this machine is faster so.
  std::optional<ElementType> float_type = {};
  // Whether both models are run, and what is not faster in integers on this machine stays float.
  bool measure = true;
  SessionOptions session = {};
  // What is being done, and how much of that: 0 to 1.
  std::function<void(const std::string&, double)> progress;
};

// Where the inputs come from. Both are read once, or as often as what was asked for needs.
struct QuantizeData {
  Samples* calibration = nullptr;  // none: random inputs, with a warning
  // That outputs are compared and times are taken with; none: some of the calibration.
  Samples* evaluation = nullptr;
  InputSources random = {};  // shapes and sizes of random inputs
};

// A node that could be quantized.
struct QuantizedNodeReport {
  std::string node, op_type;
  bool is_quantized = false;
  std::string why_float;  // "" if it is quantized
  // Of the model's outputs when this node alone is quantized, in dB; none where that was not measured.
  std::optional<double> sqnr;
  std::optional<double> own_sqnr;  // of what it makes in the quantized model
};

// The range of an activation.
struct RangeReport {
  std::string tensor;
  double seen_low = 0, seen_high = 0;  // in the calibration
  double low = 0, high = 0;            // of the codes
  double scale = 0;
  int64_t zero_point = 0;
  double clipped = 0;  // share of the numbers seen that are outside
};

struct OutputReport {
  std::string output;
  double sqnr = 0, cosine = 0, max_absolute = 0;
};

struct QuantizeReport {
  OnnxModel model;
  int64_t bytes_before = 0, bytes_after = 0;                      // of weights
  std::optional<double> seconds_before = {}, seconds_after = {};  // of a run
  std::vector<OutputReport> outputs = {};                         // over all samples that models are compared on
  double loss = 0;                                                // as the budget counts it
  std::optional<double> metric_before = {}, metric_after = {};
  ElementType float_type = ElementType::float32;  // in which what stays float computes
  int64_t samples = 0, evaluated = 0;             // of calibration, and those that models are compared on
  std::vector<QuantizedNodeReport> nodes = {};
  std::vector<RangeReport> ranges = {};
  std::vector<std::string> warnings = {};

  int64_t quantized_nodes() const;
};

// A model that computes in integers, in the opset it had. Throws ErrorCode::unsupported where that lacks what it takes,
// ErrorCode::invalid_argument for options that do not fit together, ErrorCode::unknown_name for an entry of `only`,
// `keep` or `overrides` that fits nothing.
QuantizeReport quantize(const OnnxModel& model, const QuantizeOptions& options, const QuantizeData& data = {});

// "static", "weight-only", …; and what a name stands for. Throw ErrorCode::invalid_argument, with the nearest name.
std::string_view name_of(QuantizeMode mode);
std::string_view name_of(QuantizeFormat format);
std::string_view name_of(RangeMethod method);
std::string_view name_of(WeightMethod method);
QuantizeMode quantize_mode(std::string_view name);
QuantizeFormat quantize_format(std::string_view name);
RangeMethod range_method(std::string_view name);
WeightMethod weight_method(std::string_view name);
// The type of codes with this name: "uint8".
ElementType code_type(std::string_view name);
// The type that what stays float computes in: "float32", "float16".
ElementType float_type(std::string_view name);

// For people; and for programs, as a JSON document; and as a page of HTML.
std::string to_text(const QuantizeReport& report);
std::string to_json(const QuantizeReport& report);
std::string to_html(const QuantizeReport& report, const std::string& title);

}  // namespace tenon::tools
