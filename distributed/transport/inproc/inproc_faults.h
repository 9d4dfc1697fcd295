// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_INPROC_INPROC_FAULTS_H_
#define RILL_DISTRIBUTED_TRANSPORT_INPROC_INPROC_FAULTS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace rill {

// Faults on the way in an InprocTransport, such as networks, proxies and dying
// machines have. Each is the probability that it happens to a
// request, in [0, 1]; one at most does.
//
// Draws are counter-based (base/rng.h): they depend on the seed, the number of
// the stream among the engine's, and the number of the request in the stream.
// Thread-safety: thread-compatible; the functions are thread-safe and O(1).
struct InprocFaults {
  uint64_t seed = 0;
  // The stream ends, and the service is not called.
  double lose_request = 0;
  // The stream ends behind the call.
  double lose_reply = 0;
  // The stream lives on without a reply to this request or any later one.
  double stall = 0;
  // The service is called twice, and the first reply arrives.
  double repeat = 0;
  // The stream ends, and the service is called later, behind up to 8 calls of
  // others: so requests of a client overtake its older ones.
  double late = 0;
  // Each request waits for a random time up to this.
  absl::Duration max_delay = absl::ZeroDuration();
};

// INVALID_ARGUMENT names the probability that is none, or their sum.
absl::Status CheckInprocFaults(const InprocFaults& faults);

enum class InprocFault {
  kNone,
  kLoseRequest,
  kLoseReply,
  kStall,
  kRepeat,
  kLate,
};

// The fate of a request.
struct InprocFate {
  InprocFault fault = InprocFault::kNone;
  int64_t calls_late = 0;  // Of kLate: calls of others before it, [1, 8].
  absl::Duration delay = absl::ZeroDuration();
};
InprocFate DrawInprocFate(const InprocFaults& faults, uint64_t stream,
                          uint32_t request);

}  // namespace rill

#endif  // RILL_DISTRIBUTED_TRANSPORT_INPROC_INPROC_FAULTS_H_
