#include "ops/attention/cuda_groups.h"

#include <fmt/format.h>

#include "base/rounding.h"
#include "ops/attention/cuda_groups_text.h"
#include "ops/cuda_support/group_products.h"
#include "ops/cuda_support/packs.h"
#include "ops/cuda_support/tensor_cores.h"

namespace tenon::ops {
namespace {

// Rows lie in slabs of ROW_BYTES of each, one slab after the other, 16 bytes at a time in places that differ from row
// to row. Those from row `last` on are zeros, as is what is behind `size` elements. By so many threads, each of which
// has the same place in rows whose numbers differ by a multiple of 8.
constexpr std::string_view fetch_halves = R"cuda(
template <int ROWS, int SLABS, int BY>
inline void fetch_rows(u8* to, const Q* from, int step, int size, int first, int last) {
  constexpr int CHUNKS = ROW_BYTES / 16, AT_ONCE = BY / (SLABS * CHUNKS);
  const int thread = threadIdx.x % BY, begin = thread / (SLABS * CHUNKS), chunk = thread % (SLABS * CHUNKS);
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
inline void fetch_values(u8* to, const Q* from, int step, int size, int first, int last) {
  fetch_rows<TILE, V_PARTS, GROUPS * 128>(to, from, step, size, first, last);
}
)cuda";

// The same of float32, rounded to TF32. Values lie as attention_text::float_parts says; a warp has eight keys and 16
// columns at a time, so that reads are half lines, and lanes write to places of 32 banks. READS_AT_ONCE reads of a
// thread are under way together.
constexpr std::string_view fetch_floats = R"cuda(
typedef Pack<float, 4> Four;
template <int ROWS, int SLABS, int BY>
inline void fetch_rows(u8* to, const float* from, int step, int size, int first, int last) {
  constexpr int CHUNKS = ROW_BYTES / 16, AT_ONCE = BY / (SLABS * CHUNKS);
  const int thread = threadIdx.x % BY, begin = thread / (SLABS * CHUNKS), chunk = thread % (SLABS * CHUNKS);
  u8* target = to + (chunk / CHUNKS * ROWS + begin) * ROW_BYTES + (chunk % CHUNKS ^ begin % 8) * 16;
  const float* source = from + (i64)(first + begin) * step + chunk * 4;
  const int rows = chunk * 4 < size ? last - first : 0;
#pragma unroll READS_AT_ONCE
  for (int i = 0; i < (ROWS + AT_ONCE - 1) / AT_ONCE; ++i) {
    const int row = begin + i * AT_ONCE;
    if (ROWS % AT_ONCE > 0 && row >= ROWS) break;
    const Four own = read_or_zeros((const Four*)source, row < rows);
    *(Pack<u32, 4>*)target = {tf32_of(own.v[0]), tf32_of(own.v[1]), tf32_of(own.v[2]), tf32_of(own.v[3])};
    target += AT_ONCE * ROW_BYTES;
    source += AT_ONCE * step;
  }
}
inline void fetch_values(u8* to, const float* from, int step, int size, int first, int last) {
  constexpr int ACROSS = (V_PART + 15) / 16, PIECES = TILE / 8 * ACROSS, WARPS = GROUPS * 4;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, key = lane % 8, turn = lane / 16 * 2;
#pragma unroll READS_AT_ONCE
  for (int round = 0; round < (PIECES + WARPS - 1) / WARPS; ++round) {
    const int i = warp + round * WARPS;
    if (PIECES % WARPS > 0 && i >= PIECES) break;
    const int eight = i / ACROSS, row = first + eight * 8 + key, column = i % ACROSS * 16 + lane / 8 * 4;
    const Four own = read_or_zeros((const Four*)(from + (i64)row * step + column), row < last && column < size);
    const float turned[4] = {turn ? own.v[2] : own.v[0], turn ? own.v[3] : own.v[1], turn ? own.v[0] : own.v[2],
                             turn ? own.v[1] : own.v[3]};
    u8* target = to + (eight / 4 * V_PART + column) * 128 + key / 2 * 4;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int own_column = k ^ turn, chunk = eight % 4 * 2 + key % 2 ^ (column % 8 + own_column);
      if (V_PART % 16 == 0 || column < V_PART) *(u32*)(target + own_column * 128 + chunk * 16) = tf32_of(turned[k]);
    }
  }
}
)cuda";

