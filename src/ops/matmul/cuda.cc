#include <algorithm>
#include <numeric>
#include <optional>

#include "base/fail.h"
#include "cuda/gemm.h"
#include "cuda/trial.h"
#include "ops/cuda_support/epilogue.h"
#include "ops/cuda_support/loop.h"
#include "ops/cuda_support/own_products.h"
#include "ops/cuda_support/packs.h"

namespace tenon::ops {
namespace {

// What is done with products of matrices whose leading axes are broadcast.
struct Product {
  Shape batch;  // of the output
  int64_t m = 1, n = 1, k = 1;
  bool transpose_a = false, transpose_b = false;
  double alpha = 1;
};

Shape leading(const Shape& shape, int less) {
  std::vector<int64_t> dims(shape.begin(), shape.end() - less);
  return Shape(std::span<const int64_t>(dims));
}

// Steps between the matrices of one side for each axis of the batch, 0 where they are repeated.
std::vector<int64_t> steps_of(const Shape& batch, const Shape& own, int64_t matrix) {
  std::vector<int64_t> steps(static_cast<size_t>(batch.rank()), 0);
  int64_t step = matrix;
  for (int axis = own.rank() - 1; axis >= 0; --axis) {
    if (own[axis] != 1) steps[static_cast<size_t>(axis + batch.rank() - own.rank())] = step;
    step *= own[axis];
  }
  return steps;
}

// Products as few calls of cublasLt, each with an equal step from matrix to matrix.
class BatchedGemm {
 public:
  // `epilogue` is done where that is possible.
  BatchedGemm(KernelRun& run, ElementType type, const Product& product, const Shape& a_batch, const Shape& b_batch,
              bool allow_tf32, const cuda::Epilogue& epilogue) {
    cuda::GemmShape shape;
    shape.type = shape.output = type;
    shape.m = product.m;
    shape.n = product.n;
    shape.k = product.k;
    shape.transpose_a = product.transpose_a;
    shape.transpose_b = product.transpose_b;
    shape.a_row = product.transpose_a ? product.m : product.k;
    shape.b_row = product.transpose_b ? product.k : product.n;
    shape.y_row = product.n;
    shape.alpha = product.alpha;
    shape.allow_tf32 = allow_tf32;
    const std::vector<int64_t> a_steps = steps_of(product.batch, a_batch, product.m * product.k),
                               b_steps = steps_of(product.batch, b_batch, product.k * product.n);
    // All matrices are the rows of one where b is the same for them.
    const bool b_is_one = std::ranges::all_of(b_steps, [](int64_t step) { return step == 0; });
    const bool a_is_whole = a_batch.elements() == product.batch.elements() && !product.transpose_a;
    int axis = product.batch.rank();
    if (b_is_one && a_is_whole) {
      shape.m *= product.batch.elements();
      axis = 0;
    } else {
      // The last axes along which both sides go on evenly.
      int64_t count = 1, a_step = 0, b_step = 0;
      while (axis > 0) {
        const auto at = static_cast<size_t>(axis - 1);
        const int64_t size = product.batch[axis - 1];
        if (size != 1) {
          if (count == 1) {
            a_step = a_steps[at];
            b_step = b_steps[at];
          } else if (a_steps[at] != a_step * count || b_steps[at] != b_step * count) {
            break;
          }
          count *= size;
        }
        --axis;
      }
      shape.batch = count;
      shape.a_step = a_step;
      shape.b_step = b_step;
      shape.y_step = product.m * product.n;
    }
    add_offsets(product, a_steps, b_steps, axis, type);
    shape.alignment =
        alignment_of({run.input(0).raw(), run.input(1).raw(), static_cast<const void*>(run.output(0).raw()),
                      CudaEpilogue::bias_of(run), CudaEpilogue::residual_of(run)});
    for (const Offsets& at : offsets_) shape.alignment = std::gcd(shape.alignment, at.a | at.b | at.y);
    if (offsets_.size() == 1 && shape.batch == 1 && type != ElementType::float64) shape.epilogue = epilogue;
    gemm_.emplace(queue_of(run), shape);
    const Offsets& first = offsets_[0];
    gemm_->choose_by_trial(queue_of(run), uses_of(run), static_cast<const std::byte*>(run.input(0).raw()) + first.a,
                           static_cast<const std::byte*>(run.input(1).raw()) + first.b,
                           static_cast<std::byte*>(run.output(0).mutable_raw()) + first.y, CudaEpilogue::bias_of(run),
                           CudaEpilogue::residual_of(run));
  }

  const cuda::Epilogue& epilogue() const { return gemm_->epilogue(); }

  void run(KernelRun& run, const void* a, const void* b, void* y) const {
    for (const Offsets& at : offsets_) {
      gemm_->run(queue_of(run), static_cast<const std::byte*>(a) + at.a, static_cast<const std::byte*>(b) + at.b,
                 static_cast<std::byte*>(y) + at.y, CudaEpilogue::bias_of(run), CudaEpilogue::residual_of(run));
    }
  }

 private:
  struct Offsets {
    int64_t a, b, y;  // in bytes
  };

