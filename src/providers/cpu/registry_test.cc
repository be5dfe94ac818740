// Every operator is complete: see docs/recipes/add-an-operator.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <sstream>

#include "ops/operator.h"
#include "providers/cpu/cpu_provider.h"

namespace tenon {

namespace ops {
#define FOLDER(name) void define_##name(OperatorList&);
#include "ops/folders.def"
#undef FOLDER
}  // namespace ops

namespace {

struct Folder {
  std::string name;
  void (*define)(ops::OperatorList&);
};

const Folder folders[] = {
#define FOLDER(name) {#name, ops::define_##name},
#include "ops/folders.def"
#undef FOLDER
};

std::string read(const std::string& path) {
  std::ifstream file(std::string(TENON_SOURCE_DIR) + "/" + path);
  EXPECT_TRUE(file) << path << " cannot be read";
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The lines of a list without comments.
std::vector<std::string> lines(const std::string& path) {
  std::vector<std::string> result;
  std::istringstream text(read(path));
  for (std::string line; std::getline(text, line);) {
    if (!line.empty() && line[0] != '#') result.push_back(line);
  }
  return result;
}

TEST(Registry, FoldersAreSorted) { EXPECT_TRUE(std::ranges::is_sorted(folders, {}, &Folder::name)); }

// Whether its last adapter makes it another operator, as Upsample became Resize: no node of it is left to run.
bool is_retired(const ops::Operator& op) { return !op.adapters.empty() && op.adapters.back().to > op.newest_version(); }

TEST(Registry, EveryOperatorHasARuleAndAKernel) {
  for (const ops::Operator* op : ops::operators().all()) {
    if (is_retired(*op)) continue;
    EXPECT_TRUE(op->infer_types) << op->name << " has no inference rule";
    EXPECT_TRUE(cpu_kernels().find(op->domain, op->name) || op->decomposition)
        << op->name << " has neither a CPU kernel nor a decomposition";
  }
}

TEST(Registry, VersionsAndAdaptersGoUp) {
  for (const ops::Operator* op : ops::operators().all()) {
    ASSERT_FALSE(op->versions.empty()) << op->name;
    EXPECT_TRUE(std::ranges::is_sorted(op->versions, std::less_equal())) << op->name;
    int end = 0;
    for (const ops::Adapter& adapter : op->adapters) {
      EXPECT_LT(adapter.from, adapter.to) << op->name;
      EXPECT_LE(end, adapter.from) << op->name << ": two adapters start from version " << adapter.from;
      bool known = std::ranges::count(op->versions, adapter.to) > 0;
      bool leaves = is_retired(*op) && &adapter == &op->adapters.back() && adapter.to <= ops::newest_opset;
      EXPECT_TRUE(known || leaves) << op->name << " has no version " << adapter.to;
      EXPECT_TRUE(std::ranges::count(op->versions, adapter.from)) << op->name << " has no version " << adapter.from;
      end = adapter.to;
    }
  }
}

TEST(Registry, EveryOperatorIsTestedInItsFolder) {
  for (const Folder& folder : folders) {
    ops::OperatorList list;
    folder.define(list);
    std::string file = "src/ops/" + folder.name + "/test.cc", text = read(file);
    for (const ops::Operator* op : list.all()) {
      EXPECT_NE(text.find('"' + op->name + '"'), std::string::npos) << file << " does not test " << op->name;
    }
  }
}

// "node/test_reduce_sum_square_…" and "ReduceSumSquare" have the same start.
std::string plain(std::string_view name) {
  std::string result;
  for (char c : name) {
    if (c != '_') result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

TEST(Registry, EveryOperatorHasAConformanceCase) {
  std::vector<std::string> cases = lines("tests/conformance/expected.txt");
  std::map<std::string, std::string> exceptions;
  for (const std::string& line : lines("tests/conformance/operators.txt")) {
    size_t colon = line.find(": ");
    ASSERT_NE(colon, std::string::npos) << "operators.txt gives no case or reason: " << line;
    std::string name = line.substr(0, colon);
    size_t dot = name.rfind('.');
    std::string domain = dot == std::string::npos ? "" : name.substr(0, dot);
    EXPECT_TRUE(ops::operators().find(domain, name.substr(dot + 1)))
        << "operators.txt names an operator that does not exist: " << name;
    exceptions[name] = line.substr(colon + 2);
  }
  for (const ops::Operator* op : ops::operators().all()) {
    std::string start = "node/test" + plain(op->name);
    bool named = std::ranges::any_of(cases, [&](const std::string& name) { return plain(name).starts_with(start); });
    auto exception = exceptions.find(op->domain.empty() ? op->name : op->domain + "." + op->name);
    if (exception == exceptions.end()) {
      EXPECT_TRUE(named) << "expected.txt has no case named after " << op->name;
      continue;
    }
    EXPECT_FALSE(named) << op->name << " needs no line in operators.txt";
    if (exception->second.find("/test_") != std::string::npos) {
      EXPECT_TRUE(std::ranges::count(cases, exception->second)) << exception->second << " is not in expected.txt";
    }
  }
}

}  // namespace
}  // namespace tenon
