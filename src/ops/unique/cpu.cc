#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "ops/cpu_support/strided_copy.h"
#include "ops/dispatch.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// Orders numbers with NaN last and all NaN equal; complex numbers by their real part first.
template <typename T>
int order(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    int real = order(a.real(), b.real());
    return real ? real : order(a.imag(), b.imag());
  } else if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) {
    return order(static_cast<float>(a), static_cast<float>(b));
  } else {
    if (a < b) return -1;
    if (b < a) return 1;
    if constexpr (std::is_floating_point_v<T>) return (a != a) - (b != b);
    return 0;
  }
}

template <typename T>
int order_elements(const void* data, int64_t a, int64_t b) {
  return order(static_cast<const T*>(data)[a], static_cast<const T*>(data)[b]);
}
using OrderElements = int (*)(const void* data, int64_t a, int64_t b);

OrderElements order_for(ElementType type) {
  OrderElements result = nullptr;
  dispatch<float, double, float16, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
           bool, std::string, std::complex<float>, std::complex<double>>(
      type, [&]<typename T>() { result = order_elements<T>; });
  return result;
}

class Unique final : public Kernel {
 public:
  explicit Unique(const NodeInfo& info)
      : flat_(!info.node().attribute("axis")),
        axis_(info.node().int_attribute("axis", 0)),
        sorted_(info.node().int_attribute("sorted", 1) != 0) {}

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    int axis = flat_ ? 0 : static_cast<int>(axis_ < 0 ? axis_ + x.rank() : axis_);
    int64_t size = flat_ ? x.elements() : x.dim(axis);
    int64_t outer = flat_ ? 1 : x.shape().elements(0, axis), inner = flat_ ? 1 : x.shape().elements(axis + 1, x.rank());
    OrderElements order_of = order_for(x.type());
    auto compare = [&](int64_t a, int64_t b) {
      for (int64_t o = 0; o < outer; ++o) {
        for (int64_t k = 0; k < inner; ++k) {
          if (int result = order_of(x.raw(), (o * size + a) * inner + k, (o * size + b) * inner + k)) return result;
        }
      }
      return 0;
    };
    // An axis of a tensor without elements may be longer than memory has room for its positions.
    auto reserved = run.scratch(checked_mul(size, static_cast<int64_t>(sizeof(int64_t) + sizeof(Group))));
    std::vector<int64_t> items(static_cast<size_t>(size));
    std::iota(items.begin(), items.end(), 0);
    std::sort(items.begin(), items.end(), [&](int64_t a, int64_t b) {
      int result = compare(a, b);
      return result ? result < 0 : a < b;
    });
    std::vector<Group> groups;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i == 0 || compare(items[i - 1], items[i]) != 0) groups.push_back({items[i], i, 0});
      ++groups.back().count;
    }
    if (!sorted_) std::ranges::sort(groups, {}, &Group::first);
    write_values(run, x, groups, axis, outer, size, inner);
    write_positions(run, items, groups);
  }

 private:
  struct Group {
    int64_t first;  // where the value occurs first
    size_t begin;   // its range of the sorted items
    int64_t count;
  };

  void write_values(KernelRun& run, const Tensor& x, const std::vector<Group>& groups, int axis, int64_t outer,
                    int64_t size, int64_t inner) const {
    auto count = static_cast<int64_t>(groups.size());
    Shape shape = flat_ ? Shape{count} : x.shape();
    if (!flat_) shape[axis] = count;
    Tensor& y = run.output(0, x.type(), shape);
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t g = 0; g < count; ++g) {
        copy_elements(x.type(), x.raw(), (o * size + groups[static_cast<size_t>(g)].first) * inner, y.mutable_raw(),
                      (o * count + g) * inner, inner);
      }
    }
  }

  static void write_positions(KernelRun& run, const std::vector<int64_t>& items, const std::vector<Group>& groups) {
    auto positions = [&](size_t output, size_t length) {
      return run.output(output, ElementType::int64, Shape{static_cast<int64_t>(length)}).mutable_data<int64_t>();
    };
    if (run.wants_output(1)) std::ranges::transform(groups, positions(1, groups.size()).begin(), &Group::first);
    if (run.wants_output(3)) std::ranges::transform(groups, positions(3, groups.size()).begin(), &Group::count);
    if (!run.wants_output(2)) return;
    auto inverse = positions(2, items.size());
    for (size_t g = 0; g < groups.size(); ++g) {
      for (size_t i = groups[g].begin; i < groups[g].begin + static_cast<size_t>(groups[g].count); ++i) {
        inverse[static_cast<size_t>(items[i])] = static_cast<int64_t>(g);
      }
    }
  }

  bool flat_;
  int64_t axis_;
  bool sorted_;
};

}  // namespace

void cpu_unique(CpuKernels& list) {
  list.add("Unique", [](const NodeInfo& info) { return std::make_unique<Unique>(info); });
}

}  // namespace tenon::ops
