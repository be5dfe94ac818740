#include <fmt/format.h>
#include <optional>

#include "ops/cuda_support/rows.h"

namespace tenon::ops {
namespace {

// How elements are collected: merge(start, map) of all of them, then finish of that.
struct Reduction {
  std::string_view op, merge, start, map, finish;
  bool has_logarithms = false;
};

constexpr Reduction reductions[] = {
    {"ReduceSum", "Sum", "0", "value", "total"},
    {"ReduceMean", "Sum", "0", "value", "mean_of(total, count)"},
    {"ReduceProd", "Product", "1", "value", "total"},
    {"ReduceL1", "Sum", "0", "(value < (A)0 ? (A)0 - value : value)", "total"},
    {"ReduceL2", "Sum", "0", "value * value", "(A)sqrt((Root)total)"},
    {"ReduceSumSquare", "Sum", "0", "value * value", "total"},
    {"ReduceMax", "Largest", "LOWEST", "value", "total"},
    {"ReduceMin", "Smallest", "HIGHEST", "value", "total"},
    {"ReduceLogSum", "Sum", "0", "value", "log(total)", true},
    {"ReduceLogSumExp", "Exponentials", "Total{-INFINITE, 0}", "Total{value, 1}", "total.largest + log(total.sum)",
     true},
};

struct Limits {
  std::string_view lowest, highest;
};

Limits limits_of(ElementType type) {
  switch (type) {
    case ElementType::int8:
      return {"-128", "127"};
    case ElementType::uint8:
      return {"0", "255"};
    case ElementType::boolean:
      return {"0", "1"};
    case ElementType::int32:
      return {"(-2147483647 - 1)", "2147483647"};
    case ElementType::uint32:
      return {"0", "4294967295u"};
    case ElementType::int64:
      return {"(-9223372036854775807LL - 1)", "9223372036854775807LL"};
    case ElementType::uint64:
      return {"0", "18446744073709551615ull"};
    default:
      return {"-INFINITE", "INFINITE"};
  }
}

// The type that elements are collected in.
std::string accumulator_of(const Reduction& reduction, ElementType type) {
  if (types::floats.contains(type)) return std::string(cuda::wide_type_text(type));
  if (reduction.has_logarithms) return "double";
  return types::signed_ints.contains(type) ? "i64" : "u64";
}

class Reduce final : public Kernel {
 public:
  Reduce(const NodeInfo& info, const Reduction& reduction)
      : reduction_(reduction), keep_when_empty_(info.node().int_attribute("noop_with_empty_axes", 0) != 0) {}

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    const auto& plan = run.per_plan<Plan>([&] { return prepare(run, x); });
    if (!plan.partial) return plan.rows.run(run, {x.raw(), y.raw()});
    plan.rows.run(run, {x.raw(), plan.partial.get()});
    plan.parts->run(run, {plan.partial.get(), y.raw()});
  }

 private:
  struct Plan {
    CudaBlocks rows;
    std::shared_ptr<void> partial;  // null: rows are not divided
    std::optional<CudaBlocks> parts;
  };

  Plan prepare(KernelRun& run, const Tensor& x) const {
    std::vector<int64_t> axes;
    if (run.has_input(1)) axes = run.ints(1);
    if (axes.empty() && !keep_when_empty_) {
      for (int axis = 0; axis < x.rank(); ++axis) axes.push_back(axis);
    }
    const ReducePlan plan(x.shape(), axes);
    const int64_t parts = parts_of(plan);
    const std::string types = functions(x.type());
    const std::string finish = fmt::format("if (is_first) y[row] = element_of({});", reduction_.finish);
    if (parts == 1) {
      CudaRows rows(plan);
      rows.use_packs({{"x", x.type(), "e"}});
      return {blocks(run, rows, types, "const T* x, T* y", "A", "(A)widen(x[e])", reduction_.map, finish, plan.count),
              nullptr, std::nullopt};
    }
    CudaRows rows(plan, parts), totals(ReducePlan(Shape{plan.outer * plan.inner, parts}, std::vector<int64_t>{1}));
    rows.use_packs({{"x", x.type(), "e"}});
    return {blocks(run, rows, types, "const T* x, Total* partial", "A", "(A)widen(x[e])", reduction_.map,
                   "if (is_first) partial[row * gridDim.y + blockIdx.y] = total;", plan.count),
            queue_of(run).gpu().allocate(plan.outer * plan.inner * parts * 16),
            blocks(run, totals, types, "const Total* x, T* y", "Total", "x[e]", "value", finish, plan.count)};
  }

