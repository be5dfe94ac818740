#include <algorithm>

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
    if (x.features >= float_lanes) {
      switch (targets) {
        case 1:
          return compute_few<1>(threads, x, scores);
        case 2:
          return compute_few<2>(threads, x, scores);
        case 3:
          return compute_few<3>(threads, x, scores);
        case 4:
          return compute_few<4>(threads, x, scores);
        default:
          break;
      }
    }
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
    const IntVector last = last_lanes(x.features % float_lanes);
    threads.parallel_for(x.rows, 1 + (8 << 10) / (x.features + 1), [&](int64_t begin, int64_t end) {
      int64_t row = begin;
      for (; row + 4 <= end; row += 4) multiply<4, targets>(x, row, last, scores + row * targets);
      for (; row < end; ++row) multiply<1, targets>(x, row, last, scores + row * targets);
    });
  }

  // The scores of some rows, of at least a vector of features. The last vector of a row goes back over features that
  // were there before, of which it counts the `last` lanes.
  template <int rows, int targets>
  void multiply(const FeatureRows<float>& x, int64_t row, IntVector last, float* scores) const {
    const int64_t n = x.features;
    const float *features = x.row(row), *coefficients = coefficients_.data();
    FloatVector sums[targets][rows] = {};
    const auto add = [&](int64_t at, auto used) {
#pragma GCC unroll 4
      for (int t = 0; t < targets; ++t) {
        const FloatVector factors = used(vector_at(coefficients + t * n + at));
#pragma GCC unroll 4
        for (int r = 0; r < rows; ++r)
          sums[t][r] = multiply_add(used(vector_at(features + r * n + at)), factors, sums[t][r]);
      }
    };
    for (int64_t i = 0; i + float_lanes <= n; i += float_lanes) add(i, [](FloatVector all) { return all; });
    if (n % float_lanes > 0)
      add(n - float_lanes, [&](FloatVector all) { return (FloatVector)((IntVector)all & last); });
#pragma GCC unroll 4
    for (int t = 0; t < targets; ++t) {
      const QuarterVector totals = sums_of(sums[t]) + (intercepts_.empty() ? 0 : intercepts_[static_cast<size_t>(t)]);
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) scores[r * targets + t] = totals[r];
    }
  }

  // -1 in the last `count` lanes.
  static IntVector last_lanes(int64_t count) {
    IntVector mask = {};
    for (int lane = 0; lane < float_lanes; ++lane) mask[lane] = lane >= float_lanes - count ? -1 : 0;
    return mask;
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
      if (targets > 1) return post_transform_rows(transform_, out + begin * targets, end - begin, targets);
      for (int64_t row = begin; row < end; ++row) out[row] = post_transform_one(transform_, out[row]);
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
    const LabelWriter labels = labels_.writer(run.wants_output(0) ? &run.output(0) : nullptr);
    float* out = run.wants_output(1) ? run.output(1).mutable_data<float>().data() : nullptr;
    Tensor computed;
    float* raw = out;
    if (one_score_ || !out) {
      computed = Tensor(ElementType::float32, Shape{x.rows, targets}, run.allocator());
      raw = computed.mutable_data<float>().data();
    }
    scores_.compute(run.threads(), x, targets, raw);
    run.threads().parallel_for(x.rows, 1 + 1024 / columns_, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const float* scores = raw + row * targets;
        labels.write(row, one_score_ ? *scores > 0 : place_of_largest(scores, targets));
        if (out && one_score_) finish(*scores, std::span(out + row * columns_, static_cast<size_t>(columns_)));
      }
      if (out && !one_score_) post_transform_rows(transform_, out + begin * targets, end - begin, targets);
    });
  }

 private:
  static int64_t place_of_largest(const float* scores, int64_t count) {
    int64_t place = 0;
    float best = scores[0];
    for (int64_t i = 1; i < count; ++i) {
      const bool larger = best < scores[i];
      place = larger ? i : place;
      best = larger ? scores[i] : best;
    }
    return place;
  }

  void finish(float score, std::span<float> out) const {
    if (out.size() == 1) {
      out[0] = post_transform_one(transform_, score);
    } else if (transform_ == PostTransform::logistic) {
      out[0] = logistic(-score), out[1] = logistic(score);
    } else {
      // The score is taken as the probability of the second class.
      out[0] = post_transform_one(transform_, 1 - score), out[1] = post_transform_one(transform_, score);
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
