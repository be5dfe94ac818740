#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "tenon/tensor.h"

namespace tenon {

class Queue;

// Work of a queue that was recorded once, to be given to the device as a whole.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void replay(Queue& queue) const = 0;
};

// Work for a device, done in the order in which it is given, while the host goes on. As an Allocator it gives memory of
// the device, for work of this queue. Kernels of the device's provider find it in KernelRun::allocator(). Several
// threads may use it at once. What fails is thrown by the call that gives the work or by a later one.
class Queue : public Allocator {
 public:
  // From the host's memory, which may be written again at once.
  virtual void upload(void* to, const void* from, int64_t bytes) = 0;
  // To the host's memory, where it is after the next wait_for_downloads().
  virtual void download(void* to, const void* from, int64_t bytes) = 0;
  virtual void wait_for_downloads() = 0;
  // Within the device's memory.
  virtual void copy(void* to, const void* from, int64_t bytes) = 0;
  virtual void wait() = 0;

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
