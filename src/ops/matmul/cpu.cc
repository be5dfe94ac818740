#include <algorithm>
#include <optional>

#include "kernels/gemm/gemm.h"
#include "kernels/gemm_any/gemm_any.h"
#include "kernels/gemm_bf16/gemm_bf16.h"
#include "ops/cpu_support/compute_type.h"
#include "ops/cpu_support/fused_epilogue.h"
#include "ops/dispatch.h"
#include "ops/fused_types.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

using kernels::GemmMatrix;

// Types that the multiplication itself does not know are computed in float.
void from_float(ThreadPool& threads, const Tensor& from, Tensor& to) {
  dispatch<float16, bfloat16>(to.type(), [&]<typename T>() {
    convert_elements(threads, from.data<float>().data(), to.mutable_data<T>().data(), from.elements());
  });
}

bool is_half(ElementType type) { return type == ElementType::float16 || type == ElementType::bfloat16; }

// One multiplication per element of the broadcast batch.
struct BatchShape {
  int64_t m, n, k;
  Shape batch;                                // broadcast
  std::vector<int64_t> a_strides, b_strides;  // in matrices; 0 where broadcast

  BatchShape(const Shape& a, const Shape& b) {
    bool row = a.rank() == 1, column = b.rank() == 1;
    m = row ? 1 : a[a.rank() - 2];
    k = a[a.rank() - 1];
    n = column ? 1 : b[b.rank() - 1];
    int a_batch = row ? 0 : a.rank() - 2, b_batch = column ? 0 : b.rank() - 2;
    int rank = std::max(a_batch, b_batch);
    batch = Shape(rank, 1);
    a_strides.assign(static_cast<size_t>(rank), 0);
    b_strides.assign(static_cast<size_t>(rank), 0);
    auto fill = [&](const Shape& shape, int own, std::vector<int64_t>& strides) {
      int64_t stride = 1;
      for (int axis = own - 1; axis >= 0; --axis) {
        int target = rank - own + axis;
        if (shape[axis] != 1) {
          batch[target] = shape[axis];
          strides[static_cast<size_t>(target)] = stride;
        }
        stride *= shape[axis];
      }
    };
    fill(a, a_batch, a_strides);
    fill(b, b_batch, b_strides);
  }

  // Positions of the matrices that number `i` of the batch multiplies.
  std::pair<int64_t, int64_t> at(int64_t i) const {
    int64_t a = 0, b = 0;
    for (int axis = batch.rank() - 1; axis >= 0; --axis) {
      int64_t index = i % batch[axis];
      i /= batch[axis];
      a += index * a_strides[static_cast<size_t>(axis)];
      b += index * b_strides[static_cast<size_t>(axis)];
    }
    return {a, b};
  }

  // Whether all of A meets one B, so that its batch is just more rows.
  bool shared_b() const {
    return std::ranges::all_of(b_strides, [](int64_t s) { return s == 0; });
  }
};

void multiply(ThreadPool& pool, const BatchShape& s, const float* a, const float* b, float* y) {
  int64_t count = s.batch.elements();
  if (s.shared_b()) return kernels::gemm(pool, count * s.m, s.n, s.k, {a, s.k}, {b, s.n}, y, s.n);
  kernels::gemm_batch(pool, count, s.m, s.n, s.k, {nullptr, s.k}, {nullptr, s.n}, s.n, {}, [&](int64_t i) {
    auto [ia, ib] = s.at(i);
    return kernels::GemmBatchItem{a + ia * s.m * s.k, b + ib * s.k * s.n, y + i * s.m * s.n};
  });
}

template <typename T>
void multiply(ThreadPool& pool, const BatchShape& s, const T* a, const T* b, T* y) {
  for (int64_t i = 0; i < s.batch.elements(); ++i) {
    auto [ia, ib] = s.at(i);
    kernels::gemm_any<T>(pool, s.m, s.n, s.k, {a + ia * s.m * s.k, s.k}, {b + ib * s.k * s.n, s.n}, y + i * s.m * s.n,
                         s.n);
  }
}

