#include "cuda/transfers.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/rounding.h"

namespace tenon::cuda {
namespace {

constexpr int64_t piece_bytes = 2 << 20, most_bytes = 32 << 20, least_bytes = 4 << 10;
// As the driver's documentation numbers them.
constexpr unsigned for_every_context = 1;
constexpr int attribute_memory_type = 2;
constexpr unsigned memory_of_host = 1;

Address address_of(const void* pointer) { return reinterpret_cast<Address>(pointer); }

// Room that sizes which grow from run to run do not outgrow each time.
int64_t room_for(int64_t bytes) {
  if (bytes >= most_bytes) return most_bytes;
  return std::max<int64_t>(least_bytes, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(bytes))));
}

struct Piece {
  int64_t begin, bytes;  // of the tensor
  size_t place;          // in the ring
  int64_t offset;        // of the place
};

int64_t piece_count(int64_t bytes) { return divide_up(bytes, piece_bytes); }

Piece piece(int64_t i, int64_t bytes, size_t places) {
  const int64_t begin = i * piece_bytes;
  const auto place = static_cast<size_t>(i) % places;
  return {begin, std::min(piece_bytes, bytes - begin), place, static_cast<int64_t>(place) * piece_bytes};
}

}  // namespace

PinnedMemory::PinnedMemory(const std::shared_ptr<Gpu>& gpu, int64_t bytes) {
  gpu->use();
  gpu->count_allocation();
  void* block = nullptr;
  // Systems limit it, and nothing depends on it but time.
  if (gpu->api().cuMemHostAlloc(&block, static_cast<size_t>(bytes), for_every_context) != 0) return;
  memory_ = {block, [gpu](void* given_back) {
               if (gpu->is_usable()) gpu->api().cuMemFreeHost(given_back);
             }};
}

GpuTransfers::GpuTransfers(GpuQueue& queue) : queue_(queue), gpu_(queue.shared_gpu()), produced_(gpu_) {}

bool GpuTransfers::is_pinned(const void* memory, int64_t bytes) const {
  const auto is_known = [&](const void* address) {
    unsigned type = 0;
    return gpu_->api().cuPointerGetAttribute(&type, attribute_memory_type, address_of(address)) == 0 &&
           type == memory_of_host;
  };
  return is_known(memory) && is_known(static_cast<const std::byte*>(memory) + bytes - 1);
}

GpuTransfers::Staging& GpuTransfers::staging_for(int number, int64_t bytes) {
  Staging& staging = stagings_[number];
  if (staging.copied.empty()) staging.copied.emplace_back(gpu_);
  const int64_t room = bytes == 0 ? 0 : room_for(bytes);
  if (room <= staging.room) return staging;
  for (const Event& event : staging.copied) {
    if (!event.is_done()) event.wait();
  }
  staging.memory = PinnedMemory(gpu_, room);
  staging.room = room;
  while (std::ssize(staging.copied) < piece_count(room)) staging.copied.emplace_back(gpu_);
  return staging;
}

void GpuTransfers::copy_up(void* to, const void* from, int64_t bytes, Handle stream) {
  gpu_->check(gpu_->api().cuMemcpyHtoDAsync_v2(address_of(to), from, static_cast<size_t>(bytes), stream),
              "cuMemcpyHtoDAsync");
}

void GpuTransfers::copy_down(void* to, const void* from, int64_t bytes, Handle stream) {
  gpu_->check(gpu_->api().cuMemcpyDtoHAsync_v2(to, address_of(from), static_cast<size_t>(bytes), stream),
              "cuMemcpyDtoHAsync");
}

void GpuTransfers::upload(int number, void* to, const void* from, int64_t bytes, Order order) {
  if (bytes == 0) return;
  gpu_->use();
  gpu_->count_upload();
  const bool is_direct = is_pinned(from, bytes);
  Staging& staging = staging_for(number, is_direct ? 0 : bytes);
  staging.is_beside = order == Order::beside;
  Handle stream = staging.is_beside ? queue_.upload_stream() : queue_.stream();
  if (is_direct || !staging.memory) {
    copy_up(to, from, bytes, stream);
    staging.copied.front().record(stream);
  } else {
    for (int64_t i = 0; i < piece_count(bytes); ++i) {
      const Piece part = piece(i, bytes, staging.copied.size());
      Event& copied = staging.copied[part.place];
      if (!copied.is_done()) copied.wait();
      std::memcpy(staging.memory.at(part.offset), static_cast<const std::byte*>(from) + part.begin,
                  static_cast<size_t>(part.bytes));
      copy_up(static_cast<std::byte*>(to) + part.begin, staging.memory.at(part.offset), part.bytes, stream);
      copied.record(stream);
    }
  }
  if (!staging.is_beside) return;
  gpu_->count_beside();
  if (!staging.arrived) staging.arrived = std::make_unique<Event>(gpu_);
  staging.arrived->record(stream);
}

void GpuTransfers::await_upload(int number) {
  Staging& staging = stagings_[number];
  const bool is_recording = queue_.is_recording();
  if (!is_recording && !staging.is_beside) return;
  if (!staging.arrived) staging.arrived = std::make_unique<Event>(gpu_);
  staging.arrived->hold_back(queue_.stream(), is_recording);
}

void GpuTransfers::download(int number, void* to, const void* from, int64_t bytes, Order order) {
  if (bytes == 0) return;
  gpu_->use();
  gpu_->count_download();
  const bool is_direct = is_pinned(to, bytes);
  Staging& staging = staging_for(number, is_direct ? 0 : bytes);
  Handle stream = queue_.stream();
  if (order == Order::beside) {
    gpu_->count_beside();
    produced_.record(stream);
    stream = queue_.download_stream();
    produced_.hold_back(stream);
  }
  Pending pending{&staging, static_cast<std::byte*>(to), bytes};
  if (is_direct || !staging.memory) {
    copy_down(to, from, bytes, stream);
    staging.copied.front().record(stream);
    pending.bytes = 0;  // there is nothing left to copy
  } else {
    for (int64_t i = 0; i < piece_count(bytes); ++i) {
      const Piece part = piece(i, bytes, staging.copied.size());
      if (i >= std::ssize(staging.copied)) collect(pending);
      copy_down(staging.memory.at(part.offset), static_cast<const std::byte*>(from) + part.begin, part.bytes, stream);
      staging.copied[part.place].record(stream);
    }
  }
  pending_.push_back(pending);
}

void GpuTransfers::collect(Pending& pending) const {
  const Piece part = piece(pending.next++, pending.bytes, pending.staging->copied.size());
  pending.staging->copied[part.place].wait();
  std::memcpy(pending.to + part.begin, pending.staging->memory.at(part.offset), static_cast<size_t>(part.bytes));
}

void GpuTransfers::finish_downloads() {
  for (Pending& pending : pending_) {
    if (pending.bytes == 0) pending.staging->copied.front().wait();
    while (pending.next < piece_count(pending.bytes)) collect(pending);
  }
  pending_.clear();
}

void GpuTransfers::abandon() noexcept {
  pending_.clear();
  for (const auto& [_, staging] : stagings_) {
    for (const Event& event : staging.copied) event.wait_quietly();
  }
}

}  // namespace tenon::cuda
