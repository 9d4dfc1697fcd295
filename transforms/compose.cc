// SPDX-License-Identifier: Apache-2.0
// The state of transform i is the dictionary under "i". A call works on a copy
// of it, which shares the tensors, so the caller's state changes only by the
// Set that follows a success.
#include "rill/transforms/compose.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rill/base/catch_exceptions.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

using Transforms = std::vector<std::unique_ptr<BatchTransform>>;

// "in transform 1 (RewardScaling) of Compose"
std::string Place(const Transforms& transforms, size_t index) {
  return absl::StrCat("in transform ", index, " (", transforms[index]->name(),
                      ") of Compose");
}

// A hash of shape, keys and kinds of entries, dtypes, shapes and devices.
size_t LayoutOf(const TensorDict& dict) {
  const auto hash = [](const Shape& shape) {
    return absl::HashOf(shape.sizes());
  };
  size_t layout = absl::HashOf(hash(dict.batch_shape()), dict.is_locked());
  dict.ForEachEntry([&](absl::string_view key, EntryKind kind) {
    layout = absl::HashOf(layout, key, kind);
    if (kind == EntryKind::kTensor) {
      const Tensor& leaf = *dict.Find(key);
      layout = absl::HashOf(layout, leaf.dtype(), hash(leaf.shape()),
                            leaf.device().type, leaf.device().index);
    } else if (kind == EntryKind::kDict) {
      layout = absl::HashOf(layout, LayoutOf(*dict.FindDict(key)));
    }
  });
  return layout;
}

// Undoes what a chain has done to a batch: `before` has its entries, `bytes` a
// copy of them.
void Restore(const TensorDict& before, const TensorDict& bytes,
             TensorDict* batch) {
  if (!batch->is_locked()) *batch = before;
  before.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
    // Those that are not writable were not written.
    if (leaf.is_writable()) leaf.CopyFrom(*bytes.Find(key)).IgnoreError();
  });
}

using Work = absl::FunctionRef<absl::Status(const BatchTransform&,
                                            TensorDict* batch, TensorDict*)>;

// One transform, with its part of the state.
absl::Status RunOne(const Transforms& transforms, size_t index, Work work,
                    TensorDict* batch, TensorDict* state) {
  // The place is the key: an owner that inserts or removes a transform has to
  // rename the states behind it.
  const std::string key = absl::StrCat(index);
  const TensorDict* const before = state->FindDict(key);
  TensorDict own = before == nullptr ? TensorDict() : *before;
  // Taken before the call: a transform may assign another dictionary to
  // `*batch`, which then has lost both.
  const std::optional<Device> device = batch->device();
  const std::vector<std::string>& its = batch->dim_names();
  // Short names of few dimensions take no memory of their own.
  const absl::InlinedVector<std::string, 4> names(its.begin(), its.end());
  RILL_RETURN_IF_ERROR(CatchExceptions(
      [&] { return work(*transforms[index], batch, &own); }, "BatchTransform"))
      << Place(transforms, index);
  // A new dictionary is where and what the batch was.
  if (device.has_value() && !batch->device().has_value()) {
    RILL_ASSIGN_OR_RETURN(*batch, batch->To(*device));
  }
  // Names go only onto a batch of the same rank; the transform may have joined
  // dimensions.
  if (batch->dim_names().empty() &&
      static_cast<int>(names.size()) == batch->batch_shape().rank() &&
      !names.empty()) {
    RILL_RETURN_IF_ERROR(batch->SetDimNames({names.begin(), names.end()}));
  }
  // A transform without a state adds no key, so that the whole state stays
  // equal to InitialState in layout.
  return own.empty() ? absl::OkStatus() : state->Set(key, std::move(own));
}

// `*spec` becomes what a transform makes of it. A new spec without a device has
// that of the one before, as a new dictionary has the batch's.
absl::Status Become(absl::StatusOr<TensorDictSpec> after,
                    TensorDictSpec* spec) {
  RILL_RETURN_IF_ERROR(after.status());
  if (!after->device().has_value()) after->set_device(spec->device());
  *spec = *std::move(after);
  return absl::OkStatus();
}

