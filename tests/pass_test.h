// Tests of the optimiser's passes: a graph as text before, the same after.
//
//   ModelBuilder b;
//   …
//   EXPECT_EQ(optimized(b, {"identity"}), "y = Relu(x)\n");
#pragma once

#include <string>
#include <vector>

#include "model_builder.h"
#include "passes/optimizer.h"

namespace tenon {

// The nodes of the graph, one a line as ir::to_text prints them, after these passes of the optimiser ran alone until
// nothing changed; initializers that have a short content come first. The graph is verified after every pass, and
// optimising it a second time must change nothing.
std::string optimized(ModelBuilder& builder, const std::vector<std::string>& passes,
                      const std::vector<std::string>& keep = {});

// The most that an output changes from level none to level extended, relative to its largest value, on random inputs:
// floats between -3 and 3, integers 0 to 2. Symbolic sizes are 3.
double change_by_extended(const ModelBuilder& builder);

// The rewrites of the last call of optimized().
const std::vector<Rewrite>& last_rewrites();

}  // namespace tenon
