// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/device/testing/fake_simulator.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/envs/device/device_env.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/steps/step_carry.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dlpack/dlpack_view.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

FakeBackend& Fake() {
  return *static_cast<FakeBackend*>(*GetBackend(Device::Fake()));
}

class FakeSimulator final : public DeviceSimulator {
 public:
  FakeSimulator(std::unique_ptr<Env> env, Stream stream,
                const FakeSimulatorOptions& options)
      : env_(std::move(env)), stream_(std::move(stream)), options_(options) {}

  absl::Status Init();
  StreamHandle stream() const override { return stream_.handle(); }
  absl::Status Seed(uint64_t seed) override {
    return Fake().Launch(0, stream_.handle(), {},
                         [this, seed](absl::Span<std::byte* const>) {
                           status_.Update(env_->Seed(seed));
                         });
  }
  absl::Status Reset(const ResetMask& mask) override;
  absl::Status Step(const TensorDict& action) override;
  absl::StatusOr<TensorDict> Lend() override;
  absl::StatusOr<TensorDict> SaveState() override;
  absl::Status LoadState(const TensorDict& state) override;

 private:
  // A leaf of the environment, and what is lent for it.
  struct Array {
    std::string key;
    Tensor root = {};  // Empty for a reward.
    Tensor next = {};
    bool is_flag = false;
    Shape shape = {};  // As lent.
    Tensor lent = {};
  };

  absl::Status AddArrays(const TensorDictSpec& leaves, bool has_root,
                         bool is_flag);
  absl::Status RenewArrays();
  absl::Status Launch(const TensorDict& action,
                      std::function<absl::Status()> work,
                      std::vector<uint8_t> rows, bool from_root);
  DType DTypeOf(const Array& array) const {
    return array.is_flag ? options_.flag_dtype : array.next.dtype();
  }
  void WriteRow(const Array& array, const Tensor& from, int64_t lane,
                std::byte* to) const;

  const std::unique_ptr<Env> env_;
  const Stream stream_;
  const FakeSimulatorOptions options_;
  StepCarry carry_;
  std::vector<Array> arrays_;
  TensorDict state_;     // The layout of a saved one.
  absl::Status status_;  // Of the kernels that have run.
};

absl::Status FakeSimulator::Init() {
  RILL_RETURN_IF_ERROR(AddArrays(env_->spec().observation, true, false));
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec rewards, RewardSpec(env_->spec()));
  RILL_RETURN_IF_ERROR(AddArrays(rewards, false, false));
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec all, FlagSpec(env_->spec()));
  TensorDictSpec flags;
  for (const TensorDictSpec::Leaf& leaf : all.leaves()) {
    for (const std::string& flag : options_.flags) {
      if (!absl::EndsWith(leaf.key, flag)) continue;
      RILL_RETURN_IF_ERROR(flags.Set(leaf.key, leaf.spec));
    }
  }
  RILL_RETURN_IF_ERROR(AddArrays(flags, true, true));
  RILL_ASSIGN_OR_RETURN(const TensorDict root, env_->step().Exclude({"next"}));
  RILL_ASSIGN_OR_RETURN(carry_, StepCarry::Bind(env_->step(), root));
  if (options_.saves_state) {
    RILL_ASSIGN_OR_RETURN(state_, env_->SaveState());
  }
  return RenewArrays();
}

absl::Status FakeSimulator::AddArrays(const TensorDictSpec& leaves,
                                      bool has_root, bool is_flag) {
  for (const TensorDictSpec::Leaf& leaf : leaves.leaves()) {
    Array array = {.key = leaf.key, .is_flag = is_flag};
    RILL_ASSIGN_OR_RETURN(array.next,
                          env_->step().Get(absl::StrCat("next/", leaf.key)));
    if (has_root) {
      RILL_ASSIGN_OR_RETURN(array.root, env_->step().Get(leaf.key));
    }
    array.shape = array.next.shape();
    if (options_.drops_last_one && array.shape[array.shape.rank() - 1] == 1) {
      array.shape = array.shape.Prefix(array.shape.rank() - 1);
    }
    arrays_.push_back(std::move(array));
  }
  return absl::OkStatus();
}

