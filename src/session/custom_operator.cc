#include "session/custom_operator.h"

#include <algorithm>
#include <set>

#include "base/fail.h"
#include "ops/inference.h"
#include "provider/kernel.h"
#include "session/custom_operator_library.h"

namespace tenon {
namespace {

using Parameter = CustomOperator::Parameter;

// The kinds in the order of AttributeValue's alternatives.
constexpr ir::AttributeKind attribute_kinds[] = {
    ir::AttributeKind::float_, ir::AttributeKind::int_,    ir::AttributeKind::string, ir::AttributeKind::floats,
    ir::AttributeKind::ints,   ir::AttributeKind::strings, ir::AttributeKind::tensor};
static_assert(std::size(attribute_kinds) == std::variant_size_v<AttributeValue>);

// Throws what broke the contract between the user's code and Tenon.
template <typename... Args>
[[noreturn]] void broke_contract(fmt::format_string<Args...> text, Args&&... args) {
  throw Error(ErrorCode::custom_operator, fmt::format(text, std::forward<Args>(args)...));
}

// Calls the user's code. `what` names it.
template <typename Call>
decltype(auto) call_user(const char* what, Call&& call) {
  try {
    return call();
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::out_of_memory, "the system has no memory left");
  } catch (const std::exception& error) {
    broke_contract("its {} failed: {}", what, error.what());
  } catch (...) {
    broke_contract("its {} failed with an exception that is no std::exception", what);
  }
}

// The parameter that input or output i belongs to; null if there is none.
const Parameter* parameter_at(const std::vector<Parameter>& parameters, size_t i) {
  if (i < parameters.size()) return &parameters[i];
  const bool is_open = !parameters.empty() && parameters.back().count == Parameter::Count::any_number;
  return is_open ? &parameters.back() : nullptr;
}

ops::TypeSet type_set(const std::vector<ElementType>& types) {
  ops::TypeSet set;
  for (ElementType type : types) set = set | ops::TypeSet{type};
  return set;
}

template <typename T, typename... Alternatives>
constexpr bool is_alternative(std::type_identity<std::variant<Alternatives...>>) {
  return (std::is_same_v<T, Alternatives> || ...);
}

// nullopt for kinds that custom operators do not take.
std::optional<AttributeValue> value_of(const ir::Attribute& attribute) {
  return std::visit(
      []<typename T>(const T& value) -> std::optional<AttributeValue> {
        if constexpr (std::is_same_v<T, ir::ConstantPtr>)
          return value->tensor;
        else if constexpr (is_alternative<T>(std::type_identity<AttributeValue>()))
          return value;
        else
          return std::nullopt;
      },
      attribute.value);
}

// What the three views of a node have in common.
template <typename Interface>
class NodeView : public Interface {
 public:
  NodeView(const CustomOperator& op, const ir::Node& node) : op_(op), node_(node) {}

  size_t input_count() const final { return node_.input_count(); }
  bool has_input(size_t i) const final { return node_.input(i) != nullptr; }
  size_t output_count() const final { return node_.output_count(); }
  bool wants_output(size_t i) const final { return node_.output(i) != nullptr; }
  std::optional<AttributeValue> find_attribute(std::string_view name) const final {
    auto declared = std::ranges::find(op_.attributes, name, &CustomOperator::Attribute::name);
    if (declared == op_.attributes.end())
      broke_contract("its code asks for attribute '{}', which it does not declare", name);
    if (const ir::Attribute* attribute = node_.attribute(name)) return value_of(*attribute);
    return declared->has_default ? std::optional(declared->otherwise) : std::nullopt;
  }

 protected:
  const CustomOperator& op_;
  const ir::Node& node_;
};

class InferenceView final : public NodeView<CustomInference> {
 public:
  InferenceView(const CustomOperator& op, ops::Inference& inference)
      : NodeView(op, inference.node()), inference_(inference), is_set_(inference.output_count()) {}

  ElementType input_type(size_t i) const override {
    return has_input(i) ? inference_.element(i) : ElementType::undefined;
  }
  const std::optional<SymbolicShape>& input_shape(size_t i) const override {
    static const std::optional<SymbolicShape> unknown;
    return has_input(i) ? inference_.type(i).shape : unknown;
  }
  const Tensor* constant(size_t i) const override { return inference_.constant(i); }
  std::optional<SymbolicValues> input_values(size_t i) const override { return inference_.values(i); }
  Dim equal(const Dim& a, const Dim& b, std::string_view what) const override { return inference_.equal(a, b, what); }
  [[noreturn]] void fail(const std::string& message) const override {
    inference_.fail_with(ErrorCode::shape_mismatch, message);
  }

