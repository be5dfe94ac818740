// Kernels of floating-point operators compute in float, or in double when their data is double.
#pragma once

#include <vector>

#include "kernels/half/half.h"
#include "ops/dispatch.h"
#include "provider/kernel.h"

namespace tenon::ops {

// Calls f.operator()<double>() for double and f.operator()<float>() for every other type.
template <typename F>
void dispatch_compute(ElementType type, F&& f) {
  if (type == ElementType::float64) {
    f.template operator()<double>();
  } else {
    f.template operator()<float>();
  }
}

template <typename From, typename To>
void convert_elements(ThreadPool& pool, const From* from, To* to, int64_t count) {
  pool.parallel_for(count, 16 << 10, [=](int64_t begin, int64_t end) {
    if constexpr (std::is_same_v<From, float> && std::is_same_v<To, float16>)
      return kernels::f32_to_f16(from + begin, &to[begin].bits, end - begin);
    if constexpr (std::is_same_v<From, float16> && std::is_same_v<To, float>)
      return kernels::f16_to_f32(&from[begin].bits, to + begin, end - begin);
    if constexpr (std::is_same_v<From, double> && sizeof(To) == 2) {
      for (int64_t i = begin; i < end; ++i) to[i] = To(static_cast<float>(from[i]));
    } else if constexpr (std::is_same_v<To, double> && sizeof(From) == 2) {
      for (int64_t i = begin; i < end; ++i) to[i] = static_cast<float>(from[i]);
    } else {
      for (int64_t i = begin; i < end; ++i) to[i] = static_cast<To>(from[i]);
    }
  });
}

// The elements of a tensor of any floating-point type as T; memory is shared when it has that type already.
template <typename T>
Tensor as_type(const Tensor& tensor, ThreadPool& pool, Allocator& allocator = system_allocator()) {
  if (tensor.type() == element_type_of<T>) return tensor;
  Tensor result(element_type_of<T>, tensor.shape(), allocator);
  dispatch<float, double, float16, bfloat16>(tensor.type(), [&]<typename From>() {
    convert_elements(pool, tensor.data<From>().data(), result.mutable_data<T>().data(), tensor.elements());
  });
  return result;
}

// The inputs and outputs of one run as arrays of T, float or double. Tensors of other floating-point types are
// converted: inputs when asked for, outputs by finish().
template <typename T>
class ComputeArguments {
 public:
  explicit ComputeArguments(KernelRun& run) : run_(run) {}

  // Null when the input is left out.
  const T* in(size_t i) {
    if (!run_.has_input(i)) return nullptr;
    inputs_.push_back(as_type<T>(run_.input(i), run_.threads(), run_.allocator()));
    return inputs_.back().template data<T>().data();
  }
  // Null when nobody wants the output. Its shape must be known.
  T* out(size_t i) {
    if (!run_.wants_output(i)) return nullptr;
    Tensor& output = run_.output(i);
    if (output.type() == element_type_of<T>) return output.mutable_data<T>().data();
    outputs_.push_back({&output, Tensor(element_type_of<T>, output.shape(), run_.allocator())});
    return outputs_.back().computed.template mutable_data<T>().data();
  }
  void finish() {
    for (Converted& output : outputs_) {
      dispatch<float, double, float16, bfloat16>(output.wanted->type(), [&]<typename To>() {
        convert_elements(run_.threads(), output.computed.template data<T>().data(),
                         output.wanted->template mutable_data<To>().data(), output.wanted->elements());
      });
    }
    outputs_.clear();
  }

 private:
  struct Converted {
    Tensor* wanted;
    Tensor computed;
  };
  KernelRun& run_;
  std::vector<Tensor> inputs_;
  std::vector<Converted> outputs_;
};

}  // namespace tenon::ops
