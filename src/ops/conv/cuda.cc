#include <algorithm>
#include <optional>

#include "base/fail.h"
#include "cuda/convolution.h"
#include "ops/cuda_support/epilogue.h"
#include "ops/cuda_support/loop.h"
#include "ops/cuda_support/patch_conv.h"
#include "ops/window.h"

namespace tenon::ops {
namespace {

std::vector<int64_t> dims_of(const Tensor& tensor) { return {tensor.shape().begin(), tensor.shape().end()}; }

// Where cuDNN has no way: one thread for each element of the output.
CudaLoop direct(KernelRun& run, const cuda::ConvolutionShape& shape) {
  const int spatial = static_cast<int>(shape.strides.size());
  // v: sizes of y (rank), channels of a group in and out, groups' outputs, then for each axis x, kernel, stride,
  // dilation, pad.
  std::vector<int64_t> numbers = shape.y;
  const size_t more = numbers.size();
  numbers.push_back(shape.x[1] / shape.groups);
  numbers.push_back(shape.y[1] / shape.groups);
  const size_t first = numbers.size();
  for (size_t d = 0; d < shape.strides.size(); ++d)
    numbers.insert(numbers.end(),
                   {shape.x[d + 2], shape.w[d + 2], shape.strides[d], shape.dilations[d], shape.pads_begin[d]});
  std::string text = coordinates_text(spatial + 2, 0);
  text += fmt::format(
      "const i64 inputs = v[{}], outputs = v[{}], group = c1 / outputs;\n    Wide<T> sum = 0;\n    "
      "for (i64 c = 0; c < inputs; ++c) {{\n    ",
      more, more + 1);
  std::string x_at = "c0 * inputs * " + std::to_string(shape.groups) + " + group * inputs + c",
              w_at = shape.transposed ? "(group * inputs + c) * outputs + c1 % outputs" : "c1 * inputs + c";
  for (int d = 0; d < spatial; ++d) {
    const size_t at = first + static_cast<size_t>(d) * 5;
    text += fmt::format("for (i64 k{} = 0; k{} < v[{}]; ++k{}) {{\n    ", d, d, at + 1, d);
    if (shape.transposed)
      text += fmt::format(
          "i64 p{} = c{} + v[{}] - k{} * v[{}]; if (p{} < 0 || p{} % v[{}] != 0) continue; p{} /= v[{}]; "
          "if (p{} >= v[{}]) continue;\n    ",
          d, d + 2, at + 4, d, at + 3, d, d, at + 2, d, at + 2, d, at);
    else
      text +=
          fmt::format("const i64 p{} = c{} * v[{}] - v[{}] + k{} * v[{}]; if (p{} < 0 || p{} >= v[{}]) continue;\n    ",
                      d, d + 2, at + 2, at + 4, d, at + 3, d, d, at);
    x_at = fmt::format("({}) * v[{}] + p{}", x_at, at, d);
    w_at = fmt::format("({}) * v[{}] + k{}", w_at, at + 1, d);
  }
  text += fmt::format("sum += widen(x[{}]) * widen(w[{}]);\n    ", x_at, w_at);
  for (int d = 0; d <= spatial; ++d) text += '}';
  text += "\n    y[i] = narrow<T>(sum);";
  int64_t count = 1;
  for (int64_t size : shape.y) count *= size;
  return {run,  count,   "const T* x, const T* w, T* y",
          text, numbers, fmt::format("typedef {} T;", cuda::type_text(shape.type))};
}

class Conv final : public Kernel {
 public:
  explicit Conv(const NodeInfo& info)
      : window_(info.node()),
        groups_(info.node().int_attribute("group", 1)),
        transposed_(info.node().op_type == "ConvTranspose"),
        has_output_shape_(info.node().attribute("output_shape")),
        allow_tf32_(info.precision() == Precision::fast && info.element(0) == ElementType::float32),
        epilogue_(info.node()) {}

  std::string_view rounds_to() const override { return allow_tf32_ ? "tf32" : ""; }

  void run(KernelRun& run) const override {
    const Tensor &x = run.input(0), &w = run.input(1);
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    const auto& plan = run.per_plan<Plan>([&] { return prepare(run, x, w, y); });
    if (plan.is_empty) queue_of(run).fill(y.mutable_raw(), 0, y.bytes());
    if (plan.by_cudnn) plan.by_cudnn->run(queue_of(run), {x.raw(), w.raw(), y.mutable_raw()});
    if (plan.by_patches) plan.by_patches->run(run, {x.raw(), w.raw(), y.mutable_raw()});
    if (plan.direct) plan.direct->run(run, {x.raw(), w.raw(), y.raw()});
    if (plan.epilogue) epilogue_.run(run, *plan.epilogue, y);
  }

