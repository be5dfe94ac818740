#include "tools/npy.h"

#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>

#include "base/checked.h"
#include "base/names.h"
#include "tenon/tools/value_files.h"

namespace tenon::tools {
namespace {

struct TypeCode {
  std::string_view code;  // without byte order
  ElementType type;
};
constexpr TypeCode type_codes[] = {
    {"f4", ElementType::float32},   {"f8", ElementType::float64},     {"f2", ElementType::float16},
    {"i1", ElementType::int8},      {"i2", ElementType::int16},       {"i4", ElementType::int32},
    {"i8", ElementType::int64},     {"u1", ElementType::uint8},       {"u2", ElementType::uint16},
    {"u4", ElementType::uint32},    {"u8", ElementType::uint64},      {"b1", ElementType::boolean},
    {"c8", ElementType::complex64}, {"c16", ElementType::complex128},
};

[[noreturn]] void broken(const std::string& what) { fail(ErrorCode::invalid_value, "not a NumPy array: {}", what); }

// The text behind 'key': in the header's Python dictionary.
std::string_view field(std::string_view header, std::string_view key) {
  size_t at = header.find("'" + std::string(key) + "':");
  if (at == std::string_view::npos) broken(fmt::format("its header has no '{}'", key));
  std::string_view rest = header.substr(at + key.size() + 3);
  return rest.substr(std::min(rest.find_first_not_of(' '), rest.size()));
}

Shape parse_shape(std::string_view text) {
  size_t end = text.find(')');
  if (!text.starts_with('(') || end == std::string_view::npos) broken("its shape is unreadable");
  Shape shape;
  const char* at = text.data() + 1;
  const char* stop = text.data() + end;
  while (at < stop) {
    if (*at == ' ' || *at == ',') {
      ++at;
      continue;
    }
    int64_t number = 0;
    auto [next, error] = std::from_chars(at, stop, number);
    if (error != std::errc() || number < 0) broken("its shape is unreadable");
    shape.push_back(number);
    at = next;
  }
  return shape;
}

// Appends one code point as UTF-8.
void append_utf8(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | (c >> 18 & 7));
    out += static_cast<char>(0x80 | (c >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  }
}

// "U7" is 7 code points of 4 bytes, "S7" 7 bytes; both padded with zeros.
Tensor parse_strings(char kind, int64_t width, const Shape& shape, std::span<const std::byte> data) {
  Tensor tensor(ElementType::string, shape);
  auto out = tensor.mutable_data<std::string>();
  const std::byte* at = data.data();
  for (std::string& text : out) {
    if (kind == 'S') {
      text.assign(reinterpret_cast<const char*>(at), static_cast<size_t>(width));
      text.resize(text.find_last_not_of('\0') + 1);
      at += width;
    } else {
      for (int64_t i = 0; i < width; ++i, at += 4) {
        uint32_t code;
        std::memcpy(&code, at, 4);
        if (code) append_utf8(text, code);
      }
    }
  }
  return tensor;
}

// Fortran order: the first axis varies fastest.
Tensor from_fortran_order(const Tensor& tensor) {
  Tensor result(tensor.type(), tensor.shape());
  int64_t size = bits_of(tensor.type()) / 8;
  const auto* in = static_cast<const std::byte*>(tensor.raw());
  auto* out = static_cast<std::byte*>(result.mutable_raw());
  Shape index(tensor.rank(), 0);
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    int64_t source = 0;
    for (int axis = tensor.rank() - 1; axis >= 0; --axis) source = source * tensor.dim(axis) + index[axis];
    std::memcpy(out + i * size, in + source * size, static_cast<size_t>(size));
    for (int axis = tensor.rank() - 1; axis >= 0 && ++index[axis] == tensor.dim(axis); --axis) index[axis] = 0;
  }
  return result;
}

}  // namespace

namespace {

// What the header of a .npy file says.
struct Header {
  ElementType type;
  Shape shape;
  char kind = 0;      // 'U' or 'S' of strings
  int64_t width = 0;  // of an element, as its code says
  bool is_fortran = false;
  std::span<const std::byte> data;  // all elements
};

Header parse_header(std::span<const std::byte> bytes, ElementType wanted) {
  std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!all.starts_with("\x93NUMPY") || all.size() < 10) broken("it does not start with the NumPy mark");
  size_t header_at = all[6] == 1 ? 10 : 12;
  if (all.size() < header_at) broken("it is cut off in the header");
  uint32_t length = 0;
  std::memcpy(&length, all.data() + 8, header_at - 8);
  if (length > all.size() - header_at) broken("it is cut off in the header");
  std::string_view header = all.substr(header_at, length);

  std::string_view description = field(header, "descr");
  if (description.size() < 4 || description[0] != '\'') broken("structured arrays are not supported");
  description = description.substr(1, description.find('\'', 1) - 1);
  char order = description.empty() ? '|' : description[0];
  std::string_view code = description.substr(std::min<size_t>(1, description.size()));
  Header result{ElementType::undefined, parse_shape(field(header, "shape")), 0, 0, false, {}};
  if (code.size() > 1) std::from_chars(code.data() + 1, code.data() + code.size(), result.width);
  if (order == '>' && result.width > 1) broken("big-endian data is not supported; convert it with array.astype('<…')");

