#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "kernels/conv/depthwise.h"
#include "kernels/conv_int8/conv_int8.h"
#include "kernels/quantize/requantize.h"
#include "kernels/scratch.h"
#include "ops/cpu_support/conv_shape.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

std::vector<int32_t> ints_of(const Tensor& tensor) {
  std::vector<int32_t> result;
  dispatch<int8_t, uint8_t>(tensor.type(),
                            [&]<typename T>() { result.assign(tensor.data<T>().begin(), tensor.data<T>().end()); });
  return result;
}

// The zero points of `x`: one for all or one for each index of its first axis.
std::vector<int32_t> zero_points(const Tensor& x, const Tensor& zero_point) {
  std::vector<int32_t> zeros = ints_of(zero_point);
  if (zeros.size() != 1 && static_cast<int64_t>(zeros.size()) != x.dim(0)) {
    fail(ErrorCode::shape_mismatch, "a zero point has {} elements; it may have 1 or {}", zeros.size(), x.dim(0));
  }
  return zeros;
}

// The elements of `x` less their zero points.
std::vector<int32_t> centered(const Tensor& x, const Tensor* zero_point) {
  std::vector<int32_t> result = ints_of(x);
  if (!zero_point || result.empty()) return result;
  const std::vector<int32_t> zeros = zero_points(x, *zero_point);
  const size_t step = result.size() / zeros.size();
  for (size_t block = 0; block < zeros.size(); ++block) {
    int32_t* __restrict at = result.data() + block * step;
    const int32_t zero = zeros[block];
    for (size_t i = 0; i < step; ++i) at[i] -= zero;
  }
  return result;
}

bool is_signed(const Tensor& tensor) { return tensor.type() == ElementType::int8; }

class IntegerConv : public Kernel {
 public:
  IntegerConv(const NodeInfo& info, size_t w_input, size_t w_zero_input)
      : window_(info.node()),
        groups_(info.node().int_attribute("group", 1)),
        w_input_(w_input),
        w_zero_input_(w_zero_input) {
    const bool constant_zero = !info.node().input(w_zero_input) || info.constant(w_zero_input);
    const Tensor* w = info.constant(w_input);
    if (!w || !constant_zero || w->rank() < 3 || w->elements() == 0 || groups_ < 1 || w->dim(0) % groups_ != 0) return;
    kernels::ConvShape shape;
    shape.in_channels = w->dim(1) * groups_;
    shape.out_channels = w->dim(0);
    shape.groups = groups_;
    shape.kernel[2] = w->shape().elements(2, w->rank());
    const Tensor* zero = info.constant(w_zero_input);
    const std::string layout = fmt::format("{} groups", groups_);
    if (exact_in_floats(shape)) {
      exact_weights_ = info.packed<kernels::PackedConvWeights>(
          {w_input, w_zero_input}, layout,
          [&](PackedStorage& storage) { return packed_floats(info.threads(), shape, *w, zero, storage); });
    } else if (by_gemm(shape)) {
      weights_ = info.packed<kernels::PackedByteConvWeights>(
          {w_input, w_zero_input}, layout,
          [&](PackedStorage& storage) { return packed(info.threads(), shape, *w, zero, storage); });
    }
  }

 protected:
  // What is done with the sums of one plane of the output, to which `addend` is still to be added.
  using StorePlane = FunctionRef<void(int64_t plane, const float* sums, int32_t addend)>;

