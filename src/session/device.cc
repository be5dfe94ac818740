#include "tenon/device.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/fail.h"
#include "cuda/gpu.h"
#include "provider/device.h"
#include "session/providers.h"

namespace tenon {
namespace {

thread_local void* callers_stream = nullptr;

// The device of a provider, which a tensor must keep alive.
struct StartedDevice {
  std::unique_ptr<Provider> provider;
  Device* operator->() const { return provider->device(); }
};

StartedDevice start_device(std::string_view name) {
  StartedDevice started{start_provider(std::string(name))};
  if (!started.provider->device()) fail(ErrorCode::invalid_argument, "provider '{}' has no memory of its own", name);
  return started;
}

}  // namespace

Tensor on_device(const Tensor& tensor, std::string_view provider) {
  if (tensor.type() == ElementType::string) fail(ErrorCode::invalid_argument, "text stays in the memory of the host");
  return start_device(provider)->upload(on_host(tensor));
}

Tensor empty_on_device(ElementType type, Shape shape, std::string_view provider) {
  if (type == ElementType::string) fail(ErrorCode::invalid_argument, "text stays in the memory of the host");
  std::shared_ptr<void> memory = start_device(provider)->allocate(byte_size(type, shape.elements()));
  void* data = memory.get();
  return Tensor::over(type, std::move(shape), data, std::move(memory));
}

Tensor on_host(const Tensor& tensor) {
  Device* device = device_of(tensor);
  return device ? device->download(tensor) : tensor;
}

std::string_view memory_of(const Tensor& tensor) {
  Device* device = device_of(tensor);
  return device ? device->memory_name() : "host";
}

int device_number(const Tensor& tensor) {
  Device* device = device_of(tensor);
  return device ? device->number() : 0;
}

Tensor made_on_device(std::string_view provider) {
  std::shared_ptr<void> memory = start_device(provider)->allocate(0);
  return Tensor::over(ElementType::undefined, {}, nullptr, std::move(memory));
}

Tensor over_cuda_memory(ElementType type, Shape shape, void* data, std::shared_ptr<void> owner, int gpu) {
  DeviceMemoryOwner held{cuda::Gpu::open(gpu), [owner = std::move(owner)](void*) {}};
  return Tensor::over(type, std::move(shape), data, std::shared_ptr<void>(data, std::move(held)));
}

void copy_elements(const Tensor& from, Tensor& to) {
  if (from.bytes() != to.bytes() || from.type() != to.type()) {
    fail(ErrorCode::shape_mismatch, "{} {} is to be copied into memory of {} {}", name_of(from.type()),
         from.shape().to_string(), name_of(to.type()), to.shape().to_string());
  }
  Device *source = device_of(from), *target = device_of(to);
  if (from.type() == ElementType::string) {
    std::ranges::copy(from.data<std::string>(), to.mutable_data<std::string>().begin());
  } else if (source && source != target) {
    copy_elements(source->download(from), to);
  } else if (target) {
    target->settle();
    const std::unique_ptr<Queue> queue = target->make_queue(nullptr);
    if (source)
      queue->copy(to.mutable_raw(), from.raw(), from.bytes());
    else
      queue->upload(to.mutable_raw(), from.raw(), from.bytes());
    queue->wait();
  } else if (from.bytes() > 0) {
    std::memmove(to.mutable_raw(), from.raw(), static_cast<size_t>(from.bytes()));
  }
}

void wait_for_cuda_stream(void* stream, int gpu) { cuda::Gpu::open(gpu)->wait_for(stream); }

CallersStream::CallersStream(void* stream) : before_(std::exchange(callers_stream, stream)) {}
CallersStream::~CallersStream() { callers_stream = before_; }
void* CallersStream::current() { return callers_stream; }

}  // namespace tenon
