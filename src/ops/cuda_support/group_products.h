// The text of products by four warps together, on GPUs of compute capability 9.0.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

namespace tenon::ops {

// Needs tensor_core_functions with WARP_GROUPS before it. Elements are of type T, f16 or bf16; d, the places in shared
// memory and what must be called around it are as of group_64xNx32, with rows of ROW / 2 elements:
//   group_64xNx16<T, N, ROW>(d, a, b, adds): d = a * b for a of 64x16, b of 16xN elements, both by columns of 16
//     elements of rows; d += where `adds`.
//   group_plain_64xNx16<T, N, A_STEP, B_STEP>(d, a, b, adds): the same where rows are 16 bytes apart, eight elements of
//     each, and the next eight of all rows begin A_STEP and B_STEP bytes further: plain_at<A_STEP>(address). Rows may
//     overlap.
//   group_by_rows_64xNx16<T, N, ROW>(d, a, b, adds): the same for b of 16 rows of N elements, which are all that a row
//     has. a[r] of a lane: as of mma_16x8x16, of the rows that its warp has.
//   group_by_slabs_64xNx16<T, N, SLAB>(d, a, b, adds): for a as of the first, with rows of 128 bytes, and b of 16 rows,
//     64 elements of each in slabs that begin SLAB bytes apart: slabs_at<SLAB>(address).
// `columns` (of the first two), `rows` and `slabs` are the N that these are called with, multiples of 8 up to 256.
std::string group_products_text(std::initializer_list<int64_t> columns, std::initializer_list<int64_t> rows,
                                std::initializer_list<int64_t> slabs = {});

// The same of float, of which products take the 19 highest bits: round before (tf32_of).
//   group_64xNx16<float, N, ROW>, group_plain_64xNx16<float, …>: for a of 64x8, b of 8xN elements, as many bytes of
//     rows as of others.
//   group_by_rows_64xNx8<N, ROW>(d, a, b, adds): for b as of that. a[r] of a lane: as of mma_16x8x8_tf32.
std::string tf32_group_products_text(std::initializer_list<int64_t> columns, std::initializer_list<int64_t> rows);

// Elements, of so many bytes, from row to row of `columns` results that a warp keeps in shared memory: eight rows lie
// in other banks.
int64_t held_row(int64_t columns, int64_t bytes);

}  // namespace tenon::ops
