#include "ops/older_forms.h"
#include "ops/older_support.h"

namespace tenon::ops {
namespace {

// Transposes its inputs and outputs from batches first to sequences first and back.
void sequences_first(Decomposition& d) {
  if (d.node().int_attribute("layout", 0) == 0) d.give_up("its sequences are first already");
  std::vector<ir::Value*> inputs;
  for (size_t i = 0; i < d.node().input_count(); ++i) {
    const bool has_batch = i == 0 || i == 5 || (i == 6 && d.node().op_type == "LSTM");
    Term input = d.input(i);
    inputs.push_back(input && has_batch ? transpose(input, {1, 0, 2}).value : input.value);
  }
  ir::Node& node = d.add_node(d.node().op_type, inputs);
  std::map<const ir::Value*, ir::Value*> none;
  for (const ir::Attribute& attribute : d.node().attributes) {
    if (attribute.name != "layout") node.attributes.push_back(ir::clone(attribute, none));
  }
  for (size_t i = 0; i < d.node().output_count(); ++i) {
    if (!d.wants_output(i)) {
      node.add_output(nullptr);
      continue;
    }
    Term output{&d, d.add_output(node), d.element(0)};
    d.output(i, transpose(output, i == 0 ? std::vector<int64_t>{2, 0, 1, 3} : std::vector<int64_t>{1, 0, 2}));
  }
}

}  // namespace

void older_recurrent(OlderForms& forms) {
  for (const char* op : {"RNN", "GRU", "LSTM"}) forms.add(op, 14, sequences_first);
}

}  // namespace tenon::ops
