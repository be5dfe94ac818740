// The text of the kernel of CudaByteConv.
#pragma once

#include <string_view>

namespace tenon::ops {

// What the names stand for that the text uses:
//   BM, BN, BK: the rows, columns and bytes of k of a block's tile. WARPS_M, WARPS_N: how its warps divide it.
//   WARP_GROUPS: whether four warps multiply 64 rows together (WARPS_N is 1 then). STAGES: how many pieces of BK bytes
//   are in shared memory, of which all but one are on their way there, or all but two where groups of warps still read
//   one when they begin the next. PARTS: whether several blocks have parts of a tile's k. PIECE: the bytes of an image
//   that are copied at once. POINTS: whether every pixel is a row as it is. RESULT: 0: codes, 1: sums, 2: numbers.
//   ADDED: 0: nothing is added to codes, 1: an image, 2: a row. TABLE: whether codes are looked up in the end. PACK:
//   how many elements of y are stored at once. BIAS: 0: none, 1: added to sums, 2: added to numbers. X, W, Y, B: the
//   types of x's and w's codes, of y and of the bias.
inline constexpr std::string_view byte_conv_functions = R"cuda(
#define ROWS ((int)v[0])
#define COLUMNS ((int)v[1])
#define K ((int)v[2])
#define K_ROOM v[3]
#define COLUMN_ROOM ((int)v[4])
#define PIXEL ((int)v[5])
#define CHANNELS ((int)v[6])
#define HEIGHT ((int)v[7])
#define WIDTH ((int)v[8])
#define OUT_HEIGHT ((int)v[9])
#define OUT_WIDTH ((int)v[10])
#define KERNEL_WIDTH ((int)v[11])
#define STRIDE_Y ((int)v[12])
#define STRIDE_X ((int)v[13])
#define DILATION_Y ((int)v[14])
#define DILATION_X ((int)v[15])
#define TOP ((int)v[16])
#define LEFT ((int)v[17])
#define OUTPUTS v[18]
#define ONE_SCALE (v[19] == 1)
#define ALL_THREADS (WARPS_M * WARPS_N * 32)
// Division by OUT_WIDTH and OUT_HEIGHT, by multiplying.
#define LINE_OF(row) (int)((u64)(u32)(row) * (u64)v[20] >> (u32)v[21])
#define IMAGE_OF(line) (int)((u64)(u32)(line) * (u64)v[22] >> (u32)v[23])
// Where 16 bytes of a row are in shared memory: other rows have them in other banks.
inline int place_of(int row, int chunk) { return row * BK + ((chunk ^ (BK == 64 ? row / 2 % 4 : row % 8)) << 4); }
// A thread has N_TILES pairs of columns of the tensor cores' results. The columns of w are in such an order that SIDE of
// them are side by side in y.
#define M_TILES (BM / WARPS_M / 16)
#define N_TILES (BN / WARPS_N / 8)
#define SIDE (N_TILES < 8 ? N_TILES * 2 : 16)
inline constexpr int column_of(int r) { return r / (SIDE * 4) * (SIDE * 4) + r % 8 / 2 * SIDE + r % (SIDE * 4) / 8 * 2 + r % 2; }
// Codes side by side, which are moved as words: compilers take packs of bytes apart.
template <int BYTES> struct CodesOf { typedef Pack<u32, BYTES / 4> type; };
template <> struct CodesOf<2> { typedef u16 type; };
template <> struct CodesOf<1> { typedef u8 type; };
template <int N> inline Pack<u32, N> repeated(u32 x) {
  Pack<u32, N> all;
#pragma unroll
  for (int i = 0; i < N; ++i) all.v[i] = x;
  return all;
}
// Byte e of four as a number of which it is the last byte, 8388608 and more, which has no fractions; and the last bytes
// of four numbers.
#ifdef TENON_EMULATED
inline float number_of_byte(u32 four, int e) { return float_of(0x4b000000 | (four >> e * 8 & 0xff)); }
inline u32 last_bytes(const float* n) {
  return (bits_of(n[0]) & 0xff) | (bits_of(n[1]) & 0xff) << 8 | (bits_of(n[2]) & 0xff) << 16 | bits_of(n[3]) << 24;
}
#else
inline float number_of_byte(u32 four, int e) { return float_of(__byte_perm(four, 0x4b000000, 0x7440 | e)); }
inline u32 last_bytes(const float* n) {
  return __byte_perm(__byte_perm(bits_of(n[0]), bits_of(n[1]), 0x0040), __byte_perm(bits_of(n[2]), bits_of(n[3]), 0x0040), 0x5410);
}
#endif
)cuda";

