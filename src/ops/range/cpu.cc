#include "ops/range/range.h"

#include <cstring>
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
        // Sums instead of products, which there is no vector instruction for; they wrap around to the same. Vectors by
        // hand: GCC 12 stores an array of sums in wrong places.
        using Sum = std::make_unsigned_t<T>;
        using Sums [[gnu::vector_size(32)]] = Sum;
        constexpr int64_t at_once = 32 / sizeof(Sum);
        Sums sums;
        for (int64_t k = 0; k < at_once; ++k) sums[k] = static_cast<Sum>(first + static_cast<Wide>(begin + k) * step);
        const Sums ahead = Sums{} + static_cast<Sum>(at_once * step);
        int64_t i = begin;
        for (; i + at_once <= end; i += at_once, sums += ahead) std::memcpy(out + i, &sums, sizeof sums);
        std::memcpy(out + i, &sums, static_cast<size_t>(end - i) * sizeof(Sum));
      } else {
        // Vectors of narrow integers become floats in one instruction.
        const auto write = [&]<typename Index>(Index last) {
          for (auto i = static_cast<Index>(begin); i < last; ++i)
            out[i] = static_cast<T>(first + static_cast<Wide>(i) * step);
        };
        end <= std::numeric_limits<int32_t>::max() ? write(static_cast<int32_t>(end)) : write(end);
      }
    });
  });
}

}  // namespace

void cpu_range(CpuKernels& list) { list.add_simple("Range", range); }

}  // namespace tenon::ops
