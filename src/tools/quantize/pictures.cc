#include "tools/quantize/pictures.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/fail.h"
#include "base/mapped_file.h"
#include "ir/graph.h"
#include "ops/operator.h"
#include "session/session_of_model.h"

namespace tenon::tools {
namespace {

// What ImageDecoder reads, which is who decodes them.
constexpr std::array endings = {".bmp", ".jp2", ".jpeg", ".jpg", ".pbm",  ".pgm",
                                ".png", ".pnm", ".ppm",  ".tif", ".tiff", ".webp"};

// Where the input has its axes.
struct Layout {
  bool channels_last;
  int64_t channels, height, width;
};

Layout layout_of(const ValueInfo& input) {
  std::array<int64_t, 4> dims{};
  bool known = input.has_shape && input.shape.size() == 4;
  for (size_t i = 0; known && i < 4; ++i) {
    const std::string& text = input.shape[i];
    const bool number = !text.empty() && std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c); });
    dims[i] = number ? std::stoll(text) : 0;
  }
  const auto is_color = [](int64_t size) { return size == 1 || size == 3; };
  if (known && is_color(dims[1]) && dims[2] > 0 && dims[3] > 0) return {false, dims[1], dims[2], dims[3]};
  if (known && is_color(dims[3]) && dims[1] > 0 && dims[2] > 0) return {true, dims[3], dims[1], dims[2]};
  throw Error(ErrorCode::invalid_value,
              "pictures need an input [N, C, H, W] or [N, H, W, C] with 1 or 3 channels and a fixed height and width",
              "give the samples as .npy or .npz files")
      .on_tensor(input.name);
}

// Decodes a file to [H, W, C] bytes and scales that to the height and width of the input, as floats.
Session decoder(const Layout& layout) {
  auto model = std::make_unique<ir::Model>();
  model->ir_version = 10;
  model->opset_imports.add("", 20);
  model->graph = std::make_unique<ir::Graph>();
  ir::Graph& graph = *model->graph;
  ir::Value& file = graph.add_value("file");
  file.type = ir::Type::tensor(ElementType::uint8);
  graph.add_input(file);
  const auto add = [&](const char* op, std::initializer_list<ir::Value*> inputs) -> ir::Node& {
    ir::Node& node = graph.add_node(op);
    for (ir::Value* input : inputs) node.add_input(input);
    node.add_output(&graph.add_value(op));
    return node;
  };
  ir::Node& decode = add("ImageDecoder", {&file});
  decode.set_attribute({"pixel_format", std::string(layout.channels == 1 ? "Grayscale" : "RGB")});
  ir::Node& floats = add("Cast", {decode.output(0)});
  floats.set_attribute({"to", static_cast<int64_t>(ElementType::float32)});
  ir::Node& resize =
      add("Resize", {floats.output(0), nullptr, nullptr,
                     &graph.add_constant(Tensor(Shape{3}, {layout.height, layout.width, layout.channels}), "sizes")});
  resize.set_attribute({"mode", std::string("linear")});
  resize.set_attribute({"antialias", int64_t{1}});
  graph.add_output(*resize.output(0));
  return session_of(std::move(model), {});
}

float of_channel(const std::vector<float>& values, int64_t channel) {
  return values[values.size() == 1 ? 0 : static_cast<size_t>(channel)];
}

template <typename T>
void place(const Tensor& picture, const Layout& layout, const PictureOptions& options, Tensor& to) {
  const auto from = picture.data<float>();
  const auto out = to.mutable_data<T>();
  const int64_t pixels = layout.height * layout.width;
  for (int64_t p = 0; p < pixels; ++p) {
    for (int64_t c = 0; c < layout.channels; ++c) {
      const float sample = from[static_cast<size_t>(p * layout.channels + c)];
      T& element = out[static_cast<size_t>(layout.channels_last ? p * layout.channels + c : c * pixels + p)];
      if constexpr (std::is_same_v<T, float>)
        element = (sample / 255 - of_channel(options.mean, c)) / of_channel(options.std, c);
      else
        element = static_cast<T>(std::clamp(std::nearbyint(sample), 0.0f, 255.0f));
    }
  }
}

}  // namespace

bool is_picture(const std::string& ending) { return std::ranges::find(endings, ending) != endings.end(); }

Tensor read_picture(const std::filesystem::path& path, const ValueInfo& input, const PictureOptions& options) {
  const Layout layout = layout_of(input);
  for (const std::vector<float>* list : {&options.mean, &options.std}) {
    if (list->size() != 1 && std::ssize(*list) != layout.channels)
      fail(ErrorCode::invalid_argument, "{} numbers for mean or std, the pictures have {} channels", list->size(),
           layout.channels);
  }
  const auto mapped = MappedFile::open(path);
  const std::span<const std::byte> bytes = mapped->bytes();
  const Tensor file(Shape{std::ssize(bytes)}, std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
  Tensor picture;
  try {
    picture = decoder(layout).run({{"file", file}}).begin()->second.tensor();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("'{}': {}", path.string(), error.message()), error.hint());
  }
  Tensor result(input.element, layout.channels_last ? Shape{1, layout.height, layout.width, layout.channels}
                                                    : Shape{1, layout.channels, layout.height, layout.width});
  if (input.element == ElementType::float32)
    place<float>(picture, layout, options, result);
  else if (input.element == ElementType::uint8)
    place<uint8_t>(picture, layout, options, result);
  else
    throw Error(ErrorCode::invalid_value, fmt::format("pictures cannot become {}", input.type)).on_tensor(input.name);
  return result;
}

}  // namespace tenon::tools
