// SPDX-License-Identifier: Apache-2.0
//
// ppo_cart_pole: see README.md, or --help.

#include "rill/examples/ppo/cart_pole_task.h"
#include "rill/examples/ppo/program.h"

int main(int argc, char** argv) {
  return rill::ppo::RunProgram(argc, argv, rill::ppo::CartPoleTask());
}
