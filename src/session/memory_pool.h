#pragma once

#include <memory>

#include "tenon/session.h"
#include "tenon/tensor.h"

namespace tenon {

// Memory of a session's runs: reuses freed blocks of similar size and refuses to grow past a limit. Blocks may outlive
// the pool object.
class MemoryPool final : public Allocator {
  struct State;

 public:
  explicit MemoryPool(int64_t limit, MemoryUse use = MemoryUse::normal);
  ~MemoryPool() override;
  std::shared_ptr<void> allocate(int64_t bytes) override;

  // All but the weights.
  SessionMemory statistics() const;
  // Gives the kept ones back to the system.
  void trim();

  // While runs go on. With MemoryUse::low, blocks are kept only then.
  class Run {
   public:
    explicit Run(MemoryPool& pool);
    ~Run();
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

   private:
    State& state_;
  };

 private:
  std::shared_ptr<State> state_;
};

}  // namespace tenon
