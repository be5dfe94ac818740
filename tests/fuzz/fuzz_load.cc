// Whole models: loading any bytes gives a session or an error; a session with small inputs runs or gives an error. A
// model may hold a loop that never ends, so runs are cancelled after a second: what does not end then is a hang.
#include <cstdio>

#include "run_model.h"

std::vector<std::string> fuzz_seeds() { return {std::string("\x08\x0a\x3a\x02\x12\x00", 6)}; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    tenon::SessionOptions options;
    options.memory_limit = 64 << 20;
    tenon::fuzz::Generator generator(std::hash<std::string_view>()({reinterpret_cast<const char*>(data), size}));
    if (generator() % 2 != 0) options.decompose = {"all"};
    tenon::Session session = tenon::Session::from_bytes(std::as_bytes(std::span(data, size)), options);
    tenon::NamedValues inputs;
    for (const tenon::ValueInfo& info : session.inputs()) {
      if (!tenon::fuzz::make_input(info, inputs, generator)) return 0;
    }
    tenon::fuzz::run_for_a_second(session, inputs);
  } catch (const tenon::Error& error) {
    if (error.code() == tenon::ErrorCode::internal) {
      std::fprintf(stderr, "%s\n", error.what());
      __builtin_trap();
    }
  }
  return 0;
}
