#include "op_test.h"
#include "ops/image_decoder/cpu_formats.h"

namespace tenon {
namespace {

using namespace std::string_literals;

Tensor file(const std::string& text) {
  return Tensor(Shape{static_cast<int64_t>(text.size())},
                std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
}

OpTest decoder(const std::string& text, const char* format = "RGB") {
  OpTest test("ImageDecoder");
  test.attribute("pixel_format", format).input(file(text));
  return test;
}

std::string little(uint32_t value, int bytes = 4) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

// `between` is what stands before the pixels: masks and palette.
std::string bmp(int width, int height, uint32_t bits, uint32_t compression, const std::string& pixels,
                const std::string& between = "") {
  const auto offset = static_cast<uint32_t>(54 + between.size());
  return "BM" + little(offset + static_cast<uint32_t>(pixels.size())) + little(0) + little(offset) + little(40) +
         little(static_cast<uint32_t>(width)) + little(static_cast<uint32_t>(height)) + little(1, 2) + little(bits, 2) +
         little(compression) + std::string(20, '\0') + between + pixels;
}

TEST(ImageDecoder, PixelFormats) {
  const std::string image = "P6 2 1 255\n\x01\x02\x03\xff\x80\x40"s;
  decoder(image).expect<uint8_t>({1, 2, 3}, {1, 2, 3, 255, 128, 64}).run();
  decoder(image, "BGR").expect<uint8_t>({1, 2, 3}, {3, 2, 1, 64, 128, 255}).run();
  decoder(image, "Grayscale").expect<uint8_t>({1, 2, 1}, {2, 159}).run();
  decoder("P5 1 1 255\n\x07").expect<uint8_t>({1, 1, 3}, {7, 7, 7}).run();
}

TEST(ImageDecoder, Pnm) {
  decoder("P1\n# a comment\n3 2 #another\n101\n0 1 0\n", "Grayscale")
      .expect<uint8_t>({2, 3, 1}, {0, 255, 0, 255, 0, 255})
      .run();
  decoder("P2 2 1 15 0 15 ", "Grayscale").expect<uint8_t>({1, 2, 1}, {0, 255}).run();
  decoder("P3 1 1 255 1 2 3").expect<uint8_t>({1, 1, 3}, {1, 2, 3}).run();
  decoder("P4 9 1\n\x80\x80"s, "Grayscale").expect<uint8_t>({1, 9, 1}, {0, 255, 255, 255, 255, 255, 255, 255, 0}).run();
  decoder("P5 2 1 65535\n\x80\x00\xff\xff"s, "Grayscale").expect<uint8_t>({1, 2, 1}, {128, 255}).run();
}

TEST(ImageDecoder, Bmp) {
  // Rows go from the bottom up and are padded to four bytes.
  decoder(bmp(1, 2, 24, 0, "\1\2\3\0\4\5\6\0"s)).expect<uint8_t>({2, 1, 3}, {6, 5, 4, 3, 2, 1}).run();
  decoder(bmp(1, -2, 24, 0, "\1\2\3\0\4\5\6\0"s)).expect<uint8_t>({2, 1, 3}, {3, 2, 1, 6, 5, 4}).run();
  decoder(bmp(1, 1, 32, 0, "\1\2\3\0"s)).expect<uint8_t>({1, 1, 3}, {3, 2, 1}).run();
  decoder(bmp(1, 1, 16, 0, "\x1f\x7c\0\0"s)).expect<uint8_t>({1, 1, 3}, {255, 0, 255}).run();
  decoder(bmp(1, 1, 16, 3, "\xe0\x07\0\0"s, little(0xf800) + little(0x07e0) + little(0x001f)))
      .expect<uint8_t>({1, 1, 3}, {0, 255, 0})
      .run();
  const std::string palette = "\3\2\1\0\6\5\4\0"s;
  decoder(bmp(3, 1, 1, 0, "\x40\0\0\0"s, palette)).expect<uint8_t>({1, 3, 3}, {1, 2, 3, 4, 5, 6, 1, 2, 3}).run();
  const std::string gray = [] {
    std::string text;
    for (uint32_t i = 0; i < 256; ++i) text += little(i * 0x010101);
    return text;
  }();
  decoder(bmp(2, 1, 8, 0, "\7\x10\0\0"s, gray), "Grayscale").expect<uint8_t>({1, 2, 1}, {7, 16}).run();
  // A run, the end of the line, three literal pixels, the end.
  decoder(bmp(3, 2, 8, 1, "\2\7\0\0\0\3\1\2\3\0\0\1"s, gray), "Grayscale")
      .expect<uint8_t>({2, 3, 1}, {1, 2, 3, 7, 7, 0})
      .run();
  decoder(bmp(3, 1, 4, 2, "\3\x12\0\1"s, gray), "Grayscale").expect<uint8_t>({1, 3, 1}, {1, 2, 1}).run();
}

// One red pixel.
const std::string png =
    "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\2\0\0\0\x90wS\xde\0\0\0\x0cIDATx\x9c"
    "c\xf8\xcf\xc0\0\0\3\1\1\0\xc9\xfe\x92\xef\0\0\0\0IEND\xae"
    "B`\x82"s;

bool has(std::string_view name) {
  for (const ops::ImageFormat& format : ops::image_formats()) {
    if (format.name == name) return format.decode;
  }
  return false;
}

TEST(ImageDecoder, Png) {
  if (!has("png")) GTEST_SKIP() << "this build has no libpng";
  decoder(png).expect<uint8_t>({1, 1, 3}, {255, 0, 0}).run();
  decoder(png.substr(0, png.size() - 20)).expect<uint8_t>({0, 0, 3}, {}).run();
}

// The standard asks for an empty image.
TEST(ImageDecoder, WhatCannotBeDecoded) {
  for (const std::string& text :
       {""s, "P"s, "no image at all"s, "BM"s, "P6"s, "P6 2 1 255\n\1"s, "P5 0 1 255\n"s, "P5 1 1 70000\n12345"s,
        "P2 1 1 5 9 "s, "P5 99999999999999999999 1 255\n1"s, bmp(2, 2, 24, 0, "\1\2\3"s), bmp(1, 1, 7, 0, "\1\2\3\4"s),
        bmp(0, 1, 24, 0, "\1\2\3\4"s), bmp(1, INT32_MIN, 24, 0, "\1\2\3\4"s), bmp(2, 1, 8, 1, "\0\5\1"s)}) {
    decoder(text).expect<uint8_t>({0, 0, 3}, {}).run();
    decoder(text, "Grayscale").expect<uint8_t>({0, 0, 1}, {}).run();
  }
  // Only the marks by which the formats are known.
  for (const auto& [name, text] :
       {std::pair("jpeg", "\xff\xd8\xff\xe0"s), std::pair("jpeg2000", "\0\0\0\x0cjP  \r\n\x87\n"s),
        std::pair("jpeg2000", "\xff\x4f\xff\x51"s), std::pair("tiff", "II*\0"s),
        std::pair("webp", "RIFF\0\0\0\0WEBPVP8 "s), std::pair("png", png.substr(0, 8))}) {
    if (has(name)) {
      decoder(text).expect<uint8_t>({0, 0, 3}, {}).run();
    } else {
      std::string error = decoder(text).error();
      EXPECT_NE(error.find("this build cannot decode "s + name + " images"), std::string::npos) << error;
    }
  }
}

TEST(ImageDecoder, Errors) {
  EXPECT_EQ(
      decoder(bmp(1 << 20, 1 << 20, 8, 1, "\0\1"s)).error(),
      "unsupported in ImageDecoder 'tested' (node 0): the image claims to be 1048576 x 1048576 pixels; at most 128 "
      "million are decoded");
  std::string text = decoder("P5 1 1 255\n1", "RGBA").error();
  EXPECT_NE(text.find("pixel_format is 'RGBA'; it may be 'RGB', 'BGR' or 'Grayscale'"), std::string::npos) << text;
}

}  // namespace
}  // namespace tenon
