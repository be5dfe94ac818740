#include <algorithm>
#include <bit>
#include <functional>
#include <vector>

#include "ops/cpu_support/extreme.h"
#include "ops/dispatch.h"
#include "provider/cpu_kernels.h"
#include "provider/output_shape.h"

namespace tenon::ops {
namespace {

// An element as a number that orders like it (NaN above all) and where it was. Equal elements keep their order.
struct Candidate {
  int64_t key, index;
  bool before(const Candidate& other) const { return key != other.key ? key > other.key : index < other.index; }
};

template <typename T>
int64_t key_of(T value) {
  if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) {
    return key_of(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, float>) {
    if (value != value) return INT64_MAX;
    int32_t bits = std::bit_cast<int32_t>(value + 0.0f);
    return bits ^ ((bits >> 31) & INT32_MAX);
  } else if constexpr (std::is_same_v<T, double>) {
    if (value != value) return INT64_MAX;
    int64_t bits = std::bit_cast<int64_t>(value + 0.0);
    return bits ^ ((bits >> 63) & INT64_MAX);
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    return static_cast<int64_t>(value ^ (uint64_t{1} << 63));
  } else {
    return value;
  }
}

// The best k elements of a line, in order.
class Selection {
 public:
  Selection(int64_t k, bool largest) : k_(static_cast<size_t>(k)), flip_(largest ? 0 : -1) {}

  template <typename T>
  const std::vector<Candidate>& select(const T* line, int64_t stride, int64_t size) {
    kept_.clear();
    worst_ = {INT64_MIN, INT64_MAX};
    for (int64_t i = 0; i < size; ++i) add({key_of(line[i * stride]) ^ flip_, i});
    if (kept_.size() > k_) shrink();
    std::sort(kept_.begin(), kept_.end(), before);
    return kept_;
  }

 private:
  static bool before(const Candidate& a, const Candidate& b) { return a.before(b); }

  // Keeps up to twice k and a few more, so that the cost of finding the best k of them is shared by as many.
  void add(const Candidate& one) {
    if (!one.before(worst_)) return;
    kept_.push_back(one);
    if (kept_.size() >= 2 * k_ + 64) shrink();
  }

  void shrink() {
    const auto last = kept_.begin() + static_cast<std::ptrdiff_t>(k_) - 1;
    std::nth_element(kept_.begin(), last, kept_.end(), before);
    worst_ = *last;
    kept_.resize(k_);
  }

  size_t k_;
  int64_t flip_;
  Candidate worst_{};
  std::vector<Candidate> kept_;
};

// The same for floats, whose keys have 32 bits.
class FloatSelection {
 public:
  FloatSelection(int64_t k, bool largest) : k_(static_cast<size_t>(k)), flip_(largest ? 0 : -1) {}

  // The places of the best k elements of a line, in order.
  template <typename Use>
  void select(const float* line, int64_t stride, int64_t size, Use use) {
    if (stride != 1) line = side_by_side(line, stride, size);
    collect(line, size, bound(line, size));
    const auto begin = candidates_.begin(), last = begin + static_cast<std::ptrdiff_t>(k_);
    auto end = begin + static_cast<std::ptrdiff_t>(count_);
    if (count_ > 2 * k_) {
      std::nth_element(begin, last - 1, end, std::greater());
      end = last;
    }
    std::sort(begin, end, std::greater());
    for (size_t i = 0; i < k_; ++i) use(static_cast<int64_t>(i), UINT32_MAX - (candidates_[i] & UINT32_MAX));
  }

  static bool can(int64_t size) { return size < UINT32_MAX; }

 private:
  const float* side_by_side(const float* line, int64_t stride, int64_t size) {
    line_.resize(static_cast<size_t>(size));
    for (float& value : line_) {
      value = *line;
      line += stride;
    }
    return line_.data();
  }

  int32_t key_of(float value) const {
    const int32_t bits = std::bit_cast<int32_t>(value + 0.0f), ordered = bits ^ ((bits >> 31) & INT32_MAX);
    const int32_t nan = -static_cast<int32_t>(value != value);
    return ((ordered & ~nan) | (INT32_MAX & nan)) ^ flip_;
  }

  // A key that at least k elements reach: that many blocks have one that does. Leaves the blocks' best keys.
  int32_t bound(const float* line, int64_t size) {
    // The fewer blocks, the more elements of each are looked at: more than three for each place, or else two.
    const auto places = static_cast<int64_t>(k_);
    block_ = 0;
    for (int64_t least : {3 * places + 1, 2 * places}) {
      for (int64_t block : {64, 32, 16, 8, 4}) {
        if (block_ == 0 && size / block >= least) block_ = block;
      }
    }
    if (block_ == 0) return INT32_MIN;
    best_.resize(static_cast<size_t>(size / block_));
    with_block([&]<int64_t block>() { flip_ == 0 ? find_best<true, block>(line) : find_best<false, block>(line); });
    if (k_ == 1) return *std::ranges::max_element(best_);
    sorted_ = best_;
    const auto last = sorted_.begin() + static_cast<std::ptrdiff_t>(k_) - 1;
    std::nth_element(sorted_.begin(), last, sorted_.end(), std::greater());
    return *last;
  }

