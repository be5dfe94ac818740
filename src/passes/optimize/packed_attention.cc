#include <algorithm>

#include "passes/match.h"
#include "passes/optimize/moves.h"
#include "passes/optimize/passes.h"
#include "passes/optimize/permutation.h"

namespace tenon::passes {
namespace {

using Parts = std::vector<AxisPart>;

// A product with constant weights, and maybe a constant bias, of rows that may be transposed: [a, b, rows] to
// [b, a, rows].
struct Product {
  ir::Value *rows = nullptr, *weights = nullptr, *bias = nullptr;
  Permutation order = {};  // of the axes of the result made of `rows`, where these are transposed
};

std::optional<Product> product_of(Editor& editor, const ir::Value* value) {
  const ir::Node* node = value->producer();
  if (!node) return std::nullopt;
  const bool is_fused = node->domain == ops::tenon_domain && node->op_type == "FusedMatMul";
  if (!is_fused && (node->op_type != "MatMul" || !node->domain.empty())) return std::nullopt;
  if (is_fused && (node->input(3) || node->attribute("activation") || node->int_attribute("transA", 0) != 0 ||
                   node->int_attribute("transB", 0) != 0 || node->float_attribute("alpha", 1) != 1))
    return std::nullopt;
  Product product{node->input(0), node->input(1), node->input(2)};
  if (!Editor::constant(product.weights) || editor.rank(product.weights) != 2) return std::nullopt;
  if (product.bias && !Editor::constant(product.bias)) return std::nullopt;
  const int rank = editor.rank(product.rows);
  if (rank != 3) return std::nullopt;
  const ir::Node* transpose = producer(product.rows, "Transpose");
  const Permutation p = transpose ? permutation_of(*transpose, rank) : Permutation();
  if (!p.empty() && p.back() == rank - 1) {
    product.rows = transpose->input(0);
    product.order = p;
  }
  return product;
}

// The parts when the axes of the source are in another order: axis i becomes order[i].
Parts reordered(Parts parts, const Permutation& order) {
  for (AxisPart& part : parts) {
    const auto axis = static_cast<size_t>(part.begin);
    const double shift = static_cast<double>(order[axis]) - static_cast<double>(axis);
    part.begin += shift;
    part.end += shift;
  }
  return parts;
}

// Queries, keys or values [batch, heads, length, size] as the columns of a matrix of rows [batch, length, columns].
class Columns {
 public:
  static std::optional<Columns> of(Editor& editor, ir::Value* value) {
    auto moves = moves_of(editor, value);
    if (!moves || moves->axes.size() != 4 || moves->selections.size() > 1) return std::nullopt;
    Columns columns;
    columns.moves_ = std::move(*moves);
    columns.product_ = product_of(editor, columns.moves_.source);
    if (editor.rank(columns.moves_.source) != 3) return std::nullopt;
    if (columns.is_in_order({0, 1, 2})) return columns;
    columns.is_reordered_ = true;
    if (!columns.product_ || columns.product_->order.empty() || !columns.is_in_order(columns.product_->order))
      return std::nullopt;
    return columns;
  }

  ir::Value* source() const { return moves_.source; }
  const std::optional<Product>& product() const { return product_; }
  // Whether the product's rows are taken as they are before they are transposed.
  bool is_reordered() const { return is_reordered_; }
  // Which of how many equal groups of columns they are; {0, 1} where they are all.
  std::pair<int64_t, int64_t> place() const {
    if (moves_.selections.empty()) return {0, 1};
    const Selection& selection = moves_.selections[0];
    return {selection.index, selection.part.size.value()};
  }

 private:
  // Whether batch, length, what is selected, heads and sizes follow each other in memory.
  bool is_in_order(const Permutation& order) const {
    Parts all;
    auto add = [&](const Parts& parts) { all.insert(all.end(), parts.begin(), parts.end()); };
    add(moves_.axes[0]);
    add(moves_.axes[2]);
    const size_t columns = all.size();
    for (const Selection& selection : moves_.selections) all.push_back(selection.part);
    add(moves_.axes[1]);
    add(moves_.axes[3]);
    all = reordered(std::move(all), order);
    for (size_t i = 0; i < all.size(); ++i) {
      if ((all[i].begin >= 2) != (i >= columns)) return false;
    }
    return std::ranges::is_sorted(all, [](const AxisPart& a, const AxisPart& b) { return a.is_before(b); });
  }

