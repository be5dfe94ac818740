// A stand-in for NVIDIA's libraries that runs kernels on the CPU; emulated_compiler.cc has NVRTC. The driver's memory
// is the host's. For tests on machines without a GPU. TENON_EMULATED_MEMORY limits its memory, in bytes;
// TENON_EMULATED_DEVICES is how many GPUs there are; with TENON_EMULATED_FAILURE=3 the third kernel that runs breaks
// the GPU, as one that writes where it must not: the next wait says so, and every call after that. Work is done when it
// is given, or with TENON_EMULATED_ORDER=late when somebody waits for it, and with late-kernels so from a stream's
// first kernel on: what then reads something too early, or writes it, has another result.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/libraries.h"
#include "temporary_name.h"

namespace {

using tenon::cuda::Address;
using tenon::cuda::Handle;
using tenon::cuda::LaunchConfiguration;
using tenon::cuda::MatmulAlgorithm;
using tenon::cuda::MatmulChoice;
using tenon::cuda::Result;

constexpr Result success = 0, out_of_memory = 2, invalid = 1, no_context = 201, not_ready = 600, illegal_address = 700,
                 not_supported = 3000;

std::mutex mutex;  // one call at a time
std::map<Address, size_t> blocks, pinned;
size_t used = 0;

size_t memory() {
  const char* limit = std::getenv("TENON_EMULATED_MEMORY");
  return limit ? std::strtoull(limit, nullptr, 10) : size_t{8} << 30;
}

int number_from(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::atoi(text) : otherwise;
}

// A context is known by its GPU.
int contexts[64];
thread_local int* current = nullptr;

// Whether a kernel broke the GPU, and whether a wait has told.
std::atomic<bool> is_broken = false, is_lost = false;

struct Kernel {
  int* context;
  void (*call)(void**);
  const size_t* sizes;
  int parameters;
  int waits, begins;  // whether its threads wait for each other, whether it calls begin_kernel
  void (*run)(void (*)(void**), void**, const unsigned*, int);
};

struct Module {
  int* context;
  void* library;
  std::map<std::string, Kernel> kernels;
};

struct Stream {
  int* context = current;
  bool records = false;
  std::vector<std::function<void()>> recorded;
  std::deque<std::function<void()>> pending;
};
std::recursive_mutex order;  // guards what is pending, and is held while it is done
std::set<Stream*> streams;

struct Graph {
  std::vector<std::function<void()>> work;
};

// What streams were given, and how often they were waited for: for tests that ask.
struct StreamCounts {
  int64_t given = 0, waits = 0;
};
std::mutex counts_mutex;
std::map<Handle, StreamCounts> stream_counts;

StreamCounts count(Handle stream, int64_t given, int64_t waits) {
  std::lock_guard lock(counts_mutex);
  StreamCounts& counts = stream_counts[stream];
  counts.given += given;
  counts.waits += waits;
  return counts;
}

// 0, 1 and 2 are streams that exist without being made, on every GPU.
Stream* made(Handle stream) { return reinterpret_cast<uintptr_t>(stream) > 2 ? static_cast<Stream*>(stream) : nullptr; }

// Whether the calling thread has the GPU of a stream.
Result state_of(Handle stream) {
  if (is_lost) return illegal_address;
  const Stream* own = made(stream);
  return !current || (own && own->context != current) ? no_context : success;
}

enum class Kind : uint8_t { kernel, other };

bool is_late(Kind kind) {
  const char* given = std::getenv("TENON_EMULATED_ORDER");
  const std::string_view how = given ? given : "";
  return how == "late" || (how == "late-kernels" && kind == Kind::kernel);
}

void do_next(Stream& stream) {
  const std::function<void()> work = std::move(stream.pending.front());
  stream.pending.pop_front();
  work();
}

void do_all(Handle stream) {
  std::lock_guard lock(order);
  if (Stream* own = made(stream)) {
    while (!own->pending.empty()) do_next(*own);
  }
}

void do_everything() {
  std::lock_guard lock(order);
  for (Stream* stream : streams) do_all(stream);
}

void do_or_defer(Handle stream, Kind kind, std::function<void()> work) {
  std::lock_guard lock(order);
  Stream* to = made(stream);
  if (to && (!to->pending.empty() || is_late(kind)))
    to->pending.push_back(std::move(work));
  else
    work();
}

Result give(Handle stream, std::function<void()> work, Kind kind = Kind::other) {
  if (Result state = state_of(stream)) return state;
  if (Stream* to = made(stream); to && to->records) {
    to->recorded.push_back(std::move(work));
  } else {
    count(stream, 1, 0);
    do_or_defer(stream, kind, std::move(work));
  }
  return success;
}

struct Event {
  Stream* stream = nullptr;
  int64_t recorded = 0, done = 0;  // how often
  std::chrono::steady_clock::time_point time;

