#include <algorithm>
#include <array>
#include <optional>

#include "ops/activation/loops.h"
#include "ops/binary/loops.h"
#include "ops/clip/loops.h"
#include "ops/fused_elementwise/program.h"
#include "ops/operator.h"
#include "ops/unary/loops.h"
#include "ops/variadic/loops.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// Results stay in the first-level cache: that many elements are taken through all operations at a time, or fewer, so
// that those of all slots fit into the block's memory.
constexpr int64_t block_size = 1024, block_memory = 8 * block_size;

// Where the elements of an operand begin and how far apart they are: 1 or 0.
struct Operand {
  const float* data;
  int64_t stride;
};

struct Operation {
  // One of them.
  UnaryLoop unary = nullptr;
  BinaryLoop binary = nullptr;
  Parameters parameters = {};
  size_t a = 0, b = 0;      // numbers of operands
  bool has_number = false;  // the first parameter is what stands for b
  size_t slot = 0;          // where the result goes; not used by the last one
};

// How an input lies in the output's elements.
struct Input {
  enum class Kind : uint8_t { whole, single, part };
  Kind kind = Kind::whole;
  std::optional<Broadcast> broadcast;  // of a part
};

struct Table {
  std::string_view name;
  const BinaryTable* loops;
};
constexpr Table binary_tables[] = {{"Add", &add_loops}, {"Sub", &sub_loops},     {"Mul", &mul_loops},
                                   {"Div", &div_loops}, {"Min", &minimum_loops}, {"Max", &maximum_loops}};

BinaryLoop float_loop(const BinaryTable& table) { return loop_for(table, ElementType::float32); }

void apply(const Operation& operation, const Operand& a, const Operand& b, float* y, int64_t n) {
  if (operation.unary) return operation.unary(a.data, y, n, operation.parameters);
  operation.binary(a.data, b.data, y, BroadcastTile{1, n, 0, {}, {}, {a.stride, b.stride}});
}

class FusedElementwise final : public Kernel {
 public:
  explicit FusedElementwise(const NodeInfo& info);
  void run(KernelRun& run) const override;
  bool may_overwrite(size_t) const override { return true; }

 private:
  void give_slots(const ElementwiseProgram& program);
  Operand part(const Broadcast& broadcast, const float* data, int64_t begin, int64_t n, bool spread,
               float* memory) const;

  std::vector<Operation> operations_;
  std::vector<bool> spread_;  // inputs that functions of one operand read: their elements must lie side by side
  size_t inputs_;
  size_t slots_ = 0;
  int64_t block_;
  int64_t grain_;
};

FusedElementwise::FusedElementwise(const NodeInfo& info) {
  const ElementwiseProgram program = ElementwiseProgram::of(info.node());
  inputs_ = static_cast<size_t>(program.inputs);
  spread_.resize(inputs_);
  int64_t cost = 0;  // of one element, in cheap operations
  for (const ElementwiseOperation& from : program.operations) {
    Operation operation{.a = static_cast<size_t>(from.operands[0]), .b = static_cast<size_t>(from.operands[1])};
    operation.parameters = {from.parameters[0], from.parameters[1]};
    const std::string_view name = from.op->name;
    auto table = std::ranges::find(binary_tables, name, &Table::name);
    int64_t grain = cheap_grain;
    if (table != std::end(binary_tables)) {
      operation.binary = float_loop(*table->loops);
    } else if (name == "Pow") {
      const float exponent = from.parameters[0];
      const bool is_cheap = exponent == 2.0f || exponent == 0.5f;
      operation.binary = float_loop(exponent == 2.0f ? square_loops : is_cheap ? square_root_loops : pow_loops);
      operation.has_number = true;
      if (!is_cheap) grain = costly_grain;
    } else if (name == "Clip") {
      operation.unary = clip_floats;
    } else {
      const UnaryFunction* function = find_unary_function(name);
      if (!function) function = find_activation(name);
      operation.unary = loop_for(*function->loops, ElementType::float32);
      grain = function->grain;
    }
    if (operation.unary && operation.a < inputs_) spread_[operation.a] = true;
    cost += cheap_grain / grain;
    operations_.push_back(operation);
  }
  give_slots(program);
  const int64_t fits = block_memory / static_cast<int64_t>(slots_ + inputs_);
  block_ = std::min(block_size, fits / 16 * 16);
  grain_ = std::max(block_, cheap_grain / cost);
}

