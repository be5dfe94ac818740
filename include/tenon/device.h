// Tensors in the memory of a GPU.
#pragma once

#include <string>
#include <string_view>

#include "tenon/tensor.h"

namespace tenon {

// A copy in the memory of the provider's device, such as "cuda". It can be an input of a run, and the destination of an
// output: then nothing goes through the host. Its elements cannot be read on the host. Throws
// ErrorCode::provider_unavailable where the provider cannot start, invalid_argument where it has no memory of its own.
Tensor on_device(const Tensor& tensor, std::string_view provider = "cuda");
// The same, with elements that nobody wrote.
Tensor empty_on_device(ElementType type, Shape shape, std::string_view provider = "cuda");
// A copy in the host's memory; the tensor itself if it is there.
Tensor on_host(const Tensor& tensor);
// "host" or the name of the provider whose device has it.
std::string_view memory_of(const Tensor& tensor);
// Which of the provider's devices that is, as its driver counts them.
int device_number(const Tensor& tensor);

// In RunOptions::destinations: the run makes the output there, in memory of its own, of whatever type and shape it has.
// What is no tensor, and text, stays on the host.
Tensor made_on_device(std::string_view provider = "cuda");

// A tensor over memory of a GPU that the caller keeps alive, or hands in an owner that does. What writes it must be
// done.
Tensor over_cuda_memory(ElementType type, Shape shape, void* data, std::shared_ptr<void> owner = nullptr, int gpu = 0);

// Copies all elements into memory of as many bytes, each wherever it is. Throws ErrorCode::shape_mismatch.
void copy_elements(const Tensor& from, Tensor& to);

// Until what was given to a stream of the GPU is done, a cudaStream_t; null: to any of its streams. Throws what went
// wrong there, such as ErrorCode::device_lost.
void wait_for_cuda_stream(void* stream, int gpu = 0);

// Sessions that this thread makes while the object lives give their work on the GPU to a stream of the caller's, a
// cudaStream_t, instead of one of their own: a run then comes after what the stream was given before. It waits for its
// own work before it returns, unless RunOptions::wait says otherwise. The stream must outlive the sessions.
class CallersStream {
 public:
  explicit CallersStream(void* stream);
  CallersStream(const CallersStream&) = delete;
  CallersStream& operator=(const CallersStream&) = delete;
  ~CallersStream();
  // That of this thread; null: none.
  static void* current();

 private:
  void* before_;
};

}  // namespace tenon
