#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "base/checked.h"
#include "base/rounding.h"
#include "kernels/attention/attention.h"
#include "kernels/gemm/pack.h"
#include "kernels/math/math.h"
#include "ops/attention/cpu_products.h"
#include "ops/cpu_support/compute_type.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

void cap(float* x, int64_t n, float limit) {
  for (int64_t i = 0; i < n; ++i) x[i] /= limit;
  kernels::f32_tanh(x, x, n);
  for (int64_t i = 0; i < n; ++i) x[i] *= limit;
}

void cap(double* x, int64_t n, float limit) {
  for (int64_t i = 0; i < n; ++i) x[i] = limit * std::tanh(x[i] / limit);
}

// The matrices of all heads: element (b, h, s, 0) is data[b * batch_stride + h * head_stride + s * row_stride].
template <typename T>
struct Heads {
  T* data = nullptr;
  int64_t batch_stride = 0, head_stride = 0, row_stride = 0;

  T* at(int64_t b, int64_t h) const { return data + b * batch_stride + h * head_stride; }
  static Heads of(T* data, bool flat, int64_t heads, int64_t length, int64_t size) {
    if (flat) return {data, length * heads * size, size, heads * size};
    return {data, heads * length * size, length * size, size};
  }
};

// attn_mask as an addend, broadcast to [batch, heads, queries, keys]; keys past its end are masked.
template <typename T>
class Mask {
 public:
  static constexpr T masked = -std::numeric_limits<T>::infinity();

  Mask(const Tensor& tensor, const Shape& wanted) {
    const int rank = tensor.rank();
    if (rank < 1 || rank > 4) fail(ErrorCode::shape_mismatch, "attn_mask has rank {}; it may have 1 to 4", rank);
    keys_ = tensor.dim(rank - 1);
    key_stride_ = keys_ == 1 && wanted[3] != 1 ? 0 : 1;
    if (keys_ > wanted[3]) fail(ErrorCode::shape_mismatch, "attn_mask has {} keys; there are {}", keys_, wanted[3]);
    if (key_stride_ == 0) keys_ = wanted[3];
    int64_t step = tensor.dim(rank - 1);
    for (int axis = rank - 2; axis >= 0; --axis) {
      const int target = 4 - rank + axis;
      if (tensor.dim(axis) != 1 && tensor.dim(axis) != wanted[target]) {
        fail(ErrorCode::shape_mismatch, "attn_mask of shape {} does not broadcast to {}", tensor.shape().to_string(),
             wanted.to_string());
      }
      stride_[target] = tensor.dim(axis) == 1 ? 0 : step;
      step *= tensor.dim(axis);
    }
    if (tensor.type() == element_type_of<T>)
      data_ = tensor.data<T>().data();
    else
      convert(tensor);
  }

  // Adds it to keys [first, last) of a row of scores, which starts with key `begin`. Says whether any is seen.
  bool add_to(T* row, int64_t begin, int64_t first, int64_t last, int64_t b, int64_t h, int64_t s) const {
    const T* from = data_ + b * stride_[0] + h * stride_[1] + s * stride_[2];
    const int64_t end = std::clamp(keys_, first, last);
    int seen = 0;
    if (key_stride_ == 1) {
      for (int64_t i = first; i < end; ++i) {
        seen |= from[i] != masked;
        row[i - begin] = sum(row[i - begin], from[i]);
      }
    } else if (*from == masked) {
      std::fill(row + (first - begin), row + (end - begin), masked);
    } else {
      for (int64_t i = first; i < end; ++i) row[i - begin] += *from;
      seen = first < end;
    }
    std::fill(row + (end - begin), row + (last - begin), masked);
    return seen != 0;
  }

