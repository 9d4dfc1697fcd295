// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_SAMPLING_PLACEMENT_H_
#define RILL_REPLAY_SAMPLING_PLACEMENT_H_

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "rill/device/current_stream.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/replay/sampling/sample_batches.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill::replay_internal {

// Puts batches where a replay buffer's options want them: the memory that they
// are gathered in, and the last step of a sample, behind all transforms. Owns
// the stream of all work on a device, from the gather to the last copy.
//
// The ways, by the options and the storage's device:
// - neither pin_memory nor device: the batch stays where it was gathered.
// - pin_memory: gathered in pinned memory; leaves that a transform made are
//   pinned.
// - device, rows in host memory: gathered in pinned memory, then copied in its
//   stream (PlacedBatch::copied).
// - rows on a device, and that or no other is wanted: all is enqueued in its
//   stream, and the batch has the event of its end (PlacedBatch::copied).
// - rows on a device, and another is wanted: moved there when Place returns.
// - a batch that its transforms have moved to a device, where nothing is
//   wanted: the event is of the device's default stream.
//
// Thread-safety: thread-safe; a Staging belongs to one thread at a time. Its
//   lock is held while a copy and its event are enqueued, and no other is taken
//   under it.
// Cost: an event where the batch lies there already; a copy allocates.
class Placement {
 public:
  struct Options {
    std::optional<Device> device = std::nullopt;
    bool pin_memory = false;  // Not with `device`.
    Device pin_for = Device::Cuda(0);
    Device storage_device = Device::Cpu();
  };

  // Host memory in which one batch after the other is gathered where batches
  // are copied to a device, and what the last batch's work still uses. The
  // destructor waits for that work.
  class Staging {
   public:
    Staging() = default;
    ~Staging() { Await(); }
    Staging(const Staging&) = delete;
    Staging& operator=(const Staging&) = delete;

    // Of all work of the last batch on a device; null: there was none.
    const std::shared_ptr<const Event>& end() const { return end_; }

   private:
    friend class Placement;
    // Nothing reads the memory any more when this returns.
    void Await();

    TensorDict rows_;
    std::shared_ptr<const Event> end_;
    std::vector<Tensor> in_flight_;
  };

  // Errors of Stream::Create.
  static absl::StatusOr<std::unique_ptr<Placement>> Create(
      const Options& options);

  // The place of all batches; none: they stay where they were gathered.
  std::optional<Device> device() const { return options_.device; }

  // While it lives, a batch is made: the stream of the work is its thread's
  // current one. Where `status` is an error at its end, all work was waited
  // for: it may use memory of a batch that is dropped.
  class Making {
   public:
    Making(const Placement& placement, const absl::Status* status);
    ~Making() {
      if (!status_->ok()) placement_.AwaitAll();
    }
    Making(const Making&) = delete;
    Making& operator=(const Making&) = delete;

   private:
    const Placement& placement_;
    const absl::Status* const status_;
    std::optional<StreamScope> scope_;
  };
  // Work of later batches waits for what `stream` has now. For batches whose
  // work is on a device.
  absl::Status WaitFor(const Stream& stream) const;

  // The memory of leaves that a gather makes of rows in host memory.
  Tensor::Options gather_memory() const;

  // Calls `read` with the memory of the batch to be: that of `batch`, or
  // `staging`'s own once nothing reads it; `batch` has the rows then. Its
  // errors are the read's: a copy that failed before belongs to its batch.
  absl::Status Gather(Staging* staging, GatheredBatch* batch,
                      absl::FunctionRef<absl::Status(TensorDict* rows)> read)
      const ABSL_LOCKS_EXCLUDED(copy_mutex_);

  // The last step. RESOURCE_EXHAUSTED without memory; errors of the device. A
  // batch that fails is dropped.
  absl::StatusOr<PlacedBatch> Place(GatheredBatch batch, Staging* staging) const
      ABSL_LOCKS_EXCLUDED(copy_mutex_);

 private:
  Placement(const Options& options, std::optional<Stream> stream)
      : options_(options), stream_(std::move(stream)) {}

  // Waits for all work.
  void AwaitAll() const;
  // Rows in host memory are copied to a device in the end.
  bool copies() const {
    return stream_.has_value() && options_.storage_device.is_cpu();
  }
  absl::StatusOr<PlacedBatch> Copy(const TensorDict& rows,
                                   Staging* staging) const
      ABSL_LOCKS_EXCLUDED(copy_mutex_);
  // `rows` with the end of all work of `stream` so far.
  static absl::StatusOr<PlacedBatch> WithEnd(TensorDict rows,
                                             const Stream& stream,
                                             Staging* staging);

  const Options options_;
  // Held while a copy and its event are enqueued.
  mutable absl::Mutex copy_mutex_;
  const std::optional<Stream> stream_;
};

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_SAMPLING_PLACEMENT_H_
