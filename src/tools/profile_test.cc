#include "tenon/tools/profile.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "model_builder.h"

namespace tenon::tools {
namespace {

StepProfile step(const std::string& node, int64_t start, int64_t duration, double flops = 0, double bytes = 0) {
  StepProfile profile;
  profile.node = node;
  profile.op_type = node.substr(0, node.find(' '));
  profile.provider = "cpu";
  profile.kernel = profile.op_type;
  profile.start_ns = start;
  profile.duration_ns = duration;
  profile.flops = flops;
  profile.bytes = bytes;
  return profile;
}

// A Loop that runs 2 iterations of 2 nodes, one of them an If, between other nodes. A step comes after its body's.
std::vector<ProfiledRun> nested() {
  return {{1000,
           1000,
           {step("Add 'a'", 1000, 100, 50, 400), step("Mul 'm'", 1210, 50, 10), step("Neg 'n'", 1280, 20),
            step("If 'i'", 1270, 40, 1000), step("Mul 'm'", 1400, 60, 10), step("If 'i'", 1470, 5),
            step("Loop 'l'", 1200, 300, 1000), step("Add 'b'", 1500, 0), step("Add 'c'", 1500, 200, 50, 400)}},
          {3000, 500, {step("Add 'a'", 3100, 200, 50, 400)}}};
}

TEST(Profile, TimeBelongsToTheInnermostStep) {
  const ProfileSummary summary = summarize(nested());
  EXPECT_EQ(summary.runs, 2);
  EXPECT_DOUBLE_EQ(summary.seconds, 1500e-9);
  EXPECT_DOUBLE_EQ(summary.step_seconds, 800e-9);
  struct Expected {
    const char* op;
    int64_t calls;
    double nanoseconds, flops, bytes;
  };
  const Expected expected[] = {{"Add", 4, 500, 150, 1200},
                               {"Loop", 1, 145, 0, 0},
                               {"Mul", 2, 110, 20, 0},
                               {"If", 2, 25, 0, 0},
                               {"Neg", 1, 20, 0, 0}};
  ASSERT_EQ(summary.operators.size(), std::size(expected));
  double share = 0;
  for (size_t i = 0; i < std::size(expected); ++i) {
    const ProfileTotals& totals = summary.operators[i];
    EXPECT_EQ(totals.op_type, expected[i].op);
    EXPECT_EQ(totals.calls, expected[i].calls);
    EXPECT_DOUBLE_EQ(totals.seconds, expected[i].nanoseconds * 1e-9) << totals.op_type;
    EXPECT_EQ(totals.flops, expected[i].flops) << totals.op_type;
    EXPECT_EQ(totals.bytes, expected[i].bytes) << totals.op_type;
    share += totals.share;
  }
  EXPECT_DOUBLE_EQ(share, 1);
  ASSERT_EQ(summary.nodes.size(), 7u);
  EXPECT_EQ(summary.nodes[0].node, "Add 'a'");
  EXPECT_EQ(summary.nodes[0].calls, 2);
  EXPECT_EQ(summary.nodes[0].kernel, "Add");
  EXPECT_EQ(summary.nodes[1].node, "Add 'c'");
  EXPECT_EQ(summary.nodes.back().node, "Add 'b'");
}

// Two steps side by side, of which one ran all the while that the other did; and a Loop with two such in its body.
TEST(Profile, StepsSideBySideAreNotInsideEachOther) {
  auto beside = [](StepProfile profile, int thread) {
    profile.thread = thread;
    return profile;
  };
  const std::vector<ProfiledRun> runs = {
      {0,
       1000,
       {beside(step("Neg 'n'", 120, 50), 2), beside(step("Abs 'a'", 100, 100), 1), beside(step("Exp 'e'", 310, 50), 1),
        beside(step("Log 'l'", 320, 60), 2), step("Loop 'o'", 300, 100)}}};
  const ProfileSummary summary = summarize(runs);
  std::map<std::string, double> seconds;
  for (const ProfileTotals& totals : summary.operators) seconds[totals.op_type] = totals.seconds;
  EXPECT_DOUBLE_EQ(seconds["Neg"], 50e-9);
  EXPECT_DOUBLE_EQ(seconds["Abs"], 100e-9);
  EXPECT_DOUBLE_EQ(seconds["Loop"], 30e-9);
  std::map<std::string, int> rows;
  const nlohmann::json trace = nlohmann::json::parse(trace_json(runs, "m"));
  for (const auto& event : trace["traceEvents"])
    rows[(event["ph"] == "M" ? event["args"] : event)["name"].get<std::string>()] = event["tid"].get<int>();
  EXPECT_EQ(rows["Loop"], rows["runs"]);
  EXPECT_EQ(rows["Abs"], rows["side by side 1"]);
  EXPECT_EQ(rows["Neg"], rows["side by side 2"]);
  EXPECT_NE(rows["Abs"], rows["Neg"]);
}

TEST(Profile, TimesOfTheDeviceAddUp) {
  StepProfile first = step("Add 'a'", 0, 100), second = step("Add 'b'", 100, 100), other = step("Mul 'm'", 200, 100);
  first.device_ns = 30;
  second.device_ns = 50;
  const std::vector<ProfiledRun> runs = {{0, 300, {first, second, other}}, {300, 100, {first}}};
  const ProfileSummary summary = summarize(runs);
  std::map<std::string, double> seconds;
  for (const ProfileTotals& totals : summary.operators) seconds[totals.op_type] = totals.device_seconds;
  for (const ProfileTotals& totals : summary.nodes) seconds[totals.node] = totals.device_seconds;
  EXPECT_DOUBLE_EQ(seconds["Add"], 110e-9);
  EXPECT_DOUBLE_EQ(seconds["Add 'a'"], 60e-9);
  EXPECT_EQ(seconds["Mul"], 0);
}

TEST(Profile, OfNothing) {
  EXPECT_EQ(summarize({}).runs, 0);
  EXPECT_TRUE(nlohmann::json::parse(trace_json({}, "none"))["traceEvents"].is_array());
}

struct Bar {
  std::string name;
  int64_t start, end;
};

// The complete events of a trace, in nanoseconds.
std::vector<Bar> bars(const nlohmann::json& trace) {
  std::vector<Bar> result;
  for (const nlohmann::json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const double start = event["ts"], duration = event["dur"];
    result.push_back({event["name"], std::llround(start * 1e3), std::llround((start + duration) * 1e3)});
  }
  return result;
}

void expect_nested(const std::vector<Bar>& all) {
  std::vector<Bar> open;
  for (const Bar& bar : all) {
    while (!open.empty() && open.back().end <= bar.start) open.pop_back();
    if (!open.empty()) {
      EXPECT_LE(open.back().start, bar.start) << bar.name;
      EXPECT_LE(bar.end, open.back().end) << bar.name << " in " << open.back().name;
    }
    open.push_back(bar);
  }
}

TEST(Trace, BarsLieOnThoseTheyArePartOf) {
  const nlohmann::json trace = nlohmann::json::parse(trace_json(nested(), "m.onnx"));
  EXPECT_EQ(trace["traceEvents"][0]["args"]["name"], "m.onnx");
  const std::vector<Bar> all = bars(trace);
  expect_nested(all);
  std::string names;
  for (const Bar& bar : all) names += bar.name + " ";
  EXPECT_EQ(names, "run 1 Add Loop Mul If Neg Mul If Add Add run 2 Add ");
  EXPECT_EQ(all[0].start, 0);
  EXPECT_EQ(all[2].start, 200);
  EXPECT_EQ(all[2].end, 500);
}

TEST(Trace, StepsSayWhatTheyDid) {
  StepProfile conv = step("Conv 'stem'", 2000, 1500, 3000, 6000);
  conv.kernel = "Conv, Winograd";
  conv.inputs = {"float [1, 3, 8, 8]", "", "float [4]"};
  conv.outputs = {"float [1, 4, 8, 8]"};
  const nlohmann::json trace = nlohmann::json::parse(trace_json(std::vector{ProfiledRun{1000, 3000, {conv}}}, "m"));
  EXPECT_EQ(trace["traceEvents"][3], nlohmann::json::parse(R"({
      "ph": "X", "pid": 1, "tid": 1, "ts": 1.0, "dur": 1.5, "name": "Conv", "cat": "cpu",
      "args": {"node": "Conv 'stem'", "op": "Conv", "provider": "cpu", "kernel": "Conv, Winograd",
               "inputs": ["float [1, 3, 8, 8]", "", "float [4]"], "outputs": ["float [1, 4, 8, 8]"],
               "GFLOP/s": 2.0, "GB/s": 4.0}})"));
}

TEST(Trace, NamesMayHoldAnything) {
  const std::string odd = "Conv '\"\\\n\xff'";
  const std::string text = trace_json(std::vector{ProfiledRun{0, 3, {step(odd, 1, 1)}}}, "\xc3(");
  EXPECT_EQ(nlohmann::json::parse(text)["traceEvents"][3]["args"]["node"], "Conv '\"\\\n\xef\xbf\xbd'");
}

TEST(Trace, FilesThatCannotBeWrittenAreAnError) {
  EXPECT_EQ(error_of([] { write_trace("/nowhere/trace.json", {}, "m"); }),
            "write-failed: '/nowhere/trace.json' cannot be written");
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "trace.json";
  write_trace(file, nested(), "m");
  std::ifstream stream(file);
  EXPECT_EQ(bars(nlohmann::json::parse(stream)).size(), 12u);
}

// Loop with 3 iterations of a Mul, followed by an Add.
Session loop() {
  ModelBuilder b;
  b.input("x", ElementType::float32, SymbolicShape{2});
  b.initializer("trips", Tensor::scalar(int64_t{3}));
  b.initializer("yes", Tensor(Shape{}, {true}));
  auto body = std::make_unique<ir::Graph>();
  for (const char* name : {"i", "go_on", "state"}) body->add_input(body->add_value(name));
  ir::Node& mul = body->add_node("Mul");
  mul.add_input(body->inputs()[2]);
  mul.add_input(body->inputs()[2]);
  ir::Value& next = body->add_value("next");
  mul.add_output(&next);
  body->add_output(*body->inputs()[1]);
  body->add_output(next);
  b.node("Loop", {"trips", "yes", "x"}, {"product"}, "loop").set_attribute(ir::Attribute("body", std::move(body)));
  b.node("Add", {"product", "x"}, {"y"}, "sum");
  b.output("y");
  SessionOptions options;
  options.level = OptimizationLevel::none;
  return b.session(options);
}

TEST(Profile, OfAModelAddsUp) {
  ProfileOptions options;
  options.runs = 4;
  options.warmup = 2;
  std::vector<int64_t> told;
  options.progress = [&](int64_t done) { told.push_back(done); };
  const std::vector<ProfiledRun> runs = profile(loop(), {{"x", Tensor({2}, {1.0f, 2.0f})}}, options);
  EXPECT_EQ(told, (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
  ASSERT_EQ(runs.size(), 4u);
  const ProfileSummary summary = summarize(runs);
  std::map<std::string, int64_t> calls;
  double seconds = 0;
  for (const ProfileTotals& op : summary.operators) {
    calls[op.op_type] = op.calls;
    seconds += op.seconds;
  }
  EXPECT_EQ(calls, (std::map<std::string, int64_t>{{"Add", 4}, {"Loop", 4}, {"Mul", 12}}));
  EXPECT_NEAR(seconds, summary.step_seconds, 1e-12);
  EXPECT_LE(summary.step_seconds, summary.seconds);
  for (const ProfileTotals& node : summary.nodes) {
    EXPECT_EQ(node.provider, "cpu");
    EXPECT_FALSE(node.kernel.empty());
    EXPECT_EQ(node.outputs, std::vector<std::string>{"float [2]"}) << node.node;
  }
  const nlohmann::json trace = nlohmann::json::parse(trace_json(runs, "loop"));
  const std::vector<Bar> all = bars(trace);
  EXPECT_EQ(all.size(), 4u * (1 + 5));
  expect_nested(all);
}

}  // namespace
}  // namespace tenon::tools
