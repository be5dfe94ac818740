#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tenon/dim.h"
#include "tenon/element_type.h"

namespace tenon::ir {

// The ONNX type of a value, as far as it is known.
struct Type {
  enum class Kind : uint8_t { unknown, tensor, sparse_tensor, sequence, map, optional, opaque };

  Kind kind = Kind::unknown;
  ElementType element = ElementType::undefined;  // of a tensor; the key of a map
  std::optional<SymbolicShape> shape;            // of a tensor; nullopt: not even the rank is known
  std::shared_ptr<const Type> inner;             // item of a sequence or optional, value of a map

  // What only saving needs; usually null.
  struct Details {
    std::string denotation;
    std::vector<std::string> dim_denotations;
    std::string opaque_domain, opaque_name;
  };
  std::shared_ptr<const Details> details;

  static Type tensor(ElementType element, std::optional<SymbolicShape> shape = std::nullopt);
  static Type sparse_tensor(ElementType element, std::optional<SymbolicShape> shape = std::nullopt);
  static Type sequence(Type item);
  static Type optional(Type item);
  static Type map(ElementType key, Type value);

  bool is_tensor() const { return kind == Kind::tensor; }
  bool known() const { return kind != Kind::unknown; }

  // "tensor(float) [batch, 3]", "seq(tensor(int64))", "?"
  std::string to_string() const;
  // The same without shapes, as ONNX writes types: "tensor(float)".
  std::string name() const;
};

// Whether a value of type `actual` may stand where `expected` is declared, as far as both are known; shapes aside.
bool same_kind(const Type& expected, const Type& actual);

}  // namespace tenon::ir
