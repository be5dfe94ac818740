#include "ops/type_history.h"

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "ops/operator.h"

namespace tenon::ops {
namespace {

using Names = std::set<std::string, std::less<>>;

// The types of a list of parameters.
struct Parameters {
  std::vector<const Names*> types;
  bool last_repeats = false;

  const Names* at(size_t i) const {
    if (last_repeats && i >= types.size()) return types.back();
    return i < types.size() ? types[i] : nullptr;
  }
};

struct Version {
  Parameters inputs, outputs;
};

class History {
 public:
  explicit History(std::string_view text) {
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);) {
      if (!line.empty() && line[0] != '#') read(line);
    }
  }

  const Version* find(const Operator& op, int version) const {
    const auto found = versions_.find({op.domain.empty() ? op.name : op.domain + "." + op.name, version});
    return found == versions_.end() ? nullptr : &found->second;
  }

 private:
  void read(const std::string& line) {
    std::istringstream words(line);
    std::string first, word;
    words >> first;
    if (first == "set") {
      words >> word;
      Names& names = sets_[word];
      while (words >> word) names.insert(word.find('(') == std::string::npos ? "tensor(" + word + ")" : word);
      return;
    }
    int number = 0;
    words >> number;
    Version& version = versions_[{first, number}];
    Parameters* parameters = &version.inputs;
    while (words >> word) {
      if (word == "->") {
        parameters = &version.outputs;
        continue;
      }
      parameters->last_repeats = word[0] == '*';
      parameters->types.push_back(&sets_[word.substr(parameters->last_repeats ? 1 : 0)]);
    }
  }

  std::map<std::string, Names> sets_;
  std::map<std::pair<std::string, int>, Version> versions_;
};

bool is_complete(const ir::Type& type) {
  if (!type.known()) return false;
  if (type.inner) return is_complete(*type.inner);
  return !type.is_tensor() || type.element != ElementType::undefined;
}

const Version* find_version(const Operator& op, int version) {
  static const History history(type_history_text());
  return history.find(op, version);
}

bool allows(const Names* names, const ir::Type& type) {
  if (!names || !is_complete(type)) return true;
  std::string name = type.name();
  std::erase(name, ' ');
  return names->count(name) > 0;
}

}  // namespace

bool is_in_onnx(const Operator& op, int version) {
  return (!op.domain.empty() && op.domain != ai_onnx_ml) || find_version(op, version);
}

bool allows_input(const Operator& op, int version, size_t i, const ir::Type& type) {
  const Version* known = find_version(op, version);
  return !known || allows(known->inputs.at(i), type);
}

bool allows_output(const Operator& op, int version, size_t i, const ir::Type& type) {
  const Version* known = find_version(op, version);
  return !known || allows(known->outputs.at(i), type);
}

}  // namespace tenon::ops
