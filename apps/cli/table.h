// Text for people: tables and quantities.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::cli {

// Rows in aligned columns. On a terminal, the last column is cut to what is left of a line.
class Table {
 public:
  enum class Align { left, right };
  // Cells of more than `widest` characters are cut; 0: none is.
  Table& column(std::string title, Align align = Align::right, size_t widest = 0);
  void row(std::vector<std::string> cells);
  // A line of its own below the last row, that starts where the last column does.
  void remark(std::string text);
  void print() const;

 private:
  struct Column {
    std::string title;
    Align align;
    size_t widest;
  };
  struct Row {
    std::vector<std::string> cells;
    bool is_remark = false;
  };
  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

// Three digits and a prefix: "1.89 M", "532 kB", "12.3 µs".
std::string quantity(double value, std::string_view unit = "");
// The same of an estimate, which is a number, an expression or, where nothing is known, "".
std::string estimate_text(const std::string& estimate, std::string_view unit = "");
// "1.5 MB", "12 bytes"
std::string size_text(int64_t bytes);
// "1 node", "2 nodes"
std::string count_text(int64_t count, std::string_view what);

}  // namespace tenon::cli
