#include "ops/cuda_support/epilogue.h"

#include "ops/cuda_support/expressions.h"
#include "ops/fused_activation.h"

namespace tenon::ops {

CudaEpilogue::CudaEpilogue(const ir::Node& node) {
  if (node.input(2)) text_ += "r += widen(bias[i / v[0] % v[1]]);\n    ";
  if (node.input(3)) text_ += "r += widen(residual[i]);\n    ";
  const std::string name = node.string_attribute("activation", "");
  if (!name.empty() && fused_activation(node) != FusedActivation::none) {
    const std::string operands[] = {"r"};
    std::vector<std::string> parameters;
    for (float bound : node.floats_attribute("activation_params"))
      parameters.push_back(cuda::number_text(bound, ElementType::float32));
    if (name == "Swish") parameters = {"1.0f"};
    text_ += fmt::format("r = {};\n    ", expression_text(name, "Wide<T>", operands, parameters));
  }
  if (!text_.empty()) text_ = "Wide<T> r = widen(y[i]);\n    " + text_ + "y[i] = narrow<T>(r);";
}

std::optional<CudaLoop> CudaEpilogue::prepare(KernelRun& run, const Tensor& y, int64_t repeats, int64_t biases) const {
  if (text_.empty()) return std::nullopt;
  return CudaLoop(run, y.elements(), "T* y, const T* bias, const T* residual", text_, {repeats, biases},
                  fmt::format("typedef {} T;", cuda::type_text(y.type())));
}

void CudaEpilogue::run(KernelRun& run, const CudaLoop& loop, Tensor& y) const {
  loop.run(run,
           {y.raw(), run.has_input(2) ? run.input(2).raw() : nullptr, run.has_input(3) ? run.input(3).raw() : nullptr});
}

}  // namespace tenon::ops
