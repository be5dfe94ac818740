#include <algorithm>

#include "ops/cpu_support/compute_type.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

class RotaryEmbedding final : public Kernel {
 public:
  explicit RotaryEmbedding(const NodeInfo& info)
      : interleaved_(info.node().int_attribute("interleaved", 0) != 0),
        heads_(info.node().int_attribute("num_heads", 0)),
        rotated_(info.node().int_attribute("rotary_embedding_dim", 0)) {}

  void run(KernelRun& run) const override {
    const Shape& shape = run.input(0).shape();
    if (run.output(0).elements() == 0) return;
    const bool flat = shape.rank() == 3;
    const int64_t heads = flat ? heads_ : shape[1], sequence = shape[flat ? 1 : 2],
                  size = flat ? shape[2] / heads_ : shape[3];
    const int64_t half = (rotated_ == 0 ? size : rotated_) / 2;
    const int64_t* positions = run.has_input(3) ? run.data<int64_t>(3).data() : nullptr;
    const int64_t limit = run.input(1).dim(0);
    for (int64_t i = 0; positions && i < shape[0] * sequence; ++i) {
      if (positions[i] < 0 || positions[i] >= limit) {
        fail(ErrorCode::invalid_value, "position_ids has {}; the caches have {} positions", positions[i], limit);
      }
    }
    ComputeArguments<float> arguments(run);
    const float *x = arguments.in(0), *cosines = arguments.in(1), *sines = arguments.in(2);
    float* y = arguments.out(0);
    run.threads().parallel_for(
        shape[0] * heads * sequence, 1 + (16 << 10) / (size + 1), [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            // Rows are in the order of memory: batch, sequence, head for rank 3, batch, head, sequence for rank 4.
            const int64_t b = row / (heads * sequence), s = flat ? row / heads % sequence : row % sequence;
            const int64_t at = (positions ? positions[b * sequence + s] : b * sequence + s) * half;
            rotate(x + row * size, y + row * size, size, half, cosines + at, sines + at);
          }
        });
    arguments.finish();
  }

 private:
  void rotate(const float* __restrict x, float* __restrict y, int64_t size, int64_t half, const float* cosine,
              const float* sine) const {
    if (interleaved_) {
      for (int64_t i = 0; i < half; ++i) {
        y[2 * i] = cosine[i] * x[2 * i] - sine[i] * x[2 * i + 1];
        y[2 * i + 1] = sine[i] * x[2 * i] + cosine[i] * x[2 * i + 1];
      }
    } else {
      for (int64_t i = 0; i < half; ++i) {
        y[i] = cosine[i] * x[i] - sine[i] * x[half + i];
        y[half + i] = sine[i] * x[i] + cosine[i] * x[half + i];
      }
    }
    std::copy(x + 2 * half, x + size, y + 2 * half);
  }

  bool interleaved_;
  int64_t heads_, rotated_;
};

}  // namespace

void cpu_rotary_embedding(CpuKernels& list) {
  list.add("RotaryEmbedding", [](const NodeInfo& info) { return std::make_unique<RotaryEmbedding>(info); });
}

}  // namespace tenon::ops
