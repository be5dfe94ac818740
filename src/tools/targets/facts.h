// What is known about other runtimes: tables that are part of the library (src/tools/targets/*.txt).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tenon::tools {

// A file of this folder, as the build put it into the library.
struct TargetFile {
  std::string_view name, content;
};
std::span<const TargetFile> target_files();

// A release and the newest versions that models may have there; 0 where that is not known.
struct Release {
  std::string version;
  int64_t opset = 0, ml_opset = 0, ir_version = 0;
  std::vector<int> numbers;  // of the version
};

// How the table knows something.
enum class Evidence : uint8_t { ran, fails, registered, documented };

// A type parameter of an operator version with the types that work: the positions of inputs and outputs that have it,
// and one set of releases.
struct TypeSupport {
  Evidence evidence;
  int64_t since_version;             // 0: any
  std::vector<int> inputs, outputs;  // the last one stands for those after it too, if it repeats
  bool inputs_repeat = false, outputs_repeat = false;
  std::string parameter;
  std::vector<bool> releases;      // by position in TargetFacts::releases()
  std::vector<std::string> types;  // "*": all

  bool allows(std::string_view type) const;
};

class TargetFacts {
 public:
  // Reads a table; throws ErrorCode::internal on a line that it does not understand.
  explicit TargetFacts(std::string_view content);
  // Of the file with this name, read once; null if there is none.
  static const TargetFacts* find(std::string_view name);

  const std::string& source() const { return source_; }
  const std::vector<Release>& releases() const { return releases_; }
  // The newest release whose version begins with what is asked for ("1.16": 1.16.3); nullopt if there is none.
  std::optional<size_t> release(std::string_view version) const;
  // Of an operator ("Add", "com.microsoft.Gelu"), all versions; empty if the table does not have it.
  std::span<const TypeSupport> support(const std::string& name) const;
  // Operators that the table has say what runs; it says nothing about others of this domain.
  bool covers(std::string_view domain) const;

 private:
  void read_line(std::string_view line);
  void read_release(std::span<const std::string_view> words);
  void read_support(Evidence evidence, std::span<const std::string_view> words);
  std::vector<bool> read_releases(std::string_view text) const;
  size_t position(std::string_view version) const;

  std::string source_;
  std::vector<Release> releases_;
  std::vector<std::string> domains_;
  std::unordered_map<std::string, std::vector<TypeSupport>> support_;
};

// "1.16.3" as numbers; nullopt unless it is one.
std::optional<std::vector<int>> version_numbers(std::string_view version);

}  // namespace tenon::tools
