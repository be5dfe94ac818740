// Whole models: loading any bytes gives a session or an error; a session with small inputs runs or gives an error. A
// model may hold a loop that never ends, so runs are cancelled after a second: what does not end then is a hang.
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

std::vector<std::string> fuzz_seeds() { return {std::string("\x08\x0a\x3a\x02\x12\x00", 6)}; }

namespace {

using Generator = std::mt19937_64;

// One of a few numbers that are likely to matter: as an index, a size, an axis, a divisor.
double number(Generator& g) {
  static constexpr double small[] = {0, 1, 2, 3, 4, -1, -2, -3, 0.5, 10};
  static constexpr double large[] = {127,    -128,    255,  65536, 2147483647, -2147483648.0,
                                     9.2e18, -9.2e18, 1e30, -1e30, INFINITY,   NAN};
  return g() % 8 != 0 ? small[g() % std::size(small)] : large[g() % std::size(large)];
}

template <typename T>
void fill(tenon::Tensor& tensor, Generator& g) {
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

void fill(tenon::Tensor& tensor, Generator& g) {
  switch (tensor.type()) {
    case tenon::ElementType::string:
      for (std::string& text : tensor.mutable_data<std::string>())
        text = std::array{"", "a", "-1.5", "1e400", "nan"}[g() % 5];
      break;
    case tenon::ElementType::boolean:
      for (bool& flag : tensor.mutable_data<bool>()) flag = g() % 2 != 0;
      break;
    case tenon::ElementType::float32:
      return fill<float>(tensor, g);
    case tenon::ElementType::float64:
      return fill<double>(tensor, g);
    case tenon::ElementType::int32:
      return fill<int32_t>(tensor, g);
    case tenon::ElementType::int64:
      return fill<int64_t>(tensor, g);
    default: {
      auto* bytes = static_cast<unsigned char*>(tensor.mutable_raw());
      std::generate_n(bytes, tensor.bytes(), [&] { return static_cast<unsigned char>(g()); });
    }
  }
}

// A tensor of the declared shape with 2 for open sizes; nothing for large or unusual inputs.
bool make_input(const tenon::ValueInfo& info, tenon::NamedValues& inputs, Generator& g) {
  if (info.element == tenon::ElementType::undefined || !info.has_shape) return false;
  tenon::Shape shape;
  int64_t elements = 1;
  for (const std::string& dim : info.shape) {
    bool is_number = dim.size() < 6 && dim.find_first_not_of("0123456789") == std::string::npos;
    shape.push_back(is_number ? std::stoll(dim) : 2);
    elements *= shape[shape.rank() - 1];
    if (elements > 10000) return false;
  }
  tenon::Tensor tensor(info.element, shape);
  if (tensor.type() != tenon::ElementType::string)
    std::fill_n(static_cast<char*>(tensor.mutable_raw()), tensor.bytes(), 0);
  if (g() % 4 != 0) fill(tensor, g);
  inputs[info.name] = tensor;
  return true;
}

void run_for_a_second(const tenon::Session& session, const tenon::NamedValues& inputs) {
  std::stop_source cancel;
  std::jthread timer([&](const std::stop_token& done) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any().wait_for(lock, done, std::chrono::seconds(1), [] { return false; });
    cancel.request_stop();
  });
  tenon::RunOptions options;
  options.cancel = cancel.get_token();
  session.run(inputs, options);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    tenon::SessionOptions options;
    options.memory_limit = 64 << 20;
    Generator generator(std::hash<std::string_view>()({reinterpret_cast<const char*>(data), size}));
    if (generator() % 2 != 0) options.decompose = {"all"};
    tenon::Session session = tenon::Session::from_bytes(std::as_bytes(std::span(data, size)), options);
    tenon::NamedValues inputs;
    for (const tenon::ValueInfo& info : session.inputs()) {
      if (!make_input(info, inputs, generator)) return 0;
    }
    run_for_a_second(session, inputs);
  } catch (const tenon::Error& error) {
    if (error.code() == tenon::ErrorCode::internal) {
      std::fprintf(stderr, "%s\n", error.what());
      __builtin_trap();
    }
  }
  return 0;
}
