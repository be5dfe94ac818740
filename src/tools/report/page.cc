#include "tools/report/page.h"

#include <fmt/format.h>

#include <fstream>
#include <random>
#include <span>
#include <string>

#include "base/fail.h"
#include "tenon/tools/report.h"

namespace tenon::tools {
namespace {

// A document within a page: no tag and no comment can start or end in it, whatever the model's names are.
std::string for_script(std::string_view json) {
  std::string text;
  text.reserve(json.size());
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '<')
      text += "\\u003c";
    else if (c == '>')
      text += "\\u003e";
    else if (c == '&')
      text += "\\u0026";
    else
      text += c;
  }
  return text;
}

// A word that no model can know: the page runs only scripts that have it.
std::string random_word() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}", random(), random(), random());
}

std::string filled(std::string_view page, std::span<const std::pair<std::string_view, std::string>> parts) {
  std::string text;
  while (!page.empty()) {
    size_t next = std::string_view::npos;
    const std::pair<std::string_view, std::string>* found = nullptr;
    for (const auto& part : parts) {
      const size_t at = page.find(part.first);
      if (at < next) next = at, found = &part;
    }
    text += page.substr(0, next);
    if (!found) break;
    text += found->second;
    page.remove_prefix(next + found->first.size());
  }
  return text;
}

}  // namespace

std::string report_page(const Report& report) {
  std::string script;
  for (std::string_view part : {page_js(), graph_js(), charts_js(), tables_js()}) script += part;
  const std::pair<std::string_view, std::string> parts[] = {{"/* STYLE */", std::string(page_css())},
                                                            {"/* DATA */", for_script(report.json)},
                                                            {"/* SCRIPT */", script},
                                                            {"/* NONCE */", random_word()}};
  return filled(page_html(), parts);
}

void write_report(const std::filesystem::path& path, const Report& report) {
  std::ofstream file(path, std::ios::binary);
  file << report_page(report);
  file.close();
  if (!file) fail(ErrorCode::write_failed, "'{}' cannot be written", path.string());
}

}  // namespace tenon::tools
