#include "tools/batch_rules.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/fail.h"
#include "tools/graph_edit.h"

namespace tenon::tools {

bool FreedSize::occurs_in(const Dim& dim) const {
  bool occurs = false;
  dim.evaluate([&](const std::string& name) -> std::optional<int64_t> {
    occurs |= name == size.symbol_name();
    return 1;
  });
  return occurs;
}

bool FreedSize::replaces(const Dim& before, const Dim& now) const {
  return occurs_in(now) && now * Dim(old_size) == before * size;
}

Dim FreedSize::freed(const Dim& before) const { return exact_div(before * size, old_size); }

std::optional<size_t> FreedSize::axis(const SymbolicShape& before, const SymbolicShape& now) const {
  std::optional<size_t> found;
  if (before.size() != now.size()) return found;
  for (size_t i = 0; i < now.size(); ++i) {
    if (!occurs_in(now[i])) continue;
    if (found || !replaces(before[i], now[i])) return std::nullopt;
    found = i;
  }
  return found;
}

std::string unique_name(const ir::Value& value) {
  const ir::Node* owner = value.graph().owner();
  return (owner ? owner->describe() + " > " + value.graph().name + " > " : "") + value.name;
}

TypesByName types_of(ir::Graph& graph) {
  TypesByName types;
  for_each_graph(graph, [&](const ir::Graph& inner) {
    for (const ir::Value& value : inner.values()) types[unique_name(value)] = value.type;
  });
  return types;
}

namespace {

using Kind = BatchEdit::Kind;
using Ints = std::vector<int64_t>;
using From = ShapeEntry::From;

std::vector<ShapeEntry> numbers(const Ints& values) {
  std::vector<ShapeEntry> entries;
  for (int64_t value : values) entries.push_back({From::number, value});
  return entries;
}

std::string text_of(const Ints& values) { return Shape(values).to_string(); }

// The first of equal rows along an axis; nothing if they differ.
std::optional<Tensor> first_row(const Tensor& tensor, size_t axis) {
  if (tensor.type() == ElementType::string || bits_of(tensor.type()) < 8) return std::nullopt;
  const int at = static_cast<int>(axis);
  const int64_t rows = tensor.dim(at), size = bits_of(tensor.type()) / 8;
  const auto row_bytes = static_cast<size_t>(tensor.shape().elements(at + 1, tensor.rank()) * size);
  Shape shape = tensor.shape();
  shape[at] = 1;
  Tensor row(tensor.type(), shape);
  const auto* from = static_cast<const std::byte*>(tensor.raw());
  auto* to = static_cast<std::byte*>(row.mutable_raw());
  for (int64_t outer = 0; outer < tensor.shape().elements(0, at); ++outer, to += row_bytes) {
    std::memcpy(to, from, row_bytes);
    for (int64_t i = 0; i < rows; ++i, from += row_bytes) {
      if (std::memcmp(to, from, row_bytes) != 0) return std::nullopt;
    }
  }
  return row;
}

Dim product(const SymbolicShape& shape, size_t from, size_t to) {
  Dim result = 1;
  for (size_t i = from; i < to; ++i) result = result * shape[i];
  return result;
}

// Operators whose inputs are broadcast against each other.
constexpr std::string_view broadcasting[] = {"Add",   "Sub",   "Mul",    "Div",         "Pow",        "Mod",
                                             "Min",   "Max",   "Mean",   "Sum",         "And",        "Or",
                                             "Xor",   "Equal", "Less",   "LessOrEqual", "Greater",    "GreaterOrEqual",
                                             "Where", "PRelu", "MatMul", "Clip",        "BitwiseAnd", "BitwiseOr"};

// Whether a value is the number of an iteration, of the loop whose body reads it.
bool is_iteration(const ir::Value* value) {
  constexpr std::string_view same_number[] = {"Unsqueeze", "Squeeze", "Reshape", "Cast", "Identity"};
  while (value && value->producer()) {
    if (std::ranges::find(same_number, value->producer()->op_type) == std::end(same_number)) return false;
    value = value->producer()->input(0);
  }
  if (!value || !value->is_graph_input()) return false;
  const ir::Node* owner = value->graph().owner();
  return owner && owner->op_type == "Loop" && value->graph().inputs().front() == value;
}

class Rules {
 public:
  Rules(const ir::Node& node, const passes::InferenceResult& facts, const TypesByName& before, const FreedSize& size)
      : node_(node), facts_(facts), before_(before), size_(size) {}

