// A mark in the work of a GPU's streams.
#pragma once

#include <memory>

#include "cuda/gpu.h"

namespace tenon::cuda {

class Event {
 public:
  enum class Kind : uint8_t { plain, timed };
  explicit Event(std::shared_ptr<Gpu> gpu, Kind kind = Kind::plain);
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event();

  // Behind what the stream was given so far. One that was never recorded is done.
  void record(Handle stream);
  // What the stream is given next comes after the mark. In a recording, after where the mark is whenever it is
  // replayed.
  void hold_back(Handle stream, bool is_recording = false) const;
  bool is_done() const;
  void wait() const;
  // The same where nobody wants to know what went wrong.
  void wait_quietly() const noexcept;
  // Between two timed ones that are done.
  int64_t nanoseconds_since(const Event& earlier) const;

 private:
  std::shared_ptr<Gpu> gpu_;
  Handle handle_ = nullptr;
};

}  // namespace tenon::cuda
