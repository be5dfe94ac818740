#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/checked.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm_any/gemm_any.h"
#include "kernels/transpose/transpose.h"
#include "ops/cpu_support/dot.h"
#include "ops/cpu_support/row_statistics.h"
#include "ops/dispatch.h"
#include "ops/einsum/equation.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// Neighbouring axes as one: how many elements, and how far they are apart.
struct Group {
  int64_t size = 1, stride = 1;
};

// A dense array whose axes have labels, no label twice. Its elements are its own or those of an input.
template <typename T>
struct Operand {
  std::vector<int> labels;
  std::vector<int64_t> sizes;
  const T* data = nullptr;
  std::vector<T> own;

  int64_t elements() const {
    int64_t result = 1;
    for (int64_t size : sizes) result *= size;
    return result;
  }
  bool has(int label) const { return std::ranges::find(labels, label) != labels.end(); }
  Group axis(int label) const {
    const auto at = static_cast<size_t>(std::ranges::find(labels, label) - labels.begin());
    Group result;
    if (at == labels.size()) return result;
    result.size = sizes[at];
    for (size_t later = at + 1; later < sizes.size(); ++later) result.stride *= sizes[later];
    return result;
  }
  int64_t size_of(int label) const { return axis(label).size; }

  // The axes `wanted`, in this order, as one; none if they do not follow each other.
  std::optional<Group> group(const std::vector<int>& wanted) const {
    Group result;
    for (size_t i = wanted.size(); i-- > 0;) {
      const Group next = axis(wanted[i]);
      if (next.size == 1) continue;
      if (result.size > 1 && next.stride != result.size * result.stride) return std::nullopt;
      if (result.size == 1) result.stride = next.stride;
      result.size *= next.size;
    }
    return result;
  }

  T* allocate() {
    own.resize(static_cast<size_t>(elements()));
    data = own.data();
    return own.data();
  }

  // The same with its axes in the order of `wanted`, which has the same labels.
  Operand ordered(ThreadPool& pool, const std::vector<int>& wanted) && {
    if (wanted == labels) return std::move(*this);
    Operand result{wanted, {}, nullptr, {}};
    for (int label : wanted) result.sizes.push_back(size_of(label));
    transpose(pool, wanted, result.allocate());
    return result;
  }

  // Writes the elements with the axes in the order of `wanted`.
  void transpose(ThreadPool& pool, const std::vector<int>& wanted, T* to) const {
    if (elements() == 0) return;
    std::vector<int64_t> permutation;
    for (int label : wanted) permutation.push_back(std::ranges::find(labels, label) - labels.begin());
    kernels::transpose(pool, data, to, sizes, permutation, sizeof(T));
  }
};

int64_t product(const std::vector<int64_t>& sizes) {
  int64_t result = 1;
  for (int64_t size : sizes) result = checked_mul(result, size);
  // More than any machine has; containers would refuse it with an exception of their own.
  if (result > int64_t{1} << 48) fail(ErrorCode::out_of_memory, "an intermediate result has {} elements", result);
  return result;
}

// A side of a batch of products.
template <typename T>
struct Side {
  const T* data;
  std::vector<int64_t> offsets;  // of each matrix of the batch
  int64_t ld;
  bool transposed;
};

// How a matrix lies whose rows and columns are these, if one of both has its elements side by side.
struct Layout {
  int64_t ld;
  bool transposed;
};
std::optional<Layout> layout_of(const std::optional<Group>& rows, const std::optional<Group>& columns) {
  if (!rows || !columns) return std::nullopt;
  if (columns->stride == 1 || columns->size == 1) return Layout{rows->size == 1 ? columns->size : rows->stride, false};
  if (rows->stride == 1 || rows->size == 1) return Layout{columns->stride, true};
  return std::nullopt;
}