absl::Status FakeSimulator::RenewArrays() {
  for (Array& array : arrays_) {
    RILL_ASSIGN_OR_RETURN(
        array.lent,
        Tensor::Empty(DTypeOf(array), array.shape, {.device = Device::Fake()}));
  }
  return absl::OkStatus();
}

void FakeSimulator::WriteRow(const Array& array, const Tensor& from,
                             int64_t lane, std::byte* to) const {
  const int64_t size = from.num_elements() / env_->lanes();
  if (!array.is_flag) {
    const int64_t width = size * DTypeSize(from.dtype());
    std::memcpy(to + lane * width, from.raw_data() + lane * width, width);
    return;
  }
  const bool* const flags = from.data<bool>() + lane * size;
  for (int64_t i = 0; i < size; ++i) {
    std::byte* const at =
        to + (lane * size + i) * DTypeSize(options_.flag_dtype);
    switch (options_.flag_dtype) {
      case DType::kInt64:
        *reinterpret_cast<int64_t*>(at) = flags[i] ? int64_t{1} << 40 : 0;
        break;
      case DType::kFloat32:
        *reinterpret_cast<float*>(at) = flags[i] ? 1 : 0;
        break;
      default:  // A byte that is no bool's.
        *at = flags[i] ? std::byte{0xFF} : std::byte{0};
    }
  }
}

// Enqueues a kernel that does `work` and then writes what it lends: these rows.
absl::Status FakeSimulator::Launch(const TensorDict& action,
                                   std::function<absl::Status()> work,
                                   std::vector<uint8_t> rows, bool from_root) {
  if (!options_.fills_in_place) {
    RILL_RETURN_IF_ERROR(RenewArrays());
  }
  std::vector<FakeBackend::Range> ranges;
  std::vector<Tensor> actions;  // The environment's.
  for (const TensorDictSpec::Leaf& leaf : env_->spec().action.leaves()) {
    const Tensor* const from = action.Find(leaf.key);
    if (from == nullptr) continue;  // A reset.
    ranges.push_back({from->raw_data(), from->size_bytes()});
    actions.push_back(*env_->step().Find(leaf.key));
  }
  for (const Array& array : arrays_) {
    ranges.push_back({array.lent.raw_data(), array.lent.size_bytes()});
  }
  return Fake().Launch(
      0, stream_.handle(), std::move(ranges),
      [this, actions = std::move(actions), work = std::move(work),
       rows = std::move(rows), from_root](absl::Span<std::byte* const> at) {
        for (size_t i = 0; i < actions.size(); ++i) {
          std::memcpy(actions[i].raw_data(), at[i], actions[i].size_bytes());
        }
        status_.Update(work());
        for (size_t i = 0; i < arrays_.size(); ++i) {
          const Tensor& from = from_root ? arrays_[i].root : arrays_[i].next;
          if (!from.is_valid()) continue;
          for (int64_t lane = 0; lane < env_->lanes(); ++lane) {
            if (rows[lane] == 0) continue;
            WriteRow(arrays_[i], from, lane, at[actions.size() + i]);
          }
        }
        if (!from_root) status_.Update(carry_.Run());
      });
}

absl::Status FakeSimulator::Reset(const ResetMask& mask) {
  std::vector<uint8_t> lanes(mask.lanes.begin(), mask.lanes.end());
  std::vector<uint8_t> groups(mask.groups.begin(), mask.groups.end());
  std::vector<uint8_t> rows = lanes;
  for (size_t i = 0; i < groups.size(); ++i) {
    rows[i % rows.size()] |= groups[i];
  }
  return Launch(
      TensorDict(),
      [this, lanes = std::move(lanes), groups = std::move(groups)] {
        return env_->Reset({lanes, groups});
      },
      std::move(rows), /*from_root=*/true);
}

