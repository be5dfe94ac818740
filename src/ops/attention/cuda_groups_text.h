// The text that kernels of attention by groups of four warps share.
#pragma once

#include <string_view>

namespace tenon::ops::attention_text {

// What a row of the mask has for keys j and j + 1. Whatever it has no keys for is read from those that it has, and is
// hidden later: without a branch, all reads are under way together.
inline constexpr std::string_view mask_pair = R"cuda(
inline Pack<M, 2> mask_pair(const i64* v, const M* row, int j) {
  const int last = (int)MASK_KEYS - 1, step = (int)v[22];
  if (MASK_PAIRS) return *(const Pack<M, 2>*)(row + least(j, last - 1));
  return {row[least(j, last) * step], row[least(j + 1, last) * step]};
}
)cuda";

// What differs between types: how weights lie in registers, and values beside them in shared memory. Those of half
// precision are in slabs of ROW_BYTES of each row.
inline constexpr std::string_view half_parts = R"cuda(
inline u32 weight_of(const float (&scores)[TILE / 8][4], int f, int r) {
  return pair_of<Q>(scores[f * 2 + r / 2][r % 2 * 2], scores[f * 2 + r / 2][r % 2 * 2 + 1]);
}
inline void multiply_by_values(float (&sums)[V_PART / 8][4], const u32 (&weights)[4], Matrix values, int f,
                               int part, bool adds) {
  group_by_rows_64xNx16<Q, V_PART, ROW_BYTES>(sums, weights, values + (part * TILE + f * 16) * ROW_BYTES, adds);
}
inline void store_pair(Q* to, float first, float second) { *(u32*)to = pair_of<Q>(first, second); }
)cuda";

// Of float32, rounded to TF32, columns of values are rows of shared memory, 32 keys of each in a slab. Of eight keys
// those with even numbers come first: each lane then has the weights that it needs.
inline constexpr std::string_view float_parts = R"cuda(
inline u32 weight_of(const float (&scores)[TILE / 8][4], int f, int r) {
  return tf32_of(scores[f][r % 2 * 2 + r / 2]);
}
inline void multiply_by_values(float (&sums)[V_PART / 8][4], const u32 (&weights)[4], Matrix values, int f, int,
                               bool adds) {
  group_by_rows_64xNx8<V_PART, 128>(sums, weights, values + (f / 4 * V_PART * 128 + f % 4 * 32), adds);
}
inline void store_pair(float* to, float first, float second) { *(Pack<float, 2>*)to = {first, second}; }
)cuda";

