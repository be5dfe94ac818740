#include "onnx/string_pairs.h"

namespace tenon::onnx {

std::pair<std::string, std::string> read_string_pair(WireReader message) {
  std::pair<std::string, std::string> pair;
  while (message.next()) {
    if (message.field() == 1)
      pair.first = message.string();
    else if (message.field() == 2)
      pair.second = message.string();
    else
      message.skip();
  }
  return pair;
}

void write_string_pairs(WireWriter& out, uint32_t field, const ir::StringPairs& pairs) {
  for (const auto& [key, value] : pairs) {
    WireWriter entry;
    entry.bytes(1, key);
    entry.bytes(2, value);
    out.message(field, std::move(entry));
  }
}

}  // namespace tenon::onnx
