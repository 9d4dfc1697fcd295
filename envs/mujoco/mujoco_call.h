// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_MUJOCO_MUJOCO_CALL_H_
#define RILL_ENVS_MUJOCO_MUJOCO_CALL_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace rill::envs_internal {

// Runs functions of MuJoCo. An error that would end the program there is
// INTERNAL with MuJoCo's text here; warnings are in mjData and not printed.
//
// `call` leaves by longjmp then: it calls MuJoCo and owns nothing. The data
// that MuJoCo worked on may only be reset or deleted. Thread-safety:
// thread-safe. MuJoCo's log handler is one of ours from the
//   first call on; it hands what others' calls say to the handler before it.
// Cost: one setjmp.
absl::Status CallMujoco(absl::FunctionRef<void()> call);

}  // namespace rill::envs_internal

#endif  // RILL_ENVS_MUJOCO_MUJOCO_CALL_H_
