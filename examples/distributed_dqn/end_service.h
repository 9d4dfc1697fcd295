// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_DISTRIBUTED_DQN_END_SERVICE_H_
#define RILL_EXAMPLES_DISTRIBUTED_DQN_END_SERVICE_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"

namespace rill::distributed_dqn {

// Where ranks of one job cannot be signalled one by one: ends a part of the run
// when the learner calls, and tells it how many rows the part counts.
// Thread-safety: thread-safe.
class EndService final : public Service {
 public:
  const std::atomic<bool>& stop() const { return stop_; }
  // The part has ended.
  void Done(int64_t rows);

  absl::StatusOr<Message> Call(const CallInfo& info,
                               const Message& request) override;

 private:
  std::atomic<bool> stop_ = false;
  std::atomic<int64_t> rows_ = 0;
  absl::Notification done_;
};

// Calls the EndService there, and waits until its part has ended: its rows.
absl::StatusOr<int64_t> End(Transport& transport, const std::string& address,
                            absl::Time deadline);

}  // namespace rill::distributed_dqn

#endif  // RILL_EXAMPLES_DISTRIBUTED_DQN_END_SERVICE_H_
