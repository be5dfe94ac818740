#include "ops/attention/cuda_groups.h"

#include <algorithm>

#include "base/rounding.h"
#include "ops/cuda_support/group_products.h"
#include "ops/cuda_support/packs.h"
#include "ops/cuda_support/tensor_cores.h"

namespace tenon::ops {
namespace {

// Rows lie in slabs of ROW_BYTES of each, one slab after the other, 16 bytes at a time in places that differ from row
// to row. Those from row `last` on are zeros, as is what is behind `size` elements. By COUNT threads, each of which has
// the same place in rows whose numbers differ by a multiple of 8.
constexpr std::string_view fetch_rows = R"cuda(
template <int ROWS, int SLABS, int COUNT>
inline void fetch_rows(u8* to, const Q* from, int step, int size, int first, int last, int thread) {
  constexpr int CHUNKS = ROW_BYTES / 16, AT_ONCE = COUNT / (SLABS * CHUNKS);
  const int begin = thread / (SLABS * CHUNKS), chunk = thread % (SLABS * CHUNKS);
  const int place = chunk % CHUNKS ^ (ROW_BYTES == 128 ? begin % 8 : begin / 2 % 4);
  u8* target = to + (chunk / CHUNKS * ROWS + begin) * ROW_BYTES + place * 16;
  const Q* source = from + (i64)(first + begin) * step + chunk * 8;
  const int rows = chunk * 8 < size ? last - first : 0;
#pragma unroll 4
  for (int row = begin; row < ROWS; row += AT_ONCE) {
    copy_async_16(target, row < rows ? source : from, row < rows);
    target += AT_ONCE * ROW_BYTES;
    source += AT_ONCE * step;
  }
}
)cuda";

// What a row of the mask has for keys j and j + 1. Whatever it has no keys for is read from those that it has, and is
// hidden later: without a branch, all reads are under way together.
constexpr std::string_view mask_pair = R"cuda(
inline Pack<M, 2> mask_pair(const i64* v, const M* row, int j) {
  const int last = (int)MASK_KEYS - 1, step = (int)v[22];
  if (MASK_PAIRS) return *(const Pack<M, 2>*)(row + least(j, last - 1));
  return {row[least(j, last) * step], row[least(j + 1, last) * step]};
}
)cuda";

