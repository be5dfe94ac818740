#include <algorithm>
#include <cmath>
#include <optional>

#include "base/fail.h"
#include "ops/attention/cuda_fused.h"
#include "ops/attention/cuda_groups.h"
#include "ops/attention/cuda_long.h"
#include "ops/attention/cuda_products.h"
#include "ops/attention/cuda_text.h"
#include "ops/cuda_support/arguments.h"
#include "ops/cuda_support/rows.h"
#include "ops/cuda_support/strided_copy.h"

namespace tenon::ops {
namespace {

constexpr std::string_view pointers =
    "const Q* q, const Q* k, const V* values, const M* mask, const Q* past_k, const V* past_v, const i64* lengths, Q* "
    "y, "
    "A* partial";
constexpr int threads = 128;

// Steps of attn_mask along batch, heads, queries and keys, and how many keys it has.
std::vector<int64_t> mask_steps(const Tensor& mask, const AttentionSizes& n) {
  const int64_t wanted[] = {n.batch, n.q_heads, n.queries, n.keys};
  const int rank = mask.rank();
  if (rank < 1 || rank > 4) fail(ErrorCode::shape_mismatch, "attn_mask has rank {}; it may have 1 to 4", rank);
  std::vector<int64_t> steps(5, 0);
  const int64_t keys = mask.dim(rank - 1);
  if (keys > n.keys) fail(ErrorCode::shape_mismatch, "attn_mask has {} keys; there are {}", keys, n.keys);
  const bool stands_for_all = keys == 1 && n.keys != 1;
  steps[3] = stands_for_all ? 0 : 1;
  steps[4] = stands_for_all ? n.keys : keys;
  int64_t step = keys;
  for (int axis = rank - 2; axis >= 0; --axis) {
    const auto target = static_cast<size_t>(4 - rank + axis);
    if (mask.dim(axis) != 1 && mask.dim(axis) != wanted[target]) {
      fail(ErrorCode::shape_mismatch, "attn_mask of shape {} does not broadcast to {}", mask.shape().to_string(),
           Shape(std::span<const int64_t>(wanted)).to_string());
    }
    steps[target] = mask.dim(axis) == 1 ? 0 : step;
    step *= mask.dim(axis);
  }
  return steps;
}

// How many elements of a row are read at once: 16 bytes, where rows of `size` elements begin at such places.
int64_t vector_of(std::initializer_list<const Tensor*> tensors, int64_t size) {
  int64_t vector = 16;
  for (const Tensor* tensor : tensors) {
    if (!tensor) continue;
    const int64_t bytes = bits_of(tensor->type()) / 8;
    vector = std::min(vector, 16 / bytes);
    while (vector > 1 && (size % vector != 0 || reinterpret_cast<uintptr_t>(tensor->raw()) % (vector * bytes) != 0))
      vector /= 2;
  }
  return vector;
}

class Attention final : public Kernel {
 public:
  explicit Attention(const NodeInfo& info)
      : causal_(info.node().int_attribute("is_causal", 0) != 0),
        left_(info.node().int_attribute("left_window_size", -1)),
        right_(info.node().int_attribute("right_window_size", -1)),
        mode_(info.node().int_attribute("qk_matmul_output_mode", 0)),
        allow_tf32_(info.precision() == Precision::fast && info.element(0) == ElementType::float32),
        softcap_(info.node().float_attribute("softcap", 0)),
        scale_(info.node().attribute("scale") ? std::optional(info.node().float_attribute("scale", 1)) : std::nullopt) {
    if (left_ < -1 || right_ < -1)
      fail(ErrorCode::invalid_attribute, "window sizes are {} and {}; they must be -1 or more", left_, right_);
    if (mode_ < 0 || mode_ > 3)
      fail(ErrorCode::invalid_attribute, "qk_matmul_output_mode is {}; it may be 0 to 3", mode_);
  }

  std::string_view rounds_to() const override { return allow_tf32_ ? "tf32" : ""; }

