// The parts of the page, as the build put them into the library (page.html, page.css, *.js).
#pragma once

#include <string_view>

namespace tenon::tools {

std::string_view page_html();
std::string_view page_css();
std::string_view page_js();
std::string_view graph_js();
std::string_view charts_js();
std::string_view tables_js();

}  // namespace tenon::tools
