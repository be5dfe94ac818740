#include "tools/batch_edit.h"

#include <algorithm>

namespace tenon::tools {
namespace {

using Kind = BatchEdit::Kind;
using From = ShapeEntry::From;

// Adds nodes before another one.
class Writer {
 public:
  Writer(ir::Graph& graph, ir::Node* before, std::string hint)
      : graph_(graph), before_(before), hint_(std::move(hint)) {}

  ir::Value* add(const std::string& op, const std::vector<ir::Value*>& inputs, ir::Attribute attribute = {}) {
    ir::Node& node = graph_.add_node(op, "", before_);
    for (ir::Value* input : inputs) node.add_input(input);
    ir::Value& output = graph_.add_value(hint_, /*fresh=*/true);
    node.add_output(&output);
    if (!attribute.name.empty()) node.attributes.push_back(std::move(attribute));
    node.name = output.name;
    // The change is no node of the file: only what it changes is.
    node.origin = nullptr;
    return &output;
  }
  ir::Value* constant(Tensor tensor) { return add("Constant", {}, {"value", std::move(tensor)}); }
  ir::Value* ints(std::span<const int64_t> values) {
    return constant(Tensor(Shape{static_cast<int64_t>(values.size())}, values));
  }

 private:
  ir::Graph& graph_;
  ir::Node* before_;
  std::string hint_;
};

ir::Value& input_of(const SizeSource& source) {
  return **std::ranges::find(source.graph.inputs(), source.input, &ir::Value::name);
}

// The size as a tensor of one element, made at the start of the main graph when it is first needed.
ir::Value* size_value(const SizeSource& source) {
  const std::string hint = source.input + "/rows";
  for (ir::Node& node : source.graph.nodes()) {
    if (node.op_type == "Gather" && node.output(0) && node.output(0)->name.starts_with(hint)) return node.output(0);
  }
  Writer writer(source.graph, &source.graph.nodes().front(), hint);
  const int64_t axis[] = {static_cast<int64_t>(source.axis)};
  ir::Value* shape = writer.add("Shape", {&input_of(source)});
  return writer.add("Gather", {shape, writer.ints(axis)}, {"axis", int64_t{0}});
}

// A tensor of the entries; `old` is what they refer to.
ir::Value* shape_value(Writer& writer, const std::vector<ShapeEntry>& entries, ir::Value* old,
                       const SizeSource& source) {
  std::vector<ir::Value*> parts;
  for (size_t at = 0; at < entries.size();) {
    const From from = entries[at].from;
    std::vector<int64_t> run;
    while (at < entries.size() && entries[at].from == from && (from != From::size || run.empty()))
      run.push_back(entries[at++].n);
    if (from == From::number)
      parts.push_back(writer.ints(run));
    else if (from == From::old)
      parts.push_back(writer.add("Gather", {old, writer.ints(run)}, {"axis", int64_t{0}}));
    else
      parts.push_back(run[0] == 1 ? size_value(source) : writer.add("Mul", {size_value(source), writer.ints(run)}));
  }
  return parts.size() == 1 ? parts[0] : writer.add("Concat", parts, {"axis", int64_t{0}});
}

std::vector<int64_t> moved(int64_t rank, int64_t from, int64_t to) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < rank; ++i) {
    if (i != from) order.push_back(i);
  }
  order.insert(order.begin() + to, from);
  return order;
}

// The node becomes Reshape, with Transpose before and after where rows are not in front.
void make_reshape(const BatchEdit& edit, ir::Node& node, const SizeSource& source) {
  ir::Value *data = node.input(0), *result = node.output(0);
  Writer writer(node.graph(), &node, result->name);
  ir::Value* shape = shape_value(writer, edit.entries, node.input(1), source);
  const auto position = static_cast<int64_t>(edit.position);
  if (edit.rows_axis > 0) data = writer.add("Transpose", {data}, {"perm", moved(edit.rank, edit.rows_axis, 0)});
  if (edit.rows_axis >= 0 && position > 0) {
    ir::Value* reshaped = writer.add("Reshape", {data, shape});
    node.op_type = "Transpose";
    node.attributes.clear();
    node.attributes.emplace_back("perm", moved(edit.result_rank, 0, position));
    node.remove_trailing_inputs(0);
    node.add_input(reshaped);
    return;
  }
  node.op_type = "Reshape";
  node.attributes.clear();
  node.remove_trailing_inputs(0);
  node.add_input(data);
  node.add_input(shape);
}

void gather_in_rows(const BatchEdit& edit, ir::Node& node, const SizeSource& source) {
  Writer writer(node.graph(), &node, node.output(0)->name);
  ir::Value* rows = writer.add("Reshape", {node.input(0), shape_value(writer, edit.rows, nullptr, source)});
  ir::Value *indices = node.input(1), *found = nullptr;
  if (node.op_type == "Gather") {
    found = writer.add("Gather", {rows, indices}, {"axis", int64_t{1}});
  } else {
    std::vector<ShapeEntry> entries(static_cast<size_t>(edit.rank) + 1, {From::number, 1});
    entries[0].from = From::size;
    indices = writer.add("Expand", {indices, shape_value(writer, entries, nullptr, source)});
    found = writer.add("GatherND", {rows, indices}, {"batch_dims", int64_t{1}});
  }
  ir::Value* shape = shape_value(writer, edit.entries, nullptr, source);
  node.op_type = "Reshape";
  node.attributes.clear();
  node.set_input(0, found);
  node.set_input(1, shape);
}

bool is_int32(const ir::Value* value) {
  if (!value) return false;
  if (value->constant()) return value->constant()->tensor.type() == ElementType::int32;
  return value->type.element == ElementType::int32;
}

}  // namespace

void apply_edit(const BatchEdit& edit, ir::Node& node, const SizeSource& source) {
  if (edit.kind == Kind::reshape) return make_reshape(edit, node, source);
  if (edit.kind == Kind::gather) return gather_in_rows(edit, node, source);
  ir::Value* old = node.input(edit.input);
  Writer writer(node.graph(), &node, old->name);
  ir::Value* value = nullptr;
  switch (edit.kind) {
    case Kind::shape:
      value = shape_value(writer, edit.entries, old, source);
      break;
    case Kind::reshape:
    case Kind::gather:
      break;
    case Kind::expand: {
      ir::Value* rows = edit.tensor.defined() ? writer.constant(edit.tensor) : old;
      std::vector<ShapeEntry> entries(static_cast<size_t>(edit.rank), {From::number, 1});
      entries[edit.position].from = From::size;
      value = writer.add("Expand", {rows, shape_value(writer, entries, old, source)});
      break;
    }
    case Kind::constant:
      value = writer.constant(edit.tensor);
      break;
    case Kind::count: {
      ir::Value* axis = writer.constant(Tensor::scalar(static_cast<int64_t>(source.axis)));
      value = writer.add("Gather", {writer.add("Shape", {&input_of(source)}), axis}, {"axis", int64_t{0}});
      break;
    }
  }
  if (edit.kind == Kind::shape && is_int32(old))
    value = writer.add("Cast", {value}, {"to", static_cast<int64_t>(ElementType::int32)});
  node.set_input(edit.input, value);
}

}  // namespace tenon::tools