  void run(KernelRun& run) const override {
    const auto& plan = run.per_plan<Plan>([&] { return prepare(run); });
    const AttentionSizes& n = plan.sizes;
    const void *q = n.address(run, 0), *mask = input_address(run, n.mask()), *past_k = input_address(run, 4),
               *past_v = input_address(run, 5), *lengths = input_address(run, 6), *y = output_address(run, 0);
    const void* sources[2] = {n.address(run, 1), n.address(run, 2)};
    const void* joined[2] = {sources[0], sources[1]};
    for (size_t i : {0, 1}) {
      const Join& join = plan.joins[i];
      if (!join.fresh) continue;
      void* to = join.memory ? join.memory.get() : run.output(i + 1).mutable_raw();
      if (join.past) join.past->run(run, run.input(i + 4).raw(), to);
      join.fresh->run(run, sources[i], static_cast<std::byte*>(to) + join.first);
      joined[i] = to;
    }
    if (plan.products && y) plan.products->run(run, joined[0], joined[1], run.output(0));
    if (plan.attend && y)
      plan.attend->run(run, {q, sources[0], sources[1], mask, past_k, past_v, lengths, y, plan.partial.get()});
    if (plan.attend_long && y)
      plan.attend_long->run(run, {q, sources[0], sources[1], mask, past_k, past_v, lengths, y, nullptr});
    if (plan.put_together && y) plan.put_together->run(run, {plan.partial.get(), y});
    if (plan.scores) plan.scores->run(run, {q, sources[0], mask, past_k, lengths, run.output(3).raw()});
  }

 private:
  // Keys or values [batch, heads, sequence, size] of past and fresh ones, in an output or in memory of their own.
  struct Join {
    std::optional<CudaStridedCopy> past, fresh;  // without: nobody needs it
    int64_t first = 0;                           // where the fresh ones go, in bytes
    std::shared_ptr<void> memory;
  };
  struct Plan {
    AttentionSizes sizes;
    Join joins[2] = {};
    std::optional<AttentionProducts> products = {};
    std::optional<LongAttention> attend_long = {};
    std::optional<CudaBlocks> attend = {}, put_together = {}, scores = {};
    std::shared_ptr<void> partial = {};
  };

  Plan prepare(KernelRun& run) const {
    const AttentionSizes n(run);
    std::vector<int64_t> numbers{n.q_heads, n.kv_heads, n.queries, n.past, n.keys, n.k_size, n.v_size};
    auto append = [&](const std::vector<int64_t>& more) { numbers.insert(numbers.end(), more.begin(), more.end()); };
    for (const auto& steps : {n.q_steps(), n.k_steps(), n.v_steps(), n.y_steps()}) append(steps);
    append(run.has_input(n.mask()) ? mask_steps(run.input(n.mask()), n) : std::vector<int64_t>(5, 0));
    numbers.push_back(1);  // parts
    Plan plan{n};
    const double scale = scale_ ? *scale_ : 1 / std::sqrt(static_cast<double>(n.k_size));
    const std::string functions = functions_of(run, n, scale);
    const bool in_groups = n.all_queries() > 0 && takes_group_attention(run, n, allow_tf32_);
    const bool is_fused = !in_groups && n.all_queries() > 0 && takes_fused_attention(run, n, allow_tf32_);
    const bool by_products = !in_groups && !is_fused && n.all_queries() > 0 && AttentionProducts::takes(n, run);
    if (in_groups && !has_one_tile(n))
      plan.attend_long.emplace(run, n, pointers, functions, numbers);
    else if (in_groups)
      plan.attend.emplace(group_attention(run, n, pointers, functions, numbers));
    else if (is_fused)
      plan.attend.emplace(fused_attention(run, n, pointers, functions, numbers));
    else if (by_products)
      plan.products.emplace(run, n, scale, functions, numbers, allow_tf32_);
    else if (n.all_queries() > 0 && n.v_size > 0) {
      if (n.queries >= 16 && std::max(n.k_size, n.v_size) <= 256 && run.input(0).type() != ElementType::float64)
        plan.attend.emplace(tiled(run, n, functions, numbers));
      else
        stream(run, n, functions, numbers, plan);
    }
    if (run.wants_output(3) && n.all_queries() * n.keys > 0) plan.scores.emplace(scores(run, n, functions, numbers));
    for (size_t i : {0, 1}) {
      if (run.wants_output(i + 1) || (by_products && (n.flat || n.past > 0))) plan.joins[i] = join(run, n, i);
    }
    return plan;
  }

