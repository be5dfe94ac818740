#include "cuda/event.h"

#include <cmath>
#include <utility>

namespace tenon::cuda {
namespace {

// As the driver's documentation numbers them.
constexpr unsigned without_timing = 2, wait_is_recorded = 1;
constexpr Result not_ready = 600;

}  // namespace

Event::Event(std::shared_ptr<Gpu> gpu, Kind kind) : gpu_(std::move(gpu)) {
  gpu_->use();
  gpu_->check(gpu_->api().cuEventCreate(&handle_, kind == Kind::timed ? 0 : without_timing), "cuEventCreate");
}

Event::~Event() { gpu_->api().cuEventDestroy_v2(handle_); }

void Event::record(Handle stream) {
  gpu_->use();
  gpu_->check(gpu_->api().cuEventRecord(handle_, stream), "cuEventRecord");
}

void Event::hold_back(Handle stream, bool is_recording) const {
  gpu_->use();
  gpu_->check(gpu_->api().cuStreamWaitEvent(stream, handle_, is_recording ? wait_is_recorded : 0), "cuStreamWaitEvent");
}

bool Event::is_done() const {
  gpu_->use();
  const Result result = gpu_->api().cuEventQuery(handle_);
  if (result == not_ready) return false;
  gpu_->check(result, "cuEventQuery");
  return true;
}

void Event::wait() const {
  gpu_->use();
  gpu_->count_wait();
  gpu_->check(gpu_->api().cuEventSynchronize(handle_), "cuEventSynchronize");
}

void Event::wait_quietly() const noexcept {
  if (gpu_->is_usable()) gpu_->api().cuEventSynchronize(handle_);
}

int64_t Event::nanoseconds_since(const Event& earlier) const {
  float milliseconds = 0;
  gpu_->check(gpu_->api().cuEventElapsedTime(&milliseconds, earlier.handle_, handle_), "cuEventElapsedTime");
  return std::llround(double{milliseconds} * 1e6);
}

}  // namespace tenon::cuda
