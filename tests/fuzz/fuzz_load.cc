// Whole models: loading any bytes gives a session or an error; a session with small inputs runs or gives an error. A model
// may hold a loop that never ends, so runs are cancelled after a second: what does not end then is a hang.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

#include "tenon/tenon.h"

std::vector<std::string> fuzz_seeds() { return {std::string("\x08\x0a\x3a\x02\x12\x00", 6)}; }

namespace {

// Zeros of the declared shape with 2 for open sizes; nothing for large or unusual inputs.
bool make_input(const tenon::ValueInfo& info, tenon::NamedValues& inputs) {
  if (info.element == tenon::ElementType::undefined || info.element == tenon::ElementType::string || !info.has_shape) return false;
  tenon::Shape shape;
  int64_t elements = 1;
  for (const std::string& dim : info.shape) {
    bool number = dim.size() < 6 && dim.find_first_not_of("0123456789") == std::string::npos;
    shape.push_back(number ? std::stoll(dim) : 2);
    elements *= shape[shape.rank() - 1];
    if (elements > 10000) return false;
  }
  tenon::Tensor tensor(info.element, shape);
  auto* bytes = static_cast<char*>(tensor.mutable_raw());
  std::fill_n(bytes, tensor.bytes(), 0);
  inputs[info.name] = tensor;
  return true;
}

void run_for_a_second(const tenon::Session& session, const tenon::NamedValues& inputs) {
  std::stop_source cancel;
  std::jthread timer([&](std::stop_token done) {
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
    tenon::Session session = tenon::Session::from_bytes(std::as_bytes(std::span(data, size)), options);
    tenon::NamedValues inputs;
    for (const tenon::ValueInfo& info : session.inputs()) {
      if (!make_input(info, inputs)) return 0;
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