  void set_output(size_t i, ElementType type, std::optional<SymbolicShape> shape) override {
    const Parameter* parameter = parameter_at(op_.outputs, i);
    if (!parameter) broke_contract("its inference rule sets output {}, it declares {}", i, op_.outputs.size());
    if (i >= is_set_.size()) return;
    const ElementType implied = implied_type(*parameter);
    if (type == ElementType::undefined) type = implied;
    if (type == ElementType::undefined && knows_inputs())
      broke_contract("its inference rule leaves the type of output {} '{}' open", i, parameter->name);
    if (type != ElementType::undefined && !type_set(parameter->types).contains(type)) {
      broke_contract("its inference rule makes output {} '{}' {}; it declares {}", i, parameter->name, name_of(type),
                     type_set(parameter->types).to_string());
    }
    if (implied != ElementType::undefined && type != implied) {
      broke_contract("its inference rule makes output {} '{}' {}; it declares the type of an input, {}", i,
                     parameter->name, name_of(type), name_of(implied));
    }
    for (const Dim& dim : shape.value_or(SymbolicShape())) {
      if (dim.is_known() && dim.value() < 0)
        fail(fmt::format("output {} would have the shape {}", i, to_string(*shape)));
    }
    inference_.output(i, type, std::move(shape));
    is_set_[i] = true;
  }

  void finish() {
    for (size_t i = 0; i < is_set_.size(); ++i) {
      if (!is_set_[i]) set_output(i, ElementType::undefined, std::nullopt);
    }
  }

 private:
  // The one type that the declaration leaves possible.
  ElementType implied_type(const Parameter& parameter) const {
    for (size_t i = 0; !parameter.variable.empty() && i < input_count(); ++i) {
      const Parameter* input = parameter_at(op_.inputs, i);
      if (input && input->variable == parameter.variable && input_type(i) != ElementType::undefined)
        return input_type(i);
    }
    return parameter.types.size() == 1 ? parameter.types[0] : ElementType::undefined;
  }
  bool knows_inputs() const {
    for (size_t i = 0; i < input_count(); ++i) {
      if (has_input(i) && input_type(i) == ElementType::undefined) return false;
    }
    return true;
  }

  ops::Inference& inference_;
  std::vector<bool> is_set_;
};

class KernelInfoView final : public NodeView<CustomKernelInfo> {
 public:
  KernelInfoView(const CustomOperator& op, const NodeInfo& info) : NodeView(op, info.node()), info_(info) {}
  ElementType input_type(size_t i) const override { return has_input(i) ? info_.element(i) : ElementType::undefined; }
  const Tensor* constant(size_t i) const override { return info_.constant(i); }

 private:
  const NodeInfo& info_;
};

class RunView final : public NodeView<CustomRun> {
 public:
  RunView(const CustomOperator& op, KernelRun& run) : NodeView(op, run.node()), run_(run) {
    is_given_.resize(run.output_count(), false);
  }

  ElementType input_type(size_t i) const override { return has_input(i) ? input(i).type() : ElementType::undefined; }
  const Tensor& input(size_t i) const override {
    if (!run_.has_input(i)) broke_contract("its kernel asks for input {}, which the node does not have", i);
    return run_.input(i);
  }
  Tensor& output(size_t i) override {
    give(i);
    if (!run_.inferred_shape(i))
      broke_contract("its kernel asks for {}, whose shape inference leaves open: it has to give one", describe(i));
    return run_.output(i);
  }
  Tensor& output(size_t i, const Shape& shape) override {
    give(i);
    check_shape(i, shape);
    return run_.output(i, shape);
  }
  void set_output(size_t i, Tensor tensor) override {
    give(i);
    if (tensor.type() != run_.output_type(i))
      broke_contract("its kernel gives {} of {}, inferred is {}", describe(i), name_of(tensor.type()),
                     name_of(run_.output_type(i)));
    check_shape(i, tensor.shape());
    run_.set_output(i, std::move(tensor));
  }

  void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) const override {
    if (count <= 0) return;
    run_.threads().parallel_for(count, std::max<int64_t>(1, grain),
                                [&](int64_t begin, int64_t end) { body(begin, end); });
  }
  std::shared_ptr<void> scratch(int64_t bytes) const override {
    if (bytes < 0) tenon::fail(ErrorCode::overflow, "its kernel asks for {} bytes of memory", bytes);
    return run_.scratch(bytes);
  }

  void finish() const {
    for (size_t i = 0; i < is_given_.size(); ++i) {
      if (run_.wants_output(i) && !is_given_[i]) broke_contract("its kernel does not give {}", describe(i));
    }
  }

 private:
  std::string describe(size_t i) const {
    const Parameter* parameter = parameter_at(op_.outputs, i);
    return fmt::format("output {} '{}'", i, parameter ? parameter->name : "");
  }
  void give(size_t i) {
    if (!run_.wants_output(i))
      broke_contract("its kernel asks for {}, which the node leaves out: wants_output tells", describe(i));
    is_given_[i] = true;
  }
  // Against what others rely on: the whole shape where it is known, else the sizes that are.
  void check_shape(size_t i, const Shape& shape) const {
    const ir::Type& type = node_.output(i)->type;
    const std::optional<Shape>& whole = run_.inferred_shape(i);
    if (!whole && !type.shape) return;
    const SymbolicShape inferred = whole ? symbolic(*whole) : *type.shape;
    bool fits = inferred.size() == static_cast<size_t>(shape.rank());
    for (size_t axis = 0; fits && axis < inferred.size(); ++axis)
      fits = !inferred[axis].is_known() || inferred[axis].is(shape[static_cast<int>(axis)]);
    if (!fits)
      broke_contract("its kernel gives {} the shape {}, inferred is {}", describe(i), shape.to_string(),
                     to_string(inferred));
  }

