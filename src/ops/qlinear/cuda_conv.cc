#include "ops/qlinear/cuda_conv.h"

#include <algorithm>
#include <optional>

#include "base/fail.h"
#include "base/rounding.h"
#include "ops/cuda_support/arguments.h"
#include "ops/cuda_support/byte_conv.h"
#include "ops/cuda_support/code_text.h"
#include "ops/cuda_support/packs.h"
#include "ops/dispatch.h"
#include "ops/qlinear/qlinear.h"
#include "ops/window.h"

namespace tenon::ops {
namespace {

// Where a node has what.
constexpr size_t x_zero_input = 2, w_input = 3, w_scale_input = 4, w_zero_input = 5, y_zero_input = 7, bias_input = 8,
                 added_input = 9, table_input = 14;

ByteConvData data_of(KernelRun& run) {
  ByteConvData data{run.input(0).raw(), run.output(0).raw()};
  data.x_zero = run.input(x_zero_input).raw();
  data.x_scale = run.input(1).raw();
  data.w_scale = run.input(w_scale_input).raw();
  data.y_scale = run.input(6).raw();
  data.y_zero = run.input(y_zero_input).raw();
  data.bias = input_address(run, bias_input);
  data.added = input_address(run, added_input);
  data.added_scale = input_address(run, added_input + 1);
  data.added_zero = input_address(run, added_input + 2);
  data.sum_scale = input_address(run, added_input + 3);
  data.sum_zero = input_address(run, added_input + 4);
  data.table = input_address(run, table_input);
  return data;
}

// Weights less their zero points, those of a tap side by side: [taps, channels].
Tensor weights_of_taps(const Tensor& w, const Tensor& zeros) {
  const int64_t channels = w.dim(0), taps = w.elements() / channels;
  Tensor result(ElementType::int16, Shape{taps, channels});
  int16_t* to = result.mutable_data<int16_t>().data();
  dispatch<int8_t, uint8_t>(w.type(), [&]<typename T>() {
    for (int64_t c = 0; c < channels; ++c) {
      const T zero = zeros.data<T>()[zeros.elements() == 1 ? 0 : static_cast<size_t>(c)];
      for (int64_t t = 0; t < taps; ++t)
        to[t * channels + c] = static_cast<int16_t>(w.data<T>()[static_cast<size_t>(c * taps + t)] - zero);
    }
  });
  return result;
}

// Every channel has its own window. A thread has some channels of some pixels side by side.
CudaLoop depthwise(KernelRun& run, const ByteConvShape& s, const ByteConvData& data, bool has_one_scale) {
  const ElementType x_type = run.input(0).type(), y_type = run.output(0).type();
  const int64_t pack = std::min<int64_t>(8, pack_of(x_type, s.channels, {data.x, data.y, data.added}));
  const int64_t pixels =
      pixels_of_thread(s.dilations[1] == 1 ? 4 : 1, s.rows() * s.channels / pack, queue_of(run).gpu().processors());
  const int64_t strips = divide_up(s.out_width, pixels), columns = (pixels - 1) * s.strides[1] + s.kernel[1];
  const std::string text = fmt::format(
      R"cuda(u32 rest = (u32)i;
    const int c = rest % (u32)v[0] * {pack}; rest /= (u32)v[0];
    const int first = rest % (u32)v[1] * {pixels}; rest /= (u32)v[1];
    const int row = rest % (u32)v[2], n = rest / (u32)v[2];
    const int channels = v[0] * {pack}, rows = v[4], width = v[5];
    const i32 x_zero_code = *x_zero;
    i32 sums[{pixels}][{pack}] = {{}};
    {unroll}
    for (int ky = 0; ky < {height}; ++ky) {{
      const int iy = row * {stride_y} - (int)v[6] + ky * {dilation_y};
      if (iy < 0 || iy >= rows) continue;
      Pack<i16, {pack}> taps[{width}];
      #pragma unroll
      for (int kx = 0; kx < {width}; ++kx) taps[kx] = *(const Pack<i16, {pack}>*)(w + (ky * {width} + kx) * channels + c);
      const X* from = x + ((i64)n * rows + iy) * width * channels + c;
      #pragma unroll
      for (int column = 0; column < {columns}; ++column) {{
        const int ix = first * {stride_x} - (int)v[7] + column * {dilation_x};
        if (ix < 0 || ix >= width) continue;
        const Pack<X, {pack}> pixel = *(const Pack<X, {pack}>*)(from + (i64)ix * channels);
        #pragma unroll
        for (int p = 0; p < {pixels}; ++p) {{
          const int kx = column - p * {stride_x};
          if (kx < 0 || kx >= {width}) continue;
          #pragma unroll
          for (int e = 0; e < {pack}; ++e) sums[p][e] += ((i32)pixel.v[e] - x_zero_code) * (i32)taps[kx].v[e];
        }}
      }}
    }}
    const i32 zero = *y_zero;
    float scales[{pack}];
    #pragma unroll
    for (int e = 0; e < {pack}; ++e) scales[e] = times(*x_scale, w_scale[{scale}]) / *y_scale;
    #pragma unroll
    for (int p = 0; p < {pixels}; ++p) {{
      if (first + p >= (int)v[3]) break;
      const i64 at = (((i64)n * v[2] + row) * v[3] + first + p) * channels + c;
      Pack<Y, {pack}> result;
      #pragma unroll
      for (int e = 0; e < {pack}; ++e) {{
        const i32 sum = (i32)((u32)sums[p][e]{bias});
        i32 code = code_of<Y>(times((float)sum, scales[e]), zero);
        {add}
        result.v[e] = {result};
      }}
      *(Pack<Y, {pack}>*)(y + at) = result;
    }})cuda",
      fmt::arg("pack", pack), fmt::arg("pixels", pixels), fmt::arg("columns", columns), fmt::arg("height", s.kernel[0]),
      fmt::arg("width", s.kernel[1]), fmt::arg("stride_y", s.strides[0]), fmt::arg("stride_x", s.strides[1]),
      fmt::arg("dilation_y", s.dilations[0]), fmt::arg("dilation_x", s.dilations[1]),
      fmt::arg("unroll", s.taps() <= 49 ? "#pragma unroll" : "#pragma unroll 1"),
      fmt::arg("scale", has_one_scale ? "0" : "c + e"), fmt::arg("bias", data.bias ? " + (u32)bias[c + e]" : ""),
      fmt::arg("add", data.added ? "code = code_of<Y>(plus(times((float)(code - zero), *y_scale / *sum_scale), "
                                   "times((float)((i32)added[at + e] - (i32)*added_zero), *added_scale / *sum_scale)), "
                                   "(i32)*sum_zero);"
                                 : ""),
      fmt::arg("result", data.table ? "table[(u8)code]" : "(Y)code"));
  // v: packs of channels, strips and rows of y, its columns; rows, columns of x; pads.
  return {
      run,
      s.images * s.out_height * strips * (s.channels / pack),
      "const X* x, const i16* w, const X* x_zero, const float* x_scale, const float* w_scale, const float* y_scale, "
      "const Y* y_zero, const i32* bias, const Y* added, const float* added_scale, const Y* added_zero, "
      "const float* sum_scale, const Y* sum_zero, const Y* table, Y* y",
      text,
      {s.channels / pack, strips, s.out_height, s.out_width, s.height, s.width, s.pads[0], s.pads[1]},
      fmt::format("{}typedef {} X;\ntypedef {} Y;", code_functions, cuda::type_text(x_type), cuda::type_text(y_type))};
}

class NhwcConv final : public Kernel {
 public:
  explicit NhwcConv(const NodeInfo& info)
      : window_(info.node()),
        groups_(info.node().int_attribute("group", 1)),
        w_shape_(info.constant(w_input)->shape()) {
    const Tensor &w = *info.constant(w_input), &zeros = *info.constant(w_zero_input);
    is_depthwise_ = groups_ > 1 && groups_ == w.dim(0) && w.dim(1) == 1;
    has_one_scale_ = info.constant(w_scale_input)->elements() == 1;
    source_.is_float = info.element(0) == ElementType::float32;
    source_.channels_first = info.node().int_attribute("reads_channels_first", 0) != 0;
    if (is_depthwise_) {
      taps_ = weights_of_taps(w, zeros);
      return;
    }
    const int64_t taps = w.dim(2) * w.dim(3);
    weights_ = ByteConvWeights::pack(w, &zeros, shape_of_weights(), {w.dim(1) * taps, taps, 1});
    TENON_CHECK(weights_);
  }

