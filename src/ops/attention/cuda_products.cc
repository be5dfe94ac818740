#include "ops/attention/cuda_products.h"

#include <fmt/format.h>
#include <algorithm>

#include "ops/cuda_support/arguments.h"
#include "ops/cuda_support/rows.h"

namespace tenon::ops {
namespace {

// Memory for scores and weights; heads that do not fit together are worked on one after the other.
constexpr int64_t most_bytes = int64_t{1} << 30;

// Rows of scores begin where a product of matrices likes it best.
int64_t row_step(int64_t keys) { return (keys + 63) / 64 * 64; }

int64_t bytes_of_scores(const AttentionSizes& n, ElementType type) {
  const int64_t wide = type == ElementType::float64 ? 8 : 4;
  return n.q_heads / n.kv_heads * n.queries * row_step(n.keys) * (wide + bits_of(type) / 8);
}

// A score of row `row` and key j, as the softmax takes it. FIRST is the row's head of keys among all.
constexpr std::string_view seen_score = R"cuda(
#define FIRST v[25]
inline A seen_score(const i64* v, const A* scores, const M* mask, const i64* lengths, i64 row, i64 j, i64 e) {
  if (j >= KEYS) return -INFINITE;
  const i64 all = FIRST * (HEADS / KV_HEADS) * QUERIES + row;
  const i64 s = all % QUERIES, h = all / QUERIES % HEADS, b = all / QUERIES / HEADS;
  const Range seen = seen_by(v, lengths, b, s);
  return j < seen.first || j >= seen.last ? (A)-INFINITE : masked(v, mask, capped(scores[e]), b, h, s, j);
}
)cuda";

CudaBlocks softmax(KernelRun& run, int64_t rows_count, int64_t first, int64_t row, const std::string& functions,
                   std::vector<int64_t> numbers) {
  CudaRows rows(ReducePlan(Shape{rows_count, row}, std::vector<int64_t>{1}));
  numbers.push_back(first);
  // The rows' own numbers come after those of attention.
  std::string text = fmt::format("v += {};\n  ", numbers.size());
  numbers.insert(numbers.end(), rows.numbers().begin(), rows.numbers().end());
  rows.set_elements("A", "seen_score(numbers.v, scores, mask, lengths, row, i, e)");
  text += rows.begin() + "A largest = -INFINITE, sum = 0;\n  " + rows.each("largest = most(largest, value);") +
          "largest = " + rows.fold("Largest", "largest") + ";\n  " +
          rows.each("if (largest != -INFINITE) sum += exp(value - largest);") + "sum = " + rows.fold("Sum", "sum") +
          ";\n  const A factor = (A)1 / sum;\n  " +
          rows.each("weights[e] = narrow<Q>(largest == -INFINITE ? (A)0 : exp(value - largest) * factor);");
  return {run,
          "const A* scores, const M* mask, const i64* lengths, Q* weights",
          CudaRows::functions() + functions + std::string(seen_score),
          text,
          numbers,
          rows.grid()};
}

const void* at(const void* memory, int64_t bytes) { return static_cast<const std::byte*>(memory) + bytes; }

}  // namespace

AttentionSizes::AttentionSizes(const KernelRun& run) : packed(run.node().op_type == "PackedAttention") {
  const Shape& q = run.input(0).shape();
  flat = q.rank() == 3;
  if (packed) {
    batch = q[0];
    q_heads = kv_heads = run.node().int_attribute("num_heads", 1);
    queries = fresh = keys = q[1];
    past = 0;
    k_size = v_size = q[2] / (3 * q_heads);
    return;
  }
  const Shape &k = run.input(1).shape(), &v = run.input(2).shape();
  const int row = flat ? 1 : 2;
  batch = q[0];
  q_heads = flat ? run.node().int_attribute("q_num_heads", 1) : q[1];
  kv_heads = flat ? run.node().int_attribute("kv_num_heads", 1) : k[1];
  queries = q[row];
  fresh = k[row];
  past = run.has_input(4) ? run.input(4).dim(2) : 0;
  keys = past + fresh;
  k_size = flat ? k[2] / kv_heads : k[3];
  v_size = flat ? v[2] / kv_heads : v[3];
}

std::vector<int64_t> AttentionSizes::steps(int64_t heads, int64_t length, int64_t size, int64_t parts) const {
  if (flat) return {parts * length * heads * size, size, parts * heads * size};
  return {heads * length * size, length * size, size};
}

const void* AttentionSizes::address(const KernelRun& run, size_t i) const {
  const Tensor& own = tensor(run, i);
  const int64_t first = packed ? static_cast<int64_t>(i) * q_heads * k_size : 0;
  return at(own.raw(), first * bits_of(own.type()) / 8);
}

