#include <algorithm>
#include <mutex>

#include "kernels/fft/fft.h"
#include "ops/cpu_support/axis_view.h"
#include "ops/cpu_support/compute_type.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

using kernels::Fft;

// The plan of the length that a node had last, which is nearly always the one it has next.
class LastPlan {
 public:
  template <typename T>
  std::shared_ptr<const Fft<T>> get(KernelRun& run, int64_t length) const {
    auto& last = std::get<std::shared_ptr<const Fft<T>>>(plans_);
    {
      std::lock_guard lock(mutex_);
      if (last && last->length() == length) return last;
    }
    // Counts the tables among the run's memory while they are made: the length may be larger than the signal.
    auto reserved = run.scratch(Fft<T>::table_size(length) * static_cast<int64_t>(sizeof(T)));
    auto plan = std::make_shared<const Fft<T>>(length);
    std::lock_guard lock(mutex_);
    return last = std::move(plan);
  }

 private:
  mutable std::mutex mutex_;
  mutable std::tuple<std::shared_ptr<const Fft<float>>, std::shared_ptr<const Fft<double>>> plans_;
};

// For each row: load(row, real, imaginary), the transform, store(row, real, imaginary).
template <typename T, typename Load, typename Store>
void transform_rows(KernelRun& run, const Fft<T>& fft, int64_t rows, bool inverse, const Load& load,
                    const Store& store) {
  const int64_t n = fft.length(), grain = std::max<int64_t>(1, (8 << 10) / n);
  run.threads().parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    auto memory = run.scratch((2 * n + fft.work_size()) * static_cast<int64_t>(sizeof(T)));
    T *real = static_cast<T*>(memory.get()), *imaginary = real + n, *work = imaginary + n;
    for (int64_t row = begin; row < end; ++row) {
      load(row, real, imaginary);
      if (inverse) {
        fft.transform(imaginary, real, work);
      } else {
        fft.transform(real, imaginary, work);
      }
      store(row, real, imaginary);
    }
  });
}

// The second half of the spectrum of a real signal, from the first.
template <typename T>
void complete_spectrum(T* real, T* imaginary, int64_t n) {
  imaginary[0] = 0;
  if (n % 2 == 0) imaginary[n / 2] = 0;
  for (int64_t k = 1; k <= (n - 1) / 2; ++k) {
    real[n - k] = real[k];
    imaginary[n - k] = -imaginary[k];
  }
}

class Dft final : public Kernel {
 public:
  explicit Dft(const NodeInfo& info)
      : inverse_(info.node().int_attribute("inverse", 0) != 0),
        onesided_(info.node().int_attribute("onesided", 0) != 0) {}

  void run(KernelRun& run) const override {
    if (run.output(0).elements() == 0) return;
    dispatch_compute(run.input(0).type(), [&]<typename T>() { compute<T>(run); });
  }

 private:
  template <typename T>
  void compute(KernelRun& run) const {
    const Shape& shape = run.input(0).shape();
    const int64_t parts = shape[shape.rank() - 1];
    const int64_t axis = run.has_input(2) ? run.ints(2)[0] : -2;
    const AxisView view(shape, axis);
    const int64_t inner = view.inner / parts;
    const AxisView result(run.output(0).shape(), axis);
    const bool to_real = onesided_ && inverse_;
    int64_t n = to_real ? 2 * (view.size - 1) : view.size;
    if (run.has_input(1)) n = run.ints(1)[0];

    ComputeArguments<T> arguments(run);
    const T* x = arguments.in(0);
    T* y = arguments.out(0);
    const int64_t used = std::min(view.size, to_real ? n / 2 + 1 : n);
    auto load = [&](int64_t row, T* real, T* imaginary) {
      const T* from = x + (row / inner * view.size * inner + row % inner) * parts;
      for (int64_t k = 0; k < used; ++k, from += inner * parts) {
        real[k] = from[0];
        imaginary[k] = parts == 2 ? from[1] : T(0);
      }
      std::fill(real + used, real + n, T(0));
      std::fill(imaginary + used, imaginary + n, T(0));
      if (to_real) complete_spectrum(real, imaginary, n);
    };
    const int64_t parts_out = to_real ? 1 : 2;
    const T scale = inverse_ ? T(1) / static_cast<T>(n) : T(1);
    auto store = [&](int64_t row, const T* real, const T* imaginary) {
      T* to = y + (row / inner * result.size * inner + row % inner) * parts_out;
      for (int64_t k = 0; k < result.size; ++k, to += inner * parts_out) {
        to[0] = real[k] * scale;
        if (!to_real) to[1] = imaginary[k] * scale;
      }
    };
    transform_rows(run, *plan_.get<T>(run, n), view.outer * inner, inverse_, load, store);
    arguments.finish();
  }

  bool inverse_, onesided_;
  LastPlan plan_;
};

class Stft final : public Kernel {
 public:
  void run(KernelRun& run) const override {
    if (run.output(0).elements() == 0) return;
    dispatch_compute(run.input(0).type(), [&]<typename T>() { compute<T>(run); });
  }

 private:
  template <typename T>
  void compute(KernelRun& run) const {
    const Shape& shape = run.input(0).shape();
    const int64_t samples = shape[1], parts = shape.rank() == 2 ? 1 : shape[2], step = run.ints(1)[0];
    const int64_t frames = run.output(0).dim(1), bins = run.output(0).dim(2);
    int64_t n = samples;
    if (run.has_input(3)) n = run.ints(3)[0];
    if (run.has_input(2)) n = run.input(2).elements();

    ComputeArguments<T> arguments(run);
    const T *signal = arguments.in(0), *window = arguments.in(2);
    T* y = arguments.out(0);
    auto load = [&](int64_t row, T* real, T* imaginary) {
      const T* from = signal + (row / frames * samples + row % frames * step) * parts;
      for (int64_t k = 0; k < n; ++k) {
        const T weight = window ? window[k] : T(1);
        real[k] = from[k * parts] * weight;
        imaginary[k] = parts == 2 ? from[k * parts + 1] * weight : T(0);
      }
    };
    auto store = [&](int64_t row, const T* real, const T* imaginary) {
      T* to = y + row * bins * 2;
      for (int64_t k = 0; k < bins; ++k) {
        to[2 * k] = real[k];
        to[2 * k + 1] = imaginary[k];
      }
    };
    transform_rows(run, *plan_.get<T>(run, n), shape[0] * frames, false, load, store);
    arguments.finish();
  }

  LastPlan plan_;
};

}  // namespace

void cpu_dft(CpuKernels& list) {
  list.add("DFT", [](const NodeInfo& info) { return std::make_unique<Dft>(info); });
  list.add("STFT", [](const NodeInfo&) { return std::make_unique<Stft>(); });
}

}  // namespace tenon::ops
