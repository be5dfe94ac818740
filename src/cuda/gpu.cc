#include "cuda/gpu.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/content_hash.h"
#include "base/fail.h"
#include "base/new_file.h"
#include "cuda/event.h"
#include "cuda/kernel_text.h"
#include "cuda/transfers.h"

namespace tenon::cuda {
namespace {

// Results and constants of the driver, as its documentation numbers them.
constexpr Result out_of_memory = 2, no_device = 100;
constexpr Result lost[] = {46, 214, 700, 702, 714, 715, 716, 717, 718, 719};  // the context is of no use any more
bool is_lost(Result result) { return std::ranges::find(lost, result) != std::end(lost); }
constexpr int attribute_processors = 16, attribute_major = 75, attribute_minor = 76;
constexpr unsigned non_blocking_stream = 1;
constexpr int capture_of_this_thread = 1;

Address address_of(const void* pointer) { return reinterpret_cast<Address>(pointer); }

// What is kept on disk outlives the process, as compiling takes tens of milliseconds for each kernel.
std::filesystem::path cache_folder() {
  if (const char* given = std::getenv("TENON_KERNEL_CACHE")) return given;
  if (const char* cache = std::getenv("XDG_CACHE_HOME")) return std::filesystem::path(cache) / "tenon" / "kernels";
  if (const char* home = std::getenv("HOME")) return std::filesystem::path(home) / ".cache" / "tenon" / "kernels";
  return {};
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

// Sizes that blocks of memory have, so that one that was given back fits later ones: four to each power of two.
int64_t block_size(int64_t bytes) {
  constexpr int64_t least = 512;
  if (bytes <= least) return least;
  const int64_t step = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bytes - 1))) / 4;
  return (bytes + step - 1) / step * step;
}

// The stream that a thread records to.
thread_local Handle recording_stream = nullptr;

// Launches a kernel that may be started before what was given last ends, which hides how long that takes. It waits by
// itself (begin_kernel in kernel_text.cc).
Result launch_early(const Libraries& api, Handle function, const Grid& grid, Handle stream, void** arguments) {
  constexpr int begins_before_the_last_ends = 6;  // as the driver numbers attributes
  LaunchAttribute attribute{.id = begins_before_the_last_ends, .unused = 0, .value = {1}};
  const LaunchConfiguration configuration{.blocks = {grid.blocks[0], grid.blocks[1], grid.blocks[2]},
                                          .threads = {grid.threads, 1, 1},
                                          .shared_bytes = grid.shared_bytes,
                                          .stream = stream,
                                          .attributes = &attribute,
                                          .attribute_count = 1};
  return api.cuLaunchKernelEx(&configuration, function, arguments, nullptr);
}

