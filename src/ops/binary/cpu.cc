#include "base/fail.h"
#include "ops/binary/loops.h"
#include "ops/cast/convert.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

void apply(KernelRun& run, const BinaryTable& table, const Tensor& a, const Tensor& b, int64_t grain) {
  Tensor& y = run.output(0);
  BinaryLoop loop = loop_for(table, a.type());
  void* to = y.mutable_raw();
  Broadcast(y.shape(), {&a.shape(), &b.shape()}).run(run.threads(), grain, [&](const BroadcastTile& tile) {
    loop(a.raw(), b.raw(), to, tile);
  });
}

class Binary final : public Kernel {
 public:
  Binary(const BinaryTable& table, int64_t grain) : table_(table), grain_(grain) {}
  void run(KernelRun& run) const override {
    const Tensor &a = run.input(0), &b = run.input(1);
    Tensor& y = run.output(0);
    BinaryLoop loop = loop_for(table_, a.type());
    void* to = y.mutable_raw();
    if (a.elements() == y.elements() && b.elements() == y.elements()) {
      run.threads().parallel_for(y.elements(), grain_, [&](int64_t begin, int64_t end) {
        loop(a.raw(), b.raw(), to, BroadcastTile{1, end - begin, begin, {begin, begin}, {}, {1, 1}});
      });
      return;
    }
    const Broadcast& broadcast = run.per_plan<Broadcast>([&] {
      return Broadcast(y.shape(), {&a.shape(), &b.shape()});
    });
    broadcast.run(run.threads(), grain_, [&](const BroadcastTile& tile) { loop(a.raw(), b.raw(), to, tile); });
  }
  bool may_overwrite(size_t) const override { return true; }

 private:
  const BinaryTable& table_;
  int64_t grain_;
};

// The power of floats with an exponent of one element, which selects a cheaper function; nullopt for others.
std::optional<float> single_exponent(const Tensor& x, const Tensor& y) {
  if (!is_floating(x.type()) || y.elements() != 1) return std::nullopt;
  Tensor number = y.type() == ElementType::float32 ? y : convert(y, ElementType::float32);
  return number.data<float>()[0];
}

void run_pow(KernelRun& run) {
  const Tensor& x = run.input(0);
  const Tensor& y = run.input(1);
  std::optional<float> exponent = single_exponent(x, y);
  // Both read the first input only; the second is there for its shape.
  if (exponent == 2.0f || exponent == 0.5f) {
    BinaryLoop loop = loop_for(exponent == 2.0f ? square_loops : square_root_loops, x.type());
    Tensor& z = run.output(0);
    void* to = z.mutable_raw();
    Broadcast(z.shape(), {&x.shape(), &x.shape()}).run(run.threads(), cheap_grain, [&](const BroadcastTile& tile) {
      loop(x.raw(), x.raw(), to, tile);
    });
    return;
  }
  if (x.type() == y.type()) return apply(run, pow_loops, x, y, costly_grain);
  if (is_integer(x.type()) && is_floating(y.type())) {
    // An integer to a fractional power is computed in double and truncated.
    Tensor base = convert(x, ElementType::float64, run.allocator()),
           power = convert(y, ElementType::float64, run.allocator());
    Tensor& z = run.output(0);
    Tensor wide(ElementType::float64, z.shape(), run.allocator());
    BinaryLoop loop = loop_for(pow_loops, ElementType::float64);
    void* to = wide.mutable_raw();
    Broadcast(z.shape(), {&base.shape(), &power.shape()})
        .run(run.threads(), costly_grain, [&](const BroadcastTile& tile) { loop(base.raw(), power.raw(), to, tile); });
    return convert_into(wide, z, run.threads());
  }
  apply(run, pow_loops, x, convert(y, x.type(), run.allocator()), costly_grain);
}

std::unique_ptr<Kernel> make_shift(const NodeInfo& info) {
  std::string direction = info.node().string_attribute("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") {
    fail(ErrorCode::invalid_attribute, "direction is '{}', it must be LEFT or RIGHT", direction);
  }
  return std::make_unique<Binary>(direction == "LEFT" ? shift_left_loops : shift_right_loops, cheap_grain);
}

std::unique_ptr<Kernel> make_mod(const NodeInfo& info) {
  bool truncated = info.node().int_attribute("fmod", 0) != 0;
  return std::make_unique<Binary>(truncated ? truncated_mod_loops : floor_mod_loops, costly_grain);
}

}  // namespace

void cpu_binary(CpuKernels& list) {
  auto add = [&](std::string_view name, const BinaryTable& table) {
    list.add(name, [&table](const NodeInfo&) { return std::make_unique<Binary>(table, cheap_grain); });
  };
  add("Add", add_loops);
  add("Sub", sub_loops);
  add("Mul", mul_loops);
  add("Div", div_loops);
  add("PRelu", prelu_loops);
  add("Equal", equal_loops);
  add("Less", less_loops);
  add("LessOrEqual", less_or_equal_loops);
  add("Greater", greater_loops);
  add("GreaterOrEqual", greater_or_equal_loops);
  add("And", and_loops);
  add("Or", or_loops);
  add("Xor", xor_loops);
  add("BitwiseAnd", bitwise_and_loops);
  add("BitwiseOr", bitwise_or_loops);
  add("BitwiseXor", bitwise_xor_loops);
  list.add("BitShift", make_shift);
  list.add("Mod", make_mod);
  list.add_simple("Pow", run_pow);
}

}  // namespace tenon::ops
