#include <algorithm>
#include <cstring>

#include "kernels/gemm/gemm.h"
#include "ops/cpu_support/feature_rows.h"
#include "ops/cpu_support/float_vectors.h"
#include "ops/cpu_support/post_transform.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// scores [N, targets] = features * coefficients^T + intercepts
class LinearScores {
 public:
  explicit LinearScores(const ir::Node& node)
      : coefficients_(node.floats_attribute("coefficients")), intercepts_(node.floats_attribute("intercepts")) {}

  void compute(ThreadPool& threads, const FeatureRows<float>& x, int64_t targets, float* scores) const {
    if (targets == 2) return compute_few<2>(threads, x, scores);
    if (targets == 3) return compute_few<3>(threads, x, scores);
    if (targets == 4) return compute_few<4>(threads, x, scores);
    kernels::GemmEpilogue epilogue;
    if (!intercepts_.empty()) {
      epilogue.addend = intercepts_.data();
      epilogue.addend_column_stride = 1;
    }
    kernels::gemm(threads, x.rows, targets, x.features, {x.data(), x.features},
                  {coefficients_.data(), x.features, true}, scores, targets, epilogue);
  }
  size_t intercept_count() const { return intercepts_.size(); }

 private:
  // Products of so few columns would leave most of a vector unused, so that features are taken side by side instead.
  template <int targets>
  void compute_few(ThreadPool& threads, const FeatureRows<float>& x, float* scores) const {
    const int64_t n = x.features, whole = n / float_lanes * float_lanes;
    threads.parallel_for(x.rows, 1 + (8 << 10) / (n + 1), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const float* features = x.row(row);
        FloatVector sums[targets] = {};
        for (int64_t i = 0; i < whole; i += float_lanes) {
          FloatVector values, factors;
          std::memcpy(&values, features + i, sizeof values);
#pragma GCC unroll 4
          for (int t = 0; t < targets; ++t) {
            std::memcpy(&factors, coefficients_.data() + t * n + i, sizeof factors);
            sums[t] += values * factors;
          }
        }
        for (int t = 0; t < targets; ++t) {
          float sum = intercepts_.empty() ? 0 : intercepts_[static_cast<size_t>(t)];
          for (int64_t i = whole; i < n; ++i) sum += features[i] * coefficients_[static_cast<size_t>(t * n + i)];
          for (int lane = 0; lane < float_lanes; ++lane) sum += sums[t][lane];
          scores[row * targets + t] = sum;
        }
      }
    });
  }

  std::vector<float> coefficients_, intercepts_;
};

class LinearRegressor final : public Kernel {
 public:
  explicit LinearRegressor(const NodeInfo& info) : scores_(info.node()), transform_(post_transform_of(info.node())) {}

  void run(KernelRun& run) const override {
    Tensor& y = run.output(0);
    const int64_t targets = y.dim(1);
    float* out = y.mutable_data<float>().data();
    scores_.compute(run.threads(), FeatureRows<float>(run), targets, out);
    if (transform_ == PostTransform::none) return;
    run.threads().parallel_for(y.dim(0), 1 + 1024 / targets, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        float* scores = out + row * targets;
        if (targets == 1) {
          *scores = post_transform_one(transform_, *scores);
        } else {
          post_transform(transform_, std::span(scores, static_cast<size_t>(targets)));
        }
      }
    });
  }

 private:
  LinearScores scores_;
  PostTransform transform_;
};

class LinearClassifier final : public Kernel {
 public:
  explicit LinearClassifier(const NodeInfo& info)
      : scores_(info.node()),
        labels_(info.node(), "classlabels_ints", "classlabels_strings"),
        transform_(post_transform_of(info.node())) {
    one_score_ = scores_.intercept_count() == 1 || (scores_.intercept_count() == 0 && labels_.size() < 2);
    columns_ = one_score_ && labels_.size() != 2 ? 1 : static_cast<int64_t>(labels_.size());
    if (one_score_) labels_.complete_pair();
  }

  void run(KernelRun& run) const override {
    const FeatureRows<float> x(run);
    const int64_t targets = one_score_ ? 1 : columns_;
    Tensor computed(ElementType::float32, Shape{x.rows, targets}, run.allocator());
    float* raw = computed.mutable_data<float>().data();
    scores_.compute(run.threads(), x, targets, raw);
    Tensor* labels = run.wants_output(0) ? &run.output(0) : nullptr;
    float* out = run.wants_output(1) ? run.output(1).mutable_data<float>().data() : nullptr;
    run.threads().parallel_for(x.rows, 1 + 1024 / columns_, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const std::span<float> scores(raw + row * targets, static_cast<size_t>(targets));
        const int64_t chosen = one_score_ ? scores[0] > 0 : std::ranges::max_element(scores) - scores.begin();
        if (labels) labels_.write(*labels, row, chosen);
        if (out) finish(scores, std::span(out + row * columns_, static_cast<size_t>(columns_)));
      }
    });
  }

 private:
  void finish(std::span<float> scores, std::span<float> out) const {
    if (!one_score_) {
      post_transform(transform_, scores);
      std::ranges::copy(scores, out.begin());
    } else if (out.size() == 1) {
      out[0] = post_transform_one(transform_, scores[0]);
    } else if (transform_ == PostTransform::logistic) {
      out[0] = logistic(-scores[0]), out[1] = logistic(scores[0]);
    } else {
      // The score is taken as the probability of the second class.
      out[0] = post_transform_one(transform_, 1 - scores[0]), out[1] = post_transform_one(transform_, scores[0]);
    }
  }

  LinearScores scores_;
  ClassLabels labels_;
  PostTransform transform_;
  bool one_score_;
  int64_t columns_;
};

}  // namespace

void cpu_ml_linear(CpuKernels& list) {
  list.add(
      "LinearClassifier", [](const NodeInfo& info) { return std::make_unique<LinearClassifier>(info); }, nullptr,
      "ai.onnx.ml");
  list.add(
      "LinearRegressor", [](const NodeInfo& info) { return std::make_unique<LinearRegressor>(info); }, nullptr,
      "ai.onnx.ml");
}

}  // namespace tenon::ops
