#include <algorithm>

#include "ops/cpu_support/key_positions.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "ops/ml_encode/key_values.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// What takes the place of a key that is not there, as one element of the values' type.
Tensor default_value(const ir::Node& node, ElementType type) {
  if (const Tensor* given = node.tensor_attribute("default_tensor")) {
    if (given->type() != type || given->elements() != 1) {
      fail(ErrorCode::invalid_attribute, "default_tensor has {} elements of type {}, one of type {} is needed",
           given->elements(), name_of(given->type()), name_of(type));
    }
    return *given;
  }
  switch (type) {
    case ElementType::string:
      return Tensor::scalar(node.string_attribute("default_string", "_Unused"));
    case ElementType::int64:
      return Tensor::scalar(node.int_attribute("default_int64", -1));
    case ElementType::float32:
      return Tensor::scalar(node.float_attribute("default_float", -0.0f));
    case ElementType::float64:
      return Tensor::scalar(-0.0);
    case ElementType::int32:
      return Tensor::scalar(int32_t{-1});
    case ElementType::int16:
      return Tensor::scalar(int16_t{-1});
    default:
      fail(ErrorCode::invalid_attribute, "the values are {}, which no label can be", name_of(type));
  }
}

template <typename Key>
class LabelEncoder final : public Kernel {
 public:
  // Of keys [n] and values [n]; `otherwise` has one element of the values' type.
  LabelEncoder(const Tensor& keys, Tensor values, Tensor otherwise)
      : positions_(keys.data<Key>()), values_(std::move(values)), otherwise_(std::move(otherwise)) {}

  void run(KernelRun& run) const override {
    auto x = run.data<Key>(0);
    Tensor& y = run.output(0);
    dispatch_width(values_.type(), [&]<typename T>() {
      const T* values = static_cast<const T*>(values_.raw());
      const T& otherwise = *static_cast<const T*>(otherwise_.raw());
      T* out = static_cast<T*>(y.mutable_raw());
      run.threads().parallel_for(y.elements(), costly_grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t position = positions_.find(x[static_cast<size_t>(i)]);
          out[i] = position < 0 ? otherwise : values[position];
        }
      });
    });
  }

 private:
  KeyPositions<Key> positions_;
  Tensor values_, otherwise_;
};

std::unique_ptr<Kernel> make_label_encoder(const NodeInfo& info) {
  Tensor keys = read_listed_tensor(info.node(), "keys"), values = read_listed_tensor(info.node(), "values");
  Tensor otherwise = default_value(info.node(), values.type());
  std::unique_ptr<Kernel> kernel;
  dispatch<std::string, int64_t, float, int32_t, int16_t, double>(keys.type(), [&]<typename Key>() {
    kernel = std::make_unique<LabelEncoder<Key>>(keys, std::move(values), std::move(otherwise));
  });
  return kernel;
}

class CategoryMapper final : public Kernel {
 public:
  explicit CategoryMapper(const NodeInfo& info)
      : strings_(info.node().strings_attribute("cats_strings")),
        ints_(info.node().ints_attribute("cats_int64s")),
        default_string_(info.node().string_attribute("default_string", "_Unused")),
        default_int_(info.node().int_attribute("default_int64", -1)),
        of_strings_(strings_),
        of_ints_(ints_) {}

  void run(KernelRun& run) const override {
    if (run.input(0).type() == ElementType::string) {
      map(run, of_strings_, ints_, default_int_);
    } else {
      map(run, of_ints_, strings_, default_string_);
    }
  }

 private:
  template <typename Key, typename T>
  static void map(KernelRun& run, const KeyPositions<Key>& positions, const std::vector<T>& values,
                  const T& otherwise) {
    auto x = run.data<Key>(0);
    auto out = run.output(0).template mutable_data<T>();
    run.threads().parallel_for(run.input(0).elements(), costly_grain, [&](int64_t begin, int64_t end) {
      for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
        const int64_t position = positions.find(x[i]);
        out[i] = position < 0 ? otherwise : values[static_cast<size_t>(position)];
      }
    });
  }

  std::vector<std::string> strings_;
  std::vector<int64_t> ints_;
  std::string default_string_;
  int64_t default_int_;
  KeyPositions<std::string> of_strings_;
  KeyPositions<int64_t> of_ints_;
};

class OneHotEncoder final : public Kernel {
 public:
  explicit OneHotEncoder(const NodeInfo& info)
      : of_strings_(info.node().strings_attribute("cats_strings")),
        of_ints_(info.node().ints_attribute("cats_int64s")),
        zeros_(info.node().int_attribute("zeros", 1) != 0) {}

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    Tensor& y = run.output(0);
    const int64_t categories = y.dim(y.rank() - 1);
    float* out = y.mutable_data<float>().data();
    dispatch<std::string, int64_t, int32_t, float, double>(x.type(), [&]<typename T>() {
      const T* values = x.data<T>().data();
      run.threads().parallel_for(x.elements(), 1 + cheap_grain / categories, [&](int64_t begin, int64_t end) {
        std::fill(out + begin * categories, out + end * categories, 0.0f);
        for (int64_t i = begin; i < end; ++i) {
          const int64_t position = find(values[i]);
          if (position >= 0) {
            out[i * categories + position] = 1;
          } else if (!zeros_) {
            fail(ErrorCode::invalid_value, "element {} is in no category, and zeros is 0", i);
          }
        }
      });
    });
  }

 private:
  int64_t find(const std::string& value) const { return of_strings_.find(value); }
  // Floats are cut off to integers.
  template <typename T>
  int64_t find(T value) const {
    if constexpr (std::is_floating_point_v<T>) {
      constexpr T limit = T(9223372036854775808.0);
      if (!(value >= -limit && value < limit)) return -1;
    }
    return of_ints_.find(static_cast<int64_t>(value));
  }

  KeyPositions<std::string> of_strings_;
  KeyPositions<int64_t> of_ints_;
  bool zeros_;
};

}  // namespace

void cpu_ml_encode(CpuKernels& list) {
  constexpr const char* domain = "ai.onnx.ml";
  list.add(
      "CategoryMapper", [](const NodeInfo& info) { return std::make_unique<CategoryMapper>(info); }, nullptr, domain);
  list.add("LabelEncoder", make_label_encoder, nullptr, domain);
  list.add(
      "OneHotEncoder", [](const NodeInfo& info) { return std::make_unique<OneHotEncoder>(info); }, nullptr, domain);
}

}  // namespace tenon::ops
