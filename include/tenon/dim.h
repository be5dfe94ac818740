#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tenon/shape.h"

namespace tenon {

// A size that is a number or an expression over named sizes, such as 2*seq + 1 or floor(width / 4).
//
// Expressions are kept as polynomials with sorted terms, so that equal sizes compare equal however they were computed.
// Arithmetic on two numbers costs a branch more than on int64_t; overflow throws.
class Dim {
 public:
  Dim() : Dim(0) {}
  Dim(int64_t number) : number_(number) {}
  // The size a model calls `name`.
  static Dim symbol(std::string name);
  // A size nothing is known about; equal only to itself.
  static Dim unknown();

  bool is_known() const { return !expression_; }
  // The number; only when known.
  int64_t value() const { return number_; }
  bool is(int64_t number) const { return is_known() && number_ == number; }
  // The name if this is just a named symbol, else "".
  std::string_view symbol_name() const;
  // Whether it contains a symbol made by unknown().
  bool has_unknown() const;
  // A number that it cannot be below, where one is evident: what a model names is a size, so not negative.
  std::optional<int64_t> least() const;

  // "batch", "2*seq + 1"; unknown sizes print as "?".
  std::string to_string() const;

  // The number after replacing symbols; nullopt if `lookup` does not know one of them.
  using Lookup = std::function<std::optional<int64_t>(const std::string&)>;
  std::optional<int64_t> evaluate(const Lookup& lookup) const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  // Rounded towards minus infinity. Division by the number 0 gives an unknown size.
  friend Dim floor_div(const Dim& a, const Dim& b);
  friend Dim ceil_div(const Dim& a, const Dim& b);
  friend Dim min(const Dim& a, const Dim& b);
  friend Dim max(const Dim& a, const Dim& b);
  // Same number or same expression. Unequal expressions may still be equal sizes at run time.
  friend bool operator==(const Dim& a, const Dim& b);

  struct Expression;

 private:
  explicit Dim(std::shared_ptr<const Expression> expression);
  int64_t number_ = 0;
  std::shared_ptr<const Expression> expression_;
};

// A quotient known to be exact, as in the inferred dim of a Reshape.
Dim exact_div(const Dim& a, const Dim& b);

using SymbolicShape = SmallVector<Dim, 6>;
// The integers in a tensor of rank 0 or 1, as sizes.
using SymbolicValues = SmallVector<Dim, 4>;

SymbolicShape symbolic(const Shape& shape);
// The shape if every dim is known.
std::optional<Shape> concrete(const SymbolicShape& shape);
std::string to_string(const SymbolicShape& shape);
// Product of all dims.
Dim element_count(const SymbolicShape& shape);

}  // namespace tenon
