#include <numeric>

#include "ops/adapters.h"
#include "ops/inference.h"
#include "ops/layout.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

// Sizes of equal parts, the last one smaller where it must be.
SymbolicValues equal_parts(Inference& i, const Dim& size, int64_t count) {
  Dim part = ceil_div(size, Dim(count));
  SymbolicValues parts(static_cast<size_t>(count - 1), part);
  Dim last = size - part * Dim(count - 1);
  if (last.is_known() && last.value() < 0) i.fail("size {} cannot be split into {} parts", size.value(), count);
  parts.push_back(std::move(last));
  return parts;
}

void infer_split(Inference& i) {
  size_t count = i.output_count();
  if (!i.has_shape(0)) {
    for (size_t k = 0; k < count; ++k) i.output(k, i.element(0), std::nullopt);
    return;
  }
  auto axis = static_cast<size_t>(i.axis(i.node().int_attribute("axis", 0), i.rank(0)));
  const Dim& size = i.shape(0)[axis];
  SymbolicValues parts(count, Dim::unknown());
  if (!i.has_input(1)) {
    int64_t wanted = i.node().int_attribute("num_outputs", static_cast<int64_t>(count));
    if (wanted != static_cast<int64_t>(count)) i.fail("num_outputs is {}, the node has {} outputs", wanted, count);
    parts = equal_parts(i, size, wanted);
  } else if (i.node().attribute("num_outputs")) {
    i.fail_with(ErrorCode::invalid_attribute, "both input 'split' and attribute 'num_outputs' are given");
  } else if (auto ints = i.ints(1)) {
    if (ints->size() != count) i.fail("'split' has {} sizes, the node has {} outputs", ints->size(), count);
    int64_t sum = 0;
    for (size_t k = 0; k < count; ++k) {
      int64_t part = (*ints)[k];
      if (part < 0 || part > INT64_MAX - sum) i.fail("part {} has size {}", k, part);
      sum += part;
      parts[k] = Dim(part);
    }
    if (size.is_known() && size.value() != sum)
      i.fail("the parts have {} elements together, axis {} has {}", sum, axis, size.value());
  } else if (auto values = i.values(1); values && values->size() == count) {
    parts = *values;
  }
  auto content = i.rank(0) == 1 ? i.followed_values(0) : std::nullopt;
  size_t at = 0;
  for (size_t k = 0; k < count; ++k) {
    SymbolicShape shape = i.shape(0);
    shape[axis] = parts[k];
    i.output(k, i.element(0), std::move(shape));
    if (!content || !parts[k].is_known() || at + static_cast<size_t>(parts[k].value()) > content->size()) {
      content.reset();
      continue;
    }
    auto first = content->begin() + at;
    at += static_cast<size_t>(parts[k].value());
    i.output_values(k, SymbolicValues(first, content->begin() + at));
  }
}

std::optional<int64_t> find_part(const Layout& layout, size_t output) {
  const Shape& whole = *layout.inputs[0];
  int64_t axis = layout.node.int_attribute("axis", 0), start = 0;
  if (axis < 0) axis += whole.rank();
  for (size_t i = 0; i < output; ++i) {
    if (!layout.outputs[i]) return std::nullopt;
    start += (*layout.outputs[i])[static_cast<int>(axis)];
  }
  return adjacent_part(whole, *layout.outputs[output], static_cast<int>(axis), start);
}

// Version 1 could take the sizes as an input of the data's type, too.
void sizes_of_version_1(ir::Node& node) {
  if (!node.input(1)) return;
  ir::Value& sizes = add_node_before(node, "Cast", {node.input(1)}, "split");
  sizes.producer()->set_attribute(ir::Attribute("to", static_cast<int64_t>(ElementType::int64)));
  node.set_input(1, &sizes);
  node.remove_attribute("split");
}

void sizes_to_input(ir::Node& node) { ints_attribute_to_input(node, "split", 1); }

std::string sizes_to_attribute(ir::Node& node) { return ints_input_to_attribute(node, 1, "split"); }

// Since version 18 either the sizes or their number must be given.
void say_num_outputs(ir::Node& node) {
  if (!node.input(1)) node.set_attribute({"num_outputs", static_cast<int64_t>(node.output_count())});
}

// Without num_outputs the parts are equal, as those of a node that had none are.
std::string drop_num_outputs(ir::Node& node) {
  if (!node.attribute("num_outputs")) return {};
  if (node.origin && node.origin->op_type == "Split" && node.origin->domain.empty() && node.origin->version < 18) {
    node.remove_attribute("num_outputs");
    return {};
  }
  const ir::Value* input = node.input(0);
  if (!input || !input->type.shape) return "the rank of its input is not known";
  auto rank = static_cast<int64_t>(input->type.shape->size());
  int64_t axis = node.int_attribute("axis", 0), parts = node.int_attribute("num_outputs", 1);
  axis = axis < 0 ? axis + rank : axis;
  if (axis < 0 || axis >= rank || parts < 1) return "its attributes are not valid";
  const Dim& size = (*input->type.shape)[static_cast<size_t>(axis)];
  if (!size.is_known() || size.value() % parts != 0)
    return fmt::format("it makes {} parts of {} elements, which may not be equal", parts, size.to_string());
  node.remove_attribute("num_outputs");
  return {};
}

}  // namespace

void define_split(OperatorList& list) {
  list.add("Split", {1, 2, 11, 13, 18})
      .input("input", "T")
      .optional_input("split", TypeSet{ElementType::int64})
      .variadic_output("outputs", "T")
      .types("T", types::movable)
      .attribute("axis", AttributeKind::int_)
      .attribute("num_outputs", AttributeKind::int_)
      .infer(infer_split)
      .views(find_part)
      .lift(1, 2, sizes_of_version_1)
      .lift(2, 13, sizes_to_input)
      .lift(13, 18, say_num_outputs)
      .lower(18, 13, drop_num_outputs)
      .lower(13, 11, sizes_to_attribute)
      .lower(11, 2, axes_from_front);
}

}  // namespace tenon::ops
