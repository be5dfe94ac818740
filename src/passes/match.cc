#include "passes/match.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/dispatch.h"

namespace tenon::passes {

struct Pattern::Shape {
  enum class Kind : uint8_t { any, constant, maybe, number, op, either } kind = Kind::any;
  double number = 0;
  std::string op_type;
  std::vector<Pattern> inputs;  // of an op; the choices of an either
  std::vector<std::function<bool(Editor&, const ir::Value&)>> conditions;
};

namespace {

bool is_commutative(std::string_view op) {
  constexpr std::array ops = {"Add", "Mul", "Max", "Min", "Sum", "And", "Or", "Xor", "Equal"};
  return std::ranges::find(ops, op) != ops.end();
}

bool is_elementwise(std::string_view op) { return is_commutative(op) || op == "Sub" || op == "Div" || op == "Pow"; }

// The number rounded to the precision that a constant of this type has.
double rounded(double number, ElementType type) {
  switch (type) {
    case ElementType::float32:
      return static_cast<float>(number);
    case ElementType::float16:
      return static_cast<float>(float16(static_cast<float>(number)));
    case ElementType::bfloat16:
      return static_cast<float>(bfloat16(static_cast<float>(number)));
    default:
      return number;
  }
}

// The weights of models are written with few digits, or computed in one type and stored in another.
bool is_near(double value, double wanted, ElementType type) {
  wanted = rounded(wanted, type);
  const double relative = type == ElementType::float16 ? 2e-3 : type == ElementType::bfloat16 ? 1e-2 : 1e-5;
  return std::abs(value - wanted) <= relative * std::abs(wanted);
}

}  // namespace

Pattern::Pattern(double number) {
  auto shape = std::make_shared<Shape>();
  shape->kind = Shape::Kind::number;
  shape->number = number;
  shape_ = std::move(shape);
}

Pattern Pattern::where(std::function<bool(Editor&, const ir::Value&)> holds) const {
  auto shape = std::make_shared<Shape>(*shape_);
  shape->conditions.push_back(std::move(holds));
  return Pattern(std::move(shape));
}

Pattern Pattern::with(std::string_view attribute, int64_t value, int64_t otherwise) const {
  return where([=, attribute = std::string(attribute)](Editor&, const ir::Value& found) {
    return found.producer() && found.producer()->int_attribute(attribute, otherwise) == value;
  });
}

Pattern any() { return Pattern(std::make_shared<Pattern::Shape>()); }

Pattern constant() {
  auto shape = std::make_shared<Pattern::Shape>();
  shape->kind = Pattern::Shape::Kind::constant;
  return Pattern(std::move(shape));
}

Pattern maybe() {
  auto shape = std::make_shared<Pattern::Shape>();
  shape->kind = Pattern::Shape::Kind::maybe;
  return Pattern(std::move(shape));
}

Pattern op(std::string op_type, std::vector<Pattern> inputs) {
  auto shape = std::make_shared<Pattern::Shape>();
  shape->kind = Pattern::Shape::Kind::op;
  shape->op_type = std::move(op_type);
  shape->inputs = std::move(inputs);
  return Pattern(std::move(shape));
}

Pattern either(Pattern first, Pattern second) {
  auto shape = std::make_shared<Pattern::Shape>();
  shape->kind = Pattern::Shape::Kind::either;
  shape->inputs = {std::move(first), std::move(second)};
  return Pattern(std::move(shape));
}

// Solves a list of goals, each a pattern and the value it has to stand for, with backtracking.
class Matcher {
 public:
  Matcher(Editor& editor, Match& match, ir::Value& root) : editor_(editor), match_(match), root_(root) {}

  bool run(const Pattern& pattern) {
    goals_.push_back({pattern.shape_.get(), &root_});
    return solve(0);
  }

 private:
  using Shape = Pattern::Shape;
  struct Goal {
    const Shape* pattern;
    ir::Value* value;
  };

  bool solve(size_t next) {
    if (next == goals_.size()) return nothing_else_depends();
    const auto [pattern, value] = goals_[next];
    for (const auto& [bound, to] : match_.bindings_) {
      if (bound == pattern) return to == value && solve(next + 1);
    }
    const size_t bound = match_.bindings_.size();
    match_.bindings_.emplace_back(pattern, value);
    if (accepts(*pattern, value) && expand(*pattern, value, next)) return true;
    match_.bindings_.resize(bound);
    return false;
  }

