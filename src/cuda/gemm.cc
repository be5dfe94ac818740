#include "cuda/gemm.h"

#include "cuda/trial.h"

#include "base/fail.h"

namespace tenon::cuda {
namespace {

// As cublasLt numbers them.
constexpr int compute_32f = 68, compute_64f = 70, compute_32i = 72, compute_tf32 = 77;
constexpr int description_transpose_a = 3, description_transpose_b = 4, description_epilogue = 7, description_bias = 8;
constexpr int32_t epilogue_none = 1, epilogue_relu = 2, epilogue_bias = 4;  // these two add up
constexpr Result no_algorithm = 15;
constexpr int most_tried = 6;
constexpr int layout_batch = 5, layout_step = 6;
constexpr int preference_workspace = 1, preference_alignments[] = {5, 6, 7, 8};

int data_type(ElementType type) {
  switch (type) {
    case ElementType::float32:
      return 0;
    case ElementType::float64:
      return 1;
    case ElementType::float16:
      return 2;
    case ElementType::int8:
      return 3;
    case ElementType::int32:
      return 10;
    case ElementType::bfloat16:
      return 14;
    default:
      fail(ErrorCode::internal, "cublasLt does not multiply {}", name_of(type));
  }
}

}  // namespace

bool GemmShape::takes(ElementType type) {
  return type == ElementType::float32 || type == ElementType::float64 || type == ElementType::float16 ||
         type == ElementType::bfloat16;
}

// cublasLt's matrices are column-major: y in rows is the transpose of y in columns, and that is b^T @ a^T.
struct Gemm::Descriptions {
  const Libraries& api;
  Handle product = nullptr, first = nullptr, second = nullptr, result = nullptr;
  MatmulAlgorithm algorithm{};
  std::shared_ptr<const MatmulAlgorithm> chosen;  // by trial
  std::vector<MatmulAlgorithm> proposed;          // cublasLt's own choice first

