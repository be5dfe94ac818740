// The text of the kernel of CudaByteConv.
#pragma once

#include <string_view>

namespace tenon::ops {

// What the names stand for that the text uses:
//   BM, BN, BK: the rows, columns and bytes of k of a block's tile. WARPS_M, WARPS_N: how its warps divide it.
//   STAGES: how many pieces of BK bytes are in shared memory, of which all but one are on their way there.
//   PIECE: the bytes of an image that are copied at once. POINTS: whether every pixel is a row as it is.
//   RESULT: 0: codes, 1: sums, 2: numbers. ADDED: 0: nothing is added to codes, 1: an image, 2: a row. TABLE: whether
//   codes are looked up in the end. PACK: how many elements of y are stored at once. BIAS: 0: none, 1: added to sums,
//   2: added to numbers. X, W, Y, B: the types of x's and w's codes, of y and of the bias.
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
// Where 16 bytes of a row are in shared memory: other rows have them in other banks.
inline int place_of(int row, int chunk) { return row * BK + ((chunk ^ (BK == 64 ? row / 2 % 4 : row % 8)) << 4); }
)cuda";

// A block has a tile of BM pixels (rows of x's patches, which are never made) and BN output channels; or a part of its
// k, where there are too few tiles for the GPU: then the sums of the parts meet in memory, and the last part to arrive
// goes on with them, and leaves zeros for the next run.
inline constexpr std::string_view byte_conv_body = R"cuda(
  constexpr int M_TILES = BM / WARPS_M / 16, N_TILES = BN / WARPS_N / 8, CHUNKS = BK / 16, PIECES = BK / PIECE;
  constexpr int STAGE = (BM + BN) * BK;
  DYNAMIC_SHARED(memory, STAGES * STAGE);
  __shared__ int row_pixel[BM], row_place[BM];
  __shared__ float column_scale[BN];
  __shared__ i32 column_start[BN];
  __shared__ int is_last;
#if TABLE
  __shared__ Y own_table[256];
  for (int i = threadIdx.x; i < 256; i += ALL_THREADS) own_table[i] = table[i];
#endif
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, c = lane % 4;
  const int warp_row = warp / WARPS_N * M_TILES * 16, warp_column = warp % WARPS_N * N_TILES * 8;
  const int column_tiles = (COLUMNS + BN - 1) / BN, group = blockIdx.z;
  const int first_row = (int)(blockIdx.x / column_tiles) * BM, first_column = (int)(blockIdx.x % column_tiles) * BN;

  for (int r = threadIdx.x; r < BM; r += ALL_THREADS) {
    const int row = first_row + r;
    int pixel = row, place = 0;
#if !POINTS
    const int out_y = row / OUT_WIDTH % OUT_HEIGHT, image = row / OUT_WIDTH / OUT_HEIGHT;
    const int y_at = out_y * STRIDE_Y - TOP, x_at = row % OUT_WIDTH * STRIDE_X - LEFT;
    pixel = (image * HEIGHT + y_at) * WIDTH + x_at;
    place = (int)((u32)y_at << 16 | (u32)(x_at & 0xffff));
#endif
    row_pixel[r] = pixel;
    row_place[r] = row < ROWS ? place : (int)0x80000000;
  }
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
  __syncthreads();

  const int all_steps = (K + BK - 1) / BK;
  const int first_step = (int)((i64)all_steps * blockIdx.y / gridDim.y), last_step = (int)((i64)all_steps * (blockIdx.y + 1) / gridDim.y);
  const X* own_x = x + (i64)group * CHANNELS;
  const u8* own_w = w + ((i64)group * COLUMN_ROOM + first_column) * K_ROOM;
  const int piece = threadIdx.x % PIECES * PIECE;
  int k = first_step * BK + piece, channel = k, tap_y = 0, tap_x = 0;
#if !POINTS
  channel = k % CHANNELS;
  tap_y = k / CHANNELS / KERNEL_WIDTH;
  tap_x = k / CHANNELS % KERNEL_WIDTH;
#endif
  auto fetch = [&](int stage, int step) {
    u8* to = memory + stage * STAGE;
    const bool is_tap = k < K;
    const int down = tap_y * DILATION_Y, right = tap_x * DILATION_X, shift = POINTS ? 0 : down * WIDTH + right;
#if PIECE == 16
#pragma unroll
#else
#pragma unroll 4
#endif
    for (int i = 0; i < BM * PIECES / ALL_THREADS; ++i) {
      const int r = threadIdx.x / PIECES + i * (ALL_THREADS / PIECES), place = row_place[r];
      const bool is_inside = is_tap && (POINTS ? place >= 0
                                               : (u32)((place >> 16) + down) < (u32)HEIGHT &&
                                                     (u32)((i32)(i16)place + right) < (u32)WIDTH);
      const X* from = is_inside ? own_x + (i64)(row_pixel[r] + shift) * PIXEL + channel : outside;
      copy_async<PIECE>(to + place_of(r, piece / 16) + piece % 16, from);
    }
#pragma unroll
    for (int i = 0; i < BN * CHUNKS / ALL_THREADS; ++i) {
      const int r = threadIdx.x / CHUNKS + i * (ALL_THREADS / CHUNKS), chunk = threadIdx.x % CHUNKS;
      copy_async<16>(to + BM * BK + place_of(r, chunk), own_w + r * K_ROOM + step * BK + chunk * 16);
    }
    k += BK;
    channel += BK;
#if !POINTS
    while (channel >= CHANNELS) {
      channel -= CHANNELS;
      if (++tap_x == KERNEL_WIDTH) {
        tap_x = 0;
        ++tap_y;
      }
    }
#endif
  };

  i32 sums[M_TILES][N_TILES][4];
