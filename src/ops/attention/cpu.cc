#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "base/checked.h"
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
struct Mask {
  std::vector<T> values;
  int64_t stride[3] = {0, 0, 0}, keys = 0, key_stride = 0;

  Mask() = default;
  Mask(const Tensor& tensor, const Shape& wanted) : values(static_cast<size_t>(tensor.elements())) {
    const int rank = tensor.rank();
    if (rank < 1 || rank > 4) fail(ErrorCode::shape_mismatch, "attn_mask has rank {}; it may have 1 to 4", rank);
    keys = tensor.dim(rank - 1);
    key_stride = keys == 1 && wanted[3] != 1 ? 0 : 1;
    if (keys > wanted[3]) fail(ErrorCode::shape_mismatch, "attn_mask has {} keys; there are {}", keys, wanted[3]);
    if (key_stride == 0) keys = wanted[3];
    int64_t step = tensor.dim(rank - 1);
    for (int axis = rank - 2; axis >= 0; --axis) {
      const int target = 4 - rank + axis;
      if (tensor.dim(axis) != 1 && tensor.dim(axis) != wanted[target]) {
        fail(ErrorCode::shape_mismatch, "attn_mask of shape {} does not broadcast to {}", tensor.shape().to_string(),
             wanted.to_string());
      }
      stride[target] = tensor.dim(axis) == 1 ? 0 : step;
      step *= tensor.dim(axis);
    }
    dispatch<bool, float, double, float16, bfloat16, int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t,
             uint64_t>(tensor.type(), [&]<typename From>() {
      auto from = tensor.data<From>();
      for (size_t i = 0; i < from.size(); ++i) {
        if constexpr (std::is_same_v<From, bool>)
          values[i] = from[i] ? T(0) : -std::numeric_limits<T>::infinity();
        else if constexpr (std::is_arithmetic_v<From>)
          values[i] = static_cast<T>(from[i]);
        else
          values[i] = static_cast<T>(static_cast<float>(from[i]));
      }
    });
  }

  void copy_row(int64_t b, int64_t h, int64_t s, T* to, int64_t n) const {
    const T* from = values.data() + b * stride[0] + h * stride[1] + s * stride[2];
    for (int64_t i = 0; i < keys; ++i) to[i] = from[i * key_stride];
    std::fill(to + keys, to + n, -std::numeric_limits<T>::infinity());
  }
};

struct Sizes {
  int64_t batch, q_heads, kv_heads, queries, fresh, past, keys, k_size, v_size;
};

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
    auto queries = Heads<const T>::of(arguments.in(0), flat, n.q_heads, n.queries, n.k_size);
    auto outputs = Heads<T>::of(arguments.out(0), flat, n.q_heads, n.queries, n.v_size);
    std::vector<Tensor> joined;
    auto keys = join(run, arguments, 1, 4, n, n.k_size, flat, joined);
    auto values = join(run, arguments, 2, 5, n, n.v_size, flat, joined);
    T* scores_out = arguments.out(3);
    Mask<T> mask;
    if (run.has_input(3)) mask = Mask<T>(run.input(3), Shape{n.batch, n.q_heads, n.queries, n.keys});
    const int64_t* lengths = run.has_input(6) ? run.data<int64_t>(6).data() : nullptr;
    for (int64_t b = 0; lengths && b < n.batch; ++b) {
      if (lengths[b] < 0 || lengths[b] > n.keys)
        fail(ErrorCode::invalid_value, "nonpad_kv_seqlen[{}] is {}; there are {} keys", b, lengths[b], n.keys);
    }
    const T scale = static_cast<T>(scale_ ? *scale_ : 1 / std::sqrt(static_cast<double>(n.k_size)));
    if (n.queries > 0) {
      run.threads().parallel_for(n.batch * n.q_heads, 1, [&](int64_t begin, int64_t end) {
        // Scores that nobody wants, or a copy of those that the fourth output keeps as they were before the softmax.
        const bool keeps_scores = scores_out && mode_ != 3;
        std::shared_ptr<void> memory;
        if (!scores_out || keeps_scores) {
          memory = run.scratch(checked_mul(checked_mul(n.queries, n.keys), static_cast<int64_t>(sizeof(T))));
        }
        T* const own = static_cast<T*>(memory.get());
        std::vector<T> bias(static_cast<size_t>(n.keys));
        for (int64_t item = begin; item < end; ++item) {
          const int64_t b = item / n.q_heads, h = item % n.q_heads, kv = h / (n.q_heads / n.kv_heads);
          T* scores = scores_out ? scores_out + item * n.queries * n.keys : own;
          if (n.keys == 0) {
            for (int64_t s = 0; s < n.queries; ++s)
              std::fill_n(outputs.at(b, h) + s * outputs.row_stride, n.v_size, T{});
            continue;
          }
          multiply(run.threads(), n.queries, n.keys, n.k_size, queries.at(b, h), queries.row_stride, keys.at(b, kv),
                   keys.row_stride, true, scores, n.keys, scale);
          T* weights = scores;
          if (keeps_scores) {
            std::copy_n(scores, n.queries * n.keys, own);
            weights = own;
          }
          normalize(n, b, h, run.has_input(3) ? &mask : nullptr, lengths, bias, scores, weights);
          multiply(run.threads(), n.queries, n.v_size, n.keys, weights, n.keys, values.at(b, kv), values.row_stride,
                   false, outputs.at(b, h), outputs.row_stride, T(1));
        }
      });
    }
    arguments.finish();
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

  // Scores to weights, row by row. `scores` keeps what the fourth output wants when it is not `weights` itself.
  template <typename T>
  void normalize(const Sizes& n, int64_t b, int64_t h, const Mask<T>* mask, const int64_t* lengths,
                 std::vector<T>& bias, T* scores, T* weights) const {
    const int64_t offset = lengths ? lengths[b] - n.queries : n.past;
    const T masked = -std::numeric_limits<T>::infinity();
    for (int64_t s = 0; s < n.queries; ++s) {
      T* row = weights + s * n.keys;
      if (softcap_ > 0) cap(row, n.keys, softcap_);
      if (scores != weights && mode_ == 1) std::copy_n(row, n.keys, scores + s * n.keys);
      // Keys outside [first, last) are masked.
      int64_t first = 0, last = n.keys;
      if (causal_) last = std::min(last, offset + s + 1);
      if (right_ >= 0) last = std::min(last, offset + s + 1 + std::min(right_, n.keys));
      if (left_ >= 0) first = std::max<int64_t>(first, offset + s - std::min(left_, n.keys + std::abs(offset) + s));
      if (lengths) last = std::min(last, lengths[b]);
      first = std::clamp<int64_t>(first, 0, n.keys);
      last = std::clamp<int64_t>(last, first, n.keys);
      bool any = first < last;
      if (mask) {
        mask->copy_row(b, h, s, bias.data(), n.keys);
        any = std::any_of(bias.begin() + first, bias.begin() + last, [&](T value) { return value != masked; });
        for (int64_t i = first; i < last; ++i)
          row[i] = bias[static_cast<size_t>(i)] == masked ? masked : row[i] + bias[static_cast<size_t>(i)];
      }
      std::fill(row, row + first, masked);
      std::fill(row + last, row + n.keys, masked);
      if (scores != weights && mode_ == 2) std::copy_n(row, n.keys, scores + s * n.keys);
      if (any)
        softmax(row, row, n.keys);
      else
        std::fill_n(row, n.keys, T{});
    }
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
