// SPDX-License-Identifier: Apache-2.0
// Soft actor-critic learns HalfCheetah-v5, with networks of LibTorch.
#include "rill/examples/torch_sac/half_cheetah_task.h"
#include "rill/examples/torch_sac/program.h"

int main(int argc, char** argv) {
  return rill::torch_sac::RunProgram(argc, argv,
                                     rill::torch_sac::HalfCheetahTask(), {});
}
