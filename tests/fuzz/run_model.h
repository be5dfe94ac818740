// Inputs for models that nobody knows, and runs that end.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <limits>
#include <mutex>
#include <random>
#include <thread>

#include "tenon/tenon.h"

namespace tenon::fuzz {

using Generator = std::mt19937_64;

// One of a few numbers that are likely to matter: as an index, a size, an axis, a divisor.
inline double number(Generator& g) {
  static constexpr double small[] = {0, 1, 2, 3, 4, -1, -2, -3, 0.5, 10};
  static constexpr double large[] = {127,    -128,    255,  65536, 2147483647, -2147483648.0,
                                     9.2e18, -9.2e18, 1e30, -1e30, INFINITY,   NAN};
  return g() % 8 != 0 ? small[g() % std::size(small)] : large[g() % std::size(large)];
}

template <typename T>
inline void fill(Tensor& tensor, Generator& g) {
  for (T& element : tensor.mutable_data<T>()) {
    double value = number(g);
    if constexpr (!std::is_integral_v<T>)
      element = T(static_cast<float>(value));
    else if (value >= -9.2e18 && value <= 9.2e18)
      element = static_cast<T>(static_cast<int64_t>(value));
    else
      element = std::numeric_limits<T>::min();
  }
}

inline void fill(Tensor& tensor, Generator& g) {
  switch (tensor.type()) {
    case ElementType::string:
      for (std::string& text : tensor.mutable_data<std::string>())
        text = std::array{"", "a", "-1.5", "1e400", "nan"}[g() % 5];
      break;
    case ElementType::boolean:
      for (bool& flag : tensor.mutable_data<bool>()) flag = g() % 2 != 0;
      break;
    case ElementType::float32:
      return fill<float>(tensor, g);
    case ElementType::float64:
      return fill<double>(tensor, g);
    case ElementType::int32:
      return fill<int32_t>(tensor, g);
    case ElementType::int64:
      return fill<int64_t>(tensor, g);
    default: {
      auto* bytes = static_cast<unsigned char*>(tensor.mutable_raw());
      std::generate_n(bytes, tensor.bytes(), [&] { return static_cast<unsigned char>(g()); });
    }
  }
}

// A tensor of the declared shape with 2 for open sizes; nothing for large or unusual inputs.
inline bool make_input(const ValueInfo& info, NamedValues& inputs, Generator& g) {
  if (info.element == ElementType::undefined || !info.has_shape) return false;
  Shape shape;
  int64_t elements = 1;
  for (const std::string& dim : info.shape) {
    bool is_number = !dim.empty() && dim.size() < 6 && dim.find_first_not_of("0123456789") == std::string::npos;
    shape.push_back(is_number ? std::stoll(dim) : 2);
    elements *= shape[shape.rank() - 1];
    if (elements > 10000) return false;
  }
  Tensor tensor(info.element, shape);
  if (tensor.type() != ElementType::string) std::fill_n(static_cast<char*>(tensor.mutable_raw()), tensor.bytes(), 0);
  if (g() % 4 != 0) fill(tensor, g);
  inputs[info.name] = tensor;
  return true;
}

inline void run_for_a_second(const Session& session, const NamedValues& inputs) {
  std::stop_source cancel;
  std::jthread timer([&](const std::stop_token& done) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any().wait_for(lock, done, std::chrono::seconds(1), [] { return false; });
    cancel.request_stop();
  });
  RunOptions options;
  options.cancel = cancel.get_token();
  session.run(inputs, options);
}

// Loads a session with `load` and runs it with small inputs. Errors are fine, unless they are Tenon's own.
template <class Load>
void load_and_run(Generator& generator, Load load) {
  try {
    Session session = load();
    NamedValues inputs;
    for (const ValueInfo& info : session.inputs()) {
      if (!make_input(info, inputs, generator)) return;
    }
    run_for_a_second(session, inputs);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::internal) return;
    std::fprintf(stderr, "%s\n", error.what());
    __builtin_trap();
  }
}

}  // namespace tenon::fuzz
