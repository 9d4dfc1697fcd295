// SPDX-License-Identifier: Apache-2.0
// A chain without a state needs no lock: batches and writes go through it at
// once. With a state, batches call in the order of their numbers, each with a
// copy of the state. The copy becomes the state only where the batch succeeds,
// so a failed batch teaches nothing.
#include "rill/replay/sampling/transform_stage.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/replay/rows/sample_origins.h"
#include "rill/tensordict/state/state_dict.h"

namespace rill::replay_internal {
namespace {

constexpr absl::string_view kType = "TransformStage";
constexpr int64_t kStateVersion = 1;

// Leaves that a sample has beside its rows, where those have no such leaf.
constexpr std::array<absl::string_view, 4> kOrigins = {
    kIndexKey, kGenerationKey, kWeightKey, kMaskKey};

}  // namespace

absl::StatusOr<std::unique_ptr<TransformStage>> TransformStage::Create(
    Options options) {
  RILL_ASSIGN_OR_RETURN(auto transforms,
                        Compose::Create(std::move(options.transforms)));
  RILL_ASSIGN_OR_RETURN(TensorDict state, transforms->InitialState());
  return std::unique_ptr<TransformStage>(new TransformStage(
      std::move(options), std::move(transforms), std::move(state)));
}

TransformStage::TransformStage(Options options,
                               std::unique_ptr<Compose> transforms,
                               TensorDict state)
    : sample_spec_(std::move(options.sample_spec)),
      can_fuse_(std::move(options.can_fuse)),
      before_waiting_(std::move(options.before_waiting)),
      transforms_(std::move(transforms)),
      is_empty_(transforms_->transforms().empty()),
      is_stateful_(transforms_->is_stateful()),
      state_(std::move(state)) {}

absl::StatusOr<TensorDictSpec> TransformStage::SampleSpec(
    const TensorDictSpec& rows) const {
  if (rows.empty()) return rows;
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec sample, sample_spec_(rows));
  absl::StatusOr<TensorDictSpec> after = transforms_->ForwardSpec(sample);
  if (!after.ok()) {
    return InvalidArgument(
        "ReplayBuffer: transforms: got some that cannot work on "
        "samples of the storage's rows: ",
        after.status().message());
  }
  // Run puts those back that a transform has dropped.
  for (const absl::string_view key : kOrigins) {
    const LeafSpec* const origin = sample.Find(key);
    if (origin == nullptr || rows.Find(key) != nullptr) continue;
    RILL_RETURN_IF_ERROR(after->Set(key, *origin));
  }
  return after;
}

absl::Status TransformStage::CheckRows(const TensorDictSpec& rows,
                                       bool is_stored) {
  if (is_checked_ || rows.empty()) return absl::OkStatus();
  RILL_RETURN_IF_ERROR(SampleSpec(rows).status());
  if (!is_stored) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(auto chain, MakeChain(rows));
  absl::MutexLock lock(&mutex_);
  // Another thread may have been first; the spec of a storage does not change.
  if (!is_checked_) Adopt(rows, std::move(chain));
  return absl::OkStatus();
}

void TransformStage::Adopt(const TensorDictSpec& rows,
                           std::shared_ptr<const GatherPlan> chain) {
  chain_ = std::move(chain);
  uint32_t stored = 0;
  for (size_t i = 0; i < kOrigins.size(); ++i) {
    if (rows.Find(kOrigins[i]) != nullptr) stored |= 1u << i;
  }
  stored_origins_ = stored;
  is_checked_ = !rows.empty();
}

absl::StatusOr<std::shared_ptr<const GatherPlan>> TransformStage::MakeChain(
    const TensorDictSpec& rows) const {
  if (rows.empty() || transforms_->transforms().empty() ||
      can_fuse_ == nullptr) {
    return nullptr;
  }
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec sample, sample_spec_(rows));
  std::vector<std::string> added;
  for (const absl::string_view key : kOrigins) {
    if (rows.Find(key) == nullptr) added.emplace_back(key);
  }
  RILL_ASSIGN_OR_RETURN(std::optional<GatherPlan> plan,
                        PlanGather(transforms_->transforms(), sample, added));
  if (!plan.has_value() || !can_fuse_(rows, *plan)) return nullptr;
  return std::make_shared<const GatherPlan>(*std::move(plan));
}

std::shared_ptr<const GatherPlan> TransformStage::chain() const {
  // A state needs the order of batches, which gathers do not have.
  if (is_empty_ || is_stateful_) return nullptr;
  absl::MutexLock lock(&mutex_);
  return chain_;
}

void TransformStage::AwaitBatchesBelow(uint64_t number) {
  const auto have_called = [this, number] {
    mutex_.AssertReaderHeld();
    return next_ >= number;
  };
  if (have_called()) return;
  // The batches below may be drawn and not begun, so workers are woken.
  if (before_waiting_ != nullptr) before_waiting_();
  mutex_.Await(absl::Condition(&have_called));
}

absl::Status TransformStage::Forward(uint64_t number, TensorDict* batch,
                                     absl::FunctionRef<absl::Status()> finish) {
  if (is_empty_) return finish();
  if (!is_stateful_) {
    TensorDict none;
    return Run(batch, &none, finish);
  }
  absl::MutexLock lock(&mutex_);
  AwaitBatchesBelow(number);
  // Also where the batch fails below: those behind it must not wait for ever.
  ++next_;
  ++changes_;
  TensorDict state = state_;
  RILL_RETURN_IF_ERROR(Run(batch, &state, finish));
  state_ = std::move(state);
  return absl::OkStatus();
}

