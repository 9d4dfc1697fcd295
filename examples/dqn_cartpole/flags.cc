// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/dqn_cartpole/flags.h"

#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/reflection.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/examples/dqn_cartpole/config.h"

using OptionalInt = std::optional<int64_t>;
using OptionalDouble = std::optional<double>;

ABSL_FLAG(std::string, run_dir, "",
          "Folder for everything that the run writes: curve.csv, curve.svg, "
          "TensorBoard events and the checkpoint. Must be new or empty unless "
          "--resume. Empty: the first of runs/seed_N, runs/seed_N_2, ... that "
          "does not exist.");
ABSL_FLAG(bool, resume, false,
          "Go on with the run in --run_dir from its checkpoint, to the same "
          "curve as if it had never stopped. Flags are the saved ones; only "
          "--max_steps and --checkpoint_every may be given anew.");

// Unset means Config's default (or, on resume, the saved value), so every help
// text names its default itself; flags_test compares it with Config.
ABSL_FLAG(OptionalInt, seed, std::nullopt,
          "Seed of everything random: equal seeds give equal runs. Default 0.");
ABSL_FLAG(OptionalInt, lanes, std::nullopt,
          "Environments that step together. Default 16.");
ABSL_FLAG(OptionalInt, frames_per_batch, std::nullopt,
          "Frames collected before each round of updates, over all lanes. "
          "Default 64.");
ABSL_FLAG(OptionalInt, init_random_frames, std::nullopt,
          "Frames of random actions before learning starts. Default 1024.");
ABSL_FLAG(OptionalInt, epsilon_frames, std::nullopt,
          "Frames over which the share of random actions falls from 1 to "
          "--final_epsilon. Default 10000.");
ABSL_FLAG(OptionalDouble, final_epsilon, std::nullopt,
          "Share of random actions from then on. Default 0.04.");
ABSL_FLAG(OptionalDouble, reward_scale, std::nullopt,
          "Rewards are multiplied by this before they are stored. Default "
          "0.01.");
ABSL_FLAG(OptionalInt, capacity, std::nullopt,
          "Transitions that the replay buffer keeps. Default 50000.");
ABSL_FLAG(OptionalInt, batch_size, std::nullopt,
          "Transitions in one update. Default 128.");
ABSL_FLAG(OptionalInt, updates_per_batch, std::nullopt,
          "Updates after each --frames_per_batch frames. Default 16.");
ABSL_FLAG(OptionalDouble, learning_rate, std::nullopt,
          "Adam's learning rate. Default 0.001.");
ABSL_FLAG(OptionalDouble, gamma, std::nullopt,
          "Discount of future rewards. Default 0.99.");
ABSL_FLAG(OptionalDouble, target_tau, std::nullopt,
          "Step of the target network towards the learning one after each "
          "update. Default 0.01.");
ABSL_FLAG(OptionalDouble, max_gradient_norm, std::nullopt,
          "Longer gradients are scaled down to this norm. Default 10.");
ABSL_FLAG(OptionalInt, probe_every, std::nullopt,
          "Frames between two rows of the curve; each row runs a few greedy "
          "episodes. Default 4096.");
ABSL_FLAG(OptionalInt, probe_episodes, std::nullopt,
          "How many. If their mean reaches --solve_return, the evaluation that "
          "decides follows at once. Default 20.");
ABSL_FLAG(OptionalInt, evaluation_episodes, std::nullopt,
          "Fresh greedy episodes of the evaluation that decides. Default 100.");
ABSL_FLAG(OptionalDouble, solve_return, std::nullopt,
          "Mean return of that evaluation from which the run is solved. "
          "Default 475.");
ABSL_FLAG(OptionalInt, max_steps, std::nullopt,
          "Frames after which the run gives up. Default 500000.");
ABSL_FLAG(
    OptionalInt, checkpoint_every, std::nullopt,
    "Frames between two checkpoints; more are written at the start, at the "
    "end and on Ctrl-C. Default 50000.");

