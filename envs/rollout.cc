// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/rollout.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/envs/step_driver.h"
#include "rill/envs/steps/step_recorder.h"

namespace rill {
namespace {

// Rows a lane that a rollout allocates at once.
constexpr int64_t kBlockSteps = 1024;

}  // namespace

absl::StatusOr<TensorDict> Rollout(Env& env, ActFunction act,
                                   const RolloutOptions& options) {
  if (options.max_steps < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Rollout: max_steps: got ", options.max_steps, ", want >= 1"));
  }
  RILL_ASSIGN_OR_RETURN(TensorDictSpec spec, StepSpec(env));
  RILL_ASSIGN_OR_RETURN(StepDriver driver, StepDriver::Create(&env));
  RILL_RETURN_IF_ERROR(driver.ResetAll());

  const int64_t lanes = env.lanes();
  std::vector<uint8_t> ended(lanes, 0);
  std::vector<TensorDict> blocks;
  for (int64_t begin = 0; begin < options.max_steps; begin += kBlockSteps) {
    const int64_t size = std::min(kBlockSteps, options.max_steps - begin);
    RILL_ASSIGN_OR_RETURN(TensorDict block, spec.Zero({lanes, size}));
    RILL_ASSIGN_OR_RETURN(StepRecorder recorder,
                          StepRecorder::Create(spec, block));
    RILL_RETURN_IF_ERROR(recorder.Bind(driver.step()));
    int64_t t = 0;
    bool stop = false;
    while (t < size) {
      RILL_RETURN_IF_ERROR(driver.Step(act));
      recorder.Record(t++);
      for (int64_t lane = 0; lane < lanes; ++lane) {
        ended[lane] |= driver.done()[lane];
      }
      stop = options.break_when_all_done &&
             std::count(ended.begin(), ended.end(), 0) == 0;
      if (stop) break;
      RILL_RETURN_IF_ERROR(driver.Advance());
    }
    if (t < size) {
      RILL_ASSIGN_OR_RETURN(block, block.Slice(1, 0, t));
      RILL_ASSIGN_OR_RETURN(block, block.Clone());
    }
    blocks.push_back(std::move(block));
    if (stop) break;
  }
  if (blocks.size() == 1) return std::move(blocks[0]);
  return Cat(blocks, /*dim=*/1);
}

}  // namespace rill
