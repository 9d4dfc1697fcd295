// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_STEPS_STEPS_ON_DEVICE_H_
#define RILL_ENVS_STEPS_STEPS_ON_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/uploads/stream_uploads.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/steps/lane_work.h"

namespace rill::envs_internal {

// The work of transforms beside an environment on its device
// (transforms/steps/device_steps.h): its stream, and masks on their way there.
// The host learns of a step which lanes are done, and what a transform has
// found wrong.
//
// Thread-safety: thread-compatible.
// Device/Stream: works on the thread's current stream at each Begin, behind the
//   work of the call before. Only ReadEnds may wait.
// Cost: no allocation on the device once masks were sent.
class StepsOnDevice {
 public:
  // A lane that is done or not as the device knows; see ReadEnds.
  static constexpr uint8_t kUnread = 2;

  // `done` bool [lanes, 1] on the device: the last next/done.
  // `sends_ends`: the host is to know it of each step, and faults of
  // `transforms` transforms. Errors of the device.
  static absl::StatusOr<std::unique_ptr<StepsOnDevice>> Create(
      const Tensor& done, bool sends_ends, size_t transforms);
  // Waits for the work.
  ~StepsOnDevice();
  StepsOnDevice(const StepsOnDevice&) = delete;
  StepsOnDevice& operator=(const StepsOnDevice&) = delete;

  // Begins a call. Then masks and copies, then End, which is also for a call
  // that has failed.
  absl::Status Begin();
  const Stream& stream() const { return *stream_; }
  // A copy on the device of a mask [lanes], until End.
  absl::StatusOr<const uint8_t*> Send(absl::Span<const uint8_t> mask);
  absl::Status Copy(absl::Span<const transforms_internal::LaneCopy> copies,
                    const uint8_t* mask = nullptr) const;
  // Where it is another one, the default stream waits for this one, as an
  // environment works behind that.
  absl::Status LetEnvironmentWait() const;
  absl::Status End();

  // A transform's, on the device.
  int64_t* fault(size_t transform) const;
  // Enqueues the copies to the host; between Begin and End.
  absl::Status SendEnds();

  struct Fault {
    size_t transform = 0;
    int64_t fault = 0;
  };
  // Puts what the device says in place of the entries of `done` that are
  // kUnread. Without `sends_ends` only where `wants_all`, by a copy that waits;
  // else it waits where the copy has not come yet. Returns the first transform
  // with a fault; faults are forgotten then.
  absl::StatusOr<std::optional<Fault>> ReadEnds(bool wants_all,
                                                std::vector<uint8_t>* done);
  // Until all work so far is done.
  absl::Status Await() const;

 private:
  StepsOnDevice(const Tensor& done, bool sends_ends)
      : done_(done), sends_ends_(sends_ends), uploads_(done.device()) {}

  void ForgetFaults();

  const Tensor done_;
  const bool sends_ends_;
  Tensor faults_;       // int64 [transforms], on the device.
  Tensor host_done_;    // Pinned.
  Tensor host_faults_;  // The same; 0 where none was copied.
  StreamUploads uploads_;
  bool sends_mask_ = false;  // In this call.
  std::optional<Stream> stream_;
  std::optional<Event> last_;  // Behind all work.
  StreamHandle last_stream_;
  bool ends_are_sent_ = false;  // And not read.
};

}  // namespace rill::envs_internal

#endif  // RILL_ENVS_STEPS_STEPS_ON_DEVICE_H_
