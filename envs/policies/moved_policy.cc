// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/policies/moved_policy.h"

#include <cstring>
#include <string>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

// A zeroed leaf like `leaf`, on `device`; in host memory that the stream's
// device copies from and to.
absl::StatusOr<Tensor> ZerosLike(const Tensor& leaf, Device device,
                                 const Stream& stream) {
  Tensor::Options options = {.device = device};
  if (device.is_cpu()) options = {stream.device(), MemoryKind::kPinned};
  RILL_ASSIGN_OR_RETURN(Tensor zeros,
                        Tensor::Empty(leaf.dtype(), leaf.shape(), options));
  if (zeros.size_bytes() == 0) return zeros;
  if (zeros.is_host()) {
    std::memset(zeros.raw_data(), 0, static_cast<size_t>(zeros.size_bytes()));
    return zeros;
  }
  RILL_RETURN_IF_ERROR(stream.backend()->Fill(
      device.index, zeros.raw_data(), 0, zeros.size_bytes(), stream.handle()));
  return zeros;
}

}  // namespace

absl::StatusOr<std::unique_ptr<MovedPolicy>> MovedPolicy::Create(
    Policy* policy, Device device, const Stream& stream) {
  if (policy == nullptr) {
    return InvalidArgument(
        "MovedPolicy::Create: policy: got null, want a policy");
  }
  if (!device.is_cpu() && device != stream.device()) {
    return InvalidArgument(
        "MovedPolicy::Create: device: got ", device.ToString(),
        ", want cpu or that of the stream, ", stream.device().ToString());
  }
  RILL_ASSIGN_OR_RETURN(Stream borrowed,
                        Stream::Borrow(stream.device(), stream.handle()));
  return absl::WrapUnique(new MovedPolicy(policy, device, std::move(borrowed)));
}

MovedPolicy::~MovedPolicy() { stream_.Synchronize().IgnoreError(); }

// A policy writes the leaves of `step` that are neither the root's nor the
// environment's below `next`: the action and the outputs.
absl::Status MovedPolicy::MakeLeaves(const TensorDict& root,
                                     const TensorDict& step) {
  if (!step_.empty()) return absl::OkStatus();
  TensorDict made_step(step.batch_shape());
  TensorDict made_root(step.batch_shape());
  TensorDict written(step.batch_shape());
  for (const std::string& key : step.LeafKeys()) {
    const bool is_root = root.Find(key) != nullptr;
    const bool is_output = output_spec().Find(key) != nullptr;
    // Not copied: a policy sees nothing of the step's outcome.
    if (!is_root && !is_output && absl::StartsWith(key, "next/")) continue;
    RILL_ASSIGN_OR_RETURN(Tensor leaf,
                          ZerosLike(*step.Find(key), device_, stream_));
    RILL_RETURN_IF_ERROR(made_step.Set(key, leaf));
    RILL_RETURN_IF_ERROR((is_root ? made_root : written).Set(key, leaf));
  }
  step_ = std::move(made_step);
  root_ = std::move(made_root);
  written_ = std::move(written);
  in_place_ = InPlaceCheck(step_);
  return absl::OkStatus();
}

// Copies the leaves with the keys of `leaves`.
absl::Status MovedPolicy::Enqueue(const TensorDict& leaves,
                                  const TensorDict& from,
                                  const TensorDict& to) const {
  absl::Status status;
  leaves.ForEachLeaf([&](absl::string_view key, const Tensor&) {
    if (!status.ok()) return;
    const Tensor* const source = from.Find(key);
    const Tensor* const target = to.Find(key);
    status = source == nullptr || target == nullptr
                 ? InvalidArgument("MovedPolicy::Act: leaf \"", key,
                                   "\": got none, want that of the first call")
                 : target->CopyFromAsync(*source, stream_);
  });
  return status;
}

absl::StatusOr<int64_t> MovedPolicy::ActThere(const TensorDict& root,
                                              ActContext context,
                                              TensorDict* step) {
  RILL_RETURN_IF_ERROR(Enqueue(root_, root, root_));
  // The policy reads the root on the host, at once.
  if (device_.is_cpu()) {
    RILL_RETURN_IF_ERROR(stream_.Synchronize());
  }
  context.stream = device_.is_cpu() ? nullptr : &stream_;
  RILL_ASSIGN_OR_RETURN(const int64_t version,
                        policy_.Act(root_, context, &step_));
  if (!is_checked_) {
    // Once: the copies are of the tensors made here, and a policy that sets
    // others would have its action ignored.
    RILL_RETURN_IF_ERROR(in_place_.Check("Policy::Act", step_));
    is_checked_ = true;
  }
  RILL_RETURN_IF_ERROR(Enqueue(written_, written_, *step));
  return version;
}

absl::StatusOr<int64_t> MovedPolicy::Act(const TensorDict& root,
                                         const ActContext& context,
                                         TensorDict* step) {
  RILL_RETURN_IF_ERROR(MakeLeaves(root, *step));
  absl::StatusOr<int64_t> version = ActThere(root, context, step);
  // Copies to the device were enqueued. The environment's work there comes
  // behind them on the stream, and this host memory is written again only after
  // the next Synchronize.
  if (device_.is_cpu()) return version;
  // After an error too: the environment's leaves may change from here on.
  const absl::Status done = stream_.Synchronize();
  if (version.ok() && !done.ok()) return done;
  return version;
}

}  // namespace rill
