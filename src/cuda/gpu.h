// One GPU: its memory, its queues, and kernels compiled for it.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cuda/libraries.h"
#include "provider/device.h"

namespace tenon::cuda {

// A compiled kernel. It belongs to the GPU.
struct Function {
  Handle handle = nullptr;
};

// What a kernel is launched on: blocks of threads.
struct Grid {
  unsigned blocks[3] = {1, 1, 1};
  unsigned threads = 256;
  unsigned shared_bytes = 0;

  // A thread for each element.
  static Grid over(int64_t elements);
};

// What calls cost the host, for tests: counted since the process began. Pinned memory counts as allocations.
struct CallCounts {
  int64_t launches = 0, replays = 0, allocations = 0, compilations = 0, waits = 0, uploads = 0, downloads = 0;
  int64_t beside = 0;          // uploads and downloads in streams of their own
  int64_t early_launches = 0;  // of recorded kernels, while what is before them may still run
};

class Event;

// What is known of a GPU without opening it.
struct GpuFacts {
  std::string name;
  int major = 0, minor = 0, processors = 0;
  int64_t total_bytes = 0;
};

class Gpu final : public Device, public std::enable_shared_from_this<Gpu> {
 public:
  // Both throw ErrorCode::provider_unavailable with what is missing.
  static std::shared_ptr<Gpu> open(int ordinal = 0);
  // Those that this process may use, by their numbers.
  static std::vector<GpuFacts> list();
  // "cuda" for the first one, "cuda:1" for the next.
  static std::string provider_name(int ordinal);

  std::string_view name() const override { return facts_.name; }
  int number() const override { return ordinal_; }
  std::unique_ptr<Queue> make_queue(void* stream) override;
  Tensor upload(const Tensor& tensor) override;
  Tensor download(const Tensor& tensor) override;
  std::string_view memory_name() const override { return memory_name_; }
  void wait_for(void* stream) const override;
  void settle() const override;

  // The kernel `name` of a source that the prelude (kernel_text.h) comes before. Compiled when first asked for, and
  // kept in memory and on disk by its text.
  Function function(const std::string& source, const std::string& name);
  // Lets the kernel be launched with so much shared memory, beyond the 48 KiB that every kernel may have.
  void allow_shared(Function function, unsigned bytes) const;

  // Blocks that were given back. Those of a queue are for that queue again, whose work may still be using them.
  struct Pool {
    std::mutex mutex;
    std::map<int64_t, std::vector<void*>> free;  // by size
  };
  // Device memory, from what was given back to the pool before if possible. Throws ErrorCode::out_of_memory.
  std::shared_ptr<void> allocate(int64_t bytes, const std::shared_ptr<Pool>& pool);
  std::shared_ptr<void> allocate(int64_t bytes) override { return allocate(bytes, pool_); }
  std::shared_ptr<Pool> make_pool();
  // Gives what nobody uses back to the driver.
  void trim();

  const Libraries& api() const { return api_; }
  // cublasLt and cudnn.
  Handle blas();
  Handle dnn();
  std::mutex& dnn_mutex() { return dnn_mutex_; }  // for calls that belong together
  int major() const { return facts_.major; }
  int minor() const { return facts_.minor; }
  int processors() const { return facts_.processors; }
  int64_t total_bytes() const { return facts_.total_bytes; }
  int driver_version() const { return driver_version_; }
  // Whether recorded kernels can be launched while what was given before them still runs.
  bool can_launch_early() const { return facts_.major >= 9 && driver_version_ >= 12030; }
  CallCounts counts() const { return counts_; }
  void count_replay() { ++counts_.replays; }
  void count_allocation() { ++counts_.allocations; }
  void count_wait() { ++counts_.waits; }
  void count_upload() { ++counts_.uploads; }
  void count_download() { ++counts_.downloads; }
  void count_beside() { ++counts_.beside; }

  // What was chosen for something, by what that is, while somebody uses it and some time longer; else null.
  std::shared_ptr<const void> choice(const std::string& key);
  void set_choice(const std::string& key, const std::shared_ptr<const void>& choice);
  // Whether this was asked often enough of it.
  bool comes_often(const std::string& key);

