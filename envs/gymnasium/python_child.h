// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_GYMNASIUM_PYTHON_CHILD_H_
#define RILL_ENVS_GYMNASIUM_PYTHON_CHILD_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "rill/base/process/child_process.h"

namespace rill::gymnasium_internal {

// A Python process that answers commands. It has a socket at descriptor 3, and
// at 4 a pipe whose other end closes with this object or with this process.
// A message to this process is its length (uint32) and text.
// Thread-safety: thread-compatible.
class PythonChild {
 public:
  // `environment`: "NAME=value", in place of those of this process.
  static absl::StatusOr<std::unique_ptr<PythonChild>> Start(
      const std::string& python, const char* script,
      const std::vector<std::string>& args,
      const std::vector<std::string>& environment);
  // The child may end by itself for at most two seconds; then it is killed.
  ~PythonChild();
  // The same for several that are not null, which share the two seconds.
  static void EndAll(absl::Span<const std::unique_ptr<PythonChild>> children);
  PythonChild(const PythonChild&) = delete;
  PythonChild& operator=(const PythonChild&) = delete;

  // UNAVAILABLE where the child is gone.
  absl::Status Send(absl::string_view bytes);
  // Length and text, with a descriptor.
  absl::Status SendWithDescriptor(absl::string_view text, int fd);

  // Waits for one message of each child. A child that ends, or sends nothing
  // until `deadline`, is killed: UNAVAILABLE or DEADLINE_EXCEEDED with its last
  // output. One result for each of `children`. It does not sleep, but looks
  // again, while `is_near` is true.
  static std::vector<absl::StatusOr<std::string>> Receive(
      absl::Span<PythonChild* const> children, absl::Time deadline,
      absl::FunctionRef<bool()> is_near = [] { return false; });

  pid_t pid() const { return process_->pid(); }

 private:
  PythonChild() = default;
  // Closes the sockets, and waits for two seconds at most.
  static void WaitForEnds(absl::Span<PythonChild* const> children);
  void DrainLog();
  // Until there is a message, or no more for now. False at its end.
  bool ReadSocket();
  bool HasMessage() const;
  std::string TakeMessage();
  // How it ended and its last output. End waits for that up to a second, since
  // a socket closes a little before its process has ended.
  std::string Kill();
  std::string End(absl::Time deadline = absl::InfiniteFuture());

  std::unique_ptr<ChildProcess> process_;
  std::string end_;  // Empty: not known yet.
  int socket_ = -1;
  int life_ = -1;
  int log_fd_ = -1;
  std::string log_;
  std::string inbox_;
};

}  // namespace rill::gymnasium_internal

#endif  // RILL_ENVS_GYMNASIUM_PYTHON_CHILD_H_
