#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/cpu_support/feature_rows.h"
#include "ops/cpu_support/float_vectors.h"
#include "ops/cpu_support/indices.h"
#include "ops/elementwise.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// The length of the last axis; a scalar is one feature.
int64_t features_of(const Tensor& x) { return x.rank() == 0 ? 1 : x.dim(x.rank() - 1); }

// Calls body(row) for all rows of the last axis.
template <typename Body>
void for_each_row(KernelRun& run, Body body) {
  const int64_t features = features_of(run.input(0)), rows = features == 0 ? 0 : run.input(0).elements() / features;
  run.threads().parallel_for(rows, 1 + cheap_grain / (1 + features), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) body(row * features, features);
  });
}

void array_feature_extractor(KernelRun& run) {
  const Tensor& x = run.input(0);
  const Indices wanted(run.input(1));
  const int64_t features = features_of(x), count = run.input(1).elements();
  for (int64_t i = 0; i < count; ++i) {
    if (wanted[i] < 0 || wanted[i] >= features) {
      fail(ErrorCode::invalid_value, "feature {} is asked for, the last axis has {}", wanted[i], features);
    }
  }
  Tensor& y = run.output(0);
  dispatch_width(x.type(), [&]<typename T>() {
    const T* from = static_cast<const T*>(x.raw());
    T* to = static_cast<T*>(y.mutable_raw());
    const int64_t rows = count == 0 ? 0 : y.elements() / count;
    std::vector<int64_t> places(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) places[static_cast<size_t>(i)] = wanted[i];
    run.threads().parallel_for(rows, 1 + cheap_grain / (1 + count), [&](int64_t begin, int64_t end) {
      // Some rows at once, so that an index is read once for all of them.
      constexpr int64_t at_once = 4;
      const int64_t* place = places.data();
      int64_t row = begin;
      for (; row + at_once <= end; row += at_once) {
        const T* own = from + row * features;
        T* out = to + row * count;
        for (int64_t i = 0; i < count; ++i) {
          const T* at = own + place[i];
          for (int64_t k = 0; k < at_once; ++k) out[k * count + i] = at[k * features];
        }
      }
      for (; row < end; ++row) {
        for (int64_t i = 0; i < count; ++i) to[row * count + i] = from[row * features + place[i]];
      }
    });
  });
}

class Binarizer final : public Kernel {
 public:
  explicit Binarizer(const NodeInfo& info) : threshold_(info.node().float_attribute("threshold", 0)) {}

  void run(KernelRun& run) const override {
    Tensor& y = run.output(0);
    dispatch<float, double, int32_t, int64_t>(y.type(), [&]<typename T>() {
      using Compared = std::conditional_t<std::is_same_v<T, float>, float, double>;
      const T* x = run.data<T>(0).data();
      T* out = y.mutable_data<T>().data();
      const Compared threshold = threshold_;
      run.threads().parallel_for(y.elements(), cheap_grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) out[i] = static_cast<Compared>(x[i]) > threshold ? T(1) : T(0);
      });
    });
  }

 private:
  float threshold_;
};

void feature_vectorizer(KernelRun& run) {
  const std::vector<int64_t> widths = run.node().ints_attribute("inputdimensions");
  Tensor& y = run.output(0);
  float* out = y.mutable_data<float>().data();
  std::fill_n(out, y.elements(), 0.0f);
  const int64_t rows = y.dim(0), columns = y.dim(1);
  for (size_t k = 0; k < run.input_count() && rows > 0; ++k) {
    const Tensor& x = run.input(k);
    const int64_t features = x.elements() / rows, width = widths.empty() ? features : widths[k];
    dispatch<float, double, int32_t, int64_t>(x.type(), [&]<typename T>() {
      const T* from = x.data<T>().data();
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t i = 0; i < std::min(width, features); ++i) {
          out[row * columns + i] = static_cast<float>(from[row * features + i]);
        }
      }
    });
    out += width;
  }
}

class Imputer final : public Kernel {
 public:
  explicit Imputer(const NodeInfo& info)
      : floats_(info.node().floats_attribute("imputed_value_floats")),
        ints_(info.node().ints_attribute("imputed_value_int64s")),
        replaced_float_(info.node().float_attribute("replaced_value_float", 0)),
        replaced_int_(info.node().int_attribute("replaced_value_int64", 0)) {}

  void run(KernelRun& run) const override {
    dispatch<float, double, int32_t, int64_t>(run.input(0).type(), [&]<typename T>() {
      if constexpr (std::is_floating_point_v<T>) {
        impute<T>(run, floats_, replaced_float_);
      } else {
        impute<T>(run, ints_, replaced_int_);
      }
    });
  }

