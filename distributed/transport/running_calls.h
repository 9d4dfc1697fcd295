// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_RUNNING_CALLS_H_
#define RILL_DISTRIBUTED_TRANSPORT_RUNNING_CALLS_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace rill {

// The calls of a server that are under way, for engines: Server::Shutdown is
// Close, what the engine does to streams that rest, and Await.
// Thread-safety: thread-safe; Begin, End and Close wait for nobody.
// Cost: O(1).
class RunningCalls {
 public:
  // False behind Close. Else End follows, behind the call's reply.
  bool Begin();
  void End();
  // No call begins any more.
  void Close();
  // OK where none runs at `deadline`; DEADLINE_EXCEEDED as Server::Shutdown.
  absl::Status Await(absl::string_view address, absl::Time deadline);

 private:
  absl::Mutex mu_;
  bool is_closed_ ABSL_GUARDED_BY(mu_) = false;
  int64_t running_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_TRANSPORT_RUNNING_CALLS_H_
