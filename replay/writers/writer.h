// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_WRITERS_WRITER_H_
#define RILL_REPLAY_WRITERS_WRITER_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/slots/slot.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/sink.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// Decides which rows of a batch a storage takes, and in whose place. Has no
// state that its storage does not tell, so there is nothing to save.
//
// Thread-safety: thread-safe once attached.
//
// Example (WritersTest.Example runs it):
//   const auto writer = MakeRoundRobinWriter();
//   RILL_RETURN_IF_ERROR(writer->Attach(storage));
//   RILL_RETURN_IF_ERROR(writer->Extend(steps).status());
class Writer {
 public:
  virtual ~Writer() = default;

  // Before anything else, once: FAILED_PRECONDITION the second time.
  // INVALID_ARGUMENT where this is no storage for the writer.
  virtual absl::Status Attach(std::shared_ptr<Storage> storage) = 0;

  // Shapes and errors as Storage::Extend. `rows_dropped` counts those of the
  // batch that did not stay. FAILED_PRECONDITION before Attach.
  virtual absl::StatusOr<ExtendResult> Extend(const TensorDict& batch,
                                              const WriteInfo& info = {}) = 0;
  // Over live rows in place, as the storage's.
  absl::Status WriteAt(absl::Span<const Slot> slots, const TensorDict& rows) {
    return WriteInPlace(slots, rows, InPlace::kReplace);
  }
  virtual absl::Status WriteInPlace(absl::Span<const Slot> slots,
                                    const TensorDict& rows, InPlace kind) = 0;

  // Extend is just Storage::Extend of the whole batch.
  virtual bool appends_all() const { return false; }

  // "RoundRobinWriter": named in errors.
  virtual absl::string_view name() const = 0;
};

// Takes every row, in the place of the oldest: what Storage::Extend does.
std::unique_ptr<Writer> MakeRoundRobinWriter();

// For data sets: every write is FAILED_PRECONDITION.
std::unique_ptr<Writer> MakeImmutableWriter();

}  // namespace rill

#endif  // RILL_REPLAY_WRITERS_WRITER_H_
