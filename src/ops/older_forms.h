// What older versions of operators cannot say in one node, in operators that they have.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace tenon::ops {

class Decomposition;
class Operator;

// Writes a node that versions before `before` cannot express in other nodes, of the newest versions, that they can.
// Unlike a decomposition it may use the same operator, in a way that has an inverse, and it may take long to run: it
// serves nothing but models that must be written for an old opset.
struct OlderForm {
  int before;
  void (*write)(Decomposition&);
};

// A folder that has such forms defines them in older.cc:
//
//   void older_reduce(OlderForms& forms) { forms.add("ReduceMax", 18, with_constant_axes); }
//
// and has a line in older_forms.def.
class OlderForms {
 public:
  // Forms of one operator are tried in the order in which they were added.
  void add(const std::string& op, int before, void (*write)(Decomposition&)) { forms_[op].push_back({before, write}); }
  const std::vector<OlderForm>& of(const std::string& op) const;

 private:
  std::unordered_map<std::string, std::vector<OlderForm>> forms_;
};

const OlderForms& older_forms();

// Writes the node in the first of its forms for an operator version that can, else in its decomposition. Else changes
// nothing and says why not: "" when it is done.
std::string write_for_version(ir::Node& node, int64_t version);

}  // namespace tenon::ops