  // Sums of products, plus `bias` unless it is null, into `sums`; or, where floats hold them exactly, to `store`. Says
  // whether it was that.
  bool convolve(KernelRun& run, size_t x_zero_input, const int32_t* bias, int32_t* sums, StorePlane store) const {
    const Tensor &x = run.input(0), &w = run.input(w_input_);
    const Tensor* x_zero = run.has_input(x_zero_input) ? &run.input(x_zero_input) : nullptr;
    const Tensor* w_zero = run.has_input(w_zero_input_) ? &run.input(w_zero_input_) : nullptr;
    if (x_zero && x_zero->elements() != 1)
      fail(ErrorCode::shape_mismatch, "x_zero_point has {} elements; it must have 1", x_zero->elements());
    const auto shape = conv_shape(window_, groups_, x.shape(), w.shape(), run.output(0).shape());
    const int32_t zero = x_zero ? ints_of(*x_zero)[0] : 0;
    if (w.elements() > 0 && exact_in_floats(shape)) {
      if (exact_weights_)
        convolve_floats(run, shape, zero, *exact_weights_, bias, store);
      else
        convolve_floats(run, shape, zero, packed_floats(run.threads(), shape, w, w_zero), bias, store);
      return true;
    }
    if (w.elements() == 0 || !by_gemm(shape))
      conv_any<int32_t>(run.threads(), shape, centered(x, x_zero).data(), centered(w, w_zero).data(), bias, sums);
    else if (weights_)
      kernels::conv_int8(run.threads(), shape, x.raw(), is_signed(x), zero, *weights_, bias, sums);
    else
      kernels::conv_int8(run.threads(), shape, x.raw(), is_signed(x), zero, packed(run.threads(), shape, w, w_zero),
                         bias, sums);
    return false;
  }

 private:
  // A product with one row does too little with what was arranged for it.
  static bool by_gemm(const kernels::ConvShape& shape) { return shape.out_channels > shape.groups; }

  // The largest sum of products of 8-bit numbers.
  static int64_t largest_sum(const kernels::ConvShape& shape) {
    constexpr int64_t largest_product = 255 * 255;
    return largest_product * shape.kernel_size() * (shape.in_channels / shape.groups);
  }

  // Sums of few products of 8-bit numbers are whole numbers that floats hold exactly, in any order of summation. With
  // one output channel a group, the kernel for floats is the faster one.
  static constexpr int64_t exact_below = 1 << 24;
  static bool exact_in_floats(const kernels::ConvShape& shape) {
    return !by_gemm(shape) && shape.groups > 0 && largest_sum(shape) < exact_below;
  }

  // As floats, if all sums that begin with them are exact; else none.
  static std::vector<float> exact_bias(const kernels::ConvShape& shape, const int32_t* bias) {
    if (!bias) return {};
    const std::span values(bias, static_cast<size_t>(shape.out_channels));
    const int64_t most = exact_below - 1 - largest_sum(shape);
    const auto is_small = [&](int64_t value) { return -most <= value && value <= most; };
    return std::ranges::all_of(values, is_small) ? std::vector<float>(values.begin(), values.end())
                                                 : std::vector<float>();
  }

  static kernels::PackedConvWeights packed_floats(ThreadPool& threads, const kernels::ConvShape& shape, const Tensor& w,
                                                  const Tensor* w_zero, PackedStorage& storage = fresh_storage()) {
    if (!storage.fills()) return {threads, shape, static_cast<const float*>(w.raw()), storage};
    const std::vector<int32_t> values = centered(w, w_zero);
    return {threads, shape, std::vector<float>(values.begin(), values.end()).data(), storage};
  }

  static void convolve_floats(KernelRun& run, const kernels::ConvShape& shape, int32_t zero,
                              const kernels::PackedConvWeights& weights, const int32_t* bias, StorePlane store) {
    const Tensor& x = run.input(0);
    const std::vector<float> own_bias = exact_bias(shape, bias);
    const float* first = own_bias.empty() ? nullptr : own_bias.data();
    const int32_t* rest = first ? nullptr : bias;
    const auto store_plane = [&](int64_t plane, const float* sums) {
      store(plane, sums, rest ? rest[plane % shape.out_channels] : 0);
    };
    if (weights.depthwise())
      return kernels::conv_depthwise_bytes(run.threads(), shape, x.raw(), is_signed(x), zero, weights.depthwise(),
                                           first, store_plane);
    const int64_t size = shape.output_size(), planes = shape.batch * shape.out_channels;
    const kernels::Scratch memory(static_cast<size_t>(x.elements() + planes * size) * sizeof(float));
    float *in = memory.as<float>(), *out = in + x.elements();
    dispatch<int8_t, uint8_t>(x.type(), [&]<typename T>() {
      const T* from = x.data<T>().data();
      run.threads().parallel_for(x.elements(), cheap_grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) in[i] = static_cast<float>(from[i] - zero);
      });
    });
    kernels::conv(run.threads(), shape, in, weights, out, {.bias = first});
    run.threads().parallel_for(planes, 1 + cheap_grain / (size + 1), [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) store_plane(plane, out + plane * size);
    });
  }

  static kernels::PackedByteConvWeights packed(ThreadPool& threads, const kernels::ConvShape& shape, const Tensor& w,
                                               const Tensor* w_zero, PackedStorage& storage = fresh_storage()) {
    const std::vector<int32_t> zeros = w_zero && storage.fills() ? zero_points(w, *w_zero) : std::vector<int32_t>{0};
    return kernels::PackedByteConvWeights(threads, shape, w.raw(), is_signed(w),
                                          kernels::ByteZeroPoints{zeros.data(), zeros.size() > 1},
                                          kernels::int8_kernels(), storage);
  }

  WindowAttributes window_;
  int64_t groups_;
  size_t w_input_, w_zero_input_;
  std::shared_ptr<const kernels::PackedByteConvWeights> weights_;
  std::shared_ptr<const kernels::PackedConvWeights> exact_weights_;
};

