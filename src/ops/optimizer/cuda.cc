#include <optional>

#include "base/fail.h"
#include "ops/cuda_support/loop.h"

namespace tenon::ops {
namespace {

// How one element x with gradient g moves, in tensors of type T. `rate` is what `effective` makes of the learning rate
// and the number of updates.
struct Rule {
  size_t inputs, outputs;  // tensors of each kind that belong to an optimised one
  std::string effective;   // statements that set rate, a double, from rate and updates
  std::string step;        // sets r0, r1, … from in0, in1, …
};

std::string number(const ir::Node& node, const char* attribute, float otherwise) {
  return "(T)" +
         cuda::number_text(static_cast<double>(node.float_attribute(attribute, otherwise)), ElementType::float64);
}
std::string wide_number(const ir::Node& node, const char* attribute, float otherwise) {
  return cuda::number_text(static_cast<double>(node.float_attribute(attribute, otherwise)), ElementType::float64);
}

Rule rule_of(const ir::Node& node) {
  const std::string gradient = "const T gradient = " + number(node, "norm_coefficient", 0) + " * in0 + in1;\n    ";
  if (node.op_type == "Adagrad")
    return {3, 2, "rate /= 1 + updates * " + wide_number(node, "decay_factor", 0) + ";",
            gradient + "const T r1 = in2 + gradient * gradient, r0 = in0 - rate * gradient / (sqrt(r1) + " +
                number(node, "epsilon", 1e-6f) + ");"};
  if (node.op_type == "Adam") {
    const std::string alpha = number(node, "alpha", 0.9f), beta = number(node, "beta", 0.999f);
    return {
        4, 3,
        fmt::format("if (updates > 0) rate *= sqrt(1 - pow({}, updates)) / (1 - pow({}, updates));",
                    wide_number(node, "beta", 0.999f), wide_number(node, "alpha", 0.9f)),
        gradient +
            fmt::format("const T r1 = {0} * in2 + ((T)1 - {0}) * gradient, r2 = {1} * in3 + ((T)1 - {1}) * (gradient * "
                        "gradient);\n    const T r0 = ((T)1 - {2}) * (in0 - rate * (r1 / (sqrt(r2) + {3})));",
                        alpha, beta, number(node, "norm_coefficient_post", 0), number(node, "epsilon", 1e-6f))};
  }
  const std::string alpha = number(node, "alpha", 0);
  return {
      3, 2, "",
      gradient + fmt::format("const T r1 = {} * in2 + (updates > 0 ? {} : (T)1) * gradient, r0 = in0 - rate * ({});",
                             alpha, number(node, "beta", 0),
                             node.string_attribute("mode", "") == "nesterov" ? "gradient + " + alpha + " * r1" : "r1")};
}

class Optimizer final : public Kernel {
 public:
  explicit Optimizer(const NodeInfo& info) : rule_(rule_of(info.node())) {}

  void run(KernelRun& run) const override {
    if (run.input(0).elements() != 1 || run.input(1).elements() != 1)
      fail(ErrorCode::shape_mismatch, "the learning rate and the update count must be scalars");
    const size_t n = (run.input_count() - 2) / rule_.inputs;
    const auto& plan = run.per_plan<Plan>([&] { return prepare(run, n); });
    plan.rate->run(run, {run.input(0).raw(), run.input(1).raw(), plan.scratch.get()});
    for (size_t k = 0; k < n; ++k) {
      std::vector<const void*> addresses{plan.scratch.get(), run.input(1).raw()};
      for (size_t group = 0; group < rule_.inputs; ++group) addresses.push_back(run.input(2 + group * n + k).raw());
      for (size_t group = 0; group < rule_.outputs; ++group)
        addresses.push_back(run.wants_output(group * n + k) ? run.output(group * n + k).raw() : nullptr);
      plan.steps[k].run(run, addresses);
    }
  }

 private:
  struct Plan {
    std::shared_ptr<void> scratch;  // the rate
    std::optional<CudaLoop> rate;
    std::vector<CudaLoop> steps;
  };

  Plan prepare(KernelRun& run, size_t n) const {
    Plan plan;
    plan.scratch = queue_of(run).allocate(8);
    plan.rate.emplace(run, 1, const_pointer_to(run.input(0)) + "given, const i64* count, double* to",
                      "double rate = (double)*given; const double updates = (double)*count;\n    " + rule_.effective +
                          "\n    *to = rate;");
    for (size_t k = 0; k < n; ++k) {
      std::string pointers = "const double* effective, const i64* count",
                  body = "const T rate = (T)*effective; const i64 updates = *count;\n    ";
      for (size_t i = 0; i < rule_.inputs; ++i) {
        pointers += fmt::format(", const T* x{}", i);
        body += fmt::format("const T in{} = x{}[i];\n    ", i, i);
      }
      body += rule_.step;
      for (size_t i = 0; i < rule_.outputs; ++i) {
        pointers += fmt::format(", T* y{}", i);
        body += fmt::format("\n    if (y{0}) y{0}[i] = r{0};", i);
      }
      plan.steps.emplace_back(run, run.input(2 + k).elements(), pointers, body, std::vector<int64_t>{},
                              fmt::format("typedef {} T;\n", cuda::type_text(run.input(2 + k).type())));
    }
    return plan;
  }

  Rule rule_;
};

}  // namespace

void cuda_optimizer(CudaKernels& list) {
  for (const char* op : {"Adagrad", "Adam", "Momentum"})
    list.add(op, [](const NodeInfo& info) { return std::make_unique<Optimizer>(info); },
             {.types = {ElementType::float32, ElementType::float64, ElementType::int64},
              .domain = "ai.onnx.preview.training"});
}

}  // namespace tenon::ops
