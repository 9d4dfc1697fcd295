// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_DEVICES_DEVICE_BATCH_H_
#define RILL_COLLECTORS_DEVICES_DEVICE_BATCH_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/device/device.h"
#include "rill/device/row_column.h"
#include "rill/device/stream.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill::collectors_internal {

// The batch [lanes, time] of a collector whose steps, or whose batches, lie on
// a device. One of two ways:
//   Steps in host memory: the host writes every leaf of written(), and End
//     copies them to the device.
//   Steps on a device: Record writes their rows to their places in batch(), on
//     the device or in pinned host memory. The leaves that no step has are in
//     written(), and End writes those.
//
// Thread-safety: thread-compatible. Holds the bytes on both sides.
// Device/Stream: all work is enqueued on one stream. Nothing waits but Begin,
//   Await and the destructor.
// Cost: Record is one row copy; a batch is one event more, and one copy a leaf
//   or one row copy.
class DeviceBatch {
 public:
  struct Options {
    TensorDictSpec spec;       // Of the batch.
    TensorDictSpec step_spec;  // Its leaves that steps have.
    int64_t time = 0;
    Device storing_device = Device::Cpu();
  };

  // `step` [lanes] keeps its leaves. INVALID_ARGUMENT names one on a device
  // that is not contiguous. `stream` is of the device of steps or batch.
  static absl::StatusOr<std::unique_ptr<DeviceBatch>> Create(
      Options options, const TensorDict& step, const Stream& stream);
  ~DeviceBatch();
  DeviceBatch(const DeviceBatch&) = delete;
  DeviceBatch& operator=(const DeviceBatch&) = delete;

  const TensorDict& batch() const { return batch_; }
  const TensorDict& written() const { return written_; }
  bool records_on_device() const { return !step_columns_.empty(); }

  // Once this returns no copy reads written() any more. A batch() on the device
  // is written behind the work so far on the thread's CurrentStream.
  absl::Status Begin();
  // The next two need records_on_device().
  absl::Status Record(int64_t t);
  // Makes step `t` truncated and done in the lanes where it is not done.
  absl::Status Truncate(int64_t t, absl::Span<const bool> done);
  // The event is where the batch is whole.
  absl::StatusOr<std::shared_ptr<const Event>> End();
  absl::Status Await();

 private:
  DeviceBatch(int64_t lanes, int64_t time, Stream stream)
      : lanes_(lanes), time_(time), stream_(std::move(stream)) {}

  absl::Status MakeLeaves(const Options& options, bool steps_on_device);
  absl::Status BindSteps(const Options& options, const TensorDict& step);
  absl::Status Scatter(absl::Span<const RowColumn> columns);
  absl::Status EnqueueWritten();

  const int64_t lanes_;
  const int64_t time_;
  const Stream stream_;
  bool is_batch_there_ = false;
  TensorDict step_;
  TensorDict batch_;
  TensorDict written_;
  Tensor ones_;  // Bool [lanes].
  std::vector<RowColumn> step_columns_;
  std::vector<RowColumn> written_columns_;
  std::vector<RowColumn> end_columns_;
  std::vector<int64_t> rows_;                  // Of the next row copy.
  std::shared_ptr<const Event> written_read_;  // Null: nothing reads written_.
};

}  // namespace rill::collectors_internal

#endif  // RILL_COLLECTORS_DEVICES_DEVICE_BATCH_H_
