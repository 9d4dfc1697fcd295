// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/mujoco/mujoco_call.h"

#include <csetjmp>
#include <cstring>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "mujoco/mujoco.h"
#include "rill/base/status_macros.h"

// MuJoCo calls its log handler for an error and then ends the program if the
// handler returns. The handler here does not return: it jumps back to the call.
// The frames between are MuJoCo's, in C, and those of a function that owns
// nothing; no destructor is skipped.

namespace rill::envs_internal {
namespace {

struct Recovery {
  std::jmp_buf place;
  char error[sizeof(mjLogMessage::subject)];
};

// That of the call which this thread is in.
thread_local Recovery* recovery = nullptr;

mjfLogHandler HandlerBefore();

void HandleLog(const mjLogMessage* message) {
  if (recovery == nullptr) return HandlerBefore()(message);
  if (message->level != mjLOG_ERROR) return;
  std::memcpy(recovery->error, message->subject, sizeof(recovery->error));
  std::longjmp(recovery->place, 1);
}

// Installs ours with the first call.
mjfLogHandler HandlerBefore() {
  static const mjfLogHandler before = mju_setLogHandler(&HandleLog);
  return before;
}

// Whether it came back as usual. A frame of its own: nothing in it changes
// between setjmp and longjmp.
bool Completes(Recovery* here, absl::FunctionRef<void()> call) {
  if (setjmp(here->place) != 0) return false;
  call();
  return true;
}

}  // namespace

absl::Status CallMujoco(absl::FunctionRef<void()> call) {
  HandlerBefore();
  Recovery here;
  recovery = &here;
  // Not for calls inside of calls: the inner one would leave the outer one
  // without its place to return to.
  const bool completed = Completes(&here, call);
  recovery = nullptr;
  if (completed) return absl::OkStatus();
  return Internal("MuJoCo: ", here.error);
}

}  // namespace rill::envs_internal