// A block has a tile of BM pixels (rows of x's patches, which are never made) and BN output channels; or a part of its
// k, where there are too few tiles for the GPU: then the sums of the parts meet in memory, and the last part to arrive
// goes on with all of them.
inline constexpr std::string_view byte_conv_body = R"cuda(
  constexpr int CHUNKS = BK / 16, PIECES = BK / PIECE, X_COPIES = BM * PIECES / ALL_THREADS;
  constexpr int STAGE = (BM + BN) * BK, AHEAD = WARP_GROUPS ? STAGES - 2 : STAGES - 1;
  DYNAMIC_SHARED(memory, STAGES * STAGE);
  alignas(64) __shared__ float column_scale[BN];
  alignas(64) __shared__ i32 column_start[BN];
#if TABLE
  __shared__ Y own_table[256];
#endif
#if PARTS
  __shared__ int is_last;
#endif
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, c = lane % 4;
  const int column_tiles = (COLUMNS + BN - 1) / BN, group = blockIdx.z;
  const int first_column = (int)(blockIdx.x % column_tiles) * BN, rows_apart = (int)(gridDim.x / column_tiles) * BM;
#if WARP_GROUPS
  const int warp_row = warp / 4 * M_TILES * 64 + warp % 4 * 16, warp_column = 0;
  constexpr int TILE_ROWS = 64;
#else
  const int warp_row = warp / WARPS_N * M_TILES * 16, warp_column = warp % WARPS_N * N_TILES * 8;
  constexpr int TILE_ROWS = 16;
#endif

  const int all_steps = (K + BK - 1) / BK;
#if PARTS
  const int first_step = all_steps * (int)blockIdx.y / (int)gridDim.y, last_step = all_steps * (int)(blockIdx.y + 1) / (int)gridDim.y;
#else
  const int first_step = 0, last_step = all_steps;
#endif
  const int steps = last_step - first_step;
  const X* own_x = x + (i64)group * CHANNELS;
  const int piece = threadIdx.x % PIECES * PIECE, own_row = threadIdx.x / PIECES, chunk = threadIdx.x % CHUNKS;
  // What a thread copies are rows that are APART: multiples of 8, so that column_of and place_of of the sum are sums.
  constexpr int X_APART = ALL_THREADS / PIECES, W_APART = ALL_THREADS / CHUNKS;
  const int w_row = threadIdx.x / CHUNKS, w_place = BM * BK + place_of(w_row, chunk), x_place = place_of(own_row, piece / 16) + piece % 16;
  const u8* first_w = w + ((i64)group * COLUMN_ROOM + first_column + column_of(w_row)) * K_ROOM + first_step * BK + chunk * 16;
  const int first_k = first_step * BK + piece;
#if !POINTS
  const u32 padding = x_zero ? (u8)*x_zero * 0x01010101u : 0;
  const int first_channel = first_k % CHANNELS, first_y = first_k / CHANNELS / KERNEL_WIDTH, first_x = first_k / CHANNELS % KERNEL_WIDTH;
  int places[X_COPIES], channel, tap_y, tap_x;
