#include "ops/attention/cuda_fused.h"

#include <fmt/format.h>
#include <algorithm>

#include "ops/cuda_support/tensor_cores.h"

namespace tenon::ops {
namespace {

// What a lane (g = lane / 4, c = lane % 4) holds of matrices that are multiplied: of 16 queries and two chunks of their
// elements, of weights, and of two columns of values. A chunk is 16 bytes.
constexpr std::string_view narrow_parts = R"cuda(
#define CHUNK 8
#define KEYS_AT_ONCE 16
typedef Pack<Q, CHUNK> Chunk;
inline void multiply(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) { mma_16x8x16<Q>(d, a, b0, b1); }
// Of a row of `size` elements.
inline u32 query_part(const Q* row, int chunk, int c, int size, bool pairs) {
  const int d = chunk * CHUNK + c * 2;
  if (pairs) return d < size ? *(const u32*)(row + d) : 0;
  return (d < size ? row[d].bits : 0) | (u32)(d + 1 < size ? row[d + 1].bits : 0) << 16;
}
inline void key_parts(u32 (&r)[4], const Chunk* rows) { load_matrix_x4(r, rows); }
inline void weight_parts(u32 (&r)[4], const float (&scores)[TILE / 8][4], int f) {
  r[0] = pair_of<Q>(scores[f * 2][0], scores[f * 2][1]);
  r[1] = pair_of<Q>(scores[f * 2][2], scores[f * 2][3]);
  r[2] = pair_of<Q>(scores[f * 2 + 1][0], scores[f * 2 + 1][1]);
  r[3] = pair_of<Q>(scores[f * 2 + 1][2], scores[f * 2 + 1][3]);
}
inline void value_parts(u32 (&r)[4], const Chunk* rows, int lane, int f, int n) {
  load_matrix_x4_transposed(r, rows + (f * 16 + lane % 16) * (V_ROOM / CHUNK + 1) + n + lane / 16);
}
)cuda";

// The same of float32, which is rounded to TF32. The keys of a multiplication are taken in another order, in which each
// lane has the weights that it needs.
constexpr std::string_view wide_parts = R"cuda(
#define CHUNK 4
#define KEYS_AT_ONCE 8
typedef Pack<Q, CHUNK> Chunk;
inline void multiply(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) { mma_16x8x8_tf32(d, a, b0, b1); }
inline u32 query_part(const Q* row, int chunk, int c, int size, bool) {
  const int d = chunk * CHUNK + c;
  return d < size ? tf32_of(row[d]) : 0;
}
inline void key_parts(u32 (&r)[4], const Chunk* rows) {
  load_matrix_x4(r, rows);
#pragma unroll
  for (int i = 0; i < 4; ++i) r[i] = tf32_of(float_of(r[i]));
}
inline void weight_parts(u32 (&r)[4], const float (&scores)[TILE / 8][4], int f) {
  r[0] = tf32_of(scores[f][0]);
  r[1] = tf32_of(scores[f][2]);
  r[2] = tf32_of(scores[f][1]);
  r[3] = tf32_of(scores[f][3]);
}
inline void value_parts(u32 (&r)[4], const Chunk* rows, int lane, int f, int n) {
  constexpr int STEP = V_ROOM + CHUNK;
  const float* from = (const float*)rows + (f * 8 + lane % 4 * 2) * STEP + n * 8 + lane / 4;
  r[0] = tf32_of(from[0]);
  r[1] = tf32_of(from[STEP]);
  r[2] = tf32_of(from[8]);
  r[3] = tf32_of(from[8 + STEP]);
}
)cuda";

// TILE rows of keys or values from row `first` on, those from `last` on as zeros, by all threads of a block. `fresh` is
// where row 0 would be if there were no past; `packs`: rows begin at multiples of 16 bytes.
constexpr std::string_view fetch_rows = R"cuda(
template <int CHUNKS>
inline void fetch_rows(Chunk* to, const Q* fresh, const Q* past, int past_rows, int step, int size, int first, int last,
                       bool packs) {
  constexpr int ALL = TILE * CHUNKS, THREADS_EACH = WARPS * 32;
  auto row_at = [&](int j) { return HAS_PAST && j < past_rows ? past + (i64)j * size : fresh + (i64)j * step; };
  if (packs) {
#pragma unroll 1  // the registers are needed elsewhere
    for (int at = threadIdx.x; at < ALL; at += THREADS_EACH) {
      const int row = at / CHUNKS, d = at % CHUNKS * CHUNK;
      const bool valid = first + row < last && d < size;
      const Q* from = row_at(least(first + row, last - 1)) + (valid ? d : 0);
      copy_async_16(&to[row * (CHUNKS + 1) + at % CHUNKS], from, valid);
    }
  } else {
    for (int at = threadIdx.x; at < ALL * CHUNK; at += THREADS_EACH) {
      const int row = at / (CHUNKS * CHUNK), d = at % (CHUNKS * CHUNK), j = first + row;
      to[row * (CHUNKS + 1) + d / CHUNK].v[d % CHUNK] = j < last && d < size ? row_at(j)[d] : narrow<Q>(0.0f);
    }
  }
}
)cuda";

