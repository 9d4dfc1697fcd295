// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/conformance/fake_environment.h"

#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

constexpr uint64_t kSeed = 5;

bool IsNext(absl::string_view key) { return absl::StartsWith(key, "next/"); }

// Rows of the lanes that are asked for; all of them where there is no mask.
void CopyRows(const Tensor& from, const Tensor& to,
              const std::vector<uint8_t>* mask) {
  const int64_t lanes = to.shape()[0];
  const int64_t width = lanes == 0 ? 0 : to.size_bytes() / lanes;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    if (mask != nullptr && (*mask)[static_cast<size_t>(lane)] == 0) continue;
    std::memcpy(to.raw_data() + lane * width, from.raw_data() + lane * width,
                static_cast<size_t>(width));
  }
}

bool HasSameLayout(const Tensor* a, const Tensor* b) {
  return a != nullptr && b != nullptr && a->dtype() == b->dtype() &&
         a->shape() == b->shape();
}

}  // namespace

absl::StatusOr<FakeEnvironment> FakeEnvironment::Create(
    const TensorDictSpec& spec, int64_t lanes, const StepTransform* transform) {
  FakeEnvironment result;
  result.spec_ = spec;
  result.lanes_ = lanes;
  result.transform_ = transform;
  RILL_ASSIGN_OR_RETURN(result.plan_, transform->PlanSteps(spec));
  RILL_ASSIGN_OR_RETURN(result.before_, spec.Zero({lanes}));
  RILL_ASSIGN_OR_RETURN(result.after_, result.plan_.spec.Zero({lanes}));
  RILL_ASSIGN_OR_RETURN(result.state_, transform->InitialState(lanes));
  RILL_RETURN_IF_ERROR(result.Bind());
  return result;
}

absl::Status FakeEnvironment::Bind() {
  for (const BoundRows::Leaf& leaf : plan_.leaves) {
    // The chosen action comes from outside, where it may also be changed.
    const bool is_before = leaf.key == "action" ? leaf.use == LeafUse::kWrite
                                                : leaf.use == LeafUse::kRead;
    RILL_ASSIGN_OR_RETURN(
        BoundRows one,
        BoundRows::Create("FakeEnvironment", {leaf}, {.is_passed_in = true}));
    TensorDict dict = is_before ? before_ : after_;
    const Tensor* const found = dict.Find(leaf.key);
    RILL_RETURN_IF_ERROR(one.Bind(&dict));
    if (found == nullptr || one[0].data != found->raw_data()) {
      return absl::InternalError(absl::StrCat(
          "FakeEnvironment: \"", leaf.key, "\" of ", transform_->name(),
          ": want a leaf of the spec ", is_before ? "before" : "after", " it"));
    }
    leaves_.push_back(one[0]);
  }
  return absl::OkStatus();
}

// Leaves that the transform leaves as they are, and those that it updates.
void FakeEnvironment::CopyShared(absl::string_view prefix,
                                 const std::vector<uint8_t>* mask) {
  for (const TensorDictSpec::Leaf& leaf : spec_.leaves()) {
    if (leaf.key == "action" || IsNext(leaf.key) != !prefix.empty()) continue;
    const Tensor* from = before_.Find(leaf.key);
    const Tensor* to = after_.Find(leaf.key);
    if (HasSameLayout(from, to)) CopyRows(*from, *to, mask);
  }
}

absl::Status FakeEnvironment::Reset(const std::vector<uint8_t>& mask) {
  Carry();
  RILL_ASSIGN_OR_RETURN(
      const TensorDict random,
      spec_.Random({lanes_}, Rng(kSeed, RngStream::kEnv), batch_++));
  for (const TensorDictSpec::Leaf& leaf : spec_.leaves()) {
    if (leaf.key == "action" || IsNext(leaf.key)) continue;
    CopyRows(*random.Find(leaf.key), *before_.Find(leaf.key), &mask);
  }
  CopyShared("", &mask);
  TensorDict state = state_;
  RILL_RETURN_IF_ERROR(transform_->OnReset(mask, leaves_, &state));
  state_ = std::move(state);
  return absl::OkStatus();
}

absl::Status FakeEnvironment::Step() {
  RILL_ASSIGN_OR_RETURN(
      const TensorDict made,
      spec_.Random({lanes_}, Rng(kSeed, RngStream::kEnv), batch_++));
  return Step(made);
}

absl::Status FakeEnvironment::Step(const TensorDict& made) {
  Carry();
  RILL_ASSIGN_OR_RETURN(
      const TensorDict chosen,
      plan_.spec.Random({lanes_}, Rng(kSeed, RngStream::kPolicy), batch_));
  const Tensor* const action = after_.Find("action");
  if (action != nullptr) {
    CopyRows(*chosen.Find("action"), *action, nullptr);
    if (HasSameLayout(action, before_.Find("action"))) {
      CopyRows(*action, *before_.Find("action"), nullptr);
    }
  }
  TensorDict state = state_;
  RILL_RETURN_IF_ERROR(transform_->OnAction(leaves_, &state));
  for (const BoundRows::Leaf& leaf : plan_.leaves) {
    if (leaf.key != "action" || leaf.use != LeafUse::kUpdate) continue;
    CopyRows(*action, *before_.Find("action"), nullptr);
  }
  for (const TensorDictSpec::Leaf& leaf : spec_.leaves()) {
    const Tensor* given = made.Find(leaf.key);
    if (IsNext(leaf.key) && given != nullptr) {
      CopyRows(*given, *before_.Find(leaf.key), nullptr);
    }
  }
  CopyShared("next/", nullptr);
  RILL_RETURN_IF_ERROR(transform_->OnStep(leaves_, &state));
  state_ = std::move(state);
  has_stepped_ = true;
  return absl::OkStatus();
}

// Next becomes the root, on both sides.
void FakeEnvironment::Carry() {
  if (!has_stepped_) return;
  for (TensorDict* dict : {&before_, &after_}) {
    const TensorDictSpec spec = TensorDictSpec::Of(*dict);
    for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
      const Tensor* next = dict->Find(absl::StrCat("next/", leaf.key));
      const Tensor* root = dict->Find(leaf.key);
      if (HasSameLayout(next, root)) CopyRows(*next, *root, nullptr);
    }
  }
  has_stepped_ = false;
}

}  // namespace rill
