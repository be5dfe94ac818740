#include "ops/window.h"

#include <algorithm>

#include "base/checked.h"

namespace tenon::ops {
namespace {

// Keeps products of an attribute and a size far from overflow.
constexpr int64_t largest = int64_t{1} << 31;

std::vector<int64_t> read(const ir::Node& node, std::string_view name, int64_t least) {
  std::vector<int64_t> values = node.ints_attribute(name);
  for (int64_t value : values) {
    if (value < least || value > largest) {
      fail(ErrorCode::invalid_attribute, "attribute '{}' has {}; it must be at least {}", name, value, least);
    }
  }
  return values;
}

void check_count(std::string_view name, const std::vector<int64_t>& values, size_t wanted) {
  if (!values.empty() && values.size() != wanted) {
    fail(ErrorCode::invalid_attribute, "attribute '{}' has {} values; the input's spatial axes want {}", name,
         values.size(), wanted);
  }
}

}  // namespace

Dim WindowAxis::output(const Dim& input) const {
  if (auto_pad == AutoPad::same_upper || auto_pad == AutoPad::same_lower) return ceil_div(input, stride);
  Dim begin = auto_pad == AutoPad::valid ? Dim(0) : Dim(pad_begin);
  Dim end = auto_pad == AutoPad::valid ? Dim(0) : Dim(pad_end);
  Dim room = input + begin + end - extent();
  if (!ceil_mode) return floor_div(room, stride) + 1;
  return min(ceil_div(room, stride) + 1, ceil_div(input + begin, stride));
}

std::pair<int64_t, int64_t> WindowAxis::pads(int64_t input, int64_t outputs) const {
  if (auto_pad == AutoPad::explicit_pads) return {pad_begin, pad_end};
  if (auto_pad == AutoPad::valid) return {0, 0};
  int64_t reach = checked_add(checked_mul(outputs - 1, stride), extent().value());
  int64_t total = std::max<int64_t>(0, reach - input), half = total / 2;
  return auto_pad == AutoPad::same_upper ? std::pair(half, total - half) : std::pair(total - half, half);
}

Dim WindowAxis::transposed_output(const Dim& input) const {
  if (auto_pad == AutoPad::same_upper || auto_pad == AutoPad::same_lower) return input * stride;
  Dim full = (input - 1) * stride + output_padding + extent();
  return auto_pad == AutoPad::valid ? full : full - pad_begin - pad_end;
}

int64_t WindowAxis::transposed_pad(int64_t input, int64_t outputs, bool outputs_given) const {
  if (!outputs_given && auto_pad == AutoPad::explicit_pads) return pad_begin;
  if (!outputs_given && auto_pad == AutoPad::valid) return 0;
  int64_t full = checked_add(checked_mul(input - 1, stride), output_padding + extent().value());
  int64_t total = std::max<int64_t>(0, full - outputs);
  return auto_pad == AutoPad::same_upper ? total / 2 : total - total / 2;
}

WindowAttributes::WindowAttributes(const ir::Node& node, std::string_view prefix) {
  const auto name = [&](std::string_view own) { return fmt::format("{}{}", prefix, own); };
  kernel = read(node, name("kernel_shape"), 1);
  strides = read(node, name("strides"), 1);
  dilations = read(node, name("dilations"), 1);
  pads = read(node, name("pads"), 0);
  output_padding = read(node, name("output_padding"), 0);
  ceil_mode = node.int_attribute(name("ceil_mode"), 0) != 0;
  const std::string mode = node.string_attribute(name("auto_pad"), "NOTSET");
  if (mode == "SAME_UPPER")
    auto_pad = AutoPad::same_upper;
  else if (mode == "SAME_LOWER")
    auto_pad = AutoPad::same_lower;
  else if (mode == "VALID")
    auto_pad = AutoPad::valid;
  else if (mode != "NOTSET" && !mode.empty()) {
    fail(ErrorCode::invalid_attribute, "auto_pad is '{}'; it may be NOTSET, SAME_UPPER, SAME_LOWER or VALID", mode);
  }
}

void WindowAttributes::check(int spatial) const {
  auto count = static_cast<size_t>(spatial);
  check_count("kernel_shape", kernel, count);
  check_count("strides", strides, count);
  check_count("dilations", dilations, count);
  check_count("pads", pads, 2 * count);
  check_count("output_padding", output_padding, count);
}

WindowAxis WindowAttributes::axis(int d, int spatial, const Dim& weights_kernel) const {
  auto at = static_cast<size_t>(d);
  WindowAxis result;
  result.kernel = kernel.empty() ? weights_kernel : Dim(kernel[at]);
  if (!strides.empty()) result.stride = strides[at];
  if (!dilations.empty()) result.dilation = dilations[at];
  if (!pads.empty()) {
    result.pad_begin = pads[at];
    result.pad_end = pads[at + static_cast<size_t>(spatial)];
  }
  if (!output_padding.empty()) result.output_padding = output_padding[at];
  result.auto_pad = auto_pad;
  result.ceil_mode = ceil_mode;
  return result;
}

SymbolicShape window_output(const Inference& i, const WindowAttributes& window, const SymbolicShape& kernel,
                            size_t first) {
  const SymbolicShape& x = i.shape(0);
  int spatial = static_cast<int>(x.size()) - 2;
  if (spatial < 1)
    i.fail("the input must have a batch, a channel and at least one spatial axis; it has rank {}", x.size());
  if (spatial > most_spatial) {
    i.fail_with(ErrorCode::unsupported,
                fmt::format("windows over {} spatial axes are not supported; at most {} are", spatial, most_spatial));
  }
  window.check(spatial);
  SymbolicShape result;
  for (int d = 0; d < spatial; ++d) {
    auto at = static_cast<size_t>(d);
    WindowAxis axis = window.axis(d, spatial, at < kernel.size() ? kernel[at] : Dim(1));
    if (at < kernel.size() && axis.kernel.is_known())
      i.equal(axis.kernel, kernel[at], "kernel_shape and the weights' kernel");
    Dim size = axis.output(x[first + at]);
    if (size.is_known() && size.value() < 0) {
      i.fail("the window reaches over {} elements of axis {}, which has only {} with its padding",
             axis.extent().to_string(), first + at, (x[first + at] + axis.pad_begin + axis.pad_end).to_string());
    }
    result.push_back(std::move(size));
  }
  return result;
}

}  // namespace tenon::ops