// A block for WARPS * M_TILES * 16 queries of a head. It reads TILE keys and their values at a time, the next ones
// while it works on these. Rows have K_ROOM and V_ROOM elements in shared memory, zeros at the end, and a chunk more,
// so that rows that follow each other are in other banks. Each row has a softmax of its own, which goes on from tile to
// tile.
constexpr std::string_view fused = R"cuda(
  constexpr int BLOCK_QUERIES = WARPS * M_TILES * 16, K_CHUNKS = K_ROOM / CHUNK, V_CHUNKS = V_ROOM / CHUNK;
  constexpr int COLUMN_TILES = V_ROOM / 8;
  // Scores that are only scaled are scaled on the way to the exponential, of base 2.
  constexpr bool PLAIN = !(HAS_MASK && !BOOL_MASK) && !(SOFTCAP > 0) && SCALE > 0;
  constexpr float FACTOR = 1.4426950408889634 * (PLAIN ? SCALE : 1.0);
  __shared__ Chunk keys[2][TILE * (K_CHUNKS + 1)], columns[2][TILE * (V_CHUNKS + 1)];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, c = lane % 4;
  const i64 tiles = (QUERIES + BLOCK_QUERIES - 1) / BLOCK_QUERIES, own_tile = blockIdx.x % tiles;
  const i64 item = blockIdx.x / tiles, h = item % HEADS, b = item / HEADS, kv = h / (HEADS / KV_HEADS);
  // Those with the most keys begin first.
  const i64 block_query = (CAUSAL ? tiles - 1 - own_tile : own_tile) * BLOCK_QUERIES;
  const i64 warp_query = block_query + warp * M_TILES * 16, last_query = QUERIES - 1;

  // A later query sees neither earlier nor fewer keys at the end.
  const int first_key = seen_by(v, lengths, b, block_query).first;
  const int last_key = seen_by(v, lengths, b, least(last_query, block_query + BLOCK_QUERIES - 1)).last;
  const Range first_range = seen_by(v, lengths, b, least(last_query, warp_query));
  const Range last_range = seen_by(v, lengths, b, least(last_query, warp_query + M_TILES * 16 - 1));

  const Q *fresh_k = k + K_AT(b, kv, -PAST), *fresh_v = values + V_AT(b, kv, -PAST);
  const i64 past_row = (b * KV_HEADS + kv) * PAST;
  const Q *past_keys = past_k + past_row * K_SIZE, *past_values = past_v + past_row * V_SIZE;
  const bool k_packs = K_SIZE % CHUNK == 0 && ((u64)k | (HAS_PAST ? (u64)past_k : 0)) % 16 == 0;
  const bool v_packs = V_SIZE % CHUNK == 0 && ((u64)values | (HAS_PAST ? (u64)past_v : 0)) % 16 == 0;
  auto fetch = [&](int stage, int key) {
    fetch_rows<K_CHUNKS>(keys[stage], fresh_k, past_keys, (int)PAST, (int)v[12], (int)K_SIZE, key, last_key, k_packs);
    fetch_rows<V_CHUNKS>(columns[stage], fresh_v, past_values, (int)PAST, (int)v[15], (int)V_SIZE, key, last_key,
                         v_packs);
    copy_async_commit();
  };
  if (first_key < last_key) fetch(0, first_key);

  const bool q_pairs = K_SIZE % 2 == 0 && (u64)q % sizeof(Pack<Q, 2>) == 0;
  u32 query[M_TILES][K_CHUNKS / 2][4];
#pragma unroll
  for (int m = 0; m < M_TILES; ++m)
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const i64 s = warp_query + m * 16 + r % 2 * 8 + g;
#pragma unroll
      for (int f = 0; f < K_CHUNKS / 2; ++f)
        query[m][f][r] = query_part(q + Q_AT(b, h, s), f * 2 + r / 2, c, s <= last_query ? (int)K_SIZE : 0, q_pairs);
    }
  float sums[M_TILES][COLUMN_TILES][4], largest[M_TILES][2], total[M_TILES][2];