  KernelRun& run_;
  SmallVector<bool, 4> is_given_;
};

class UserKernel final : public Kernel {
 public:
  UserKernel(std::shared_ptr<const CustomOperator> op, const NodeInfo& info) : op_(std::move(op)) {
    if (!op_->make_kernel) return;
    kernel_ = call_user("kernel", [&] { return op_->make_kernel(KernelInfoView(*op_, info)); });
    if (!kernel_) broke_contract("its cpu_kernel makes none");
  }
  void run(KernelRun& run) const override {
    RunView view(*op_, run);
    call_user("kernel", [&] { kernel_ ? kernel_->run(view) : op_->run(view); });
    view.finish();
  }

 private:
  std::shared_ptr<const CustomOperator> op_;
  std::unique_ptr<CustomKernel> kernel_;
};

std::string problem_of(const std::vector<Parameter>& parameters, const char* what) {
  for (const Parameter& parameter : parameters) {
    if (parameter.types.empty() && !parameter.variable.empty())
      return fmt::format("no types are given for the type variable '{}'", parameter.variable);
    if (parameter.types.empty()) return fmt::format("{} '{}' has no types", what, parameter.name);
    for (ElementType type : parameter.types) {
      if (!is_known(static_cast<int>(type)))
        return fmt::format("{} '{}' has a type that is none", what, parameter.name);
    }
    if (parameter.count == Parameter::Count::any_number && &parameter != &parameters.back())
      return fmt::format("{} '{}' stands for any number, so it must be the last", what, parameter.name);
    if (parameter.at_least < 0)
      return fmt::format("{} '{}' cannot be there {} times", what, parameter.name, parameter.at_least);
  }
  return {};
}

std::string problem_of(const CustomOperator& op) {
  if (op.name.empty()) return "it has no name";
  if (op.since < 1) return fmt::format("version {} is none, they count from 1", op.since);
  if (op.outputs.empty()) return "it has no output";
  if (!op.run && !op.make_kernel) return "it has no kernel: call cpu or cpu_kernel";
  if (op.run && op.make_kernel) return "it has two kernels: call either cpu or cpu_kernel";
  std::set<std::string_view> names;
  for (const CustomOperator::Attribute& attribute : op.attributes) {
    if (!names.insert(attribute.name).second) return fmt::format("attribute '{}' is declared twice", attribute.name);
  }
  std::string problem = problem_of(op.inputs, "input");
  return problem.empty() ? problem_of(op.outputs, "output") : problem;
}

std::vector<ops::Parameter> to_parameters(const std::vector<Parameter>& parameters) {
  std::vector<ops::Parameter> result;
  for (const Parameter& parameter : parameters) {
    result.push_back({parameter.name, parameter.variable, type_set(parameter.types), ops::Kinds::tensor,
                      static_cast<ops::Parameter::Count>(parameter.count), parameter.at_least, true});
  }
  return result;
}

}  // namespace

std::shared_ptr<const ops::Operator> to_operator(CustomOperator definition, const std::string& source) {
  definition.domain = ir::canonical_domain(definition.domain);
  if (std::string problem = problem_of(definition); !problem.empty()) {
    fail(ErrorCode::invalid_argument, "{} defines {} in a way that makes no sense: {}", source,
         ops::full_name(definition.domain, definition.name), problem);
  }
  auto custom = std::make_shared<const CustomOperator>(std::move(definition));
  auto op = std::make_shared<ops::Operator>();
  op->name = custom->name;
  op->domain = custom->domain;
  op->versions = {custom->since};
  op->inputs = to_parameters(custom->inputs);
  op->outputs = to_parameters(custom->outputs);
  for (const CustomOperator::Attribute& attribute : custom->attributes)
    op->attributes.push_back({attribute.name, attribute_kinds[attribute.otherwise.index()], attribute.is_required});
  op->is_random = custom->is_random;
  op->infer_types = [custom](ops::Inference& inference) {
    InferenceView view(*custom, inference);
    if (custom->inference) call_user("inference rule", [&] { custom->inference(view); });
    view.finish();
  };
  op->make_cpu_kernel = [custom](const NodeInfo& info) { return std::make_unique<UserKernel>(custom, info); };
  return op;
}

ops::CustomOperatorList list_custom_operators(const std::vector<CustomOperator>& operators,
                                              const std::vector<std::filesystem::path>& libraries) {
  ops::CustomOperatorList list;
  for (size_t i = 0; i < operators.size(); ++i) {
    const std::string source = fmt::format("custom_operators[{}]", i);
    list.add(to_operator(operators[i], source), source);
  }
  for (const std::filesystem::path& path : libraries) {
    const std::string source = fmt::format("library '{}'", path.string());
    for (CustomOperator& op : load_custom_operators(path)) list.add(to_operator(std::move(op), source), source);
  }
  return list;
}

}  // namespace tenon
