#include "cli.h"

#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>

namespace tenon::cli {

int exit_code_for(ErrorCode code) {
  switch (code) {
    case ErrorCode::missing_file:
    case ErrorCode::missing_external_data:
    case ErrorCode::provider_unavailable:
    case ErrorCode::invalid_library:
    case ErrorCode::write_failed:
      return missing;
    case ErrorCode::invalid_argument:
      return bad_usage;
    default:
      return broken_input;
  }
}

void add_custom_operators(CLI::App& command, std::vector<std::string>& libraries) {
  command.add_option("--custom-operators", libraries, "A shared library with operators of your own; may be repeated")
      ->allow_extra_args(false)
      ->type_name("LIBRARY");
}

void SessionFlags::add_to(CLI::App& command) {
  command.add_option("--threads", threads, "Threads to compute with (default: one per CPU this process may use)")
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
  command.add_option("--provider", providers, "Providers in order of preference (default: cpu)")
      ->delimiter(',')
      ->type_name("NAME,…");
  command
      .add_option("--decompose", decompose,
                  "Operators to run as smaller ones even where there is a kernel ('all': every one that can)")
      ->delimiter(',')
      ->type_name("OP,…");
  command.add_option("--level", level, "How much to optimise: none, exact, basic, extended or all (default: all)")
      ->type_name("LEVEL");
  command.add_option("--disable", disabled, "Passes of the optimiser to leave out (`tenon optimize --list-passes`)")
      ->delimiter(',')
      ->type_name("PASS,…");
  add_custom_operators(command, libraries);
}

SessionOptions SessionFlags::options() const {
  SessionOptions result;
  result.threads = threads;
  if (!providers.empty()) result.providers = providers;
  result.decompose = decompose;
  result.level = optimization_level(level);
  result.disabled_passes = disabled;
  result.custom_operator_libraries.assign(libraries.begin(), libraries.end());
  return result;
}

namespace {

// The two sides of "NAME=VALUE"; `form` is what an error says that the option takes.
std::pair<std::string, std::string> split(const std::string& text, const char* option, const char* form) {
  size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} takes {}, got '{}'", option, form, text));
  }
  return {text.substr(0, at), text.substr(at + 1)};
}

int64_t parse_size(const std::string& text) {
  size_t used = 0;
  int64_t size = -1;
  try {
    size = std::stoll(text, &used);
  } catch (const std::exception&) {
  }
  if (size < 0 || used != text.size())
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is not a size", text));
  return size;
}

// "1x3x224x224"
Shape parse_shape(const std::string& text) {
  Shape shape;
  size_t at = 0;
  while (at < text.size()) {
    size_t end = std::min(text.find_first_of("x,", at), text.size());
    shape.push_back(parse_size(text.substr(at, end - at)));
    at = end + 1;
  }
  return shape;
}

}  // namespace

tools::InputSources input_sources(const std::vector<std::string>& inputs, const std::vector<std::string>& shapes,
                                  const std::vector<std::string>& dims, uint64_t seed) {
  tools::InputSources sources;
  for (const std::string& text : inputs) sources.files.insert(split(text, "--input", "NAME=FILE"));
  for (const std::string& text : shapes) {
    auto [name, shape] = split(text, "--shape", "NAME=1x3x224x224");
    sources.shapes[name] = parse_shape(shape);
  }
  for (const std::string& text : dims) {
    auto [name, size] = split(text, "--dim", "NAME=SIZE");
    sources.dims[name] = parse_size(size);
  }
  sources.seed = seed;
  return sources;
}

nlohmann::json to_json(const ValueInfo& info) {
  nlohmann::json json = {{"name", info.name}, {"type", info.type}};
  if (!info.has_shape) return json;
  json["shape"] = nlohmann::json::array();
  for (const std::string& dim : info.shape) {
    bool number = dim.find_first_not_of("0123456789") == std::string::npos;
    if (number)
      json["shape"].push_back(std::stoll(dim));
    else
      json["shape"].push_back(dim);
  }
  return json;
}

nlohmann::json to_json(const NodePlacement& node) {
  nlohmann::json declined = nlohmann::json::array();
  for (const auto& [provider, reason] : node.declined) declined.push_back({{"provider", provider}, {"reason", reason}});
  return {{"node", node.node},
          {"op_type", node.op_type},
          {"provider", node.provider},
          {"kernel", node.kernel},
          {"declined", declined}};
}

nlohmann::json to_json(const Error& error) {
  nlohmann::json json = {{"code", std::string(code_name(error.code()))}, {"message", error.message()}};
  if (!error.node().empty()) json["node"] = error.node();
  if (!error.tensor().empty()) json["tensor"] = error.tensor();
  if (!error.hint().empty()) json["hint"] = error.hint();
  return {{"error", json}};
}

std::string type_text(const ValueInfo& info) {
  std::string text = info.type;
  if (!info.has_shape) return text;
  text += " [";
  for (size_t i = 0; i < info.shape.size(); ++i) text += (i ? ", " : "") + info.shape[i];
  return text + "]";
}

void print_placement(const std::vector<NodePlacement>& placement) {
  std::map<std::string, int> totals;
  for (const NodePlacement& node : placement) ++totals[node.provider];
  fmt::print("placement: {} nodes", placement.size());
  for (const auto& [provider, count] : totals) fmt::print(", {} on {}", count, provider);
  fmt::print("\n");
  for (const NodePlacement& node : placement) {
    fmt::print("  {:<4} {:<20} {}\n", node.provider, node.kernel, node.node);
    for (const auto& [provider, reason] : node.declined) fmt::print("       not {}: {}\n", provider, reason);
  }
}

std::string size_text(int64_t bytes) {
  if (bytes < 1000) return fmt::format("{} bytes", bytes);
  if (bytes < 1000000) return fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3);
  if (bytes < 1000000000) return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
  return fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9);
}

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

Progress::Progress(size_t total) : total_(total), start_(now()) {}

Progress::~Progress() {
  if (shown_) fmt::print(stderr, "\r\033[K");
}

void Progress::at(size_t done, const std::string& what) {
  double elapsed = now() - start_;
  if (elapsed < 1 || !isatty(STDERR_FILENO)) return;
  shown_ = true;
  constexpr size_t width = 24;
  size_t filled = total_ ? done * width / total_ : 0;
  std::string bar(filled, '#');
  bar.resize(width, '.');
  double left = done ? elapsed / static_cast<double>(done) * static_cast<double>(total_ - done) : 0;
  fmt::print(stderr, "\r\033[K[{}] {}/{}  {:.0f} s left  {}", bar, done, total_, left, what.substr(0, 60));
  std::fflush(stderr);
}

}  // namespace tenon::cli