  // Until it is done for the so manieth time.
  void complete(int64_t times) const {
    std::lock_guard lock(order);
    while (done < times) do_next(*stream);
  }
};
using SharedEvent = std::shared_ptr<Event>;
SharedEvent& event_of(Handle handle) { return *static_cast<SharedEvent*>(handle); }

// What a wait finds out.
Result told(Handle stream) {
  if (is_broken) is_lost = true;
  return state_of(stream);
}

bool is_pinned(const void* memory, size_t bytes) {
  std::lock_guard lock(mutex);
  auto next = pinned.upper_bound(reinterpret_cast<Address>(memory));
  return next != pinned.begin() &&
         reinterpret_cast<Address>(memory) + bytes <= std::prev(next)->first + std::prev(next)->second;
}

Module* load(const char* image, size_t size) {
  const std::string path = temporary_name() + ".so";
  std::ofstream(path, std::ios::binary).write(image, static_cast<std::streamsize>(size));
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) std::fprintf(stderr, "emulated driver: %s\n", dlerror());
  unlink(path.c_str());
  return library ? new Module{current, library, {}} : nullptr;
}

// A matrix product as cublasLt describes it: column-major.
struct Layout {
  int type;
  uint64_t rows, columns;
  int64_t leading;
  int order = 0;
  int32_t batch = 1;
  int64_t stride = 0;
};
struct Matmul {
  int transpose_a = 0, transpose_b = 0;
  int epilogue = 1;
  const void* bias = nullptr;
};

#ifdef __aarch64__
using Half = __fp16;  // older compilers have no other there
#else
using Half = _Float16;
#endif

enum Type { f32 = 0, f64 = 1, f16 = 2, i8 = 3, i32 = 10, bf16 = 14 };

double load_element(const void* data, int type, int64_t i) {
  switch (type) {
    case f32:
      return static_cast<const float*>(data)[i];
    case f64:
      return static_cast<const double*>(data)[i];
    case f16:
      return static_cast<float>(static_cast<const Half*>(data)[i]);
    case i8:
      return static_cast<const int8_t*>(data)[i];
    case i32:
      return static_cast<const int32_t*>(data)[i];
    default: {
      const uint32_t bits = static_cast<uint32_t>(static_cast<const uint16_t*>(data)[i]) << 16;
      float value = 0;
      std::memcpy(&value, &bits, 4);
      return value;
    }
  }
}

void store_element(void* data, int type, int64_t i, double value) {
  switch (type) {
    case f32:
      static_cast<float*>(data)[i] = static_cast<float>(value);
      break;
    case f64:
      static_cast<double*>(data)[i] = value;
      break;
    case f16:
      static_cast<Half*>(data)[i] = static_cast<Half>(value);
      break;
    case i8:
      static_cast<int8_t*>(data)[i] = static_cast<int8_t>(value);
      break;
    case i32:
      static_cast<int32_t*>(data)[i] = static_cast<int32_t>(value);
      break;
    default: {
      const auto single = static_cast<float>(value);
      uint32_t bits = 0;
      std::memcpy(&bits, &single, 4);
      static_cast<uint16_t*>(data)[i] = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
  }
}

int64_t at(const Layout& layout, int64_t row, int64_t column, int64_t batch) {
  return batch * layout.stride + (layout.order == 0 ? column * layout.leading + row : row * layout.leading + column);
}

}  // namespace

