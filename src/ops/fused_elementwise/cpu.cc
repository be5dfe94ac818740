#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "kernels/chain/chain.h"
#include "ops/activation/cpu_loops.h"
#include "ops/binary/loops.h"
#include "ops/fused_elementwise/program.h"
#include "ops/fused_types.h"
#include "ops/operator.h"
#include "ops/unary/cpu_loops.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

using enum kernels::ChainOperation;
using kernels::ChainOperation;
using kernels::ChainStep;

// Results stay in the first-level cache: that many elements are taken through all stages at a time, or fewer, so that
// those of all slots fit into the block's memory.
constexpr int64_t block_size = 1024, block_memory = 8 * block_size;

// Where the elements of an operand begin and how far apart they are: 1 or 0.
struct Operand {
  const float* data;
  int64_t stride;
};

// An operation whose result goes to the next one in a register.
struct Link {
  ChainOperation operation;
  int operand = -1;  // its number; -1: the operation has none but the result before it
  float low = 0, high = 0;
};

// What is done with a block before the next thing is done: a function, or links.
struct Stage {
  UnaryLoop function = nullptr;
  Parameters parameters = {};
  std::vector<Link> links = {};
  size_t start = 0;   // the operand that it begins with
  size_t result = 0;  // the number of its result as an operand
  size_t slot = 0;    // where that goes; not used by the last stage
};

struct CheapOperator {
  std::string_view name;
  ChainOperation operation, reversed;  // where the result before it is the second operand
};
constexpr CheapOperator cheap_operators[] = {
    {"Add", add, add},
    {"Sub", subtract, subtract_from},
    {"Mul", multiply, multiply},
    {"Div", divide, divide_into},
    {"Min", minimum, minimum_of},
    {"Max", maximum, maximum_of},
    {"Neg", negate, negate},
    {"Abs", absolute, absolute},
    {"Relu", relu, relu},
    {"LeakyRelu", leaky_relu, leaky_relu},
    {"Clip", clip, clip},
    {"Sqrt", square_root, square_root},
    {"Reciprocal", reciprocal, reciprocal},
};

void power(const void* x, void* y, int64_t n, const Parameters& exponent) {
  loop_for(pow_loops, ElementType::float32)(x, &exponent.a, y, BroadcastTile{1, n, 0, {}, {}, {1, 0}});
}

// How an input lies in the output's elements.
struct Input {
  enum class Kind : uint8_t { whole, single, part };
  Kind kind = Kind::whole;
  std::optional<Broadcast> broadcast;  // of a part
};

struct Inputs {
  std::vector<Input> list;
  // Blocks end at multiples of it, so that all parts can be read in place.
  int64_t row = std::numeric_limits<int64_t>::max();
};

// How many elements of the output in a row are adjacent elements of x, or are all one of them.
int64_t row_length(const Shape& y, const Shape& x) {
  int64_t length = 1;
  bool adjacent = false;
  for (int axis = y.rank() - 1; axis >= 0; --axis) {
    if (y[axis] == 1) continue;
    const int own = axis - (y.rank() - x.rank());
    const bool is_own = own >= 0 && x[own] != 1;
    if (length == 1) adjacent = is_own;
    if (is_own != adjacent) break;
    length *= y[axis];
  }
  return length;
}

class FusedElementwise final : public Kernel {
 public:
  explicit FusedElementwise(const NodeInfo& info);
  void run(KernelRun& run) const override;
  bool may_overwrite(size_t) const override { return true; }

 private:
  void add_link(const NodeInfo& info, const ElementwiseOperation& from, const CheapOperator& op);
  void add_function(const ElementwiseOperation& from);
  void begin_stage(size_t start);
  void give_slots();
  Inputs lay_out(KernelRun& run) const;
  Operand part(const Broadcast& broadcast, const float* data, int64_t begin, int64_t n, bool spread,
               float* memory) const;

