#include "tools/report/blocks.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/index.h"
#include "tools/report/folding.h"
#include "tools/report/layout.h"

namespace tenon::tools {
namespace {

using Json = nlohmann::ordered_json;
using Kind = Folded::Kind;

constexpr Picture::Box block_box{196, 54}, value_box{150, 30}, port_box{6, 6};

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::node:
      return "node";
    case Kind::scope:
      return "scope";
    case Kind::repeat:
      return "repeat";
    case Kind::part:
      return "part";
    case Kind::body:
      return "body";
  }
  return "";
}

Picture::Box node_box(const std::string& op) {
  constexpr double narrowest = 128, widest = 240, character = 7.6, margin = 26;
  return {std::clamp(static_cast<double>(op.size()) * character + margin, narrowest, widest), 42};
}

// Something in the picture: a node, a block, or an input or output of the model.
struct Child {
  enum class What : unsigned char { node, block, input, output } what;
  int number;  // of the node, block or tensor
};

// An arrow between two children of a block. Negative ends are the block's own border.
constexpr int from_outside = -1, to_outside = -2;
struct Arrow {
  std::set<int> tensors;
  bool is_mark = false;  // one of many from one place: the picture has a mark at its end instead of it
};

struct Block {
  const Folded* folded;
  int parent = -1;
  std::vector<Child> children;
  std::map<std::pair<int, int>, Arrow> arrows;
};

