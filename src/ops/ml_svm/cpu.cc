#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/gemm/gemm.h"
#include "kernels/math/math.h"
#include "ops/cpu_support/dot.h"
#include "ops/cpu_support/feature_rows.h"
#include "ops/cpu_support/post_transform.h"
#include "ops/ml_svm/cpu_pairwise.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// Vectors that rows are compared with by the node's kernel function.
class SupportVectors {
 public:
  // `vectors` is [count, features]; `linear` replaces the node's kernel function.
  SupportVectors(const ir::Node& node, const std::vector<float>& vectors, size_t count, bool linear)
      : count_(count), by_feature_(vectors.size()) {
    const size_t features = count == 0 ? 0 : vectors.size() / count;
    for (size_t v = 0; v < count; ++v) {
      for (size_t f = 0; f < features; ++f) by_feature_[f * count + v] = vectors[v * features + f];
    }
    const std::string type = linear ? "LINEAR" : node.string_attribute("kernel_type", "LINEAR");
    kernel_ = type == "POLY"      ? Kernel::poly
              : type == "RBF"     ? Kernel::rbf
              : type == "SIGMOID" ? Kernel::sigmoid
                                  : Kernel::linear;
    const std::vector<float> parameters = node.floats_attribute("kernel_params");
    if (parameters.size() == 3) gamma_ = parameters[0], coef0_ = parameters[1], degree_ = parameters[2];
  }

  size_t size() const { return count_; }
  // Whether comparisons are products, which all rows can have at once.
  bool has_products() const { return kernel_ != Kernel::rbf; }
  void multiply(ThreadPool& threads, const float* rows, int64_t count, int64_t features, float* out) const {
    const auto vectors = static_cast<int64_t>(count_);
    kernels::gemm(threads, count, vectors, features, {rows, features}, {by_feature_.data(), vectors}, out, vectors);
  }

  // One number for each vector.
  void compare(const float* row, int64_t features, std::span<float> out) const {
    std::ranges::fill(out, 0.0f);
    for (int64_t f = 0; f < features; ++f) {
      const float* vectors = by_feature_.data() + static_cast<size_t>(f) * count_;
      const float x = row[f];
      if (kernel_ == Kernel::rbf) {
        for (size_t v = 0; v < count_; ++v) out[v] += (x - vectors[v]) * (x - vectors[v]);
      } else {
        for (size_t v = 0; v < count_; ++v) out[v] += x * vectors[v];
      }
    }
    finish(out);
  }

 private:
  enum class Kernel { linear, poly, rbf, sigmoid };

 public:
  void finish(std::span<float> values) const {
    const auto count = std::ssize(values);
    if (kernel_ == Kernel::linear) return;
    if (kernel_ == Kernel::rbf) {
      for (float& value : values) value *= -gamma_;
      return kernels::f32_exp(values.data(), values.data(), count);
    }
    for (float& value : values) value = gamma_ * value + coef0_;
    if (kernel_ == Kernel::sigmoid) return kernels::f32_tanh(values.data(), values.data(), count);
    if (degree_ == 2) {
      for (float& value : values) value *= value;
    } else if (degree_ == 3) {
      for (float& value : values) value *= value * value;
    } else {
      for (float& value : values) value = std::pow(value, degree_);
    }
  }

 private:
  size_t count_;
  std::vector<float> by_feature_;  // [features, count]
  Kernel kernel_;
  float gamma_ = 0, coef0_ = 0, degree_ = 0;
};

// Calls finish(row, comparisons) for every row of input 0.
template <typename Finish>
void compare_rows(KernelRun& run, const SupportVectors& vectors, Finish finish) {
  const FeatureRows<float> x(run);
  const auto count = static_cast<int64_t>(vectors.size()), work = 1 + x.features * count;
  if (vectors.has_products() && x.features > 0 && count > 1) {
    constexpr int64_t at_once = 1024;
    std::vector<float> products(static_cast<size_t>(std::min(at_once, x.rows) * count));
    for (int64_t first = 0; first < x.rows; first += at_once) {
      const int64_t rows = std::min(at_once, x.rows - first);
      vectors.multiply(run.threads(), x.row(first), rows, x.features, products.data());
      run.threads().parallel_for(rows, 1 + (16 << 10) / (4 * count + 1), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const std::span<float> own(products.data() + row * count, vectors.size());
          vectors.finish(own);
          finish(first + row, own);
        }
      });
    }
    return;
  }
  run.threads().parallel_for(x.rows, 1 + (16 << 10) / work, [&](int64_t begin, int64_t end) {
    std::vector<float> comparisons(vectors.size());
    for (int64_t row = begin; row < end; ++row) {
      vectors.compare(x.row(row), x.features, comparisons);
      finish(row, std::span<float>(comparisons));
    }
  });
}

