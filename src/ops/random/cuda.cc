#include <atomic>
#include <bit>
#include <optional>
#include <random>

#include "ops/cuda_support/element_text.h"

namespace tenon::ops {
namespace {

// The same generator as the CPU's: Philox 4x32-10, whose counter is the position and whose key is the seed. Numbers
// that are evenly distributed are the same ones.
constexpr const char* philox_text = R"(
struct Words { u32 w[4]; };
inline Words philox(u64 number, u64 seed) {
  Words c = {{(u32)number, (u32)(number >> 32), 0, 0}};
  u32 first = (u32)seed, second = (u32)(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const u64 a = (u64)0xD2511F53u * c.w[0], b = (u64)0xCD9E8D57u * c.w[2];
    c = {{(u32)(b >> 32) ^ c.w[1] ^ first, (u32)b, (u32)(a >> 32) ^ c.w[3] ^ second, (u32)a}};
    first += 0x9E3779B9u;
    second += 0xBB67AE85u;
  }
  return c;
}
inline double fraction(u32 high, u32 low) { return (double)(((u64)high << 32 | low) >> 11) * (1.0 / 9007199254740992.0); }
// How many numbers the 128 bits of a counter give.
inline int together(float) { return 4; }
inline int together(double) { return 2; }
inline void uniform(u64 number, u64 seed, float* to) {
  const Words c = philox(number, seed);
  for (int i = 0; i < 4; ++i) to[i] = (float)(i32)(c.w[i] >> 8) * (1.0f / 16777216.0f);
}
inline void uniform(u64 number, u64 seed, double* to) {
  const Words c = philox(number, seed);
  for (int i = 0; i < 2; ++i) to[i] = fraction(c.w[2 * i], c.w[2 * i + 1]);
}
// By the method of Box and Muller.
inline void normal(u64 number, u64 seed, float* to) {
  const Words c = philox(number, seed);
  for (int i = 0; i < 4; i += 2) {
    const float length = sqrt(-2.0f * log(((float)c.w[i] + 0.5f) * (1.0f / 4294967296.0f)));
    const float angle = (float)(c.w[i + 1] >> 8) * (float)(6.283185307179586476925 / 16777216.0);
    to[i] = length * cos(angle);
    to[i + 1] = length * sin(angle);
  }
}
inline void normal(u64 number, u64 seed, double* to) {
  const Words c = philox(number, seed);
  const double length = sqrt(-2 * log(1 - fraction(c.w[0], c.w[1])));
  const double angle = 6.283185307179586476925 * fraction(c.w[2], c.w[3]);
  to[0] = length * cos(angle);
  to[1] = length * sin(angle);
}
)";

uint64_t fresh_seed() {
  static std::atomic<uint64_t> next = [] {
    std::random_device device;
    return uint64_t{device()} << 32 | device();
  }();
  return next.fetch_add(uint64_t{1} << 20, std::memory_order_relaxed);
}

// The seed lies in the GPU's memory. Without an attribute `seed` each run takes the next one, which also recorded runs
// do.
class Seed {
 public:
  explicit Seed(KernelRun& run) : memory_(queue_of(run).allocate(sizeof(uint64_t))) {
    const ir::Attribute* given = run.node().attribute("seed");
    uint64_t seed = fresh_seed();
    if (given)
      seed = given->kind == ir::AttributeKind::int_ ? static_cast<uint64_t>(run.node().int_attribute("seed", 0))
                                                    : std::bit_cast<uint32_t>(run.node().float_attribute("seed", 0));
    queue_of(run).upload(memory_.get(), &seed, sizeof seed);
    if (!given) next_.emplace(run, 1, "u64* seed", "*seed += 1;");
  }
  const void* get() const { return memory_.get(); }
  void finish(KernelRun& run) const {
    if (next_) next_->run(run, {memory_.get()});
  }

