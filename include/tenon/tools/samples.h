#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tenon/session.h"
#include "tenon/tools/make_inputs.h"

namespace tenon::tools {

// Inputs of many runs, one after the other, so that never all of them need be in memory.
class Samples {
 public:
  Samples() = default;
  Samples(const Samples&) = delete;
  Samples& operator=(const Samples&) = delete;
  virtual ~Samples() = default;
  // The inputs of the next run; none after the last.
  virtual std::optional<NamedValues> next() = 0;
  // Makes the first one the next again. False where that cannot be done.
  virtual bool rewind() = 0;
  // How many there are; -1 where that is not known.
  virtual int64_t count() const { return -1; }
  // Whether they are random numbers and no data.
  virtual bool is_random() const { return false; }
};

// How pictures become inputs: scaled to the input's height and width, samples divided by 255, less `mean`, by `std`, in
// the order of axes that the input has.
struct PictureOptions {
  std::vector<float> mean = {0}, std = {1};  // one for all channels, or one for each
};

// Samples in files:
//   .npz, .npy       arrays by the names of the inputs. An array with one axis more than the input, or whose first axis
//                    is a multiple of the input's fixed one, holds many samples; rows of an input without a fixed
//                    number of them come 16 at a time
//   a folder         of such files, of pictures (.png, .jpg, .bmp, .ppm, …), of folders that hold one sample each as
//                    NAME.npy or input_0.pb, or an ONNX test case with its test_data_set_* folders; in order of names
// Throws ErrorCode::missing_file where there is nothing, ErrorCode::invalid_value for what does not fit the inputs.
std::unique_ptr<Samples> read_samples(const std::filesystem::path& path, const std::vector<ValueInfo>& inputs,
                                      const PictureOptions& pictures = {});

// Random inputs, other ones each time.
std::unique_ptr<Samples> random_samples(const Session& session, const InputSources& sources, int64_t count);

// Those that are given.
std::unique_ptr<Samples> samples_of(std::vector<NamedValues> samples);

}  // namespace tenon::tools
