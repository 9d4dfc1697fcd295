// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_TORCH_SAC_PROGRAM_H_
#define RILL_EXAMPLES_TORCH_SAC_PROGRAM_H_

#include "rill/examples/torch_sac/trainer.h"
#include "rill/examples/torch_sac/worker.h"

namespace rill::torch_sac {

// The main function of a program that learns `task`: flags, the run, a report.
// Ctrl-C saves and stops. Returns 0 where the run was solved or stopped, else
// 1. In a worker process it is the whole program.
int RunProgram(int argc, char** argv, const Task& task, const Config& defaults);

}  // namespace rill::torch_sac

#endif  // RILL_EXAMPLES_TORCH_SAC_PROGRAM_H_
