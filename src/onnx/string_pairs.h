#pragma once

#include "ir/graph.h"
#include "onnx/wire.h"

namespace tenon::onnx {

// StringStringEntryProto.
std::pair<std::string, std::string> read_string_pair(WireReader message);
void write_string_pairs(WireWriter& out, uint32_t field, const ir::StringPairs& pairs);

}  // namespace tenon::onnx