// The right side of a product, packed when it is a constant matrix of floats, of half precision too.
class PackedRightSide {
 public:
  // `transposes_left`: whether the product uses its left side transposed.
  PackedRightSide(const NodeInfo& info, bool transposed, bool transposes_left) {
    const Tensor* b = info.constant(1);
    if (!b || b->rank() != 2 || b->elements() == 0) return;
    const bool half = is_half(b->type());
    if (!half && b->type() != ElementType::float32) return;
    const int64_t rows = b->dim(transposed ? 1 : 0), columns = b->dim(transposed ? 0 : 1);
    const std::string layout = transposed ? "right, transposed" : "right";
    const kernels::Bf16Kernels* fast =
        info.precision() == Precision::fast && !transposes_left && !half ? kernels::fast_bf16_kernels() : nullptr;
    if (fast) {
      const GemmMatrix matrix{b->data<float>().data(), b->dim(1), transposed};
      rounded_ = info.packed<kernels::PackedBf16Matrix>({1}, layout, [&](PackedStorage& storage) {
        return kernels::PackedBf16Matrix(info.threads(), rows, columns, matrix, *fast, storage);
      });
    } else {
      floats_ = info.packed<kernels::PackedMatrix>({1}, layout, [&](PackedStorage& storage) {
        const Tensor wide = storage.fills() ? as_type<float>(*b, info.threads()) : *b;
        const GemmMatrix matrix{static_cast<const float*>(wide.raw()), b->dim(1), transposed};
        return kernels::PackedMatrix(info.threads(), kernels::GemmSide::right, rows, columns, matrix, storage);
      });
    }
  }

  explicit operator bool() const { return floats_ || rounded_; }
  std::string_view rounds_to() const { return rounded_ ? "bf16" : ""; }

  void multiply(ThreadPool& pool, int64_t m, GemmMatrix left, float* c, int64_t ldc,
                const kernels::GemmEpilogue& epilogue = {}) const {
    if (rounded_)
      kernels::gemm_bf16(pool, m, left, *rounded_, c, ldc, epilogue);
    else
      kernels::gemm(pool, m, left, *floats_, c, ldc, epilogue);
  }

 private:
  std::shared_ptr<const kernels::PackedMatrix> floats_;
  std::shared_ptr<const kernels::PackedBf16Matrix> rounded_;
};

class MatMul final : public Kernel {
 public:
  explicit MatMul(const NodeInfo& info) : packed_(info, false, false) {}

  std::string_view rounds_to() const override { return packed_.rounds_to(); }

  void run(KernelRun& run) const override {
    const Tensor& a = run.input(0);
    const Tensor& b = run.input(1);
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    BatchShape shape(a.shape(), b.shape());
    if (packed_ && !is_half(a.type()) && shape.k > 0) {
      return packed_.multiply(run.threads(), shape.batch.elements() * shape.m, {a.data<float>().data(), shape.k},
                              y.mutable_data<float>().data(), shape.n);
    }
    if (is_half(a.type())) return run_halves(run, shape);
    dispatch<float, double, int32_t, int64_t, uint32_t, uint64_t>(a.type(), [&]<typename T>() {
      multiply(run.threads(), shape, a.data<T>().data(), b.data<T>().data(), y.mutable_data<T>().data());
    });
  }

 private:
  void run_halves(KernelRun& run, const BatchShape& shape) const {
    Tensor& y = run.output(0);
    Tensor wide_y(ElementType::float32, y.shape(), run.allocator());
    const Tensor wide_a = as_type<float>(run.input(0), run.threads(), run.allocator());
    const float* left = wide_a.data<float>().data();
    float* out = wide_y.mutable_data<float>().data();
    if (packed_ && shape.k > 0) {
      packed_.multiply(run.threads(), shape.batch.elements() * shape.m, {left, shape.k}, out, shape.n);
    } else {
      const Tensor wide_b = as_type<float>(run.input(1), run.threads(), run.allocator());
      multiply(run.threads(), shape, left, wide_b.data<float>().data(), out);
    }
    from_float(run.threads(), wide_y, y);
  }

