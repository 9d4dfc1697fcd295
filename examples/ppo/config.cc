// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo/config.h"

#include <cstdint>
#include <string>
#include <type_traits>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"

namespace rill::ppo {
namespace {

constexpr double kMany = 1'000'000'000;
constexpr double kTiny = 1e-12;  // "> 0" as a closed range.

constexpr ConfigField kFields[] = {
    {"seed", &Config::seed, 0, 9e18,
     "Seed of all random numbers: equal seeds give equal runs."},
    {"lanes", &Config::lanes, 1, 4096, "Environments that step together."},
    {"steps_per_round", &Config::steps_per_round, 1, kMany,
     "Steps of each lane before the learner gets them."},
    {"total_steps", &Config::total_steps, 1, 1e15,
     "Steps over all lanes after which the run ends."},
    {"in_worker", &Config::in_worker, 0, 1,
     "A worker thread collects; the curve is the same, bit for bit."},
    {"normalize_observation", &Config::normalize_observation, 0, 1,
     "Observations by their running mean and deviation, clipped to 10."},
    {"normalize_reward", &Config::normalize_reward, 0, 1,
     "Rewards by the running deviation of the return, clipped to 10."},
    {"epochs", &Config::epochs, 1, kMany, "Passes over the steps of a round."},
    {"minibatches", &Config::minibatches, 1, kMany,
     "Steps of Adam in each pass."},
    {"learning_rate", &Config::learning_rate, kTiny, 1,
     "Adam's learning rate at the beginning."},
    {"anneal_learning_rate", &Config::anneal_learning_rate, 0, 1,
     "The learning rate falls in a straight line to 0."},
    {"gamma", &Config::gamma, 0, 1, "Discount of future rewards."},
    {"gae_lambda", &Config::gae_lambda, 0, 1, "Lambda of the advantages."},
    {"clip", &Config::clip, kTiny, 1,
     "How far a ratio of probabilities counts, and a value moves."},
    {"clip_value_loss", &Config::clip_value_loss, 0, 1,
     "Values are clipped like ratios."},
    {"entropy_coefficient", &Config::entropy_coefficient, 0, 1e6,
     "Weight of the entropy."},
    {"value_coefficient", &Config::value_coefficient, 0, 1e6,
     "Weight of the value loss."},
    {"max_gradient_norm", &Config::max_gradient_norm, kTiny, 1e12,
     "Longer gradients are scaled down to this norm."},
    {"evaluation_episodes", &Config::evaluation_episodes, 1, 10'000,
     "Fresh episodes without exploration at the end."},
    {"solve_return", &Config::solve_return, -1e9, 1e9,
     "Their mean return from which the run counts as solved."},
    {"log_every", &Config::log_every, 1, 1e15,
     "Steps between two rows of the curve."},
};

// A bool is 0 or 1 here, and in range.
double ValueOf(const Config& config, const ConfigField& field) {
  return std::visit(
      [&](auto member) { return static_cast<double>(config.*member); },
      field.member);
}

std::string TextOf(const Config& config, const ConfigField& field) {
  if (const auto* member = std::get_if<int64_t Config::*>(&field.member)) {
    return absl::StrCat(config.**member);
  }
  if (const auto* member = std::get_if<bool Config::*>(&field.member)) {
    return config.**member ? "true" : "false";
  }
  // For people: a run is not resumed from it.
  return absl::StrFormat("%.15g", ValueOf(config, field));
}

// False where `text` is no value of the member's type.
bool ReadValue(absl::string_view text, const ConfigField& field,
               Config* config) {
  return std::visit(
      [&](auto member) {
        auto& value = config->*member;
        using T = std::remove_reference_t<decltype(value)>;
        if constexpr (std::is_same_v<T, int64_t>) {
          return absl::SimpleAtoi(text, &value);
        } else if constexpr (std::is_same_v<T, bool>) {
          return absl::SimpleAtob(text, &value);
        } else {
          return absl::SimpleAtod(text, &value);
        }
      },
      field.member);
}

absl::Status ReadWord(absl::string_view word, CommandLine* line) {
  absl::string_view rest = word;
  const size_t equals = word.find('=');
  if (!absl::ConsumePrefix(&rest, "--") || equals == absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        "got \"", word, "\", want --name=value; --help explains the flags"));
  }
  // `equals` counts the two dashes, which `rest` has not.
  const absl::string_view name = rest.substr(0, equals - 2);
  const absl::string_view value = word.substr(equals + 1);
  // The only flag that is no member of Config.
  if (name == "run_dir") {
    line->run_dir = std::string(value);
    return absl::OkStatus();
  }
  for (const ConfigField& field : kFields) {
    if (name != field.name) continue;
    if (ReadValue(value, field, &line->config)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("--", name, ": got \"", value, "\", want a value like ",
                     TextOf(Config(), field)));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "got the flag \"--", name, "\", want one that --help explains"));
}

}  // namespace

absl::Span<const ConfigField> ConfigFields() { return kFields; }

absl::Status ValidateConfig(const Config& config) {
  for (const ConfigField& field : kFields) {
    const double value = ValueOf(config, field);
    if (!(value >= field.min && value <= field.max)) {  // NaN is outside too.
      return absl::InvalidArgumentError(
          absl::StrFormat("--%s: got %s, want a value in [%g, %g]", field.name,
                          TextOf(config, field), field.min, field.max));
    }
  }
  const int64_t steps = config.lanes * config.steps_per_round;
  // Two at least: advantages are divided by their deviation, with count - 1.
  if (steps % config.minibatches != 0 || steps < 2 * config.minibatches) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--minibatches: got ", config.minibatches, ", want a divisor of the ",
        steps, " steps of a round with at least 2 steps in each"));
  }
  return absl::OkStatus();
}

absl::StatusOr<CommandLine> ParseFlags(absl::Span<const char* const> words,
                                       const Config& defaults) {
  CommandLine line = {.config = defaults};
  for (absl::string_view word : words) {
    // Words behind it are not looked at.
    if (word == "--help") {
      line.help = true;
      return line;
    }
    RILL_RETURN_IF_ERROR(ReadWord(word, &line));
  }
  RILL_RETURN_IF_ERROR(ValidateConfig(line.config));
  return line;
}

std::string FormatHelp(const Config& defaults) {
  std::string help =
      "  --run_dir\n      Folder for curve.csv, curve.svg and TensorBoard "
      "events; must not exist. Empty: no files.\n";
  for (const ConfigField& field : kFields) {
    absl::StrAppendFormat(&help, "  --%s=%s\n      %s\n", field.name,
                          TextOf(defaults, field), field.help);
  }
  return help;
}

}  // namespace rill::ppo
