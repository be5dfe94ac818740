// The text of the CUDA kernels of Attention.
#pragma once

#include <string_view>

namespace tenon::ops::attention_text {

// Sizes, strides and what all kernels do with a score. Before it come the types Q (also K's), V, M (the mask's) and A,
// and the numbers CAUSAL, LEFT, RIGHT, HAS_MASK, BOOL_MASK, HAS_LENGTHS, SCALE and SOFTCAP.
inline constexpr std::string_view common = R"cuda(
#define HEADS v[0]
#define KV_HEADS v[1]
#define QUERIES v[2]
#define PAST v[3]
#define KEYS v[4]
#define K_SIZE v[5]
#define V_SIZE v[6]
// Steps from batch to batch, head to head and row to row.
#define Q_AT(b, h, s) ((b) * v[7] + (h) * v[8] + (s) * v[9])
#define K_AT(b, h, s) ((b) * v[10] + (h) * v[11] + (s) * v[12])
#define V_AT(b, h, s) ((b) * v[13] + (h) * v[14] + (s) * v[15])
#define Y_AT(b, h, s) ((b) * v[16] + (h) * v[17] + (s) * v[18])
#define MASK_AT(b, h, s, j) ((b) * v[19] + (h) * v[20] + (s) * v[21] + (j) * v[22])
#define MASK_KEYS v[23]
#define PARTS v[24]

struct Range {
  i64 first, last;
};

// The keys that query s of batch b may see, whatever the mask says.
inline Range seen_by(const i64* v, const i64* lengths, i64 b, i64 s) {
  i64 length = KEYS, offset = PAST, first = 0, last = KEYS;
  if (HAS_LENGTHS) {
    length = most((i64)0, least((i64)KEYS, lengths[b]));
    offset = length - QUERIES;
  }
  if (CAUSAL) last = least(last, offset + s + 1);
  if (RIGHT >= 0) last = least(last, offset + s + 1 + least((i64)RIGHT, (i64)KEYS));
  if (LEFT >= 0) first = most(first, offset + s - least((i64)LEFT, KEYS + (offset < 0 ? -offset : offset) + s));
  last = least(last, length);
  first = least(most(first, (i64)0), (i64)KEYS);
  return {first, least(most(last, first), (i64)KEYS)};
}

inline A capped(A score) { return SOFTCAP > 0 ? (A)SOFTCAP * tanh(score / (A)SOFTCAP) : score; }

// What is masked is hidden, whatever the score.
inline A masked_by(M own, A score) {
  const A addend = BOOL_MASK ? (narrow<bool>(widen(own)) ? (A)0 : (A)-INFINITE) : (A)widen(own);
  return addend == -INFINITE ? (A)-INFINITE : score + addend;
}
inline A masked(const i64* v, const M* mask, A score, i64 b, i64 h, i64 s, i64 j) {
  if (!HAS_MASK) return score;
  return j >= MASK_KEYS ? (A)-INFINITE : masked_by(mask[MASK_AT(b, h, s, j)], score);
}

inline const Q* key_row(const i64* v, const Q* k, const Q* past, i64 b, i64 h, i64 j) {
  return j < PAST ? past + ((b * KV_HEADS + h) * PAST + j) * K_SIZE : k + K_AT(b, h, j - PAST);
}
inline const V* value_row(const i64* v, const V* values, const V* past, i64 b, i64 h, i64 j) {
  return j < PAST ? past + ((b * KV_HEADS + h) * PAST + j) * V_SIZE : values + V_AT(b, h, j - PAST);
}
)cuda";

