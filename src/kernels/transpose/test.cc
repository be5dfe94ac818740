#include "kernels/transpose/transpose.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/transpose/plan.h"

namespace tenon::kernels {
namespace {

std::vector<char> reference(const std::vector<char>& from, const std::vector<int64_t>& dims,
                            const std::vector<int64_t>& permutation, size_t bytes) {
  std::vector<char> to(from.size());
  const size_t rank = dims.size();
  std::vector<int64_t> index(rank, 0);
  for (size_t at = 0; at < from.size(); at += bytes) {
    size_t target = 0;
    for (size_t i = 0; i < rank; ++i) {
      const auto axis = static_cast<size_t>(permutation[i]);
      target = target * static_cast<size_t>(dims[axis]) + static_cast<size_t>(index[axis]);
    }
    std::memcpy(to.data() + target * bytes, from.data() + at, bytes);
    for (size_t i = rank; i-- > 0;) {
      if (++index[i] < dims[i]) break;
      index[i] = 0;
    }
  }
  return to;
}

TEST(Transpose, EveryPermutation) {
  ThreadPool pool(3);
  const std::vector<std::vector<int64_t>> shapes = {
      {},          {5},        {7, 9},       {33, 65},     {1, 6, 1},      {3, 4, 5},      {2, 0, 3},
      {2, 37, 41}, {64, 3, 2}, {3, 1, 4, 7}, {2, 3, 4, 5}, {5, 40, 3, 36}, {2, 3, 1, 4, 3}};
  for (const auto& dims : shapes) {
    size_t count = 1;
    for (int64_t dim : dims) count *= static_cast<size_t>(dim);
    std::vector<int64_t> permutation(dims.size());
    for (size_t i = 0; i < dims.size(); ++i) permutation[i] = static_cast<int64_t>(i);
    do {
      for (size_t bytes : {1, 2, 3, 4, 8, 12, 16}) {
        std::vector<char> from(count * bytes), to(count * bytes);
        for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<char>(i * 31 + i / 251);
        transpose(pool, from.data(), to.data(), dims, permutation, bytes);
        ASSERT_EQ(to, reference(from, dims, permutation, bytes))
            << testing::PrintToString(dims) << " " << testing::PrintToString(permutation) << " " << bytes;
      }
    } while (std::next_permutation(permutation.begin(), permutation.end()));
  }
}

// More than caches hold, with rows and columns that are left over.
TEST(Transpose, Large) {
  ThreadPool pool(2);
  const struct {
    std::vector<int64_t> dims, permutation;
  } table[] = {
      {{611, 530}, {1, 0}},
      {{3, 150, 777}, {0, 2, 1}},
      {{2, 40000, 3}, {0, 2, 1}},
      {{2, 3, 40000}, {0, 2, 1}},
      {{40000, 2}, {1, 0}},                  // the same without other axes
      {{5, 14, 2, 13, 2}, {2, 4, 0, 1, 3}},  // short ones in many places
      {{3, 5, 2, 3000, 2}, {2, 4, 0, 1, 3}},
      {{301, 1024}, {1, 0}},            // rows at distances of whole pages
      {{33, 8, 128}, {2, 1, 0}},        // the same, with fewer columns
      {{2, 2049, 67}, {0, 2, 1}},       // short rows
      {{3, 40, 37, 80}, {0, 2, 1, 3}},  // runs of several lines
      {{2, 30, 40, 20, 17}, {2, 0, 3, 1, 4}},
  };
  for (const auto& [dims, permutation] : table) {
    size_t count = 1;
    for (int64_t dim : dims) count *= static_cast<size_t>(dim);
    for (size_t bytes : {1, 2, 4}) {
      std::vector<char> from(count * bytes), to(count * bytes);
      for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<char>(i * 31 + i / 251);
      transpose(pool, from.data(), to.data(), dims, permutation, bytes);
      ASSERT_EQ(to, reference(from, dims, permutation, bytes)) << testing::PrintToString(dims) << " " << bytes;
    }
  }
}

// Rows at distances of whole pages are cut where blocks of memory begin.
TEST(Transpose, AtEveryPlaceInABlock) {
  ThreadPool pool(2);
  const std::vector<int64_t> dims = {37, 1024}, permutation = {1, 0};
  std::vector<char> memory(37 * 4096 + 2048), to(37 * 4096);
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<char>(i * 31 + i / 251);
  const size_t block = 1024 - reinterpret_cast<uintptr_t>(memory.data()) % 1024;
  for (size_t offset : {0, 4, 16, 64, 508, 1020}) {
    const char* from = memory.data() + block + offset;
    transpose(pool, from, to.data(), dims, permutation, 4);
    ASSERT_EQ(to, reference({from, from + to.size()}, dims, permutation, 4)) << offset;
  }
}

TEST(TransposePlan, Simplifies) {
  const struct {
    std::vector<int64_t> dims, permutation;
    size_t bytes;
    size_t axes, element_bytes;
  } table[] = {
      {{2, 3, 4}, {0, 1, 2}, 4, 1, 4},        // a copy
      {{1, 5, 1}, {2, 1, 0}, 4, 1, 4},        // axes of size 1
      {{2, 3, 4, 5}, {2, 3, 0, 1}, 4, 2, 4},  // two pairs stay together
      {{8, 9, 2}, {1, 0, 2}, 4, 2, 8},        // pairs of floats move as one element
      {{8, 9, 3}, {1, 0, 2}, 4, 3, 4},
  };
  for (const auto& row : table) {
    const TransposePlan plan(row.dims, row.permutation, row.bytes);
    EXPECT_EQ(plan.axes.size(), row.axes);
    EXPECT_EQ(plan.element_bytes, row.element_bytes);
  }
}

}  // namespace
}  // namespace tenon::kernels
