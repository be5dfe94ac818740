#include <algorithm>
#include <map>
#include <optional>

#include "cuda/gemm.h"
#include "ops/cuda_support/element_text.h"
#include "ops/cuda_support/strided_copy.h"
#include "ops/einsum/equation.h"

namespace tenon::ops {
namespace {

using Labels = std::vector<int>;

bool has(const Labels& labels, int label) { return std::ranges::find(labels, label) != labels.end(); }

Labels joined(Labels x, const Labels& y, const Labels& z = {}) {
  x.insert(x.end(), y.begin(), y.end());
  x.insert(x.end(), z.begin(), z.end());
  return x;
}

// The labels of an input, once each, and the steps between elements along them; those of broadcast axes are left out.
struct Operand {
  Labels labels;
  std::map<int, int64_t> steps;

  Operand(const Shape& shape, const Labels& given, const std::map<int, int64_t>& sizes) {
    const std::vector<int64_t> dense = steps_of(shape);
    for (size_t axis = 0; axis < given.size(); ++axis) {
      if (shape[static_cast<int>(axis)] == 1 && sizes.at(given[axis]) != 1) continue;
      if (!has(labels, given[axis])) labels.push_back(given[axis]);
      steps[given[axis]] += dense[axis];
    }
  }
  int64_t step(int label) const {
    auto found = steps.find(label);
    return found == steps.end() ? 0 : found->second;
  }
};

// An operand as dense matrices [batch, rows, columns]: as it lies, if possible with rows and columns exchanged, or a
// copy.
struct Side {
  bool transposed = false;
  std::optional<CudaStridedCopy> copy;
  std::shared_ptr<void> memory;

  const void* prepared(KernelRun& run, const void* from) const {
    if (!copy) return from;
    copy->run(run, from, memory.get());
    return memory.get();
  }
};

// What a contraction of two operands is made of.
struct Product {
  std::optional<cuda::Gemm> gemm;  // none: sums of nothing
  Side a, b;
  std::optional<CudaStridedCopy> arrange;  // of the result, if it does not lie as the output does
  std::shared_ptr<void> result;
};

struct EinsumPlan {
  std::optional<Product> product;
  std::optional<CudaLoop> loop;
  std::optional<CudaBlocks> blocks;
};

class Planner {
 public:
  Planner(KernelRun& run, const Tensor& y) : run_(run), y_(y) {
    std::vector<int> ranks;
    for (size_t i = 0; i < run.input_count(); ++i) ranks.push_back(run.input(i).rank());
    const EinsumEquation equation = EinsumEquation::parse(run.node().string_attribute("equation", ""), ranks);
    output_ = equation.output;
    for (size_t i = 0; i < equation.inputs.size(); ++i) {
      for (size_t axis = 0; axis < equation.inputs[i].size(); ++axis) {
        int64_t& size = sizes_.try_emplace(equation.inputs[i][axis], 1).first->second;
        const int64_t own = run.input(i).dim(static_cast<int>(axis));
        if (own != 1) size = own;
      }
    }
    for (size_t i = 0; i < equation.inputs.size(); ++i) {
      operands_.emplace_back(run.input(i).shape(), equation.inputs[i], sizes_);
      is_plain_ &= static_cast<int64_t>(volume(operands_.back().labels)) == run.input(i).elements();
    }
    for (const auto& [label, _] : sizes_) {
      if (!has(output_, label)) summed_.push_back(label);
    }
  }

  EinsumPlan plan() {
    EinsumPlan plan;
    if (operands_.size() == 2 && is_plain_ && cuda::GemmShape::takes(y_.type())) plan.product = by_gemm();
    if (plan.product) return plan;
    // Few sums of many elements: a block has one.
    constexpr int64_t many = 512;
    if (operands_.size() <= 2 && volume(summed_) >= many && y_.elements() < int64_t{1} << 31)
      plan.blocks.emplace(by_blocks());
    else
      plan.loop.emplace(by_threads());
    return plan;
  }

 private:
  int64_t volume(const Labels& labels) const {
    int64_t result = 1;
    for (int label : labels) result *= sizes_.at(label);
    return result;
  }
  Shape shape_of(const Labels& labels) const {
    std::vector<int64_t> dims;
    for (int label : labels) dims.push_back(sizes_.at(label));
    return Shape(std::span<const int64_t>(dims));
  }

