// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_REQUEST_AGES_H_
#define RILL_DISTRIBUTED_TRANSPORT_REQUEST_AGES_H_

#include <algorithm>

#include "absl/time/time.h"

namespace rill {

// How long requests of a stream waited for those before them. A client says by
// its own clock when it sends one. The one that came the fastest has waited for
// nothing: what others take longer is their age.
// Thread-safety: thread-compatible.
class RequestAges {
 public:
  // The request is read `now`, by this side's steady clock, and was sent at
  // `sent` by the client's.
  absl::Duration Of(absl::Time now, absl::Duration sent) {
    const absl::Duration way = now - absl::UnixEpoch() - sent;
    shortest_ = std::min(way, shortest_ + kDrift * (now - last_));
    last_ = now;
    return way - shortest_;
  }

 private:
  // Clocks of two machines do not run alike; none is as far off as this.
  static constexpr double kDrift = 1e-3;

  absl::Duration shortest_ = absl::InfiniteDuration();
  absl::Time last_ = absl::InfinitePast();
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_TRANSPORT_REQUEST_AGES_H_
