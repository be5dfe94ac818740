#include "ops/cuda_support/epilogue.h"

#include "ops/cuda_support/expressions.h"
#include "ops/cuda_support/packs.h"
#include "ops/fused_activation.h"

namespace tenon::ops {
CudaEpilogue::CudaEpilogue(const ir::Node& node) {
  for_library_.bias = node.input(2) != nullptr;
  for_library_.residual = node.input(3) != nullptr;
  std::string name = node.string_attribute("activation", "");
  if (name.empty() || fused_activation(node) == FusedActivation::none) return;
  for_library_.relu = name == "Relu";
  if (name == "Gelu" && bits_of(node.input(0)->type.element) == 16) name = "HalfGelu";
  const std::string operands[] = {"r"};
  std::vector<std::string> parameters;
  for (float bound : node.floats_attribute("activation_params"))
    parameters.push_back(cuda::number_text(bound, ElementType::float32));
  if (name == "Swish") parameters = {"1.0f"};
  activation_ = fmt::format("r = {};", expression_text(name, "Wide<T>", operands, parameters));
}

std::string CudaEpilogue::text(const cuda::Epilogue& done, std::string_view bias, std::string_view residual) const {
  std::string text;
  if (for_library_.bias && !done.bias) text += fmt::format("r += widen({});\n    ", bias);
  if (for_library_.residual && !done.residual) text += fmt::format("r += widen({});\n    ", residual);
  return done.relu ? text : text + activation_;
}

std::string CudaEpilogue::in_kernel(std::string_view kernel, std::string_view bias, std::string_view residual) const {
  constexpr std::string_view place = "EPILOGUE";
  std::string result(kernel);
  return result.replace(result.find(place), place.size(), text({}, bias, residual));
}

std::optional<CudaLoop> CudaEpilogue::prepare(KernelRun& run, const Tensor& y, int64_t repeats, int64_t biases,
                                              const cuda::Epilogue& done) const {
  const bool adds_bias = for_library_.bias && !done.bias, adds_residual = for_library_.residual && !done.residual;
  // Elements that have one bias, or as many that lie side by side.
  const bool is_by_column = repeats == 1;
  const int64_t pack = pack_of(
      y.type(), is_by_column ? biases : repeats,
      {y.raw(), adds_bias && is_by_column ? bias_of(run) : nullptr, adds_residual ? residual_of(run) : nullptr});
  const std::string each = text(done, repeats == 1 ? "biases.v[e]" : "biases", "residuals.v[e]");
  if (each.empty()) return std::nullopt;
  std::string text = "Some all = ((Some*)y)[i];\n    ";
  if (adds_bias)
    text += repeats == 1 ? "const Some biases = ((const Some*)bias)[(Index)i % (Index)v[1]];\n    "
                         : "const T biases = bias[(Index)i / (Index)v[0] % (Index)v[1]];\n    ";
  if (adds_residual) text += "const Some residuals = ((const Some*)residual)[i];\n    ";
  text += fmt::format(
      "for (int e = 0; e < {}; ++e) {{\n    Wide<T> r = widen(all.v[e]);\n    {}\n    all.v[e] = narrow<T>(r);\n    "
      "}}\n"
      "    ((Some*)y)[i] = all;",
      pack, each);
  const bool is_small = y.elements() < int64_t{1} << 31;
  const int64_t in_packs = repeats == 1 ? biases / pack : biases;
  return CudaLoop(run, y.elements() / pack, "T* y, const T* bias, const T* residual", text,
                  {std::max<int64_t>(1, repeats / pack), in_packs},
                  fmt::format("typedef {} T;\ntypedef Pack<T, {}> Some;\ntypedef {} Index;", cuda::type_text(y.type()),
                              pack, is_small ? "u32" : "u64"));
}

void CudaEpilogue::run(KernelRun& run, const CudaLoop& loop, Tensor& y) const {
  loop.run(run, {y.raw(), bias_of(run), residual_of(run)});
}

}  // namespace tenon::ops
