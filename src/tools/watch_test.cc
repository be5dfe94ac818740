#include "tenon/tools/watch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "model_builder.h"
#include "tenon/tools/value_files.h"

namespace tenon::tools {
namespace {

using Names = std::vector<std::string>;

OnnxModel model_of(const ModelBuilder& builder) {
  const std::string bytes = builder.bytes();
  return OnnxModel::from_bytes(std::as_bytes(std::span(bytes)));
}

SessionOptions plain() {
  SessionOptions options;
  options.level = OptimizationLevel::none;
  return options;
}

// y = log(x - w) * v
ModelBuilder logarithm(ElementType type = ElementType::float32) {
  ModelBuilder b;
  b.input("x", type, SymbolicShape{Dim::symbol("n")});
  b.node("Sub", {"x", "x"}, {"difference"}, "subtract");
  b.node("Softmax", {"difference"}, {"even"}, "even").set_attribute({"axis", int64_t{0}});
  b.node("Log", {"difference"}, {"logarithm"}, "log");
  b.node("Mul", {"logarithm", "even"}, {"y"}, "product");
  b.output("y");
  return b;
}

NanReport report_of(const ModelBuilder& b, const NamedValues& inputs, const NanWatchOptions& options = {}) {
  const OnnxModel model = model_of(b);
  return find_nan(model.open(plain()), inputs, &model, options);
}

TEST(NanWatch, NamesTheFirstNodeAndShowsItsInputs) {
  const NanReport report = report_of(logarithm(), {{"x", Tensor({3}, {1.0f, 2.0f, 3.0f})}});
  ASSERT_TRUE(report.finding);
  EXPECT_EQ(to_text(*report.finding),
            "Log 'log' (node 2) makes 3 infinite of 3 numbers\n"
            "  input difference: float [3], made by Sub 'subtract' (node 0)\n"
            "    min 0, max 0, mean 0, std 0, 3 zeros\n"
            "    [0, 0, 0]\n"
            "  output logarithm: float [3], made by Log 'log' (node 2)\n"
            "    3 infinite\n"
            "    [-inf, -inf, -inf]");
  EXPECT_TRUE(report.bad_sources.empty());
}

TEST(NanWatch, FindsThemInNarrowTypes) {
  const auto find = [](auto number, ElementType type) {
    return report_of(logarithm(type), {{"x", Tensor(Shape{1}, {number})}}).finding.has_value();
  };
  EXPECT_TRUE(find(float16(1.0f), ElementType::float16));
  EXPECT_TRUE(find(bfloat16(1.0f), ElementType::bfloat16));
  EXPECT_TRUE(find(1.0, ElementType::float64));
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{2});
  ir::Node& cast = b.node("Cast", {"x"}, {"y"}, "narrow");
  cast.set_attribute({"to", int64_t{static_cast<int>(ElementType::float8e5m2)}});
  cast.set_attribute({"saturate", int64_t{0}});
  b.output("y");
  const NanReport report = report_of(b, {{"x", Tensor({2}, {1.0f, 1e6f})}});
  ASSERT_TRUE(report.finding);
  EXPECT_EQ(report.finding->attributes, "to=19, saturate=0");
  EXPECT_EQ(report.finding->outputs[0].stats.infinities, 1);
}

TEST(NanWatch, InfinityMayBeAllowed) {
  const NanReport report = report_of(logarithm(), {{"x", Tensor({1}, {1.0f})}}, {.allow_infinite = true});
  EXPECT_FALSE(report.finding);
}

// A row of which all is masked.
TEST(NanWatch, FindsNanOutOfInfinity) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{2});
  b.initializer("mask", Tensor({2}, {-INFINITY, -INFINITY}));
  b.node("Add", {"x", "mask"}, {"masked"}, "add");
  b.node("Softmax", {"masked"}, {"y"}, "softmax").set_attribute({"axis", int64_t{-1}});
  b.output("y");
  const NanReport report = report_of(b, {{"x", Tensor({2}, {1.0f, 2.0f})}});
  ASSERT_TRUE(report.finding);
  EXPECT_EQ(report.finding->node, "Softmax 'softmax' (node 1)");
  EXPECT_EQ(report.finding->attributes, "axis=-1");
  EXPECT_EQ(report.finding->inputs[0].stats.infinities, 2);
  ASSERT_EQ(report.bad_sources.size(), 1u);
  EXPECT_EQ(report.bad_sources[0].name, "mask");
  EXPECT_EQ(report.bad_sources[0].origin, "a constant");
}