  std::vector<Stage> stages_;
  std::vector<bool> spread_;  // inputs that a stage begins with: their elements must lie side by side
  std::vector<int> uses_;     // of each operand
  size_t inputs_;
  size_t slots_ = 0;
  int64_t cost_ = 0;  // of one element, in cheap operations
  int64_t block_;
  int64_t grain_;
};

FusedElementwise::FusedElementwise(const NodeInfo& info) {
  const ElementwiseProgram program = ElementwiseProgram::of(info.node());
  inputs_ = static_cast<size_t>(program.inputs);
  spread_.resize(inputs_);
  uses_.resize(inputs_ + program.operations.size());
  for (const ElementwiseOperation& operation : program.operations) {
    for (int operand : operation.inputs()) ++uses_[static_cast<size_t>(operand)];
  }
  for (size_t k = 0; k < program.operations.size(); ++k) {
    const ElementwiseOperation& operation = program.operations[k];
    const float exponent = operation.op->name == "Pow" ? operation.parameters[0] : 0;
    const CheapOperator squares{"Pow", square, square}, roots{"Pow", square_root, square_root};
    auto cheap = std::ranges::find(cheap_operators, operation.op->name, &CheapOperator::name);
    if (exponent == 2.0f || exponent == 0.5f)
      add_link(info, operation, exponent == 2.0f ? squares : roots);
    else if (cheap != std::end(cheap_operators))
      add_link(info, operation, *cheap);
    else
      add_function(operation);
    stages_.back().result = inputs_ + k;
  }
  give_slots();
  const int64_t fits = block_memory / static_cast<int64_t>(slots_ + inputs_);
  block_ = std::min(block_size, fits / 16 * 16);
  grain_ = std::max(block_, cheap_grain / cost_);
}

void FusedElementwise::begin_stage(size_t start) {
  stages_.push_back({.start = start});
  if (start < inputs_) spread_[start] = true;
}

void FusedElementwise::add_link(const NodeInfo& info, const ElementwiseOperation& from, const CheapOperator& op) {
  const bool is_binary = from.inputs().size() == 2;
  const auto a = static_cast<size_t>(from.operands[0]), b = static_cast<size_t>(from.operands[1]);
  // What the links so far made, if nothing else needs it.
  const bool open = !stages_.empty() && !stages_.back().function && uses_[stages_.back().result] == 1;
  const bool goes_on_from_a = open && a == stages_.back().result,
             goes_on_from_b = open && is_binary && b == stages_.back().result;
  // Else it begins with a result, or with an input that is no constant.
  const bool reversed = goes_on_from_b || (!goes_on_from_a && is_binary && a < inputs_ &&
                                           (b >= inputs_ || (info.constant(a) && !info.constant(b))));
  if (!goes_on_from_a && !goes_on_from_b) begin_stage(reversed ? b : a);
  stages_.back().links.push_back({reversed ? op.reversed : op.operation,
                                  !is_binary ? -1 : static_cast<int>(reversed ? a : b), from.parameters[0],
                                  from.parameters[1]});
  ++cost_;
}

void FusedElementwise::add_function(const ElementwiseOperation& from) {
  begin_stage(static_cast<size_t>(from.operands[0]));
  Stage& stage = stages_.back();
  stage.parameters = {from.parameters[0], from.parameters[1]};
  int64_t grain = costly_grain;
  if (from.op->name == "Pow") {
    stage.function = power;
  } else {
    const UnaryFunction* function = find_unary_function(from.op->name);
    if (!function) function = find_activation(from.op->name);
    stage.function = loop_for(*function->loops, ElementType::float32);
    grain = function->grain;
  }
  cost_ += cheap_grain / grain;
}

