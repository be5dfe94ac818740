#include "cuda/convolution.h"

#include <fmt/format.h>
#include <algorithm>

#include "base/fail.h"
#include "cuda/trial.h"

namespace tenon::cuda {
namespace {

// As cuDNN numbers them: kinds of descriptors, attributes, types of attributes.
namespace kind {
constexpr int pointwise = 0, convolution = 1, engine = 2, engine_configuration = 3, engine_heuristics = 4,
              execution_plan = 5;
constexpr int forward = 10, backward_data = 12, pointwise_operation = 13, operation_graph = 15, variant_pack = 16,
              tensor = 17;
}  // namespace kind
namespace attribute {
constexpr int pointwise_mode = 0, pointwise_precision = 1;
constexpr int compute_type = 100, mode = 101, dilations = 102, strides = 103, pads_end = 104, pads_begin = 105,
              spatial = 106;
constexpr int heuristics_mode = 200, heuristics_graph = 201, heuristics_results = 202;
constexpr int configuration_engine = 300, engine_notes = 1303;
constexpr int plan_handle = 400, plan_configuration = 401, plan_workspace = 402;
constexpr int forward_alpha = 700, forward_beta = 701, forward_convolution = 702, forward_w = 703, forward_x = 704,
              forward_y = 705;
constexpr int data_alpha = 706, data_beta = 707, data_convolution = 708, data_w = 709, data_dx = 710, data_dy = 711;
constexpr int pointwise_descriptor = 750, pointwise_x = 751, pointwise_b = 752, pointwise_y = 753;
constexpr int graph_handle = 800, graph_operations = 801;
constexpr int alignment = 900, data_type = 901, dimensions = 902, tensor_strides = 903, unique_id = 906,
              is_virtual = 907;
constexpr int pack_ids = 1000, pack_pointers = 1001, pack_workspace = 1003;
}  // namespace attribute
namespace type {
constexpr int handle = 0, data_type = 1, boolean = 2, int64 = 3, float_ = 4, double_ = 5, pointer = 6, mode = 7,
              heuristics = 8, note = 11;
constexpr int pointwise_mode = 14, descriptor = 15;
}  // namespace type
constexpr int cross_correlation = 1, heuristics_a = 3, heuristics_fallback = 2, note_tensor_core = 0;
constexpr int pointwise_add = 0, pointwise_relu = 100;
constexpr int float_type = 0, double_type = 1;
constexpr int64_t most_configurations = 16;
constexpr size_t most_tried = 4;

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

// What divides all of its addresses, in bytes, up to what cuDNN asks for at most. They are less aligned where they are
// parts of a larger tensor.
int64_t alignment_of(const ConvolutionData& data) {
  auto bits = uintptr_t{16};
  for (const void* address : {data.x, data.w, static_cast<const void*>(data.y), data.bias, data.residual})
    bits |= reinterpret_cast<uintptr_t>(address);
  return static_cast<int64_t>(bits & (~bits + 1));
}

// The operations of a convolution and what follows it, as cuDNN describes them.
class Operations {
 public:
  Operations(const Libraries& api, const ConvolutionShape& shape, int64_t alignment)
      : api_(api), shape_(shape), alignment_(alignment) {}

  // False where cuDNN does not take them.
  bool describe(Handle dnn) {
    const bool stores_at_once = shape_.epilogue.is_empty();
    values_.push_back(stores_at_once ? tensor(shape_.y, 'y') : between());
    if (!add_convolution()) return false;
    const Epilogue& epilogue = shape_.epilogue;
    std::vector<int64_t> bias(shape_.y.size(), 1);
    bias[1] = shape_.y[1];
    if (epilogue.residual && !add_pointwise(pointwise_add, tensor(shape_.y, 'r'), !epilogue.bias && !epilogue.relu))
      return false;
    if (epilogue.bias && !add_pointwise(pointwise_add, tensor(bias, 'b'), !epilogue.relu)) return false;
    if (epilogue.relu && !add_pointwise(pointwise_relu, std::nullopt, true)) return false;
    graph_ = Descriptor(api_, kind::operation_graph);
    graph_.set(attribute::graph_handle, type::handle, 1, &dnn);
    std::vector<Handle> handles;
    for (const Descriptor& operation : operations_) handles.push_back(operation.handle());
    graph_.set(attribute::graph_operations, type::descriptor, static_cast<int64_t>(handles.size()), handles.data());
    return graph_.finish();
  }

  const Descriptor& graph() const { return graph_; }