// The states of those transforms that know lanes.
absl::Status ChangeStates(
    const Transforms& transforms, TensorDict* state,
    absl::FunctionRef<absl::Status(const LaneTransform&, TensorDict*)> change) {
  for (size_t i = 0; i < transforms.size(); ++i) {
    const auto* const lanes =
        dynamic_cast<const LaneTransform*>(transforms[i].get());
    const std::string key = absl::StrCat(i);
    const TensorDict* const before = state->FindDict(key);
    if (lanes == nullptr || before == nullptr) continue;
    TensorDict own = *before;
    RILL_RETURN_IF_ERROR(
        CatchExceptions([&] { return change(*lanes, &own); }, "LaneTransform"))
        << Place(transforms, i);
    RILL_RETURN_IF_ERROR(state->Set(key, std::move(own)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Compose>> Compose::Create(
    std::vector<std::unique_ptr<BatchTransform>> transforms) {
  for (size_t i = 0; i < transforms.size(); ++i) {
    if (transforms[i] != nullptr) continue;
    return InvalidArgument("Compose::Create: transform ", i,
                           ": got null, want a transform");
  }
  return std::unique_ptr<Compose>(new Compose(std::move(transforms)));
}

absl::Status Compose::Insert(int64_t place,
                             std::unique_ptr<BatchTransform> transform) {
  const auto count = static_cast<int64_t>(transforms_.size());
  if (transform == nullptr) {
    return InvalidArgument(
        "Compose::Insert: transform: got null, want a transform");
  }
  if (place < 0 || place > count) {
    return InvalidArgument("Compose::Insert: place: got ", place, ", want [0, ",
                           count, "]");
  }
  transforms_.insert(transforms_.begin() + place, std::move(transform));
  for (std::atomic<size_t>& one : seen_) one = 0;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<BatchTransform>> Compose::Remove(int64_t place) {
  const auto count = static_cast<int64_t>(transforms_.size());
  if (place < 0 || place >= count) {
    return InvalidArgument("Compose::Remove: place: got ", place, ", want [0, ",
                           count, ")");
  }
  std::unique_ptr<BatchTransform> transform = std::move(transforms_[place]);
  transforms_.erase(transforms_.begin() + place);
  for (std::atomic<size_t>& one : seen_) one = 0;
  return transform;
}

OptionValues Compose::option_values() const {
  OptionValues values;
  // The number of transforms: a chain and a prefix of it differ in a value that
  // both have.
  values.Part("transforms", absl::StrCat(transforms_.size()), {});
  for (size_t i = 0; i < transforms_.size(); ++i) {
    values.Part(absl::StrCat("transforms.", i), transforms_[i]->name(),
                transforms_[i]->option_values());
  }
  return values;
}

bool Compose::is_stateful() const {
  return std::any_of(
      transforms_.begin(), transforms_.end(),
      [](const auto& transform) { return transform->is_stateful(); });
}

absl::StatusOr<TensorDict> Compose::InitialState() const {
  TensorDict all;
  for (size_t i = 0; i < transforms_.size(); ++i) {
    auto state = CatchExceptions([&] { return transforms_[i]->InitialState(); },
                                 "InitialState");
    RILL_RETURN_IF_ERROR(state.status()) << Place(transforms_, i);
    if (state->empty()) continue;
    RILL_RETURN_IF_ERROR(all.Set(absl::StrCat(i), *std::move(state)));
  }
  return all;
}

bool Compose::HasSeen(size_t layout) const {
  return absl::c_any_of(seen_, [layout](const std::atomic<size_t>& one) {
    return one.load(std::memory_order_relaxed) == layout;
  });
}

absl::Status Compose::Forward(TensorDict* batch, TensorDict* state) const {
  TensorDict after = *state;
  const size_t layout = transforms_.size() < 2 ? 0 : LayoutOf(*batch);
  if (layout == 0 || HasSeen(layout)) {
    RILL_RETURN_IF_ERROR(ForwardOwned(batch, &after));
    *state = std::move(after);
    return absl::OkStatus();
  }
  const TensorDict before = *batch;
  RILL_ASSIGN_OR_RETURN(const TensorDict bytes, batch->Clone());
  if (absl::Status status = ForwardOwned(batch, &after); !status.ok()) {
    Restore(before, bytes, batch);
    return status;
  }
  *state = std::move(after);
  const size_t at = next_seen_.fetch_add(1, std::memory_order_relaxed);
  seen_[at % seen_.size()].store(layout, std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::Status Compose::Inverse(TensorDict* batch, TensorDict* state) const {
  // Bytes are the writer's, so that entries and state are all that changes.
  const TensorDict before = *batch;
  TensorDict after = *state;
  if (absl::Status status = InverseAt(0, batch, &after); !status.ok()) {
    if (!batch->is_locked()) *batch = before;
    return status;
  }
  *state = std::move(after);
  return absl::OkStatus();
}

absl::Status Compose::ForwardOwned(TensorDict* batch, TensorDict* state) const {
  for (size_t i = 0; i < transforms_.size(); ++i) {
    RILL_RETURN_IF_ERROR(RunOne(
        transforms_, i,
        [](const BatchTransform& transform, TensorDict* rows, TensorDict* own) {
          return transform.Forward(rows, own);
        },
        batch, state));
  }
  return absl::OkStatus();
}

absl::Status Compose::InverseAt(int64_t first_lane, TensorDict* batch,
                                TensorDict* state) const {
  const auto inverse = [first_lane](const BatchTransform& transform,
                                    TensorDict* rows, TensorDict* own) {
    const auto* const lanes = dynamic_cast<const LaneTransform*>(&transform);
    return lanes == nullptr ? transform.Inverse(rows, own)
                            : lanes->InverseAt(first_lane, rows, own);
  };
  // From the last to the first: what is written passes them in the reverse
  // order of what is read.
  for (size_t i = transforms_.size(); i-- > 0;) {
    RILL_RETURN_IF_ERROR(RunOne(transforms_, i, inverse, batch, state));
  }
  return absl::OkStatus();
}

absl::Status Compose::CutLanes(int64_t first, int64_t count,
                               TensorDict* state) const {
  return ChangeStates(transforms_, state,
                      [=](const LaneTransform& lanes, TensorDict* own) {
                        return lanes.CutLanes(first, count, own);
                      });
}

absl::Status Compose::Clear(TensorDict* state) const {
  return ChangeStates(transforms_, state,
                      [](const LaneTransform& lanes, TensorDict* own) {
                        return lanes.Clear(own);
                      });
}

absl::Status Compose::Upgrade(TensorDict* state) const {
  return ChangeStates(transforms_, state,
                      [](const LaneTransform& lanes, TensorDict* own) {
                        return lanes.Upgrade(own);
                      });
}

absl::StatusOr<TensorDictSpec> Compose::ForwardSpec(
    const TensorDictSpec& spec) const {
  TensorDictSpec result = spec;
  for (size_t i = 0; i < transforms_.size(); ++i) {
    RILL_RETURN_IF_ERROR(Become(
        CatchExceptions([&] { return transforms_[i]->ForwardSpec(result); },
                        "ForwardSpec"),
        &result))
        << Place(transforms_, i);
  }
  return result;
}

absl::StatusOr<TensorDictSpec> Compose::InverseSpec(
    const TensorDictSpec& spec) const {
  TensorDictSpec result = spec;
  for (size_t i = transforms_.size(); i-- > 0;) {
    RILL_RETURN_IF_ERROR(Become(
        CatchExceptions([&] { return transforms_[i]->InverseSpec(result); },
                        "InverseSpec"),
        &result))
        << Place(transforms_, i);
  }
  return result;
}

}  // namespace rill