  std::optional<ElementType> type;
  for (const TypeCode& entry : type_codes) {
    if (entry.code == code) type = entry.type;
  }
  if (!type && code.starts_with('V') && bits_of(wanted) == 8 * result.width) type = wanted;
  if (code.starts_with('U') || code.starts_with('S')) {
    type = ElementType::string;
    result.kind = code[0];
  }
  if (!type) broken(fmt::format("element type '{}' is not supported", description));
  result.type = *type;
  const int64_t elements = result.shape.elements();
  const int64_t size = result.kind != 0 ? checked_mul(elements, checked_mul(result.width, result.kind == 'U' ? 4 : 1))
                                        : byte_size(*type, elements);
  const std::span<const std::byte> data = bytes.subspan(header_at + length);
  if (size > static_cast<int64_t>(data.size()))
    broken(fmt::format("shape {} needs {} bytes, {} are there", result.shape.to_string(), size, data.size()));
  result.data = data.first(static_cast<size_t>(size));
  result.is_fortran = field(header, "fortran_order").starts_with("True") && result.shape.rank() > 1;
  return result;
}

}  // namespace

Tensor parse_npy(std::span<const std::byte> bytes, ElementType wanted) {
  const Header header = parse_header(bytes, wanted);
  if (header.kind != 0) {
    if (header.is_fortran) broken("strings in Fortran order are not supported");
    return parse_strings(header.kind, header.width, header.shape, header.data);
  }
  Tensor tensor(header.type, header.shape);
  if (!header.data.empty()) std::memcpy(tensor.mutable_raw(), header.data.data(), header.data.size());
  return header.is_fortran ? from_fortran_order(tensor) : tensor;
}

std::optional<NpyView> view_npy(std::span<const std::byte> bytes, ElementType wanted) {
  Header header = parse_header(bytes, wanted);
  if (header.kind != 0 || header.is_fortran) return std::nullopt;
  return NpyView{header.type, std::move(header.shape), header.data};
}

std::vector<std::pair<std::string, std::span<const std::byte>>> arrays_in_npz(std::span<const std::byte> archive) {
  // Entries are found through the central directory at the end: "PK\1\2" records, and their local headers "PK\3\4".
  auto read = [&](size_t at, size_t size) -> uint64_t {
    if (at + size > archive.size()) broken("the archive is cut off");
    uint64_t value = 0;
    std::memcpy(&value, archive.data() + at, size);
    return value;
  };
  size_t end = archive.size() < 22 ? archive.size() : archive.size() - 22;
  while (end > 0 && read(end, 4) != 0x06054b50) --end;
  if (archive.size() < 22 || read(end, 4) != 0x06054b50) broken("it is not a zip archive");
  uint64_t count = read(end + 10, 2), at = read(end + 16, 4);
  std::vector<std::pair<std::string, std::span<const std::byte>>> arrays;
  for (uint64_t i = 0; i < count; ++i) {
    if (read(at, 4) != 0x02014b50) broken("the archive's directory is damaged");
    uint64_t method = read(at + 10, 2), size = read(at + 20, 4), name_size = read(at + 28, 2);
    uint64_t local = read(at + 42, 4);
    if (at + 46 + name_size > archive.size()) broken("the archive is cut off");
    std::string_view name(reinterpret_cast<const char*>(archive.data() + at + 46), name_size);
    if (name.ends_with(".npy")) name.remove_suffix(4);
    if (method != 0) broken("the archive is compressed; save it with numpy.savez instead of savez_compressed");
    if (size == 0xffffffff) size = archive.size();
    uint64_t data = local + 30 + read(local + 26, 2) + read(local + 28, 2);
    if (data > archive.size()) broken("the archive is cut off");
    arrays.emplace_back(name, archive.subspan(data, std::min<uint64_t>(size, archive.size() - data)));
    at += 46 + name_size + read(at + 30, 2) + read(at + 32, 2);
  }
  return arrays;
}

std::span<const std::byte> find_in_npz(std::span<const std::byte> archive, const std::string& name) {
  const auto arrays = arrays_in_npz(archive);
  if (arrays.size() == 1) return arrays[0].second;
  std::vector<std::string_view> names;
  for (const auto& [entry, bytes] : arrays) {
    if (entry == name) return bytes;
    names.push_back(entry);
  }
  throw Error(ErrorCode::unknown_name,
              fmt::format("the archive has no array '{}'; it has {}", name, quoted_list(names)));
}

void write_npy(const std::filesystem::path& path, const Tensor& tensor) {
  std::string descr;
  std::string payload;
  int bits = bits_of(tensor.type());
  for (const TypeCode& entry : type_codes) {
    if (entry.type == tensor.type()) descr = (bits == 8 ? "|" : "<") + std::string(entry.code);
  }
  std::string_view bytes(static_cast<const char*>(tensor.raw()),
                         tensor.type() == ElementType::string ? 0 : static_cast<size_t>(tensor.bytes()));
  if (tensor.type() == ElementType::string) {
    size_t longest = 1;
    for (const std::string& text : tensor.data<std::string>()) longest = std::max(longest, text.size());
    descr = fmt::format("|S{}", longest);
    for (const std::string& text : tensor.data<std::string>())
      payload += text + std::string(longest - text.size(), '\0');
    bytes = payload;
  } else if (bits < 8) {
    descr = "|u1";
    for (int64_t i = 0; i < tensor.elements(); ++i) payload += static_cast<char>(load_packed(tensor.raw(), bits, i));
    bytes = payload;
  } else if (descr.empty()) {
    descr = fmt::format("|V{}", bits / 8);
  }
  std::string shape;
  for (int64_t dim : tensor.shape()) shape += fmt::format("{}, ", dim);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  header += std::string(63 - (10 + header.size()) % 64, ' ') + "\n";
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  auto length = static_cast<uint16_t>(header.size());
  out.write("\x93NUMPY\x01\x00", 8);
  out.write(reinterpret_cast<const char*>(&length), 2);
  out << header;
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) fail(ErrorCode::write_failed, "cannot write '{}'", path.string());
}

}  // namespace tenon::tools
