#include <algorithm>

#include "base/cpu_features.h"
#include "base/fail.h"
#include "ops/cpu_support/feature_rows.h"
#include "ops/cpu_support/post_transform.h"
#include "ops/ml_tree/cpu_trees.h"
#include "ops/ml_tree/ensemble_targets.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// The scores of one row; those that no leaf had a weight for are 0 and not `given`.
template <typename T>
struct RowScores {
  std::span<T> scores;
  std::span<uint8_t> given;

  void add(Aggregation aggregation, std::span<const typename Trees<T>::Weight> weights) {
    for (const auto [target, weight] : weights) {
      const auto at = static_cast<size_t>(target);
      T& score = scores[at];
      if (aggregation == Aggregation::min) {
        score = given[at] ? std::min(score, weight) : weight;
      } else if (aggregation == Aggregation::max) {
        score = given[at] ? std::max(score, weight) : weight;
      } else {
        score += weight;
      }
      given[at] = 1;
    }
  }
};

// Rows that the second cache holds with their scores, and the nodes of a tree beside them.
template <typename T>
int64_t rows_at_once(int64_t features, int64_t targets) {
  const int64_t row_bytes = features * int64_t{sizeof(T)} + targets * int64_t{sizeof(T) + 1};
  return std::clamp<int64_t>(cpu_features().l2_bytes / 4 / row_bytes, 1, 1024);
}

// Calls finish(row, RowScores<T>) for every row. As many rows as the cache holds go through each tree while that is in
// the cache, side by side; those that are left over go through some trees at a time.
template <typename T, typename Finish>
void score_rows(ThreadPool& threads, const Trees<T>& trees, Aggregation aggregation, const FeatureRows<T>& x,
                int64_t targets, Finish finish) {
  trees.require_features(x.features);
  constexpr auto together = static_cast<int64_t>(Trees<T>::rows_together);
  const int64_t block = rows_at_once<T>(x.features, targets);
  threads.parallel_for(x.rows, 1 + 2048 / (1 + static_cast<int64_t>(trees.size())), [&](int64_t begin, int64_t end) {
    const auto width = static_cast<size_t>(targets), size = width * static_cast<size_t>(std::min(block, end - begin));
    std::vector<T> scores(size);
    std::vector<uint8_t> given(size);
    const auto row_scores = [=, scores = scores.data(), given = given.data()](int64_t k) {
      const size_t at = static_cast<size_t>(k) * width;
      return RowScores<T>{{scores + at, width}, {given + at, width}};
    };
    for (int64_t first = begin; first < end; first += block) {
      const int64_t rows = std::min(block, end - first), side_by_side = rows - rows % together;
      std::ranges::fill(scores, T(0));
      std::ranges::fill(given, uint8_t{0});
      for (size_t tree = 0; side_by_side > 0 && tree < trees.size(); ++tree) {
        for (int64_t k = 0; k < side_by_side; k += together) {
          const auto leaves = trees.find_leaves(tree, x.row(first + k), x.features);
          for (int64_t i = 0; i < together; ++i)
            row_scores(k + i).add(aggregation, trees.leaf_weights(leaves[static_cast<size_t>(i)]));
        }
      }
      for (int64_t k = side_by_side; k < rows; ++k) {
        for (size_t tree = 0; tree < trees.size(); tree += Trees<T>::trees_together) {
          const auto leaves = trees.find_leaves_of_row(tree, x.row(first + k));
          for (size_t leaf : std::span(leaves).first(std::min(Trees<T>::trees_together, trees.size() - tree))) {
            row_scores(k).add(aggregation, trees.leaf_weights(leaf));
          }
        }
      }
      for (int64_t k = 0; k < rows; ++k) finish(first + k, row_scores(k));
    }
  });
}

struct Scoring {
  int64_t targets;
  Aggregation aggregation;
  PostTransform transform;
};

