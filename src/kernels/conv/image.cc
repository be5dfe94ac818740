#include "kernels/conv/image.h"

#include <algorithm>
#include <cstring>

namespace tenon::kernels {

namespace {

constexpr int64_t cache_line_floats = 16;

// At least `floats`, so that channels spread over all sets of a cache.
int64_t spread(int64_t floats) {
  const int64_t lines = (floats + cache_line_floats - 1) / cache_line_floats;
  return (lines | 1) * cache_line_floats;
}

// Whether channels that are so many floats apart share an eighth of the first cache's places or fewer.
bool is_crowded(int64_t floats) { return floats % (8 * cache_line_floats) == 0; }

using Four [[gnu::vector_size(16)]] = float;
using Eight [[gnu::vector_size(32)]] = float;

Four load(const float* p) {
  Four v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
void store(float* p, Four v) { std::memcpy(p, &v, sizeof v); }

// memcpy, quick for few floats too.
void copy_floats(const float* from, int64_t n, float* to) {
  if (n < 4 || n > 64) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(float));
    return;
  }
  for (int64_t i = 0; i < n - 4; i += 4) store(to + i, load(from + i));
  store(to + n - 4, load(from + n - 4));
}

// Rows of as many floats as V has to twice as many, into rows of `columns` floats from `begin` on, with at most 4 zeros
// on both sides.
template <class V>
void copy_short_rows(const float* from, int64_t rows, int64_t n, int64_t begin, int64_t columns, float* to) {
  const int64_t last = n - static_cast<int64_t>(sizeof(V) / sizeof(float));
  for (int64_t row = 0; row < rows; ++row, from += n, to += columns) {
    store(to, Four{});
    store(to + columns - 4, Four{});
    V a, b;
    std::memcpy(&a, from, sizeof a);
    std::memcpy(&b, from + last, sizeof b);
    std::memcpy(to + begin, &a, sizeof a);
    std::memcpy(to + begin + last, &b, sizeof b);
  }
}

// Rows of an image, the same for any number of floats and zeros.
void copy_rows(const float* from, int64_t rows, int64_t n, int64_t begin, int64_t columns, float* to) {
  const bool few_zeros = begin <= 4 && columns - begin - n <= 4;
  if (few_zeros && n >= 4 && n <= 8) return copy_short_rows<Four>(from, rows, n, begin, columns, to);
  if (few_zeros && n >= 8 && n <= 16) return copy_short_rows<Eight>(from, rows, n, begin, columns, to);
  for (int64_t row = 0; row < rows; ++row, from += n, to += columns) {
    std::fill(to, to + begin, 0.0f);
    copy_floats(from, n, to + begin);
    std::fill(to + begin + n, to + columns, 0.0f);
  }
}

// One channel, surrounded with zeros; all of its columns are read.
void copy_whole_rows(const ConvShape& shape, const PaddedExtent& extent, const float* channel, float* to) {
  const int64_t columns = extent.size[2], rows = extent.size[1];
  const int64_t top = std::clamp<int64_t>(shape.pad[1], 0, rows);
  const int64_t skipped = std::max<int64_t>(0, -shape.pad[1]);
  const int64_t inside = std::clamp<int64_t>(shape.input[1] - skipped, 0, rows - top);
  for (int64_t d = 0; d < extent.size[0]; ++d, to += rows * columns) {
    const int64_t from_d = d - shape.pad[0];
    if (from_d < 0 || from_d >= shape.input[0]) {
      std::fill(to, to + rows * columns, 0.0f);
      continue;
    }
    std::fill(to, to + top * columns, 0.0f);
    copy_rows(channel + (from_d * shape.input[1] + skipped) * shape.input[2], inside, shape.input[2], shape.pad[2],
              columns, to + top * columns);
    std::fill(to + (top + inside) * columns, to + rows * columns, 0.0f);
  }
}

// to[i] = from[2 * i] for i < n.
void copy_every_second(const float* from, int64_t n, float* to) {
  int64_t i = 0;
  for (; i + 4 < n; i += 4)
    store(to + i, __builtin_shufflevector(load(from + 2 * i), load(from + 2 * i + 4), 0, 2, 4, 6));
  for (; i < n; ++i) to[i] = from[2 * i];
}

// Columns phase, phase + phases, … of all padded rows, `columns` of them. `to` is where those of the first row go; rows
// are phases * columns floats apart.
void copy_phase(const ConvShape& shape, const PaddedExtent& extent, int64_t phases, int64_t phase, int64_t columns,
                const float* channel, float* to) {
  if (phases == 1 && shape.pad[2] >= 0 && shape.pad[2] + shape.input[2] <= columns)
    return copy_whole_rows(shape, extent, channel, to);
  const int64_t shift = phase - shape.pad[2];  // column i of the phase is column i * phases + shift of the input
  const int64_t begin = std::clamp<int64_t>(shift >= 0 ? 0 : (-shift + phases - 1) / phases, 0, columns);
  const int64_t end =
      std::clamp<int64_t>(shape.input[2] <= shift ? 0 : (shape.input[2] - 1 - shift) / phases + 1, begin, columns);
  for (int64_t d = 0; d < extent.size[0]; ++d) {
    const int64_t from_d = d - shape.pad[0];
    for (int64_t h = 0; h < extent.size[1]; ++h, to += phases * columns) {
      const int64_t from_h = h - shape.pad[1];
      if (from_d < 0 || from_d >= shape.input[0] || from_h < 0 || from_h >= shape.input[1]) {
        std::fill(to, to + columns, 0.0f);
        continue;
      }
      const float* row = channel + (from_d * shape.input[1] + from_h) * shape.input[2] + begin * phases + shift;
      std::fill(to, to + begin, 0.0f);
      if (phases == 1) {
        copy_floats(row, end - begin, to + begin);
      } else if (phases == 2) {
        copy_every_second(row, end - begin, to + begin);
      } else {
        for (int64_t i = 0; i < end - begin; ++i) to[begin + i] = row[phases * i];
      }
      std::fill(to + end, to + columns, 0.0f);
    }
  }
}

}  // namespace

