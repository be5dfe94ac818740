#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include <unistd.h>

#include "base/cpu_quota.h"

namespace tenon {
namespace {

TEST(ThreadPool, RangesCoverEveryIndexOnce) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (int64_t n : {0, 1, 2, 7, 64, 1000, 4097}) {
      for (int64_t grain : {0, 1, 3, 100, 5000}) {
        std::vector<std::atomic<int>> visits(static_cast<size_t>(n));
        std::atomic<bool> short_range{false};
        pool.parallel_for(n, grain, [&](int64_t begin, int64_t end) {
          if (end - begin < grain && end != n) short_range = true;
          for (int64_t i = begin; i < end; ++i) visits[static_cast<size_t>(i)]++;
        });
        for (const auto& visit : visits) ASSERT_EQ(visit, 1) << threads << " " << n << " " << grain;
        EXPECT_FALSE(short_range);
      }
    }
  }
}

TEST(ThreadPool, SizeCountsTheCaller) {
  EXPECT_EQ(ThreadPool(1).size(), 1);
  EXPECT_EQ(ThreadPool(3).size(), 3);
  EXPECT_EQ(ThreadPool(0).size(), default_thread_count());
  EXPECT_EQ(ThreadPool::shared(), ThreadPool::shared());
}

TEST(ThreadPool, SmallLoopsAndNestedLoopsRunInline) {
  ThreadPool pool(4);
  const auto caller = std::this_thread::get_id();
  int calls = 0;
  pool.parallel_for(10, 10, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(end - begin, 10);
    ++calls;
  });
  EXPECT_EQ(calls, 1);
  std::atomic<int64_t> sum{0};
  pool.parallel_for(16, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto outer = std::this_thread::get_id();
      pool.parallel_for(100, 1, [&](int64_t b, int64_t e) {
        EXPECT_EQ(std::this_thread::get_id(), outer);
        sum += e - b;
      });
    }
  });
  EXPECT_EQ(sum, 1600);
}

TEST(ThreadPool, RethrowsAnExceptionAndStaysUsable) {
  ThreadPool pool(4);
  for (int round = 0; round < 50; ++round) {
    for (int64_t bad : {0, 13, 99}) {
      EXPECT_THROW(pool.parallel_for(100, 1,
                                     [&](int64_t begin, int64_t end) {
                                       if (begin <= bad && bad < end) throw std::runtime_error("bad range");
                                     }),
                   std::runtime_error);
    }
  }
  EXPECT_THROW(pool.parallel_for(1, 1, [](int64_t, int64_t) { throw std::out_of_range("inline"); }), std::out_of_range);
  std::atomic<int64_t> sum{0};
  pool.parallel_for(1000, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
  EXPECT_EQ(sum, 1000);
}

TEST(ThreadPool, ManyCallersShareTheWorkers) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int c = 0; c < 6; ++c) {
    callers.emplace_back([&, c] {
      for (int round = 0; round < 300; ++round) {
        std::vector<int64_t> values(static_cast<size_t>(100 + c * 17 + round));
        pool.parallel_for(static_cast<int64_t>(values.size()), 8, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) values[static_cast<size_t>(i)] = i;
        });
        const auto n = static_cast<int64_t>(values.size());
        if (std::accumulate(values.begin(), values.end(), int64_t{0}) != n * (n - 1) / 2) ++wrong;
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ThreadPool, RunsThatAreAsManyAsThreadsKeepToTheirOwn) {
  ThreadPool pool(2);
  const ThreadPool::Run one(pool), other(pool);
  const auto caller = std::this_thread::get_id();
  int64_t ranges = 0;
  pool.parallel_for(1000, 1, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(end - begin, 1000);
    ++ranges;
  });
  EXPECT_EQ(ranges, 1);
}

TEST(ThreadPool, WorkersAreUsed) {
  ThreadPool pool(2);
  const auto caller = std::this_thread::get_id();
  std::atomic<bool> helped{false};
  // Each range waits for the other thread, so this ends only when a worker takes one.
  pool.parallel_for(2, 1, [&](int64_t, int64_t) {
    if (std::this_thread::get_id() != caller) helped = true;
    while (!helped) std::this_thread::yield();
  });
  EXPECT_TRUE(helped);
}

TEST(ThreadPool, RangesOfAThreadThatIsBusyAreTakenByOthers) {
  ThreadPool pool(2);
  constexpr int64_t n = 8;
  std::atomic<int64_t> done{0};
  pool.parallel_for(n, 1, [&](int64_t begin, int64_t end) {
    while (begin == 0 && done < n - 1) std::this_thread::yield();
    done += end - begin;
  });
  EXPECT_EQ(done, n);
}

TEST(ThreadPool, PoolsMayEndAtOnce) {
  std::atomic<int64_t> sum{0};
  int64_t expected = 0;
  for (int i = 0; i < 2000; ++i) {
    ThreadPool pool(2 + i % 3);
    for (int loop = 0; loop < i % 4; ++loop) {
      pool.parallel_for(2 + i % 7, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
      expected += 2 + i % 7;
    }
  }
  EXPECT_EQ(sum, expected);
}

TEST(ThreadPool, SharesThatWereNotUsedForLongHaveTheirRanges) {
  ThreadPool pool(4);
  for (int64_t n : {4, 1000, 2, 3, 2, 1000, 3, 4, 64, 2}) {
    for (int round = 0; round < 50; ++round) {
      std::vector<std::atomic<int>> visits(static_cast<size_t>(n));
      pool.parallel_for(n, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) visits[static_cast<size_t>(i)]++;
      });
      for (const auto& visit : visits) ASSERT_EQ(visit, 1) << n;
    }
  }
}

TEST(ThreadPool, IdleWorkersUseNoCpu) {
  ThreadPool pool(4);
  pool.parallel_for(100, 1, [](int64_t, int64_t) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC, 0.05);
}

class CgroupFiles : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::temp_directory_path() / ("tenon_cgroup_" + std::to_string(::getpid()));
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  int limit(const std::string& proc_cgroup) { return cgroup_cpu_limit(proc_cgroup, root_.string()); }
  std::filesystem::path root_;
};

TEST_F(CgroupFiles, Version2TakesTheSmallestOfTheGroupAndItsAncestors) {
  write("a/cpu.max", "250000 100000\n");
  write("a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(limit("0::/a/b\n"), 3);
  write("a/b/cpu.max", "50000 100000\n");
  EXPECT_EQ(limit("0::/a/b\n"), 1);
}

TEST_F(CgroupFiles, Version2InsideAContainerReadsTheRoot) {
  write("cpu.max", "400000 100000\n");
  EXPECT_EQ(limit("0::/not/visible/here\n"), 4);
}

TEST_F(CgroupFiles, Version1) {
  write("cpu,cpuacct/docker/x/cpu.cfs_quota_us", "150000\n");
  write("cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(limit("5:memory:/docker/x\n4:cpu,cpuacct:/docker/x\n"), 2);
  write("cpu,cpuacct/docker/x/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(limit("4:cpu,cpuacct:/docker/x\n"), 0);
}

TEST_F(CgroupFiles, NoLimit) {
  EXPECT_EQ(limit(""), 0);
  EXPECT_EQ(limit("garbage\n0::/\n"), 0);
  EXPECT_GE(default_thread_count(), 1);
}

}  // namespace
}  // namespace tenon
