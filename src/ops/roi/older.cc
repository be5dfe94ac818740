#include "ops/older_forms.h"
#include "ops/older_support.h"

namespace tenon::ops {
namespace {

// A coordinate that is sampled: its two neighbours with their weights, [regions, samples].
struct Neighbours {
  Term low, high, low_weight, high_weight;
};

class RoiSampler {
 public:
  explicit RoiSampler(Decomposition& d) : d_(d), type_(wide(d.element(0))) {
    per_bin_ = d.node().int_attribute("sampling_ratio", 0);
    if (per_bin_ <= 0) d.give_up("how often it samples depends on its regions");
    rows_ = d.node().int_attribute("output_height", 1);
    columns_ = d.node().int_attribute("output_width", 1);
  }

  void write() {
    Term x = d_.wide_input(0), height = size_of(x, 2), width = size_of(x, 3), channels = size_of(x, 1);
    Term pixels = d_.add("Reshape", {transpose(x, {0, 2, 3, 1}), concat({d_.ints({-1}), channels})});
    const Neighbours down = neighbours(1, rows_, height), across = neighbours(0, columns_, width);
    Term image = unsqueeze(d_.input(2), {1, 2}) * height;
    const bool finds_most = d_.node().string_attribute("mode", "avg") == "max";
    Term all;
    for (const auto& [y, y_weight] : {std::pair(down.low, down.low_weight), {down.high, down.high_weight}}) {
      for (const auto& [x_at, x_weight] :
           {std::pair(across.low, across.low_weight), {across.high, across.high_weight}}) {
        Term position = (image + unsqueeze(y, {2})) * width + unsqueeze(x_at, {1});
        Term weight = unsqueeze(y_weight, {2}) * unsqueeze(x_weight, {1});
        Term value = gather(pixels, position, 0) * unsqueeze(weight, {3});
        all = !all ? value : finds_most ? max(all, value) : all + value;
      }
    }
    Term bins = concat({d_.ints({-1, rows_, per_bin_, columns_, per_bin_}), channels});
    Term result =
        reduce(finds_most ? "ReduceMax" : "ReduceMean", d_.add("Reshape", {all, bins}), d_.ints({2, 4}), false);
    d_.output(0, transpose(result, {0, 3, 1, 2}));
  }

 private:
  Neighbours neighbours(int64_t first, int64_t bins, Term size) {
    const bool half_pixel = d_.node().string_attribute("coordinate_transformation_mode", "half_pixel") == "half_pixel";
    const double scale = d_.node().float_attribute("spatial_scale", 1);
    Term regions = cast(d_.input(1), type_);
    auto edge = [&](int64_t i) { return gather(regions, d_.ints({i}), 1) * scale - (half_pixel ? 0.5 : 0); };
    Term begin = edge(first), length = edge(first + 2) - begin;
    if (!half_pixel) length = max(length, 1);
    Term step = length / static_cast<double>(bins * per_bin_);
    Term sample = cast(d_.ints(numbers_up_to(bins * per_bin_)), type_) + 0.5;
    Term at = begin + sample * step, limit = cast(size, type_), last = limit - 1;
    Term inside = cast(negation(either(less(at, -1), greater(at, limit))), type_);
    Term place = max(at, 0), low = min(d_.add("Floor", {place}), last);
    Term part = where(less(low, last), place - low, 0);
    auto index = [](Term x) { return cast(x, ElementType::int64); };
    return {index(low), index(min(low + 1, last)), inside * (1 - part), inside * part};
  }

  Decomposition& d_;
  ElementType type_;
  int64_t per_bin_, rows_, columns_;
};

void gather_samples(Decomposition& d) { RoiSampler(d).write(); }

}  // namespace

void older_roi(OlderForms& forms) { forms.add("RoiAlign", 16, gather_samples); }

}  // namespace tenon::ops