  PackedRightSide packed_;
};

Shape transposed_if(bool transposed, Shape shape) {
  if (transposed) std::swap(shape[shape.rank() - 1], shape[shape.rank() - 2]);
  return shape;
}

class FusedMatMul final : public Kernel {
 public:
  explicit FusedMatMul(const NodeInfo& info)
      : transpose_a_(info.node().int_attribute("transA", 0) != 0),
        transpose_b_(info.node().int_attribute("transB", 0) != 0),
        alpha_(info.node().float_attribute("alpha", 1)),
        epilogue_(info.node()),
        packed_(info, transpose_b_, transpose_a_) {}

  std::string_view rounds_to() const override { return packed_.rounds_to(); }

  void run(KernelRun& run) const override {
    const Tensor &a = run.input(0), &b = run.input(1);
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    BatchShape s(transposed_if(transpose_a_, a.shape()), transposed_if(transpose_b_, b.shape()));
    kernels::GemmEpilogue epilogue;
    epilogue.alpha = alpha_;
    if (run.has_input(2)) {
      epilogue.addend = run.data<float>(2).data();
      epilogue.addend_column_stride = 1;
    }
    epilogue.lo = epilogue_.lo;
    epilogue.hi = epilogue_.hi;
    epilogue.activation = epilogue_.function;
    const float* residual = run.has_input(3) ? run.data<float>(3).data() : nullptr;
    GemmMatrix left{a.data<float>().data(), a.dim(a.rank() - 1), transpose_a_},
        right{b.data<float>().data(), b.dim(b.rank() - 1), transpose_b_};
    float* out = y.mutable_data<float>().data();
    int64_t count = s.batch.elements();
    if (s.shared_b() && (count == 1 || !transpose_a_)) {
      s.m *= count;
      count = 1;
    }
    if (count > 1 && !residual && !packed_) {
      return kernels::gemm_batch(run.threads(), count, s.m, s.n, s.k, left, right, s.n, epilogue, [&](int64_t i) {
        auto [ia, ib] = s.at(i);
        return kernels::GemmBatchItem{left.data + ia * s.m * s.k, right.data + ib * s.k * s.n, out + i * s.m * s.n,
                                      epilogue.addend};
      });
    }
    const float *all_left = left.data, *all_right = right.data;
    for (int64_t i = 0; i < count; ++i) {
      auto [ia, ib] = s.at(i);
      left.data = all_left + ia * s.m * s.k;
      right.data = all_right + ib * s.k * s.n;
      epilogue.residual = residual ? residual + i * s.m * s.n : nullptr;
      if (packed_)
        packed_.multiply(run.threads(), s.m, left, out + i * s.m * s.n, s.n, epilogue);
      else
        kernels::gemm(run.threads(), s.m, s.n, s.k, left, right, out + i * s.m * s.n, s.n, epilogue);
    }
  }

 private:
  bool transpose_a_, transpose_b_;
  float alpha_;
  FusedEpilogue epilogue_;
  PackedRightSide packed_;
};

class Gemm final : public Kernel {
 public:
  explicit Gemm(const NodeInfo& info)
      : alpha_(info.node().float_attribute("alpha", 1)),
        beta_(info.node().float_attribute("beta", 1)),
        transpose_a_(info.node().int_attribute("transA", 0) != 0),
        transpose_b_(info.node().int_attribute("transB", 0) != 0),
        packed_(info, transpose_b_, transpose_a_) {}

  std::string_view rounds_to() const override { return packed_.rounds_to(); }

