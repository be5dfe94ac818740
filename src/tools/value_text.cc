#include "tenon/tools/value_text.h"

#include <fmt/core.h>

#include <filesystem>

#include "base/fail.h"
#include "tenon/tools/tensor_stats.h"
#include "tenon/tools/value_files.h"
#include "tensor/element_value.h"

namespace tenon::tools {
namespace {

constexpr int64_t few = 64;

// Elements from `at` on in nested brackets.
std::string nested(const Tensor& tensor, int axis, int64_t& at, int indent) {
  if (axis == tensor.rank()) return element_as_text(tensor, at++);
  std::string text = "[";
  bool innermost = axis + 1 == tensor.rank();
  for (int64_t i = 0; i < tensor.dim(axis); ++i) {
    if (i) text += innermost ? ", " : ",\n" + std::string(static_cast<size_t>(indent + axis + 1), ' ');
    text += nested(tensor, axis + 1, at, indent);
  }
  return text + "]";
}

std::string statistics(const Tensor& tensor) {
  if (tensor.type() == ElementType::string) return "";
  const TensorStats stats = tensor_stats(tensor);
  const int64_t not_finite = stats.nans + stats.infinities;
  std::string text = fmt::format("min {:.6g}, max {:.6g}, mean {:.6g}", stats.min, stats.max, stats.mean);
  if (not_finite) text += fmt::format(", {} NaN or infinite", not_finite);
  return text;
}

}  // namespace

std::string value_text(const Value& value) {
  if (value.is_sequence()) {
    std::string text = value.describe();
    for (const Value& item : value.sequence().items) text += "\n  " + value_text(item);
    return text;
  }
  if (value.is_optional() && value.optional().item) return "optional " + value_text(*value.optional().item);
  if (value.is_map())
    return fmt::format("map {{{}: {}}}", value_text(value.map().keys), value_text(value.map().values));
  if (!value.is_tensor()) return value.describe();
  const Tensor& tensor = value.tensor();
  if (tensor.elements() <= few) {
    int64_t at = 0;
    std::string start = value.describe();
    return start + (tensor.rank() > 1 ? "\n  " : " ") + nested(tensor, 0, at, 2);
  }
  std::string text = value.describe() + " [";
  for (int64_t i = 0; i < 8; ++i) text += element_as_text(tensor, i) + ", ";
  return text + "…]  " + statistics(tensor);
}

std::vector<std::string> elements_as_text(const Tensor& tensor) {
  std::vector<std::string> texts;
  for (int64_t i = 0; i < tensor.elements(); ++i) texts.push_back(element_as_text(tensor, i));
  return texts;
}

namespace {

void write_value(const std::filesystem::path& folder, const std::string& name, const Value& value,
                 std::vector<std::string>& files) {
  if (value.is_sequence()) {
    for (size_t i = 0; i < value.sequence().items.size(); ++i) {
      write_value(folder, fmt::format("{}.{}", name, i), value.sequence().items[i], files);
    }
  } else if (value.is_optional()) {
    if (value.optional().item) write_value(folder, name, *value.optional().item, files);
  } else if (value.is_map()) {
    write_value(folder, name + ".keys", value.map().keys, files);
    write_value(folder, name + ".values", value.map().values, files);
  } else if (value.is_tensor()) {
    std::filesystem::path path = folder / (file_name_for(name) + ".npy");
    write_npy(path, value.tensor());
    files.push_back(path.string());
  }
}

}  // namespace

std::vector<std::string> write_values(const std::string& folder, const NamedValues& values) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail(ErrorCode::write_failed, "cannot make the folder '{}': {}", folder, error.message());
  std::vector<std::string> files;
  for (const auto& [name, value] : values) write_value(folder, name, value, files);
  return files;
}

}  // namespace tenon::tools