PaddedExtent::PaddedExtent(const ConvShape& shape) : needs_copy(false) {
  for (int d = 0; d < 3; ++d) {
    size[d] = (shape.output[d] - 1) * shape.stride[d] + (shape.kernel[d] - 1) * shape.dilation[d] + 1;
    if (shape.pad[d] != 0 || size[d] > shape.input[d]) needs_copy = true;
  }
}

void pad_channel(const ConvShape& shape, const PaddedExtent& extent, const float* channel, float* to) {
  copy_phase(shape, extent, 1, 0, extent.size[2], channel, to);
}

// Where all columns are read, a copy of them is little to what it saves.
ImageLayout::ImageLayout(const ConvShape& shape, bool spreads)
    : extent(shape),
      phases(shape.kernel[2] >= shape.stride[2] ? shape.stride[2] : 1),
      phase_columns((extent.size[2] + phases - 1) / phases),
      column_step(phases > 1 ? 1 : shape.stride[2]) {
  is_copy = extent.needs_copy || phases > 1 || (spreads && is_crowded(shape.input_size()));
  row = is_copy ? phases * phase_columns : shape.input[2];
  plane = row * (is_copy ? extent.size[1] : shape.input[1]);
  channel = is_copy ? spread(plane * extent.size[0]) : plane * shape.input[0];
}

void copy_channel(const ConvShape& shape, const ImageLayout& layout, const float* channel, float* to) {
  for (int64_t phase = 0; phase < layout.phases; ++phase) {
    copy_phase(shape, layout.extent, layout.phases, phase, layout.phase_columns, channel,
               to + phase * layout.phase_columns);
  }
  const int64_t copied = layout.plane * layout.extent.size[0];
  std::fill(to + copied, to + layout.channel, 0.0f);
}

