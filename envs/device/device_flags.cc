// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/device/device_flags.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/envs/device/lent_array.h"
#include "rill/specs/spec.h"
#include "rill/tensors/dtype.h"

// All flags lie in one buffer on the device and one in pinned memory, in the
// same order. So all of them go to the leaves in one copy, however many groups
// there are.

namespace rill::envs_internal {
namespace {

constexpr absl::string_view kNames[] = {"done", "terminated", "truncated"};

}  // namespace

absl::StatusOr<DeviceFlags> DeviceFlags::Create(const EnvSpec& spec,
                                                TensorDict* step) {
  DeviceFlags flags;
  flags.lanes_ = spec.lanes;
  flags.device_ = spec.device;
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec leaves, FlagSpec(spec));
  int64_t bytes = 0;
  for (const TensorDictSpec::Leaf& leaf : leaves.leaves()) {
    bytes += spec.lanes * leaf.spec.shape.num_elements();
  }
  RILL_ASSIGN_OR_RETURN(
      flags.host_, Buffer::Allocate(bytes, spec.device, MemoryKind::kPinned));
  RILL_ASSIGN_OR_RETURN(
      flags.leaves_, Buffer::Allocate(bytes, spec.device, MemoryKind::kDevice));
  std::memset(flags.host_->data(), 0, static_cast<size_t>(bytes));
  RILL_RETURN_IF_ERROR(CopyBlocking(flags.leaves_->data(), flags.host_->data(),
                                    bytes, spec.device));
  int64_t offset = 0;
  for (const TensorDictSpec::Leaf& leaf : leaves.leaves()) {
    absl::string_view prefix = leaf.key;
    if (!absl::ConsumeSuffix(&prefix, kNames[kDone])) continue;
    Group group = {.prefix = std::string(prefix),
                   .shape = Shape({spec.lanes}).Concat(leaf.spec.shape)};
    for (int kind = 0; kind < kNumKinds; ++kind) {
      RILL_ASSIGN_OR_RETURN(
          Tensor view,
          Tensor::View(flags.leaves_, DType::kBool, group.shape, offset));
      RILL_RETURN_IF_ERROR(step->Set(
          absl::StrCat("next/", prefix, kNames[kind]), std::move(view)));
      const int64_t size = group.shape.num_elements();
      // `step` sees the device's side, Resolve and Truncate write the host's.
      group.flags[kind] =
          absl::MakeSpan(reinterpret_cast<bool*>(flags.host_->data() + offset),
                         static_cast<size_t>(size));
      offset += size;
    }
    flags.groups_.push_back(std::move(group));
  }
  return flags;
}

absl::Status DeviceFlags::Stage(const TensorDict& lent, const Stream& stream) {
  for (Group& group : groups_) {
    RILL_RETURN_IF_ERROR(StageGroup(lent, stream, &group));
  }
  return absl::OkStatus();
}

absl::Status DeviceFlags::StageGroup(const TensorDict& lent,
                                     const Stream& stream, Group* group) const {
  bool is_any_lent = false;
  for (int kind = 0; kind < kNumKinds; ++kind) {
    const std::string key = absl::StrCat(group->prefix, kNames[kind]);
    group->is_lent[kind] = lent.Find(key) != nullptr;
    if (!group->is_lent[kind]) continue;
    is_any_lent = true;
    RILL_ASSIGN_OR_RETURN(const Tensor array,
                          FindLent(lent, key, group->shape, device_));
    // A byte of a bool may be any number here.
    const DType dtype =
        array.dtype() == DType::kBool ? DType::kUInt8 : array.dtype();
    // Kept from step to step; a simulator seldom changes the dtype of a flag.
    Tensor& staged = group->staged[kind];
    if (!staged.is_valid() || staged.dtype() != dtype) {
      RILL_ASSIGN_OR_RETURN(
          staged,
          Tensor::Empty(dtype, group->shape, {device_, MemoryKind::kPinned}));
    }
    RILL_RETURN_IF_ERROR(CopyAsync(staged.raw_data(), array.raw_data(),
                                   staged.size_bytes(), stream));
  }
  if (is_any_lent) return absl::OkStatus();
  return InvalidArgument("DeviceSimulator::Lend: flags of \"", group->prefix,
                         "\": got none, want one or more of \"", group->prefix,
                         "done\", \"", group->prefix, "terminated\", \"",
                         group->prefix, "truncated\"");
}

absl::Status DeviceFlags::Resolve() {
  for (Group& group : groups_) {
    for (int kind = 0; kind < kNumKinds; ++kind) {
      const absl::Span<bool> flags = group.flags[kind];
      std::fill(flags.begin(), flags.end(), false);
      if (!group.is_lent[kind]) continue;
      absl::StatusOr<Tensor> cast = Cast(group.staged[kind], DType::kBool);
      RILL_RETURN_IF_ERROR(cast.status())
          << "in flag \"" << group.prefix << kNames[kind] << "\"";
      std::copy_n(cast->data<bool>(), flags.size(), flags.begin());
    }
    const auto& [done, terminated, truncated] = group.flags;
    for (size_t i = 0; i < done.size(); ++i) {
      // `done` is always computed, so that it is the union of the two whatever
      // was lent.
      if (!group.is_lent[kTerminated]) {
        terminated[i] = done[i] && !truncated[i];
      } else if (!group.is_lent[kTruncated]) {
        truncated[i] = done[i] && !terminated[i];
      }
      done[i] = terminated[i] || truncated[i];
    }
  }
  return absl::OkStatus();
}

void DeviceFlags::Truncate(int64_t lane) {
  for (Group& group : groups_) {
    const size_t width = group.flags[kDone].size() / lanes_;
    for (int kind = 0; kind < kNumKinds; ++kind) {
      std::fill_n(group.flags[kind].begin() + lane * width, width,
                  kind != kTerminated);
    }
  }
}

absl::Status DeviceFlags::Write(const Stream& stream) const {
  return CopyAsync(leaves_->data(), host_->data(), host_->size_bytes(), stream);
}

}  // namespace rill::envs_internal