// All keys at once. Values arrive while scores are computed, or, where they replace keys, after that; the next queries
// while these are multiplied.
constexpr std::string_view one_tile = R"cuda(
  const int turns = least(TURNS, ((int)QUERIES - block_query + GROUPS * 64 - 1) / (GROUPS * 64));
  auto fetch_queries = [&](int turn) {
    const int first = first_query_of(turn);
    fetch_rows<64, K_SLABS, 128>(queries_of(turn), q + Q_AT(b, h, least(first, last_query)), (int)v[9], (int)K_SIZE, 0,
                                 least(64, (int)QUERIES - first));
  };
  auto fetch_own_values = [&]() {
    fetch_values(values_of(0), values + V_AT(b, kv, 0), (int)v[15], (int)V_SIZE, first_key, last_key);
  };
  const bool sees_keys = first_key < last_key;
  if (sees_keys) {
    fetch_queries(0);
    fetch_rows<TILE, K_SLABS, GROUPS * 128>(keys_of(0), k + K_AT(b, kv, 0), (int)v[12], (int)K_SIZE, first_key, last_key);
    copy_async_commit();
    if (!VALUES_REPLACE_KEYS) fetch_own_values();
    copy_async_commit();
    if (COLUMNS)
      for (int at = threadIdx.x; at < TILE; at += GROUPS * 128) addends[0][at] = addend_of(first_key + at);
  } else {
    clear_sums();
  }
  auto work_on = [&](int turn) {
    if (turn > 0) go_to(turn);
    if (!sees_keys) return store_sums();
    if (turn == 0) {
      copy_async_wait<1>();
      group_sees_copies();
    }
    __syncthreads();
    u32 weights[WEIGHT_STEPS][4];
    float scores[TILE / 8][4], fading[2];
    group_begin();
    multiply_keys(scores, queries_of(turn), keys_of(0));
    if (TURNS > 1) {
      if (turn + 1 < turns) fetch_queries(turn + 1);
      copy_async_commit();
    }
    group_wait<0>();
    scores_done(scores);
    if (VALUES_REPLACE_KEYS) {
      __syncthreads();
      fetch_own_values();
    }
    // Of zeros, the scores of warps without queries are weights.
    if (!HAS_IDLE_WARPS || warp_query <= last_query) {
      hide(scores, first_key, 0);
      raise(scores, fading);
    }
    weights_of(weights, scores);
    if (turn == 0) {
      copy_async_wait<Q_ROOMS - 1>();
      group_sees_copies();
      __syncthreads();
    }
    group_begin();
    multiply_values(weights, values_of(0), false);
    group_wait<0>();
    sums_done();
    // Before what is stored, which it would wait for.
    if (turn + 1 < turns) {
      copy_async_wait<0>();
      group_sees_copies();
    }
    store_sums();
  };
#if TURNS == 1
  work_on(0);
#else
#pragma unroll 1
  for (int turn = 0; turn < turns; ++turn) work_on(turn);
#endif
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

// How one tile of keys is worked on: blocks, and how many of them a processor has room for.
struct GroupLayout {
  GroupTile tile;
  int64_t at_once;
};

// Of all ways to give queries to blocks the one that is done first. Keys and values are fetched once for each block,
// and blocks that find room on the GPU run at the same time.
class GroupLayouts {
 public:
  GroupLayouts(KernelRun& run, const AttentionSizes& n)
      : n_(n),
        type_(run.input(0).type()),
        processors_(queue_of(run).gpu().processors()),
        tiles_(divide_up(n.queries, int64_t{64})) {}

  GroupLayout best() const {
    GroupLayout result = is_float() ? best_of_floats() : best_of_halves();
    // More registers for each where there are few.
    result.at_once = std::min(result.at_once, divide_up(blocks(result), processors_));
    return result;
  }

 private:
  bool is_float() const { return type_ == ElementType::float32; }
  int64_t blocks(const GroupLayout& layout) const {
    return n_.batch * n_.q_heads * divide_up(n_.queries, layout.tile.block_queries());
  }