  explicit Descriptions(const Libraries& libraries) : api(libraries) {}
  Descriptions(const Descriptions&) = delete;
  Descriptions& operator=(const Descriptions&) = delete;
  ~Descriptions() {
    if (product) api.cublasLtMatmulDescDestroy(product);
    for (Handle layout : {first, second, result}) {
      if (layout) api.cublasLtMatrixLayoutDestroy(layout);
    }
  }
};

Gemm::Gemm(GpuQueue& queue, const GemmShape& shape) : shape_(shape) {
  Gpu& gpu = queue.gpu();
  const Libraries& api = gpu.api();
  descriptions_ = std::make_shared<Descriptions>(api);
  Descriptions& d = *descriptions_;
  const bool is_double = shape.type == ElementType::float64, is_integer = shape.type == ElementType::int8;
  const bool is_tf32 = shape.allow_tf32 && shape.type == ElementType::float32;
  const int compute = is_double ? compute_64f : is_integer ? compute_32i : is_tf32 ? compute_tf32 : compute_32f;
  const int scale = data_type(is_double    ? ElementType::float64
                              : is_integer ? ElementType::int32
                                           : ElementType::float32);
  gpu.check_blas(api.cublasLtMatmulDescCreate(&d.product, compute, scale), "cublasLtMatmulDescCreate");
  const int32_t first_transposed = shape.transpose_b, second_transposed = shape.transpose_a;
  api.cublasLtMatmulDescSetAttribute(d.product, description_transpose_a, &first_transposed, sizeof first_transposed);
  api.cublasLtMatmulDescSetAttribute(d.product, description_transpose_b, &second_transposed, sizeof second_transposed);
  auto lay_out = [&](Handle& layout, ElementType type, int64_t rows, int64_t columns, int64_t row, int64_t step) {
    gpu.check_blas(api.cublasLtMatrixLayoutCreate(&layout, data_type(type), static_cast<uint64_t>(rows),
                                                  static_cast<uint64_t>(columns), row),
                   "cublasLtMatrixLayoutCreate");
    const auto batch = static_cast<int32_t>(shape.batch);
    api.cublasLtMatrixLayoutSetAttribute(layout, layout_batch, &batch, sizeof batch);
    api.cublasLtMatrixLayoutSetAttribute(layout, layout_step, &step, sizeof step);
  };
  lay_out(d.first, shape.type, shape.transpose_b ? shape.k : shape.n, shape.transpose_b ? shape.n : shape.k,
          shape.b_row, shape.b_step);
  lay_out(d.second, shape.type, shape.transpose_a ? shape.m : shape.k, shape.transpose_a ? shape.k : shape.m,
          shape.a_row, shape.a_step);
  lay_out(d.result, shape.output, shape.n, shape.m, shape.y_row, shape.y_step);
  Result result = propose_algorithms(queue);
  if (result != 0 && !shape_.epilogue.is_empty()) {
    shape_.epilogue = {};
    result = propose_algorithms(queue);
  }
  if (result != 0)
    fail(ErrorCode::internal, "cublasLt has no way to multiply {} of {} x {} by {} (status {})", name_of(shape.type),
         shape.m, shape.k, shape.n, result);
}

Result Gemm::propose_algorithms(GpuQueue& queue) {
  Gpu& gpu = queue.gpu();
  const Libraries& api = gpu.api();
  Descriptions& d = *descriptions_;
  const Epilogue& epilogue = shape_.epilogue;
  const int32_t stored = (epilogue.relu ? epilogue_relu : 0) + (epilogue.bias ? epilogue_bias : 0),
                wanted = stored == 0 ? epilogue_none : stored;
  api.cublasLtMatmulDescSetAttribute(d.product, description_epilogue, &wanted, sizeof wanted);
  const void* some_bias = queue.workspace();  // any address will do until it runs
  if (epilogue.bias) api.cublasLtMatmulDescSetAttribute(d.product, description_bias, &some_bias, sizeof some_bias);
  Handle preference = nullptr;
  gpu.check_blas(api.cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  const size_t workspace = GpuQueue::workspace_bytes;
  api.cublasLtMatmulPreferenceSetAttribute(preference, preference_workspace, &workspace, sizeof workspace);
  const auto alignment = static_cast<uint32_t>(shape_.alignment);
  for (int side : preference_alignments)
    api.cublasLtMatmulPreferenceSetAttribute(preference, side, &alignment, sizeof alignment);
  MatmulChoice choices[most_tried]{};
  int found = 0;
  const Result result = api.cublasLtMatmulAlgoGetHeuristic(gpu.blas(), d.product, d.first, d.second, d.result, d.result,
                                                           preference, most_tried, choices, &found);
  api.cublasLtMatmulPreferenceDestroy(preference);
  d.proposed.clear();
  for (int i = 0; result == 0 && i < found; ++i) {
    if (choices[i].state == 0) d.proposed.push_back(choices[i].algorithm);
  }
  if (!d.proposed.empty()) d.algorithm = d.proposed[0];
  return result == 0 && d.proposed.empty() ? no_algorithm : result;
}

std::string Gemm::key() const {
  const GemmShape& s = shape_;
  return fmt::format("gemm {} {} {}x{}x{} {}{} {} {} {} {} {} {} {} {} {} {}{}{}", name_of(s.type), name_of(s.output),
                     s.m, s.n, s.k, s.transpose_a, s.transpose_b, s.a_row, s.b_row, s.y_row, s.batch, s.a_step,
                     s.b_step, s.y_step, s.allow_tf32, s.alignment, s.epilogue.residual, s.epilogue.bias,
                     s.epilogue.relu);
}

void Gemm::choose_by_trial(GpuQueue& queue, Uses uses, const void* a, const void* b, void* y, const void* bias,
                           const void* residual) {
  Gpu& gpu = queue.gpu();
  Descriptions& d = *descriptions_;
  if (d.proposed.size() < 2 || shape_.beta != 0) return;
  const std::string name = key();
  if (auto known = std::static_pointer_cast<const MatmulAlgorithm>(gpu.choice(name))) {
    d.algorithm = *known;
    d.chosen = std::move(known);
    return;
  }
  if (!is_worth_a_trial(gpu, name, uses)) {
    d.algorithm = d.proposed[untried_way(d.proposed.size())];
    return;
  }
  const size_t best = fastest(queue, d.proposed.size(), [&](size_t i) {
    d.algorithm = d.proposed[i];
    run(queue, a, b, y, bias, residual);
  });
  d.algorithm = d.proposed[best];
  d.chosen = std::make_shared<const MatmulAlgorithm>(d.algorithm);
  gpu.set_choice(name, d.chosen);
}

void Gemm::run(GpuQueue& queue, const void* a, const void* b, void* y, const void* bias, const void* residual) const {
  Gpu& gpu = queue.gpu();
  gpu.use();
  const Descriptions& d = *descriptions_;
  const double kept = shape_.epilogue.residual ? 1 : shape_.beta;
  const auto alpha_float = static_cast<float>(shape_.alpha), beta_float = static_cast<float>(kept);
  const auto alpha_int = static_cast<int32_t>(shape_.alpha), beta_int = static_cast<int32_t>(kept);
  const void *alpha = &alpha_float, *beta = &beta_float;
  if (shape_.type == ElementType::float64) alpha = &shape_.alpha, beta = &kept;
  if (shape_.type == ElementType::int8) alpha = &alpha_int, beta = &beta_int;
  if (shape_.epilogue.bias) gpu.api().cublasLtMatmulDescSetAttribute(d.product, description_bias, &bias, sizeof bias);
  const void* added = shape_.epilogue.residual ? residual : y;
  gpu.check_blas(
      gpu.api().cublasLtMatmul(gpu.blas(), d.product, alpha, b, d.first, a, d.second, beta, added, d.result, y,
                               d.result, &d.algorithm, queue.workspace(), GpuQueue::workspace_bytes, queue.stream()),
      "cublasLtMatmul");
}

}  // namespace tenon::cuda
