// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_DQN_CARTPOLE_CONFIG_H_
#define RILL_EXAMPLES_DQN_CARTPOLE_CONFIG_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/examples/program/config_field.h"

namespace rill::dqn_cartpole {

// Everything that decides how a run goes. The defaults solve CartPole-v1 for
// any seed (README.md has the figures).
//
// Rewards are scaled by 1 - gamma, so that values lie in [0, 1] whatever the
// horizon. The loss is then quadratic nearly everywhere, and one learning rate
// fits the whole run.
struct Config {
  int64_t seed = 0;
  // Collecting.
  int64_t lanes = 16;
  int64_t frames_per_batch = 64;
  int64_t init_random_frames = 1024;
  int64_t epsilon_frames = 10'000;
  double final_epsilon = 0.04;
  double reward_scale = 0.01;
  // Remembering.
  int64_t capacity = 50'000;
  int64_t batch_size = 128;
  // Learning.
  int64_t updates_per_batch = 16;
  double learning_rate = 1e-3;
  double gamma = 0.99;
  double target_tau = 0.01;
  double max_gradient_norm = 10;
  // Judging.
  int64_t probe_every = 4096;
  int64_t probe_episodes = 20;
  int64_t evaluation_episodes = 100;
  double solve_return = 475;
  // Stopping and saving: these do not bend the curve and may change on resume.
  int64_t max_steps = 500'000;
  int64_t checkpoint_every = 50'000;

  friend bool operator==(const Config&, const Config&) = default;
};

// All members by their flags' names, which a checkpoint uses too. `config` must
// outlive the result.
std::vector<examples::ConfigField> FieldsOf(Config* config);

// INVALID_ARGUMENT names the flag, its value and the range; also where two
// flags do not fit each other.
absl::Status ValidateConfig(const Config& config);

// The command line of dqn_cartpole, as the user meant it.
struct CommandLine {
  Config config = {};
  std::set<std::string> given = {};  // Names of the flags that were set.
  std::string run_dir = {};          // Empty: choose one.
  bool resume = false;
  bool help = false;
};

// Reads flags (examples/program/config_field.h). INVALID_ARGUMENT also for what
// ValidateConfig refuses and for --resume without --run_dir.
absl::StatusOr<CommandLine> ParseFlags(absl::Span<const char* const> words);

// The text of --help.
std::string HelpText();

// Texts by name, exact for doubles, and back. DATA_LOSS where a field is
// missing or not a number.
std::map<std::string, std::string> ConfigToText(const Config& config);
absl::StatusOr<Config> ConfigFromText(
    const std::map<std::string, std::string>& text);

// The configuration of a resumed run: the saved one with the `given` members
// (names set on the command line) of `wanted`. FAILED_PRECONDITION names the
// flag and both values where a given one would bend the curve.
absl::StatusOr<Config> MergeForResume(const Config& wanted,
                                      const std::set<std::string>& given,
                                      const Config& saved);

}  // namespace rill::dqn_cartpole

#endif  // RILL_EXAMPLES_DQN_CARTPOLE_CONFIG_H_
