#include <algorithm>

#include "base/fail.h"
#include "base/whole_lines.h"
#include "ops/cpu_support/strided_copy.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// Which of the steps of all sequences goes where.
struct Places {
  bool time_first;
  int64_t steps, batch;
  const int64_t* lengths;

  int64_t source_of(int64_t i) const {
    const int64_t outer = time_first ? batch : steps, t = time_first ? i / outer : i % outer,
                  b = time_first ? i % outer : i / outer, length = lengths[b], source = t < length ? length - 1 - t : t;
    return time_first ? source * batch + b : b * steps + source;
  }
};

// A function of its own, with copies of all that it needs: nothing else is stored while rows are written.
void copy_rows(Places places, const std::byte* from, std::byte* to, int64_t bytes, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i)
    copy_in_order(to + i * bytes, from + places.source_of(i) * bytes, static_cast<size_t>(bytes));
}

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
    const int64_t bytes = std::max<int64_t>(1, block * (bits_of(x.type()) / 8));
    const Places places{time_first_, steps, batch, lengths.data()};
    run.threads().parallel_for(
        steps * batch, std::max<int64_t>(1, (32 << 10) / bytes), [&](int64_t begin, int64_t end) {
          if (x.type() != ElementType::string)
            return copy_rows(places, static_cast<const std::byte*>(x.raw()), static_cast<std::byte*>(y.mutable_raw()),
                             bytes, begin, end);
          for (int64_t i = begin; i < end; ++i)
            copy_elements(x.type(), x.raw(), places.source_of(i) * block, y.mutable_raw(), i * block, block);
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
