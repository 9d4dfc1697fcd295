// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/distributed_dqn/learner_checkpoint.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/examples/dqn_cartpole/learner/double_dqn.h"
#include "rill/examples/dqn_cartpole/pipeline.h"
#include "rill/replay/run/run_checkpoint.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill::distributed_dqn {
namespace {

constexpr char kNetworks[] = "learner";
constexpr char kPosition[] = "position";
constexpr char kLeaf[] = "updates_and_starts";

}  // namespace

absl::Status SaveLearner(const std::string& directory,
                         const LearnerPosition& position,
                         dqn_cartpole::DoubleDqn& learner) {
  RunCheckpoint::Contents contents;
  RILL_ASSIGN_OR_RETURN(contents.states[kNetworks],
                        dqn_cartpole::SaveLearner(learner));
  RILL_ASSIGN_OR_RETURN(
      Tensor leaf,
      Tensor::From(std::vector<int64_t>{position.updates, position.starts},
                   {2}));
  RILL_RETURN_IF_ERROR(contents.states[kPosition].Set(kLeaf, std::move(leaf)));
  return RunCheckpoint::Save(directory, contents);
}

absl::StatusOr<LearnerPosition> OpenLearner(const std::string& directory,
                                            dqn_cartpole::DoubleDqn* learner) {
  if (!PathExists(directory)) return LearnerPosition{};
  RILL_ASSIGN_OR_RETURN(
      const RunCheckpoint::Opened run,
      RunCheckpoint::Open(directory, {.states = {kNetworks, kPosition}}));
  RILL_ASSIGN_OR_RETURN(const auto numbers,
                        run.states.at(kPosition).Flat<int64_t>(kLeaf));
  if (numbers.size() != 2) {
    return DataLoss("OpenLearner: ", kLeaf, ": got ", numbers.size(),
                    " numbers, want 2");
  }
  RILL_RETURN_IF_ERROR(
      dqn_cartpole::LoadLearner(run.states.at(kNetworks), learner));
  return LearnerPosition{.updates = numbers[0], .starts = numbers[1]};
}

}  // namespace rill::distributed_dqn
