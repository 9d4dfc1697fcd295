// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/conformance/fake_environment.h"

#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"

namespace rill {
namespace {

// Copies the masked rows of `from` over those of `to`, same layout.
void CopyRows(absl::Span<const uint8_t> mask, const Tensor& from,
              const Tensor& to) {
  const int64_t width =
      mask.empty() ? 0 : from.size_bytes() / static_cast<int64_t>(mask.size());
  for (size_t lane = 0; lane < mask.size(); ++lane) {
    if (mask[lane] == 0) continue;
    const int64_t offset = static_cast<int64_t>(lane) * width;
    std::memcpy(to.raw_data() + offset, from.raw_data() + offset,
                static_cast<size_t>(width));
  }
}

}  // namespace

FakeEnvironment::FakeEnvironment(TensorDictSpec spec, int64_t lanes,
                                 uint64_t seed)
    : spec_(std::move(spec)), lanes_(lanes), seed_(seed), root_({lanes}) {}

absl::Status FakeEnvironment::Reset(absl::Span<const uint8_t> mask,
                                    Transform& transform) {
  RILL_ASSIGN_OR_RETURN(
      TensorDict fresh,
      spec_.Random({lanes_}, Rng(seed_, RngStream::kUser), batch_++));
  RILL_ASSIGN_OR_RETURN(fresh, fresh.Exclude({"next", "action"}));
  for (const std::string& key : fresh.LeafKeys()) {
    const Tensor* old = root_.Find(key);
    if (old == nullptr) {
      RILL_RETURN_IF_ERROR(root_.Set(key, *fresh.Find(key)));
    } else {
      CopyRows(mask, *fresh.Find(key), *old);
    }
  }
  return transform.OnReset(mask, &root_);
}

absl::StatusOr<TensorDict> FakeEnvironment::Step(Transform& transform) {
  RILL_ASSIGN_OR_RETURN(
      TensorDict fresh,
      spec_.Random({lanes_}, Rng(seed_, RngStream::kUser), batch_++));
  RILL_ASSIGN_OR_RETURN(TensorDict step, root_.Clone());
  if (fresh.Contains("action")) {
    RILL_RETURN_IF_ERROR(step.Set("action", *fresh.Find("action")));
  }
  if (const TensorDict* next = fresh.FindDict("next")) {
    RILL_RETURN_IF_ERROR(step.Set("next", *next));
  }
  fresh = TensorDict();
  RILL_RETURN_IF_ERROR(transform.OnStep(&step));
  for (const std::string& key : root_.LeafKeys()) {
    const Tensor* next = step.Find(absl::StrCat("next/", key));
    if (next == nullptr) continue;
    RILL_ASSIGN_OR_RETURN(Tensor carried, next->Clone());
    RILL_RETURN_IF_ERROR(root_.Set(key, carried));
  }
  return step;
}

}  // namespace rill