// Where each element of the axes `batch` begins in an operand.
template <typename T>
std::vector<int64_t> offsets_of(const Operand<T>& x, const std::vector<int>& batch) {
  std::vector<int64_t> result{0};
  for (int label : batch) {
    const Group axis = x.axis(label);
    std::vector<int64_t> next;
    for (int64_t start : result) {
      for (int64_t i = 0; i < axis.size; ++i) next.push_back(start + i * axis.stride);
    }
    result = std::move(next);
  }
  return result;
}

template <typename T>
T sum_of(const T* x, int64_t n) {
  T sum{};
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}
float sum_of(const float* x, int64_t n) { return row_sum(x, n); }

template <typename T>
void scale_row(const T* row, T factor, T* __restrict to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = row[i] * factor;
}

// c[m, n] = a[m, k] * b[k, n], for each of the batch.
template <typename T>
void multiply_batch(ThreadPool& pool, int64_t m, int64_t n, int64_t k, const Side<T>& a, const Side<T>& b, T* c,
                    const std::vector<int64_t>& places, int64_t ldc) {
  const auto count = std::ssize(places);
  const auto at = [](const std::vector<int64_t>& list, int64_t i) { return list[static_cast<size_t>(i)]; };
  const bool rows_are_dense = !a.transposed || a.ld == 1, columns_are_dense = b.transposed || b.ld == 1;
  const bool columns_are_side_by_side = !b.transposed || b.ld == 1;
  if (m == 1 && n == 1 && rows_are_dense && columns_are_dense) {
    pool.parallel_for(count, 1 + (16 << 10) / (k + 1), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        c[at(places, i)] = dot<T>(a.data + at(a.offsets, i), b.data + at(b.offsets, i), k);
    });
  } else if (k == 1 && (columns_are_side_by_side || n == 1)) {
    const int64_t next_row = a.transposed ? 1 : a.ld;
    pool.parallel_for(count * m, 1 + (16 << 10) / (n + 1), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T factor = a.data[at(a.offsets, i / m) + i % m * next_row];
        scale_row(b.data + at(b.offsets, i / m), factor, c + at(places, i / m) + i % m * ldc, n);
      }
    });
  } else if constexpr (std::is_same_v<T, float>) {
    kernels::gemm_batch(
        pool, count, m, n, k, {nullptr, a.ld, a.transposed}, {nullptr, b.ld, b.transposed}, ldc, {}, [&](int64_t i) {
          return kernels::GemmBatchItem{a.data + at(a.offsets, i), b.data + at(b.offsets, i), c + at(places, i)};
        });
  } else {
    for (int64_t i = 0; i < count; ++i)
      kernels::gemm_any<T>(pool, m, n, k, {a.data + at(a.offsets, i), a.ld, a.transposed},
                           {b.data + at(b.offsets, i), b.ld, b.transposed}, c + at(places, i), ldc);
  }
}

std::vector<int> joined(std::vector<int> x, const std::vector<int>& y, const std::vector<int>& z) {
  x.insert(x.end(), y.begin(), y.end());
  x.insert(x.end(), z.begin(), z.end());
  return x;
}

// Sums over the labels that nobody needs any more.
template <typename T>
Operand<T> sum_others(ThreadPool& pool, Operand<T> x, const std::set<int>& needed) {
  std::vector<int> kept, summed;
  for (int label : x.labels) (needed.count(label) ? kept : summed).push_back(label);
  if (summed.empty()) return x;
  x = std::move(x).ordered(pool, joined(kept, summed, {}));
  Operand<T> result{
      kept, std::vector<int64_t>(x.sizes.begin(), x.sizes.begin() + static_cast<std::ptrdiff_t>(kept.size())), {}, {}};
  const int64_t rows = product(result.sizes), n = rows == 0 ? 0 : x.elements() / rows;
  T* to = result.allocate();
  pool.parallel_for(rows, 1 + (16 << 10) / (n + 1), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) to[row] = sum_of(x.data + row * n, n);
  });
  return result;
}