  bool accepts(const Shape& pattern, const ir::Value* value) {
    if (!value) return pattern.kind == Shape::Kind::maybe;
    if (pattern.kind == Shape::Kind::constant && !Editor::constant(value)) return false;
    if (pattern.kind == Shape::Kind::number) {
      auto number = uniform_constant(value);
      if (!number || value->constant()->tensor.elements() != 1) return false;
      if (!is_near(*number, pattern.number, value->constant()->tensor.type())) return false;
    }
    if (pattern.kind == Shape::Kind::op) {
      const ir::Node* node = producer(value, pattern.op_type);
      if (!node || node->output(0) != value || node->input_count() > pattern.inputs.size()) return false;
      for (size_t i = 1; i < node->output_count(); ++i) {
        if (node->output(i)) return false;
      }
    }
    return std::ranges::all_of(pattern.conditions, [&](const auto& holds) { return holds(editor_, *value); });
  }

  // Adds the goals that follow from a pattern, in one order after the other, and solves the rest.
  bool expand(const Shape& pattern, ir::Value* value, size_t next) {
    const size_t count = goals_.size();
    auto attempt = [&](auto add_goals) {
      add_goals();
      bool solved = solve(next + 1);
      goals_.resize(count);
      return solved;
    };
    if (pattern.kind == Shape::Kind::either) {
      return std::ranges::any_of(pattern.inputs, [&](const Pattern& choice) {
        return attempt([&] { goals_.push_back({choice.shape_.get(), value}); });
      });
    }
    if (pattern.kind != Shape::Kind::op) return solve(next + 1);
    const ir::Node& node = *value->producer();
    if (!numbers_keep_shape(node)) return false;
    bool in_order = attempt([&] {
      for (size_t i = 0; i < pattern.inputs.size(); ++i)
        goals_.push_back({pattern.inputs[i].shape_.get(), node.input(i)});
    });
    if (in_order || pattern.inputs.size() != 2 || !is_commutative(pattern.op_type)) return in_order;
    return attempt([&] {
      goals_.push_back({pattern.inputs[0].shape_.get(), node.input(1)});
      goals_.push_back({pattern.inputs[1].shape_.get(), node.input(0)});
    });
  }

  // A constant of one element with more axes than the other input would add axes to it.
  bool numbers_keep_shape(const ir::Node& node) {
    if (node.input_count() != 2 || !is_elementwise(node.op_type)) return true;
    for (size_t i = 0; i < 2; ++i) {
      const Tensor* number = Editor::constant(node.input(i));
      if (number && number->elements() == 1 && number->rank() > std::max(0, editor_.rank(node.input(1 - i))))
        return false;
    }
    return true;
  }

  bool nothing_else_depends() {
    auto is_inside = [&](const ir::Node* node) {
      return std::ranges::any_of(match_.bindings_, [&](const auto& binding) {
        return static_cast<const Shape*>(binding.first)->kind == Shape::Kind::op && binding.second->producer() == node;
      });
    };
    return std::ranges::all_of(match_.bindings_, [&](const auto& binding) {
      const ir::Value* value = binding.second;
      if (static_cast<const Shape*>(binding.first)->kind != Shape::Kind::op || value == &root_) return true;
      return !editor_.is_pinned(*value) && std::ranges::all_of(value->users(), is_inside);
    });
  }

  Editor& editor_;
  Match& match_;
  ir::Value& root_;
  std::vector<Goal> goals_;
};

ir::Value* Match::operator[](const Pattern& part) const {
  for (const auto& [bound, value] : bindings_) {
    if (bound == part.shape_.get()) return value;
  }
  return nullptr;
}

Match match(Editor& editor, const Pattern& pattern, ir::Node& node) {
  Match result;
  if (node.output(0)) result.found_ = Matcher(editor, result, *node.output(0)).run(pattern);
  return result;
}

std::optional<double> uniform_constant(const ir::Value* value) {
  const Tensor* tensor = Editor::constant(value);
  constexpr int64_t most = 1024;
  if (!tensor || tensor->elements() < 1 || tensor->elements() > most) return std::nullopt;
  if (!ops::types::numbers.contains(tensor->type())) return std::nullopt;
  std::optional<double> result;
  ops::dispatch<float, double, float16, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
                uint64_t>(tensor->type(), [&]<typename T>() {
    auto items = tensor->data<T>();
    auto number = [](T item) {
      if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
        return static_cast<double>(static_cast<float>(item));
      else
        return static_cast<double>(item);
    };
    if (std::ranges::all_of(items, [&](T item) { return number(item) == number(items[0]); })) result = number(items[0]);
  });
  return result;
}

ir::Node* producer(const ir::Value* value, std::string_view op_type) {
  ir::Node* node = value ? value->producer() : nullptr;
  return node && node->op_type == op_type && node->domain.empty() ? node : nullptr;
}

ir::Node* sole_producer(Editor& editor, const ir::Value* value, std::string_view op_type) {
  ir::Node* node = producer(value, op_type);
  return node && editor.is_only_user(*value) ? node : nullptr;
}

}  // namespace tenon::passes
