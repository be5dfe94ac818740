// Two operators of domain com.example: one that is a function, one that prepares its weights once.
#include "operators.h"

#include <algorithm>
#include <vector>

using namespace tenon;

namespace {

template <typename T>
void clamp_all(CustomRun& run) {
  const T limit = static_cast<T>(run.attribute<float>("limit"));
  std::span<const T> x = run.input(0).data<T>();
  std::span<T> y = run.output(0).mutable_data<T>();
  // Ranges of at least 4096 elements, so that each is worth a thread.
  run.parallel_for(run.input(0).elements(), 4096, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = std::clamp(x[i], -limit, limit);
  });
}

void check_columns(CustomInference& i) {
  const std::optional<SymbolicShape>& x = i.input_shape(0);
  for (size_t weights : {1, 2}) {
    const std::optional<SymbolicShape>& shape = i.input_shape(weights);
    if (!x || !shape) continue;  // not known before the model runs; then this is called again
    if (x->empty() || shape->size() != 1) i.fail("x needs columns, and mean and deviation one number for each");
    i.equal(x->back(), shape->front(), "the columns of x and the length of its weights");
  }
  i.set_output(0, i.input_type(0), x);
}

// Made once per node. Weights that are constants are turned into factors there and then.
class Standardize final : public CustomKernel {
 public:
  explicit Standardize(const CustomKernelInfo& info) {
    if (const Tensor* deviation = info.constant(2)) factors_ = factors(*deviation);
  }

  void run(CustomRun& run) const override {
    const std::vector<float> computed = factors_.empty() ? factors(run.input(2)) : std::vector<float>();
    const std::vector<float>& factor = factors_.empty() ? computed : factors_;
    std::span<const float> x = run.input(0).data<float>(), mean = run.input(1).data<float>();
    std::span<float> y = run.output(0).mutable_data<float>();
    for (size_t i = 0; i < x.size(); ++i) y[i] = (x[i] - mean[i % mean.size()]) * factor[i % factor.size()];
  }

 private:
  static std::vector<float> factors(const Tensor& deviation) {
    std::vector<float> result;
    for (float number : deviation.data<float>()) {
      if (number <= 0) throw Error(ErrorCode::invalid_value, "a deviation must be above 0");
      result.push_back(1 / number);
    }
    return result;
  }

  std::vector<float> factors_;
};

}  // namespace

CustomOperator clamp() {
  return CustomOperator("com.example", "Clamp", /*since=*/1)
      .input("x", "T")
      .output("y", "T")
      .types("T", {ElementType::float32, ElementType::float64})
      .attribute("limit", 1.0f)
      .infer([](CustomInference& i) { i.set_output(0, i.input_type(0), i.input_shape(0)); })
      .cpu([](CustomRun& run) {
        run.input_type(0) == ElementType::float32 ? clamp_all<float>(run) : clamp_all<double>(run);
      });
}

CustomOperator standardize() {
  return CustomOperator("com.example", "Standardize", /*since=*/1)
      .input("x", {ElementType::float32})
      .input("mean", {ElementType::float32})
      .input("deviation", {ElementType::float32})
      .output("y", {ElementType::float32})
      .infer(check_columns)
      .cpu_kernel([](const CustomKernelInfo& info) { return std::make_unique<Standardize>(info); });
}

// What makes a shared library of this file one that Tenon loads.
TENON_CUSTOM_OPERATORS(operators) { operators = {clamp(), standardize()}; }
