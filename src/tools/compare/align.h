#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tenon/tensor.h"

namespace tenon::tools {

// What is known of a tensor without looking at its numbers again.
struct Fingerprint {
  ElementType type = ElementType::undefined;
  Shape shape;
  std::string op_type;  // of the node that makes it
  double mean = 0, deviation = 0, least = 0, most = 0;
};

Fingerprint fingerprint(const Tensor& tensor, std::string op_type);

// Pairs of the two lists, in the order of both: those of like numbers first of all, then those of like kind that are at
// like places.
std::vector<std::pair<size_t, size_t>> align(const std::vector<Fingerprint>& a, const std::vector<Fingerprint>& b);

}  // namespace tenon::tools
