// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_PRIORITIES_DEVICE_PRIORITIES_H_
#define RILL_DEVICE_PRIORITIES_DEVICE_PRIORITIES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/device/priorities/priority_kernels.h"
#include "rill/device/stream.h"

namespace rill {

// Priorities of slots in the memory of a device, and draws in proportion to
// them. Weights, sums, draws and importances have the bits of those that
// samplers/prioritized makes on the host.
//
// A slot has a priority, a generation (which row it holds) and whether it may
// be drawn. At first all have priority 0, no row, and may not. The weight of
// one that may be drawn is (priority + epsilon)^alpha.
//
// Device/Stream: work is enqueued in a stream of its own, Update in the
//   caller's; the two wait for each other on the device. Only Create, Draw and
//   Read wait on the host, and Apply where it is kPages calls ahead.
// Errors: those of LaunchKernel (kernel_launch.h) and of the backend; the call
//   has changed nothing. A device may also fail later: Draw and Read say so
//   then, and from there on Check says whether changes were lost.
// After an error of SetAlpha or TurnAllOff the call is made again before a
// draw. Thread-safety: thread-compatible. Cost: one launch a call, O(count /
// 1024 * log8(size)), and Draw O(log8(size))
//   a thread. Apply has a copy of 24 bytes a change, Draw writes 12 bytes a
//   draw to the host. 31 bytes a slot on the device, 0.4 MB of pinned memory.
//
// Shown on the fake device; CUDA links @rill//cuda.
//
// Example (DevicePrioritiesTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       auto priorities,
//       DevicePriorities::Create({.size = 1'000'000, .alpha = 0.6,
//                                 .device = Device::Cuda()}));
//   RILL_RETURN_IF_ERROR(priorities->Apply(changes, {}));
//   RILL_RETURN_IF_ERROR(priorities->Update({slots, generations, td_errors, n},
//                                           nullptr, stream));
//   RILL_ASSIGN_OR_RETURN(const DevicePriorities::Drawn drawn,
//                         priorities->Draw({.seed = 7, .count = 256}));
class DevicePriorities {
 public:
  struct Options {
    int64_t size = 0;
    double alpha = 1;    // >= 0 and finite.
    double epsilon = 0;  // In [0, 1e30].
    Device device = Device::Cpu();
  };
  // INVALID_ARGUMENT where size < 1; RESOURCE_EXHAUSTED.
  static absl::StatusOr<std::unique_ptr<DevicePriorities>> Create(
      const Options& options);
  // Waits for all work.
  ~DevicePriorities();

  int64_t size() const { return options_.size; }
  Device device() const { return options_.device; }

  using Change = device_internal::PriorityChange;
  struct Largest {
    // The bits of the largest priority among the changes, plus 1; 0: none.
    int64_t bits = 0;
    // It takes the place of the largest so far, else if it is larger.
    bool replaces = false;
  };
  static constexpr size_t kMostChanges = 4096;
  static constexpr size_t kPages = 4;
  // At most kMostChanges, of slots in [0, size()); neither is checked. Where a
  // slot comes twice, the last one counts alone.
  absl::Status Apply(absl::Span<const Change> changes, const Largest& largest);

  // New priorities of rows, all in memory that the device can reach. A row that
  // is not there (a slot of another generation, or none) is passed over. A
  // priority that is negative or not finite is too, and counts as bad. Where a
  // row comes twice, the last good one counts.
  struct Rows {
    const int64_t* slots = nullptr;
    const int64_t* generations = nullptr;
    const float* priorities = nullptr;
    int64_t count = 0;
  };
  // Enqueued on `stream`, of the device; `owner` is kept until it got there.
  absl::Status Update(const Rows& rows, std::shared_ptr<const void> owner,
                      const Stream& stream);

  // Weights of another alpha / no slot may be drawn. A launch a level.
  absl::Status SetAlpha(double alpha);
  absl::Status TurnAllOff();
  // All is as at first.
  absl::Status Clear();

  struct Request {
    uint64_t seed = 0;
    uint64_t batch = 0;
    uint32_t first = 0;  // The number of the first draw.
    int64_t count = 0;   // >= 1
    double beta = 0;     // >= 0
    // Draw i falls into the i-th of `count` equal shares of the total.
    bool stratified = false;
  };
  // Until the next call. With a total of 0 there are no draws.
  struct Drawn {
    double total = 0;
    absl::Span<const int64_t> slots = {};
    absl::Span<const float> importances = {};
  };
  // Those of the stream RngStream::kSampler.
  absl::StatusOr<Drawn> Draw(const Request& request);

  struct Contents {
    std::vector<float> priorities = {};
    std::optional<float> largest = std::nullopt;  // So far.
  };
  absl::StatusOr<Contents> Read();

  // Bad priorities of updates, as of the last Draw or Read.
  struct Bad {
    int64_t count = 0;
    int64_t first_slot = 0;
    float first_priority = 0;
  };
  const Bad& bad() const { return bad_; }

 private:
  using Tree = device_internal::PriorityTree;
  // Changes on their way.
  struct Page {
    std::shared_ptr<Buffer> host;
    std::shared_ptr<Buffer> device;
    std::optional<Event> used;  // Where their last use ends.
  };

  DevicePriorities(const Options& options, Stream stream);

  absl::Status Allocate();
  // That the device has made all writes, after it was waited for.
  absl::Status Check(const device_internal::PriorityNumbers& numbers);
  absl::Status MakeLevels(bool turns_off);
  // A number for each of `count` places of a write.
  int64_t TakeNumbers(int64_t count);
  void DropUsed();

  Options options_;
  Stream stream_;
  Tree tree_;
  std::shared_ptr<Buffer> memory_;
  std::array<Page, kPages> pages_;
  size_t next_page_ = 0;
  std::shared_ptr<Buffer> draws_;  // Host memory.
  int64_t next_number_ = 1;
  int64_t num_writes_ = 0;  // That were enqueued.
  Bad bad_;
  // Memory of updates, and until when it is kept.
  std::deque<std::pair<Event, std::shared_ptr<const void>>> owners_;
};

}  // namespace rill

#endif  // RILL_DEVICE_PRIORITIES_DEVICE_PRIORITIES_H_
