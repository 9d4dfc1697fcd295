// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_WRITERS_WRITER_H_
#define RILL_REPLAY_WRITERS_WRITER_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/flow/sink.h"
#include "rill/replay/writers/writer_traits.h"  // IWYU pragma: export
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// Decides which rows of a batch a storage takes, and in whose place. It has its
// storage from the attaching on.
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

  const WriterTraits& traits() const { return traits_; }
  absl::string_view name() const { return traits_.name; }

  // Before anything else, once: FAILED_PRECONDITION the second time.
  // INVALID_ARGUMENT where this is no storage for the writer.
  virtual absl::Status Attach(std::shared_ptr<Storage> storage);

  // Shapes and errors as Storage::Extend. `rows_dropped` counts those of the
  // batch that did not stay. FAILED_PRECONDITION before Attach.
  virtual absl::StatusOr<ExtendResult> Extend(const TensorDict& batch,
                                              const WriteInfo& info = {}) = 0;
  // Over live rows in place, as the storage's.
  absl::Status WriteAt(absl::Span<const Slot> slots, const TensorDict& rows) {
    return WriteInPlace(slots, rows, InPlace::kReplace);
  }
  virtual absl::Status WriteInPlace(absl::Span<const Slot> slots,
                                    const TensorDict& rows, InPlace kind);

  // The state that its storage does not hold, as the bytes of a SavedState
  // (base/state/saved_state.h); none where there is none.
  virtual absl::StatusOr<std::string> SaveState() const {
    return std::string();
  }
  // Follows the storage's own Load and restores what was saved, but for the
  // options `changed`, by their names in traits().options: those keep the
  // values that this writer was made with. DATA_LOSS or FAILED_PRECONDITION
  // where the bytes do not fit.
  virtual absl::Status LoadState(absl::string_view /*state*/,
                                 absl::Span<const std::string> /*changed*/) {
    return absl::OkStatus();
  }

 protected:
  explicit Writer(WriterTraits traits) : traits_(std::move(traits)) {}

  // FAILED_PRECONDITION before Attach.
  absl::StatusOr<Storage*> AttachedStorage() const;

  // For writers over one lane, whose rows replace one another, whatever their
  // time. Attach of such a storage; `observer` is notified until Detach, which
  // the destructor of the writer calls.
  absl::Status AttachOneLane(std::shared_ptr<Storage> storage,
                             WriteObserver* observer);
  void Detach(WriteObserver* observer);
  // The rows [time] of a batch [time] or [1, time].
  absl::StatusOr<TensorDict> RowsOf(const TensorDict& batch) const;

 private:
  const WriterTraits traits_;
  std::shared_ptr<Storage> storage_;
};

// Takes every row, in the place of the oldest: what Storage::Extend does.
std::unique_ptr<Writer> MakeRoundRobinWriter();

// For data sets: every write is FAILED_PRECONDITION.
std::unique_ptr<Writer> MakeImmutableWriter();

}  // namespace rill

#endif  // RILL_REPLAY_WRITERS_WRITER_H_
