// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_WRITERS_ATTACHED_STORAGE_H_
#define RILL_REPLAY_WRITERS_ATTACHED_STORAGE_H_

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"

namespace rill::replay_internal {

// The storage of a writer: there is one from the attaching on.
// Thread-safety: Attach once, before others use it.
class AttachedStorage {
 public:
  absl::Status Attach(absl::string_view writer,
                      std::shared_ptr<Storage> storage) {
    if (storage == nullptr) {
      return InvalidArgument(writer,
                             "::Attach: storage: got null, want a storage");
    }
    if (storage_ != nullptr) {
      return FailedPrecondition(
          writer,
          "::Attach: got a second storage, want one; make a writer "
          "for each");
    }
    storage_ = std::move(storage);
    return absl::OkStatus();
  }
  // The same, of a storage of one lane: its rows replace one another, whatever
  // their time.
  absl::Status AttachOneLane(absl::string_view writer,
                             std::shared_ptr<Storage> storage,
                             WriteObserver* observer) {
    if (storage != nullptr && storage->lanes().count != 1) {
      return InvalidArgument(
          writer, "::Attach: storage: got ", storage->lanes().count,
          " lanes, want 1, as rows replace one another whatever their time");
    }
    RILL_RETURN_IF_ERROR(Attach(writer, std::move(storage)));
    return storage_->AddObserver(observer);
  }
  // The rows [time] of a batch for one lane, [time] or [1, time].
  static absl::StatusOr<TensorDict> RowsOf(absl::string_view writer,
                                           const TensorDict& batch) {
    const Shape& shape = batch.batch_shape();
    if (shape.rank() == 1) return batch;
    if (shape.rank() == 2 && shape[0] == 1) return batch.Index(0);
    return InvalidArgument(writer, "::Extend: batch shape: got ",
                           shape.ToString(), ", want [time] or [1, time]");
  }
  absl::StatusOr<Storage*> Get(absl::string_view writer) const {
    if (storage_ != nullptr) return storage_.get();
    return FailedPrecondition(writer, ": got no storage, want Attach first");
  }
  absl::Status WriteInPlace(absl::string_view writer,
                            absl::Span<const Slot> slots,
                            const TensorDict& rows, InPlace kind) const {
    const absl::StatusOr<Storage*> storage = Get(writer);
    if (!storage.ok()) return storage.status();
    return (*storage)->WriteInPlace(slots, rows, kind);
  }
  bool is_attached() const { return storage_ != nullptr; }

 private:
  std::shared_ptr<Storage> storage_;
};

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_WRITERS_ATTACHED_STORAGE_H_
