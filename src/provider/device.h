#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "tenon/tensor.h"

namespace tenon {

class Queue;

// Work of a queue that was recorded once, to be given to the device as a whole.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void replay(Queue& queue) const = 0;
};

// Copies between the host's memory and a device, for one run at a time. Each has a number, by which what it needs is
// kept for later runs. Large ones go in pieces through memory that the device reads and writes by itself, so that the
// host and the device copy at the same time.
class Transfers {
 public:
  virtual ~Transfers() = default;
  // in_queue: after what the queue was given before, and before what it is given next. beside: an upload begins at
  // once; a download comes after what the queue was given before; what comes next waits for neither.
  enum class Order : uint8_t { in_queue, beside };
  // Below this, copies beside the queue's work cost more than they save.
  static constexpr int64_t worth_beside = 256 << 10;

  // From the host's memory, which may be written again when the run has ended.
  virtual void upload(int number, void* to, const void* from, int64_t bytes, Order order) = 0;
  // What the queue is given next comes after that upload. May be recorded.
  virtual void await_upload(int number) = 0;
  // To the host's memory, where it is after finish_downloads().
  virtual void download(int number, void* to, const void* from, int64_t bytes, Order order) = 0;
  virtual void finish_downloads() = 0;
  // After a run that failed: until no copy is under way. Downloads are not finished.
  virtual void abandon() noexcept = 0;
};

// Work for a device, done in the order in which it is given, while the host goes on. As an Allocator it gives memory of
// the device, for work of this queue. Kernels of the device's provider find it in KernelRun::allocator(). Several
// threads may use it at once. What fails is thrown by the call that gives the work or by a later one.
class Queue : public Allocator {
 public:
  // From the host's memory, which may be written again at once.
  virtual void upload(void* to, const void* from, int64_t bytes) = 0;
  // To the host's memory, where it is when this returns.
  virtual void download(void* to, const void* from, int64_t bytes) = 0;
  virtual std::unique_ptr<Transfers> make_transfers() = 0;
  // Within the device's memory.
  virtual void copy(void* to, const void* from, int64_t bytes) = 0;
  virtual void wait() = 0;

  // Memory that the work given so far uses, and that nobody may give back before it is done.
  virtual void keep(std::vector<std::shared_ptr<void>> memory) = 0;
  // Lets go of what was kept for work that is done by now. Throws where that failed.
  virtual void drop_finished() = 0;
  // Until the work that something is kept for is done, whatever comes of it.
  virtual void finish_kept() noexcept = 0;
  // Whether the work goes to a stream of the caller's.
  virtual bool is_callers() const = 0;

  // Nanoseconds that the device takes for the work that a function gives to this queue.
  virtual int64_t time(const std::function<void()>& work) = 0;

  // What this thread gives from now on is recorded instead of done, up to end_recording(). Null where something in it
  // cannot be recorded.
  virtual void begin_recording() = 0;
  virtual std::unique_ptr<Recording> end_recording() = 0;
};

// A processor with memory of its own.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;
  // Its number among the devices of its kind, as their driver counts them.
  virtual int number() const = 0;
  // `stream`: one of the caller's that the work goes to, as the driver knows it; null: one of the queue's own.
  virtual std::unique_ptr<Queue> make_queue(void* stream) = 0;
  // Memory of the device, for whatever nobody is working on any more when it is given back.
  virtual std::shared_ptr<void> allocate(int64_t bytes) = 0;
  // Until what was given to a stream is done; null: to any of them.
  virtual void wait_for(void* stream) const = 0;
  // Until what was given by runs that did not wait for it is done.
  virtual void settle() const = 0;
  // A copy of a tensor of the host in the device's memory.
  virtual Tensor upload(const Tensor& tensor) = 0;
  // And the other way round.
  virtual Tensor download(const Tensor& tensor) = 0;
  // As users call its memory, such as "cuda".
  virtual std::string_view memory_name() const = 0;
};

// What gives memory of a device back, by which it is known as such.
struct DeviceMemoryOwner {
  std::shared_ptr<Device> device;
  std::function<void(void*)> give_back;
  void operator()(void* block) const { give_back(block); }
};

// The device whose memory the tensor lies in; null: the host's.
inline Device* device_of(const Tensor& tensor) {
  const auto* owner = std::get_deleter<DeviceMemoryOwner>(tensor.owner());
  return owner ? owner->device.get() : nullptr;
}

// Whether it is no tensor but stands for one, of whatever type and shape, that a run is to make on a device.
inline bool stands_for_output(const Tensor& destination) {
  return !destination.defined() && device_of(destination) != nullptr;
}

}  // namespace tenon
