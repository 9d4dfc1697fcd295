// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_REPLAY_SENT_BATCHES_H_
#define RILL_DISTRIBUTED_REPLAY_SENT_BATCHES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "rill/device/buffer.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"

namespace rill {

// True if the batch has entries, and all of them are tensors.
bool HasOnlyTensors(const TensorDict& batch);

// True if the leaves of both are the same, and have the same bytes without
// strides.
bool AreSameBytes(const TensorDict& memory, const TensorDict& batch);

// Memory of batches that were sent, for the next ones: new memory of a large
// batch costs more than to fill it. A batch is free once nobody else holds its
// tensors, so no engine has to say when it has sent one.
// Thread-safety: thread-safe.
// Memory: that of the batches on their way, and of two more, or of 8 MiB where
//   batches are large. Those are made some at a time (MakeBatchMemory), and
//   their block of 4 to 8 MiB goes with the last of them.
class SentBatches {
 public:
  // A batch of this shape with any values, which may be written. Where none is
  // free it is empty, or is made, where the newest one that was sent is large
  // and has this shape.
  TensorDict Take(const Shape& batch_shape);
  // `batch` is about to be sent: it is read from here on. One with other
  // entries than tensors is left alone.
  void Keep(const TensorDict& batch);

 private:
  static constexpr size_t kMost = 16;
  static constexpr size_t kMostFree = 2;
  static constexpr int64_t kMostFreeBytes = 8 << 20;

  struct Sent {
    TensorDict batch;
    // Each buffer once, and how many of this hold it.
    std::vector<std::pair<std::shared_ptr<Buffer>, int64_t>> buffers;
    int64_t bytes = 0;
  };
  static Sent HoldersOf(const TensorDict& batch);
  static bool IsFree(const Sent& sent);

  absl::Mutex mu_;
  // That of the first large batch that was sent.
  std::optional<TensorDictSpec> layout_ ABSL_GUARDED_BY(mu_);
  Shape newest_ ABSL_GUARDED_BY(mu_);           // Of those that were sent.
  std::deque<Sent> sent_ ABSL_GUARDED_BY(mu_);  // Oldest first.
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_REPLAY_SENT_BATCHES_H_
