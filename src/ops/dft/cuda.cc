#include <algorithm>
#include <bit>
#include <optional>

#include "ops/cuda_support/element_text.h"

namespace tenon::ops {
namespace {

// Rows of n complex numbers are transformed: in shared memory where n is a power of two, else as sums of products.
constexpr int64_t most_shared = 2048;

struct DftPlan {
  std::shared_ptr<void> table;  // cos and sin of 2 pi k / n, for k < n
  std::optional<CudaLoop> sums;
  std::optional<CudaBlocks> fft;
};

// What is transformed: `load`, statements that set re and im to element j of row `row`, and `store`, those that store
// them as result k. `results` are stored of each row.
struct Transform {
  int64_t n, rows, results;
  bool inverse;
  std::string pointers, load, store;
  std::vector<int64_t> numbers;  // from v[4] on
};

DftPlan prepare(KernelRun& run, ElementType type, const Transform& t) {
  DftPlan plan;
  const bool is_double = type == ElementType::float64;
  plan.table = queue_of(run).allocate(t.n * 2 * (is_double ? 8 : 4));
  const std::string functions = fmt::format("typedef {} T; typedef Wide<T> C;\n", cuda::type_text(type));
  std::vector<int64_t> numbers{t.n, t.rows, t.results, std::countr_zero(static_cast<uint64_t>(t.n))};
  numbers.insert(numbers.end(), t.numbers.begin(), t.numbers.end());
  const CudaLoop fill(run, t.n, "C* table",
                      "const double angle = 6.283185307179586476925 * (double)i / (double)v[0];\n    "
                      "table[2 * i] = (C)cos(angle);\n    table[2 * i + 1] = (C)sin(angle);",
                      numbers, functions);
  fill.run(run, {plan.table.get()});
  const std::string pointers = "const C* table, " + t.pointers;
  const char* sign = t.inverse ? "" : "-";
  if (std::has_single_bit(static_cast<uint64_t>(t.n)) && t.n <= most_shared && t.n > 1) {
    cuda::Grid grid;
    grid.threads = static_cast<unsigned>(std::clamp<int64_t>(t.n / 2, 32, 256));
    grid.blocks[0] = static_cast<unsigned>(std::min<int64_t>(t.rows, 0x7fffffff));
    const std::string body = fmt::format(
        R"(__shared__ C real[{0}], imaginary[{0}];
  for (i64 row = blockIdx.x; row < v[1]; row += gridDim.x) {{
    for (i64 j = threadIdx.x; j < v[0]; j += blockDim.x) {{
      C re = 0, im = 0;
      {1}
      // Elements whose numbers, read backwards in bits, are in order.
      u32 place = 0;
      for (int bit = 0; bit < v[3]; ++bit) place |= (u32)(j >> bit & 1) << (v[3] - 1 - bit);
      real[place] = re;
      imaginary[place] = im;
    }}
    __syncthreads();
    for (i64 half = 1; half < v[0]; half *= 2) {{
      for (i64 i = threadIdx.x; i < v[0] / 2; i += blockDim.x) {{
        const i64 within = i % half, a = i / half * 2 * half + within, b = a + half, turn = within * (v[0] / (2 * half));
        const C c = table[2 * turn], s = {2}table[2 * turn + 1];
        const C re = real[b] * c - imaginary[b] * s, im = real[b] * s + imaginary[b] * c;
        real[b] = real[a] - re;
        imaginary[b] = imaginary[a] - im;
        real[a] += re;
        imaginary[a] += im;
      }}
      __syncthreads();
    }}
    for (i64 k = threadIdx.x; k < v[2]; k += blockDim.x) {{
      const C re = real[k], im = imaginary[k];
      {3}
    }}
    __syncthreads();
  }})",
        t.n, t.load, sign, t.store);
    plan.fft.emplace(run, pointers, functions, body, numbers, grid);
    return plan;
  }
  const std::string body = fmt::format(
      R"(const i64 row = i / v[2], k = i % v[2];
    double sum_re = 0, sum_im = 0;
    i64 turn = 0;
    for (i64 j = 0; j < v[0]; ++j) {{
      C re = 0, im = 0;
      {0}
      const C c = table[2 * turn], s = {1}table[2 * turn + 1];
      sum_re += (double)(re * c - im * s);
      sum_im += (double)(re * s + im * c);
      turn += k;
      if (turn >= v[0]) turn -= v[0];
    }}
    const C re = (C)sum_re, im = (C)sum_im;
    {2})",
      t.load, sign, t.store);
  plan.sums.emplace(run, t.rows * t.results, pointers, body, numbers, functions);
  return plan;
}

