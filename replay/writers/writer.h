// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_WRITERS_WRITER_H_
#define RILL_REPLAY_WRITERS_WRITER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/option_values.h"  // IWYU pragma: export
#include "rill/flow/sink.h"
#include "rill/slots/slot.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// Decides which rows of a batch a storage takes, and in whose place.
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

  // False: new rows may take the places of others, so that slots do not tell
  // which step came after which.
  virtual bool keeps_order() const { return true; }

  // The state that its storage does not hold, as opaque bytes; none where there
  // is none. Load follows the storage's own and restores what was saved;
  // DATA_LOSS or FAILED_PRECONDITION where the bytes do not fit.
  virtual absl::StatusOr<std::string> SaveState() const {
    return std::string();
  }
  virtual absl::Status LoadState(absl::string_view /*state*/) {
    return absl::OkStatus();
  }

  // LoadState of a writer whose options `changed`, by their names in
  // option_values(), had other values: those have the values that this one was
  // made with.
  virtual absl::Status LoadChangedState(
      absl::string_view state, absl::Span<const std::string> /*changed*/) {
    return LoadState(state);
  }

  // "RoundRobinWriter": named in errors and in checkpoints.
  virtual absl::string_view name() const = 0;
  // The options that it was made with, for checkpoints to compare.
  // One that does not say is taken to be as it was.
  virtual OptionValues option_values() const { return {}; }
};

// Takes every row, in the place of the oldest: what Storage::Extend does.
std::unique_ptr<Writer> MakeRoundRobinWriter();

// For data sets: every write is FAILED_PRECONDITION.
std::unique_ptr<Writer> MakeImmutableWriter();

}  // namespace rill

#endif  // RILL_REPLAY_WRITERS_WRITER_H_
