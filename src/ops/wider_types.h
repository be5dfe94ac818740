#pragma once

#include <span>

#include "tenon/element_type.h"

namespace tenon::ops {

class Operator;

// Types in which the operator computes the same as in `type` when its inputs are cast to them and its results back, the
// nearest first: every integer type holds the smaller ones, and computing in float32 rounds a float16 no more than
// once.
std::span<const ElementType> wider_types(const Operator& op, ElementType type);

}  // namespace tenon::ops
