#include "base/checked.h"
#include "ops/concat/cpu_concat.h"
#include "ops/cpu_support/strided_copy.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// The position in input i as 0 … last, counted from `length` when negative.
size_t position_in(const KernelRun& run, size_t i, size_t length, size_t last) {
  std::vector<int64_t> numbers = run.ints(i);
  if (numbers.size() != 1)
    fail(ErrorCode::shape_mismatch, "the position must be one number, it has {}", numbers.size());
  int64_t position = numbers[0] < 0 ? numbers[0] + static_cast<int64_t>(length) : numbers[0];
  if (position < 0 || position > static_cast<int64_t>(last)) {
    fail(ErrorCode::invalid_value, "position {} is out of range for a sequence of {}", numbers[0], length);
  }
  return static_cast<size_t>(position);
}

void construct(KernelRun& run) {
  Sequence sequence;
  for (size_t i = 0; i < run.input_count(); ++i) sequence.items.push_back(run.value(i));
  run.set_output(0, std::move(sequence));
}

void at(KernelRun& run) {
  const auto& items = run.value(0).sequence().items;
  if (items.empty()) fail(ErrorCode::invalid_value, "the sequence is empty");
  run.set_output(0, items[position_in(run, 1, items.size(), items.size() - 1)]);
}

void insert(KernelRun& run) {
  Sequence sequence = run.value(0).sequence();
  auto& items = sequence.items;
  if (!items.empty() && items.front().tensor().type() != run.input(1).type()) {
    fail(ErrorCode::type_mismatch, "the sequence holds {}, {} is inserted", name_of(items.front().tensor().type()),
         name_of(run.input(1).type()));
  }
  size_t position = run.has_input(2) ? position_in(run, 2, items.size(), items.size()) : items.size();
  items.insert(items.begin() + static_cast<std::ptrdiff_t>(position), run.value(1));
  run.set_output(0, std::move(sequence));
}

void erase(KernelRun& run) {
  Sequence sequence = run.value(0).sequence();
  auto& items = sequence.items;
  if (items.empty()) fail(ErrorCode::invalid_value, "the sequence is empty");
  size_t last = items.size() - 1, position = run.has_input(1) ? position_in(run, 1, items.size(), last) : last;
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(position));
  run.set_output(0, std::move(sequence));
}

class SplitToSequence final : public Kernel {
 public:
  explicit SplitToSequence(const NodeInfo& info)
      : axis_(info.node().int_attribute("axis", 0)), keeps_axis_(info.node().int_attribute("keepdims", 1) != 0) {}

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    int axis = static_cast<int>(axis_ < 0 ? axis_ + x.rank() : axis_);
    int64_t size = x.dim(axis), outer = x.shape().elements(0, axis), inner = x.shape().elements(axis + 1, x.rank()),
            at = 0;
    Sequence sequence;
    for (int64_t part : parts(run, size)) {
      Shape shape = x.shape();
      shape[axis] = part;
      Tensor item;
      if (outer == 1) {
        item = x.part(at, shape);
      } else {
        item = Tensor(x.type(), shape, run.allocator());
        int64_t from_strides[] = {size * inner, 1}, to_strides[] = {part * inner, 1}, sizes[] = {outer, part * inner};
        strided_copy(run.threads(), x.type(), element_at(x, at), from_strides, item.mutable_raw(), to_strides, sizes);
      }
      at += part * inner;
      sequence.items.emplace_back(keeps_axis_ || run.has_input(1) ? item : item.reshaped(without(shape, axis)));
    }
    run.set_output(0, std::move(sequence));
  }

 private:
  static Shape without(const Shape& shape, int axis) {
    Shape result;
    for (int a = 0; a < shape.rank(); ++a) {
      if (a != axis) result.push_back(shape[a]);
    }
    return result;
  }

  static std::vector<int64_t> parts(KernelRun& run, int64_t size) {
    int64_t chunk = 1;
    if (run.has_input(1)) {
      std::vector<int64_t> split = run.ints(1);
      if (run.input(1).rank() > 0) {
        int64_t sum = 0;
        for (int64_t part : split) {
          if (part < 0) fail(ErrorCode::invalid_value, "a part has size {}", part);
          sum = checked_add(sum, part);
        }
        if (sum != size)
          fail(ErrorCode::invalid_value, "the parts have {} elements together, the axis has {}", sum, size);
        return split;
      }
      chunk = split[0];
      if (chunk < 1) fail(ErrorCode::invalid_value, "parts cannot have size {}", chunk);
    }
    // An axis of a tensor without elements may be longer than memory has room for parts.
    run.scratch(checked_mul((size - 1) / chunk + 1, static_cast<int64_t>(sizeof(Value))));
    std::vector<int64_t> result;
    for (int64_t rest = size; rest > 0; rest -= chunk) result.push_back(std::min(chunk, rest));
    return result;
  }

  int64_t axis_;
  bool keeps_axis_;
};

