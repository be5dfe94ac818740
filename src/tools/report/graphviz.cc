#include <fmt/format.h>

#include <map>
#include <sstream>
#include <string>
#include <utility>

#include "tenon/error.h"
#include "tools/report/layout.h"
#include "tools/subprocess.h"

namespace tenon::tools {
namespace {

constexpr double pixels_per_inch = 72;

// Numbers only: nothing of a model gets into it.
std::string dot_text(std::span<const Picture> pictures) {
  std::string text;
  for (const Picture& picture : pictures) {
    text += "digraph {\ngraph [nodesep=0.3 ranksep=0.38]\nnode [shape=box fixedsize=true label=\"\"]\n";
    for (size_t i = 0; i < picture.boxes.size(); ++i) {
      text += fmt::format("{} [width={:.4f} height={:.4f}]\n", i, picture.boxes[i].width / pixels_per_inch,
                          picture.boxes[i].height / pixels_per_inch);
    }
    if (picture.first >= 0) text += fmt::format("{{rank=source {}}}\n", picture.first);
    if (picture.last >= 0) text += fmt::format("{{rank=sink {}}}\n", picture.last);
    for (const auto& [from, to] : picture.arrows) {
      // What joins boxes is to be straight, rather than what comes from the border.
      const bool is_at_border = from == picture.first || to == picture.last;
      text += fmt::format("{} -> {} [weight={}]\n", from, to, is_at_border ? 1 : 12);
    }
    text += "}\n";
  }
  return text;
}

// What `dot -Tplain` answers; "" if there is no such program, or it fails.
std::string call_dot(const std::string& text) {
  try {
    FinishedProcess done = run_program({"dot", "-Tplain"}, text);
    return done.code == 0 ? std::move(done.out) : "";
  } catch (const Error&) {
    return "";
  }
}

// Coordinates are in inches, from the lower left corner.
class PlainReader {
 public:
  explicit PlainReader(const std::string& text) : lines_(text) {}

  std::optional<Layout> next(const Picture& picture) {
    Layout layout;
    layout.centres.resize(picture.boxes.size());
    layout.curves.resize(picture.arrows.size());
    std::map<std::pair<int, int>, size_t> arrow_numbers;
    for (size_t i = 0; i < picture.arrows.size(); ++i) arrow_numbers[picture.arrows[i]] = i;
    for (std::string line; std::getline(lines_, line);) {
      std::istringstream words(line);
      std::string kind;
      words >> kind;
      if (kind == "stop") return layout;
      if (kind == "graph") {
        double scale = 0;
        words >> scale >> layout.width >> layout.height;
        layout.width *= pixels_per_inch;
        layout.height *= pixels_per_inch;
      } else if (kind == "node") {
        size_t box = 0;
        words >> box;
        if (box >= picture.boxes.size()) return std::nullopt;
        layout.centres[box] = point(words, layout.height);
      } else if (kind == "edge") {
        std::pair<int, int> ends;
        size_t count = 0;
        words >> ends.first >> ends.second >> count;
        auto found = arrow_numbers.find(ends);
        if (found == arrow_numbers.end()) return std::nullopt;
        for (size_t i = 0; i < count && words; ++i) layout.curves[found->second].push_back(point(words, layout.height));
      }
      if (!words) return std::nullopt;
    }
    return std::nullopt;
  }

 private:
  static Point point(std::istringstream& words, double height) {
    Point point;
    words >> point.x >> point.y;
    return {point.x * pixels_per_inch, height - point.y * pixels_per_inch};
  }

  std::istringstream lines_;
};

}  // namespace

std::optional<std::vector<Layout>> lay_out_with_graphviz(std::span<const Picture> pictures) {
  PlainReader reader(call_dot(dot_text(pictures)));
  std::vector<Layout> layouts;
  for (const Picture& picture : pictures) {
    std::optional<Layout> layout = reader.next(picture);
    if (!layout) return std::nullopt;
    layouts.push_back(std::move(*layout));
  }
  return layouts;
}

}  // namespace tenon::tools
