#include "tenon/tools/samples.h"

#include <algorithm>
#include <charconv>
#include <fstream>

#include "base/fail.h"
#include "base/mapped_file.h"
#include "tenon/tools/value_files.h"
#include "tools/npy.h"
#include "tools/quantize/pictures.h"

namespace tenon::tools {
namespace {

namespace fs = std::filesystem;

constexpr int64_t rows_at_a_time = 16;  // of inputs that take any number

std::string ending_of(const fs::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending;
}

std::optional<int64_t> fixed_size(const std::string& dim) {
  int64_t size = 0;
  const auto [end, error] = std::from_chars(dim.data(), dim.data() + dim.size(), size);
  if (error != std::errc() || end != dim.data() + dim.size()) return std::nullopt;
  return size;
}

// How many samples an array holds, and how many of its rows each takes; 0 rows: one, without its first axis.
struct Split {
  int64_t samples = 1, rows = 0;
};

Split split_of(const Shape& array, const ValueInfo& input) {
  const Split whole{1, array.rank() > 0 ? array[0] : 1};
  if (!input.has_shape || array.rank() == 0) return whole;
  const auto rank = static_cast<int>(input.shape.size());
  if (array.rank() == rank + 1) return {array[0], 0};
  if (array.rank() != rank) {
    throw Error(ErrorCode::invalid_value,
                fmt::format("an array of shape {} holds no samples of an input of {} axes", array.to_string(), rank))
        .on_tensor(input.name);
  }
  const std::optional<int64_t> fixed = fixed_size(input.shape[0]);
  if (!fixed) return {(array[0] + rows_at_a_time - 1) / rows_at_a_time, rows_at_a_time};
  if (*fixed > 0 && array[0] > *fixed && array[0] % *fixed == 0) return {array[0] / *fixed, *fixed};
  return whole;
}

// A value, or an array in a file of which parts are read: mapped, they would count as memory of the process.
struct Source {
  Value value;
  std::shared_ptr<std::ifstream> file = nullptr;
  int64_t offset = 0;  // of the elements in the file
  ElementType type = ElementType::undefined;
  Shape in_file = {};

  bool is_array() const { return file || value.is_tensor(); }
  const Shape& shape() const { return file ? in_file : value.tensor().shape(); }
  // `shape` elements from `first` on.
  Tensor part(int64_t first, Shape shape) const {
    if (!file) return value.tensor().part(first, std::move(shape));
    Tensor tensor(type, std::move(shape));
    file->seekg(offset + byte_size(type, first));
    file->read(static_cast<char*>(tensor.mutable_raw()), tensor.bytes());
    if (!*file) fail(ErrorCode::invalid_value, "a file of samples ended too early");
    return tensor;
  }
};
using Sources = std::map<std::string, Source, std::less<>>;

// Of a .npy file, which may be a part of an archive.
Source source_of(const fs::path& path, const MappedFile& file, std::span<const std::byte> npy, ElementType wanted) {
  std::optional<NpyView> view = view_npy(npy, wanted);
  if (!view) return {parse_npy(npy, wanted)};
  return {{},
          std::make_shared<std::ifstream>(path, std::ios::binary),
          view->data.data() - file.bytes().data(),
          view->type,
          std::move(view->shape)};
}

// Values by input, that hold one sample or many.
class Arrays {
 public:
  Arrays(Sources sources, const std::vector<ValueInfo>& inputs) : sources_(std::move(sources)) {
    for (const ValueInfo& input : inputs) {
      const auto found = sources_.find(input.name);
      if (found == sources_.end()) continue;
      const Split split = found->second.is_array() ? split_of(found->second.shape(), input) : Split{1, 1};
      // What every sample has in common is there once.
      if (split.samples > 1 && samples_ > 1 && split.samples != samples_)
        throw Error(ErrorCode::invalid_value,
                    fmt::format("{} samples, where another input has {}", split.samples, samples_))
            .on_tensor(input.name);
      samples_ = std::max(samples_, split.samples);
      splits_[input.name] = split;
    }
  }

  int64_t count() const { return samples_; }
  NamedValues sample(int64_t index) const {
    NamedValues sample;
    for (const auto& [name, split] : splits_)
      sample[name] = sample_in(sources_.find(name)->second, split, split.samples == 1 ? 0 : index);
    return sample;
  }

 private:
  static Value sample_in(const Source& source, const Split& split, int64_t index) {
    if (!source.is_array()) return source.value;
    const Shape& whole = source.shape();
    if (split.samples == 1 && split.rows != 0) return source.part(0, whole);
    const int64_t row = whole[0] == 0 ? 0 : whole.elements() / whole[0];
    Shape shape;
    if (split.rows != 0) shape.push_back(std::min(split.rows, whole[0] - index * split.rows));
    for (int axis = 1; axis < whole.rank(); ++axis) shape.push_back(whole[axis]);
    return source.part(index * std::max<int64_t>(split.rows, 1) * row, shape);
  }

  Sources sources_;
  std::map<std::string, Split> splits_;
  int64_t samples_ = 1;
};

// Files and folders that hold samples, read one at a time.
class FileSamples final : public Samples {
 public:
  FileSamples(const fs::path& path, const std::vector<ValueInfo>& inputs, const PictureOptions& pictures)
      : inputs_(inputs), pictures_(pictures) {
    if (!fs::exists(path)) fail(ErrorCode::missing_file, "'{}' is not there", path.string());
    if (fs::is_directory(path) && !is_sample(path))
      list(path);
    else
      paths_.push_back(path);
    if (paths_.empty()) {
      throw Error(ErrorCode::missing_file, fmt::format("'{}' holds no samples", path.string()),
                  "put .npz or .npy files, pictures, or folders with one sample each into it");
    }
  }

