#include <fmt/format.h>
#include <algorithm>

#include "ops/cuda_support/arguments.h"
#include "ops/cuda_support/element_text.h"
#include "provider/output_shape.h"

namespace tenon::ops {
namespace {

// The most entries that are sorted in shared memory.
constexpr int64_t most_shared = 2048;

constexpr std::string_view functions_text = R"cuda(
// Entries are ordered by key, the larger the better, and equal ones by place.
inline u64 key_of(float x) { return ordered(x); }
inline u64 key_of(double x) { return ordered(x); }
inline u64 key_of(i64 x) { return ordered(x); }
inline u64 key_of(u64 x) { return ordered(x); }
inline u64 key_of(u32 x) { return ordered(x); }
template <typename E> inline u64 key_of(E x) { return ordered((i32)x); }
inline u64 key_at(const T* x) { return LARGEST ? key_of(widen(*x)) : ~key_of(widen(*x)) & KEY_MASK; }

inline bool before(u64 a, u32 a_place, u64 b, u32 b_place) { return a != b ? a > b : a_place < b_place; }

inline void sort(u64* keys, u32* places, i64 room) {
  for (i64 size = 2; size <= room; size *= 2) {
    for (i64 step = size / 2; step > 0; step /= 2) {
      __syncthreads();
      for (i64 i = threadIdx.x; i < room / 2; i += blockDim.x) {
        const i64 a = 2 * i - (i & (step - 1)), b = a + step;
        const bool descends = (a & size) == 0;
        if (before(keys[b], places[b], keys[a], places[a]) != descends) continue;
        const u64 key = keys[a];
        keys[a] = keys[b];
        keys[b] = key;
        const u32 place = places[a];
        places[a] = places[b];
        places[b] = place;
      }
    }
  }
  __syncthreads();
}
)cuda";

// What all kernels know of a line, and how they give out what they sorted.
constexpr std::string_view begin_text = R"cuda(
  const i64 size = v[0], count = v[1], inner = v[2], lines = v[3];
  for (i64 line = blockIdx.x; line < lines; line += gridDim.x) {
    __syncthreads();
    const T* const from = x + (line / inner * size * inner + line % inner);
    const i64 to = line / inner * count * inner + line % inner;
)cuda";
constexpr std::string_view end_text = R"cuda(
    for (i64 i = threadIdx.x; i < count; i += blockDim.x) {
      if (values) values[to + i * inner] = from[places[i] * inner];
      if (indices) indices[to + i * inner] = places[i];
    }
  }
)cuda";

// Lines that fit are sorted as a whole.
constexpr std::string_view sort_text = R"cuda(
    for (i64 i = threadIdx.x; i < ROOM; i += blockDim.x) {
      keys[i] = i < size ? key_at(from + i * inner) : 0;
      places[i] = i < size ? (u32)i : 0xffffffffu;
    }
    sort(keys, places, ROOM);
)cuda";

// Of longer ones, the byte that the last one wanted has is found, from the highest byte of key and place on, until all
// that share these bytes are wanted. Then those that are not behind are sorted.
constexpr std::string_view select_text = R"cuda(
    u64 key_mask = 0, key_prefix = 0;
    u32 place_mask = 0, place_prefix = 0;  // of the place's complement
    i64 wanted = count;
    for (int digit = 0; digit < KEY_BYTES + 4; ++digit) {
      for (int i = threadIdx.x; i < 256; i += blockDim.x) counts[i] = 0;
      __syncthreads();
      const bool of_key = digit < KEY_BYTES;
      const int shift = of_key ? 8 * (KEY_BYTES - 1 - digit) : 8 * (KEY_BYTES + 3 - digit);
      for (i64 i = threadIdx.x; i < size; i += blockDim.x) {
        const u64 key = key_at(from + i * inner);
        if ((key & key_mask) != key_prefix || (~(u32)i & place_mask) != place_prefix) continue;
        atomicAdd(&counts[of_key ? (int)(key >> shift & 255) : (int)(~(u32)i >> shift & 255)], 1);
      }
      __syncthreads();
      if (threadIdx.x == 0) {
        i64 left = wanted;
        int byte = 255;
        while (byte > 0 && counts[byte] < left) left -= counts[byte--];
        chosen = byte;
        chosen_wanted = left;
      }
      __syncthreads();
      wanted = chosen_wanted;
      if (of_key) {
        key_mask |= (u64)255 << shift;
        key_prefix |= (u64)chosen << shift;
      } else {
        place_mask |= 255u << shift;
        place_prefix |= (u32)chosen << shift;
      }
      const bool is_found = counts[chosen] == wanted;
      __syncthreads();
      if (is_found) break;
    }
    if (threadIdx.x == 0) chosen = 0;
    for (int i = threadIdx.x; i < ROOM; i += blockDim.x) {
      keys[i] = 0;
      places[i] = 0xffffffffu;
    }
    __syncthreads();
    for (i64 i = threadIdx.x; i < size; i += blockDim.x) {
      const u64 key = key_at(from + i * inner), known = key & key_mask;
      if (known < key_prefix || (known == key_prefix && (~(u32)i & place_mask) < place_prefix)) continue;
      const int at = atomicAdd(&chosen, 1);
      if (at >= ROOM) continue;
      keys[at] = key;
      places[at] = (u32)i;
    }
    sort(keys, places, ROOM);
)cuda";

