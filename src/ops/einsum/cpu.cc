#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/checked.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/gemm_any.h"
#include "kernels/transpose/transpose.h"
#include "ops/dispatch.h"
#include "ops/einsum/equation.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// A dense array whose axes have labels, no label twice.
template <typename T>
struct Operand {
  std::vector<int> labels;
  std::vector<int64_t> sizes;
  std::vector<T> data;

  int64_t size_of(int label) const {
    auto at = std::ranges::find(labels, label);
    return at == labels.end() ? 1 : sizes[static_cast<size_t>(at - labels.begin())];
  }
  bool has(int label) const { return std::ranges::find(labels, label) != labels.end(); }

  // The same with its axes in the order of `wanted`, which has the same labels.
  Operand ordered(ThreadPool& pool, const std::vector<int>& wanted) && {
    if (wanted == labels) return std::move(*this);
    Operand result{wanted, {}, std::vector<T>(data.size())};
    std::vector<int64_t> permutation;
    for (int label : wanted) {
      permutation.push_back(std::ranges::find(labels, label) - labels.begin());
      result.sizes.push_back(sizes[static_cast<size_t>(permutation.back())]);
    }
    if (!data.empty()) kernels::transpose(pool, data.data(), result.data.data(), sizes, permutation, sizeof(T));
    return result;
  }
};

int64_t product(const std::vector<int64_t>& sizes) {
  int64_t result = 1;
  for (int64_t size : sizes) result = checked_mul(result, size);
  // More than any machine has; containers would refuse it with an exception of their own.
  if (result > int64_t{1} << 48) fail(ErrorCode::out_of_memory, "an intermediate result has {} elements", result);
  return result;
}

void multiply_batch(ThreadPool& pool, int64_t count, int64_t m, int64_t n, int64_t k, const float* a, const float* b,
                    float* c) {
  kernels::gemm_batch(pool, count, m, n, k, {nullptr, k}, {nullptr, n}, n, {}, [&](int64_t i) {
    return kernels::GemmBatchItem{a + i * m * k, b + i * k * n, c + i * m * n};
  });
}

template <typename T>
void multiply_batch(ThreadPool& pool, int64_t count, int64_t m, int64_t n, int64_t k, const T* a, const T* b, T* c) {
  for (int64_t i = 0; i < count; ++i)
    kernels::gemm_any<T>(pool, m, n, k, {a + i * m * k, k}, {b + i * k * n, n}, c + i * m * n, n);
}

// Sums over the labels that nobody needs any more.
template <typename T>
Operand<T> sum_others(ThreadPool& pool, Operand<T> x, const std::set<int>& needed) {
  std::vector<int> kept, summed;
  for (int label : x.labels) (needed.count(label) ? kept : summed).push_back(label);
  if (summed.empty()) return x;
  std::vector<int> order = kept;
  order.insert(order.end(), summed.begin(), summed.end());
  x = std::move(x).ordered(pool, order);
  Operand<T> result{
      kept, std::vector<int64_t>(x.sizes.begin(), x.sizes.begin() + static_cast<std::ptrdiff_t>(kept.size())), {}};
  const int64_t rows = product(result.sizes), n = rows == 0 ? 0 : static_cast<int64_t>(x.data.size()) / rows;
  result.data.assign(static_cast<size_t>(rows), T{});
  for (int64_t r = 0; r < rows; ++r) {
    T sum{};
    for (int64_t i = 0; i < n; ++i) sum += x.data[static_cast<size_t>(r * n + i)];
    result.data[static_cast<size_t>(r)] = sum;
  }
  return result;
}

// The product of two operands, summed over the labels of both that are not needed: a batch of matrix products.
template <typename T>
Operand<T> contract(ThreadPool& pool, Operand<T> a, Operand<T> b, const std::set<int>& needed) {
  std::set<int> with_b = needed, with_a = needed;
  with_b.insert(b.labels.begin(), b.labels.end());
  with_a.insert(a.labels.begin(), a.labels.end());
  a = sum_others(pool, std::move(a), with_b);
  b = sum_others(pool, std::move(b), with_a);
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
  auto joined = [](std::vector<int> x, const std::vector<int>& y, const std::vector<int>& z) {
    x.insert(x.end(), y.begin(), y.end());
    x.insert(x.end(), z.begin(), z.end());
    return x;
  };
  a = std::move(a).ordered(pool, joined(batch, left, inner));
  b = std::move(b).ordered(pool, joined(batch, inner, right));
  Operand<T> result{joined(batch, left, right), {}, {}};
  int64_t count = 1, m = 1, n = 1, k = 1;
  for (int label : batch) count *= a.size_of(label);
  for (int label : left) m *= a.size_of(label);
  for (int label : right) n *= b.size_of(label);
  for (int label : inner) k *= a.size_of(label);
  for (int label : result.labels) result.sizes.push_back(a.has(label) ? a.size_of(label) : b.size_of(label));
  result.data.assign(static_cast<size_t>(product(result.sizes)), T{});
  if (!result.data.empty() && k > 0)
    multiply_batch(pool, count, m, n, k, a.data.data(), b.data.data(), result.data.data());
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
    Operand<T> result;
    for (size_t i = 0; i < equation.inputs.size(); ++i) {
      Operand<T> next = operand<T>(run.input(i), equation.inputs[i], sizes);
      // What later inputs have must survive this step.
      std::set<int> kept = needed;
      for (size_t later = i + 1; later < equation.inputs.size(); ++later)
        kept.insert(equation.inputs[later].begin(), equation.inputs[later].end());
      result = i == 0 ? sum_others(run.threads(), std::move(next), kept)
                      : contract(run.threads(), std::move(result), std::move(next), kept);
    }
    std::vector<int> order;
    for (int label : equation.output) {
      if (result.has(label)) order.push_back(label);
    }
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
    result.data.resize(static_cast<size_t>(product(result.sizes)));
    dispatch<float, double, float16, bfloat16, int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t,
             uint64_t>(x.type(), [&]<typename From>() {
      const From* from = x.data<From>().data();
      std::vector<int64_t> index(result.sizes.size());
      int64_t at = 0;
      for (T& value : result.data) {
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
  static void store(const std::vector<T>& from, Tensor& y) {
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
