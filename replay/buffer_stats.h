// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_BUFFER_STATS_H_
#define RILL_REPLAY_BUFFER_STATS_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "rill/replay/rate_limiter.h"
#include "rill/storage/storage.h"

namespace rill {

// The work and content of a ReplayBuffer, at one look (ReplayBuffer::GetStats).
struct BufferStats {
  // A second.
  struct Rates {
    double rows_written = 0;
    double items_sampled = 0;
    double batches = 0;
  };
  // From an earlier look at this buffer to this one; from BufferStats(), since
  // it was made. All 0 where no time lies between.
  Rates RatesSince(const BufferStats& earlier) const;

  int64_t size = 0;
  int64_t capacity = 0;
  StorageUsage usage = {};
  // Device memory: the storage's, and that of batches that are made and wait,
  // or whose memory does; not of those being made at this moment.
  int64_t device_bytes = 0;
  // The transforms of samples are done while rows are gathered, with no batch
  // between them (transforms/rows/gather_plan.h).
  bool is_fused = false;
  absl::Duration elapsed = absl::ZeroDuration();  // Since it was made.
  int64_t rows_written = 0;  // By this buffer; those that were dropped not.
  int64_t items = 0;
  int64_t items_sampled = 0;  // Handed out, in
  int64_t batches = 0;
  int64_t batches_ahead = 0;  // Drawn and not handed out.
  // Batches that were not ready when they were asked for, and how long that
  // took. Without prefetch none.
  int64_t batches_awaited = 0;
  absl::Duration time_awaited = absl::ZeroDuration();
  // Counts and waits of the rate limiter, those of other buffers that
  // share it among them; nullopt where there is none.
  std::optional<RateLimiter::Stats> rate_limiter = std::nullopt;
};

}  // namespace rill

#endif  // RILL_REPLAY_BUFFER_STATS_H_
