#include <algorithm>

#include "base/checked.h"
#include "base/fail.h"
#include "ops/cuda_support/arguments.h"
#include "ops/cuda_support/coordinates.h"
#include "ops/window.h"

namespace tenon::ops {
namespace {

// One thread for each window. What it does with an element is text of `value` and `place`, its number in the plane.
class Windows {
 public:
  Windows(const WindowAttributes& window, const Shape& x, const Shape& y)
      : spatial_(x.rank() - 2), outputs_(y.elements()) {
    // v: the planes, the sizes of a plane of y, then for each axis the size of x, kernel, stride, dilation and pads.
    numbers_.push_back(checked_mul(y[0], y[1]));
    for (int d = 0; d < spatial_; ++d) numbers_.push_back(y[d + 2]);
    first_ = numbers_.size();
    for (int d = 0; d < spatial_; ++d) {
      const WindowAxis axis = window.axis(d, spatial_);
      const auto [begin, end] = axis.pads(x[d + 2], y[d + 2]);
      // Taps beyond the padded image read nothing.
      const int64_t kernel =
          std::min(axis.kernel.value(), checked_add(x[d + 2], checked_add(begin, end)) / axis.dilation + 1);
      numbers_.insert(numbers_.end(), {x[d + 2], kernel, axis.stride, axis.dilation, begin, end});
    }
  }

  std::string text(std::string_view start, std::string_view body, std::string_view finish) const {
    std::string text = coordinates_text(spatial_ + 1, 0, outputs_) + "i64 image = c0;\n    ", place = "0";
    for (int d = 0; d < spatial_; ++d) {
      // Taps from begin to end are inside of the image.
      text += fmt::format(
          "const i64 s{0} = c{1} * {2} - {3};\n    "
          "const i64 b{0} = s{0} >= 0 ? 0 : ({4} - 1 - s{0}) / {4};\n    "
          "const i64 e{0} = {5} <= s{0} ? 0 : least({6}, ({5} - 1 - s{0}) / {4} + 1);\n    image *= {5};\n    ",
          d, d + 1, number(d, 2), number(d, 4), number(d, 3), number(d, 0), number(d, 1));
      place = d == 0 ? fmt::format("(s0 + k0 * {})", number(0, 3))
                     : fmt::format("({} * {} + s{} + k{} * {})", place, number(d, 0), d, d, number(d, 3));
    }
    text += fmt::format("{}\n    ", start);
    for (int d = 0; d < spatial_; ++d) text += fmt::format("for (i64 k{0} = b{0}; k{0} < e{0}; ++k{0}) ", d);
    return text +
           fmt::format(
               "{{\n    const i64 place = {};\n    const A value = widen(x[image + place]);\n    {}\n    }}\n    {}",
               place, body, finish);
  }

  // How many elements the window has: those of the image, or with the padding.
  std::string count_text(bool with_padding) const {
    std::string text = "(A)1";
    for (int d = 0; d < spatial_; ++d) {
      if (!with_padding) {
        text += fmt::format(" * (A)(e{0} > b{0} ? e{0} - b{0} : 0)", d);
      } else {
        text += fmt::format(" * (A)({2} + {3} <= s{0} ? 0 : least({1}, ({2} + {3} - 1 - s{0}) / {4} + 1))", d,
                            number(d, 1), number(d, 0), number(d, 5), number(d, 3));
      }
    }
    return text;
  }

  std::string number(int d, int which) const {
    const size_t at = first_ + static_cast<size_t>(d * 6 + which);
    // As text, the usual dilation needs no division.
    return which == 3 && numbers_[at] == 1 ? "(i64)1" : fmt::format("v[{}]", at);
  }
  const std::vector<int64_t>& numbers() const { return numbers_; }

 private:
  int spatial_;
  int64_t outputs_;
  size_t first_;
  std::vector<int64_t> numbers_;
};

// The number of an element in its plane, counted by columns.
std::string column_major_text(const Windows& windows, int spatial) {
  std::string text = "i64 left = place, numbered = 0;\n    ";
  for (int d = spatial - 1; d >= 0; --d)
    text += fmt::format("numbered = numbered * {0} + left % {0}; left /= {0};\n    ", windows.number(d, 0));
  return text;
}

class Pool final : public Kernel {
 public:
  explicit Pool(const NodeInfo& info) : window_(info.node()) {
    if (info.node().op_type == "LpPool" && info.node().int_attribute("p", 2) < 1)
      fail(ErrorCode::invalid_attribute, "p is {}; it must be at least 1", info.node().int_attribute("p", 2));
  }

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    Tensor& y = run.output(0);
    const void* indices = output_address(run, 1);
    if (y.elements() == 0) return;
    const auto& loop = run.per_plan<CudaLoop>([&] {
      const Windows windows(window_, x.shape(), y.shape());
      return CudaLoop(run, y.elements(), "const T* x, T* y, i64* indices", text_of(run, windows), windows.numbers(),
                      types_text(x.type()));
    });
    loop.run(run, {x.raw(), y.raw(), indices});
  }

 private:
  static std::string text_of(KernelRun& run, const Windows& windows) {
    const ir::Node& node = run.node();
    const ElementType type = run.input(0).type();
    if (node.op_type == "AveragePool") {
      return windows.text("A sum = 0;", "sum += value;",
                          fmt::format("y[i] = narrow<T>(sum / ({}));",
                                      windows.count_text(node.int_attribute("count_include_pad", 0) != 0)));
    }
    if (node.op_type == "LpPool") {
      const int64_t p = node.int_attribute("p", 2);
      const std::string map = p == 1   ? "sum += fabs(value);"
                              : p == 2 ? "sum += value * value;"
                                       : fmt::format("sum += pow(fabs(value), (A){});", p);
      const std::string root = p == 1 ? "sum" : p == 2 ? "sqrt(sum)" : fmt::format("pow(sum, (A)1 / (A){})", p);
      return windows.text("A sum = 0;", map, fmt::format("y[i] = narrow<T>({});", root));
    }
    const std::string start = fmt::format("A best = {}; i64 found = -1;", type == ElementType::int8    ? "-128"
                                                                          : type == ElementType::uint8 ? "0"
                                                                                                       : "-INFINITE");
    std::string finish = "y[i] = narrow<T>(best);";
    if (run.wants_output(1)) {
      if (node.int_attribute("storage_order", 0) == 0)
        finish += "\n    indices[i] = found < 0 ? -1 : image + found;";
      else
        finish += "\n    if (found < 0) { indices[i] = -1; continue; }\n    const i64 place = found;\n    " +
                  column_major_text(windows, run.input(0).rank() - 2) + "indices[i] = image + numbered;";
    }
    return windows.text(
        start, "if (found < 0 || value > best || (is_nan(value) && !is_nan(best))) { best = value; found = place; }",
        finish);
  }

  WindowAttributes window_;
};

}  // namespace

void cuda_pool(CudaKernels& list) {
  auto make = [](const NodeInfo& info) { return std::make_unique<Pool>(info); };
  list.add("MaxPool", make,
           {.types = types::floats | TypeSet{ElementType::int8, ElementType::uint8, ElementType::int64}});
  list.add("AveragePool", make, {.types = types::floats});
  list.add("LpPool", make, {.types = types::floats});
}

}  // namespace tenon::ops
