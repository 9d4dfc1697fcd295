// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_STAGING_STAGING_RING_H_
#define RILL_DEVICE_STAGING_STAGING_RING_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"

namespace rill {

// Host bytes on their way to a device: a ring of page-locked memory, of which
// each part is used again once the work that reads it is done. So the host
// fills a part while the device copies those before it.
//
// Each byte of the ring has its place in device memory as well, for copies that
// a kernel goes on from.
//
// Thread-safety: thread-compatible.
// Device/Stream: the work of a Release is ordered behind that of the Releases
//   before, by one stream or by events. The destructor waits for it.
// Cost: no allocation once the largest Take has been met.
//
// Example (StagingRingTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(const StagingRing::Part part, ring.Take(bytes));
//   std::memcpy(part.host, from, bytes);
//   RILL_RETURN_IF_ERROR(CopyAsync(to, part.host, bytes, stream));
//   RILL_RETURN_IF_ERROR(ring.Release(stream));
class StagingRing {
 public:
  struct Part {
    std::byte* host = nullptr;  // Page-locked; aligned to 64.
    std::byte* device = nullptr;
  };

  // Memory comes with the first Take: a power of two, four times what was taken
  // at once, within kMinBytes and kMaxBytes; more where one Take needs it.
  static constexpr int64_t kMinBytes = int64_t{64} << 10;
  static constexpr int64_t kMaxBytes = int64_t{16} << 20;

  explicit StagingRing(Device device) : device_(device) {}
  ~StagingRing();
  StagingRing(const StagingRing&) = delete;
  StagingRing& operator=(const StagingRing&) = delete;

  // Memory for Takes of so many bytes: none of them allocates. Waits for what is
  // under way where the ring grows.
  absl::Status Reserve(int64_t bytes);
  // `bytes` > 0 in a row, not initialised, until the next Release. Waits on the
  // host only where all of the ring is in use. RESOURCE_EXHAUSTED, with nothing
  // taken.
  absl::StatusOr<Part> Take(int64_t bytes);
  // The work that was given to `stream` so far uses the parts that were taken.
  // After an error that work is done.
  absl::Status Release(const Stream& stream);

  int64_t size_bytes() const { return size_; }

 private:
  // From here to the next one, or to the head; free once the event is reached.
  struct Used {
    int64_t begin = 0;
    int64_t bytes = 0;
    Event end_of_use;
  };

  // Where `bytes` are free now, or -1.
  int64_t FindRoom(int64_t bytes) const;
  void AwaitOldest();
  void AwaitAll();

  const Device device_;
  std::shared_ptr<Buffer> host_;
  std::shared_ptr<Buffer> there_;
  int64_t size_ = 0;
  int64_t head_ = 0;         // The next byte to take.
  int64_t taken_begin_ = 0;  // Of what was taken since the last Release.
  int64_t taken_bytes_ = 0;
  std::deque<Used> used_;  // From the oldest.
  std::vector<Event> spare_events_;
};

}  // namespace rill

#endif  // RILL_DEVICE_STAGING_STAGING_RING_H_
