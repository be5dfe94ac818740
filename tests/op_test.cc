#include "op_test.h"

#include <cstdlib>
#include <sstream>

#include "passes/lift.h"

namespace tenon {
namespace {

ir::Type type_of(const Value& value) {
  if (value.is_tensor()) return ir::Type::tensor(value.tensor().type(), symbolic(value.tensor().shape()));
  if (value.is_sequence()) {
    return ir::Type::sequence(value.sequence().items.empty()
                                  ? ir::Type::tensor(ElementType::float32)
                                  : ir::Type::tensor(value.sequence().items[0].tensor().type()));
  }
  if (value.is_map())
    return ir::Type::map(value.map().keys.type(), ir::Type::tensor(value.map().values.type(), SymbolicShape{}));
  if (value.is_optional() && value.optional().item) return ir::Type::optional(type_of(*value.optional().item));
  return {};
}

// Leaves out of a type what a model may leave out.
void forget(ir::Type& type, OpTest::Declared declared) {
  if (declared == OpTest::Declared::types) type.shape.reset();
  if (declared != OpTest::Declared::ranks || !type.shape) return;
  for (Dim& size : *type.shape) size = Dim::unknown();
}

double as_double(const Tensor& tensor, int64_t i) {
  auto at = static_cast<size_t>(i);
  switch (tensor.type()) {
    case ElementType::float32:
      return tensor.data<float>()[at];
    case ElementType::float64:
      return tensor.data<double>()[at];
    case ElementType::float16:
      return static_cast<float>(tensor.data<float16>()[at]);
    case ElementType::bfloat16:
      return static_cast<float>(tensor.data<bfloat16>()[at]);
    default:
      return 0;
  }
}

}  // namespace

void expect_near(const Value& actual, const Value& expected, double relative, double absolute,
                 const std::string& name) {
  if (expected.is_sequence()) {
    ASSERT_TRUE(actual.is_sequence()) << name << " is " << actual.describe();
    ASSERT_EQ(actual.sequence().items.size(), expected.sequence().items.size()) << name;
    for (size_t i = 0; i < expected.sequence().items.size(); ++i) {
      expect_near(actual.sequence().items[i], expected.sequence().items[i], relative, absolute,
                  name + "[" + std::to_string(i) + "]");
    }
    return;
  }
  if (expected.is_map()) {
    ASSERT_TRUE(actual.is_map()) << name << " is " << actual.describe();
    expect_near(actual.map().keys, expected.map().keys, relative, absolute, name + ".keys");
    expect_near(actual.map().values, expected.map().values, relative, absolute, name + ".values");
    return;
  }
  if (expected.is_optional()) {
    ASSERT_TRUE(actual.is_optional()) << name << " is " << actual.describe();
    ASSERT_EQ(actual.optional().item != nullptr, expected.optional().item != nullptr) << name;
    if (expected.optional().item)
      expect_near(*actual.optional().item, *expected.optional().item, relative, absolute, name);
    return;
  }
  ASSERT_EQ(actual.describe(), expected.describe()) << name;
  const Tensor& a = actual.tensor();
  const Tensor& e = expected.tensor();
  if (!is_floating(e.type()) || bits_of(e.type()) < 16) {
    EXPECT_TRUE(identical(a, e)) << name << " differs";
    return;
  }
  for (int64_t i = 0; i < e.elements(); ++i) {
    double x = as_double(a, i), y = as_double(e, i);
    bool same = (std::isnan(x) && std::isnan(y)) || x == y || std::fabs(x - y) <= absolute + relative * std::fabs(y);
    EXPECT_TRUE(same) << name << "[" << i << "]: expected " << y << ", got " << x;
    if (!same) return;
  }
}

OpTest& OpTest::input(Value value) {
  inputs_.emplace_back().value = std::move(value);
  return *this;
}

OpTest& OpTest::constant(Tensor tensor) {
  input(std::move(tensor));
  inputs_.back().is_constant = true;
  return *this;
}

OpTest& OpTest::expect(Value value) {
  expected_.emplace_back(std::move(value));
  return *this;
}

OpTest& OpTest::no_input() {
  inputs_.emplace_back();
  return *this;
}

OpTest& OpTest::no_output() {
  expected_.emplace_back();
  return *this;
}

NamedValues OpTest::outputs(const SessionOptions& options, bool lift_steps, Declared declared) {
  ir::Model model;
  model.ir_version = 10;
  model.opset_imports.add(domain_, opset_);
  if (!domain_.empty()) model.opset_imports.add("", ops::newest_opset);
  model.graph = std::make_unique<ir::Graph>();
  ir::Graph& graph = *model.graph;
  ir::Node& node = graph.add_node(op_, domain_);
  node.name = "tested";
  NamedValues feeds;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i].value.defined()) {
      node.set_input(i, nullptr);
      continue;
    }
    ir::Value& value = graph.add_value("in" + std::to_string(i));
    value.type = type_of(inputs_[i].value);
    node.set_input(i, &value);
    if (inputs_[i].is_constant) {
      auto constant = std::make_shared<ir::Constant>();
      constant->tensor = inputs_[i].value.tensor();
      constant->name = value.name;
      graph.set_initializer(value, ir::ConstantPtr(std::move(constant)));
    } else {
      forget(value.type, declared);
      graph.add_input(value);
      feeds[value.name] = inputs_[i].value;
    }
  }
  for (size_t i = 0; i < expected_.size(); ++i) {
    if (!expected_[i].defined()) {
      node.add_output(nullptr);
      continue;
    }
    ir::Value& value = graph.add_value("out" + std::to_string(i));
    node.add_output(&value);
    graph.add_output(value);
  }
  std::map<const ir::Value*, ir::Value*> none;
  for (const ir::Attribute& attribute : attributes_) node.set_attribute(ir::clone(attribute, none));
  std::string bytes = onnx::serialize_model(model);
  for (int64_t version = opset_ + 1; lift_steps && version <= ops::newest_opset; ++version) {
    auto read = onnx::parse_model(std::as_bytes(std::span(bytes)), nullptr);
    passes::lift_to_opsets(*read, {{"", version}});
    bytes = onnx::serialize_model(*read);
  }
  SessionOptions where = options;
  if (const char* providers = std::getenv("TENON_TEST_PROVIDERS")) {
    where.providers.clear();
    std::istringstream names(providers);
    for (std::string name; std::getline(names, name, ',');) where.providers.push_back(name);
  }
  Session session = Session::from_bytes(std::as_bytes(std::span(bytes)), where);
  return session.run(feeds);
}

