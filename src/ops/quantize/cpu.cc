#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "kernels/half/half.h"
#include "kernels/quantize/quantize.h"
#include "ops/quantize/codec.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

constexpr int64_t chunk = 4096, elements_per_task = 16 << 10;

std::vector<float> floats_of(const Tensor& tensor) {
  std::vector<float> result(static_cast<size_t>(tensor.elements()));
  load_as_float(tensor, 0, tensor.elements(), result.data());
  return result;
}

// Consecutive elements whose parameters are consecutive (step 1) or one and the same (step 0).
struct Segment {
  int64_t first, count, parameter, step;
};

// How a tensor falls into segments.
class Segments {
 public:
  Segments(const Shape& x, const Shape& scale, int64_t axis, int64_t block) {
    if (scale.rank() == 0 || (scale.rank() == 1 && scale[0] == 1 && block == 0)) {
      kind_ = Kind::tensor;
      inner_ = x.elements();
      count_ = (inner_ + chunk - 1) / chunk;
      return;
    }
    const int a = static_cast<int>(axis < 0 ? axis + x.rank() : axis);
    const int64_t outer = x.elements(0, a);
    size_ = x[a];
    inner_ = x.elements(a + 1, x.rank());
    if (block == 0) {
      kind_ = inner_ == 1 ? Kind::axis_last : Kind::axis;
      count_ = inner_ == 1 ? outer : outer * size_;
      return;
    }
    block_ = std::min(block, std::max<int64_t>(size_, 1));
    blocks_ = scale[a];
    kind_ = inner_ == 1 ? Kind::blocks_last : Kind::blocks;
    count_ = inner_ == 1 ? outer * blocks_ : outer * size_;
  }

  int64_t count() const { return count_; }
  int64_t length() const {
    return kind_ == Kind::tensor        ? chunk
           : kind_ == Kind::axis_last   ? size_
           : kind_ == Kind::blocks_last ? block_
                                        : inner_;
  }

  Segment at(int64_t i) const {
    switch (kind_) {
      case Kind::tensor:
        return {i * chunk, std::min(chunk, inner_ - i * chunk), 0, 0};
      case Kind::axis_last:
        return {i * size_, size_, 0, 1};
      case Kind::axis:
        return {i * inner_, inner_, i % size_, 0};
      case Kind::blocks_last: {
        const int64_t start = i % blocks_ * block_;
        return {i / blocks_ * size_ + start, std::min(block_, size_ - start), i, 0};
      }
      case Kind::blocks:
        return {i * inner_, inner_, (i / size_ * blocks_ + i % size_ / block_) * inner_, 1};
    }
    return {};
  }

 private:
  enum class Kind { tensor, axis, axis_last, blocks, blocks_last } kind_;
  int64_t count_ = 0, inner_ = 1, size_ = 1, block_ = 1, blocks_ = 1;
};

