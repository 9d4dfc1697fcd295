// SPDX-License-Identifier: Apache-2.0
#include "rill/base/process/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/process/poll_until.h"
#include "rill/base/status_macros.h"

namespace rill {
namespace {

constexpr int kFirstDescriptor = 3;

absl::Status StartError(absl::string_view program, int error) {
  return Unavailable("ChildProcess::Start: \"", program,
                     "\": ", std::strerror(error));
}

// Copies of descriptors above those that the child gets. With the originals, a
// dup2 to 3 + i could overwrite one that is still to be copied.
class Copies {
 public:
  explicit Copies(const std::vector<int>& descriptors) {
    const int above = kFirstDescriptor + static_cast<int>(descriptors.size());
    for (const int fd : descriptors) {
      copies_.push_back(fcntl(fd, F_DUPFD_CLOEXEC, above));
      if (copies_.back() < 0 && error_ == 0) error_ = errno;
    }
  }
  ~Copies() {
    for (const int fd : copies_) {
      if (fd >= 0) close(fd);
    }
  }
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  int error() const { return error_; }
  const std::vector<int>& copies() const { return copies_; }

 private:
  std::vector<int> copies_;
  int error_ = 0;
};

absl::string_view NameOf(absl::string_view entry) {
  return entry.substr(0, entry.find('='));
}

// This process's environment, with `changes`. A later entry replaces one of its
// name, as programs differ in which of two they take. Points into `environ` and
// `changes`. O(n^2) in the number of entries.
std::vector<char*> EnvironmentWith(const std::vector<std::string>& changes) {
  std::vector<char*> entries;
  const auto set = [&entries](char* entry) {
    const auto is_same = [entry](const char* other) {
      return NameOf(other) == NameOf(entry);
    };
    const auto at = std::find_if(entries.begin(), entries.end(), is_same);
    if (at == entries.end()) {
      entries.push_back(entry);
    } else {
      *at = entry;
    }
  };
  for (char** entry = environ; *entry != nullptr; ++entry) set(*entry);
  for (const std::string& entry : changes)
    set(const_cast<char*>(entry.c_str()));
  entries.push_back(nullptr);
  return entries;
}

// Starts the program; returns 0 or the errno. The copies are of
// options.descriptors, then of options.output where there is one. None of this
// program's code runs in the child before the exec (posix_spawn), so locks that
// other threads hold do not matter. A fork would copy the page tables besides.
int Spawn(const ChildProcess::Options& options, const std::vector<int>& copies,
          pid_t* pid) {
  std::vector<char*> argv = {const_cast<char*>(options.program.c_str())};
  for (const std::string& argument : options.arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (options.output >= 0) {
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, copies.back(), 1);
    posix_spawn_file_actions_adddup2(&actions, copies.back(), 2);
  }
  for (size_t i = 0; i < options.descriptors.size(); ++i) {
    posix_spawn_file_actions_adddup2(&actions, copies[i],
                                     kFirstDescriptor + static_cast<int>(i));
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // The calling thread may block signals; the child would inherit that. A group
  // of its own lets Kill reach what the child has started.
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  const int error =
      posix_spawnp(pid, options.program.c_str(), &actions, &attributes,
                   argv.data(), EnvironmentWith(options.environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return error;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(
    const Options& options) {
  std::vector<int> descriptors = options.descriptors;
  if (options.output >= 0) descriptors.push_back(options.output);
  const Copies copies(descriptors);
  if (copies.error() != 0) return StartError(options.program, copies.error());
  pid_t pid = -1;
  if (const int error = Spawn(options, copies.copies(), &pid); error != 0) {
    return StartError(options.program, error);
  }
  // The child is not waited for yet, so its number cannot be another's. A pidfd
  // can be polled beside sockets. SIGCHLD would need a handler for the whole
  // process.
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  const int error = errno;
  // Before the check, so that an early return kills the child.
  auto child = absl::WrapUnique(new ChildProcess(pid, pidfd));
  if (pidfd < 0) return StartError(options.program, error);
  return child;
}

ChildProcess::~ChildProcess() {
  Kill();
  if (pidfd_ >= 0) close(pidfd_);
}

bool ChildProcess::WaitForEnd(absl::Time deadline) const {
  if (!end_.empty()) return true;
  pollfd end = {pidfd_, POLLIN, 0};
  return PollUntil({&end, 1}, deadline) > 0;
}

const std::string& ChildProcess::Kill() {
  if (!end_.empty()) return end_;
  siginfo_t info = {};
  // WNOWAIT only looks: the number stays the child's until waitpid below, so
  // neither kill can hit another process or group.
  const bool ended =
      waitid(P_PID, pid_, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      info.si_pid == pid_;
  kill(-pid_, SIGKILL);
  kill(pid_, SIGKILL);  // It may have left its group.
  while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
  }
  if (!ended) {
    end_ = "was killed";
  } else if (WIFEXITED(status_)) {
    end_ = absl::StrCat("ended with exit status ", WEXITSTATUS(status_));
  } else {
    end_ = absl::StrCat("ended by signal ", WTERMSIG(status_));
  }
  return end_;
}

}  // namespace rill
