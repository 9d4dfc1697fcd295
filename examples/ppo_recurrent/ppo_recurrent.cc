// SPDX-License-Identifier: Apache-2.0
//
// ppo_recurrent: see README.md, or --help.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "rill/base/status_macros.h"
#include "rill/examples/ppo_recurrent/recall_env.h"
#include "rill/examples/ppo_recurrent/trainer.h"
#include "rill/examples/program/config_field.h"

namespace rill::ppo_recurrent {
namespace {

// Of the best return, from which a run counts as solved.
constexpr double kSolved = 0.95;

absl::StatusOr<int> Main(int argc, char** argv) {
  Config config;
  bool help = false;
  constexpr double kMany = 1e9;
  const std::vector<examples::ConfigField> fields = {
      {"seed", &config.seed, "Equal seeds give equal runs.", 0, 9e18},
      {"lanes", &config.lanes, "Environments that step together.", 1, 4096},
      {"steps_per_round", &config.steps_per_round,
       "Steps of each lane before the learner gets them.", 1, kMany},
      {"total_steps", &config.total_steps, "Steps of the run.", 1, kMany},
      {"units", &config.units, "Of the recurrent state.", 1, 4096},
      {"sequence_length", &config.sequence_length,
       "Steps of backpropagation through time.", 1, kMany},
      {"epochs", &config.epochs, "Passes over a round's steps.", 1, kMany},
      {"minibatches", &config.minibatches, "About as many in a pass.", 1,
       kMany},
      {"learning_rate", &config.learning_rate, "Adam's, at the beginning.", 0,
       1},
      {"gamma", &config.gamma, "Discount of future rewards.", 0, 1},
      {"gae_lambda", &config.gae_lambda, "Lambda of the advantages.", 0, 1},
      {"entropy_coefficient", &config.entropy_coefficient,
       "Weight of the entropy.", 0, kMany},
      {"evaluation_episodes", &config.evaluation_episodes,
       "Fresh episodes at the end.", 1, kMany},
      {"help", &help, "Explains the flags."}};
  const std::vector<const char*> words(argv + 1, argv + argc);
  RILL_RETURN_IF_ERROR(examples::ReadFlags(words, fields).status());
  if (help) {
    absl::PrintF("ppo_recurrent: learns to remember, by PPO with a GRU.\n\n%s",
                 examples::FormatHelp(fields));
    return 0;
  }
  RILL_RETURN_IF_ERROR(examples::CheckRanges(fields));
  RILL_ASSIGN_OR_RETURN(const auto trainer, Trainer::Create(config));
  Trainer::Round round;
  for (int64_t i = 1; round.steps < config.total_steps; ++i) {
    RILL_ASSIGN_OR_RETURN(round, trainer->DoRound());
    if (i % 10 != 0) continue;
    absl::PrintF("%7d steps: return %.3f of %.3f, entropy %.3f, KL %.4f\n",
                 round.steps, round.mean_return, kRecallBestReturn,
                 round.loss.entropy, round.loss.approx_kl);
    std::fflush(stdout);
  }
  RILL_ASSIGN_OR_RETURN(const double mean, trainer->Evaluate());
  const bool is_solved = mean >= kSolved * kRecallBestReturn;
  absl::PrintF(
      "%s: seed %d, %d steps, evaluation of %d episodes %.3f of %.3f\n",
      is_solved ? "solved" : "not solved", config.seed, round.steps,
      config.evaluation_episodes, mean, kRecallBestReturn);
  return is_solved ? 0 : 1;
}

}  // namespace
}  // namespace rill::ppo_recurrent

int main(int argc, char** argv) {
  const absl::StatusOr<int> code = rill::ppo_recurrent::Main(argc, argv);
  if (code.ok()) return *code;
  absl::FPrintF(stderr, "ppo_recurrent: %s\n", code.status().ToString());
  return 1;
}