  void run(KernelRun& run) const override {
    const Tensor& a = run.input(0);
    const Tensor& b = run.input(1);
    const Tensor* c = run.has_input(2) ? &run.input(2) : nullptr;
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    if (a.type() == ElementType::float32) return run_float(run.threads(), a, b, c, y);
    if (is_half(a.type())) {
      Tensor wide_y(ElementType::float32, y.shape(), run.allocator());
      Tensor wide_a = as_type<float>(a, run.threads(), run.allocator()),
             wide_b = packed_ ? b : as_type<float>(b, run.threads(), run.allocator()), wide_c;
      if (c) wide_c = as_type<float>(*c, run.threads(), run.allocator());
      run_float(run.threads(), wide_a, wide_b, c ? &wide_c : nullptr, wide_y);
      return from_float(run.threads(), wide_y, y);
    }
    dispatch<double, int32_t, int64_t, uint32_t, uint64_t>(
        a.type(), [&]<typename T>() { run_any<T>(run.threads(), a, b, c, y); });
  }

 private:
  // How far apart the elements of C are along the rows and columns of Y; 0 where it is broadcast.
  static std::pair<int64_t, int64_t> strides_of(const Tensor& c) {
    int64_t rows = c.rank() == 2 ? c.dim(0) : 1, columns = c.rank() >= 1 ? c.dim(c.rank() - 1) : 1;
    return {rows == 1 ? 0 : columns, columns == 1 ? 0 : 1};
  }

  void run_float(ThreadPool& pool, const Tensor& a, const Tensor& b, const Tensor* c, Tensor& y) const {
    int64_t m = y.dim(0), n = y.dim(1), k = a.dim(transpose_a_ ? 0 : 1);
    kernels::GemmEpilogue epilogue;
    epilogue.alpha = alpha_;
    epilogue.beta = beta_;
    if (c && beta_ != 0) {
      epilogue.addend = c->data<float>().data();
      std::tie(epilogue.addend_row_stride, epilogue.addend_column_stride) = strides_of(*c);
    }
    GemmMatrix left{a.data<float>().data(), a.dim(1), transpose_a_};
    float* out = y.mutable_data<float>().data();
    if (packed_) return packed_.multiply(pool, m, left, out, n, epilogue);
    kernels::gemm(pool, m, n, k, left, {b.data<float>().data(), b.dim(1), transpose_b_}, out, n, epilogue);
  }

  template <typename T>
  void run_any(ThreadPool& pool, const Tensor& a, const Tensor& b, const Tensor* c, Tensor& y) const {
    int64_t m = y.dim(0), n = y.dim(1), k = a.dim(transpose_a_ ? 0 : 1);
    T* out = y.mutable_data<T>().data();
    kernels::gemm_any<T>(pool, m, n, k, {a.data<T>().data(), a.dim(1), transpose_a_},
                         {b.data<T>().data(), b.dim(1), transpose_b_}, out, n);
    const T* addend = c ? c->data<T>().data() : nullptr;
    auto [row, column] = c ? strides_of(*c) : std::pair<int64_t, int64_t>{0, 0};
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        T& value = out[i * n + j];
        value = static_cast<T>(static_cast<T>(alpha_) * value);
        if (addend) value = static_cast<T>(value + static_cast<T>(beta_) * addend[i * row + j * column]);
      }
    }
  }

  float alpha_, beta_;
  bool transpose_a_, transpose_b_;
  PackedRightSide packed_;
};

}  // namespace

void cpu_matmul(CpuKernels& list) {
  list.add("MatMul", [](const NodeInfo& info) { return std::make_unique<MatMul>(info); });
  list.add(
      "FusedMatMul", [](const NodeInfo& info) { return std::make_unique<FusedMatMul>(info); }, why_not_fused_on_host,
      tenon_domain);
  list.add("Gemm", [](const NodeInfo& info) { return std::make_unique<Gemm>(info); });
}

}  // namespace tenon::ops