  // Calls `use` with the number of elements of a block as a constant.
  template <typename Use>
  void with_block(Use use) const {
    switch (block_) {
      case 4:
        return use.template operator()<4>();
      case 8:
        return use.template operator()<8>();
      case 16:
        return use.template operator()<16>();
      case 32:
        return use.template operator()<32>();
      default:
        return use.template operator()<64>();
    }
  }

  template <bool largest, int64_t block>
  void find_best(const float* line) {
    for (int32_t& result : best_) {
      result = key_of(short_extreme<largest>(line, block));
      // Where the smallest are looked for, NaN hides them.
      if (!largest && result == INT32_MIN) {
        for (int64_t i = 0; i < block; ++i) result = std::max(result, key_of(line[i]));
      }
      line += block;
    }
  }

  void collect(const float* line, int64_t size, int32_t bound) {
    count_ = 0;
    int64_t rest = 0;
    with_block([&]<int64_t block>() {
      for (; rest + block <= size; rest += block) {
        if (block_ == 0 || best_[static_cast<size_t>(rest / block)] >= bound) collect<block>(line, rest, bound);
      }
    });
    for (; rest < size; ++rest) collect<1>(line, rest, bound);
  }

  // A candidate has its key above its place, so that of equal ones the first is the largest.
  template <int64_t block>
  void collect(const float* line, int64_t first, int32_t bound) {
    if (count_ + block > candidates_.size()) candidates_.resize(2 * (count_ + block));
    int32_t keys[block];
    for (int64_t i = 0; i < block; ++i) keys[i] = key_of(line[first + i]);
    // Without branches, which nothing could foresee.
    uint64_t* const to = candidates_.data();
    size_t count = count_;
    for (int64_t i = 0; i < block; ++i) {
      to[count] =
          uint64_t{static_cast<uint32_t>(keys[i]) ^ (1U << 31)} << 32 | (UINT32_MAX - static_cast<uint32_t>(first + i));
      count += keys[i] >= bound;
    }
    count_ = count;
  }

  size_t k_;
  int32_t flip_;
  int64_t block_ = 0;
  std::vector<float> line_;  // where its elements do not lie side by side
  std::vector<int32_t> best_, sorted_;
  std::vector<uint64_t> candidates_;  // the first `count_`
  size_t count_ = 0;
};

class TopK final : public Kernel {
 public:
  explicit TopK(const NodeInfo& info)
      : axis_(info.node().int_attribute("axis", -1)), largest_(info.node().int_attribute("largest", 1) != 0) {}

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    int axis = static_cast<int>(axis_ < 0 ? axis_ + x.rank() : axis_);
    const Shape shape = output_shape(run, 0);
    int64_t size = x.dim(axis), k = shape[axis];
    Tensor values = run.wants_output(0) ? run.output(0, x.type(), shape) : Tensor(x.type(), shape, run.allocator());
    Tensor indices = run.wants_output(1) ? run.output(1, ElementType::int64, shape)
                                         : Tensor(ElementType::int64, shape, run.allocator());
    if (values.elements() == 0) return;
    int64_t inner = x.shape().elements(axis + 1, x.rank()), lines = x.elements() / size;
    int64_t* places = indices.mutable_data<int64_t>().data();
    dispatch<float, double, float16, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
             uint64_t>(x.type(), [&]<typename T>() {
      const T* in = x.data<T>().data();
      T* out = values.mutable_data<T>().data();
      run.threads().parallel_for(lines, std::max<int64_t>(1, 4096 / size), [&](int64_t begin, int64_t end) {
        if constexpr (std::is_same_v<T, float>) {
          if (FloatSelection::can(size)) return select_floats(in, out, places, begin, end, inner, size, k);
        }
        Selection selection(k, largest_);
        for (int64_t n = begin; n < end; ++n) {
          int64_t from = n / inner * size * inner + n % inner, to = n / inner * k * inner + n % inner;
          const std::vector<Candidate>& line = selection.select(in + from, inner, size);
          for (int64_t i = 0; i < k; ++i) {
            int64_t index = line[static_cast<size_t>(i)].index;
            places[to + i * inner] = index;
            out[to + i * inner] = in[from + index * inner];
          }
        }
      });
    });
  }

 private:
  void select_floats(const float* in, float* out, int64_t* places, int64_t begin, int64_t end, int64_t inner,
                     int64_t size, int64_t k) const {
    FloatSelection selection(k, largest_);
    for (int64_t n = begin; n < end; ++n) {
      const int64_t from = n / inner * size * inner + n % inner, to = n / inner * k * inner + n % inner;
      selection.select(in + from, inner, size, [&](int64_t i, int64_t index) {
        places[to + i * inner] = index;
        out[to + i * inner] = in[from + index * inner];
      });
    }
  }

  int64_t axis_;
  bool largest_;
};

}  // namespace

void cpu_top_k(CpuKernels& list) {
  list.add("TopK", [](const NodeInfo& info) { return std::make_unique<TopK>(info); });
}

}  // namespace tenon::ops