extern "C" {

int64_t emulated_given(Handle stream) { return count(stream, 0, 0).given; }
int64_t emulated_waits(Handle stream) { return count(stream, 0, 0).waits; }

Result cuInit(unsigned) { return std::getenv("TENON_EMULATED_NO_DEVICE") ? 100 : success; }
Result cuDriverGetVersion(int* version) { return *version = 13000, success; }
Result cuGetErrorName(Result result, const char** name) {
  return *name = result == out_of_memory     ? "CUDA_ERROR_OUT_OF_MEMORY"
                 : result == illegal_address ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                 : result == no_context      ? "CUDA_ERROR_INVALID_CONTEXT"
                                             : "CUDA_ERROR",
         success;
}
Result cuGetErrorString(Result result, const char** text) {
  return *text = result == out_of_memory     ? "out of memory"
                 : result == 100             ? "no CUDA-capable device is detected"
                 : result == illegal_address ? "an illegal memory access was encountered"
                                             : "an error",
         success;
}
Result cuDeviceGetCount(int* count) { return *count = number_from("TENON_EMULATED_DEVICES", 1), success; }
Result cuDeviceGet(int* device, int ordinal) { return *device = ordinal, success; }
Result cuDeviceGetName(char* name, int size, int) {
  return std::snprintf(name, static_cast<size_t>(size), "emulated GPU"), success;
}
Result cuDeviceTotalMem_v2(size_t* bytes, int) { return *bytes = memory(), success; }
Result cuDeviceGetAttribute(int* value, int attribute, int) {
  return *value = attribute == 75 ? number_from("TENON_EMULATED_MAJOR", 9) : attribute == 16 ? 4 : 0, success;
}
Result cuDevicePrimaryCtxRetain(Handle* context, int device) { return *context = &contexts[device], success; }
Result cuCtxSetCurrent(Handle context) { return current = static_cast<int*>(context), success; }
Result cuCtxSynchronize() {
  count(nullptr, 0, 1);
  do_everything();
  return told(nullptr);
}
Result cuMemGetInfo_v2(size_t* available, size_t* total) {
  std::lock_guard lock(mutex);
  *total = memory();
  *available = *total - used;
  return success;
}
Result cuMemAlloc_v2(Address* address, size_t bytes) {
  if (Result state = state_of(nullptr)) return state;
  std::lock_guard lock(mutex);
  if (used + bytes > memory()) return out_of_memory;
  void* block = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
  std::memset(block, 0x7f, bytes);  // what nobody wrote is no number to compute with
  *address = reinterpret_cast<Address>(block);
  blocks[*address] = bytes;
  used += bytes;
  return success;
}
Result cuMemFree_v2(Address address) {
  if (!current) return no_context;
  do_everything();
  std::lock_guard lock(mutex);
  auto found = blocks.find(address);
  if (found == blocks.end()) return invalid;
  used -= found->second;
  blocks.erase(found);
  std::free(reinterpret_cast<void*>(address));
  return success;
}
Result cuMemcpyHtoD_v2(Address to, const void* from, size_t bytes) {
  return give(nullptr, [=] { std::memcpy(reinterpret_cast<void*>(to), from, bytes); });
}
Result cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  std::lock_guard lock(mutex);
  if (std::getenv("TENON_EMULATED_NO_PINNED")) return out_of_memory;
  *memory = std::malloc(bytes);
  pinned[reinterpret_cast<Address>(*memory)] = bytes;
  return success;
}
Result cuMemFreeHost(void* memory) {
  do_everything();
  std::lock_guard lock(mutex);
  if (pinned.erase(reinterpret_cast<Address>(memory)) == 0) return invalid;
  std::free(memory);
  return success;
}
Result cuPointerGetAttribute(void* value, int attribute, Address address) {
  if (attribute != 2 || !is_pinned(reinterpret_cast<void*>(address), 1)) return invalid;
  const unsigned of_host = 1;
  std::memcpy(value, &of_host, sizeof of_host);
  return success;
}
// Memory that is not pinned is read at once, and written before the call returns.
Result cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t bytes, Handle stream) {
  if (is_pinned(from, bytes)) return give(stream, [=] { std::memcpy(reinterpret_cast<void*>(to), from, bytes); });
  const auto* first = static_cast<const char*>(from);
  return give(stream, [to, content = std::vector<char>(first, first + bytes)] {
    std::memcpy(reinterpret_cast<void*>(to), content.data(), content.size());
  });
}
Result cuMemcpyDtoHAsync_v2(void* to, Address from, size_t bytes, Handle stream) {
  const Result result = give(stream, [=] { std::memcpy(to, reinterpret_cast<void*>(from), bytes); });
  if (!is_pinned(to, bytes)) do_all(stream);
  return result;
}
Result cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, Handle stream) {
  return give(stream, [=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes); });
}
Result cuMemsetD8Async(Address to, unsigned char byte, size_t bytes, Handle stream) {
  return give(stream, [=] { std::memset(reinterpret_cast<void*>(to), byte, bytes); });
}
Result cuStreamCreate(Handle* stream, unsigned) {
  if (!current) return no_context;
  std::lock_guard lock(order);
  auto* made = new Stream;
  streams.insert(made);
  return *stream = made, success;
}
Result cuStreamDestroy_v2(Handle stream) {
  std::lock_guard lock(order);
  do_all(stream);
  streams.erase(static_cast<Stream*>(stream));
  return delete static_cast<Stream*>(stream), success;
}
Result cuStreamSynchronize(Handle stream) {
  count(stream, 0, 1);
  do_all(stream);
  return told(stream);
}
Result cuEventCreate(Handle* event, unsigned) {
  return current ? (*event = new SharedEvent(std::make_shared<Event>()), success) : no_context;
}
Result cuEventDestroy_v2(Handle event) { return delete &event_of(event), success; }
Result cuEventRecord(Handle handle, Handle stream) {
  std::lock_guard lock(order);
  if (Result state = state_of(stream)) return state;
  const SharedEvent event = event_of(handle);
  event->stream = made(stream);
  do_or_defer(stream, Kind::other, [event, times = ++event->recorded] {
    event->done = times;
    event->time = std::chrono::steady_clock::now();
  });
  return success;
}
Result cuEventQuery(Handle event) {
  std::lock_guard lock(order);
  return event_of(event)->done < event_of(event)->recorded ? not_ready : told(nullptr);
}
Result cuEventSynchronize(Handle event) {
  event_of(event)->complete(event_of(event)->recorded);
  return told(nullptr);
}
Result cuEventElapsedTime(float* milliseconds, Handle from, Handle to) {
  using Milliseconds = std::chrono::duration<float, std::milli>;
  return *milliseconds = Milliseconds(event_of(to)->time - event_of(from)->time).count(), success;
}
Result cuStreamWaitEvent(Handle stream, Handle handle, unsigned is_recorded) {
  std::lock_guard lock(order);
  const SharedEvent event = event_of(handle);
  Stream* to = made(stream);
  if (!to || to->records != (is_recorded == 1)) return invalid;
  if (to->records)
    to->recorded.emplace_back([event] { event->complete(event->recorded); });
  else if (event->done < event->recorded)
    to->pending.emplace_back([event, times = event->recorded] { event->complete(times); });
  return success;
}
Result cuStreamBeginCapture_v2(Handle stream, int) { return static_cast<Stream*>(stream)->records = true, success; }
Result cuStreamEndCapture(Handle stream, Handle* graph) {
  auto* from = static_cast<Stream*>(stream);
  from->records = false;
  *graph = new Graph{std::move(from->recorded)};
  return success;
}
Result cuGraphInstantiateWithFlags(Handle* executable, Handle graph, unsigned long long) {
  return *executable = new Graph(*static_cast<Graph*>(graph)), success;
}
Result cuGraphLaunch(Handle executable, Handle stream) {
  return give(
      stream,
      [all = static_cast<Graph*>(executable)->work] {
        for (const auto& work : all) work();
      },
      Kind::kernel);
}
Result cuGraphDestroy(Handle graph) { return delete static_cast<Graph*>(graph), success; }
Result cuGraphExecDestroy(Handle graph) { return delete static_cast<Graph*>(graph), success; }

