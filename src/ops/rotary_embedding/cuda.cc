#include "ops/cuda_support/arguments.h"
#include "ops/cuda_support/loop.h"

namespace tenon::ops {
namespace {

// A thread for each two elements that are rotated, and for each two after them.
CudaLoop prepare(KernelRun& run, const Tensor& x) {
  const ir::Node& node = run.node();
  const Shape& shape = x.shape();
  const bool flat = shape.rank() == 3;
  const int64_t heads = flat ? node.int_attribute("num_heads", 0) : shape[1], sequence = shape[flat ? 1 : 2],
                size = flat ? shape[2] / heads : shape[3], rotated = node.int_attribute("rotary_embedding_dim", 0),
                half = (rotated == 0 ? size : rotated) / 2, pairs = (size + 1) / 2;
  const bool interleaved = node.int_attribute("interleaved", 0) != 0;
  // v: pairs of a row, elements of a row, rotated pairs, heads, sequence, positions of the caches. Rows are in the
  // order of memory.
  std::string text = "const i64 pair = i % v[0], row = i / v[0], b = row / (v[3] * v[4]);\n    ";
  text += flat ? "const i64 s = row / v[3] % v[4];\n    " : "const i64 s = row % v[4];\n    ";
  text +=
      "const T* from = x + row * v[1]; T* to = y + row * v[1];\n    "
      "if (pair >= v[2]) {\n      to[2 * pair] = from[2 * pair];\n"
      "      if (2 * pair + 1 < v[1]) to[2 * pair + 1] = from[2 * pair + 1];\n      continue;\n    }\n    ";
  if (run.has_input(3))
    text +=
        "i64 at = positions[b * v[4] + s];\n    at = (at < 0 ? 0 : at >= v[5] ? v[5] - 1 : at) * v[2] + pair;\n    ";
  else
    text += "const i64 at = (b * v[4] + s) * v[2] + pair;\n    ";
  text += interleaved ? "const i64 one = 2 * pair, two = 2 * pair + 1;\n    "
                      : "const i64 one = pair, two = pair + v[2];\n    ";
  text +=
      "const A c = widen(cosines[at]), s1 = widen(sines[at]), a = widen(from[one]), d = widen(from[two]);\n    "
      "to[one] = narrow<T>(c * a - s1 * d);\n    to[two] = narrow<T>(s1 * a + c * d);";
  return {run,
          x.elements() / size * pairs,
          "const T* x, const T* cosines, const T* sines, const i64* positions, T* y",
          text,
          {pairs, size, half, heads, sequence, run.input(1).dim(0)},
          types_text(x.type())};
}

void run_rotary_embedding(KernelRun& run) {
  const Tensor& x = run.input(0);
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  const auto& loop = run.per_plan<CudaLoop>([&] { return prepare(run, x); });
  loop.run(run, {x.raw(), run.input(1).raw(), run.input(2).raw(), input_address(run, 3), y.raw()});
}

}  // namespace

void cuda_rotary_embedding(CudaKernels& list) {
  list.add_simple("RotaryEmbedding", run_rotary_embedding, {.types = types::floats | TypeSet{ElementType::int64}});
}

}  // namespace tenon::ops
