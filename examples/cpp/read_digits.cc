// Reads the handwritten digits of examples/digits: what `make demo` does, as a program.
//
//   read_digits digits.onnx picture.pgm
#include <cstdint>
#include <fstream>
#include <iostream>
#include <string>

#include "tenon/tenon.h"

// A binary PGM picture without comments, as [height, width].
tenon::Tensor read_pgm(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string kind;
  int64_t width = 0, height = 0, white = 0;
  file >> kind >> width >> height >> white;
  file.get();
  tenon::Tensor picture(tenon::ElementType::uint8, {height, width});
  file.read(static_cast<char*>(picture.mutable_raw()), picture.bytes());
  return picture;
}

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::cerr << "usage: read_digits MODEL PICTURE\n";
    return 2;
  }
  tenon::Session session = tenon::Session::load(argv[1]);
  for (const tenon::NodePlacement& node : session.placement()) {
    std::cout << node.node << " runs on " << node.provider << " as " << node.kernel << "\n";
  }
  tenon::NamedValues outputs = session.run({{"picture", read_pgm(argv[2])}});
  for (int64_t digit : outputs.at("digits").tensor().data<int64_t>()) std::cout << digit << " ";
  std::cout << "\n";
} catch (const tenon::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
