#include "kernels/transpose/transpose.h"

#include "ops/strided_copy.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

class Transpose final : public Kernel {
 public:
  explicit Transpose(const NodeInfo& info)
      : is_default_(!info.node().attribute("perm")), permutation_(info.node().ints_attribute("perm")) {}

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    int rank = x.rank();
    SmallVector<int64_t, 6> permutation;
    Shape shape;
    int64_t last = -1;
    bool keeps_order = true;  // only axes of size 1 move
    for (int i = 0; i < rank; ++i) {
      int64_t axis = is_default_ ? rank - 1 - i : permutation_[static_cast<size_t>(i)];
      if (axis < 0) axis += rank;
      permutation.push_back(axis);
      int64_t size = x.dim(static_cast<int>(axis));
      shape.push_back(size);
      if (size == 1) continue;
      keeps_order = keeps_order && axis > last;
      last = axis;
    }
    if (keeps_order || x.elements() == 0) return run.set_output(0, x.reshaped(shape));
    Tensor& y = run.output(0, x.type(), shape);
    std::span<const int64_t> order(permutation.data(), permutation.size());
    if (x.type() == ElementType::string) return transpose_strings(run.threads(), x, y, order);
    if (bits_of(x.type()) >= 8) {
      return kernels::transpose(run.threads(), x.raw(), y.mutable_raw(), x.shape().dims(), order, static_cast<size_t>(bits_of(x.type()) / 8));
    }
    Tensor codes = unpack_codes(x, run.allocator());
    Tensor moved(ElementType::uint8, shape, run.allocator());
    kernels::transpose(run.threads(), codes.raw(), moved.mutable_raw(), x.shape().dims(), order, 1);
    pack_codes(moved, y);
  }

 private:
  static void transpose_strings(ThreadPool& threads, const Tensor& x, Tensor& y, std::span<const int64_t> order) {
    auto from = dense_strides(x.shape()), to = dense_strides(y.shape());
    SmallVector<int64_t, 6> moved;
    for (int64_t axis : order) moved.push_back(from[static_cast<size_t>(axis)]);
    strided_copy(threads, x.type(), x.raw(), {moved.data(), moved.size()}, y.mutable_raw(), {to.data(), to.size()}, y.shape().dims());
  }

  bool is_default_;
  std::vector<int64_t> permutation_;
};

}  // namespace

void cpu_transpose(CpuKernels& list) {
  list.add("Transpose", [](const NodeInfo& info) { return std::make_unique<Transpose>(info); });
}

}  // namespace tenon::ops