  std::optional<NamedValues> next() override {
    while (!arrays_ || index_ == arrays_->count()) {
      if (file_ == paths_.size()) return std::nullopt;
      arrays_.emplace(read(paths_[file_++]), inputs_);
      index_ = 0;
    }
    return arrays_->sample(index_++);
  }

  bool rewind() override {
    file_ = 0;
    arrays_.reset();
    return true;
  }

  int64_t count() const override {
    return paths_.size() == 1 && arrays_ ? arrays_->count() : paths_.size() == 1 ? -1 : std::ssize(paths_);
  }

 private:
  // A folder that is one sample.
  bool is_sample(const fs::path& folder) const {
    if (fs::exists(folder / "input_0.pb")) return true;
    return inputs_.size() > 1 && std::ranges::all_of(inputs_, [&](const ValueInfo& input) {
             return fs::exists(folder / (file_name_for(input.name) + ".npy"));
           });
  }

  void list(const fs::path& folder) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string ending = ending_of(entry.path());
      const bool is_file = ending == ".npz" || ending == ".npy" || is_picture(ending);
      if (entry.is_directory() ? is_sample(entry.path()) : is_file) paths_.push_back(entry.path());
    }
    std::ranges::sort(paths_);
  }

  Sources read(const fs::path& path) const {
    if (fs::is_directory(path)) return read_folder(path);
    const std::string ending = ending_of(path);
    if (ending == ".npz") return read_archive(path);
    const ValueInfo& only = only_input(path);
    if (is_picture(ending)) return {{only.name, {read_picture(path, only, pictures_)}}};
    const auto file = MappedFile::open(path);
    return {{only.name, source_of(path, *file, file->bytes(), only.element)}};
  }

  Sources read_archive(const fs::path& path) const {
    const auto file = MappedFile::open(path);
    Sources arrays;
    const auto entries = arrays_in_npz(file->bytes());
    if (entries.size() == 1 && inputs_.size() == 1)
      return {{inputs_[0].name, source_of(path, *file, entries[0].second, inputs_[0].element)}};
    for (const ValueInfo& input : inputs_) {
      const auto found = std::ranges::find_if(entries, [&](const auto& entry) { return entry.first == input.name; });
      if (found != entries.end()) arrays[input.name] = source_of(path, *file, found->second, input.element);
    }
    if (arrays.empty()) fail(ErrorCode::invalid_value, "'{}' has no array with the name of an input", path.string());
    return arrays;
  }

  Sources read_folder(const fs::path& folder) const {
    Sources values;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      for (const std::string& name : {fmt::format("input_{}.pb", i), file_name_for(inputs_[i].name) + ".npy"}) {
        if (fs::exists(folder / name)) values[inputs_[i].name] = {read_value(folder / name, inputs_[i])};
      }
    }
    return values;
  }

  const ValueInfo& only_input(const fs::path& path) const {
    if (inputs_.size() == 1) return inputs_[0];
    throw Error(ErrorCode::invalid_value,
                fmt::format("'{}' is for one input, the model has {}", path.string(), inputs_.size()),
                "use .npz files, with an array for each input, or a folder for each sample");
  }

  const std::vector<ValueInfo> inputs_;
  const PictureOptions pictures_;
  std::vector<fs::path> paths_;
  size_t file_ = 0;
  std::optional<Arrays> arrays_;  // of the file before `file_`
  int64_t index_ = 0;
};

class RandomSamples final : public Samples {
 public:
  RandomSamples(const Session& session, InputSources sources, int64_t count)
      : session_(session), sources_(std::move(sources)), count_(count) {}
  std::optional<NamedValues> next() override {
    if (done_ == count_) return std::nullopt;
    InputSources sources = sources_;
    sources.seed += static_cast<uint64_t>(done_++);
    return make_inputs(session_, sources).values;
  }
  bool rewind() override {
    done_ = 0;
    return true;
  }
  int64_t count() const override { return count_; }
  bool is_random() const override { return true; }

 private:
  const Session& session_;
  const InputSources sources_;
  const int64_t count_;
  int64_t done_ = 0;
};

class GivenSamples final : public Samples {
 public:
  explicit GivenSamples(std::vector<NamedValues> samples) : samples_(std::move(samples)) {}
  std::optional<NamedValues> next() override {
    return done_ == samples_.size() ? std::nullopt : std::optional(samples_[done_++]);
  }
  bool rewind() override {
    done_ = 0;
    return true;
  }
  int64_t count() const override { return std::ssize(samples_); }

 private:
  const std::vector<NamedValues> samples_;
  size_t done_ = 0;
};

}  // namespace

std::unique_ptr<Samples> read_samples(const fs::path& path, const std::vector<ValueInfo>& inputs,
                                      const PictureOptions& pictures) {
  return std::make_unique<FileSamples>(path, inputs, pictures);
}

std::unique_ptr<Samples> random_samples(const Session& session, const InputSources& sources, int64_t count) {
  return std::make_unique<RandomSamples>(session, sources, count);
}

std::unique_ptr<Samples> samples_of(std::vector<NamedValues> samples) {
  return std::make_unique<GivenSamples>(std::move(samples));
}

}  // namespace tenon::tools
