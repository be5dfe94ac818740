#pragma once

#include <memory>
#include <string_view>

#include "provider/device.h"
#include "provider/kernel.h"

namespace tenon {

// Something that can run nodes, such as the CPU.
class Provider {
 public:
  virtual ~Provider() = default;
  virtual std::string_view name() const = 0;
  // Where its tensors live. Those of providers with the same memory need not be copied between them.
  virtual std::string_view memory() const { return "host"; }
  // The device that has this memory; null: it is the host's.
  virtual Device* device() const { return nullptr; }
  // Whether it will run this node, whose types are inferred; decided before anything is compiled.
  virtual Claim claim(const ir::Node& node) const = 0;
  // Whether the kernel of a node it claimed reads input i on the host, such as the shape that a Reshape makes.
  virtual bool reads_on_host(const ir::Node&, size_t) const { return device() == nullptr; }
  // Whether it would rather run the decomposition of a node that it does not run itself than leave it to others.
  virtual bool wants_decomposed(const ir::Node&) const { return false; }
  // The kernel of a node it claimed. Packs constant weights.
  virtual std::unique_ptr<Kernel> compile(const NodeInfo& info) const = 0;
};

}  // namespace tenon
