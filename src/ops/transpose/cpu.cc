#include "kernels/transpose/transpose.h"

#include "ops/cpu_support/strided_copy.h"
#include "ops/transpose/cpu_permute.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {

void permute(ThreadPool& threads, const Tensor& x, std::span<const int64_t> order, Tensor& y) {
  if (x.type() != ElementType::string) {
    auto bytes = static_cast<size_t>(bits_of(x.type()) / 8);
    return kernels::transpose(threads, x.raw(), y.mutable_raw(), x.shape().dims(), order, bytes);
  }
  Shape moved;
  SmallVector<int64_t, 6> from, own = dense_strides(x.shape());
  for (int64_t axis : order) {
    moved.push_back(x.dim(static_cast<int>(axis)));
    from.push_back(own[static_cast<size_t>(axis)]);
  }
  auto to = dense_strides(moved);
  strided_copy(threads, x.type(), x.raw(), {from.data(), from.size()}, y.mutable_raw(), {to.data(), to.size()},
               moved.dims());
}

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
    if (bits_of(x.type()) >= 8) return permute(run.threads(), x, order, y);
    Tensor codes = unpack_codes(x, run.allocator());
    Tensor moved(ElementType::uint8, shape, run.allocator());
    permute(run.threads(), codes, order, moved);
    pack_codes(moved, y);
  }

 private:
  bool is_default_;
  std::vector<int64_t> permutation_;
};

}  // namespace

void cpu_transpose(CpuKernels& list) {
  list.add("Transpose", [](const NodeInfo& info) { return std::make_unique<Transpose>(info); });
}

}  // namespace tenon::ops
