// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_DQN_CARTPOLE_FLAGS_H_
#define RILL_EXAMPLES_DQN_CARTPOLE_FLAGS_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "rill/examples/dqn_cartpole/config.h"

namespace rill::dqn_cartpole {

// The command line of dqn_cartpole, as the user meant it.
struct CommandLine {
  Config config = {};
  std::set<std::string> given = {};  // Members of Config that were set.
  std::string run_dir = {};          // Empty: choose one.
  bool resume = false;
};

// Parses argv. Unknown flags and values that are no numbers end the program
// with a message and exit code 1 (Abseil's rule). --help explains every flag
// and ends it with exit code 0. INVALID_ARGUMENT where a value is outside its
// range, two flags do not fit, or words are left over. Call once, from main.
absl::StatusOr<CommandLine> ParseFlags(int argc, char** argv);

}  // namespace rill::dqn_cartpole

#endif  // RILL_EXAMPLES_DQN_CARTPOLE_FLAGS_H_
