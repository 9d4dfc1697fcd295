// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BASE_PROCESS_CHILD_PROCESS_H_
#define RILL_BASE_PROCESS_CHILD_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace rill {

// A process that this one started. It ends with this object at the latest, and
// is the first of a process group, so that what it started ends with it.
//
// It outlives this process where that is killed: give it the reading end of a
// pipe whose other end stays here, and have it end when that closes.
//
// Thread-safety: thread-compatible. May be started by any thread: nothing runs
//   between fork and exec (posix_spawn).
// Cost: under a millisecond, whatever memory this process has.
//
// Example (ChildProcessTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       auto child, ChildProcess::Start({.program = "/bin/sh",
//                                        .arguments = {"-c", "exit 3"}}));
//   child->WaitForEnd(absl::Now() + absl::Seconds(60));
//   child->Kill();  // "ended with exit status 3"
class ChildProcess {
 public:
  struct Options {
    std::string program;  // A path, or a name that PATH knows.
    std::vector<std::string> arguments = {};
    // "NAME=value", in place of those of this process and of earlier entries.
    std::vector<std::string> environment = {};
    // The child has descriptors[i] of this process as 3 + i, and inherits the
    // first three besides. No other is its own that is closed on exec.
    std::vector<int> descriptors = {};
    // Not -1: takes its output and its errors, and its input is empty.
    int output = -1;
  };

  // UNAVAILABLE names the program and the system's reason.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(
      const Options& options);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Whether it has ended, by itself, until `deadline` (base/clock.h's Steady).
  bool WaitForEnd(absl::Time deadline) const;
  // Ends it with its group (SIGKILL), where it has not ended, and waits for
  // that. How it ended: "ended with exit status 3", "ended by signal 11", "was
  // killed". May be called again.
  const std::string& Kill();
  // After Kill: as waitpid gives it, for WIFSIGNALED and others.
  int status() const { return status_; }

  pid_t pid() const { return pid_; }
  // For poll(2): has input (POLLIN) from when the process has ended.
  int pidfd() const { return pidfd_; }

 private:
  ChildProcess(pid_t pid, int pidfd) : pid_(pid), pidfd_(pidfd) {}

  const pid_t pid_;
  const int pidfd_;
  int status_ = 0;
  std::string end_;  // Empty: not waited for yet, the number is still its own.
};

}  // namespace rill

#endif  // RILL_BASE_PROCESS_CHILD_PROCESS_H_
