#include <fmt/format.h>
#include <optional>

#include "ops/cuda_support/arguments.h"
#include "ops/cuda_support/coordinates.h"
#include "ops/cuda_support/rows.h"

namespace tenon::ops {
namespace {

constexpr std::string_view pointers =
    "const T* x, const S* scale, const S* bias, const M* mean_in, const M* variance_in, T* y, M* mean_out, M* "
    "variance_out";

std::string functions_of(KernelRun& run) {
  return CudaRows::functions() + types_text(run.input(0).type()) +
         fmt::format("typedef {} S;\ntypedef {} M;\n", input_type_text(run, 1), input_type_text(run, 3));
}

class BatchNormalization final : public Kernel {
 public:
  explicit BatchNormalization(const NodeInfo& info)
      : epsilon_(cuda::number_text(info.node().float_attribute("epsilon", 1e-5f), ElementType::float64)),
        momentum_(cuda::number_text(info.node().float_attribute("momentum", 0.9f), ElementType::float64)),
        training_(info.node().int_attribute("training_mode", 0) != 0) {}

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    const std::initializer_list<const void*> addresses = {x.raw(),
                                                          run.input(1).raw(),
                                                          run.input(2).raw(),
                                                          run.input(3).raw(),
                                                          run.input(4).raw(),
                                                          output_address(run, 0),
                                                          output_address(run, 1),
                                                          output_address(run, 2)};
    if (training_) {
      if (run.input(1).elements() == 0) return;
      return run.per_plan<CudaBlocks>([&] { return train(run, x); }).run(run, addresses);
    }
    if (run.wants_output(0)) run.per_plan<CudaLoop>([&] { return apply(run, x); }).run(run, addresses);
    for (size_t i : {1, 2}) {
      if (run.wants_output(i))
        queue_of(run).copy(run.output(i).mutable_raw(), run.input(i + 2).raw(), run.input(i + 2).bytes());
    }
  }

  bool may_overwrite(size_t input) const override { return input == 0 && !training_; }

 private:
  CudaLoop apply(KernelRun& run, const Tensor& x) const {
    const int64_t channels = x.rank() == 1 ? 1 : x.dim(1), size = x.rank() < 3 ? 1 : x.shape().elements(2, x.rank());
    const std::string_view index = division_type(x.elements());
    const std::string text =
        fmt::format("const {} c = ({})i / ({})v[0] % ({})v[1];\n    ", index, index, index, index) +
        fmt::format("const A factor = (A)widen(scale[c]) / sqrt((A)widen(variance_in[c]) + (A){});\n    ", epsilon_) +
        "y[i] = narrow<T>((widen(x[i]) - (A)widen(mean_in[c])) * factor + (A)widen(bias[c]));";
    return {run, x.elements(), pointers, text, {size, channels}, functions_of(run)};
  }

  // The channels are rows, of all images.
  CudaBlocks train(KernelRun& run, const Tensor& x) const {
    std::vector<int64_t> axes;
    for (int axis = 0; axis < x.rank(); ++axis) {
      if (axis != 1) axes.push_back(axis);
    }
    CudaRows rows(ReducePlan(x.shape(), axes));
    std::string text = rows.begin() + "A sum = 0, squares = 0;\n  " + rows.each("sum += value;") +
                       "sum = " + rows.fold("Sum", "sum") + ";\n  const A mean = sum / (A)size;\n  " +
                       rows.each("squares += (value - mean) * (value - mean);") +
                       "squares = " + rows.fold("Sum", "squares") + ";\n  const A variance = squares / (A)size;\n  ";
    if (run.wants_output(0)) {
      text += "const i64 c = is_row ? row : 0;\n  ";
      text += fmt::format("const A factor = (A)widen(scale[c]) / sqrt(variance + (A){});\n  ", epsilon_);
      text += rows.each("y[e] = narrow<T>((value - mean) * factor + (A)widen(bias[c]));");
    }
    for (size_t i : {1, 2}) {
      const char* name = i == 1 ? "mean" : "variance";
      if (run.wants_output(i))
        text +=
            fmt::format("if (is_first) {}_out[row] = narrow<M>((A)widen({}_in[row]) * (A){} + {} * (A)(1 - {}));\n  ",
                        name, name, momentum_, name, momentum_);
    }
    return {run, pointers, functions_of(run), text, rows.numbers(), rows.grid()};
  }

  std::string epsilon_, momentum_;
  bool training_;
};

}  // namespace

void cuda_batch_norm(CudaKernels& list) {
  list.add("BatchNormalization", [](const NodeInfo& info) { return std::make_unique<BatchNormalization>(info); },
           {.types = types::floats});
}

}  // namespace tenon::ops
