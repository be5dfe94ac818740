#include "cli.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "changed_model.h"
#include "table.h"

namespace tenon::cli {

int exit_code_for(ErrorCode code) {
  switch (code) {
    case ErrorCode::missing_file:
    case ErrorCode::missing_external_data:
    case ErrorCode::provider_unavailable:
    case ErrorCode::device_lost:
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
  command
      .add_option(
          "--spin", spin,
          "Microseconds that threads wait for work before they sleep, and 50 times as long within a run (default: 20)")
      ->check(CLI::Range(0, 1000000))
      ->type_name("MICROSECONDS");
  command.add_flag("--parallel-branches", parallel_branches,
                   "Let nodes that do not depend on each other run at the same time, where that is worth it");
  command.add_flag("--flush-denormals", flush_denormals, "Take and give numbers too small for full precision as zero");
  command.add_option("--memory", memory, "normal, or low: slower, without what is held for speed (default: normal)")
      ->check(CLI::IsMember({"normal", "low"}))
      ->type_name("USE");
  command
      .add_option("--precision", precision,
                  "full, or fast: products with weights round to bfloat16 where this CPU is faster so (default: full)")
      ->check(CLI::IsMember({"full", "fast"}))
      ->type_name("P");
  command.add_option("--provider", providers, "Providers in order of preference (default: cpu)")
      ->delimiter(',')
      ->type_name("NAME,…");
  command.add_flag("--strict", strict, strict_help);
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
  command.add_option("--config", config, "An option by its name in programs, as onnxruntime's are; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  add_custom_operators(command, libraries);
}

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

SessionOptions SessionFlags::options() const {
  SessionOptions result;
  result.threads = threads;
  result.spin_microseconds = spin;
  result.parallel_branches = parallel_branches;
  result.flush_denormals = flush_denormals;
  set_config(result, "tenon.memory", memory);
  set_config(result, "tenon.precision", precision);
  if (!providers.empty()) result.providers = providers;
  result.decompose = decompose;
  result.level = optimization_level(level);
  result.disabled_passes = disabled;
  result.custom_operator_libraries.assign(libraries.begin(), libraries.end());
  for (const std::string& text : config) {
    auto [key, value] = split(text, "--config", "KEY=VALUE");
    set_config(result, key, value);
  }
  if (strict) set_config(result, strict_key, "1");
  return result;
}

void InputFlags::add_to(CLI::App& command, const std::string& group) {
  command.add_option("--input", files, "An input from a file: .npy, .npz, .pb, .pgm, .ppm, .bin or .raw")
      ->type_name("NAME=FILE")
      ->group(group);
  add_shapes_to(command, group);
  command.add_option("--seed", seed, "Seed of random inputs (default: 0)")->group(group);
}

void InputFlags::add_shapes_to(CLI::App& command, const std::string& group) {
  command.add_option("--shape", shapes, "The shape of an input that is not given")
      ->type_name("NAME=1x3x224x224")
      ->group(group);
  command.add_option("--dim", dims, "The size of a named dimension of such inputs (default: 1)")
      ->type_name("NAME=SIZE")
      ->group(group);
}

tools::InputSources InputFlags::sources() const {
  tools::InputSources sources;
  for (const std::string& text : files) sources.files.insert(split(text, "--input", "NAME=FILE"));
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

std::string assumed_text(const std::vector<std::string>& dims) {
  std::string text;
  for (const std::string& dim : dims) text += fmt::format("{}{} = 1", text.empty() ? "assumed " : ", ", dim);
  return text;
}

NamedValues InputFlags::make(const Session& session, bool quiet) const {
  tools::MadeInputs made = tools::make_inputs(session, sources());
  if (!made.random.empty() && !quiet) {
    fmt::print(stderr, "note: {} not given: random values (seed {}){}{}\n",
               count_text(static_cast<int64_t>(made.random.size()), "input"), seed, made.assumed.empty() ? "" : "; ",
               assumed_text(made.assumed));
  }
  return std::move(made.values);
}

nlohmann::json to_json(const ValueInfo& info) {
  nlohmann::json json = {{"name", info.name}, {"type", info.type}};
  if (info.index_limit > 0) json["index_limit"] = info.index_limit;
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

nlohmann::json to_json(const Error& error) {
  nlohmann::json json = {{"code", std::string(code_name(error.code()))}, {"message", error.message()}};
  if (!error.node().empty()) json["node"] = error.node();
  if (!error.tensor().empty()) json["tensor"] = error.tensor();
  if (!error.hint().empty()) json["hint"] = error.hint();
  return {{"error", json}};
}

std::string type_text(const ValueInfo& info) {
  std::string text = info.type;
  if (info.has_shape) text += fmt::format(" [{}]", fmt::join(info.shape, ", "));
  if (info.index_limit > 0) text += fmt::format(", indices below {}", info.index_limit);
  return text;
}

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

Progress::Progress(size_t total) : total_(total), start_(now()) {}

Progress::~Progress() {
  if (last_ > 0) fmt::print(stderr, "\r\033[K");
}

void Progress::at(size_t done, const std::string& what) {
  const double time = now(), elapsed = time - start_;
  if (elapsed < 1 || time - last_ < 0.1 || !isatty(STDERR_FILENO)) return;
  last_ = time;
  constexpr size_t width = 24;
  size_t filled = total_ ? done * width / total_ : 0;
  std::string bar(filled, '#');
  bar.resize(width, '.');
  double left = done ? elapsed / static_cast<double>(done) * static_cast<double>(total_ - done) : 0;
  fmt::print(stderr, "\r\033[K[{}] {}/{}  {:.0f} s left  {}", bar, done, total_, left, what.substr(0, 60));
  std::fflush(stderr);
}

}  // namespace tenon::cli
