#include <algorithm>

#include "base/fail.h"
#include "ops/cpu_support/strided_copy.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

class ReverseSequence final : public Kernel {
 public:
  explicit ReverseSequence(const NodeInfo& info) : time_first_(info.node().int_attribute("time_axis", 0) == 0) {}

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    auto lengths = run.data<int64_t>(1);
    Tensor& y = run.output(0);
    int64_t steps = x.dim(time_first_ ? 0 : 1), batch = x.dim(time_first_ ? 1 : 0),
            block = x.shape().elements(2, x.rank());
    for (size_t b = 0; b < lengths.size(); ++b) {
      if (lengths[b] < 0 || lengths[b] > steps)
        fail(ErrorCode::invalid_value, "length {} of sequence {} is not 0 to {}", lengths[b], b, steps);
    }
    int64_t bytes = std::max<int64_t>(1, block * (bits_of(x.type()) / 8));
    run.threads().parallel_for(
        steps * batch, std::max<int64_t>(1, (32 << 10) / bytes), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            int64_t t = time_first_ ? i / batch : i % steps, b = time_first_ ? i % batch : i / steps;
            int64_t length = lengths[static_cast<size_t>(b)], from = t < length ? length - 1 - t : t;
            copy_elements(x.type(), x.raw(), (time_first_ ? from * batch + b : b * steps + from) * block,
                          y.mutable_raw(), i * block, block);
          }
        });
  }

 private:
  bool time_first_;
};

}  // namespace

void cpu_reverse_sequence(CpuKernels& list) {
  list.add("ReverseSequence", [](const NodeInfo& info) { return std::make_unique<ReverseSequence>(info); });
}

}  // namespace tenon::ops
