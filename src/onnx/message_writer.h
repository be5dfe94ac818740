#pragma once

#include <optional>

#include "ir/graph.h"
#include "onnx/wire.h"

namespace tenon::onnx {

// Collects the tensors that go into a file beside the model, from `start` on, each at a multiple of `alignment` so that
// it can be used where the file is mapped. Those that were read from such a file, unless told otherwise.
class ExternalWriter {
 public:
  explicit ExternalWriter(std::string file_name, int64_t start = 0, int64_t alignment = 4096)
      : file_name_(std::move(file_name)), alignment_(alignment), end_(start) {}

  // Those of so many bytes or more, and no others.
  void take_from(std::optional<int64_t> bytes) { from_ = bytes; }
  bool takes(const ir::Constant& constant) const;

  struct Piece {
    int64_t offset;
    std::string_view bytes;
  };
  // Where the bytes, which must stay alive, will be.
  int64_t add(std::string_view bytes);
  const std::string& file_name() const { return file_name_; }
  const std::vector<Piece>& pieces() const { return pieces_; }
  int64_t end() const { return end_; }

 private:
  std::string file_name_;
  int64_t alignment_;
  std::optional<int64_t> from_;
  std::vector<Piece> pieces_;
  int64_t end_;
};

// TypeProto.
WireWriter write_type(const ir::Type& type);
// TensorProto in the storage it was read from; external tensors go inline when there is no `external`. One that has no
// memory stays where its external_data says.
WireWriter write_tensor(const ir::Constant& constant, ExternalWriter* external);
WireWriter write_sparse_tensor(const ir::SparseConstant& sparse, ExternalWriter* external);

}  // namespace tenon::onnx
