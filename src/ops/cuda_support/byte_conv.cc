#include "ops/cuda_support/byte_conv.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "base/fail.h"
#include "base/rounding.h"
#include "cuda/trial.h"
#include "ops/cuda_support/byte_conv_text.h"
#include "ops/cuda_support/code_text.h"
#include "ops/cuda_support/packs.h"
#include "ops/cuda_support/tensor_cores.h"
#include "ops/dispatch.h"

namespace tenon::ops {
namespace {

// Rows of weights have room for tiles of any size.
constexpr int64_t row_multiple = 128;

// Pieces of four bytes are the smallest that are copied while others are multiplied.
int64_t filled_up(int64_t channels) {
  return channels % 4 == 0 ? channels : round_up(channels, channels < 16 ? 4 : 16);
}

bool is_byte(ElementType type) { return type == ElementType::int8 || type == ElementType::uint8; }

constexpr std::string_view pointers =
    "const X* x, const u8* w, const i32* column_sums, const X* x_zero, const float* x_scale, "
    "const float* w_scale, const float* y_scale, const Y* y_zero, const B* bias, const Y* added, "
    "const float* added_scale, const Y* added_zero, const float* sum_scale, const Y* sum_zero, const Y* table, "
    "i32* partial, u32* arrived, Y* y";

}  // namespace

ByteConvShape ByteConvShape::product(int64_t rows, int64_t inner, int64_t columns) {
  ByteConvShape shape;
  shape.width = shape.out_width = rows;
  shape.channels = inner;
  shape.outputs = columns;
  return shape;
}

bool ByteConvShape::is_points() const {
  return taps() == 1 && strides[0] == 1 && strides[1] == 1 && out_height == height && out_width == width &&
         pads[0] == 0 && pads[1] == 0;
}

std::shared_ptr<const ByteConvWeights> ByteConvWeights::pack(const Tensor& w, const Tensor* zero_points,
                                                             const ByteConvShape& shape, Steps steps) {
  auto result = std::make_shared<ByteConvWeights>();
  const int64_t channels = shape.group_channels(), outputs = shape.outputs / shape.groups;
  result->pixel_ = shape.groups == 1 ? filled_up(channels) : shape.channels;
  const int64_t tap = result->pixel_ / shape.groups, width = shape.kernel[1];
  const bool is_copied = result->pixel_ != shape.channels;
  if (is_copied && result->pixel_ < 16 && width > 1 && shape.dilations[1] == 1)
    result->joined_ = round_up(width * tap, 16);
  const int64_t line = result->joined_ ? result->joined_ : width * tap;
  result->row_ = round_up(shape.kernel[0] * line, row_multiple);
  result->room_ = round_up(outputs, outputs > 64 ? 128 : 64);
  result->bytes_ = Tensor(ElementType::uint8, Shape{shape.groups * result->room_, result->row_});
  result->sums_ = Tensor(ElementType::int32, Shape{shape.groups * result->room_});
  auto* bytes = result->bytes_.mutable_data<uint8_t>().data();
  auto* sums = result->sums_.mutable_data<int32_t>().data();
  std::fill_n(bytes, result->bytes_.elements(), uint8_t{0});
  std::fill_n(sums, result->sums_.elements(), 0);
  int lowest = 0, highest = 0;
  dispatch<int8_t, uint8_t>(w.type(), [&]<typename T>() {
    const T* from = w.data<T>().data();
    for (int64_t n = 0; n < shape.outputs; ++n) {
      const int64_t place = n / outputs * result->room_ + n % outputs;
      const int zero =
          zero_points ? zero_points->data<T>()[zero_points->elements() == 1 ? 0 : static_cast<size_t>(n)] : 0;
      int32_t sum = 0;
      for (int64_t t = 0; t < shape.taps(); ++t) {
        uint8_t* to = bytes + place * result->row_ + t / width * line + t % width * tap;
        const T* at = from + n * steps.output + t * steps.tap;
        for (int64_t c = 0; c < channels; ++c) {
          const int value = at[c * steps.channel] - zero;
          lowest = std::min(lowest, value);
          highest = std::max(highest, value);
          sum += value;
          to[c] = static_cast<uint8_t>(value);
        }
      }
      sums[place] = sum;
    }
  });
  result->are_unsigned_ = highest > 127;
  if (result->are_unsigned_ ? lowest < 0 : lowest < -128) return nullptr;
  return result;
}

ByteConvWeights::Addresses ByteConvWeights::on(cuda::Gpu& gpu) const {
  std::lock_guard lock(mutex_);
  if (!bytes_on_gpu_) {
    bytes_on_gpu_ = gpu.upload(bytes_);
    sums_on_gpu_ = gpu.upload(sums_);
  }
  return {bytes_on_gpu_->raw(), sums_on_gpu_->raw()};
}

std::shared_ptr<const ByteConvWeights> pack_matrix(const NodeInfo& info, size_t b, size_t b_zero) {
  const Tensor *matrix = info.constant(b), *zero = info.constant(b_zero);
  const bool has_zero = b_zero < info.node().input_count() && info.node().input(b_zero);
  if (!matrix || matrix->rank() != 2 || matrix->elements() == 0 || !is_byte(matrix->type()) || (has_zero && !zero))
    return nullptr;
  const int64_t columns = matrix->dim(1);
  if (has_zero && (zero->type() != matrix->type() || (zero->elements() != 1 && zero->elements() != columns)))
    return nullptr;
  return ByteConvWeights::pack(*matrix, has_zero ? zero : nullptr, ByteConvShape::product(1, matrix->dim(0), columns),
                               {1, columns, 0});
}

// What a block computes: `rows` x `columns` sums, `depth` bytes of k at a time. In groups: four warps multiply
// together.
struct CudaByteConv::Tile {
  int64_t rows, columns, depth, warps_down, warps_right, stages;
  int blocks;  // that a processor should have at once
  bool in_groups;

