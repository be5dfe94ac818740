#include "base/fail.h"
#include "ops/cuda_support/element_text.h"
#include "ops/cuda_support/strided_copy.h"

namespace tenon::ops {
namespace {

int64_t elements_of(const Shape& shape, int first, int last) { return shape.elements(first, last); }

int axis_of(const ir::Node& node, int rank) {
  const int64_t axis = node.int_attribute("axis", 0);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

// There is nothing that any index could name.
void refuse_empty(const Tensor& x) {
  if (x.elements() == 0)
    fail(ErrorCode::invalid_value, "there is an index into {}, which has no elements", x.shape().to_string());
}

// An index counts from the end when it is negative; one that is out of range reads the nearest element.
constexpr const char* place_text = R"(template <typename T> inline i64 place(T given, i64 size) {
  const i64 index = given < 0 ? (i64)given + size : (i64)given;
  return index < 0 ? 0 : index >= size ? size - 1 : index;
})";

// Blocks of `inner` elements as units that are moved at once.
struct Units {
  int64_t each;  // for each block
  std::string_view type;

  Units(const Tensor& x, const Tensor& y, int64_t inner) {
    const int64_t bytes = inner * bits_of(x.type()) / 8, unit = unit_for(bytes, {x.raw(), y.raw()});
    each = bytes / unit;
    type = unit_text(unit);
  }
};

void run_gather(KernelRun& run) {
  const Tensor &x = run.input(0), &picks = run.input(1);
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  const auto& loop = run.per_plan<CudaLoop>([&] {
    refuse_empty(x);
    const int axis = axis_of(run.node(), x.rank());
    const Units units(x, y, elements_of(x.shape(), axis + 1, x.rank()));
    const int64_t count =
        y.bytes() / (x.bytes() / x.elements() * elements_of(x.shape(), axis + 1, x.rank())) * units.each;
    const std::string body = fmt::format(
        "typedef {} I; const I own = (I)v[0], picked = (I)v[1], unit = (I)i % own, row = (I)i / own;\n    "
        "const i64 index = place(picks[row % picked], v[2]);\n    "
        "y[i] = x[((i64)(row / picked) * v[2] + index) * v[0] + unit];",
        index_text(count));
    return CudaLoop(run, count,
                    fmt::format("const {}* x, {}picks, {}* y", units.type, const_pointer_to(picks), units.type), body,
                    {units.each, picks.elements(), x.dim(axis)}, place_text);
  });
  loop.run(run, {x.raw(), picks.raw(), y.raw()});
}

void run_gather_elements(KernelRun& run) {
  const Tensor &x = run.input(0), &picks = run.input(1);
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  const auto& loop = run.per_plan<CudaLoop>([&] {
    refuse_empty(x);
    const int axis = axis_of(run.node(), x.rank()), rank = x.rank();
    std::vector<int64_t> numbers(y.shape().begin(), y.shape().end());
    const std::vector<int64_t> steps = steps_of(x.shape());
    numbers.insert(numbers.end(), steps.begin(), steps.end());
    numbers.push_back(rank == 0 ? 1 : x.dim(axis));
    std::string body = coordinates_in(index_text(y.elements()), rank, 0), at = "0";
    for (int a = 0; a < rank; ++a)
      at += a == axis ? fmt::format(" + place(picks[i], v[{}]) * v[{}]", 2 * rank, rank + a)
                      : fmt::format(" + c{} * v[{}]", a, rank + a);
    body += fmt::format("y[i] = x[{}];", at);
    const std::string_view type = moved_type_text(x.type());
    return CudaLoop(run, y.elements(), fmt::format("const {}* x, {}picks, {}* y", type, const_pointer_to(picks), type),
                    body, numbers, place_text);
  });
  loop.run(run, {x.raw(), picks.raw(), y.raw()});
}

void run_gather_nd(KernelRun& run) {
  const Tensor &x = run.input(0), &picks = run.input(1);
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  const auto& loop = run.per_plan<CudaLoop>([&] {
    refuse_empty(x);
    const int first = static_cast<int>(run.node().int_attribute("batch_dims", 0));
    const int depth = static_cast<int>(picks.dim(picks.rank() - 1));
    const int64_t inner = elements_of(x.shape(), first + depth, x.rank()), rows = y.elements() / inner;
    const Units units(x, y, inner);
    // v: units of a row, rows of a batch, units of a batch, then size and step of each axis that is indexed.
    std::vector<int64_t> numbers{units.each, rows / elements_of(x.shape(), 0, first),
                                 elements_of(x.shape(), first, x.rank()) / inner * units.each};
    const std::vector<int64_t> steps = steps_of(x.shape());
    for (int k = first; k < first + depth; ++k) {
      numbers.push_back(x.dim(k));
      numbers.push_back(steps[static_cast<size_t>(k)] / inner * units.each);
    }
    const std::string body = fmt::format(
        "typedef {} I; const I unit = (I)i % (I)v[0], row = (I)i / (I)v[0];\n    "
        "i64 at = (i64)(row / (I)v[1]) * v[2] + unit;\n    "
        "for (int k = 0; k < {}; ++k) at += place(picks[(i64)row * {} + k], v[3 + 2 * k]) * v[4 + 2 * k];\n    y[i] = "
        "x[at];",
        index_text(rows * units.each), depth, depth);
    return CudaLoop(run, rows * units.each,
                    fmt::format("const {}* x, {}picks, {}* y", units.type, const_pointer_to(picks), units.type), body,
                    numbers, place_text);
  });
  loop.run(run, {x.raw(), picks.raw(), y.raw()});
}

}  // namespace

void cuda_gather(CudaKernels& list) {
  list.add_simple("Gather", run_gather, {.types = cuda_movable});
  list.add_simple("GatherElements", run_gather_elements, {.types = cuda_movable});
  list.add_simple("GatherND", run_gather_nd, {.types = cuda_movable});
}

}  // namespace tenon::ops
