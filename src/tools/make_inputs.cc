#include "tenon/tools/make_inputs.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <random>

#include "tenon/tools/value_files.h"

namespace tenon::tools {
namespace {

// The shape of an input nobody gave: the one asked for, else the declared one with 1 for named sizes that are not
// given.
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

// One of the positions that the model reads with such numbers; 0 or 1 where it is not known to, which are valid almost
// everywhere.
template <typename T>
Tensor random_integers(const ValueInfo& input, const Shape& shape, std::mt19937_64& generator) {
  const uint64_t largest = static_cast<uint64_t>(std::numeric_limits<T>::max());
  const uint64_t count = input.index_limit > 0 ? std::min(static_cast<uint64_t>(input.index_limit), largest) : 2;
  return filled<T>(shape, [&] { return generator() % count; });
}

// Floats are normal, booleans true or false.
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
      return random_integers<int64_t>(input, shape, generator);
    case ElementType::int32:
      return random_integers<int32_t>(input, shape, generator);
    case ElementType::int16:
      return random_integers<int16_t>(input, shape, generator);
    case ElementType::int8:
      return random_integers<int8_t>(input, shape, generator);
    case ElementType::uint64:
      return random_integers<uint64_t>(input, shape, generator);
    case ElementType::uint32:
      return random_integers<uint32_t>(input, shape, generator);
    case ElementType::uint16:
      return random_integers<uint16_t>(input, shape, generator);
    case ElementType::uint8:
      if (input.index_limit > 0) return random_integers<uint8_t>(input, shape, generator);
      return filled<uint8_t>(shape, [&] { return static_cast<int>(generator() & 255); });  // of pictures
    case ElementType::boolean:
      return filled<bool>(shape, bit);
    default:
      throw Error(ErrorCode::missing_input, fmt::format("random values of {} cannot be made", input.type),
                  fmt::format("give --input {}=FILE", input.name))
          .on_tensor(input.name);
  }
}

std::vector<ValueInfo> all_inputs(const Session& session) {
  std::vector<ValueInfo> all = session.inputs();
  all.insert(all.end(), session.overridable_initializers().begin(), session.overridable_initializers().end());
  return all;
}

void check_names(const Session& session, const InputSources& sources) {
  const std::vector<ValueInfo> all = all_inputs(session);
  for (const auto& [name, shape] : sources.shapes) {
    if (std::ranges::find(all, name, &ValueInfo::name) == all.end()) {
      throw Error(ErrorCode::unknown_name, fmt::format("--shape names '{}', which is no input of the model", name));
    }
  }
  for (const auto& [name, size] : sources.dims) {
    auto has_dim = [&dim = name](const ValueInfo& input) { return std::ranges::count(input.shape, dim) > 0; };
    if (std::ranges::none_of(session.inputs(), has_dim)) {
      throw Error(ErrorCode::unknown_name, fmt::format("--dim names '{}', which no input of the model has", name));
    }
  }
}

}  // namespace

std::map<std::string, Shape> input_shapes(const Session& session, const InputSources& sources,
                                          std::vector<std::string>& assumed) {
  check_names(session, sources);
  std::map<std::string, Shape> shapes = sources.shapes;
  for (const ValueInfo& input : session.inputs()) {
    if (input.has_shape) shapes[input.name] = shape_for(input, sources.shapes, sources.dims, assumed);
  }
  return shapes;
}

MadeInputs make_inputs(const Session& session, const InputSources& sources) {
  MadeInputs made;
  made.values = sources.values;
  const std::vector<ValueInfo> all = all_inputs(session);
  for (const auto& [name, file] : sources.files) {
    auto info = std::ranges::find(all, name, &ValueInfo::name);
    // An unknown name is reported by the run, with the nearest known one.
    made.values[name] = info == all.end() ? Value(Tensor(ElementType::float32, Shape{})) : read_value(file, *info);
  }
  check_names(session, sources);
  std::mt19937_64 generator(sources.seed);
  for (const ValueInfo& input : session.inputs()) {
    if (made.values.count(input.name)) continue;
    Shape shape = shape_for(input, sources.shapes, sources.dims, made.assumed);
    made.values[input.name] = random_tensor(input, shape, generator);
    made.random.push_back(input.name);
  }
  return made;
}

}  // namespace tenon::tools