 private:
  struct Plan {
    bool is_empty = false;
    std::optional<cuda::Convolution> by_cudnn;
    std::optional<CudaPatchConv> by_patches;
    std::optional<CudaLoop> direct, epilogue;
  };

  Plan prepare(KernelRun& run, const Tensor& x, const Tensor& w, Tensor& y) const {
    Plan plan;
    plan.is_empty = x.elements() == 0 || w.elements() == 0;
    if (!plan.is_empty) {
      cuda::ConvolutionShape shape;
      shape.type = x.type();
      shape.x = dims_of(x);
      shape.w = dims_of(w);
      shape.y = dims_of(y);
      shape.groups = groups_;
      shape.transposed = transposed_;
      shape.allow_tf32 = allow_tf32_;
      const int spatial = x.rank() - 2;
      for (int d = 0; d < spatial; ++d) {
        const WindowAxis axis = window_.axis(d, spatial, w.dim(d + 2));
        shape.strides.push_back(axis.stride);
        shape.dilations.push_back(axis.dilation);
        if (transposed_) {
          const int64_t pad = axis.transposed_pad(x.dim(d + 2), y.dim(d + 2), has_output_shape_);
          shape.pads_begin.push_back(pad);
          shape.pads_end.push_back((x.dim(d + 2) - 1) * axis.stride + (w.dim(d + 2) - 1) * axis.dilation + 1 - pad -
                                   y.dim(d + 2));
        } else {
          const auto [begin, end] = axis.pads(x.dim(d + 2), y.dim(d + 2));
          shape.pads_begin.push_back(begin);
          shape.pads_end.push_back(end);
        }
      }
      plan.by_cudnn = plan_with_cudnn(run, shape);
      if (CudaPatchConv::takes(shape)) choose_patches(run, shape, {x.raw(), w.raw(), y.mutable_raw()}, plan);
      if (!plan.by_cudnn && !plan.by_patches) plan.direct.emplace(direct(run, shape));
    }
    int64_t pixels = 1;
    for (int d = 2; d < y.rank(); ++d) pixels *= y.dim(d);
    plan.epilogue = epilogue_.prepare(run, y, pixels, y.dim(1));
    return plan;
  }

  // Between patches and cuDNN's way, if it has one.
  static void choose_patches(KernelRun& run, const cuda::ConvolutionShape& shape, const cuda::ConvolutionData& data,
                             Plan& plan) {
    CudaPatchConv patches(run, shape, data);
    const auto chosen = cuda::fastest(queue_of(run), "patches or " + shape.text(), uses_of(run),
                                      1 + plan.by_cudnn.has_value(), [&](size_t way) {
                                        if (way == 0)
                                          patches.run(run, data);
                                        else
                                          plan.by_cudnn->run(queue_of(run), data);
                                      });
    if (*chosen > 0) return;
    plan.by_patches.emplace(std::move(patches));
    plan.by_cudnn.reset();
  }

  // cuDNN takes two or three spatial axes, and no negative padding.
  static std::optional<cuda::Convolution> plan_with_cudnn(KernelRun& run, cuda::ConvolutionShape shape) {
    for (int64_t pad : shape.pads_begin)
      if (pad < 0) return std::nullopt;
    for (int64_t pad : shape.pads_end)
      if (pad < 0) return std::nullopt;
    if (shape.strides.size() == 1) {
      for (auto* dims : {&shape.x, &shape.w, &shape.y}) dims->insert(dims->begin() + 2, 1);
      for (auto* list : {&shape.strides, &shape.dilations}) list->insert(list->begin(), 1);
      for (auto* list : {&shape.pads_begin, &shape.pads_end}) list->insert(list->begin(), 0);
    }
    return cuda::Convolution::plan(queue_of(run), uses_of(run), shape,
                                   {run.input(0).raw(), run.input(1).raw(), run.output(0).mutable_raw()});
  }

  WindowAttributes window_;
  int64_t groups_;
  bool transposed_, has_output_shape_, allow_tf32_;
  CudaEpilogue epilogue_;
};

}  // namespace

void cuda_conv(CudaKernels& list) {
  auto make = [](const NodeInfo& info) { return std::make_unique<Conv>(info); };
  list.add("Conv", make, {.types = types::floats});
  list.add("ConvTranspose", make, {.types = types::floats});
  list.add("FusedConv", make, {.types = types::floats, .domain = tenon_domain});
}

}  // namespace tenon::ops
