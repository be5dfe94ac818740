// Copies between host and GPU through memory that both reach.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "cuda/event.h"
#include "cuda/gpu.h"

namespace tenon::cuda {

// Memory of the host that the GPU copies from and to by itself; null where the system gives none.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  PinnedMemory(const std::shared_ptr<Gpu>& gpu, int64_t bytes);
  std::byte* at(int64_t offset) const { return static_cast<std::byte*>(memory_.get()) + offset; }
  explicit operator bool() const { return memory_ != nullptr; }

 private:
  std::shared_ptr<void> memory_;
};

class GpuTransfers final : public Transfers {
 public:
  explicit GpuTransfers(GpuQueue& queue);
  ~GpuTransfers() override { abandon(); }

  void upload(int number, void* to, const void* from, int64_t bytes, Order order) override;
  void await_upload(int number) override;
  void download(int number, void* to, const void* from, int64_t bytes, Order order) override;
  void finish_downloads() override;
  void abandon() noexcept override;

 private:
  // What a copy passes through, as a ring of pieces.
  struct Staging {
    PinnedMemory memory;
    int64_t room = 0;
    std::deque<Event> copied;  // by piece: the GPU's last copy from or to it
    std::unique_ptr<Event> arrived;
    bool is_beside = false;  // the last upload
  };
  // A download that the host has not copied from its pieces yet, or only in part.
  struct Pending {
    Staging* staging;
    std::byte* to;
    int64_t bytes;
    int64_t next = 0;  // piece
  };

  // With room for so many bytes or for a ring of pieces of them; 0: it needs none.
  Staging& staging_for(int number, int64_t bytes);
  bool is_pinned(const void* memory, int64_t bytes) const;
  void copy_up(void* to, const void* from, int64_t bytes, Handle stream);
  void copy_down(void* to, const void* from, int64_t bytes, Handle stream);
  void collect(Pending& pending) const;

  GpuQueue& queue_;
  std::shared_ptr<Gpu> gpu_;
  std::map<int, Staging> stagings_;
  std::vector<Pending> pending_;
  Event produced_;
};

}  // namespace tenon::cuda
