#include "ops/range/range.h"

#include <limits>

#include "ops/dispatch.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// Half precision is computed in float, so that long ranges do not stand still; integers where products may wrap around.
void range(KernelRun& run) {
  const Tensor &start = run.input(0), &delta = run.input(2);
  Tensor& y = run.output(0, start.type(), Shape{range_length(start, run.input(1), delta)});
  dispatch<float, double, float16, bfloat16, int16_t, int32_t, int64_t>(start.type(), [&]<typename T>() {
    using Wide = std::conditional_t<std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>, float,
                                    std::conditional_t<std::is_integral_v<T>, uint64_t, T>>;
    auto first = static_cast<Wide>(start.data<T>()[0]), step = static_cast<Wide>(delta.data<T>()[0]);
    T* out = y.mutable_data<T>().data();
    run.threads().parallel_for(y.elements(), 8192, [&](int64_t begin, int64_t end) {
      if constexpr (std::is_integral_v<T>) {
        // Sums instead of products, which there is no vector instruction for; they wrap around to the same. One sum, of
        // the width of the elements: GCC 12 stores several, or wider ones, in wrong places.
        using Sum = std::make_unsigned_t<T>;
        auto sum = static_cast<Sum>(first + static_cast<Wide>(begin) * step);
        for (int64_t i = begin; i < end; ++i) {
          out[i] = static_cast<T>(sum);
          sum = static_cast<Sum>(sum + step);
        }
        return;
      }
      // Vectors of narrow integers become floats in one instruction.
      const auto finish = [&]<typename Index>(Index last) {
        for (auto k = static_cast<Index>(begin); k < last; ++k)
          out[k] = static_cast<T>(first + static_cast<Wide>(k) * step);
      };
      end <= std::numeric_limits<int32_t>::max() ? finish(static_cast<int32_t>(end)) : finish(end);
    });
  });
}

}  // namespace

void cpu_range(CpuKernels& list) { list.add_simple("Range", range); }

}  // namespace tenon::ops
