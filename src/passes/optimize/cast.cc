#include "passes/match.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

struct Range {
  int integer_bits = 0;  // magnitudes below 2 to this power are exact
  bool negative = false, fractions = false;
  int exponent = 0;  // of the largest float
};

std::optional<Range> range_of(ElementType type) {
  using enum ElementType;
  switch (type) {
    case boolean:
      return Range{1};
    case uint8:
      return Range{8};
    case uint16:
      return Range{16};
    case uint32:
      return Range{32};
    case uint64:
      return Range{64};
    case int8:
      return Range{7, true};
    case int16:
      return Range{15, true};
    case int32:
      return Range{31, true};
    case int64:
      return Range{63, true};
    case float16:
      return Range{11, true, true, 15};
    case bfloat16:
      return Range{8, true, true, 127};
    case float32:
      return Range{24, true, true, 127};
    case float64:
      return Range{53, true, true, 1023};
    default:
      return std::nullopt;
  }
}

// Whether every value of `from` is a value of `to`, so that nothing is lost on the way.
bool is_lossless(ElementType from, ElementType to) {
  if (from == to) return true;
  auto a = range_of(from), b = range_of(to);
  if (!a || !b || to == ElementType::boolean) return false;
  if (a->negative && !b->negative) return false;
  // Of an integer -2^n needs n + 1 bits as an integer, but n as a float.
  if (a->fractions) return b->fractions && a->integer_bits <= b->integer_bits && a->exponent <= b->exponent;
  return a->integer_bits <= b->integer_bits;
}

}  // namespace

void merge_casts(Editor& editor, ir::Node& node) {
  const bool like = node.op_type == "CastLike";
  if ((node.op_type != "Cast" && !like) || !node.domain.empty() || !node.input(0) || !node.output(0)) return;
  ir::Value &input = *node.input(0), &output = *node.output(0);
  const ElementType to = editor.fact(output).type.element;
  const ElementType from = editor.fact(input).type.element;
  if (from == ElementType::undefined || to == ElementType::undefined) return;
  if (from == to && editor.can_replace(output, input)) {
    editor.rewrite(node, [&](Patch& patch) { patch.replace(output, input); });
    return;
  }
  if (like) {
    if (node.attributes.empty())
      editor.rewrite(node, [&](Patch& patch) { patch.replace(node, *patch.add("Cast", {&input}, {{"to", to}})); });
    return;
  }
  const ir::Node* inner = producer(&input, "Cast");
  if (!inner || !inner->input(0)) return;
  ir::Value& source = *inner->input(0);
  const ElementType first = editor.fact(source).type.element;
  if (first == ElementType::undefined || !is_lossless(first, from)) return;
  editor.rewrite(node, [&](Patch& patch) { patch.replace(node, *patch.add_like(node, {&source}).output(0)); });
}

void make_codes_of_halves(Editor& editor, ir::Node& node) {
  using enum ElementType;
  if (!node.domain.empty() || !node.input(0) || !node.output(0)) return;
  const auto type_of = [&](const ir::Value& value) { return editor.fact(value).type.element; };
  if (node.op_type == "QuantizeLinear") {
    const ir::Node* cast = producer(node.input(0), "Cast");
    const bool reads_halves = cast && cast->input(0) && type_of(*cast->input(0)) == float16;
    if (!reads_halves || type_of(*node.input(0)) != float32 || type_of(*node.input(1)) != float32) return;
    editor.rewrite(node, [&](Patch& patch) {
      patch.replace(node, *patch.add_like(node, {cast->input(0), node.input(1), node.input(2)}).output(0));
    });
  } else if (node.op_type == "Cast" && type_of(*node.output(0)) == float16) {
    const ir::Node* dequantize = producer(node.input(0), "DequantizeLinear");
    if (!dequantize || !editor.is_only_user(*node.input(0)) || type_of(*node.input(0)) != float32) return;
    editor.rewrite(node, [&](Patch& patch) {
      const ir::Node& halves =
          patch.add_like(*dequantize, {dequantize->input(0), dequantize->input(1), dequantize->input(2)},
                         {{"output_dtype", static_cast<int64_t>(float16)}});
      patch.replace(node, *halves.output(0));
    });
  }
}

}  // namespace tenon::passes
