// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/distributed_dqn/shard.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/server/replay_server.h"
#include "rill/distributed/server/server_config.h"
#include "rill/distributed/transport/transport.h"
#include "rill/examples/async_dqn/worker.h"
#include "rill/replay/rate_limiter.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/storage/dense_storage.h"

namespace rill::distributed_dqn {
namespace {

using async_dqn::kLanes;

constexpr int64_t kStepsALane = 10'000;
constexpr int64_t kWarmUpRows = 512;
// Each row is sampled some 16 times. Collectors wait where they are 2,000 rows
// ahead of that; the learner waits for the first rows alone.
constexpr double kSamplesPerRow = 16;
constexpr double kMostAhead = 2'000 * kSamplesPerRow;

}  // namespace

absl::StatusOr<std::unique_ptr<ReplayServer>> StartShard(
    std::shared_ptr<Transport> transport, const ShardOptions& options) {
  const int64_t lanes = options.collectors * kLanes;
  ReplayBuffer::Options table = {.seed = static_cast<uint64_t>(options.shard),
                                 .rate_limit_timeout = absl::Milliseconds(500)};
  RILL_ASSIGN_OR_RETURN(
      table.storage,
      DenseStorage::Create({.capacity = lanes * kStepsALane, .lanes = lanes}));
  RILL_ASSIGN_OR_RETURN(table.sampler, MakePrioritizedSampler());
  RILL_ASSIGN_OR_RETURN(
      table.rate_limiter,
      RateLimiter::Create(
          {.samples_per_insert = kSamplesPerRow,
           .min_size_to_sample = kWarmUpRows,
           .max_diff = kWarmUpRows * kSamplesPerRow + kMostAhead}));
  ServerConfig config = {
      .listen = options.address,
      .checkpoint_directory = options.checkpoint_directory,
      .checkpoint_every = options.checkpoint_directory.empty()
                              ? absl::InfiniteDuration()
                              : options.checkpoint_every};
  config.tables["replay"] = std::move(table);
  return ReplayServer::Start(std::move(transport), std::move(config));
}

}  // namespace rill::distributed_dqn
