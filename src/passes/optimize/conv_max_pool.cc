#include <map>

#include "ops/blocked/blocked.h"
#include "ops/window.h"
#include "passes/optimize/fusion.h"
#include "passes/optimize/passes.h"

namespace tenon::passes {
namespace {

// Weights of a block of outputs that the first cache keeps beside what they multiply, so that every row of the image
// reads them there.
constexpr int64_t most_products = 200;

// Whether windows are at most one larger than their steps: what two of them cover is computed once for each thread.
bool is_small(const ops::WindowAttributes& pool) {
  for (int d : {0, 1}) {
    const ops::WindowAxis axis = pool.axis(d, ops::pool_axes);
    if (axis.stride < 2 || axis.dilation != 1 || axis.kernel.value() > axis.stride + 1) return false;
  }
  return true;
}

// Whether each tile of a result by Winograd's algorithm has windows of its own.
bool is_of_pairs(const ops::WindowAttributes& pool) {
  for (int d : {0, 1}) {
    const ops::WindowAxis axis = pool.axis(d, ops::pool_axes);
    if (!axis.kernel.is(2) || axis.stride != 2 || axis.pad_begin != 0) return false;
  }
  return true;
}

}  // namespace

// BlockedConv, whose result only a MaxPool reads.
void fuse_max_pool(Editor& editor, ir::Node& node) {
  if (node.domain != ops::tenon_domain || node.op_type != "BlockedConv" || node.input(3)) return;
  if (element_type(editor, node.output(0)) != ElementType::float32 || node.int_attribute("group", 1) != 1) return;
  const Tensor* weights = Editor::constant(node.input(1));
  ir::Node* pool = sole_user(editor, node.output(0), "MaxPool");
  if (!weights || weights->rank() != 4 || weights->dim(0) == 0 || !pool) return;
  if (pool->output_count() != 1 || !are_all(node.ints_attribute("dilations"), 1)) return;
  const ops::WindowAttributes window(*pool);
  if (window.kernel.size() != ops::pool_axes || !is_small(window)) return;
  const bool is_winograd = node.int_attribute("winograd", 0) != 0;
  const bool pays = is_winograd ? is_of_pairs(window) : weights->elements() / weights->dim(0) <= most_products;
  if (!pays) return;
  editor.rewrite(*pool, [&](Patch& patch) {
    patch.name_after(node);
    const std::vector<ir::Value*> inputs = {node.input(0), node.input(1), node.input(2)};
    ir::Value* y = patch.add_fused("BlockedConvMaxPool", node, inputs, {});
    std::map<const ir::Value*, ir::Value*> none;
    for (const ir::Attribute& attribute : pool->attributes) {
      if (attribute.name == "storage_order") continue;
      ir::Attribute own = ir::clone(attribute, none);
      own.name.insert(0, ops::pool_prefix);
      y->producer()->attributes.push_back(std::move(own));
    }
    patch.replace(*pool, *y);
  });
}

}  // namespace tenon::passes
