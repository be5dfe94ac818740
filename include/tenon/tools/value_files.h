#pragma once

#include <filesystem>
#include <string>

#include "tenon/session.h"

namespace tenon::tools {

// Reads a value for a model's input from a file, by its ending:
//   .npy                NumPy array
//   .npz                the array of the input's name (or the only one) in an uncompressed NumPy archive
//   .pb                 ONNX TensorProto, SequenceProto or OptionalProto
//   .pgm, .ppm, .pnm    picture, as uint8 [height, width] or [height, width, 3]
//   .bin, .raw          bytes, in the input's type and shape
// An array of another size but the same count of elements is refused, never reshaped silently.
Value read_value(const std::filesystem::path& path, const ValueInfo& input);

// Writes a tensor as .npy. Types that NumPy lacks are written as bytes of the same width (one byte per element below 8
// bits).
void write_npy(const std::filesystem::path& path, const Tensor& tensor);

// The file name for a value: '/', ':' and '\' become '_'.
std::string file_name_for(std::string value_name);

}  // namespace tenon::tools
