// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_DISTRIBUTED_DQN_COLLECTOR_H_
#define RILL_EXAMPLES_DISTRIBUTED_DQN_COLLECTOR_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/distributed/replay/remote_sink.h"
#include "rill/distributed/transport/transport.h"

namespace rill::distributed_dqn {

// Steps CartPole by the newest weights until `stop`, and writes to its shard.
struct CollectorOptions {
  int64_t collector = 0;  // Of all.
  std::vector<std::string> shards = {};
  std::string learner = {};
  const std::atomic<bool>* stop = nullptr;  // Required, not owned.
};
absl::StatusOr<RemoteSink::Stats> RunCollector(
    std::shared_ptr<Transport> transport, const CollectorOptions& options);

}  // namespace rill::distributed_dqn

#endif  // RILL_EXAMPLES_DISTRIBUTED_DQN_COLLECTOR_H_
