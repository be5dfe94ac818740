#include "ops/adapters.h"
#include "ops/inference.h"
#include "ops/operator.h"
#include "ops/scalar_input.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

Dim at_least_one(const Inference& i, Dim size, std::string_view name) {
  if (size.is_known() && size.value() < 1) {
    i.fail_with(ErrorCode::invalid_value, fmt::format("{} is {}; it must be at least 1", name, size.value()));
  }
  return size;
}

void require_flag(const Inference& i, std::string_view name, int64_t value) {
  if (value != 0 && value != 1)
    i.fail_with(ErrorCode::invalid_attribute, fmt::format("{} is {}; it may be 0 or 1", name, value));
}

// The last axis holds a real part, or a real and an imaginary one; `wanted` is 0 for either.
void require_parts(const Inference& i, int64_t wanted, std::string_view why) {
  const Dim& parts = i.shape(0)[i.shape(0).size() - 1];
  if (!parts.is_known()) return;
  if (parts.value() != 1 && parts.value() != 2)
    i.fail("the last axis must have size 1 (real) or 2 (complex), it has size {}", parts.value());
  if (wanted != 0 && parts.value() != wanted) {
    i.fail("{} needs {} input, with a last axis of size {}; it has size {}", why, wanted == 1 ? "real" : "complex",
           wanted, parts.value());
  }
}

void infer_dft(Inference& i) {
  const int64_t inverse = i.node().int_attribute("inverse", 0), onesided = i.node().int_attribute("onesided", 0);
  require_flag(i, "inverse", inverse);
  require_flag(i, "onesided", onesided);
  if (!i.has_shape(0)) return i.output(0, i.element(0), std::nullopt);
  i.require_rank_at_least(0, 2);
  require_parts(i, onesided ? (inverse ? 2 : 1) : 0, inverse ? "an inverse with onesided" : "onesided");
  SymbolicShape shape = i.shape(0);
  shape[shape.size() - 1] = onesided && inverse ? 1 : 2;
  Dim axis = scalar_input(i, 2, "axis").value_or(Dim(-2));
  if (!axis.is_known()) {
    for (size_t k = 0; k + 1 < shape.size(); ++k) shape[k] = Dim::unknown();
    return i.output(0, i.element(0), std::move(shape));
  }
  const int at = i.axis(axis.value(), i.rank(0));
  if (at == i.rank(0) - 1) {
    i.fail_with(ErrorCode::invalid_value,
                fmt::format("axis {} is the last one, which holds real and imaginary parts", axis.value()));
  }
  Dim& size = shape[static_cast<size_t>(at)];
  Dim length = scalar_input(i, 1, "dft_length").value_or(onesided && inverse ? 2 * (size - 1) : size);
  at_least_one(i, length, "dft_length");
  size = onesided && !inverse ? floor_div(length, 2) + 1 : length;
  i.output(0, i.element(0), std::move(shape));
}

void infer_stft(Inference& i) {
  const int64_t onesided = i.node().int_attribute("onesided", 1);
  require_flag(i, "onesided", onesided);
  if (i.has_input(2)) i.require_rank(2, 1);
  Dim batch = Dim::unknown(), signal = Dim::unknown();
  if (i.has_shape(0)) {
    // Real signals without the last axis, of size 1, are what onnxruntime takes too, and exporters write.
    if (i.rank(0) != 2) {
      i.require_rank(0, 3);
      require_parts(i, onesided ? 1 : 0, "onesided");
    }
    batch = i.shape(0)[0];
    signal = i.shape(0)[1];
  }
  Dim step = scalar_input_from(i, 1, "frame_step", 1);
  std::optional<Dim> length = scalar_input(i, 3, "frame_length");
  if (i.has_shape(2)) {
    const Dim& window = i.shape(2)[0];
    length = length ? i.equal(*length, window, "frame_length and the size of the window") : window;
  } else if (i.has_input(2)) {
    length = length.value_or(Dim::unknown());
  }
  Dim frame = at_least_one(i, length.value_or(signal), "frame_length");
  if (frame.is_known() && signal.is_known() && frame.value() > signal.value())
    i.fail("frame_length is {}; the signal has only {} samples", frame.value(), signal.value());
  i.output(0, i.element(0),
           SymbolicShape{batch, floor_div(signal - frame, step) + 1, onesided ? floor_div(frame, 2) + 1 : frame, 2});
}

void axis_to_input(ir::Node& node) {
  Tensor axis = Tensor::scalar(node.int_attribute("axis", 1));
  node.remove_attribute("axis");
  node.set_input(2, &node.graph().add_constant(std::move(axis), "axis"));
}

std::string axis_to_attribute(ir::Node& node) {
  const ir::Value *input = node.input(0), *axis = node.input(2);
  if (axis && !axis->is_fixed()) return "its axis is computed, version 17 takes constants only";
  if (!input || !input->type.shape) return "the rank of its input is not known";
  int64_t number = axis ? axis->constant()->tensor.data<int64_t>()[0] : -2;
  if (number < 0) number += static_cast<int64_t>(input->type.shape->size());
  node.set_attribute({"axis", number});
  node.remove_trailing_inputs(node.input(1) ? 2 : 1);
  return {};
}

}  // namespace

void define_dft(OperatorList& list) {
  list.add("DFT", {17, 20})
      .input("input", "T1")
      .optional_input("dft_length", types::index)
      .optional_input("axis", TypeSet{ElementType::int64})
      .output("output", "T1")
      .types("T1", types::floats)
      .attribute("inverse", AttributeKind::int_)
      .attribute("onesided", AttributeKind::int_)
      .infer(infer_dft)
      .lift(17, 20, axis_to_input)
      .lower(20, 17, axis_to_attribute);
  list.add("STFT", {17})
      .input("signal", "T1")
      .input("frame_step", types::index)
      .optional_input("window", "T1")
      .optional_input("frame_length", types::index)
      .output("output", "T1")
      .types("T1", types::floats)
      .attribute("onesided", AttributeKind::int_)
      .infer(infer_stft);
}

}  // namespace tenon::ops
