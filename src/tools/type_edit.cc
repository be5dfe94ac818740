#include "tools/type_edit.h"

#include <algorithm>
#include <cctype>

#include "tools/graph_edit.h"

namespace tenon::tools {

void change_dims(ir::Type& type, const std::function<void(Dim&)>& change) {
  if (type.inner) {
    ir::Type inner = *type.inner;
    change_dims(inner, change);
    type.inner = std::make_shared<const ir::Type>(std::move(inner));
  }
  if (type.shape) std::ranges::for_each(*type.shape, change);
}

void for_each_output_type(ir::Graph& graph, const std::function<void(const ir::Value&, ir::Type&)>& change) {
  std::vector<std::pair<ir::Value*, ir::Type>> outputs;
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    outputs.emplace_back(graph.outputs()[i], graph.declared_output_types()[i]);
  while (!graph.outputs().empty()) graph.remove_output(graph.outputs().size() - 1);
  for (auto& [value, type] : outputs) {
    change(*value, type);
    graph.add_output(*value, std::move(type));
  }
}

void change_dims(ir::Graph& graph, const std::function<void(Dim&)>& change) {
  for_each_graph(graph, [&](ir::Graph& inner) {
    for (ir::Value& value : inner.values()) change_dims(value.type, change);
    for_each_output_type(inner, [&](const ir::Value&, ir::Type& type) { change_dims(type, change); });
  });
}

namespace {

bool is_name_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

struct Token {
  std::string text;
  bool is_name = false;
};

std::vector<Token> tokens(const std::string& text) {
  std::vector<Token> result;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_name_letter(text[end])) ++end;
    if (end == at) {
      result.push_back({text.substr(at++, 1)});
      continue;
    }
    std::string word = text.substr(at, end - at);
    const bool number = std::isdigit(static_cast<unsigned char>(word[0])) != 0;
    const bool function = end < text.size() && text[end] == '(';
    at = end;
    result.push_back({std::move(word), !number && !function});
  }
  return result;
}

// Whether names are joined by arithmetic: one that merely has a sign or a blank in it ("batch size") is a name.
bool is_expression(const std::vector<Token>& parts) {
  bool operand_before = false;
  for (const Token& part : parts) {
    const bool operand = part.text.size() > 1 || is_name_letter(part.text[0]);
    if (operand && operand_before) return false;
    if (!operand && part.text.find_first_of(" +-*/(),") == std::string::npos) return false;
    if (part.text != " ") operand_before = operand;
  }
  return true;
}

}  // namespace

std::vector<std::string> names_in(const std::string& dim) {
  const std::vector<Token> parts = tokens(dim);
  if (!is_expression(parts)) return {dim};
  std::vector<std::string> names;
  for (const Token& part : parts) {
    if (part.is_name) names.push_back(part.text);
  }
  return names;
}

std::string replace_names(const std::string& dim, const std::map<std::string, std::string>& names) {
  if (auto whole = names.find(dim); whole != names.end()) return whole->second;
  const std::vector<Token> parts = tokens(dim);
  if (!is_expression(parts)) return dim;
  std::string text;
  for (const Token& part : parts) {
    auto found = part.is_name ? names.find(part.text) : names.end();
    text += found == names.end() ? part.text : found->second;
  }
  return text;
}

namespace {

// Sums of products of numbers, names, and floor(a/b), min(a, b), max(a, b); a//b and a/b are floor too.
class DimParser {
 public:
  DimParser(const std::vector<Token>& parts, const DimLookup& lookup) : lookup_(lookup) {
    for (const Token& part : parts) {
      if (part.text != " ") parts_.push_back(part);
    }
  }

  std::optional<Dim> parse() {
    std::optional<Dim> result = sum();
    return at_ == parts_.size() ? result : std::nullopt;
  }

 private:
  bool take(std::string_view text) {
    if (at_ == parts_.size() || parts_[at_].text != text) return false;
    ++at_;
    return true;
  }

  std::optional<Dim> sum() {
    const bool negative = take("-");
    std::optional<Dim> result = product();
    if (result && negative) result = Dim(0) - *result;
    while (result && at_ < parts_.size()) {
      const bool plus = take("+");
      if (!plus && !take("-")) break;
      const std::optional<Dim> next = product();
      if (!next) return std::nullopt;
      result = plus ? *result + *next : *result - *next;
    }
    return result;
  }

  std::optional<Dim> product() {
    std::optional<Dim> result = factor();
    while (result && at_ < parts_.size()) {
      const bool times = take("*");
      if (!times && !take("/")) break;
      if (!times) take("/");
      const std::optional<Dim> next = factor();
      if (!next) return std::nullopt;
      result = times ? *result * *next : floor_div(*result, *next);
    }
    return result;
  }

  std::optional<Dim> factor() {
    if (at_ == parts_.size()) return std::nullopt;
    if (take("(")) return closed(sum());
    const Token& part = parts_[at_++];
    if (std::isdigit(static_cast<unsigned char>(part.text[0]))) {
      const bool plain = part.text.size() < 18 && part.text.find_first_not_of("0123456789") == std::string::npos;
      return plain ? std::optional(Dim(std::stoll(part.text))) : std::nullopt;
    }
    if (part.is_name) return lookup_(part.text).value_or(Dim::symbol(part.text));
    return take("(") ? function(part.text) : std::nullopt;
  }

  std::optional<Dim> function(const std::string& name) {
    const std::optional<Dim> a = sum();
    if (a && name == "floor") return closed(a);
    if (!a || !take(",")) return std::nullopt;
    const std::optional<Dim> b = sum();
    if (!b || !take(")")) return std::nullopt;
    if (name == "min" || name == "Min") return min(*a, *b);
    if (name == "max" || name == "Max") return max(*a, *b);
    return std::nullopt;
  }

  std::optional<Dim> closed(std::optional<Dim> dim) { return take(")") ? std::move(dim) : std::nullopt; }

  std::vector<Token> parts_;
  const DimLookup& lookup_;
  size_t at_ = 0;
};

}  // namespace

Dim substitute(const std::string& dim, const DimLookup& lookup) {
  if (std::optional<Dim> whole = lookup(dim)) return *whole;
  const std::vector<Token> parts = tokens(dim);
  const bool mentioned =
      std::ranges::any_of(parts, [&](const Token& part) { return part.is_name && lookup(part.text); });
  if (!mentioned || !is_expression(parts)) return Dim::symbol(dim);
  return DimParser(parts, lookup).parse().value_or(Dim::symbol(dim));
}

}  // namespace tenon::tools
