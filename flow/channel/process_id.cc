// SPDX-License-Identifier: Apache-2.0
#include "rill/flow/channel/process_id.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "rill/base/file_error.h"

namespace rill::channel_internal {
namespace {

struct Stat {
  bool is_known = false;  // There is such a process, and /proc tells.
  char state = 0;
  int threads = 0;
  uint32_t start = 0;
};

// One read, so that all fields are of one moment. 1024 bytes hold more than the
// 22 fields that are looked at.
Stat StatOf(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  const base_internal::FileDescriptor file(
      open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[1024];
  const ssize_t size =
      file.is_open() ? read(file.get(), text, sizeof(text) - 1) : 0;
  if (size <= 0) return {};
  text[size] = 0;
  // proc(5): the name in parentheses may hold any character.
  const char* const name_end = std::strrchr(text, ')');
  Stat stat;
  unsigned long long start = 0;  // NOLINT(runtime/int): what %llu wants.
  stat.is_known =
      name_end != nullptr &&
      std::sscanf(name_end + 1,
                  " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                  "%*s %*s %*s %d %*s %llu",
                  &stat.state, &stat.threads, &start) == 3;
  stat.start = static_cast<uint32_t>(start);
  return stat;
}

uint64_t WordOf(pid_t pid, uint32_t start) {
  return uint64_t{start} << 32 | static_cast<uint32_t>(pid);
}

}  // namespace

ProcessId ProcessId::Mine() {
  return ProcessId(WordOf(getpid(), StatOf(getpid()).start));
}

bool ProcessId::IsAlive() const {
  if (pid() <= 0) return false;
  // The cheap question first. EPERM: there is such a process, of another user.
  if (kill(pid(), 0) != 0 && errno != EPERM) return false;
  const Stat stat = StatOf(pid());
  // It may have ended since, or there is no /proc and kill's answer has to do.
  if (!stat.is_known) return access("/proc/self/stat", F_OK) != 0;
  // A first thread that ended is a zombie too while others run.
  const bool has_ended =
      (stat.state == 'Z' && stat.threads <= 1) || stat.state == 'X';
  return !has_ended && WordOf(pid(), stat.start) == word_;
}

}  // namespace rill::channel_internal
