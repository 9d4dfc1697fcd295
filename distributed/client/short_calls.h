// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_CLIENT_SHORT_CALLS_H_
#define RILL_DISTRIBUTED_CLIENT_SHORT_CALLS_H_

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "rill/distributed/client/retrying_stream.h"
#include "rill/distributed/transport/transport.h"

namespace rill {

// For programs of a run that start and end in any order: each call tries for
// two seconds, and then its caller looks whether the run goes on.
// Thread-safety: thread-safe.

inline RemoteServer ShortCallsTo(std::shared_ptr<Transport> transport,
                                 std::string address) {
  return {.transport = std::move(transport),
          .address = std::move(address),
          .reply_timeout = absl::Seconds(1),
          .timeout = absl::Seconds(2)};
}

// The other program is away, or its rate limiter holds the caller.
inline bool IsForNow(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

// The result of `make`, which is tried again while it fails for now, until
// `stop` where there is one.
template <typename Make>
auto MakeWhenThere(const Make& make, const std::atomic<bool>* stop = nullptr) {
  for (;;) {
    auto made = make();
    if (!IsForNow(made.status()) || (stop != nullptr && *stop)) return made;
  }
}

}  // namespace rill

#endif  // RILL_DISTRIBUTED_CLIENT_SHORT_CALLS_H_
