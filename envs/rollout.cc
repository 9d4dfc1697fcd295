// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/rollout.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "rill/base/catch_exceptions.h"
#include "rill/base/status_macros.h"
#include "rill/envs/steps/step_driver.h"
#include "rill/envs/steps/step_recorder.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/dim_names.h"

namespace rill {
namespace {

// Rows a lane that a rollout allocates at once.
constexpr int64_t kBlockSteps = 1024;

// Which lanes have ended so far, and whether that stops the rollout.
class Ends {
 public:
  Ends(int64_t lanes, const RolloutOptions& options)
      : options_(options), ended_(static_cast<size_t>(lanes), 0) {}

  bool Add(absl::Span<const bool> done) {
    for (size_t lane = 0; lane < ended_.size(); ++lane) {
      ended_[lane] |= done[lane];
    }
    const auto count = std::count(ended_.begin(), ended_.end(), 1);
    return (options_.break_when_any_done && count > 0) ||
           (options_.break_when_all_done &&
            count == static_cast<int64_t>(ended_.size()));
  }

 private:
  const RolloutOptions& options_;
  std::vector<uint8_t> ended_;
};

// Ends the lanes of the last step that go on.
absl::Status TruncateLast(TensorDict& batch) {
  RILL_ASSIGN_OR_RETURN(const auto done, batch.Flat<bool>("next/done"));
  RILL_ASSIGN_OR_RETURN(const auto truncated,
                        batch.Flat<bool>("next/truncated"));
  const auto time = static_cast<size_t>(batch.batch_shape()[1]);
  for (size_t row = time - 1; row < done.size(); row += time) {
    truncated[row] = truncated[row] || !done[row];
    done[row] = true;
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorDict> RollOut(Env& env, Policy& policy,
                                   const RolloutOptions& options) {
  if (options.max_steps < 1) {
    return InvalidArgument("Rollout: max_steps: got ", options.max_steps,
                           ", want >= 1");
  }
  RILL_ASSIGN_OR_RETURN(StepDriver driver, StepDriver::Create(&env, &policy));
  if (options.auto_reset) {
    RILL_RETURN_IF_ERROR(driver.ResetAll());
  }

  const int64_t lanes = env.lanes();
  const TensorDictSpec& spec = driver.spec();
  Ends ends(lanes, options);
  // Rows are allocated in blocks, since an episode may end long before
  // max_steps. The price is one copy of more than one block at the end.
  std::vector<TensorDict> blocks;
  bool stop = false;
  for (int64_t begin = 0; begin < options.max_steps && !stop;
       begin += kBlockSteps) {
    const int64_t size = std::min(kBlockSteps, options.max_steps - begin);
    RILL_ASSIGN_OR_RETURN(TensorDict block, spec.Zero({lanes, size}));
    RILL_ASSIGN_OR_RETURN(StepRecorder recorder,
                          StepRecorder::Create(spec, block));
    RILL_RETURN_IF_ERROR(recorder.Bind(driver.step()));
    int64_t t = 0;
    while (t < size && !stop) {
      RILL_RETURN_IF_ERROR(driver
                               .Act({.frames = (begin + t) * lanes,
                                     .step = begin + t,
                                     .explore = options.explore})
                               .status());
      RILL_RETURN_IF_ERROR(driver.Step());
      RILL_RETURN_IF_ERROR(driver.ReadEnds());
      // Before Advance, which overwrites the root and resets lanes.
      RILL_RETURN_IF_ERROR(recorder.Record(t++));
      stop = ends.Add(driver.done());
      RILL_RETURN_IF_ERROR(driver.Advance());
    }
    recorder.Flush();
    if (t < size) {
      RILL_ASSIGN_OR_RETURN(block, block.Slice(1, 0, t));
      // Frees the rows behind the last step, which a slice would keep.
      RILL_ASSIGN_OR_RETURN(block, block.Clone());
    }
    blocks.push_back(std::move(block));
  }
  if (options.set_truncated) {
    RILL_RETURN_IF_ERROR(TruncateLast(blocks.back()));
  }
  TensorDict all;
  if (blocks.size() == 1) {
    all = std::move(blocks[0]);
  } else {
    RILL_ASSIGN_OR_RETURN(all, Cat(blocks, /*dim=*/1));
  }
  RILL_RETURN_IF_ERROR(
      all.SetDimNames({std::string(kLanesName), std::string(kTimeName)}));
  return all;
}

}  // namespace

absl::StatusOr<TensorDict> Rollout(Env& env, Policy& policy,
                                   const RolloutOptions& options) {
  return CatchExceptions([&] { return RollOut(env, policy, options); },
                         "Rollout");
}

}  // namespace rill
