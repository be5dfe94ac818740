// What the inference rules of ai.onnx.ml share. Their input 0 is [N, F]: rows of features; or [F], one row.
#pragma once

#include "ops/inference.h"

namespace tenon::ops {

// N; throws when input 0 has another rank than 1 or 2.
Dim row_count(const Inference& i);
// F, unknown when the shape of input 0 is.
Dim feature_count(const Inference& i);

// The length of a list in an attribute, 0 when there is none. Rules run in every run: they should not copy long lists.
int64_t list_length(const ir::Node& node, std::string_view attribute);

// How many classes a classifier names; the integers count only when there are no strings.
int64_t label_count(const ir::Node& node, std::string_view ints_attribute, std::string_view strings_attribute);

// Outputs of a classifier: 0 has a label for each row, strings if it has that attribute, and 1 has `scores` floats.
void infer_classifier(Inference& i, std::string_view strings_attribute, Dim scores);

// Throws unless the node's string attribute is one of `allowed`; the first is the default.
void require_one_of(const Inference& i, std::string_view attribute, std::initializer_list<std::string_view> allowed);
void require_post_transform(const Inference& i);

}  // namespace tenon::ops
