// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_DISTRIBUTED_DQN_SHARD_H_
#define RILL_EXAMPLES_DISTRIBUTED_DQN_SHARD_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rill/distributed/server/replay_server.h"
#include "rill/distributed/transport/transport.h"

namespace rill::distributed_dqn {

// A shard of the replay: a prioritized table "replay" in memory.
struct ShardOptions {
  std::string address = {};
  int64_t shard = 0;
  int64_t collectors = 2;  // That write to this shard.
  // "": none. Where one is there, the shard goes on from it.
  std::string checkpoint_directory = {};
  absl::Duration checkpoint_every = absl::Seconds(30);
};
absl::StatusOr<std::unique_ptr<ReplayServer>> StartShard(
    std::shared_ptr<Transport> transport, const ShardOptions& options);

}  // namespace rill::distributed_dqn

#endif  // RILL_EXAMPLES_DISTRIBUTED_DQN_SHARD_H_
