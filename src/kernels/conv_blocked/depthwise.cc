#include <algorithm>
#include <limits>
#include <vector>

#include "base/cpu_features.h"
#include "kernels/conv_blocked/driver.h"

namespace tenon::kernels {
namespace {

// Bytes of the output whose activation is computed at once, while they are in the first cache.
constexpr int64_t activated_bytes = 16 << 10;

// Outputs [begin, end) of an axis read taps [first, last) of the kernel inside the image.
struct Span {
  int64_t begin, end, first, last;
};

// The outputs of an axis, grouped by the taps that they read.
std::vector<Span> spans(const ConvShape& s, int d) {
  std::vector<Span> result;
  for (int64_t o = 0; o < s.output[d]; ++o) {
    const int64_t origin = o * s.stride[d] - s.pad[d], step = s.dilation[d];
    const int64_t first = origin >= 0 ? 0 : std::min(s.kernel[d], (-origin + step - 1) / step);
    const int64_t last =
        origin >= s.input[d] ? first : std::clamp((s.input[d] - 1 - origin) / step + 1, first, s.kernel[d]);
    if (!result.empty() && result.back().first == first && result.back().last == last)
      ++result.back().end;
    else
      result.push_back({o, o + 1, first, last});
  }
  return result;
}

}  // namespace

template <class Number>
class DepthwiseBlockedConv {
 public:
  DepthwiseBlockedConv(const ConvShape& shape, const ConvWeightsInBlocks<Number>& weights,
                       const EpilogueOf<Number>& epilogue)
      : s_(shape),
        k_(*weights.kernels_),
        weights_(weights.buffer_.template as<Number>()),
        epilogue_(epilogue),
        block_(k_.block),
        zeros_(static_cast<size_t>(block_ * std::max<int64_t>(1, s_.input[2]))),
        row_kernels_(s_.dilation[2] == 1 ? k_.depthwise_rows.find(s_.kernel[2], s_.stride[2]) : nullptr) {
    if (row_kernels_)
      find_rows();
    else
      rows_ = spans(s_, 1), columns_ = spans(s_, 2);
  }

  void run(ThreadPool& pool, const Number* x, Number* y) const {
    const int64_t blocks = s_.out_channels / block_, rows = s_.output[1];
    const int64_t work = 1 + s_.output[2] * block_ * s_.kernel_size();
    pool.parallel_for(s_.batch * blocks * rows, 1 + (64 << 10) / work, [&](int64_t begin, int64_t end) {
      std::vector<int64_t> offsets, weight_offsets;
      std::vector<const Number*> table;
      if (row_kernels_)
        table.assign(static_cast<size_t>(std::min(rows, end - begin) * s_.kernel[1] + 1), zeros_.data());
      else
        offsets.resize(static_cast<size_t>(s_.kernel_size())), weight_offsets = offsets;
      while (begin < end) {
        const int64_t plane = begin / rows, first = begin % rows, last = std::min(rows, first + end - begin);
        const Number* image = x + plane * s_.input_size() * block_;
        const int64_t at_once = epilogue_.activation ? lines_to_activate() : last - first;
        for (int64_t from = first; from < last; from += at_once) {
          const int64_t to = std::min(last, from + at_once);
          if (row_kernels_)
            run_rows(image, plane, plane % blocks, from, to, table, y);
          else
            run_rectangles(image, plane, plane % blocks, from, to, offsets, weight_offsets, y);
          Number* out = y + (plane * rows + from) * s_.output[2] * block_;
          if (epilogue_.activation) epilogue_.activation(out, out, (to - from) * s_.output[2] * block_);
        }
        begin += last - first;
      }
    });
  }

 private:
  const Number* start_of(int64_t channel_block) const {
    return epilogue_.bias ? epilogue_.bias + channel_block * block_ : zeros_.data();
  }

  // As many as are worked on at once, or some times that.
  int64_t lines_to_activate() const {
    const int64_t line_bytes = s_.output[2] * block_ * int64_t{sizeof(Number)};
    const int64_t lines = 1 + activated_bytes / line_bytes;
    const int64_t together = row_kernels_ ? row_kernels_->lines : 1;
    return std::max(together, lines / together * together);
  }

