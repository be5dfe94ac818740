#include <algorithm>
#include <map>

#include "base/fail.h"
#include "ops/einsum/equation.h"
#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

constexpr int first_ellipsis = 256, most_ellipsis = 64, ellipsis = -1;

std::vector<int> labels_of(const std::string& term) {
  std::vector<int> labels;
  for (size_t i = 0; i < term.size(); ++i) {
    const char c = term[i];
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      labels.push_back(c);
    } else if (term.compare(i, 3, "...") == 0) {
      if (std::ranges::count(labels, ellipsis))
        fail(ErrorCode::invalid_attribute, "the term '{}' has more than one ellipsis", term);
      labels.push_back(ellipsis);
      i += 2;
    } else {
      fail(ErrorCode::invalid_attribute, "the term '{}' has '{}', which is no letter", term, c);
    }
  }
  return labels;
}

// Puts the numbers of `count` axes where the ellipsis is.
void expand(std::vector<int>& labels, int count) {
  auto at = std::ranges::find(labels, ellipsis);
  if (at == labels.end()) return;
  at = labels.erase(at);
  std::vector<int> axes;
  for (int i = 0; i < count; ++i) axes.push_back(first_ellipsis + most_ellipsis - count + i);
  labels.insert(at, axes.begin(), axes.end());
}

void infer_einsum(Inference& i) {
  std::vector<int> ranks;
  for (size_t input = 0; input < i.input_count(); ++input) {
    if (!i.has_shape(input)) return i.output(0, i.element(0), std::nullopt);
    ranks.push_back(i.rank(input));
  }
  EinsumEquation equation = EinsumEquation::parse(i.node().string_attribute("equation", ""), ranks);
  std::map<int, Dim> sizes;
  for (size_t input = 0; input < equation.inputs.size(); ++input) {
    for (size_t axis = 0; axis < equation.inputs[input].size(); ++axis) {
      int label = equation.inputs[input][axis];
      const Dim& dim = i.shape(input)[axis];
      auto [known, fresh] = sizes.try_emplace(label, dim);
      if (fresh || dim.is(1)) continue;
      if (known->second.is(1))
        known->second = dim;
      else if (label >= first_ellipsis)
        known->second = i.broadcast({known->second}, {dim})[0];
      else
        known->second = i.equal(known->second, dim, fmt::format("the sizes of '{}'", static_cast<char>(label)));
    }
  }
  SymbolicShape result;
  for (int label : equation.output) result.push_back(sizes.at(label));
  i.output(0, i.element(0), std::move(result));
}

}  // namespace

EinsumEquation EinsumEquation::parse(const std::string& text, const std::vector<int>& ranks) {
  std::string compact;
  std::ranges::copy_if(text, std::back_inserter(compact), [](char c) { return c != ' '; });
  const size_t arrow = compact.find("->");
  std::string left = compact.substr(0, arrow);
  EinsumEquation result;
  for (size_t begin = 0; begin <= left.size();) {
    const size_t end = std::min(left.find(',', begin), left.size());
    result.inputs.push_back(labels_of(left.substr(begin, end - begin)));
    begin = end + 1;
  }
  if (result.inputs.size() != ranks.size()) {
    fail(ErrorCode::invalid_attribute, "the equation '{}' has {} terms for {} inputs", text, result.inputs.size(),
         ranks.size());
  }
  int most = 0;
  std::map<int, int> uses;
  for (size_t i = 0; i < ranks.size(); ++i) {
    std::vector<int>& labels = result.inputs[i];
    const bool has_ellipsis = std::ranges::count(labels, ellipsis) > 0;
    const int covered = ranks[i] - static_cast<int>(labels.size()) + has_ellipsis;
    if (covered < 0 || (covered > 0 && !has_ellipsis) || covered > most_ellipsis) {
      fail(ErrorCode::invalid_attribute, "term {} of the equation '{}' has {} labels; the input has rank {}", i, text,
           labels.size() - has_ellipsis, ranks[i]);
    }
    most = std::max(most, covered);
    expand(labels, covered);
    for (int label : labels) ++uses[label];
  }
  if (arrow != std::string::npos) {
    result.output = labels_of(compact.substr(arrow + 2));
    expand(result.output, most);
  } else {
    result.output = {ellipsis};
    expand(result.output, most);
    for (const auto& [label, count] : uses) {
      if (count == 1 && label < first_ellipsis) result.output.push_back(label);
    }
  }
  for (int label : result.output) {
    if (!uses.count(label))
      fail(ErrorCode::invalid_attribute, "the output of the equation '{}' has '{}', which no input has", text,
           static_cast<char>(label));
    if (std::ranges::count(result.output, label) > 1) {
      fail(ErrorCode::invalid_attribute, "the output of the equation '{}' has '{}' twice", text,
           static_cast<char>(label));
    }
  }
  return result;
}

void define_einsum(OperatorList& list) {
  list.add("Einsum", {12, 28})
      .variadic_input("Inputs", "T")
      .output("Output", "T")
      .types("T", types::numbers)
      .required_attribute("equation", ir::AttributeKind::string)
      .infer(infer_einsum);
}

}  // namespace tenon::ops
