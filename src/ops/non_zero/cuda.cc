#include "base/fail.h"
#include "ops/cuda_support/element_text.h"
#include "ops/cuda_support/strided_copy.h"

namespace tenon::ops {
namespace {

constexpr int64_t threads = 256, each = 16, chunk = threads * each;

// The places of all set elements in order: a block counts those of a chunk, one adds up the counts, and then each block
// writes its own. Every thread has `each` elements in a row.
constexpr const char* count_text = R"(
// The sum of what the threads before this one have, and of all in `total`.
inline i64 sum_before(i64 own, i64& total) {
  __shared__ i64 sums[256];
  sums[threadIdx.x] = own;
  __syncthreads();
  for (int step = 1; step < 256; step *= 2) {
    const i64 more = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;
    __syncthreads();
    sums[threadIdx.x] += more;
    __syncthreads();
  }
  total = sums[255];
  return sums[threadIdx.x] - own;
}
)";

std::string is_set_text(ElementType type) {
  const std::string_view text = cuda::type_text(type);
  const bool is_half = type == ElementType::float16 || type == ElementType::bfloat16;
  return fmt::format("typedef {} T;\ninline bool is_set(T x) {{ return {}; }}\n", text,
                     is_half                           ? "(x.bits & 0x7fff) != 0"
                     : types::complexes.contains(type) ? "x.re != 0 || x.im != 0"
                                                       : "x != 0");
}

struct PlacesPlan {
  int64_t chunks;
  std::shared_ptr<void> offsets;  // of each chunk, then the total
  CudaBlocks count, add_up, write;
};

// Which elements of a tensor of this type are set. `store` are statements that write place `i` as number `at` of all,
// to whatever `pointers` names.
PlacesPlan find_places(KernelRun& run, ElementType type, int64_t size, std::string_view pointers,
                       std::string_view store, std::vector<int64_t> numbers) {
  const int64_t chunks = (size + chunk - 1) / chunk;
  const std::string functions = is_set_text(type) + count_text;
  cuda::Grid grid;
  grid.threads = threads;
  const cuda::Grid one = grid;
  grid.blocks[0] = static_cast<unsigned>(chunks);
  numbers.insert(numbers.begin(), {size, chunks});
  const std::string first = fmt::format(
      "const i64 first = (i64)blockIdx.x * {} + threadIdx.x * {}, last = first + {} < v[0] ? first + {} : v[0];\n"
      "  i64 own = 0, total = 0;\n  for (i64 i = first; i < last; ++i) own += is_set(x[i]);\n",
      chunk, each, each, each);
  return {chunks, queue_of(run).allocate((chunks + 1) * 8),
          CudaBlocks(run, "const T* x, i64* offsets", functions,
                     first + "  sum_before(own, total);\n  if (threadIdx.x == 0) offsets[blockIdx.x] = total;", numbers,
                     grid),
          CudaBlocks(run, "i64* offsets", functions,
                     R"(i64 before = 0;
  for (i64 begin = 0; begin < v[1]; begin += 256) {
    const i64 i = begin + threadIdx.x, own = i < v[1] ? offsets[i] : 0;
    i64 total = 0;
    const i64 sum = sum_before(own, total);
    if (i < v[1]) offsets[i] = before + sum;
    before += total;
    __syncthreads();
  }
  if (threadIdx.x == 0) offsets[v[1]] = before;)",
                     numbers, one),
          CudaBlocks(run, fmt::format("const T* x, const i64* offsets, {}", pointers), functions,
                     first +
                         "  i64 at = offsets[blockIdx.x] + sum_before(own, total);\n"
                         "  for (i64 i = first; i < last; ++i) {\n    if (!is_set(x[i])) continue;\n    " +
                         std::string(store) + "\n    ++at;\n  }",
                     numbers, grid)};
}

