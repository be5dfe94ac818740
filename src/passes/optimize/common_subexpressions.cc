#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "passes/optimize/passes.h"
#include "passes/optimize/same_every_time.h"

namespace tenon::passes {
namespace {

// Larger constants are weights, which seldom are equal.
constexpr int64_t most_bytes = 1024;

template <typename T>
void append_bytes(std::string& key, const T& item) {
  key.append(reinterpret_cast<const char*>(&item), sizeof item);
}

void append_text(std::string& key, std::string_view text) {
  append_bytes(key, text.size());
  key += text;
}

void append_tensor(std::string& key, const Tensor& tensor) {
  append_bytes(key, tensor.type());
  append_bytes(key, tensor.rank());
  for (int64_t size : tensor.shape()) append_bytes(key, size);
  if (tensor.type() == ElementType::string) {
    for (const std::string& text : tensor.data<std::string>()) append_text(key, text);
  } else if (tensor.bytes() > 0) {
    key.append(static_cast<const char*>(tensor.raw()), static_cast<size_t>(tensor.bytes()));
  }
}

bool append_attribute(std::string& key, const ir::Attribute& attribute) {
  append_text(key, attribute.name);
  append_bytes(key, attribute.kind);
  return std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, float> || std::is_same_v<T, int64_t>) {
          append_bytes(key, value);
        } else if constexpr (std::is_same_v<T, std::string>) {
          append_text(key, value);
        } else if constexpr (std::is_same_v<T, std::vector<float>> || std::is_same_v<T, std::vector<int64_t>>) {
          append_bytes(key, value.size());
          for (auto item : value) append_bytes(key, item);
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          append_bytes(key, value.size());
          for (const std::string& item : value) append_text(key, item);
        } else if constexpr (std::is_same_v<T, ir::ConstantPtr>) {
          if (value->tensor.bytes() > most_bytes) return false;
          append_tensor(key, value->tensor);
        } else {
          return false;
        }
        return true;
      },
      attribute.value);
}

// Text that two nodes have in common if they compute the same; "" for one that is compared with none.
std::string key_of(const ir::Node& node) {
  std::string key;
  if (!is_same_every_time(node)) return key;
  append_text(key, node.domain);
  append_text(key, node.op_type);
  append_text(key, node.overload);
  append_bytes(key, reinterpret_cast<uintptr_t>(node.custom_operator.get()));
  for (const ir::Value* value : node.inputs()) append_bytes(key, reinterpret_cast<uintptr_t>(value));
  append_bytes(key, node.input_count());
  for (const ir::Value* value : node.outputs()) append_bytes(key, value != nullptr);
  std::vector<const ir::Attribute*> attributes;
  for (const ir::Attribute& attribute : node.attributes) attributes.push_back(&attribute);
  std::ranges::sort(attributes, {}, &ir::Attribute::name);
  for (const ir::Attribute* attribute : attributes) {
    if (!append_attribute(key, *attribute)) return {};
  }
  return key;
}

// The same for two nodes that compute equal sizes, however they do it.
std::string key_of_sizes(Editor& editor, const ir::Node& node) {
  if (node.output_count() != 1 || !node.output(0)) return {};
  const std::optional<SymbolicValues> values = editor.values(node.output(0));
  const ir::Type& type = editor.fact(*node.output(0)).type;
  if (!values || !type.shape) return {};
  std::string key = fmt::format("sizes {} {}", static_cast<int>(type.element), type.shape->size());
  for (const Dim& size : *values) {
    if (size.has_unknown()) return {};
    key += ", " + size.to_string();
  }
  return key;
}

}  // namespace

void merge_constants(Editor& editor, ir::Graph& graph) {
  if (graph.nodes().empty()) return;
  std::unordered_map<std::string, ir::Value*> known;
  // A copy: rewrites remove some.
  for (std::vector<ir::Value*> initializers = graph.initializers(); ir::Value * value : initializers) {
    const Tensor* tensor = Editor::constant(value);
    if (!tensor || value->users().empty() || editor.is_pinned(*value)) continue;
    if (tensor->type() == ElementType::string || tensor->bytes() > most_bytes) continue;
    std::string key;
    append_tensor(key, *tensor);
    auto [at, added] = known.emplace(std::move(key), value);
    if (added) continue;
    ir::Value& twin = *at->second;
    editor.rewrite(*value->users()[0], [&](Patch& patch) { patch.replace(*value, twin); });
  }
}

void merge_common_subexpressions(Editor& editor, ir::Graph& graph) {
  merge_constants(editor, graph);
  std::unordered_map<std::string, ir::Node*> known;
  std::vector<ir::Node*> nodes;
  for (ir::Node& node : graph.nodes()) nodes.push_back(&node);
  for (ir::Node* node : nodes) {
    if (editor.is_removed(*node)) continue;
    std::string key = key_of_sizes(editor, *node);
    if (key.empty()) key = key_of(*node);
    if (key.empty()) continue;
    auto [at, added] = known.emplace(std::move(key), node);
    if (added) continue;
    // Of two ways to equal sizes, the first may have gone with its last user.
    if (editor.is_removed(*at->second)) {
      at->second = node;
      continue;
    }
    const ir::Node& twin = *at->second;
    bool can = true;
    for (size_t i = 0; i < node->output_count(); ++i)
      can &= !node->output(i) || editor.can_replace(*node->output(i), *twin.output(i));
    if (!can) continue;
    editor.rewrite(*node, [&](Patch& patch) {
      for (size_t i = 0; i < node->output_count(); ++i) {
        if (node->output(i)) patch.replace(*node->output(i), *twin.output(i));
      }
    });
  }
}

}  // namespace tenon::passes
