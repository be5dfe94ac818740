#include "ops/attention/cuda_long.h"

#include <fmt/format.h>
#include <algorithm>

#include "cuda/tensor_map.h"
#include "ops/attention/cuda_groups_text.h"
#include "ops/cuda_support/box_copies.h"

namespace tenon::ops {
namespace {

constexpr int64_t stages = 2, row_bytes = 128, row_elements = row_bytes / 2;

// A warp of a second group has the copy engine fetch queries, then the keys and values of one tile after the other. Of
// each stage, a barrier says that they are there, and another that they have been read.
constexpr std::string_view fetching = R"cuda(
  __shared__ u64 queries_are_there, keys_are_there[STAGES], keys_are_read[STAGES], values_are_there[STAGES],
      values_are_read[STAGES];
  if (threadIdx.x == 0) {
    barrier_make(&queries_are_there, 1);
    for (int i = 0; i < STAGES; ++i) {
      barrier_make(keys_are_there + i, 1);
      barrier_make(values_are_there + i, 1);
      barrier_make(keys_are_read + i, 4);
      barrier_make(values_are_read + i, 4);
    }
    barriers_made();
  }
  __syncthreads();
  const int count = (last_key - first_key + TILE - 1) / TILE;
  auto key_of = [&](int tile) { return first_key + tile * TILE; };

  if (__shfl_sync(0xffffffffu, (int)threadIdx.x / 128, 0) == 1) {
    change_registers<40, false>();
    if (warp > 0) return;
    if (lane == 0 && count > 0) {
      barrier_expect(&queries_are_there, K_SLABS * 64 * ROW_BYTES);
      for (int slab = 0; slab < K_SLABS; ++slab)
        copy_box(queries_of(0) + slab * 64 * ROW_BYTES, &query_map, &queries_are_there, slab * SLAB, first_query, h, b);
    }
    for (int tile = 0; tile < count; ++tile) {
      const int stage = tile % STAGES;
      const u32 parity = tile / STAGES % 2 ^ 1;
      barrier_wait(keys_are_read + stage, parity);
      if (COLUMNS)
        for (int at = lane; at < TILE; at += 32) addends[stage][at] = addend_of(key_of(tile) + at);
      __syncwarp();
      if (lane == 0) {
        barrier_expect(keys_are_there + stage, K_BYTES);
        for (int slab = 0; slab < K_SLABS; ++slab)
          copy_box(keys_of(stage) + slab * TILE * ROW_BYTES, &key_map, keys_are_there + stage, slab * SLAB,
                   key_of(tile), kv, b);
      }
      barrier_wait(values_are_read + stage, parity);
      if (lane == 0) {
        barrier_expect(values_are_there + stage, V_BYTES);
        for (int slab = 0; slab < V_PARTS; ++slab)
          copy_box(values_of(stage) + slab * TILE * ROW_BYTES, &value_map, values_are_there + stage, slab * SLAB,
                   key_of(tile), kv, b);
      }
    }
    return;
  }
  change_registers<216, true>();
)cuda";

// Scores of the next tile are computed, and their powers, while values of `tile` are multiplied.
constexpr std::string_view working = R"cuda(
  auto wait_for = [&](u64* own, int tile) { barrier_wait(own + tile % STAGES, tile / STAGES % 2); };
  auto release = [&](u64* own, int tile) {
    if (lane == 0) barrier_arrive(own + tile % STAGES);
  };
  clear_sums();
  if (count > 0) {
    u32 weights[WEIGHT_STEPS][4];
    float scores[TILE / 8][4], fading[2];
    barrier_wait(&queries_are_there, 0);
    wait_for(keys_are_there, 0);
    group_begin();
    multiply_keys(scores, queries_of(0), keys_of(0));
    group_wait<0>();
    scores_done(scores);
    hide(scores, first_key, 0);
    release(keys_are_read, 0);
    raise(scores, fading);
    weights_of(weights, scores);

    for (int tile = 0; tile + 1 < count; ++tile) {
      const int next = tile + 1;
      wait_for(keys_are_there, next);
      wait_for(values_are_there, tile);
      group_begin();
      multiply_keys(scores, queries_of(0), keys_of(next % STAGES));
      multiply_values(weights, values_of(tile % STAGES), true);
      group_wait<1>();
      scores_done(scores);
      hide(scores, key_of(next), next % STAGES);
      release(keys_are_read, next);
      raise(scores, fading);
      group_wait<0>();
      sums_done();
      release(values_are_read, tile);
#pragma unroll
      for (int n = 0; n < V_TILES; ++n)
#pragma unroll
        for (int x = 0; x < 4; ++x) sums[n / (V_PART / 8)][n % (V_PART / 8)][x] *= fading[x / 2];
      weights_of(weights, scores);
    }

    wait_for(values_are_there, count - 1);
    group_begin();
    multiply_values(weights, values_of((count - 1) % STAGES), true);
    group_wait<0>();
    sums_done();
  }
  store_sums();
)cuda";

// Two blocks have room on a processor: one has powers computed while the other multiplies.
CudaBlocks blocks_of(KernelRun& run, const AttentionSizes& n, const GroupTile& tile, std::string_view pointers,
                     const std::string& functions, const std::vector<int64_t>& numbers) {
  constexpr int64_t fetching_groups = 1;
  constexpr int at_once = 2;
  return {run,
          fmt::format("const __grid_constant__ TensorMap query_map, const __grid_constant__ TensorMap key_map, "
                      "const __grid_constant__ TensorMap value_map, {}",
                      pointers),
          fmt::format("{}{}{}{}{}", tile.text(run, n, numbers, stages), functions, attention_text::mask_pair,
                      attention_text::half_parts, box_copies),
          fmt::format("{}{}{}", attention_text::group_functions, fetching, working),
          numbers,
          tile.grid(n, stages, fetching_groups),
          at_once};
}

}  // namespace

LongAttention::LongAttention(KernelRun& run, const AttentionSizes& n, std::string_view pointers,
                             const std::string& functions, const std::vector<int64_t>& numbers)
    : sizes_(n),
      tile_(n, run.input(0).type(), std::max(n.k_size, n.v_size) > 64 ? 96 : 128, row_bytes),
      blocks_(blocks_of(run, n, tile_, pointers, functions, numbers)) {}

void LongAttention::run(KernelRun& run, std::initializer_list<const void*> addresses) const {
  // Of queries, keys or values; `steps` are from batch to batch, head to head and row to row.
  auto map = [&](size_t i, int64_t size, int64_t rows, int64_t heads, const std::vector<int64_t>& steps,
                 int64_t box_rows) {
    const int64_t sizes[] = {size, rows, heads, sizes_.batch}, box[] = {row_elements, box_rows, 1, 1};
    const int64_t own_steps[] = {steps[2], steps[1], steps[0]};
    return cuda::tensor_map(queue_of(run).gpu(), sizes_.address(run, i), sizes, own_steps, box, true);
  };
  const AttentionSizes& n = sizes_;
  const cuda::TensorMap queries = map(0, n.k_size, n.queries, n.q_heads, n.q_steps(), 64);
  const cuda::TensorMap keys = map(1, n.k_size, n.keys, n.kv_heads, n.k_steps(), tile_.keys);
  const cuda::TensorMap values = map(2, n.v_size, n.keys, n.kv_heads, n.v_steps(), tile_.keys);
  blocks_.run(run, {&queries, &keys, &values}, addresses);
}

}  // namespace tenon::ops
