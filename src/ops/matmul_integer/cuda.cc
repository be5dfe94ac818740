#include <algorithm>
#include <optional>

#include "base/fail.h"
#include "ops/cuda_support/byte_conv.h"
#include "ops/cuda_support/byte_product.h"
#include "ops/cuda_support/element_text.h"
#include "ops/qlinear/qlinear.h"

namespace tenon::ops {
namespace {

constexpr TypeSet bytes{ElementType::int8, ElementType::uint8};

// The matrices of both sides, whose leading axes are broadcast. `first` is the place of the numbers that are added.
struct Batch {
  int64_t m, n, k, count = 1;
  std::string setup;  // declares ia and ib, which matrices of a and b make matrix `matrix`
  std::vector<int64_t> numbers;

  Batch(const Tensor& a, const Tensor& b, size_t first)
      : m(a.rank() == 1 ? 1 : a.dim(a.rank() - 2)), n(b.rank() == 1 ? 1 : b.dim(b.rank() - 1)), k(a.dim(a.rank() - 1)) {
    const int a_rank = std::max(0, a.rank() - 2), b_rank = std::max(0, b.rank() - 2), rank = std::max(a_rank, b_rank);
    setup = "i64 rest = matrix, ia = 0, ib = 0;\n  ";
    int64_t a_step = 1, b_step = 1;
    for (int back = 1; back <= rank; ++back) {
      const int64_t of_a = back <= a_rank ? a.dim(a_rank - back) : 1, of_b = back <= b_rank ? b.dim(b_rank - back) : 1;
      const int64_t size = of_a == 1 ? of_b : of_a;
      const size_t at = first + numbers.size();
      numbers.insert(numbers.end(), {size, of_a == 1 ? 0 : a_step, of_b == 1 ? 0 : b_step});
      setup += fmt::format("ia += rest % v[{0}] * v[{1}]; ib += rest % v[{0}] * v[{2}]; rest /= v[{0}];\n  ", at,
                           at + 1, at + 2);
      a_step *= of_a;
      b_step *= of_b;
      count *= size;
    }
    // Many matrices with one on the right are one tall matrix.
    if (b_step == 1 && a_step == count) {
      m *= count;
      count = 1;
    }
  }
};

// One parameter for all, one for each line of every matrix, or one for each line of each.
void check_lines(const KernelRun& run, size_t input, int64_t lines, int64_t all_lines, const char* name) {
  if (!run.has_input(input)) return;
  const int64_t count = run.input(input).elements();
  if (count == 0 || (count != 1 && count != lines && count != all_lines))
    fail(ErrorCode::shape_mismatch, "{} has {} elements; it may have 1, {} or {}", name, count, lines, all_lines);
}

ElementType type_of(const KernelRun& run, size_t input) {
  return run.has_input(input) ? run.input(input).type() : ElementType::uint8;
}

struct Inputs {
  size_t a, b, a_zero, b_zero;
};

CudaByteProduct product_of(const KernelRun& run, const Inputs& at, Batch& batch) {
  const Tensor &a = run.input(at.a), &b = run.input(at.b);
  const int64_t rows = a.rank() == 1 ? 1 : a.dim(a.rank() - 2);
  check_lines(run, at.a_zero, rows, batch.k == 0 ? 0 : a.elements() / batch.k, "a_zero_point");
  check_lines(run, at.b_zero, batch.n, batch.k == 0 ? 0 : b.elements() / batch.k, "b_zero_point");
  CudaByteProduct product;
  product.count = batch.count;
  product.m = batch.m;
  product.n = batch.n;
  product.k = batch.k;
  product.setup = batch.setup;
  product.numbers = batch.numbers;
  const int64_t a_zeros = run.has_input(at.a_zero) ? run.input(at.a_zero).elements() : 1,
                b_zeros = run.has_input(at.b_zero) ? run.input(at.b_zero).elements() : 1;
  const size_t next = 4 + product.numbers.size();
  product.numbers.insert(product.numbers.end(), {a_zeros, b_zeros});
  product.a_code = signed_code(a.type(), "a[(ia * v[1] + row) * v[3] + k]");
  product.b_code = signed_code(b.type(), "b[(ib * v[3] + k) * v[2] + column]");
  product.a_zero = zero_point(run, at.a_zero, a.type(), "a_zero", fmt::format("(ia * v[1] + row) % v[{}]", next));
  product.b_zero =
      zero_point(run, at.b_zero, b.type(), "b_zero", fmt::format("(ib * v[2] + column) % v[{}]", next + 1));
  product.pointers = byte_pointer(a.type(), "a") + ", " + byte_pointer(b.type(), "b") + ", " +
                     byte_pointer(type_of(run, at.a_zero), "a_zero") + ", " +
                     byte_pointer(type_of(run, at.b_zero), "b_zero");
  return product;
}

const void* raw_or_null(const KernelRun& run, size_t input) {
  return run.has_input(input) ? run.input(input).raw() : nullptr;
}

bool is_single(const KernelRun& run, size_t input) { return !run.has_input(input) || run.input(input).elements() == 1; }

// By tensor cores where B is constant, else by plain arithmetic.
struct ProductPlan {
  std::optional<CudaByteConv> by_tensor_cores;
  std::optional<CudaBlocks> plain;
};

// What tensor cores make of A, which is input 0, and B, which is input b.
ByteConvShape product_shape(const KernelRun& run, size_t b, int64_t results) {
  const Tensor& matrix = run.input(b);
  return ByteConvShape::product(results / matrix.dim(1), matrix.dim(0), matrix.dim(1));
}

class MatMulInteger final : public Kernel {
 public:
  explicit MatMulInteger(const NodeInfo& info) : weights_(pack_matrix(info, 1, 3)) {}

