// Runs a model with the operators linked in.
//
//   run_custom_operators model.onnx
#include <iostream>

#include "operators.h"
#include "tenon/tenon.h"

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::cerr << "usage: run_custom_operators MODEL\n";
    return 2;
  }
  tenon::SessionOptions options;
  options.custom_operators = {clamp(), standardize()};
  tenon::Session session = tenon::Session::load(argv[1], options);
  for (const tenon::NodePlacement& node : session.placement()) {
    std::cout << node.node << " runs on " << node.provider << " as " << node.kernel << "\n";
  }
  tenon::NamedValues outputs = session.run({{"x", tenon::Tensor({2, 3}, {1.0f, 2.0f, 3.0f, 40.0f, -5.0f, 6.0f})}});
  for (float number : outputs.at("y").tensor().data<float>()) std::cout << number << " ";
  std::cout << "\n";
} catch (const tenon::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