Result cuModuleLoadData(Handle* module, const void* image) {
  std::lock_guard lock(mutex);
  // Eight bytes with the size come first.
  uint64_t size = 0;
  std::memcpy(&size, image, sizeof size);
  *module = load(static_cast<const char*>(image) + sizeof size, size);
  return *module ? success : invalid;
}
Result cuModuleUnload(Handle module) {
  std::lock_guard lock(mutex);
  auto* from = static_cast<Module*>(module);
  dlclose(from->library);
  return delete from, success;
}
Result cuModuleGetFunction(Handle* function, Handle module, const char* name) {
  std::lock_guard lock(mutex);
  auto* from = static_cast<Module*>(module);
  Kernel& kernel = from->kernels[name];
  auto find = [&](const std::string& symbol) { return dlsym(from->library, symbol.c_str()); };
  const std::string base = name;
  if (!find(base + "_call")) return invalid;
  kernel = {from->context,
            reinterpret_cast<void (*)(void**)>(find(base + "_call")),
            static_cast<const size_t*>(find(base + "_sizes")),
            *static_cast<const int*>(find(base + "_count")),
            *static_cast<const int*>(find("tenon_waits")),
            *static_cast<const int*>(find("tenon_begins")),
            reinterpret_cast<decltype(Kernel::run)>(find("tenon_run_kernel"))};
  *function = &kernel;
  return success;
}
Result cuFuncSetAttribute(Handle, int, int bytes) { return bytes > 227 << 10 ? invalid : success; }
Result cuLaunchKernel(Handle function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned, unsigned,
                      unsigned, Handle stream, void** arguments, void**) {
  const Kernel kernel = *static_cast<Kernel*>(function);
  if (threads == 0 || threads > 1024 || x == 0 || y == 0 || z == 0 || y > 65535 || z > 65535) return invalid;
  if (kernel.context != current) return no_context;
  std::vector<std::vector<char>> copies;
  for (int i = 0; i < kernel.parameters; ++i) {
    const auto* from = static_cast<const char*>(arguments[i]);
    copies.emplace_back(from, from + kernel.sizes[i]);
  }
  const auto run = [=]() mutable {
    std::lock_guard lock(mutex);
    static const int fails = number_from("TENON_EMULATED_FAILURE", 0);
    static int runs = 0;
    if (++runs == fails) is_broken = true;
    std::vector<void*> pointers;
    for (std::vector<char>& copy : copies) pointers.push_back(copy.data());
    const unsigned grid[] = {x, y, z, threads};
    kernel.run(kernel.call, pointers.data(), grid, kernel.waits);
  };
  return give(stream, run, Kind::kernel);
}