// A block for GROUPS * 64 queries of a head, 64 for each group of four warps. It works on TILE keys at a time, all that
// there are if ONE_TILE; then their values arrive while scores are computed. Else it fetches the next ones while it
// works on these. Each row has a softmax of its own, which goes on from tile to tile, of base 2: scores are scaled on
// the way to it.
constexpr std::string_view grouped = R"cuda(
  constexpr int BLOCK_QUERIES = GROUPS * 64, COUNT = GROUPS * 128, SLAB = ROW_BYTES / 2, V_TILES = V_SLABS * SLAB / 8;
  constexpr bool COLUMNS = COLUMN_MASK && !(SOFTCAP > 0), MASKED = HAS_MASK && !COLUMNS;
  // Scores that are only scaled, and hidden or not.
  constexpr bool PLAIN = COLUMNS || ((!HAS_MASK || BOOL_MASK) && !(SOFTCAP > 0) && SCALE > 0);
  constexpr float LOG2_E = 1.4426950408889634, FACTOR = PLAIN ? LOG2_E * SCALE : LOG2_E;
  constexpr int K_BYTES = K_SLABS * TILE * ROW_BYTES, V_BYTES = V_SLABS * TILE * ROW_BYTES;
  DYNAMIC_SHARED(shared, SHARED_BYTES);
  __shared__ float addends[ONE_TILE ? 1 : 2][TILE];
  u8* const fetched = shared + K_SLABS * BLOCK_QUERIES * ROW_BYTES;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, g = lane / 4, c = lane % 4;
  const int group = __shfl_sync(0xffffffffu, (int)threadIdx.x / 128, 0);
  const u32 tiles = ((u32)QUERIES + BLOCK_QUERIES - 1) / BLOCK_QUERIES, item = blockIdx.x / tiles;
  const u32 h = item % (u32)HEADS, b = item / (u32)HEADS, kv = h / ((u32)HEADS / (u32)KV_HEADS);
  // Those with the most keys begin first.
  const u32 own_tile = blockIdx.x % tiles;
  const int block_query = (CAUSAL ? tiles - 1 - own_tile : own_tile) * BLOCK_QUERIES, last_query = (int)QUERIES - 1;
  const int group_query = block_query + group * 64, warp_query = group_query + warp * 16;

  // A later query sees neither earlier nor fewer keys at the end.
  const int first_key = seen_by(v, lengths, b, block_query).first;
  const int last_key = seen_by(v, lengths, b, least(last_query, block_query + BLOCK_QUERIES - 1)).last;
  const Range first_range = seen_by(v, lengths, b, least(last_query, group_query));
  const Range last_range = seen_by(v, lengths, b, least(last_query, group_query + 63));

  u8* const queries = shared + group * K_SLABS * 64 * ROW_BYTES;
  const Q *own_keys = k + K_AT(b, kv, 0), *own_values = values + V_AT(b, kv, 0);
  auto fetch = [&](int stage, int key) {
    u8* const to = fetched + stage * (K_BYTES + V_BYTES);
    fetch_rows<TILE, K_SLABS, COUNT>(to, own_keys, (int)v[12], (int)K_SIZE, key, last_key, threadIdx.x);
    if (ONE_TILE) copy_async_commit();
    fetch_rows<TILE, V_SLABS, COUNT>(to + K_BYTES, own_values, (int)v[15], (int)V_SIZE, key, last_key, threadIdx.x);
    copy_async_commit();
    if (!COLUMNS) return;
    for (int at = threadIdx.x; at < TILE; at += COUNT) {
      const bool is_there = key + at < least((i64)last_key, (i64)MASK_KEYS);
      addends[stage][at] = is_there ? masked_by(mask[MASK_AT(b, h, 0, key + at)], 0) * LOG2_E : -INFINITE;
    }
  };
  if (first_key < last_key) {
    if (group_query <= last_query)
      fetch_rows<64, K_SLABS, 128>(queries, q + Q_AT(b, h, group_query), (int)v[9], (int)K_SIZE, 0,
                                   least(64, (int)QUERIES - group_query), threadIdx.x % 128);
    fetch(0, first_key);
  }

  float sums[V_SLABS][SLAB / 8][4], largest[2] = {-INFINITE, -INFINITE}, total[2] = {0, 0};
  auto clear_sums = [&]() {
#pragma unroll
    for (int n = 0; n < V_TILES; ++n)
#pragma unroll
      for (int x = 0; x < 4; ++x) sums[n / (SLAB / 8)][n % (SLAB / 8)][x] = 0;
  };
  if (!ONE_TILE) clear_sums();
  bool has_sums = !ONE_TILE;

  int stage = 0;
  for (int key = first_key; key < last_key; key += TILE, stage ^= 1) {
    copy_async_wait<ONE_TILE ? 1 : 0>();
    group_sees_copies();
    __syncthreads();
    if (!ONE_TILE && last_key - key > TILE) fetch(stage ^ 1, key + TILE);
    const u8 *keys = fetched + stage * (K_BYTES + V_BYTES), *columns = keys + K_BYTES;
    const bool works = group_query <= last_query && key < last_range.last && key + TILE > first_range.first;
    u32 weights[TILE / 16][4];
    if (works) {
      float scores[TILE / 8][4];
      group_begin();
#pragma unroll
      for (int f = 0; f < K_STEPS; ++f) {
        const int slab = f * 16 / SLAB, at = f * 32 % ROW_BYTES;
        group_64xNx16<Q, TILE, ROW_BYTES>(scores, queries + slab * 64 * ROW_BYTES + at,
                                          keys + slab * TILE * ROW_BYTES + at, f > 0);
      }
      group_commit();
      group_wait<0>();
#pragma unroll
      for (int n = 0; n < TILE / 8; ++n) group_done(scores[n]);

      if (COLUMNS) {
#pragma unroll
        for (int n = 0; n < TILE / 8; ++n) {
          const Pack<float, 2> own = *(const Pack<float, 2>*)&addends[stage][n * 8 + c * 2];
#pragma unroll
          for (int x = 0; x < 4; ++x) scores[n][x] = fma(scores[n][x], FACTOR, own.v[x % 2]);
        }
      }
      if (MASKED || !PLAIN || key < last_range.first || key + TILE > first_range.last) {
        // What all queries of the group see.
        const int surely_first = last_range.first, surely_last = first_range.last;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int s = least(last_query, warp_query + half * 8 + g);
          const Range seen = seen_by(v, lengths, b, s);
          // Keys that the mask does not have are hidden, too.
          const int seen_first = seen.first, seen_last = HAS_MASK ? least(seen.last, (i64)MASK_KEYS) : seen.last;
          Pack<M, 2> own_mask[TILE / 8];
          if (MASKED) {
            const M* row = mask + MASK_AT(b, h, s, 0);
#pragma unroll
            for (int n = 0; n < TILE / 8; ++n) own_mask[n] = mask_pair(v, row, key + n * 8 + c * 2);
          }
#pragma unroll
          for (int n = 0; n < TILE / 8; ++n) {
            if (PLAIN && !MASKED && key + n * 8 >= surely_first && key + n * 8 + 8 <= surely_last) continue;
#pragma unroll
            for (int x = half * 2; x < half * 2 + 2; ++x) {
              const int j = key + n * 8 + c * 2 + x % 2;
              float score = scores[n][x];
              if (!PLAIN) score = capped(score * (float)SCALE);
              if (MASKED) score = masked_by(own_mask[n].v[x % 2], score);
              scores[n][x] = (j < seen_first) | (j >= seen_last) ? -INFINITE : score;
            }
          }
        }
      }

#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float best = largest[half];
#pragma unroll
        for (int n = 0; n < TILE / 8; ++n) best = fmaxf(best, fmaxf(scores[n][half * 2], scores[n][half * 2 + 1]));
        best = fmaxf(best, __shfl_xor_sync(0xffffffffu, best, 1));
        best = fmaxf(best, __shfl_xor_sync(0xffffffffu, best, 2));
        const float base = best == -INFINITE ? 0.0f : best;
        // Those with addends are scaled already.
        const float factor = COLUMNS ? 1.0f : FACTOR, subtrahend = base * factor;
        float sum[2] = {0, 0};
#pragma unroll
        for (int n = 0; n < TILE / 8; ++n)
#pragma unroll
          for (int x = 0; x < 2; ++x) {
            float& score = scores[n][half * 2 + x];
            score = exp2_of(COLUMNS ? score - base : fma(score, factor, -subtrahend));
            sum[x] += score;
          }
        if (ONE_TILE) {
          total[half] = sum[0] + sum[1];
          continue;
        }
        const float fading = exp2_of((largest[half] - base) * factor);
        total[half] = fma(total[half], fading, sum[0] + sum[1]);
        largest[half] = best;
#pragma unroll
        for (int n = 0; n < V_TILES; ++n)
#pragma unroll
          for (int x = 0; x < 2; ++x) sums[n / (SLAB / 8)][n % (SLAB / 8)][half * 2 + x] *= fading;
      }
