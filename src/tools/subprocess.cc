#include "tools/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "base/fail.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): some systems do not declare it

namespace tenon::tools {
namespace {

class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) fail(ErrorCode::internal, "no pipe can be made: {}", std::strerror(errno));
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int end(size_t i) const { return ends_[i]; }
  void close_end(size_t i) {
    if (ends_[i] >= 0) close(std::exchange(ends_[i], -1));
  }
  // Whether there may be more.
  bool read_some(std::string& text) const {
    std::array<char, 1 << 16> buffer;
    const ssize_t count = read(ends_[0], buffer.data(), buffer.size());
    if (count > 0) text.append(buffer.data(), static_cast<size_t>(count));
    return count > 0 || (count < 0 && errno == EINTR);
  }

 private:
  std::array<int, 2> ends_ = {-1, -1};
};

// Both, as they come: a program that fills one pipe would wait for ever if the other was read first.
void read_both(const Pipe& out, std::string& out_text, const Pipe& error, std::string& error_text) {
  std::array<pollfd, 2> waited = {pollfd{out.end(0), POLLIN, 0}, pollfd{error.end(0), POLLIN, 0}};
  while (waited[0].fd >= 0 || waited[1].fd >= 0) {
    if (poll(waited.data(), waited.size(), -1) < 0 && errno != EINTR) return;
    if (waited[0].revents && !out.read_some(out_text)) waited[0].fd = -1;
    if (waited[1].revents && !error.read_some(error_text)) waited[1].fd = -1;
  }
}

using File = std::unique_ptr<std::FILE, decltype([](std::FILE* file) { std::fclose(file); })>;

// A file without a name, so that nobody need write while the program writes too.
File file_of(std::string_view text) {
  File file(std::tmpfile());
  if (!file || std::fwrite(text.data(), 1, text.size(), file.get()) != text.size() ||
      std::fseek(file.get(), 0, SEEK_SET) != 0)
    fail(ErrorCode::write_failed, "no temporary file can be written: {}", std::strerror(errno));
  return file;
}

}  // namespace

FinishedProcess run_program(const std::vector<std::string>& command, std::string_view input) {
  const File in = file_of(input);
  Pipe out, error;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fileno(in.get()), 0);
  posix_spawn_file_actions_adddup2(&actions, out.end(1), 1);
  posix_spawn_file_actions_adddup2(&actions, error.end(1), 2);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int problem = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) fail(ErrorCode::missing_file, "'{}' cannot be run: {}", command[0], std::strerror(problem));
  out.close_end(1);
  error.close_end(1);
  FinishedProcess done;
  read_both(out, done.out, error, done.error);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  done.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return done;
}

}  // namespace tenon::tools