 private:
  // What is not stored is a value between two operations.
  Descriptor tensor(const std::vector<int64_t>& dims, int64_t id, bool is_stored = true) const {
    std::vector<int64_t> steps(dims.size());
    int64_t step = 1;
    if (shape_.channels_last) {
      steps[1] = 1;
      step = dims[1];
      for (size_t i = dims.size(); i-- > 2;) steps[i] = std::exchange(step, step * dims[i]);
      steps[0] = step;
    } else {
      for (size_t i = dims.size(); i-- > 0;) steps[i] = std::exchange(step, step * dims[i]);
    }
    Descriptor descriptor(api_, kind::tensor);
    const auto rank = static_cast<int64_t>(dims.size());
    const int element = is_stored ? data_type_of(shape_.type) : compute_type();
    descriptor.set(attribute::data_type, type::data_type, 1, &element);
    descriptor.set(attribute::dimensions, type::int64, rank, dims.data());
    descriptor.set(attribute::tensor_strides, type::int64, rank, steps.data());
    descriptor.set(attribute::unique_id, type::int64, 1, &id);
    descriptor.set(attribute::alignment, type::int64, 1, &alignment_);
    const bool is_virtual = !is_stored;
    if (is_virtual) descriptor.set(attribute::is_virtual, type::boolean, 1, &is_virtual);
    descriptor.finish();
    return descriptor;
  }
  Descriptor between() { return tensor(shape_.y, ++last_id_, /*is_stored=*/false); }

  int compute_type() const { return shape_.type == ElementType::float64 ? double_type : float_type; }

