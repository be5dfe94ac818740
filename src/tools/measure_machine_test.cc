#include "tenon/tools/measure_machine.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tenon::tools {
namespace {

TEST(MeasureMachine, MeasuresOneThreadAndAll) {
  const MachineSpeed speed = measure_machine(2);
  EXPECT_EQ(speed.one.threads, 1);
  EXPECT_EQ(speed.all.threads, 2);
  for (const MachineSpeed::Rates& rates : {speed.one, speed.all}) {
    EXPECT_GT(rates.peak_flops, 0);
    EXPECT_GT(rates.matmul_flops, 0);
    EXPECT_GT(rates.read_bandwidth, 0);
    EXPECT_GT(rates.copy_bandwidth, 0);
    EXPECT_EQ(rates.peak_bandwidth, std::max(rates.read_bandwidth, rates.copy_bandwidth));
  }
  EXPECT_GT(speed.memory_bytes, 0);
  EXPECT_GT(speed.seconds, 0);
}

TEST(MeasureMachine, OneThreadIsMeasuredOnce) {
  const MachineSpeed speed = measure_machine(1);
  EXPECT_EQ(speed.all.threads, 1);
  EXPECT_EQ(speed.all.matmul_flops, speed.one.matmul_flops);
}

}  // namespace
}  // namespace tenon::tools
