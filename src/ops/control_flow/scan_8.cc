#include "ops/adapters.h"
#include "ops/control_flow/control_flow.h"

namespace tenon::ops {
namespace {

// Builds the graph that handles one element of the batch.
class BatchBody {
 public:
  BatchBody(ir::Node& node, size_t states, bool has_lengths)
      : node_(node), states_(states), has_lengths_(has_lengths) {}

  std::unique_ptr<ir::Graph> build(std::unique_ptr<ir::Graph> body) {
    graph_->name = "sequence";
    ir::Value* length = has_lengths_ ? &input("length") : nullptr;
    ir::Node& scan = graph_->add_node("Scan");
    scan.origin = node_.origin;
    auto scans = static_cast<int64_t>(node_.input_count() - 1 - states_);
    for (size_t k = 1; k < node_.input_count(); ++k) {
      ir::Value* value = &input("input");
      if (length && k > states_) value = &shortened(*value, *length);
      scan.add_input(value);
    }
    scan.set_attribute(ir::Attribute("body", std::move(body)));
    scan.set_attribute(ir::Attribute("num_scan_inputs", scans));
    if (node_.attribute("directions"))
      scan.set_attribute(ir::Attribute("scan_input_directions", node_.ints_attribute("directions")));
    for (size_t k = 0; k < node_.output_count(); ++k) {
      ir::Value* value = &graph_->add_value(name("output"));
      scan.add_output(value);
      if (length && k >= states_) value = &lengthened(*value, *length);
      graph_->add_output(*value);
    }
    return std::move(graph_);
  }

 private:
  std::string name(std::string_view what) {
    const ir::Value* output = node_.output(0);
    return fmt::format("{}/batch/{}_{}", output ? output->name : node_.name, what, next_++);
  }
  ir::Value& input(std::string_view what) {
    ir::Value& value = graph_->add_value(name(what));
    graph_->add_input(value);
    if (!max_source_ && graph_->inputs().size() > states_ + (has_lengths_ ? 1 : 0)) max_source_ = &value;
    return value;
  }
  ir::Value& add(std::string op, std::initializer_list<ir::Value*> inputs) {
    ir::Node& node = graph_->add_node(std::move(op));
    node.origin = node_.origin;
    for (ir::Value* value : inputs) node.add_input(value);
    ir::Value& output = graph_->add_value(name("value"));
    node.add_output(&output);
    return output;
  }
  ir::Value& constant(const std::vector<int64_t>& numbers) {
    ir::Value& value = graph_->add_value(name("constant"));
    auto content = std::make_shared<ir::Constant>();
    content->tensor = int64_vector(numbers);
    content->name = value.name;
    graph_->set_initializer(value, ir::ConstantPtr(std::move(content)));
    return value;
  }
  // `length` as a list of one number.
  ir::Value& as_vector(ir::Value& length) { return add("Reshape", {&length, &constant({1})}); }

  ir::Value& shortened(ir::Value& scanned, ir::Value& length) {
    return add("Slice", {&scanned, &constant({0}), &as_vector(length), &constant({0})});
  }
  // Zeros behind, up to the longest sequence.
  ir::Value& lengthened(ir::Value& collected, ir::Value& length) {
    ir::Value& most = add("Shape", {max_source_});
    most.producer()->set_attribute(ir::Attribute("end", int64_t{1}));
    ir::Value& missing = add("Sub", {&most, &as_vector(length)});
    ir::Value& pads = add("Concat", {&constant({0}), &missing});
    pads.producer()->set_attribute(ir::Attribute("axis", int64_t{0}));
    return add("Pad", {&collected, &pads, nullptr, &constant({0})});
  }

  ir::Node& node_;
  size_t states_;
  bool has_lengths_;
  std::unique_ptr<ir::Graph> graph_ = std::make_unique<ir::Graph>();
  ir::Value* max_source_ = nullptr;  // the first scan input, as long as the longest sequence
  int next_ = 0;
};

}  // namespace

// The batch becomes a Scan of its own around the Scan of one sequence.
void scan_without_batch(ir::Node& node) {
  int64_t scans = node.int_attribute("num_scan_inputs", 0);
  if (node.input_count() < 2 || scans < 1 || scans > static_cast<int64_t>(node.input_count()) - 1) {
    throw Error(ErrorCode::invalid_attribute,
                fmt::format("num_scan_inputs is {}, the node has {} inputs", scans, node.input_count()));
  }
  if (!node.graph_attribute("body")) throw Error(ErrorCode::invalid_attribute, "attribute 'body' is missing");
  ir::Value* lengths = node.input(0);
  size_t states = node.input_count() - 1 - static_cast<size_t>(scans);
  BatchBody batch(node, states, lengths != nullptr);

  std::unique_ptr<ir::Graph> body;
  for (ir::Attribute& attribute : node.attributes) {
    if (attribute.name == "body") body = std::move(std::get<std::unique_ptr<ir::Graph>>(attribute.value));
  }
  node.remove_attribute("body");
  std::unique_ptr<ir::Graph> graph = batch.build(std::move(body));
  node.remove_attribute("directions");
  std::vector<ir::Value*> inputs(node.inputs().begin(), node.inputs().end());
  node.remove_trailing_inputs(0);
  for (ir::Value* value : inputs) {
    if (value) node.add_input(value);
  }
  node.set_attribute(ir::Attribute("body", std::move(graph)));
  node.set_attribute(ir::Attribute("num_scan_inputs", static_cast<int64_t>(node.input_count())));
}

}  // namespace tenon::ops
