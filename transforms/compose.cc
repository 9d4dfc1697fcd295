// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/compose.h"

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"

namespace rill {
namespace {

using Transforms = std::vector<std::unique_ptr<Transform>>;

// "in transform 1 (RewardScaling) of Compose"
std::string Place(const Transforms& transforms, size_t index) {
  return absl::StrCat("in transform ", index, " (", transforms[index]->name(),
                      ") of Compose");
}

// Calls `work` for 0 .. n - 1, or backwards; after an error gives the
// transforms that were reached before back the states that they had.
absl::Status RunAll(const Transforms& transforms, bool is_reverse,
                    absl::FunctionRef<absl::Status(size_t)> work) {
  const size_t n = transforms.size();
  absl::InlinedVector<TensorDict, 8> saved;  // In the order of the calls.
  auto index_of = [&](size_t i) { return is_reverse ? n - 1 - i : i; };
  for (size_t i = 0; i < n; ++i) {
    const size_t index = index_of(i);
    if (i + 1 < n) {
      RILL_ASSIGN_OR_RETURN(saved.emplace_back(),
                            transforms[index]->SaveState());
    }
    const absl::Status status = work(index);
    if (status.ok()) continue;
    for (size_t done = 0; done < i; ++done) {
      // A transform takes what it has just saved.
      transforms[index_of(done)]->LoadState(saved[done]).IgnoreError();
    }
    RILL_RETURN_IF_ERROR(status) << Place(transforms, index);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Compose>> Compose::Create(
    std::vector<std::unique_ptr<Transform>> transforms) {
  for (size_t i = 0; i < transforms.size(); ++i) {
    if (transforms[i] != nullptr) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "Compose::Create: transform ", i, ": got null, want a transform"));
  }
  return std::unique_ptr<Compose>(new Compose(std::move(transforms)));
}

absl::Status Compose::Insert(int64_t place,
                             std::unique_ptr<Transform> transform) {
  const auto count = static_cast<int64_t>(transforms_.size());
  if (transform == nullptr) {
    return absl::InvalidArgumentError(
        "Compose::Insert: transform: got null, want a transform");
  }
  if (place < 0 || place > count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Compose::Insert: place: got ", place, ", want [0, ", count, "]"));
  }
  transforms_.insert(transforms_.begin() + place, std::move(transform));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Transform>> Compose::Remove(int64_t place) {
  const auto count = static_cast<int64_t>(transforms_.size());
  if (place < 0 || place >= count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Compose::Remove: place: got ", place, ", want [0, ", count, ")"));
  }
  std::unique_ptr<Transform> transform = std::move(transforms_[place]);
  transforms_.erase(transforms_.begin() + place);
  return transform;
}

OptionValues Compose::option_values() const {
  OptionValues values;
  values.Part("transforms", absl::StrCat(transforms_.size()), {});
  for (size_t i = 0; i < transforms_.size(); ++i) {
    values.Part(absl::StrCat("transforms.", i), transforms_[i]->name(),
                transforms_[i]->option_values());
  }
  return values;
}

absl::Status Compose::Forward(TensorDict* batch) {
  return RunAll(transforms_, /*is_reverse=*/false,
                [&](size_t i) { return transforms_[i]->Forward(batch); });
}

absl::Status Compose::Inverse(TensorDict* batch) {
  return RunAll(transforms_, /*is_reverse=*/true,
                [&](size_t i) { return transforms_[i]->Inverse(batch); });
}

absl::Status Compose::OnReset(absl::Span<const uint8_t> mask,
                              TensorDict* root) {
  return RunAll(transforms_, /*is_reverse=*/false,
                [&](size_t i) { return transforms_[i]->OnReset(mask, root); });
}

absl::Status Compose::OnStep(TensorDict* step) {
  return RunAll(transforms_, /*is_reverse=*/false,
                [&](size_t i) { return transforms_[i]->OnStep(step); });
}

absl::StatusOr<TensorDictSpec> Compose::ForwardSpec(
    const TensorDictSpec& spec) const {
  TensorDictSpec result = spec;
  for (size_t i = 0; i < transforms_.size(); ++i) {
    auto after = transforms_[i]->ForwardSpec(result);
    RILL_RETURN_IF_ERROR(after.status()) << Place(transforms_, i);
    result = *std::move(after);
  }
  return result;
}

absl::StatusOr<TensorDictSpec> Compose::InverseSpec(
    const TensorDictSpec& spec) const {
  TensorDictSpec result = spec;
  for (size_t i = transforms_.size(); i-- > 0;) {
    auto after = transforms_[i]->InverseSpec(result);
    RILL_RETURN_IF_ERROR(after.status()) << Place(transforms_, i);
    result = *std::move(after);
  }
  return result;
}

absl::StatusOr<TensorDictSpec> Compose::StepSpec(
    const TensorDictSpec& spec) const {
  TensorDictSpec result = spec;
  for (size_t i = 0; i < transforms_.size(); ++i) {
    auto after = transforms_[i]->StepSpec(result);
    RILL_RETURN_IF_ERROR(after.status()) << Place(transforms_, i);
    result = *std::move(after);
  }
  return result;
}

absl::StatusOr<TensorDict> Compose::SaveState() const {
  TensorDict all;
  for (size_t i = 0; i < transforms_.size(); ++i) {
    auto state = transforms_[i]->SaveState();
    RILL_RETURN_IF_ERROR(state.status()) << Place(transforms_, i);
    if (state->empty()) continue;
    RILL_RETURN_IF_ERROR(all.Set(absl::StrCat(i), *std::move(state)));
  }
  return all;
}

absl::Status Compose::LoadState(const TensorDict& state) {
  int64_t found = 0;
  for (size_t i = 0; i < transforms_.size(); ++i) {
    if (state.FindDict(absl::StrCat(i)) != nullptr) ++found;
  }
  if (found != state.num_entries()) {
    return absl::FailedPreconditionError(
        absl::StrCat("Compose::LoadState: got ", state.num_entries(),
                     " states, want only those of transforms 0 to ",
                     static_cast<int64_t>(transforms_.size()) - 1));
  }
  return RunAll(transforms_, /*is_reverse=*/false, [&](size_t i) {
    const TensorDict* own = state.FindDict(absl::StrCat(i));
    return transforms_[i]->LoadState(own == nullptr ? TensorDict() : *own);
  });
}

}  // namespace rill
