// SPDX-License-Identifier: Apache-2.0
//
// watch_env: see --help.

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/envs/env.h"
#include "rill/envs/gymnasium/gymnasium_env.h"
#include "rill/envs/policies/exploration.h"
#include "rill/envs/rollout.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tools/programs/watch_env/built_in_env.h"
#include "rill/tools/programs/watch_env/draw_env.h"
#include "rill/tools/programs/watch_env/rollout_report.h"
#include "rill/tools/programs/watch_env/scene.h"
#include "rill/tools/programs/watch_env/svg.h"
#include "rill/tools/programs/watch_env/text_canvas.h"

namespace rill::watch_env {
namespace {

constexpr char kUsage[] =
    "usage: watch_env [--env=ID | --gymnasium=ID] [--steps=N] [--seed=S]\n"
    "                 [--format=text|rollout] [--svg=FOLDER] [--python=PATH]\n"
    "Steps one lane of an environment with random actions.\n"
    "  --env=ID         a built-in environment: CartPole-v1 (without it),\n"
    "                   MountainCar-v0, MountainCarContinuous-v0, Acrobot-v1,\n"
    "                   Pendulum-v1; MuJoCo's too with bazel run\n"
    "                   --config=mujoco //tools/programs/watch_env:watch_env "
    "--\n"
    "  --gymnasium=ID   one of Gymnasium, in a Python child\n"
    "  --python=PATH    the Python that has gymnasium (python3)\n"
    "  --steps=N        the most steps (200)\n"
    "  --seed=S         of environment and actions (0)\n"
    "  --format=text    draws the first episode; classic control only\n"
    "  --format=rollout says what a rollout of N steps holds: leaves with\n"
    "                   shapes and first rows, episodes with returns and\n"
    "                   lengths. Without the flag: text where it can be drawn\n"
    "  --svg=FOLDER     writes the first episode there: frame_0000.svg, ...,\n"
    "                   and episode.svg, which moves in a browser\n";

constexpr absl::Duration kPerFrame = absl::Milliseconds(40);
constexpr int kColumns = 72;

struct Flags {
  std::string env = "CartPole-v1";
  std::string gymnasium;
  std::string python = "python3";
  std::string format;
  std::string svg;
  int64_t steps = 200;
  uint64_t seed = 0;
};

// None: the user wants help.
absl::StatusOr<std::optional<Flags>> ParseFlags(
    absl::Span<const char* const> words) {
  Flags flags;
  for (absl::string_view word : words) {
    if (word == "--help" || word == "-h") return std::nullopt;
    // is() takes the name off `word`; errors show the whole.
    const absl::string_view whole = word;
    const auto is = [&word](absl::string_view name) {
      return absl::ConsumePrefix(&word, name);
    };
    bool is_right = true;
    if (is("--env=")) {
      flags.env = std::string(word);
    } else if (is("--gymnasium=")) {
      flags.gymnasium = std::string(word);
    } else if (is("--python=")) {
      flags.python = std::string(word);
    } else if (is("--svg=")) {
      flags.svg = std::string(word);
      is_right = !word.empty();
    } else if (is("--format=")) {
      flags.format = std::string(word);
      is_right = word == "text" || word == "rollout";
    } else if (is("--steps=")) {
      is_right = absl::SimpleAtoi(word, &flags.steps) && flags.steps > 0;
    } else if (is("--seed=")) {
      is_right = absl::SimpleAtoi(word, &flags.seed);
    } else {
      is_right = false;
    }
    if (!is_right) {
      return InvalidArgument("watch_env: got \"", whole,
                             "\"; --help says what there is");
    }
  }
  return flags;
}

absl::StatusOr<std::unique_ptr<Env>> MakeEnv(const Flags& flags) {
  if (flags.gymnasium.empty()) return MakeBuiltInEnv(flags.env, flags.seed);
  return MakeGymnasiumEnv(
      {.id = flags.gymnasium, .seed = flags.seed, .python = flags.python});
}

std::string FramePath(const std::string& folder, size_t t) {
  return JoinPath(folder, absl::StrFormat("frame_%04d.svg", t));
}

// Each state of an episode [1, time], the final one too.
absl::StatusOr<std::vector<Scene>> DrawEpisode(const EnvSpec& spec,
                                               const TensorDict& episode) {
  RILL_ASSIGN_OR_RETURN(const auto root, episode.Flat<float>("observation"));
  RILL_ASSIGN_OR_RETURN(const auto next,
                        episode.Flat<float>("next/observation"));
  const auto steps = static_cast<size_t>(episode.batch_shape()[1]);
  const size_t width = root.size() / steps;
  std::vector<Scene> scenes;
  for (size_t t = 0; t <= steps; ++t) {
    const absl::Span<const float> row =
        t < steps ? root.subspan(t * width, width)
                  : next.subspan((steps - 1) * width, width);
    RILL_ASSIGN_OR_RETURN(scenes.emplace_back(), DrawEnv(spec.name, row));
  }
  return scenes;
}

absl::Status WriteSvg(const std::vector<Scene>& scenes,
                      const std::string& folder) {
  RILL_RETURN_IF_ERROR(CreateDirectories(folder));
  for (size_t t = 0; t < scenes.size(); ++t) {
    RILL_RETURN_IF_ERROR(
        WriteFileAtomically(FramePath(folder, t), SvgFrame(scenes[t])));
  }
  // Frames of a longer episode that was drawn there before.
  for (size_t t = scenes.size(); PathExists(FramePath(folder, t)); ++t) {
    RILL_RETURN_IF_ERROR(RemoveAll(FramePath(folder, t)));
  }
  return WriteFileAtomically(JoinPath(folder, "episode.svg"),
                             SvgAnimation(scenes, kPerFrame));
}

absl::Status Print(absl::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
      std::fflush(stdout) == 0) {
    return absl::OkStatus();
  }
  return Unavailable("watch_env: the text could not be written");
}

// On a terminal in one place, elsewhere one below the other.
absl::Status Show(const EnvSpec& spec, const std::vector<Scene>& scenes,
                  const EpisodeFacts& facts) {
  const bool is_terminal = isatty(STDOUT_FILENO) == 1;
  for (size_t t = 0; t < scenes.size(); ++t) {
    RILL_RETURN_IF_ERROR(
        // Cursor home, and the screen cleared from there.
        Print(absl::StrCat(is_terminal ? "\033[H\033[J" : "", spec.name,
                           ", step ", t, "\n", DrawText(scenes[t], kColumns))));
    // At the speed of the SVG; a file gets all at once.
    if (is_terminal) absl::SleepFor(kPerFrame);
  }
  return Print(absl::StrFormat("%d steps, return %.6g, %s\n", facts.steps,
                               facts.reward, facts.end));
}

absl::Status Watch(const Flags& flags) {
  RILL_ASSIGN_OR_RETURN(const auto env, MakeEnv(flags));
  const EnvSpec& spec = env->spec();
  const bool draws =
      flags.format.empty() ? CanDraw(spec.name) : flags.format == "text";
  RILL_ASSIGN_OR_RETURN(auto policy,
                        MakeRandomPolicy(spec, {.seed = flags.seed}));
  if (draws || !flags.svg.empty()) {
    RILL_ASSIGN_OR_RETURN(const TensorDict episode,
                          Rollout(*env, *policy, {.max_steps = flags.steps}));
    RILL_ASSIGN_OR_RETURN(const auto scenes, DrawEpisode(spec, episode));
    if (!flags.svg.empty()) {
      RILL_RETURN_IF_ERROR(WriteSvg(scenes, flags.svg));
    }
    if (draws) {
      RILL_ASSIGN_OR_RETURN(const auto facts, FindEpisodes(spec, episode));
      return Show(spec, scenes, facts[0]);
    }
  }
  // Where the first episode was drawn, the rollout begins with it again.
  RILL_RETURN_IF_ERROR(env->Seed(flags.seed));
  RILL_ASSIGN_OR_RETURN(
      const TensorDict batch,
      Rollout(*env, *policy,
              {.max_steps = flags.steps, .break_when_any_done = false}));
  RILL_ASSIGN_OR_RETURN(const std::string report, RolloutReport(spec, batch));
  return Print(report);
}

int Main(int argc, char** argv) {
  const auto flags = ParseFlags(absl::MakeConstSpan(argv + 1, argc - 1));
  absl::Status status = flags.status();
  if (flags.ok()) {
    status = flags->has_value() ? Watch(**flags) : Print(kUsage);
  }
  if (status.ok()) return 0;
  // One line, whatever a Python child has said.
  std::fprintf(stderr, "%s\n",
               absl::StrReplaceAll(status.ToString(), {{"\n", " "}}).c_str());
  return 1;
}

}  // namespace
}  // namespace rill::watch_env

int main(int argc, char** argv) { return rill::watch_env::Main(argc, argv); }
