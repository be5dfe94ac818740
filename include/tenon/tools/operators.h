#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tenon::tools {

// What Tenon has of an operator.
struct OperatorInfo {
  std::string name, domain;   // "" is ai.onnx
  std::string folder;         // below src/ops
  std::vector<int> versions;  // those in which ONNX changed it, ascending
  // Element types by type variable, or by parameter where it has a type of its own.
  std::vector<std::pair<std::string, std::vector<std::string>>> types;
  std::vector<std::string> providers;  // that have a kernel
  bool retired = false;                // its newest version is lifted to another operator, so no kernel is needed
  bool decomposes = false;             // it can run as smaller operators
  std::vector<int> changes;            // versions with a new meaning, which older nodes are lifted to
  std::vector<int> ways_back;          // versions that nodes are brought back from, to be written in an older opset
  std::vector<std::pair<std::string, int>> additions;  // attributes and inputs that merely came with a version
};

// Every operator, by domain and name.
std::vector<OperatorInfo> list_operators();

}  // namespace tenon::tools