 private:
  std::shared_ptr<void> memory_;
  std::optional<CudaLoop> next_;
};

struct RandomPlan {
  Seed seed;
  CudaLoop draw;
};

// A loop that draws all numbers of a list and does `body` with each, `drawn`, which is number `e`. `numbers` are v[1],
// v[2], ….
CudaLoop drawing_loop(KernelRun& run, int64_t count, bool is_double, const char* distribution,
                      std::string_view pointers, std::string_view body, std::string_view functions,
                      std::vector<int64_t> numbers = {}) {
  numbers.insert(numbers.begin(), count);
  const int64_t each = is_double ? 2 : 4;
  const std::string text = fmt::format(
      "{0} numbers[4];\n    {1}((u64)i, *seed, numbers);\n    for (int g = 0; g < {2} && i * {2} + g < v[0]; ++g) {{\n"
      "      const i64 e = i * {2} + g;\n      const {0} drawn = numbers[g];\n      {3}\n    }}",
      is_double ? "double" : "float", distribution, each, body);
  return {run,
          (count + each - 1) / each,
          fmt::format("const u64* seed, {}", pointers),
          text,
          numbers,
          std::string(philox_text) + std::string(exact_product_text()) + std::string(functions)};
}

template <bool is_normal>
void run_random(KernelRun& run) {
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  const auto& plan = run.per_plan<RandomPlan>([&] {
    const ir::Node& node = run.node();
    const double shift = is_normal ? node.float_attribute("mean", 0) : node.float_attribute("low", 0);
    const double scale =
        is_normal ? node.float_attribute("scale", 1) : static_cast<double>(node.float_attribute("high", 1)) - shift;
    const bool is_double = y.type() == ElementType::float64;
    const std::string body =
        fmt::format("typedef {0} C; y[e] = narrow<{1}>((C){2} + times((C){3}, drawn));", is_double ? "double" : "float",
                    cuda::type_text(y.type()), cuda::number_text(shift, ElementType::float64),
                    cuda::number_text(scale, ElementType::float64));
    return RandomPlan{Seed(run), drawing_loop(run, y.elements(), is_double, is_normal ? "normal" : "uniform",
                                              pointer_to(y) + "y", body, "")};
  });
  plan.draw.run(run, {plan.seed.get(), y.raw()});
  plan.seed.finish(run);
}

// 1 with the probability that the input gives, else 0.
void run_bernoulli(KernelRun& run) {
  const Tensor& x = run.input(0);
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  const auto& plan = run.per_plan<RandomPlan>([&] {
    return RandomPlan{Seed(run), drawing_loop(run, y.elements(), x.type() == ElementType::float64, "uniform",
                                              const_pointer_to(x) + "x, " + pointer_to(y) + "y",
                                              fmt::format("y[e] = narrow<{}>(drawn < widen(x[e]) ? 1.0f : 0.0f);",
                                                          cuda::type_text(y.type())),
                                              "")};
  });
  plan.draw.run(run, {plan.seed.get(), x.raw(), y.raw()});
  plan.seed.finish(run);
}

struct MultinomialPlan {
  Seed seed;
  std::shared_ptr<void> sums;
  CudaLoop accumulate, draw;
};

// Draws classes whose logarithmic probabilities, up to a constant, are the rows of the input.
void run_multinomial(KernelRun& run) {
  const Tensor& x = run.input(0);
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  const auto& plan = run.per_plan<MultinomialPlan>([&] {
    const std::string functions = fmt::format("typedef {} T; typedef Wide<T> C;\n", cuda::type_text(x.type()));
    const std::string pick = fmt::format(
        R"(const i64 row = e / v[1], classes = v[2];
      const double* sums = all + row * classes;
      const double wanted = drawn * sums[classes - 1];
      // The first class whose sum is more; the product may have been rounded up to the whole, which the last one that adds
      // something reaches.
      i64 low = 0, high = classes;
      while (low < high) {{
        const i64 middle = (low + high) / 2;
        if (sums[middle] > wanted) high = middle; else low = middle + 1;
      }}
      if (low == classes) {{
        low = 0;
        while (low < classes - 1 && sums[low] < sums[classes - 1]) ++low;
      }}
      y[e] = ({0})low;)",
        cuda::type_text(y.type()));
    return MultinomialPlan{Seed(run), queue_of(run).allocate(x.elements() * 8),
                           CudaLoop(run, x.dim(0), "const T* x, double* all",
                                    R"(const T* own = x + i * v[0];
    double* sums = all + i * v[0];
    C most_likely = -INFINITE;
    for (i64 k = 0; k < v[0]; ++k) if (most_likely < widen(own[k])) most_likely = widen(own[k]);
    double sum = 0;
    for (i64 k = 0; k < v[0]; ++k) sums[k] = sum += (double)exp(widen(own[k]) - most_likely);)",
                                    {x.dim(1)}, functions),
                           drawing_loop(run, y.elements(), true, "uniform", "const double* all, " + pointer_to(y) + "y",
                                        pick, functions, {y.dim(1), x.dim(1)})};
  });
  plan.accumulate.run(run, {x.raw(), plan.sums.get()});
  plan.draw.run(run, {plan.seed.get(), plan.sums.get(), y.raw()});
  plan.seed.finish(run);
}

}  // namespace

void cuda_random(CudaKernels& list) {
  for (const char* op : {"RandomUniform", "RandomUniformLike"}) list.add_simple(op, run_random<false>);
  for (const char* op : {"RandomNormal", "RandomNormalLike"}) list.add_simple(op, run_random<true>);
  list.add_simple("Bernoulli", run_bernoulli, {.types = types::numbers | types::bools});
  list.add_simple("Multinomial", run_multinomial, {.types = types::floats | types::index});
}

}  // namespace tenon::ops
