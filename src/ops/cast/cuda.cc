#include "base/fail.h"
#include "ops/cuda_support/element_text.h"

namespace tenon::ops {
namespace {

// As the CPU converts: float8e8m0 is a power of two, which is rounded as the attribute round_mode says.
constexpr const char* power_of_two_text = R"(
inline float power_of_two(float value) {
  const u32 bits = bits_of(value), exponent = bits >> 23 & 0xff, fraction = bits & 0x7fffff;
  u32 code;
  if (value != value) {
    code = 255;
  } else if ((bits & 0x7fffffff) == 0x7f800000) {
    code = saturates ? 254 : 255;
  } else if (exponent == 0) {
    // 2^-127 is a denormal float; what is below it has no code.
    if (fraction < 0x400000 && !saturates && !rounds_up) code = 255;
    else if (fraction == 0) code = saturates ? 0 : 255;
    else code = fraction > 0x400000 && (rounds_up || (rounds_to_nearest && fraction >= 0x600000));
  } else {
    const bool up = rounds_up ? fraction > 0 : rounds_to_nearest && fraction >= 0x400000;
    code = up && exponent == 254 ? (saturates ? 254 : 255) : exponent + up;
  }
  return code == 255 ? NOT_A_NUMBER : code == 0 ? float_of(0x400000) : float_of(code << 23);
}
)";

// Floats become integers by truncation and then wrap around; those beyond 64 bits (32 for narrow types) end at the
// limits, and NaN becomes 0. Integers below 8 bits take the nearest, ties to even.
std::string conversion_text(ElementType from, ElementType to) {
  const bool from_float = is_floating(from), to_float = is_floating(to);
  if (to == ElementType::boolean) return "r = x != 0;";
  if (to == ElementType::float8e8m0) return "r = power_of_two((float)x);";
  if (to_float) return to == ElementType::float64 ? "r = (double)x;" : "r = (float)x;";
  if (bits_of(to) < 8) return from_float ? "r = to_int<i32>(rint(x));" : "r = (i32)x;";
  if (!from_float) return "r = (Value_y)x;";
  if (to == ElementType::uint64) return "r = to_int<u64>(x);";
  const bool is_narrow = bits_of(to) < 32 || to == ElementType::int32;
  return fmt::format("r = (Value_y)to_int<{}>(x);", is_narrow ? "i32" : "i64");
}

class Cast final : public Kernel {
 public:
  explicit Cast(const NodeInfo& info)
      : saturates_(info.node().int_attribute("saturate", 1) != 0),
        round_mode_(info.node().string_attribute("round_mode", "up")) {
    if (round_mode_ != "up" && round_mode_ != "down" && round_mode_ != "nearest")
      fail(ErrorCode::invalid_attribute, "round_mode is '{}', it must be up, down or nearest", round_mode_);
  }

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    Tensor& y = run.output(0);
    if (x.type() == y.type()) {
      if (x.raw() != y.raw()) queue_of(run).copy(y.mutable_raw(), x.raw(), x.bytes());
      return;
    }
    const auto& loop = run.per_plan<CudaLoop>([&] {
      std::string functions = load_text(x.type(), "x") + std::string(to_int_text());
      if (y.type() == ElementType::float8e8m0)
        functions += fmt::format("constexpr bool saturates = {}, rounds_up = {}, rounds_to_nearest = {};\n", saturates_,
                                 round_mode_ == "up", round_mode_ == "nearest") +
                     power_of_two_text;
      return element_loop(run, y, "const Memory_x* from",
                          "const Value_x x = load_x(from, e);\n    " + conversion_text(x.type(), y.type()), {},
                          functions, saturates_);
    });
    loop.run(run, {y.raw(), x.raw()});
  }

 private:
  bool saturates_;
  std::string round_mode_;
};

// The elements read as another type of the same width.
void run_bit_cast(KernelRun& run) {
  const Tensor& x = run.input(0);
  Tensor& y = run.output(0);
  if (x.raw() != y.raw()) queue_of(run).copy(y.mutable_raw(), x.raw(), x.bytes());
}

}  // namespace

void cuda_cast(CudaKernels& list) {
  for (const char* op : {"Cast", "CastLike"})
    list.add(op, [](const NodeInfo& info) { return std::make_unique<Cast>(info); }, {.types = cuda_elements});
  list.add_simple("BitCast", run_bit_cast);
}

}  // namespace tenon::ops