class Drawing {
 public:
  explicit Drawing(const ReportGraph& graph) : graph_(graph), place_(graph.nodes.size(), Place{-1, -1}) {
    std::vector<int> item_of(graph.nodes.size(), -1);
    std::vector<FoldItem> items;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const ReportNode& node = graph.nodes[i];
      if (node.role != ReportNode::Role::runs) continue;
      item_of[i] = static_cast<int>(items.size());
      node_of_.push_back(static_cast<int>(i));
      FoldItem item{node.step->node->op_type, scopes_of(name_of_node(node)), {}, -1, node.body};
      if (node.owner >= 0) item.owner = at(item_of, node.owner);
      for (int tensor : node.inputs) {
        for (int source : behind_views(tensor)) {
          const int producer = at(graph.tensors, source).producer;
          if (producer >= 0 && at(item_of, producer) >= 0) item.inputs.push_back(at(item_of, producer));
        }
      }
      items.push_back(std::move(item));
    }
    folded_ = fold(items);
    add_block(folded_, -1);
    add_interface();
    for (size_t i = 0; i < graph.nodes.size(); ++i) add_arrows_to(static_cast<int>(i));
    for (Block& block : blocks_) thin_out(block);
  }

  std::vector<Picture> pictures() const {
    std::vector<Picture> result;
    for (const Block& block : blocks_) result.push_back(picture_of(block));
    return result;
  }

  Json json(const std::vector<Layout>& layouts) const {
    Json list = Json::array();
    for (size_t i = 0; i < blocks_.size(); ++i) list.push_back(json_of(blocks_[i], layouts[i]));
    return list;
  }

 private:
  struct Place {
    int block, child;
  };

  static const std::string& name_of_node(const ReportNode& node) {
    const ir::Node& inner = *node.step->node;
    return inner.name.empty() && inner.origin ? inner.origin->name : inner.name;
  }

  int add_block(const Folded& folded, int parent) {
    const int number = static_cast<int>(blocks_.size());
    blocks_.push_back({&folded, parent, {}, {}});
    for (const Folded& child : folded.children) {
      const bool is_node = child.children.empty();
      const int inner = is_node ? at(node_of_, child.item) : add_block(child, number);
      Block& block = at(blocks_, number);
      const Place place{number, static_cast<int>(block.children.size())};
      block.children.push_back({is_node ? Child::What::node : Child::What::block, inner});
      if (is_node) {
        at(place_, inner) = place;
      } else {
        block_place_.resize(blocks_.size(), Place{-1, -1});
        at(block_place_, inner) = place;
        if (child.item >= 0) at(place_, at(node_of_, child.item)) = place;
      }
    }
    return number;
  }

  void add_interface() {
    Block& root = blocks_[0];
    tensor_place_.assign(graph_.tensors.size(), Place{-1, -1});
    for (size_t i = 0; i < graph_.tensors.size(); ++i) {
      const int number = static_cast<int>(i);
      if (graph_.tensors[i].kind == ReportTensor::Kind::input) {
        tensor_place_[i] = {0, static_cast<int>(root.children.size())};
        root.children.push_back({Child::What::input, number});
      }
      if (graph_.tensors[i].is_output) {
        root.children.push_back({Child::What::output, number});
        join_sources(number, {0, static_cast<int>(root.children.size()) - 1});
      }
    }
  }

  // The tensors that nodes make, of one that is made of them without work; -1 has none.
  std::set<int> behind_views(int tensor) const {
    std::set<int> found;
    std::vector<int> open;
    if (tensor >= 0) open.push_back(tensor);
    while (!open.empty()) {
      const int next = open.back();
      open.pop_back();
      const std::vector<int>& parts = at(graph_.tensors, next).made_of;
      if (parts.empty())
        found.insert(next);
      else
        open.insert(open.end(), parts.begin(), parts.end());
    }
    return found;
  }

  Place place_of(int tensor) const {
    const int producer = at(graph_.tensors, tensor).producer;
    return producer >= 0 ? at(place_, producer) : at(tensor_place_, tensor);
  }

  // Arrows from wherever the tensor comes from.
  void join_sources(int tensor, Place target) {
    for (int source : behind_views(tensor)) {
      const Place place = place_of(source);
      if (place.block >= 0) join(place, target, source);
    }
  }

  void add_arrows_to(int node) {
    const Place target = at(place_, node);
    if (target.block < 0) return;
    for (int tensor : at(graph_.nodes, node).inputs) join_sources(tensor, target);
  }

  // Of what many read, only the way to the first of them stays an arrow; of the many that one reads, that from the
  // last.
  static void thin_out(Block& block) {
    constexpr size_t most_from_one = 5, most_to_one = 8;
    std::map<int, std::vector<Arrow*>> by_source, by_target;
    for (auto& [ends, arrow] : block.arrows) {
      if (ends.second < 0) continue;
      by_source[ends.first].push_back(&arrow);
      if (ends.first >= 0) by_target[ends.second].push_back(&arrow);
    }
    for (auto& [source, arrows] : by_source) {
      for (size_t i = 1; arrows.size() > most_from_one && i < arrows.size(); ++i) arrows[i]->is_mark = true;
    }
    for (auto& [target, arrows] : by_target) {
      for (size_t i = 0; arrows.size() > most_to_one && i + 1 < arrows.size(); ++i) arrows[i]->is_mark = true;
    }
  }

  // A child of `block` and its parents, outermost first.
  std::vector<Place> path_to(Place place) const {
    std::vector<Place> path{place};
    while (path.back().block > 0) path.push_back(at(block_place_, path.back().block));
    std::ranges::reverse(path);
    return path;
  }

  // An arrow where both ends are in one block, and arrows from its border inwards on the way to either end.
  void join(Place source, Place target, int tensor) {
    const std::vector<Place> from = path_to(source), to = path_to(target);
    size_t common = 0;
    while (common + 1 < std::min(from.size(), to.size()) && from[common].child == to[common].child) ++common;
    if (from[common].child != to[common].child)
      add_arrow(from[common].block, from[common].child, to[common].child, tensor);
    for (size_t i = common + 1; i < from.size(); ++i) add_arrow(from[i].block, from[i].child, to_outside, tensor);
    for (size_t i = common + 1; i < to.size(); ++i) add_arrow(to[i].block, from_outside, to[i].child, tensor);
  }

  void add_arrow(int block, int from, int to, int tensor) {
    at(blocks_, block).arrows[{from, to}].tensors.insert(tensor);
  }

  Picture::Box box_of(const Child& child) const {
    if (child.what == Child::What::node) return node_box(at(graph_.nodes, child.number).step->node->op_type);
    return child.what == Child::What::block ? block_box : value_box;
  }

  // The children, then the ports of the border, if arrows lead there.
  Picture picture_of(const Block& block) const {
    Picture picture;
    for (const Child& child : block.children) picture.boxes.push_back(box_of(child));
    auto port = [&](int& number) {
      if (number < 0) {
        number = static_cast<int>(picture.boxes.size());
        picture.boxes.push_back(port_box);
      }
      return number;
    };
    for (const auto& [ends, arrow] : block.arrows) {
      if (arrow.is_mark) continue;
      const int from = ends.first == from_outside ? port(picture.first) : ends.first;
      const int to = ends.second == to_outside ? port(picture.last) : ends.second;
      picture.arrows.emplace_back(from, to);
    }
    return picture;
  }

  static double rounded(double value) { return std::round(value * 10) / 10; }

  Json json_of(const Block& block, const Layout& layout) const {
    static constexpr const char* kinds[] = {"node", "block", "input", "output"};
    Json children = Json::array(), arrows = Json::array();
    for (size_t i = 0; i < block.children.size(); ++i) {
      const Picture::Box box = box_of(block.children[i]);
      children.push_back(
          {{kinds[static_cast<size_t>(block.children[i].what)], block.children[i].number},
           {"box", {rounded(layout.centres[i].x), rounded(layout.centres[i].y), box.width, box.height}}});
    }
    size_t number = 0;
    for (const auto& [ends, arrow] : block.arrows) {
      Json points = Json::array();
      if (!arrow.is_mark) {
        for (const Point& point : layout.curves[number++]) {
          points.push_back(rounded(point.x));
          points.push_back(rounded(point.y));
        }
      }
      arrows.push_back({{"from", ends.first}, {"to", ends.second}, {"points", points}, {"tensors", arrow.tensors}});
    }
    Json json = {{"label", block.folded->label},
                 {"kind", name_of(block.folded->kind)},
                 {"parent", block.parent},
                 {"width", rounded(layout.width)},
                 {"height", rounded(layout.height)},
                 {"children", children},
                 {"arrows", arrows}};
    if (block.folded->item >= 0) json["node"] = at(node_of_, block.folded->item);
    return json;
  }

  const ReportGraph& graph_;
  std::vector<int> node_of_;  // by item
  Folded folded_;
  std::vector<Block> blocks_;
  std::vector<Place> place_, block_place_, tensor_place_;  // by node, block, tensor
};

}  // namespace

BlockPictures draw_blocks(const ReportGraph& graph, bool own_layout) {
  const Drawing drawing(graph);
  const std::vector<Picture> pictures = drawing.pictures();
  std::optional<std::vector<Layout>> layouts;
  if (!own_layout) layouts = lay_out_with_graphviz(pictures);
  const bool by_graphviz = layouts.has_value();
  if (!layouts) {
    layouts.emplace();
    for (const Picture& picture : pictures) layouts->push_back(lay_out_in_rows(picture));
  }
  return {std::make_unique<Json>(drawing.json(*layouts)), by_graphviz};
}

}  // namespace tenon::tools
