// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_PPO_PROGRAM_H_
#define RILL_EXAMPLES_PPO_PROGRAM_H_

#include "rill/examples/ppo/task.h"

namespace rill::ppo {

// The main function of a program that learns `task`: flags, the run, a report.
// Ctrl-C stops the run. Returns 0 where the evaluation reached solve_return, 1
// where it did not, where the run was stopped, or with an error.
int RunProgram(int argc, char** argv, const Task& task);

}  // namespace rill::ppo

#endif  // RILL_EXAMPLES_PPO_PROGRAM_H_
