#include "ops/control_flow/control_flow.h"

#include "ops/operator.h"

namespace tenon::ops {

using ir::AttributeKind;

void define_control_flow(OperatorList& list) {
  list.add("If", {1, 11, 13, 16, 19, 21, 23, 24, 25})
      .input("cond", types::bools).variadic_output("outputs", "V", /*at_least=*/0, /*same_types=*/false)
      .types("V", types::all, Kinds::any)
      .required_attribute("then_branch", AttributeKind::graph)
      .required_attribute("else_branch", AttributeKind::graph)
      .infer(infer_if);
  list.add("Loop", {1, 11, 13, 16, 19, 21, 23, 24, 25})
      .optional_input("M", TypeSet{ElementType::int64}).optional_input("cond", types::bools)
      .variadic_input("v_initial", "V", /*at_least=*/0, /*same_types=*/false)
      .variadic_output("v_final_and_scan_outputs", "V", /*at_least=*/0, /*same_types=*/false)
      .types("V", types::all, Kinds::any)
      .required_attribute("body", AttributeKind::graph)
      .infer(infer_loop);
  list.add("Scan", {8, 9, 11, 16, 19, 21, 23, 24, 25})
      .variadic_input("initial_state_and_scan_inputs", "V", /*at_least=*/1, /*same_types=*/false)
      .variadic_output("final_state_and_scan_outputs", "V", /*at_least=*/0, /*same_types=*/false)
      .types("V", types::all)
      .required_attribute("body", AttributeKind::graph)
      .required_attribute("num_scan_inputs", AttributeKind::int_)
      .attribute("scan_input_axes", AttributeKind::ints)
      .attribute("scan_input_directions", AttributeKind::ints)
      .attribute("scan_output_axes", AttributeKind::ints)
      .attribute("scan_output_directions", AttributeKind::ints)
      .infer(infer_scan)
      .lift(8, 9, scan_without_batch);
}

}  // namespace tenon::ops
