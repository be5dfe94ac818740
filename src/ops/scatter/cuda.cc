#include <algorithm>
#include <optional>

#include "base/fail.h"
#include "ops/cuda_support/element_text.h"
#include "ops/cuda_support/strided_copy.h"

namespace tenon::ops {
namespace {

// Updates that replace elements may meet: the last one stays. `owners` says which one that is: a first pass finds the
// highest number for each place. Updates that are combined keep their order: each place belongs to one thread, which
// looks through all updates of its line.
constexpr int64_t most_owned = int64_t{1} << 31;
constexpr int64_t wanted_threads = 32 << 10;

// The place of an index, or -1 where it is out of range.
constexpr const char* place_text = R"(template <typename T> inline i64 place(T given, i64 size) {
  const i64 index = given < 0 ? (i64)given + size : (i64)given;
  return index < 0 || index >= size ? -1 : index;
}
)";

std::string combine_text(ElementType type, const std::string& reduction) {
  const bool is_complex = types::complexes.contains(type);
  const char* rule =
      reduction == "add" ? (is_complex ? "r.re = a.re + b.re; r.im = a.im + b.im;" : "r = a + b;")
      : reduction == "mul"
          ? (is_complex ? "r.re = a.re * b.re - a.im * b.im; r.im = a.re * b.im + a.im * b.re;" : "r = a * b;")
      : reduction == "max" ? "r = a < b || b != b ? b : a;"
      : reduction == "min" ? "r = b < a || b != b ? b : a;"
                           : "r = b;";
  return fmt::format(
      "typedef {} T;\ninline T combined(T x, T y) {{ const Wide<T> a = widen(x), b = widen(y); Wide<T> r; {} return "
      "narrow<T>(r); }}\n",
      cuda::type_text(type), rule);
}

std::string decline(const ir::Node& node) {
  const std::string reduction = node.string_attribute("reduction", "none");
  const ElementType type = node.input(0)->type.element;
  if (reduction == "none") return "";
  if (types::float8s.contains(type) || (types::complexes.contains(type) && (reduction == "max" || reduction == "min")))
    return fmt::format("elements of type {} have no reduction '{}'", name_of(type), reduction);
  return "";
}

void copy_input(KernelRun& run, const Tensor& x, Tensor& y) {
  if (x.raw() != y.raw()) queue_of(run).copy(y.mutable_raw(), x.raw(), x.bytes());
}

// Replaces or combines rows of elements at places that a first kernel finds.
struct ScatterPlan {
  std::optional<CudaLoop> find, write;
  std::shared_ptr<void> scratch;
  int64_t owner_bytes = 0;
};

class Scatter : public Kernel {
 public:
  explicit Scatter(const NodeInfo& info)
      : axis_(info.node().int_attribute("axis", 0)), reduction_(info.node().string_attribute("reduction", "none")) {}

  bool may_overwrite(size_t i) const override { return i == 0; }

  void run(KernelRun& run) const override {
    const Tensor &x = run.input(0), &picks = run.input(1), &updates = run.input(2);
    Tensor& y = run.output(0);
    copy_input(run, x, y);
    if (updates.elements() == 0 || y.elements() == 0) return;
    const auto& plan = run.per_plan<ScatterPlan>([&] { return prepare(run, x, picks, updates); });
    if (plan.owner_bytes > 0) queue_of(run).fill(plan.scratch.get(), 0xff, plan.owner_bytes);
    if (plan.find) plan.find->run(run, {picks.raw(), plan.scratch.get()});
    plan.write->run(run, {picks.raw(), updates.raw(), y.raw(), plan.scratch.get()});
  }

 protected:
  virtual ScatterPlan prepare(KernelRun& run, const Tensor& x, const Tensor& picks, const Tensor& updates) const = 0;

  int64_t axis_;
  std::string reduction_;
};

class ScatterElements final : public Scatter {
 public:
  using Scatter::Scatter;