class ConvInteger final : public IntegerConv {
 public:
  explicit ConvInteger(const NodeInfo& info) : IntegerConv(info, 1, 3) {}
  void run(KernelRun& run) const override {
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    int32_t* to = y.mutable_data<int32_t>().data();
    const int64_t size = y.shape().elements(2, y.rank());
    convolve(run, 2, nullptr, to, [&](int64_t plane, const float* sums, int32_t) {
      std::transform(sums, sums + size, to + plane * size, [](float sum) { return static_cast<int32_t>(sum); });
    });
  }
};

class QLinearConv final : public IntegerConv {
 public:
  explicit QLinearConv(const NodeInfo& info) : IntegerConv(info, 3, 5) {}

  void run(KernelRun& run) const override {
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    for (size_t input : {1, 6, 7}) {
      if (run.input(input).elements() != 1)
        fail(ErrorCode::shape_mismatch, "input {} has {} elements; it must have 1", input, run.input(input).elements());
    }
    const auto w_scale = run.data<float>(4);
    if (w_scale.size() != 1 && static_cast<int64_t>(w_scale.size()) != y.dim(1)) {
      fail(ErrorCode::shape_mismatch, "w_scale has {} elements; it may have 1 or {}", w_scale.size(), y.dim(1));
    }
    dispatch<int8_t, uint8_t>(y.type(), [&]<typename T>() { compute<T>(run); });
  }

 private:
  template <typename T>
  void compute(KernelRun& run) const {
    Tensor& y = run.output(0);
    const int64_t channels = y.dim(1), size = y.shape().elements(2, y.rank());
    const auto w_scale = run.data<float>(4);
    const T zero = run.data<T>(7)[0];
    T* to = y.mutable_data<T>().data();
    const auto store = [&](int64_t plane, const auto* sums, int32_t addend) {
      const size_t channel = w_scale.size() == 1 ? 0 : static_cast<size_t>(plane % channels);
      const float scale = run.data<float>(1)[0] * w_scale[channel] / run.data<float>(6)[0];
      kernels::requantize(sums, addend, {&scale, 0}, zero, to + plane * size, size);
    };
    const int32_t* bias = run.has_input(8) ? run.data<int32_t>(8).data() : nullptr;
    const kernels::Scratch sums(static_cast<size_t>(y.elements()) * sizeof(int32_t));
    const int32_t* from = sums.as<int32_t>();
    if (convolve(run, 2, bias, sums.as<int32_t>(), store)) return;
    run.threads().parallel_for(y.dim(0) * channels, 1 + cheap_grain / (size + 1), [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) store(plane, from + plane * size, 0);
    });
  }
};

}  // namespace

void cpu_conv_integer(CpuKernels& list) {
  list.add("ConvInteger", [](const NodeInfo& info) { return std::make_unique<ConvInteger>(info); });
  list.add("QLinearConv", [](const NodeInfo& info) { return std::make_unique<QLinearConv>(info); });
}

}  // namespace tenon::ops
