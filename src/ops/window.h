// The attributes of operators that slide a window over an image: kernel_shape, strides, dilations, pads, auto_pad.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "ops/inference.h"

namespace tenon::ops {

enum class AutoPad : uint8_t { explicit_pads, same_upper, same_lower, valid };

// One spatial axis.
struct WindowAxis {
  Dim kernel = 1;
  int64_t stride = 1, dilation = 1, pad_begin = 0, pad_end = 0, output_padding = 0;
  AutoPad auto_pad = AutoPad::explicit_pads;
  bool ceil_mode = false;

  // How far a window reaches.
  Dim extent() const { return (kernel - 1) * dilation + 1; }
  // Windows that fit. In ceil mode the last one may reach past the padding but starts before the padding at the end.
  Dim output(const Dim& input) const;
  // The padding on both sides for numbers of inputs and outputs.
  std::pair<int64_t, int64_t> pads(int64_t input, int64_t outputs) const;
  // The same for a transposed convolution, whose outputs are where the inputs of a convolution are.
  Dim transposed_output(const Dim& input) const;
  int64_t transposed_pad(int64_t input, int64_t outputs, bool outputs_given) const;
};

struct WindowAttributes {
  std::vector<int64_t> kernel, strides, dilations, pads, output_padding;
  AutoPad auto_pad = AutoPad::explicit_pads;
  bool ceil_mode = false;

  // Throws ErrorCode::invalid_attribute on negative or senseless values. Names of attributes may begin with a prefix.
  explicit WindowAttributes(const ir::Node& node, std::string_view prefix = "");
  // Throws unless the lists have `spatial` entries (pads two for each) or are absent; a kernel only where one is given.
  void check(int spatial) const;
  // Axis `d` of `spatial`; `weights_kernel` when kernel_shape is absent.
  WindowAxis axis(int d, int spatial, const Dim& weights_kernel = 1) const;
};

// The most spatial axes that kernels take.
inline constexpr int most_spatial = 3;

// The spatial sizes that a window operator makes of input 0, whose first spatial axis is `first`; fails on images
// smaller than the window. `kernel` is that of the weights, if there are any.
SymbolicShape window_output(const Inference& i, const WindowAttributes& window, const SymbolicShape& kernel,
                            size_t first = 2);

}  // namespace tenon::ops
