// The parts of this folder.
#pragma once

#include "ops/decomposition.h"
#include "ops/operator.h"

namespace tenon::ops {

// Operators on images whose channels come last.
void define_nhwc(OperatorList& list);

// What has weights or activations in bytes and is made of several operators: attention, LSTM, embeddings.
void define_quantized_layers(OperatorList& list);

// The inputs from i on are a tensor, its scale and its zero point, which may be left out.
Term dequantized(Decomposition& d, size_t i);
// The inputs from i on are a scale and a zero point, which may be left out.
Term quantized(Decomposition& d, Term x, size_t i, ElementType type);

// Why a QLinearConv, of this domain or of ai.onnx, has no kernel for channels last; empty where it has one.
std::string why_not_nhwc(const ir::Node& conv);
// The same for kernels of a GPU.
std::string why_not_nhwc_on_gpu(const ir::Node& conv);
// Whether weights less their zero points, one or one for each index of `axis`, are all int8 or all uint8.
bool fits_bytes(const Tensor& w, const Tensor* zero_points, int axis);
// Why kernels of a GPU cannot prepare the matrix that is input b; empty where they can.
std::string why_not_constant_matrix(const ir::Node& node, size_t b, size_t b_zero);
// Weights less their zero points; empty where those are no 8-bit numbers.
std::vector<int8_t> centered_weights(const Tensor& w, const Tensor& zero_point);

// 0, 2, 3, …, 1 brings the channels to the end, 0, last, 1, 2, … from there.
std::vector<int64_t> channels_to_end(int rank);
std::vector<int64_t> channels_from_end(int rank);

// A node of ai.onnx with those of its attributes that the decomposed one has.
Term add_with_attributes(Decomposition& d, const char* op, const std::vector<Term>& inputs, ElementType type);

}  // namespace tenon::ops
