// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_DISTRIBUTED_DQN_REMOTE_H_
#define RILL_EXAMPLES_DISTRIBUTED_DQN_REMOTE_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "rill/distributed/client/retrying_stream.h"
#include "rill/distributed/transport/transport.h"

namespace rill::distributed_dqn {

// The three programs of the run, each of which knows the others by an engine
// and addresses alone. They may be threads of one process.
//
//   collector --RemoteSink--> shard <--ShardedSampler-- learner
//       ^                                                  |
//       +----------------RemoteWeights---------------------+

// Another program of the run. Calls try for two seconds: their callers look at
// whether the run goes on, and call again.
inline RemoteServer At(const std::shared_ptr<Transport>& transport,
                       const std::string& address) {
  return {.transport = transport,
          .address = address,
          .reply_timeout = absl::Seconds(1),
          .timeout = absl::Seconds(2)};
}

// The other program is away, or its rate limiter holds the caller.
inline bool IsForNow(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

// The result of `make`, which is tried again while it fails for now: programs
// start in any order.
template <typename Make>
auto MakeWhenThere(const std::atomic<bool>& stop, const Make& make) {
  for (;;) {
    auto made = make();
    if (!IsForNow(made.status()) || stop) return made;
  }
}

}  // namespace rill::distributed_dqn

#endif  // RILL_EXAMPLES_DISTRIBUTED_DQN_REMOTE_H_
