// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/device/testing/copy_simulator.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/device/buffer.h"
#include "rill/device/stream.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/steps/step_carry.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

class CopySimulator final : public DeviceSimulator {
 public:
  CopySimulator(std::unique_ptr<Env> env, Stream stream)
      : env_(std::move(env)), stream_(std::move(stream)) {}

  absl::Status Init(Device device, int64_t delay_bytes) {
    lent_ = TensorDict({env_->lanes()});
    RILL_ASSIGN_OR_RETURN(const TensorDict root,
                          env_->step().Exclude({"next"}));
    RILL_ASSIGN_OR_RETURN(carry_, StepCarry::Bind(env_->step(), root));
    RILL_ASSIGN_OR_RETURN(const TensorDictSpec rewards,
                          RewardSpec(env_->spec()));
    RILL_ASSIGN_OR_RETURN(const TensorDictSpec flags, FlagSpec(env_->spec()));
    for (const TensorDictSpec& spec :
         {env_->spec().observation, rewards, flags}) {
      for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
        // `done` is `terminated` or `truncated`.
        if (leaf.key == "done") continue;
        const Tensor next = *env_->step().Get(absl::StrCat("next/", leaf.key));
        RILL_ASSIGN_OR_RETURN(
            const Tensor lent,
            Tensor::Empty(next.dtype(), next.shape(), {.device = device}));
        RILL_RETURN_IF_ERROR(lent_.Set(leaf.key, lent));
      }
    }
    if (delay_bytes == 0) return absl::OkStatus();
    RILL_ASSIGN_OR_RETURN(
        delay_, Buffer::Allocate(delay_bytes, device, MemoryKind::kDevice));
    return absl::OkStatus();
  }

  StreamHandle stream() const override { return stream_.handle(); }
  absl::Status Seed(uint64_t seed) override { return env_->Seed(seed); }
  absl::Status Reset(const ResetMask& mask) override {
    // The copies of the step before read what the reset writes.
    RILL_RETURN_IF_ERROR(stream_.Synchronize());
    RILL_RETURN_IF_ERROR(env_->Reset(mask));
    return EnqueueCopies("");
  }
  absl::Status Step(const TensorDict& action) override {
    for (const std::string& key : action.LeafKeys()) {
      RILL_RETURN_IF_ERROR(
          env_->step().Find(key)->CopyFromAsync(*action.Find(key), stream_));
    }
    RILL_RETURN_IF_ERROR(stream_.Synchronize());
    RILL_RETURN_IF_ERROR(env_->Step());
    RILL_RETURN_IF_ERROR(EnqueueCopies("next/"));
    // The copies read `next`, which the carry leaves alone.
    return carry_.Run();
  }
  absl::StatusOr<TensorDict> Lend() override { return lent_; }

 private:
  // Copies all leaves that are there below `prefix`.
  absl::Status EnqueueCopies(const std::string& prefix) {
    if (delay_ != nullptr) {
      RILL_RETURN_IF_ERROR(
          stream_.backend()->Fill(stream_.device().index, delay_->data(), 0,
                                  delay_->size_bytes(), stream_.handle()));
    }
    for (const std::string& key : lent_.LeafKeys()) {
      const Tensor* const from = env_->step().Find(absl::StrCat(prefix, key));
      if (from == nullptr) continue;  // Roots have no reward.
      RILL_RETURN_IF_ERROR(lent_.Find(key)->CopyFromAsync(*from, stream_));
    }
    return absl::OkStatus();
  }

  const std::unique_ptr<Env> env_;
  const Stream stream_;
  StepCarry carry_;
  TensorDict lent_;
  std::shared_ptr<Buffer> delay_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceSimulator>> MakeCopySimulator(
    std::unique_ptr<Env> env, Device device, int64_t delay_bytes) {
  RILL_ASSIGN_OR_RETURN(Stream stream, Stream::Create(device));
  auto simulator =
      std::make_unique<CopySimulator>(std::move(env), std::move(stream));
  RILL_RETURN_IF_ERROR(simulator->Init(device, delay_bytes));
  return simulator;
}

}  // namespace rill