  std::optional<BatchFinding> find() const {
    if (!node_.domain.empty()) return std::nullopt;
    const std::string& op = node_.op_type;
    if (op == "Reshape" || op == "Squeeze" || op == "Unsqueeze") return reshape();
    if (op == "Gather" || op == "GatherND") return gather();
    if (op == "Expand") return expand();
    if (op == "Concat") return concat();
    if (op == "Slice") return slice();
    if (op == "Resize") return resize();
    if (op == "LSTM" || op == "GRU" || op == "RNN") return recurrent();
    if (op == "Loop" || op == "Scan") return loop();
    if (op == "GatherElements" || op == "ScatterElements") return elementwise_indices();
    if (std::ranges::find(broadcasting, op) != std::end(broadcasting)) return broadcast();
    return std::nullopt;
  }

 private:
  // Sizes now; null where they are not known.
  const SymbolicShape* now(const ir::Value* value) const {
    if (!value) return nullptr;
    auto found = facts_.facts.find(value);
    return found == facts_.facts.end() || !found->second.type.shape ? nullptr : &*found->second.type.shape;
  }
  const SymbolicShape* was(const ir::Value* value) const {
    if (!value) return nullptr;
    auto found = before_.find(unique_name(*value));
    return found == before_.end() || !found->second.shape ? nullptr : &*found->second.shape;
  }
  const Tensor* content(const ir::Value* value) const {
    if (!value) return nullptr;
    auto found = facts_.facts.find(value);
    return found == facts_.facts.end() ? nullptr : found->second.constant;
  }
  // The integers in an input, if no run changes them.
  std::optional<Ints> ints(size_t input) const {
    if (!node_.input(input)) return std::nullopt;
    auto found = facts_.facts.find(node_.input(input));
    return found == facts_.facts.end() ? std::nullopt : ops::ints_of(found->second);
  }
  std::optional<size_t> grown_axis(const ir::Value* value) const {
    const SymbolicShape *before = was(value), *after = now(value);
    return before && after ? size_.axis(*before, *after) : std::nullopt;
  }
  std::string name_of_input(size_t input) const { return node_.input(input) ? node_.input(input)->name : ""; }

  BatchFinding change(BatchEdit edit) const {
    std::string name = name_of_input(edit.input);
    return {&node_, std::move(edit), std::move(name), ""};
  }
  BatchFinding blocked(size_t input, std::string reason) const {
    return {&node_, std::nullopt, name_of_input(input), std::move(reason)};
  }

  // How a reshaped tensor keeps its rows apart.
  struct Place {
    size_t axis = 0;     // of the result that has the rows, outermost
    bool moves = false;  // the rows are brought to the front first, and from there to `axis`
  };

  static bool same_without(const SymbolicShape& a, size_t skip_a, const SymbolicShape& b, size_t skip_b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0, j = 0; i < a.size() && j < b.size(); ++i, ++j) {
      if (i == skip_a) ++i;
      if (j == skip_b) ++j;
      if (i < a.size() && j < b.size() && !(a[i] == b[j])) return false;
    }
    return true;
  }

  std::optional<Place> place_in(const SymbolicShape& result, size_t axis, const SymbolicShape& data) const {
    const Dim row = exact_div(product(data, axis, data.size()), size_.old_size);
    const auto is_row_start = [&](size_t i) { return product(result, i + 1, result.size()) == row; };
    const auto is_single = [&](size_t i) { return i < result.size() && result[i].is(size_.old_size); };
    if (is_single(axis) && is_row_start(axis)) return Place{axis};
    for (size_t i = 0; i < result.size(); ++i) {
      if (is_single(i) && is_row_start(i)) return Place{i};
    }
    if (size_.old_size != 1) return place_of_many(result, row);
    for (size_t i = 0; i < result.size(); ++i) {
      if (is_single(i) && data[axis].is(1) && same_without(data, axis, result, i)) return Place{i, true};
    }
    if (result.empty()) return std::nullopt;
    if (product(data, 0, axis).is(1)) return Place{0};
    for (size_t i = 0; i < result.size(); ++i) {
      if (is_single(i) && data[axis].is(1)) return Place{i, true};
    }
    // Not in the last axis: what is there is multiplied by weights.
    for (size_t i = 0; i + 1 < result.size(); ++i) {
      if (product(result, i, result.size()) == row) return Place{i};
    }
    return data[axis].is(1) ? std::optional(Place{0, true}) : std::nullopt;
  }

