#include <algorithm>
#include <cctype>
#include <cstring>

#include "onnx/model_file.h"

namespace tenon::onnx {
namespace {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// safetensors: 8 bytes of header length, then JSON.
bool is_safetensors(std::string_view head, size_t file_size) {
  if (head.size() < 10) return false;
  uint64_t length = 0;
  std::memcpy(&length, head.data(), 8);
  return length < file_size && head[8] == '{' && (head[9] == '"' || head[9] == '}');
}

}  // namespace

std::string looks_like(std::span<const std::byte> bytes) {
  std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::string_view head = all.substr(0, 4096);
  if (all.empty()) return "an empty file";
  if (head.starts_with("version https://git-lfs.github.com/spec/")) {
    return "a Git LFS pointer, not the file itself (run 'git lfs pull')";
  }
  if (head.starts_with("PK\x03\x04")) {
    // A zip archive names its first member near the start; PyTorch's archives hold data.pkl, TorchScript's code/ too.
    if (contains(all.substr(0, 1 << 16), "/code/") || contains(head, "constants.pkl"))
      return "a TorchScript archive (export it to ONNX with torch.onnx.export)";
    if (contains(head, "data.pkl")) return "a PyTorch checkpoint (export the model to ONNX with torch.onnx.export)";
    if (contains(head, ".npy")) return "a NumPy .npz archive";
    return "a zip archive";
  }
  if (head.starts_with("\x80\x02") || head.starts_with("\x80\x04"))
    return "a Python pickle, such as an old PyTorch checkpoint";
  if (head.starts_with("\x89HDF\r\n")) return "an HDF5 file, such as a Keras model";
  if (head.starts_with("\x89TENON\r\n"))
    return "a model compiled by 'tenon compile', which sessions load from its file (here, give the .onnx that it was "
           "made of)";
  if (head.starts_with("GGUF")) return "a GGUF file";
  if (head.starts_with("\x93NUMPY")) return "a NumPy .npy file";
  if (head.starts_with("\x1f\x8b")) return "a gzip file (unpack it first)";
  if (head.starts_with("ORTM") || (head.size() >= 8 && head.substr(4, 4) == "ORTM"))
    return "an onnxruntime .ort file (Tenon needs the .onnx it was made from)";
  if (head.size() >= 8 && head.substr(4, 4) == "TFL3") return "a TensorFlow Lite model";
  if (is_safetensors(head, all.size())) return "a safetensors file: weights without a graph";
  // A SavedModel is a protobuf too: schema version 1, then a graph with its tags.
  if (head.starts_with(std::string_view("\x08\x01\x12", 3)) &&
      (contains(head, "serve") || contains(head, "saver") || contains(head, "Placeholder") ||
       contains(head, "VarHandleOp"))) {
    return "a TensorFlow SavedModel (convert it with tf2onnx)";
  }
  std::string lower(head.substr(0, 512));
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  size_t start = lower.find_first_not_of(" \t\r\n");
  if (start != std::string::npos) {
    std::string_view text = std::string_view(lower).substr(start);
    if (text.starts_with("<!doctype html") || text.starts_with("<html") || contains(text, "<html")) {
      return "a web page, such as a download's error page";
    }
    if (text.starts_with("<?xml")) return "an XML file, such as an OpenVINO model";
    if (text.starts_with('{')) return "a JSON file";
    bool printable =
        std::ranges::all_of(text, [](unsigned char c) { return c >= 32 || c == '\n' || c == '\r' || c == '\t'; });
    if (printable && text.size() > 8) return "a text file";
  }
  return {};
}

}  // namespace tenon::onnx
