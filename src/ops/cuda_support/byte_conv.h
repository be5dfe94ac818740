// Convolutions of 8-bit codes by tensor cores, and products of matrices, which are those that see one pixel at a time:
// exact sums in 32 bits, which become codes or numbers, or stay sums. For GPUs of compute capability 8.0 and more.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "ops/cuda_support/loop.h"

namespace tenon::ops {

// Images are [images, height, width, channels].
struct ByteConvShape {
  int64_t images = 1, height = 1, width = 1, channels = 1;
  int64_t out_height = 1, out_width = 1, outputs = 1;  // outputs: the channels of all groups
  int64_t groups = 1;
  int64_t kernel[2] = {1, 1}, strides[2] = {1, 1}, dilations[2] = {1, 1}, pads[2] = {0, 0};  // down, right

  // A matrix of `rows` rows times one of `columns` columns.
  static ByteConvShape product(int64_t rows, int64_t inner, int64_t columns);
  int64_t rows() const { return images * out_height * out_width; }
  int64_t group_channels() const { return channels / groups; }
  int64_t taps() const { return kernel[0] * kernel[1]; }
  // Whether every pixel is read once, as it is.
  bool is_points() const;
};

// Constant weights less their zero points, as kernels read them: for each output a row of bytes, tap by tap, and the
// row's sum.
class ByteConvWeights {
 public:
  // How far apart the weights of two outputs, of two channels of a group and of two taps are.
  struct Steps {
    int64_t output, channel, tap;
  };
  // Of a shape only what weights know. Zero points: one for all, or one for each output; null: 0. Null where weights
  // less their zero points exceed 8 bits.
  static std::shared_ptr<const ByteConvWeights> pack(const Tensor& w, const Tensor* zero_points,
                                                     const ByteConvShape& shape, Steps steps);

  bool are_unsigned() const { return are_unsigned_; }
  // The channels of a pixel: filled up where they are no multiple of four.
  int64_t pixel() const { return pixel_; }
  // Taps side by side are read as one, of so many bytes, where an image has few channels and is copied anyway; else 0.
  int64_t joined() const { return joined_; }
  // The bytes of a row, and how many rows there is room for in each group.
  int64_t row() const { return row_; }
  int64_t room() const { return room_; }

  struct Addresses {
    const void *bytes, *sums;
  };
  Addresses on(cuda::Gpu& gpu) const;

 private:
  Tensor bytes_, sums_;
  int64_t pixel_ = 0, joined_ = 0, row_ = 0, room_ = 0;
  bool are_unsigned_ = false;
  mutable std::mutex mutex_;
  mutable std::optional<Tensor> bytes_on_gpu_, sums_on_gpu_;
};

// What x is before it is codes with channels last.
struct ByteConvSource {
  bool is_float = false;  // of float32, to be quantized with x_scale and x_zero
  bool channels_first = false;
};

// What is done with the sums.
struct ByteConvResult {
  enum class Added : unsigned char { nothing, image, row };
  enum class Bias : unsigned char { none, to_sums, to_numbers };
  bool has_one_scale = true;     // of the weights; else one for each output
  Bias bias = Bias::none;        // of int32, or of the type of y
  Added added = Added::nothing;  // to codes: others that have a scale of their own
  bool has_table = false;        // in which codes are looked up in the end
};

// Addresses on the GPU; null what does not apply.
struct ByteConvData {
  const void* x;
  const void* y;
  const void *x_zero = nullptr, *x_scale = nullptr, *w_scale = nullptr, *y_scale = nullptr, *y_zero = nullptr;
  const void* bias = nullptr;
  const void *added = nullptr, *added_scale = nullptr, *added_zero = nullptr, *sum_scale = nullptr, *sum_zero = nullptr;
  const void* table = nullptr;  // of 256 codes, in the order of unsigned bytes
};

// Of a matrix, input b of a node, if that is a constant, as its zero points are (1 or one for each column, or left
// out). Null where it is not, or where it does not fit 8 bits.
std::shared_ptr<const ByteConvWeights> pack_matrix(const NodeInfo& info, size_t b, size_t b_zero);

class CudaByteConv {
 public:
  static bool takes(const cuda::Gpu& gpu, const ByteConvShape& shape);

  // The type of x's codes is int8 or uint8. That of y: int8 or uint8 for codes, float32 or float16 for numbers, int32
  // for sums. Padding has the code x_zero.
  CudaByteConv(KernelRun& run, const ByteConvShape& shape, std::shared_ptr<const ByteConvWeights> weights,
               ElementType x_type, ElementType y_type, const ByteConvResult& result, const ByteConvData& data,
               const ByteConvSource& source = {});
  void run(KernelRun& run, const ByteConvData& data) const;

 private:
  struct Tile;
  struct Way;
  static const Tile tiles[];

  CudaLoop fill_up_pixels(KernelRun& run, const ByteConvSource& source) const;
  void find_packs(const ByteConvData& data);
  int64_t filled_width() const;
  int64_t row_tiles(const Tile& tile) const;
  int64_t column_tiles(const Tile& tile) const;
  bool fits(const Tile& tile) const;
  double likely_time(const cuda::Gpu& gpu, const Tile& tile, int64_t splits) const;
  std::vector<std::pair<size_t, int64_t>> likely_ways(const cuda::Gpu& gpu) const;
  void choose(KernelRun& run, const ByteConvData& data);
  std::shared_ptr<const Way> make(KernelRun& run, size_t tile, int64_t splits) const;
  void run(KernelRun& run, const Way& way, const ByteConvData& data) const;
  std::vector<int64_t> numbers() const;
  std::string constants() const;

  ByteConvShape shape_;
  std::shared_ptr<const ByteConvWeights> weights_;
  ElementType x_type_, y_type_;
  ByteConvResult result_;
  int64_t piece_ = 16, pack_ = 16;
  std::shared_ptr<void> filled_up_;
  std::optional<CudaLoop> fill_up_;
  std::shared_ptr<const Way> way_;
  std::shared_ptr<const void> choice_;
};

}  // namespace tenon::ops