int64_t room_for(int64_t count) {
  int64_t room = 1;
  while (room < count) room *= 2;
  return room;
}

class TopK final : public Kernel {
 public:
  explicit TopK(const NodeInfo& info)
      : axis_(info.node().int_attribute("axis", -1)), largest_(info.node().int_attribute("largest", 1) != 0) {}

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    const Shape shape = output_shape(run, 0);
    const void* values = run.wants_output(0) ? run.output(0, x.type(), shape).raw() : nullptr;
    const void* indices = run.wants_output(1) ? run.output(1, ElementType::int64, shape).raw() : nullptr;
    if (shape.elements() == 0) return;
    const auto& plan = run.per_plan<Plan>([&] { return prepare(run, x, shape); });
    plan.blocks.run(run, {x.raw(), values, indices, plan.keys.get(), plan.places.get()});
  }

 private:
  struct Plan {
    std::shared_ptr<void> keys, places;  // of lines that do not fit into shared memory
    CudaBlocks blocks;
  };

  Plan prepare(KernelRun& run, const Tensor& x, const Shape& shape) const {
    const int axis = static_cast<int>(axis_ < 0 ? axis_ + x.rank() : axis_);
    const int64_t size = x.dim(axis), count = shape[axis], inner = x.shape().elements(axis + 1, x.rank());
    const int64_t lines = x.elements() / size;
    const bool sorts_all = size <= most_shared || count > most_shared, is_shared = !sorts_all || size <= most_shared;
    const int64_t room = room_for(sorts_all ? size : count),
                  blocks = is_shared ? std::min<int64_t>(lines, 1 << 20) : std::min<int64_t>(lines, 132);
    const int key_bytes = bits_of(x.type()) == 64 ? 8 : 4;
    cuda::Grid grid;
    grid.blocks[0] = static_cast<unsigned>(blocks);
    grid.threads = static_cast<unsigned>(sorts_all ? std::clamp<int64_t>(room / 2, 32, is_shared ? 512 : 1024) : 1024);
    const std::string functions =
        fmt::format("typedef {} T;\n#define LARGEST {}\n#define KEY_BYTES {}\n#define KEY_MASK {}\n#define ROOM {}\n",
                    cuda::type_text(x.type()), largest_ ? 1 : 0, key_bytes,
                    key_bytes == 8 ? "~(u64)0" : "(u64)0xffffffffu", is_shared ? std::to_string(room) : "v[4]") +
        std::string(ordered_text()) + std::string(functions_text);
    std::string text = is_shared ? "__shared__ u64 keys[ROOM];\n  __shared__ u32 places[ROOM];\n"
                                 : "u64* const keys = all_keys + (i64)blockIdx.x * ROOM;\n"
                                   "  u32* const places = all_places + (i64)blockIdx.x * ROOM;\n";
    if (!sorts_all) text += "  __shared__ int counts[256], chosen;\n  __shared__ i64 chosen_wanted;\n";
    text += std::string(begin_text) + std::string(sorts_all ? sort_text : select_text) + std::string(end_text);
    Plan plan{nullptr, nullptr,
              CudaBlocks(run, "const T* x, T* values, i64* indices, u64* all_keys, u32* all_places", functions, text,
                         {size, count, inner, lines, room}, grid)};
    if (!is_shared) {
      plan.keys = queue_of(run).gpu().allocate(blocks * room * 8);
      plan.places = queue_of(run).gpu().allocate(blocks * room * 4);
    }
    return plan;
  }

  int64_t axis_;
  bool largest_;
};

}  // namespace

void cuda_top_k(CudaKernels& list) {
  list.add("TopK", [](const NodeInfo& info) { return std::make_unique<TopK>(info); },
           {.types = types::numbers, .host_inputs = {1}});
}

}  // namespace tenon::ops