  void run(KernelRun& run) const override {
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    ByteConvData data{run.input(0).raw(), y.raw()};
    data.x_zero = raw_or_null(run, 2);
    const auto& plan = run.per_plan<ProductPlan>([&] { return prepare(run, data); });
    if (plan.by_tensor_cores) return plan.by_tensor_cores->run(run, data);
    plan.plain->run(run, {data.x, run.input(1).raw(), data.x_zero, raw_or_null(run, 3), y.raw()});
  }

 private:
  ProductPlan prepare(KernelRun& run, const ByteConvData& data) const {
    ProductPlan plan;
    if (weights_ && is_single(run, 2)) {
      const ByteConvShape shape = product_shape(run, 1, run.output(0).elements());
      if (CudaByteConv::takes(queue_of(run).gpu(), shape)) {
        plan.by_tensor_cores.emplace(run, shape, weights_, run.input(0).type(), ElementType::int32, ByteConvResult{},
                                     data);
        return plan;
      }
    }
    Batch batch(run.input(0), run.input(1), 4);
    CudaByteProduct made = product_of(run, {0, 1, 2, 3}, batch);
    made.pointers += ", i32* y";
    made.finish = "y[(matrix * v[1] + row) * v[2] + column] = sum;";
    plan.plain.emplace(made.make(run));
    return plan;
  }

  std::shared_ptr<const ByteConvWeights> weights_;
};

// Scales of A's rows, B's columns and Y's rows, and Y's zero points. That of our own domain has a bias and codes that
// are added, too, and is computed by tensor cores always.
class QLinearMatMul final : public Kernel {
 public:
  explicit QLinearMatMul(const NodeInfo& info) : weights_(pack_matrix(info, 3, 5)) {}

  void run(KernelRun& run) const override {
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    ByteConvData data{run.input(0).raw(), y.raw()};
    data.x_scale = run.input(1).raw();
    data.x_zero = run.input(2).raw();
    data.w_scale = run.input(4).raw();
    data.y_scale = run.input(6).raw();
    data.y_zero = run.input(7).raw();
    data.bias = raw_or_null(run, 8);
    data.added = raw_or_null(run, 9);
    data.added_scale = raw_or_null(run, 10);
    data.added_zero = raw_or_null(run, 11);
    data.sum_scale = raw_or_null(run, 12);
    data.sum_zero = raw_or_null(run, 13);
    const auto& plan = run.per_plan<ProductPlan>([&] { return prepare(run, data); });
    if (plan.by_tensor_cores) return plan.by_tensor_cores->run(run, data);
    plan.plain->run(run, {data.x, run.input(3).raw(), data.x_zero, raw_or_null(run, 5), data.x_scale, data.w_scale,
                          data.y_scale, data.y_zero, y.raw()});
  }

 private:
  // Sums of so many products of bytes fit into 32 bits.
  static constexpr int64_t most_products = (1 << 30) / (255 * 255);

  bool takes_tensor_cores(KernelRun& run, const ByteConvShape& shape) const {
    const int64_t scales = run.input(4).elements();
    bool are_floats = true;
    for (size_t input : {1, 4, 6}) are_floats = are_floats && run.input(input).type() == ElementType::float32;
    return are_floats && shape.channels <= most_products && is_single(run, 1) && is_single(run, 2) &&
           is_single(run, 6) && is_single(run, 7) && (scales == 1 || scales == shape.outputs) &&
           CudaByteConv::takes(queue_of(run).gpu(), shape);
  }

