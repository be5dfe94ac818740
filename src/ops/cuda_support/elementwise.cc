#include "ops/cuda_support/elementwise.h"

#include <algorithm>

#include "base/fail.h"
#include "ops/cuda_support/packs.h"

namespace tenon::ops {

using cuda::type_text;

struct CudaElementwise::Prepared {
  cuda::Function function;
  cuda::Grid grid;
  std::vector<int64_t> sizes;  // how many packs, then sizes and strides as the kernel has them
};

namespace {

// The output's axes as few as can be: those that lie one after the other in all tensors are one.
struct Axes {
  std::vector<int64_t> sizes;                 // innermost last
  std::vector<std::vector<int64_t>> strides;  // of each input, in elements; 0 where it is repeated
};

Axes collapse(const Shape& y, const std::vector<const Tensor*>& inputs) {
  Axes axes;
  axes.strides.resize(inputs.size());
  std::vector<std::vector<int64_t>> strides;
  for (const Tensor* x : inputs) {
    std::vector<int64_t> own(static_cast<size_t>(y.rank()), 0);
    int64_t stride = 1;
    for (int axis = x->rank() - 1; axis >= 0; --axis) {
      if (x->dim(axis) != 1) own[static_cast<size_t>(axis + y.rank() - x->rank())] = stride;
      stride *= x->dim(axis);
    }
    strides.push_back(std::move(own));
  }
  for (int axis = 0; axis < y.rank(); ++axis) {
    if (y[axis] == 1) continue;
    const auto a = static_cast<size_t>(axis);
    bool joins = !axes.sizes.empty();
    for (size_t i = 0; joins && i < inputs.size(); ++i) joins = axes.strides[i].back() == strides[i][a] * y[axis];
    if (joins) {
      axes.sizes.back() *= y[axis];
    } else {
      axes.sizes.push_back(y[axis]);
      for (auto& own : axes.strides) own.push_back(0);
    }
    for (size_t i = 0; i < inputs.size(); ++i) axes.strides[i].back() = strides[i][a];
  }
  if (axes.sizes.empty()) {
    axes.sizes.push_back(1);
    for (auto& own : axes.strides) own.push_back(0);
  }
  return axes;
}

// How many elements are read and written at once: up to 16 bytes of the largest type.
int64_t pack_of(const Axes& axes, const Tensor& y, const std::vector<const Tensor*>& inputs) {
  int64_t largest = bits_of(y.type()) / 8;
  for (const Tensor* x : inputs) largest = std::max<int64_t>(largest, bits_of(x->type()) / 8);
  auto fits = [&](int64_t pack) {
    if (axes.sizes.back() % pack != 0 || alignment_of({y.raw()}) < pack * bits_of(y.type()) / 8) return false;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (axes.strides[i].back() == 0) continue;
      if (alignment_of({inputs[i]->raw()}) < pack * bits_of(inputs[i]->type()) / 8) return false;
      for (size_t axis = 0; axis + 1 < axes.sizes.size(); ++axis) {
        if (axes.strides[i][axis] % pack != 0) return false;
      }
    }
    return true;
  };
  int64_t pack = std::min<int64_t>(8, 16 / largest);
  while (pack > 1 && !fits(pack)) pack /= 2;
  return pack;
}

}  // namespace

