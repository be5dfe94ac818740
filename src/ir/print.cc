#include "ir/print.h"

#include <fmt/core.h>

#include <algorithm>

namespace tenon::ir {
namespace {

// Long lists are cut: the text is for reading.
constexpr size_t most_items = 16;

template <typename T, typename Print>
std::string list(const std::vector<T>& items, Print&& print) {
  std::string text = "[";
  for (size_t i = 0; i < items.size() && i < most_items; ++i) text += (i ? ", " : "") + print(items[i]);
  if (items.size() > most_items) text += fmt::format(", … {} in all", items.size());
  return text + "]";
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (char c : text.substr(0, 200)) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) < 32)
      result += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    else
      result += c;
  }
  return result + (text.size() > 200 ? "…\"" : "\"");
}

template <typename T>
std::string numbers(const Tensor& tensor) {
  std::vector<T> items(tensor.data<T>().begin(), tensor.data<T>().end());
  std::string text = list(items, [](T v) { return fmt::format("{}", v); });
  return tensor.rank() == 0 ? text.substr(1, text.size() - 2) : text;
}

std::string describe(const Tensor& tensor) {
  std::string type = Type::tensor(tensor.type(), symbolic(tensor.shape())).to_string();
  if (tensor.elements() > 8 || tensor.rank() > 1) return type;
  if (tensor.type() == ElementType::float32) return type + " = " + numbers<float>(tensor);
  if (tensor.type() == ElementType::int64) return type + " = " + numbers<int64_t>(tensor);
  if (tensor.type() == ElementType::int32) return type + " = " + numbers<int32_t>(tensor);
  return type;
}

std::string attribute_text(const Attribute& attribute) {
  if (!attribute.reference.empty()) return "@" + attribute.reference;
  return std::visit(
      [](const auto& value) -> std::string {
        using T = std::decay_t<decltype(value)>;
        auto number = [](auto v) { return fmt::format("{}", v); };
        if constexpr (std::is_same_v<T, float> || std::is_same_v<T, int64_t>)
          return number(value);
        else if constexpr (std::is_same_v<T, std::string>)
          return quoted(value);
        else if constexpr (std::is_same_v<T, std::vector<float>> || std::is_same_v<T, std::vector<int64_t>>)
          return list(value, number);
        else if constexpr (std::is_same_v<T, std::vector<std::string>>)
          return list(value, quoted);
        else if constexpr (std::is_same_v<T, ConstantPtr>)
          return "<" + describe(value->tensor) + ">";
        else if constexpr (std::is_same_v<T, std::vector<ConstantPtr>>)
          return fmt::format("<{} tensors>", value.size());
        else if constexpr (std::is_same_v<T, SparseConstantPtr>)
          return "<sparse tensor>";
        else if constexpr (std::is_same_v<T, std::vector<SparseConstantPtr>>)
          return fmt::format("<{} sparse tensors>", value.size());
        else if constexpr (std::is_same_v<T, Type>)
          return "<" + value.to_string() + ">";
        else if constexpr (std::is_same_v<T, std::vector<Type>>)
          return fmt::format("<{} types>", value.size());
        else
          return {};  // graphs follow below the node
      },
      attribute.value);
}

class Printer {
 public:
  void graph(const Graph& graph, int depth) {
    line(depth, fmt::format("graph {} ({}) -> ({})", quoted(graph.name), parameters(graph.inputs()),
                            parameters(graph.outputs())));
    for (const Value* value : graph.initializers()) {
      std::string content =
          value->constant() ? describe(value->constant()->tensor) : "sparse " + value->type.to_string();
      line(depth + 1, fmt::format("initializer {}: {}", value->name, content));
    }
    for (const Node& n : graph.nodes()) node(n, depth + 1);
  }

  void line(int depth, const std::string& content) {
    text += std::string(static_cast<size_t>(2 * depth), ' ') + content + "\n";
  }

  std::string text;

 private:
  static std::string parameters(const std::vector<Value*>& values) {
    std::string result;
    for (const Value* value : values)
      result += (result.empty() ? "" : ", ") + value->name + ": " + value->type.to_string();
    return result;
  }

  static std::string names(std::span<Value* const> values) {
    std::string result;
    for (size_t i = 0; i < values.size(); ++i)
      result += (i ? ", " : "") + (values[i] ? values[i]->name : std::string("_"));
    return result;
  }

  void node(const Node& node, int depth) {
    const std::string attributes = attributes_text(node);
    std::string op = node.domain.empty() ? node.op_type : node.domain + "." + node.op_type;
    if (!node.overload.empty()) op += ":" + node.overload;
    std::string content = fmt::format("{} = {}({})", names(node.outputs()), op, names(node.inputs()));
    if (!attributes.empty()) content += " {" + attributes + "}";
    if (!node.name.empty()) content += "  # " + node.name;
    line(depth, content);
    for (const Attribute& attribute : node.attributes) {
      attribute.for_each_graph([&](const Graph& subgraph) {
        line(depth + 1, attribute.name + ":");
        graph(subgraph, depth + 1);
      });
    }
  }
};

}  // namespace

std::string attributes_text(const Node& node) {
  std::string text;
  for (const Attribute& attribute : node.attributes) {
    const std::string value = attribute_text(attribute);
    if (!value.empty()) text += (text.empty() ? "" : ", ") + attribute.name + "=" + value;
  }
  return text;
}

std::string to_text(const Graph& graph) {
  Printer printer;
  printer.graph(graph, 0);
  return printer.text;
}

std::string to_text(const Model& model) {
  Printer printer;
  std::string opsets;
  for (const auto& [domain, version] : model.opset_imports.entries()) {
    opsets += fmt::format(", {} {}", domain.empty() ? "ai.onnx" : domain, version);
  }
  printer.line(0, fmt::format("model: IR version {}{}", model.ir_version, opsets));
  for (const auto& function : model.functions) {
    printer.line(0, fmt::format("function {}.{}{}{}", function->domain, function->name,
                                function->overload.empty() ? "" : ":", function->overload));
    printer.graph(*function->body, 1);
  }
  printer.graph(*model.graph, 0);
  return printer.text;
}

}  // namespace tenon::ir
