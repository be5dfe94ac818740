#include "tenon/device.h"

#include "base/fail.h"
#include "provider/device.h"
#include "session/providers.h"

namespace tenon {

Tensor on_device(const Tensor& tensor, std::string_view provider) {
  // The device outlives the provider.
  const std::unique_ptr<Provider> started = start_provider(std::string(provider));
  if (!started->device()) fail(ErrorCode::invalid_argument, "provider '{}' has no memory of its own", provider);
  return started->device()->upload(on_host(tensor));
}

Tensor on_host(const Tensor& tensor) {
  Device* device = device_of(tensor);
  return device ? device->download(tensor) : tensor;
}

std::string_view memory_of(const Tensor& tensor) {
  Device* device = device_of(tensor);
  return device ? device->memory_name() : "host";
}

}  // namespace tenon