namespace rill::dqn_cartpole {
namespace {

template <typename T>
// Sets a member whose flag was given, and notes its name.
void Take(const std::optional<T>& flag, absl::string_view name, T Config::*to,
          CommandLine* line) {
  if (!flag.has_value()) return;
  line->config.*to = *flag;
  line->given.insert(std::string(name));
}

#define DQN_TAKE_FLAG(name) \
  Take(absl::GetFlag(FLAGS_##name), #name, &Config::name, &line)

CommandLine ReadFlags() {
  CommandLine line;
  DQN_TAKE_FLAG(seed);
  DQN_TAKE_FLAG(lanes);
  DQN_TAKE_FLAG(frames_per_batch);
  DQN_TAKE_FLAG(init_random_frames);
  DQN_TAKE_FLAG(epsilon_frames);
  DQN_TAKE_FLAG(final_epsilon);
  DQN_TAKE_FLAG(reward_scale);
  DQN_TAKE_FLAG(capacity);
  DQN_TAKE_FLAG(batch_size);
  DQN_TAKE_FLAG(updates_per_batch);
  DQN_TAKE_FLAG(learning_rate);
  DQN_TAKE_FLAG(gamma);
  DQN_TAKE_FLAG(target_tau);
  DQN_TAKE_FLAG(max_gradient_norm);
  DQN_TAKE_FLAG(probe_every);
  DQN_TAKE_FLAG(probe_episodes);
  DQN_TAKE_FLAG(evaluation_episodes);
  DQN_TAKE_FLAG(solve_return);
  DQN_TAKE_FLAG(max_steps);
  DQN_TAKE_FLAG(checkpoint_every);
  line.run_dir = absl::GetFlag(FLAGS_run_dir);
  line.resume = absl::GetFlag(FLAGS_resume);
  return line;
}

#undef DQN_TAKE_FLAG

constexpr char kUsage[] =
    "Trains CartPole-v1 with a double DQN until a greedy evaluation of 100\n"
    "fresh episodes has a mean return of at least 475.\n\n"
    "  dqn_cartpole --seed=7 --run_dir=/tmp/cartpole\n"
    "  dqn_cartpole --resume --run_dir=/tmp/cartpole\n\n"
    "Ctrl-C saves and stops. Exit code 0: solved, or stopped by Ctrl-C;\n"
    "1: not solved, or an error.\n";

// Every flag of this file by name, its explanation in lines of 72.
[[noreturn]] void PrintHelpAndExit() {
  std::map<std::string, std::string> helps;
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    // Abseil's libraries have flags too, which are of no use here.
    if (absl::EndsWith(flag->Filename(), "dqn_cartpole/flags.cc")) {
      helps[std::string(name)] = flag->Help();
    }
  }
  absl::PrintF("%s\nFlags:\n", kUsage);
  for (const auto& [name, help] : helps) {
    absl::PrintF("  --%s\n", name);
    std::string line;
    for (absl::string_view word : absl::StrSplit(help, ' ')) {
      if (line.size() + 1 + word.size() > 72) {
        absl::PrintF("     %s\n", line);
        line.clear();
      }
      absl::StrAppend(&line, " ", word);
    }
    absl::PrintF("     %s\n", line);
  }
  std::exit(0);
}

}  // namespace

absl::StatusOr<CommandLine> ParseFlags(int argc, char** argv) {
  // Before Abseil parses, whose own --help has other lines.
  for (int i = 1; i < argc; ++i) {
    const absl::string_view word = argv[i];
    if (word == "--help" || word == "-help" || word == "-h") PrintHelpAndExit();
  }
  // Abseil's own usage text, shown behind some of its messages.
  // Abseil ends the program when it is set twice, as tests that parse often
  // would.
  static const bool once = [] {
    absl::SetProgramUsageMessage(kUsage);
    return true;
  }();
  (void)once;
  // rest[0] is the program.
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  if (rest.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("dqn_cartpole: got the word \"", rest[1],
                     "\", want flags only; --help explains them"));
  }
  CommandLine line = ReadFlags();
  if (line.resume && line.run_dir.empty()) {
    return absl::InvalidArgumentError(
        "--resume: got no --run_dir, want the folder of the run to go on with");
  }
  // On resume the saved values join first; the trainer checks the sum.
  if (!line.resume) {
    RILL_RETURN_IF_ERROR(ValidateConfig(line.config));
  }
  return line;
}

}  // namespace rill::dqn_cartpole
