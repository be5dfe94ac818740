#include "ops/cuda_support/arguments.h"
#include "ops/cuda_support/rows.h"

namespace tenon::ops {
namespace {

constexpr std::string_view first_largest = R"cuda(
// The first of the largest, or of the NaNs if there are any. A place below 0 is none.
struct FirstLargest {
  template <typename A> static Placed<A> merge(Placed<A> a, Placed<A> b) {
    if (a.place < 0 || b.place < 0) return a.place < 0 ? b : a;
    if (is_nan(a.value) != is_nan(b.value)) return is_nan(a.value) ? a : b;
    if (a.value != b.value && !is_nan(a.value)) return a.value > b.value ? a : b;
    return a.place < b.place ? a : b;
  }
};
)cuda";

std::string hardmax_text(const CudaRows& rows) {
  return rows.begin() + "Placed<A> best = {(A)0, -1};\n  " +
         rows.each("best = FirstLargest::merge(best, Placed<A>{value, i});") +
         "best = " + rows.fold("FirstLargest", "best") + ";\n  " + rows.each("y[e] = narrow<T>((A)(i == best.place));");
}

std::string softmax_text(const CudaRows& rows, bool logarithm) {
  const std::string begin = rows.begin() + "A largest = -INFINITE, sum = 0;\n  " +
                            rows.each("largest = most(largest, value);") +
                            "largest = " + rows.fold("Largest", "largest") + ";\n  ";
  const std::string sum = "sum = " + rows.fold("Sum", "sum") + ";\n  ";
  if (logarithm)
    return begin + rows.each("sum += exp(value - largest);") + sum + "const A logarithm = log(sum);\n  " +
           rows.each("y[e] = narrow<T>(value - largest - logarithm);");
  const std::string scale = sum + "const A factor = (A)1 / sum;\n  ";
  if (rows.holds())
    return begin + rows.each("kept = exp(value - largest); sum += kept;") + scale +
           rows.each("y[e] = narrow<T>(value * factor);");
  return begin + rows.each("sum += exp(value - largest);") + scale +
         rows.each("y[e] = narrow<T>(exp(value - largest) * factor);");
}

class Softmax final : public Kernel {
 public:
  explicit Softmax(const NodeInfo& info) : axis_(info.node().int_attribute("axis", -1)) {}

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    const auto& blocks = run.per_plan<CudaBlocks>([&] {
      std::vector<int64_t> axes;
      if (x.rank() > 0) axes.push_back(axis_);
      CudaRows rows(ReducePlan(x.shape(), axes));
      rows.use_packs({{"x", x.type(), "e"}, {"y", x.type(), "e", true}});
      const std::string& op = run.node().op_type;
      const std::string text = op == "Hardmax" ? hardmax_text(rows) : softmax_text(rows, op == "LogSoftmax");
      const std::string functions = CudaRows::functions() + std::string(first_largest) + types_text(x.type());
      return CudaBlocks(run, "const T* x, T* y", functions, text, rows.numbers(), rows.grid());
    });
    blocks.run(run, {x.raw(), y.raw()});
  }

  bool may_overwrite(size_t) const override { return true; }

 private:
  int64_t axis_;
};

}  // namespace

void cuda_softmax(CudaKernels& list) {
  for (const char* op : {"Softmax", "LogSoftmax", "Hardmax"})
    list.add(op, [](const NodeInfo& info) { return std::make_unique<Softmax>(info); }, {.types = types::floats});
}

}  // namespace tenon::ops
