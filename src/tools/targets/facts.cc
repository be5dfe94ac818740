#include "tools/targets/facts.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "base/fail.h"

namespace tenon::tools {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t at = std::min(text.find(separator), text.size());
    if (at > 0) parts.push_back(text.substr(0, at));
    text.remove_prefix(std::min(at + 1, text.size()));
  }
  return parts;
}

int64_t number(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    fail(ErrorCode::internal, "'{}' in a table of targets is no number", text);
  return value;
}

// "0,1+" as positions, and whether the last one repeats.
std::vector<int> read_places(std::string_view text, bool& repeats) {
  std::vector<int> places;
  for (std::string_view place : split(text, ',')) {
    repeats = place.ends_with('+');
    if (repeats) place.remove_suffix(1);
    places.push_back(static_cast<int>(number(place)));
  }
  return places;
}

constexpr std::pair<std::string_view, Evidence> kinds[] = {{"ran", Evidence::ran},
                                                           {"fails", Evidence::fails},
                                                           {"registered", Evidence::registered},
                                                           {"documented", Evidence::documented}};

}  // namespace

std::optional<std::vector<int>> version_numbers(std::string_view version) {
  std::vector<int> numbers;
  for (std::string_view part : split(version, '.')) {
    int value = 0;
    auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc() || end != part.data() + part.size()) return std::nullopt;
    numbers.push_back(value);
  }
  if (numbers.empty() || version.starts_with('.') || version.ends_with('.')) return std::nullopt;
  return numbers;
}

bool TypeSupport::allows(std::string_view type) const {
  return std::ranges::any_of(types, [&](const std::string& t) { return t == type || t == "*" || t == "-"; });
}

TargetFacts::TargetFacts(std::string_view content) {
  for (std::string_view line : split(content, '\n')) read_line(line);
}

const TargetFacts* TargetFacts::find(std::string_view name) {
  static const std::map<std::string_view, TargetFacts> tables = [] {
    std::map<std::string_view, TargetFacts> read;
    for (const TargetFile& file : target_files()) read.emplace(file.name, TargetFacts(file.content));
    return read;
  }();
  auto found = tables.find(name);
  return found == tables.end() ? nullptr : &found->second;
}

void TargetFacts::read_line(std::string_view line) {
  constexpr std::string_view source = "# Source: ";
  if (line.starts_with(source)) source_ = line.substr(source.size());
  if (line.starts_with('#')) return;
  const std::vector<std::string_view> words = split(line, ' ');
  if (words.empty()) return;
  const std::span<const std::string_view> rest = std::span(words).subspan(1);
  if (words[0] == "release") return read_release(rest);
  if (words[0] == "domain") {
    domains_.emplace_back(rest[0] == "ai.onnx" ? "" : rest[0]);
    return;
  }
  if (words[0] == "never") {
    support_.try_emplace(std::string(rest[0]));
    return;
  }
  for (const auto& [word, evidence] : kinds) {
    if (words[0] == word && rest.size() >= 5) return read_support(evidence, rest);
  }
  fail(ErrorCode::internal, "a table of targets has the line '{}'", line);
}

void TargetFacts::read_release(std::span<const std::string_view> words) {
  Release release;
  release.version = words[0];
  release.numbers = version_numbers(words[0]).value();
  for (size_t i = 1; i + 1 < words.size(); i += 2) {
    if (words[i] == "ai.onnx") release.opset = number(words[i + 1]);
    if (words[i] == "ai.onnx.ml") release.ml_opset = number(words[i + 1]);
    if (words[i] == "ir") release.ir_version = number(words[i + 1]);
  }
  releases_.push_back(std::move(release));
}

// OPERATOR VERSION PARAMETER:INPUTS>OUTPUTS RELEASES TYPE…
void TargetFacts::read_support(Evidence evidence, std::span<const std::string_view> words) {
  TypeSupport support{};
  support.evidence = evidence;
  support.since_version = number(words[1]);
  const size_t colon = words[2].find(':'), arrow = words[2].find('>');
  if (colon != std::string_view::npos && arrow != std::string_view::npos) {
    support.parameter = words[2].substr(0, colon);
    support.inputs = read_places(words[2].substr(colon + 1, arrow - colon - 1), support.inputs_repeat);
    support.outputs = read_places(words[2].substr(arrow + 1), support.outputs_repeat);
  }
  support.releases = read_releases(words[3]);
  support.types.assign(words.begin() + 4, words.end());
  support_[std::string(words[0])].push_back(std::move(support));
}

size_t TargetFacts::position(std::string_view version) const {
  auto found = std::ranges::find(releases_, version, &Release::version);
  if (found == releases_.end()) fail(ErrorCode::internal, "a table of targets has no release '{}'", version);
  return static_cast<size_t>(found - releases_.begin());
}

// "1.16.0-1.18.1,1.20.0-"
std::vector<bool> TargetFacts::read_releases(std::string_view text) const {
  std::vector<bool> result(releases_.size());
  for (std::string_view range : split(text, ',')) {
    const size_t dash = range.find('-');
    const size_t first = position(range.substr(0, dash));
    size_t last = first;
    if (dash + 1 == range.size()) last = releases_.size() - 1;
    if (dash != std::string_view::npos && dash + 1 < range.size()) last = position(range.substr(dash + 1));
    for (size_t i = first; i <= last; ++i) result[i] = true;
  }
  return result;
}

std::optional<size_t> TargetFacts::release(std::string_view version) const {
  const auto wanted = version_numbers(version);
  if (!wanted) return std::nullopt;
  std::optional<size_t> found;
  for (size_t i = 0; i < releases_.size(); ++i) {
    const std::vector<int>& numbers = releases_[i].numbers;
    const size_t common = std::min(wanted->size(), numbers.size());
    const bool begins = std::equal(wanted->begin(), wanted->begin() + static_cast<ptrdiff_t>(common), numbers.begin());
    if (begins && wanted->size() <= std::max<size_t>(numbers.size(), 3)) found = i;
  }
  return found;
}

std::span<const TypeSupport> TargetFacts::support(const std::string& name) const {
  auto found = support_.find(name);
  if (found == support_.end()) return {};
  return found->second;
}

bool TargetFacts::covers(std::string_view domain) const {
  return std::ranges::find(domains_, domain) != domains_.end();
}

}  // namespace tenon::tools