void OpTest::run() {
  SessionOptions as_it_is;
  as_it_is.level = OptimizationLevel::none;
  {
    SCOPED_TRACE(op_);
    compare(as_it_is);
  }
  {
    SCOPED_TRACE(op_ + " optimised");
    compare({});
  }
  if (domain_.empty() && opset_ < ops::newest_opset) {
    SCOPED_TRACE(op_ + " lifted in steps");
    compare(as_it_is, /*lift_steps=*/true);
  }
  const ops::Operator* op = ops::operators().find(domain_, op_);
  if (!op || !op->decomposition) return;
  SCOPED_TRACE(op_ + " as smaller operators");
  SessionOptions options;
  options.decompose = {op_};
  std::string gave_up;
  options.log = [&](const std::string& line) {
    if (line.find("is not decomposed") != std::string::npos) gave_up = line;
  };
  compare(options);
  EXPECT_EQ(!gave_up.empty(), stays_whole_) << gave_up;
  if (stays_whole_) return;
  for (Declared declared : {Declared::ranks, Declared::types}) {
    SCOPED_TRACE(declared == Declared::ranks ? "of unknown sizes" : "of unknown ranks");
    compare(options, /*lift_steps=*/false, declared);
  }
}

void OpTest::compare(const SessionOptions& options, bool lift_steps, Declared declared) {
  try {
    NamedValues actual = outputs(options, lift_steps, declared);
    for (size_t i = 0; i < expected_.size(); ++i) {
      std::string name = "out" + std::to_string(i);
      if (expected_[i].defined()) expect_near(actual[name], expected_[i], relative_, absolute_, name);
    }
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
  }
}

std::string OpTest::error() {
  if (expected_.empty()) expected_.push_back(Tensor(ElementType::float32, Shape{0}));
  const ops::Operator* op = ops::operators().find(domain_, op_);
  if (op && op->decomposition) {
    SessionOptions options;
    options.decompose = {op_};
    for (Declared declared : {Declared::shapes, Declared::ranks, Declared::types}) {
      std::string text = error_of(options, declared);
      EXPECT_NE(text.find("'tested' (node 0)"), std::string::npos) << op_ << " as smaller operators: " << text;
    }
  }
  return error_of({});
}

std::string OpTest::error_of(const SessionOptions& options, Declared declared) {
  try {
    outputs(options, /*lift_steps=*/false, declared);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace tenon
