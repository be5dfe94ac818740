#include "ops/attention/cuda_groups.h"

#include <fmt/format.h>
#include <algorithm>

#include "base/rounding.h"
#include "ops/attention/cuda_groups_text.h"
#include "ops/cuda_support/group_products.h"
#include "ops/cuda_support/tensor_cores.h"

namespace tenon::ops {
namespace {

// Rows lie in slabs of ROW_BYTES of each, one slab after the other, 16 bytes at a time in places that differ from row
// to row. Those from row `last` on are zeros, as is what is behind `size` elements. By 128 threads, each of which has
// the same place in rows whose numbers differ by a multiple of 8.
constexpr std::string_view fetch_rows = R"cuda(
template <int ROWS, int SLABS> inline void fetch_rows(u8* to, const Q* from, int step, int size, int first, int last) {
  constexpr int CHUNKS = ROW_BYTES / 16, AT_ONCE = 128 / (SLABS * CHUNKS);
  const int begin = threadIdx.x / (SLABS * CHUNKS), chunk = threadIdx.x % (SLABS * CHUNKS);
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

// All keys at once; their values arrive while scores are computed.
constexpr std::string_view one_tile = R"cuda(
  const Q *own_keys = k + K_AT(b, kv, 0), *own_values = values + V_AT(b, kv, 0);
  if (first_key < last_key) {
    fetch_rows<64, K_SLABS>(queries, q + Q_AT(b, h, first_query), (int)v[9], (int)K_SIZE, 0,
                            least(64, (int)QUERIES - first_query));
    fetch_rows<TILE, K_SLABS>(keys_of(0), own_keys, (int)v[12], (int)K_SIZE, first_key, last_key);
    copy_async_commit();
    fetch_rows<TILE, V_SLABS>(values_of(0), own_values, (int)v[15], (int)V_SIZE, first_key, last_key);
    copy_async_commit();
    if (COLUMNS)
      for (int at = threadIdx.x; at < TILE; at += 128) addends[0][at] = addend_of(first_key + at);
    copy_async_wait<1>();
    group_sees_copies();
    __syncthreads();
    u32 weights[TILE / 16][4];
    float scores[TILE / 8][4], fading[2];
    group_begin();
    multiply_keys(scores, keys_of(0));
    group_wait<0>();
    scores_done(scores);
    hide(scores, first_key, 0);
    raise(scores, fading);
    weights_of(weights, scores);
    copy_async_wait<0>();
    group_sees_copies();
    __syncthreads();
    group_begin();
    multiply_values(weights, values_of(0), false);
    group_wait<0>();
    sums_done();
  } else {
    clear_sums();
  }
)cuda";

// Whether keys that follow an even number of others begin at multiples of two elements. `numbers` are those of
// attention_text::common: steps of the mask are 19 to 22, its keys 23.
bool reads_mask_in_pairs(const Tensor& mask, const std::vector<int64_t>& numbers) {
  const bool are_even =
      std::ranges::all_of(numbers.begin() + 19, numbers.begin() + 22, [](int64_t step) { return step % 2 == 0; });
  return are_even && numbers[23] % 2 == 0 &&
         reinterpret_cast<uintptr_t>(mask.raw()) % static_cast<uintptr_t>(bits_of(mask.type()) / 4) == 0;
}

int64_t largest_size(const AttentionSizes& n) { return std::max(n.k_size, n.v_size); }

}  // namespace

bool takes_group_attention(KernelRun& run, const AttentionSizes& n) {
  constexpr int64_t least_queries = 16, most_elements = 128, most_keys = int64_t{1} << 30;
  const int64_t longest_step = largest_size(n) * n.kv_heads * (n.packed ? 3 : 1);
  const ElementType type = run.input(0).type();
  const bool takes_type = type == ElementType::float16 || type == ElementType::bfloat16;
  const bool has_no_mask = run.has_input(n.mask()) && run.input(n.mask()).elements() == 0;
  auto is_aligned = [&](size_t i) { return reinterpret_cast<uintptr_t>(n.address(run, i)) % 16 == 0; };
  return takes_type && n.tensor(run, 2).type() == type && n.past == 0 && n.queries >= least_queries && n.keys > 0 &&
         !has_no_mask && std::max(n.keys, longest_step * n.queries) <= most_keys && std::min(n.k_size, n.v_size) > 0 &&
         largest_size(n) <= most_elements && n.k_size % 8 == 0 && n.v_size % 8 == 0 && is_aligned(0) && is_aligned(1) &&
         is_aligned(2) && reinterpret_cast<uintptr_t>(run.output(0).raw()) % 16 == 0 &&
         queue_of(run).gpu().major() == 9;
}

bool has_one_tile(const AttentionSizes& n) { return round_up(n.keys, 16) <= (largest_size(n) > 64 ? 128 : 208); }

GroupTile::GroupTile(const AttentionSizes& n, int64_t tile_keys, int64_t row)
    : keys(tile_keys), row_bytes(row), k_slabs(divide_up(n.k_size, row / 2)), v_slabs(divide_up(n.v_size, row / 2)) {}

cuda::Grid GroupTile::grid(const AttentionSizes& n, int64_t stages, int64_t groups) const {
  cuda::Grid grid;
  grid.blocks[0] = static_cast<unsigned>(n.batch * n.q_heads * divide_up(n.queries, 64));
  grid.threads = static_cast<unsigned>(groups * 128);
  grid.shared_bytes = static_cast<unsigned>(shared_bytes(stages));
  return grid;
}

std::string GroupTile::text(KernelRun& run, const AttentionSizes& n, const std::vector<int64_t>& numbers,
                            int64_t stages) const {
  const bool has_mask = run.has_input(n.mask());
  const bool has_column_mask = has_mask && numbers[21] == 0 && numbers[22] == 1;
  const bool has_mask_pairs = has_mask && numbers[22] == 1 && reads_mask_in_pairs(run.input(n.mask()), numbers);
  return fmt::format("#define WARP_GROUPS 1\n#define TILE {}\n#define STAGES {}\n", keys, stages) +
         fmt::format("#define ROW_BYTES {}\n#define K_SLABS {}\n#define V_SLABS {}\n#define K_STEPS {}\n", row_bytes,
                     k_slabs, v_slabs, divide_up(n.k_size, 16)) +
         fmt::format("#define COLUMN_MASK {}\n#define MASK_PAIRS {}\n#define SHARED_BYTES {}\n",
                     has_column_mask ? 1 : 0, has_mask_pairs ? 1 : 0, shared_bytes(stages)) +
         std::string(tensor_core_functions) + group_products_text({keys}, {row_bytes / 2});
}

CudaBlocks group_attention(KernelRun& run, const AttentionSizes& n, std::string_view pointers,
                           const std::string& functions, const std::vector<int64_t>& numbers) {
  const GroupTile tile(n, round_up(n.keys, 16), largest_size(n) <= 32 ? 64 : 128);
  // Scores of all keys are in registers, then half as many weights and the sums.
  constexpr int64_t registers_of_lane = 512;
  const int64_t registers = std::max(tile.keys / 2, tile.keys / 4 + round_up(n.v_size, 32) / 2) + 40;
  const int64_t at_once = std::min<int64_t>(largest_size(n) > 64 ? 2 : 8, registers_of_lane / registers);
  return {run,
          pointers,
          fmt::format("{}{}{}{}", tile.text(run, n, numbers, 1), functions, attention_text::mask_pair, fetch_rows),
          fmt::format("{}{}{}", attention_text::groups_begin, one_tile, attention_text::groups_end),
          numbers,
          tile.grid(n, 1, 1),
          static_cast<int>(at_once)};
}

}  // namespace tenon::ops