 private:
  ScatterPlan prepare(KernelRun& run, const Tensor& x, const Tensor& picks, const Tensor& updates) const override {
    const int rank = x.rank(), axis = static_cast<int>(axis_ < 0 ? axis_ + rank : axis_);
    const bool replaces = reduction_ == "none" && x.elements() < most_owned && updates.elements() < most_owned;
    const std::vector<int64_t> steps = steps_of(x.shape());
    ScatterPlan plan;
    if (replaces) {
      std::vector<int64_t> numbers(updates.shape().begin(), updates.shape().end());
      numbers.insert(numbers.end(), steps.begin(), steps.end());
      numbers.push_back(rank == 0 ? 1 : x.dim(axis));
      std::string to = coordinates_in(index_text(updates.elements()), rank, 0);
      to += fmt::format("const i64 index = place(picks[i], v[{}]);\n    if (index < 0) continue;\n    const i64 to = 0",
                        2 * rank);
      for (int a = 0; a < rank; ++a)
        to += a == axis ? fmt::format(" + index * v[{}]", rank + a) : fmt::format(" + c{} * v[{}]", a, rank + a);
      to += ";\n    ";
      plan.owner_bytes = x.elements() * 4;
      plan.scratch = queue_of(run).allocate(plan.owner_bytes);
      const std::string_view type = moved_type_text(x.type());
      plan.find.emplace(run, updates.elements(), fmt::format("{}picks, int* owners", const_pointer_to(picks)),
                        to + "atomicMax(owners + to, (int)i);", numbers, place_text);
      plan.write.emplace(
          run, updates.elements(),
          fmt::format("{}picks, const {}* updates, {}* y, const int* owners", const_pointer_to(picks), type, type),
          to + "if (owners[to] == (int)i) y[to] = updates[i];", numbers, place_text);
      return plan;
    }
    // Lines along the axis never meet. Of each, a thread has the places [part * size / parts, (part + 1) * size /
    // parts).
    const int64_t inner = updates.shape().elements(axis + 1, rank), length = updates.dim(axis),
                  lines = updates.elements() / length, size = x.dim(axis);
    const int64_t parts = std::clamp<int64_t>(wanted_threads / lines, 1, size);
    // v: lines, inner, length, parts, size, step of the axis, then sizes and steps of the others.
    std::vector<int64_t> numbers{lines, inner, length, parts, size, steps[static_cast<size_t>(axis)]};
    std::string start;
    for (int a = rank - 1; a >= 0; --a) {
      if (a == axis) continue;
      start += fmt::format("start += rest % v[{}] * v[{}]; rest /= v[{}];\n    ", numbers.size(), numbers.size() + 1,
                           numbers.size());
      numbers.insert(numbers.end(), {updates.dim(a), steps[static_cast<size_t>(a)]});
    }
    const std::string body = "const i64 line = i % v[0], part = i / v[0];\n    i64 rest = line, start = 0;\n    " +
                             start +
                             R"(const i64 first = part * v[4] / v[3], last = (part + 1) * v[4] / v[3];
    i64 from = line / v[1] * v[2] * v[1] + line % v[1];
    for (i64 k = 0; k < v[2]; ++k, from += v[1]) {
      const i64 index = place(picks[from], v[4]);
      if (index < first || index >= last) continue;
      T* to = y + start + index * v[5];
      *to = combined(*to, updates[from]);
    })";
    plan.write.emplace(run, lines * parts,
                       fmt::format("{}picks, const T* updates, T* y, const int* owners", const_pointer_to(picks)), body,
                       numbers, place_text + combine_text(x.type(), reduction_));
    return plan;
  }
};

class ScatterND final : public Scatter {
 public:
  using Scatter::Scatter;

