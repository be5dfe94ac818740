#include "table.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace tenon::cli {
namespace {

bool starts_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

size_t width_of(const std::string& text) { return static_cast<size_t>(std::ranges::count_if(text, starts_character)); }

// Where character number `index` starts.
size_t byte_of(const std::string& text, size_t index) {
  size_t at = 0;
  for (; at < text.size(); ++at) {
    if (starts_character(text[at]) && index-- == 0) break;
  }
  return at;
}

// Names often differ at their ends: what is too long loses its middle.
std::string fit(const std::string& text, size_t width) {
  const size_t length = width_of(text);
  if (length <= width) return text;
  const size_t tail = (width - 1) / 2;
  return text.substr(0, byte_of(text, width - 1 - tail)) + "…" + text.substr(byte_of(text, length - tail));
}

// Characters in a line of the terminal; 0 when standard output is none.
size_t line_width() {
  winsize size{};
  if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

}  // namespace

Table& Table::column(std::string title, Align align, size_t widest) {
  columns_.push_back({std::move(title), align, widest});
  return *this;
}

void Table::row(std::vector<std::string> cells) {
  for (size_t i = 0; i < cells.size(); ++i) {
    if (columns_[i].widest > 0) cells[i] = fit(cells[i], columns_[i].widest);
  }
  rows_.push_back({std::move(cells)});
}

void Table::remark(std::string text) { rows_.push_back({{std::move(text)}, true}); }

void Table::print() const {
  std::vector<size_t> widths;
  size_t before_last = 0;
  for (size_t i = 0; i < columns_.size(); ++i) {
    widths.push_back(width_of(columns_[i].title));
    for (const Row& row : rows_) {
      if (!row.is_remark) widths[i] = std::max(widths[i], width_of(row.cells[i]));
    }
    if (i + 1 < columns_.size()) before_last += widths[i] + 2;
  }
  constexpr size_t indent = 2, least = 20;
  const size_t line = line_width();
  auto cut = [&](const std::string& text) {
    return line == 0 ? text : fit(text, std::max(line, indent + before_last + least) - indent - before_last);
  };
  auto print_cells = [&](auto&& cell) {
    std::string text(indent, ' ');
    for (size_t i = 0; i < columns_.size(); ++i) {
      const bool last = i + 1 == columns_.size();
      const std::string content = last ? cut(cell(i)) : cell(i);
      const std::string padding(widths[i] - std::min(widths[i], width_of(content)), ' ');
      text += columns_[i].align == Align::right ? padding + content : content + (last ? "" : padding);
      if (!last) text += "  ";
    }
    fmt::print("{}\n", text.substr(0, text.find_last_not_of(' ') + 1));
  };
  print_cells([&](size_t i) { return columns_[i].title; });
  for (const Row& row : rows_) {
    if (row.is_remark)
      fmt::print("{}{}\n", std::string(indent + before_last, ' '), row.cells[0]);
    else
      print_cells([&](size_t i) { return row.cells[i]; });
  }
}

std::string quantity(double value, std::string_view unit) {
  static constexpr const char* prefixes[] = {"n", "µ", "m", "", "k", "M", "G", "T", "P", "E"};
  constexpr int none = 3, last = 9;
  int prefix = none;
  // 999.5 would round to 1000.
  while (std::abs(value) >= 999.5 && prefix < last) value /= 1000, ++prefix;
  while (value != 0 && std::abs(value) < 0.9995 && prefix > 0) value *= 1000, --prefix;
  const double size = std::abs(value);
  const bool whole = prefix == none && value == std::round(value);
  const int decimals = whole || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  const std::string suffix = prefixes[prefix] + std::string(unit);
  return fmt::format("{:.{}f}{}{}", value, decimals, suffix.empty() ? "" : " ", suffix);
}

std::string estimate_text(const std::string& estimate, std::string_view unit) {
  if (estimate.empty()) return "?";
  if (estimate.find_first_not_of("0123456789") != std::string::npos) return estimate;
  return quantity(std::stod(estimate), unit);
}

std::string size_text(int64_t bytes) {
  if (bytes < 1000) return count_text(bytes, "byte");
  if (bytes < 1000000) return fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3);
  if (bytes < 1000000000) return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
  return fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9);
}

std::string count_text(int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace tenon::cli
