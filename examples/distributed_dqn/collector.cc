// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/distributed_dqn/collector.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/sync_collector.h"
#include "rill/collectors/workers/worker.h"
#include "rill/distributed/client/short_calls.h"
#include "rill/distributed/replay/remote_sink.h"
#include "rill/distributed/transport/transport.h"
#include "rill/distributed/weights/remote_weights.h"
#include "rill/examples/async_dqn/worker.h"

namespace rill::distributed_dqn {
namespace {

using async_dqn::kLanes;

constexpr int64_t kStepsABatch = 32;

absl::StatusOr<RemoteSink::Stats> Collect(std::shared_ptr<Transport> transport,
                                          const CollectorOptions& options) {
  RILL_ASSIGN_OR_RETURN(
      const auto weights,
      MakeWhenThere(
          [&] {
            return RemoteWeights::Create(
                {.server = ShortCallsTo(transport, options.learner)});
          },
          options.stop));
  RILL_ASSIGN_OR_RETURN(const auto reader, weights->store().OpenReader());
  const auto shards = static_cast<int64_t>(options.shards.size());
  const int64_t of_shard = options.collector / shards;
  const std::string& shard = options.shards[options.collector % shards];
  RILL_ASSIGN_OR_RETURN(const auto sink,
                        MakeWhenThere(
                            [&] {
                              return RemoteSink::Create(
                                  {.server = ShortCallsTo(transport, shard)});
                            },
                            options.stop));
  const auto seed = static_cast<uint64_t>(options.collector);
  WorkerContext context;
  context.seed = seed;
  context.weights = reader.get();
  RILL_ASSIGN_OR_RETURN(WorkerParts parts, async_dqn::MakeWorker(context));
  RILL_ASSIGN_OR_RETURN(
      const auto collector,
      SyncCollector::Create({.env = std::move(parts.env),
                             .policy = parts.policy.get(),
                             .transforms = std::move(parts.transforms),
                             .frames_per_batch = kLanes * kStepsABatch,
                             .seed = seed,
                             .producer = options.collector,
                             .first_lane = of_shard * kLanes}));
  while (!*options.stop) {
    absl::Status status = weights->Pull().status();
    if (status.ok()) status = collector->CollectInto(*sink);
    // The collector offers the batch again.
    if (!IsForNow(status)) {
      RILL_RETURN_IF_ERROR(status);
    }
  }
  if (const absl::Status flushed = sink->Flush(); !IsForNow(flushed)) {
    RILL_RETURN_IF_ERROR(flushed);
  }
  return sink->GetStats();
}

}  // namespace

absl::StatusOr<RemoteSink::Stats> RunCollector(
    std::shared_ptr<Transport> transport, const CollectorOptions& options) {
  auto stats = Collect(std::move(transport), options);
  // It was stopped before the others were there.
  if (*options.stop && IsForNow(stats.status())) return RemoteSink::Stats{};
  return stats;
}

}  // namespace rill::distributed_dqn
