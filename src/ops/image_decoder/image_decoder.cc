#include "ops/inference.h"
#include "ops/operator.h"

namespace tenon::ops {
namespace {

void infer_image_decoder(Inference& i) {
  const std::string format = i.node().string_attribute("pixel_format", "RGB");
  if (format != "RGB" && format != "BGR" && format != "Grayscale") {
    i.fail_with(ErrorCode::invalid_attribute,
                fmt::format("pixel_format is '{}'; it may be 'RGB', 'BGR' or 'Grayscale'", format));
  }
  i.require_rank(0, 1);
  i.output(0, ElementType::uint8, SymbolicShape{Dim::unknown(), Dim::unknown(), format == "Grayscale" ? 1 : 3});
}

}  // namespace

void define_image_decoder(OperatorList& list) {
  list.add("ImageDecoder", {20})
      .input("encoded_stream", TypeSet{ElementType::uint8})
      .output("image", TypeSet{ElementType::uint8})
      .attribute("pixel_format", ir::AttributeKind::string)
      .infer(infer_image_decoder);
}

}  // namespace tenon::ops