  static Join join(KernelRun& run, const AttentionSizes& n, size_t i) {
    const ElementType type = n.tensor(run, i + 1).type();
    const int64_t size = i == 0 ? n.k_size : n.v_size, bytes = bits_of(type) / 8;
    const Shape fresh{n.batch, n.kv_heads, n.fresh, size}, past{n.batch, n.kv_heads, n.past, size};
    std::vector<int64_t> from = i == 0 ? n.k_steps() : n.v_steps();
    from.push_back(1);
    const std::vector<int64_t> to = steps_of(Shape{n.batch, n.kv_heads, n.keys, size});
    Join join;
    join.fresh.emplace(run, type, fresh, from, to);
    join.first = n.past * size * bytes;
    if (n.past > 0) join.past.emplace(run, type, past, steps_of(past), to);
    if (!run.wants_output(i + 1))
      join.memory = queue_of(run).gpu().allocate(n.batch * n.kv_heads * n.keys * size * bytes);
    return join;
  }

  std::string functions_of(const KernelRun& run, const AttentionSizes& n, double scale) const {
    const ElementType type = run.input(0).type();
    const bool has_mask = run.has_input(n.mask());
    auto number = [](double value) { return cuda::number_text(value, ElementType::float64); };
    std::string text = fmt::format("typedef {} Q;\ntypedef {} V;\ntypedef {} M;\ntypedef {} A;\n",
                                   cuda::type_text(type), cuda::type_text(n.tensor(run, 2).type()),
                                   input_type_text(run, n.mask()), cuda::wide_type_text(type));
    text += fmt::format("#define CAUSAL {}\n#define LEFT {}\n#define RIGHT {}\n", causal_ ? 1 : 0, left_, right_);
    text +=
        fmt::format("#define HAS_MASK {}\n#define BOOL_MASK {}\n#define HAS_LENGTHS {}\n", has_mask ? 1 : 0,
                    has_mask && run.input(n.mask()).type() == ElementType::boolean ? 1 : 0, run.has_input(6) ? 1 : 0);
    text += fmt::format("#define SCALE {}\n#define SOFTCAP {}\n", number(scale), number(softcap_));
    return text + std::string(attention_text::common);
  }

  CudaBlocks tiled(KernelRun& run, const AttentionSizes& n, const std::string& functions,
                   const std::vector<int64_t>& numbers) const {
    const bool is_large = std::max(n.k_size, n.v_size) > 128;
    const int tile = is_large ? 16 : 32;
    const std::string constants =
        fmt::format("#define TILE {}\n#define KEYS_EACH {}\n#define K_ROOM {}\n#define V_ROOM {}\n", tile, tile,
                    std::max<int64_t>(8, (n.k_size + 7) / 8 * 8), (n.v_size + 31) / 32 * 32);
    cuda::Grid grid;
    grid.blocks[0] = static_cast<unsigned>(n.batch * n.q_heads * ((n.queries + tile - 1) / tile));
    grid.threads = 256;
    return {run, pointers, constants + functions, attention_text::tiled, numbers, grid};
  }

