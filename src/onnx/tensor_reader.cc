#include "onnx/tensor_reader.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "base/memory.h"
#include "base/rounding.h"
#include "base/thread_pool.h"
#include "onnx/string_pairs.h"

namespace tenon::onnx {
namespace {

// Keeps a file mapped. When the last tensor over its part goes, so do the part's pages.
struct MappedPart {
  std::shared_ptr<const MappedFile> file;
  std::span<const std::byte> bytes;

  MappedPart(std::shared_ptr<const MappedFile> of, std::span<const std::byte> part)
      : file(std::move(of)), bytes(part) {}
  MappedPart(const MappedPart&) = delete;
  MappedPart& operator=(const MappedPart&) = delete;
  ~MappedPart() { file->release(bytes); }
};

// A part of memory that several tensors share. When the last tensor over it goes, so do its pages.
struct MemoryPart {
  std::shared_ptr<void> block;
  std::byte* data;
  size_t bytes;

  MemoryPart(std::shared_ptr<void> of, std::byte* begin, size_t count)
      : block(std::move(of)), data(begin), bytes(count) {}
  MemoryPart(const MemoryPart&) = delete;
  MemoryPart& operator=(const MemoryPart&) = delete;
  ~MemoryPart() { release_pages(data, bytes); }
};

// Tensors of such sizes share memory: weights that would each have pages of their own, but no huge ones. Smaller ones
// often stay when weights have been packed.
constexpr size_t least_shared = 64 << 10, most_shared = 2 << 20, shared_block = 8 << 20, page = 4096;

bool is_shared(size_t bytes) { return bytes >= least_shared && bytes < most_shared; }

// The fields of a TensorProto, before they are put together.
struct Fields {
  std::vector<int64_t> dims;
  int data_type = 0;
  std::vector<std::string_view> strings;
  std::vector<int64_t> varints;         // int32_data, int64_data or uint64_data
  std::vector<std::string_view> fixed;  // float_data or double_data, in pieces
  std::optional<std::string_view> raw;
  bool external = false, has_varints = false, segmented = false;
};

Fields read_fields(WireReader& message, ir::Constant& constant) {
  Fields fields;
  while (message.next()) {
    switch (message.field()) {
      case 1:
        message.append_varints(fields.dims);
        break;
      case 2:
        fields.data_type = message.int32();
        break;
      case 3:
        message.skip();
        fields.segmented = true;
        break;
      case 4:
      case 10: {
        // Packed, or one number per field: the bytes behind the tag are the number itself.
        std::string_view whole = message.skip();
        WireReader again(whole);
        again.next();
        bool packed = (static_cast<unsigned char>(whole[0]) & 7) == 2;
        fields.fixed.push_back(packed ? again.bytes() : whole.substr(1));
        break;
      }
      case 5:
      case 7:
      case 11:
        message.append_varints(fields.varints);
        fields.has_varints = true;
        break;
      case 6:
        fields.strings.push_back(message.bytes());
        break;
      case 8:
        constant.name = message.string();
        break;
      case 9:
        fields.raw = message.bytes();
        break;
      case 12:
        constant.doc_string = message.string();
        break;
      case 13:
        constant.external_data.push_back(read_string_pair(message.message()));
        break;
      case 14:
        fields.external = message.int64() == 1;
        break;
      case 16:
        constant.metadata.push_back(read_string_pair(message.message()));
        break;
      default:
        constant.other_fields += message.skip();
        break;
    }
  }
  return fields;
}

void require_count(const ir::Constant& constant, const Shape& shape, int64_t wanted, size_t got) {
  if (wanted != static_cast<int64_t>(got)) {
    throw Error(ErrorCode::invalid_model,
                fmt::format("shape {} needs {} stored values, {} are there", shape.to_string(), wanted, got))
        .on_tensor(constant.name);
  }
}

// Any other byte is undefined as a C++ bool.
void require_booleans(std::span<const std::byte> bytes) {
  auto wrong = std::ranges::find_if(bytes, [](std::byte byte) { return byte > std::byte{1}; });
  if (wrong != bytes.end()) {
    fail(ErrorCode::invalid_model, "element {} of a bool tensor is stored as {}; it must be 0 or 1",
         wrong - bytes.begin(), static_cast<int>(*wrong));
  }
}

// Numbers stored one varint per element (or per packed byte, below 8 bits) put into elements of their size.
Tensor from_varints(const ir::Constant& constant, ElementType type, const Shape& shape,
                    std::span<const int64_t> numbers) {
  int64_t elements = shape.elements();
  int bits = bits_of(type);
  bool six_bits = bits == 6;
  int64_t wanted = bits >= 8 || six_bits ? elements : byte_size(type, elements);
  require_count(constant, shape, wanted, numbers.size());
  Tensor tensor(type, shape);
  auto* out = static_cast<std::byte*>(tensor.mutable_raw());
  if (six_bits) {
    std::memset(out, 0, static_cast<size_t>(tensor.bytes()));
    for (int64_t i = 0; i < elements; ++i)
      store_packed(out, 6, i, static_cast<uint8_t>(numbers[static_cast<size_t>(i)]));
    return tensor;
  }
  size_t size = static_cast<size_t>(std::max(bits, 8) / 8);
  for (int64_t number : numbers) {
    std::memcpy(out, &number, size);  // little-endian: the low bytes come first
    out += size;
  }
  if (type == ElementType::boolean) require_booleans({out - elements, static_cast<size_t>(elements)});
  return tensor;
}

bool uses_varints(ElementType type) {
  switch (type) {
    case ElementType::float32:
    case ElementType::float64:
    case ElementType::complex64:
    case ElementType::complex128:
    case ElementType::string:
      return false;
    default:
      return true;
  }
}

const Tensor* given_for(const ir::Constant& constant, ElementType type, const Shape& shape, const GivenTensors* given) {
  if (!given) return nullptr;
  auto found = given->find(constant.name);
  if (found == given->end()) return nullptr;
  const Tensor& tensor = found->second;
  if (tensor.type() != type) {
    fail(ErrorCode::type_mismatch, "the initializer is of {}, the tensor given for it of {}", name_of(type),
         name_of(tensor.type()));
  }
  if (!(tensor.shape() == shape)) {
    fail(ErrorCode::shape_mismatch, "the initializer has shape {}, the tensor given for it {}", shape.to_string(),
         tensor.shape().to_string());
  }
  return &tensor;
}

}  // namespace

TensorReader::TensorReader(std::shared_ptr<const MappedFile> file, std::shared_ptr<const void> owner,
                           ExternalData external, std::vector<ExternalProblem>* problems)
    : file_(std::move(file)), owner_(std::move(owner)), external_(std::move(external)), problems_(problems) {}

void TensorReader::take_bytes(const std::shared_ptr<ir::Constant>& constant, ElementType type, Shape shape,
                              std::span<const std::byte> bytes, const std::shared_ptr<const MappedFile>& file) {
  if (type == ElementType::boolean) require_booleans(bytes);
  std::shared_ptr<const void> owner = file ? std::make_shared<MappedPart>(file, bytes) : owner_;
  size_t alignment = std::clamp<size_t>(static_cast<size_t>(bits_of(type)) / 8, 1, 8);
  if (owner && reinterpret_cast<uintptr_t>(bytes.data()) % alignment == 0) {
    constant->tensor = Tensor::over(type, std::move(shape), const_cast<std::byte*>(bytes.data()),
                                    std::const_pointer_cast<void>(owner));
    return;
  }
  if (bytes.size() < page) {
    constant->tensor = Tensor(type, std::move(shape));
    std::ranges::copy(bytes, static_cast<std::byte*>(constant->tensor.mutable_raw()));
  } else {
    constant->tensor = Tensor::over(type, std::move(shape), nullptr);
    copies_.push_back({constant, bytes, file});
  }
}

void TensorReader::allocate_copies() {
  size_t left = 0;  // bytes of tensors that share memory and have none yet
  for (const Copy& copy : copies_) left += is_shared(copy.from.size()) ? round_up(copy.from.size(), page) : 0;
  std::shared_ptr<void> block;
  size_t size = 0, used = 0;
  for (const Copy& copy : copies_) {
    Tensor& tensor = copy.to->tensor;
    const size_t bytes = copy.from.size(), needed = round_up(bytes, page);
    if (!is_shared(bytes)) {
      tensor = Tensor(tensor.type(), tensor.shape());
      continue;
    }
    if (used + needed > size) {
      size = std::max(std::min(left, shared_block), needed);
      block = system_allocator().allocate(static_cast<int64_t>(size));
      used = 0;
    }
    std::byte* data = static_cast<std::byte*>(block.get()) + used;
    tensor = Tensor::over(tensor.type(), tensor.shape(), data, std::make_shared<MemoryPart>(block, data, bytes));
    used += needed;
    left -= needed;
  }
}

std::shared_ptr<ir::Constant> TensorReader::read(WireReader message, const GivenTensors* given) {
  auto constant = std::make_shared<ir::Constant>();
  Fields fields = read_fields(message, *constant);
  try {
    if (!is_known(fields.data_type)) fail(ErrorCode::invalid_model, "element type {} is unknown", fields.data_type);
    if (fields.segmented) fail(ErrorCode::unsupported, "the tensor is stored in segments, which ONNX no longer uses");
    auto type = static_cast<ElementType>(fields.data_type);
    Shape shape(fields.dims);
    int64_t elements = shape.elements();
    int64_t size = byte_size(type, elements);
    if (const Tensor* tensor = given_for(*constant, type, shape, given)) {
      constant->tensor = *tensor;
    } else if (fields.external) {
      constant->storage = ir::Constant::Storage::external;
      if (type == ElementType::string) fail(ErrorCode::invalid_model, "strings cannot be stored externally");
      ExternalData::Location found = external_.find(*constant, size);
      if (found.file)
        take_bytes(constant, type, shape, found.bytes, found.file);
      else
        constant->tensor = Tensor::over(type, shape, nullptr);
    } else if (type == ElementType::string) {
      constant->storage = ir::Constant::Storage::typed_fields;
      require_count(*constant, shape, elements, fields.strings.size());
      constant->tensor = Tensor(type, shape);
      std::ranges::copy(fields.strings, constant->tensor.mutable_data<std::string>().begin());
    } else if (fields.raw || (elements == 0 && fields.fixed.empty() && !fields.has_varints)) {
      std::span<const char> raw = fields.raw.value_or("");
      if (static_cast<int64_t>(raw.size()) != size) {
        fail(ErrorCode::invalid_model, "shape {} of {} needs {} bytes, {} are there", shape.to_string(), name_of(type),
             size, raw.size());
      }
      take_bytes(constant, type, shape, std::as_bytes(raw), file_);
      if (!fields.raw) constant->storage = ir::Constant::Storage::typed_fields;
    } else if (uses_varints(type)) {
      constant->storage = ir::Constant::Storage::typed_fields;
      constant->tensor = from_varints(*constant, type, shape, fields.varints);
    } else {
      constant->storage = ir::Constant::Storage::typed_fields;
      size_t stored = 0;
      for (std::string_view piece : fields.fixed) stored += piece.size();
      if (static_cast<int64_t>(stored) != size) {
        fail(ErrorCode::invalid_model, "shape {} of {} needs {} bytes, {} are there", shape.to_string(), name_of(type),
             size, stored);
      }
      if (fields.fixed.size() == 1) {
        take_bytes(constant, type, shape, std::as_bytes(std::span(fields.fixed[0])), file_);
      } else {
        constant->tensor = Tensor(type, shape);
        auto* to = static_cast<char*>(constant->tensor.mutable_raw());
        for (std::string_view piece : fields.fixed) to = std::ranges::copy(piece, to).out;
      }
    }
  } catch (Error& error) {
    throw error.on_tensor(constant->name);
  }
  return constant;
}

ir::SparseConstantPtr TensorReader::read_sparse(WireReader message) {
  auto sparse = std::make_shared<ir::SparseConstant>();
  std::vector<int64_t> dims;
  while (message.next()) {
    switch (message.field()) {
      case 1:
        sparse->values = read(message.message());
        break;
      case 2:
        sparse->indices = read(message.message());
        break;
      case 3:
        message.append_varints(dims);
        break;
      default:
        sparse->other_fields += message.skip();
        break;
    }
  }
  if (!sparse->values || !sparse->indices)
    fail(ErrorCode::invalid_model, "a sparse tensor lacks its values or indices");
  sparse->shape = Shape(dims);
  return sparse;
}

void TensorReader::finish() {
  if (problems_)
    *problems_ = external_.problems();
  else
    external_.throw_problems();
  allocate_copies();
  // Copied in slices, whose source pages are released at once, so that both copies never sit in memory.
  constexpr int64_t slice = 8 << 20;
  struct Slice {
    const Copy* copy;
    std::byte* to;
    size_t from;
  };
  std::vector<Slice> slices;
  for (const Copy& copy : copies_) {
    auto* to = static_cast<std::byte*>(copy.to->tensor.mutable_raw());
    for (size_t from = 0; from < copy.from.size(); from += slice) slices.push_back({&copy, to, from});
  }
  ThreadPool::shared()->parallel_for(static_cast<int64_t>(slices.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Slice& s = slices[static_cast<size_t>(i)];
      auto part = s.copy->from.subspan(s.from, std::min<size_t>(slice, s.copy->from.size() - s.from));
      std::memcpy(s.to + s.from, part.data(), part.size());
      if (s.copy->file) s.copy->file->release(part);
    }
  });
  copies_.clear();
}

}  // namespace tenon::onnx