#pragma unroll
      for (int f = 0; f < TILE / 16; ++f)
#pragma unroll
        for (int r = 0; r < 4; ++r)
          weights[f][r] = pair_of<Q>(scores[f * 2 + r / 2][r % 2 * 2], scores[f * 2 + r / 2][r % 2 * 2 + 1]);
    }

    if (ONE_TILE) {
      copy_async_wait<0>();
      group_sees_copies();
      __syncthreads();
    }
    if (works) {
      has_sums = true;
      group_begin();
#pragma unroll
      for (int f = 0; f < TILE / 16; ++f)
#pragma unroll
        for (int slab = 0; slab < V_SLABS; ++slab)
          group_by_rows_64xNx16<Q, SLAB, ROW_BYTES>(sums[slab], weights[f], columns + (slab * TILE + f * 16) * ROW_BYTES,
                                                    !ONE_TILE || f > 0);
      group_commit();
      group_wait<0>();
#pragma unroll
      for (int n = 0; n < V_TILES; ++n) group_done(sums[n / (SLAB / 8)][n % (SLAB / 8)]);
    }
    if (ONE_TILE) break;
  }
  if (!has_sums) clear_sums();

#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float all = total[half];
    all += __shfl_xor_sync(0xffffffffu, all, 1);
    all += __shfl_xor_sync(0xffffffffu, all, 2);
    const float factor = all == 0 ? 0.0f : 1.0f / all;
    const int s = warp_query + half * 8 + g;
    if (s > last_query) continue;
    Q* to = y + Y_AT(b, h, s) + c * 2;
#pragma unroll
    for (int n = 0; n < V_TILES; ++n) {
      const float(&own)[4] = sums[n / (SLAB / 8)][n % (SLAB / 8)];
      if (n * 8 < V_SIZE) *(u32*)(to + n * 8) = pair_of<Q>(own[half * 2] * factor, own[half * 2 + 1] * factor);
    }
  }
)cuda";

// How a block works: keys at a time, groups of warps, and blocks that a processor has registers and memory for.
struct GroupTile {
  int64_t keys, groups, at_once;

  static GroupTile of(const AttentionSizes& n, int processors) {
    const bool is_large = std::max(n.k_size, n.v_size) > 64;
    const int64_t all_keys = round_up(n.keys, 16);
    if (all_keys <= (is_large ? 128 : 208)) {
      // Scores of all keys are in registers, then half as many weights and the sums.
      const int64_t registers = std::max(all_keys / 2, all_keys / 4 + round_up(n.v_size, 32) / 2) + 40;
      constexpr int64_t registers_of_lane = 512;
      return {all_keys, 1, std::min<int64_t>(is_large ? 2 : 8, registers_of_lane / registers)};
    }
    if (is_large) return {64, 2, 2};
    // Groups that share keys read less; but there should be work for the whole GPU.
    const bool shares = n.batch * n.q_heads * divide_up(n.queries, 128) >= 2 * processors;
    return {128, shares ? 2 : 1, shares ? 2 : 3};
  }
};

