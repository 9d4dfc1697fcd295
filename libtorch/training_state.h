// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_LIBTORCH_TRAINING_STATE_H_
#define RILL_LIBTORCH_TRAINING_STATE_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/libtorch/module_weights.h"
#include "rill/tensordict/tensor_dict.h"

namespace torch::optim {
class Optimizer;
}  // namespace torch::optim

namespace rill {

// A learner's torch as a state of a RunCheckpoint: a run that was stopped goes
// on bit for bit, on a CPU and with as many threads of torch (torch_threads.h).
// The state holds the weights and buffers of modules, and the moments, step
// counts and options (learning rates) of optimizers. It also holds torch's
// default generator of the CPU, from which initial weights and dropout draw.
// Generators of GPUs and gradients are left out: save between two steps.
//
// An optimizer is known by its name and class, its parameters by their order.
// Make modules and optimizers as the first run made them.
//
// Thread-safety: thread-compatible, as are the parts.
// Cost: SaveTraining copies what optimizers hold, once, and weights that are on
//   a GPU. The state shares the bytes of others: save it before the next step,
//   or Clone it.
//
// Example (TrainingStateTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto weights, ModuleWeights::Of(*net));
//   TrainingParts parts = {.weights = {{"net", weights}},
//                          .optimizers = {{"net", &adam}}};
//   RILL_ASSIGN_OR_RETURN(TensorDict state, SaveTraining(parts));
//   RILL_RETURN_IF_ERROR(RunCheckpoint::Save(
//       directory, {.buffers = {{"replay", buffer.get()}},
//                   .states = {{"learner", state}}}));
// In the next run, with new parts:
//   RILL_RETURN_IF_ERROR(LoadTraining(run.states["learner"], parts));
struct TrainingParts {
  std::map<std::string, ModuleWeights> weights = {};  // By name.
  std::map<std::string, torch::optim::Optimizer*> optimizers = {};
};

// Errors of torch, with the name of the optimizer.
absl::StatusOr<TensorDict> SaveTraining(const TrainingParts& parts);

// INVALID_ARGUMENT, nothing changed, where the state is of other parts: other
// names, another module (ModuleWeights::Load), another class of optimizer or
// other shapes of its parameters; says both sides. After torch's own errors, of
// a state that was damaged, what the optimizers hold is unspecified; states of
// a RunCheckpoint have checksums.
absl::Status LoadTraining(const TensorDict& state, const TrainingParts& parts);

}  // namespace rill

#endif  // RILL_LIBTORCH_TRAINING_STATE_H_
