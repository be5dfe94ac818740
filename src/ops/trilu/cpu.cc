#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "ops/cpu_support/strided_copy.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// Zeros; strings of a new tensor are empty already.
void clear(Tensor& y, int64_t first, int64_t count) {
  if (y.type() == ElementType::string || count <= 0) return;
  std::memset(element_at(y, first), 0, static_cast<size_t>(count * (bits_of(y.type()) / 8)));
}

class Trilu final : public Kernel {
 public:
  explicit Trilu(const NodeInfo& info) : upper_(info.node().int_attribute("upper", 1) != 0) {}

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    Tensor& y = run.output(0);
    if (y.elements() == 0) return;
    int64_t rows = x.dim(x.rank() - 2), columns = x.dim(x.rank() - 1), diagonal = 0;
    if (run.has_input(1)) {
      if (run.input(1).elements() != 1)
        fail(ErrorCode::shape_mismatch, "k must be one number, it has shape {}", run.input(1).shape().to_string());
      diagonal = std::clamp(run.data<int64_t>(1)[0], -rows - 1, columns + 1);
    }
    run.threads().parallel_for(
        x.elements() / columns, std::max<int64_t>(1, 8192 / columns), [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            // The first column on or above the diagonal; for the lower triangle the first above it.
            int64_t split = std::clamp<int64_t>(row % rows + diagonal + (upper_ ? 0 : 1), 0, columns),
                    first = row * columns;
            int64_t kept = upper_ ? first + split : first, count = upper_ ? columns - split : split;
            copy_elements(x.type(), x.raw(), kept, y.mutable_raw(), kept, count);
            clear(y, upper_ ? first : first + split, columns - count);
          }
        });
  }

 private:
  bool upper_;
};

}  // namespace

void cpu_trilu(CpuKernels& list) {
  list.add("Trilu", [](const NodeInfo& info) { return std::make_unique<Trilu>(info); });
}

}  // namespace tenon::ops