  // Labels in the order in which they are wanted, without those of one element, which lie anywhere.
  Labels without_ones(const Labels& labels) const {
    Labels result;
    for (int label : labels) {
      if (sizes_.at(label) != 1) result.push_back(label);
    }
    return result;
  }

  Side side(const Operand& x, const Labels& batch, const Labels& rows, const Labels& columns) const {
    Side side;
    const Labels own = without_ones(x.labels);
    if (own == without_ones(joined(batch, rows, columns))) return side;
    if (own == without_ones(joined(batch, columns, rows))) {
      side.transposed = true;
      return side;
    }
    const Labels wanted = joined(batch, rows, columns);
    std::vector<int64_t> from;
    for (int label : wanted) from.push_back(x.step(label));
    const Shape shape = shape_of(wanted);
    side.copy.emplace(run_, y_.type(), shape, from, steps_of(shape));
    side.memory = queue_of(run_).allocate(std::max<int64_t>(1, shape.elements() * bits_of(y_.type()) / 8));
    return side;
  }

  std::optional<Product> by_gemm() const {
    const Operand &a = operands_[0], &b = operands_[1];
    Labels batch, left, right, inner;
    for (int label : output_) {
      const bool in_a = has(a.labels, label), in_b = has(b.labels, label);
      if (!in_a && !in_b) continue;
      (in_a && in_b ? batch : in_a ? left : right).push_back(label);
    }
    for (int label : summed_) {
      if (!has(a.labels, label) || !has(b.labels, label)) return std::nullopt;
    }
    for (int label : a.labels) {
      if (has(summed_, label)) inner.push_back(label);
    }
    Product product;
    const int64_t m = volume(left), n = volume(right), k = volume(inner);
    if (k == 0) return product;
    product.a = side(a, batch, left, inner);
    product.b = side(b, batch, inner, right);
    cuda::GemmShape shape;
    shape.type = shape.output = y_.type();
    shape.m = m;
    shape.n = n;
    shape.k = k;
    shape.transpose_a = product.a.transposed;
    shape.transpose_b = product.b.transposed;
    shape.a_row = shape.transpose_a ? m : k;
    shape.b_row = shape.transpose_b ? k : n;
    shape.y_row = n;
    shape.batch = volume(batch);
    shape.a_step = m * k;
    shape.b_step = k * n;
    shape.y_step = m * n;
    product.gemm.emplace(queue_of(run_), shape);
    const Labels made = joined(batch, left, right);
    Labels wanted;
    for (int label : output_) {
      if (has(made, label)) wanted.push_back(label);
    }
    if (without_ones(made) == without_ones(wanted)) return product;
    std::map<int, int64_t> steps;
    const std::vector<int64_t> dense = steps_of(shape_of(made));
    for (size_t i = 0; i < made.size(); ++i) steps[made[i]] = dense[i];
    std::vector<int64_t> from;
    for (int label : wanted) from.push_back(steps.at(label));
    const Shape arranged = shape_of(wanted);
    product.arrange.emplace(run_, y_.type(), arranged, from, steps_of(arranged));
    product.result = queue_of(run_).allocate(y_.bytes());
    return product;
  }

  // Statements that declare the first element of each operand for output element `index`, and the text of a product.
  struct Texts {
    std::string pointers, start, product;
    std::vector<int64_t> numbers;
  };
  Texts texts(std::string_view index) const {
    Texts t;
    for (int axis = 0; axis < y_.rank(); ++axis) t.numbers.push_back(y_.dim(axis));
    t.start = coordinates_in(index_text(y_.elements()), y_.rank(), 0, index);
    for (size_t i = 0; i < operands_.size(); ++i) {
      t.pointers += fmt::format("const T* x{}, ", i);
      t.start += fmt::format("i64 at{} = 0", i);
      for (size_t axis = 0; axis < output_.size(); ++axis) {
        t.start += fmt::format(" + c{} * v[{}]", axis, t.numbers.size());
        t.numbers.push_back(operands_[i].step(output_[axis]));
      }
      t.start += ";\n    ";
      t.product += fmt::format("{}(C)widen(x{}[at{} + s{}])", i ? " * " : "", i, i, i);
    }
    t.pointers += "T* y";
    return t;
  }
  std::string functions() const {
    const bool is_integer_type = is_integer(y_.type());
    return fmt::format("typedef {} T; typedef {} C;\n", cuda::type_text(y_.type()),
                       is_integer_type ? "u64" : "Wide<T>");
  }

