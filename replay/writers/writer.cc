// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/writers/writer.h"

#include <utility>

#include "rill/base/status_macros.h"
#include "rill/replay/writers/attached_storage.h"

namespace rill {
namespace {

using replay_internal::AttachedStorage;

class RoundRobinWriter final : public Writer {
 public:
  RoundRobinWriter()
      : Writer({.name = "RoundRobinWriter", .appends_all = true}) {}

  absl::Status Attach(std::shared_ptr<Storage> storage) override {
    return storage_.Attach(name(), std::move(storage));
  }
  absl::StatusOr<ExtendResult> Extend(const TensorDict& batch,
                                      const WriteInfo& info) override {
    RILL_ASSIGN_OR_RETURN(Storage* const storage, storage_.Get(name()));
    return storage->Extend(batch, info);
  }
  absl::Status WriteInPlace(absl::Span<const Slot> slots,
                            const TensorDict& rows, InPlace kind) override {
    return storage_.WriteInPlace(name(), slots, rows, kind);
  }

 private:
  AttachedStorage storage_;
};

class ImmutableWriter final : public Writer {
 public:
  ImmutableWriter() : Writer({.name = "ImmutableWriter"}) {}

  absl::Status Attach(std::shared_ptr<Storage> storage) override {
    return storage_.Attach(name(), std::move(storage));
  }
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

  AttachedStorage storage_;
};

}  // namespace

std::unique_ptr<Writer> MakeRoundRobinWriter() {
  return std::make_unique<RoundRobinWriter>();
}

std::unique_ptr<Writer> MakeImmutableWriter() {
  return std::make_unique<ImmutableWriter>();
}

}  // namespace rill