  GroupLayout layout(const GroupWork& work) const {
    // Scores of all keys are in registers, then the weights, two in one of half precision, and the sums.
    constexpr int64_t registers_of_lane = 512, shared_of_processor = 227 << 10, reserved = 1 << 10;
    const int64_t keys = round_up(n_.keys, 16), weights = keys / (is_float() ? 2 : 4), others = is_float() ? 30 : 40;
    const int64_t registers = std::max(keys / 2, weights + round_up(n_.v_size, 32) / 2) + others;
    const GroupTile tile(n_, type_, keys, largest_size(n_) <= 32 && !is_float() ? 64 : 128, work);
    const int64_t room = shared_of_processor / (tile.shared_bytes(1) + reserved);
    const int64_t most = largest_size(n_) > 64 ? 2 : 8;
    return {tile, std::min({most, registers_of_lane / (work.groups * registers), room})};
  }

  GroupLayout best_of_halves() const {
    GroupLayout best = layout({});
    double least = time_of_halves(best);
    for (int64_t turns = 2; turns <= tiles_; ++turns) {
      const GroupLayout own = layout({.turns = turns});
      if (const double time = time_of_halves(own); own.at_once > 0 && time < least) best = own, least = time;
    }
    return best;
  }
  // Fetching takes as long as 0.4 tiles of queries.
  double time_of_halves(const GroupLayout& layout) const {
    const int64_t rounds = divide_up(blocks(layout), processors_ * std::max<int64_t>(1, layout.at_once));
    return static_cast<double>(rounds) * (0.4 + static_cast<double>(layout.tile.work.turns));
  }

  // Floats are rounded on their way. Microseconds as of 208 keys of 64 elements.
  GroupLayout best_of_floats() const {
    // Where all blocks run at the same time, and one of two groups fetches for both where there is more than one on a
    // processor.
    const GroupLayout one = layout({}), two = layout({.groups = 2});
    if (blocks(one) <= processors_) return one;
    if (tiles_ > 1 && blocks(two) <= processors_ * two.at_once) return two;
    if (blocks(one) <= processors_ * one.at_once) return one;
    GroupLayout best = with_most_room(1);
    double least = 4 + 6.6 * rounds_alone(best);
    // A block of two groups has a processor for itself.
    for (int64_t turns = 2; turns <= divide_up(tiles_, int64_t{2}); ++turns) {
      const GroupLayout own = layout({.groups = 2, .turns = turns});
      const double time = rounds_alone(own) * (5 + 6.5 * static_cast<double>(turns));
      if (own.at_once > 0 && time < least) best = own, least = time;
    }
    // Two groups that share keys and values are worth it if there is room for two blocks nonetheless, and work for all
    // processors.
    const GroupLayout shared = with_most_room(2);
    const bool shares = tiles_ > 1 && shared.at_once >= 2 && blocks(shared) >= 2 * processors_;
    return best.tile.work.turns == 1 && shares ? shared : best;
  }
  // Values take the place of the keys where that leaves room for another block.
  GroupLayout with_most_room(int64_t groups) const {
    const GroupLayout both_stay = layout({.groups = groups});
    const GroupLayout replaced = layout({.groups = groups, .values_replace_keys = true});
    return replaced.at_once > both_stay.at_once ? replaced : both_stay;
  }
  double rounds_alone(const GroupLayout& layout) const {
    return static_cast<double>(divide_up(blocks(layout), processors_));
  }

  const AttentionSizes& n_;
  ElementType type_;
  int64_t processors_, tiles_;
};

}  // namespace

bool takes_group_attention(KernelRun& run, const AttentionSizes& n, bool allow_tf32) {
  constexpr int64_t least_queries = 16, most_keys = int64_t{1} << 30;
  const int64_t longest_step = largest_size(n) * n.kv_heads * (n.packed ? 3 : 1);
  const ElementType type = run.input(0).type();
  const bool is_half = type == ElementType::float16 || type == ElementType::bfloat16;
  const bool takes_type = is_half || (type == ElementType::float32 && allow_tf32 && has_one_tile(n));
  const int64_t most_elements = is_half ? 128 : 64, read_at_once = 128 / bits_of(type);
  const bool has_no_mask = run.has_input(n.mask()) && run.input(n.mask()).elements() == 0;
  auto is_aligned = [&](size_t i) { return reinterpret_cast<uintptr_t>(n.address(run, i)) % 16 == 0; };
  return takes_type && n.tensor(run, 2).type() == type && n.past == 0 && n.queries >= least_queries && n.keys > 0 &&
         !has_no_mask && std::max(n.keys, longest_step * n.queries) <= most_keys && std::min(n.k_size, n.v_size) > 0 &&
         largest_size(n) <= most_elements && n.k_size % read_at_once == 0 && n.v_size % read_at_once == 0 &&
         is_aligned(0) && is_aligned(1) && is_aligned(2) &&
         reinterpret_cast<uintptr_t>(run.output(0).raw()) % 16 == 0 && queue_of(run).gpu().major() == 9;
}