#endif
  // What is fetched next: step after step of one tile after the other.
  int pixels[X_COPIES], k, steps_left, next_row = (int)(blockIdx.x / column_tiles) * BM, next = 0;
  const u8* own_w;
  auto begin_tile = [&] {
    own_w = first_w;
    k = first_k;
    steps_left = steps;
#if !POINTS
    channel = first_channel;
    tap_y = first_y;
    tap_x = first_x;
#endif
#pragma unroll
    for (int i = 0; i < X_COPIES; ++i) {
      const int row = next_row + own_row + i * X_APART;
#if POINTS
      pixels[i] = row < ROWS ? row : 0;
#else
      const int line = LINE_OF(row), image = IMAGE_OF(line);
      const int y_at = (line - image * OUT_HEIGHT) * STRIDE_Y - TOP, x_at = (row - line * OUT_WIDTH) * STRIDE_X - LEFT;
      pixels[i] = (image * HEIGHT + y_at) * WIDTH + x_at;
      places[i] = row < ROWS ? (int)((u32)y_at << 16 | (u32)(x_at & 0xffff)) : (int)0x80000000;
#endif
    }
    next_row += rows_apart;
  };
  auto fetch = [&] {
    u8* to = memory + next * STAGE;
    const bool is_tap = k < K;
    auto place = [&](int i) {
      return to + (X_APART % 8 == 0 ? x_place + i * X_APART * BK : place_of(own_row + i * X_APART, piece / 16) + piece % 16);
    };
#if POINTS
#pragma unroll
    for (int i = 0; i < X_COPIES; ++i) copy_async_if<PIECE>(place(i), own_x + k + (i64)pixels[i] * PIXEL, is_tap);
#else
    const int down = tap_y * DILATION_Y, right = tap_x * DILATION_X, shift = down * WIDTH + right;
    auto is_inside = [&](int i) {
      return (bool)(((u32)((places[i] >> 16) + down) < (u32)HEIGHT) & ((u32)((i32)(i16)places[i] + right) < (u32)WIDTH));
    };
#pragma unroll
    for (int i = 0; i < X_COPIES; ++i)
      copy_async_if<PIECE>(place(i), own_x + channel + (i64)(pixels[i] + shift) * PIXEL, is_tap & is_inside(i));
#endif
#pragma unroll
    for (int i = 0; i < BN / W_APART; ++i)
      copy_async<16>(to + w_place + i * W_APART * BK, own_w + column_of(i * W_APART) * K_ROOM);
#if !POINTS
#pragma unroll
    for (int i = 0; i < X_COPIES; ++i)
      if (!is_inside(i)) *(Pack<u32, PIECE / 4>*)place(i) = repeated<PIECE / 4>(padding);
    channel += BK;
    while (channel >= CHANNELS) {
      channel -= CHANNELS;
      if (++tap_x == KERNEL_WIDTH) {
        tap_x = 0;
        ++tap_y;
      }
    }
#endif
    own_w += BK;
    k += BK;
    next = next + 1 == STAGES ? 0 : next + 1;
  };
  auto fetch_next = [&] {
    if (steps_left == 0 && next_row < ROWS) begin_tile();
    if (steps_left > 0) {
      fetch();
      --steps_left;
    }
    copy_async_commit();
  };
  int first_row = next_row;
  begin_tile();
#pragma unroll 1
  for (int s = 0; s < AHEAD; ++s) fetch_next();

  // What the results need is fetched meanwhile.
#if TABLE
  for (int i = threadIdx.x; i < 256; i += ALL_THREADS) own_table[i] = table[i];
#endif
  for (int j = threadIdx.x; j < BN; j += ALL_THREADS) {
    const int n = first_column + j, column = group * COLUMNS + n;
    float scale = 0;
    u32 start = 0;
    if (n < COLUMNS) {
      if (x_zero) start -= (u32)(i32)*x_zero * (u32)column_sums[group * COLUMN_ROOM + n];
#if BIAS == 1
      start += (u32)bias[column];
#endif
#if RESULT != 1
      scale = times(*x_scale, w_scale[ONE_SCALE ? 0 : column]);
#endif
#if RESULT == 0
      scale /= *y_scale;
#endif
    }
    column_scale[j] = scale;
    column_start[j] = (i32)start;
  }
#if RESULT == 0 && ADDED
  __shared__ float own_factor, added_factor;
  if (threadIdx.x == ALL_THREADS - 1) {
    own_factor = *y_scale / *sum_scale;
    added_factor = *added_scale / *sum_scale;
  }
#endif
  int stage = 0;
  constexpr int WIDE = PACK < SIDE ? PACK : SIDE, SIDES = N_TILES * 2 / SIDE;
#if RESULT == 0
  typedef CodesOf<WIDE>::type Wide;
#else
  typedef Pack<Y, WIDE> Wide;