  // Where each line's rows of the kernel lie in the image.
  void find_rows() {
    const int64_t lines = s_.output[1], taps = s_.kernel[1], row_floats = s_.input[2] * block_;
    row_facts_.resize(static_cast<size_t>(lines * (2 + taps)));
    int64_t *first = row_facts_.data(), *end = first + lines, *offsets = end + lines;
    for (int64_t line = 0; line < lines; ++line) {
      for (int64_t k = 0; k < taps; ++k) {
        const int64_t row = line * s_.stride[1] - s_.pad[1] + k * s_.dilation[1];
        first[line] += row < 0 ? 1 : 0;
        end[line] += row < s_.input[1] ? 1 : 0;
        offsets[line * taps + k] = row < 0 || row >= s_.input[1] ? outside : row * row_floats;
      }
    }
    // As many lines as the first cache holds with what they read.
    const int64_t line_bytes = (s_.output[2] + s_.stride[1] * s_.input[2]) * block_ * int64_t{sizeof(Number)};
    const int64_t held = cpu_features().l1d_bytes / line_bytes / row_kernels_->lines * row_kernels_->lines;
    lines_at_once_ = std::max<int64_t>(held, row_kernels_->lines);
  }

  // Rows [first, last) of a plane, in tiles of pixels side by side.
  void run_rows(const Number* x, int64_t plane, int64_t channel_block, int64_t first, int64_t last,
                std::vector<const Number*>& table, Number* y) const {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const int64_t taps = s_.kernel[1];
    const int64_t *first_rows = row_facts_.data(), *end_rows = first_rows + s_.output[1];
    const int64_t* offsets = end_rows + s_.output[1] + first * taps;
    for (int64_t i = 0; i < (last - first) * taps; ++i)
      table[static_cast<size_t>(i)] = offsets[i] == outside ? zeros_.data() : x + offsets[i];
    DepthwiseRowTile<Number> tile;
    tile.width = s_.input[2];
    tile.kernel_rows = taps;
    tile.weights = weights_ + channel_block * s_.kernel_size() * block_;
    tile.start = start_of(channel_block);
    tile.y_step = s_.output[2] * block_;
    tile.clamp = epilogue_.lo > -infinity || epilogue_.hi < infinity;
    tile.lo = epilogue_.lo;
    tile.hi = epilogue_.hi;
    for (int64_t row = first; row < last; row += tile.lines) {
      // Lines that are left over at the end are worked on at once by themselves.
      const int64_t lines = std::min<int64_t>(row_kernels_->lines, last - row);
      tile.lines = std::min(lines_at_once_, (last - row) / lines * lines);
      tile.rows = table.data() + (row - first) * taps;
      tile.first_rows = first_rows + row;
      tile.end_rows = end_rows + row;
      const int64_t at = (plane * s_.output[1] + row) * tile.y_step;
      run_lines(tile, lines, y + at, epilogue_.residual ? epilogue_.residual + at : nullptr);
    }
  }

  // The last tile of wide lines is as long as the others and computes some pixels again.
  void run_lines(DepthwiseRowTile<Number>& tile, int64_t at_once, Number* y, const Number* residual) const {
    const DepthwiseRowKernels<Number>& kernels = *row_kernels_;
    const int64_t width = s_.output[2], count = std::min<int64_t>(kernels.pixels, width), stride = s_.stride[2];
    for (int64_t next = 0; next < width; next += tile.tiles * count) {
      const int64_t from = std::min(next, width - count);
      tile.first_column = from * stride - s_.pad[2];
      tile.y = y + from * block_;
      tile.residual = residual ? residual + from * block_ : nullptr;
      const int64_t end = tile.first_column + (count - 1) * stride + s_.kernel[2];
      const int64_t left = std::max<int64_t>(0, -tile.first_column), right = std::max<int64_t>(0, end - tile.width);
      tile.tiles = 1;
      if (left == 0 && right == 0)
        tile.tiles += std::min((width - count - from) / count, (tile.width - end) / (count * stride));
      if (count == kernels.pixels && (left == 0 || left == kernels.left) && (right == 0 || right == kernels.right))
        kernels.known[at_once][left != 0][right != 0](tile);
      else
        kernels.any[count](tile);
    }
  }

