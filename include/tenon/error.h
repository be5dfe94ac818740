#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace tenon {

// What went wrong, as a stable code. `code_name` gives the word used in messages, JSON and exit codes.
enum class ErrorCode {
  // Files
  missing_file,           // the model or an input file does not exist or cannot be read
  missing_external_data,  // external weights are missing, too short, or outside the model's folder
  not_onnx,               // the file is something else
  truncated,              // the file ends in the middle of a field
  invalid_model,          // the bytes are ONNX, the content breaks its rules
  write_failed,
  stale_file,    // a compiled model was made from another model, or for another processor, version or options
  damaged_file,  // a compiled model is incomplete or was changed
  // Graph
  cyclic_graph,
  undefined_name,
  duplicate_name,
  unknown_operator,   // operator, domain or version that Tenon does not know
  invalid_attribute,  // missing, of the wrong kind, or of a value the operator does not allow
  type_mismatch,
  shape_mismatch,
  // Inputs of a run
  missing_input,
  unknown_name,  // an input or output name the model does not have
  // While running
  invalid_value,  // a tensor's content cannot be used, such as an index out of range
  overflow,       // a size does not fit
  out_of_memory,
  cancelled,
  unsupported,  // valid ONNX that this build cannot run
  provider_unavailable,
  invalid_library,   // a file that was given as a library of custom operators is none, or is one of another version
  custom_operator,   // the code of a custom operator failed, or did not do what it declares
  invalid_argument,  // a call or option makes no sense
  internal,          // a bug in Tenon
  device_lost,       // while running: a device cannot be used by this process any more
};

std::string_view code_name(ErrorCode code);

// The one exception Tenon throws. `what()` is the whole text:
//   shape-mismatch in MatMul 'attention/scores' (node 12), tensor 'k': expected …, got …
//     hint: …
class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message, std::string hint = {});

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }
  // Where: the node with its operator, name and position; outer nodes first when it sits in a subgraph. May be empty.
  const std::string& node() const { return node_; }
  // Which tensor. May be empty.
  const std::string& tensor() const { return tensor_; }
  // What the user can do about it. May be empty.
  const std::string& hint() const { return hint_; }
  const char* what() const noexcept override { return what_.c_str(); }

  // Context is added on the way up. An inner node is put behind the outer one; an already named tensor stays.
  Error& at_node(std::string_view node);
  Error& on_tensor(std::string_view tensor);
  Error& with_hint(std::string_view hint);

 private:
  void compose();

  ErrorCode code_;
  std::string message_, node_, tensor_, hint_, what_;
};

}  // namespace tenon
