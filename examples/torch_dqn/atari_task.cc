// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/torch_dqn/atari_task.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "rill/base/status_macros.h"
#include "rill/envs/env.h"
#include "rill/envs/gymnasium/gymnasium_env.h"
#include "rill/envs/transformed_env.h"
#include "rill/specs/leaf_spec.h"
#include "rill/transforms/images/resize.h"
#include "rill/transforms/structure/row_shapes.h"
#include "rill/transforms/structure/select.h"
#include "rill/transforms/values/value_clips.h"

namespace rill::torch_dqn {
namespace {

constexpr int64_t kPixels = 84;
constexpr int64_t kChildren = 2;

absl::StatusOr<std::unique_ptr<Env>> MakeAtari(const AtariOptions& options,
                                               int64_t lanes) {
  // The game's own repeats of actions make it random where it draws none.
  RILL_ASSIGN_OR_RETURN(
      auto env, MakeGymnasiumEnv(
                    {.id = options.id,
                     .lanes = lanes,
                     .children = static_cast<int>(std::min(lanes, kChildren)),
                     .kwargs = R"({"obs_type": "grayscale", "frameskip": 4})",
                     .python = options.python,
                     .python_path = options.python_path,
                     .imports = {"ale_py"}}));
  TransformedEnv::Transforms transforms;
  RILL_ASSIGN_OR_RETURN(
      transforms.emplace_back(),
      Unsqueeze::Create(
          {.dim = -3, .in_keys = {"observation"}, .out_keys = {"pixels"}}));
  RILL_ASSIGN_OR_RETURN(
      transforms.emplace_back(),
      Exclude::Create({.excluded_keys = {"observation", "next/observation"}}));
  RILL_ASSIGN_OR_RETURN(transforms.emplace_back(),
                        Resize::Create({.w = kPixels, .in_keys = {"pixels"}}));
  RILL_ASSIGN_OR_RETURN(transforms.emplace_back(),
                        Sign::Create({.in_keys = {"next/reward"}}));
  return TransformedEnv::Create(std::move(env), std::move(transforms));
}

}  // namespace

absl::StatusOr<Task> AtariTask(const AtariOptions& options) {
  // How many actions there are, the game says.
  RILL_ASSIGN_OR_RETURN(const auto env, MakeAtari(options, 1));
  const LeafSpec& action = *env->spec().action.Find("action");
  return Task{
      .name = options.id,
      .make_env =
          [options](int64_t lanes) { return MakeAtari(options, lanes); },
      .sizes = {.height = kPixels,
                .width = kPixels,
                .actions = action.num_categories,
                .hidden = 512},
      .solve_return = options.solve_return};
}

}  // namespace rill::torch_dqn