// Whether keys that follow an even number of others begin at multiples of two elements. `numbers` are those of
// attention_text::common: steps of the mask are 19 to 22, its keys 23.
bool reads_mask_in_pairs(const Tensor& mask, const std::vector<int64_t>& numbers) {
  const bool are_even =
      std::ranges::all_of(numbers.begin() + 19, numbers.begin() + 22, [](int64_t step) { return step % 2 == 0; });
  return are_even && numbers[23] % 2 == 0 &&
         reinterpret_cast<uintptr_t>(mask.raw()) % static_cast<uintptr_t>(bits_of(mask.type()) / 4) == 0;
}

}  // namespace

bool takes_group_attention(KernelRun& run, const AttentionSizes& n) {
  constexpr int64_t least_queries = 16, most_elements = 128, most_keys = int64_t{1} << 30;
  const int64_t longest_step = std::max(n.k_size, n.v_size) * n.kv_heads * (n.packed ? 3 : 1);
  const ElementType type = run.input(0).type();
  const bool takes_type = type == ElementType::float16 || type == ElementType::bfloat16;
  const bool has_no_mask = run.has_input(n.mask()) && run.input(n.mask()).elements() == 0;
  auto is_aligned = [&](size_t i) { return reinterpret_cast<uintptr_t>(n.address(run, i)) % 16 == 0; };
  return takes_type && n.tensor(run, 2).type() == type && n.past == 0 && n.queries >= least_queries && n.keys > 0 &&
         !has_no_mask && std::max(n.keys, longest_step * n.queries) <= most_keys && std::min(n.k_size, n.v_size) > 0 &&
         std::max(n.k_size, n.v_size) <= most_elements && n.k_size % 8 == 0 && n.v_size % 8 == 0 && is_aligned(0) &&
         is_aligned(1) && is_aligned(2) && reinterpret_cast<uintptr_t>(run.output(0).raw()) % 16 == 0 &&
         queue_of(run).gpu().major() == 9;
}

CudaBlocks group_attention(KernelRun& run, const AttentionSizes& n, std::string_view pointers,
                           const std::string& functions, const std::vector<int64_t>& numbers) {
  const auto [tile, groups, at_once] = GroupTile::of(n, queue_of(run).gpu().processors());
  const int64_t row = std::max(n.k_size, n.v_size) <= 32 ? 64 : 128, slab = row / 2;
  const int64_t k_slabs = divide_up(n.k_size, slab), v_slabs = divide_up(n.v_size, slab);
  const bool has_column_mask = run.has_input(n.mask()) && numbers[21] == 0 && numbers[22] == 1;
  const bool has_mask_pairs =
      run.has_input(n.mask()) && numbers[22] == 1 && reads_mask_in_pairs(run.input(n.mask()), numbers);
  cuda::Grid grid;
  grid.blocks[0] = static_cast<unsigned>(n.batch * n.q_heads * divide_up(n.queries, groups * 64));
  grid.threads = static_cast<unsigned>(groups * 128);
  grid.shared_bytes =
      static_cast<unsigned>(row * (k_slabs * groups * 64 + (n.keys <= tile ? 1 : 2) * (k_slabs + v_slabs) * tile));
  const std::string constants =
      fmt::format("#define WARP_GROUPS 1\n#define GROUPS {}\n#define TILE {}\n#define ONE_TILE {}\n", groups, tile,
                  n.keys <= tile ? 1 : 0) +
      fmt::format("#define ROW_BYTES {}\n#define K_SLABS {}\n#define V_SLABS {}\n#define K_STEPS {}\n", row, k_slabs,
                  v_slabs, divide_up(n.k_size, 16)) +
      fmt::format("#define COLUMN_MASK {}\n#define MASK_PAIRS {}\n#define SHARED_BYTES {}\n", has_column_mask ? 1 : 0,
                  has_mask_pairs ? 1 : 0, grid.shared_bytes);
  return {run,
          pointers,
          fmt::format("{}{}{}{}{}{}", constants, tensor_core_functions, group_products_text({tile}, {slab}), functions,
                      mask_pair, fetch_rows),
          grouped,
          numbers,
          grid,
          static_cast<int>(at_once)};
}

}  // namespace tenon::ops