void TransformStage::Skip(uint64_t number) {
  if (!is_stateful_) return;
  absl::MutexLock lock(&mutex_);
  AwaitBatchesBelow(number);
  ++next_;
}

absl::Status TransformStage::Run(
    TensorDict* batch, TensorDict* state,
    absl::FunctionRef<absl::Status()> finish) const {
  std::array<absl::string_view, kOrigins.size()> keys;
  size_t count = 0;
  for (size_t i = 0; i < kOrigins.size(); ++i) {
    if ((stored_origins_ >> i & 1) == 0) keys[count++] = kOrigins[i];
  }
  const Origins origins(absl::MakeConstSpan(keys.data(), count), *batch);
  RILL_RETURN_IF_ERROR(transforms_->ForwardOwned(batch, state));
  RILL_RETURN_IF_ERROR(origins.PutBack(batch));
  return finish();
}

absl::StatusOr<TransformStage::Undo> TransformStage::Inverse(
    uint64_t drawn, TensorDict* rows, int64_t first_lane) {
  if (!is_stateful_) {
    TensorDict none;
    RILL_RETURN_IF_ERROR(transforms_->InverseAt(first_lane, rows, &none));
    return Undo();
  }
  absl::MutexLock lock(&mutex_);
  // Batches that were drawn before the write teach first.
  AwaitBatchesBelow(drawn);
  Undo undo = {.before = state_};
  TensorDict state = state_;
  RILL_RETURN_IF_ERROR(transforms_->InverseAt(first_lane, rows, &state));
  state_ = std::move(state);
  undo.change = ++changes_;
  return undo;
}

void TransformStage::TakeBack(const Undo& undo) {
  if (!is_stateful_) return;
  absl::MutexLock lock(&mutex_);
  // Only where nothing has built on it since.
  if (undo.change == changes_) state_ = undo.before;
}

absl::Status TransformStage::ChangeState(
    absl::FunctionRef<absl::Status(TensorDict*)> change) {
  if (!is_stateful_) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  TensorDict state = state_;
  RILL_RETURN_IF_ERROR(change(&state));
  state_ = std::move(state);
  ++changes_;
  return absl::OkStatus();
}

absl::Status TransformStage::CutLanes(LaneRange lanes) {
  return ChangeState([&](TensorDict* state) {
    return transforms_->CutLanes(lanes.first, lanes.count, state);
  });
}

absl::Status TransformStage::Clear() {
  return ChangeState(
      [&](TensorDict* state) { return transforms_->Clear(state); });
}

absl::Status TransformStage::Insert(std::optional<int64_t> place,
                                    std::unique_ptr<BatchTransform> transform,
                                    const TensorDictSpec& rows, uint64_t next) {
  const auto end = static_cast<int64_t>(transforms_->transforms().size());
  const int64_t at = place.value_or(end);
  RILL_RETURN_IF_ERROR(transforms_->Insert(at, std::move(transform)))
      << "ReplayBuffer::InsertTransform";
  absl::StatusOr<TensorDict> state = transforms_->InitialState();
  absl::Status status = state.ok() ? SampleSpec(rows).status() : state.status();
  absl::StatusOr<std::shared_ptr<const GatherPlan>> chain = nullptr;
  if (status.ok()) {
    chain = MakeChain(rows);
    status = chain.status();
  }
  if (!status.ok()) {
    // It was put in so that the whole chain could be asked; without success it
    // goes again.
    transforms_->Remove(at).IgnoreError();
    return status;
  }
  is_empty_ = false;
  is_stateful_ = transforms_->is_stateful();
  absl::MutexLock lock(&mutex_);
  Adopt(rows, *std::move(chain));
  // Those behind it have other places now; their states go along.
  for (int64_t i = end; i >= 0; --i) {
    if (i == at) continue;
    const TensorDict* own = state_.FindDict(absl::StrCat(i > at ? i - 1 : i));
    if (own == nullptr) continue;
    RILL_RETURN_IF_ERROR(state->Set(absl::StrCat(i), *own));
  }
  state_ = *std::move(state);
  ++changes_;
  next_ = next;  // Batches are counted only where there is a state.
  return absl::OkStatus();
}

absl::StatusOr<TensorDict> TransformStage::SaveState() const {
  absl::MutexLock lock(&mutex_);
  if (state_.empty()) return TensorDict();
  StateWriter state(kType, kStateVersion);
  for (const std::string& place : state_.Keys()) {
    state.Entry<TensorDict>(place, *state_.FindDict(place));
  }
  return std::move(state).Finish();
}

absl::Status TransformStage::LoadState(const TensorDict& dict, uint64_t next) {
  RILL_RETURN_IF_ERROR(StateReader::Open(kType, kStateVersion, dict).status());
  RILL_ASSIGN_OR_RETURN(TensorDict state, dict.Exclude({"type", "version"}));
  RILL_RETURN_IF_ERROR(transforms_->Upgrade(&state));
  RILL_ASSIGN_OR_RETURN(const TensorDict initial, transforms_->InitialState());
  RILL_RETURN_IF_ERROR(CheckTransformState("transforms", initial, state));
  absl::MutexLock lock(&mutex_);
  state_ = std::move(state);
  next_ = next;
  return absl::OkStatus();
}

std::vector<std::string> TransformStage::Names() const {
  std::vector<std::string> names;
  for (const auto& transform : transforms_->transforms()) {
    names.emplace_back(transform->name());
  }
  return names;
}

void TransformStage::AddOptions(OptionValues* values) const {
  int64_t i = 0;
  for (const auto& transform : transforms_->transforms()) {
    values->Part(absl::StrCat("transforms.", i++), transform->name(),
                 transform->option_values());
  }
}

}  // namespace rill::replay_internal
