#include "tenon/tensor.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/available_memory.h"
#include "base/fail.h"
#include "base/memory.h"

namespace tenon {
namespace {

class SystemAllocator final : public Allocator {
 public:
  std::shared_ptr<void> allocate(int64_t bytes) override {
    // Asked before the system is: it would promise memory that it does not have.
    bool too_large = bytes < 0 || (bytes > (64 << 20) && bytes > available_memory());
    const auto size = static_cast<size_t>(bytes);
    void* memory = too_large ? nullptr : allocate_memory(size);
    if (!memory) fail(ErrorCode::out_of_memory, "there is no memory for {} bytes", bytes);
    return {memory, [size](void* m) { free_memory(m, size); }};
  }
};

}  // namespace

Allocator& system_allocator() {
  static SystemAllocator allocator;
  return allocator;
}

namespace {

// So many strings, empty or copies of `values`. They are destroyed with their memory.
std::shared_ptr<void> make_strings(Allocator& allocator, int64_t count, const std::string* values) {
  struct Strings {
    std::shared_ptr<void> memory;
    int64_t count = 0;  // that exist
    ~Strings() { std::destroy_n(static_cast<std::string*>(memory.get()), count); }
  };
  auto strings = std::make_shared<Strings>();
  strings->memory = allocator.allocate(byte_size(ElementType::string, count));
  auto* first = static_cast<std::string*>(strings->memory.get());
  if (values)
    std::uninitialized_copy_n(values, count, first);
  else
    std::uninitialized_default_construct_n(first, count);
  strings->count = count;
  return {strings, first};
}

}  // namespace

Tensor::Tensor(ElementType type, Shape shape, Allocator& allocator)
    : type_(type), shape_(std::move(shape)), elements_(shape_.elements()) {
  owner_ = type_ == ElementType::string ? make_strings(allocator, elements_, nullptr)
                                        : allocator.allocate(byte_size(type_, elements_));
  data_ = owner_.get();
}

Tensor Tensor::over(ElementType type, Shape shape, void* data, std::shared_ptr<void> owner) {
  Tensor tensor;
  tensor.type_ = type;
  tensor.elements_ = shape.elements();
  tensor.shape_ = std::move(shape);
  tensor.data_ = data;
  tensor.owner_ = std::move(owner);
  return tensor;
}

Tensor Tensor::reshaped(Shape shape) const {
  int64_t elements = shape.elements();
  if (elements != elements_) {
    fail(ErrorCode::shape_mismatch, "{} elements of shape {} cannot take shape {}", elements_, shape_.to_string(),
         shape.to_string());
  }
  Tensor result = *this;
  result.shape_ = std::move(shape);
  return result;
}

Tensor Tensor::part(int64_t first, Shape shape) const {
  int64_t count = shape.elements();
  TENON_CHECK(first >= 0 && count <= elements_ - first && first * bits_of(type_) % 8 == 0);
  return over(type_, std::move(shape), static_cast<std::byte*>(data_) + first * bits_of(type_) / 8, owner_);
}

Tensor Tensor::clone(Allocator& allocator) const {
  if (!defined()) return {};
  if (type_ == ElementType::string) {
    std::shared_ptr<void> strings = make_strings(allocator, elements_, static_cast<const std::string*>(data_));
    void* first = strings.get();
    return over(type_, shape_, first, std::move(strings));
  }
  Tensor copy(type_, shape_, allocator);
  if (bytes() > 0) std::memcpy(copy.data_, data_, static_cast<size_t>(bytes()));
  return copy;
}

void Tensor::throw_type_mismatch(ElementType wanted) const {
  fail(ErrorCode::type_mismatch, "the tensor holds {}, {} was asked for", name_of(type_), name_of(wanted));
}

void Tensor::copy_from(const void* values, size_t count) {
  if (static_cast<int64_t>(count) != elements_) {
    fail(ErrorCode::shape_mismatch, "shape {} has {} elements, {} values were given", shape_.to_string(), elements_,
         count);
  }
  if (type_ == ElementType::string) {
    std::copy_n(static_cast<const std::string*>(values), count, static_cast<std::string*>(data_));
  } else if (count > 0) {
    std::memcpy(data_, values, static_cast<size_t>(bytes()));
  }
}

bool identical(const Tensor& a, const Tensor& b) {
  if (a.type() != b.type() || !(a.shape() == b.shape())) return false;
  if (!a.defined() || a.elements() == 0 || a.raw() == b.raw()) return true;
  if (a.type() == ElementType::string) return std::ranges::equal(a.data<std::string>(), b.data<std::string>());
  return std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.bytes())) == 0;
}

uint8_t load_packed(const void* data, int bits, int64_t index) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  int64_t bit = index * bits;
  int shift = static_cast<int>(bit % 8);
  unsigned word = bytes[bit / 8];
  if (shift + bits > 8) word |= static_cast<unsigned>(bytes[bit / 8 + 1]) << 8;
  return static_cast<uint8_t>((word >> shift) & ((1u << bits) - 1));
}

void store_packed(void* data, int bits, int64_t index, uint8_t code) {
  auto* bytes = static_cast<uint8_t*>(data);
  int64_t bit = index * bits;
  int shift = static_cast<int>(bit % 8);
  unsigned mask = ((1u << bits) - 1) << shift;
  unsigned value = static_cast<unsigned>(code) << shift & mask;
  bytes[bit / 8] = static_cast<uint8_t>((bytes[bit / 8] & ~mask) | value);
  if (shift + bits > 8) bytes[bit / 8 + 1] = static_cast<uint8_t>((bytes[bit / 8 + 1] & ~(mask >> 8)) | value >> 8);
}

}  // namespace tenon
