// The activation functions that recurrent operators name in attributes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace tenon::ops {

struct RecurrentActivation {
  // x[i] = f(x[i]) for i < n.
  void (*in_float)(float* x, int64_t n, float alpha, float beta);
  void (*in_double)(double* x, int64_t n, float alpha, float beta);
  float alpha = 0, beta = 0;

  void operator()(float* x, int64_t n) const { in_float(x, n, alpha, beta); }
  void operator()(double* x, int64_t n) const { in_double(x, n, alpha, beta); }
};

// The functions a node names, `defaults` once per direction when it names none. activation_alpha and activation_beta
// are used up in order by the functions that take them.
std::vector<RecurrentActivation> recurrent_activations(const ir::Node& node, int64_t directions,
                                                       const std::vector<std::string>& defaults);

}  // namespace tenon::ops
