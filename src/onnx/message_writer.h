#pragma once

#include "ir/graph.h"
#include "onnx/wire.h"

namespace tenon::onnx {

// Collects the tensors that go into a file beside the model, each at a page boundary so that it can be mapped.
class ExternalWriter {
 public:
  explicit ExternalWriter(std::string file_name) : file_name_(std::move(file_name)) {}

  struct Piece {
    int64_t offset;
    std::string_view bytes;
  };
  // Where the bytes, which must stay alive, will be.
  int64_t add(std::string_view bytes);
  const std::string& file_name() const { return file_name_; }
  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  std::string file_name_;
  std::vector<Piece> pieces_;
  int64_t end_ = 0;
};

// TypeProto.
WireWriter write_type(const ir::Type& type);
// TensorProto in the storage it was read from; external tensors go inline when there is no `external`.
WireWriter write_tensor(const ir::Constant& constant, ExternalWriter* external);
WireWriter write_sparse_tensor(const ir::SparseConstant& sparse, ExternalWriter* external);

}  // namespace tenon::onnx
