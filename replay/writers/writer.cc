// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/writers/writer.h"

#include <utility>

#include "rill/base/status_macros.h"
#include "rill/tensors/shape.h"

namespace rill {
namespace {

class RoundRobinWriter final : public Writer {
 public:
  RoundRobinWriter()
      : Writer({.name = "RoundRobinWriter", .appends_all = true}) {}

  absl::StatusOr<ExtendResult> Extend(const TensorDict& batch,
                                      const WriteInfo& info) override {
    RILL_ASSIGN_OR_RETURN(Storage* const storage, AttachedStorage());
    return storage->Extend(batch, info);
  }
};

class ImmutableWriter final : public Writer {
 public:
  ImmutableWriter() : Writer({.name = "ImmutableWriter"}) {}

  absl::StatusOr<ExtendResult> Extend(const TensorDict& /*batch*/,
                                      const WriteInfo& /*info*/) override {
    return Refuse("Extend");
  }
  absl::Status WriteInPlace(absl::Span<const Slot> /*slots*/,
                            const TensorDict& /*rows*/,
                            InPlace /*kind*/) override {
    return Refuse("WriteAt");
  }

 private:
  static absl::Status Refuse(absl::string_view call) {
    return FailedPrecondition(
        "ImmutableWriter::", call,
        ": got rows for a data set that does not change, want none; write them "
        "to another buffer, or give this one another writer");
  }
};

}  // namespace

absl::Status Writer::Attach(std::shared_ptr<Storage> storage) {
  if (storage == nullptr) {
    return InvalidArgument(name(),
                           "::Attach: storage: got null, want a storage");
  }
  if (storage_ != nullptr) {
    return FailedPrecondition(
        name(),
        "::Attach: got a second storage, want one; make a writer for each");
  }
  storage_ = std::move(storage);
  return absl::OkStatus();
}

absl::StatusOr<Storage*> Writer::AttachedStorage() const {
  if (storage_ != nullptr) return storage_.get();
  return FailedPrecondition(name(), ": got no storage, want Attach first");
}

absl::Status Writer::WriteInPlace(absl::Span<const Slot> slots,
                                  const TensorDict& rows, InPlace kind) {
  RILL_ASSIGN_OR_RETURN(Storage* const storage, AttachedStorage());
  return storage->WriteInPlace(slots, rows, kind);
}

absl::Status Writer::AttachOneLane(std::shared_ptr<Storage> storage,
                                   WriteObserver* observer) {
  if (storage != nullptr && storage->lanes().count != 1) {
    return InvalidArgument(
        name(), "::Attach: storage: got ", storage->lanes().count,
        " lanes, want 1, as rows replace one another whatever their time");
  }
  RILL_RETURN_IF_ERROR(Writer::Attach(std::move(storage)));
  return storage_->AddObserver(observer);
}

void Writer::Detach(WriteObserver* observer) {
  if (storage_ != nullptr) storage_->RemoveObserver(observer);
}

absl::StatusOr<TensorDict> Writer::RowsOf(const TensorDict& batch) const {
  const Shape& shape = batch.batch_shape();
  if (shape.rank() == 1) return batch;
  if (shape.rank() == 2 && shape[0] == 1) return batch.Index(0);
  return InvalidArgument(name(), "::Extend: batch shape: got ",
                         shape.ToString(), ", want [time] or [1, time]");
}

std::unique_ptr<Writer> MakeRoundRobinWriter() {
  return std::make_unique<RoundRobinWriter>();
}

std::unique_ptr<Writer> MakeImmutableWriter() {
  return std::make_unique<ImmutableWriter>();
}

}  // namespace rill