  // The same for any convolution, in rectangles that read the same taps.
  void run_rectangles(const Number* x, int64_t plane, int64_t channel_block, int64_t first, int64_t last,
                      std::vector<int64_t>& offsets, std::vector<int64_t>& weight_offsets, Number* y) const {
    DepthwiseTileOf<Number> tile;
    tile.offsets = offsets.data();
    tile.weight_offsets = weight_offsets.data();
    tile.weights = weights_ + channel_block * s_.kernel_size() * block_;
    tile.start = start_of(channel_block);
    tile.lo = epilogue_.lo;
    tile.hi = epilogue_.hi;
    const int64_t plane_at = plane * s_.output_size() * block_;
    for (const Span& rows : rows_) {
      const int64_t top = std::max(rows.begin, first), bottom = std::min(rows.end, last);
      for (const Span& columns : columns_) {
        if (top >= bottom) break;
        tile.taps = 0;
        for (int64_t h = rows.first; h < rows.last; ++h) {
          for (int64_t w = columns.first; w < columns.last; ++w, ++tile.taps) {
            const auto t = static_cast<size_t>(tile.taps);
            offsets[t] = (h * s_.dilation[1] * s_.input[2] + w * s_.dilation[2]) * block_;
            weight_offsets[t] = (h * s_.kernel[2] + w) * block_;
          }
        }
        run_rectangle(tile, x, plane_at, top, bottom, columns.begin, columns.end, y);
      }
    }
  }

  // Tiles go along the longer side.
  void run_rectangle(DepthwiseTileOf<Number>& tile, const Number* x, int64_t plane_at, int64_t top, int64_t bottom,
                     int64_t left, int64_t right, Number* y) const {
    const int64_t row_in = s_.stride[1] * s_.input[2] * block_, column_in = s_.stride[2] * block_;
    const int64_t row_out = s_.output[2] * block_, column_out = block_;
    const bool down = bottom - top > right - left;
    const int64_t lines = down ? right - left : bottom - top, length = down ? bottom - top : right - left;
    const int64_t line_in = down ? column_in : row_in, line_out = down ? column_out : row_out;
    tile.x_step = down ? row_in : column_in;
    tile.y_step = down ? row_out : column_out;
    const int64_t in = top * row_in + left * column_in - (s_.pad[1] * s_.input[2] + s_.pad[2]) * block_;
    const int64_t out = plane_at + top * row_out + left * column_out;
    const int64_t tiles = (length + k_.dw_pixels - 1) / k_.dw_pixels;
    for (int64_t line = 0; line < lines; ++line) {
      for (int64_t t = 0; t < tiles; ++t) {
        const int64_t from = length * t / tiles, to = length * (t + 1) / tiles;
        const int64_t at = out + line * line_out + from * tile.y_step;
        tile.x = x;
        tile.x_at = in + line * line_in + from * tile.x_step;
        tile.y = y + at;
        tile.residual = epilogue_.residual ? epilogue_.residual + at : nullptr;
        k_.depthwise[to - from](tile);
      }
    }
  }

  const ConvShape& s_;
  const BlockedConvKernels<Number>& k_;
  const Number* weights_;
  const EpilogueOf<Number>& epilogue_;
  int64_t block_;
  std::vector<Number> zeros_;
  const DepthwiseRowKernels<Number>* row_kernels_;  // null: there are none for this kernel
  // Only with them, for each line of the output: the first of the kernel's rows that lie in the image, the end of
  // these, and where each row of the kernel lies.
  static constexpr int64_t outside = -1;
  std::vector<int64_t> row_facts_;
  int64_t lines_at_once_ = 0;
  std::vector<Span> rows_, columns_;  // only without
};

template <class Number>
void conv_blocked_depthwise(ThreadPool& pool, const ConvShape& shape, const Number* x,
                            const ConvWeightsInBlocks<Number>& weights, Number* y, const EpilogueOf<Number>& epilogue) {
  DepthwiseBlockedConv<Number>(shape, weights, epilogue).run(pool, x, y);
}

template void conv_blocked_depthwise(ThreadPool&, const ConvShape&, const float*, const BlockedConvWeights&, float*,
                                     const ConvEpilogue&);
template void conv_blocked_depthwise(ThreadPool&, const ConvShape&, const uint16_t*, const HalfBlockedConvWeights&,
                                     uint16_t*, const HalfConvEpilogue&);

}  // namespace tenon::kernels
