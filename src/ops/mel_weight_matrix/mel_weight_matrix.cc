#include "ops/inference.h"
#include "ops/operator.h"
#include "ops/scalar_input.h"

namespace tenon::ops {
namespace {

using ir::AttributeKind;

void infer_mel_weight_matrix(Inference& i) {
  ElementType type = i.element_attribute("output_datatype", ElementType::float32);
  if (!types::numbers.contains(type)) {
    i.fail_with(ErrorCode::invalid_attribute, fmt::format("output_datatype {} is no type of numbers", name_of(type)));
  }
  Dim bands = scalar_input_from(i, 0, "num_mel_bins", 0), length = scalar_input_from(i, 1, "dft_length", 0);
  scalar_input_from(i, 2, "sample_rate", 1);
  i.output(0, type, SymbolicShape{floor_div(length, 2) + 1, std::move(bands)});
}

}  // namespace

void define_mel_weight_matrix(OperatorList& list) {
  list.add("MelWeightMatrix", {17})
      .input("num_mel_bins", "T1")
      .input("dft_length", "T1")
      .input("sample_rate", "T1")
      .input("lower_edge_hertz", "T2")
      .input("upper_edge_hertz", "T2")
      .output("output", types::numbers)
      .types("T1", types::index)
      .types("T2", types::floats)
      .attribute("output_datatype", AttributeKind::int_)
      .infer(infer_mel_weight_matrix);
}

}  // namespace tenon::ops
