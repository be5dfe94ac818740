#include <algorithm>
#include <numeric>

#include "base/index.h"
#include "tools/report/layout.h"

namespace tenon::tools {
namespace {

constexpr double between_boxes = 22, between_rows = 30;

// The row of each box: below those that it reads. Arrows that would close a circle do not count.
std::vector<int> rows_of(const Picture& picture) {
  const size_t count = picture.boxes.size();
  std::vector<int> rows(count, 0);
  for (size_t round = 0; round < count; ++round) {
    bool has_changed = false;
    for (const auto& [from, to] : picture.arrows) {
      if (from >= to || at(rows, to) > at(rows, from)) continue;
      at(rows, to) = at(rows, from) + 1;
      has_changed = true;
    }
    if (!has_changed) break;
  }
  if (picture.first >= 0) {
    for (int& row : rows) ++row;
    at(rows, picture.first) = 0;
  }
  if (picture.last >= 0) at(rows, picture.last) = *std::ranges::max_element(rows) + 1;
  return rows;
}

// Boxes in a row, in the order of what they are joined with in the rows around.
void order(std::vector<std::vector<int>>& rows, const Picture& picture, std::vector<double>& position) {
  std::vector<std::vector<int>> joined(picture.boxes.size());
  for (const auto& [from, to] : picture.arrows) {
    at(joined, from).push_back(to);
    at(joined, to).push_back(from);
  }
  for (std::vector<int>& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) at(position, row[i]) = static_cast<double>(i);
  }
  constexpr int sweeps = 8;
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    for (std::vector<int>& row : rows) {
      std::vector<std::pair<double, int>> wishes;
      for (int box : row) {
        double sum = at(position, box);
        for (int other : at(joined, box)) sum += at(position, other);
        wishes.emplace_back(sum / static_cast<double>(at(joined, box).size() + 1), box);
      }
      std::ranges::stable_sort(wishes, {}, &std::pair<double, int>::first);
      for (size_t i = 0; i < row.size(); ++i) {
        row[i] = wishes[i].second;
        at(position, row[i]) = static_cast<double>(i) - static_cast<double>(row.size() - 1) / 2;
      }
    }
  }
}

std::vector<Point> curve_between(Point from, Point to) {
  const double middle = (from.y + to.y) / 2;
  return {from, {from.x, middle}, {to.x, middle}, to};
}

}  // namespace

Layout lay_out_in_rows(const Picture& picture) {
  Layout layout;
  layout.centres.resize(picture.boxes.size());
  if (picture.boxes.empty()) return layout;
  const std::vector<int> row_numbers = rows_of(picture);
  std::vector<std::vector<int>> rows(static_cast<size_t>(*std::ranges::max_element(row_numbers)) + 1);
  for (size_t i = 0; i < picture.boxes.size(); ++i) at(rows, row_numbers[i]).push_back(static_cast<int>(i));
  std::vector<double> position(picture.boxes.size());
  order(rows, picture, position);

  auto width_of = [&](const std::vector<int>& row) {
    double width = -between_boxes;
    for (int box : row) width += at(picture.boxes, box).width + between_boxes;
    return width;
  };
  for (const std::vector<int>& row : rows) layout.width = std::max(layout.width, width_of(row));
  double y = 0;
  for (const std::vector<int>& row : rows) {
    double x = (layout.width - width_of(row)) / 2, height = 0;
    for (int box : row) height = std::max(height, at(picture.boxes, box).height);
    for (int box : row) {
      const double width = at(picture.boxes, box).width;
      at(layout.centres, box) = {x + width / 2, y + height / 2};
      x += width + between_boxes;
    }
    if (!row.empty()) y += height + between_rows;
  }
  layout.height = y - between_rows;
  for (const auto& [from, to] : picture.arrows) {
    Point start = at(layout.centres, from), end = at(layout.centres, to);
    const double direction = start.y <= end.y ? 1 : -1;
    start.y += direction * at(picture.boxes, from).height / 2;
    end.y -= direction * at(picture.boxes, to).height / 2;
    layout.curves.push_back(curve_between(start, end));
  }
  return layout;
}

}  // namespace tenon::tools