  void add_offsets(const Product& product, const std::vector<int64_t>& a_steps, const std::vector<int64_t>& b_steps,
                   int axes, ElementType type) {
    const int64_t bytes = bits_of(type) / 8;
    int64_t calls = 1, inside = 1;
    for (int axis = 0; axis < product.batch.rank(); ++axis) (axis < axes ? calls : inside) *= product.batch[axis];
    for (int64_t call = 0; call < calls; ++call) {
      Offsets at{0, 0, call * inside * product.m * product.n * bytes};
      int64_t rest = call;
      for (int axis = axes - 1; axis >= 0; --axis) {
        const int64_t c = rest % product.batch[axis];
        rest /= product.batch[axis];
        at.a += c * a_steps[static_cast<size_t>(axis)] * bytes;
        at.b += c * b_steps[static_cast<size_t>(axis)] * bytes;
      }
      offsets_.push_back(at);
    }
  }

  std::optional<cuda::Gemm> gemm_;
  std::vector<Offsets> offsets_;
};

// Integers: one thread for each sum.
CudaLoop integer_product(KernelRun& run, const Product& product, const Shape& a_batch, const Shape& b_batch,
                         const Tensor& y) {
  std::vector<int64_t> numbers{product.m, product.n, product.k};
  const int rank = product.batch.rank();
  numbers.insert(numbers.end(), product.batch.begin(), product.batch.end());
  for (const auto& steps : {steps_of(product.batch, a_batch, product.m * product.k),
                            steps_of(product.batch, b_batch, product.k * product.n)})
    numbers.insert(numbers.end(), steps.begin(), steps.end());
  const std::string_view type = cuda::type_text(y.type());
  std::string body = "const i64 column = i % v[1], row = i / v[1] % v[0];\n    i64 at_a = 0, at_b = 0;\n    ";
  body += coordinates_text(rank, 3, "i / (v[0] * v[1])");
  for (int axis = 0; axis < rank; ++axis)
    body += fmt::format("at_a += c{} * v[{}]; at_b += c{} * v[{}];\n    ", axis, 3 + rank + axis, axis,
                        3 + 2 * rank + axis);
  body += fmt::format(
      "{} sum = 0;\n    for (i64 k = 0; k < v[2]; ++k) sum += a[at_a + {}] * b[at_b + {}];\n    y[i] = {}sum;", type,
      product.transpose_a ? "k * v[0] + row" : "row * v[2] + k",
      product.transpose_b ? "column * v[2] + k" : "k * v[1] + column",
      product.alpha == 1 ? "" : fmt::format("({}){} * ", type, product.alpha));
  return {run, y.elements(), fmt::format("const {}* a, const {}* b, {}* y", type, type, type), body, numbers};
}

// MatMul, Gemm and FusedMatMul.
class MatMul final : public Kernel {
 public:
  explicit MatMul(const NodeInfo& info)
      : allow_tf32_(info.precision() == Precision::fast && info.element(0) == ElementType::float32),
        has_fixed_b_(info.constant(1)) {
    const ir::Node& node = info.node();
    if (node.op_type == "MatMul") return;
    is_gemm_ = node.op_type == "Gemm";
    beta_ = node.float_attribute("beta", 1);
    own_epilogue_ = CudaEpilogue(node);
    if (!is_gemm_) epilogue_ = own_epilogue_;
    transpose_a_ = node.int_attribute("transA", 0) != 0;
    transpose_b_ = node.int_attribute("transB", 0) != 0;
    alpha_ = node.float_attribute("alpha", 1);
  }

  std::string_view rounds_to() const override { return allow_tf32_ ? "tf32" : ""; }

  void run(KernelRun& run) const override {
    const Tensor &a = run.input(0), &b = run.input(1);
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    const auto& plan = run.per_plan<Plan>([&] { return prepare(run, a, b, y); });
    if (plan.own_product)
      plan.own_product->run(run);
    else
      run_library(run, plan);
  }

 private:
  struct Plan {
    bool is_empty = false;  // sums of nothing
    std::optional<BatchedGemm> gemm;
    std::optional<CudaLoop> loop, adds_c, epilogue;
    std::optional<CudaOwnProduct> own_product;  // instead of all these
    std::shared_ptr<const size_t> chosen;       // of the library's way and ours
  };

  // What a library does, or plain arithmetic for what it has not, and what is left to do after it.
  void run_library(KernelRun& run, const Plan& plan) const {
    const Tensor &a = run.input(0), &b = run.input(1);
    Tensor& y = run.output(0);
    if (plan.is_empty) queue_of(run).fill(y.mutable_raw(), 0, y.bytes());
    if (plan.gemm) plan.gemm->run(run, a.raw(), b.raw(), y.mutable_raw());
    if (plan.loop) plan.loop->run(run, {a.raw(), b.raw(), y.raw()});
    if (plan.adds_c) plan.adds_c->run(run, {y.raw(), run.input(2).raw()});
    if (plan.epilogue) epilogue_.run(run, *plan.epilogue, y);
  }

