// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/transformed_env.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/envs/lane_rows.h"

namespace rill {
namespace {

// Rows of `width` bytes of the lanes with mask[lane] != 0.
void CopyLanes(absl::Span<const uint8_t> mask, int64_t width,
               const std::byte* from, std::byte* to) {
  for (size_t lane = 0; lane < mask.size(); ++lane) {
    if (mask[lane] == 0) continue;
    const int64_t at = static_cast<int64_t>(lane) * width;
    std::memcpy(to + at, from + at, static_cast<size_t>(width));
  }
}

}  // namespace

absl::Status TransformedEnv::Annotate(size_t i,
                                      const absl::Status& status) const {
  if (status.ok()) return status;
  return absl::Status(
      status.code(),
      absl::StrCat(status.message(), "; in transforms[", i, "] (",
                   transforms_[i]->name(), ") of ", env_->name()));
}

// Adopts the caller's leaves where they are others than before.
absl::Status TransformedEnv::BindOuter(absl::string_view caller,
                                       const TensorDict& dict, Outer* outer) {
  if (const absl::Status status = outer->rows.Bind(dict); !status.ok()) {
    return absl::InvalidArgumentError(status.message());
  }
  for (size_t i = 0; i < outer->buffers.size(); ++i) {
    const BoundLeaf& leaf = outer->rows[i];
    Buffer& buffer = buffers_[outer->buffers[i]];
    if (leaf.rows != env_->lanes() || dict.batch_shape().rank() != 1 ||
        !leaf.is_flat || !leaf.is_writable) {
      return absl::InvalidArgumentError(absl::StrCat(
          caller, ": leaf \"", buffer.key, "\": got batch shape ",
          dict.batch_shape().ToString(), leaf.is_flat ? "" : ", not contiguous",
          leaf.is_writable ? "" : ", read-only", ", want writable rows of ",
          env_->lanes(), " lanes without gaps"));
    }
    if (!buffer.is_outer() || buffer.tensor.raw_data() == leaf.data) continue;
    buffer.tensor = *dict.Find(buffer.key);
    is_resolved_ = false;
  }
  return absl::OkStatus();
}

absl::Status TransformedEnv::Resolve() {
  if (is_resolved_) return absl::OkStatus();
  for (const Buffer& buffer : buffers_) {
    if (buffer.stage > 0) continue;
    RILL_RETURN_IF_ERROR(env_step_.Set(buffer.key, buffer.tensor));
  }
  in_place_ = InPlaceCheck(env_step_);
  is_checked_ = false;
  for (size_t i = 0; i < used_.size(); ++i) {
    leaves_[i].clear();
    for (const size_t used : used_[i]) {
      const Buffer& buffer = buffers_[used];
      leaves_[i].push_back({.data = buffer.tensor.raw_data(),
                            .strides = {buffer.width, buffer.width},
                            .width = buffer.width,
                            .is_flat = true,
                            .dtype = buffer.spec.dtype,
                            .device = Device::Cpu(),
                            .is_writable = true,
                            .rows = env_->lanes(),
                            .shape = buffer.spec.shape});
    }
  }
  is_resolved_ = true;
  return absl::OkStatus();
}

void TransformedEnv::CopyRows(const Link& link) {
  std::memcpy(buffers_[link.to].tensor.raw_data(),
              buffers_[link.from].tensor.raw_data(),
              static_cast<size_t>(buffers_[link.to].width * env_->lanes()));
}

void TransformedEnv::StartStates() {
  for (size_t i = 0; i < states_.size(); ++i) {
    if (!states_[i].empty()) next_states_[i] = states_[i];
  }
}

void TransformedEnv::CommitStates() {
  for (size_t i = 0; i < states_.size(); ++i) {
    if (!states_[i].empty()) std::swap(states_[i], next_states_[i]);
  }
}

absl::Status TransformedEnv::Seed(uint64_t seed) {
  RILL_RETURN_IF_ERROR(env_->Seed(seed));
  StartStates();
  for (size_t i = 0; i < transforms_.size(); ++i) {
    RILL_RETURN_IF_ERROR(
        Annotate(i, transforms_[i]->OnSeed(seed, &next_states_[i])));
  }
  CommitStates();
  return absl::OkStatus();
}

absl::Status TransformedEnv::Reset(absl::Span<const uint8_t> mask,
                                   TensorDict* root) {
  if (transforms_.empty()) return env_->Reset(mask, root);
  constexpr absl::string_view kCaller = "TransformedEnv::Reset";
  RILL_RETURN_IF_ERROR(CheckLaneMask(kCaller, mask, env_->lanes()));
  RILL_RETURN_IF_ERROR(BindOuter(kCaller, *root, &root_));
  RILL_RETURN_IF_ERROR(Resolve());
  RILL_RETURN_IF_ERROR(env_->Reset(mask, &env_step_));
  StartStates();
  for (size_t i = 0; i < transforms_.size(); ++i) {
    for (const Link& link : copies_[i]) {
      const Buffer& to = buffers_[link.to];
      if (!to.is_kept) continue;
      CopyLanes(mask, to.width, buffers_[link.from].tensor.raw_data(),
                to.tensor.raw_data());
    }
    RILL_RETURN_IF_ERROR(Annotate(
        i, transforms_[i]->OnReset(mask, leaves_[i], &next_states_[i])));
  }
  for (size_t i = 0; i < root_.buffers.size(); ++i) {
    const Buffer& buffer = buffers_[root_.buffers[i]];
    if (!buffer.is_kept) continue;
    CopyLanes(mask, buffer.width, buffer.tensor.raw_data(), root_.rows[i].data);
  }
  for (size_t lane = 0; lane < mask.size(); ++lane) {
    if (mask[lane] != 0) done_[lane] = 0;
  }
  CommitStates();
  return absl::OkStatus();
}

// What the environment cannot see: an action that it does not get, and an
// episode that a transform has ended. A wrong action has precedence.
absl::Status TransformedEnv::CheckStep(const TensorDict& step) const {
  const auto done = std::find(done_.begin(), done_.end(), 1);
  if (done == done_.end() && !replaces_action_) return absl::OkStatus();
  const Tensor& action = *step.Find("action");
  for (int64_t lane = 0; lane < env_->lanes(); ++lane) {
    RILL_ASSIGN_OR_RETURN(const Tensor row, action.Index(lane));
    RILL_RETURN_IF_ERROR(action_spec_.CheckValues("action", {}, row))
        << "TransformedEnv::Step: lane " << lane;
  }
  if (done == done_.end()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("TransformedEnv::Step: lane ", done - done_.begin(), " of ",
                   env_->name(), " is done; reset it first"));
}

absl::Status TransformedEnv::Step(TensorDict* step) {
  if (transforms_.empty()) return env_->Step(step);
  RILL_RETURN_IF_ERROR(BindOuter("TransformedEnv::Step", *step, &step_));
  RILL_RETURN_IF_ERROR(Resolve());
  RILL_RETURN_IF_ERROR(CheckStep(*step));
  StartStates();
  for (size_t i = transforms_.size(); i-- > 0;) {
    RILL_RETURN_IF_ERROR(
        Annotate(i, transforms_[i]->OnAction(leaves_[i], &next_states_[i])));
  }
  RILL_RETURN_IF_ERROR(env_->Step(&env_step_));
  if (!is_checked_) {
    RILL_RETURN_IF_ERROR(in_place_.Check(env_->name(), env_step_));
    is_checked_ = true;
  }
  for (size_t i = 0; i < transforms_.size(); ++i) {
    for (const Link& link : copies_[i]) {
      if (!buffers_[link.to].is_kept) CopyRows(link);
    }
    RILL_RETURN_IF_ERROR(
        Annotate(i, transforms_[i]->OnStep(leaves_[i], &next_states_[i])));
  }
  for (const Link& link : carried_) CopyRows(link);
  std::memcpy(done_.data(), buffers_[done_buffer_].tensor.raw_data(),
              done_.size());
  CommitStates();
  return absl::OkStatus();
}

}  // namespace rill