  void run(KernelRun& run) const override {
    if (run.output(0).elements() == 0) return;
    const auto& plan = run.per_plan<Plan>([&] { return prepare(run); });
    const ByteConvData d = data_of(run);
    if (plan.conv) return plan.conv->run(run, d);
    plan.depthwise->run(run, {d.x, plan.taps->raw(), d.x_zero, d.x_scale, d.w_scale, d.y_scale, d.y_zero, d.bias,
                              d.added, d.added_scale, d.added_zero, d.sum_scale, d.sum_zero, d.table, d.y});
  }

 private:
  struct Plan {
    std::optional<CudaByteConv> conv;
    std::optional<Tensor> taps;  // on the GPU
    std::optional<CudaLoop> depthwise;
  };

  ByteConvShape shape_of_weights() const {
    ByteConvShape shape;
    shape.groups = groups_;
    shape.channels = w_shape_[1] * groups_;
    shape.outputs = w_shape_[0];
    for (int d : {0, 1}) {
      const WindowAxis axis = window_.axis(d, 2, w_shape_[d + 2]);
      shape.kernel[d] = w_shape_[d + 2];
      shape.strides[d] = axis.stride;
      shape.dilations[d] = axis.dilation;
    }
    return shape;
  }

  Plan prepare(KernelRun& run) const {
    const Tensor &x = run.input(0), &y = run.output(0);
    ByteConvShape shape = shape_of_weights();
    const int first = source_.channels_first ? 2 : 1;
    shape.images = x.dim(0);
    shape.height = x.dim(first);
    shape.width = x.dim(first + 1);
    shape.out_height = y.dim(1);
    shape.out_width = y.dim(2);
    for (int d : {0, 1}) shape.pads[d] = window_.axis(d, 2, w_shape_[d + 2]).pads(x.dim(d + first), y.dim(d + 1)).first;
    const ByteConvData data = data_of(run);
    if (data.added && run.input(added_input).shape() != y.shape())
      fail(ErrorCode::shape_mismatch, "the addend has another shape than the result");
    if (data.table && run.input(table_input).elements() != 256)
      fail(ErrorCode::shape_mismatch, "the table has {} entries; it must have 256", run.input(table_input).elements());
    Plan plan;
    if (is_depthwise_) {
      if (shape.rows() * shape.channels >= int64_t{1} << 31)
        fail(ErrorCode::unsupported, "an image of {} elements is too large for the GPU", y.elements());
      plan.taps = queue_of(run).gpu().upload(taps_);
      plan.depthwise.emplace(depthwise(run, shape, data, has_one_scale_));
      return plan;
    }
    if (!CudaByteConv::takes(queue_of(run).gpu(), shape))
      fail(ErrorCode::unsupported, "a convolution of {} pixels is too large for the GPU", shape.rows());
    ByteConvResult result;
    result.has_one_scale = has_one_scale_;
    if (data.bias) result.bias = ByteConvResult::Bias::to_sums;
    if (data.added) result.added = ByteConvResult::Added::image;
    result.has_table = data.table != nullptr;
    plan.conv.emplace(run, shape, weights_, run.input(x_zero_input).type(), y.type(), result, data, source_);
    return plan;
  }

  WindowAttributes window_;
  int64_t groups_;
  Shape w_shape_;
  ByteConvSource source_;
  bool is_depthwise_ = false, has_one_scale_ = true;
  Tensor taps_;  // of a depthwise one
  std::shared_ptr<const ByteConvWeights> weights_;
};

std::string decline(const ir::Node& node) {
  if (node.int_attribute("channels_last", 0) == 0) return "channels come first";
  const bool is_copied =
      node.input(0)->type.element == ElementType::float32 || node.int_attribute("reads_channels_first", 0) != 0;
  if (is_copied && node.int_attribute("group", 1) != 1)
    return "it has groups of floats, or of channels that come first";
  return why_not_nhwc_on_gpu(node);
}

}  // namespace

void cuda_nhwc_conv(CudaKernels& list) {
  for (std::string_view domain : {microsoft, tenon_domain})
    list.add("QLinearConv", [](const NodeInfo& info) { return std::make_unique<NhwcConv>(info); },
             {.decline = decline, .domain = domain, .least_major = 8});
}

}  // namespace tenon::ops
