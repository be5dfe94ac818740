#pragma once

#include <span>

#include "ir/graph.h"

namespace tenon::ops {

// What operators of ai.onnx.ml do to their scores at the end; the numbers are those of TreeEnsemble.
enum class PostTransform { none, softmax, logistic, softmax_zero, probit };

// The node's attribute `post_transform`, a string that inference has checked.
PostTransform post_transform_of(const ir::Node& node);

// Changes the scores of one row, in float or double.
void post_transform(PostTransform transform, std::span<float> scores);
void post_transform(PostTransform transform, std::span<double> scores);

// The same for several rows, one after the other.
void post_transform_rows(PostTransform transform, float* scores, int64_t rows, int64_t columns);

// The same for an operator with one target: onnxruntime knows PROBIT only.
float post_transform_one(PostTransform transform, float score);
double post_transform_one(PostTransform transform, double score);

float logistic(float x);
double logistic(double x);

}  // namespace tenon::ops
