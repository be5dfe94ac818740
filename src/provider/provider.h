#pragma once

#include <memory>
#include <string_view>

#include "provider/kernel.h"

namespace tenon {

// Something that can run nodes, such as the CPU.
class Provider {
 public:
  virtual ~Provider() = default;
  virtual std::string_view name() const = 0;
  // Where its tensors live. Those of providers with the same memory need not be copied between them.
  virtual std::string_view memory() const { return "host"; }
  // Whether it will run this node, whose types are inferred; decided before anything is compiled.
  virtual Claim claim(const ir::Node& node) const = 0;
  // The kernel of a node it claimed. Packs constant weights.
  virtual std::unique_ptr<Kernel> compile(const NodeInfo& info) const = 0;
};

}  // namespace tenon