// TreeEnsemble and TreeEnsembleRegressor.
template <typename T>
class TreeRegressor final : public Kernel {
 public:
  TreeRegressor(Trees<T> trees, Scoring scoring, std::vector<T> base_values)
      : trees_(std::move(trees)), scoring_(scoring), base_values_(std::move(base_values)) {
    if (!base_values_.empty() && static_cast<int64_t>(base_values_.size()) != scoring_.targets) {
      fail(ErrorCode::invalid_attribute, "there are {} base_values for {} targets", base_values_.size(),
           scoring_.targets);
    }
  }

  void run(KernelRun& run) const override {
    Tensor& y = run.output(0);
    dispatch<float, double, float16>(y.type(), [&]<typename Out>() {
      Out* out = y.mutable_data<Out>().data();
      score_rows(run.threads(), trees_, scoring_.aggregation, FeatureRows<T>(run), scoring_.targets,
                 [&](int64_t row, RowScores<T> result) {
                   finish(result.scores);
                   Out* to = out + row * scoring_.targets;
                   for (T score : result.scores) *to++ = static_cast<Out>(score);
                 });
    });
  }

 private:
  void finish(std::span<T> scores) const {
    for (size_t i = 0; i < scores.size(); ++i) {
      if (scoring_.aggregation == Aggregation::average) scores[i] /= static_cast<T>(trees_.size());
      if (!base_values_.empty()) scores[i] += base_values_[i];
    }
    if (scores.size() == 1) {
      scores[0] = post_transform_one(scoring_.transform, scores[0]);
    } else {
      post_transform(scoring_.transform, scores);
    }
  }

  Trees<T> trees_;
  Scoring scoring_;
  std::vector<T> base_values_;
};

// Classifiers of two classes often have weights for one only: the score of the second class, as a probability or, when
// there are negative weights, on both sides of 0.
template <typename T>
class TreeClassifier final : public Kernel {
 public:
  explicit TreeClassifier(const ir::Node& node)
      : labels_(node, "classlabels_int64s", "classlabels_strings"),
        classes_(static_cast<int64_t>(labels_.size())),
        trees_(Trees<T>::of_lists(node, "class", classes_)),
        transform_(post_transform_of(node)),
        base_values_(numbers_attribute<T>(node, "base_values", "base_values_as_tensor")) {
    const std::vector<int64_t> ids = node.ints_attribute("class_ids");
    scored_class_ = ids.empty() ? 0 : ids[0];
    one_score_ = classes_ == 1 || (classes_ == 2 && std::ranges::all_of(ids, [&](int64_t id) { return id == ids[0]; }));
    is_probability_ = std::ranges::all_of(trees_.all_weights(), [](const auto& weight) { return weight.value >= 0; });
    if (classes_ == 1) labels_.complete_pair();
    const size_t given = base_values_.size();
    if (given != 0 && given != static_cast<size_t>(classes_) && !(one_score_ && given == 1)) {
      fail(ErrorCode::invalid_attribute, "there are {} base_values for {} classes", given, classes_);
    }
  }

  void run(KernelRun& run) const override {
    const LabelWriter labels = labels_.writer(run.wants_output(0) ? &run.output(0) : nullptr);
    float* out = run.wants_output(1) ? run.output(1).mutable_data<float>().data() : nullptr;
    score_rows(
        run.threads(), trees_, Aggregation::sum, FeatureRows<T>(run), classes_, [&](int64_t row, RowScores<T> result) {
          const int64_t chosen = one_score_ ? finish_one(result.scores) : finish_all(result);
          labels.write(row, chosen);
          if (out)
            std::ranges::transform(result.scores, out + row * classes_, [](T s) { return static_cast<float>(s); });
        });
  }