  Plan prepare(KernelRun& run, const Tensor& a, const Tensor& b, const Tensor& y) const {
    Shape a_shape = a.shape(), b_shape = b.shape();
    if (a.rank() == 1) a_shape = Shape{1, a.dim(0)};
    if (b.rank() == 1) b_shape = Shape{b.dim(0), 1};
    const int a_rank = a_shape.rank(), b_rank = b_shape.rank();
    Product product;
    product.transpose_a = transpose_a_;
    product.transpose_b = transpose_b_;
    product.alpha = alpha_;
    product.m = a_shape[transpose_a_ ? a_rank - 1 : a_rank - 2];
    product.k = a_shape[transpose_a_ ? a_rank - 2 : a_rank - 1];
    product.n = b_shape[transpose_b_ ? b_rank - 2 : b_rank - 1];
    const Shape a_batch = leading(a_shape, 2), b_batch = leading(b_shape, 2);
    product.batch = leading(y.shape(), y.rank() - std::max(a_batch.rank(), b_batch.rank()));
    Plan plan;
    plan.is_empty = product.k == 0;
    // C of a Gemm is added as a bias where it is one.
    cuda::Epilogue wanted = epilogue_.for_library();
    const bool has_c = is_gemm_ && run.has_input(2);
    if (has_c && beta_ == 1) wanted = epilogue_of(run.input(2).shape(), y.shape());
    if (!plan.is_empty && cuda::GemmShape::takes(y.type()))
      plan.gemm.emplace(run, y.type(), product, a_batch, b_batch, allow_tf32_, wanted);
    else if (!plan.is_empty)
      plan.loop.emplace(integer_product(run, product, a_batch, b_batch, y));
    const cuda::Epilogue done = plan.gemm ? plan.gemm->epilogue() : cuda::Epilogue();
    if (!is_gemm_) plan.epilogue = epilogue_.prepare(run, y, 1, y.dim(y.rank() - 1), done);
    if (has_c && !done.bias) plan.adds_c.emplace(add_c(run, run.input(2).shape(), y));
    const bool is_one = b_batch.elements() == 1 && a_batch.elements() == product.batch.elements();
    if (plan.gemm && is_one && !transpose_a_ && alpha_ == 1 && (!has_c || wanted.bias))
      choose_way(run,
                 {y.type(), product.m * product.batch.elements(), product.n, product.k, transpose_b_, has_fixed_b_},
                 plan);
    return plan;
  }

  // Between the library's way, which is 0, and ours. Nodes of the same shape choose once.
  void choose_way(KernelRun& run, const MatMulShape& s, Plan& plan) const {
    std::vector<CudaOwnProduct> ways = own_products(run, s, own_epilogue_);
    if (ways.empty()) return;
    const std::string key =
        fmt::format("product {} {}x{}x{} {} {} {} {}", name_of(s.type), s.rows, s.columns, s.depth, s.transpose_b,
                    allow_tf32_, ways.size(), own_epilogue_.text({}, "bias", "residual"));
    plan.chosen = cuda::fastest(queue_of(run), key, uses_of(run), 1 + ways.size(), [&](size_t way) {
      if (way == 0)
        run_library(run, plan);
      else
        ways[way - 1].run(run);
    });
    if (*plan.chosen > 0) plan.own_product = std::move(ways[*plan.chosen - 1]);
  }

  static cuda::Epilogue epilogue_of(const Shape& c, const Shape& y) {
    const int rank = c.rank();
    return {.bias = (rank == 1 || (rank == 2 && c[0] == 1)) && c[rank - 1] == y[1]};
  }

  // Gemm: beta * C, which is broadcast.
  CudaLoop add_c(KernelRun& run, const Shape& c, const Tensor& y) const {
    const bool has_columns = c.rank() > 0 && c[c.rank() - 1] != 1, has_rows = c.rank() > 1 && c[0] != 1;
    const std::string text =
        fmt::format("y[i] = narrow<T>(widen(y[i]) + (Wide<T>){} * widen(c[i / v[0] * v[1] + i % v[0] * v[2]]));",
                    cuda::number_text(beta_, ElementType::float64));
    return {run,
            y.elements(),
            "T* y, const T* c",
            text,
            {y.dim(1),
             !has_rows     ? 0
             : has_columns ? y.dim(1)
                           : 1,
             has_columns ? 1 : 0},
            fmt::format("typedef {} T;", cuda::type_text(y.type()))};
  }

  bool allow_tf32_ = false, has_fixed_b_ = false, is_gemm_ = false, transpose_a_ = false, transpose_b_ = false;
  double alpha_ = 1, beta_ = 1;
  CudaEpilogue epilogue_;      // what follows the library
  CudaEpilogue own_epilogue_;  // what a kernel of ours does, C of a Gemm included
};

}  // namespace

void cuda_matmul(CudaKernels& list) {
  const TypeSet types =
      types::floats | TypeSet{ElementType::int32, ElementType::int64, ElementType::uint32, ElementType::uint64};
  auto make = [](const NodeInfo& info) { return std::make_unique<MatMul>(info); };
  list.add("MatMul", make, {.types = types});
  list.add("Gemm", make, {.types = types});
  list.add("FusedMatMul", make, {.types = types, .domain = tenon_domain});
}

}  // namespace tenon::ops
