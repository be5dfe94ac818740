#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/dispatch.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

double mel(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double hertz(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

double frequency(const KernelRun& run, size_t input, const char* name) {
  const Tensor& tensor = run.input(input);
  if (tensor.elements() != 1)
    fail(ErrorCode::shape_mismatch, "{} must be one number, it has {}", name, tensor.elements());
  double value = 0;
  dispatch<float, double, float16, bfloat16>(tensor.type(), [&]<typename T>() {
    using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
    value = static_cast<double>(static_cast<Wide>(tensor.data<T>()[0]));
  });
  if (!std::isfinite(value) || value < 0)
    fail(ErrorCode::invalid_value, "{} is {}; it must be at least 0", name, value);
  return value;
}

// The bins at which the triangles of the bands begin, peak and end: band b has edges b, b + 1 and b + 2.
class Edges {
 public:
  Edges(const KernelRun& run, int64_t bands, int64_t bins) : bins_(bins) {
    const double low = frequency(run, 3, "lower_edge_hertz");
    high_ = frequency(run, 4, "upper_edge_hertz");
    if (low > high_) fail(ErrorCode::invalid_value, "lower_edge_hertz is {}, above upper_edge_hertz, {}", low, high_);
    first_ = mel(low);
    step_ = (mel(high_) - first_) / static_cast<double>(bands + 2);
    length_ = static_cast<double>(run.ints(1)[0]);
    rate_ = static_cast<double>(run.ints(2)[0]);
  }

  int64_t operator[](int64_t k) const {
    const double bin = std::floor((length_ + 1) * hertz(first_ + static_cast<double>(k) * step_) / rate_);
    if (bin >= static_cast<double>(bins_)) {
      fail(ErrorCode::invalid_value, "upper_edge_hertz is {}, beyond the {} bins of the spectrum", high_, bins_);
    }
    return static_cast<int64_t>(std::max(bin, 0.0));
  }

 private:
  int64_t bins_;
  double high_ = 0, first_ = 0, step_ = 0, length_ = 0, rate_ = 0;
};

void mel_weight_matrix(KernelRun& run) {
  Tensor& y = run.output(0);
  const int64_t bins = y.dim(0), bands = y.dim(1);
  if (y.elements() > 0) std::memset(y.mutable_raw(), 0, static_cast<size_t>(y.bytes()));
  if (bands == 0) return;
  const Edges edges(run, bands, bins);
  dispatch<float, double, float16, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(
      y.type(), [&]<typename T>() {
        T* out = y.mutable_data<T>().data();
        using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
        auto set = [&](int64_t bin, int64_t band, int64_t part, int64_t whole) {
          out[bin * bands + band] =
              static_cast<T>(static_cast<Wide>(static_cast<double>(part) / static_cast<double>(whole)));
        };
        int64_t begin = edges[0], peak = edges[1];
        for (int64_t band = 0; band < bands; ++band) {
          const int64_t end = edges[band + 2];
          for (int64_t bin = begin; bin < peak; ++bin) set(bin, band, bin - begin, peak - begin);
          set(peak, band, 1, 1);
          for (int64_t bin = peak + 1; bin < end; ++bin) set(bin, band, end - bin, end - peak);
          begin = peak;
          peak = end;
        }
      });
}

}  // namespace

void cpu_mel_weight_matrix(CpuKernels& list) { list.add_simple("MelWeightMatrix", mel_weight_matrix); }

}  // namespace tenon::ops
