// The text of functions by which a warp multiplies small matrices, and fetches them while it works on others. For GPUs
// of compute capability 8.0 and more.
#pragma once

#include <string_view>

namespace tenon::ops {

// Of 32 lanes that all call a function together. What lane l holds, with g = l / 4 and c = l % 4:
//   mma_16x8x16: d += a * b for a of 16x16, b of 16x8 elements of type T.
//     a[r]: row g + r % 2 * 8, columns 2c + r / 2 * 8 and the next. b<r>: column g, rows 2c + r * 8 and the next.
//     d[x]: row g + x / 2 * 8, column 2c + x % 2.
//   mma_16x8x8_tf32: the same for a of 16x8, b of 8x8 numbers of tf32_of.
//     a[r]: row g + r % 2 * 8, column c + r / 2 * 4. b<r>: column g, row c + r * 4.
//   mma_16x8x32: d += a * b in 32 bits for a of 16x32, b of 32x8 bytes of types A and B, i8 or u8.
//     a[r]: row g + r % 2 * 8, columns 4c + r / 2 * 16 and the next three. b<r>: column g, rows 4c + r * 16 and the
//     next three. d[x]: as above.
//   load_matrix_x4: four matrices of 8x8 elements of two bytes from shared memory; lane l gives the address of row
//     l % 8 of matrix l / 8. r[i]: of matrix i, row g, columns 2c and 2c + 1; transposed, column g, rows 2c and 2c + 1.
//   store_matrix_x2_transposed: two such matrices to shared memory, columns of what lanes hold as rows there. On GPUs
//   of
//     9.0; lanes from 16 on give no address.
//   copy_async_16: 16 bytes to shared memory, zeros where not `valid` (`from` must be an address nonetheless). They are
//     there after copy_async_wait<N>, which waits for all that was committed but the last N times. copy_async<4>, <8>
//     and <16> copy so many; copy_async_if leaves the memory as it is where not `is_copied`.
//   group_64xNx32: d += a * b in 32 bits for a of 64x32, b of 32xN bytes of types A and B, by four warps together, on
//     GPUs of 9.0, where WARP_GROUPS is defined as 1. a and b are matrix_at<ROW>(address in shared memory), plus some
//     bytes: 32 bytes of each row or column, of which each has ROW bytes, 64 or 128. The processor works an address out
//     slowly, but adds bytes to it in one step, so products of a loop have it in common. 16 at a time are in places
//     that differ from row to row: chunk c of row r at c ^ r % 8 of 128 bytes, at c ^ r / 2 % 4 of 64; eight rows start
//     at a multiple of their bytes. Warp w of the group has rows 16w to 16w + 15: d[j] as of mma_16x8x32 for columns
//     8j to 8j + 7. Every thread calls
//     group_sees_copies when what it copied is there, and then the block waits for all; group_begin before,
//     group_commit after several products. group_wait<N> waits for all but the last N of these; then group_done for
//     every d before that is read.
//   rounded_to_multiply(x): x as it is multiplied: a float is rounded to TF32, others stay.
//   store_pair(to, two): two floats as elements side by side.
// DYNAMIC_SHARED(name, bytes) declares the shared memory that a grid asks for by its shared_bytes.
inline constexpr std::string_view tensor_core_functions = R"cuda(
#ifdef TENON_EMULATED
#define DYNAMIC_SHARED(name, bytes) alignas(1024) static u8 name[bytes]
struct Matrix {
  const u8* place;
  Matrix operator+(int bytes) const { return {place + bytes}; }
  operator const u8*() const { return place; }
};
template <int ROW> inline Matrix matrix_at(const u8* p) { return {p}; }
template <int STEP> inline Matrix plain_at(const u8* p) { return {p}; }
template <int SLAB> inline Matrix slabs_at(const u8* p) { return {p}; }
template <typename T> inline u32 pair_of(float low, float high) {
  return (u32)narrow<T>(low).bits | (u32)narrow<T>(high).bits << 16;
}
inline float exp2_of(float x) { return exp2(x); }
inline u32 tf32_of(float x) {
  const u32 b = bits_of(x);
  return (b & 0x7f800000) == 0x7f800000 ? b : (b + 0x1000) & 0xffffe000;
}
#else
#define DYNAMIC_SHARED(name, bytes) extern __shared__ __align__(1024) u8 name[]
template <typename T> struct TensorCore;
#define TENSOR_CORE(T, NAME)                                                                                       \
  template <> struct TensorCore<T> {                                                                               \
    static void multiply(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {                                       \
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." NAME "." NAME                                          \
                   ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                          \
                   : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                                \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));                                \
    }                                                                                                              \
    static u32 pair(float low, float high) {                                                                       \
      u32 r;                                                                                                       \
      asm("cvt.rn." NAME "x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));                                    \
      return r;                                                                                                    \
    }                                                                                                              \
  };
