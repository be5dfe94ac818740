#include "onnx/wire.h"

#include <cstring>
#include <iterator>
#include <protozero/varint.hpp>

#include "base/fail.h"

namespace tenon::onnx {
namespace {

enum WireType { varint_type = 0, fixed64_type = 1, length_type = 2, fixed32_type = 5 };

}  // namespace

void WireReader::truncated(const char* what) const {
  fail(ErrorCode::truncated, "the data ends at byte {} in the middle of {}", end_ - origin_, what);
}

uint64_t WireReader::raw_varint() {
  const char* at = at_;
  try {
    uint64_t value = protozero::decode_varint(&at, end_);
    at_ = at;
    return value;
  } catch (const protozero::end_of_buffer_exception&) {
    truncated("a number");
  } catch (const protozero::varint_too_long_exception&) {
    fail(ErrorCode::invalid_model, "the number at byte {} is longer than 64 bits", position());
  }
}

bool WireReader::next() {
  if (at_ == end_) return false;
  tag_start_ = at_;
  uint64_t tag = raw_varint();
  field_ = static_cast<uint32_t>(tag >> 3);
  wire_type_ = static_cast<int>(tag & 7);
  if (field_ == 0 || tag >> 32 != 0) fail(ErrorCode::invalid_model, "no field starts at byte {}", tag_start_ - origin_);
  return true;
}

void WireReader::expect(int wire_type) {
  if (wire_type_ != wire_type) {
    fail(ErrorCode::invalid_model, "field {} at byte {} has wire type {}, expected {}", field_, tag_start_ - origin_,
         wire_type_, wire_type);
  }
}

std::string_view WireReader::skip() {
  switch (wire_type_) {
    case varint_type:
      raw_varint();
      break;
    case fixed64_type:
      if (end_ - at_ < 8) truncated("a number");
      at_ += 8;
      break;
    case fixed32_type:
      if (end_ - at_ < 4) truncated("a number");
      at_ += 4;
      break;
    case length_type:
      bytes();
      break;
    default:
      fail(ErrorCode::invalid_model, "field {} at byte {} has unknown wire type {}", field_, tag_start_ - origin_,
           wire_type_);
  }
  return {tag_start_, static_cast<size_t>(at_ - tag_start_)};
}

uint64_t WireReader::varint() {
  expect(varint_type);
  return raw_varint();
}

float WireReader::float32() {
  expect(fixed32_type);
  if (end_ - at_ < 4) truncated("a float");
  float value;
  std::memcpy(&value, at_, 4);
  at_ += 4;
  return value;
}

std::string_view WireReader::bytes() {
  expect(length_type);
  uint64_t length = raw_varint();
  if (length > static_cast<uint64_t>(end_ - at_)) {
    fail(ErrorCode::truncated, "field {} at byte {} announces {} bytes, {} are left", field_, tag_start_ - origin_,
         length, end_ - at_);
  }
  std::string_view result(at_, length);
  at_ += length;
  return result;
}

WireReader WireReader::message() { return {origin_, bytes()}; }

void WireReader::append_varints(std::vector<int64_t>& out) {
  if (wire_type_ != length_type) {
    out.push_back(int64());
    return;
  }
  WireReader packed = message();
  while (packed.at_ != packed.end_) out.push_back(static_cast<int64_t>(packed.raw_varint()));
}

void WireReader::append_floats(std::vector<float>& out) {
  if (wire_type_ != length_type) {
    out.push_back(float32());
    return;
  }
  std::string_view packed = bytes();
  if (packed.size() % 4 != 0)
    fail(ErrorCode::invalid_model, "packed floats at byte {} are cut off", tag_start_ - origin_);
  size_t before = out.size();
  out.resize(before + packed.size() / 4);
  if (!packed.empty()) std::memcpy(out.data() + before, packed.data(), packed.size());
}

std::string& WireWriter::tail() {
  if (pieces_.empty() || pieces_.back().external.data()) pieces_.emplace_back();
  return pieces_.back().own;
}

namespace {

void append_varint(std::string& out, uint64_t value) { protozero::write_varint(std::back_inserter(out), value); }

}  // namespace

void WireWriter::tag(uint32_t field, int wire_type) {
  std::string& out = tail();
  size_t before = out.size();
  append_varint(out, static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire_type));
  size_ += out.size() - before;
}

void WireWriter::varint(uint32_t field, uint64_t value) {
  tag(field, varint_type);
  std::string& out = tail();
  size_t before = out.size();
  append_varint(out, value);
  size_ += out.size() - before;
}

void WireWriter::float32(uint32_t field, float value) {
  tag(field, fixed32_type);
  char raw[4];
  std::memcpy(raw, &value, 4);
  tail().append(raw, 4);
  size_ += 4;
}

void WireWriter::bytes(uint32_t field, std::string_view value) {
  tag(field, length_type);
  std::string& out = tail();
  size_t before = out.size();
  append_varint(out, value.size());
  out.append(value);
  size_ += out.size() - before;
}

void WireWriter::reference(uint32_t field, std::string_view value) {
  if (value.size() < 1024) return bytes(field, value);
  tag(field, length_type);
  std::string& out = tail();
  size_t before = out.size();
  append_varint(out, value.size());
  size_ += out.size() - before + value.size();
  pieces_.push_back({{}, value});
}

void WireWriter::message(uint32_t field, WireWriter&& inner) {
  tag(field, length_type);
  std::string& out = tail();
  size_t before = out.size();
  append_varint(out, inner.size_);
  size_ += out.size() - before + inner.size_;
  for (Piece& piece : inner.pieces_) {
    if (piece.external.data())
      pieces_.push_back(std::move(piece));
    else
      tail() += piece.own;
  }
}

void WireWriter::packed_varints(uint32_t field, std::span<const int64_t> values) {
  std::string packed;
  for (int64_t value : values) append_varint(packed, static_cast<uint64_t>(value));
  bytes(field, packed);
}

void WireWriter::raw_fields(std::string_view fields) {
  tail().append(fields);
  size_ += fields.size();
}

std::string WireWriter::to_string() const {
  std::string result;
  result.reserve(size_);
  write_to([&](std::string_view piece) { result += piece; });
  return result;
}

}  // namespace tenon::onnx