// Only recorded kernels may be launched before what is ahead of them ends, and only those that wait by themselves.
Result cuLaunchKernelEx(const LaunchConfiguration* how, Handle function, void** arguments, void** extra) {
  const Stream* stream = made(how->stream);
  if (how->attribute_count != 1 || how->attributes[0].id != 6 || how->attributes[0].value[0] != 1) return invalid;
  if (!stream || !stream->records || !static_cast<Kernel*>(function)->begins) return invalid;
  return cuLaunchKernel(function, how->blocks[0], how->blocks[1], how->blocks[2], how->threads[0], how->threads[1],
                        how->threads[2], how->shared_bytes, how->stream, arguments, extra);
}

// As emulated_kernels.h reads it: address, axes, whether places change, sizes and box of four axes, and how many
// elements it is to the next one of each axis but the first.
Result cuTensorMapEncodeTiled(void* map, int type, unsigned axes, void* address, const uint64_t* sizes,
                              const uint64_t* steps, const uint32_t* box, const uint32_t*, int, int swizzle, int, int) {
  constexpr uint32_t most_in_box = 256, bytes_of_mixed_rows = 128;
  if (type != 1 || axes > 4 || reinterpret_cast<uintptr_t>(address) % 16 != 0) return invalid;
  if (swizzle != 0 && box[0] * 2 > bytes_of_mixed_rows) return invalid;
  uint64_t words[16] = {reinterpret_cast<uint64_t>(address), axes, swizzle == 3};
  for (unsigned axis = 0; axis < 4; ++axis) {
    words[3 + axis] = axis < axes ? sizes[axis] : 1;
    words[7 + axis] = axis < axes ? box[axis] : 1;
    if (words[3 + axis] == 0 || words[7 + axis] == 0 || words[7 + axis] > most_in_box) return invalid;
    if (axis + 1 >= axes) continue;
    if (steps[axis] % 16 != 0) return invalid;
    words[11 + axis] = steps[axis] / 2;
  }
  std::memcpy(map, words, sizeof words);
  return success;
}