TENSOR_CORE(f16, "f16")
TENSOR_CORE(bf16, "bf16")
template <typename T> inline void mma_16x8x16(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  TensorCore<T>::multiply(d, a, b0, b1);
}
// Two numbers as elements side by side.
template <typename T> inline u32 pair_of(float low, float high) { return TensorCore<T>::pair(low, high); }
inline float exp2_of(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
// A number rounded to 11 significant bits.
inline u32 tf32_of(float x) {
  u32 r;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
  return r;
}
inline void mma_16x8x8_tf32(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
               "{%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <typename A, typename B> struct ByteCore;
#define BYTE_CORE(A, B, NAMES)                                                                                     \
  template <> struct ByteCore<A, B> {                                                                              \
    static void multiply(i32 (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {                                         \
      asm volatile("mma.sync.aligned.m16n8k32.row.col.s32." NAMES                                                  \
                   ".s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                          \
                   : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                                                \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));                                \
    }                                                                                                              \
  };
BYTE_CORE(i8, i8, "s8.s8")
BYTE_CORE(u8, i8, "u8.s8")
BYTE_CORE(i8, u8, "s8.u8")
BYTE_CORE(u8, u8, "u8.u8")
template <typename A, typename B> inline void mma_16x8x32(i32 (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  ByteCore<A, B>::multiply(d, a, b0, b1);
}
inline u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }
#if WARP_GROUPS
#define FOUR(i) "+r"(d[i][0]), "+r"(d[i][1]), "+r"(d[i][2]), "+r"(d[i][3])
template <typename A, typename B, int N> struct GroupCore;
#define GROUP_64(A, B, NAMES)                                                                                   \
  template <> struct GroupCore<A, B, 64> {                                                                      \
    static void multiply(i32 (*d)[4], u64 a, u64 b) {                                                           \
      asm volatile("{.reg .pred p; setp.eq.u32 p, 1, 1; wgmma.mma_async.sync.aligned.m64n64k32.s32." NAMES " {" \
                   "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                     \
                   "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"             \
                   "}, %32, %33, p;}"                                                                           \
                   : FOUR(0), FOUR(1), FOUR(2), FOUR(3), FOUR(4), FOUR(5), FOUR(6), FOUR(7)                     \
                   : "l"(a), "l"(b));                                                                           \
    }                                                                                                           \
  };
#define GROUP_128(A, B, NAMES)                                                                                   \
  template <> struct GroupCore<A, B, 128> {                                                                      \
    static void multiply(i32 (*d)[4], u64 a, u64 b) {                                                            \
      asm volatile("{.reg .pred p; setp.eq.u32 p, 1, 1; wgmma.mma_async.sync.aligned.m64n128k32.s32." NAMES " {" \
                   "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                      \
                   "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "            \
                   "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "            \
                   "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"              \
                   "}, %64, %65, p;}"                                                                            \
                   : FOUR(0), FOUR(1), FOUR(2), FOUR(3), FOUR(4), FOUR(5), FOUR(6), FOUR(7),                     \
                     FOUR(8), FOUR(9), FOUR(10), FOUR(11), FOUR(12), FOUR(13), FOUR(14), FOUR(15)                \
                   : "l"(a), "l"(b));                                                                            \
    }                                                                                                            \
  };
#define GROUP_CORES(A, B, NAMES) GROUP_64(A, B, NAMES) GROUP_128(A, B, NAMES)
GROUP_CORES(i8, i8, "s8.s8")
GROUP_CORES(u8, i8, "u8.s8")
GROUP_CORES(i8, u8, "s8.u8")
GROUP_CORES(u8, u8, "u8.u8")
struct Matrix {
  u64 place;
  Matrix operator+(int bytes) const { return {place + (u32)(bytes >> 4)}; }
};
template <int ROW> inline Matrix matrix_at(const u8* p) {
  return {(u64)(shared_address(p) >> 4) | (u64)1 << 16 | (u64)(ROW * 8 / 16) << 32 | (u64)(ROW == 128 ? 1 : 2) << 62};
}
template <typename A, typename B, int N, int ROW> inline void group_64xNx32(i32 (*d)[4], Matrix a, Matrix b) {
  GroupCore<A, B, N>::multiply(d, a.place, b.place);
}
inline void group_sees_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
inline void group_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
inline void group_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> inline void group_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(N) : "memory"); }
inline void group_done(i32 (&d)[4]) {
  asm volatile("" : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) :: "memory");
}
#endif
inline void load_matrix_x4(u32 (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(row)) : "memory");
}
inline void load_matrix_x4_transposed(u32 (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(row)) : "memory");
}
#if WARP_GROUPS
inline void store_matrix_x2_transposed(const u32 (&r)[2], void* row) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};"
               :: "r"(shared_address(row)), "r"(r[0]), "r"(r[1]) : "memory");
}
#endif
inline void copy_async_16(void* to, const void* from, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :: "r"(shared_address(to)), "l"(__cvta_generic_to_global(from)), "r"(valid ? 16 : 0) : "memory");
}
template <int BYTES> inline void copy_async(void* to, const void* from) {
  if (BYTES == 16)
    copy_async_16(to, from, true);
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
                 :: "r"(shared_address(to)), "l"(__cvta_generic_to_global(from)), "n"(BYTES) : "memory");
}
template <int BYTES> inline void copy_async_if(void* to, const void* from, bool is_copied) {
  if (BYTES == 16)
    asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p cp.async.cg.shared.global [%0], [%1], 16;}"
                 :: "r"(shared_address(to)), "l"(__cvta_generic_to_global(from)), "r"((u32)is_copied) : "memory");
  else
    asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p cp.async.ca.shared.global [%0], [%1], %3;}"
                 :: "r"(shared_address(to)), "l"(__cvta_generic_to_global(from)), "r"((u32)is_copied), "n"(BYTES) : "memory");
}
inline void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> inline void copy_async_wait() { asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory"); }
#endif
template <typename T> inline T rounded_to_multiply(T x) { return x; }
inline float rounded_to_multiply(float x) { return float_of(tf32_of(x)); }
template <typename T> inline void store_pair(T* to, const float (&two)[2]) { *(u32*)to = pair_of<T>(two[0], two[1]); }
inline void store_pair(float* to, const float (&two)[2]) { *(Pack<float, 2>*)to = {two[0], two[1]}; }
)cuda";

}  // namespace tenon::ops
