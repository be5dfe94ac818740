#pragma once

#include "bindings.h"
#include "tenon/tools/onnx_model.h"

namespace tenon::python {

// The model that a function of the tools was given: a path, bytes, an onnx.ModelProto or an OnnxModel.
tools::OnnxModel import_onnx_model(nb::handle source);

// For signatures: what import_onnx_model takes.
#define TENON_MODEL_SOURCE "str | os.PathLike | bytes | OnnxModel | typing.Any"

}  // namespace tenon::python