#pragma unroll
  for (int m = 0; m < M_TILES; ++m) {
#pragma unroll
    for (int n = 0; n < COLUMN_TILES; ++n)
#pragma unroll
      for (int x = 0; x < 4; ++x) sums[m][n][x] = 0;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      largest[m][half] = -INFINITE;
      total[m][half] = 0;
    }
  }

  int stage = 0;
  for (int key = first_key; key < last_key; key += TILE, stage ^= 1) {
    copy_async_wait<0>();
    __syncthreads();
    if (last_key - key > TILE) fetch(stage ^ 1, key + TILE);
    if (warp_query > last_query || key >= last_range.last || key + TILE <= first_range.first) continue;

    float scores[M_TILES][TILE / 8][4];
#pragma unroll
    for (int m = 0; m < M_TILES; ++m)
#pragma unroll
      for (int n = 0; n < TILE / 8; ++n)
#pragma unroll
        for (int x = 0; x < 4; ++x) scores[m][n][x] = 0;
    const Chunk* own_keys = &keys[stage][(lane / 16 * 8 + lane % 8) * (K_CHUNKS + 1) + lane / 8 % 2];
#pragma unroll
    for (int f = 0; f < K_CHUNKS / 2; ++f)
#pragma unroll
      for (int n = 0; n < TILE / 8; n += 2) {
        u32 own[4];
        key_parts(own, own_keys + n * 8 * (K_CHUNKS + 1) + f * 2);
#pragma unroll
        for (int m = 0; m < M_TILES; ++m) {
          multiply(scores[m][n], query[m][f], own[0], own[1]);
          multiply(scores[m][n + 1], query[m][f], own[2], own[3]);
        }
      }

    if (HAS_MASK || !PLAIN || key < last_range.first || key + TILE > first_range.last) {
#pragma unroll
      for (int m = 0; m < M_TILES; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const i64 s = least(last_query, warp_query + m * 16 + half * 8 + g);
          const Range seen = seen_by(v, lengths, b, s);
          // Keys that the mask does not have are hidden, too.
          const int seen_first = seen.first, seen_last = HAS_MASK ? least(seen.last, (i64)MASK_KEYS) : seen.last;
          const M* own_mask = HAS_MASK ? mask + MASK_AT(b, h, s, 0) : nullptr;
          const int mask_step = (int)v[22];
#pragma unroll
          for (int n = 0; n < TILE / 8; ++n)
#pragma unroll
            for (int x = half * 2; x < half * 2 + 2; ++x) {
              const int j = key + n * 8 + c * 2 + x % 2;
              float& score = scores[m][n][x];
              if (!PLAIN) score = capped(score * (float)SCALE);
              if (j < seen_first || j >= seen_last)
                score = -INFINITE;
              else if (HAS_MASK)
                score = masked_by(own_mask[j * mask_step], score);
            }
        }
    }

#pragma unroll
    for (int m = 0; m < M_TILES; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float best = largest[m][half];
#pragma unroll
        for (int n = 0; n < TILE / 8; ++n)
          best = fmaxf(best, fmaxf(scores[m][n][half * 2], scores[m][n][half * 2 + 1]));
        best = fmaxf(best, __shfl_xor_sync(0xffffffffu, best, 1));
        best = fmaxf(best, __shfl_xor_sync(0xffffffffu, best, 2));
        const float base = best == -INFINITE ? 0.0f : best, factor = exp2_of((largest[m][half] - base) * FACTOR);
        float sum = 0;
#pragma unroll
        for (int n = 0; n < TILE / 8; ++n)
#pragma unroll
          for (int x = half * 2; x < half * 2 + 2; ++x) {
            float& score = scores[m][n][x];
            score = exp2_of(PLAIN ? fma(score, FACTOR, -base * FACTOR) : (score - base) * FACTOR);
            sum += score;
          }
        total[m][half] = total[m][half] * factor + sum;
        largest[m][half] = best;
#pragma unroll
        for (int n = 0; n < COLUMN_TILES; ++n) {
          sums[m][n][half * 2] *= factor;
          sums[m][n][half * 2 + 1] *= factor;
        }
      }

#pragma unroll
    for (int f = 0; f < TILE / KEYS_AT_ONCE; ++f) {
      u32 weights[M_TILES][4];
#pragma unroll
      for (int m = 0; m < M_TILES; ++m) weight_parts(weights[m], scores[m], f);
#pragma unroll
      for (int n = 0; n < COLUMN_TILES; n += 2) {
        u32 own[4];
        value_parts(own, columns[stage], lane, f, n);
#pragma unroll
        for (int m = 0; m < M_TILES; ++m) {
          multiply(sums[m][n], weights[m], own[0], own[1]);
          multiply(sums[m][n + 1], weights[m], own[2], own[3]);
        }
      }
    }
  }

  const bool y_pairs = V_SIZE % 2 == 0 && (u64)y % sizeof(Pack<Q, 2>) == 0;