  // An old size above 1 shows in the sizes.
  std::optional<Place> place_of_many(const SymbolicShape& result, const Dim& row) const {
    const auto is_multiple = [&](const Dim& dim) { return dim.is_known() && dim.value() % size_.old_size == 0; };
    for (size_t i = 0; i < result.size(); ++i) {
      if (product(result, i + 1, result.size()) == row && is_multiple(result[i])) return Place{i};
    }
    for (size_t i = 0; i < result.size(); ++i) {
      if (product(result, i, result.size()) == row * Dim(size_.old_size) && is_multiple(result[i])) return Place{i};
    }
    return std::nullopt;
  }

  std::optional<BatchFinding> reshape() const {
    const ir::Value* data = node_.input(0);
    const std::optional<size_t> axis = grown_axis(data);
    const SymbolicShape* result = was(node_.output(0));
    if (!axis || !result) return std::nullopt;
    const std::optional<Place> place = place_in(*result, *axis, *was(data));
    if (!place) return std::nullopt;
    if (!place->moves && is_right(*result, place->axis)) return std::nullopt;
    // A size that the node finds out itself.
    if (!(*result)[place->axis].is_known()) return std::nullopt;
    const std::optional<std::vector<ShapeEntry>> target = target_entries(*result);
    if (!target) return std::nullopt;
    return change(reshape_edit(*target, *result, *place, *axis));
  }

  // Whether the node makes of its new input what it should.
  bool is_right(const SymbolicShape& result, size_t axis) const {
    const SymbolicShape* actual = now(node_.output(0));
    return actual && actual->size() == result.size() && (*actual)[axis] == size_.freed(result[axis]);
  }

  // What the node reshapes to: numbers, or elements of its second input.
  std::optional<std::vector<ShapeEntry>> target_entries(const SymbolicShape& result) const {
    std::vector<ShapeEntry> entries;
    const bool is_reshape = node_.op_type == "Reshape";
    int64_t unknown = 0;
    for (size_t i = 0; i < result.size(); ++i) {
      if (result[i].is_known()) {
        entries.push_back({From::number, result[i].value()});
      } else if (is_reshape && !is_placeholder(i)) {
        entries.push_back({From::old, static_cast<int64_t>(i)});
      } else {
        entries.push_back({From::number, -1});
        ++unknown;
      }
    }
    if (unknown > 1) return std::nullopt;
    return entries;
  }

  // Whether an element of a Reshape's target is 0 or -1: a number that depends on where it stands.
  bool is_placeholder(size_t i) const {
    auto found = facts_.facts.find(node_.input(1));
    const auto values = found == facts_.facts.end() ? std::nullopt : ops::values_of(found->second);
    if (!values || i >= values->size()) return false;
    return (*values)[i].is(0) || (*values)[i].is(-1);
  }

  BatchEdit reshape_edit(std::vector<ShapeEntry> target, const SymbolicShape& result, const Place& place,
                         size_t axis) const {
    BatchEdit edit{.kind = node_.op_type == "Reshape" ? Kind::shape : Kind::reshape, .input = 1};
    edit.position = place.axis;
    edit.rank = static_cast<int64_t>(was(node_.input(0))->size());
    edit.result_rank = static_cast<int64_t>(result.size());
    const std::string before = to_string(result);
    const int64_t factor = result[place.axis].is_known() ? result[place.axis].value() / size_.old_size : 1;
    target[place.axis] = {From::size, factor};
    if (place.moves) {
      edit.kind = Kind::reshape;
      edit.rows_axis = static_cast<int>(axis);
      std::rotate(target.begin(), target.begin() + static_cast<std::ptrdiff_t>(place.axis),
                  target.begin() + static_cast<std::ptrdiff_t>(place.axis) + 1);
    }
    edit.entries = simplest(std::move(target));
    edit.what = fmt::format("{} becomes {}{}", before, shown(edit),
                            place.moves ? fmt::format(", with rows moved from axis {} to {}", axis, place.axis) : "");
    return edit;
  }

