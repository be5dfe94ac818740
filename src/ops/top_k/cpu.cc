#include <algorithm>
#include <bit>
#include <vector>

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
    if constexpr (std::is_same_v<T, float>) {
      if (stride == 1) {
        add_floats(line, size);
        size = 0;
      }
    }
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

  // Looks at blocks that have no element better than the worst kept one only once.
  void add_floats(const float* line, int64_t size) {
    constexpr int64_t block = 64;
    const auto flip = static_cast<int32_t>(flip_);
    for (int64_t begin = 0; begin < size; begin += block) {
      const int64_t end = std::min(size, begin + block);
      if (end - begin == block && worst_.index != INT64_MAX) {
        // Keys of NaN are beyond 32 bits: such a block is always looked at closely.
        const int64_t bound = worst_.key;
        const auto narrow = static_cast<int32_t>(std::clamp<int64_t>(bound, INT32_MIN, INT32_MAX));
        int32_t best = INT32_MIN;
        int special = 0;
        for (int64_t i = begin; i < end; ++i) {
          const int32_t bits = std::bit_cast<int32_t>(line[i] + 0.0f);
          best = std::max(best, (bits ^ ((bits >> 31) & INT32_MAX)) ^ flip);
          special |= line[i] != line[i];
        }
        if (!special && best <= narrow) continue;
      }
      for (int64_t i = begin; i < end; ++i) add({key_of(line[i]) ^ flip_, i});
    }
  }

  size_t k_;
  int64_t flip_;
  Candidate worst_{};
  std::vector<Candidate> kept_;
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
  int64_t axis_;
  bool largest_;
};

}  // namespace

void cpu_top_k(CpuKernels& list) {
  list.add("TopK", [](const NodeInfo& info) { return std::make_unique<TopK>(info); });
}

}  // namespace tenon::ops
