// Whole models: loading any bytes gives a session or an error; a session with small inputs runs or gives an error. A
// model may hold a loop that never ends, so runs are cancelled after a second: what does not end then is a hang.
#include "run_model.h"

std::vector<std::string> fuzz_seeds() { return {std::string("\x08\x0a\x3a\x02\x12\x00", 6)}; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tenon::fuzz::Generator generator(std::hash<std::string_view>()({reinterpret_cast<const char*>(data), size}));
  tenon::fuzz::load_and_run(generator, [&] {
    tenon::SessionOptions options;
    options.memory_limit = 64 << 20;
    if (generator() % 2 != 0) options.decompose = {"all"};
    return tenon::Session::from_bytes(std::as_bytes(std::span(data, size)), options);
  });
  return 0;
}
