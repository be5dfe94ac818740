// The stand-in's NVRTC: the system's C++ compiler, for kernels that the host calls.
#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/libraries.h"
#include "temporary_name.h"

namespace {

using tenon::cuda::Handle;
using tenon::cuda::Result;

constexpr Result success = 0;

struct Program {
  std::string source, log, image;
};

std::string read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

// Types of the parameters, which stand between the parentheses after a kernel's name.
std::vector<std::string> parameter_types(const std::string& source, size_t begin) {
  std::vector<std::string> types;
  std::string text;
  int depth = 0;
  for (size_t i = begin;; ++i) {
    const char c = source[i];
    if (depth == 0 && (c == ',' || c == ')')) {
      const size_t last = text.find_last_not_of(" \n");
      size_t name = last;
      while (name != std::string::npos && (std::isalnum(text[name]) || text[name] == '_')) --name;
      if (last != std::string::npos) types.push_back(text.substr(0, name + 1));
      text.clear();
      if (c == ')') return types;
      continue;
    }
    if (c == '<') ++depth;
    if (c == '>') --depth;
    text += c;
  }
}

// The functions that call a kernel with a list of pointers to its arguments.
std::string callers(const std::string& source) {
  constexpr std::string_view mark = "__global__ void ";
  std::string text = "extern \"C\" const char* tenon_kernels = \"";
  std::string functions;
  for (size_t at = source.find(mark); at != std::string::npos; at = source.find(mark, at + 1)) {
    size_t begin = at + mark.size();
    if (source.compare(begin, 17, "__launch_bounds__") == 0) begin = source.find(") ", begin) + 2;
    const size_t end = source.find('(', begin);
    const std::string name = source.substr(begin, end - begin);
    const std::vector<std::string> types = parameter_types(source, end + 1);
    text += name + " ";
    functions += "extern \"C\" void " + name + "_call(void** a) { " + name + "(";
    std::string sizes;
    for (size_t i = 0; i < types.size(); ++i) {
      functions += (i ? ", " : "") + ("*(" + types[i] + "*)a[" + std::to_string(i)) + "]";
      sizes += (i ? ", " : "") + ("sizeof(" + types[i]) + ")";
    }
    functions += "); }\nextern \"C\" const size_t " + name + "_sizes[] = {" + sizes + (sizes.empty() ? "0" : "") +
                 "};\nextern \"C\" const int " + name + "_count = " + std::to_string(types.size()) + ";\n";
  }
  const bool waits = source.find("__sync") != std::string::npos || source.find("__shfl") != std::string::npos;
  const bool begins = source.find("begin_kernel();", source.find(mark)) != std::string::npos;
  return text + "\";\nextern \"C\" const int tenon_waits = " + (waits ? "1" : "0") +
         ", tenon_begins = " + (begins ? "1" : "0") + ";\n" + functions;
}

}  // namespace

extern "C" {

// Compiled kernels are kept by the compiler's version: what they are compiled with is part of it.
Result nvrtcVersion(int* major, int* minor) {
  static const int version = [] {
    std::ifstream file(TENON_EMULATED_KERNELS, std::ios::binary);
    uint32_t hash = 2166136261;
    for (char c; file.get(c);) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
    return static_cast<int>(hash & 0x7fffffff);
  }();
  return *major = 0, *minor = version, success;
}
const char* nvrtcGetErrorString(Result) { return "NVRTC_ERROR_COMPILATION"; }
Result nvrtcCreateProgram(Handle* program, const char* source, const char*, int, const char* const*,
                          const char* const*) {
  return *program = new Program{source, "", ""}, success;
}
Result nvrtcCompileProgram(Handle handle, int, const char* const*) {
  auto& program = *static_cast<Program*>(handle);
  const std::string name = temporary_name();
  // For those who want to see, or try with another compiler, what is compiled.
  if (const char* folder = std::getenv("TENON_EMULATED_SOURCES"))
    std::ofstream(std::string(folder) + "/" + std::to_string(std::hash<std::string>()(program.source)) + ".cu")
        << program.source;
  std::ofstream(name + ".cc") << program.source << callers(program.source);
  const std::string command =
      std::string(TENON_EMULATED_COMMAND " -shared ") + name + ".cc -o " + name + ".so 2> " + name + ".log";
  const int status = std::system(command.c_str());
  program.log = read_file(name + ".log");
  program.image = read_file(name + ".so");
  for (const char* ending : {".cc", ".so", ".log"}) unlink((name + ending).c_str());
  return status == 0 ? success : 6;
}
Result nvrtcGetProgramLogSize(Handle program, size_t* size) {
  return *size = static_cast<Program*>(program)->log.size() + 1, success;
}
Result nvrtcGetProgramLog(Handle program, char* log) {
  return std::strcpy(log, static_cast<Program*>(program)->log.c_str()), success;
}
Result nvrtcGetCUBINSize(Handle program, size_t* size) {
  return *size = static_cast<Program*>(program)->image.size() + sizeof(uint64_t), success;
}
Result nvrtcGetCUBIN(Handle program, char* image) {
  const std::string& from = static_cast<Program*>(program)->image;
  const uint64_t size = from.size();
  std::memcpy(image, &size, sizeof size);
  from.copy(image + sizeof size, from.size());
  return success;
}
Result nvrtcDestroyProgram(Handle* program) { return delete static_cast<Program*>(*program), success; }

}  // extern "C"
