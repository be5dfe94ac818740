#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/cpu_support/bilinear_points.h"
#include "ops/cpu_support/compute_type.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

enum class Mode { nearest, linear, cubic };
enum class Padding { zeros, border, reflection };

// Which elements of an image make up some samples, with their weights.
template <typename T>
struct Taps {
  int64_t each;  // of a sample
  std::vector<int64_t> indices;
  std::vector<T> weights;
  // Samples that lack some: they are zero, and their index in this list is -1.
  std::vector<int64_t> partial, partial_indices;

  Taps(int64_t taps_each, int64_t most_samples)
      : each(taps_each),
        indices(static_cast<size_t>(each * most_samples)),
        weights(static_cast<size_t>(each * most_samples)) {}

  void clear() {
    end_ = 0;
    partial.clear();
    partial_indices.clear();
  }
  // One more sample, whose taps find(indices, weights) sets.
  template <typename Find>
  void add(Find find) {
    int64_t* added = indices.data() + end_;
    find(added, weights.data() + end_);
    if (std::any_of(added, added + each, [](int64_t index) { return index < 0; })) set_partial(added);
    end_ += each;
  }

 private:
  // Missing elements are read from anywhere.
  void set_partial(int64_t* added) {
    partial.push_back(end_ / each);
    for (int64_t i = 0; i < each; ++i) {
      partial_indices.push_back(added[i]);
      added[i] = std::max<int64_t>(added[i], 0);
    }
  }

  int64_t end_ = 0;
};

template <typename T>
class Sampler {
 public:
  Sampler(Mode mode, Padding padding, bool align_corners, const Shape& image)
      : mode_(mode), padding_(padding), align_(align_corners), image_(image) {}

  // Adds the sample at `point`, which has the coordinates in -1 … 1, the last axis first.
  void add(const T* point, Taps<T>& result) const {
    result.add([&](int64_t* indices, T* weights) { find(point, indices, weights); });
  }

  // The same for samples of a picture, linearly.
  void add(const T* point, BilinearPoints<T>& result) const {
    const int64_t height = image_[2], width = image_[3];
    const T x = position(point[0], width), y = position(point[1], height);
    if (x >= 0 && y >= 0 && x < static_cast<T>(width - 1) && y < static_cast<T>(height - 1)) {
      const auto column = static_cast<int64_t>(x), row = static_cast<int64_t>(y);
      return result.add(row * width + column, y - static_cast<T>(row), x - static_cast<T>(column));
    }
    int64_t indices[4];
    T weights[4];
    find(point, indices, weights);
    result.add_apart(indices, weights);
  }

 private:
  void find(const T* point, int64_t* indices, T* weights) const {
    const int axes = image_.rank() - 2;
    int64_t before = 1;
    indices[0] = 0;
    weights[0] = 1;
    for (int axis = 0; axis < axes; ++axis) {
      const int64_t size = image_[axis + 2];
      int64_t index[4];
      T weight[4];
      const int count = axis_taps(point[axes - 1 - axis], size, index, weight);
      for (int64_t i = before; i-- > 0;) {
        const int64_t base = indices[i];
        const T factor = weights[i];
        for (int k = count; k-- > 0;) {
          indices[i * count + k] = base < 0 || index[k] < 0 ? -1 : base * size + index[k];
          weights[i * count + k] = factor * weight[k];
        }
      }
      before *= count;
    }
  }

  T position(T normalized, int64_t size) const {
    const T length = static_cast<T>(size);
    return align_ ? (normalized + 1) / 2 * (length - 1) : ((normalized + 1) * length - 1) / 2;
  }

  T lowest() const { return align_ ? T(0) : T(-0.5); }
  T highest(int64_t size) const { return static_cast<T>(size) - (align_ ? T(1) : T(0.5)); }