 private:
  ScatterPlan prepare(KernelRun& run, const Tensor& x, const Tensor& picks, const Tensor& updates) const override {
    const int depth = static_cast<int>(picks.dim(picks.rank() - 1));
    const int64_t inner = x.shape().elements(depth, x.rank()), rows = updates.elements() / inner,
                  places = x.elements() / inner;
    const std::vector<int64_t> steps = steps_of(x.shape());
    const bool replaces = reduction_ == "none" && places < most_owned && rows < most_owned;
    // For each update, the row that it goes to, or -1; then, where they replace, the last update of each row.
    std::vector<int64_t> numbers;
    for (int k = 0; k < depth; ++k) numbers.insert(numbers.end(), {x.dim(k), steps[static_cast<size_t>(k)] / inner});
    const std::string find = fmt::format(
        "i64 to = 0;\n    for (int k = 0; k < {}; ++k) {{\n      const i64 index = place(picks[i * {} + k], v[2 * "
        "k]);\n"
        "      to = index < 0 || to < 0 ? -1 : to + index * v[2 * k + 1];\n    }}\n    rows[i] = to;\n    ",
        depth, depth);
    ScatterPlan plan;
    const int64_t room = replaces ? (places + 1) / 2 : 0;  // for owners, in i64
    plan.owner_bytes = replaces ? places * 4 : 0;
    plan.scratch = queue_of(run).allocate((room + rows) * 8);
    numbers.push_back(room);
    const size_t at = numbers.size() - 1;
    const std::string own = replaces ? "if (to >= 0) atomicMax((int*)scratch + to, (int)i);" : "";
    plan.find.emplace(run, rows, fmt::format("{}picks, i64* scratch", const_pointer_to(picks)),
                      fmt::format("i64* rows = scratch + v[{}];\n    ", at) + find + own, numbers, place_text);
    const std::string pointers =
        fmt::format("{}picks, const T* updates, T* y, const i64* scratch", const_pointer_to(picks));
    if (replaces) {
      const int64_t bytes = inner * bits_of(x.type()) / 8, unit = unit_for(bytes, {updates.raw(), run.output(0).raw()});
      const int64_t each = bytes / unit;
      const std::string body = fmt::format(
          "const {0} row = ({0})i / ({0})v[0], column = ({0})i % ({0})v[0];\n    const i64 to = scratch[v[1] + row];\n "
          "   "
          "if (to >= 0 && ((const int*)scratch)[to] == (int)row) y[to * v[0] + column] = updates[i];",
          index_text(rows * each));
      plan.write.emplace(run, rows * each, pointers, body, std::vector<int64_t>{each, room},
                         fmt::format("typedef {} T;\n", unit_text(unit)));
      return plan;
    }
    const int64_t parts = std::clamp<int64_t>(wanted_threads / inner, 1, places);
    const std::string body = R"(const i64 column = i % v[0], part = i / v[0];
    const i64 first = part * v[2] / v[1], last = (part + 1) * v[2] / v[1];
    for (i64 k = 0; k < v[3]; ++k) {
      const i64 row = scratch[k];
      if (row < first || row >= last) continue;
      T* to = y + row * v[0] + column;
      *to = combined(*to, updates[k * v[0] + column]);
    })";
    plan.write.emplace(run, inner * parts, pointers, body, std::vector<int64_t>{inner, parts, places, rows},
                       combine_text(x.type(), reduction_));
    return plan;
  }
};

// Writes `update` into a cache from an index for each batch on.
class TensorScatter final : public Kernel {
 public:
  explicit TensorScatter(const NodeInfo& info)
      : axis_(info.node().int_attribute("axis", -2)),
        circular_(info.node().string_attribute("mode", "linear") == "circular") {}

  bool may_overwrite(size_t i) const override { return i == 0; }

  void run(KernelRun& run) const override {
    const Tensor &cache = run.input(0), &update = run.input(1);
    Tensor& y = run.output(0);
    copy_input(run, cache, y);
    if (update.elements() == 0) return;
    const auto& loop = run.per_plan<CudaLoop>([&] { return prepare(run, cache, update, y); });
    loop.run(run, {update.raw(), y.raw(), run.has_input(2) ? run.input(2).raw() : nullptr});
  }

 private:
  CudaLoop prepare(KernelRun& run, const Tensor& cache, const Tensor& update, const Tensor& y) const {
    const int axis = static_cast<int>(axis_ < 0 ? axis_ + cache.rank() : axis_);
    const int64_t bytes = cache.shape().elements(axis + 1, cache.rank()) * bits_of(cache.type()) / 8;
    const int64_t unit = unit_for(bytes, {update.raw(), y.raw()}), inner = bytes / unit;
    const int64_t rows = update.shape().elements(0, axis + 1);
    const std::string body = fmt::format(
        "typedef {} I; const I column = (I)i % (I)v[0], row = (I)i / (I)v[0], t = row % (I)v[1], outer = row / "
        "(I)v[1];\n    "
        "i64 at = t{};\n    {}y[((i64)outer * v[2] + at) * v[0] + column] = updates[i];",
        index_text(rows * inner), run.has_input(2) ? " + first[outer / (I)v[3]]" : "",
        circular_ ? "at = at < 0 ? 0 : at % v[2];\n    " : "if (at < 0 || at >= v[2]) continue;\n    ");
    return {run,
            rows * inner,
            fmt::format("const {}* updates, {}* y, const i64* first", unit_text(unit), unit_text(unit)),
            body,
            {inner, update.dim(axis), cache.dim(axis), cache.shape().elements(1, axis)}};
  }

  int64_t axis_;
  bool circular_;
};

}  // namespace

void cuda_scatter(CudaKernels& list) {
  for (const char* op : {"ScatterElements", "Scatter"})
    list.add(op, [](const NodeInfo& info) { return std::make_unique<ScatterElements>(info); },
             {.types = cuda_movable, .decline = decline});
  list.add("ScatterND", [](const NodeInfo& info) { return std::make_unique<ScatterND>(info); },
           {.types = cuda_movable, .decline = decline});
  list.add("TensorScatter", [](const NodeInfo& info) { return std::make_unique<TensorScatter>(info); },
           {.types = cuda_movable});
}

}  // namespace tenon::ops
