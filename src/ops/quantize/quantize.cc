#include "ops/decomposition.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

// Scale and zero point: one for the tensor, one for each index of an axis, or one for each block along that axis.
void check_granularity(const Inference& i) {
  int64_t block = i.node().int_attribute("block_size", 0);
  if (block < 0)
    i.fail_with(ErrorCode::invalid_attribute, fmt::format("block_size is {}; it must not be negative", block));
  if (i.has_shape(1) && i.has_shape(2)) {
    if (i.rank(1) != i.rank(2) && !(element_count(i.shape(1)).is(1) && element_count(i.shape(2)).is(1))) {
      i.fail("scale and zero point must have one shape: {} against {}", to_string(i.shape(1)), to_string(i.shape(2)));
    }
    for (size_t axis = 0; i.rank(1) == i.rank(2) && axis < i.shape(1).size(); ++axis) {
      i.equal(i.shape(1)[axis], i.shape(2)[axis], "the sizes of scale and zero point");
    }
  }
  if (!i.has_shape(0) || !i.has_shape(1)) return;
  const SymbolicShape &x = i.shape(0), &scale = i.shape(1);
  if (scale.empty() || (scale.size() == 1 && scale[0].is(1) && block == 0)) return;
  auto axis = static_cast<size_t>(i.axis(i.node().int_attribute("axis", 1), i.rank(0)));
  if (scale.size() == 1 && block == 0) {
    i.equal(x[axis], scale[0], fmt::format("axis {} of x and the size of scale", axis));
    return;
  }
  if (block == 0) i.fail("a scale of rank {} needs the attribute block_size", scale.size());
  if (scale.size() != x.size())
    i.fail("the scale of blocks must have the rank of x, {}; it has rank {}", x.size(), scale.size());
  for (size_t a = 0; a < x.size(); ++a) {
    i.equal(a == axis ? ceil_div(x[a], block) : x[a], scale[a],
            fmt::format("the blocks on axis {} and the size of scale", a));
  }
}

ElementType type_attribute(const Inference& i, const char* name, ElementType otherwise, TypeSet allowed) {
  if (i.node().int_attribute(name, 0) == 0) return otherwise;
  ElementType type = i.element_attribute(name);
  if (!allowed.contains(type)) {
    i.fail_with(ErrorCode::invalid_attribute,
                fmt::format("{} is {}; it may be {}", name, name_of(type), allowed.to_string()));
  }
  return type;
}

using enum ElementType;
constexpr TypeSet quantized{int8,  uint8, int16,      uint16, float8e4m3fn, float8e4m3fnuz, float8e5m2, float8e5m2fnuz,
                            uint4, int4,  float4e2m1, uint2,  int2,         float6e2m3,     float6e3m2};
constexpr TypeSet outputs_of_dequantize{float32, float16, bfloat16};

void infer_quantize(Inference& i) {
  check_granularity(i);
  type_attribute(i, "precision", float32, outputs_of_dequantize);
  ElementType zero_type = i.has_input(2) ? i.element(2) : uint8;
  ElementType type = type_attribute(i, "output_dtype", zero_type, quantized);
  if (i.has_input(2) && type != zero_type) {
    i.fail_with(ErrorCode::type_mismatch,
                fmt::format("output_dtype is {} and the zero point is {}", name_of(type), name_of(zero_type)));
  }
  i.output(0, type, i.type(0).shape);
}

void infer_dequantize(Inference& i) {
  check_granularity(i);
  ElementType otherwise = i.element(1) == float8e8m0 ? float32 : i.element(1);
  i.output(0, type_attribute(i, "output_dtype", otherwise, outputs_of_dequantize), i.type(0).shape);
}

void infer_dynamic_quantize(Inference& i) {
  i.output(0, uint8, i.type(0).shape);
  i.output(1, float32, SymbolicShape{});
  i.output(2, uint8, SymbolicShape{});
}

// The range of the data, zero included, in 256 steps.
void decompose_dynamic_quantize(Decomposition& d) {
  Term x = d.input(0);
  Term low = min(reduce("ReduceMin", x, {}, /*keep=*/false), 0),
       high = max(reduce("ReduceMax", x, {}, /*keep=*/false), 0);
  Term scale = where(equal(low, high), 1.0 / 255, (high - low) / 255);
  Term zero = cast(d.add("Round", {max(min(-low / scale, 255), 0)}), uint8);
  d.output(0, d.add("QuantizeLinear", {x, scale, zero}, {}, uint8));
  d.output(1, scale);
  d.output(2, zero);
}

std::string one_scale(ir::Node& node) {
  const ir::Value* scale = node.input(1);
  const bool is_scalar = scale && scale->type.shape && scale->type.shape->empty();
  return is_scalar ? "" : "before version 13 all elements had one scale";
}

}  // namespace

void define_quantize(OperatorList& list) {
  list.add("QuantizeLinear", {10, 13, 19, 21, 23, 24, 25, 28})
      .input("x", "T1")
      .input("y_scale", "T2")
      .optional_input("y_zero_point", "T3")
      .output("y", "T3")
      .types("T1", {float32, float16, bfloat16, int32})
      .types("T2", {float32, float16, bfloat16, int32, float8e8m0})
      .types("T3", quantized)
      .attribute("axis", AttributeKind::int_)
      .attribute("block_size", AttributeKind::int_)
      .attribute("output_dtype", AttributeKind::int_)
      .attribute("precision", AttributeKind::int_)
      .attribute("saturate", AttributeKind::int_)
      .infer(infer_quantize)
      .lower(13, 10, one_scale)
      .attribute_since(13, "axis", 1)
      .attribute_since(19, "saturate", 1)
      .attribute_since(21, "block_size", 0)
      .attribute_since(21, "output_dtype", 0)
      .attribute_since(23, "precision", 0);
  list.add("DequantizeLinear", {10, 13, 19, 21, 23, 24, 25, 28})
      .input("x", "T1")
      .input("x_scale", "T2")
      .optional_input("x_zero_point", "T1")
      .output("y", "T3")
      .types("T1", quantized | TypeSet{int32})
      .types("T2", outputs_of_dequantize | TypeSet{float8e8m0})
      .types("T3", outputs_of_dequantize)
      .attribute("axis", AttributeKind::int_)
      .attribute("block_size", AttributeKind::int_)
      .attribute("output_dtype", AttributeKind::int_)
      .infer(infer_dequantize)
      .lower(13, 10, one_scale)
      .attribute_since(13, "axis", 1)
      .attribute_since(21, "block_size", 0)
      .attribute_since(23, "output_dtype", 0);
  list.add("DynamicQuantizeLinear", {11})
      .input("x", TypeSet{float32})
      .output("y", "T2")
      .output("y_scale", TypeSet{float32})
      .output("y_zero_point", "T2")
      .types("T2", {uint8})
      .infer(infer_dynamic_quantize)
      .decompose(decompose_dynamic_quantize);
}

}  // namespace tenon::ops
