// SPDX-License-Identifier: Apache-2.0
//
// ppo_half_cheetah: see README.md, or --help.

#include "rill/examples/ppo/half_cheetah_task.h"
#include "rill/examples/ppo/program.h"

int main(int argc, char** argv) {
  return rill::ppo::RunProgram(argc, argv, rill::ppo::HalfCheetahTask());
}
