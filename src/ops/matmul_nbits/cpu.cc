#include <memory>

#include "kernels/gemm_nbits/gemm_nbits.h"
#include "ops/cpu_support/compute_type.h"
#include "ops/matmul_nbits/matmul_nbits.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

using kernels::NbitsWeights;

std::string decline(const ir::Node& node) {
  for (size_t i : {1, 2, 3}) {
    if (node.input(i) && !node.input(i)->is_fixed()) return "its weights, scales or zero points are computed";
  }
  if (node.input(4)) return "its weights have groups of their own (g_idx)";
  if (node.int_attribute("weight_prepacked", 0) != 0) return "its weights are arranged for another device";
  return is_nbits_block(node.int_attribute("block_size", 0))
             ? ""
             : "its block_size is larger than 128 and no multiple of it";
}

// How exactly the rows are multiplied, by accuracy_level: unset, float32, float16, bfloat16, int8.
int digits_of(int64_t accuracy_level) {
  constexpr int digits[] = {3, 3, 2, 2, 1};
  return accuracy_level >= 0 && accuracy_level <= 4 ? digits[accuracy_level] : 3;
}

// Packed zero points, one to a byte.
std::vector<uint8_t> zeros_of(const Tensor& packed, const NbitsAttributes& w) {
  std::vector<uint8_t> zeros;
  const uint8_t* row = packed.data<uint8_t>().data();
  for (int64_t column = 0; column < w.n; ++column, row += w.zero_bytes()) {
    for (int64_t bit = 0; bit < w.blocks() * w.bits; bit += w.bits)
      zeros.push_back(static_cast<uint8_t>(row[bit / 8] >> (bit % 8) & ((1 << w.bits) - 1)));
  }
  return zeros;
}

NbitsWeights pack(const NodeInfo& info, PackedStorage& storage) {
  const NbitsAttributes w(info.node());
  const Tensor* zeros = info.constant(3);
  const bool is_packed = zeros && zeros->type() == ElementType::uint8, reads = storage.fills();
  const Tensor scales = reads ? as_type<float>(*info.constant(2), info.threads()) : Tensor();
  const Tensor wide_zeros = reads && zeros && !is_packed ? as_type<float>(*zeros, info.threads()) : Tensor();
  const std::vector<uint8_t> bytes = reads && is_packed ? zeros_of(*zeros, w) : std::vector<uint8_t>();
  const kernels::NbitsMatrix matrix{w.n,
                                    w.k,
                                    static_cast<int>(w.bits),
                                    w.block,
                                    static_cast<const uint8_t*>(info.constant(1)->raw()),
                                    static_cast<const float*>(scales.raw()),
                                    zeros != nullptr,
                                    is_packed ? bytes.data() : nullptr,
                                    static_cast<const float*>(wide_zeros.raw())};
  return NbitsWeights(info.threads(), matrix, kernels::nbits_kernels(), storage);
}

class MatMulNBits final : public Kernel {
 public:
  explicit MatMulNBits(const NodeInfo& info) : digits_(digits_of(info.node().int_attribute("accuracy_level", 0))) {
    const NbitsAttributes w(info.node());
    const std::string layout = fmt::format("{} bits in blocks of {}", w.bits, w.block);
    const auto make = [&](PackedStorage& storage) { return pack(info, storage); };
    weights_ = info.constant(3) ? info.packed<NbitsWeights>({1, 2, 3}, layout, make)
                                : info.packed<NbitsWeights>({1, 2}, layout, make);
    if (!weights_) weights_ = std::make_shared<const NbitsWeights>(make(fresh_storage()));
  }

  std::string_view rounds_to() const override { return digits_ == 1 ? "int8" : digits_ == 2 ? "int16" : ""; }

  void run(KernelRun& run) const override {
    if (run.output(0).elements() == 0) return;
    ComputeArguments<float> arguments(run);
    const float *a = arguments.in(0), *bias = arguments.in(5);
    float* y = arguments.out(0);
    kernels::gemm_nbits(run.threads(), digits_, run.input(0).elements() / weights_->k(), a, *weights_, bias, y);
    arguments.finish();
  }

 private:
  int digits_;
  std::shared_ptr<const NbitsWeights> weights_;
};

}  // namespace

void cpu_matmul_nbits(CpuKernels& list) {
  list.add(
      "MatMulNBits", [](const NodeInfo& info) { return std::make_unique<MatMulNBits>(info); }, decline, microsoft);
}

}  // namespace tenon::ops
