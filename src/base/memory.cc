#include "base/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "base/rounding.h"

namespace tenon {
namespace {

constexpr size_t cache_line = 64, page = 4096, huge_page = 2 << 20;
constexpr size_t least_page_bytes = 256 << 10;  // pieces from this size on are worth the system calls

void* allocate_pages(size_t bytes) {
  const size_t wanted = round_up(bytes, page), slack = bytes >= huge_page ? huge_page : 0;
  if (wanted < bytes || wanted + slack < wanted) return nullptr;
  void* mapped = ::mmap(nullptr, wanted + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  if (slack == 0) return mapped;
  // A huge page lies at a multiple of its size; what is left at both ends goes back.
  auto* begin = static_cast<std::byte*>(mapped);
  const size_t before = round_up(reinterpret_cast<uintptr_t>(begin), huge_page) - reinterpret_cast<uintptr_t>(begin);
  if (before > 0) ::munmap(begin, before);
  if (slack > before) ::munmap(begin + before + wanted, slack - before);
  ::madvise(begin + before, wanted / huge_page * huge_page, MADV_HUGEPAGE);
  return begin + before;
}

}  // namespace

void* allocate_memory(size_t bytes) {
  if (bytes >= least_page_bytes) return allocate_pages(bytes);
  return std::aligned_alloc(cache_line, round_up(std::max<size_t>(bytes, 1), cache_line));
}

void free_memory(void* memory, size_t bytes) {
  if (bytes < least_page_bytes)
    std::free(memory);
  else if (memory)
    ::munmap(memory, round_up(bytes, page));
}

void release_pages(const void* memory, size_t bytes) {
  const auto size = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE)), begin = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t from = round_up(begin, size), to = (begin + bytes) / size * size;
  if (from < to) ::madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
}

}  // namespace tenon