// The same for windows over images: the box is their channels and how many there are; then come the places of the first
// and the last window, and strides, two numbers in a word.
Result cuTensorMapEncodeIm2col(void* map, int type, unsigned axes, void* address, const uint64_t* sizes,
                               const uint64_t* steps, const int* first, const int* last, unsigned channels,
                               unsigned windows, const uint32_t* strides, int, int swizzle, int, int) {
  if (axes != 4 || type != 1 || swizzle != 3 || channels != 64 || windows > 256) return invalid;
  if (reinterpret_cast<uintptr_t>(address) % 16 != 0) return invalid;
  uint64_t words[16] = {reinterpret_cast<uint64_t>(address), axes, 1};
  for (unsigned axis = 0; axis < 4; ++axis) {
    words[3 + axis] = sizes[axis];
    words[7 + axis] = axis == 0 ? channels : axis == 1 ? windows : 1;
    if (sizes[axis] == 0 || strides[axis] == 0 || strides[axis] > 8 || (axis < 3 && steps[axis] % 16 != 0))
      return invalid;
  }
  for (unsigned axis = 0; axis < 2; ++axis)
    if (std::min(first[axis], last[axis]) < -128 || std::max(first[axis], last[axis]) > 127) return invalid;
  std::memcpy(words + 11, first, 8);
  std::memcpy(words + 12, last, 8);
  std::memcpy(words + 13, strides + 1, 8);
  std::memcpy(map, words, sizeof words);
  return success;
}

