#include "tenon/tools/value_files.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "base/mapped_file.h"
#include "onnx/value_file.h"
#include "tools/npy.h"

namespace tenon::tools {
namespace {

// Binary or plain PGM/PPM with 8 bits per sample.
Tensor parse_picture(std::span<const std::byte> bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  auto broken = [](std::string_view why) { fail(ErrorCode::invalid_value, "not a PGM or PPM picture: {}", why); };
  if (text.size() < 2 || text[0] != 'P' || std::string_view("2356").find(text[1]) == std::string_view::npos)
    broken("it does not start with P2, P3, P5 or P6");
  bool plain = text[1] == '2' || text[1] == '3', colour = text[1] == '3' || text[1] == '6';
  size_t at = 2;
  auto number = [&]() -> int64_t {
    while (at < text.size() && (std::isspace(static_cast<unsigned char>(text[at])) || text[at] == '#')) {
      if (text[at] == '#') at = std::min(text.find('\n', at), text.size() - 1);
      ++at;
    }
    int64_t value = 0;
    size_t start = at;
    while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) && value < (1 << 24))
      value = value * 10 + (text[at++] - '0');
    if (at == start) broken("a number is missing");
    return value;
  };
  int64_t width = number(), height = number(), white = number();
  if (white > 255 || white == 0) broken("only 8 bits per sample are supported");
  Shape shape{height, width};
  if (colour) shape.push_back(3);
  int64_t size = shape.elements();
  if (size > static_cast<int64_t>(text.size())) broken("it is cut off");
  Tensor tensor(ElementType::uint8, shape);
  auto out = tensor.mutable_data<uint8_t>();
  if (plain) {
    for (uint8_t& sample : out) sample = static_cast<uint8_t>(number());
    return tensor;
  }
  ++at;
  if (at + out.size() > text.size()) broken("it is cut off");
  std::memcpy(out.data(), text.data() + at, out.size());
  return tensor;
}

// Raw bytes in the type and shape of the input; one unknown size follows from the length of the file.
Tensor parse_raw(std::span<const std::byte> bytes, const ValueInfo& input) {
  if (input.element == ElementType::undefined || input.element == ElementType::string || !input.has_shape) {
    fail(ErrorCode::invalid_argument, "raw bytes need a declared type and shape");
  }
  Shape shape;
  int unknown = -1;
  int64_t known = 1;
  for (const std::string& dim : input.shape) {
    bool number = !dim.empty() && std::ranges::all_of(dim, [](unsigned char c) { return std::isdigit(c); });
    if (!number && unknown >= 0)
      throw Error(ErrorCode::invalid_argument, "raw bytes do not tell two open sizes", "use a .npy file");
    if (!number) unknown = shape.rank();
    shape.push_back(number ? std::stoll(dim) : 1);
    if (number) known = checked_mul(known, shape[shape.rank() - 1]);
  }
  int64_t elements = static_cast<int64_t>(bytes.size()) * 8 / bits_of(input.element);
  if (unknown >= 0 && known > 0) shape[unknown] = elements / known;
  int64_t size = byte_size(input.element, shape.elements());
  if (size != static_cast<int64_t>(bytes.size())) {
    fail(ErrorCode::shape_mismatch, "{} {} needs {} bytes, the file has {}", name_of(input.element), shape.to_string(),
         size, bytes.size());
  }
  Tensor tensor(input.element, shape);
  if (size > 0) std::memcpy(tensor.mutable_raw(), bytes.data(), bytes.size());
  return tensor;
}

// The ONNX type of a ValueInfo, as far as reading a .pb needs it.
ir::Type type_of(const ValueInfo& input) {
  ir::Type type;
  if (input.type.starts_with("seq("))
    type.kind = ir::Type::Kind::sequence;
  else if (input.type.starts_with("optional("))
    type.kind = ir::Type::Kind::optional;
  else if (input.type.starts_with("map("))
    type.kind = ir::Type::Kind::map;
  else if (input.type.starts_with("sparse_tensor("))
    type.kind = ir::Type::Kind::sparse_tensor;
  else
    type.kind = ir::Type::Kind::tensor;
  return type;
}

}  // namespace

Value read_value(const std::filesystem::path& path, const ValueInfo& input) {
  auto file = MappedFile::open(path);
  std::span<const std::byte> bytes = file->bytes();
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  try {
    if (ending == ".npy") return parse_npy(bytes, input.element);
    if (ending == ".npz") return parse_npy(find_in_npz(bytes, input.name), input.element);
    if (ending == ".pb") return onnx::parse_value(bytes, type_of(input));
    if (ending == ".pgm" || ending == ".ppm" || ending == ".pnm") return parse_picture(bytes);
    if (ending == ".bin" || ending == ".raw") return parse_raw(bytes, input);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("'{}': {}", path.string(), error.message()), error.hint())
        .on_tensor(input.name);
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("'{}': files of this kind cannot be read", path.string()),
              "use .npy, .npz, .pb, .pgm, .ppm, .bin or .raw")
      .on_tensor(input.name);
}

std::string file_name_for(std::string value_name) {
  for (char& c : value_name) {
    if (c == '/' || c == ':' || c == '\\') c = '_';
  }
  return value_name;
}

}  // namespace tenon::tools