  int64_t threads() const { return warps_down * warps_right * 32; }
  int64_t shared_bytes() const { return stages * (rows + columns) * depth; }
};

const CudaByteConv::Tile CudaByteConv::tiles[] = {
    {128, 128, 64, 2, 2, 4, 1, false}, {128, 128, 64, 4, 2, 4, 2, false}, {64, 64, 64, 2, 2, 4, 4, false},
    {128, 64, 64, 4, 2, 4, 2, false},  {64, 64, 128, 4, 1, 4, 3, true},   {64, 64, 64, 4, 1, 3, 5, true},
    {64, 128, 128, 4, 1, 4, 2, true},  {64, 128, 128, 4, 1, 3, 3, true},  {64, 128, 64, 4, 1, 4, 4, true},
    {128, 64, 128, 8, 1, 4, 2, true},  {128, 64, 64, 8, 1, 3, 3, true},   {128, 64, 64, 4, 1, 4, 4, true},
    {128, 128, 128, 8, 1, 4, 1, true}, {128, 128, 128, 8, 1, 3, 2, true}, {128, 128, 64, 8, 1, 4, 2, true},
    {128, 256, 128, 8, 1, 4, 1, true},
};

// Sums of parts of k meet in memory, in which those who have arrived are counted: none between runs.
struct CudaByteConv::Way {
  CudaBlocks blocks;
  std::shared_ptr<void> meeting;
  int64_t meeting_bytes = 0;
};

bool CudaByteConv::takes(const cuda::Gpu& gpu, const ByteConvShape& s) {
  constexpr int64_t most = int64_t{1} << 30, longest_side = 16384;
  const bool is_small = s.rows() < most && s.images * s.height * s.width < most && s.outputs < most &&
                        s.taps() * s.channels < most && s.groups < 65536;
  const bool fits = s.is_points() || (s.height < longest_side && s.width < longest_side &&
                                      (s.kernel[0] - 1) * s.dilations[0] < longest_side &&
                                      (s.kernel[1] - 1) * s.dilations[1] < longest_side && s.pads[0] >= 0 &&
                                      s.pads[1] >= 0 && s.pads[0] < longest_side && s.pads[1] < longest_side);
  return gpu.major() >= 8 && is_small && fits && (s.groups == 1 || s.group_channels() % 4 == 0) && s.channels > 0 &&
         s.outputs > 0;
}

CudaByteConv::CudaByteConv(KernelRun& run, const ByteConvShape& shape, std::shared_ptr<const ByteConvWeights> weights,
                           ElementType x_type, ElementType y_type, const ByteConvResult& result,
                           const ByteConvData& data, const ByteConvSource& source)
    : shape_(shape), weights_(std::move(weights)), x_type_(x_type), y_type_(y_type), result_(result) {
  const bool is_ready = weights_->pixel() == shape_.channels && alignment_of({data.x}) >= 4;
  if (!is_ready || source.is_float || source.channels_first) {
    filled_up_ = queue_of(run).gpu().allocate(shape_.images * shape_.height * filled_width() * weights_->pixel());
    fill_up_.emplace(fill_up_pixels(run, source));
  }
  find_packs(data);
  choose(run, data);
}

// Where taps are joined, lines have their padding with them.
int64_t CudaByteConv::filled_width() const {
  if (!weights_->joined()) return shape_.width;
  return round_up((shape_.out_width - 1) * shape_.strides[1] + weights_->joined() / weights_->pixel(),
                  shape_.strides[1]);
}

// A thread for each pixel.
CudaLoop CudaByteConv::fill_up_pixels(KernelRun& run, const ByteConvSource& source) const {
  const std::string at = source.channels_first ? "(p / v[2] * v[0] + c) * v[2] + p % v[2]" : "p * v[0] + c";
  const std::string code =
      source.is_float ? fmt::format("code_of<X>(x[{}] / *x_scale, zero)", at) : fmt::format("x[{}]", at);
  const std::string text = fmt::format(
      R"cuda(const i64 line = i / v[3], column = i - line * v[3] - v[5], p = line * v[4] + column;
    const bool is_inside = column >= 0 && column < v[4];
    const i32 zero = x_zero ? (i32)*x_zero : 0;
    for (int first = 0; first < (int)v[1]; first += 4) {{
      Pack<X, 4> codes;
      #pragma unroll
      for (int e = 0; e < 4; ++e) {{
        const int c = first + e;
        codes.v[e] = is_inside && c < (int)v[0] ? (X)({}) : (X)zero;
      }}
      *(Pack<X, 4>*)(filled + i * v[1] + first) = codes;
    }})cuda",
      code);
  return {run,
          shape_.images * shape_.height * filled_width(),
          "const Source* x, const float* x_scale, const X* x_zero, X* filled",
          text,
          {shape_.channels, weights_->pixel(), shape_.height * shape_.width, filled_width(), shape_.width,
           weights_->joined() ? shape_.pads[1] : 0},
          fmt::format("{}typedef {} X;\ntypedef {} Source;\n", code_functions, cuda::type_text(x_type_),
                      source.is_float ? "float" : cuda::type_text(x_type_))};
}

