#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "kernels/math/math.h"
#include "ops/cpu_support/compute_type.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// How many columns of a state one thread works on at a time: no column depends on another.
constexpr int64_t most_columns = 64;

struct Sizes {
  int64_t batch, length, heads, group, k_size, v_size;
};

struct Arrays {
  const float *query, *key, *value;
  const float* decay;  // exp of the input, null without
  const float* beta;
  int64_t decay_size, beta_heads;  // per head and over all heads
  float *output, *state;           // output may be null
  float scale;
};

// Columns [first, first + columns) of the state of one head, through all steps.
void run_columns(const Sizes& n, const Arrays& a, int64_t b, int64_t head, int64_t first, int64_t columns) {
  float* state = a.state + ((b * n.heads + head) * n.k_size) * n.v_size + first;
  float added[most_columns];
  for (int64_t t = 0; t < n.length; ++t) {
    const int64_t step = b * n.length + t, at = step * n.heads + head;
    const float *key = a.key + at * n.k_size, *value = a.value + at * n.v_size + first;
    std::copy_n(value, columns, added);
    if (a.decay) {
      const float* factor = a.decay + at * a.decay_size;
      for (int64_t k = 0; k < n.k_size; ++k) {
        const float kept = factor[a.decay_size == 1 ? 0 : k];
        float* row = state + k * n.v_size;
        for (int64_t m = 0; m < columns; ++m) row[m] *= kept;
      }
    }
    if (a.beta) {
      for (int64_t k = 0; k < n.k_size; ++k) {
        const float* row = state + k * n.v_size;
        for (int64_t m = 0; m < columns; ++m) added[m] -= key[k] * row[m];
      }
      const float rate = a.beta[step * a.beta_heads + (a.beta_heads == 1 ? 0 : head)];
      for (int64_t m = 0; m < columns; ++m) added[m] *= rate;
    }
    for (int64_t k = 0; k < n.k_size; ++k) {
      float* row = state + k * n.v_size;
      for (int64_t m = 0; m < columns; ++m) row[m] += key[k] * added[m];
    }
    for (int64_t g = 0; a.output && g < n.group; ++g) {
      const int64_t q_at = step * n.heads * n.group + head * n.group + g;
      const float* query = a.query + q_at * n.k_size;
      float sum[most_columns] = {};
      for (int64_t k = 0; k < n.k_size; ++k) {
        const float* row = state + k * n.v_size;
        for (int64_t m = 0; m < columns; ++m) sum[m] += query[k] * row[m];
      }
      float* output = a.output + q_at * n.v_size + first;
      for (int64_t m = 0; m < columns; ++m) output[m] = a.scale * sum[m];
    }
  }
}

class LinearAttention final : public Kernel {
 public:
  explicit LinearAttention(const NodeInfo& info)
      : heads_(info.node().int_attribute("kv_num_heads", 1)),
        group_(info.node().int_attribute("q_num_heads", 1) / std::max<int64_t>(1, heads_)),
        scale_(info.node().float_attribute("scale", 0)) {}

  void run(KernelRun& run) const override {
    const Shape &key = run.input(1).shape(), &value = run.input(2).shape();
    const Sizes n{key[0], key[1], heads_, group_, key[2] / heads_, value[2] / heads_};
    const Shape state_shape{n.batch, n.heads, n.k_size, n.v_size};
    ComputeArguments<float> arguments(run);
    Arrays a{};
    a.query = arguments.in(0);
    a.key = arguments.in(1);
    a.value = arguments.in(2);
    a.beta = arguments.in(5);
    a.beta_heads = a.beta ? run.input(5).dim(2) : 0;
    a.output = arguments.out(0);
    a.state = arguments.out(1);
    a.scale = scale_ != 0 ? scale_ : static_cast<float>(1 / std::sqrt(static_cast<double>(n.k_size)));
    Tensor state, decay;
    if (!a.state) {
      state = Tensor(ElementType::float32, state_shape, run.allocator());
      a.state = state.mutable_data<float>().data();
    }
    if (const float* past = arguments.in(3)) {
      std::copy_n(past, state_shape.elements(), a.state);
    } else {
      std::fill_n(a.state, state_shape.elements(), 0.0f);
    }
    if (const float* logarithm = arguments.in(4)) {
      decay = Tensor(ElementType::float32, run.input(4).shape(), run.allocator());
      a.decay = decay.data<float>().data();
      a.decay_size = decay.dim(2) / n.heads;
      kernels::f32_exp(logarithm, decay.mutable_data<float>().data(), decay.elements());
    }
    const int64_t blocks = (n.v_size + most_columns - 1) / most_columns;
    // A batch without elements may have any size.
    const bool empty = n.v_size == 0 || (n.length == 0 && n.k_size == 0);
    const int64_t items = empty ? 0 : checked_mul(checked_mul(n.batch, n.heads), blocks);
    run.threads().parallel_for(items, 1, [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) {
        const int64_t first = item % blocks * most_columns, at = item / blocks;
        run_columns(n, a, at / n.heads, at % n.heads, first, std::min(most_columns, n.v_size - first));
      }
    });
    arguments.finish();
  }

 private:
  int64_t heads_, group_;
  float scale_;
};

}  // namespace

void cpu_linear_attention(CpuKernels& list) {
  list.add("LinearAttention", [](const NodeInfo& info) { return std::make_unique<LinearAttention>(info); });
}

}  // namespace tenon::ops