  T reflect(T x, int64_t size) const {
    const T low = lowest(), range = highest(size) - low;
    if (range <= 0) return low;
    if (x < low || x > low + range) {
      const bool below = x < low;
      const T distance = below ? low - x : x - low - range, turns = std::floor(distance / range),
              rest = distance - turns * range;
      const bool from_low = (std::fmod(turns, T(2)) == 0) == below;
      return from_low ? low + rest : low + range - rest;
    }
    return x;
  }

  int64_t place(int64_t index, int64_t size) const {
    if (index >= 0 && index < size) return index;
    if (padding_ == Padding::zeros) return -1;
    if (padding_ == Padding::border) return std::clamp<int64_t>(index, 0, size - 1);
    return std::clamp<int64_t>(static_cast<int64_t>(reflect(static_cast<T>(index), size)), 0, size - 1);
  }

  int axis_taps(T normalized, int64_t size, int64_t* index, T* weight) const {
    const T length = static_cast<T>(size);
    T x = position(normalized, size);
    // Far outside, or not a number: as far outside as needed.
    constexpr T far = T(1 << 22);
    if (!(x > -far))
      x = padding_ == Padding::zeros ? -far : T(0);
    else if (!(x < length + far))
      x = length + far;
    if (mode_ == Mode::nearest) x = std::nearbyint(x);
    // A cubic reads beyond the image around any point, so that its padding is of pixels, not of points.
    if (mode_ != Mode::cubic && (x < lowest() || x > highest(size))) {
      if (padding_ == Padding::border) x = std::clamp(x, T(0), length - 1);
      if (padding_ == Padding::reflection) x = reflect(x, size);
    }
    if (mode_ == Mode::nearest) {
      index[0] = place(static_cast<int64_t>(x), size);
      weight[0] = 1;
      return 1;
    }
    const T below = std::floor(x), r = x - below;
    const auto first = static_cast<int64_t>(below);
    if (mode_ == Mode::linear) {
      index[0] = place(first, size);
      index[1] = place(first + 1, size);
      weight[0] = 1 - r;
      weight[1] = r;
      return 2;
    }
    constexpr T a = T(-0.75);
    auto near_ = [](T d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
    auto far_ = [](T d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
    const T weights[] = {far_(r + 1), near_(r), near_(1 - r), far_(2 - r)};
    for (int k = 0; k < 4; ++k) {
      index[k] = place(first - 1 + k, size);
      weight[k] = weights[k];
    }
    return 4;
  }

  Mode mode_;
  Padding padding_;
  bool align_;
  const Shape& image_;
};

class GridSample final : public Kernel {
 public:
  explicit GridSample(const NodeInfo& info) : align_(info.node().int_attribute("align_corners", 0) != 0) {
    std::string mode = info.node().string_attribute("mode", "linear"),
                padding = info.node().string_attribute("padding_mode", "zeros");
    if (mode != "nearest" && mode != "linear" && mode != "cubic") {
      fail(ErrorCode::invalid_attribute, "mode is '{}'; it may be linear, nearest or cubic", mode);
    }
    if (padding != "zeros" && padding != "border" && padding != "reflection") {
      fail(ErrorCode::invalid_attribute, "padding_mode is '{}'; it may be zeros, border or reflection", padding);
    }
    mode_ = mode == "nearest" ? Mode::nearest : mode == "linear" ? Mode::linear : Mode::cubic;
    padding_ = padding == "zeros" ? Padding::zeros : padding == "border" ? Padding::border : Padding::reflection;
  }

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    if (x.elements() == 0)
      fail(ErrorCode::invalid_value, "an empty image of shape {} cannot be sampled", x.shape().to_string());
    const bool wide = x.type() == ElementType::float64 || run.input(1).type() == ElementType::float64;
    if (wide)
      sample<double>(run);
    else
      sample<float>(run);
  }

 private:
  template <typename T>
  void sample(KernelRun& run) const {
    const Tensor& x = run.input(0);
    Tensor& y = run.output(0);
    const Tensor points = as_type<T>(run.input(1), run.threads(), run.allocator());
    const auto no_taps = [&] { return Taps<T>(taps_each(x.rank() - 2), points_at_once(x.rank() - 2)); };
    if (mode_ == Mode::nearest) {
      return dispatch_width(x.type(), [&]<typename E>() {
        const E* from;
        E* to;
        if constexpr (std::is_same_v<E, std::string>) {
          from = x.data<E>().data();
          to = y.mutable_data<E>().data();
        } else {
          from = static_cast<const E*>(x.raw());
          to = static_cast<E*>(y.mutable_raw());
        }
        each_block<T>(run, points, no_taps(), [&](const Taps<T>& found, int64_t n, const Channels& channels) {
          const int64_t* index = found.indices.data();
          for (int64_t c = 0; c < channels.count; ++c) {
            const E* plane = from + channels.in(c);
            E* out = to + channels.out(c);
            for (int64_t i = 0; i < n; ++i) out[i] = plane[index[i]];
            for (int64_t i : found.partial) out[i] = E{};
          }
        });
      });
    }
    dispatch<float, double, float16, bfloat16, int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t,
             uint64_t>(x.type(), [&]<typename E>() {
      const E* from = x.data<E>().data();
      E* to = y.mutable_data<E>().data();
      if (mode_ == Mode::linear && x.rank() == 4) {
        const auto mix = [&](const BilinearPoints<T>& found, int64_t, const Channels& channels) {
          found.template mix<E>({from + channels.in(0), channels.in_step}, {to + channels.out(0), channels.out_step},
                                channels.count);
        };
        return each_block<T>(run, points, BilinearPoints<T>(x.dim(3)), mix);
      }
      each_block<T>(run, points, no_taps(), [&](const Taps<T>& found, int64_t n, const Channels& channels) {
        for (int64_t c = 0; c < channels.count; ++c) {
          sum_any<T, E>(found, n, from + channels.in(c), to + channels.out(c));
          sum_partial<T, E>(found, from + channels.in(c), to + channels.out(c));
        }
      });
    });
  }

  template <typename T, typename E>
  static void sum_any(const Taps<T>& taps, int64_t n, const E* from, E* to) {
    const int64_t* index = taps.indices.data();
    const T* weight = taps.weights.data();
    for (int64_t i = 0; i < n; ++i, index += taps.each, weight += taps.each) {
      T sum{};
      for (int64_t k = 0; k < taps.each; ++k) sum += weight[k] * wide_value<T>(from[index[k]]);
      to[i] = narrow_value<E>(sum);
    }
  }

  // Again those that lack some elements.
  template <typename T, typename E>
  static void sum_partial(const Taps<T>& taps, const E* from, E* to) {
    const int64_t* index = taps.partial_indices.data();
    for (int64_t i : taps.partial) {
      const T* weight = taps.weights.data() + i * taps.each;
      T sum{};
      for (int64_t k = 0; k < taps.each; ++k, ++index) {
        if (*index >= 0) sum += weight[k] * wide_value<T>(from[*index]);
      }
      to[i] = narrow_value<E>(sum);
    }
  }

  // Where the planes of the channels of an image begin in X, and what is made of each in Y.
  struct Channels {
    int64_t count, first_in, in_step, first_out, out_step;

    int64_t in(int64_t c) const { return first_in + c * in_step; }
    int64_t out(int64_t c) const { return first_out + c * out_step; }
  };

  int64_t taps_each(int axes) const {
    const int64_t along_axis = mode_ == Mode::nearest ? 1 : mode_ == Mode::linear ? 2 : 4;
    int64_t result = 1;
    for (int axis = 0; axis < axes; ++axis) result *= along_axis;
    return result;
  }

  // So many points that a plane is read often while it is in the cache, so few that their taps are in it too.
  int64_t points_at_once(int axes) const { return std::max<int64_t>(1, 2048 / taps_each(axes)); }

  // Calls visit(some points in a copy of `none`, their number, Channels) until all points of all images have been
  // visited.
  template <typename T, typename Points, typename Visit>
  void each_block(KernelRun& run, const Tensor& points, const Points& none, Visit visit) const {
    const Shape& shape = run.input(0).shape();
    const Shape& out = run.output(0).shape();
    const int64_t channels = shape[1], plane = shape.elements(2, shape.rank()), count = out.elements(2, out.rank()),
                  axes = shape.rank() - 2;
    const T* grid = points.data<T>().data();
    const Sampler<T> sampler(mode_, padding_, align_, shape);
    const int64_t most = points_at_once(static_cast<int>(axes));
    run.threads().parallel_for(shape[0] * count, 1 + 2048 / channels, [&](int64_t begin, int64_t end) {
      Points found = none;
      for (int64_t n = 0; begin < end; begin += n) {
        const int64_t image = begin / count, at = begin % count;
        n = std::min({most, end - begin, count - at});
        found.clear();
        for (int64_t i = 0; i < n; ++i) sampler.add(grid + (begin + i) * axes, found);
        const int64_t first = image * channels;
        visit(found, n, Channels{channels, first * plane, plane, first * count + at, count});
      }
    });
  }

  bool align_;
  Mode mode_;
  Padding padding_;
};

// A line of points: coordinate r of point w is starts[r] + slopes[r] * x[w].
template <int axes, typename T>
void write_points(const T (&starts)[3], const T (&slopes)[3], const T* __restrict x, int64_t width, T* __restrict out) {
  for (int64_t w = 0; w < width; ++w) {
    for (int r = 0; r < axes; ++r) out[w * axes + r] = starts[r] + slopes[r] * x[w];
  }
}

void run_affine_grid(KernelRun& run) {
  const std::vector<int64_t> size = run.ints(1);
  const bool align = run.node().int_attribute("align_corners", 0) != 0;
  const auto axes = static_cast<int64_t>(size.size()) - 2;
  if (run.output(0).elements() == 0) return;
  dispatch_compute(run.input(0).type(), [&]<typename T>() {
    ComputeArguments<T> arguments(run);
    const T* theta = arguments.in(0);
    T* grid = arguments.out(0);
    // Where the points of an axis lie; axis 0 is the last of the image.
    std::vector<T> positions[3];
    for (int64_t a = 0; a < axes; ++a) {
      const int64_t n = size[static_cast<size_t>(axes + 1 - a)];
      for (int64_t at = 0; at < n; ++at) {
        const T twice = static_cast<T>(2 * at);
        positions[a].push_back(align ? (n == 1 ? T(-1) : -1 + twice / static_cast<T>(n - 1))
                                     : (twice + 1) / static_cast<T>(n) - 1);
      }
    }
    const auto width = static_cast<int64_t>(positions[0].size()), height = static_cast<int64_t>(positions[1].size());
    const int64_t lines = axes == 3 ? height * static_cast<int64_t>(positions[2].size()) : height;
    run.threads().parallel_for(size[0] * lines, 1 + 4096 / width, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const T* matrix = theta + line / lines * axes * (axes + 1);
        T starts[3], slopes[3];
        for (int64_t row = 0; row < axes; ++row, matrix += axes + 1) {
          starts[row] = matrix[axes] + matrix[1] * positions[1][static_cast<size_t>(line % lines % height)];
          if (axes == 3) starts[row] += matrix[2] * positions[2][static_cast<size_t>(line % lines / height)];
          slopes[row] = matrix[0];
        }
        const auto write = axes == 3 ? write_points<3, T> : write_points<2, T>;
        write(starts, slopes, positions[0].data(), width, grid + line * width * axes);
      }
    });
    arguments.finish();
  });
}

}  // namespace

void cpu_grid_sample(CpuKernels& list) {
  list.add("GridSample", [](const NodeInfo& info) { return std::make_unique<GridSample>(info); });
  list.add_simple("AffineGrid", run_affine_grid);
}

}  // namespace tenon::ops