class ConcatFromSequence final : public Kernel {
 public:
  explicit ConcatFromSequence(const NodeInfo& info)
      : axis_(info.node().int_attribute("axis", 0)), new_axis_(info.node().int_attribute("new_axis", 0) != 0) {}

  void run(KernelRun& run) const override {
    const auto& items = run.value(0).sequence().items;
    if (items.empty()) fail(ErrorCode::invalid_value, "an empty sequence cannot be joined");
    const Tensor& first = items.front().tensor();
    int rank = first.rank() + (new_axis_ ? 1 : 0);
    int64_t axis = axis_ < 0 ? axis_ + rank : axis_;
    if (axis < 0 || axis >= rank)
      fail(ErrorCode::invalid_attribute, "axis {} is out of range for rank {}", axis_, rank);
    std::vector<Tensor> parts;
    std::vector<const Tensor*> pointers;
    Shape shape;
    for (const Value& item : items) {
      Tensor part = item.tensor();
      if (part.type() != first.type())
        fail(ErrorCode::type_mismatch, "items 0 and {} have types {} and {}", parts.size(), name_of(first.type()),
             name_of(part.type()));
      if (new_axis_) part = part.reshaped(with_axis(part.shape(), static_cast<int>(axis)));
      if (parts.empty()) {
        shape = part.shape();
      } else {
        Shape expected = shape;
        if (part.rank() == rank) expected[static_cast<int>(axis)] = part.dim(static_cast<int>(axis));
        if (!(part.shape() == expected)) {
          fail(ErrorCode::shape_mismatch, "items 0 and {} have shapes {} and {}", parts.size(),
               first.shape().to_string(), item.tensor().shape().to_string());
        }
        shape[static_cast<int>(axis)] = checked_add(shape[static_cast<int>(axis)], part.dim(static_cast<int>(axis)));
      }
      parts.push_back(std::move(part));
    }
    for (const Tensor& part : parts) pointers.push_back(&part);
    concat(run.threads(), pointers, static_cast<int>(axis), run.output(0, first.type(), shape));
  }

 private:
  static Shape with_axis(const Shape& shape, int axis) {
    Shape result;
    for (int a = 0; a <= shape.rank(); ++a) result.push_back(a == axis ? 1 : shape[a < axis ? a : a - 1]);
    return result;
  }

  int64_t axis_;
  bool new_axis_;
};

// Sequences among the inputs give the body one item at a time, tensors themselves each time.
void map(KernelRun& run) {
  Subgraph& body = run.subgraph("body");
  size_t length = run.value(0).sequence().items.size();
  std::vector<Sequence> results(run.output_count());
  if (body.output_count() < results.size())
    fail(ErrorCode::invalid_model, "the body has {} outputs, the node {}", body.output_count(), results.size());
  for (size_t i = 0; i < run.input_count(); ++i) {
    const Value& value = run.value(i);
    if (!value.is_sequence())
      body.give_input(i, value);
    else if (const size_t items = value.sequence().items.size(); items != length)
      fail(ErrorCode::shape_mismatch, "sequences 0 and {} have {} and {} items", i, length, items);
  }
  for (size_t n = 0; n < length; ++n) {
    for (size_t i = 0; i < run.input_count(); ++i) {
      if (run.value(i).is_sequence()) body.give_input(i, run.value(i).sequence().items[n]);
    }
    body.run();
    for (size_t i = 0; i < results.size(); ++i) results[i].items.push_back(body.take_output(i));
  }
  for (size_t i = 0; i < results.size(); ++i) run.set_output(i, std::move(results[i]));
}

}  // namespace

void cpu_sequence(CpuKernels& list) {
  list.add_simple("SequenceConstruct", construct);
  list.add_simple("SequenceEmpty", [](KernelRun& run) { run.set_output(0, Sequence{}); });
  list.add_simple("SequenceAt", at);
  list.add_simple("SequenceInsert", insert);
  list.add_simple("SequenceErase", erase);
  list.add_simple("SequenceLength", [](KernelRun& run) {
    run.output(0).mutable_data<int64_t>()[0] = static_cast<int64_t>(run.value(0).sequence().items.size());
  });
  list.add("SplitToSequence", [](const NodeInfo& info) { return std::make_unique<SplitToSequence>(info); });
  list.add("ConcatFromSequence", [](const NodeInfo& info) { return std::make_unique<ConcatFromSequence>(info); });
  list.add_simple("SequenceMap", map);
}

}  // namespace tenon::ops