 private:
  template <typename T, typename Number>
  static void impute(KernelRun& run, const std::vector<Number>& imputed, Number replaced) {
    std::vector<T> values;
    values.reserve(imputed.size());
    for (Number number : imputed) values.push_back(fitting<T>(number));
    const T* x = run.data<T>(0).data();
    T* y = run.output(0).template mutable_data<T>().data();
    const auto is_replaced = [&](T value) {
      if constexpr (std::is_floating_point_v<T>) {
        if (std::isnan(replaced)) return std::isnan(value);
      }
      return value == static_cast<std::common_type_t<T, Number>>(replaced);
    };
    const bool one = values.size() == 1, is_number = replaced == replaced;
    for_each_row(run, [&](int64_t first, int64_t features) {
      if (one && is_number) {
        const T value = values[0], gone = static_cast<T>(replaced);
        if (static_cast<Number>(gone) == replaced) return replace_all(x + first, y + first, features, gone, value);
      }
      for (int64_t i = 0; i < features; ++i) {
        const T value = x[first + i];
        y[first + i] = is_replaced(value) ? values[one ? 0 : static_cast<size_t>(i)] : value;
      }
    });
  }

  template <typename T>
  static void replace_all(const T* __restrict x, T* __restrict y, int64_t n, T gone, T value) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] == gone ? value : x[i];
  }

  template <typename T, typename Number>
  static T fitting(Number number) {
    if constexpr (std::is_same_v<T, int32_t>) {
      if (number < std::numeric_limits<T>::min() || number > std::numeric_limits<T>::max()) {
        fail(ErrorCode::invalid_attribute, "imputed_value_int64s holds {}, which is no int32", number);
      }
    }
    return static_cast<T>(number);
  }

  std::vector<float> floats_;
  std::vector<int64_t> ints_;
  float replaced_float_;
  int64_t replaced_int_;
};

class Normalizer final : public Kernel {
 public:
  explicit Normalizer(const NodeInfo& info) {
    const std::string norm = info.node().string_attribute("norm", "MAX");
    norm_ = norm == "L1" ? l1_norm : norm == "L2" ? l2_norm : largest;
  }

  void run(KernelRun& run) const override {
    const FeatureRows<float> x(run);
    float* out = run.output(0).mutable_data<float>().data();
    for_each_row(run, [&](int64_t first, int64_t features) {
      const std::span<const float> row(x.data() + first, static_cast<size_t>(features));
      const float norm = norm_(row);
      for (size_t i = 0; i < row.size(); ++i) out[first + static_cast<int64_t>(i)] = norm == 0 ? row[i] : row[i] / norm;
    });
  }

 private:
  static float largest(std::span<const float> row) {
    constexpr auto higher = [](auto best, auto value) { return best < value ? value : best; };
    float best = row[0];
    size_t i = 0;
    if (row.size() >= float_lanes) {
      FloatVector many, next;
      std::memcpy(&many, row.data(), sizeof many);
      for (i = float_lanes; i + float_lanes <= row.size(); i += float_lanes) {
        std::memcpy(&next, row.data() + i, sizeof next);
        many = higher(many, next);
      }
      for (int lane = 0; lane < float_lanes; ++lane) best = higher(best, many[lane]);
    }
    for (; i < row.size(); ++i) best = higher(best, row[i]);
    return best;
  }
  static float l1_norm(std::span<const float> row) {
    return sum_of_vectors(row, [](FloatVector value) { return value < 0 ? -value : value; });
  }
  static float l2_norm(std::span<const float> row) {
    return std::sqrt(sum_of_vectors(row, [](FloatVector value) { return value * value; }));
  }
  template <typename Function>
  static float sum_of_vectors(std::span<const float> row, Function function) {
    FloatVector sum{};
    each_vector(row.data(), std::ssize(row), [&](FloatVector value) { sum += function(value); });
    return sum_of(sum);
  }

  float (*norm_)(std::span<const float>);
};

class Scaler final : public Kernel {
 public:
  explicit Scaler(const NodeInfo& info)
      : offset_(info.node().floats_attribute("offset", {0})), scale_(info.node().floats_attribute("scale", {1})) {
    if (offset_.empty()) offset_ = {0};
    if (scale_.empty()) scale_ = {1};
  }

  void run(KernelRun& run) const override {
    float* out = run.output(0).mutable_data<float>().data();
    const int64_t offset_step = offset_.size() > 1, scale_step = scale_.size() > 1;
    dispatch<float, double, int32_t, int64_t>(run.input(0).type(), [&]<typename T>() {
      using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
      const T* x = run.data<T>(0).data();
      for_each_row(run, [&](int64_t first, int64_t features) {
        const float *offset = offset_.data(), *scale = scale_.data();
        for (int64_t i = 0; i < features; ++i) {
          out[first + i] =
              static_cast<float>((static_cast<C>(x[first + i]) - offset[i * offset_step]) * scale[i * scale_step]);
        }
      });
    });
  }

 private:
  std::vector<float> offset_, scale_;
};

template <typename T>
std::unique_ptr<Kernel> make(const NodeInfo& info) {
  return std::make_unique<T>(info);
}

}  // namespace

void cpu_ml_features(CpuKernels& list) {
  constexpr const char* domain = "ai.onnx.ml";
  list.add_simple("ArrayFeatureExtractor", array_feature_extractor, domain);
  list.add_simple("FeatureVectorizer", feature_vectorizer, domain);
  list.add("Binarizer", make<Binarizer>, nullptr, domain);
  list.add("Imputer", make<Imputer>, nullptr, domain);
  list.add("Normalizer", make<Normalizer>, nullptr, domain);
  list.add("Scaler", make<Scaler>, nullptr, domain);
}

}  // namespace tenon::ops
