#include "tenon/error.h"

namespace tenon {

std::string_view code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::missing_file:
      return "missing-file";
    case ErrorCode::missing_external_data:
      return "missing-external-data";
    case ErrorCode::not_onnx:
      return "not-onnx";
    case ErrorCode::truncated:
      return "truncated";
    case ErrorCode::invalid_model:
      return "invalid-model";
    case ErrorCode::write_failed:
      return "write-failed";
    case ErrorCode::stale_file:
      return "stale-file";
    case ErrorCode::damaged_file:
      return "damaged-file";
    case ErrorCode::cyclic_graph:
      return "cyclic-graph";
    case ErrorCode::undefined_name:
      return "undefined-name";
    case ErrorCode::duplicate_name:
      return "duplicate-name";
    case ErrorCode::unknown_operator:
      return "unknown-operator";
    case ErrorCode::invalid_attribute:
      return "invalid-attribute";
    case ErrorCode::type_mismatch:
      return "type-mismatch";
    case ErrorCode::shape_mismatch:
      return "shape-mismatch";
    case ErrorCode::missing_input:
      return "missing-input";
    case ErrorCode::unknown_name:
      return "unknown-name";
    case ErrorCode::invalid_value:
      return "invalid-value";
    case ErrorCode::overflow:
      return "overflow";
    case ErrorCode::out_of_memory:
      return "out-of-memory";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::provider_unavailable:
      return "provider-unavailable";
    case ErrorCode::invalid_library:
      return "invalid-library";
    case ErrorCode::custom_operator:
      return "custom-operator";
    case ErrorCode::invalid_argument:
      return "invalid-argument";
    case ErrorCode::internal:
      return "internal";
    case ErrorCode::device_lost:
      return "device-lost";
  }
  return "internal";
}

Error::Error(ErrorCode code, std::string message, std::string hint)
    : code_(code), message_(std::move(message)), hint_(std::move(hint)) {
  compose();
}

Error& Error::at_node(std::string_view node) {
  node_ = node_.empty() ? std::string(node) : std::string(node) + " > " + node_;
  compose();
  return *this;
}

Error& Error::on_tensor(std::string_view tensor) {
  if (tensor_.empty()) tensor_ = tensor;
  compose();
  return *this;
}

Error& Error::with_hint(std::string_view hint) {
  if (hint_.empty()) hint_ = hint;
  compose();
  return *this;
}

void Error::compose() {
  what_ = code_name(code_);
  if (!node_.empty()) what_ += " in " + node_;
  if (!tensor_.empty()) what_ += ", tensor '" + tensor_ + "'";
  what_ += ": " + message_;
  if (!hint_.empty()) what_ += "\n  hint: " + hint_;
}

}  // namespace tenon
