// The picture of a graph: blocks in blocks, each with a layout of its own.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tools/report/graph.h"

namespace tenon::tools {

struct BlockPictures {
  std::unique_ptr<nlohmann::ordered_json> json;  // a list of blocks; the first is the whole graph
  bool by_graphviz = false;
};

BlockPictures draw_blocks(const ReportGraph& graph, bool own_layout);

}  // namespace tenon::tools