Result cublasLtCreate(Handle* handle) { return *handle = new int, success; }
Result cublasLtDestroy(Handle handle) { return delete static_cast<int*>(handle), success; }
Result cublasLtMatmulDescCreate(Handle* description, int, int) { return *description = new Matmul, success; }
Result cublasLtMatmulDescDestroy(Handle description) { return delete static_cast<Matmul*>(description), success; }
Result cublasLtMatmulDescSetAttribute(Handle description, int attribute, const void* value, size_t bytes) {
  auto& matmul = *static_cast<Matmul*>(description);
  if (attribute == 3) std::memcpy(&matmul.transpose_a, value, bytes);
  if (attribute == 4) std::memcpy(&matmul.transpose_b, value, bytes);
  if (attribute == 7) std::memcpy(&matmul.epilogue, value, bytes);
  if (attribute == 8) std::memcpy(&matmul.bias, value, bytes);
  return success;
}
Result cublasLtMatrixLayoutCreate(Handle* layout, int type, uint64_t rows, uint64_t columns, int64_t leading) {
  return *layout = new Layout{type, rows, columns, leading}, success;
}
Result cublasLtMatrixLayoutDestroy(Handle layout) { return delete static_cast<Layout*>(layout), success; }
Result cublasLtMatrixLayoutSetAttribute(Handle handle, int attribute, const void* value, size_t bytes) {
  auto& layout = *static_cast<Layout*>(handle);
  if (attribute == 1) std::memcpy(&layout.order, value, bytes);
  if (attribute == 5) std::memcpy(&layout.batch, value, bytes);
  if (attribute == 6) std::memcpy(&layout.stride, value, bytes);
  return success;
}
Result cublasLtMatmulPreferenceCreate(Handle* preference) { return *preference = new int, success; }
Result cublasLtMatmulPreferenceDestroy(Handle preference) { return delete static_cast<int*>(preference), success; }
Result cublasLtMatmulPreferenceSetAttribute(Handle, int, const void*, size_t) { return success; }
Result cublasLtMatmulAlgoGetHeuristic(Handle, Handle, Handle, Handle, Handle, Handle, Handle, int,
                                      MatmulChoice* choices, int* found) {
  choices[0] = {};
  *found = 1;
  return success;
}
Result cublasLtMatmul(Handle, Handle description, const void* alpha, const void* a, Handle a_layout, const void* b,
                      Handle b_layout, const void* beta, const void* c, Handle c_layout, void* d, Handle d_layout,
                      const MatmulAlgorithm*, void*, size_t, Handle stream) {
  const Matmul matmul = *static_cast<Matmul*>(description);
  const Layout la = *static_cast<Layout*>(a_layout), lb = *static_cast<Layout*>(b_layout),
               lc = *static_cast<Layout*>(c_layout), ld = *static_cast<Layout*>(d_layout);
  const bool is_double = ld.type == f64, is_integer = ld.type == i32;
  auto scalar = [&](const void* at) -> double {
    if (is_double) return *static_cast<const double*>(at);
    return is_integer ? *static_cast<const int32_t*>(at) : *static_cast<const float*>(at);
  };
  const double scale = scalar(alpha), keep = scalar(beta);
  give(
      stream,
      [=] {
        const auto inner = static_cast<int64_t>(matmul.transpose_a ? la.rows : la.columns);
        for (int64_t batch = 0; batch < ld.batch; ++batch) {
          for (int64_t column = 0; column < static_cast<int64_t>(ld.columns); ++column) {
            for (int64_t row = 0; row < static_cast<int64_t>(ld.rows); ++row) {
              double sum = 0;
              for (int64_t k = 0; k < inner; ++k) {
                sum +=
                    load_element(a, la.type, matmul.transpose_a ? at(la, k, row, batch) : at(la, row, k, batch)) *
                    load_element(b, lb.type, matmul.transpose_b ? at(lb, column, k, batch) : at(lb, k, column, batch));
              }
              sum *= scale;
              if (keep != 0) sum += keep * load_element(c, lc.type, at(lc, row, column, batch));
              if (matmul.epilogue & 4) sum += load_element(matmul.bias, ld.type, row);
              if (matmul.epilogue & 2) sum = sum < 0 ? 0 : sum;
              store_element(d, ld.type, at(ld, row, column, batch), sum);
            }
          }
        }
      },
      Kind::kernel);
  return success;
}

// Convolutions fall back to kernels of our own.
Result cudnnCreate(Handle* handle) { return *handle = new int, success; }
Result cudnnDestroy(Handle handle) { return delete static_cast<int*>(handle), success; }
Result cudnnSetStream(Handle, Handle) { return success; }
Result cudnnBackendCreateDescriptor(int, Handle*) { return not_supported; }
Result cudnnBackendDestroyDescriptor(Handle) { return success; }
Result cudnnBackendSetAttribute(Handle, int, int, int64_t, const void*) { return not_supported; }
Result cudnnBackendGetAttribute(Handle, int, int, int64_t, int64_t*, void*) { return not_supported; }
Result cudnnBackendFinalize(Handle) { return not_supported; }
Result cudnnBackendExecute(Handle, Handle, Handle) { return not_supported; }

}  // extern "C"
