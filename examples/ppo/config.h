// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_PPO_CONFIG_H_
#define RILL_EXAMPLES_PPO_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/examples/program/config_field.h"

namespace rill::ppo {

// All that decides how a run goes. Each task has defaults of its own (task.h).
struct Config {
  int64_t seed = 0;
  // Collecting.
  int64_t lanes = 8;
  int64_t steps_per_round = 32;  // A lane.
  int64_t total_steps = 200'000;
  bool in_worker = false;
  bool normalize_observation = false;
  bool normalize_reward = false;
  // Learning.
  int64_t epochs = 4;
  int64_t minibatches = 4;
  double learning_rate = 2.5e-4;
  bool anneal_learning_rate = true;
  double gamma = 0.99;
  double gae_lambda = 0.95;
  double clip = 0.2;
  bool clip_value_loss = true;
  double entropy_coefficient = 0;
  double value_coefficient = 0.5;
  double max_gradient_norm = 0.5;
  // Judging.
  int64_t evaluation_episodes = 100;
  double solve_return = 475;
  int64_t log_every = 2560;
};

// All members by their flags' names. `config` must outlive the result.
std::vector<examples::ConfigField> FieldsOf(Config* config);

// INVALID_ARGUMENT names the flag, its value and the range; also where two
// flags do not fit each other.
absl::Status ValidateConfig(const Config& config);

// A command line, as the user meant it.
struct CommandLine {
  Config config = {};
  std::string run_dir = {};  // Empty: write no files.
  bool help = false;
};

// Reads flags over `defaults` (examples/program/config_field.h).
// INVALID_ARGUMENT also for what ValidateConfig refuses.
absl::StatusOr<CommandLine> ParseFlags(absl::Span<const char* const> words,
                                       const Config& defaults);

// Every flag with its explanation and its default.
std::string FormatHelp(const Config& defaults);

}  // namespace rill::ppo

#endif  // RILL_EXAMPLES_PPO_CONFIG_H_
