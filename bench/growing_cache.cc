// What a growing key/value cache costs: decodes 256 tokens with a cache that grows by one each time, and as many with a
// cache of fixed length, in turns. Every growing step has new shapes and so a new plan.
//
// usage: bench_growing_cache MODEL [tokens] [threads]
//
// Every input whose shape names a size 'past' is a cache; one that names 'total' is as long as the cache and the new
// token.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tenon/tenon.h"

namespace {

using Clock = std::chrono::steady_clock;

tenon::NamedValues inputs_for(const tenon::Session& session, int64_t past) {
  tenon::NamedValues inputs;
  for (const tenon::ValueInfo& info : session.inputs()) {
    tenon::Shape shape;
    for (const std::string& dim : info.shape) {
      const bool is_number = dim.find_first_not_of("0123456789") == std::string::npos;
      const bool is_total = dim == "total" || (dim.find("past") != std::string::npos && dim != "past");
      shape.push_back(is_number ? std::stoll(dim) : dim == "past" ? past : is_total ? past + 1 : 1);
    }
    tenon::Tensor tensor(info.element, shape);
    std::fill_n(static_cast<char*>(tensor.mutable_raw()), tensor.bytes(), '\0');
    if (info.element == tenon::ElementType::int64) {
      for (int64_t& number : tensor.mutable_data<int64_t>()) number = 1;
    }
    inputs.emplace(info.name, std::move(tensor));
  }
  return inputs;
}

double time_of(const tenon::Session& session, const tenon::NamedValues& inputs) {
  const Clock::time_point start = Clock::now();
  session.run(inputs);
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s MODEL [tokens] [threads]\n", argv[0]);
    return 2;
  }
  const int64_t tokens = argc > 2 ? std::atoll(argv[2]) : 256;
  tenon::SessionOptions options;
  options.threads = argc > 3 ? std::atoi(argv[3]) : 1;
  const tenon::Session session = tenon::Session::load(argv[1], options);
  constexpr int rounds = 15;
  double growing = 1e30, fixed = 1e30;
  for (int round = 0; round < rounds; ++round) {
    double growing_sum = 0, fixed_sum = 0;
    for (int64_t past = 1; past <= tokens; ++past) {
      const tenon::NamedValues inputs = inputs_for(session, past);
      growing_sum += time_of(session, inputs);  // a plan it has not, or forgot
      const tenon::NamedValues same = inputs_for(session, past);
      fixed_sum += time_of(session, same);
    }
    growing = std::min(growing, growing_sum);
    fixed = std::min(fixed, fixed_sum);
  }
  const auto count = static_cast<double>(tokens);
  std::printf("growing %.1f us a token, fixed %.1f us: %+.1f %%\n", growing / count, fixed / count,
              100 * (growing / fixed - 1));
  return 0;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return 3;
}