// A result's slot is free again when its last user has read it; that one may write to it already.
void FusedElementwise::give_slots(const ElementwiseProgram& program) {
  std::vector<size_t> last_use(operations_.size());
  for (size_t k = 0; k < operations_.size(); ++k) {
    for (int operand : program.operations[k].inputs()) {
      if (operand >= program.inputs) last_use[static_cast<size_t>(operand - program.inputs)] = k;
    }
  }
  std::vector<size_t> free;
  for (size_t k = 0; k + 1 < operations_.size(); ++k) {
    for (size_t earlier = 0; earlier < k; ++earlier) {
      if (last_use[earlier] == k) free.push_back(operations_[earlier].slot);
    }
    if (free.empty()) free.push_back(slots_++);
    operations_[k].slot = free.back();
    free.pop_back();
  }
}

// The elements [begin, begin + n) of an input that is broadcast: in place where they lie side by side or are all one,
// else copied to `memory`.
Operand FusedElementwise::part(const Broadcast& broadcast, const float* data, int64_t begin, int64_t n, bool spread,
                               float* memory) const {
  Operand result{memory, 1};
  broadcast.tiles(begin, begin + n, [&](const BroadcastTile& tile) {
    const float* from = data + tile.first[0];
    if (tile.rows == 1 && tile.columns == n && !(spread && tile.column_stride[0] == 0)) {
      result = {from, tile.column_stride[0]};
      return;
    }
    float* to = memory + (tile.output - begin);
    for (int64_t row = 0; row < tile.rows; ++row, from += tile.row_stride[0], to += tile.columns) {
      if (tile.column_stride[0])
        std::copy_n(from, tile.columns, to);
      else
        std::fill_n(to, tile.columns, *from);
    }
  });
  return result;
}

void FusedElementwise::run(KernelRun& run) const {
  Tensor& y = run.output(0);
  const std::vector<Input>& inputs = run.per_plan<std::vector<Input>>([&] {
    std::vector<Input> result(inputs_);
    for (size_t i = 0; i < inputs_; ++i) {
      const Tensor& x = run.input(i);
      if (x.elements() == y.elements())
        result[i].kind = Input::Kind::whole;
      else if (x.elements() == 1 && !spread_[i])
        result[i].kind = Input::Kind::single;
      else
        result[i] = {Input::Kind::part, Broadcast(y.shape(), {&x.shape()})};
    }
    return result;
  });
  std::array<const float*, ElementwiseProgram::most_inputs> data;
  for (size_t i = 0; i < inputs_; ++i) data[i] = run.data<float>(i).data();
  float* to = y.mutable_data<float>().data();
  run.threads().parallel_for(y.elements(), grain_, [&](int64_t begin, int64_t end) {
    alignas(64) float memory[block_memory];
    auto slot = [&](size_t number) { return memory + static_cast<int64_t>(number) * block_; };
    std::array<Operand, ElementwiseProgram::most_inputs + ElementwiseProgram::most_operations> operands;
    for (; begin < end; begin += block_) {
      const int64_t n = std::min(block_, end - begin);
      for (size_t i = 0; i < inputs_; ++i) {
        operands[i] = inputs[i].kind == Input::Kind::whole ? Operand{data[i] + begin, 1}
                      : inputs[i].kind == Input::Kind::single
                          ? Operand{data[i], 0}
                          : part(*inputs[i].broadcast, data[i], begin, n, spread_[i], slot(slots_ + i));
      }
      for (size_t k = 0; k < operations_.size(); ++k) {
        const Operation& operation = operations_[k];
        float* result = k + 1 == operations_.size() ? to + begin : slot(operation.slot);
        apply(operation, operands[operation.a],
              operation.has_number ? Operand{&operation.parameters.a, 0} : operands[operation.b], result, n);
        operands[inputs_ + k] = {result, 1};
      }
    }
  });
}

}  // namespace

void cpu_fused_elementwise(CpuKernels& list) {
  list.add(
      "FusedElementwise", [](const NodeInfo& info) { return std::make_unique<FusedElementwise>(info); }, nullptr,
      tenon_domain);
}

}  // namespace tenon::ops