class Graph final : public Recording {
 public:
  Graph(std::shared_ptr<Gpu> gpu, Handle executable) : gpu_(std::move(gpu)), executable_(executable) {}
  ~Graph() override { gpu_->api().cuGraphExecDestroy(executable_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void replay(Queue& queue) const override {
    gpu_->use();
    gpu_->count_replay();
    gpu_->check(gpu_->api().cuGraphLaunch(executable_, static_cast<GpuQueue&>(queue).stream()), "cuGraphLaunch");
  }

 private:
  std::shared_ptr<Gpu> gpu_;
  Handle executable_;
};

}  // namespace

Grid Grid::over(int64_t elements) {
  constexpr int64_t most = 0x7fffffff;
  Grid grid;
  grid.blocks[0] = static_cast<unsigned>(std::clamp<int64_t>((elements + grid.threads - 1) / grid.threads, 1, most));
  return grid;
}

std::shared_ptr<Gpu> Gpu::open(int ordinal) {
  static std::mutex mutex;
  static std::map<int, std::weak_ptr<Gpu>> open_gpus;
  std::lock_guard lock(mutex);
  if (auto gpu = open_gpus[ordinal].lock()) return gpu;
  std::shared_ptr<Gpu> gpu(new Gpu(ordinal));
  open_gpus[ordinal] = gpu;
  return gpu;
}

namespace {

// Throws where the driver cannot even say what there is.
void require(const Libraries& api, Result result, std::string_view call) {
  if (result == 0) return;
  const char* text = nullptr;
  api.cuGetErrorString(result, &text);
  throw Error(
      ErrorCode::provider_unavailable,
      fmt::format("the GPU cannot be used: {} failed with error {} ({})", call, result, text ? text : "unknown"),
      result == no_device ? "no GPU is visible: see CUDA_VISIBLE_DEVICES, and --gpus of containers"
                          : "`nvidia-smi` shows whether driver and GPU work");
}

GpuFacts facts_of(const Libraries& api, int ordinal) {
  GpuFacts facts;
  int device = 0;
  char text[256] = {};
  size_t bytes = 0;
  require(api, api.cuDeviceGet(&device, ordinal), "cuDeviceGet");
  require(api, api.cuDeviceGetName(text, sizeof text - 1, device), "cuDeviceGetName");
  require(api, api.cuDeviceTotalMem_v2(&bytes, device), "cuDeviceTotalMem");
  require(api, api.cuDeviceGetAttribute(&facts.major, attribute_major, device), "cuDeviceGetAttribute");
  require(api, api.cuDeviceGetAttribute(&facts.minor, attribute_minor, device), "cuDeviceGetAttribute");
  require(api, api.cuDeviceGetAttribute(&facts.processors, attribute_processors, device), "cuDeviceGetAttribute");
  facts.name = text;
  facts.total_bytes = static_cast<int64_t>(bytes);
  return facts;
}

}  // namespace

std::vector<GpuFacts> Gpu::list() {
  const Libraries& api = libraries();
  if (std::string missing = what_is_missing(api); !missing.empty()) {
    throw Error(ErrorCode::provider_unavailable, fmt::format("the GPU cannot be used: {}", missing),
                "`tenon doctor` shows what was found; TENON_CUDA_PATH may name folders to look in");
  }
  require(api, api.cuInit(0), "cuInit");
  int count = 0;
  require(api, api.cuDeviceGetCount(&count), "cuDeviceGetCount");
  std::vector<GpuFacts> all;
  for (int ordinal = 0; ordinal < count; ++ordinal) all.push_back(facts_of(api, ordinal));
  return all;
}

std::string Gpu::provider_name(int ordinal) { return ordinal == 0 ? "cuda" : fmt::format("cuda:{}", ordinal); }

Gpu::Gpu(int ordinal) : api_(libraries()), ordinal_(ordinal), memory_name_(provider_name(ordinal)) {
  const std::vector<GpuFacts> all = list();
  if (ordinal < 0 || static_cast<size_t>(ordinal) >= all.size()) {
    throw Error(ErrorCode::provider_unavailable,
                fmt::format("there is no GPU {}: there {} {}, and numbers begin with 0", ordinal,
                            all.size() == 1 ? "is" : "are", all.size()),
                "`tenon doctor` lists them; CUDA_VISIBLE_DEVICES may hide some");
  }
  facts_ = all[static_cast<size_t>(ordinal)];
  int device = 0;
  require(api_, api_.cuDeviceGet(&device, ordinal), "cuDeviceGet");
  require(api_, api_.cuDriverGetVersion(&driver_version_), "cuDriverGetVersion");
  require(api_, api_.cuDevicePrimaryCtxRetain(&context_, device), "cuDevicePrimaryCtxRetain");
  use();
}

namespace {

// Choices that are kept though nobody uses them, and keys that something is known of.
constexpr size_t most_recent_choices = 512, most_keys = 8192;
constexpr int often = 4;

}  // namespace

std::shared_ptr<const void> Gpu::choice(const std::string& key) {
  std::lock_guard lock(mutex_);
  auto found = choices_.find(key);
  auto choice = found == choices_.end() ? nullptr : found->second.lock();
  if (choice) keep_for_a_while(choice);
  return choice;
}

void Gpu::set_choice(const std::string& key, const std::shared_ptr<const void>& choice) {
  std::lock_guard lock(mutex_);
  if (choices_.size() >= most_keys) std::erase_if(choices_, [](const auto& entry) { return entry.second.expired(); });
  choices_[key] = choice;
  keep_for_a_while(choice);
}

void Gpu::keep_for_a_while(std::shared_ptr<const void> choice) {
  recent_choices_.resize(most_recent_choices);
  recent_choices_[next_recent_++ % most_recent_choices] = std::move(choice);
}

bool Gpu::comes_often(const std::string& key) {
  std::lock_guard lock(mutex_);
  if (times_asked_.size() >= most_keys) times_asked_.clear();
  return ++times_asked_[key] >= often;
}

Gpu::~Gpu() {
  recent_choices_.clear();
  trim();
  // The process may be at its end, and the driver with it: then all goes with the context.
  if (!is_usable()) return;
  for (const auto& [source, module] : modules_) {
    if (module) api_.cuModuleUnload(module);
  }
  if (blas_) api_.cublasLtDestroy(blas_);
  if (dnn_) api_.cudnnDestroy(dnn_);
}

// Another GPU, or another library of the process, may have made its own the thread's since. The call costs little.
void Gpu::use() const { check(api_.cuCtxSetCurrent(context_), "cuCtxSetCurrent"); }

bool Gpu::is_usable() const noexcept { return api_.cuCtxSetCurrent(context_) == 0; }

void Gpu::fail_call(Result result, std::string_view call) const {
  const char *name = nullptr, *text = nullptr;
  api_.cuGetErrorName(result, &name);
  api_.cuGetErrorString(result, &text);
  if (result == out_of_memory) {
    size_t available = 0, all = 0;
    api_.cuMemGetInfo_v2(&available, &all);
    throw Error(ErrorCode::out_of_memory,
                fmt::format("the GPU has no memory left: {} of its {} MiB are free", available >> 20, all >> 20),
                "give smaller inputs, or end other programs that use the GPU");
  }
  if (is_lost(result)) {
    throw Error(
        ErrorCode::device_lost,
        fmt::format("the GPU {} ('{}') is lost: {} failed with {} ({})", ordinal_, facts_.name, call,
                    name ? name : "an unknown error", text ? text : "it says no more"),
        "start the process again. `nvidia-smi` shows whether the GPU works; if not, lines with Xid in `dmesg` say what "
        "the driver saw. Where no node is named: the GPU works while the host goes on; with CUDA_LAUNCH_BLOCKING=1 in "
        "the environment every node is waited for, and the error names the one that failed");
  }
  fail(ErrorCode::internal, "{} failed with {} ({})", call, name ? name : std::to_string(result),
       text ? text : "it says no more");
}

void Gpu::fail_library(Result result, std::string_view call) const {
  // They say little of what earlier work did.
  const Result earlier = api_.cuStreamSynchronize(nullptr);
  if (is_lost(earlier)) fail_call(earlier, call);
  fail(ErrorCode::internal, "{} failed with status {}", call, result);
}

std::unique_ptr<Queue> Gpu::make_queue(void* stream) { return std::make_unique<GpuQueue>(shared_from_this(), stream); }

void Gpu::wait_for(void* stream) const {
  use();
  check(stream ? api_.cuStreamSynchronize(stream) : api_.cuCtxSynchronize(), "waiting for the caller's work");
}

void Gpu::settle() const {
  if (has_early_runs_) wait_for(nullptr);
}

Tensor Gpu::upload(const Tensor& tensor) {
  use();
  std::shared_ptr<void> memory = allocate(std::max<int64_t>(tensor.bytes(), 1));
  void* data = memory.get();
  if (tensor.bytes() > 0) {
    check(api_.cuMemcpyHtoD_v2(address_of(data), tensor.raw(), static_cast<size_t>(tensor.bytes())), "cuMemcpyHtoD");
    // It may return with the last part on its way, which queues do not wait for.
    check(api_.cuStreamSynchronize(nullptr), "cuStreamSynchronize");
  }
  return Tensor::over(tensor.type(), tensor.shape(), data, std::move(memory));
}

Tensor Gpu::download(const Tensor& tensor) {
  use();
  Tensor result(tensor.type(), tensor.shape());
  settle();
  Handle stream = nullptr;  // queues that wrote it have been waited for
  if (tensor.bytes() > 0) {
    check(api_.cuMemcpyDtoHAsync_v2(result.mutable_raw(), address_of(tensor.raw()), static_cast<size_t>(tensor.bytes()),
                                    stream),
          "cuMemcpyDtoHAsync");
    check(api_.cuStreamSynchronize(stream), "cuStreamSynchronize");
  }
  return result;
}

Handle Gpu::blas() {
  std::lock_guard lock(mutex_);
  if (!blas_) check_blas(api_.cublasLtCreate(&blas_), "cublasLtCreate");
  return blas_;
}

Handle Gpu::dnn() {
  std::lock_guard lock(mutex_);
  if (!dnn_) check_blas(api_.cudnnCreate(&dnn_), "cudnnCreate");
  return dnn_;
}

Function Gpu::function(const std::string& source, const std::string& name) {
  use();
  std::lock_guard lock(mutex_);
  Handle& module = modules_[source];
  if (!module) {
    const std::string image = compile(source);
    check(api_.cuModuleLoadData(&module, image.data()), "cuModuleLoadData");
  }
  Function function;
  check(api_.cuModuleGetFunction(&function.handle, module, name.c_str()), "cuModuleGetFunction");
  return function;
}

void Gpu::allow_shared(Function function, unsigned bytes) const {
  constexpr int most_dynamic_shared_bytes = 8;
  use();
  check(api_.cuFuncSetAttribute(function.handle, most_dynamic_shared_bytes, static_cast<int>(bytes)),
        "cuFuncSetAttribute");
}

std::string Gpu::compile(const std::string& source) const {
  int major = 0, minor = 0;
  api_.nvrtcVersion(&major, &minor);
  // What only GPUs of 9.0 have, groups of warps that multiply together, is in a set of its own.
  const std::string architecture =
      fmt::format("--gpu-architecture=sm_{}{}{}", facts_.major, facts_.minor, facts_.major == 9 ? "a" : "");
  const std::string text = std::string(kernel_prelude()) + source;
  const std::string key = fmt::format("nvrtc {}.{} {}\n{}", major, minor, architecture, text);
  const std::filesystem::path folder = cache_folder();
  const std::filesystem::path path =
      folder.empty() ? folder : folder / fmt::format("{:016x}.cubin", content_hash(std::as_bytes(std::span(key))));
  if (!path.empty()) {
    if (std::string kept = read_file(path); !kept.empty()) return kept;
  }
  ++counts_.compilations;
  Handle program = nullptr;
  check(api_.nvrtcCreateProgram(&program, text.c_str(), "kernel.cu", 0, nullptr, nullptr), "nvrtcCreateProgram");
  const char* options[] = {architecture.c_str(), "--std=c++17", "--fmad=true", "-default-device"};
  const Result result = api_.nvrtcCompileProgram(program, std::size(options), options);
  if (result != 0) {
    size_t size = 0;
    api_.nvrtcGetProgramLogSize(program, &size);
    std::string log(size, '\0');
    api_.nvrtcGetProgramLog(program, log.data());
    api_.nvrtcDestroyProgram(&program);
    fail(ErrorCode::internal, "NVRTC does not compile a kernel ({}): {}\n{}", api_.nvrtcGetErrorString(result), log,
         source);
  }
  size_t size = 0;
  check(api_.nvrtcGetCUBINSize(program, &size), "nvrtcGetCUBINSize");
  std::string image(size, '\0');
  check(api_.nvrtcGetCUBIN(program, image.data()), "nvrtcGetCUBIN");
  api_.nvrtcDestroyProgram(&program);
  if (path.empty()) return image;
  try {
    std::filesystem::create_directories(path.parent_path());
    NewFile file(path);
    file.write(image);
    file.commit();
  } catch (const std::exception&) {
    // A folder that cannot be written only costs time.
  }
  return image;
}

std::shared_ptr<void> Gpu::allocate(int64_t bytes, const std::shared_ptr<Pool>& pool) {
  use();
  const int64_t size = block_size(bytes);
  void* block = nullptr;
  {
    std::lock_guard lock(pool->mutex);
    if (auto found = pool->free.find(size); found != pool->free.end() && !found->second.empty()) {
      block = found->second.back();
      found->second.pop_back();
    }
  }
  if (!block) {
    Address address = 0;
    ++counts_.allocations;
    Result result = api_.cuMemAlloc_v2(&address, static_cast<size_t>(size));
    if (result == out_of_memory) {
      trim();
      result = api_.cuMemAlloc_v2(&address, static_cast<size_t>(size));
    }
    check(result, "cuMemAlloc");
    block = reinterpret_cast<void*>(address);
  }
  return {block, DeviceMemoryOwner{shared_from_this(), [pool, size](void* given_back) {
                                     std::lock_guard lock(pool->mutex);
                                     pool->free[size].push_back(given_back);
                                   }}};
}

std::shared_ptr<Gpu::Pool> Gpu::make_pool() {
  // What is left when nobody uses it any more goes back to the driver.
  std::shared_ptr<Pool> pool(new Pool, [gpu = weak_from_this()](Pool* gone) {
    const std::unique_ptr<Pool> owner(gone);
    if (auto alive = gpu.lock()) alive->free_all(*gone);
  });
  std::lock_guard lock(mutex_);
  std::erase_if(pools_, [](const std::weak_ptr<Pool>& old) { return old.expired(); });
  pools_.push_back(pool);
  return pool;
}

void Gpu::free_all(Pool& pool) {
  // Any thread may be the last to use it, and the process may be at its end.
  if (!is_usable()) return;
  std::lock_guard lock(pool.mutex);
  // The driver waits until no work uses it.
  for (auto& [_, blocks] : pool.free) {
    for (void* block : blocks) api_.cuMemFree_v2(address_of(block));
  }
  pool.free.clear();
}

void Gpu::trim() {
  std::vector<std::shared_ptr<Pool>> pools{pool_};
  {
    std::lock_guard lock(mutex_);
    for (const std::weak_ptr<Pool>& pool : pools_) {
      if (auto alive = pool.lock()) pools.push_back(std::move(alive));
    }
  }
  for (const auto& pool : pools) free_all(*pool);
}

GpuQueue::GpuQueue(std::shared_ptr<Gpu> gpu, Handle stream)
    : gpu_(std::move(gpu)), stream_(stream), owns_stream_(!stream), pool_(gpu_->make_pool()) {
  gpu_->use();
  if (owns_stream_) gpu_->check(gpu_->api().cuStreamCreate(&stream_, non_blocking_stream), "cuStreamCreate");
}

GpuQueue::~GpuQueue() {
  finish_kept();
  if (!gpu_->is_usable()) return;
  // The caller's may be gone by now.
  for (Handle stream : {owns_stream_ ? stream_ : nullptr, upload_stream_, download_stream_}) {
    if (stream && gpu_->api().cuStreamSynchronize(stream) == 0) gpu_->api().cuStreamDestroy_v2(stream);
  }
}

Handle GpuQueue::stream() const { return recording_stream ? recording_stream : stream_; }

bool GpuQueue::is_recording() { return recording_stream != nullptr; }

Handle GpuQueue::upload_stream() {
  std::call_once(upload_once_, [&] {
    gpu_->check(gpu_->api().cuStreamCreate(&upload_stream_, non_blocking_stream), "cuStreamCreate");
  });
  return upload_stream_;
}

Handle GpuQueue::download_stream() {
  std::call_once(download_once_, [&] {
    gpu_->check(gpu_->api().cuStreamCreate(&download_stream_, non_blocking_stream), "cuStreamCreate");
  });
  return download_stream_;
}

std::unique_ptr<Transfers> GpuQueue::make_transfers() { return std::make_unique<GpuTransfers>(*this); }

void GpuQueue::upload(void* to, const void* from, int64_t bytes) {
  if (bytes == 0) return;
  gpu_->use();
  ++gpu_->counts_.uploads;
  gpu_->check(gpu_->api().cuMemcpyHtoDAsync_v2(address_of(to), from, static_cast<size_t>(bytes), stream()),
              "cuMemcpyHtoDAsync");
}

void GpuQueue::download(void* to, const void* from, int64_t bytes) {
  if (bytes == 0) return;
  gpu_->use();
  ++gpu_->counts_.downloads;
  gpu_->check(gpu_->api().cuMemcpyDtoHAsync_v2(to, address_of(from), static_cast<size_t>(bytes), stream()),
              "cuMemcpyDtoHAsync");
  wait();
}

void GpuQueue::wait() {
  gpu_->use();
  ++gpu_->counts_.waits;
  gpu_->check(gpu_->api().cuStreamSynchronize(stream_), "cuStreamSynchronize");
}

void GpuQueue::keep(std::vector<std::shared_ptr<void>> memory) {
  std::lock_guard lock(kept_mutex_);
  std::unique_ptr<Event> done;
  if (idle_events_.empty()) {
    done = std::make_unique<Event>(gpu_);
  } else {
    done = std::move(idle_events_.back());
    idle_events_.pop_back();
  }
  done->record(stream_);
  gpu_->has_early_runs_ = true;
  kept_.push_back({std::move(done), std::move(memory)});
}

void GpuQueue::drop_finished() {
  // Owners are let go without the lock: they may belong to others, who may be waiting for it.
  std::vector<std::vector<std::shared_ptr<void>>> dropped;
  std::lock_guard lock(kept_mutex_);
  while (!kept_.empty() && kept_.front().done->is_done()) {
    dropped.push_back(std::move(kept_.front().memory));
    idle_events_.push_back(std::move(kept_.front().done));
    kept_.pop_front();
  }
}

void GpuQueue::finish_kept() noexcept {
  std::deque<Kept> all;
  {
    std::lock_guard lock(kept_mutex_);
    all.swap(kept_);
  }
  for (const Kept& kept : all) kept.done->wait_quietly();
}

int64_t GpuQueue::time(const std::function<void()>& work) {
  Event begin(gpu_, Event::Kind::timed), end(gpu_, Event::Kind::timed);
  begin.record(stream_);
  work();
  end.record(stream_);
  end.wait();
  return end.nanoseconds_since(begin);
}

void GpuQueue::copy(void* to, const void* from, int64_t bytes) {
  if (bytes == 0) return;
  gpu_->use();
  gpu_->check(gpu_->api().cuMemcpyDtoDAsync_v2(address_of(to), address_of(from), static_cast<size_t>(bytes), stream()),
              "cuMemcpyDtoDAsync");
}

void GpuQueue::fill(void* to, unsigned char byte, int64_t bytes) {
  if (bytes == 0) return;
  gpu_->use();
  gpu_->check(gpu_->api().cuMemsetD8Async(address_of(to), byte, static_cast<size_t>(bytes), stream()),
              "cuMemsetD8Async");
}

void GpuQueue::launch_with(Function function, const Grid& grid, void** arguments) {
  gpu_->use();
  ++gpu_->counts_.launches;
  if (recording_stream && gpu_->can_launch_early()) {
    ++gpu_->counts_.early_launches;
    gpu_->check(launch_early(gpu_->api(), function.handle, grid, recording_stream, arguments), "cuLaunchKernelEx");
    return;
  }
  gpu_->check(gpu_->api().cuLaunchKernel(function.handle, grid.blocks[0], grid.blocks[1], grid.blocks[2], grid.threads,
                                         1, 1, grid.shared_bytes, stream(), arguments, nullptr),
              "cuLaunchKernel");
}

void* GpuQueue::workspace() {
  std::call_once(workspace_once_, [&] { workspace_ = gpu_->allocate(workspace_bytes); });
  return workspace_.get();
}

void* GpuQueue::patches() {
  std::call_once(patches_once_, [&] { patches_ = gpu_->allocate(patches_bytes); });
  return patches_.get();
}

void GpuQueue::begin_recording() {
  gpu_->use();
  gpu_->check(gpu_->api().cuStreamCreate(&recording_stream, non_blocking_stream), "cuStreamCreate");
  gpu_->check(gpu_->api().cuStreamBeginCapture_v2(recording_stream, capture_of_this_thread), "cuStreamBeginCapture");
}

std::unique_ptr<Recording> GpuQueue::end_recording() {
  const Libraries& api = gpu_->api();
  Handle stream = std::exchange(recording_stream, nullptr), graph = nullptr, executable = nullptr;
  const Result ended = api.cuStreamEndCapture(stream, &graph);
  if (ended == 0 && graph && api.cuGraphInstantiateWithFlags(&executable, graph, 0) != 0) executable = nullptr;
  if (graph) api.cuGraphDestroy(graph);
  api.cuStreamDestroy_v2(stream);
  return executable ? std::make_unique<Graph>(gpu_, executable) : nullptr;
}

}  // namespace tenon::cuda