#endif
  auto row_at = [&](int i, int half) { return first_row + warp_row + i * TILE_ROWS + half * 8 + g; };
  auto column_at = [&](int q) { return first_column + warp_column + q * SIDE * 4 + c * SIDE; };
#if ADDED
  typedef Pack<u32, SIDE / 4> Others;
  auto others_of = [&](int row, int column) {
    Others others;
    const Y* from = added + (ADDED == 1 ? row * OUTPUTS : 0) + (i64)group * COLUMNS + column;
#pragma unroll
    for (int e = 0; e < SIDE; e += WIDE)
      if (row < ROWS && column + e < COLUMNS) *(Wide*)((u8*)&others + e) = *(const Wide*)(from + e);
    return others;
  };
#if WARP_GROUPS
  Others fetched[M_TILES][2][SIDES];
#pragma unroll
  for (int i = 0; i < M_TILES; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int q = 0; q < SIDES; ++q) fetched[i][half][q] = others_of(row_at(i, half), column_at(q));
#endif
#endif
#if RESULT == 0
  const i32 zero = y_zero ? (i32)*y_zero : 0;
  const float low = (float)(LowestCode<Y>::value - zero), high = low + 255;
#if ADDED
  const i32 added_zero_code = added_zero ? (i32)*added_zero : 0, sum_zero_code = sum_zero ? (i32)*sum_zero : 0;
  const float added_start = 8388608.0f + (float)(added_zero_code - LowestCode<Y>::value);
  const float last_zero = (float)sum_zero_code, last_low = (float)(LowestCode<Y>::value - sum_zero_code);
#else
  const float last_zero = (float)zero;
#endif
#endif

