#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/fail.h"
#include "kernels/math/math.h"
#include "ops/recurrent/activation.h"

namespace tenon::ops {
namespace {

template <auto f, typename T>
void map(T* x, int64_t n, float alpha, float beta) {
  for (int64_t i = 0; i < n; ++i) x[i] = f(x[i], static_cast<T>(alpha), static_cast<T>(beta));
}

constexpr auto sigmoid = [](auto x, auto, auto) { return 1 / (1 + std::exp(-x)); };
constexpr auto hyperbolic_tangent = [](auto x, auto, auto) { return std::tanh(x); };
constexpr auto relu = [](auto x, auto, auto) { return x > 0 ? x : 0 * x; };
constexpr auto affine = [](auto x, auto a, auto b) { return a * x + b; };
constexpr auto leaky_relu = [](auto x, auto a, auto) { return x >= 0 ? x : a * x; };
constexpr auto thresholded_relu = [](auto x, auto a, auto) { return x > a ? x : decltype(x)(0); };
constexpr auto scaled_tanh = [](auto x, auto a, auto b) { return a * std::tanh(b * x); };
constexpr auto hard_sigmoid = [](auto x, auto a, auto b) {
  using T = decltype(x);
  return std::min(std::max(a * x + b, T(0)), T(1));
};
constexpr auto elu = [](auto x, auto a, auto) { return x >= 0 ? x : a * (std::exp(x) - 1); };
constexpr auto softsign = [](auto x, auto, auto) { return x / (1 + std::fabs(x)); };
constexpr auto softplus = [](auto x, auto, auto) {
  return std::log1p(std::exp(-std::fabs(x))) + std::max(x, decltype(x)(0));
};

struct Row {
  const char* name;
  RecurrentActivation activation;  // with its default parameters
  bool takes_alpha, takes_beta;
};

template <auto f>
constexpr RecurrentActivation both(float alpha = 0, float beta = 0) {
  return {map<f, float>, map<f, double>, alpha, beta};
}

template <auto vectorized, auto f>
constexpr RecurrentActivation fast() {
  return {[](float* x, int64_t n, float, float) { vectorized(x, x, n); }, map<f, double>};
}

const Row rows[] = {
    {"sigmoid", fast<kernels::f32_sigmoid, sigmoid>(), false, false},
    {"tanh", fast<kernels::f32_tanh, hyperbolic_tangent>(), false, false},
    {"relu", both<relu>(), false, false},
    {"affine", both<affine>(1, 0), true, true},
    {"leakyrelu", both<leaky_relu>(0.01f), true, false},
    {"thresholdedrelu", both<thresholded_relu>(1), true, false},
    {"scaledtanh", both<scaled_tanh>(1, 1), true, true},
    {"hardsigmoid", both<hard_sigmoid>(0.2f, 0.5f), true, true},
    {"elu", both<elu>(1), true, false},
    {"softsign", both<softsign>(), false, false},
    {"softplus", fast<kernels::f32_softplus, softplus>(), false, false},
};

const Row& row_of(const std::string& name) {
  std::string lower = name;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const Row& row : rows) {
    if (lower == row.name) return row;
  }
  fail(ErrorCode::invalid_attribute,
       "'{}' is none of the activations Sigmoid, Tanh, Relu, Affine, LeakyRelu, ThresholdedRelu, "
       "ScaledTanh, HardSigmoid, Elu, Softsign and Softplus",
       name);
}

}  // namespace

std::vector<RecurrentActivation> recurrent_activations(const ir::Node& node, int64_t directions,
                                                       const std::vector<std::string>& defaults) {
  std::vector<std::string> names = node.strings_attribute("activations");
  size_t wanted = defaults.size() * static_cast<size_t>(directions);
  if (names.empty()) {
    for (int64_t d = 0; d < directions; ++d) names.insert(names.end(), defaults.begin(), defaults.end());
  }
  if (names.size() < wanted)
    fail(ErrorCode::invalid_attribute, "activations names {} functions; {} are needed", names.size(), wanted);
  names.resize(wanted);
  std::vector<float> alphas = node.floats_attribute("activation_alpha"),
                     betas = node.floats_attribute("activation_beta");
  size_t next_alpha = 0, next_beta = 0;
  std::vector<RecurrentActivation> result;
  for (const std::string& name : names) {
    const Row& row = row_of(name);
    result.push_back(row.activation);
    if (row.takes_alpha && next_alpha < alphas.size()) result.back().alpha = alphas[next_alpha++];
    if (row.takes_beta && next_beta < betas.size()) result.back().beta = betas[next_beta++];
  }
  return result;
}

}  // namespace tenon::ops
