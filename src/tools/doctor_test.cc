#include "tenon/tools/doctor.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "tools/machine_facts.h"

namespace tenon::tools {
namespace {

// A quiet machine of four CPUs that nothing is wrong with.
MachineFacts healthy() {
  MachineFacts facts;
  facts.cpu.neon = facts.cpu.dotprod = facts.cpu.avx2 = true;
  facts.isa = available_isas(facts.cpu).back();
  facts.cpus = facts.usable_cpus = facts.threads = 4;
  facts.memory = int64_t{16} << 30;
  facts.available = int64_t{8} << 30;
  facts.governor = "performance";
  facts.huge_pages = "always [madvise] never";
  const MachineSpeed::Rates one{1, 20e9, 18e9, 10e9, 9e9, 10e9}, all{4, 80e9, 70e9, 20e9, 18e9, 20e9};
  facts.speed = MachineSpeed{one, all, 1 << 20, 2};
  return facts;
}

TEST(Doctor, HasNoWarningsForAHealthyMachine) { EXPECT_EQ(warnings_of(healthy()), std::vector<std::string>()); }

TEST(Doctor, WiderVectorsThanUsualHoldNothingBack) {
  MachineFacts facts = healthy();
  facts.cpu.avx2 = false;
  facts.cpu.sve = facts.cpu.sve256 = true;
  facts.isa = Isa::sve256;
  for (const std::string& warning : warnings_of(facts))
    EXPECT_EQ(warning.find("TENON_ISA"), std::string::npos) << warning;
}

TEST(Doctor, WarnsAndSaysWhatToDo) {
  const struct {
    std::function<void(MachineFacts&)> change;
    std::string says, fix;
  } cases[] = {
      {[](auto& m) { m.is_optimized = false; }, "debug build", "CMAKE_BUILD_TYPE=Release"},
      {[](auto& m) { m.sanitizers = "address"; }, "address sanitizer", "TENON_SANITIZE"},
      {[](auto& m) { m.cpu.dotprod = m.cpu.avx2 = false; }, "has no", "choose a"},
      {[](auto& m) { m.threads_wanted = 9; }, "asks for 9 threads where this process may use 4 CPUs", "set it to 4"},
      {[](auto& m) { m.threads_wanted = 2; }, "to 2 of 4 CPUs", "unset it"},
      {[](auto& m) { m.cgroup.cpus = 2; }, "a CPU quota limits this process to 2 of 4 CPUs", "CPU limit"},
      {[](auto& m) { m.cgroup.cpus = 1.5, m.threads = 2; }, "quota of 1.5 is no whole number", "TENON_THREADS=1"},
      {[](auto& m) { m.cgroup.cpus = 2, m.threads_wanted = 3; }, "asks for 3 threads", "set it to 2"},
      {[](auto& m) { m.cgroup.periods = 100, m.cgroup.throttled = 30; }, "in 30 of 100 periods", "CPU limit"},
      {[](auto& m) { m.governor = "powersave"; }, "governor is powersave", "cpupower"},
      {[](auto& m) { m.load = 11; }, "11 processes", "quiet"},
      {[](auto& m) { m.available = 200 << 20; }, "only 200 MB", "--memory low"},
      {[](auto& m) { m.cgroup.memory_limit = 100 << 20, m.cgroup.memory_used = 95 << 20; }, "95 of the 100 MB",
       "memory limit"},
      {[](auto& m) { m.swap = 100, m.swap_free = 10; }, "swap", "free memory"},
      {[](auto& m) { m.huge_pages = "always madvise [never]"; }, "huge pages are off", "echo madvise"},
      {[](auto& m) { m.flushes_denormals = true; }, "takes tiny numbers as zero", "LD_PRELOAD"},
      {[](auto& m) { m.speed->all.peak_flops = 30e9; }, "4 threads reach 1.5 times", "fewer threads"},
      {[](auto& m) { m.speed->one.matmul_flops = 5e9; }, "reaches 25 %", "report"},
      {[](auto& m) { m.env_problems = {"TENON_SPIN is 'x'; unset it"}; }, "TENON_SPIN", "unset"},
  };
  for (const auto& c : cases) {
    MachineFacts facts = healthy();
    c.change(facts);
    std::string all;
    for (const std::string& warning : warnings_of(facts)) all += warning + "\n";
    EXPECT_NE(all.find(c.says), std::string::npos) << c.says << "\nin: " << all;
    EXPECT_NE(all.find(c.fix), std::string::npos) << c.fix << "\nin: " << all;
  }
}

class CgroupFiles : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::temp_directory_path() / ("tenon_cgroup_" + std::to_string(::getpid()));
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << "\n";
  }
  std::filesystem::path root_;
};

TEST_F(CgroupFiles, OfVersionTwo) {
  write("memory.max", "max");
  write("pod/memory.max", "1000000");
  write("pod/memory.current", "400000");
  write("pod/app/memory.max", "max");
  write("pod/app/cpu.max", "150000 100000");
  write("pod/app/cpu.stat", "usage_usec 5\nnr_periods 40\nnr_throttled 7");
  const CgroupFacts facts = read_cgroup("0::/pod/app\n", root_);
  EXPECT_EQ(facts.version, 2);
  EXPECT_EQ(facts.path, "/pod/app");
  EXPECT_EQ(facts.cpus, 1.5);
  EXPECT_EQ(facts.memory_limit, 1000000);
  EXPECT_EQ(facts.memory_used, 400000);
  EXPECT_EQ(facts.periods, 40);
  EXPECT_EQ(facts.throttled, 7);
}

TEST_F(CgroupFiles, OfVersionOne) {
  write("memory/memory.limit_in_bytes", "9223372036854771712");
  write("memory/box/memory.limit_in_bytes", "2000000");
  write("memory/box/memory.usage_in_bytes", "1900000");
  write("cpu/box/cpu.cfs_quota_us", "200000");
  write("cpu/box/cpu.cfs_period_us", "100000");
  write("cpu/box/cpu.stat", "nr_periods 10\nnr_throttled 1");
  const CgroupFacts facts = read_cgroup("5:memory:/box\n4:cpu,cpuacct:/box\n1:name=systemd:/x\n", root_);
  EXPECT_EQ(facts.version, 1);
  EXPECT_EQ(facts.cpus, 2);
  EXPECT_EQ(facts.memory_limit, 2000000);
  EXPECT_EQ(facts.memory_used, 1900000);
  EXPECT_EQ(facts.throttled, 1);
}

TEST_F(CgroupFiles, MayNotBeThere) {
  const CgroupFacts facts = read_cgroup("", root_);
  EXPECT_EQ(facts.version, 0);
  EXPECT_EQ(facts.cpus, 0);
  EXPECT_EQ(facts.memory_limit, 0);
  EXPECT_EQ(read_cgroup("0::/gone\nnonsense\n", root_).memory_limit, 0);
}

TEST(Doctor, HasEverySection) {
  const DoctorReport report = examine_machine({.measure = false});
  std::vector<std::string> titles;
  for (const auto& section : report.sections) {
    titles.push_back(section.title);
    for (const auto& [name, value] : section.lines)
      EXPECT_FALSE(value.empty() && section.title != "Environment") << name;
  }
  EXPECT_EQ(titles, (std::vector<std::string>{"Tenon", "System", "CPU", "Threads", "Memory", "Environment", "Providers",
                                              "GPU", "CUDA libraries", "Image formats", "Self-test"}));
  EXPECT_FALSE(report.speed);
}

}  // namespace
}  // namespace tenon::tools