bool AttentionProducts::takes(const AttentionSizes& n, const KernelRun& run) {
  constexpr int64_t least = 64;  // below that, tiles are as fast and need no memory
  const ElementType type = run.input(0).type();
  return std::min(n.queries, n.keys) >= least && std::min(n.k_size, n.v_size) >= 8 && cuda::GemmShape::takes(type) &&
         n.tensor(run, 2).type() == type && bytes_of_scores(n, type) <= most_bytes;
}

AttentionProducts::AttentionProducts(KernelRun& run, const AttentionSizes& n, double scale,
                                     const std::string& functions, const std::vector<int64_t>& numbers, bool allow_tf32)
    : sizes_(n) {
  const ElementType type = run.input(0).type(),
                    wide = type == ElementType::float64 ? ElementType::float64 : ElementType::float32;
  cuda::Gpu& gpu = queue_of(run).gpu();
  bytes_each_ = bits_of(type) / 8;
  queries_each_ = n.q_heads / n.kv_heads * n.queries;
  const int64_t heads = n.batch * n.kv_heads, row = row_step(n.keys);
  const int64_t at_once = std::clamp<int64_t>(most_bytes / bytes_of_scores(n, type), 1, heads);
  scores_ = gpu.allocate(at_once * queries_each_ * row * bits_of(wide) / 8);
  weights_ = type == wide ? scores_ : gpu.allocate(at_once * queries_each_ * row * bytes_each_);
  if (n.flat) {
    auto in_heads = [&](int64_t size) { return steps_of(Shape{n.batch, n.q_heads, n.queries, size}); };
    auto in_rows = [](std::vector<int64_t> steps) {
      steps.push_back(1);
      return steps;
    };
    queries_ = gpu.allocate(n.all_queries() * n.k_size * bytes_each_);
    outputs_ = gpu.allocate(n.all_queries() * n.v_size * bytes_each_);
    query_copy_.emplace(run, type, Shape{n.batch, n.q_heads, n.queries, n.k_size}, in_rows(n.q_steps()),
                        in_heads(n.k_size));
    output_copy_.emplace(run, type, Shape{n.batch, n.q_heads, n.queries, n.v_size}, in_heads(n.v_size),
                         in_rows(n.y_steps()));
  }
  for (int64_t first = 0; first < heads; first += at_once) {
    cuda::GemmShape scores, sums;
    scores.type = sums.type = sums.output = type;
    scores.output = wide;
    scores.batch = sums.batch = std::min(at_once, heads - first);
    scores.m = sums.m = queries_each_;
    scores.allow_tf32 = sums.allow_tf32 = allow_tf32;
    scores.n = sums.k = n.keys;
    scores.y_row = sums.a_row = row;
    scores.y_step = sums.a_step = queries_each_ * row;
    scores.k = scores.a_row = scores.b_row = n.k_size;
    scores.transpose_b = true;
    scores.a_step = queries_each_ * n.k_size;
    scores.b_step = n.keys * n.k_size;
    scores.alpha = scale;
    sums.n = sums.b_row = sums.y_row = n.v_size;
    sums.b_step = n.keys * n.v_size;
    sums.y_step = queries_each_ * n.v_size;
    parts_.push_back({first, cuda::Gemm(queue_of(run), scores), cuda::Gemm(queue_of(run), sums),
                      softmax(run, scores.batch * queries_each_, first, row, functions, numbers)});
  }
}

void AttentionProducts::run(KernelRun& run, const void* keys, const void* values, Tensor& y) const {
  const void* queries = sizes_.address(run, 0);
  void* outputs = y.mutable_raw();
  if (query_copy_) {
    query_copy_->run(run, queries, queries_.get());
    queries = queries_.get();
    outputs = outputs_.get();
  }
  for (const Part& part : parts_) {
    const int64_t first_query = part.first * queries_each_;
    part.scores.run(queue_of(run), at(queries, first_query * sizes_.k_size * bytes_each_),
                    at(keys, part.first * sizes_.keys * sizes_.k_size * bytes_each_), scores_.get());
    part.softmax.run(run, {scores_.get(), input_address(run, sizes_.mask()), input_address(run, 6), weights_.get()});
    part.sums.run(queue_of(run), weights_.get(), at(values, part.first * sizes_.keys * sizes_.v_size * bytes_each_),
                  static_cast<std::byte*>(outputs) + first_query * sizes_.v_size * bytes_each_);
  }
  if (output_copy_) output_copy_->run(run, outputs, y.mutable_raw());
}

}  // namespace tenon::ops
