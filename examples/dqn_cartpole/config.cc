// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/dqn_cartpole/config.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/examples/program/config_field.h"

namespace rill::dqn_cartpole {
namespace {

using ::rill::examples::ConfigField;

// Bounds are far beyond use: they catch slips, and keep products in 64 bits.
constexpr double kMany = 1'000'000'000;
constexpr double kTiny = 1e-12;  // "> 0" as a closed range.

// They do not bend the curve, so a resumed run may change them.
bool MayChange(absl::string_view name) {
  return name == "max_steps" || name == "checkpoint_every";
}

std::vector<ConfigField> FieldsOf(CommandLine* line) {
  std::vector<ConfigField> fields = FieldsOf(&line->config);
  fields.insert(
      fields.end(),
      {{"run_dir", &line->run_dir,
        "Folder for curve.csv, curve.svg, TensorBoard events and the "
        "checkpoint;\n      new or empty unless --resume. Empty: the first of "
        "runs/seed_N,\n      runs/seed_N_2, ... that does not exist."},
       {"resume", &line->resume,
        "Go on with the run in --run_dir from its checkpoint, to the same "
        "curve as\n      if it had never stopped. Flags are the saved ones; "
        "only --max_steps and\n      --checkpoint_every may be given anew."},
       {"help", &line->help, "Explains the flags."}});
  return fields;
}

}  // namespace

std::vector<ConfigField> FieldsOf(Config* config) {
  return {
      {"seed", &config->seed,
       "Seed of everything random: equal seeds give equal runs.", 0, 9e18},
      {"lanes", &config->lanes, "Environments that step together.", 1, 4096},
      {"frames_per_batch", &config->frames_per_batch,
       "Frames collected before each round of updates, over all lanes.", 1,
       kMany},
      {"init_random_frames", &config->init_random_frames,
       "Frames of random actions before learning starts.", 1, kMany},
      {"epsilon_frames", &config->epsilon_frames,
       "Frames over which the share of random actions falls from 1 to "
       "--final_epsilon.",
       1, kMany},
      {"final_epsilon", &config->final_epsilon,
       "Share of random actions from then on.", 0, 1},
      {"reward_scale", &config->reward_scale,
       "Rewards are multiplied by this before they are stored.", kTiny, 1e6},
      {"capacity", &config->capacity,
       "Transitions that the replay buffer keeps.", 1, kMany},
      {"batch_size", &config->batch_size, "Transitions in one update.", 1,
       65536},
      {"updates_per_batch", &config->updates_per_batch,
       "Updates after each --frames_per_batch frames.", 1, kMany},
      {"learning_rate", &config->learning_rate, "Adam's learning rate.", kTiny,
       1},
      {"gamma", &config->gamma, "Discount of future rewards.", 0, 1},
      {"target_tau", &config->target_tau,
       "Step of the target network towards the learning one after each "
       "update.",
       kTiny, 1},
      {"max_gradient_norm", &config->max_gradient_norm,
       "Longer gradients are scaled down to this norm.", kTiny, 1e12},
      {"probe_every", &config->probe_every,
       "Frames between two rows of the curve; each row runs a few greedy "
       "episodes.",
       1, kMany},
      {"probe_episodes", &config->probe_episodes,
       "Episodes of such a row. If their mean reaches --solve_return, the "
       "evaluation that decides follows at once.",
       1, 10'000},
      {"evaluation_episodes", &config->evaluation_episodes,
       "Fresh greedy episodes of the evaluation that decides.", 1, 10'000},
      {"solve_return", &config->solve_return,
       "Mean return of that evaluation from which the run is solved.", 0, 500},
      {"max_steps", &config->max_steps, "Frames after which the run gives up.",
       1, 1e15},
      {"checkpoint_every", &config->checkpoint_every,
       "Frames between two checkpoints; more are written at the start, at "
       "the end and on Ctrl-C.",
       1, 1e15},
  };
}

absl::Status ValidateConfig(const Config& config) {
  Config copy = config;
  RILL_RETURN_IF_ERROR(examples::CheckRanges(FieldsOf(&copy)));
  // A storage has as many slots for each lane.
  if (config.capacity % config.lanes != 0) {
    return InvalidArgument("--capacity: got ", config.capacity,
                           ", want a multiple of --lanes=", config.lanes);
  }
  // The collector would round up, and the flag would not say what happens.
  if (config.frames_per_batch % config.lanes != 0) {
    return InvalidArgument("--frames_per_batch: got ", config.frames_per_batch,
                           ", want a multiple of --lanes=", config.lanes);
  }
  return absl::OkStatus();
}

absl::StatusOr<CommandLine> ParseFlags(absl::Span<const char* const> words) {
  CommandLine line;
  RILL_ASSIGN_OR_RETURN(line.given,
                        examples::ReadFlags(words, FieldsOf(&line)));
  if (line.help) return line;
  if (line.resume && line.run_dir.empty()) {
    return InvalidArgument(
        "--resume: got no --run_dir, want the folder of the run to go on with");
  }
  // On resume the saved values join first; the trainer checks the sum.
  if (!line.resume) {
    RILL_RETURN_IF_ERROR(ValidateConfig(line.config));
  }
  return line;
}

std::string HelpText() {
  CommandLine line;
  return absl::StrCat(
      "Trains CartPole-v1 with a double DQN until a greedy evaluation of 100\n"
      "fresh episodes has a mean return of at least 475.\n\n"
      "  dqn_cartpole --seed=7 --run_dir=/tmp/cartpole\n"
      "  dqn_cartpole --resume --run_dir=/tmp/cartpole\n\n"
      "Ctrl-C saves and stops. Exit code 0: solved, or stopped by Ctrl-C;\n"
      "1: not solved, or an error.\n\nFlags:\n",
      examples::FormatHelp(FieldsOf(&line)));
}

std::map<std::string, std::string> ConfigToText(const Config& config) {
  Config copy = config;
  std::map<std::string, std::string> text;
  for (const ConfigField& field : FieldsOf(&copy)) {
    text[field.name] = examples::ValueText(field);
  }
  return text;
}

absl::StatusOr<Config> ConfigFromText(
    const std::map<std::string, std::string>& text) {
  Config config;
  for (const ConfigField& field : FieldsOf(&config)) {
    const auto found = text.find(field.name);
    if (found == text.end()) {
      return DataLoss("ConfigFromText: \"", field.name, "\" is missing");
    }
    if (!examples::ReadValue(found->second, field)) {
      return DataLoss("ConfigFromText: \"", field.name, "\" is \"",
                      found->second, "\", want a number");
    }
  }
  return config;
}

absl::StatusOr<Config> MergeForResume(const Config& wanted,
                                      const std::set<std::string>& given,
                                      const Config& saved) {
  const std::map<std::string, std::string> texts = ConfigToText(wanted);
  Config merged = saved;
  for (const ConfigField& field : FieldsOf(&merged)) {
    if (!given.contains(field.name)) continue;
    // By text: that is exact for both types.
    const std::string& now = texts.at(field.name);
    const std::string then = examples::ValueText(field);
    if (!MayChange(field.name) && now != then) {
      return FailedPrecondition("--resume: got --", field.name, "=", now,
                                ", but the run was started with --", field.name,
                                "=", then,
                                "; leave the flag out, or start a new run");
    }
    examples::ReadValue(now, field);
  }
  return merged;
}

}  // namespace rill::dqn_cartpole