  void stream(KernelRun& run, const AttentionSizes& n, const std::string& functions, std::vector<int64_t> numbers,
              Plan& plan) const {
    const int64_t size = std::max(n.k_size, n.v_size), queries = n.all_queries();
    const int64_t most = run.input(0).type() == ElementType::float64 ? 1024 : 2048;
    if (size > most) fail(ErrorCode::unsupported, "heads of {} elements are more than the CUDA kernel takes", size);
    const int64_t lanes = size <= 128 ? 8 : size <= 256 ? 16 : 32;
    const int64_t k_vector = vector_of({&n.tensor(run, 1), run.has_input(4) ? &run.input(4) : nullptr}, n.k_size),
                  v_vector = vector_of({&n.tensor(run, 2), run.has_input(5) ? &run.input(5) : nullptr}, n.v_size);
    // Few queries of many keys are divided, so that there is work for the whole GPU.
    constexpr int64_t enough_blocks = 512, least_keys = 128;
    const int64_t parts = std::clamp<int64_t>(std::min(n.keys / least_keys, enough_blocks / queries), 1, 64);
    numbers.back() = parts;
    auto each = [&](int64_t elements, int64_t vector) {
      return std::max<int64_t>(1, (elements + lanes * vector - 1) / (lanes * vector));
    };
    const std::string constants =
        fmt::format("#define THREADS_EACH {}\n#define LANES {}\n#define DIVIDED {}\n", threads, lanes,
                    parts > 1 ? 1 : 0) +
        fmt::format("#define K_VECTOR {}\n#define V_VECTOR {}\n#define K_EACH {}\n#define V_EACH {}\n", k_vector,
                    v_vector, each(n.k_size, k_vector), each(n.v_size, v_vector));
    cuda::Grid grid;
    grid.blocks[0] = static_cast<unsigned>(queries);
    grid.blocks[1] = static_cast<unsigned>(parts);
    grid.threads = threads;
    plan.attend.emplace(run, pointers, constants + functions, attention_text::streamed, numbers, grid);
    if (parts == 1) return;
    plan.partial = queue_of(run).gpu().allocate(queries * parts * (n.v_size + 2) * 8);
    grid.blocks[1] = 1;
    plan.put_together.emplace(run, "const A* partial, Q* y", constants + functions, attention_text::joined, numbers,
                              grid);
  }

  // The fourth output. A query that sees no key has no weights.
  CudaBlocks scores(KernelRun& run, const AttentionSizes& n, const std::string& functions,
                    const std::vector<int64_t>& numbers) const {
    CudaRows rows(ReducePlan(Shape{n.batch * n.q_heads * n.queries, n.keys}, std::vector<int64_t>{1}));
    std::vector<int64_t> all = numbers;
    all.insert(all.end(), rows.numbers().begin(), rows.numbers().end());
    rows.set_elements(
        "A", fmt::format("score_of(numbers.v, {}, q, k, past_k, mask, lengths, row, i)", std::min<int64_t>(mode_, 2)));
    std::string text = rows.begin();
    if (mode_ < 3) {
      text += rows.each("y[e] = narrow<Q>(value);");
    } else {
      text += "A largest = -INFINITE, sum = 0;\n  " + rows.each("largest = most(largest, value);") +
              "largest = " + rows.fold("Largest", "largest") + ";\n  " +
              rows.each("if (largest != -INFINITE) sum += exp(value - largest);") + "sum = " + rows.fold("Sum", "sum") +
              ";\n  " + rows.each("y[e] = narrow<Q>(largest == -INFINITE ? (A)0 : exp(value - largest) / sum);");
    }
    // The rows' own numbers come after those of attention.
    text = fmt::format("v += {};\n  ", numbers.size()) + text;
    return {run,
            "const Q* q, const Q* k, const M* mask, const Q* past_k, const i64* lengths, Q* y",
            CudaRows::functions() + functions + std::string(attention_text::score),
            text,
            all,
            rows.grid()};
  }

  bool causal_;
  int64_t left_, right_, mode_;
  bool allow_tf32_;
  float softcap_;
  std::optional<float> scale_;
};

}  // namespace

void cuda_attention(CudaKernels& list) {
  list.add("Attention", [](const NodeInfo& info) { return std::make_unique<Attention>(info); },
           {.types = types::numbers | types::bools});
  list.add("PackedAttention", [](const NodeInfo& info) { return std::make_unique<Attention>(info); },
           {.types = types::numbers | types::bools, .domain = tenon_domain});
}

}  // namespace tenon::ops