int64_t count_places(KernelRun& run, const PlacesPlan& plan, const void* x) {
  plan.count.run(run, {x, plan.offsets.get()});
  plan.add_up.run(run, {plan.offsets.get()});
  int64_t count = 0;
  cuda::GpuQueue& queue = queue_of(run);
  queue.download(&count, static_cast<const int64_t*>(plan.offsets.get()) + plan.chunks, sizeof count);
  return count;
}

void run_non_zero(KernelRun& run) {
  const Tensor& x = run.input(0);
  if (x.elements() == 0) {
    run.output(0, ElementType::int64, Shape{x.rank(), 0});
    return;
  }
  const auto& plan = run.per_plan<PlacesPlan>([&] {
    // The output's columns are known when they are written.
    std::string store = "i64 rest = i;\n    ";
    for (int axis = x.rank() - 1; axis >= 0; --axis)
      store += fmt::format("y[offsets[v[1]] * {} + at] = rest % v[{}]; rest /= v[{}];\n    ", axis, 2 + axis, 2 + axis);
    return find_places(run, x.type(), x.elements(), "i64* y", store, {x.shape().begin(), x.shape().end()});
  });
  const int64_t count = count_places(run, plan, x.raw());
  Tensor& y = run.output(0, ElementType::int64, Shape{x.rank(), count});
  if (y.elements() > 0) plan.write.run(run, {x.raw(), plan.offsets.get(), y.raw()});
}

struct CompressPlan {
  PlacesPlan places;
  std::shared_ptr<void> kept;  // the places
};

// A condition may be longer than what it selects from, if it selects nothing there.
void refuse_beyond(KernelRun& run, const int64_t* last, int64_t size) {
  int64_t place = 0;
  queue_of(run).download(&place, last, sizeof place);
  if (place >= size)
    fail(ErrorCode::invalid_value, "the condition selects index {}, there are {} elements", place, size);
}

void run_compress(KernelRun& run) {
  const Tensor &x = run.input(0), &condition = run.input(1);
  const ir::Node& node = run.node();
  const bool is_flat = !node.attribute("axis");
  const int64_t given = node.int_attribute("axis", 0);
  const int axis = is_flat ? 0 : static_cast<int>(given < 0 ? given + x.rank() : given);
  const int64_t size = is_flat ? x.elements() : x.dim(axis);
  const int64_t outer = is_flat ? 1 : x.shape().elements(0, axis),
                inner = is_flat ? 1 : x.shape().elements(axis + 1, x.rank());
  int64_t count = 0;
  const CompressPlan* plan = nullptr;
  if (condition.elements() > 0) {
    plan = &run.per_plan<CompressPlan>([&] {
      return CompressPlan{
          find_places(run, ElementType::boolean, condition.elements(), "i64* kept", "kept[at] = i;", {}),
          queue_of(run).allocate(condition.elements() * 8)};
    });
    count = count_places(run, plan->places, condition.raw());
  }
  if (count > 0) {
    plan->places.write.run(run, {condition.raw(), plan->places.offsets.get(), plan->kept.get()});
    if (condition.elements() > size)
      refuse_beyond(run, static_cast<const int64_t*>(plan->kept.get()) + count - 1, size);
  }
  Shape shape = is_flat ? Shape{count} : x.shape();
  if (!is_flat) shape[axis] = count;
  Tensor& y = run.output(0, x.type(), shape);
  if (y.elements() == 0) return;
  const std::string_view type = moved_type_text(x.type());
  const CudaLoop loop(run, outer * count * inner, fmt::format("const {0}* x, const i64* kept, {0}* y", type),
                      "const i64 row = i / v[0], from = kept[row % v[1]];\n    "
                      "y[i] = x[(row / v[1] * v[2] + from) * v[0] + i % v[0]];",
                      {inner, count, size});
  loop.run(run, {x.raw(), plan->kept.get(), y.raw()});
}

}  // namespace

void cuda_non_zero(CudaKernels& list) {
  list.add_simple("NonZero", run_non_zero, {.types = types::numbers | types::bools | types::complexes});
  list.add_simple("Compress", run_compress, {.types = cuda_movable});
}

}  // namespace tenon::ops