// The product of two operands, summed over the labels of both that are not needed: a batch of matrix products. It is
// written to `target`, if there is one and its axes allow for that; then the result is `target` with its data set.
template <typename T>
Operand<T> contract(ThreadPool& pool, Operand<T> a, Operand<T> b, const std::set<int>& needed, const Operand<T>& target,
                    T* to) {
  std::set<int> with_b = needed, with_a = needed;
  with_b.insert(b.labels.begin(), b.labels.end());
  with_a.insert(a.labels.begin(), a.labels.end());
  a = sum_others(pool, std::move(a), with_b);
  b = sum_others(pool, std::move(b), with_a);
  // The columns of the result come from the right side.
  if (!target.labels.empty() && a.has(target.labels.back()) && !b.has(target.labels.back())) std::swap(a, b);
  std::vector<int> batch, inner, left, right;
  for (int label : a.labels) {
    if (!b.has(label))
      left.push_back(label);
    else
      (needed.count(label) ? batch : inner).push_back(label);
  }
  for (int label : b.labels) {
    if (!a.has(label)) right.push_back(label);
  }
  auto a_layout = layout_of(a.group(left), a.group(inner)), b_layout = layout_of(b.group(inner), b.group(right));
  if (!a_layout) {
    a = std::move(a).ordered(pool, joined(batch, left, inner));
    a_layout = layout_of(a.group(left), a.group(inner));
  }
  if (!b_layout) {
    b = std::move(b).ordered(pool, joined(batch, inner, right));
    b_layout = layout_of(b.group(inner), b.group(right));
  }
  Operand<T> result{joined(batch, left, right), {}, nullptr, {}};
  for (int label : result.labels) result.sizes.push_back(a.has(label) ? a.size_of(label) : b.size_of(label));
  product(result.sizes);
  const auto rows = target.group(left), columns = target.group(right);
  const bool in_place = to && target.labels.size() == result.labels.size() && rows && columns &&
                        (columns->stride == 1 || columns->size == 1);
  if (in_place) {
    result.labels = target.labels;
    result.sizes = target.sizes;
    result.data = to;
  } else {
    to = result.allocate();
  }
  const int64_t m = a.group(left)->size, n = b.group(right)->size, k = a.group(inner)->size;
  if (result.elements() == 0) return result;
  if (k == 0) {
    std::fill_n(to, result.elements(), T{});
    return result;
  }
  const int64_t row_stride = result.group(left)->stride;
  multiply_batch<T>(pool, m, n, k, {a.data, offsets_of(a, batch), a_layout->ld, a_layout->transposed},
                    {b.data, offsets_of(b, batch), b_layout->ld, b_layout->transposed}, to, offsets_of(result, batch),
                    m == 1 ? n : row_stride);
  return result;
}

class Einsum final : public Kernel {
 public:
  explicit Einsum(const NodeInfo& info) : equation_(info.node().string_attribute("equation", "")) {}

  void run(KernelRun& run) const override {
    switch (run.input(0).type()) {
      case ElementType::float64:
        return compute<double>(run);
      case ElementType::uint64:
        return compute<uint64_t>(run);
      case ElementType::float32:
      case ElementType::float16:
      case ElementType::bfloat16:
        return compute<float>(run);
      default:
        return compute<int64_t>(run);
    }
  }

