#include "session/custom_operator_library.h"

#include <dlfcn.h>

#include <string_view>

#include "base/fail.h"

namespace tenon {
namespace {

constexpr const char* symbol = "tenon_custom_operators";

// A library that is closed again unless it is kept.
class Library {
 public:
  explicit Library(const std::filesystem::path& path) : path_(path) {
    std::error_code ignored;
    const bool is_here = std::filesystem::exists(path, ignored);
    if (!is_here && path.has_parent_path()) {
      fail(ErrorCode::missing_file, "there is no library '{}'", path.string());
    }
    const std::string name = is_here ? std::filesystem::absolute(path).string() : path.string();
    handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_) return;
    const char* reason = dlerror();
    const std::string_view text = reason ? reason : "no reason is given";
    const bool is_unlinked = text.find("undefined symbol: _ZN") != text.npos && text.find("5tenon") != text.npos;
    if (is_here) refuse(fmt::format("it cannot be loaded: {}", text), is_unlinked ? "link it with Tenon" : "");
    throw Error(ErrorCode::missing_file,
                fmt::format("there is no library '{}' in the current folder, '{}', nor where the system looks for them",
                            path.string(), std::filesystem::current_path(ignored).string()),
                "give its path, or name its folder in LD_LIBRARY_PATH");
  }
  Library(const Library&) = delete;
  ~Library() {
    if (handle_) dlclose(handle_);
  }

  const CustomOperatorLibrary& exports() const {
    const void* found = dlsym(handle_, symbol);
    if (!found) {
      refuse(fmt::format("it does not export '{}'", symbol), "define it with TENON_CUSTOM_OPERATORS");
    }
    return *static_cast<const CustomOperatorLibrary*>(found);
  }
  void keep() { handle_ = nullptr; }

  [[noreturn]] void refuse(const std::string& reason, const std::string& hint = "") const {
    throw Error(ErrorCode::invalid_library,
                fmt::format("library '{}' has no custom operators for this Tenon: {}", path_.string(), reason), hint);
  }

 private:
  const std::filesystem::path& path_;
  void* handle_ = nullptr;
};

}  // namespace

std::vector<CustomOperator> load_custom_operators(const std::filesystem::path& path) {
  Library library(path);
  const CustomOperatorLibrary& exports = library.exports();
  if (exports.tenon_version != version()) {
    library.refuse(fmt::format("it was built for version {}, this is {}", exports.tenon_version, version()),
                   "build it again with the headers of this version");
  }
  if (exports.standard_library != std::string_view(standard_library)) {
    library.refuse(fmt::format("it was built with {}, this with {}", exports.standard_library, standard_library),
                   "build it with the compiler settings of this build");
  }
  std::vector<CustomOperator> operators;
  library.keep();
  try {
    exports.list(operators);
  } catch (const std::exception& error) {
    library.refuse(fmt::format("it failed while it listed them: {}", error.what()));
  } catch (...) {
    library.refuse("it failed while it listed them, with an exception that is no std::exception");
  }
  return operators;
}

}  // namespace tenon
