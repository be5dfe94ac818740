// What the CPU kernels of ai.onnx.ml share.
#pragma once

#include <string>
#include <vector>

#include "ops/cpu_support/compute_type.h"

namespace tenon::ops {

// Input 0, [N, F] or [F], as rows of T; memory is shared when it has that type already.
template <typename T>
class FeatureRows {
 public:
  explicit FeatureRows(KernelRun& run) : values_(run.input(0)) {
    const Tensor& x = run.input(0);
    rows = x.rank() == 2 ? x.dim(0) : 1;
    features = x.dim(x.rank() - 1);
    if (x.type() == element_type_of<T>) return;
    values_ = Tensor(element_type_of<T>, x.shape(), run.allocator());
    dispatch<float, double, float16, int32_t, int64_t>(x.type(), [&]<typename From>() {
      convert_elements(run.threads(), x.data<From>().data(), values_.mutable_data<T>().data(), x.elements());
    });
  }
  const T* data() const { return static_cast<const T*>(values_.raw()); }
  const T* row(int64_t i) const { return data() + i * features; }

  int64_t rows, features;

 private:
  Tensor values_;
};

// Where the labels of rows are written to.
class LabelWriter {
 public:
  LabelWriter() = default;
  LabelWriter(const int64_t* ints, int64_t* to) : ints_(ints), to_ints_(to) {}
  LabelWriter(const std::string* strings, std::string* to) : strings_(strings), to_strings_(to) {}

  // Nothing where nobody wants labels.
  void write(int64_t row, int64_t chosen) const {
    if (to_ints_)
      to_ints_[row] = ints_[chosen];
    else if (to_strings_)
      to_strings_[row] = strings_[chosen];
  }

 private:
  const int64_t* ints_ = nullptr;
  int64_t* to_ints_ = nullptr;
  const std::string* strings_ = nullptr;
  std::string* to_strings_ = nullptr;
};

// The labels of a classifier, strings or integers.
class ClassLabels {
 public:
  ClassLabels(const ir::Node& node, std::string_view ints_attribute, std::string_view strings_attribute)
      : strings_(node.strings_attribute(strings_attribute)), ints_(node.ints_attribute(ints_attribute)) {
    if (!strings_.empty()) ints_.clear();
  }

  size_t size() const { return std::max(strings_.size(), ints_.size()); }
  // 0 and 1 where a node with one score does not name both of its classes.
  void complete_pair() {
    if (size() == 2) return;
    if (strings_.empty()) {
      ints_ = {0, 1};
    } else {
      strings_ = {"0", "1"};
    }
  }
  // `labels` is null where nobody wants them.
  LabelWriter writer(Tensor* labels) const {
    if (!labels) return {};
    if (strings_.empty()) return {ints_.data(), labels->mutable_data<int64_t>().data()};
    return {strings_.data(), labels->mutable_data<std::string>().data()};
  }

 private:
  std::vector<std::string> strings_;
  std::vector<int64_t> ints_;
};

}  // namespace tenon::ops