 private:
  template <typename T>
  void compute(KernelRun& run) const {
    std::vector<int> ranks;
    for (size_t i = 0; i < run.input_count(); ++i) ranks.push_back(run.input(i).rank());
    const EinsumEquation equation = EinsumEquation::parse(equation_, ranks);
    std::map<int, int64_t> sizes;
    std::map<int, int> uses;
    for (size_t i = 0; i < equation.inputs.size(); ++i) {
      for (size_t axis = 0; axis < equation.inputs[i].size(); ++axis) {
        int64_t& size = sizes.try_emplace(equation.inputs[i][axis], 1).first->second;
        if (run.input(i).dim(static_cast<int>(axis)) != 1) size = run.input(i).dim(static_cast<int>(axis));
      }
      for (int label : std::set<int>(equation.inputs[i].begin(), equation.inputs[i].end())) ++uses[label];
    }
    std::set<int> needed(equation.output.begin(), equation.output.end());
    Operand<T> target;
    for (int label : equation.output) {
      const auto has = [&](const std::vector<int>& labels) { return std::ranges::find(labels, label) != labels.end(); };
      if (std::ranges::none_of(equation.inputs, has)) continue;
      target.labels.push_back(label);
      target.sizes.push_back(sizes.at(label));
    }
    T* const to = run.output(0).type() == element_type_of<T> ? run.output(0).mutable_data<T>().data() : nullptr;
    Operand<T> result;
    for (size_t i = 0; i < equation.inputs.size(); ++i) {
      Operand<T> next = operand<T>(run.input(i), equation.inputs[i], sizes);
      // What later inputs have must survive this step.
      std::set<int> kept = needed;
      for (size_t later = i + 1; later < equation.inputs.size(); ++later)
        kept.insert(equation.inputs[later].begin(), equation.inputs[later].end());
      const bool is_last = i + 1 == equation.inputs.size();
      result = i == 0
                   ? sum_others(run.threads(), std::move(next), kept)
                   : contract(run.threads(), std::move(result), std::move(next), kept, target, is_last ? to : nullptr);
    }
    if (to && result.data == to) return;
    std::vector<int> order;
    for (int label : target.labels) {
      if (result.has(label)) order.push_back(label);
    }
    if (to) return result.transpose(run.threads(), order, to);
    result = std::move(result).ordered(run.threads(), order);
    store(result.data, run.output(0));
  }

  // An input with labels once each (the diagonal of those it has twice); axes that are broadcast are left out.
  template <typename T>
  static Operand<T> operand(const Tensor& x, const std::vector<int>& labels, const std::map<int, int64_t>& sizes) {
    Operand<T> result;
    std::vector<int64_t> strides;
    int64_t step = x.elements();
    for (size_t axis = 0; axis < labels.size(); ++axis) {
      const int64_t size = x.dim(static_cast<int>(axis));
      step = size == 0 ? 0 : step / size;
      if (size == 1 && sizes.at(labels[axis]) != 1) continue;
      auto known = std::ranges::find(result.labels, labels[axis]);
      if (known != result.labels.end()) {
        strides[static_cast<size_t>(known - result.labels.begin())] += step;
        continue;
      }
      result.labels.push_back(labels[axis]);
      result.sizes.push_back(size);
      strides.push_back(step);
    }
    product(result.sizes);
    if (x.type() == element_type_of<T> && result.elements() == x.elements()) {
      result.data = x.data<T>().data();
      return result;
    }
    result.allocate();
    dispatch<float, double, float16, bfloat16, int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t,
             uint64_t>(x.type(), [&]<typename From>() {
      const From* from = x.data<From>().data();
      std::vector<int64_t> index(result.sizes.size());
      int64_t at = 0;
      for (T& value : result.own) {
        if constexpr (std::is_arithmetic_v<From>)
          value = static_cast<T>(from[at]);
        else
          value = static_cast<T>(static_cast<float>(from[at]));
        for (size_t axis = index.size(); axis-- > 0;) {
          at += strides[axis];
          if (++index[axis] < result.sizes[axis]) break;
          at -= strides[axis] * result.sizes[axis];
          index[axis] = 0;
        }
      }
    });
    return result;
  }

  template <typename T>
  static void store(const T* from, Tensor& y) {
    dispatch<float, double, float16, bfloat16, int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t,
             uint64_t>(y.type(), [&]<typename To>() {
      auto to = y.mutable_data<To>();
      for (size_t i = 0; i < to.size(); ++i) {
        if constexpr (std::is_arithmetic_v<To>)
          to[i] = static_cast<To>(from[i]);
        else
          to[i] = To(static_cast<float>(from[i]));
      }
    });
  }

  std::string equation_;
};

}  // namespace

void cpu_einsum(CpuKernels& list) {
  list.add("Einsum", [](const NodeInfo& info) { return std::make_unique<Einsum>(info); });
}

}  // namespace tenon::ops