CudaElementwise::Prepared CudaElementwise::prepare(KernelRun& run, const Tensor& y) const {
  std::vector<const Tensor*> inputs;
  for (size_t i = 0; i < run.input_count(); ++i) {
    if (run.has_input(i)) inputs.push_back(&run.input(i));
  }
  const Axes axes = collapse(y.shape(), inputs);
  const int64_t pack = pack_of(axes, y, inputs), packs = y.elements() / pack;
  const size_t rank = axes.sizes.size();
  const char* index = y.elements() < int64_t{1} << 31 ? "u32" : "u64";

  std::string text = fmt::format("struct Sizes {{ i64 packs, size[{}], stride[{}][{}]; }};\n", rank,
                                 std::max<size_t>(inputs.size(), 1), rank);
  text += fmt::format("extern \"C\" __global__ void elementwise(Sizes s, {}* y", type_text(y.type()));
  for (size_t i = 0; i < inputs.size(); ++i) text += fmt::format(", const {}* x{}", type_text(inputs[i]->type()), i);
  text +=
      fmt::format(") {{\n  begin_kernel();\n  const i64 i = THREAD;\n  if (i >= s.packs) return;\n  {} rest = ({})i;\n",
                  index, index);
  for (size_t i = 0; i < inputs.size(); ++i) text += fmt::format("  i64 at{} = 0;\n", i);
  for (size_t axis = rank; axis-- > 0;) {
    const std::string here = axis == 0 ? "rest" : fmt::format("c{}", axis);
    const std::string size = fmt::format("({})s.size[{}]", index, axis);
    if (axis > 0) text += fmt::format("  const {} c{} = rest % {};\n  rest /= {};\n", index, axis, size, size);
    for (size_t i = 0; i < inputs.size(); ++i)
      text += fmt::format("  at{} += {} * s.stride[{}][{}];\n", i, here, i, axis);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string_view type = type_text(inputs[i]->type());
    if (axes.strides[i].back() == 1)
      text += fmt::format("  const Pack<{}, {}> p{} = *(const Pack<{}, {}>*)(x{} + at{});\n", type, pack, i, type, pack,
                          i, i);
    else
      text += fmt::format("  const {} p{} = x{}[at{}];\n", type, i, i, i);
  }
  text += fmt::format("  Pack<{}, {}> result;\n#pragma unroll\n  for (int v = 0; v < {}; ++v) {{\n",
                      type_text(y.type()), pack, pack);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_pack = axes.strides[i].back() == 1;
    text += fmt::format("    const Wide<{}> a{} = widen(p{}{});\n", type_text(inputs[i]->type()), i, i,
                        is_pack ? ".v[v]" : "");
  }
  text += fmt::format("    Wide<{}> r;\n    {}\n    result.v[v] = narrow<{}>(r);\n  }}\n", type_text(y.type()), body_,
                      type_text(y.type()));
  text += fmt::format("  *(Pack<{}, {}>*)(y + i * {}) = result;\n}}\n", type_text(y.type()), pack, pack);

  Prepared prepared;
  prepared.function = queue_of(run).gpu().function(text, "elementwise");
  prepared.grid = cuda::Grid::over(packs);
  prepared.sizes.push_back(packs);
  prepared.sizes.insert(prepared.sizes.end(), axes.sizes.begin(), axes.sizes.end());
  prepared.sizes.back() /= pack;
  if (inputs.empty()) prepared.sizes.resize(prepared.sizes.size() + rank);
  for (const auto& strides : axes.strides) {
    prepared.sizes.insert(prepared.sizes.end(), strides.begin(), strides.end());
    prepared.sizes.back() *= pack;  // of the innermost axis, which is counted in packs
  }
  return prepared;
}

void CudaElementwise::run(KernelRun& run) const {
  Tensor& y = run.output(0);
  if (y.elements() == 0) return;
  const auto& prepared = run.per_plan<Prepared>([&] { return prepare(run, y); });
  SmallVector<const void*, 8> addresses;
  addresses.push_back(y.raw());
  for (size_t i = 0; i < run.input_count(); ++i) {
    if (run.has_input(i)) addresses.push_back(run.input(i).raw());
  }
  SmallVector<void*, 8> arguments;
  arguments.push_back(const_cast<int64_t*>(prepared.sizes.data()));
  for (const void*& address : addresses) arguments.push_back(&address);
  queue_of(run).launch_with(prepared.function, prepared.grid, arguments.data());
}

}  // namespace tenon::ops
