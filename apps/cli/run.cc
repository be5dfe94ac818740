#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "cli.h"
#include "tenon/tools/value_files.h"
#include "tenon/tools/value_text.h"

namespace tenon::cli {
namespace {

struct RunFlags {
  std::string model;
  std::vector<std::string> inputs, shapes, dims, outputs;
  std::string output_dir;
  SessionFlags session;
  uint64_t seed = 0;
  int repeat = 1;
  bool placement = false, time = false, json = false;
};

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

// The shape of an input nobody gave: --shape, else the declared one with --dim for named sizes and 1 for the rest.
Shape shape_for(const ValueInfo& input, const std::map<std::string, Shape>& shapes,
                const std::map<std::string, int64_t>& dims, std::vector<std::string>& assumed) {
  if (auto found = shapes.find(input.name); found != shapes.end()) return found->second;
  if (!input.has_shape) {
    throw Error(ErrorCode::missing_input, "the model declares no shape for it",
                fmt::format("give --shape {}=… or --input {}=FILE", input.name, input.name))
        .on_tensor(input.name);
  }
  Shape shape;
  for (const std::string& dim : input.shape) {
    if (dim.find_first_not_of("0123456789") == std::string::npos) {
      shape.push_back(std::stoll(dim));
    } else if (auto found = dims.find(dim); found != dims.end()) {
      shape.push_back(found->second);
    } else {
      shape.push_back(1);
      if (std::ranges::find(assumed, dim) == assumed.end()) assumed.push_back(dim);
    }
  }
  return shape;
}

template <typename T, typename Draw>
Tensor filled(const Shape& shape, Draw&& draw) {
  Tensor tensor(element_type_of<T>, shape);
  for (T& element : tensor.mutable_data<T>()) element = static_cast<T>(draw());
  return tensor;
}

// Floats are normal, integers 0 or 1 (valid as index almost everywhere), booleans true or false.
Tensor random_tensor(const ValueInfo& input, const Shape& shape, std::mt19937_64& generator) {
  std::normal_distribution<float> normal;
  auto real = [&] { return normal(generator); };
  auto bit = [&] { return static_cast<int>(generator() & 1); };
  switch (input.element) {
    case ElementType::float32:
      return filled<float>(shape, real);
    case ElementType::float64:
      return filled<double>(shape, real);
    case ElementType::float16:
      return filled<float16>(shape, real);
    case ElementType::bfloat16:
      return filled<bfloat16>(shape, real);
    case ElementType::int64:
      return filled<int64_t>(shape, bit);
    case ElementType::int32:
      return filled<int32_t>(shape, bit);
    case ElementType::int16:
      return filled<int16_t>(shape, bit);
    case ElementType::int8:
      return filled<int8_t>(shape, bit);
    case ElementType::uint64:
      return filled<uint64_t>(shape, bit);
    case ElementType::uint32:
      return filled<uint32_t>(shape, bit);
    case ElementType::uint16:
      return filled<uint16_t>(shape, bit);
    case ElementType::uint8:
      return filled<uint8_t>(shape, [&] { return static_cast<int>(generator() & 255); });
    case ElementType::boolean:
      return filled<bool>(shape, bit);
    default:
      throw Error(ErrorCode::missing_input, fmt::format("random values of {} cannot be made", input.type),
                  fmt::format("give --input {}=FILE", input.name))
          .on_tensor(input.name);
  }
}

NamedValues make_inputs(const Session& session, const RunFlags& flags) {
  NamedValues values;
  std::vector<ValueInfo> all = session.inputs();
  all.insert(all.end(), session.overridable_initializers().begin(), session.overridable_initializers().end());
  for (const std::string& text : flags.inputs) {
    auto [name, file] = split(text, "--input", "NAME=FILE");
    auto info = std::ranges::find(all, name, &ValueInfo::name);
    // An unknown name is reported by the run, with the nearest known one.
    values[name] = info == all.end() ? Value(Tensor(ElementType::float32, Shape{})) : tools::read_value(file, *info);
  }
  std::map<std::string, Shape> shapes;
  for (const std::string& text : flags.shapes) {
    auto [name, shape] = split(text, "--shape", "NAME=1x3x224x224");
    if (std::ranges::find(all, name, &ValueInfo::name) == all.end()) {
      throw Error(ErrorCode::unknown_name, fmt::format("--shape names '{}', which is no input of the model", name));
    }
    shapes[name] = parse_shape(shape);
  }
  std::map<std::string, int64_t> dims;
  for (const std::string& text : flags.dims) {
    auto [name, size] = split(text, "--dim", "NAME=SIZE");
    auto has_dim = [&, &dim = name](const ValueInfo& input) { return std::ranges::count(input.shape, dim) > 0; };
    if (std::ranges::none_of(session.inputs(), has_dim)) {
      throw Error(ErrorCode::unknown_name, fmt::format("--dim names '{}', which no input of the model has", name));
    }
    dims[name] = parse_size(size);
  }
  std::mt19937_64 generator(flags.seed);
  std::vector<std::string> assumed, random;
  for (const ValueInfo& input : session.inputs()) {
    if (values.count(input.name)) continue;
    values[input.name] = random_tensor(input, shape_for(input, shapes, dims, assumed), generator);
    random.push_back(input.name);
  }
  if (!random.empty() && !flags.json) {
    std::string text = fmt::format("{} input{} not given: random values (seed {})", random.size(),
                                   random.size() == 1 ? "" : "s", flags.seed);
    for (size_t i = 0; i < assumed.size(); ++i) text += fmt::format("{}{} = 1", i ? ", " : "; assumed ", assumed[i]);
    fmt::print(stderr, "note: {}\n", text);
  }
  return values;
}

nlohmann::json output_json(const std::string& name, const Value& value) {
  nlohmann::json json = {{"name", name}, {"value", value.describe()}};
  if (!value.is_tensor()) return json;
  const Tensor& tensor = value.tensor();
  json["type"] = std::string(name_of(tensor.type()));
  json["shape"] = std::vector<int64_t>(tensor.shape().begin(), tensor.shape().end());
  if (tensor.elements() <= 1000) json["data"] = tools::elements_as_text(tensor);
  return json;
}

int run(const RunFlags& flags) {
  using Clock = std::chrono::steady_clock;
  auto milliseconds = [](Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); };
  auto start = Clock::now();
  Session session = Session::load(flags.model, flags.session.options());
  double load = milliseconds(Clock::now() - start);
  if (!flags.json) {
    for (const std::string& note : session.notes()) fmt::print(stderr, "note: {}\n", note);
  }
  NamedValues inputs = make_inputs(session, flags);
  RunOptions options;
  options.outputs = flags.outputs;
  NamedValues outputs;
  double first = 0, best = INFINITY;
  for (int i = 0; i < flags.repeat; ++i) {
    start = Clock::now();
    outputs = session.run(inputs, options);
    double took = milliseconds(Clock::now() - start);
    if (i == 0) first = took;
    best = std::min(best, took);
  }
  std::vector<std::string> written;
  if (!flags.output_dir.empty()) written = tools::write_values(flags.output_dir, outputs);

