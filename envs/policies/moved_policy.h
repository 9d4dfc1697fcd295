// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_POLICIES_MOVED_POLICY_H_
#define RILL_ENVS_POLICIES_MOVED_POLICY_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/envs/policies/policy.h"
#include "rill/envs/steps/in_place_check.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// A policy on a device for an environment in host memory, or the reverse. The
// leaves of the root are copied to where the policy acts, and what it writes is
// copied back.
//
// Thread-safety: thread-compatible. May alternate between environments of one
//   kind, as any policy.
// Device/Stream: all copies, and the policy's work on a device, are on one
//   stream. Act waits for it where the host reads what was copied: the root
//   before the policy acts in host memory, the action before an environment
//   steps there. The destructor waits too.
// Cost: a copy a leaf, each way, and one wait. Memory for one more step.
class MovedPolicy final : public Policy {
 public:
  // `policy` acts on leaves on `device`: the CPU or that of `stream`, on which
  // leaves in other memory are. Both outlive the result. FAILED_PRECONDITION
  // where the device has no backend.
  static absl::StatusOr<std::unique_ptr<MovedPolicy>> Create(
      Policy* policy, Device device, const Stream& stream);
  ~MovedPolicy() override;

  const TensorDictSpec& output_spec() const override {
    return policy_.output_spec();
  }
  // Errors of the policy as they are, and those of the device.
  absl::StatusOr<int64_t> Act(const TensorDict& root, const ActContext& context,
                              TensorDict* step) override;

 private:
  MovedPolicy(Policy* policy, Device device, Stream stream)
      : policy_(*policy), device_(device), stream_(std::move(stream)) {}

  absl::Status MakeLeaves(const TensorDict& root, const TensorDict& step);
  absl::Status Enqueue(const TensorDict& leaves, const TensorDict& from,
                       const TensorDict& to) const;
  absl::StatusOr<int64_t> ActThere(const TensorDict& root, ActContext context,
                                   TensorDict* step);

  Policy& policy_;
  const Device device_;
  const Stream stream_;
  // The policy's leaves, made at the first call.
  TensorDict step_;
  TensorDict root_;
  TensorDict written_;  // Action and outputs.
  InPlaceCheck in_place_;
  bool is_checked_ = false;
};

}  // namespace rill

#endif  // RILL_ENVS_POLICIES_MOVED_POLICY_H_