  // Adds it to the scores of keys [first, last) and `queries` queries from `begin` on: that of key j and query i is
  // scores[(j - first) * step + i].
  void add_to_columns(T* scores, int64_t step, int64_t first, int64_t last, int64_t b, int64_t h, int64_t begin,
                      int64_t queries) const {
    const T* from = data_ + b * stride_[0] + h * stride_[1] + begin * stride_[2];
    const int64_t end = std::clamp(keys_, first, last);
    std::fill(scores + (end - first) * step, scores + (last - first) * step, masked);
    if (stride_[2] == 0 || key_stride_ == 0) {
      for (int64_t j = first; j < end; ++j) {
        T* row = scores + (j - first) * step;
        for (int64_t i = 0; i < queries; ++i) row[i] = sum(row[i], from[i * stride_[2] + j * key_stride_]);
      }
      return;
    }
    constexpr int64_t keys_at_once = 16;
    kernels::Scratch scratch(static_cast<size_t>(keys_at_once * queries) * sizeof(T));
    for (int64_t j = first; j < end; j += keys_at_once) {
      const int64_t count = std::min(keys_at_once, end - j);
      kernels::transpose_matrix(from + j, stride_[2], queries, count, scratch.as<T>(), queries);
      for (int64_t k = 0; k < count; ++k) {
        T* row = scores + (j + k - first) * step;
        const T* addends = scratch.as<T>() + k * queries;
        for (int64_t i = 0; i < queries; ++i) row[i] = sum(row[i], addends[i]);
      }
    }
  }

 private:
  // What is masked is hidden, whatever the score.
  static T sum(T score, T addend) { return addend == masked ? masked : score + addend; }

  void convert(const Tensor& tensor) {
    converted_.resize(static_cast<size_t>(tensor.elements()));
    dispatch<bool, float, double, float16, bfloat16, int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t,
             uint64_t>(tensor.type(), [&]<typename From>() {
      auto from = tensor.data<From>();
      for (size_t i = 0; i < from.size(); ++i) {
        if constexpr (std::is_same_v<From, bool>)
          converted_[i] = from[i] ? T(0) : masked;
        else if constexpr (std::is_arithmetic_v<From>)
          converted_[i] = static_cast<T>(from[i]);
        else
          converted_[i] = static_cast<T>(static_cast<float>(from[i]));
      }
    });
    data_ = converted_.data();
  }

  const T* data_ = nullptr;
  std::vector<T> converted_;
  int64_t stride_[3] = {0, 0, 0}, keys_ = 0, key_stride_ = 0;
};

struct Sizes {
  int64_t batch, q_heads, kv_heads, queries, fresh, past, keys, k_size, v_size;
};

// What a run works on.
template <typename T>
struct Job {
  Sizes n;
  Heads<const T> queries, keys, values;
  Heads<T> outputs;
  T scale;
  const Mask<T>* mask;
  const int64_t* lengths;
  T* scores_out;  // the fourth output; null when nobody wants it
};

// Keys [first, last).
struct KeyRange {
  int64_t first, last;
};

// From so many queries on, scores are computed in tiles.
constexpr int64_t fewest_tiled = 16;

class Attention final : public Kernel {
 public:
  explicit Attention(const NodeInfo& info)
      : causal_(info.node().int_attribute("is_causal", 0) != 0),
        left_(info.node().int_attribute("left_window_size", -1)),
        right_(info.node().int_attribute("right_window_size", -1)),
        mode_(info.node().int_attribute("qk_matmul_output_mode", 0)),
        softcap_(info.node().float_attribute("softcap", 0)),
        scale_(info.node().attribute("scale") ? std::optional(info.node().float_attribute("scale", 1)) : std::nullopt) {
    if (left_ < -1 || right_ < -1)
      fail(ErrorCode::invalid_attribute, "window sizes are {} and {}; they must be -1 or more", left_, right_);
    if (mode_ < 0 || mode_ > 3)
      fail(ErrorCode::invalid_attribute, "qk_matmul_output_mode is {}; it may be 0 to 3", mode_);
  }

  void run(KernelRun& run) const override {
    dispatch_compute(run.input(0).type(), [&]<typename T>() { compute<T>(run); });
  }