void CudaByteConv::find_packs(const ByteConvData& data) {
  const int64_t apart = weights_->joined() ? shape_.strides[1] * weights_->pixel() : weights_->pixel() / shape_.groups;
  piece_ = pack_of(x_type_, apart, {filled_up_ ? filled_up_.get() : data.x});
  TENON_CHECK(piece_ >= 4);
  pack_ = pack_of(y_type_, shape_.outputs / shape_.groups, {data.y, data.added});
}

namespace {

// n / by is n * factor >> shift for all n of at most 31 bits.
struct Reciprocal {
  int64_t factor, shift = 31;

  explicit Reciprocal(int64_t by) {
    while (int64_t{1} << (shift - 31) < by) ++shift;
    factor = divide_up(int64_t{1} << shift, by);
  }
};

}  // namespace

std::vector<int64_t> CudaByteConv::numbers() const {
  const ByteConvShape& s = shape_;
  const int64_t pixel = weights_->pixel(), joined = weights_->joined();
  const int64_t channels = joined ? joined : pixel / s.groups, apart = joined ? s.strides[1] * pixel : pixel;
  const Reciprocal by_width(s.out_width), by_height(s.out_height);
  return {s.rows(),
          s.outputs / s.groups,
          joined ? s.kernel[0] * joined : s.taps() * channels,
          weights_->row(),
          weights_->room(),
          apart,
          channels,
          s.height,
          joined ? filled_width() / s.strides[1] : s.width,
          s.out_height,
          s.out_width,
          joined ? 1 : s.kernel[1],
          s.strides[0],
          joined ? 1 : s.strides[1],
          s.dilations[0],
          s.dilations[1],
          s.pads[0],
          joined ? 0 : s.pads[1],
          s.outputs,
          result_.has_one_scale ? 1 : 0,
          by_width.factor,
          by_width.shift,
          by_height.factor,
          by_height.shift};
}

