// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/transformed_env.h"

#include <cstring>
#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/envs/step_spec.h"
#include "rill/tensordict/key.h"

namespace rill::collectors_internal {
namespace {

constexpr absl::string_view kCaller = "SyncCollector::Create";

absl::string_view Head(absl::string_view key) {
  absl::string_view head, rest;
  SplitKeyHead(key, &head, &rest);
  return head;
}

absl::Status CheckFlag(const TensorDictSpec& spec, absl::string_view key) {
  const LeafSpec* leaf = spec.Find(key);
  if (leaf != nullptr && leaf->dtype == DType::kBool &&
      leaf->shape == Shape({1})) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      kCaller, ": leaf \"", key, "\" after the transforms: got ",
      leaf == nullptr ? "none" : leaf->ToString(), ", want bool[1]"));
}

// A leaf below next and the one at the root that it is carried over to.
absl::Status CheckPairs(const TensorDictSpec& spec) {
  for (const TensorDictSpec::Leaf& root : spec.leaves()) {
    if (root.key == "reward") continue;
    const LeafSpec* next = spec.Find(absl::StrCat("next/", root.key));
    if (next == nullptr ||
        (next->dtype == root.spec.dtype && next->shape == root.spec.shape)) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        kCaller, ": leaf \"next/", root.key, "\" after the transforms: got ",
        next->ToString(), ", want that of \"", root.key,
        "\": ", root.spec.ToString()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<TransformedEnv>> TransformedEnv::Create(
    Env* env, const Transforms* transforms) {
  auto result = absl::WrapUnique(new TransformedEnv(env, transforms));
  RILL_RETURN_IF_ERROR(result->MakeSpec());
  RILL_RETURN_IF_ERROR(result->MakeLeaves());
  return result;
}

absl::Status TransformedEnv::MakeSpec() {
  RILL_ASSIGN_OR_RETURN(spec_, StepSpec(*env_));
  for (size_t i = 0; i < transforms_->size(); ++i) {
    const auto& transform = (*transforms_)[i];
    absl::StatusOr<TensorDictSpec> after = transform->StepSpec(spec_);
    RILL_RETURN_IF_ERROR(after.status())
        << kCaller << ": transforms[" << i << "] (" << transform->name()
        << ") does not fit what comes before it";
    spec_ = *std::move(after);
  }
  RILL_RETURN_IF_ERROR(CheckFlag(spec_, "done"));
  RILL_RETURN_IF_ERROR(CheckFlag(spec_, "next/done"));
  return CheckPairs(spec_);
}

absl::Status TransformedEnv::MakeLeaves() {
  RILL_ASSIGN_OR_RETURN(env_step_, MakeStep(*env_));
  RILL_ASSIGN_OR_RETURN(env_root_, env_step_.Exclude({"action", "next"}));
  RILL_ASSIGN_OR_RETURN(action_, env_step_.Get("action"));
  in_place_ = InPlaceCheck(env_step_);
  for (const TensorDictSpec::Leaf& leaf : spec_.leaves()) {
    const absl::string_view head = Head(leaf.key);
    if (head == "next" || head == "action") continue;
    RILL_RETURN_IF_ERROR(root_spec_.Set(leaf.key, leaf.spec));
  }
  if (transforms_->empty()) {
    root_ = env_root_;
    RILL_ASSIGN_OR_RETURN(carry_, StepCarry::Bind(env_step_, root_));
  } else {
    const Shape lanes = {env_->lanes()};
    RILL_ASSIGN_OR_RETURN(root_, root_spec_.Zero(lanes));
    RILL_ASSIGN_OR_RETURN(TensorDict next, env_step_.GetDict("next"));
    pristine_ = root_;
    RILL_RETURN_IF_ERROR(pristine_.Set("action", action_));
    RILL_RETURN_IF_ERROR(pristine_.Set("next", std::move(next)));
    RILL_ASSIGN_OR_RETURN(TensorDict whole, spec_.Zero(lanes));
    RILL_ASSIGN_OR_RETURN(carry_, StepCarry::Bind(whole, root_));
  }
  RILL_ASSIGN_OR_RETURN(done_, root_.Flat<bool>("done"));
  return absl::OkStatus();
}

absl::Status TransformedEnv::Reset(absl::Span<const uint8_t> mask) {
  RILL_RETURN_IF_ERROR(env_->Reset(mask, &env_root_));
  if (transforms_->empty()) return absl::OkStatus();
  TensorDict reset = env_root_;
  for (const auto& transform : *transforms_) {
    RILL_RETURN_IF_ERROR(transform->OnReset(mask, &reset));
  }
  return MergeReset(mask, reset);
}

// The rows of the lanes that were reset; a leaf that only OnStep makes begins
// with zeros.
absl::Status TransformedEnv::MergeReset(absl::Span<const uint8_t> mask,
                                        const TensorDict& reset) {
  for (const TensorDictSpec::Leaf& leaf : root_spec_.leaves()) {
    const Tensor* to = root_.Find(leaf.key);
    const int64_t width =
        leaf.spec.shape.num_elements() * DTypeSize(leaf.spec.dtype);
    const Tensor* found = reset.Find(leaf.key);
    Tensor from;
    if (found != nullptr) {
      RILL_RETURN_IF_ERROR(
          leaf.spec.CheckLayout(leaf.key, root_.batch_shape(), *found))
          << "SyncCollector: OnReset against StepSpec";
      RILL_ASSIGN_OR_RETURN(from, found->Contiguous());
    }
    for (size_t lane = 0; lane < mask.size(); ++lane) {
      if (mask[lane] == 0) continue;
      const int64_t offset = static_cast<int64_t>(lane) * width;
      if (found == nullptr) {
        std::memset(to->raw_data() + offset, 0, width);
      } else {
        std::memcpy(to->raw_data() + offset, from.raw_data() + offset, width);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status TransformedEnv::Step(bool check_in_place) {
  RILL_RETURN_IF_ERROR(env_->Step(&env_step_));
  if (!check_in_place) return absl::OkStatus();
  return in_place_.Check(env_->name(), env_step_);
}

absl::Status TransformedEnv::ApplyTransforms() {
  if (transforms_->empty()) return absl::OkStatus();
  step_ = pristine_;
  for (const auto& transform : *transforms_) {
    RILL_RETURN_IF_ERROR(transform->OnStep(&step_));
  }
  return carry_.Rebind(step_);
}

absl::Status TransformedEnv::Carry() { return carry_.Run(); }

}  // namespace rill::collectors_internal