class SvmRegressor final : public Kernel {
 public:
  explicit SvmRegressor(const NodeInfo& info)
      : linear_(info.node().int_attribute("n_supports", 0) <= 0),
        one_class_(info.node().int_attribute("one_class", 0) != 0),
        coefficients_(info.node().floats_attribute("coefficients")),
        rho_(info.node().floats_attribute("rho").at(0)),
        vectors_(info.node(), linear_ ? coefficients_ : info.node().floats_attribute("support_vectors"),
                 linear_ ? 1 : static_cast<size_t>(info.node().int_attribute("n_supports", 0)), linear_) {}

  void run(KernelRun& run) const override {
    float* out = run.output(0).mutable_data<float>().data();
    compare_rows(run, vectors_, [&](int64_t row, std::span<float> comparisons) {
      float sum = rho_;
      for (size_t v = 0; v < comparisons.size(); ++v) sum += comparisons[v] * (linear_ ? 1 : coefficients_[v]);
      if (one_class_) sum = sum > 0 ? 1.0f : -1.0f;
      out[row] = sum;
    });
  }

 private:
  bool linear_, one_class_;
  std::vector<float> coefficients_;
  float rho_;
  SupportVectors vectors_;
};

// One linear function for each class.
class LinearSvmClassifier final : public Kernel {
 public:
  explicit LinearSvmClassifier(const ir::Node& node)
      : labels_(node, "classlabels_ints", "classlabels_strings"),
        coefficients_(node.floats_attribute("coefficients")),
        rho_(node.floats_attribute("rho").at(0)),
        transform_(post_transform_of(node)),
        vectors_(node, coefficients_, labels_.size(), true) {
    // The second of two classes is chosen by its sign, or as a probability when no coefficient is negative.
    if (labels_.size() == 2 && node.floats_attribute("prob_a").empty()) {
      const bool is_probability = std::ranges::all_of(coefficients_, [](float c) { return c >= 0; });
      threshold_ = is_probability ? 0.5f : std::numeric_limits<float>::denorm_min();
    }
  }

  void run(KernelRun& run) const override {
    const LabelWriter labels = labels_.writer(run.wants_output(0) ? &run.output(0) : nullptr);
    float* out = run.wants_output(1) ? run.output(1).mutable_data<float>().data() : nullptr;
    const auto classes = static_cast<int64_t>(labels_.size());
    compare_rows(run, vectors_, [&](int64_t row, std::span<float> scores) {
      for (float& score : scores) score += rho_;
      auto best = std::ranges::max_element(scores);
      labels.write(row, *best >= threshold_ ? 1 : best - scores.begin());
      if (scores.size() == 1) {
        scores[0] = post_transform_one(transform_, scores[0]);
      } else {
        post_transform(transform_, scores);
      }
      if (out) std::ranges::copy(scores, out + row * classes);
    });
  }

 private:
  ClassLabels labels_;
  std::vector<float> coefficients_;
  float rho_;
  PostTransform transform_;
  SupportVectors vectors_;
  float threshold_ = std::numeric_limits<float>::infinity();
};

// One function for each pair of classes, which votes for one of them.
class SvmClassifier final : public Kernel {
 public:
  explicit SvmClassifier(const ir::Node& node)
      : labels_(node, "classlabels_ints", "classlabels_strings"),
        per_class_(node.ints_attribute("vectors_per_class")),
        coefficients_(node.floats_attribute("coefficients")),
        rho_(node.floats_attribute("rho")),
        prob_a_(node.floats_attribute("prob_a")),
        prob_b_(node.floats_attribute("prob_b")),
        transform_(post_transform_of(node)),
        vectors_(node, node.floats_attribute("support_vectors"),
                 static_cast<size_t>(std::accumulate(per_class_.begin(), per_class_.end(), int64_t{0})), false) {}

