// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_LIBTORCH_DOC_EXAMPLES_CONTEXT_H_
#define RILL_LIBTORCH_DOC_EXAMPLES_CONTEXT_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/sync_collector.h"
#include "rill/collectors/workers/worker.h"
#include "rill/device/device.h"
#include "rill/envs/env.h"
#include "rill/flow/weights/weight_store.h"
#include "rill/libtorch/action_distribution.h"
#include "rill/libtorch/learner/td_errors.h"
#include "rill/libtorch/module_weights.h"
#include "rill/libtorch/target_network.h"
#include "rill/libtorch/tensor_exchange.h"
#include "rill/libtorch/torch_model.h"
#include "rill/libtorch/torch_policy.h"
#include "rill/libtorch/training_state.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/run/run_checkpoint.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "torch/nn/modules/linear.h"
#include "torch/optim/adam.h"

// Names that the examples of this package use and do not declare.
namespace rill::doc_examples {

extern std::unique_ptr<ReplayBuffer> buffer;
extern std::unique_ptr<Storage> storage;
extern torch::nn::Linear net, target, copy;
extern torch::optim::Adam adam;
extern std::unique_ptr<Env> env;
extern at::Tensor td_error, logits, mask, action, loc, scale, observation;
extern TensorDict batch;
extern std::string directory;
extern RunCheckpoint::Opened run;
extern TrainingParts parts;
extern WorkerContext context;
at::Tensor Loss(const at::Tensor& outputs, const TorchTensors& batch);

}  // namespace rill::doc_examples

#endif  // RILL_LIBTORCH_DOC_EXAMPLES_CONTEXT_H_
