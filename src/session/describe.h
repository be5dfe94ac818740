#pragma once

#include "ir/graph.h"
#include "tenon/session.h"

namespace tenon {

// The public description of a value and of a model.
ValueInfo describe(const ir::Value& value);
ModelInfo describe(const ir::Model& model);

}  // namespace tenon
