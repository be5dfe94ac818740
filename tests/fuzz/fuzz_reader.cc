// The reader: any bytes give a model or an error, and a model that was read can be written and read again.
#include <span>

#include "ir/print.h"
#include "onnx/model_file.h"
#include "tenon/error.h"

std::vector<std::string> fuzz_seeds() { return {std::string("\x08\x0a\x3a\x02\x12\x00", 6)}; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    auto model = tenon::onnx::parse_model(std::as_bytes(std::span(data, size)), nullptr);
    std::string once = tenon::onnx::serialize_model(*model);
    auto again = tenon::onnx::parse_model(std::as_bytes(std::span(once)), nullptr);
    if (tenon::onnx::serialize_model(*again) != once) __builtin_trap();
    tenon::ir::to_text(*model);
  } catch (const tenon::Error& error) {
    if (error.code() == tenon::ErrorCode::internal) __builtin_trap();
  }
  return 0;
}
