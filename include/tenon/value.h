#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "tenon/tensor.h"

namespace tenon {

class Value;

// Non-zero elements of a tensor of `shape`. `indices` is int64: [n] positions in row-major order, or [n, rank].
struct SparseTensor {
  Tensor values, indices;
  Shape shape;
};

struct Sequence {
  std::vector<Value> items;
};

// `keys` and `values` are one-dimensional and of one length.
struct Map {
  Tensor keys, values;
};

// An optional that may hold nothing.
struct Optional {
  std::shared_ptr<const Value> item;
};

// Anything that flows along an edge of an ONNX graph. Copies share their content.
class Value {
 public:
  Value() = default;
  Value(Tensor tensor) : content_(std::move(tensor)) {}
  Value(SparseTensor sparse) : content_(std::make_shared<const SparseTensor>(std::move(sparse))) {}
  Value(Sequence sequence) : content_(std::make_shared<const Sequence>(std::move(sequence))) {}
  Value(Map map) : content_(std::make_shared<const Map>(std::move(map))) {}
  Value(Optional optional) : content_(std::move(optional)) {}

  bool defined() const { return content_.index() != 0; }
  bool is_tensor() const { return std::holds_alternative<Tensor>(content_); }
  bool is_sparse() const { return std::holds_alternative<std::shared_ptr<const SparseTensor>>(content_); }
  bool is_sequence() const { return std::holds_alternative<std::shared_ptr<const Sequence>>(content_); }
  bool is_map() const { return std::holds_alternative<std::shared_ptr<const Map>>(content_); }
  bool is_optional() const { return std::holds_alternative<Optional>(content_); }

  // Each throws ErrorCode::type_mismatch when the value is of another kind.
  const Tensor& tensor() const;
  Tensor& tensor();
  const SparseTensor& sparse() const;
  const Sequence& sequence() const;
  const Map& map() const;
  const Optional& optional() const;

  // "float [1, 3]", "sequence of 3", …
  std::string describe() const;

 private:
  std::variant<std::monostate, Tensor, std::shared_ptr<const SparseTensor>, std::shared_ptr<const Sequence>,
               std::shared_ptr<const Map>, Optional>
      content_;
};

}  // namespace tenon
