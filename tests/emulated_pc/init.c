// The first process of the emulated PC: runs /program with the arguments of /arguments, one in a line, says how it ended
// and switches the PC off.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { most_arguments = 64, longest = 8192 };

int main(void) {
  mkdir("/proc", 0755);
  mount("proc", "/proc", "proc", 0, NULL);
  mkdir("/tmp", 0755);

  static char text[longest];
  FILE* file = fopen("/arguments", "r");
  if (file) text[fread(text, 1, longest - 1, file)] = 0;
  char* arguments[most_arguments + 2] = {"/program"};
  int count = 1;
  for (char* line = strtok(text, "\n"); line && count <= most_arguments; line = strtok(NULL, "\n"))
    arguments[count++] = line;

  const pid_t child = fork();
  if (child == 0) {
    execv("/program", arguments);
    perror("/program");
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  printf("\nexit status: %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  fflush(stdout);
  tcdrain(STDOUT_FILENO);
  sleep(1);
  reboot(RB_POWER_OFF);
  return 1;
}
