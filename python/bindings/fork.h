// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_PYTHON_BINDINGS_FORK_H_
#define RILL_PYTHON_BINDINGS_FORK_H_

#include <pthread.h>

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/python/bindings/status.h"

namespace rill::python {

// Tells a child process what it must not use: an object whose threads stayed
// with the parent, or in the middle of a call that another thread had made. All
// else is a copy of the parent's, and goes on by itself.
// Thread-safety: all calls hold the interpreter's lock.
class ForkGuard {
 public:
  // `what` begins the message.
  explicit ForkGuard(bool has_threads, absl::string_view what = "ReplayBuffer")
      : what_(what), has_threads_(has_threads), forks_(Forks()) {}

  // A call that lets go of the interpreter's lock.
  class Call {
   public:
    explicit Call(ForkGuard* guard) : guard_(guard) { ++guard_->calls_; }
    ~Call() { --guard_->calls_; }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    ForkGuard* const guard_;
  };

  int64_t calls() const { return calls_; }
  // Not even its destructor may be called.
  bool is_stranded() const {
    return forks_ != Forks() && (has_threads_ || calls_ != 0);
  }
  // Throws FAILED_PRECONDITION.
  void Check() {
    if (forks_ == Forks()) return;
    if (is_stranded()) {
      throw StatusError{FailedPrecondition(
          what_, ": got one of the parent process, ",
          has_threads_ ? "whose threads stayed there"
                       : "which was in a call of another thread",
          "; make it in this process, or start the process by \"spawn\"")};
    }
    forks_ = Forks();
  }

 private:
  // How often this process and those before it were forked.
  static int64_t Forks() {
    static const int registered = pthread_atfork(nullptr, nullptr, &Count);
    return registered == 0 ? count_ : 0;
  }
  static void Count() { ++count_; }
  static inline int64_t count_ = 0;

  const std::string what_;
  const bool has_threads_;
  int64_t forks_;
  int64_t calls_ = 0;
};

}  // namespace rill::python

#endif  // RILL_PYTHON_BINDINGS_FORK_H_
