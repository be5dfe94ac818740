#include <algorithm>
#include <numeric>

#include "base/fail.h"
#include "ops/cast/text.h"
#include "ops/cpu_support/key_positions.h"
#include "ops/dispatch.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// Input 0, of which nothing but the kind has been checked before.
const Map& map_input(const KernelRun& run) {
  const Map& map = run.value(0).map();
  if (map.keys.elements() != map.values.elements()) {
    fail(ErrorCode::invalid_value, "the map has {} keys and {} values", map.keys.elements(), map.values.elements());
  }
  return map;
}

template <typename To, typename From>
To convert(const From& value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<To, std::string>) {
    return fmt::format("{:f}", static_cast<double>(value));
  } else if constexpr (std::is_same_v<To, int64_t> && std::is_floating_point_v<From>) {
    constexpr From limit = From(9223372036854775808.0);
    if (!(value >= -limit && value < limit)) fail(ErrorCode::invalid_value, "{} is no int64", value);
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

class CastMap final : public Kernel {
 public:
  explicit CastMap(const NodeInfo& info)
      : sparse_(info.node().string_attribute("map_form", "DENSE") == "SPARSE"),
        size_(info.node().int_attribute("max_map", 1)) {}

  void run(KernelRun& run) const override {
    const Map& map = map_input(run);
    auto keys = map.keys.data<int64_t>();
    Tensor& y = run.output(0, Shape{1, sparse_ ? size_ : map.keys.elements()});
    const bool to_text = y.type() == ElementType::string, from_text = map.values.type() == ElementType::string;
    if (from_text && to_text) return place(keys, map.values.data<std::string>(), y.mutable_data<std::string>());
    const Tensor numbers = from_text ? text_to_numbers(map.values, y.type() == ElementType::float32) : map.values;
    dispatch<float, double, int64_t>(numbers.type(), [&]<typename From>() {
      dispatch<float, std::string, int64_t>(
          y.type(), [&]<typename To>() { place(keys, numbers.data<From>(), y.mutable_data<To>()); });
    });
  }

 private:
  template <typename From, typename To>
  void place(std::span<const int64_t> keys, std::span<const From> values, std::span<To> out) const {
    if (!sparse_) {
      std::vector<size_t> order(keys.size());
      std::iota(order.begin(), order.end(), size_t{0});
      std::ranges::stable_sort(order, {}, [&](size_t i) { return keys[i]; });
      for (size_t i = 0; i < order.size(); ++i) out[i] = convert<To>(values[order[i]]);
      return;
    }
    // What onnxruntime fills the gaps with.
    if constexpr (std::is_same_v<To, std::string>) {
      std::ranges::fill(out, "0.f");
    } else {
      std::ranges::fill(out, To(0));
    }
    for (size_t i = 0; i < keys.size(); ++i) {
      if (keys[i] < 0 || keys[i] >= size_) {
        fail(ErrorCode::invalid_value, "the map has the key {}, max_map allows 0 to {}", keys[i], size_ - 1);
      }
      out[static_cast<size_t>(keys[i])] = convert<To>(values[i]);
    }
  }

  bool sparse_;
  int64_t size_;
};

template <typename Key>
class DictVectorizer final : public Kernel {
 public:
  explicit DictVectorizer(const std::vector<Key>& vocabulary)
      : size_(static_cast<int64_t>(vocabulary.size())), positions_(vocabulary) {}

  void run(KernelRun& run) const override {
    const Map& map = map_input(run);
    auto keys = map.keys.data<Key>();
    Tensor& y = run.output(0, map.values.type(), Shape{1, size_});
    dispatch<float, double, int64_t, std::string>(y.type(), [&]<typename T>() {
      auto values = map.values.data<T>();
      auto out = y.mutable_data<T>();
      std::ranges::fill(out, T{});
      for (size_t i = 0; i < keys.size(); ++i) {
        const int64_t position = positions_.find(keys[i]);
        if (position >= 0) out[static_cast<size_t>(position)] = values[i];
      }
    });
  }

 private:
  int64_t size_;
  KeyPositions<Key> positions_;
};

std::unique_ptr<Kernel> make_dict_vectorizer(const NodeInfo& info) {
  std::vector<std::string> strings = info.node().strings_attribute("string_vocabulary");
  if (!strings.empty()) return std::make_unique<DictVectorizer<std::string>>(strings);
  return std::make_unique<DictVectorizer<int64_t>>(info.node().ints_attribute("int64_vocabulary"));
}

class ZipMap final : public Kernel {
 public:
  explicit ZipMap(const NodeInfo& info) {
    std::vector<std::string> strings = info.node().strings_attribute("classlabels_strings");
    std::vector<int64_t> ints = info.node().ints_attribute("classlabels_int64s");
    const auto count = static_cast<int64_t>(std::max(strings.size(), ints.size()));
    labels_ = strings.empty() ? Tensor(Shape{count}, std::span<const int64_t>(ints))
                              : Tensor(Shape{count}, std::span<const std::string>(strings));
  }

  // The maps share the labels, and have the rows of the input as their values.
  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    Sequence maps;
    const int64_t rows = x.rank() == 2 ? x.dim(0) : 1, columns = labels_.elements();
    maps.items.reserve(static_cast<size_t>(rows));
    for (int64_t row = 0; row < rows; ++row)
      maps.items.emplace_back(Map{labels_, x.part(row * columns, Shape{columns})});
    run.set_output(0, std::move(maps));
  }

 private:
  Tensor labels_;
};

}  // namespace

void cpu_ml_maps(CpuKernels& list) {
  constexpr const char* domain = "ai.onnx.ml";
  list.add(
      "CastMap", [](const NodeInfo& info) { return std::make_unique<CastMap>(info); }, nullptr, domain);
  list.add("DictVectorizer", make_dict_vectorizer, nullptr, domain);
  list.add(
      "ZipMap", [](const NodeInfo& info) { return std::make_unique<ZipMap>(info); }, nullptr, domain);
}

}  // namespace tenon::ops
