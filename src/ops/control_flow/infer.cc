#include <algorithm>

#include "ops/control_flow/control_flow.h"

namespace tenon::ops {

ir::Type join(const ir::Type& a, const ir::Type& b) {
  if (!a.known() || a.kind != b.kind) return a.known() ? a : b;
  ir::Type result = a;
  if (a.inner && b.inner) result.inner = std::make_shared<const ir::Type>(join(*a.inner, *b.inner));
  if (!a.shape || !b.shape || a.shape->size() != b.shape->size()) {
    result.shape.reset();
    return result;
  }
  for (size_t axis = 0; axis < a.shape->size(); ++axis) {
    if (!((*a.shape)[axis] == (*b.shape)[axis])) (*result.shape)[axis] = Dim::unknown();
  }
  return result;
}

namespace {

Fact fact_of(ir::Type type) {
  Fact fact;
  fact.type = std::move(type);
  return fact;
}

// The outputs of a branch. Shapes that do not fit are no error as long as nothing says that the branch will run: models
// ask for a shape and have a branch for each.
std::optional<std::vector<Fact>> infer_branch(Inference& i, const char* name, bool surely_runs) {
  try {
    return i.infer_subgraph(name, {});
  } catch (const Error& error) {
    bool may_never_happen = error.code() == ErrorCode::shape_mismatch || error.code() == ErrorCode::invalid_attribute ||
                            error.code() == ErrorCode::invalid_value;
    if (surely_runs || !may_never_happen) throw;
    return std::vector<Fact>();
  }
}

// Whether everything `general` says about shapes holds for `special` too.
bool covers(const ir::Type& general, const ir::Type& special) {
  if (general.shape && !(general.shape == special.shape)) return false;
  return !general.inner || !special.inner || covers(*general.inner, *special.inner);
}

ir::Type without_shapes(ir::Type type) {
  type.shape.reset();
  if (type.inner) type.inner = std::make_shared<const ir::Type>(without_shapes(*type.inner));
  return type;
}

// A value that a loop carries from round to round.
struct Carried {
  ir::Type type;
  std::vector<bool> varies;           // axes whose size is a new unknown, as rounds change it
  std::optional<ir::Type> unwrapped;  // what the body makes of an optional