  ProductPlan prepare(KernelRun& run, const ByteConvData& data) const {
    const Tensor& y = run.output(0);
    ProductPlan plan;
    if (weights_) {
      const ByteConvShape shape = product_shape(run, 3, y.elements());
      if (takes_tensor_cores(run, shape)) {
        for (size_t i : {8, 9}) {
          if (run.has_input(i) && run.input(i).elements() != shape.outputs)
            fail(ErrorCode::shape_mismatch, "input {} has {} elements; it must have {}", i, run.input(i).elements(),
                 shape.outputs);
        }
        ByteConvResult result;
        result.has_one_scale = run.input(4).elements() == 1;
        if (data.bias) result.bias = ByteConvResult::Bias::to_sums;
        if (data.added) result.added = ByteConvResult::Added::row;
        plan.by_tensor_cores.emplace(run, shape, weights_, run.input(0).type(), y.type(), result, data);
        return plan;
      }
    }
    if (data.bias || data.added)
      fail(ErrorCode::unsupported, "a product with a bias of {} elements is none for the GPU", y.elements());
    plan.plain.emplace(make_plain(run, y));
    return plan;
  }

  static CudaBlocks make_plain(KernelRun& run, const Tensor& y) {
    Batch batch(run.input(0), run.input(3), 4);
    const Tensor &a = run.input(0), &b = run.input(3);
    const int64_t rows = a.rank() == 1 ? 1 : a.dim(a.rank() - 2), all_rows = y.elements() / batch.n;
    CudaByteProduct made = product_of(run, {0, 3, 2, 5}, batch);
    made.wide = batch.k > most_products;
    check_lines(run, 1, rows, batch.k == 0 ? 0 : a.elements() / batch.k, "a_scale");
    check_lines(run, 4, batch.n, batch.k == 0 ? 0 : b.elements() / batch.k, "b_scale");
    check_lines(run, 6, rows, all_rows, "y_scale");
    check_lines(run, 7, rows, all_rows, "y_zero_point");
    const size_t next = 4 + made.numbers.size();
    for (size_t input : {1, 4, 6, 7}) made.numbers.push_back(run.input(input).elements());
    made.functions = load_text(run.input(1).type(), "a_scale") + load_text(run.input(4).type(), "b_scale") +
                     load_text(run.input(6).type(), "y_scale");
    made.pointers += fmt::format(
        ", const Memory_a_scale* a_scale, const Memory_b_scale* b_scale, const Memory_y_scale* y_scale, {}, {}* y",
        byte_pointer(y.type(), "y_zero"), cuda::type_text(y.type()));
    made.finish = fmt::format(
        "const i64 line = matrix * v[1] + row;\n      "
        "const float scale = times((float)load_a_scale(a_scale, (ia * v[1] + row) % v[{}]), "
        "(float)load_b_scale(b_scale, (ib * v[2] + column) % v[{}])) / (float)load_y_scale(y_scale, line % v[{}]);\n   "
        "   ",
        next, next + 1, next + 2);
    made.finish +=
        requantize_text(y.type(), "", "scale", fmt::format("y_zero[line % v[{}]]", next + 3), "line * v[2] + column");
    return made.make(run);
  }

  std::shared_ptr<const ByteConvWeights> weights_;
};

std::string decline_qlinear(const ir::Node& node) {
  for (size_t input : {0, 2, 3, 5, 7}) {
    if (node.input(input) && !bytes.contains(node.input(input)->type.element))
      return fmt::format("the CUDA kernel of QLinearMatMul multiplies bytes, not {}",
                         name_of(node.input(input)->type.element));
  }
  return "";
}

std::string decline_with_bias(const ir::Node& node) { return why_not_constant_matrix(node, 3, 5); }

}  // namespace

void cuda_matmul_integer(CudaKernels& list) {
  list.add("MatMulInteger", [](const NodeInfo& info) { return std::make_unique<MatMulInteger>(info); },
           {.types = bytes | TypeSet{ElementType::int32}});
  const auto make = [](const NodeInfo& info) { return std::make_unique<QLinearMatMul>(info); };
  list.add("QLinearMatMul", make, {.types = {}, .decline = decline_qlinear});
  list.add("QLinearMatMul", make,
           {.types = {}, .decline = decline_with_bias, .domain = tenon_domain, .least_major = 8});
}

}  // namespace tenon::ops