std::string CudaByteConv::constants() const {
  const int result = is_byte(y_type_) ? 0 : y_type_ == ElementType::int32 ? 1 : 2;
  const bool has_sums_bias = result_.bias == ByteConvResult::Bias::to_sums;
  return fmt::format(
      "#define PIECE {}\n#define POINTS {:d}\n#define RESULT {}\n#define PACK {}\n#define BIAS {:d}\n#define ADDED "
      "{:d}\n"
      "#define TABLE {:d}\ntypedef {} X;\ntypedef {} W;\ntypedef {} Y;\ntypedef {} B;\n",
      piece_, shape_.is_points(), result, pack_, static_cast<int>(result_.bias), static_cast<int>(result_.added),
      result_.has_table, cuda::type_text(x_type_), weights_->are_unsigned() ? "u8" : "i8", cuda::type_text(y_type_),
      has_sums_bias ? "i32" : cuda::type_text(y_type_));
}

int64_t CudaByteConv::row_tiles(const Tile& tile) const { return divide_up(shape_.rows(), tile.rows); }
int64_t CudaByteConv::column_tiles(const Tile& tile) const {
  return divide_up(shape_.outputs / shape_.groups, tile.columns);
}
bool CudaByteConv::fits(const Tile& tile) const { return column_tiles(tile) * tile.columns <= weights_->room(); }

// In cycles, roughly: enough to leave out what cannot be the fastest.
double CudaByteConv::likely_time(const cuda::Gpu& gpu, const Tile& tile, int64_t splits) const {
  constexpr double bytes_per_cycle = 40, products_per_cycle = 2000, least_step = 400, start = 2000, meet = 6000,
                   result = 0.35;
  const int64_t tiles = row_tiles(tile) * column_tiles(tile) * shape_.groups * splits;
  const auto each = static_cast<double>(divide_up(tiles, gpu.processors()));
  const auto waves = static_cast<double>(divide_up(tiles, int64_t{gpu.processors()} * tile.blocks));
  const auto steps = static_cast<double>(divide_up(divide_up(numbers()[2], tile.depth), splits));
  const double step = std::max(static_cast<double>(tile.rows * tile.columns * tile.depth) / products_per_cycle,
                               static_cast<double>((tile.rows + tile.columns) * tile.depth) / bytes_per_cycle);
  const double work = each * (steps * step + static_cast<double>(tile.rows * tile.columns) * result);
  const double waits = waves * (start + steps * least_step);
  return std::max(work, waits) + (splits > 1 ? meet : 0);
}

std::vector<std::pair<size_t, int64_t>> CudaByteConv::likely_ways(const cuda::Gpu& gpu) const {
  constexpr size_t most_ways = 6;
  std::vector<std::pair<double, std::pair<size_t, int64_t>>> all;
  for (size_t i = 0; i < std::size(tiles); ++i) {
    if (!fits(tiles[i]) || tiles[i].in_groups != (gpu.major() == 9)) continue;
    const int64_t steps = divide_up(numbers()[2], tiles[i].depth);
    for (int64_t splits = 1; splits == 1 || (splits <= 16 && steps >= 2 * splits); splits *= 2)
      all.push_back({likely_time(gpu, tiles[i], splits), {i, splits}});
  }
  std::ranges::stable_sort(all, {}, [](const auto& way) { return way.first; });
  std::vector<std::pair<size_t, int64_t>> best;
  for (const auto& [_, way] : all) {
    if (best.size() < most_ways) best.push_back(way);
  }
  return best;
}

