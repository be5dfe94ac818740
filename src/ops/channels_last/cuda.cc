#include <algorithm>
#include <optional>

#include "base/rounding.h"
#include "cuda/convolution.h"
#include "ops/cuda_support/arguments.h"
#include "ops/cuda_support/epilogue.h"
#include "ops/cuda_support/loop.h"
#include "ops/cuda_support/packs.h"
#include "ops/window.h"

namespace tenon::ops {
namespace {

// The sizes in the order that they have with channels first.
std::vector<int64_t> channels_first(const Shape& shape) {
  std::vector<int64_t> sizes{shape[0], shape[shape.rank() - 1]};
  for (int axis = 1; axis + 1 < shape.rank(); ++axis) sizes.push_back(shape[axis]);
  return sizes;
}

int64_t product(const std::vector<int64_t>& sizes, size_t first) {
  int64_t result = 1;
  for (size_t i = first; i < sizes.size(); ++i) result *= sizes[i];
  return result;
}

// Where cuDNN has no way: one thread for each element of the output.
CudaLoop direct_convolution(KernelRun& run, const cuda::ConvolutionShape& s) {
  // v: sizes of y with channels last, channels of a group in and out, then for each axis x, kernel, stride, dilation,
  // pad.
  const int spatial = static_cast<int>(s.strides.size());
  std::vector<int64_t> numbers{s.y[0]};
  numbers.insert(numbers.end(), s.y.begin() + 2, s.y.end());
  numbers.insert(numbers.end(), {s.y[1], s.w[1], s.y[1] / s.groups, s.x[1]});
  const int channel = spatial + 1;
  std::string text = coordinates_text(spatial + 2, 0) +
                     fmt::format("const i64 inputs = v[{}], group = c{} / v[{}] * inputs;\n    Wide<T> sum = 0;\n    ",
                                 spatial + 2, channel, spatial + 3);
  std::string x_at = "c0", w_at = fmt::format("c{}", channel);
  for (int d = 0; d < spatial; ++d) {
    const size_t at = numbers.size(), axis = static_cast<size_t>(d);
    numbers.insert(numbers.end(),
                   {s.x[axis + 2], s.w[axis + 2], s.strides[axis], s.dilations[axis], s.pads_begin[axis]});
    text += fmt::format(
        "for (i64 k{0} = 0; k{0} < v[{1}]; ++k{0}) {{\n    const i64 p{0} = c{2} * v[{3}] - v[{4}] + k{0} * v[{5}]; "
        "if (p{0} < 0 || p{0} >= v[{6}]) continue;\n    ",
        d, at + 1, d + 1, at + 2, at + 4, at + 3, at);
    x_at = fmt::format("({}) * v[{}] + p{}", x_at, at, d);
    w_at = fmt::format("({}) * v[{}] + k{}", w_at, at + 1, d);
  }
  text += fmt::format(
      "const T* from = x + ({}) * v[{}] + group;\n    const T* weights = w + ({}) * inputs;\n    "
      "for (i64 c = 0; c < inputs; ++c) sum += widen(from[c]) * widen(weights[c]);\n    ",
      x_at, spatial + 4, w_at);
  text += std::string(static_cast<size_t>(spatial), '}') + "\n    y[i] = narrow<T>(sum);";
  return {run,  product(s.y, 0), "const T* x, const T* w, T* y",
          text, numbers,         fmt::format("typedef {} T;", cuda::type_text(s.type))};
}

// A convolution in which every channel has its own window. A thread has some channels of some pixels side by side.
class DepthwiseConvolution {
 public:
  static bool takes(const cuda::ConvolutionShape& s) {
    constexpr int64_t most_taps = 49;
    return s.groups == s.x[1] && s.groups == s.y[1] && s.groups > 1 && s.strides.size() == 2 &&
           s.w[2] * s.w[3] <= most_taps && s.dilations[0] == 1 && s.dilations[1] == 1;
  }

