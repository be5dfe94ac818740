#include "ops/wider_types.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <vector>

#include "ops/operator.h"

namespace tenon::ops {
namespace {

using enum ElementType;
using Types = std::vector<ElementType>;

// Operators that move elements, compare them or pick some: any type that holds every element does.
constexpr std::array keeps_elements = {
    "ArgMax",
    "ArgMin",
    "Clip",
    "Compress",
    "Concat",
    "DepthToSpace",
    "Equal",
    "Expand",
    "EyeLike",
    "Flatten",
    "Gather",
    "GatherElements",
    "GatherND",
    "Greater",
    "GreaterOrEqual",
    "Identity",
    "IsNaN",
    "Less",
    "LessOrEqual",
    "Max",
    "MaxPool",
    "Min",
    "NonZero",
    "OneHot",
    "Pad",
    "Relu",
    "Reshape",
    "ReverseSequence",
    "Scatter",
    "ScatterElements",
    "ScatterND",
    "Shape",
    "Sign",
    "Size",
    "Slice",
    "SpaceToDepth",
    "Split",
    "Squeeze",
    "Tile",
    "TopK",
    "Transpose",
    "Trilu",
    "Unique",
    "Unsqueeze",
    "Where",
};
// Operators whose results in a wider integer type, cut off to the bits of the narrow one, are those in the narrow one.
constexpr std::array computes_with_integers = {
    "Abs", "Add", "BitShift", "CumSum", "Div",       "Gemm", "MatMul", "Mod",
    "Mul", "Neg", "PRelu",    "Range",  "ReduceSum", "Sub",  "Sum",
};

const std::map<ElementType, Types> holds_elements = {
    {boolean, {uint8, int32, int64, float32}},
    {int8, {int32, int64, float32, float64}},
    {int16, {int32, int64, float32, float64}},
    {int32, {int64, float64}},
    {uint8, {int32, int64, float32, float64}},
    {uint16, {int32, int64, float32, float64}},
    {uint32, {int64, uint64, float64}},
    {float16, {float32, float64}},
    {bfloat16, {float32, float64}},
    {float32, {float64}},
};
const std::map<ElementType, Types> wider_integers = {
    {int8, {int32, int64}},           {int16, {int32, int64}},           {int32, {int64}},
    {uint8, {uint32, uint64, int32}}, {uint16, {uint32, uint64, int32}}, {uint32, {uint64, int64}},
    {float16, {float32, float64}},    {bfloat16, {float32, float64}},
};
const std::map<ElementType, Types> wider_floats = {
    {float16, {float32, float64}},
    {bfloat16, {float32, float64}},
};

template <size_t count>
bool lists(const std::array<const char*, count>& names, const Operator& op) {
  return op.domain.empty() && std::ranges::find(names, std::string_view(op.name)) != names.end();
}

}  // namespace

std::span<const ElementType> wider_types(const Operator& op, ElementType type) {
  const auto& types = lists(keeps_elements, op)           ? holds_elements
                      : lists(computes_with_integers, op) ? wider_integers
                                                          : wider_floats;
  const auto found = types.find(type);
  return found == types.end() ? std::span<const ElementType>() : found->second;
}

}  // namespace tenon::ops