// Rounds to the precision that the division is to have.
void round_to(ElementType precision, float* x, int64_t n) {
  if (precision == ElementType::float16) {
    for (int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(float16(x[i]));
  } else if (precision == ElementType::bfloat16) {
    for (int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(bfloat16(x[i]));
  }
}

// y[i] = (x[i] - zero) * scale, with parameters as in a segment of this step.
template <typename T>
void dequantize_line(const T* __restrict x, float* __restrict y, int64_t n, const float* scale, const float* zero,
                     int64_t step) {
  if (step == 0 && *zero == 0) {
    const float factor = *scale;
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(x[i]) * factor;
  } else if (step == 0) {
    // Zero points have the type of x, so that differences of bytes are exact in 16 bits.
    using Difference = std::conditional_t<sizeof(T) == 1, int16_t, float>;
    const auto shift = static_cast<Difference>(*zero);
    const float factor = *scale;
    for (int64_t i = 0; i < n; ++i) {
      const auto difference = static_cast<Difference>(static_cast<Difference>(x[i]) - shift);
      y[i] = static_cast<float>(difference) * factor;
    }
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = (static_cast<float>(x[i]) - zero[i]) * scale[i];
  }
}

class Linear : public Kernel {
 public:
  explicit Linear(const NodeInfo& info)
      : axis_(info.node().int_attribute("axis", 1)), block_(info.node().int_attribute("block_size", 0)) {}

  void run(KernelRun& run) const override {
    const Tensor &x = run.input(0), &scale = run.input(1);
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    const std::vector<float> scales = floats_of(scale);
    const std::vector<float> zeros = run.has_input(2) ? floats_of(run.input(2)) : std::vector<float>(scales.size());
    if (zeros.size() != scales.size())
      fail(ErrorCode::shape_mismatch, "the zero point has {} elements, the scale {}", zeros.size(), scales.size());
    const Segments segments(x.shape(), scale.shape(), axis_, block_);
    auto body = [&](int64_t begin, int64_t end) {
      float buffer[chunk];
      for (int64_t i = begin; i < end; ++i) {
        const Segment whole = segments.at(i);
        for (int64_t done = 0; done < whole.count; done += chunk) {
          const Segment part{whole.first + done, std::min(chunk, whole.count - done),
                             whole.parameter + done * whole.step, whole.step};
          if (compute_directly(x, y, part, scales, zeros, scale.type())) continue;
          load_as_float(x, part.first, part.count, buffer);
          compute(buffer, part.count, scales.data() + part.parameter, zeros.data() + part.parameter, part.step,
                  scale.type());
          store_from_float(buffer, y, part.first, part.count, saturate_);
        }
      }
    };
    // Neighbours of less than 8 bits share bytes, so that threads would write the same ones.
    if (bits_of(y.type()) < 8) return body(0, segments.count());
    run.threads().parallel_for(segments.count(), 1 + 4 * chunk / std::max<int64_t>(1, segments.length()), body);
  }

 protected:
  virtual void compute(float* x, int64_t n, const float* scale, const float* zero, int64_t step,
                       ElementType scale_type) const = 0;
  // Does the whole of a part in a faster way, or returns false.
  virtual bool compute_directly(const Tensor&, Tensor&, const Segment&, const std::vector<float>&,
                                const std::vector<float>&, ElementType) const {
    return false;
  }
  bool saturate_ = true;

 private:
  int64_t axis_, block_;
};

class QuantizeLinear final : public Linear {
 public:
  explicit QuantizeLinear(const NodeInfo& info)
      : Linear(info), precision_(static_cast<ElementType>(info.node().int_attribute("precision", 0))) {
    saturate_ = info.node().int_attribute("saturate", 1) != 0;
    const ir::Value* output = info.node().output(0);
    whole_ = output && (is_integer(output->type.element));
  }

 private:
  void compute(float* x, int64_t n, const float* scale, const float* zero, int64_t step,
               ElementType scale_type) const override {
    if (step == 0) {
      const float divisor = *scale;
      for (int64_t i = 0; i < n; ++i) x[i] = x[i] / divisor;
    } else {
      for (int64_t i = 0; i < n; ++i) x[i] = x[i] / scale[i];
    }
    round_to(precision_ == ElementType::undefined ? scale_type : precision_, x, n);
    // The quotient is rounded before the zero point is added.
    if (whole_) {
      for (int64_t i = 0; i < n; ++i) x[i] = std::nearbyint(x[i]);
    }
    if (step == 0) {
      const float addend = *zero;
      for (int64_t i = 0; i < n; ++i) x[i] += addend;
    } else {
      for (int64_t i = 0; i < n; ++i) x[i] += zero[i];
    }
  }

  bool compute_directly(const Tensor& x, Tensor& y, const Segment& part, const std::vector<float>& scales,
                        const std::vector<float>& zeros, ElementType scale_type) const override {
    const bool single = (precision_ == ElementType::undefined ? scale_type : precision_) == ElementType::float32;
    const bool is_half = x.type() == ElementType::float16;
    if ((x.type() != ElementType::float32 && !is_half) || !single || part.step != 0) return false;
    float halves[chunk];
    if (is_half) kernels::f16_to_f32(&x.data<float16>()[static_cast<size_t>(part.first)].bits, halves, part.count);
    const float* from = is_half ? halves : x.data<float>().data() + part.first;
    const float scale = scales[static_cast<size_t>(part.parameter)], zero = zeros[static_cast<size_t>(part.parameter)];
    const auto quantize = [&]<typename T>() {
      kernels::quantize(from, y.mutable_data<T>().data() + part.first, part.count, scale, zero);
    };
    if (y.type() == ElementType::uint8)
      quantize.operator()<uint8_t>();
    else if (y.type() == ElementType::int8)
      quantize.operator()<int8_t>();
    else if (y.type() == ElementType::uint16)
      quantize.operator()<uint16_t>();
    else if (y.type() == ElementType::int16)
      quantize.operator()<int16_t>();
    else
      return false;
    return true;
  }

  ElementType precision_;
  bool whole_;
};

class DequantizeLinear final : public Linear {
 public:
  using Linear::Linear;

 private:
  void compute(float* x, int64_t n, const float* scale, const float* zero, int64_t step, ElementType) const override {
    if (step == 0) {
      const float factor = *scale, shift = *zero;
      for (int64_t i = 0; i < n; ++i) x[i] = (x[i] - shift) * factor;
    } else {
      for (int64_t i = 0; i < n; ++i) x[i] = (x[i] - zero[i]) * scale[i];
    }
  }

  bool compute_directly(const Tensor& x, Tensor& y, const Segment& part, const std::vector<float>& scales,
                        const std::vector<float>& zeros, ElementType) const override {
    const bool is_half = y.type() == ElementType::float16;
    if (y.type() != ElementType::float32 && !is_half) return false;
    float halves[chunk];
    float* to = is_half ? halves : y.mutable_data<float>().data() + part.first;
    const float *scale = scales.data() + part.parameter, *zero = zeros.data() + part.parameter;
    const auto dequantize = [&]<typename T>() {
      dequantize_line(x.data<T>().data() + part.first, to, part.count, scale, zero, part.step);
    };
    if (x.type() == ElementType::uint8)
      dequantize.operator()<uint8_t>();
    else if (x.type() == ElementType::int8)
      dequantize.operator()<int8_t>();
    else if (x.type() == ElementType::uint16)
      dequantize.operator()<uint16_t>();
    else if (x.type() == ElementType::int16)
      dequantize.operator()<int16_t>();
    else if (x.type() == ElementType::int32)
      dequantize.operator()<int32_t>();
    else
      return false;
    if (is_half)
      kernels::f32_to_f16(halves, &y.mutable_data<float16>()[static_cast<size_t>(part.first)].bits, part.count);
    return true;
  }
};

std::pair<float, float> range_of(ThreadPool& threads, std::span<const float> x) {
  const auto size = std::ssize(x);
  std::vector<std::pair<float, float>> parts(static_cast<size_t>((size + elements_per_task - 1) / elements_per_task));
  threads.parallel_for(std::ssize(parts), 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const int64_t first = part * elements_per_task;
      parts[static_cast<size_t>(part)] =
          kernels::range_with_zero(x.data() + first, std::min(elements_per_task, size - first));
    }
  });
  std::pair<float, float> result{0, 0};
  for (const auto& [low, high] : parts) result = {std::min(result.first, low), std::max(result.second, high)};
  return result;
}

void run_dynamic_quantize(KernelRun& run) {
  auto x = run.data<float>(0);
  const kernels::ByteQuantization by = kernels::quantization_of(range_of(run.threads(), x));
  if (run.wants_output(1)) run.output(1).mutable_data<float>()[0] = by.scale;
  if (run.wants_output(2)) run.output(2).mutable_data<uint8_t>()[0] = static_cast<uint8_t>(by.zero);
  if (!run.wants_output(0)) return;
  uint8_t* y = run.output(0).mutable_data<uint8_t>().data();
  run.threads().parallel_for(std::ssize(x), elements_per_task, [&](int64_t begin, int64_t end) {
    kernels::quantize(x.data() + begin, y + begin, end - begin, by.scale, by.zero);
  });
}

}  // namespace

void cpu_quantize(CpuKernels& list) {
  list.add("QuantizeLinear", [](const NodeInfo& info) { return std::make_unique<QuantizeLinear>(info); });
  list.add("DequantizeLinear", [](const NodeInfo& info) { return std::make_unique<DequantizeLinear>(info); });
  list.add_simple("DynamicQuantizeLinear", run_dynamic_quantize);
}

}  // namespace tenon::ops