  // Indices along the axis with rows, all of which were in the one row: each row is then looked up on its own.
  std::optional<BatchFinding> gather() const {
    const ir::Value *data = node_.input(0), *indices = node_.input(1);
    const SymbolicShape* result = was(node_.output(0));
    const bool in_rows = node_.int_attribute("axis", 0) != 0 || node_.int_attribute("batch_dims", 0) != 0;
    if (size_.old_size != 1 || grown_axis(data) != size_t{0} || in_rows) return std::nullopt;
    if (is_iteration(indices)) return std::nullopt;
    if (node_.op_type == "GatherND" && !(*was(data))[0].is(1)) return std::nullopt;
    const SymbolicShape* index_shape = now(indices);
    if (!result || !index_shape || result->empty()) return std::nullopt;
    if (std::ranges::any_of(*index_shape, [&](const Dim& dim) { return size_.occurs_in(dim); })) return std::nullopt;
    BatchEdit edit{.kind = Kind::gather, .input = 0};
    std::optional<std::vector<ShapeEntry>> rows = entries_of(*was(data), -1), back = entries_of(*result, 0);
    if (!rows || !back) return std::nullopt;
    rows->insert(rows->begin(), {From::size, 1});
    edit.rows = simplest(std::move(*rows));
    edit.entries = simplest(std::move(*back));
    edit.rank = static_cast<int64_t>(index_shape->size());
    edit.what = "indices are looked up in every row";
    return change(std::move(edit));
  }

  // The sizes as a target of Reshape, with that of axis `rows` times the new size; nothing if too little is known.
  static std::optional<std::vector<ShapeEntry>> entries_of(const SymbolicShape& shape, int rows) {
    std::vector<ShapeEntry> entries;
    int unknown = 0;
    for (size_t i = 0; i < shape.size(); ++i) {
      const bool has_rows = static_cast<int>(i) == rows;
      if (has_rows && !shape[i].is_known()) return std::nullopt;
      unknown += !shape[i].is_known();
      entries.push_back({has_rows ? From::size : From::number, shape[i].is_known() ? shape[i].value() : -1});
    }
    return unknown > 1 ? std::nullopt : std::optional(entries);
  }

  // -1 in place of the size, where nothing else is to be found out.
  static std::vector<ShapeEntry> simplest(std::vector<ShapeEntry> entries) {
    const bool has_unknown = std::ranges::any_of(
        entries, [](const ShapeEntry& e) { return e.from == From::old || (e.from == From::number && e.n == -1); });
    if (has_unknown) return entries;
    for (ShapeEntry& entry : entries) {
      if (entry.from == From::size) entry = {From::number, -1};
    }
    return entries;
  }

  std::string shown(const BatchEdit& edit) const {
    std::string text;
    for (const ShapeEntry& entry : edit.entries) {
      text += text.empty() ? "[" : ", ";
      if (entry.from == From::number) text += std::to_string(entry.n);
      if (entry.from == From::old) text += "…";
      if (entry.from == From::size) text += (Dim(entry.n) * size_.size).to_string();
    }
    return text + "]";
  }

  std::optional<BatchFinding> expand() const {
    const SymbolicShape *data = now(node_.input(0)), *before = was(node_.input(0));
    const std::optional<Ints> target = ints(1);
    if (!data || !before || !target || size_.old_size == 1) return std::nullopt;
    const size_t behind = target->size() < data->size() ? 0 : target->size() - data->size();
    for (size_t i = 0; i < data->size(); ++i) {
      if (behind + i >= target->size() || !size_.replaces((*before)[i], (*data)[i])) continue;
      if ((*target)[behind + i] == 1) continue;
      BatchEdit edit{.input = 1, .entries = numbers(*target)};
      edit.entries[behind + i].n = 1;
      edit.what = text_of(*target) + " becomes " + shown(edit);
      return change(std::move(edit));
    }
    return std::nullopt;
  }

