// The image formats that ImageDecoder knows.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>

namespace tenon::ops {

using Bytes = std::span<const uint8_t>;

// Where a decoder puts its picture: rows of 8-bit pixels without padding, gray or red, green, blue.
class Canvas {
 public:
  using Allocate = std::function<std::shared_ptr<void>(int64_t bytes)>;
  explicit Canvas(Allocate allocate) : allocate_(std::move(allocate)) {}

  // Memory for a picture of this size. Throws when there are more pixels than Tenon decodes or than fit into memory,
  // together with `working_bytes` for each of them, which the decoder or its library needs meanwhile.
  void start(int64_t width, int64_t height, int channels, int working_bytes);

  int64_t width() const { return width_; }
  int64_t height() const { return height_; }
  int channels() const { return channels_; }
  uint8_t* row(int64_t y) const { return static_cast<uint8_t*>(pixels_.get()) + y * width_ * channels_; }
  // `working_bytes` for each pixel.
  void* work() const { return work_.get(); }

 private:
  Allocate allocate_;
  int64_t width_ = 0, height_ = 0;
  int channels_ = 0;
  std::shared_ptr<void> pixels_, work_;
};

struct ImageFormat {
  std::string_view name;
  std::string_view package;  // of Debian that a build needs for it; "" for those that Tenon decodes itself
  bool (*matches)(Bytes file);
  // False when the file is damaged or of a kind that is not supported. Null when the build does not have the library.
  bool (*decode)(Bytes file, Canvas& canvas);
};

std::span<const ImageFormat> image_formats();
// The one that the file starts like, or null.
const ImageFormat* find_image_format(Bytes file);

}  // namespace tenon::ops
