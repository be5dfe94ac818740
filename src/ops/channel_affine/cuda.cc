#include "ops/cuda_support/coordinates.h"
#include "ops/cuda_support/expressions.h"
#include "ops/fused_activation.h"

namespace tenon::ops {
namespace {

class ChannelAffine final : public Kernel {
 public:
  explicit ChannelAffine(const NodeInfo& info)
      : text_("const I c = (I)i / (I)v[0] % (I)v[1];\n    float r = x[i] * scale[c] + shift[c];\n    ") {
    const ir::Node& node = info.node();
    if (fused_activation(node) != FusedActivation::none) {
      const std::string name = node.string_attribute("activation", ""), operands[] = {"r"};
      std::vector<std::string> parameters;
      for (float bound : node.floats_attribute("activation_params"))
        parameters.push_back(cuda::number_text(bound, ElementType::float32));
      if (name == "Swish") parameters = {"1.0f"};
      text_ += fmt::format("r = {};\n    ", expression_text(name, "float", operands, parameters));
    }
    text_ += "y[i] = r;";
  }

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    const auto& loop = run.per_plan<CudaLoop>([&] {
      return CudaLoop(run, x.elements(), "const float* x, const float* scale, const float* shift, float* y", text_,
                      {x.shape().elements(2, x.rank()), x.dim(1)},
                      fmt::format("typedef {} I;\n", division_type(x.elements())));
    });
    loop.run(run, {x.raw(), run.input(1).raw(), run.input(2).raw(), y.raw()});
  }

  bool may_overwrite(size_t input) const override { return input == 0; }

 private:
  std::string text_;
};

std::string decline(const ir::Node& node) {
  return node.int_attribute("block", 1) == 1 ? "" : "channels in blocks are for the CPU";
}

}  // namespace

void cuda_channel_affine(CudaKernels& list) {
  list.add("ChannelAffine", [](const NodeInfo& info) { return std::make_unique<ChannelAffine>(info); },
           {.types = types::floats, .decline = decline, .domain = tenon_domain});
}

}  // namespace tenon::ops
