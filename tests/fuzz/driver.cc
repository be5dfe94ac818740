// Runs a fuzz target for some seconds on mutations of seed files: a plain program, so that it builds with any compiler.
//
//   fuzz_NAME [--seconds N] [--seed N] [FILE or FOLDER…]
//
// Each input has ten seconds; a crash, a hang or an uncaught exception ends the program, after writing the input to
// fuzz_NAME.crash. With clang, a target also links with -fsanitize=fuzzer instead of this file.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// Inputs to start from when no files are given.
std::vector<std::string> fuzz_seeds();

// Sanitizers abort on what they find, so that the input is written.
extern "C" const char* __asan_default_options() { return "abort_on_error=1:allocator_may_return_null=1"; }
extern "C" const char* __ubsan_default_options() { return "abort_on_error=1:print_stacktrace=1"; }

namespace {

std::string current;
std::string crash_file;

void on_signal(int number) {
  if (FILE* file = std::fopen(crash_file.c_str(), "wb")) {
    std::fwrite(current.data(), 1, current.size(), file);
    std::fclose(file);
  }
  std::fprintf(stderr, "signal %d; the input is in %s\n", number, crash_file.c_str());
  signal(number, SIG_DFL);
  raise(number == SIGALRM ? SIGABRT : number);
}

using Generator = std::mt19937_64;

size_t below(Generator& g, size_t n) { return n == 0 ? 0 : g() % n; }

// Positions of protobuf fields, nested ones included: mutating there keeps the rest readable.
struct Field {
  size_t tag, content, size;
  bool is_number;  // a varint, which has no length before it
};

void find_fields(const std::string& bytes, size_t begin, size_t end, int depth, std::vector<Field>& fields) {
  size_t at = begin;
  auto varint = [&](uint64_t& value) {
    value = 0;
    for (int shift = 0; at < end && shift < 64; shift += 7) {
      auto byte = static_cast<uint8_t>(bytes[at++]);
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return true;
    }
    return false;
  };
  while (at < end) {
    size_t tag_at = at;
    uint64_t tag, value;
    if (!varint(tag) || tag >> 3 == 0) return;
    if ((tag & 7) == 0) {
      size_t number_at = at;
      if (!varint(value)) return;
      fields.push_back({tag_at, number_at, at - number_at, true});
    } else if ((tag & 7) == 1) {
      at += 8;
    } else if ((tag & 7) == 5) {
      at += 4;
    } else if ((tag & 7) == 2) {
      if (!varint(value) || value > end - at) return;
      fields.push_back({tag_at, at, value, false});
      if (depth < 8 && value > 1) find_fields(bytes, at, at + value, depth + 1, fields);
      at += value;
    } else {
      return;
    }
  }
}

std::string encode_varint(uint64_t value) {
  std::string out;
  while (value > 127) {
    out += static_cast<char>(value | 128);
    value >>= 7;
  }
  return out + static_cast<char>(value);
}

// Replaces a field's content and mends the lengths around it.
std::string replace_content(const std::string& bytes, const std::vector<Field>& fields, const Field& field,
                            const std::string& content) {
  std::string result = bytes;
  result.replace(field.content, field.size, content);
  int64_t change = static_cast<int64_t>(content.size()) - static_cast<int64_t>(field.size);
  for (size_t i = fields.size(); i-- > 0;) {
    const Field& outer = fields[i];
    bool contains = outer.content <= field.tag && field.content + field.size <= outer.content + outer.size;
    bool same = outer.tag == field.tag;
    if (outer.is_number || (!contains && !same)) continue;
    size_t length_at = outer.tag;
    while (static_cast<uint8_t>(bytes[length_at]) >= 128) ++length_at;
    ++length_at;
    std::string length = encode_varint(outer.size + static_cast<uint64_t>(change));
    size_t old = outer.content - length_at;
    result.replace(length_at, old, length);
    change += static_cast<int64_t>(length.size()) - static_cast<int64_t>(old);
  }
  return result;
}

std::string mutate(std::string bytes, const std::vector<std::string>& seeds, Generator& g) {
  static const int64_t special[] = {
      0,        1,  2,  3,   4,   5,   7,     8,          10,         16,         64,
      -1,       -2, -3, 127, 128, 255, 65535, 0x7fffffff, 0x80000000, 0xffffffff, int64_t{1} << 40,
      INT64_MAX};
  size_t rounds = 1 + below(g, 4);
  for (size_t round = 0; round < rounds && !bytes.empty(); ++round) {
    switch (below(g, 16)) {
      case 0:
        bytes[below(g, bytes.size())] = static_cast<char>(g());
        break;
      case 1:
        bytes[below(g, bytes.size())] ^= static_cast<char>(1 << below(g, 8));
        break;
      case 2:
        bytes.erase(below(g, bytes.size()), 1 + below(g, 16));
        break;
      case 3:
        bytes.insert(below(g, bytes.size()), std::string(1 + below(g, 8), static_cast<char>(g())));
        break;
      case 4:
        bytes.resize(below(g, bytes.size()));
        break;
      case 5: {  // a number somewhere becomes a special one
        std::string number = encode_varint(static_cast<uint64_t>(special[below(g, std::size(special))]));
        size_t at = below(g, bytes.size());
        bytes.replace(at, std::min(number.size(), bytes.size() - at), number);
        break;
      }
      default: {  // a field is emptied, doubled, replaced by another one or by numbers
        std::vector<Field> fields, others;
        find_fields(bytes, 0, bytes.size(), 0, fields);
        if (fields.empty()) break;
        const Field& field = fields[below(g, fields.size())];
        std::string content = bytes.substr(field.content, field.size);
        const std::string& other = seeds[below(g, seeds.size())];
        switch (field.is_number ? 2 : below(g, 5)) {
          case 0:
            content.clear();
            break;
          case 1:
            content += content;
            break;
          case 2:
            content = encode_varint(static_cast<uint64_t>(special[below(g, std::size(special))]));
            break;
          case 3:
            if (!content.empty()) content[below(g, content.size())] = static_cast<char>(g());
            break;
          default:
            find_fields(other, 0, other.size(), 0, others);
            if (!others.empty()) {
              const Field& from = others[below(g, others.size())];
              content = other.substr(from.content, from.size);
            }
        }
        if (bytes.size() + content.size() < (1 << 20)) bytes = replace_content(bytes, fields, field, content);
      }
    }
  }
  return bytes;
}

void add_file(const std::filesystem::path& path, std::vector<std::string>& seeds) {
  if (std::filesystem::file_size(path) > 100000) return;
  std::ifstream file(path, std::ios::binary);
  seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 10;
  uint64_t seed = 1;
  std::vector<std::string> seeds;
  crash_file = std::filesystem::path(argv[0]).filename().string() + ".crash";
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "--seconds" && i + 1 < argc) {
      seconds = std::atof(argv[++i]);
    } else if (argument == "--seed" && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (std::filesystem::is_directory(argument)) {
      // In order of name, so that a seed means the same on every machine.
      std::vector<std::filesystem::path> models;
      for (const auto& entry : std::filesystem::recursive_directory_iterator(argument)) {
        if (entry.path().extension() == ".onnx" && !entry.is_directory()) models.push_back(entry.path());
      }
      std::ranges::sort(models);
      for (const auto& model : models) add_file(model, seeds);
    } else if (std::filesystem::exists(argument)) {
      add_file(argument, seeds);
    } else {
      std::printf("%s does not exist and is left out\n", argument.c_str());
    }
  }
  bool replay = !seeds.empty() && argc == 2 && std::filesystem::is_regular_file(argv[1]);
  if (seeds.empty()) seeds = fuzz_seeds();
  // A replay leaves signals to the sanitizer or debugger.
  std::vector<int> caught =
      replay ? std::vector<int>{} : std::vector<int>{SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL, SIGTRAP, SIGALRM};
  for (int number : caught) signal(number, on_signal);

  Generator generator(seed);
  auto start = std::chrono::steady_clock::now();
  auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  size_t count = 0;
  rusage usage{};
  for (; replay ? count < 1 : elapsed() < seconds; ++count) {
    const std::string& base = seeds[count < seeds.size() ? count : below(generator, seeds.size())];
    current = count < seeds.size() ? base : mutate(base, seeds, generator);
    alarm(10);
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(current.data()), current.size());
    alarm(0);
    getrusage(RUSAGE_SELF, &usage);
    if (usage.ru_maxrss > 4 << 20) {  // in KB
      std::fprintf(stderr, "an input took more than 4 GB of memory\n");
      on_signal(SIGABRT);
    }
  }
  std::printf("%zu inputs in %.1f s, %ld MB at most\n", count, elapsed(), usage.ru_maxrss >> 10);
  return 0;
}