absl::Status FakeSimulator::Step(const TensorDict& action) {
  return Launch(
      action, [this] { return env_->Step(); },
      std::vector<uint8_t>(env_->lanes(), 1), /*from_root=*/false);
}

absl::StatusOr<TensorDict> FakeSimulator::Lend() {
  RILL_RETURN_IF_ERROR(std::exchange(status_, absl::OkStatus()));
  TensorDict lent({env_->lanes()});
  for (Array& array : arrays_) {
    RILL_ASSIGN_OR_RETURN(DLManagedTensor* const managed, ToDLPack(array.lent));
    if (!options_.fills_in_place) array.lent = Tensor();
    RILL_ASSIGN_OR_RETURN(Tensor borrowed, FromDLPack(managed));
    RILL_RETURN_IF_ERROR(lent.Set(array.key, std::move(borrowed)));
  }
  return lent;
}

// The memory of a dictionary's leaves, in their order.
std::vector<FakeBackend::Range> RangesOf(const TensorDict& dict) {
  std::vector<FakeBackend::Range> ranges;
  dict.ForEachLeaf([&](absl::string_view, const Tensor& leaf) {
    ranges.push_back({leaf.raw_data(), leaf.size_bytes()});
  });
  return ranges;
}

absl::StatusOr<TensorDict> FakeSimulator::SaveState() {
  if (!options_.saves_state) return DeviceSimulator::SaveState();
  RILL_ASSIGN_OR_RETURN(TensorDict state, state_.To(Device::Fake()));
  RILL_RETURN_IF_ERROR(Fake().Launch(
      0, stream_.handle(), RangesOf(state),
      [this](absl::Span<std::byte* const> at) {
        const absl::StatusOr<TensorDict> saved = env_->SaveState();
        status_.Update(saved.status());
        if (!saved.ok()) return;
        size_t i = 0;
        saved->ForEachLeaf([&](absl::string_view, const Tensor& leaf) {
          std::memcpy(at[i++], leaf.raw_data(), leaf.size_bytes());
        });
      }));
  return state;
}

absl::Status FakeSimulator::LoadState(const TensorDict& state) {
  if (!options_.saves_state) return DeviceSimulator::LoadState(state);
  return Fake().Launch(
      0, stream_.handle(), RangesOf(state),
      [this](absl::Span<std::byte* const> at) {
        size_t i = 0;
        state_.ForEachLeaf([&](absl::string_view, const Tensor& leaf) {
          std::memcpy(leaf.raw_data(), at[i++], leaf.size_bytes());
        });
        status_.Update(env_->LoadState(state_));
      });
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceSimulator>> MakeFakeSimulator(
    std::unique_ptr<Env> env, const FakeSimulatorOptions& options) {
  RILL_ASSIGN_OR_RETURN(Stream stream, Stream::Create(Device::Fake()));
  auto simulator = std::make_unique<FakeSimulator>(std::move(env),
                                                   std::move(stream), options);
  RILL_RETURN_IF_ERROR(simulator->Init());
  return simulator;
}

absl::StatusOr<std::unique_ptr<Env>> MakeFakeDeviceEnv(
    absl::StatusOr<std::unique_ptr<Env>> env,
    const FakeSimulatorOptions& options, bool check_actions) {
  RILL_RETURN_IF_ERROR(env.status());
  EnvSpec spec = (*env)->spec();
  spec.device = Device::Fake();
  RILL_ASSIGN_OR_RETURN(auto simulator,
                        MakeFakeSimulator(*std::move(env), options));
  return MakeDeviceEnv(std::move(spec), std::move(simulator),
                       {.fills_in_place = options.fills_in_place,
                        .check_actions = check_actions});
}

}  // namespace rill