  // Few rows that are long are divided, so that there is work for the whole GPU.
  static int64_t parts_of(const ReducePlan& plan) {
    constexpr int64_t enough_threads = 128 << 10, least = 16;
    const CudaRows rows(plan);
    const int64_t threads = rows.rows() * rows.group();
    return std::max<int64_t>(1, std::min({plan.count / (rows.group() * least),
                                          enough_threads / std::max<int64_t>(threads, 1), int64_t{1024}}));
  }

  CudaBlocks blocks(KernelRun& run, CudaRows& rows, const std::string& types, std::string_view pointers,
                    std::string_view type, std::string_view load, std::string_view map, std::string_view finish,
                    int64_t count) const {
    std::vector<int64_t> numbers = rows.numbers();
    rows.set_elements(type, load);
    const std::string text = rows.begin() + fmt::format("const i64 count = v[{}];\n  ", numbers.size()) +
                             fmt::format("Total total = {};\n  ", reduction_.start) +
                             rows.each(fmt::format("total = {}::merge(total, (Total)({}));", reduction_.merge, map)) +
                             fmt::format("total = {};\n  {}", rows.fold(reduction_.merge, "total"), finish);
    numbers.push_back(count);
    return {run, pointers, types, text, numbers, rows.grid()};
  }

  std::string functions(ElementType type) const {
    const auto [lowest, highest] = limits_of(type);
    const std::string a = accumulator_of(reduction_, type);
    const bool is_float = types::floats.contains(type);
    std::string text = CudaRows::functions();
    text += fmt::format("typedef {} T;\ntypedef {} A;\ntypedef {} Total;\ntypedef {} Root;\n", cuda::type_text(type), a,
                        reduction_.merge == "Exponentials" ? "ExponentialSum<A>" : "A", is_float ? "A" : "double");
    text += fmt::format("#define LOWEST ((A){})\n#define HIGHEST ((A){})\n", lowest, highest);
    text += fmt::format("inline A mean_of(A total, i64 count) {{ return {}total / (A)count; }}\n",
                        is_float ? "" : "count == 0 ? (A)0 : ");
    // What truncation leaves of a logarithm, and 0 of what is no number.
    if (a == "double" && !is_float)
      text += "inline T element_of(A r) { return is_nan(r) ? (T)0 : r >= HIGHEST ? (T)" + std::string(highest) +
              " : r <= LOWEST ? (T)" + std::string(lowest) + " : (T)r; }\n";
    else
      text += "inline T element_of(A r) { return narrow<T>(r); }\n";
    return text;
  }

  const Reduction& reduction_;
  bool keep_when_empty_;
};

}  // namespace

void cuda_reduce(CudaKernels& list) {
  const TypeSet summable =
      types::floats | TypeSet{ElementType::int32, ElementType::int64, ElementType::uint32, ElementType::uint64};
  const TypeSet comparable = summable | TypeSet{ElementType::int8, ElementType::uint8, ElementType::boolean};
  for (const Reduction& reduction : reductions) {
    const bool compares = reduction.op == "ReduceMax" || reduction.op == "ReduceMin";
    list.add(reduction.op, [&reduction](const NodeInfo& info) { return std::make_unique<Reduce>(info, reduction); },
             {.types = compares ? comparable : summable, .host_inputs = {1}});
  }
}

}  // namespace tenon::ops
