// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/kills/learner_part.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/client/short_calls.h"
#include "rill/distributed/kills/ledger.h"
#include "rill/distributed/kills/part_options.h"
#include "rill/distributed/kills/part_rows.h"
#include "rill/distributed/kills/part_weights.h"
#include "rill/distributed/shards/sharded_sampler.h"
#include "rill/distributed/transport/transport.h"
#include "rill/distributed/weights/weight_service.h"
#include "rill/flow/weights/weight_store.h"
#include "rill/replay/run/run_checkpoint.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

constexpr int64_t kBatchSize = 32;
constexpr int64_t kPublishEvery = 4;  // Batches.
constexpr absl::Duration kPause = absl::Milliseconds(20);
constexpr absl::Duration kSaveEvery = absl::Milliseconds(300);
constexpr int64_t kVersionsAStart = int64_t{1} << 24;
constexpr char kState[] = "learner";
constexpr char kBatches[] = "batches";

absl::Status Save(const std::string& directory, int64_t batches) {
  RunCheckpoint::Contents contents;
  RILL_ASSIGN_OR_RETURN(Tensor leaf,
                        Tensor::From(std::vector<int64_t>{batches}, {1}));
  RILL_RETURN_IF_ERROR(contents.states[kState].Set(kBatches, std::move(leaf)));
  return RunCheckpoint::Save(directory, contents);
}

// 0 where nothing was saved.
absl::StatusOr<int64_t> Open(const std::string& directory) {
  if (!PathExists(directory)) return 0;
  RILL_ASSIGN_OR_RETURN(const RunCheckpoint::Opened run,
                        RunCheckpoint::Open(directory, {.states = {kState}}));
  RILL_ASSIGN_OR_RETURN(const auto batches,
                        run.states.at(kState).Flat<int64_t>(kBatches));
  return batches[0];
}

// One batch of whole rows, with other priorities. False where there is none
// now.
absl::StatusOr<bool> LearnOnce(ShardedSampler& sampler) {
  const absl::StatusOr<TensorDict> batch = sampler.Sample();
  if (IsForNow(batch.status()) || absl::IsFailedPrecondition(batch.status())) {
    return false;
  }
  RILL_RETURN_IF_ERROR(batch.status());
  RILL_RETURN_IF_ERROR(CheckRows(*batch));
  std::vector<float> priorities;
  for (int64_t i = 0; i < kBatchSize; ++i) {
    priorities.push_back(static_cast<float>(1 + i));
  }
  const absl::Status updated = sampler.UpdatePriorities(*batch, priorities);
  if (!IsForNow(updated)) {
    RILL_RETURN_IF_ERROR(updated);
  }
  return true;
}

}  // namespace

absl::Status RunLearner(std::shared_ptr<Transport> transport,
                        const PartOptions& options) {
  RILL_ASSIGN_OR_RETURN(const auto ledger,
                        Ledger::Create(options.directory, "learner",
                                       options.number, options.start));
  const std::string checkpoint =
      absl::StrCat(options.directory, "/checkpoint-learner-", options.number);
  RILL_ASSIGN_OR_RETURN(int64_t batches, Open(checkpoint));
  ledger->Line("resumed", batches);
  int64_t version = options.start * kVersionsAStart;
  RILL_ASSIGN_OR_RETURN(const TensorDict first, WeightsOf(version));
  RILL_ASSIGN_OR_RETURN(
      const auto store,
      WeightStore::Create({.weights = first, .version = version}));
  WeightService::Readers readers;
  RILL_ASSIGN_OR_RETURN(readers["policy"], store->OpenReader());
  RILL_ASSIGN_OR_RETURN(auto service,
                        WeightService::Create(std::move(readers)));
  RILL_ASSIGN_OR_RETURN(const auto server,
                        transport->Listen(options.address, std::move(service)));
  ledger->Line("serving");
  ShardedSampler::Options sampled = {.batch_size = kBatchSize};
  for (const std::string& shard : options.shards) {
    sampled.shards.push_back(ShortCallsTo(transport, shard));
  }
  RILL_ASSIGN_OR_RETURN(const auto sampler, ShardedSampler::Create(sampled));

  const std::string stop = absl::StrCat(options.directory, "/stop-learner");
  absl::Time save_due = Clock::Steady().Now() + kSaveEvery;
  while (!PathExists(stop)) {
    absl::SleepFor(kPause);
    RILL_ASSIGN_OR_RETURN(const bool has_learned, LearnOnce(*sampler));
    if (!has_learned) continue;
    ledger->Line("batches", ++batches);
    if (batches % kPublishEvery == 0) {
      RILL_ASSIGN_OR_RETURN(const TensorDict weights, WeightsOf(++version));
      RILL_RETURN_IF_ERROR(store->PublishAs(version, weights));
    }
    if (Clock::Steady().Now() < save_due) continue;
    RILL_RETURN_IF_ERROR(Save(checkpoint, batches));
    ledger->Line("saved", batches);
    save_due = Clock::Steady().Now() + kSaveEvery;
  }
  ledger->Line("end", batches);
  return absl::OkStatus();
}

}  // namespace rill