  Moves moves_;
  std::optional<Product> product_;
  bool is_reordered_ = false;
};

bool are_parts_of_one(const Columns& q, const Columns& k, const Columns& v) {
  return q.source() == k.source() && q.source() == v.source() && q.place() == std::pair<int64_t, int64_t>(0, 3) &&
         k.place() == std::pair<int64_t, int64_t>(1, 3) && v.place() == std::pair<int64_t, int64_t>(2, 3) &&
         q.is_reordered() == k.is_reordered() && q.is_reordered() == v.is_reordered();
}

bool are_products_of_one(Editor& editor, std::initializer_list<const Columns*> all) {
  const Columns& first = **all.begin();
  for (const Columns* columns : all) {
    const std::optional<Product>& product = columns->product();
    if (!product || columns->place().second != 1 || columns->is_reordered() != first.is_reordered()) return false;
    if (!editor.is_only_user(*columns->source())) return false;
    const ir::Value* rows = columns->source()->producer()->input(0);
    if (rows != first.source()->producer()->input(0)) return false;
    if (!product->bias != !first.product()->bias) return false;
    if (!editor.same_shape(product->weights, first.product()->weights)) return false;
  }
  return true;
}

}  // namespace

// Queries, keys and values that are columns of one product, or of three of the same rows, which then become one.
void pack_attention(Editor& editor, ir::Node& node) {
  if (node.op_type != "Attention" || !node.domain.empty() || node.output_count() > 1) return;
  for (size_t i : {4, 5, 6}) {
    if (node.input(i)) return;
  }
  const SymbolicShape *q_shape = editor.shape(node.input(0)), *k_shape = editor.shape(node.input(1)),
                      *v_shape = editor.shape(node.input(2));
  if (!q_shape || !k_shape || !v_shape || q_shape->size() != 4 || k_shape->size() != 4 || v_shape->size() != 4) return;
  const Dim &heads = (*q_shape)[1], &size = (*q_shape)[3];
  if (!heads.is_known() || !size.is_known() || *q_shape != *k_shape || *q_shape != *v_shape) return;
  const auto q = Columns::of(editor, node.input(0)), k = Columns::of(editor, node.input(1)),
             v = Columns::of(editor, node.input(2));
  if (!q || !k || !v) return;
  const bool is_one = are_parts_of_one(*q, *k, *v);
  if (!is_one && !are_products_of_one(editor, {&*q, &*k, &*v})) return;
  editor.rewrite(node, [&](Patch& patch) {
    ir::Value* packed = q->source();
    if (!is_one || q->is_reordered()) {
      ir::Value *weights = q->product()->weights, *bias = q->product()->bias;
      if (!is_one) {
        weights = patch.add("Concat", {weights, k->product()->weights, v->product()->weights}, {{"axis", 1}});
        if (bias) bias = patch.add("Concat", {bias, k->product()->bias, v->product()->bias}, {{"axis", 0}});
      }
      ir::Value* rows = q->is_reordered() ? q->product()->rows : q->source()->producer()->input(0);
      patch.name_after(*q->source()->producer());
      packed = bias ? patch.add("FusedMatMul", {rows, weights, bias}, {}, std::string(ops::tenon_domain))
                    : patch.add("MatMul", {rows, weights});
      patch.name_after(node);
    }
    ir::Value* rows = patch.add_fused("PackedAttention", node, {packed, node.input(3)}, {{"num_heads", heads.value()}});
    ir::Value* split = patch.add("Reshape", {rows, patch.ints({0, 0, heads.value(), size.value()})});
    patch.replace(node, *patch.add("Transpose", {split}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}}));
  });
}

}  // namespace tenon::passes
