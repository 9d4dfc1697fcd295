// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/steps/step_driver.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "rill/base/catch_exceptions.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/device/current_stream.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/envs/env_spec.h"
#include "rill/specs/legal_choices.h"
#include "rill/tensordict/finite_check.h"

namespace rill {
namespace {

constexpr absl::string_view kLane = "lane";

// A key that a policy misses is most often recurrent state that it did not
// declare.
absl::Status OfPolicy(const absl::Status& status) {
  if (!absl::IsNotFound(status)) return status;
  return NotFound(status.message(),
                  "; a policy declares in output_spec() what it writes, "
                  "recurrent state too (\"next/hidden\", for \"hidden\" at "
                  "the root)");
}

}  // namespace

absl::StatusOr<StepDriver> StepDriver::Create(Env* env, Policy* policy,
                                              const Stream* stream) {
  StepDriver driver;
  driver.env_ = env;
  driver.policy_ = policy;
  if (const Device device = env->spec().device; !device.is_cpu()) {
    RILL_ASSIGN_OR_RETURN(
        driver.stream_,
        Stream::Borrow(device,
                       stream == nullptr ? StreamHandle() : stream->handle()));
  }
  RILL_ASSIGN_OR_RETURN(driver.spec_, StepSpec(env->spec()));
  // A dictionary of its own over the environment's tensors; outputs of the
  // policy are added to it.
  driver.step_ = env->step();
  RILL_RETURN_IF_ERROR(driver.AddOutputs());
  RILL_RETURN_IF_ERROR(driver.AddLegal());
  // The root is what a policy may read: observations, flags and recurrent
  // state. Action and outputs are what it writes.
  std::vector<absl::string_view> not_root = {"next"};
  for (const TensorDictSpec::Leaf& action : env->spec().action.leaves()) {
    not_root.push_back(action.key);
  }
  if (policy != nullptr) {
    for (const TensorDictSpec::Leaf& leaf : policy->output_spec().leaves()) {
      not_root.push_back(leaf.key);
    }
  }
  RILL_ASSIGN_OR_RETURN(driver.root_, driver.step_.Exclude(not_root));
  RILL_ASSIGN_OR_RETURN(driver.stepped_, env->step().Select({"next"}));
  RILL_ASSIGN_OR_RETURN(
      driver.acted_,
      driver.step_.Select(absl::MakeConstSpan(not_root).subspan(1)));
  RILL_ASSIGN_OR_RETURN(driver.carry_,
                        StepCarry::Bind(driver.step_, driver.root_));

  RILL_ASSIGN_OR_RETURN(const TensorDictSpec rewards, RewardSpec(env->spec()));
  // Done first, then the rewards: done_ and reward() count on that order.
  RILL_RETURN_IF_ERROR(driver.AddHostLeaf("next/done", &driver.host_));
  for (const TensorDictSpec::Leaf& reward : rewards.leaves()) {
    RILL_RETURN_IF_ERROR(
        driver.AddHostLeaf(absl::StrCat("next/", reward.key), &driver.host_));
  }
  RILL_RETURN_IF_ERROR(driver.AddHostLeaf("done", &driver.ended_));
  for (const std::string& group : env->spec().own_episodes) {
    RILL_RETURN_IF_ERROR(
        driver.AddHostLeaf(absl::StrCat(group, "/done"), &driver.ended_));
  }
  RILL_ASSIGN_OR_RETURN(driver.done_, driver.host_.leaves[0].Flat<bool>());
  driver.in_place_ = InPlaceCheck(driver.step_);
  const auto lanes = static_cast<size_t>(env->lanes());
  driver.mask_.assign(lanes, 0);
  driver.group_mask_.assign(lanes * env->spec().own_episodes.size(), 0);
  return driver;
}

absl::Status StepDriver::AddHostLeaf(absl::string_view key,
                                     HostLeaves* to) const {
  RILL_ASSIGN_OR_RETURN(const Tensor leaf, step_.Get(key));
  RILL_ASSIGN_OR_RETURN(to->leaves.emplace_back(), to->mirror.Add(leaf));
  return absl::OkStatus();
}

// The leaves that the policy writes: here, since they are not the
// environment's.
absl::Status StepDriver::AddOutputs() {
  if (policy_ == nullptr) return absl::OkStatus();
  const auto add = [this](const std::string& key,
                          const LeafSpec& spec) -> absl::StatusOr<Tensor> {
    if (spec_.Find(key) != nullptr) {
      return InvalidArgument("Policy::output_spec: got leaf \"", key,
                             "\", which the steps of ", env_->name(),
                             " have too; want another name");
    }
    RILL_RETURN_IF_ERROR(spec_.Set(key, spec));
    RILL_ASSIGN_OR_RETURN(Tensor leaf, spec.Zero({env_->lanes()}));
    RILL_ASSIGN_OR_RETURN(leaf, leaf.To(env_->spec().device));
    RILL_RETURN_IF_ERROR(step_.Set(key, leaf));
    return leaf;
  };
  for (const TensorDictSpec::Leaf& leaf : policy_->output_spec().leaves()) {
    RILL_RETURN_IF_ERROR(add(leaf.key, leaf.spec).status());
    absl::string_view root = leaf.key;
    if (!absl::ConsumePrefix(&root, "next/")) continue;
    RILL_ASSIGN_OR_RETURN(recurrent_.emplace_back(),
                          add(std::string(root), leaf.spec));
  }
  return absl::OkStatus();
}

absl::Status StepDriver::AddLegal() {
  const EnvSpec& spec = env_->spec();
  for (const LegalActions& legal : spec.legal_actions) {
    if (legal.replaces_others && policy_ != nullptr) {
      for (const TensorDictSpec::Leaf& leaf : policy_->output_spec().leaves()) {
        if (!IsLogProbKey(leaf.key)) continue;
        return InvalidArgument(
            "StepDriver::Create: policy: got one that writes \"", leaf.key,
            "\" for ", spec.name, ", which replaces \"", legal.action,
            "\" where \"", legal.mask,
            "\" does not allow it, want a policy that keeps to the mask, and "
            "no replacement: the log-probability would be of another action");
      }
    }
    if (legal.replaces_others || !spec.device.is_cpu()) continue;
    RILL_ASSIGN_OR_RETURN(Tensor action, step_.Get(legal.action));
    RILL_ASSIGN_OR_RETURN(Tensor mask, step_.Get(legal.mask));
    legal_.push_back({.key = legal.action,
                      .mask_key = legal.mask,
                      .spec = *spec.action.Find(legal.action),
                      .action = std::move(action),
                      .mask = std::move(mask)});
  }
  return absl::OkStatus();
}

absl::Status StepDriver::ResetAll() {
  std::fill(mask_.begin(), mask_.end(), 1);
  checked_ = false;
  steps_ = 0;
  return Reset(mask_);
}

absl::Status StepDriver::LetEnvironmentWait() const {
  if (!stream_.has_value()) return absl::OkStatus();  // Host memory.
  RILL_ASSIGN_OR_RETURN(const Stream default_stream,
                        Stream::Default(stream_->device()));
  return default_stream.WaitFor(*stream_);
}

template <typename Fn>
absl::Status StepDriver::OnStream(const Fn& call,
                                  absl::string_view function) const {
  std::optional<StreamScope> scope;
  if (stream_.has_value()) scope.emplace(*stream_);
  return CatchExceptions(call, env_->name(), function);
}

// Leaves are complete for the work of this stream.
absl::Status StepDriver::CheckFinite(absl::string_view caller,
                                     const TensorDict& leaves) const {
  std::optional<StreamScope> scope;
  if (stream_.has_value()) scope.emplace(*stream_);
  return CheckFiniteIfAsked(caller, leaves, {kLane});
}

absl::Status StepDriver::Reset(const ResetMask& mask) {
  RILL_RETURN_IF_ERROR(LetEnvironmentWait());
  RILL_RETURN_IF_ERROR(OnStream([&] { return env_->Reset(mask); }, "::Reset"));
  RILL_RETURN_IF_ERROR(CheckFinite(env_->name(), root_))
      << "in Reset after " << steps_ << " steps";
  // An environment does not know these leaves, so it cannot reset them.
  for (const Tensor& leaf : recurrent_) {
    const int64_t width = leaf.size_bytes() / env_->lanes();
    for (size_t lane = 0; lane < mask.lanes.size() && width > 0; ++lane) {
      if (mask.lanes[lane] == 0) continue;
      std::byte* const row = leaf.raw_data() + lane * width;
      if (!stream_.has_value()) {
        std::memset(row, 0, static_cast<size_t>(width));
        continue;
      }
      RILL_RETURN_IF_ERROR(stream_->backend()->Fill(
          stream_->device().index, row, 0, width, stream_->handle()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> StepDriver::Act(const ActContext& context) {
  ActContext with_stream = context;
  with_stream.stream = stream();
  absl::StatusOr<int64_t> version = CatchExceptions(
      [&] { return policy_->Act(root_, with_stream, &step_); }, "Policy::Act");
  if (!version.ok()) return OfPolicy(version.status());
  RILL_RETURN_IF_ERROR(CheckFinite("Policy::Act", acted_))
      << "in step " << steps_ << " of " << env_->name();
  if (checked_) return version;
  checked_ = true;
  RILL_RETURN_IF_ERROR(in_place_.Check("Policy::Act", step_));
  return version;
}

absl::Status StepDriver::Step() {
  for (const Legal& legal : legal_) {
    const LegalChoices choices = {.key = legal.key,
                                  .mask_key = legal.mask_key,
                                  .spec = legal.spec,
                                  .mask = legal.mask};
    RILL_RETURN_IF_ERROR(choices.Check(env_->name(), legal.action));
  }
  RILL_RETURN_IF_ERROR(LetEnvironmentWait());
  RILL_RETURN_IF_ERROR(OnStream([&] { return env_->Step(); }, "::Step"));
  RILL_RETURN_IF_ERROR(CheckFinite(env_->name(), stepped_))
      << "in step " << steps_;
  ++steps_;
  return absl::OkStatus();
}

double StepDriver::reward(int64_t lane) const {
  double sum = 0;
  // Leaf 0 is done.
  for (size_t i = 1; i < host_.leaves.size(); ++i) {
    const Tensor& rewards = host_.leaves[i];
    const int64_t width = rewards.num_elements() / env_->lanes();
    const float* const row = rewards.data<float>() + lane * width;
    for (int64_t k = 0; k < width; ++k) sum += row[k];
  }
  return sum;
}

// A group that begins with its lane does not begin on its own.
absl::Status StepDriver::MaskEnded() {
  RILL_RETURN_IF_ERROR(ended_.mirror.Update(stream()));
  const size_t lanes = mask_.size();
  std::copy_n(ended_.leaves[0].data<bool>(), lanes, mask_.begin());
  for (size_t g = 0; g * lanes < group_mask_.size(); ++g) {
    const Tensor& flags = ended_.leaves[1 + g];
    const size_t agents = static_cast<size_t>(flags.num_elements()) / lanes;
    for (size_t lane = 0; lane < lanes; ++lane) {
      const bool* const row = flags.data<bool>() + lane * agents;
      group_mask_[g * lanes + lane] =
          mask_[lane] == 0 && agents > 0 &&
          std::all_of(row, row + agents, [](bool done) { return done; });
    }
  }
  return absl::OkStatus();
}

absl::Status StepDriver::ResetEnded() {
  RILL_RETURN_IF_ERROR(MaskEnded());
  const auto has_none = [](const std::vector<uint8_t>& mask) {
    return mask.empty() || std::memchr(mask.data(), 1, mask.size()) == nullptr;
  };
  if (has_none(mask_) && has_none(group_mask_)) return absl::OkStatus();
  return Reset({mask_, group_mask_});
}

absl::Status StepDriver::Advance() {
  RILL_RETURN_IF_ERROR(Carry());
  return ResetEnded();
}

}  // namespace rill