  DepthwiseConvolution(KernelRun& run, const cuda::ConvolutionShape& s, const CudaEpilogue& epilogue)
      : weights_(queue_of(run).gpu().allocate(product(s.w, 0) * bits_of(s.type) / 8)) {
    const std::string types = fmt::format("typedef {} T;", cuda::type_text(s.type));
    const int64_t channels = s.x[1], taps = s.w[2] * s.w[3];
    // The weights of a tap side by side.
    turn_.emplace(run, channels * taps, "const T* w, T* turned", "turned[i % v[0] * v[1] + i / v[0]] = w[i];",
                  std::vector<int64_t>{taps, channels}, types);
    const int64_t pack = pack_of(s.type, channels,
                                 {run.input(0).raw(), static_cast<const void*>(run.output(0).raw()),
                                  CudaEpilogue::bias_of(run), CudaEpilogue::residual_of(run), weights_.get()});
    const int64_t pixels = pixels_of_thread(4, product(s.y, 0) / pack, queue_of(run).gpu().processors());
    const int64_t strips = divide_up(s.y[3], pixels), columns = (pixels - 1) * s.strides[1] + s.w[3];
    // v: packs of channels, strips and rows of y, its columns; rows, columns of x; pads.
    std::vector<int64_t> numbers{channels / pack, strips, s.y[2],          s.y[3],
                                 s.x[2],          s.x[3], s.pads_begin[0], s.pads_begin[1]};
    const std::string text = fmt::format(
        R"cuda(u32 rest = (u32)i;
    const int c = rest % (u32)v[0] * {pack}; rest /= (u32)v[0];
    const int first = rest % (u32)v[1] * {pixels}; rest /= (u32)v[1];
    const int row = rest % (u32)v[2], n = rest / (u32)v[2];
    const int channels = v[0] * {pack}, rows = v[4], width = v[5];
    Wide<T> sums[{pixels}][{pack}] = {{}};
    #pragma unroll
    for (int ky = 0; ky < {height}; ++ky) {{
      const int iy = row * {stride_y} - (int)v[6] + ky;
      if (iy < 0 || iy >= rows) continue;
      Some taps[{width}];
      #pragma unroll
      for (int kx = 0; kx < {width}; ++kx) taps[kx] = *(const Some*)(w + (ky * {width} + kx) * channels + c);
      const T* from = x + ((i64)n * rows + iy) * width * channels + c;
      #pragma unroll
      for (int column = 0; column < {columns}; ++column) {{
        const int ix = first * {stride_x} - (int)v[7] + column;
        if (ix < 0 || ix >= width) continue;
        const Some pixel = *(const Some*)(from + (i64)ix * channels);
        #pragma unroll
        for (int p = 0; p < {pixels}; ++p) {{
          const int kx = column - p * {stride_x};
          if (kx < 0 || kx >= {width}) continue;
          #pragma unroll
          for (int e = 0; e < {pack}; ++e) sums[p][e] += widen(pixel.v[e]) * widen(taps[kx].v[e]);
        }}
      }}
    }}
    #pragma unroll
    for (int p = 0; p < {pixels}; ++p) {{
      if (first + p >= (int)v[3]) break;
      const i64 at = (((i64)n * v[2] + row) * v[3] + first + p) * channels + c;
      Some result;
      #pragma unroll
      for (int e = 0; e < {pack}; ++e) {{
        Wide<T> r = sums[p][e];
        {epilogue}
        result.v[e] = narrow<T>(r);
      }}
      *(Some*)(y + at) = result;
    }})cuda",
        fmt::arg("pack", pack), fmt::arg("pixels", pixels), fmt::arg("columns", columns), fmt::arg("height", s.w[2]),
        fmt::arg("width", s.w[3]), fmt::arg("stride_y", s.strides[0]), fmt::arg("stride_x", s.strides[1]),
        fmt::arg("epilogue", epilogue.text({}, "bias[c + e]", "residual[at + e]")));
    loop_.emplace(run, s.y[0] * s.y[2] * strips * (channels / pack),
                  "const T* x, const T* w, T* y, const T* bias, const T* residual", text, numbers,
                  types + fmt::format("\ntypedef Pack<T, {}> Some;", pack));
    turn(run);
  }

  void run(KernelRun& run, bool weights_may_change) const {
    if (weights_may_change) turn(run);
    loop_->run(run, {run.input(0).raw(), weights_.get(), run.output(0).raw(), CudaEpilogue::bias_of(run),
                     CudaEpilogue::residual_of(run)});
  }

 private:
  void turn(KernelRun& run) const { turn_->run(run, {run.input(1).raw(), weights_.get()}); }

  std::shared_ptr<void> weights_;
  std::optional<CudaLoop> turn_, loop_;
};

class Conv final : public Kernel {
 public:
  explicit Conv(const NodeInfo& info)
      : window_(info.node()),
        groups_(info.node().int_attribute("group", 1)),
        has_fixed_weights_(info.constant(1)),
        allow_tf32_(info.precision() == Precision::fast && info.element(0) == ElementType::float32),
        epilogue_(info.node()) {}

  std::string_view rounds_to() const override { return allow_tf32_ ? "tf32" : ""; }

  void run(KernelRun& run) const override {
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    const auto& plan = run.per_plan<Plan>([&] { return prepare(run, y); });
    const void *x = run.input(0).raw(), *w = run.input(1).raw();
    if (plan.is_empty) queue_of(run).fill(y.mutable_raw(), 0, y.bytes());
    if (plan.depthwise) plan.depthwise->run(run, !has_fixed_weights_);
    if (plan.gemm)
      plan.gemm->run(queue_of(run), x, w, y.mutable_raw(), CudaEpilogue::bias_of(run), CudaEpilogue::residual_of(run));
    if (plan.by_cudnn) plan.by_cudnn->run(queue_of(run), data_of(run, plan.done));
    if (plan.direct) plan.direct->run(run, {x, w, y.raw()});
    if (plan.rest) epilogue_.run(run, *plan.rest, y);
  }

