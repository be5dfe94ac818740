// Names of files that the stand-in for NVIDIA's libraries writes and reads at once.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

inline std::string temporary_name() {
  static std::atomic<int> count = 0;
  const char* folder = std::getenv("TMPDIR");
  return std::string(folder ? folder : "/tmp") + "/tenon_emulated_" + std::to_string(getpid()) + "_" +
         std::to_string(++count);
}