std::shared_ptr<const CudaByteConv::Way> CudaByteConv::make(KernelRun& run, size_t index, int64_t splits) const {
  const Tile& tile = tiles[index];
  cuda::Gpu& gpu = queue_of(run).gpu();
  // As many blocks as the GPU has at once; each goes on with other rows, which it fetches meanwhile.
  const int64_t at_once = std::max<int64_t>(1, int64_t{gpu.processors()} * tile.blocks / column_tiles(tile));
  const int64_t turns = splits > 1 ? 1 : divide_up(row_tiles(tile), at_once);
  const int64_t blocks = divide_up(row_tiles(tile), turns) * column_tiles(tile);
  cuda::Grid grid;
  grid.threads = static_cast<unsigned>(tile.threads());
  grid.blocks[0] = static_cast<unsigned>(blocks);
  grid.blocks[1] = static_cast<unsigned>(splits);
  grid.blocks[2] = static_cast<unsigned>(shape_.groups);
  grid.shared_bytes = static_cast<unsigned>(tile.shared_bytes());
  const std::string sizes = fmt::format(
      "#define BM {}\n#define BN {}\n#define BK {}\n#define WARPS_M {}\n#define WARPS_N {}\n#define STAGES {}\n"
      "#define WARP_GROUPS {:d}\n#define PARTS {:d}\n",
      tile.rows, tile.columns, tile.depth, tile.warps_down, tile.warps_right, tile.stages, tile.in_groups, splits > 1);
  const std::string functions =
      fmt::format("{}{}{}{}{}", sizes, tensor_core_functions, code_functions, constants(), byte_conv_functions);
  Way way{CudaBlocks(run, pointers, functions, byte_conv_body, numbers(), grid, tile.blocks), nullptr, 0};
  if (splits > 1) {
    const int64_t all = blocks * shape_.groups;
    way.meeting_bytes = all * splits * tile.rows * tile.columns * 4;
    way.meeting = gpu.allocate(way.meeting_bytes + all * 4);
    queue_of(run).fill(static_cast<char*>(way.meeting.get()) + way.meeting_bytes, 0, all * 4);
  }
  return std::make_shared<const Way>(std::move(way));
}

namespace {

// "2x4": tile 2, 4 splits; for tests and trials.
std::optional<std::pair<size_t, int64_t>> forced_way() {
  const char* text = std::getenv("TENON_BYTE_TILE");
  if (!text) return std::nullopt;
  char* end = nullptr;
  const auto tile = std::strtoul(text, &end, 10);
  return std::pair<size_t, int64_t>{tile, *end == 'x' ? std::strtol(end + 1, nullptr, 10) : 1};
}

}  // namespace

// All ways have the same result.
void CudaByteConv::choose(KernelRun& run, const ByteConvData& data) {
  // Less than that is done before a clock shows a difference.
  constexpr int64_t least_products = int64_t{1} << 22;
  using Choice = std::pair<size_t, int64_t>;
  cuda::Gpu& gpu = queue_of(run).gpu();
  const std::string key = fmt::format("bytes {} {}", constants(), fmt::join(numbers(), " "));
  if (auto known = std::static_pointer_cast<const Choice>(gpu.choice(key))) {
    choice_ = known;
    way_ = make(run, known->first, known->second);
    return;
  }
  std::vector<Choice> ways = likely_ways(gpu);
  const bool tries = is_worth_a_trial(gpu, key, uses_of(run));
  if (!tries || shape_.rows() * shape_.outputs * numbers()[2] < least_products) ways.resize(1);
  if (const auto forced = forced_way(); forced && forced->first < std::size(tiles)) {
    if (fits(tiles[forced->first])) ways = {*forced};
  }
  std::vector<std::shared_ptr<const Way>> made;
  for (const auto& [tile, splits] : ways) made.push_back(make(run, tile, splits));
  const size_t best = cuda::fastest(queue_of(run), made.size(), [&](size_t way) { this->run(run, *made[way], data); });
  way_ = made[best];
  auto choice = std::make_shared<const Choice>(ways[best]);
  choice_ = choice;
  if (tries) gpu.set_choice(key, choice);
}

void CudaByteConv::run(KernelRun& run, const Way& way, const ByteConvData& d) const {
  const auto [bytes, sums] = weights_->on(queue_of(run).gpu());
  const void* arrived = way.meeting ? static_cast<const char*>(way.meeting.get()) + way.meeting_bytes : nullptr;
  way.blocks.run(run, {filled_up_ ? filled_up_.get() : d.x, bytes, sums, d.x_zero, d.x_scale, d.w_scale, d.y_scale,
                       d.y_zero, d.bias, d.added, d.added_scale, d.added_zero, d.sum_scale, d.sum_zero, d.table,
                       way.meeting.get(), arrived, d.y});
}

void CudaByteConv::run(KernelRun& run, const ByteConvData& data) const {
  if (fill_up_) fill_up_->run(run, {data.x, data.x_scale, data.x_zero, filled_up_.get()});
  this->run(run, *way_, data);
}

}  // namespace tenon::ops
