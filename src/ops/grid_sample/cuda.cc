#include "base/fail.h"
#include "ops/cuda_support/arguments.h"
#include "ops/cuda_support/coordinates.h"

namespace tenon::ops {
namespace {

enum class Mode { nearest, linear, cubic };

constexpr std::string_view sampling_functions = R"cuda(
struct Taps {
  i64 index[TAPS];  // below 0: a zero
  C weight[TAPS];
};

inline C lowest() { return ALIGN ? (C)0 : (C)-0.5; }
inline C highest(i64 size) { return (C)size - (ALIGN ? (C)1 : (C)0.5); }

inline C reflect(C x, i64 size) {
  const C low = lowest(), range = highest(size) - low;
  if (range <= 0) return low;
  if (x < low || x > low + range) {
    const bool below = x < low;
    const C distance = below ? low - x : x - low - range, turns = floor(distance / range), rest = distance - turns * range;
    const bool from_low = (fmod(turns, (C)2) == 0) == below;
    return from_low ? low + rest : low + range - rest;
  }
  return x;
}

inline i64 place(i64 index, i64 size) {
  if (index >= 0 && index < size) return index;
  if (PADDING == 0) return -1;
  const i64 moved = PADDING == 1 ? index : (i64)reflect((C)index, size);
  return moved < 0 ? 0 : moved > size - 1 ? size - 1 : moved;
}

inline C near_weight(C d) { return (((C)1.25 * d - (C)2.25) * d) * d + 1; }
inline C far_weight(C d) { return (((C)-0.75 * d + (C)3.75) * d - (C)6) * d + (C)3; }

// Where a point, from -1 to 1, lies on an axis.
inline Taps taps_of(C point, i64 size) {
  const C length = (C)size, far = (C)(1 << 22);
  C x = ALIGN ? (point + 1) / 2 * (length - 1) : ((point + 1) * length - 1) / 2;
  // Far outside, or not a number: as far outside as needed.
  if (!(x > -far))
    x = PADDING == 0 ? -far : (C)0;
  else if (!(x < length + far))
    x = length + far;
  if (MODE == 0) x = rint(x);
  // A cubic reads beyond the image around any point, so that its padding is of pixels, not of points.
  if (MODE != 2 && (x < lowest() || x > highest(size))) {
    if (PADDING == 1) x = x < 0 ? (C)0 : x > length - 1 ? length - 1 : x;
    if (PADDING == 2) x = reflect(x, size);
  }
  Taps taps;
  const C below = MODE == 0 ? x : floor(x), r = x - below;
  const i64 first = (i64)below - (MODE == 2 ? 1 : 0);
  for (int k = 0; k < TAPS; ++k) taps.index[k] = place(first + k, size);
  taps.weight[0] = MODE == 0 ? (C)1 : MODE == 1 ? 1 - r : far_weight(r + 1);
  if (MODE == 1) taps.weight[TAPS - 1] = r;
  if (MODE == 2) {
    taps.weight[1 % TAPS] = near_weight(r);
    taps.weight[2 % TAPS] = near_weight(1 - r);
    taps.weight[3 % TAPS] = far_weight(2 - r);
  }
  return taps;
}
)cuda";

// What a sum becomes in the type of the image.
std::string element_text(ElementType type) {
  if (types::floats.contains(type)) return "inline T element_of(C r) { return narrow<T>(r); }\n";
  const int bits = static_cast<int>(bits_of(type));
  const bool is_signed = types::signed_ints.contains(type);
  const uint64_t high =
      bits == 64 ? ~uint64_t{0} >> (is_signed ? 1 : 0) : (uint64_t{1} << (bits - (is_signed ? 1 : 0))) - 1;
  return fmt::format("#define HIGH {}ull\n#define LOW {}\n", high, is_signed ? fmt::format("(-{}ll - 1)", high) : "0") +
         "inline T element_of(C r) { return r >= (C)HIGH ? (T)HIGH : r > (C)LOW ? (T)r : (T)LOW; }\n";
}

class GridSample final : public Kernel {
 public:
  explicit GridSample(const NodeInfo& info) : align_(info.node().int_attribute("align_corners", 0) != 0) {
    const std::string mode = info.node().string_attribute("mode", "linear"),
                      padding = info.node().string_attribute("padding_mode", "zeros");
    if (mode != "nearest" && mode != "linear" && mode != "cubic")
      fail(ErrorCode::invalid_attribute, "mode is '{}'; it may be linear, nearest or cubic", mode);
    if (padding != "zeros" && padding != "border" && padding != "reflection")
      fail(ErrorCode::invalid_attribute, "padding_mode is '{}'; it may be zeros, border or reflection", padding);
    mode_ = mode == "nearest" ? Mode::nearest : mode == "linear" ? Mode::linear : Mode::cubic;
    padding_ = padding == "zeros" ? 0 : padding == "border" ? 1 : 2;
  }

  void run(KernelRun& run) const override {
    const Tensor &x = run.input(0), &grid = run.input(1);
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    if (x.elements() == 0)
      fail(ErrorCode::invalid_value, "an empty image of shape {} cannot be sampled", x.shape().to_string());
    const auto& loop = run.per_plan<CudaLoop>([&] { return prepare(run, x, grid, y); });
    loop.run(run, {x.raw(), grid.raw(), y.raw()});
  }

