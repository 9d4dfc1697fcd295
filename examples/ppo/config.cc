// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo/config.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/examples/program/config_field.h"

namespace rill::ppo {
namespace {

using ::rill::examples::ConfigField;

constexpr double kMany = 1'000'000'000;
constexpr double kTiny = 1e-12;  // "> 0" as a closed range.

std::vector<ConfigField> FieldsOf(CommandLine* line) {
  std::vector<ConfigField> fields = FieldsOf(&line->config);
  fields.push_back({"run_dir", &line->run_dir,
                    "Folder for curve.csv, curve.svg and TensorBoard events; "
                    "must not exist.\n      Empty: no files."});
  fields.push_back({"help", &line->help, "Explains the flags."});
  return fields;
}

}  // namespace

std::vector<ConfigField> FieldsOf(Config* config) {
  return {
      {"seed", &config->seed,
       "Seed of all random numbers: equal seeds give equal runs.", 0, 9e18},
      {"lanes", &config->lanes, "Environments that step together.", 1, 4096},
      {"steps_per_round", &config->steps_per_round,
       "Steps of each lane before the learner gets them.", 1, kMany},
      {"total_steps", &config->total_steps,
       "Steps over all lanes after which the run ends.", 1, 1e15},
      {"in_worker", &config->in_worker,
       "A worker thread collects; the curve is the same, bit for bit."},
      {"normalize_observation", &config->normalize_observation,
       "Observations by their running mean and deviation, clipped to 10."},
      {"normalize_reward", &config->normalize_reward,
       "Rewards by the running deviation of the return, clipped to 10."},
      {"epochs", &config->epochs, "Passes over the steps of a round.", 1,
       kMany},
      {"minibatches", &config->minibatches, "Steps of Adam in each pass.", 1,
       kMany},
      {"learning_rate", &config->learning_rate,
       "Adam's learning rate at the beginning.", kTiny, 1},
      {"anneal_learning_rate", &config->anneal_learning_rate,
       "The learning rate falls in a straight line to 0."},
      {"gamma", &config->gamma, "Discount of future rewards.", 0, 1},
      {"gae_lambda", &config->gae_lambda, "Lambda of the advantages.", 0, 1},
      {"clip", &config->clip,
       "How far a ratio of probabilities counts, and a value moves.", kTiny, 1},
      {"clip_value_loss", &config->clip_value_loss,
       "Values are clipped like ratios."},
      {"entropy_coefficient", &config->entropy_coefficient,
       "Weight of the entropy.", 0, 1e6},
      {"value_coefficient", &config->value_coefficient,
       "Weight of the value loss.", 0, 1e6},
      {"max_gradient_norm", &config->max_gradient_norm,
       "Longer gradients are scaled down to this norm.", kTiny, 1e12},
      {"evaluation_episodes", &config->evaluation_episodes,
       "Fresh episodes without exploration at the end.", 1, 10'000},
      {"solve_return", &config->solve_return,
       "Their mean return from which the run counts as solved.", -1e9, 1e9},
      {"log_every", &config->log_every, "Steps between two rows of the curve.",
       1, 1e15},
  };
}

absl::Status ValidateConfig(const Config& config) {
  Config copy = config;
  RILL_RETURN_IF_ERROR(examples::CheckRanges(FieldsOf(&copy)));
  const int64_t steps = config.lanes * config.steps_per_round;
  // Two at least: advantages are divided by their deviation, with count - 1.
  if (steps % config.minibatches != 0 || steps < 2 * config.minibatches) {
    return InvalidArgument("--minibatches: got ", config.minibatches,
                           ", want a divisor of the ", steps,
                           " steps of a round with at least 2 steps in each");
  }
  return absl::OkStatus();
}

absl::StatusOr<CommandLine> ParseFlags(absl::Span<const char* const> words,
                                       const Config& defaults) {
  CommandLine line = {.config = defaults};
  RILL_RETURN_IF_ERROR(examples::ReadFlags(words, FieldsOf(&line)).status());
  if (!line.help) {
    RILL_RETURN_IF_ERROR(ValidateConfig(line.config));
  }
  return line;
}

std::string FormatHelp(const Config& defaults) {
  CommandLine line = {.config = defaults};
  return examples::FormatHelp(FieldsOf(&line));
}

}  // namespace rill::ppo
