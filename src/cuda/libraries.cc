#include "cuda/libraries.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

namespace tenon::cuda {
namespace {

struct Wanted {
  std::string_view name, purpose, fix;
  std::vector<std::string> files;  // the newest version first
};

const Wanted wanted[] = {
    {"CUDA driver",
     "runs kernels",
     "install the NVIDIA driver; in a container, start it with --gpus all",
     {"libcuda.so.1"}},
    {"NVRTC",
     "compiles kernels",
     "install the CUDA toolkit 12 or 13, or the package nvidia-cuda-nvrtc of PyPI",
     {"libnvrtc.so.13", "libnvrtc.so.12"}},
    {"cuBLASLt",
     "multiplies matrices",
     "install the CUDA toolkit 12 or 13, or the package nvidia-cublas of PyPI",
     {"libcublasLt.so.13", "libcublasLt.so.12"}},
    {"cuDNN", "convolves images", "install cuDNN 9, or the package nvidia-cudnn-cu13 of PyPI", {"libcudnn.so.9"}},
};

std::vector<std::string> folders_of(std::string_view variable) {
  std::vector<std::string> folders;
  const char* text = std::getenv(std::string(variable).c_str());
  std::string_view rest = text ? text : "";
  while (!rest.empty()) {
    const size_t end = rest.find(':');
    if (end != 0) folders.emplace_back(rest.substr(0, end));
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
  }
  return folders;
}

void* open(const Wanted& library, LibraryReport& report) {
  std::vector<std::string> folders = folders_of("TENON_CUDA_PATH");
  const bool is_given = !folders.empty();
  // The loader's own search comes first where the user names no folder.
  if (!is_given) folders.emplace_back("");
  if (const char* toolkit = std::getenv("CUDA_PATH")) folders.push_back(std::string(toolkit) + "/lib64");
  folders.emplace_back("/usr/local/cuda/lib64");
  if (is_given) folders.emplace_back("");
  for (const std::string& folder : folders) {
    for (const std::string& file : library.files) {
      const std::string path = folder.empty() ? file : folder + "/" + file;
      void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      const char* problem = handle ? "" : dlerror();
      report.attempts.push_back({path, problem ? problem : "it cannot be opened"});
      if (!handle) continue;
      report.attempts.back().problem.clear();
      report.is_found = true;
      return handle;
    }
  }
  return nullptr;
}

Libraries open_all() {
  Libraries all;
  void* handles[4] = {};
  for (size_t i = 0; i < 4; ++i) {
    all.reports[i].name = wanted[i].name;
    all.reports[i].purpose = wanted[i].purpose;
    all.reports[i].fix = wanted[i].fix;
    handles[i] = open(wanted[i], all.reports[i]);
  }
  auto look_up = [&](Library library, const char* name) -> void* {
    const auto index = static_cast<size_t>(library);
    if (!handles[index]) return nullptr;
    void* address = dlsym(handles[index], name);
    LibraryReport& report = all.reports[index];
    if (!address && report.is_found) {
      report.is_found = false;
      report.attempts.back().problem = fmt::format("it has no function {}: it is too old", name);
    }
    return address;
  };
#define FUNCTION(library, name, result, parameters) \
  all.name = reinterpret_cast<decltype(all.name)>(look_up(Library::library, #name));
#include "cuda/functions.def"
#undef FUNCTION
  return all;
}

}  // namespace

const Libraries& libraries() {
  static const Libraries all = open_all();
  return all;
}

std::string what_is_missing(const Libraries& libraries) {
  std::string text;
  for (const LibraryReport& report : libraries.reports) {
    if (report.is_found) continue;
    text += fmt::format("{}{}, which {}, is not there (", text.empty() ? "" : "; ", report.name, report.purpose);
    for (size_t i = 0; i < report.attempts.size(); ++i)
      text += fmt::format("{}{}: {}", i == 0 ? "tried " : ", ", report.attempts[i].path, report.attempts[i].problem);
    text += fmt::format("); {}", report.fix);
  }
  return text;
}

}  // namespace tenon::cuda