// A group of four warps has 64 queries of a head, and works on TILE keys at a time; GROUPS of them in a block share
// keys and values, each for TURNS times 64 queries, one after the other. Each row has a softmax of its own, which goes
// on from tile to tile, of base 2: scores are scaled on the way to it.
inline constexpr std::string_view group_functions = R"cuda(
  constexpr int SLAB = ROW_BYTES / (int)sizeof(Q), V_TILES = V_PARTS * V_PART / 8, WEIGHT_STEPS = TILE / (32 / (int)sizeof(Q));
  constexpr bool COLUMNS = COLUMN_MASK && !(SOFTCAP > 0), MASKED = HAS_MASK && !COLUMNS;
  // Scores that are only scaled, and hidden or not.
  constexpr bool PLAIN = COLUMNS || ((!HAS_MASK || BOOL_MASK) && !(SOFTCAP > 0) && SCALE > 0);
  // All queries see all keys, of which there are at least so many in a tile.
  constexpr bool ALL_SEE_ALL = !CAUSAL && !HAS_LENGTHS && LEFT < 0 && RIGHT < 0;
  constexpr int SURE_KEYS = ALL_SEE_ALL && STAGES == 1 ? TILE - 15 : 0;
  constexpr float LOG2_E = 1.4426950408889634, FACTOR = PLAIN ? LOG2_E * SCALE : LOG2_E;
  constexpr int K_BYTES = K_SLABS * TILE * ROW_BYTES, Q_BYTES = K_SLABS * 64 * ROW_BYTES, Q_ROOMS = TURNS > 1 ? 2 : 1;
  DYNAMIC_SHARED(shared, SHARED_BYTES);
  __shared__ float addends[STAGES][TILE];
  const int group = GROUPS > 1 ? threadIdx.x / 128 : 0;
  u8* const fetched = shared + GROUPS * Q_ROOMS * Q_BYTES;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, g = lane / 4, c = lane % 4;
  constexpr int BLOCK_QUERIES = GROUPS * TURNS * 64;
  const u32 tiles = ((u32)QUERIES + BLOCK_QUERIES - 1) / BLOCK_QUERIES, item = blockIdx.x / tiles;
  const u32 h = item % (u32)HEADS, b = item / (u32)HEADS, kv = h / ((u32)HEADS / (u32)KV_HEADS);
  // Those with the most keys begin first.
  const u32 own_tile = blockIdx.x % tiles;
  const int block_query = (CAUSAL ? tiles - 1 - own_tile : own_tile) * BLOCK_QUERIES, last_query = (int)QUERIES - 1;
  auto first_query_of = [&](int turn) { return block_query + (turn * GROUPS + group) * 64; };
  int first_query, warp_query;
  // A later query sees neither earlier nor fewer keys at the end.
  Range first_range, last_range;
  auto go_to = [&](int turn) {
    first_query = first_query_of(turn);
    warp_query = first_query + warp * 16;
    first_range = seen_by(v, lengths, b, least(last_query, first_query));
    last_range = seen_by(v, lengths, b, least(last_query, first_query + 63));
  };
  go_to(0);
  constexpr bool MANY_TILES = GROUPS * TURNS > 1;
  const int first_key = MANY_TILES ? seen_by(v, lengths, b, block_query).first : first_range.first;
  const int last_key =
      MANY_TILES ? seen_by(v, lengths, b, least(last_query, block_query + BLOCK_QUERIES - 1)).last : last_range.last;

  auto queries_of = [&](int turn) { return shared + (group * Q_ROOMS + turn % Q_ROOMS) * Q_BYTES; };
  // Where the keys and the values of a stage are.
  auto keys_of = [&](int stage) { return fetched + stage * (K_BYTES + V_BYTES); };
  auto values_of = [&](int stage) { return keys_of(stage) + (VALUES_REPLACE_KEYS ? 0 : K_BYTES); };
  float sums[V_PARTS][V_PART / 8][4], largest[2] = {-INFINITE, -INFINITE}, total[2] = {0, 0};
  auto clear_sums = [&]() {
#pragma unroll
    for (int n = 0; n < V_TILES; ++n)
#pragma unroll
      for (int x = 0; x < 4; ++x) sums[n / (V_PART / 8)][n % (V_PART / 8)][x] = 0;
  };
  auto multiply_keys = [&](float (&scores)[TILE / 8][4], const u8* own_queries, const u8* own_keys) {
    const Matrix queries = matrix_at<ROW_BYTES>(own_queries), keys = matrix_at<ROW_BYTES>(own_keys);
#pragma unroll
    for (int f = 0; f < K_STEPS; ++f) {
      const int slab = f * 32 / ROW_BYTES, at = f * 32 % ROW_BYTES;
      group_64xNx16<Q, TILE, ROW_BYTES>(scores, queries + (slab * 64 * ROW_BYTES + at),
                                        keys + (slab * TILE * ROW_BYTES + at), f > 0);
    }
    group_commit();
  };
  auto multiply_values = [&](const u32 (&weights)[WEIGHT_STEPS][4], const u8* own_values, bool adds) {
    const Matrix columns = matrix_at<ROW_BYTES>(own_values);
#pragma unroll
    for (int f = 0; f < WEIGHT_STEPS; ++f)
#pragma unroll
      for (int part = 0; part < V_PARTS; ++part) multiply_by_values(sums[part], weights[f], columns, f, part, adds || f > 0);
    group_commit();
  };
  auto scores_done = [&](float (&scores)[TILE / 8][4]) {
#pragma unroll
    for (int n = 0; n < TILE / 8; ++n) group_done(scores[n]);
  };
  auto sums_done = [&]() {
#pragma unroll
    for (int n = 0; n < V_TILES; ++n) group_done(sums[n / (V_PART / 8)][n % (V_PART / 8)]);
  };
  auto weights_of = [&](u32 (&weights)[WEIGHT_STEPS][4], const float (&scores)[TILE / 8][4]) {
#pragma unroll
    for (int f = 0; f < WEIGHT_STEPS; ++f)
#pragma unroll
      for (int r = 0; r < 4; ++r) weights[f][r] = weight_of(scores, f, r);
  };

  // What a mask of columns adds to the scores of a key.
  auto addend_of = [&](int key) {
    const bool is_there = key < least((i64)last_key, (i64)MASK_KEYS);
    return is_there ? masked_by(mask[MASK_AT(b, h, 0, key)], 0) * LOG2_E : -INFINITE;
  };
  auto hide = [&](float (&scores)[TILE / 8][4], int key, int stage) {
    if (COLUMNS) {
#pragma unroll
      for (int n = 0; n < TILE / 8; ++n) {
        const Pack<float, 2> own = *(const Pack<float, 2>*)&addends[stage][n * 8 + c * 2];
#pragma unroll
        for (int x = 0; x < 4; ++x) scores[n][x] = fma(scores[n][x], FACTOR, own.v[x % 2]);
      }
    }
    if (!MASKED && PLAIN && key >= last_range.first && key + TILE <= first_range.last) return;
    // What all queries see.
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
        const bool are_seen = n * 8 + 8 <= SURE_KEYS;
        if (PLAIN && !MASKED && (are_seen || (key + n * 8 >= surely_first && key + n * 8 + 8 <= surely_last))) continue;
#pragma unroll
        for (int x = half * 2; x < half * 2 + 2; ++x) {
          const int j = key + n * 8 + c * 2 + x % 2;
          float score = scores[n][x];
          if (!PLAIN) score = capped(score * (float)SCALE);
          if (MASKED) score = masked_by(own_mask[n].v[x % 2], score);
          const bool is_hidden = are_seen ? HAS_MASK && j >= seen_last : (j < seen_first) | (j >= seen_last);
          scores[n][x] = is_hidden ? -INFINITE : score;
        }
      }
    }
  };
  // Powers of scores, and by what sums that were made with other bases are to be multiplied.
  auto raise = [&](float (&scores)[TILE / 8][4], float (&fading)[2]) {
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
      if (STAGES == 1) {
        total[half] = sum[0] + sum[1];
        continue;
      }
      fading[half] = exp2_of((largest[half] - base) * factor);
      total[half] = fma(total[half], fading[half], sum[0] + sum[1]);
      largest[half] = best;
    }
  };
  // What becomes of the sums.
  auto store_sums = [&]() {
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
        const float(&own)[4] = sums[n / (V_PART / 8)][n % (V_PART / 8)];
        if (n * 8 + c * 2 < V_SIZE) store_pair(to + n * 8, own[half * 2] * factor, own[half * 2 + 1] * factor);
      }
    }
  };
)cuda";

}  // namespace tenon::ops::attention_text
