// Where the boxes and arrows of a picture go.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace tenon::tools {

struct Point {
  double x = 0, y = 0;
};

// Boxes, in pixels, and arrows between them. No two arrows join the same boxes in the same direction.
struct Picture {
  struct Box {
    double width, height;
  };
  std::vector<Box> boxes;
  std::vector<std::pair<int, int>> arrows;
  int first = -1, last = -1;  // boxes that stand above, or below, all others
};

// What flows goes down.
struct Layout {
  double width = 0, height = 0;
  std::vector<Point> centres;              // of boxes
  std::vector<std::vector<Point>> curves;  // of arrows: the points of a Bézier spline, 1 + 3 n of them
};

// By Graphviz, if its program `dot` is installed and gives an answer.
std::optional<std::vector<Layout>> lay_out_with_graphviz(std::span<const Picture> pictures);

// Boxes in rows, each below all that it reads, near those that it is joined with.
Layout lay_out_in_rows(const Picture& picture);

}  // namespace tenon::tools