  if (flags.json) {
    nlohmann::json json = {
        {"model", flags.model}, {"load_ms", load}, {"run_ms", best}, {"notes", session.notes()}, {"files", written}};
    json["outputs"] = nlohmann::json::array();
    for (const auto& [name, value] : outputs) json["outputs"].push_back(output_json(name, value));
    if (flags.placement) {
      for (const NodePlacement& node : session.placement()) json["placement"].push_back(to_json(node));
    }
    fmt::print("{}\n", json.dump(2));
    return fine;
  }
  for (const ValueInfo& info : session.outputs()) {
    auto found = outputs.find(info.name);
    if (found != outputs.end()) fmt::print("{} = {}\n", info.name, tools::value_text(found->second));
  }
  for (const std::string& file : written) fmt::print("wrote {}\n", file);
  if (flags.placement) print_placement(session.placement());
  if (flags.time) {
    fmt::print("time: load {:.2f} ms, first run {:.3f} ms", load, first);
    if (flags.repeat > 1) fmt::print(", best of {} {:.3f} ms", flags.repeat, best);
    fmt::print("\n");
  }
  return fine;
}

}  // namespace

void add_run(CLI::App& program, Action& action) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command =
      program.add_subcommand("run", "Run a model once, on given or random inputs, and print its outputs");
  command->add_option("model", flags->model, "The .onnx file")->required()->type_name("MODEL");
  command->add_option("--input", flags->inputs, "An input from a file: .npy, .npz, .pb, .pgm, .ppm, .bin or .raw")
      ->type_name("NAME=FILE");
  command->add_option("--shape", flags->shapes, "The shape of a random input")->type_name("NAME=1x3x224x224");
  command->add_option("--dim", flags->dims, "The size of a named dimension of random inputs (default: 1)")
      ->type_name("NAME=SIZE");
  command->add_option("--seed", flags->seed, "Seed of random inputs (default: 0)");
  command->add_option("--output", flags->outputs, "Compute only these outputs")->type_name("NAME");
  command->add_option("--output-dir", flags->output_dir, "Save the outputs there as .npy files")->type_name("DIR");
  command->add_option("--repeat", flags->repeat, "Run this many times")->check(CLI::PositiveNumber);
  command->add_flag("--placement", flags->placement, "Print where each node ran");
  command->add_flag("--time", flags->time, "Print how long loading and running took");
  command->add_flag("--json", flags->json, "Print one JSON document");
  flags->session.add_to(*command);
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tenon::cli