#pragma unroll
  for (int m = 0; m < M_TILES; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float all = total[m][half];
      all += __shfl_xor_sync(0xffffffffu, all, 1);
      all += __shfl_xor_sync(0xffffffffu, all, 2);
      const float factor = all == 0 ? 0.0f : 1.0f / all;
      const i64 s = warp_query + m * 16 + half * 8 + g;
      if (s > last_query) continue;
      Q* to = y + Y_AT(b, h, s) + c * 2;
#pragma unroll
      for (int n = 0; n < COLUMN_TILES; ++n) {
        const Pack<Q, 2> own = {narrow<Q>(sums[m][n][half * 2] * factor), narrow<Q>(sums[m][n][half * 2 + 1] * factor)};
        const int column = n * 8 + c * 2;
        if (y_pairs) {
          if (column < V_SIZE) *(Pack<Q, 2>*)(to + n * 8) = own;
        } else {
          if (column < V_SIZE) to[n * 8] = own.v[0];
          if (column + 1 < V_SIZE) to[n * 8 + 1] = own.v[1];
        }
      }
    }
)cuda";

// Elements of a row in shared memory: as many as are multiplied at once.
int64_t room(int64_t size) { return (size + 15) / 16 * 16; }

// How many keys are worked on at once: as many as two times their rows fit into shared memory. 0: none.
int64_t tile_of(const AttentionSizes& n, int64_t bytes_each) {
  constexpr int64_t shared_bytes = 48 << 10, stages = 2, padding = 16;
  const int64_t row_bytes = (room(n.k_size) + room(n.v_size)) * bytes_each + 2 * padding;
  for (int64_t tile = bytes_each == 2 ? 64 : 32; tile >= 16; tile /= 2) {
    if (stages * tile * row_bytes <= shared_bytes) return tile;
  }
  return 0;
}

}  // namespace

bool takes_fused_attention(KernelRun& run, const AttentionSizes& n, bool allow_tf32) {
  constexpr int64_t least_queries = 16, most_elements = 256, most_keys = int64_t{1} << 30;
  const int64_t longest_step = std::max(n.k_size, n.v_size) * n.kv_heads * (n.packed ? 3 : 1);
  const ElementType type = run.input(0).type();
  const bool takes_type =
      type == ElementType::float16 || type == ElementType::bfloat16 || (type == ElementType::float32 && allow_tf32);
  return takes_type && n.tensor(run, 2).type() == type && n.queries >= least_queries &&
         std::max(n.keys, longest_step) <= most_keys && std::min(n.k_size, n.v_size) > 0 &&
         std::max(n.k_size, n.v_size) <= most_elements && tile_of(n, bits_of(type) / 8) > 0 &&
         queue_of(run).gpu().major() >= 8;
}

CudaBlocks fused_attention(KernelRun& run, const AttentionSizes& n, std::string_view pointers,
                           const std::string& functions, const std::vector<int64_t>& numbers) {
  const int64_t bytes_each = bits_of(run.input(0).type()) / 8;
  const int64_t k_room = room(n.k_size), v_room = room(n.v_size);
  auto blocks = [&](int64_t queries) { return n.batch * n.q_heads * ((n.queries + queries - 1) / queries); };
  // What is read from shared memory serves all queries of a warp: the more the better, if the registers suffice, which
  // masks need, too, and there is work for the whole GPU.
  constexpr int64_t warps = 4;
  const bool is_small = std::max(k_room, v_room) <= 64 && !run.has_input(n.mask()) && !run.has_input(6);
  const int64_t m_tiles = is_small && blocks(warps * 32) >= 2 * queue_of(run).gpu().processors() ? 2 : 1;
  const int64_t tile = tile_of(n, bytes_each);
  cuda::Grid grid;
  grid.blocks[0] = static_cast<unsigned>(blocks(warps * m_tiles * 16));
  grid.threads = static_cast<unsigned>(warps * 32);
  const std::string constants =
      fmt::format("#define WARPS {}\n#define M_TILES {}\n#define TILE {}\n", warps, m_tiles, tile) +
      fmt::format("#define K_ROOM {}\n#define V_ROOM {}\n#define HAS_PAST {}\n", k_room, v_room, n.past > 0 ? 1 : 0);
  const std::string_view parts = bytes_each == 2 ? narrow_parts : wide_parts;
  return {run,   pointers, fmt::format("{}{}{}{}{}", constants, tensor_core_functions, functions, parts, fetch_rows),
          fused, numbers,  grid};
}

}  // namespace tenon::ops
