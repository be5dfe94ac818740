#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::onnx {

// Reads one protobuf message, field by field, without copying. Lengths are 64-bit, so that nothing has a 2 GB limit.
// Throws ErrorCode::truncated or invalid_model with the position in the whole input.
class WireReader {
 public:
  explicit WireReader(std::string_view whole)
      : origin_(whole.data()), at_(whole.data()), end_(whole.data() + whole.size()) {}

  // Moves to the next field; false at the end of the message.
  bool next();
  uint32_t field() const { return field_; }
  // Bytes of the current field, tag included; for fields to be kept as they are. Moves past it.
  std::string_view skip();

  uint64_t varint();
  int64_t int64() { return static_cast<int64_t>(varint()); }
  int32_t int32() { return static_cast<int32_t>(varint()); }
  float float32();
  std::string_view bytes();
  std::string string() { return std::string(bytes()); }
  WireReader message();

  // Repeated numbers, packed or one at a time; appended to `out`.
  void append_varints(std::vector<int64_t>& out);
  void append_floats(std::vector<float>& out);

  int64_t position() const { return at_ - origin_; }

 private:
  WireReader(const char* origin, std::string_view part)
      : origin_(origin), at_(part.data()), end_(part.data() + part.size()) {}
  uint64_t raw_varint();
  void expect(int wire_type);
  [[noreturn]] void truncated(const char* what) const;

  const char* origin_;
  const char* at_;
  const char* end_;
  const char* tag_start_ = nullptr;
  uint32_t field_ = 0;
  int wire_type_ = 0;
};

// Builds one protobuf message as a list of pieces. Large payloads are referenced, not copied: they must outlive it.
class WireWriter {
 public:
  void varint(uint32_t field, uint64_t value);
  void int64(uint32_t field, int64_t value) { varint(field, static_cast<uint64_t>(value)); }
  void float32(uint32_t field, float value);
  void bytes(uint32_t field, std::string_view value);
  // Like bytes, without a copy.
  void reference(uint32_t field, std::string_view value);
  void message(uint32_t field, WireWriter&& inner);
  void packed_varints(uint32_t field, std::span<const int64_t> values);
  // Fields in wire format, tags included.
  void raw_fields(std::string_view fields);

  uint64_t size() const { return size_; }
  // Calls sink(std::string_view) for the pieces in order.
  template <typename Sink>
  void write_to(Sink&& sink) const {
    for (const Piece& piece : pieces_) sink(piece.external.data() ? piece.external : std::string_view(piece.own));
  }
  std::string to_string() const;

 private:
  struct Piece {
    std::string own;
    std::string_view external;
  };
  void tag(uint32_t field, int wire_type);
  std::string& tail();

  std::vector<Piece> pieces_;
  uint64_t size_ = 0;
};

}  // namespace tenon::onnx