 private:
  template <typename T>
  void compute(KernelRun& run) const {
    const Shape &q = run.input(0).shape(), &k = run.input(1).shape(), &v = run.input(2).shape();
    const bool flat = q.rank() == 3;
    const int row = flat ? 1 : 2;
    Sizes n{};
    n.batch = q[0];
    n.q_heads = flat ? run.node().int_attribute("q_num_heads", 1) : q[1];
    n.kv_heads = flat ? run.node().int_attribute("kv_num_heads", 1) : k[1];
    n.queries = q[row];
    n.fresh = k[row];
    n.past = run.has_input(4) ? run.input(4).dim(2) : 0;
    n.keys = n.past + n.fresh;
    n.k_size = flat ? k[2] / n.kv_heads : k[3];
    n.v_size = flat ? v[2] / n.kv_heads : v[3];

    ComputeArguments<T> arguments(run);
    std::vector<Tensor> joined;
    Job<T> job{};
    job.n = n;
    job.queries = Heads<const T>::of(arguments.in(0), flat, n.q_heads, n.queries, n.k_size);
    job.outputs = Heads<T>::of(arguments.out(0), flat, n.q_heads, n.queries, n.v_size);
    job.keys = join(run, arguments, 1, 4, n, n.k_size, flat, joined);
    job.values = join(run, arguments, 2, 5, n, n.v_size, flat, joined);
    job.scores_out = arguments.out(3);
    job.scale = static_cast<T>(scale_ ? *scale_ : 1 / std::sqrt(static_cast<double>(n.k_size)));
    std::optional<Mask<T>> mask;
    if (run.has_input(3)) mask.emplace(run.input(3), Shape{n.batch, n.q_heads, n.queries, n.keys});
    job.mask = mask ? &*mask : nullptr;
    job.lengths = run.has_input(6) ? run.data<int64_t>(6).data() : nullptr;
    for (int64_t b = 0; job.lengths && b < n.batch; ++b) {
      if (job.lengths[b] < 0 || job.lengths[b] > n.keys)
        fail(ErrorCode::invalid_value, "nonpad_kv_seqlen[{}] is {}; there are {} keys", b, job.lengths[b], n.keys);
    }
    if constexpr (std::is_same_v<T, float>) {
      if (!job.scores_out && n.queries >= fewest_tiled) {
        attend_in_tiles(run.threads(), job);
        return arguments.finish();
      }
    }
    const int64_t rows = rows_at_once(n), blocks = divide_up(n.queries, rows);
    run.threads().parallel_for(n.batch * n.q_heads * blocks, 1, [&](int64_t begin, int64_t end) {
      // Scores that nobody wants, or a copy of those that the fourth output keeps as they were before the softmax.
      std::shared_ptr<void> memory;
      if (!job.scores_out || mode_ != 3)
        memory = run.scratch(checked_mul(checked_mul(rows, n.keys), static_cast<int64_t>(sizeof(T))));
      for (int64_t task = begin; task < end; ++task) {
        const int64_t first = task % blocks * rows;
        attend(run.threads(), job, task / blocks, first, std::min(first + rows, n.queries),
               static_cast<T*>(memory.get()));
      }
    });
    arguments.finish();
  }

  // How many queries share a matrix of scores: few enough that it stays in the cache, and that little is computed of
  // what a causal mask hides; many enough that reading the keys is not what it costs.
  int64_t rows_at_once(const Sizes& n) const {
    constexpr int64_t fewest = 64, most = 512, cached_scores = 64 << 10;
    const bool hides = causal_ || left_ >= 0 || right_ >= 0;
    const int64_t rows = hides ? fewest : std::clamp(cached_scores / std::max<int64_t>(n.keys, 1), fewest, most);
    return std::min(rows, std::max<int64_t>(n.queries, 1));
  }

  // The keys that query s of batch b may see, whatever the mask says.
  KeyRange seen_by(const Sizes& n, const int64_t* lengths, int64_t b, int64_t s) const {
    const int64_t offset = lengths ? lengths[b] - n.queries : n.past;
    int64_t first = 0, last = n.keys;
    if (causal_) last = std::min(last, offset + s + 1);
    if (right_ >= 0) last = std::min(last, offset + s + 1 + std::min(right_, n.keys));
    if (left_ >= 0) first = std::max<int64_t>(first, offset + s - std::min(left_, n.keys + std::abs(offset) + s));
    if (lengths) last = std::min(last, lengths[b]);
    first = std::clamp<int64_t>(first, 0, n.keys);
    return {first, std::clamp<int64_t>(last, first, n.keys)};
  }

