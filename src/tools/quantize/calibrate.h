// What activations are like, as runs on samples show.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "tenon/tools/onnx_model.h"
#include "tools/quantize/histogram.h"

namespace tenon::tools {

// Of an activation's channels: the last axis of what MatMul and Gemm read, axis 1 of what Conv reads.
struct ChannelStatistics {
  int axis = -1;
  std::vector<double> sums, largest;  // by channel; largest magnitude
  double count = 0;                   // of numbers in each channel

  void add(const Tensor& tensor);
  double mean(size_t channel) const { return count == 0 ? 0 : sums[channel] / count; }
};

// Sums of products of every two channels of the last axis: what GPTQ weighs errors with.
struct ChannelProducts {
  int64_t channels = 0;
  std::vector<float> sums;  // [channels, channels]
  void add(const Tensor& tensor);
};

struct ObservedTensor {
  Histogram histogram;
  double lows = 0, highs = 0;  // sums of the smallest and of the largest of each time it was made
  int64_t times = 0;
};

// What to look at, by the names of values.
struct Wanted {
  std::set<std::string, std::less<>> ranges;
  std::map<std::string, int, std::less<>> channels;  // with their axis
  std::set<std::string, std::less<>> products;
};

struct Calibration {
  std::map<std::string, ObservedTensor, std::less<>> tensors;
  std::map<std::string, ChannelStatistics, std::less<>> channels;
  std::map<std::string, ChannelProducts, std::less<>> products;
  std::map<std::string, Histogram, std::less<>> inputs;  // of the model, those that are float
  int64_t samples = 0;
  std::vector<NamedValues> kept;  // some of the samples, spread evenly
};

// Runs the model on all samples. Memory does not grow with their number.
Calibration calibrate(const OnnxModel& model, Samples& samples, const Wanted& wanted, const QuantizeOptions& options);

// A few of the samples, spread evenly, that do not take much memory.
class FewSamples {
 public:
  void offer(const NamedValues& sample);
  std::vector<NamedValues> take() { return std::move(kept_); }

 private:
  std::vector<NamedValues> kept_;
  int64_t offered_ = 0, stride_ = 1, bytes_ = 0;
};

// Ranges of activations as a method finds them.
std::map<std::string, Range, std::less<>> ranges_of(const Calibration& calibration, const QuantizeOptions& options);

}  // namespace tenon::tools