  // Declares s0, s1, …: how far the element with number `s` of those that are summed is from the first, in each
  // operand.
  std::string offsets(std::vector<int64_t>& numbers) const {
    std::string text;
    for (size_t i = 0; i < operands_.size(); ++i) text += fmt::format("i64 s{} = 0; ", i);
    text += "u64 rest_of_sum = s;\n      ";
    for (size_t k = summed_.size(); k-- > 0;) {
      const size_t size = numbers.size();
      numbers.push_back(sizes_.at(summed_[k]));
      text += fmt::format("{{ const i64 c = rest_of_sum % v[{0}]; rest_of_sum /= v[{0}];", size);
      for (size_t i = 0; i < operands_.size(); ++i) {
        text += fmt::format(" s{} += c * v[{}];", i, numbers.size());
        numbers.push_back(operands_[i].step(summed_[k]));
      }
      text += " }\n      ";
    }
    return text;
  }

  CudaLoop by_threads() const {
    Texts t = texts("i");
    const std::string offset = offsets(t.numbers);
    const size_t total = t.numbers.size();
    t.numbers.push_back(volume(summed_));
    const std::string body = fmt::format(
        "{}C sum = 0;\n    for (i64 s = 0; s < v[{}]; ++s) {{\n      {}sum += {};\n    }}\n    y[i] = narrow<T>(sum);",
        t.start, total, offset, t.product);
    return {run_, y_.elements(), t.pointers, body, t.numbers, functions()};
  }

  CudaBlocks by_blocks() const {
    Texts t = texts("blockIdx.x");
    const std::string offset = offsets(t.numbers);
    const size_t total = t.numbers.size();
    t.numbers.push_back(volume(summed_));
    const std::string body = fmt::format(
        R"({}__shared__ C sums[256];
  C sum = 0;
  for (i64 s = threadIdx.x; s < v[{}]; s += 256) {{
      {}sum += {};
  }}
  sums[threadIdx.x] = sum;
  for (int half = 128; half > 0; half /= 2) {{
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }}
  if (threadIdx.x == 0) y[blockIdx.x] = narrow<T>(sums[0]);)",
        t.start, total, offset, t.product);
    cuda::Grid grid;
    grid.threads = 256;
    grid.blocks[0] = static_cast<unsigned>(y_.elements());
    return {run_, t.pointers, functions(), body, t.numbers, grid};
  }

  KernelRun& run_;
  const Tensor& y_;
  Labels output_, summed_;
  std::map<int, int64_t> sizes_;
  std::vector<Operand> operands_;
  bool is_plain_ = true;  // no operand has a diagonal
};

void run_einsum(KernelRun& run) {
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  const auto& plan = run.per_plan<EinsumPlan>([&] { return Planner(run, y).plan(); });
  if (plan.product) {
    const Product& product = *plan.product;
    if (!product.gemm) return queue_of(run).fill(y.mutable_raw(), 0, y.bytes());
    void* to = product.arrange ? product.result.get() : y.mutable_raw();
    product.gemm->run(queue_of(run), product.a.prepared(run, run.input(0).raw()),
                      product.b.prepared(run, run.input(1).raw()), to);
    if (product.arrange) product.arrange->run(run, to, y.mutable_raw());
    return;
  }
  if (plan.blocks && run.input_count() == 1) return plan.blocks->run(run, {run.input(0).raw(), y.raw()});
  if (plan.blocks) return plan.blocks->run(run, {run.input(0).raw(), run.input(1).raw(), y.raw()});
  std::vector<const void*> addresses;
  for (size_t i = 0; i < run.input_count(); ++i) addresses.push_back(run.input(i).raw());
  addresses.push_back(y.raw());
  plan.loop->run(run, addresses);
}

}  // namespace

void cuda_einsum(CudaKernels& list) { list.add_simple("Einsum", run_einsum, {.types = types::numbers}); }

}  // namespace tenon::ops
