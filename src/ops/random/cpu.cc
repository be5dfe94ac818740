#include <algorithm>
#include <cmath>

#include "kernels/math/math.h"
#include "ops/cpu_support/compute_type.h"
#include "ops/cpu_support/random_seed.h"
#include "ops/elementwise.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

using kernels::RandomNumbers;

enum class Distribution : uint8_t { uniform, normal };

// RandomUniform, RandomNormal and their Likes: shift + scale * number.
class Random final : public Kernel {
 public:
  Random(const NodeInfo& info, Distribution distribution) : seed_(info.node()), distribution_(distribution) {
    const ir::Node& node = info.node();
    if (distribution == Distribution::normal) {
      shift_ = node.float_attribute("mean", 0);
      scale_ = node.float_attribute("scale", 1);
    } else {
      shift_ = node.float_attribute("low", 0);
      scale_ = static_cast<double>(node.float_attribute("high", 1)) - shift_;
    }
  }

  void run(KernelRun& run) const override {
    Tensor& y = run.output(0);
    const RandomNumbers numbers = seed_.numbers();
    dispatch<float, double, float16, bfloat16>(y.type(), [&]<typename T>() {
      T* out = y.mutable_data<T>().data();
      run.threads().parallel_for(y.elements(), costly_grain,
                                 [&](int64_t begin, int64_t end) { draw(numbers, begin, out + begin, end - begin); });
    });
  }

 private:
  template <typename T>
  void draw(const RandomNumbers& numbers, int64_t first, T* y, int64_t n) const {
    using C = Compute<T>;
    constexpr int64_t block = 512;
    C drawn[block];
    const C shift = static_cast<C>(shift_), scale = static_cast<C>(scale_);
    for (int64_t begin = 0; begin < n; begin += block) {
      const int64_t size = std::min(block, n - begin);
      if (distribution_ == Distribution::normal) {
        numbers.normal(first + begin, drawn, size);
      } else {
        numbers.uniform(first + begin, drawn, size);
      }
      for (int64_t i = 0; i < size; ++i) y[begin + i] = static_cast<T>(shift + scale * drawn[i]);
    }
  }

  RandomSeed seed_;
  Distribution distribution_;
  double shift_, scale_;
};

// 1 with the probability that the input gives, else 0.
class Bernoulli final : public Kernel {
 public:
  explicit Bernoulli(const NodeInfo& info) : seed_(info.node()) {}

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    Tensor& y = run.output(0);
    const RandomNumbers numbers = seed_.numbers();
    dispatch<float, double, float16, bfloat16>(x.type(), [&]<typename From>() {
      const From* probability = x.data<From>().data();
      dispatch<bool, float, double, float16, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
               uint64_t>(y.type(), [&]<typename To>() {
        To* out = y.mutable_data<To>().data();
        run.threads().parallel_for(x.elements(), costly_grain, [&](int64_t begin, int64_t end) {
          draw(numbers, begin, probability + begin, out + begin, end - begin);
        });
      });
    });
  }

 private:
  template <typename From, typename To>
  static void draw(const RandomNumbers& numbers, int64_t first, const From* probability, To* y, int64_t n) {
    using C = Compute<From>;
    constexpr int64_t block = 512;
    C drawn[block];
    const To one = static_cast<To>(1.0f), zero = static_cast<To>(0.0f);
    for (int64_t begin = 0; begin < n; begin += block) {
      const int64_t size = std::min(block, n - begin);
      numbers.uniform(first + begin, drawn, size);
      for (int64_t i = 0; i < size; ++i) y[begin + i] = drawn[i] < static_cast<C>(probability[begin + i]) ? one : zero;
    }
  }

  RandomSeed seed_;
};

// Draws classes whose logarithmic probabilities, up to a constant, are the rows of the input.
class Multinomial final : public Kernel {
 public:
  explicit Multinomial(const NodeInfo& info) : seed_(info.node()) {}

  void run(KernelRun& run) const override {
    const Shape& shape = run.input(0).shape();
    Tensor& y = run.output(0);
    const int64_t classes = shape[1], samples = y.dim(1);
    const RandomNumbers numbers = seed_.numbers();
    void* out = y.mutable_raw();
    dispatch_compute(run.input(0).type(), [&]<typename T>() {
      const Tensor logarithms = as_type<T>(run.input(0), run.threads(), run.allocator());
      const T* x = logarithms.data<T>().data();
      run.threads().parallel_for(shape[0], 1, [&](int64_t begin, int64_t end) {
        auto memory = run.scratch(classes * static_cast<int64_t>(sizeof(double)));
        std::span<double> sums(static_cast<double*>(memory.get()), static_cast<size_t>(classes));
        std::vector<double> drawn(static_cast<size_t>(samples));
        for (int64_t row = begin; row < end; ++row) {
          accumulate(x + row * classes, sums, row);
          numbers.uniform(row * samples, drawn.data(), samples);
          pick_all(drawn, sums, y.type(), out, row * samples);
        }
      });
    });
  }

 private:
  static void exponentials(const float* x, float* y, int64_t n) { kernels::f32_exp(x, y, n); }
  static void exponentials(const double* x, double* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = std::exp(x[i]);
  }

  // The sums of the probabilities of the classes up to each.
  template <typename T>
  static void accumulate(const T* x, std::span<double> sums, int64_t row) {
    constexpr int64_t block = 256;
    const int64_t classes = std::ssize(sums);
    T most = -INFINITY, probabilities[block];
    for (int64_t i = 0; i < classes; ++i) most = most < x[i] ? x[i] : most;
    double sum = 0;
    for (int64_t begin = 0; begin < classes; begin += block) {
      const int64_t n = std::min(block, classes - begin);
      for (int64_t i = 0; i < n; ++i) probabilities[i] = x[begin + i] - most;
      exponentials(probabilities, probabilities, n);
      for (int64_t i = 0; i < n; ++i)
        sums[static_cast<size_t>(begin + i)] = sum += static_cast<double>(probabilities[i]);
    }
    if (!(sum > 0) || !std::isfinite(sum))
      fail(ErrorCode::invalid_value, "row {} gives no class a probability between 0 and 1", row);
  }

  static void pick_all(const std::vector<double>& drawn, std::span<const double> sums, ElementType type, void* to,
                       int64_t first) {
    dispatch<int32_t, int64_t>(type, [&]<typename T>() {
      T* out = static_cast<T*>(to) + first;
      for (double number : drawn) *out++ = static_cast<T>(pick(number, sums));
    });
  }

  static int64_t pick(double number, std::span<const double> sums) {
    auto place = std::ranges::upper_bound(sums, number * sums.back());
    // The product may have been rounded up to the whole.
    if (place == sums.end()) place = std::ranges::lower_bound(sums, sums.back());
    return place - sums.begin();
  }

  RandomSeed seed_;
};

}  // namespace

void cpu_random(CpuKernels& list) {
  auto add = [&](const char* name, Distribution distribution) {
    list.add(name, [=](const NodeInfo& info) { return std::make_unique<Random>(info, distribution); });
  };
  add("RandomUniform", Distribution::uniform);
  add("RandomUniformLike", Distribution::uniform);
  add("RandomNormal", Distribution::normal);
  add("RandomNormalLike", Distribution::normal);
  list.add("Bernoulli", [](const NodeInfo& info) { return std::make_unique<Bernoulli>(info); });
  list.add("Multinomial", [](const NodeInfo& info) { return std::make_unique<Multinomial>(info); });
}

}  // namespace tenon::ops
