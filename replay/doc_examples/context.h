// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_DOC_EXAMPLES_CONTEXT_H_
#define RILL_REPLAY_DOC_EXAMPLES_CONTEXT_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/formats/torchrl/torchrl_replay_buffer.h"
#include "rill/replay/ensemble/offline_to_online.h"
#include "rill/replay/ensemble/replay_buffer_ensemble.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/run/run_checkpoint.h"
#include "rill/replay/sample_units.h"
#include "rill/replay/torchrl/torchrl.h"
#include "rill/replay/writers/conformance/writer_conformance.h"
#include "rill/replay/writers/writer.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/schedule.h"
#include "rill/samplers/selectors/ordered_selector.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"

// Names that the examples of this package take for granted.
namespace rill::doc_examples {

extern const std::string directory;
extern const std::string files;
extern const std::string other;
extern const absl::Time deadline;
extern const Schedule fraction;
extern const TensorDict batch;
extern const TensorDict collecting;
extern const TensorDict learner;
extern const TensorDict steps;
extern const std::vector<float> priorities;
extern const std::shared_ptr<Storage> storage;
extern const std::unique_ptr<ReplayBuffer> buffer;
extern const std::shared_ptr<ReplayBuffer> walking;
extern const std::shared_ptr<ReplayBuffer> running;
extern const std::shared_ptr<ReplayBuffer> dataset;
extern const std::shared_ptr<ReplayBuffer> fresh;
extern const ReplayBuffer* const actor;
extern const ReplayBuffer* const critic;
extern std::map<std::string, ReplayBuffer::Options> options;
void Learn(const TensorDict& batch);
std::unique_ptr<Writer> MakeMyWriter();

}  // namespace rill::doc_examples

#endif  // RILL_REPLAY_DOC_EXAMPLES_CONTEXT_H_
