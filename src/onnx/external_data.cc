#include <algorithm>
#include <charconv>

#include "base/fail.h"
#include "onnx/tensor_reader.h"

namespace tenon::onnx {
namespace fs = std::filesystem;
namespace {

fs::path real(const fs::path& path) {
  std::error_code error;
  fs::path result = fs::weakly_canonical(path.empty() ? fs::path(".") : path, error);
  return error ? path : result;
}

bool is_below(const fs::path& path, const fs::path& folder) {
  auto [at, rest] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return at == folder.end() || (std::next(at) == folder.end() && at->empty());
}

std::optional<int64_t> parse_number(std::string_view text) {
  int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

}  // namespace

ExternalData::ExternalData(const fs::path& model) : folder_(model.parent_path()) {
  allowed_.push_back(real(folder_));
  // In a cache such as Hugging Face's, model and data are links into one folder of blobs.
  allowed_.push_back(real(model).parent_path());
}

ExternalData ExternalData::in_folder(const fs::path& folder) {
  ExternalData result;
  if (!folder.empty()) {
    result.folder_ = folder;
    result.allowed_.push_back(real(folder));
  }
  return result;
}

ExternalData ExternalData::of_files(const DataFiles& files) {
  ExternalData result;
  for (const auto& [location, file] : files) result.files_.emplace(location, std::pair(file, std::string()));
  return result;
}

std::shared_ptr<const MappedFile> ExternalData::open(const std::string& location, std::string& problem) {
  fs::path relative(location);
  if (location.empty()) {
    problem = "has an empty location";
  } else if (allowed_.empty()) {
    problem = "is external, but a model in memory has no folder to look in";
  } else if (relative.is_absolute()) {
    problem = "has an absolute path, which is refused";
  } else if (std::ranges::find(relative, fs::path("..")) != relative.end()) {
    problem = "leaves the model's folder with '..', which is refused";
  } else {
    fs::path path = folder_ / relative;
    fs::path target = real(path);
    if (std::ranges::none_of(allowed_, [&](const fs::path& f) { return is_below(target, f); })) {
      problem = fmt::format("links to '{}' outside the model's folder, which is refused", target.string());
      return nullptr;
    }
    try {
      return MappedFile::open(path);
    } catch (const Error& error) {
      problem = error.message();
    }
  }
  return nullptr;
}

ExternalData::Location ExternalData::find(const ir::Constant& constant, int64_t expected_bytes) {
  std::string location, problem;
  int64_t offset = 0;
  std::optional<int64_t> length;
  for (const auto& [key, value] : constant.external_data) {
    if (key == "location") location = value;
    if (key == "offset" || key == "length") {
      auto number = parse_number(value);
      if (!number)
        problem = fmt::format("has {} '{}', which is not a number", key, value);
      else
        (key == "offset" ? offset : length.emplace()) = *number;
    }
  }
  std::shared_ptr<const MappedFile> file;
  if (problem.empty()) {
    auto found = files_.find(location);
    if (found == files_.end()) {
      std::string reason;
      auto opened = open(location, reason);
      found = files_.emplace(location, std::pair(opened, reason)).first;
    }
    file = found->second.first;
    problem = found->second.second;
  }
  if (file) {
    auto size = static_cast<int64_t>(file->bytes().size());
    if (length && *length != expected_bytes) {
      problem = fmt::format("has {} bytes, its shape and type need {}", *length, expected_bytes);
    } else if (offset > size || expected_bytes > size - offset) {
      problem = fmt::format("needs bytes {} to {}, the file has {}", offset, offset + expected_bytes, size);
    } else {
      return {file, file->bytes().subspan(static_cast<size_t>(offset), static_cast<size_t>(expected_bytes))};
    }
  }
  problems_.push_back({constant.name, location, problem});
  return {};
}

std::vector<FileIdentity> ExternalData::opened_files() const {
  std::vector<FileIdentity> files;
  for (const auto& [_, opened] : files_) {
    if (opened.first) files.push_back(opened.first->identity());
  }
  return files;
}

void ExternalData::throw_problems() const {
  if (problems_.empty()) return;
  constexpr size_t most_shown = 20;
  std::string text =
      fmt::format("external data of {} tensor{} cannot be used:", problems_.size(), problems_.size() == 1 ? "" : "s");
  for (size_t i = 0; i < std::min(most_shown, problems_.size()); ++i) {
    const auto& [tensor, location, problem] = problems_[i];
    text += fmt::format("\n  tensor '{}' in '{}': {}", tensor, location, problem);
  }
  if (problems_.size() > most_shown) text += fmt::format("\n  and {} more", problems_.size() - most_shown);
  throw Error(ErrorCode::missing_external_data, text,
              "put the named files beside the model, complete and under these names");
}

}  // namespace tenon::onnx