  // What must have as many rows along `axis` as others that the node reads, and has the old number.
  std::optional<BatchFinding> needs_rows(size_t input, size_t axis) const {
    const ir::Value* value = node_.input(input);
    const SymbolicShape *before = was(value), *after = now(value);
    if (!before || !after || axis >= after->size() || !(*after)[axis].is(size_.old_size)) return std::nullopt;
    BatchEdit edit{.kind = Kind::expand, .input = input, .position = axis};
    edit.rank = static_cast<int64_t>(after->size());
    edit.what = fmt::format("{} rows along axis {} become {}", size_.old_size, axis, size_.size.to_string());
    if (size_.old_size == 1) return change(std::move(edit));
    const Tensor* tensor = content(value);
    const std::optional<Tensor> row = tensor ? first_row(*tensor, axis) : std::nullopt;
    if (!row) return blocked(input, fmt::format("it holds {} different rows", size_.old_size));
    edit.tensor = *row;
    return change(std::move(edit));
  }

  std::optional<BatchFinding> concat() const {
    std::optional<size_t> axis;
    for (const ir::Value* value : node_.inputs()) {
      const std::optional<size_t> grown = grown_axis(value);
      if (grown && (*was(value))[*grown].is(size_.old_size)) axis = grown;
    }
    if (!axis) return std::nullopt;
    const auto rank = static_cast<int64_t>(now(first_with_shape())->size());
    int64_t along = node_.int_attribute("axis", 0);
    if (along < 0) along += rank;
    if (along == static_cast<int64_t>(*axis)) return std::nullopt;
    for (size_t i = 0; i < node_.input_count(); ++i) {
      if (auto finding = needs_rows(i, *axis)) return finding;
    }
    return std::nullopt;
  }
  const ir::Value* first_with_shape() const {
    for (const ir::Value* value : node_.inputs()) {
      if (now(value)) return value;
    }
    return nullptr;
  }

  std::optional<BatchFinding> slice() const {
    const ir::Value* data = node_.input(0);
    const std::optional<size_t> axis = grown_axis(data);
    const std::optional<Ints> starts = ints(1), ends = ints(2);
    if (!axis || !starts || !ends || starts->size() != ends->size()) return std::nullopt;
    const std::optional<Ints> axes = ints(3), steps = ints(4);
    const auto rank = static_cast<int64_t>(now(data)->size());
    const Dim& before = (*was(data))[*axis];
    for (size_t i = 0; i < ends->size(); ++i) {
      int64_t at = axes ? (*axes)[i] : static_cast<int64_t>(i);
      if (at < 0) at += rank;
      if (at != static_cast<int64_t>(*axis) || (steps && (*steps)[i] != 1)) continue;
      constexpr int64_t all = std::numeric_limits<int32_t>::max();
      if (!before.is_known() || (*starts)[i] != 0 || (*ends)[i] < before.value() || (*ends)[i] >= all) continue;
      BatchEdit edit{.input = 2, .entries = numbers(*ends)};
      edit.entries[i].n = all;
      edit.what = fmt::format("the end {} becomes the end of the axis", (*ends)[i]);
      return change(std::move(edit));
    }
    return std::nullopt;
  }

  std::optional<BatchFinding> resize() const {
    const std::optional<size_t> axis = grown_axis(node_.input(0));
    const std::optional<Ints> sizes = ints(3);
    if (!axis || !sizes || node_.attribute("axes") || *axis >= sizes->size()) return std::nullopt;
    const Dim& before = (*was(node_.input(0)))[*axis];
    if (!before.is((*sizes)[*axis])) return std::nullopt;
    BatchEdit edit{.input = 3, .entries = numbers(*sizes)};
    edit.entries[*axis] = {From::size, (*sizes)[*axis] / size_.old_size};
    edit.what = text_of(*sizes) + " becomes " + shown(edit);
    return change(std::move(edit));
  }

  std::optional<BatchFinding> recurrent() const {
    const bool rows_first = node_.int_attribute("layout", 0) == 1;
    const size_t axis = rows_first ? 0 : 1;
    if (grown_axis(node_.input(0)) != axis) return std::nullopt;
    for (size_t input : {5, 6}) {
      if (auto finding = needs_rows(input, axis)) return finding;
    }
    return needs_rows(4, 0);
  }

