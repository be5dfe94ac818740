#include <array>
#include <cmath>

#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// How one element moves: x with gradient g and what was remembered about it. Each rule has
//   inputs, outputs   how many tensors of each kind belong to an optimised one
//   Rule(node, rate, updates)
//   std::array<T, outputs> operator()(const std::array<T, inputs>&)
template <typename T>
class Adagrad {
 public:
  static constexpr size_t inputs = 3, outputs = 2;

  Adagrad(const ir::Node& node, double rate, double updates)
      : rate_(static_cast<T>(rate / (1 + updates * static_cast<double>(node.float_attribute("decay_factor", 0))))),
        norm_(static_cast<T>(node.float_attribute("norm_coefficient", 0))),
        epsilon_(static_cast<T>(node.float_attribute("epsilon", 1e-6f))) {}

  std::array<T, 2> operator()(const std::array<T, 3>& in) const {
    const auto [x, g, squares] = in;
    const T gradient = norm_ * x + g, sum = squares + gradient * gradient;
    return {x - rate_ * gradient / (std::sqrt(sum) + epsilon_), sum};
  }

 private:
  T rate_, norm_, epsilon_;
};

template <typename T>
class Adam {
 public:
  static constexpr size_t inputs = 4, outputs = 3;

  Adam(const ir::Node& node, double rate, double updates)
      : alpha_(static_cast<T>(node.float_attribute("alpha", 0.9f))),
        beta_(static_cast<T>(node.float_attribute("beta", 0.999f))),
        norm_(static_cast<T>(node.float_attribute("norm_coefficient", 0))),
        norm_after_(static_cast<T>(node.float_attribute("norm_coefficient_post", 0))),
        epsilon_(static_cast<T>(node.float_attribute("epsilon", 1e-6f))),
        rate_(static_cast<T>(rate)) {
    if (updates > 0) {
      const auto alpha = static_cast<double>(alpha_), beta = static_cast<double>(beta_);
      rate_ = static_cast<T>(rate * std::sqrt(1 - std::pow(beta, updates)) / (1 - std::pow(alpha, updates)));
    }
  }

  std::array<T, 3> operator()(const std::array<T, 4>& in) const {
    const auto [x, g, average, squares] = in;
    const T gradient = norm_ * x + g;
    const T moved = alpha_ * average + (1 - alpha_) * gradient;
    const T spread = beta_ * squares + (1 - beta_) * (gradient * gradient);
    return {(1 - norm_after_) * (x - rate_ * (moved / (std::sqrt(spread) + epsilon_))), moved, spread};
  }

 private:
  T alpha_, beta_, norm_, norm_after_, epsilon_, rate_;
};

template <typename T>
class Momentum {
 public:
  static constexpr size_t inputs = 3, outputs = 2;

  Momentum(const ir::Node& node, double rate, double updates)
      : nesterov_(node.string_attribute("mode", "") == "nesterov"),
        alpha_(static_cast<T>(node.float_attribute("alpha", 0))),
        beta_(updates > 0 ? static_cast<T>(node.float_attribute("beta", 0)) : T(1)),
        norm_(static_cast<T>(node.float_attribute("norm_coefficient", 0))),
        rate_(static_cast<T>(rate)) {}

  std::array<T, 2> operator()(const std::array<T, 3>& in) const {
    const auto [x, g, momentum] = in;
    const T gradient = norm_ * x + g, moved = alpha_ * momentum + beta_ * gradient;
    return {x - rate_ * (nesterov_ ? gradient + alpha_ * moved : moved), moved};
  }

 private:
  bool nesterov_;
  T alpha_, beta_, norm_, rate_;
};

template <typename T, size_t count>
std::array<T, count> load(const std::array<const T*, count>& from, int64_t i) {
  std::array<T, count> values;
  for (size_t k = 0; k < count; ++k) values[k] = from[k][i];
  return values;
}

// Tensor k of n.
template <typename T, typename Rule>
void step(KernelRun& run, const Rule& rule, size_t k, size_t n) {
  std::array<const T*, Rule::inputs> in;
  std::array<T*, Rule::outputs> out{};
  for (size_t group = 0; group < Rule::inputs; ++group) in[group] = run.data<T>(2 + group * n + k).data();
  for (size_t group = 0; group < Rule::outputs; ++group) {
    if (run.wants_output(group * n + k)) out[group] = run.output(group * n + k).template mutable_data<T>().data();
  }
  run.threads().parallel_for(run.input(2 + k).elements(), cheap_grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const std::array<T, Rule::outputs> result = rule(load(in, i));
      for (size_t group = 0; group < Rule::outputs; ++group) {
        if (out[group]) out[group][i] = result[group];
      }
    }
  });
}

template <template <typename> typename Rule>
void optimize(KernelRun& run) {
  if (run.input(0).elements() != 1 || run.input(1).elements() != 1)
    fail(ErrorCode::shape_mismatch, "the learning rate and the update count must be scalars");
  double rate = 0;
  dispatch<float, double>(run.input(0).type(), [&]<typename T>() { rate = run.data<T>(0)[0]; });
  const auto updates = static_cast<double>(run.data<int64_t>(1)[0]);
  const size_t n = (run.input_count() - 2) / Rule<float>::inputs;
  for (size_t k = 0; k < n; ++k) {
    dispatch<float, double>(run.input(2 + k).type(),
                            [&]<typename T>() { step<T>(run, Rule<T>(run.node(), rate, updates), k, n); });
  }
}

}  // namespace

void cpu_optimizer(CpuKernels& list) {
  constexpr std::string_view domain = "ai.onnx.preview.training";
  list.add_simple("Adagrad", optimize<Adagrad>, domain);
  list.add_simple("Adam", optimize<Adam>, domain);
  list.add_simple("Momentum", optimize<Momentum>, domain);
}

}  // namespace tenon::ops