#pragma unroll
  for (int i = 0; i < M_TILES; ++i)
#pragma unroll
    for (int j = 0; j < N_TILES; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[i][j][e] = 0;

#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s) {
    if (first_step + s < last_step) fetch(s, first_step + s);
    copy_async_commit();
  }
  int stage = 0;
  for (int step = first_step; step < last_step; ++step) {
    copy_async_wait<STAGES - 2>();
    __syncthreads();
    if (step + STAGES - 1 < last_step) fetch(stage == 0 ? STAGES - 1 : stage - 1, step + STAGES - 1);
    copy_async_commit();
    const u8 *rows = memory + stage * STAGE, *columns = rows + BM * BK;
    stage = stage + 1 == STAGES ? 0 : stage + 1;
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
  }

  if (gridDim.y > 1) {
    const i64 tile = (i64)blockIdx.z * gridDim.x + blockIdx.x;
    i32* meeting = partial + tile * (BM * BN) + threadIdx.x;
#pragma unroll
    for (int i = 0; i < M_TILES; ++i)
#pragma unroll
      for (int j = 0; j < N_TILES; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) atomicAdd(meeting + ((i * N_TILES + j) * 4 + e) * ALL_THREADS, sums[i][j][e]);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
      is_last = atomicAdd(arrived + tile, 1u) == gridDim.y - 1;
      if (is_last) arrived[tile] = 0;
    }
    __syncthreads();
    if (!is_last) return;
    __threadfence();
#pragma unroll
    for (int i = 0; i < M_TILES; ++i)
#pragma unroll
      for (int j = 0; j < N_TILES; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          volatile i32* at = meeting + ((i * N_TILES + j) * 4 + e) * ALL_THREADS;
          sums[i][j][e] = *at;
          *at = 0;
        }
  }

#if RESULT == 0
  constexpr int LINE = BN + 16;
  const i32 zero = y_zero ? (i32)*y_zero : 0;
  copy_async_wait<0>();
  __syncthreads();
#pragma unroll
  for (int i = 0; i < M_TILES; ++i)
#pragma unroll
    for (int j = 0; j < N_TILES; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = warp_row + i * 16 + half * 8 + g, column = warp_column + j * 8 + c * 2;
        Pack<Y, 2> codes;
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const i32 sum = (i32)((u32)sums[i][j][half * 2 + e] + (u32)column_start[column + e]);
          codes.v[e] = (Y)code_of<Y>(times((float)sum, column_scale[column + e]), zero);
        }
        *(Pack<Y, 2>*)(memory + row * LINE + column) = codes;
      }
  __syncthreads();
#if ADDED
  const float own_factor = *y_scale / *sum_scale, added_factor = *added_scale / *sum_scale;
  const i32 added_zero_code = added_zero ? (i32)*added_zero : 0, sum_zero_code = sum_zero ? (i32)*sum_zero : 0;
#endif
  for (int i = threadIdx.x; i < BM * (BN / PACK); i += ALL_THREADS) {
    const int row = i / (BN / PACK), column = i % (BN / PACK) * PACK;
    if (first_row + row >= ROWS || first_column + column >= COLUMNS) continue;
    const i64 at = (i64)group * COLUMNS + first_column + column, to = (first_row + row) * OUTPUTS + at;
    Pack<Y, PACK> codes = *(const Pack<Y, PACK>*)(memory + row * LINE + column);
#if ADDED
    const Pack<Y, PACK> others = *(const Pack<Y, PACK>*)(added + (ADDED == 1 ? to : at));
#pragma unroll
    for (int e = 0; e < PACK; ++e)
      codes.v[e] = (Y)code_of<Y>(plus(times((float)((i32)codes.v[e] - zero), own_factor),
                                   times((float)((i32)others.v[e] - added_zero_code), added_factor)), sum_zero_code);
#endif
#if TABLE
#pragma unroll
    for (int e = 0; e < PACK; ++e) codes.v[e] = own_table[(u8)codes.v[e]];
#endif
    *(Pack<Y, PACK>*)(y + to) = codes;
  }
#else
#pragma unroll
  for (int i = 0; i < M_TILES; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first_row + warp_row + i * 16 + half * 8 + g;
      if (row >= ROWS) continue;
#pragma unroll
      for (int j = 0; j < N_TILES; ++j) {
        const int own = warp_column + j * 8 + c * 2, column = first_column + own;
        Pack<Y, 2> results;
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const i32 sum = (i32)((u32)sums[i][j][half * 2 + e] + (u32)column_start[own + e]);
#if RESULT == 1
          results.v[e] = sum;
#else
          float number = times((float)sum, column_scale[own + e]);
#if BIAS == 2
          if (column + e < COLUMNS) number = plus(number, (float)widen(bias[group * COLUMNS + column + e]));
#endif
          results.v[e] = narrow<Y>(number);
#endif
        }
        Y* to = y + row * OUTPUTS + (i64)group * COLUMNS + column;
        if (PACK >= 2) {
          if (column < COLUMNS) *(Pack<Y, 2>*)to = results;
        } else {
          if (column < COLUMNS) to[0] = results.v[0];
          if (column + 1 < COLUMNS) to[1] = results.v[1];
        }
      }
    }
#endif
)cuda";

}  // namespace tenon::ops