  void run(KernelRun& run) const override {
    const LabelWriter labels = labels_.writer(run.wants_output(0) ? &run.output(0) : nullptr);
    float* out = run.wants_output(1) ? run.output(1).mutable_data<float>().data() : nullptr;
    const size_t columns = columns_of_scores();
    compare_rows(run, vectors_, [&](int64_t row, std::span<float> comparisons) {
      std::vector<float> scores;
      std::vector<int> votes(labels_.size());
      score_pairs(comparisons, scores, votes);
      labels.write(row, std::ranges::max_element(votes) - votes.begin());
      if (out) finish(scores, std::span(out + row * static_cast<int64_t>(columns), columns));
    });
  }

 private:
  size_t pairs() const { return labels_.size() * (labels_.size() - 1) / 2; }
  size_t columns_of_scores() const { return !prob_a_.empty() || labels_.size() == 2 ? labels_.size() : pairs(); }

  // Row j-1 of the coefficients has, for the vectors of a class i < j, those against class j, and row i those of the
  // vectors of class j against class i.
  void score_pairs(std::span<const float> comparisons, std::vector<float>& scores, std::vector<int>& votes) const {
    auto sum = [&](size_t coefficient_row, size_t first, int64_t count) {
      return dot<double>(coefficients_.data() + coefficient_row * vectors_.size() + first, comparisons.data() + first,
                         count);
    };
    size_t first_of_i = 0;
    for (size_t i = 0; i < labels_.size(); ++i) {
      size_t first_of_j = first_of_i + static_cast<size_t>(per_class_[i]);
      for (size_t j = i + 1; j < labels_.size(); ++j) {
        const double score =
            sum(j - 1, first_of_i, per_class_[i]) + sum(i, first_of_j, per_class_[j]) + rho_[scores.size()];
        scores.push_back(static_cast<float>(score));
        ++votes[score > 0 ? i : j];
        first_of_j += static_cast<size_t>(per_class_[j]);
      }
      first_of_i += static_cast<size_t>(per_class_[i]);
    }
  }

  void finish(std::vector<float>& scores, std::span<float> out) const {
    if (!prob_a_.empty()) {
      for (size_t i = 0; i < scores.size(); ++i) {
        scores[i] = std::clamp(1 - logistic(scores[i] * prob_a_[i] + prob_b_[i]), 1e-7f, 1 - 1e-7f);
      }
      couple_pairwise_probabilities(scores, out);
      post_transform(transform_, out);
    } else if (labels_.size() > 2) {
      post_transform(transform_, scores);
      std::ranges::copy(scores, out.begin());
    } else if (transform_ == PostTransform::logistic) {
      out[0] = logistic(-scores[0]), out[1] = logistic(scores[0]);
    } else {
      // As it is it may be of either sign; to a transform it is a probability.
      out[0] = post_transform_one(transform_, transform_ == PostTransform::none ? -scores[0] : 1 - scores[0]);
      out[1] = post_transform_one(transform_, scores[0]);
    }
  }

  ClassLabels labels_;
  std::vector<int64_t> per_class_;
  std::vector<float> coefficients_, rho_, prob_a_, prob_b_;
  PostTransform transform_;
  SupportVectors vectors_;
};

std::unique_ptr<Kernel> make_classifier(const NodeInfo& info) {
  const std::vector<int64_t> per_class = info.node().ints_attribute("vectors_per_class");
  if (std::ranges::all_of(per_class, [](int64_t count) { return count == 0; })) {
    return std::make_unique<LinearSvmClassifier>(info.node());
  }
  return std::make_unique<SvmClassifier>(info.node());
}

}  // namespace

void cpu_ml_svm(CpuKernels& list) {
  list.add("SVMClassifier", make_classifier, nullptr, "ai.onnx.ml");
  list.add(
      "SVMRegressor", [](const NodeInfo& info) { return std::make_unique<SvmRegressor>(info); }, nullptr, "ai.onnx.ml");
}

}  // namespace tenon::ops
