// Reads a model and writes it again: `rewrite FROM TO`. For the test that saving is the inverse of loading.
#include <cstdio>

#include "onnx/model_file.h"
#include "tenon/error.h"

int main(int argc, char** argv) try {
  for (int i = 1; i + 1 < argc; i += 2) tenon::onnx::save_model(*tenon::onnx::load_model(argv[i]), argv[i + 1]);
  return 0;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
