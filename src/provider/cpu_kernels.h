#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "provider/kernel.h"

namespace tenon {

// The CPU kernels by operator. A folder in src/ops adds its own in cpu.cc:
//
//   kernels.add("Softmax", [](const NodeInfo& n) { return std::make_unique<Softmax>(n); });
//   kernels.add_simple("Identity", [](KernelRun& r) { r.set_output(0, r.value(0)); });
class CpuKernels {
 public:
  using Make = std::function<std::unique_ptr<Kernel>(const NodeInfo&)>;
  // Says no, with a reason, to nodes that the kernel does not run. Without one it runs all that the schema allows.
  using Decline = std::function<std::string(const ir::Node&)>;

  struct Entry {
    Make make;
    Decline decline;
  };

  void add(std::string_view op, Make make, Decline decline = nullptr, std::string_view domain = "");
  // A kernel without state.
  void add_simple(std::string_view op, void (*run)(KernelRun&), std::string_view domain = "");
  const Entry* find(std::string_view domain, std::string_view op) const;

 private:
  std::unordered_map<std::string, Entry> entries_;
};

}  // namespace tenon
