// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_ROWS_ROW_PATCHER_H_
#define RILL_REPLAY_ROWS_ROW_PATCHER_H_

#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "rill/replay/row_patch.h"
#include "rill/replay/rows/drawn_rows.h"
#include "rill/replay/writers/writer.h"
#include "rill/samplers/sampler.h"
#include "rill/slots/slot.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::replay_internal {

// Conditional writes to rows that were sampled: ReplayBuffer::UpdateIfPresent.
//
// Thread-safety: thread-safe. Patches go one at a time, so that two that patch
//   one row compare versions one after the other. Its lock is taken before the ticket,
//   and held while the write waits for gathers.
// Cost: O(rows), and a read of their versions.
class RowPatcher {
 public:
  // All of them outlive this.
  RowPatcher(const Storage* storage, const Sampler* sampler, Writer* writer,
             DrawnRows* drawn_rows)
      : storage_(storage),
        sampler_(sampler),
        writer_(writer),
        drawn_rows_(drawn_rows) {}

  // `patch` is [n] with `index` and `index_generation` and some of the stored
  // leaves. All or nothing; errors as Writer::WriteInPlace, and NOT_FOUND where
  // a leaf is missing.
  absl::StatusOr<PatchResult> Patch(const TensorDict& patch,
                                    const PatchOptions& options)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // With a ticket of DrawnRows.
  absl::StatusOr<PatchResult> PatchWithTicket(const TensorDict& patch,
                                              const PatchOptions& options) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Keeps in `places` those of the rows whose versions win.
  absl::Status KeepNewest(const PatchOptions& options,
                          absl::Span<const int64_t> versions,
                          absl::Span<const Draw> draws,
                          std::vector<int64_t>* places,
                          PatchResult* result) const;

  const Storage* const storage_;
  const Sampler* const sampler_;
  Writer* const writer_;
  DrawnRows* const drawn_rows_;
  absl::Mutex mutex_;
};

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_ROWS_ROW_PATCHER_H_