 private:
  struct Plan {
    bool is_empty = false;
    std::optional<DepthwiseConvolution> depthwise;
    std::optional<cuda::Gemm> gemm;
    std::optional<cuda::Convolution> by_cudnn;
    std::optional<CudaLoop> direct, rest;
    cuda::Epilogue done;  // of the epilogue, while results were stored
  };

  static cuda::ConvolutionData data_of(KernelRun& run, const cuda::Epilogue& epilogue) {
    return {run.input(0).raw(), run.input(1).raw(), run.output(0).mutable_raw(),
            epilogue.bias ? CudaEpilogue::bias_of(run) : nullptr,
            epilogue.residual ? CudaEpilogue::residual_of(run) : nullptr};
  }

  cuda::ConvolutionShape shape_of(const Tensor& x, const Tensor& w, const Tensor& y) const {
    cuda::ConvolutionShape shape;
    shape.type = x.type();
    shape.x = channels_first(x.shape());
    shape.w = channels_first(w.shape());
    shape.y = channels_first(y.shape());
    shape.groups = groups_;
    shape.channels_last = true;
    shape.allow_tf32 = allow_tf32_;
    const int spatial = x.rank() - 2;
    for (int d = 0; d < spatial; ++d) {
      const auto at = static_cast<size_t>(d + 2);
      const WindowAxis axis = window_.axis(d, spatial, shape.w[at]);
      const auto [begin, end] = axis.pads(shape.x[at], shape.y[at]);
      shape.strides.push_back(axis.stride);
      shape.dilations.push_back(axis.dilation);
      shape.pads_begin.push_back(begin);
      shape.pads_end.push_back(end);
    }
    return shape;
  }

  // Every pixel is a row of a matrix.
  static bool is_product(const cuda::ConvolutionShape& s) {
    auto is = [](const std::vector<int64_t>& list, int64_t wanted) {
      return std::ranges::all_of(list, [&](int64_t number) { return number == wanted; });
    };
    return s.groups == 1 && product(s.w, 2) == 1 && is(s.strides, 1) && is(s.pads_begin, 0) && is(s.pads_end, 0);
  }

  Plan prepare(KernelRun& run, const Tensor& y) const {
    const Tensor &x = run.input(0), &w = run.input(1);
    const cuda::ConvolutionShape shape = shape_of(x, w, y);
    Plan plan;
    plan.is_empty = x.elements() == 0 || w.elements() == 0;
    if (!plan.is_empty && DepthwiseConvolution::takes(shape)) {
      plan.depthwise.emplace(run, shape, epilogue_);
      return plan;
    }
    if (!plan.is_empty && is_product(shape)) {
      plan.gemm.emplace(queue_of(run), as_product(run, shape));
      plan.gemm->choose_by_trial(queue_of(run), x.raw(), w.raw(), run.output(0).mutable_raw(),
                                 CudaEpilogue::bias_of(run), CudaEpilogue::residual_of(run));
      plan.done = plan.gemm->epilogue();
    } else if (!plan.is_empty) {
      plan.by_cudnn = plan_by_cudnn(run, shape, epilogue_.for_library());
      if (plan.by_cudnn)
        plan.done = epilogue_.for_library();
      else if (!epilogue_.for_library().is_empty())
        plan.by_cudnn = plan_by_cudnn(run, shape, {});
      if (!plan.by_cudnn) plan.direct.emplace(direct_convolution(run, shape));
    }
    plan.rest = epilogue_.prepare(run, y, 1, shape.y[1], plan.done);
    return plan;
  }

  // cuDNN takes two or three spatial axes, and no negative padding.
  static std::optional<cuda::Convolution> plan_by_cudnn(KernelRun& run, cuda::ConvolutionShape shape,
                                                        const cuda::Epilogue& epilogue) {
    auto is_negative = [](int64_t pad) { return pad < 0; };
    if (shape.strides.size() < 2 || std::ranges::any_of(shape.pads_begin, is_negative) ||
        std::ranges::any_of(shape.pads_end, is_negative))
      return std::nullopt;
    shape.epilogue = epilogue;
    return cuda::Convolution::plan(queue_of(run), shape, data_of(run, epilogue));
  }