 private:
  // Turns sums into scores and returns the class to choose: the best of those that have a score.
  int64_t finish_all(RowScores<T> row) const {
    for (size_t i = 0; i < base_values_.size(); ++i) row.scores[i] += base_values_[i], row.given[i] = 1;
    int64_t best = -1;
    for (size_t i = 0; i < row.scores.size(); ++i) {
      if (row.given[i] && (best < 0 || row.scores[i] > row.scores[static_cast<size_t>(best)])) {
        best = static_cast<int64_t>(i);
      }
    }
    post_transform(transform_, row.scores);
    return std::max<int64_t>(best, 0);
  }

  int64_t finish_one(std::span<T> scores) const {
    T score = scores[static_cast<size_t>(scored_class_)];
    if (!base_values_.empty()) score += base_values_[0];
    const bool second = score > (is_probability_ && classes_ == 2 ? T(0.5) : T(0));
    if (classes_ == 1) {
      scores[0] = post_transform_one(transform_, score);
    } else if (scored_class_ == 1) {
      scores[0] = 0, scores[1] = score;
      post_transform(transform_, scores);
    } else if (transform_ == PostTransform::logistic) {
      scores[0] = logistic(-score), scores[1] = logistic(score);
    } else {
      scores[0] = post_transform_one(transform_, is_probability_ ? 1 - score : -score);
      scores[1] = post_transform_one(transform_, score);
    }
    return second;
  }

  ClassLabels labels_;
  int64_t classes_;
  Trees<T> trees_;
  PostTransform transform_;
  std::vector<T> base_values_;
  int64_t scored_class_;
  bool one_score_, is_probability_;
};

Aggregation aggregation_of(const ir::Node& node) {
  const std::string name = node.string_attribute("aggregate_function", "SUM");
  if (name == "AVERAGE") return Aggregation::average;
  if (name == "MIN") return Aggregation::min;
  return name == "MAX" ? Aggregation::max : Aggregation::sum;
}

// An attribute that is the number of a choice.
int64_t choice(const ir::Node& node, const char* name, int64_t otherwise, int64_t choices) {
  const int64_t chosen = node.int_attribute(name, otherwise);
  if (chosen < 0 || chosen >= choices) {
    fail(ErrorCode::invalid_attribute, "{} is {}; it may be 0 to {}", name, chosen, choices - 1);
  }
  return chosen;
}

template <typename T>
std::unique_ptr<Kernel> make_ensemble(const ir::Node& node) {
  const int64_t targets = ensemble_targets(node);
  Scoring scoring{targets, static_cast<Aggregation>(choice(node, "aggregate_function", 1, 4)),
                  static_cast<PostTransform>(choice(node, "post_transform", 0, 5))};
  return std::make_unique<TreeRegressor<T>>(Trees<T>::of_ensemble(node, targets), scoring, std::vector<T>{});
}

template <typename T>
std::unique_ptr<Kernel> make_regressor(const ir::Node& node) {
  const int64_t targets = node.int_attribute("n_targets", 1);
  return std::make_unique<TreeRegressor<T>>(Trees<T>::of_lists(node, "target", targets),
                                            Scoring{targets, aggregation_of(node), post_transform_of(node)},
                                            numbers_attribute<T>(node, "base_values", "base_values_as_tensor"));
}

template <typename T>
std::unique_ptr<Kernel> make_classifier(const ir::Node& node) {
  return std::make_unique<TreeClassifier<T>>(node);
}

}  // namespace

void cpu_ml_tree(CpuKernels& list) {
  using Make = std::unique_ptr<Kernel> (*)(const ir::Node&);
  auto add = [&](const char* name, Make in_float, Make in_double) {
    auto make = [=](const NodeInfo& info) {
      return (info.element(0) == ElementType::float64 ? in_double : in_float)(info.node());
    };
    list.add(name, make, nullptr, "ai.onnx.ml");
  };
  add("TreeEnsemble", make_ensemble<float>, make_ensemble<double>);
  add("TreeEnsembleClassifier", make_classifier<float>, make_classifier<double>);
  add("TreeEnsembleRegressor", make_regressor<float>, make_regressor<double>);
}

}  // namespace tenon::ops