TEST(NanWatch, BlamesNoNodeForWhatTheInputsHave) {
  const NanReport report = report_of(logarithm(), {{"x", Tensor({2}, {1.0f, NAN})}}, {.allow_infinite = true});
  EXPECT_FALSE(report.finding);
  ASSERT_EQ(report.bad_sources.size(), 1u);
  EXPECT_EQ(to_text(report.bad_sources[0]),
            "x: float [2], an input of the model\n    min 1, max 1, mean 1, std 0, 1 NaN\n    [1, nan]");
}

TEST(NanWatch, BlamesNoBranchForWhatComesFromOutside) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{1}).input("go", ElementType::boolean, SymbolicShape{});
  ir::Node& branch = b.node("If", {"go"}, {"y"}, "if");
  for (const char* name : {"then_branch", "else_branch"}) {
    auto body = std::make_unique<ir::Graph>();
    ir::Node& node = body->add_node(name[0] == 't' ? "Abs" : "Log");
    node.name = "inner";
    node.add_input(&b.value("x"));
    node.add_output(&body->add_value("inner"));
    body->add_output(*node.output(0));
    branch.set_attribute({name, std::move(body)});
  }
  ir::adopt_subgraphs(branch);
  b.output("y");
  EXPECT_FALSE(report_of(b, {{"x", Tensor({1}, {NAN})}, {"go", Tensor(Shape{}, {true})}}).finding);
  const NanReport report = report_of(b, {{"x", Tensor({1}, {-1.0f})}, {"go", Tensor(Shape{}, {false})}});
  ASSERT_TRUE(report.finding);
  EXPECT_EQ(report.finding->op_type, "Log");
  EXPECT_NE(report.finding->node.find("else_branch"), std::string::npos);
}

TEST(NanWatch, OtherErrorsOfARunStayWhatTheyAre) {
  const Session session = logarithm().session(plain());
  EXPECT_NE(error_of([&] { find_nan(session, {}); }), "");
}

class DumpTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("tenon_dump_" + std::to_string(::getpid()));
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  DumpReport dumped(const ModelBuilder& b, const NamedValues& inputs, const SessionOptions& session, Names filters = {},
                    bool with_model = true) {
    const OnnxModel model = model_of(b);
    return dump(model.open(session), inputs, {folder_, std::move(filters)}, with_model ? &model : nullptr);
  }
  static Names names_of(const DumpReport& report) {
    Names names;
    for (const DumpedValue& value : report.values) names.push_back(value.name);
    std::ranges::sort(names);
    return names;
  }
  Tensor saved(const std::string& file) const {
    return read_value(folder_ / file, {.name = "", .type = "", .element = {}, .shape = {}}).tensor();
  }

  std::filesystem::path folder_;
};

// y = relu(x) + 1, with an Identity that the optimiser takes away
ModelBuilder chain() {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{2});
  b.initializer("one", Tensor({1}, {1.0f}));
  b.node("Relu", {"x"}, {"a/b"}, "relu");
  b.node("Identity", {"a/b"}, {"same"}, "identity");
  b.node("Add", {"same", "one"}, {"y"}, "add");
  b.node("Neg", {"x"}, {"unused"}, "unused");
  b.output("y");
  return b;
}

const NamedValues two = {{"x", Tensor({2}, {-3.0f, 4.0f})}};