// A block for each query and part of its keys (one, unless DIVIDED): LANES threads for each key. Every such group has a
// softmax of its own, which are put together at the end. A thread has K_EACH and V_EACH vectors of a row, of K_VECTOR
// and V_VECTOR elements.
inline constexpr std::string_view streamed = R"cuda(
  constexpr int GROUPS = THREADS_EACH / LANES;
  const i64 item = blockIdx.x, s = item % QUERIES, h = item / QUERIES % HEADS, b = item / QUERIES / HEADS;
  const i64 kv = h / (HEADS / KV_HEADS);
  const int lane = threadIdx.x % LANES, group = threadIdx.x / LANES;
  const Range seen = seen_by(v, lengths, b, s);
  const i64 part = DIVIDED ? (seen.last - seen.first + PARTS - 1) / PARTS : KEYS, begin = seen.first + blockIdx.y * part;
  const i64 end = least(seen.last, begin + part);
  typedef Pack<Q, K_VECTOR> KeyPack;
  typedef Pack<V, V_VECTOR> ValuePack;
  A query[K_EACH][K_VECTOR], sum[V_EACH][V_VECTOR], largest = -INFINITE, total = 0;
  for (int d = 0; d < K_EACH; ++d)
    for (int x = 0; x < K_VECTOR; ++x) {
      const int at = (d * LANES + lane) * K_VECTOR + x;
      query[d][x] = at < K_SIZE ? (A)widen(q[Q_AT(b, h, s) + at]) * (A)SCALE : (A)0;
    }
  for (int d = 0; d < V_EACH; ++d)
    for (int x = 0; x < V_VECTOR; ++x) sum[d][x] = 0;
  for (i64 first = begin; first < end; first += GROUPS) {
    const i64 j = first + group;
    A score = 0;
    if (j < end) {
      const Q* row = key_row(v, k, past_k, b, kv, j);
#pragma unroll
      for (int d = 0; d < K_EACH; ++d) {
        const int at = (d * LANES + lane) * K_VECTOR;
        if (at >= K_SIZE) continue;
        const KeyPack own = *(const KeyPack*)(row + at);
        for (int x = 0; x < K_VECTOR; ++x) score += query[d][x] * (A)widen(own.v[x]);
      }
    }
    for (int step = LANES / 2; step > 0; step /= 2) score += __shfl_xor_sync(0xffffffffu, score, step);
    if (j >= end) continue;
    score = masked(v, mask, capped(score), b, h, s, j);
    if (score == -INFINITE) continue;
    if (score > largest) {
      const A factor = exp(largest - score);
      total *= factor;
      for (int d = 0; d < V_EACH; ++d)
        for (int x = 0; x < V_VECTOR; ++x) sum[d][x] *= factor;
      largest = score;
    }
    const A weight = exp(score - largest);
    total += weight;
    const V* row = value_row(v, values, past_v, b, kv, j);
#pragma unroll
    for (int d = 0; d < V_EACH; ++d) {
      const int at = (d * LANES + lane) * V_VECTOR;
      if (at >= V_SIZE) continue;
      const ValuePack own = *(const ValuePack*)(row + at);
      for (int x = 0; x < V_VECTOR; ++x) sum[d][x] += weight * (A)widen(own.v[x]);
    }
  }
  constexpr int ROOM = V_EACH * LANES * V_VECTOR;
  __shared__ A sums[GROUPS * ROOM], totals[GROUPS], maxima[GROUPS];
  for (int d = 0; d < V_EACH; ++d)
    for (int x = 0; x < V_VECTOR; ++x) sums[group * ROOM + (d * LANES + lane) * V_VECTOR + x] = sum[d][x];
  if (lane == 0) {
    totals[group] = total;
    maxima[group] = largest;
  }
  __syncthreads();
  largest = -INFINITE;
  for (int g = 0; g < GROUPS; ++g) largest = most(largest, maxima[g]);
  total = 0;
  for (int g = 0; g < GROUPS; ++g) total += maxima[g] == -INFINITE ? (A)0 : totals[g] * exp(maxima[g] - largest);
  A* own = DIVIDED ? partial + (item * PARTS + blockIdx.y) * (V_SIZE + 2) : nullptr;
  for (int column = threadIdx.x; column < V_SIZE; column += THREADS_EACH) {
    A r = 0;
    for (int g = 0; g < GROUPS; ++g)
      if (maxima[g] != -INFINITE) r += sums[g * ROOM + column] * exp(maxima[g] - largest);
    if (DIVIDED)
      own[column + 2] = r;
    else
      y[Y_AT(b, h, s) + column] = narrow<Q>(total == 0 ? (A)0 : r / total);
  }
  if (DIVIDED && threadIdx.x == 0) {
    own[0] = largest;
    own[1] = total;
  }
)cuda";

