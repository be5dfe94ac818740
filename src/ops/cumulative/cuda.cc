#include <fmt/format.h>
#include <optional>

#include "ops/cuda_support/arguments.h"
#include "ops/cuda_support/loop.h"

namespace tenon::ops {
namespace {

// A thread for each line, which is read along the axis. `axis` is in the GPU's memory and counts from either end.
constexpr std::string_view by_lines = R"cuda(
    const i64 given = (i64)axis[0], own = given < 0 ? given + RANK : given;
    i64 inner = 1;
    for (int k = RANK - 1; k > own && k >= 0; --k) inner *= v[k];
    const i64 size = v[own < 0 || own >= RANK ? 0 : own];
    if (i >= v[RANK] / size) continue;
    const i64 first = i / inner * size * inner + i % inner;
    A total = START;
    for (i64 k = 0; k < size; ++k) {
      const i64 at = first + (REVERSE ? size - 1 - k : k) * inner;
      const A next = merge(total, widen(x[at]));
      y[at] = narrow<T>(EXCLUSIVE ? total : next);
      total = next;
    }
)cuda";

// A block for each row of neighbours. Each warp's totals are made by exchanging those of its threads, then the warps'.
constexpr std::string_view by_rows = R"cuda(
  __shared__ A totals[WARPS];
  const i64 size = v[0], row = blockIdx.x;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  A before = START;
  for (i64 begin = 0; begin < size; begin += WARPS * 32) {
    const i64 i = begin + threadIdx.x, at = row * size + (REVERSE ? size - 1 - i : i);
    const A own = i < size ? (A)widen(x[at]) : (A)START;
    A total = own;
    for (int step = 1; step < 32; step *= 2) {
      const A other = __shfl_up_sync(0xffffffffu, total, step);
      if (lane >= step) total = merge(other, total);
    }
    A exclusive = __shfl_up_sync(0xffffffffu, total, 1);
    if (lane == 0) exclusive = START;
    __syncthreads();
    if (lane == 31) totals[warp] = total;
    __syncthreads();
    A carried = before;
    for (int w = 0; w < WARPS; ++w) {
      if (w < warp) carried = merge(carried, totals[w]);
      before = merge(before, totals[w]);
    }
    if (i < size) y[at] = narrow<T>(merge(carried, EXCLUSIVE ? exclusive : total));
  }
)cuda";

class Cumulative final : public Kernel {
 public:
  explicit Cumulative(const NodeInfo& info)
      : is_sum_(info.node().op_type == "CumSum"),
        exclusive_(info.node().int_attribute("exclusive", 0) != 0),
        reverse_(info.node().int_attribute("reverse", 0) != 0) {
    if (const Tensor* axis = info.constant(1); axis && axis->elements() == 1)
      axis_ = axis->type() == ElementType::int32 ? axis->data<int32_t>()[0] : axis->data<int64_t>()[0];
  }

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    const auto& plan = run.per_plan<Plan>([&] { return prepare(run, x); });
    if (plan.rows) plan.rows->run(run, {x.raw(), y.raw()});
    if (plan.lines) plan.lines->run(run, {x.raw(), run.input(1).raw(), y.raw()});
  }

  bool may_overwrite(size_t input) const override { return input == 0; }

 private:
  struct Plan {
    std::optional<CudaBlocks> rows;
    std::optional<CudaLoop> lines;
  };

  Plan prepare(KernelRun& run, const Tensor& x) const {
    // Integers wrap around, as unsigned ones.
    const ElementType type = x.type() == ElementType::int32   ? ElementType::uint32
                             : x.type() == ElementType::int64 ? ElementType::uint64
                                                              : x.type();
    const bool is_last = axis_ && (*axis_ == -1 || *axis_ == x.rank() - 1);
    const int64_t size = x.rank() == 0 ? 1 : x.dim(x.rank() - 1);
    const std::string functions =
        types_text(type) +
        fmt::format(
            "#define START {}\n#define EXCLUSIVE {}\n#define REVERSE {}\n#define RANK {}\n#define WARPS {}\n"
            "inline A merge(A a, A b) {{ return a {} b; }}\n",
            is_sum_ ? 0 : 1, exclusive_ ? 1 : 0, reverse_ ? 1 : 0, x.rank(), size > 256 ? 32 : 4, is_sum_ ? '+' : '*');
    Plan plan;
    if (is_last && size >= 32) {
      cuda::Grid grid;
      grid.blocks[0] = static_cast<unsigned>(x.elements() / size);
      grid.threads = size > 256 ? 1024 : 128;
      plan.rows.emplace(run, "const T* x, T* y", functions, by_rows, std::vector<int64_t>{size}, grid);
      return plan;
    }
    // As many lines as there may be.
    std::vector<int64_t> numbers(x.shape().begin(), x.shape().end());
    int64_t shortest = x.elements();
    for (int axis = 0; axis < x.rank(); ++axis) {
      if (!axis_ || axis == (*axis_ < 0 ? *axis_ + x.rank() : *axis_)) shortest = std::min(shortest, x.dim(axis));
    }
    numbers.push_back(x.elements());
    plan.lines.emplace(run, x.elements() / shortest,
                       fmt::format("const T* x, const {}* axis, T* y", input_type_text(run, 1)), by_lines, numbers,
                       functions);
    return plan;
  }

  bool is_sum_, exclusive_, reverse_;
  std::optional<int64_t> axis_;
};

}  // namespace

void cuda_cumulative(CudaKernels& list) {
  const TypeSet types =
      types::floats | TypeSet{ElementType::int32, ElementType::int64, ElementType::uint32, ElementType::uint64};
  for (const char* op : {"CumSum", "CumProd"})
    list.add(op, [](const NodeInfo& info) { return std::make_unique<Cumulative>(info); }, {.types = types});
}

}  // namespace tenon::ops