template <typename... Pointers>
void run_plan(KernelRun& run, const DftPlan& plan, Pointers... pointers) {
  if (plan.sums) plan.sums->run(run, {plan.table.get(), pointers...});
  if (plan.fft) plan.fft->run(run, {plan.table.get(), pointers...});
}

void run_dft(KernelRun& run) {
  const Tensor& x = run.input(0);
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  const auto& plan = run.per_plan<DftPlan>([&] {
    const bool inverse = run.node().int_attribute("inverse", 0) != 0,
               onesided = run.node().int_attribute("onesided", 0) != 0;
    const int64_t given = run.has_input(2) ? run.ints(2)[0] : -2, parts = x.dim(x.rank() - 1);
    const int axis = static_cast<int>(given < 0 ? given + x.rank() : given);
    const int64_t size = x.dim(axis), inner = x.shape().elements(axis + 1, x.rank() - 1),
                  outer = x.shape().elements(0, axis);
    const bool to_real = onesided && inverse;
    int64_t n = to_real ? 2 * (size - 1) : size;
    if (run.has_input(1)) n = run.ints(1)[0];
    const int64_t used = std::min(size, to_real ? n / 2 + 1 : n);
    Transform t{n, outer * inner, y.dim(axis), inverse, "const T* x, T* y", "", "", {size, inner, used}};
    // v[4]: elements of a row of x, v[5]: inner, v[6]: how many of them are used.
    std::string from = to_real ? "i64 from = 2 * j > v[0] ? v[0] - j : j;" : "i64 from = j;";
    t.load = from + fmt::format(
                        "\n      if (from < v[6]) {{\n        const T* at = x + ((row / v[5] * v[4] + from) * v[5] + "
                        "row % v[5]) * {};\n"
                        "        re = widen(at[0]);{}\n      }}",
                        parts, parts == 2 ? " im = widen(at[1]);" : "");
    // The second half of the spectrum of a real signal follows from the first.
    if (to_real) t.load += "\n      if (from != j) im = -im;\n      if (j == 0 || 2 * j == v[0]) im = 0;";
    const std::string scale = inverse ? " * ((C)1 / (C)v[0])" : "";
    t.store =
        fmt::format("T* to = y + ((row / v[5] * v[2] + k) * v[5] + row % v[5]) * {};\n      to[0] = narrow<T>(re{});",
                    to_real ? 1 : 2, scale);
    if (!to_real) t.store += fmt::format("\n      to[1] = narrow<T>(im{});", scale);
    return prepare(run, x.type(), t);
  });
  run_plan(run, plan, x.raw(), y.raw());
}

void run_stft(KernelRun& run) {
  const Tensor& x = run.input(0);
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  const auto& plan = run.per_plan<DftPlan>([&] {
    const int64_t samples = x.dim(1), parts = x.rank() == 2 ? 1 : x.dim(2), step = run.ints(1)[0], frames = y.dim(1);
    int64_t n = samples;
    if (run.has_input(3)) n = run.ints(3)[0];
    if (run.has_input(2)) n = run.input(2).elements();
    // v[4]: samples, v[5]: frames, v[6]: step.
    Transform t{n,  x.dim(0) * frames,      y.dim(2), false, "const T* x, const T* window, T* y", "",
                "", {samples, frames, step}};
    t.load = fmt::format(
        "const T* at = x + (row / v[5] * v[4] + row % v[5] * v[6] + j) * {};\n      const C weight = window ? "
        "widen(window[j]) : (C)1;\n"
        "      re = widen(at[0]) * weight;{}",
        parts, parts == 2 ? " im = widen(at[1]) * weight;" : "");
    t.store = "T* to = y + (row * v[2] + k) * 2;\n      to[0] = narrow<T>(re);\n      to[1] = narrow<T>(im);";
    return prepare(run, x.type(), t);
  });
  run_plan(run, plan, x.raw(), run.has_input(2) ? run.input(2).raw() : nullptr, y.raw());
}

}  // namespace

void cuda_dft(CudaKernels& list) {
  list.add_simple("DFT", run_dft, {.types = types::floats, .host_inputs = {1, 2}});
  list.add_simple("STFT", run_stft, {.types = types::floats, .host_inputs = {1, 3}});
}

}  // namespace tenon::ops
