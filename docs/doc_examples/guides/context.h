// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DOCS_DOC_EXAMPLES_GUIDES_CONTEXT_H_
#define RILL_DOCS_DOC_EXAMPLES_GUIDES_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/sync_collector.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/env.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/lane_env.h"
#include "rill/envs/policies/policy.h"
#include "rill/envs/policies/policy_critic.h"
#include "rill/estimators/next_state_value.h"
#include "rill/estimators/value_estimators.h"
#include "rill/formats/memmap_directory.h"
#include "rill/replay/ensemble/offline_to_online.h"
#include "rill/replay/rate_limiter.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/run/run_checkpoint.h"
#include "rill/replay/sample_units.h"
#include "rill/replay/writers/removing_writer.h"
#include "rill/replay/writers/writer.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/schedule.h"
#include "rill/samplers/selectors/consuming_selector.h"
#include "rill/samplers/selectors/ordered_selector.h"
#include "rill/samplers/selectors/without_replacement.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"

// Names that the examples of these pages use and do not declare.
namespace rill::doc_examples {

extern Policy& policy;
// The network's step on a batch; an error a row.
absl::StatusOr<std::vector<float>> Learn(const TensorDict& batch);

// datasets.md
extern const std::shared_ptr<ReplayBuffer> dataset, fresh;
extern SyncCollector& collector;

// on_policy.md
extern const ReplayBuffer& minibatches;
extern const TensorDict learned;
extern const std::string folder;

// replay.md
extern std::unique_ptr<Storage>& storage;
extern std::unique_ptr<Sampler>& sampler;
extern ReplayBuffer* const buffer;

// envpool.md
extern const EnvSpec spec;
absl::StatusOr<std::unique_ptr<Lane>> MakeLane(int64_t lane,
                                               const TensorDict& row);

}  // namespace rill::doc_examples

#endif  // RILL_DOCS_DOC_EXAMPLES_GUIDES_CONTEXT_H_