// Puts the parts of a query together: a block for each.
inline constexpr std::string_view joined = R"cuda(
  const i64 item = blockIdx.x, s = item % QUERIES, h = item / QUERIES % HEADS, b = item / QUERIES / HEADS;
  const A* own = partial + item * PARTS * (V_SIZE + 2);
  A largest = -INFINITE, total = 0;
  for (int p = 0; p < PARTS; ++p) largest = most(largest, own[p * (V_SIZE + 2)]);
  for (int p = 0; p < PARTS; ++p) {
    const A* part = own + p * (V_SIZE + 2);
    if (part[0] != -INFINITE) total += part[1] * exp(part[0] - largest);
  }
  for (int column = threadIdx.x; column < V_SIZE; column += THREADS_EACH) {
    A r = 0;
    for (int p = 0; p < PARTS; ++p) {
      const A* part = own + p * (V_SIZE + 2);
      if (part[0] != -INFINITE) r += part[column + 2] * exp(part[0] - largest);
    }
    y[Y_AT(b, h, s) + column] = narrow<Q>(total == 0 ? (A)0 : r / total);
  }
)cuda";

// A block for TILE queries of a head, which reads KEYS_EACH keys and then their values at a time. Rows have K_ROOM and
// V_ROOM elements in shared memory. 256 threads: each has scores of one key, and sums of every 32nd column.
inline constexpr std::string_view tiled = R"cuda(
  constexpr int KEY_GROUPS = 256 / KEYS_EACH, SCORES_EACH = TILE / KEY_GROUPS, ROWS_EACH = TILE / 8, COLUMNS_EACH = V_ROOM / 32;
  constexpr int K_VECTORS = K_ROOM / 4, K_STEP = K_VECTORS + 1;  // an odd step: neighbours are in other banks
  constexpr int ROOM = KEYS_EACH * (K_STEP * 4 > V_ROOM ? K_STEP * 4 : V_ROOM);
  typedef Pack<float, 4> Vector;
  __shared__ Vector queries[TILE * K_VECTORS], tile[ROOM / 4];
  __shared__ float weights[TILE * KEYS_EACH], factors[TILE], totals[TILE];
  float* const elements = (float*)tile;
  const i64 tiles = (QUERIES + TILE - 1) / TILE, item = blockIdx.x / tiles, h = item % HEADS, b = item / HEADS;
  const i64 kv = h / (HEADS / KV_HEADS), first_query = blockIdx.x % tiles * TILE;
  const int own_key = threadIdx.x % KEYS_EACH, own_group = threadIdx.x / KEYS_EACH;
  const int own_column = threadIdx.x % 32, own_row = threadIdx.x / 32;
  for (int at = threadIdx.x; at < TILE * K_ROOM; at += 256) {
    const int row = at / K_ROOM, d = at % K_ROOM;
    const i64 s = first_query + row;
    ((float*)queries)[at] = s < QUERIES && d < K_SIZE ? widen(q[Q_AT(b, h, s) + d]) * (float)SCALE : 0.0f;
  }
  // A later query sees neither earlier nor fewer keys at the end.
  const i64 last_query = least((i64)QUERIES, first_query + TILE) - 1;
  const i64 first_key = seen_by(v, lengths, b, first_query).first, last_key = seen_by(v, lengths, b, last_query).last;
  Range seen[SCORES_EACH];
  float largest[SCORES_EACH], total[SCORES_EACH], sums[ROWS_EACH][COLUMNS_EACH];
  for (int r = 0; r < SCORES_EACH; ++r) {
    const i64 s = first_query + r * KEY_GROUPS + own_group;
    seen[r] = s < QUERIES ? seen_by(v, lengths, b, s) : Range{0, 0};
    largest[r] = -INFINITE;
    total[r] = 0;
  }
  for (int r = 0; r < ROWS_EACH; ++r)
    for (int c = 0; c < COLUMNS_EACH; ++c) sums[r][c] = 0;
  for (i64 key = first_key; key < last_key; key += KEYS_EACH) {
    __syncthreads();
    for (int at = threadIdx.x; at < KEYS_EACH * K_ROOM; at += 256) {
      const int row = at / K_ROOM, d = at % K_ROOM;
      const i64 j = key + row;
      elements[row * K_STEP * 4 + d] = j < last_key && d < K_SIZE ? widen(key_row(v, k, past_k, b, kv, j)[d]) : 0.0f;
    }
    __syncthreads();
    float scores[SCORES_EACH];
    for (int r = 0; r < SCORES_EACH; ++r) scores[r] = 0;
    for (int d = 0; d < K_VECTORS; ++d) {
      const Vector own = tile[own_key * K_STEP + d];
#pragma unroll
      for (int r = 0; r < SCORES_EACH; ++r) {
        const Vector other = queries[(r * KEY_GROUPS + own_group) * K_VECTORS + d];
        scores[r] += own.v[0] * other.v[0] + own.v[1] * other.v[1] + (own.v[2] * other.v[2] + own.v[3] * other.v[3]);
      }
    }
#pragma unroll
    for (int r = 0; r < SCORES_EACH; ++r) {
      const int row = r * KEY_GROUPS + own_group;
      const i64 j = key + own_key;
      const bool is_seen = j >= seen[r].first && j < seen[r].last;
      const float score = is_seen ? masked(v, mask, capped(scores[r]), b, h, first_query + row, j) : -INFINITE;
      float best = score;
      for (int step = KEYS_EACH / 2; step > 0; step /= 2) best = most(best, __shfl_xor_sync(0xffffffffu, best, step));
      best = most(best, largest[r]);
      const float factor = best == -INFINITE ? 1.0f : exp(largest[r] - best);
      const float weight = score == -INFINITE ? 0.0f : exp(score - best);
      float sum = weight;
      for (int step = KEYS_EACH / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
      total[r] = total[r] * factor + sum;
      largest[r] = best;
      weights[row * KEYS_EACH + own_key] = weight;
      if (own_key == 0) factors[row] = factor;
    }
    __syncthreads();
    for (int at = threadIdx.x; at < KEYS_EACH * V_ROOM; at += 256) {
      const int row = at / V_ROOM, d = at % V_ROOM;
      const i64 j = key + row;
      elements[at] = j < last_key && d < V_SIZE ? widen(value_row(v, values, past_v, b, kv, j)[d]) : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < ROWS_EACH; ++r) {
      const float factor = factors[r * 8 + own_row];
#pragma unroll
      for (int c = 0; c < COLUMNS_EACH; ++c) sums[r][c] *= factor;
    }
    for (int j = 0; j < KEYS_EACH; ++j) {
      float own[COLUMNS_EACH];
#pragma unroll
      for (int c = 0; c < COLUMNS_EACH; ++c) own[c] = elements[j * V_ROOM + c * 32 + own_column];
#pragma unroll
      for (int r = 0; r < ROWS_EACH; ++r) {
        const float weight = weights[(r * 8 + own_row) * KEYS_EACH + j];
#pragma unroll
        for (int c = 0; c < COLUMNS_EACH; ++c) sums[r][c] += weight * own[c];
      }
    }
  }
  if (own_key == 0)
    for (int r = 0; r < SCORES_EACH; ++r) totals[r * KEY_GROUPS + own_group] = total[r];
  __syncthreads();
  for (int r = 0; r < ROWS_EACH; ++r) {
    const int row = r * 8 + own_row;
    const i64 s = first_query + row;
    if (s >= QUERIES) continue;
    for (int c = 0; c < COLUMNS_EACH; ++c) {
      const int column = c * 32 + own_column;
      if (column < V_SIZE) y[Y_AT(b, h, s) + column] = narrow<Q>(totals[row] == 0 ? 0.0f : sums[r][c] / totals[row]);
    }
  }
)cuda";

// A score, as the fourth output has it: 0 as it is multiplied, 1 capped, 2 masked.
inline constexpr std::string_view score = R"cuda(
inline A score_of(const i64* v, int stage, const Q* q, const Q* k, const Q* past_k, const M* mask, const i64* lengths, i64 row,
                  i64 j) {
  const i64 s = row % QUERIES, h = row / QUERIES % HEADS, b = row / QUERIES / HEADS;
  const Q *query = q + Q_AT(b, h, s), *key = key_row(v, k, past_k, b, h / (HEADS / KV_HEADS), j);
  A sum = 0;
  for (i64 d = 0; d < K_SIZE; ++d) sum += (A)widen(query[d]) * (A)widen(key[d]);
  sum *= (A)SCALE;
  if (stage > 0) sum = capped(sum);
  if (stage < 2) return sum;
  const Range seen = seen_by(v, lengths, b, s);
  return j < seen.first || j >= seen.last ? (A)-INFINITE : masked(v, mask, sum, b, h, s, j);
}
)cuda";

}  // namespace tenon::ops::attention_text