std::vector<int64_t> ImageLayout::offsets(const ConvShape& shape) const {
  const int64_t channels = shape.in_channels / shape.groups;
  std::vector<int64_t> result;
  result.reserve(static_cast<size_t>(channels * shape.kernel_size()));
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t d = 0; d < shape.kernel[0]; ++d) {
      for (int64_t h = 0; h < shape.kernel[1]; ++h) {
        for (int64_t w = 0; w < shape.kernel[2]; ++w) {
          const int64_t at = w * shape.dilation[2];
          result.push_back(c * channel + d * shape.dilation[0] * plane + h * shape.dilation[1] * row +
                           at % phases * phase_columns + at / phases);
        }
      }
    }
  }
  return result;
}

template <int Width>
void ImagePanels::pack_panel(int64_t k_begin, int64_t k, int64_t panel, float* out) const {
  const int64_t outputs = shape_.output_size();
  const int64_t first = panel * Width;
  const int lanes = static_cast<int>(std::min<int64_t>(Width, outputs - first));
  int64_t at[Width];
  int row_end = lanes;  // lanes before it are in the first lane's output row
  int rows = 1;
  int64_t w = first % shape_.output[2], h = first / shape_.output[2] % shape_.output[1],
          d = first / shape_.output[2] / shape_.output[1];
  for (int j = 0; j < lanes; ++j) {
    at[j] = d * shape_.stride[0] * layout_.plane + h * shape_.stride[1] * layout_.row + w * layout_.column_step;
    if (++w < shape_.output[2] || j + 1 == lanes) continue;
    if (rows++ == 1) row_end = j + 1;
    w = 0;
    if (++h == shape_.output[1]) h = 0, ++d;
  }
  const int64_t* offsets = offsets_.data() + k_begin;
  const bool whole = lanes == Width && layout_.column_step == 1;
  if (whole && rows == 1) {
    const float* from = image_ + at[0];
    for (int64_t p = 0; p < k; ++p, out += Width) std::memcpy(out, from + offsets[p], Width * sizeof(float));
    return;
  }
  if (whole && rows == 2 && slack_) {
    const float* head = image_ + at[0];
    const float* tail = image_ + at[Width - 1] - (Width - 1);
    int32_t from_tail[Width];
    for (int j = 0; j < Width; ++j) from_tail[j] = j >= row_end ? -1 : 0;
    for (int64_t p = 0; p < k; ++p, out += Width) {
      int32_t a[Width], b[Width];
      std::memcpy(a, head + offsets[p], sizeof a);
      std::memcpy(b, tail + offsets[p], sizeof b);
      for (int j = 0; j < Width; ++j) a[j] = (a[j] & ~from_tail[j]) | (b[j] & from_tail[j]);
      std::memcpy(out, a, sizeof a);
    }
    return;
  }
  if (lanes == Width && rows == 1 && layout_.column_step == 2 && slack_) {
    const float* from = image_ + at[0];
    for (int64_t p = 0; p < k; ++p, out += Width) {
      float both[2 * Width];
      std::memcpy(both, from + offsets[p], sizeof both);
      for (int j = 0; j < Width; ++j) out[j] = both[2 * j];
    }
    return;
  }
  if (lanes == Width) {
    for (int64_t p = 0; p < k; ++p, out += Width) {
      const float* from = image_ + offsets[p];
      for (int j = 0; j < Width; ++j) out[j] = from[at[j]];
    }
    return;
  }
  for (int64_t p = 0; p < k; ++p, out += Width) {
    const float* from = image_ + offsets[p];
    for (int j = 0; j < lanes; ++j) out[j] = from[at[j]];
    for (int j = lanes; j < Width; ++j) out[j] = 0;
  }
}

void ImagePanels::pack(int64_t k_begin, int64_t k, int64_t first, int64_t last, float* out) const {
  for (int64_t panel = first; panel < last; ++panel, out += k * width_) {
    switch (width_) {
      case 8:
        pack_panel<8>(k_begin, k, panel, out);
        break;
      case 12:
        pack_panel<12>(k_begin, k, panel, out);
        break;
      case 16:
        pack_panel<16>(k_begin, k, panel, out);
        break;
      default:
        pack_panel<32>(k_begin, k, panel, out);
        break;
    }
  }
}

}  // namespace tenon::kernels