  cuda::GemmShape as_product(KernelRun& run, const cuda::ConvolutionShape& s) const {
    cuda::GemmShape gemm;
    gemm.type = gemm.output = s.type;
    gemm.m = s.y[0] * product(s.y, 2);
    gemm.n = gemm.y_row = s.y[1];
    gemm.k = gemm.a_row = gemm.b_row = s.x[1];
    gemm.transpose_b = true;
    gemm.allow_tf32 = allow_tf32_;
    gemm.epilogue = epilogue_.for_library();
    gemm.alignment =
        alignment_of({run.input(0).raw(), run.input(1).raw(), static_cast<const void*>(run.output(0).raw()),
                      CudaEpilogue::bias_of(run), CudaEpilogue::residual_of(run)});
    return gemm;
  }

  WindowAttributes window_;
  int64_t groups_;
  bool has_fixed_weights_, allow_tf32_;
  CudaEpilogue epilogue_;
};

class Pool final : public Kernel {
 public:
  explicit Pool(const NodeInfo& info)
      : window_(info.node()),
        is_average_(info.node().op_type == "ChannelsLastAveragePool"),
        counts_padding_(info.node().int_attribute("count_include_pad", 0) != 0) {}

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    const auto& loop = run.per_plan<CudaLoop>([&] { return prepare(run, x, y); });
    loop.run(run, {x.raw(), y.raw()});
  }

 private:
  CudaLoop prepare(KernelRun& run, const Tensor& x, const Tensor& y) const {
    const int spatial = x.rank() - 2;
    const int64_t channels = x.dim(x.rank() - 1),
                  pack = pack_of(x.type(), channels, {x.raw(), static_cast<const void*>(y.raw())});
    // v: batch and sizes of y, packs of channels, then for each axis x, kernel, stride, dilation, pads.
    std::vector<int64_t> numbers;
    for (int axis = 0; axis + 1 < y.rank(); ++axis) numbers.push_back(y.dim(axis));
    numbers.push_back(channels / pack);
    std::string text = coordinates_text(spatial + 2, 0) +
                       fmt::format("A totals[{}], count = 0;\n    for (int e = 0; e < {}; ++e) totals[e] = {};\n    ",
                                   pack, pack, is_average_ ? "0" : "-INFINITE");
    std::string at = "c0", open, close, with_padding = "(A)1";
    for (int d = 0; d < spatial; ++d) {
      const WindowAxis axis = window_.axis(d, spatial);
      const auto [begin, end] = axis.pads(x.dim(d + 1), y.dim(d + 1));
      const size_t first = numbers.size();
      numbers.insert(numbers.end(), {x.dim(d + 1), axis.kernel.value(), axis.stride, axis.dilation, begin, end});
      open += fmt::format(
          "for (i64 k{0} = 0; k{0} < v[{1}]; ++k{0}) {{ const i64 p{0} = c{2} * v[{3}] - v[{4}] + k{0} * v[{5}]; "
          "if (p{0} < 0 || p{0} >= v[{6}]) continue;\n    ",
          d, first + 1, d + 1, first + 2, first + 4, first + 3, first);
      close += "}";
      at = fmt::format("({}) * v[{}] + p{}", at, first, d);
      // Taps that are neither in the image nor in its padding count nowhere.
      with_padding +=
          fmt::format(" * (A)least(v[{0}], (v[{1}] + v[{2}] + v[{3}] - c{4} * v[{5}] + v[{6}] - 1) / v[{6}])",
                      first + 1, first, first + 4, first + 5, d + 1, first + 2, first + 3);
    }
    text += open + fmt::format(
                       "const Some pixel = ((const Some*)x)[({}) * v[{}] + c{}];\n    count += 1;\n    "
                       "for (int e = 0; e < {}; ++e) {{ const A value = widen(pixel.v[e]); {} }}\n    {}\n    ",
                       at, spatial + 1, spatial + 1, pack,
                       is_average_ ? "totals[e] += value;" : "totals[e] = most(totals[e], value);", close);
    text += fmt::format(
        "Some result;\n    for (int e = 0; e < {}; ++e) result.v[e] = narrow<T>({});\n    "
        "((Some*)y)[i] = result;",
        pack,
        !is_average_      ? "totals[e]"
        : counts_padding_ ? fmt::format("totals[e] / ({})", with_padding)
                          : "totals[e] / count");
    return {run,
            y.elements() / pack,
            "const T* x, T* y",
            text,
            numbers,
            types_text(x.type()) + fmt::format("typedef Pack<T, {}> Some;", pack)};
  }

  WindowAttributes window_;
  bool is_average_, counts_padding_;
};

}  // namespace

void cuda_channels_last(CudaKernels& list) {
  auto pool = [](const NodeInfo& info) { return std::make_unique<Pool>(info); };
  const CudaKernelOptions options{.types = types::floats, .domain = tenon_domain};
  list.add(
      "ChannelsLastConv", [](const NodeInfo& info) { return std::make_unique<Conv>(info); }, options);
  list.add("ChannelsLastMaxPool", pool, options);
  list.add("ChannelsLastAveragePool", pool, options);
}

}  // namespace tenon::ops
