#include <algorithm>
#include <optional>

#include "base/rounding.h"
#include "cuda/convolution.h"
#include "cuda/trial.h"
#include "ops/channels_last/cuda_depthwise.h"
#include "ops/cuda_support/arguments.h"
#include "ops/cuda_support/box_conv.h"
#include "ops/cuda_support/element_text.h"
#include "ops/cuda_support/epilogue.h"
#include "ops/cuda_support/first_conv.h"
#include "ops/cuda_support/group_conv.h"
#include "ops/cuda_support/group_first_conv.h"
#include "ops/cuda_support/loop.h"
#include "ops/cuda_support/own_products.h"
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
    if (plan.is_empty) queue_of(run).fill(y.mutable_raw(), 0, y.bytes());
    if (plan.depthwise) plan.depthwise->run(run, !has_fixed_weights_);
    if (plan.own_product) plan.own_product->run(run);
    if (plan.first) plan.first->run(run, !has_fixed_weights_);
    if (plan.first_by_groups) plan.first_by_groups->run(run, !has_fixed_weights_);
    if (plan.by_groups) plan.by_groups->run(run);
    if (plan.by_boxes) plan.by_boxes->run(run);
    run_library(run, plan);
  }

 private:
  struct Plan {
    bool is_empty = false;
    std::optional<CudaDepthwise> depthwise;
    std::optional<CudaOwnProduct> own_product;
    std::optional<CudaFirstConvolution> first;
    std::optional<CudaGroupFirstConvolution> first_by_groups;
    std::optional<CudaGroupConvolution> by_groups;
    std::optional<CudaBoxConvolution> by_boxes;
    std::shared_ptr<const size_t> chosen;  // of a library's way and ours
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
    shape.has_fixed_weights = has_fixed_weights_;
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
    if (!plan.is_empty && CudaDepthwise::takes(shape)) {
      plan.depthwise.emplace(run, shape, epilogue_);
      return plan;
    }
    if (!plan.is_empty && is_product(shape)) {
      plan.gemm.emplace(queue_of(run), as_product(run, shape));
      plan.gemm->choose_by_trial(queue_of(run), uses_of(run), x.raw(), w.raw(), run.output(0).mutable_raw(),
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
    if (plan.gemm) choose_product(run, shape, plan);
    if (plan.is_empty || is_product(shape)) return plan;
    if (CudaFirstConvolution::takes(run, shape) || CudaGroupFirstConvolution::takes(run, shape))
      choose_first(run, shape, plan);
    else if (CudaGroupConvolution::takes(run, shape))
      choose_by_groups(run, shape, plan);
    return plan;
  }

  // What a library does, or plain arithmetic where it has no way, and what is left to do after it.
  void run_library(KernelRun& run, const Plan& plan) const {
    Tensor& y = run.output(0);
    if (plan.gemm)
      plan.gemm->run(queue_of(run), run.input(0).raw(), run.input(1).raw(), y.mutable_raw(), CudaEpilogue::bias_of(run),
                     CudaEpilogue::residual_of(run));
    if (plan.by_cudnn) plan.by_cudnn->run(queue_of(run), data_of(run, plan.done));
    if (plan.direct) plan.direct->run(run, {run.input(0).raw(), run.input(1).raw(), y.raw()});
    if (plan.rest) epilogue_.run(run, *plan.rest, y);
  }

  void choose_product(KernelRun& run, const cuda::ConvolutionShape& s, Plan& plan) const {
    const MatMulShape shape{.type = s.type,
                            .rows = s.y[0] * product(s.y, 2),
                            .columns = s.y[1],
                            .depth = s.x[1],
                            .transpose_b = true,
                            .has_fixed_b = s.has_fixed_weights,
                            .allow_tf32 = s.allow_tf32};
    std::vector<CudaOwnProduct> ways = own_products_of_pixels(run, shape, epilogue_, plan.rest.has_value());
    if (ways.empty()) return;
    const size_t chosen = choose(run, s, plan, ways.size(), [&](size_t way) { ways[way].run(run); });
    if (chosen > 0) plan.own_product = std::move(ways[chosen - 1]);
  }

  void choose_first(KernelRun& run, const cuda::ConvolutionShape& s, Plan& plan) const {
    std::optional<CudaFirstConvolution> by_warps;
    std::optional<CudaGroupFirstConvolution> by_groups;
    if (CudaFirstConvolution::takes(run, s)) by_warps.emplace(run, s, epilogue_);
    if (CudaGroupFirstConvolution::takes(run, s)) by_groups.emplace(run, s, epilogue_);
    const size_t count = (by_warps ? 1 : 0) + (by_groups ? 1 : 0);
    const auto is_by_groups = [&](size_t way) { return by_groups && way + 1 == count; };
    const size_t chosen = choose(run, s, plan, count, [&](size_t way) {
      if (is_by_groups(way))
        by_groups->run(run, false);
      else
        by_warps->run(run, false);
    });
    if (chosen == 0) return;
    if (is_by_groups(chosen - 1))
      plan.first_by_groups = std::move(by_groups);
    else
      plan.first = std::move(by_warps);
  }

  void choose_by_groups(KernelRun& run, const cuda::ConvolutionShape& s, Plan& plan) const {
    const int processors = queue_of(run).gpu().processors();
    std::vector<CudaGroupConvolution> by_groups;
    for (const GroupMatMulTile& tile : CudaGroupConvolution::tiles(s, processors))
      by_groups.emplace_back(run, s, epilogue_, tile);
    std::vector<CudaBoxConvolution> by_boxes;
    if (CudaBoxConvolution::takes(run, s))
      for (const CudaBoxConvolution::Tile& tile : CudaBoxConvolution::tiles(s, processors))
        by_boxes.emplace_back(run, s, epilogue_, tile);
    const size_t chosen = choose(run, s, plan, by_groups.size() + by_boxes.size(), [&](size_t way) {
      if (way < by_groups.size())
        by_groups[way].run(run);
      else
        by_boxes[way - by_groups.size()].run(run);
    });
    if (chosen > by_groups.size())
      plan.by_boxes = std::move(by_boxes[chosen - 1 - by_groups.size()]);
    else if (chosen > 0)
      plan.by_groups = std::move(by_groups[chosen - 1]);
  }

  // Between a library's way, which is 0, and `count` of ours. Nodes of the same shape choose once.
  size_t choose(KernelRun& run, const cuda::ConvolutionShape& s, Plan& plan, size_t count,
                FunctionRef<void(size_t)> run_ours) const {
    const std::string key =
        fmt::format("conv {} {} {} {} {} {} {} {} {}", name_of(s.type), fmt::join(s.x, "x"), fmt::join(s.w, "x"),
                    fmt::join(s.y, "x"), fmt::join(s.strides, ","), fmt::join(s.pads_begin, ","), plan.rest.has_value(),
                    count, epilogue_.text({}, "bias", "residual"));
    plan.chosen = cuda::fastest(queue_of(run), key, uses_of(run), 1 + count, [&](size_t way) {
      if (way == 0)
        run_library(run, plan);
      else
        run_ours(way - 1);
    });
    if (*plan.chosen > 0) {
      plan.gemm.reset();
      plan.by_cudnn.reset();
      plan.direct.reset();
      plan.rest.reset();
    }
    return *plan.chosen;
  }

  // cuDNN takes two or three spatial axes, and no negative padding.
  static std::optional<cuda::Convolution> plan_by_cudnn(KernelRun& run, cuda::ConvolutionShape shape,
                                                        const cuda::Epilogue& epilogue) {
    auto is_negative = [](int64_t pad) { return pad < 0; };
    if (shape.strides.size() < 2 || std::ranges::any_of(shape.pads_begin, is_negative) ||
        std::ranges::any_of(shape.pads_end, is_negative))
      return std::nullopt;
    shape.epilogue = epilogue;
    return cuda::Convolution::plan(queue_of(run), uses_of(run), shape, data_of(run, epilogue));
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
    // v: batch and sizes of y, packs of channels, then for each axis the size of x and its pads. What is outside of the
    // image is left out of the sum, but all reads are under way at the same time.
    constexpr int64_t most_unrolled = 16;
    std::vector<int64_t> numbers;
    for (int axis = 0; axis + 1 < y.rank(); ++axis) numbers.push_back(y.dim(axis));
    numbers.push_back(channels / pack);
    int64_t taps = 1;
    for (int d = 0; d < spatial; ++d) taps *= window_.axis(d, spatial).kernel.value();
    const std::string_view index = index_text(std::max(x.elements(), y.elements()));
    std::string text =
        coordinates_in(index, spatial + 2, 0) + fmt::format("const Index packs = v[{}];\n    ", spatial + 1);
    std::string at = "c0", open, close, with_padding = "(A)1", is_inside = "true";
    for (int d = 0; d < spatial; ++d) {
      const WindowAxis axis = window_.axis(d, spatial);
      const auto [begin, end] = axis.pads(x.dim(d + 1), y.dim(d + 1));
      const size_t first = numbers.size();
      numbers.insert(numbers.end(), {x.dim(d + 1), begin, end});
      open += fmt::format(
          "#pragma unroll {6}\n    for (int k{0} = 0; k{0} < {1}; ++k{0}) {{\n    "
          "const Signed p{0} = (Signed)c{2} * {3} - (Signed)v[{4}] + k{0} * {5};\n    ",
          d, axis.kernel.value(), d + 1, axis.stride, first + 1, axis.dilation,
          taps <= most_unrolled ? axis.kernel.value() : 1);
      close += '}';
      is_inside += fmt::format(" && p{0} >= 0 && p{0} < (Signed)v[{1}]", d, first);
      at = fmt::format("({}) * (Index)v[{}] + p{}", at, first, d);
      // Taps that are neither in the image nor in its padding count nowhere.
      with_padding += fmt::format(" * (A)least((i64){0}, (v[{1}] + v[{2}] + v[{3}] - (i64)c{4} * {5} + {6} - 1) / {6})",
                                  axis.kernel.value(), first, first + 1, first + 2, d + 1, axis.stride, axis.dilation);
    }
    const Steps steps = is_average_ ? average(pack, counts_padding_ ? with_padding : "count")
                        : bits_of(x.type()) == 16 && pack % 2 == 0 ? largest_of_pairs(x.type(), pack)
                                                                   : largest(pack);
    text +=
        steps.begin + open +
        fmt::format(
            "const bool is_inside = {};\n    const Some* from = (const Some*)x + (({}) * packs + c{});\n    {}\n    "
            "{}\n    ",
            is_inside, at, spatial + 1, steps.tap, close);
    text += fmt::format("Some result;\n    {}\n    ((Some*)y)[i] = result;", steps.end);
    return {run,
            y.elements() / pack,
            "const T* x, T* y",
            text,
            numbers,
            types_text(x.type()) +
                fmt::format("typedef Pack<T, {}> Some;\ntypedef {} Index;\ntypedef {} Signed;", pack, index,
                            index == "u32" ? "i32" : "i64") +
                std::string(read_or_zeros) + steps.constants};
  }

  // Statements before all taps of a window, for one of them, which is at `from`, and after them.
  struct Steps {
    std::string begin, tap, end, constants = "";
  };

  static Steps average(int64_t pack, std::string_view count) {
    return {fmt::format("A totals[{}] = {{}}, count = 0;\n    ", pack),
            fmt::format("const Some pixel = read_or_zeros(from, is_inside);\n    count += is_inside;\n    "
                        "for (int e = 0; e < {}; ++e) totals[e] += (A)widen(pixel.v[e]);",
                        pack),
            fmt::format("for (int e = 0; e < {}; ++e) result.v[e] = narrow<T>(totals[e] / ({}));", pack, count)};
  }

  static Steps largest(int64_t pack) {
    return {fmt::format("A totals[{0}];\n    for (int e = 0; e < {0}; ++e) totals[e] = -INFINITE;\n    ", pack),
            fmt::format("const Some pixel = read_or_zeros(from, is_inside);\n    for (int e = 0; e < {}; ++e)\n    "
                        "totals[e] = most(totals[e], is_inside ? (A)widen(pixel.v[e]) : (A)-INFINITE);",
                        pack),
            fmt::format("for (int e = 0; e < {}; ++e) result.v[e] = narrow<T>(totals[e]);", pack)};
  }

  // Two elements at a time, as they are.
  static Steps largest_of_pairs(ElementType type, int64_t pack) {
    const std::string_view lowest = type == ElementType::float16 ? "0xfc00fc00u" : "0xff80ff80u";
    return {
        fmt::format("u32 totals[{0}];\n    for (int e = 0; e < {0}; ++e) totals[e] = {1};\n    ", pack / 2, lowest),
        fmt::format("const Some pixel = *(is_inside ? from : (const Some*)lowest);\n    for (int e = 0; e < {}; ++e) "
                    "totals[e] = most_of_pairs<T>(totals[e], ((const u32*)&pixel)[e]);",
                    pack / 2),
        fmt::format("for (int e = 0; e < {}; ++e) ((u32*)&result)[e] = totals[e];", pack / 2),
        fmt::format("alignas(16) static const u32 lowest[4] = {{{0}, {0}, {0}, {0}}};\n", lowest)};
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