#pragma unroll 1
  for (; first_row < ROWS; first_row += rows_apart) {
  alignas(16) i32 sums[M_TILES][N_TILES][4];
#pragma unroll
  for (int i = 0; i < M_TILES; ++i)
#pragma unroll
    for (int j = 0; j < N_TILES; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[i][j][e] = 0;

#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    copy_async_wait<AHEAD - 1>();
#if WARP_GROUPS
    group_sees_copies();
    group_wait<1>();
#endif
    __syncthreads();
    const u8 *rows = memory + stage * STAGE, *columns = rows + BM * BK;
#if WARP_GROUPS
    constexpr int N = BN < 128 ? BN : 128;
    const Matrix left = matrix_at<BK>(rows + warp / 4 * M_TILES * 64 * BK), right = matrix_at<BK>(columns);
    group_begin();
#pragma unroll
    for (int f = 0; f < BK / 32; ++f)
#pragma unroll
      for (int i = 0; i < M_TILES; ++i)
#pragma unroll
        for (int j = 0; j < BN; j += N)
          group_64xNx32<X, W, N, BK>(sums[i] + j / 8, left + (i * 64 * BK + f * 32), right + (j * BK + f * 32));
    group_commit();
    fetch_next();
#else
    fetch_next();
#pragma unroll
    for (int f = 0; f < BK / 32; ++f) {
      u32 a[M_TILES][4], b[N_TILES / 2][4];
#pragma unroll
      for (int i = 0; i < M_TILES; ++i)
        load_matrix_x4(a[i], rows + place_of(warp_row + i * 16 + lane % 16, f * 2 + lane / 16));
#pragma unroll
      for (int j = 0; j < N_TILES / 2; ++j)
        load_matrix_x4(b[j], columns + place_of(warp_column + j * 16 + lane / 16 * 8 + lane % 8, f * 2 + lane / 8 % 2));
#pragma unroll
      for (int i = 0; i < M_TILES; ++i)
#pragma unroll
        for (int j = 0; j < N_TILES; ++j)
          mma_16x8x32<X, W>(sums[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
#endif
    stage = stage + 1 == STAGES ? 0 : stage + 1;
  }
#if WARP_GROUPS
  group_wait<0>();
#pragma unroll
  for (int i = 0; i < M_TILES; ++i)
#pragma unroll
    for (int j = 0; j < N_TILES; ++j) group_done(sums[i][j]);
#endif

#if PARTS
  const i64 tile = (i64)blockIdx.z * gridDim.x + blockIdx.x;
  typedef Pack<i32, 4> Sums;
  Sums* meeting = (Sums*)partial + tile * gridDim.y * (BM * BN / 4) + threadIdx.x;
#pragma unroll
  for (int i = 0; i < M_TILES; ++i)
#pragma unroll
    for (int j = 0; j < N_TILES; ++j)
      meeting[(i64)blockIdx.y * (BM * BN / 4) + (i * N_TILES + j) * ALL_THREADS] = *(const Sums*)sums[i][j];
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    is_last = atomicAdd(arrived + tile, 1u) == gridDim.y - 1;
    if (is_last) arrived[tile] = 0;
  }
  __syncthreads();
  if (!is_last) return;
  __threadfence();
#pragma unroll 1
  for (int part = 0; part < (int)gridDim.y; ++part) {
    if (part == (int)blockIdx.y) continue;
#pragma unroll
    for (int i = 0; i < M_TILES; ++i)
#pragma unroll
      for (int j = 0; j < N_TILES; ++j) {
        const Sums others = meeting[(i64)part * (BM * BN / 4) + (i * N_TILES + j) * ALL_THREADS];
#pragma unroll
        for (int e = 0; e < 4; ++e) sums[i][j][e] = (i32)((u32)sums[i][j][e] + (u32)others.v[e]);
      }
  }
#endif

#pragma unroll
  for (int q = 0; q < SIDES; ++q) {
    const int own = warp_column + q * SIDE * 4 + c * SIDE, column = column_at(q);
    const Pack<i32, SIDE>& starts = *(const Pack<i32, SIDE>*)(column_start + own);
    const Pack<float, SIDE>& scales = *(const Pack<float, SIDE>*)(column_scale + own);
#pragma unroll
    for (int i = 0; i < M_TILES; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = row_at(i, half);
        if (row >= ROWS) continue;
#if RESULT == 0
        Pack<u32, SIDE / 4> results;
        float numbers[SIDE];
#else
        Pack<Y, SIDE> results;
#endif
#if ADDED && WARP_GROUPS
        const Others others = fetched[i][half][q];
        fetched[i][half][q] = others_of(row + rows_apart, column);
#elif ADDED
        const Others others = others_of(row, column);
#endif
#pragma unroll
        for (int e = 0; e < SIDE; ++e) {
          const i32 sum = (i32)((u32)sums[i][q * (SIDE / 2) + e / 2][half * 2 + e % 2] + (u32)starts.v[e]);
#if RESULT == 0
          // As code_of has it, in floats: the code is the last byte of a number without fractions.
          float number = plus(fmin(fmax(times((float)sum, scales.v[e]), low), high), NO_FRACTIONS);
#if ADDED
          const u32 four = others.v[e / 4] ^ (LowestCode<Y>::value < 0 ? 0x80808080u : 0u);
          const float both = plus(times(plus(number, -NO_FRACTIONS), own_factor),
                                  times(plus(number_of_byte(four, e % 4), -added_start), added_factor));
          number = plus(fmin(fmax(both, last_low), last_low + 255), NO_FRACTIONS);
#endif
          numbers[e] = plus(number, last_zero);
#elif RESULT == 1
          results.v[e] = sum;
#else
          float number = times((float)sum, scales.v[e]);
#if BIAS == 2
          if (column + e < COLUMNS) number = plus(number, (float)widen(bias[group * COLUMNS + column + e]));
#endif
          results.v[e] = narrow<Y>(number);
#endif
        }
#if RESULT == 0
#pragma unroll
        for (int e = 0; e < SIDE; e += 4) {
#if TABLE
          results.v[e / 4] = 0;
#pragma unroll
          for (int i = 0; i < 4; ++i) results.v[e / 4] |= (u32)(u8)own_table[bits_of(numbers[e + i]) & 0xff] << i * 8;
#else
          results.v[e / 4] = last_bytes(numbers + e);
#endif
        }
#endif
        Y* to = y + row * OUTPUTS + (i64)group * COLUMNS + column;
#pragma unroll
        for (int e = 0; e < SIDE; e += WIDE)
          if (column + e < COLUMNS) *(Wide*)(to + e) = *(const Wide*)((const Y*)results.v + e);
      }
  }
  }
)cuda";

}  // namespace tenon::ops