bool has_one_tile(const AttentionSizes& n) { return round_up(n.keys, 16) <= (largest_size(n) > 64 ? 128 : 208); }

GroupTile::GroupTile(const AttentionSizes& n, ElementType type, int64_t tile_keys, int64_t row,
                     const GroupWork& block_work)
    : is_float(type == ElementType::float32), keys(tile_keys), row_bytes(row), work(block_work) {
  constexpr int64_t bytes_of_step = 32, keys_of_slab = 32, slab_bytes = 128;
  const int64_t bytes = bits_of(type) / 8;
  k_slabs = divide_up(n.k_size * bytes, row);
  k_steps = divide_up(n.k_size * bytes, bytes_of_step);
  k_bytes = k_slabs * keys * row;
  v_part = is_float ? round_up(n.v_size, 8) : row / bytes;
  v_parts = divide_up(n.v_size, v_part);
  v_bytes = is_float ? divide_up(keys, keys_of_slab) * v_part * slab_bytes : v_parts * keys * row;
}

cuda::Grid GroupTile::grid(const AttentionSizes& n, int64_t stages, int64_t others) const {
  cuda::Grid grid;
  grid.blocks[0] = static_cast<unsigned>(n.batch * n.q_heads * divide_up(n.queries, block_queries()));
  grid.threads = static_cast<unsigned>((work.groups + others) * 128);
  grid.shared_bytes = static_cast<unsigned>(shared_bytes(stages));
  return grid;
}

std::string GroupTile::text(KernelRun& run, const AttentionSizes& n, const std::vector<int64_t>& numbers,
                            int64_t stages) const {
  const bool has_mask = run.has_input(n.mask());
  const bool has_column_mask = has_mask && numbers[21] == 0 && numbers[22] == 1;
  const bool has_mask_pairs = has_mask && numbers[22] == 1 && reads_mask_in_pairs(run.input(n.mask()), numbers);
  return fmt::format(
             "#define WARP_GROUPS 1\n#define GROUPS {}\n#define TURNS {}\n#define TILE {}\n#define STAGES {}\n"
             "#define ROW_BYTES {}\n",
             work.groups, work.turns, keys, stages, row_bytes) +
         fmt::format("#define K_SLABS {}\n#define K_STEPS {}\n#define V_PARTS {}\n#define V_PART {}\n", k_slabs,
                     k_steps, v_parts, v_part) +
         fmt::format("#define V_BYTES {}\n#define VALUES_REPLACE_KEYS {}\n#define HAS_IDLE_WARPS {}\n", v_bytes,
                     work.values_replace_keys ? 1 : 0, round_up(n.queries, 16) % (work.groups * 64) > 0 ? 1 : 0) +
         fmt::format("#define COLUMN_MASK {}\n#define MASK_PAIRS {}\n#define SHARED_BYTES {}\n",
                     has_column_mask ? 1 : 0, has_mask_pairs ? 1 : 0, shared_bytes(stages)) +
         std::string(tensor_core_functions) +
         (is_float ? tf32_group_products_text({keys}, {v_part}) : group_products_text({keys}, {v_part}));
}

CudaBlocks group_attention(KernelRun& run, const AttentionSizes& n, std::string_view pointers,
                           const std::string& functions, const std::vector<int64_t>& numbers) {
  const GroupLayout layout = GroupLayouts(run, n).best();
  return {run,
          pointers,
          fmt::format("#define READS_AT_ONCE {}\n{}{}{}{}{}{}", layout.at_once * layout.tile.work.groups <= 2 ? 32 : 8,
                      layout.tile.text(run, n, numbers, 1), functions, attention_text::mask_pair,
                      layout.tile.is_float ? attention_text::float_parts : attention_text::half_parts,
                      layout.tile.is_float ? read_or_zeros : std::string_view(),
                      layout.tile.is_float ? fetch_floats : fetch_halves),
          fmt::format("{}{}", attention_text::group_functions, one_tile),
          numbers,
          layout.tile.grid(n, 1, 0),
          static_cast<int>(layout.at_once)};
}

}  // namespace tenon::ops
