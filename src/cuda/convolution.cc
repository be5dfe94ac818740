#include "cuda/convolution.h"

#include <algorithm>

#include "base/fail.h"

namespace tenon::cuda {
namespace {

// As cuDNN numbers them: kinds of descriptors, attributes, types of attributes.
namespace kind {
constexpr int convolution = 1, engine_heuristics = 4, engine_configuration = 3, engine = 2, execution_plan = 5;
constexpr int forward = 10, backward_data = 12, operation_graph = 15, variant_pack = 16, tensor = 17;
}  // namespace kind
namespace attribute {
constexpr int compute_type = 100, mode = 101, dilations = 102, strides = 103, pads_end = 104, pads_begin = 105,
              spatial = 106;
constexpr int heuristics_mode = 200, heuristics_graph = 201, heuristics_results = 202;
constexpr int configuration_engine = 300, engine_notes = 1303;
constexpr int plan_handle = 400, plan_configuration = 401, plan_workspace = 402;
constexpr int forward_alpha = 700, forward_beta = 701, forward_convolution = 702, forward_w = 703, forward_x = 704,
              forward_y = 705;
constexpr int data_alpha = 706, data_beta = 707, data_convolution = 708, data_w = 709, data_dx = 710, data_dy = 711;
constexpr int graph_handle = 800, graph_operations = 801;
constexpr int alignment = 900, data_type = 901, dimensions = 902, tensor_strides = 903, unique_id = 906;
constexpr int pack_ids = 1000, pack_pointers = 1001, pack_workspace = 1003;
}  // namespace attribute
namespace type {
constexpr int handle = 0, data_type = 1, int64 = 3, float_ = 4, double_ = 5, pointer = 6, mode = 7, heuristics = 8,
              note = 11;
constexpr int descriptor = 15;
}  // namespace type
constexpr int cross_correlation = 1, heuristics_a = 3, heuristics_fallback = 2, note_tensor_core = 0;
constexpr int64_t most_configurations = 16;

int data_type_of(ElementType element) {
  switch (element) {
    case ElementType::float32:
      return 0;
    case ElementType::float64:
      return 1;
    case ElementType::float16:
      return 2;
    default:
      return 9;  // bfloat16
  }
}

// An object of cuDNN.
class Descriptor {
 public:
  Descriptor() = default;
  Descriptor(const Libraries& api, int kind) : api_(&api) {
    if (api.cudnnBackendCreateDescriptor(kind, &handle_) != 0) handle_ = nullptr;
  }
  Descriptor(Descriptor&& other) noexcept
      : api_(other.api_), handle_(std::exchange(other.handle_, nullptr)), is_good_(other.is_good_) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(handle_, other.handle_);
    std::swap(is_good_, other.is_good_);
    return *this;
  }
  ~Descriptor() {
    if (handle_) api_->cudnnBackendDestroyDescriptor(handle_);
  }

  void set(int name, int kind, int64_t count, const void* values) {
    is_good_ = is_good_ && handle_ && api_->cudnnBackendSetAttribute(handle_, name, kind, count, values) == 0;
  }
  void set(int name, const Descriptor& other) { set(name, type::descriptor, 1, &other.handle_); }
  // Whether all that was set is as it may be.
  bool finish() {
    is_good_ = is_good_ && handle_ && api_->cudnnBackendFinalize(handle_) == 0;
    return is_good_;
  }
  Handle handle() const { return handle_; }
  Handle* place() { return &handle_; }

 private:
  const Libraries* api_ = nullptr;
  Handle handle_ = nullptr;
  bool is_good_ = true;
};

}  // namespace

struct Convolution::Plan {
  Descriptor plan;
};