  // Gives up what a round does not keep; says whether it had to.
  bool widen(const ir::Type& after) {
    if (!type.known()) {
      type = without_shapes(after);
      return after.known();
    }
    if (!type.shape) {
      if (covers(type, after)) return false;
      type = without_shapes(type);
      return true;
    }
    if (!after.shape || after.shape->size() != type.shape->size()) {
      type.shape.reset();
      return true;
    }
    varies.resize(type.shape->size());
    bool changed = false;
    for (size_t axis = 0; axis < varies.size(); ++axis) {
      Dim& dim = (*type.shape)[axis];
      if (varies[axis] || dim == (*after.shape)[axis]) continue;
      dim = Dim::unknown();
      varies[axis] = changed = true;
    }
    return changed;
  }
};

// Infers the body until the carried values hold for every round. `first` and `last` are what the body takes before and
// after them, `results_before` what it gives before them. Ends, as each round gives up an axis or a shape.
std::optional<std::vector<Fact>> infer_body(Inference& i, std::span<const Fact> first, std::vector<Carried>& carried,
                                            std::span<const Fact> last, size_t results_before) {
  const ir::Graph* body = i.node().graph_attribute("body");
  size_t count = first.size() + carried.size() + last.size();
  if (body && body->inputs().size() != count) {
    i.fail_with(ErrorCode::invalid_model,
                fmt::format("the body takes {} inputs, the node gives it {}", body->inputs().size(), count));
  }
  for (bool changed = true; changed;) {
    std::vector<Fact> inputs(first.begin(), first.end());
    for (const Carried& value : carried) inputs.push_back(fact_of(value.type));
    inputs.insert(inputs.end(), last.begin(), last.end());
    auto results = i.infer_subgraph("body", inputs);
    if (!results) return std::nullopt;
    if (results->size() < results_before + carried.size() || results->size() - results_before < i.output_count()) {
      i.fail_with(ErrorCode::invalid_model,
                  fmt::format("the body has {} outputs, too few for {} carried values and {} outputs of the node",
                              results->size(), carried.size(), i.output_count()));
    }
    changed = false;
    for (size_t k = 0; k < carried.size(); ++k) {
      const ir::Type &before = carried[k].type, &after = (*results)[results_before + k].type;
      // A body may take an optional in the first round and give what it holds to the next.
      bool unwraps = before.kind == ir::Type::Kind::optional && before.inner && ir::same_kind(*before.inner, after);
      carried[k].unwrapped = unwraps && after.known() ? std::optional(without_shapes(after)) : std::nullopt;
      if (unwraps) continue;
      if (!ir::same_kind(before, after)) {
        i.fail_with(ErrorCode::type_mismatch, fmt::format("carried value {} is {}, the body makes it {}", k,
                                                          before.to_string(), after.to_string()));
      }
      if (carried[k].widen(after)) changed = true;
    }
    if (!changed) return results;
  }
  return std::nullopt;
}

}  // namespace

void infer_if(Inference& i) {
  auto condition = i.values(0);
  std::optional<bool> known;
  if (condition && condition->size() == 1 && (*condition)[0].is_known()) known = (*condition)[0].value() != 0;
  auto then_facts = infer_branch(i, "then_branch", known.value_or(false));
  auto else_facts = infer_branch(i, "else_branch", !known.value_or(true));
  if (!then_facts || !else_facts) return;
  for (const auto* facts : {&*then_facts, &*else_facts}) {
    if (!facts->empty() && facts->size() != i.output_count()) {
      i.fail_with(ErrorCode::invalid_model,
                  fmt::format("a branch has {} outputs, the node {}", facts->size(), i.output_count()));
    }
  }
  for (size_t k = 0; k < i.output_count(); ++k) {
    if (known) {
      const auto& taken = *known ? *then_facts : *else_facts;
      if (taken.empty()) i.fail_with(ErrorCode::invalid_model, "the branch that runs has no outputs");
      i.output(k, taken[k]);
      continue;
    }
    if (then_facts->empty() || else_facts->empty()) {
      const auto& inferred = then_facts->empty() ? *else_facts : *then_facts;
      if (inferred.empty()) continue;
      ir::Type type = inferred[k].type;
      type.shape.reset();
      i.output(k, std::move(type));
      continue;
    }
    const Fact &a = (*then_facts)[k], &b = (*else_facts)[k];
    if (!ir::same_kind(a.type, b.type)) {
      i.fail_with(ErrorCode::type_mismatch, fmt::format("output {} is {} in one branch and {} in the other", k,
                                                        a.type.to_string(), b.type.to_string()));
    }
    Fact joined = fact_of(join(a.type, b.type));
    if (a.values && b.values && *a.values == *b.values) joined.values = a.values;
    i.output(k, std::move(joined));
  }
}

void infer_loop(Inference& i) {
  std::vector<Carried> carried;
  for (size_t k = 2; k < i.input_count(); ++k) {
    if (!i.has_input(k)) i.fail_with(ErrorCode::invalid_model, fmt::format("input {} is left out", k));
    carried.push_back({i.type(k), {}, {}});
  }
  Fact first[2] = {fact_of(ir::Type::tensor(ElementType::int64, SymbolicShape{})),
                   fact_of(ir::Type::tensor(ElementType::boolean, SymbolicShape{}))};
  first[1].values = SymbolicValues{Dim(1)};  // the body runs only while the condition holds
  auto results = infer_body(i, first, carried, {}, 1);
  if (!results) return;

  // The trip count is the length of what the body collects, unless the condition may end the loop before.
  auto is_true = [](const Fact& fact) {
    if (fact.values) return fact.values->size() == 1 && (*fact.values)[0].is(1);
    return fact.constant && fact.constant->type() == ElementType::boolean && fact.constant->elements() == 1 &&
           fact.constant->data<bool>()[0];
  };
  bool never_stops = !i.has_input(1) || (is_true(i.fact(1)) && is_true((*results)[0]));
  auto trips = i.values(0);
  Dim length = Dim::unknown();
  if (never_stops && trips && trips->size() == 1)
    length = (*trips)[0].is_known() ? Dim(std::max<int64_t>(0, (*trips)[0].value())) : (*trips)[0];

  for (size_t k = 0; k < i.output_count(); ++k) {
    if (k < carried.size()) {
      i.output(k, carried[k].unwrapped.value_or(carried[k].type));
      continue;
    }
    ir::Type type = (*results)[1 + k].type;
    if (type.shape) type.shape->insert(type.shape->begin(), length);
    i.output(k, std::move(type));
  }
}

void infer_scan(Inference& i) {
  int64_t scan_count = i.node().int_attribute("num_scan_inputs", 0);
  if (scan_count < 1 || scan_count > static_cast<int64_t>(i.input_count())) {
    i.fail_with(ErrorCode::invalid_attribute,
                fmt::format("num_scan_inputs is {}, the node has {} inputs", scan_count, i.input_count()));
  }
  auto scans = static_cast<size_t>(scan_count), states = i.input_count() - scans;
  for (size_t k = 0; k < i.input_count(); ++k) {
    if (!i.has_input(k)) i.fail_with(ErrorCode::invalid_model, fmt::format("input {} is left out", k));
  }
  auto list_of = [&](const char* name, size_t wanted) {
    std::vector<int64_t> list = i.node().ints_attribute(name);
    if (!list.empty() && list.size() != wanted) {
      i.fail_with(ErrorCode::invalid_attribute,
                  fmt::format("{} has {} elements, {} are needed", name, list.size(), wanted));
    }
    list.resize(wanted);
    return list;
  };
  std::vector<int64_t> axes = list_of("scan_input_axes", scans);
  list_of("scan_input_directions", scans);
  std::vector<Carried> carried;
  std::vector<Fact> slices;
  for (size_t k = 0; k < states; ++k) carried.push_back({i.type(k), {}, {}});
  Dim length = Dim::unknown();
  for (size_t k = 0; k < scans; ++k) {
    ir::Type type = i.type(states + k);
    if (type.shape) {
      int axis = i.axis(axes[k], static_cast<int>(type.shape->size()));
      length = i.equal(length, (*type.shape)[static_cast<size_t>(axis)], "the lengths of the scan inputs");
      type.shape->erase(type.shape->begin() + axis);
    }
    slices.push_back(fact_of(std::move(type)));
  }
  auto results = infer_body(i, {}, carried, slices, 0);
  if (!results) return;
  size_t outputs = results->size() - states;
  std::vector<int64_t> output_axes = list_of("scan_output_axes", outputs);
  list_of("scan_output_directions", outputs);
  for (size_t k = 0; k < i.output_count(); ++k) {
    if (k < states) {
      i.output(k, carried[k].unwrapped.value_or(carried[k].type));
      continue;
    }
    ir::Type type = (*results)[k].type;
    if (type.shape) {
      int axis = i.axis(output_axes[k - states], static_cast<int>(type.shape->size()) + 1);
      type.shape->insert(type.shape->begin() + axis, length);
    }
    i.output(k, std::move(type));
  }
}

}  // namespace tenon::ops
