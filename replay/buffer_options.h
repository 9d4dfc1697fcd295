// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_BUFFER_OPTIONS_H_
#define RILL_REPLAY_BUFFER_OPTIONS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/device/device.h"
#include "rill/flow/decision_log.h"
#include "rill/replay/rate_limiter.h"
#include "rill/replay/writers/writer.h"
#include "rill/samplers/sampler.h"
#include "rill/storage/storage.h"
#include "rill/transforms/batch_transform.h"

namespace rill {

// The parts and settings of a ReplayBuffer (ReplayBuffer::Options).
struct BufferOptions {
  std::shared_ptr<Storage> storage = nullptr;  // Required; may be shared.
  // Required. The arithmetic of its unit (n-step returns, stacked frames:
  // replay/sample_units.h) comes with it, before the transforms.
  std::unique_ptr<Sampler> sampler = nullptr;
  // Inverse in reverse order on writes, Forward in order on samples.
  std::vector<std::unique_ptr<BatchTransform>> transforms = {};
  int64_t batch_size = 0;   // Of Sample() without a number; 0: none.
  bool pin_memory = false;  // Samples in page-locked memory, for `pin_for`.
  // Samples moved there, from page-locked memory in a stream of the buffer's
  // own. Not with pin_memory.
  std::optional<Device> device = std::nullopt;
  Device pin_for = Device::Cuda(0);
  uint64_t seed = 0;
  // Batches that are drawn and made ahead, in [0, 1024]; needs batch_size.
  // About one call of Sample in prefetch / 2 wakes a worker, some 10 us.
  int64_t prefetch = 0;
  int prefetch_threads = 1;  // In [1, 256].
  // Chooses the places of rows: null for MakeRoundRobinWriter.
  std::unique_ptr<Writer> writer = nullptr;
  // Holds Extend and Sample to its ratio; buffers may share one. Rows count
  // when Extend has stored them (ExtendResult::rows_written: what a writer
  // drops is no insert), items when they are handed out. Rows that are there at
  // the start, and rows that are overwritten, do not count. Call
  // RateLimiter::DidInsert and DidDelete if they shall.
  std::shared_ptr<RateLimiter> rate_limiter = nullptr;
  // How long one call waits for it; DEADLINE_EXCEEDED after.
  absl::Duration rate_limit_timeout = absl::InfiniteDuration();
  // Notes writes, cuts, draws, priorities and patches, with their values where
  // these are on the host. Not owned; null: none. It outlives the buffer.
  DecisionLog* recorder = nullptr;
  // Measures Stats::elapsed and time_awaited, and outlives the buffer.
  const Clock* clock = &Clock::Steady();
};

namespace replay_internal {

// ReplayBuffer::CheckOptions.
absl::Status CheckBufferOptions(const BufferOptions& options);

}  // namespace replay_internal
}  // namespace rill

#endif  // RILL_REPLAY_BUFFER_OPTIONS_H_