  // Makes the GPU the calling thread's. Every entry point does.
  void use() const;
  // The same where the process may be at its end: whether it could.
  bool is_usable() const noexcept;
  // Throws what is wrong with a call's result.
  void check(Result result, std::string_view call) const {
    if (result != 0) fail_call(result, call);
  }
  // The same for cublasLt and cudnn, whose numbers mean other things.
  void check_blas(Result result, std::string_view call) const {
    if (result != 0) fail_library(result, call);
  }
  ~Gpu() override;

 private:
  friend class GpuQueue;
  explicit Gpu(int ordinal);
  [[noreturn]] void fail_call(Result result, std::string_view call) const;
  [[noreturn]] void fail_library(Result result, std::string_view call) const;
  std::string compile(const std::string& source) const;
  void free_all(Pool& pool);
  void keep_for_a_while(std::shared_ptr<const void> choice);

  const Libraries& api_;
  int ordinal_ = 0;
  std::string memory_name_;
  GpuFacts facts_;
  int driver_version_ = 0;
  Handle context_ = nullptr, blas_ = nullptr, dnn_ = nullptr;
  std::mutex dnn_mutex_;
  std::mutex mutex_;  // guards what follows
  std::unordered_map<std::string, Handle> modules_;
  std::unordered_map<std::string, std::weak_ptr<const void>> choices_;
  std::vector<std::shared_ptr<const void>> recent_choices_;
  size_t next_recent_ = 0;
  std::unordered_map<std::string, int> times_asked_;
  std::vector<std::weak_ptr<Pool>> pools_;
  std::shared_ptr<Pool> pool_ = std::make_shared<Pool>();  // of what no queue works on
  mutable CallCounts counts_;
  std::atomic<bool> has_early_runs_ = false;  // that returned before their work was done
};

// A stream: one that the caller has, or else one of its own.
class GpuQueue final : public Queue {
 public:
  explicit GpuQueue(std::shared_ptr<Gpu> gpu, Handle stream = nullptr);
  ~GpuQueue() override;

  std::shared_ptr<void> allocate(int64_t bytes) override { return gpu_->allocate(bytes, pool_); }
  void upload(void* to, const void* from, int64_t bytes) override;
  void download(void* to, const void* from, int64_t bytes) override;
  std::unique_ptr<Transfers> make_transfers() override;
  void wait() override;
  void keep(std::vector<std::shared_ptr<void>> memory) override;
  void drop_finished() override;
  void finish_kept() noexcept override;
  bool is_callers() const override { return !owns_stream_; }
  int64_t time(const std::function<void()>& work) override;
  void begin_recording() override;
  std::unique_ptr<Recording> end_recording() override;

  void copy(void* to, const void* from, int64_t bytes) override;
  void fill(void* to, unsigned char byte, int64_t bytes);
  template <typename... Arguments>
  void launch(Function function, const Grid& grid, Arguments... arguments) {
    void* pointers[] = {static_cast<void*>(&arguments)..., nullptr};
    launch_with(function, grid, pointers);
  }
  void launch_with(Function function, const Grid& grid, void** arguments);

  // Memory for the work given next, and for no longer than that.
  static constexpr int64_t workspace_bytes = 32 << 20;
  void* workspace();
  // The same for patches of images, beside that. They stay in the second cache.
  static constexpr int64_t patches_bytes = 24 << 20;
  void* patches();

  Gpu& gpu() const { return *gpu_; }
  const std::shared_ptr<Gpu>& shared_gpu() const { return gpu_; }
  // The stream that work of this thread goes to: that of a recording, if one is made.
  Handle stream() const;
  static bool is_recording();
  // Streams of their own for copies beside the work.
  Handle upload_stream();
  Handle download_stream();

 private:
  std::shared_ptr<Gpu> gpu_;
  Handle stream_ = nullptr;
  bool owns_stream_ = false;
  std::shared_ptr<Gpu::Pool> pool_;
  std::once_flag workspace_once_, patches_once_;
  std::shared_ptr<void> workspace_, patches_;
  std::once_flag upload_once_, download_once_;
  Handle upload_stream_ = nullptr, download_stream_ = nullptr;

  // What work that nobody waited for uses.
  struct Kept {
    std::unique_ptr<Event> done;
    std::vector<std::shared_ptr<void>> memory;
  };
  std::mutex kept_mutex_;
  std::deque<Kept> kept_;                            // in order of the work
  std::vector<std::unique_ptr<Event>> idle_events_;  // for what is kept next
};

}  // namespace tenon::cuda