  bool add_convolution() {
    const Descriptor x = tensor(shape_.x, 'x'), w = tensor(shape_.w, 'w'), &y = values_.back();
    Descriptor convolution(api_, kind::convolution);
    const auto spatial = static_cast<int64_t>(shape_.strides.size());
    const int computed = compute_type();
    convolution.set(attribute::spatial, type::int64, 1, &spatial);
    convolution.set(attribute::compute_type, type::data_type, 1, &computed);
    convolution.set(attribute::mode, type::mode, 1, &cross_correlation);
    convolution.set(attribute::strides, type::int64, spatial, shape_.strides.data());
    convolution.set(attribute::dilations, type::int64, spatial, shape_.dilations.data());
    convolution.set(attribute::pads_begin, type::int64, spatial, shape_.pads_begin.data());
    convolution.set(attribute::pads_end, type::int64, spatial, shape_.pads_end.data());
    if (!convolution.finish()) return false;

    Descriptor operation(api_, shape_.transposed ? kind::backward_data : kind::forward);
    const double one = 1, zero = 0;
    const float one_float = 1, zero_float = 0;
    const bool is_double = shape_.type == ElementType::float64;
    const int scalar = is_double ? type::double_ : type::float_;
    const void *alpha = is_double ? static_cast<const void*>(&one) : &one_float,
               *beta = is_double ? static_cast<const void*>(&zero) : &zero_float;
    if (shape_.transposed) {
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
    operations_.push_back(std::move(operation));
    return operations_.back().finish();
  }

  // Of the last value and `other`, if there is one.
  bool add_pointwise(int mode, const std::optional<Descriptor>& other, bool is_last) {
    Descriptor pointwise(api_, kind::pointwise);
    const int computed = compute_type();
    pointwise.set(attribute::pointwise_mode, type::pointwise_mode, 1, &mode);
    pointwise.set(attribute::pointwise_precision, type::data_type, 1, &computed);
    if (!pointwise.finish()) return false;
    Descriptor result = is_last ? tensor(shape_.y, 'y') : between(), operation(api_, kind::pointwise_operation);
    operation.set(attribute::pointwise_descriptor, pointwise);
    operation.set(attribute::pointwise_x, values_.back());
    if (other) operation.set(attribute::pointwise_b, *other);
    operation.set(attribute::pointwise_y, result);
    values_.push_back(std::move(result));
    operations_.push_back(std::move(operation));
    return operations_.back().finish();
  }

  const Libraries& api_;
  const ConvolutionShape& shape_;
  const int64_t alignment_;
  int64_t last_id_ = 1000;  // of values that are not stored
  std::vector<Descriptor> values_, operations_;
  Descriptor graph_;
};

}  // namespace

std::string ConvolutionShape::text() const {
  return fmt::format("convolution {} {} {} {} {} {} {} {} {} {}{}{} {}{}{}", name_of(type), fmt::join(x, ","),
                     fmt::join(w, ","), fmt::join(y, ","), fmt::join(strides, ","), fmt::join(dilations, ","),
                     fmt::join(pads_begin, ","), fmt::join(pads_end, ","), groups, channels_last, transposed,
                     allow_tf32, epilogue.residual, epilogue.bias, epilogue.relu);
}

struct Convolution::Plan {
  Descriptor plan;
  ConvolutionShape shape;
  int64_t alignment;
};

namespace {

// TF32 comes with tensor cores.
bool keeps_precision(const Libraries& api, const ConvolutionShape& shape, const Descriptor& configuration) {
  if (shape.type != ElementType::float32 || shape.allow_tf32) return true;
  Descriptor engine(api, kind::engine);
  int64_t count = 0;
  if (api.cudnnBackendGetAttribute(configuration.handle(), attribute::configuration_engine, type::descriptor, 1, &count,
                                   engine.place()) != 0)
    return false;
  int notes[16] = {};
  if (api.cudnnBackendGetAttribute(engine.handle(), attribute::engine_notes, type::note, 16, &count, notes) != 0)
    return false;
  const auto last = notes + std::min<int64_t>(count, 16);
  return std::find(notes, last, note_tensor_core) == last;
}

// What cuDNN proposes, ready to run, best first.
std::vector<Descriptor> proposals(Gpu& gpu, const ConvolutionShape& shape, const Descriptor& graph, size_t most) {
  const Libraries& api = gpu.api();
  Handle dnn = gpu.dnn();
  std::vector<Descriptor> plans;
  for (int mode : {heuristics_a, heuristics_fallback}) {
    if (!plans.empty()) break;
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
    for (int64_t i = 0; i < std::min(count, most_configurations) && plans.size() < most; ++i) {
      Descriptor& configuration = configurations[static_cast<size_t>(i)];
      if (!keeps_precision(api, shape, configuration)) continue;
      Descriptor plan(api, kind::execution_plan);
      plan.set(attribute::plan_handle, type::handle, 1, &dnn);
      plan.set(attribute::plan_configuration, configuration);
      int64_t workspace = 0, found = 0;
      if (!plan.finish() || api.cudnnBackendGetAttribute(plan.handle(), attribute::plan_workspace, type::int64, 1,
                                                         &found, &workspace) != 0)
        continue;
      if (workspace <= GpuQueue::workspace_bytes) plans.push_back(std::move(plan));
    }
  }
  return plans;
}

}  // namespace

std::vector<Convolution> Convolution::ways(GpuQueue& queue, const ConvolutionShape& shape, int64_t alignment,
                                           size_t most) {
  Gpu& gpu = queue.gpu();
  gpu.use();
  Operations operations(gpu.api(), shape, alignment);
  std::vector<Convolution> list;
  if (!operations.describe(gpu.dnn())) return list;
  for (Descriptor& plan : proposals(gpu, shape, operations.graph(), most))
    list.push_back(Convolution(std::make_shared<const Plan>(Plan{std::move(plan), shape, alignment})));
  return list;
}

std::optional<Convolution> Convolution::untried(GpuQueue& queue, const ConvolutionShape& shape, int64_t alignment) {
  Gpu& gpu = queue.gpu();
  const std::string key = fmt::format("{} {} untried", shape.text(), alignment);
  if (auto known = gpu.choice(key)) return Convolution(std::static_pointer_cast<const Plan>(known));
  const std::vector<Convolution> list = ways(queue, shape, alignment, 1);
  if (list.empty()) return std::nullopt;
  gpu.set_choice(key, list[0].plan_);
  return list[0];
}

std::optional<Convolution> Convolution::plan(GpuQueue& queue, Uses uses, const ConvolutionShape& shape,
                                             const ConvolutionData& data) {
  Gpu& gpu = queue.gpu();
  const int64_t alignment = alignment_of(data);
  const std::string key = fmt::format("{} {}", shape.text(), alignment);
  if (auto known = gpu.choice(key)) return Convolution(std::static_pointer_cast<const Plan>(known));
  if (!is_worth_a_trial(gpu, key, uses)) return untried(queue, shape, alignment);
  const std::vector<Convolution> list = ways(queue, shape, alignment, most_tried);
  if (list.empty()) return std::nullopt;
  const Convolution& best = list[fastest(queue, list.size(), [&](size_t i) { list[i].run(queue, data); })];
  gpu.set_choice(key, best.plan_);
  return best;
}

void Convolution::run(GpuQueue& queue, const ConvolutionData& data) const {
  if (alignment_of(data) < plan_->alignment) {
    // The caller's memory, which was elsewhere when this was planned.
    const auto other = untried(queue, plan_->shape, alignment_of(data));
    if (!other)
      fail(ErrorCode::unsupported, "cuDNN has no convolution for memory that is aligned to {} bytes only",
           alignment_of(data));
    return other->run(queue, data);
  }
  Gpu& gpu = queue.gpu();
  gpu.use();
  const Libraries& api = gpu.api();
  const int64_t ids[] = {'x', 'w', 'y', 'b', 'r'};
  const void* pointers[] = {data.x, data.w, data.y, data.bias, data.residual};
  SmallVector<int64_t, 5> given;
  SmallVector<const void*, 5> addresses;
  for (size_t i = 0; i < 5; ++i) {
    if (!pointers[i]) continue;
    given.push_back(ids[i]);
    addresses.push_back(pointers[i]);
  }
  const void* workspace = queue.workspace();
  Descriptor pack(api, kind::variant_pack);
  pack.set(attribute::pack_ids, type::int64, std::ssize(given), given.data());
  pack.set(attribute::pack_pointers, type::pointer, std::ssize(addresses), addresses.data());
  pack.set(attribute::pack_workspace, type::pointer, 1, &workspace);
  if (!pack.finish()) fail(ErrorCode::internal, "cuDNN does not take the addresses of a convolution");
  // The handle is the GPU's, the stream that of this queue.
  std::lock_guard lock(gpu.dnn_mutex());
  gpu.check_blas(api.cudnnSetStream(gpu.dnn(), queue.stream()), "cudnnSetStream");
  gpu.check_blas(api.cudnnBackendExecute(gpu.dnn(), plan_->plan.handle(), pack.handle()), "cudnnBackendExecute");
}

}  // namespace tenon::cuda
