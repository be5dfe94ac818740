#include "kernels/scratch.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "base/memory.h"

namespace tenon::kernels {
namespace {

constexpr size_t smallest = 4096;
constexpr size_t most_idle_bytes = size_t{64} << 20;

// The idle buffers of one thread: they are in its caches, and others take none of them. It alone takes and gives;
// anyone may empty it.
struct Stock {
  std::mutex mutex;
  std::vector<AlignedBuffer> buffers;
};

// Never destroyed: kernels may run during static destruction.
struct Stocks {
  std::mutex mutex;  // taken before that of a stock
  std::vector<Stock*> all;
  std::atomic<size_t> bytes{0};
};
Stocks& stocks() {
  static Stocks& instance = *new Stocks;
  return instance;
}

thread_local bool is_ending = false;

struct ThreadStock : Stock {
  ThreadStock() {
    std::lock_guard lock(stocks().mutex);
    stocks().all.push_back(this);
  }
  ~ThreadStock() {
    is_ending = true;
    std::lock_guard lock(stocks().mutex);
    std::erase(stocks().all, this);
    for (const AlignedBuffer& buffer : buffers) stocks().bytes -= buffer.size();
  }
};

// Null in a thread that is ending.
Stock* own_stock() {
  if (is_ending) return nullptr;
  thread_local ThreadStock own;
  return &own;
}

// Buffers that are to be freed once the stock is unlocked.
using Outgrown = std::vector<AlignedBuffer>;

// A larger buffer is about to take the place of smaller ones: they would be of no use but in turns.
void drop_outgrown(Stock& s, size_t bytes, Outgrown& outgrown) {
  for (size_t freed = 0; freed < bytes;) {
    auto largest = s.buffers.end();
    for (auto it = s.buffers.begin(); it != s.buffers.end(); ++it) {
      if (it->size() < bytes && (largest == s.buffers.end() || it->size() > largest->size())) largest = it;
    }
    if (largest == s.buffers.end()) return;
    freed += largest->size();
    stocks().bytes -= largest->size();
    outgrown.push_back(std::move(*largest));
    s.buffers.erase(largest);
  }
}

// The smallest idle buffer that fits without wasting most of itself, or an empty one.
AlignedBuffer take_idle(size_t bytes) {
  Stock* own = own_stock();
  if (!own) return {};
  Outgrown outgrown;
  Stock& s = *own;
  std::lock_guard lock(s.mutex);
  auto best = s.buffers.end();
  for (auto it = s.buffers.begin(); it != s.buffers.end(); ++it) {
    if (it->size() >= bytes && it->size() / 8 <= std::max(bytes, smallest) &&
        (best == s.buffers.end() || it->size() < best->size()))
      best = it;
  }
  if (best == s.buffers.end()) {
    drop_outgrown(s, bytes, outgrown);
    return {};
  }
  AlignedBuffer buffer = std::move(*best);
  if (best != s.buffers.end() - 1) *best = std::move(s.buffers.back());
  s.buffers.pop_back();
  stocks().bytes -= buffer.size();
  return buffer;
}

}  // namespace

AlignedBuffer::AlignedBuffer(size_t bytes) : data_(allocate_memory(bytes)), bytes_(bytes) {
  if (!data_) throw std::bad_alloc();
}

AlignedBuffer::~AlignedBuffer() { free_memory(data_, bytes_); }

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Scratch::Scratch(size_t bytes) : buffer_(take_idle(bytes)) {
  if (buffer_.size() > 0) return;
  // Rounded to steps, so that calls of similar size share buffers.
  const size_t step = std::max(smallest, std::bit_floor(bytes) / 8);
  buffer_ = AlignedBuffer((std::max(bytes, smallest) + step - 1) / step * step);
}

Scratch::~Scratch() {
  Stock* own = own_stock();
  const size_t bytes = buffer_.size();
  if (!own || stocks().bytes + bytes > most_idle_bytes) return;
  std::lock_guard lock(own->mutex);
  try {
    own->buffers.push_back(std::move(buffer_));
    stocks().bytes += bytes;
  } catch (const std::bad_alloc&) {
    // The buffer is freed instead.
  }
}

size_t idle_scratch_bytes() { return stocks().bytes; }

void trim_scratch() {
  std::vector<AlignedBuffer> freed;
  std::lock_guard lock(stocks().mutex);
  for (Stock* stock : stocks().all) {
    std::lock_guard stock_lock(stock->mutex);
    for (AlignedBuffer& buffer : stock->buffers) {
      stocks().bytes -= buffer.size();
      freed.push_back(std::move(buffer));
    }
    stock->buffers.clear();
  }
}

}  // namespace tenon::kernels