TEST_F(DumpTest, SavesWhatNodesMakeAndSaysSoInAnIndex) {
  const DumpReport report = dumped(chain(), two, plain());
  EXPECT_EQ(names_of(report), (Names{"a/b", "same", "x", "y"}));
  EXPECT_EQ(report.missing, Names{"unused"});
  EXPECT_TRUE(identical(saved("a_b.npy"), Tensor({2}, {0.0f, 4.0f})));
  EXPECT_TRUE(identical(saved("y.npy"), Tensor({2}, {1.0f, 5.0f})));
  std::ifstream file(folder_ / "index.json");
  const nlohmann::json index = nlohmann::json::parse(file);
  const auto relu = std::ranges::find_if(index["values"], [](const auto& v) { return v["name"] == "a/b"; });
  EXPECT_EQ((*relu)["file"], "a_b.npy");
  EXPECT_EQ((*relu)["node"], "Relu 'relu' (node 0)");
  EXPECT_EQ((*relu)["type"], "float");
  EXPECT_EQ((*relu)["shape"], nlohmann::json({2}));
  EXPECT_EQ((*relu)["statistics"]["max"], 4);
  EXPECT_EQ(index["not_there"], nlohmann::json({"unused"}));
  EXPECT_NE(index["why_not_there"].get<std::string>().find("--level none"), std::string::npos);
}

TEST_F(DumpTest, NamesAreThoseOfTheFileWhateverTheOptimiserDoes) {
  SessionOptions options;
  options.level = OptimizationLevel::exact;
  const DumpReport report = dumped(chain(), two, options);
  const Names names = names_of(report);
  for (const char* name : {"x", "y"}) EXPECT_TRUE(std::ranges::count(names, name)) << name;
  Names all = names;
  all.insert(all.end(), report.missing.begin(), report.missing.end());
  std::ranges::sort(all);
  EXPECT_EQ(all, (Names{"a/b", "same", "unused", "x", "y"})) << "everything is saved or said to be missing";
}

TEST_F(DumpTest, FiltersChoose) {
  EXPECT_EQ(names_of(dumped(chain(), two, plain(), {"a/*", "y"})), (Names{"a/b", "y"}));
  EXPECT_TRUE(dumped(chain(), two, plain(), {"nothing"}).values.empty());
}

TEST_F(DumpTest, WithoutTheModelNothingButStepsIsKnown) {
  EXPECT_EQ(names_of(dumped(chain(), two, plain(), {}, false)), (Names{"a/b", "x", "y"})) << "'same' is a view";
}

TEST_F(DumpTest, FileNamesAreSafeAndDiffer) {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{2});
  b.node("Relu", {"x"}, {"../a"});
  b.node("Neg", {"../a"}, {".._a"});
  b.node("Abs", {".._a"}, {std::string(300, 'n')});
  b.output(std::string(300, 'n'));
  const DumpReport report = dumped(b, two, plain());
  ASSERT_EQ(report.values.size(), 4u);
  std::set<std::string> files;
  for (const DumpedValue& value : report.values) {
    files.insert(value.file);
    EXPECT_EQ((folder_ / value.file).parent_path(), folder_);
    EXPECT_TRUE(std::filesystem::exists(folder_ / value.file)) << value.file;
  }
  EXPECT_EQ(files.size(), 4u);
}

TEST_F(DumpTest, AFolderThatCannotBeMadeIsAnError) {
  std::ofstream(folder_) << "a file";
  EXPECT_NE(error_of([&] { dumped(chain(), two, plain()); }).find("write-failed"), std::string::npos);
}

TEST_F(DumpTest, TwoMayWatchOneRun) {
  const OnnxModel model = model_of(logarithm());
  const Session session = model.open(plain());
  NanWatch nan(session, &model);
  Dump dump(session, {folder_, {}}, &model);
  Watchers both;
  both.add(dump);
  both.add(nan);
  RunOptions options;
  options.watcher = &both;
  const NamedValues inputs = {{"x", Tensor({1}, {1.0f})}};
  EXPECT_THROW(session.run(inputs, options), Error);
  EXPECT_TRUE(nan.finding());
  EXPECT_EQ(names_of(dump.finish(inputs, {})), (Names{"difference", "even", "logarithm", "x"}));
}

}  // namespace
}  // namespace tenon::tools
