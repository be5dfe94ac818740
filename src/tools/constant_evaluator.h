#pragma once

#include "passes/editor.h"

namespace tenon::tools {

// Computes nodes whose inputs are constants, on the CPU.
passes::Evaluator constant_evaluator();

}  // namespace tenon::tools