  // How many queries kernels::attention gets: so many that packing the keys is little beside multiplying them, so few
  // that all threads have work and little is computed of what a causal mask hides; those of whole vectors.
  int64_t queries_at_once(const Sizes& n, int64_t threads) const {
    constexpr int64_t fewest = 48, most = 512, vector = 16;
    const bool hides = causal_ || left_ >= 0 || right_ >= 0;
    const int64_t heads = std::max<int64_t>(n.batch * n.q_heads, 1);
    const int64_t blocks =
        std::max(divide_up(n.queries, hides ? fewest : most), threads > 1 ? divide_up(2 * threads, heads) : int64_t{1});
    return std::clamp(round_up(divide_up(n.queries, blocks), vector), fewest, most);
  }

  void attend_in_tiles(ThreadPool& pool, const Job<float>& job) const {
    const Sizes& n = job.n;
    const int64_t rows = queries_at_once(n, pool.size()), blocks = divide_up(n.queries, rows);
    pool.parallel_for(n.batch * n.q_heads * blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t first = task % blocks * rows;
        attend_tile(job, task / blocks, first, std::min(first + rows, n.queries));
      }
    });
  }

  // Queries [begin, end) of one head.
  void attend_tile(const Job<float>& job, int64_t item, int64_t begin, int64_t end) const {
    const Sizes& n = job.n;
    const int64_t b = item / n.q_heads, h = item % n.q_heads, kv = h / (n.q_heads / n.kv_heads), rows = end - begin;
    std::vector<KeyRange> seen;
    for (int64_t s = begin; s < end; ++s) seen.push_back(seen_by(n, job.lengths, b, s));
    // A later query sees neither earlier nor fewer keys at the end.
    const KeyRange all{seen.front().first, std::max(seen.front().first, seen.back().last)};
    const KeyRange common{seen.back().first, seen.front().last};
    const auto change = [&](const kernels::AttentionScores& scores) {
      const int64_t first = all.first + scores.first_key, last = all.first + scores.last_key;
      const int64_t columns = scores.last_query - scores.first_query;
      const auto row = [&](int64_t key) { return scores.row(key - all.first); };
      for (int64_t j = first; softcap_ > 0 && j < last; ++j) cap(row(j), columns, softcap_);
      if (job.mask)
        job.mask->add_to_columns(scores.data, scores.step, first, last, b, h, begin + scores.first_query, columns);
      const auto hide = [&](int64_t from, int64_t to) {
        for (int64_t j = from; j < to; ++j) {
          for (int64_t i = 0; i < columns; ++i) {
            const KeyRange& range = seen[static_cast<size_t>(scores.first_query + i)];
            if (j < range.first || j >= range.last) row(j)[i] = Mask<float>::masked;
          }
        }
      };
      hide(first, std::min(common.first, last));
      hide(std::max({first, common.first, common.last}), last);
    };
    kernels::attention({rows,
                        all.last - all.first,
                        n.k_size,
                        n.v_size,
                        {job.queries.at(b, h) + begin * job.queries.row_stride, job.queries.row_stride},
                        {job.keys.at(b, kv) + all.first * job.keys.row_stride, job.keys.row_stride},
                        {job.values.at(b, kv) + all.first * job.values.row_stride, job.values.row_stride},
                        job.outputs.at(b, h) + begin * job.outputs.row_stride,
                        job.outputs.row_stride,
                        job.scale,
                        change});
  }

  // Queries [begin, end) of one head. `own` has room for their scores, where it is needed.
  template <typename T>
  void attend(ThreadPool& pool, const Job<T>& job, int64_t item, int64_t begin, int64_t end, T* own) const {
    const Sizes& n = job.n;
    const int64_t b = item / n.q_heads, h = item % n.q_heads, kv = h / (n.q_heads / n.kv_heads), rows = end - begin;
    T* out = job.outputs.at(b, h) + begin * job.outputs.row_stride;
    // Keys that none of the queries sees are left out, unless their scores are wanted.
    KeyRange range{0, n.keys};
    if (!job.scores_out) {
      // A later query sees neither earlier nor fewer keys at the end.
      range.first = seen_by(n, job.lengths, b, begin).first;
      range.last = std::max(range.first, seen_by(n, job.lengths, b, end - 1).last);
    }
    const int64_t keys = range.last - range.first;
    if (keys == 0) {
      for (int64_t s = 0; s < rows; ++s) std::fill_n(out + s * job.outputs.row_stride, n.v_size, T{});
      return;
    }
    T* scores = job.scores_out ? job.scores_out + (item * n.queries + begin) * n.keys : own;
    multiply(pool, rows, keys, n.k_size, job.queries.at(b, h) + begin * job.queries.row_stride, job.queries.row_stride,
             job.keys.at(b, kv) + range.first * job.keys.row_stride, job.keys.row_stride, true, scores, keys,
             job.scale);
    T* weights = scores;
    if (job.scores_out && mode_ != 3) {
      std::copy_n(scores, rows * keys, own);
      weights = own;
    }
    for (int64_t s = 0; s < rows; ++s) normalize(job, b, h, begin + s, range, scores + s * keys, weights + s * keys);
    multiply(pool, rows, n.v_size, keys, weights, keys, job.values.at(b, kv) + range.first * job.values.row_stride,
             job.values.row_stride, false, out, job.outputs.row_stride, T(1));
  }

  // K or V with the past before it. Without a past it is used where it lies, unless the node gives it out.
  template <typename T>
  static Heads<const T> join(KernelRun& run, ComputeArguments<T>& arguments, size_t input, size_t past_input,
                             const Sizes& n, int64_t size, bool flat, std::vector<Tensor>& joined) {
    auto fresh = Heads<const T>::of(arguments.in(input), flat, n.kv_heads, n.fresh, size);
    if (!run.has_input(past_input) && !run.wants_output(input)) return fresh;
    T* all = arguments.out(input);
    if (!all) {
      joined.emplace_back(element_type_of<T>, Shape{n.batch, n.kv_heads, n.keys, size}, run.allocator());
      all = joined.back().template mutable_data<T>().data();
    }
    const T* past = arguments.in(past_input);
    for (int64_t item = 0; item < n.batch * n.kv_heads; ++item) {
      T* to = all + item * n.keys * size;
      if (past) std::copy_n(past + item * n.past * size, n.past * size, to);
      const T* from = fresh.at(item / n.kv_heads, item % n.kv_heads);
      for (int64_t s = 0; s < n.fresh; ++s) std::copy_n(from + s * fresh.row_stride, size, to + (n.past + s) * size);
    }
    return Heads<const T>::of(all, false, n.kv_heads, n.keys, size);
  }

  // Scores of one query and the keys of a range to weights. `scores` gets what the fourth output wants, where it is not
  // `weights` itself.
  template <typename T>
  void normalize(const Job<T>& job, int64_t b, int64_t h, int64_t s, KeyRange range, T* scores, T* weights) const {
    const int64_t n = range.last - range.first;
    if (softcap_ > 0) cap(weights, n, softcap_);
    if (scores != weights && mode_ == 1) std::copy_n(weights, n, scores);
    const auto [first, last] = seen_by(job.n, job.lengths, b, s);
    bool any = first < last;
    if (job.mask) any = job.mask->add_to(weights, range.first, first, last, b, h, s);
    T *const seen = weights + (first - range.first), *const hidden = weights + (last - range.first);
    if (scores != weights && mode_ == 2) {
      std::fill_n(scores, n, Mask<T>::masked);
      std::copy(seen, hidden, scores + (first - range.first));
    }
    std::fill(weights, seen, T{});
    std::fill(hidden, weights + n, T{});
    if (any)
      softmax(seen, seen, last - first);
    else
      std::fill(seen, hidden, T{});
  }

  bool causal_;
  int64_t left_, right_, mode_;
  float softcap_;
  std::optional<float> scale_;
};

}  // namespace

void cpu_attention(CpuKernels& list) {
  list.add("Attention", [](const NodeInfo& info) { return std::make_unique<Attention>(info); });
}

}  // namespace tenon::ops
