#include <algorithm>
#include <bit>

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

template <typename T>
void load_line(const void* data, int64_t first, int64_t stride, std::vector<Candidate>& line, bool largest) {
  const T* in = static_cast<const T*>(data) + first;
  int64_t flip = largest ? 0 : -1;
  for (size_t i = 0; i < line.size(); ++i)
    line[i] = {key_of(in[static_cast<int64_t>(i) * stride]) ^ flip, static_cast<int64_t>(i)};
}

// Moves the first k of the order to the front of `line`, in order.
void select(std::vector<Candidate>& line, size_t k) {
  auto before = [](const Candidate& a, const Candidate& b) { return a.before(b); };
  auto middle = line.begin() + static_cast<std::ptrdiff_t>(k);
  if (k <= 16) {
    // Nearly all elements lose against the last of the best so far.
    std::sort(line.begin(), middle, before);
    for (size_t i = k; i < line.size(); ++i) {
      if (!line[i].before(line[k - 1])) continue;
      Candidate one = line[i];
      size_t at = k - 1;
      for (; at > 0 && one.before(line[at - 1]); --at) line[at] = line[at - 1];
      line[at] = one;
    }
    return;
  }
  if (k < line.size()) std::nth_element(line.begin(), middle, line.end(), before);
  std::sort(line.begin(), middle, before);
}

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
        std::vector<Candidate> line(static_cast<size_t>(size));
        for (int64_t n = begin; n < end; ++n) {
          int64_t from = n / inner * size * inner + n % inner, to = n / inner * k * inner + n % inner;
          load_line<T>(in, from, inner, line, largest_);
          select(line, static_cast<size_t>(k));
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
