// A library of operators: one that works, one with state, and some that fail in the ways that code can.
#include <stdexcept>

#include "tenon/custom_operator.h"

namespace {

using namespace tenon;

CustomOperator plus(const char* name, float constant) {
  return CustomOperator("test.library", name)
      .input("x", {ElementType::float32})
      .output("y", {ElementType::float32})
      .attribute("times", 1)
      .infer([](CustomInference& i) { i.set_output(0, i.input_type(0), i.input_shape(0)); })
      .cpu([constant](CustomRun& run) {
        auto x = run.input(0).data<float>();
        auto y = run.output(0).mutable_data<float>();
        const auto times = static_cast<float>(run.attribute<int64_t>("times"));
        run.parallel_for(run.input(0).elements(), 2, [&](int64_t begin, int64_t end) {
          for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) y[i] = x[i] + times * constant;
        });
      });
}

CustomOperator failing(const char* name, void (*fail)()) {
  return plus(name, 0).cpu([fail](CustomRun&) { fail(); });
}

}  // namespace

TENON_CUSTOM_OPERATORS(operators) {
  operators.push_back(plus("AddTwo", 2));
  // Asks for elements of another type than the tensor has: an Error of Tenon's own code in this library.
  operators.push_back(plus("MistakesTheType", 2).cpu([](CustomRun& run) { run.input(0).data<double>(); }));
  operators.push_back(failing("ThrowsError", [] { throw Error(ErrorCode::invalid_value, "not this time"); }));
  operators.push_back(failing("ThrowsException", [] { throw std::runtime_error("out of luck"); }));
  operators.push_back(failing("ThrowsNumber", [] { throw 42; }));
}