// The slot of a result is free again when the last stage that reads it is done; that one may write to it already.
void FusedElementwise::give_slots() {
  std::vector<size_t> last_use(uses_.size());
  for (size_t k = 0; k < stages_.size(); ++k) {
    last_use[stages_[k].start] = k;
    for (const Link& link : stages_[k].links) {
      if (link.operand >= 0) last_use[static_cast<size_t>(link.operand)] = k;
    }
  }
  std::vector<size_t> free;
  for (size_t k = 0; k + 1 < stages_.size(); ++k) {
    for (size_t earlier = 0; earlier < k; ++earlier) {
      if (last_use[stages_[earlier].result] == k) free.push_back(stages_[earlier].slot);
    }
    if (free.empty()) free.push_back(slots_++);
    stages_[k].slot = free.back();
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

Inputs FusedElementwise::lay_out(KernelRun& run) const {
  constexpr int64_t worth_a_block = 512;
  const Shape& y = run.output(0).shape();
  Inputs result{std::vector<Input>(inputs_)};
  std::vector<int64_t> rows;
  for (size_t i = 0; i < inputs_; ++i) {
    const Shape& x = run.input(i).shape();
    Input& input = result.list[i];
    if (x.elements() == y.elements()) {
      input.kind = Input::Kind::whole;
    } else if (x.elements() == 1 && !spread_[i]) {
      input.kind = Input::Kind::single;
    } else {
      input = {Input::Kind::part, Broadcast(y, {&x})};
      rows.push_back(row_length(y, x));
    }
  }
  if (rows.empty()) return result;
  const int64_t shortest = std::ranges::min(rows);
  if (shortest >= worth_a_block && std::ranges::all_of(rows, [&](int64_t row) { return row % shortest == 0; }))
    result.row = shortest;
  return result;
}

void FusedElementwise::run(KernelRun& run) const {
  Tensor& y = run.output(0);
  const Inputs& inputs = run.per_plan<Inputs>([&] { return lay_out(run); });
  std::array<const float*, ElementwiseProgram::most_inputs> data;
  for (size_t i = 0; i < inputs_; ++i) data[i] = run.data<float>(i).data();
  float* to = y.mutable_data<float>().data();
  // A single stage whose operands lie in place needs no memory in between.
  const bool in_place = stages_.size() == 1 && inputs.row == std::numeric_limits<int64_t>::max() &&
                        std::ranges::none_of(inputs.list, [](const Input& i) { return i.kind == Input::Kind::part; });
  const int64_t block = in_place ? y.elements() : block_;
  run.threads().parallel_for(y.elements(), grain_, [&](int64_t begin, int64_t end) {
    alignas(64) float memory[block_memory];
    auto slot = [&](size_t number) { return memory + static_cast<int64_t>(number) * block_; };
    std::array<Operand, ElementwiseProgram::most_inputs + ElementwiseProgram::most_operations> operands;
    std::array<ChainStep, ElementwiseProgram::most_operations> steps;
    for (int64_t n = 0; begin < end; begin += n) {
      n = std::min({block, end - begin, inputs.row - begin % inputs.row});
      for (size_t i = 0; i < inputs_; ++i) {
        operands[i] = inputs.list[i].kind == Input::Kind::whole ? Operand{data[i] + begin, 1}
                      : inputs.list[i].kind == Input::Kind::single
                          ? Operand{data[i], 0}
                          : part(*inputs.list[i].broadcast, data[i], begin, n, spread_[i], slot(slots_ + i));
      }
      for (const Stage& stage : stages_) {
        float* result = &stage == &stages_.back() ? to + begin : slot(stage.slot);
        const float* start = operands[stage.start].data;
        if (stage.function) {
          stage.function(start, result, n, stage.parameters);
        } else {
          for (size_t k = 0; k < stage.links.size(); ++k) {
            const Link& link = stage.links[k];
            const Operand operand = link.operand < 0 ? Operand{} : operands[static_cast<size_t>(link.operand)];
            steps[k] = {link.operation, operand.data, operand.stride, link.low, link.high};
          }
          kernels::f32_chain(start, std::span(steps).first(stage.links.size()), result, n);
        }
        operands[stage.result] = {result, 1};
      }
    }
  });
}

}  // namespace

void cpu_fused_elementwise(CpuKernels& list) {
  list.add(
      "FusedElementwise", [](const NodeInfo& info) { return std::make_unique<FusedElementwise>(info); },
      why_not_fused_on_host, tenon_domain);
}

}  // namespace tenon::ops
