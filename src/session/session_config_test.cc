#include "tenon/session_config.h"

#include <gtest/gtest.h>

#include "model_builder.h"

namespace tenon {
namespace {

TEST(SessionConfig, SetsWhatTheKeyMeans) {
  SessionOptions options;
  set_config(options, "optimization.disable_specified_optimizers", "gelu;fold-constants,");
  EXPECT_EQ(options.disabled_passes, (std::vector<std::string>{"gelu", "fold-constants"}));
  set_config(options, "session.intra_op.spin_duration_us", "50");
  EXPECT_EQ(options.spin_microseconds, 50);
  set_config(options, "session.intra_op.allow_spinning", "1");
  EXPECT_EQ(options.spin_microseconds, 50);
  set_config(options, "session.intra_op.allow_spinning", "0");
  EXPECT_EQ(options.spin_microseconds, 0);
  set_config(options, "session.set_denormal_as_zero", "1");
  EXPECT_TRUE(options.flush_denormals);
  set_config(options, "session.disable_cpu_ep_fallback", "0");
  EXPECT_TRUE(options.allow_fallback);
  set_config(options, "tenon.level", "exact");
  EXPECT_EQ(options.level, OptimizationLevel::exact);
  set_config(options, "tenon.threads", "3");
  set_config(options, "tenon.memory_limit", "1000000000000");
  set_config(options, "tenon.memory", "low");
  EXPECT_EQ(options.memory, MemoryUse::low);
  set_config(options, "tenon.precision", "fast");
  EXPECT_EQ(options.precision, Precision::fast);
  set_config(options, "tenon.precision", "full");
  EXPECT_EQ(options.precision, Precision::full);
  set_config(options, "tenon.parallel_branches", "1");
  EXPECT_TRUE(options.parallel_branches);
  EXPECT_EQ(options.threads, 3);
  EXPECT_EQ(options.memory_limit, 1000000000000);
  set_config(options, "tenon.trust_size_names", "0");
  EXPECT_FALSE(options.trust_size_names);
}

TEST(SessionConfig, StrictnessLeavesOutTheCpu) {
  SessionOptions options;
  options.allow_fallback = true;
  options.providers = {"cuda", "CPUExecutionProvider", "cpu"};
  set_config(options, "session.disable_cpu_ep_fallback", "1");
  EXPECT_EQ(options.providers, std::vector<std::string>{"cuda"});
  EXPECT_FALSE(options.allow_fallback);
  options.providers = {"cpu"};
  EXPECT_EQ(error_of([&] { set_config(options, "session.disable_cpu_ep_fallback", "1"); }),
            "invalid-argument: there is nothing to be strict about: no provider but 'cpu' is asked for\n"
            "  hint: ask for the one that has to run every node, such as 'cuda'");
}

TEST(SessionConfig, EveryKeyIsListed) {
  for (std::string_view key : config_keys()) {
    SessionOptions options;
    EXPECT_EQ(error_of([&] { set_config(options, key, "?"); }).find("there is no session option"), std::string::npos)
        << key;
  }
  EXPECT_GT(config_keys().size(), 5u);
}

TEST(SessionConfig, Errors) {
  SessionOptions options;
  EXPECT_EQ(error_of([&] { set_config(options, "session.intra_op.spin_duration", "5"); }),
            "invalid-argument: there is no session option 'session.intra_op.spin_duration'\n"
            "  hint: did you mean 'session.intra_op.spin_duration_us'?");
  EXPECT_EQ(error_of([&] { set_config(options, "tenon.threads", "-1"); }),
            "invalid-argument: 'tenon.threads' takes a number that is not negative, got '-1'");
  EXPECT_EQ(error_of([&] { set_config(options, "session.set_denormal_as_zero", "yes"); }),
            "invalid-argument: 'session.set_denormal_as_zero' takes 0 or 1, got 'yes'");
  EXPECT_EQ(error_of([&] { set_config(options, "tenon.memory", "little"); }),
            "invalid-argument: 'tenon.memory' takes normal or low, got 'little'");
  EXPECT_NE(error_of([&] { set_config(options, "tenon.level", "more"); }), "");
}

}  // namespace
}  // namespace tenon
