// The optimiser's passes, one file each. What they do is said in the list in passes/optimizer.cc.
#pragma once

#include "passes/editor.h"

namespace tenon::passes {

// Each is called with every node of every graph, in order.
void fold_constants(Editor& editor, ir::Node& node);
void remove_identities(Editor& editor, ir::Node& node);
void add_bias_to_gemm(Editor& editor, ir::Node& node);
void scale_conv_weights(Editor& editor, ir::Node& node);

// Each is called with every graph, outer ones first.
void remove_dead_code(Editor& editor, ir::Graph& graph);

}  // namespace tenon::passes
