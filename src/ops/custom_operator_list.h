#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/operator.h"

namespace tenon::ops {

// The operators that a user brings to one session, beside operators(). Lifting looks here; from then on a node has its
// operator with it (operator_of), so nobody else needs this list.
class CustomOperatorList {
 public:
  // An operator with one version; `source` says where it comes from. Throws ErrorCode::invalid_argument if its domain
  // is one of ONNX's, or the list has one of this name and version.
  void add(std::shared_ptr<const Operator> op, std::string source);

  // What a node means in a model that imports `opset` of its domain (0: does not say): the newest version that is not
  // newer, else the oldest. Null if there is none.
  std::shared_ptr<const Operator> find(std::string_view domain, std::string_view name, int64_t opset) const;
  bool has(std::string_view domain, std::string_view name) const { return find(domain, name, 0) != nullptr; }
  // The names of a domain's operators.
  std::vector<std::string_view> names_of(std::string_view domain) const;

 private:
  struct Entry {
    std::shared_ptr<const Operator> op;
    std::string source;
  };
  std::map<std::pair<std::string, std::string>, std::vector<Entry>> entries_;  // by domain and name; oldest first
};

// "com.example.Clamp"; "Relu" for one of ai.onnx.
std::string full_name(std::string_view domain, std::string_view name);

}  // namespace tenon::ops
