// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/transform_stage.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/replay/sample_origins.h"

namespace rill::replay_internal {

absl::StatusOr<std::unique_ptr<TransformStage>> TransformStage::Create(
    Options options) {
  RILL_ASSIGN_OR_RETURN(auto transforms,
                        Compose::Create(std::move(options.transforms)));
  return std::unique_ptr<TransformStage>(
      new TransformStage(std::move(options), std::move(transforms)));
}

TransformStage::TransformStage(Options options,
                               std::unique_ptr<Compose> transforms)
    : sample_spec_(std::move(options.sample_spec)),
      before_waiting_(std::move(options.before_waiting)),
      is_empty_(transforms->transforms().empty()),
      transforms_(std::move(transforms)) {}

absl::Status TransformStage::CheckForward(const TensorDictSpec& rows) const {
  if (rows.empty()) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec sample, sample_spec_(rows));
  const absl::Status status = transforms_->ForwardSpec(sample).status();
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat("ReplayBuffer: transforms: got some that cannot work on "
                   "samples of the storage's rows: ",
                   status.message()));
}

absl::Status TransformStage::CheckRows(const TensorDictSpec& rows,
                                       bool is_stored) {
  if (is_checked_ || rows.empty()) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  RILL_RETURN_IF_ERROR(CheckForward(rows));
  if (is_stored) is_checked_ = true;
  return absl::OkStatus();
}

void TransformStage::AwaitBatchesBelow(uint64_t number) {
  const auto have_called = [this, number] {
    mutex_.AssertReaderHeld();
    return next_ >= number;
  };
  if (have_called()) return;
  if (before_waiting_ != nullptr) before_waiting_();
  mutex_.Await(absl::Condition(&have_called));
}

absl::Status TransformStage::Forward(uint64_t number, TensorDict* batch,
                                     absl::FunctionRef<absl::Status()> finish) {
  if (is_empty_) return finish();
  absl::MutexLock lock(&mutex_);
  AwaitBatchesBelow(number);
  const absl::Status status = ForwardLocked(batch, finish);
  ++next_;
  return status;
}

void TransformStage::Skip(uint64_t number) {
  if (is_empty_) return;
  absl::MutexLock lock(&mutex_);
  AwaitBatchesBelow(number);
  ++next_;
}

absl::Status TransformStage::ForwardLocked(
    TensorDict* batch, absl::FunctionRef<absl::Status()> finish) {
  static constexpr std::array<absl::string_view, 3> kOrigins = {
      kIndexKey, kGenerationKey, kWeightKey};
  const Origins origins(kOrigins, *batch);
  RILL_ASSIGN_OR_RETURN(const TensorDict before, transforms_->SaveState());
  ++changes_;
  RILL_RETURN_IF_ERROR(transforms_->Forward(batch));
  absl::Status status = origins.PutBack(batch);
  if (status.ok()) status = finish();
  // A transform takes what it has just saved.
  if (!status.ok()) transforms_->LoadState(before).IgnoreError();
  return status;
}

absl::StatusOr<TransformStage::Undo> TransformStage::Inverse(uint64_t drawn,
                                                             TensorDict* rows) {
  if (is_empty_) return Undo();
  absl::MutexLock lock(&mutex_);
  Undo undo;
  RILL_ASSIGN_OR_RETURN(undo.before, transforms_->SaveState());
  if (!undo.before.empty()) {
    AwaitBatchesBelow(drawn);
    RILL_ASSIGN_OR_RETURN(undo.before, transforms_->SaveState());
  }
  RILL_RETURN_IF_ERROR(transforms_->Inverse(rows));
  undo.change = ++changes_;
  return undo;
}

void TransformStage::TakeBack(const Undo& undo) {
  absl::MutexLock lock(&mutex_);
  if (undo.change != changes_) return;
  transforms_->LoadState(undo.before).IgnoreError();
}

absl::Status TransformStage::Insert(std::optional<int64_t> place,
                                    std::unique_ptr<Transform> transform,
                                    const TensorDictSpec& rows, uint64_t next) {
  absl::MutexLock lock(&mutex_);
  const auto end = static_cast<int64_t>(transforms_->transforms().size());
  const int64_t at = place.value_or(end);
  RILL_RETURN_IF_ERROR(transforms_->Insert(at, std::move(transform)))
      << "ReplayBuffer::InsertTransform";
  if (const absl::Status status = CheckForward(rows); !status.ok()) {
    transforms_->Remove(at).IgnoreError();
    return status;
  }
  is_checked_ = !rows.empty();
  is_empty_ = false;
  ++changes_;
  next_ = next;  // The batches of an empty stage are not counted.
  return absl::OkStatus();
}

absl::StatusOr<TensorDict> TransformStage::SaveState() const {
  absl::MutexLock lock(&mutex_);
  return transforms_->SaveState();
}

absl::Status TransformStage::LoadState(const TensorDict& state, uint64_t next) {
  absl::MutexLock lock(&mutex_);
  RILL_RETURN_IF_ERROR(transforms_->LoadState(state));
  next_ = next;
  return absl::OkStatus();
}

std::vector<std::string> TransformStage::Names() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> names;
  for (const auto& transform : transforms_->transforms()) {
    names.emplace_back(transform->name());
  }
  return names;
}

void TransformStage::AddOptions(OptionValues* values) const {
  absl::MutexLock lock(&mutex_);
  int64_t i = 0;
  for (const auto& transform : transforms_->transforms()) {
    values->Part(absl::StrCat("transforms.", i++), transform->name(),
                 transform->option_values());
  }
}

}  // namespace rill::replay_internal
