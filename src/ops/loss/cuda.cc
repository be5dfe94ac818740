#include <fmt/format.h>
#include <optional>

#include "ops/cuda_support/arguments.h"
#include "ops/cuda_support/rows.h"

namespace tenon::ops {
namespace {

// The loss at position i of [N, d1, …] and its weight in the mean. A class that is none counts as ignored.
constexpr std::string_view loss_text = R"cuda(
struct Loss {
  A value, weight;
};
inline Loss loss_at(const i64* v, const S* scores, const C* classes, const W* weights, i64 i) {
  const i64 chosen = (i64)classes[i];
  if ((HAS_IGNORED && chosen == IGNORED) || chosen < 0 || chosen >= v[1]) return {(A)0, (A)0};
  const A weight = HAS_WEIGHTS ? (A)widen(weights[chosen]) : (A)1;
  return {-(A)widen(scores[(i / v[2] * v[1] + chosen) * v[2] + i % v[2]]) * weight, weight};
}
)cuda";

// One block adds all positions up, each thread some in order.
constexpr std::string_view sum_text = R"cuda(
  double loss = 0, weight = 0;
  for (i64 i = threadIdx.x; i < v[0]; i += 1024) {
    const Loss own = loss_at(v, scores, classes, weights, i);
    loss += own.value;
    weight += own.weight;
  }
  loss = fold_group<1024, 1, Sum>(loss);
  weight = fold_group<1024, 1, Sum>(weight);
  if (threadIdx.x == 0) y[0] = narrow<T>(IS_MEAN ? loss / weight : loss);
)cuda";

class LossKernel final : public Kernel {
 public:
  LossKernel(const NodeInfo& info, bool of_softmax)
      : of_softmax_(of_softmax), reduction_(info.node().string_attribute("reduction", "mean")) {
    if (info.node().attribute("ignore_index")) ignored_ = info.node().int_attribute("ignore_index", 0);
  }

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    const void* loss = output_address(run, 0);
    void* log_probability = of_softmax_ && run.wants_output(1) ? run.output(1).mutable_raw() : nullptr;
    const auto& plan = run.per_plan<Plan>([&] { return prepare(run, x); });
    const void* scores = x.raw();
    if (of_softmax_) {
      scores = plan.scores.get();
      if (plan.softmax) plan.softmax->run(run, {x.raw(), scores, log_probability});
    }
    if (!loss) return;
    const std::initializer_list<const void*> addresses{scores, run.input(1).raw(), input_address(run, 2), loss};
    if (plan.each) plan.each->run(run, addresses);
    if (plan.sum) plan.sum->run(run, addresses);
  }

 private:
  struct Plan {
    std::shared_ptr<void> scores;  // logarithms of probabilities, as they are computed
    std::optional<CudaBlocks> softmax, sum;
    std::optional<CudaLoop> each;
  };

  Plan prepare(KernelRun& run, const Tensor& x) const {
    Plan plan;
    if (of_softmax_ && x.elements() > 0) {
      plan.scores = queue_of(run).gpu().allocate(x.elements() * 8);
      CudaRows rows(ReducePlan(x.shape(), std::vector<int64_t>{1}));
      const std::string text =
          rows.begin() + "A largest = -INFINITE, sum = 0;\n  " + rows.each("largest = most(largest, value);") +
          "largest = " + rows.fold("Largest", "largest") + ";\n  " + rows.each("sum += exp(value - largest);") +
          "sum = " + rows.fold("Sum", "sum") + ";\n  const A logarithm = log(sum);\n  " +
          rows.each("const A r = value - largest - logarithm; scores[e] = r; if (y) y[e] = narrow<T>(r);");
      plan.softmax.emplace(run, "const T* x, A* scores, T* y", CudaRows::functions() + types_text(x.type()), text,
                           rows.numbers(), rows.grid());
    }
    const int64_t inner = x.shape().elements(2, x.rank());
    const std::vector<int64_t> numbers{x.dim(0) * inner, x.dim(1), inner};
    const std::string functions =
        CudaRows::functions() + types_text(x.type()) +
        fmt::format("typedef {} S;\ntypedef {} C;\ntypedef {} W;\n", of_softmax_ ? "A" : "T", input_type_text(run, 1),
                    input_type_text(run, 2)) +
        fmt::format("#define HAS_IGNORED {}\n#define IGNORED {}LL\n#define HAS_WEIGHTS {}\n#define IS_MEAN {}\n",
                    ignored_ ? 1 : 0, ignored_.value_or(0), run.has_input(2) ? 1 : 0, reduction_ == "mean" ? 1 : 0) +
        std::string(loss_text);
    constexpr std::string_view pointers = "const S* scores, const C* classes, const W* weights, T* y";
    if (reduction_ == "none") {
      plan.each.emplace(run, numbers[0], pointers, "y[i] = narrow<T>(loss_at(v, scores, classes, weights, i).value);",
                        numbers, functions);
    } else {
      cuda::Grid grid;
      grid.threads = 1024;
      plan.sum.emplace(run, pointers, functions, sum_text, numbers, grid);
    }
    return plan;
  }

  bool of_softmax_;
  std::string reduction_;
  std::optional<int64_t> ignored_;
};

}  // namespace

void cuda_loss(CudaKernels& list) {
  const TypeSet types = types::floats | types::index;
  list.add("NegativeLogLikelihoodLoss", [](const NodeInfo& info) { return std::make_unique<LossKernel>(info, false); },
           {.types = types});
  list.add("SoftmaxCrossEntropyLoss", [](const NodeInfo& info) { return std::make_unique<LossKernel>(info, true); },
           {.types = types});
}

}  // namespace tenon::ops
