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
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/replay/sampling/sample_batches.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill::replay_internal {

// Puts batches where a replay buffer's options want them: the memory that they
// are gathered in, and the last step of a sample, behind all transforms. Owns
// the stream of the copies to a device; nobody else knows it.
//
// The four ways, by the options and the storage's device:
// - neither pin_memory nor device: the batch stays where it was gathered.
// - pin_memory: gathered in pinned memory; leaves that a transform made are
//   pinned.
// - device, rows in host memory: gathered in pinned memory, then copied in a
//   stream of its own (PlacedBatch::copied).
// - device, rows on a device: moved there, and there when Place returns.
//
// Thread-safety: thread-safe; a Staging belongs to one thread at a time. Its
//   lock is held while a copy and its event are enqueued, and no other is taken
//   under it.
// Cost: nothing where the batch lies there already; a copy allocates.
class Placement {
 public:
  struct Options {
    std::optional<Device> device = std::nullopt;
    bool pin_memory = false;  // Not with `device`.
    Device pin_for = Device::Cuda(0);
    Device storage_device = Device::Cpu();
  };

  // Host memory in which one batch after the other is gathered where batches
  // are copied to a device, and what the last copy still reads. The destructor
  // waits for that copy.
  class Staging {
   public:
    Staging() = default;
    ~Staging() { Await().IgnoreError(); }
    Staging(const Staging&) = delete;
    Staging& operator=(const Staging&) = delete;

   private:
    friend class Placement;
    // Nothing reads the memory any more when this returns.
    absl::Status Await();

    TensorDict rows_;
    std::shared_ptr<const Event> copied_;
    std::vector<Tensor> in_flight_;
  };

  // Errors of Stream::Create.
  static absl::StatusOr<std::unique_ptr<Placement>> Create(
      const Options& options);

  // The place of all batches; none: they stay where they were gathered.
  std::optional<Device> device() const { return options_.device; }

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
  Placement(const Options& options, std::optional<Stream> copy_stream)
      : options_(options), copy_stream_(std::move(copy_stream)) {}

  absl::StatusOr<PlacedBatch> Copy(const TensorDict& rows,
                                   Staging* staging) const
      ABSL_LOCKS_EXCLUDED(copy_mutex_);

  const Options options_;
  // Held while a copy and its event are enqueued, or the stream's error is
  // cleared.
  mutable absl::Mutex copy_mutex_;
  const std::optional<Stream> copy_stream_;
};

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_SAMPLING_PLACEMENT_H_