std::optional<Convolution> Convolution::plan(GpuQueue& queue, const ConvolutionShape& shape) {
  Gpu& gpu = queue.gpu();
  const Libraries& api = gpu.api();
  gpu.use();
  const int element = data_type_of(shape.type), computed = shape.type == ElementType::float64 ? 1 : 0;

  auto tensor = [&](const std::vector<int64_t>& dims, int64_t id) {
    std::vector<int64_t> steps(dims.size());
    int64_t step = 1;
    if (shape.channels_last) {
      steps[1] = 1;
      step = dims[1];
      for (size_t i = dims.size(); i-- > 2;) steps[i] = std::exchange(step, step * dims[i]);
      steps[0] = step;
    } else {
      for (size_t i = dims.size(); i-- > 0;) steps[i] = std::exchange(step, step * dims[i]);
    }
    Descriptor descriptor(api, kind::tensor);
    const auto rank = static_cast<int64_t>(dims.size()), alignment = int64_t{16};
    descriptor.set(attribute::data_type, type::data_type, 1, &element);
    descriptor.set(attribute::dimensions, type::int64, rank, dims.data());
    descriptor.set(attribute::tensor_strides, type::int64, rank, steps.data());
    descriptor.set(attribute::unique_id, type::int64, 1, &id);
    descriptor.set(attribute::alignment, type::int64, 1, &alignment);
    descriptor.finish();
    return descriptor;
  };
  const Descriptor x = tensor(shape.x, 'x'), w = tensor(shape.w, 'w'), y = tensor(shape.y, 'y');

  Descriptor convolution(api, kind::convolution);
  const auto spatial = static_cast<int64_t>(shape.strides.size());
  convolution.set(attribute::spatial, type::int64, 1, &spatial);
  convolution.set(attribute::compute_type, type::data_type, 1, &computed);
  convolution.set(attribute::mode, type::mode, 1, &cross_correlation);
  convolution.set(attribute::strides, type::int64, spatial, shape.strides.data());
  convolution.set(attribute::dilations, type::int64, spatial, shape.dilations.data());
  convolution.set(attribute::pads_begin, type::int64, spatial, shape.pads_begin.data());
  convolution.set(attribute::pads_end, type::int64, spatial, shape.pads_end.data());
  if (!convolution.finish()) return std::nullopt;

  Descriptor operation(api, shape.transposed ? kind::backward_data : kind::forward);
  const double one = 1, zero = 0;
  const float one_float = 1, zero_float = 0;
  const bool is_double = shape.type == ElementType::float64;
  const int scalar = is_double ? type::double_ : type::float_;
  const void *alpha = is_double ? static_cast<const void*>(&one) : &one_float,
             *beta = is_double ? static_cast<const void*>(&zero) : &zero_float;
  if (shape.transposed) {
    operation.set(attribute::data_convolution, convolution);
    operation.set(attribute::data_dy, x);
    operation.set(attribute::data_w, w);
    operation.set(attribute::data_dx, y);
    operation.set(attribute::data_alpha, scalar, 1, alpha);
    operation.set(attribute::data_beta, scalar, 1, beta);
  } else {
    operation.set(attribute::forward_convolution, convolution);
    operation.set(attribute::forward_x, x);
    operation.set(attribute::forward_w, w);
    operation.set(attribute::forward_y, y);
    operation.set(attribute::forward_alpha, scalar, 1, alpha);
    operation.set(attribute::forward_beta, scalar, 1, beta);
  }
  if (!operation.finish()) return std::nullopt;

  Handle handle = gpu.dnn();
  Descriptor graph(api, kind::operation_graph);
  graph.set(attribute::graph_handle, type::handle, 1, &handle);
  graph.set(attribute::graph_operations, operation);
  if (!graph.finish()) return std::nullopt;

  // TF32 comes with tensor cores.
  auto keeps_precision = [&](Descriptor& configuration) {
    if (shape.type != ElementType::float32 || shape.allow_tf32) return true;
    Descriptor engine(api, kind::engine);
    int64_t count = 0;
    if (api.cudnnBackendGetAttribute(configuration.handle(), attribute::configuration_engine, type::descriptor, 1,
                                     &count, engine.place()) != 0)
      return false;
    int notes[16] = {};
    if (api.cudnnBackendGetAttribute(engine.handle(), attribute::engine_notes, type::note, 16, &count, notes) != 0)
      return false;
    return std::find(notes, notes + std::min<int64_t>(count, 16), note_tensor_core) ==
           notes + std::min<int64_t>(count, 16);
  };

  for (int mode : {heuristics_a, heuristics_fallback}) {
    Descriptor heuristics(api, kind::engine_heuristics);
    heuristics.set(attribute::heuristics_graph, graph);
    heuristics.set(attribute::heuristics_mode, type::heuristics, 1, &mode);
    if (!heuristics.finish()) continue;
    std::vector<Descriptor> configurations;
    std::vector<Handle> handles;
    for (int64_t i = 0; i < most_configurations; ++i) {
      configurations.emplace_back(api, kind::engine_configuration);
      handles.push_back(configurations.back().handle());
    }
    int64_t count = 0;
    if (api.cudnnBackendGetAttribute(heuristics.handle(), attribute::heuristics_results, type::descriptor,
                                     most_configurations, &count, handles.data()) != 0)
      continue;
    for (int64_t i = 0; i < std::min(count, most_configurations); ++i) {
      Descriptor& configuration = configurations[static_cast<size_t>(i)];
      if (!keeps_precision(configuration)) continue;
      Descriptor plan(api, kind::execution_plan);
      plan.set(attribute::plan_handle, type::handle, 1, &handle);
      plan.set(attribute::plan_configuration, configuration);
      int64_t workspace = 0, found = 0;
      if (!plan.finish() || api.cudnnBackendGetAttribute(plan.handle(), attribute::plan_workspace, type::int64, 1,
                                                         &found, &workspace) != 0)
        continue;
      if (workspace > GpuQueue::workspace_bytes) continue;
      Convolution result;
      result.plan_ = std::make_shared<Plan>();
      result.plan_->plan = std::move(plan);
      return result;
    }
  }
  return std::nullopt;
}

void Convolution::run(GpuQueue& queue, const void* x, const void* w, void* y) const {
  Gpu& gpu = queue.gpu();
  gpu.use();
  const Libraries& api = gpu.api();
  const int64_t ids[] = {'x', 'w', 'y'};
  const void* pointers[] = {x, w, y};
  const void* workspace = queue.workspace();
  Descriptor pack(api, kind::variant_pack);
  pack.set(attribute::pack_ids, type::int64, 3, ids);
  pack.set(attribute::pack_pointers, type::pointer, 3, pointers);
  pack.set(attribute::pack_workspace, type::pointer, 1, &workspace);
  if (!pack.finish()) fail(ErrorCode::internal, "cuDNN does not take the addresses of a convolution");
  // The handle is the GPU's, the stream that of this queue.
  std::lock_guard lock(gpu.dnn_mutex());
  gpu.check_blas(api.cudnnSetStream(gpu.dnn(), queue.stream()), "cudnnSetStream");
  gpu.check_blas(api.cudnnBackendExecute(gpu.dnn(), plan_->plan.handle(), pack.handle()), "cudnnBackendExecute");
}

}  // namespace tenon::cuda