  // A state that starts with the old number of rows and has the new one after an iteration.
  std::optional<BatchFinding> loop() const {
    const ir::Graph* body = node_.graph_attribute("body");
    if (!body) return std::nullopt;
    const bool is_loop = node_.op_type == "Loop";
    if (is_loop && ints(0) == Ints{size_.old_size} && visits_rows(*body)) {
      BatchEdit edit{.kind = Kind::count, .input = 0};
      edit.what = fmt::format("{} iterations become {}", size_.old_size, size_.size.to_string());
      return change(std::move(edit));
    }
    const size_t first_input = is_loop ? 2 : 0, first_output = is_loop ? 1 : 0;
    const size_t states = is_loop
                              ? node_.input_count() - std::min<size_t>(2, node_.input_count())
                              : node_.input_count() - static_cast<size_t>(node_.int_attribute("num_scan_inputs", 0));
    for (size_t i = 0; i < states && first_output + i < body->outputs().size(); ++i) {
      const ir::Value* end = body->outputs()[first_output + i];
      const SymbolicShape *start = now(node_.input(first_input + i)), *end_before = was(end);
      if (!start || !end_before || start->size() != end_before->size()) continue;
      for (size_t axis = 0; axis < start->size(); ++axis) {
        if (!(*end_before)[axis].is(size_.old_size) || !grows(end, axis)) continue;
        if (auto finding = needs_rows(first_input + i, axis)) return finding;
      }
    }
    return std::nullopt;
  }

  // Whether each iteration reads another row.
  bool visits_rows(const ir::Graph& body) const {
    return std::ranges::any_of(body.nodes(), [&](const ir::Node& inner) {
      if (inner.op_type != "Gather" || !is_iteration(inner.input(1))) return false;
      const std::optional<size_t> axis = grown_axis(inner.input(0));
      int64_t along = inner.int_attribute("axis", 0);
      if (along < 0 && axis) along += static_cast<int64_t>(now(inner.input(0))->size());
      return axis && static_cast<int64_t>(*axis) == along;
    });
  }

  // Whether a size of a body's result is not what it was any more.
  bool grows(const ir::Value* value, size_t axis) const {
    const SymbolicShape* shape = now(value);
    return !shape || axis >= shape->size() || !(*shape)[axis].is_known();
  }

  std::optional<BatchFinding> elementwise_indices() const {
    const std::optional<size_t> axis = grown_axis(node_.input(0));
    if (!axis) return std::nullopt;
    int64_t along = node_.int_attribute("axis", 0);
    if (along < 0) along += static_cast<int64_t>(now(node_.input(0))->size());
    if (along == static_cast<int64_t>(*axis)) return std::nullopt;
    for (size_t i = 1; i < node_.input_count(); ++i) {
      if (auto finding = needs_rows(i, *axis)) return finding;
    }
    return std::nullopt;
  }

  // A constant with as many equal rows as the old size: one of them is broadcast to any number.
  std::optional<BatchFinding> broadcast() const {
    if (size_.old_size == 1) return std::nullopt;
    for (size_t i = 0; i < node_.input_count(); ++i) {
      const Tensor* tensor = content(node_.input(i));
      if (!tensor) continue;
      for (const ir::Value* other : node_.inputs()) {
        const std::optional<size_t> grown = grown_axis(other);
        if (!grown) continue;
        const size_t from_end = now(other)->size() - *grown;
        const auto rank = static_cast<size_t>(tensor->rank());
        if (from_end > rank || tensor->dim(static_cast<int>(rank - from_end)) != size_.old_size) continue;
        const std::optional<Tensor> row = first_row(*tensor, rank - from_end);
        if (!row) return blocked(i, fmt::format("it holds {} different rows", size_.old_size));
        BatchEdit edit{.kind = Kind::constant, .input = i, .tensor = *row};
        edit.what = fmt::format("{} equal rows become one", size_.old_size);
        return change(std::move(edit));
      }
    }
    return std::nullopt;
  }

  const ir::Node& node_;
  const passes::InferenceResult& facts_;
  const TypesByName& before_;
  const FreedSize& size_;
};

}  // namespace

std::optional<BatchFinding> find_baked(ir::Graph& graph, const passes::InferenceResult& facts,
                                       const TypesByName& before, const FreedSize& size) {
  for (const ir::Node& node : graph.nodes()) {
    std::optional<BatchFinding> found = Rules(node, facts, before, size).find();
    for_each_subgraph(node, [&](ir::Graph& subgraph) {
      if (!found) found = find_baked(subgraph, facts, before, size);
    });
    if (found) return found;
  }
  return std::nullopt;
}

}  // namespace tenon::tools