 private:
  // A thread has a point and some channels.
  CudaLoop prepare(KernelRun& run, const Tensor& x, const Tensor& grid, const Tensor& y) const {
    constexpr int64_t channels_each = 8;
    const int axes = x.rank() - 2;
    const int64_t points = y.shape().elements(2, y.rank()), channels = x.dim(1);
    const int64_t groups = (channels + channels_each - 1) / channels_each;
    std::vector<int64_t> numbers{x.dim(0), groups, points, channels, x.shape().elements(2, x.rank())};
    for (int axis = 0; axis < axes; ++axis) numbers.push_back(x.dim(axis + 2));
    std::string text =
        coordinates_text(3, 0, x.dim(0) * groups * points) +
        "const i64 image = c0, group = c1, point = c2, points = v[2], channels = v[3], plane_size = v[4];\n    "
        "const G* at = grid + (image * points + point) * AXES;\n    ";
    for (int axis = 0; axis < axes; ++axis)
      text += fmt::format("const Taps t{} = taps_of((C)widen(at[{}]), v[{}]);\n    ", axis, axes - 1 - axis, 5 + axis);
    text += fmt::format(
        "const i64 last = group * {0} + {0} < channels ? group * {0} + {0} : channels;\n    "
        "for (i64 c = group * {0}; c < last; ++c) {{\n    "
        "const T* plane = x + (image * channels + c) * plane_size;\n    ",
        channels_each);
    const std::string to = "y[(image * channels + c) * points + point]";
    std::string index = "t0.index[k0]", weight = "t0.weight[k0]", outside = "t0.index[k0] < 0",
                loops = "for (int k0 = 0; k0 < TAPS; ++k0) ";
    for (int axis = 1; axis < axes; ++axis) {
      index = fmt::format("({}) * v[{}] + t{}.index[k{}]", index, 5 + axis, axis, axis);
      weight += fmt::format(" * t{0}.weight[k{0}]", axis);
      outside += fmt::format(" || t{0}.index[k{0}] < 0", axis);
      loops += fmt::format("for (int k{0} = 0; k{0} < TAPS; ++k{0}) ", axis);
    }
    if (mode_ == Mode::nearest)
      text +=
          fmt::format("T r = T{{}};\n    {}if (!({})) r = plane[{}];\n    {} = r;\n    }}", loops, outside, index, to);
    else
      text += fmt::format(
          "C sum = 0;\n    {}if (!({})) sum += {} * (C)widen(plane[{}]);\n    {} = element_of(sum);\n    }}", loops,
          outside, weight, index, to);
    return {run,     x.dim(0) * groups * points, "const T* x, const G* grid, T* y", text,
            numbers, functions(x, grid, axes)};
  }

  std::string functions(const Tensor& x, const Tensor& grid, int axes) const {
    const bool wide = x.type() == ElementType::float64 || grid.type() == ElementType::float64;
    std::string text = fmt::format("typedef {} T;\ntypedef {} G;\ntypedef {} C;\n", cuda::type_text(x.type()),
                                   cuda::type_text(grid.type()), wide ? "double" : "float");
    text +=
        fmt::format("#define AXES {}\n#define TAPS {}\n#define MODE {}\n#define PADDING {}\n#define ALIGN {}\n", axes,
                    mode_ == Mode::nearest  ? 1
                    : mode_ == Mode::linear ? 2
                                            : 4,
                    static_cast<int>(mode_), padding_, align_ ? 1 : 0);
    return text + std::string(sampling_functions) + (mode_ == Mode::nearest ? "" : element_text(x.type()));
  }

  bool align_;
  Mode mode_;
  int padding_;
};

// A thread for each coordinate of each point.
void run_affine_grid(KernelRun& run) {
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  const auto& loop = run.per_plan<CudaLoop>([&] {
    const int axes = y.rank() - 2;
    std::vector<int64_t> numbers;
    for (int axis = 0; axis < y.rank(); ++axis) numbers.push_back(y.dim(axis));
    std::string text = coordinates_text(y.rank(), 0, y.elements());
    text += fmt::format("const T* row = theta + (c0 * {0} + c{1}) * {2};\n    A r = widen(row[{0}]);\n    ", axes,
                        axes + 1, axes + 1);
    // The last axis of the image is the first coordinate.
    for (int k = axes - 1; k >= 0; --k)
      text += fmt::format("r += widen(row[{}]) * position(c{}, v[{}]);\n    ", k, axes - k, axes - k);
    const bool align = run.node().int_attribute("align_corners", 0) != 0;
    const std::string position =
        align ? "n == 1 ? (A)-1 : (A)-1 + (A)(2 * at) / (A)(n - 1)" : "((A)(2 * at) + 1) / (A)n - 1";
    return CudaLoop(
        run, y.elements(), "const T* theta, T* y", text + "y[i] = narrow<T>(r);", numbers,
        types_text(y.type()) + fmt::format("inline A position(i64 at, i64 n) {{ return {}; }}\n", position));
  });
  loop.run(run, {run.input(0).raw(), y.raw()});
}

std::string decline(const ir::Node& node) {
  const bool moves = node.string_attribute("mode", "linear") == "nearest";
  if (!moves && !types::numbers.contains(node.input(0)->type.element))
    return fmt::format("the CUDA kernel of GridSample does not interpolate {}", name_of(node.input(0)->type.element));
  return "";
}

}  // namespace

void cuda_grid_sample(CudaKernels& list) {
  list.add("GridSample", [](const NodeInfo& info) { return std::make_unique<GridSample>(info); },
           {.types = types::numbers | types::bools | types::complexes, .decline = decline});
  list.add_simple("AffineGrid", run_affine_grid, {.types = types::floats, .host_inputs = {1}});
}

}  // namespace tenon::ops
