// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_ROWS_DEVICE_ORDER_H_
#define RILL_STORAGE_ROWS_DEVICE_ORDER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/tensors/tensor.h"

namespace rill::storage_internal {

// The order of copies from and to a table of rows on a device, each of which is
// enqueued on some stream: a read comes behind all writes so far, a write
// behind those and behind the reads of its rows. Streams wait, the host does
// not.
//
// Rows of a write that fails after it was enqueued are lost: undefined until
// they are written again.
// Thread-safety: thread-compatible.
// Cost: an event a copy, and O(its rows). No allocation once buffers have been
//   used.
class DeviceOrder {
 public:
  static absl::StatusOr<std::unique_ptr<DeviceOrder>> Create(Device device);
  // Waits for all reads and writes.
  ~DeviceOrder();

  // The stream of copies that name none.
  const Stream& stream() const { return stream_; }

  // The error of the writes that failed since the last call.
  absl::Status TakeFailure();
  bool has_lost_rows() const { return !lost_.empty(); }
  // The error where one of these rows is lost.
  absl::Status CheckNotLost(absl::Span<const int64_t> rows);

  // `stream` waits for the writes so far. The read is enqueued there next.
  absl::Status BeginRead(const Stream& stream);
  // The end of a read on stream(), for a caller who waits for it without the
  // lock that guards this, and then gives it back with the lock. After an error
  // the stream was waited for.
  absl::StatusOr<Event> MarkRead();
  void EndWaitedRead(Event end);
  // The end of that read, of `rows`. After an error the stream was waited for.
  absl::StatusOr<Event> EndRead(const Stream& stream,
                                absl::Span<const int64_t> rows);

  // `stream` waits for the writes so far and for reads of `rows`, or for reads
  // of rows between these. Cost: O(rows of reads that are under way).
  absl::Status BeginWrite(const Stream& stream, absl::Span<const int64_t> rows);
  // The write of these rows was enqueued. `held` are kept until it is done.
  // After an error the stream was waited for.
  absl::Status EndWrite(const Stream& stream, absl::Span<const int64_t> rows,
                        std::vector<Tensor> held);

  // Blocks the host until no write is under way.
  void AwaitWrites();

 private:
  // A read or write that had not ended when it was last looked at.
  struct Copy {
    Event end;
    std::vector<int64_t> rows;
    std::vector<Tensor> held;
  };

  explicit DeviceOrder(Stream stream) : stream_(std::move(stream)) {}

  absl::StatusOr<Copy> MakeCopy(const Stream& stream,
                                absl::Span<const int64_t> rows);
  void Recycle(Copy copy);
  void ForgetReadsThatEnded();
  // Also finds what has failed. With `await` no write is left.
  void ForgetWritesThatEnded(bool await);

  const Stream stream_;
  int64_t waited_reads_ = 0;  // On stream_, between MarkRead and its end.
  std::vector<Copy> reads_;
  std::deque<Copy> writes_;  // Each waits for those before it.
  std::vector<Copy> spare_;
  absl::Status failure_;       // That TakeFailure gives.
  absl::Status last_failure_;  // What `lost_` comes from.
  absl::flat_hash_set<int64_t> lost_;
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_ROWS_DEVICE_ORDER_H_
