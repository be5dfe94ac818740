// Patterns of nodes that read like the formula they stand for:
//
//   static const Pattern x = any(), gelu = x * 0.5 * (op("Erf", {x / std::sqrt(2.0)}) + 1);
//   if (Match m = match(editor, gelu, node))
//     editor.rewrite(node, [&](Patch& patch) { patch.replace(node, *patch.add("Gelu", {m[x]})); });
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "passes/editor.h"

namespace tenon::passes {

// A value of the graph that is being looked for. The same pattern in two places stands for the same value. Add, Mul and
// other commutative operators match with their inputs in either order.
class Pattern {
 public:
  // A constant of one element that is this number, as near as its type can say. It has no more axes than what it is
  // combined with, so that it does not change that one's shape.
  Pattern(double number);

  // Only values for which `holds`.
  Pattern where(std::function<bool(Editor&, const ir::Value&)> holds) const;
  // Only outputs of nodes whose attribute is, or is by default, this.
  Pattern with(std::string_view attribute, int64_t value, int64_t otherwise) const;

 private:
  friend class Matcher;
  friend class Match;
  friend Pattern any();
  friend Pattern constant();
  friend Pattern maybe();
  friend Pattern op(std::string op_type, std::vector<Pattern> inputs);
  friend Pattern either(Pattern first, Pattern second);
  friend class Match match(Editor& editor, const Pattern& pattern, ir::Node& node);

  struct Shape;
  explicit Pattern(std::shared_ptr<const Shape> shape) : shape_(std::move(shape)) {}
  std::shared_ptr<const Shape> shape_;
};

// Any value.
Pattern any();
// Any constant.
Pattern constant();
// Any value, or an input that is left out.
Pattern maybe();
// The first output of a node of ai.onnx. The node may have no other outputs and no other inputs than these (which may
// be maybe()), and nothing but the nodes of the pattern may depend on it, unless the whole pattern ends in it.
Pattern op(std::string op_type, std::vector<Pattern> inputs);
Pattern either(Pattern first, Pattern second);

inline Pattern operator+(const Pattern& a, const Pattern& b) { return op("Add", {a, b}); }
inline Pattern operator-(const Pattern& a, const Pattern& b) { return op("Sub", {a, b}); }
inline Pattern operator*(const Pattern& a, const Pattern& b) { return op("Mul", {a, b}); }
inline Pattern operator/(const Pattern& a, const Pattern& b) { return op("Div", {a, b}); }

// What a pattern was found to stand for. False when it was not found.
class Match {
 public:
  explicit operator bool() const { return found_; }
  // The value that a part of the pattern stands for; null for a maybe() that is left out. A part of either() that does
  // not apply is null too.
  ir::Value* operator[](const Pattern& part) const;
  // The node that computes it.
  ir::Node& node(const Pattern& part) const { return *(*this)[part]->producer(); }

 private:
  friend class Matcher;
  friend Match match(Editor& editor, const Pattern& pattern, ir::Node& node);
  bool found_ = false;
  std::vector<std::pair<const void*, ir::Value*>> bindings_;
};

// Whether the first output of `node` is what the pattern describes.
Match match(Editor& editor, const Pattern& pattern, ir::Node& node);

// The number in a constant whose elements all are equal, of any numeric type; nullopt for others.
std::optional<double> uniform_constant(const ir::Value* value);
// The node that computes the value, if it is of this operator of ai.onnx; else null.
ir::Node* producer(const ir::Value* value, std::string_view op_type);
// The same, if besides `value`'s one use nothing depends on it.
ir::Node* sole_producer(Editor& editor, const ir::Value* value, std::string_view op_type);

}  // namespace tenon::passes
