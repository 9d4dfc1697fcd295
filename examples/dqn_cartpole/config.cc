// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/dqn_cartpole/config.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"

namespace rill::dqn_cartpole {
namespace {

// Bounds are far beyond use: they catch slips, and keep products in 64 bits.
constexpr double kMany = 1'000'000'000;
constexpr double kTiny = 1e-12;  // "> 0" as a closed range.

constexpr ConfigField kFields[] = {
    {"seed", &Config::seed, 0, 9e18, true},
    {"lanes", &Config::lanes, 1, 4096, true},
    {"frames_per_batch", &Config::frames_per_batch, 1, kMany, true},
    {"init_random_frames", &Config::init_random_frames, 1, kMany, true},
    {"epsilon_frames", &Config::epsilon_frames, 1, kMany, true},
    {"final_epsilon", &Config::final_epsilon, 0, 1, true},
    {"reward_scale", &Config::reward_scale, kTiny, 1e6, true},
    {"capacity", &Config::capacity, 1, kMany, true},
    {"batch_size", &Config::batch_size, 1, 65536, true},
    {"updates_per_batch", &Config::updates_per_batch, 1, kMany, true},
    {"learning_rate", &Config::learning_rate, kTiny, 1, true},
    {"gamma", &Config::gamma, 0, 1, true},
    {"target_tau", &Config::target_tau, kTiny, 1, true},
    {"max_gradient_norm", &Config::max_gradient_norm, kTiny, 1e12, true},
    {"probe_every", &Config::probe_every, 1, kMany, true},
    {"probe_episodes", &Config::probe_episodes, 1, 10'000, true},
    {"evaluation_episodes", &Config::evaluation_episodes, 1, 10'000, true},
    {"solve_return", &Config::solve_return, 0, 500, true},
    {"max_steps", &Config::max_steps, 1, 1e15, false},
    {"checkpoint_every", &Config::checkpoint_every, 1, 1e15, false},
};

// For the comparison with a range; not exact beyond 2^53.
double ValueOf(const Config& config, const ConfigField& field) {
  return std::visit(
      [&](auto member) { return static_cast<double>(config.*member); },
      field.member);
}

std::string TextOf(const Config& config, const ConfigField& field) {
  if (const auto* member = std::get_if<int64_t Config::*>(&field.member)) {
    return absl::StrCat(config.**member);
  }
  // 15 digits where they are enough, else the 17 that always are.
  const double value = ValueOf(config, field);
  const std::string text = absl::StrFormat("%.15g", value);
  double back = 0;
  if (absl::SimpleAtod(text, &back) && back == value) return text;
  return absl::StrFormat("%.17g", value);
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
  // A storage has as many slots for each lane.
  if (config.capacity % config.lanes != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--capacity: got ", config.capacity,
                     ", want a multiple of --lanes=", config.lanes));
  }
  // The collector would round up, and the flag would not say what happens.
  if (config.frames_per_batch % config.lanes != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--frames_per_batch: got ", config.frames_per_batch,
                     ", want a multiple of --lanes=", config.lanes));
  }
  return absl::OkStatus();
}

std::map<std::string, std::string> ConfigToText(const Config& config) {
  std::map<std::string, std::string> text;
  for (const ConfigField& field : kFields) {
    text[field.name] = TextOf(config, field);
  }
  return text;
}

absl::StatusOr<Config> ConfigFromText(
    const std::map<std::string, std::string>& text) {
  Config config;
  for (const ConfigField& field : kFields) {
    const auto found = text.find(field.name);
    if (found == text.end()) {
      return absl::DataLossError(
          absl::StrCat("ConfigFromText: \"", field.name, "\" is missing"));
    }
    const bool parsed = std::visit(
        [&](auto member) {
          auto& value = config.*member;
          if constexpr (std::is_same_v<decltype(value), int64_t&>) {
            return absl::SimpleAtoi(found->second, &value);
          } else {
            return absl::SimpleAtod(found->second, &value);
          }
        },
        field.member);
    if (!parsed) {
      return absl::DataLossError(absl::StrCat("ConfigFromText: \"", field.name,
                                              "\" is \"", found->second,
                                              "\", want a number"));
    }
  }
  return config;
}

absl::StatusOr<Config> MergeForResume(const Config& wanted,
                                      const std::set<std::string>& given,
                                      const Config& saved) {
  Config merged = saved;
  for (const ConfigField& field : kFields) {
    if (given.count(field.name) == 0) continue;
    const std::string now = TextOf(wanted, field);
    const std::string then = TextOf(saved, field);
    // By text: that is exact for both types.
    if (field.bends_the_curve && now != then) {
      return absl::FailedPreconditionError(
          absl::StrCat("--resume: got --", field.name, "=", now,
                       ", but the run was started with --", field.name, "=",
                       then, "; leave the flag out, or start a new run"));
    }
    std::visit([&](auto member) { merged.*member = wanted.*member; },
               field.member);
  }
  return merged;
}

}  // namespace rill::dqn_cartpole
