// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/transformed_env.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "absl/log/log.h"
#include "absl/memory/memory.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/catch_exceptions.h"
#include "rill/base/status_macros.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/lane_rows.h"
#include "rill/envs/lanes/lane_errors.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/steps/masked_lanes.h"

// States. KeepStates begins a call of the transforms, and where one of them
// fails, RestoreStates sets what was kept. Values of small tensors are copied,
// so that a transform may write them in place; others are shared. Steps
// allocate nothing.

namespace rill {

using envs_internal::DeviceStepCopies;
using envs_internal::StepsOnDevice;

namespace {

constexpr absl::string_view kCreate = "TransformedEnv::Create";

// Tensors of a state up to this size are copied for a call. That takes less
// than new tensors would: their look-ups, counts of holders and locks.
constexpr int64_t kCopiedBytes = 8192;

// The lanes with mask[lane] != 0. `room` has an entry a lane.
absl::Span<const int64_t> FindLanes(absl::Span<const uint8_t> mask,
                                    std::vector<int64_t>& room) {
  size_t count = 0;
  ForMaskedLanes(
      mask, [&](size_t lane) { room[count++] = static_cast<int64_t>(lane); });
  return absl::MakeConstSpan(room).first(count);
}

// A width that is known makes a copy of one or two instructions.
template <int64_t kWidth>
void CopyRowsOf(absl::Span<const int64_t> lanes, const std::byte* from,
                std::byte* to) {
  for (const int64_t lane : lanes) {
    std::memcpy(to + lane * kWidth, from + lane * kWidth, kWidth);
  }
}

void CopyLanes(absl::Span<const int64_t> lanes,
               const envs_internal::TransformedSteps::RowCopy& copy) {
  switch (copy.width) {
    case 1:
      return CopyRowsOf<1>(lanes, copy.from, copy.to);
    case 4:
      return CopyRowsOf<4>(lanes, copy.from, copy.to);
    case 8:
      return CopyRowsOf<8>(lanes, copy.from, copy.to);
    case 16:
      return CopyRowsOf<16>(lanes, copy.from, copy.to);
    default:
      break;
  }
  for (const int64_t lane : lanes) {
    std::memcpy(copy.to + lane * copy.width, copy.from + lane * copy.width,
                static_cast<size_t>(copy.width));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<TransformedEnv>> TransformedEnv::Create(
    std::unique_ptr<Env> env, Transforms transforms) {
  if (env == nullptr) {
    return InvalidArgument(kCreate, ": env: got null, want an environment");
  }
  std::vector<TensorDict> states;
  for (size_t i = 0; i < transforms.size(); ++i) {
    if (transforms[i] == nullptr) {
      return InvalidArgument(kCreate, ": transforms[", i,
                             "]: got null, want a transform");
    }
    RILL_ASSIGN_OR_RETURN(
        const TensorDict initial,
        CatchExceptions(
            [&] { return transforms[i]->InitialState(env->lanes()); }, kCreate,
            ": transforms[", i, "]: InitialState"));
    RILL_ASSIGN_OR_RETURN(states.emplace_back(),
                          envs_internal::OwnState(initial));
  }
  RILL_ASSIGN_OR_RETURN(Steps steps,
                        CatchExceptions(
                            [&] {
                              return envs_internal::PlanTransformedSteps(
                                  kCreate, *env, transforms);
                            },
                            kCreate));
  if (steps.on_device != nullptr) {
    for (TensorDict& state : states) {
      RILL_ASSIGN_OR_RETURN(state,
                            envs_internal::StateOn(env->spec().device, state));
    }
  }
  for (size_t i = 0; i < transforms.size(); ++i) {
    for (const std::string& key : steps.statistics[i]) {
      if (states[i].Find(key) != nullptr) continue;
      return InvalidArgument(kCreate, ": transforms[", i, "] (",
                             transforms[i]->name(), "): statistics: got \"",
                             key, "\", want a tensor of its state");
    }
  }
  return absl::WrapUnique(
      new TransformedEnv(std::move(env), std::move(transforms),
                         std::move(steps), std::move(states)));
}

TransformedEnv::TransformedEnv(std::unique_ptr<Env> env, Transforms transforms,
                               Steps steps, std::vector<TensorDict> states)
    : Env(std::move(steps.spec), std::move(steps.step)),
      env_(std::move(env)),
      transforms_(std::move(transforms)),
      steps_(std::move(steps)),
      done_(static_cast<size_t>(env_->lanes()), 0),
      mask_(done_.size(), 0),
      lanes_found_(done_.size(), 0),
      states_(std::move(states)) {
  for (size_t i = 0; i < transforms_.size(); ++i) {
    acting_.push_back(transforms_[i].get());
    has_statistics_ |= !steps_.statistics[i].empty();
    states_[i].ForEachLeaf([&](absl::string_view key, const Tensor&) {
      state_leaves_.push_back({i, std::string(key)});
    });
  }
}

template <typename Fn>
absl::Status TransformedEnv::Call(size_t i, absl::string_view function,
                                  const Fn& call) {
  const absl::Status status = CatchExceptions(call, function);
  if (status.ok()) return status;
  RestoreStates();
  return envs_internal::AnnotateTransform(status, *env_, i, *transforms_[i]);
}

absl::Status TransformedEnv::CopyAll(
    absl::Span<const Steps::RowCopy> copies) const {
  if (steps_.on_device != nullptr) return steps_.on_device->Copy(copies);
  for (const Steps::RowCopy& copy : copies) {
    std::memcpy(copy.to, copy.from,
                static_cast<size_t>(copy.width * env_->lanes()));
  }
  return absl::OkStatus();
}

absl::Status TransformedEnv::CopyRows(absl::Span<const Steps::RowCopy> copies,
                                      absl::Span<const int64_t> lanes,
                                      const uint8_t* mask) const {
  if (steps_.on_device != nullptr) return steps_.on_device->Copy(copies, mask);
  for (const Steps::RowCopy& copy : copies) CopyLanes(lanes, copy);
  return absl::OkStatus();
}

void TransformedEnv::KeepStates() {
  for (StateLeaf& leaf : state_leaves_) {
    const Tensor* const now = states_[leaf.transform].Find(leaf.key);
    if (now == nullptr) continue;  // Against what a transform promises.
    const bool is_plain = now->is_host() && now->is_contiguous();
    if (leaf.copied >= 0 && is_plain && leaf.before.dtype() == now->dtype() &&
        leaf.before.shape() == now->shape()) {
      std::memcpy(leaf.before.raw_data(), now->raw_data(),
                  static_cast<size_t>(leaf.copied));
      continue;
    }
    leaf.before = *now;
    leaf.copied = -1;
    if (!is_plain || now->size_bytes() > kCopiedBytes) continue;
    absl::StatusOr<Tensor> copy = now->Clone();
    if (!copy.ok()) continue;
    leaf.before = *std::move(copy);
    leaf.copied = now->size_bytes();
  }
}

void TransformedEnv::RestoreStates() {
  for (StateLeaf& leaf : state_leaves_) {
    states_[leaf.transform].Set(leaf.key, leaf.before).IgnoreError();
    leaf.copied = -1;
  }
}

// Statistics begin with their count of rows, as a VecNorm's do.
bool TransformedEnv::HasRows(size_t i) const {
  constexpr std::array<std::byte, sizeof(int64_t)> kNone = {};
  return std::any_of(steps_.statistics[i].begin(), steps_.statistics[i].end(),
                     [&](const std::string& key) {
                       const absl::StatusOr<Tensor> leaf =
                           states_[i].Find(key)->To(Device::Cpu());
                       return leaf.ok() &&
                              std::memcmp(leaf->raw_data(), kNone.data(),
                                          kNone.size()) != 0;
                     });
}

void TransformedEnv::OnSetLearning() {
  env_->SetLearning(learns());
  AwaitDevice().IgnoreError();  // HasRows reads.
  for (size_t i = 0; i < transforms_.size(); ++i) {
    const bool stands_in = !learns() && steps_.frozen[i] != nullptr;
    acting_[i] = stands_in ? steps_.frozen[i].get() : transforms_[i].get();
    if (!stands_in || HasRows(i)) continue;
    LOG(WARNING) << env_->name() << ": transforms[" << i << "] ("
                 << transforms_[i]->name()
                 << ") does not learn now and has statistics of no row: it "
                    "applies none; LoadStatistics of what a collector has "
                    "learned (TransformStates)";
  }
}

absl::Status TransformedEnv::Seed(uint64_t seed) {
  RILL_RETURN_IF_ERROR(CatchExceptions([&] { return env_->Seed(seed); },
                                       env_->name(), "::Seed"));
  KeepStates();
  for (size_t i = 0; i < transforms_.size(); ++i) {
    RILL_RETURN_IF_ERROR(Call(i, "OnSeed", [&] {
      absl::Status seeded = transforms_[i]->OnSeed(seed, &states_[i]);
      if (!seeded.ok()) return seeded;
      RILL_ASSIGN_OR_RETURN(states_[i], Place(states_[i]));
      return absl::OkStatus();
    }));
  }
  return absl::OkStatus();
}

// The lanes that begin, or one of whose groups does. In lanes_found_.
absl::Span<const int64_t> TransformedEnv::FindBegun(const ResetMask& mask) {
  std::copy(mask.lanes.begin(), mask.lanes.end(), mask_.begin());
  for (size_t i = 0; i < mask.groups.size(); ++i) {
    mask_[i % mask_.size()] |= mask.groups[i];
  }
  return FindLanes(mask_, lanes_found_);
}

absl::Status TransformedEnv::Reset(const ResetMask& mask) {
  if (transforms_.empty()) return env_->Reset(mask);
  RILL_RETURN_IF_ERROR(CheckMask("TransformedEnv::Reset", spec(), mask));
  StepsOnDevice* const device = steps_.on_device.get();
  if (device != nullptr) {
    RILL_RETURN_IF_ERROR(ReadEnds(/*wants_all=*/false));
    RILL_RETURN_IF_ERROR(device->Begin());
    RILL_RETURN_IF_ERROR(device->LetEnvironmentWait());
  }
  RILL_RETURN_IF_ERROR(CatchExceptions([&] { return env_->Reset(mask); },
                                       env_->name(), "::Reset"));
  absl::Status status = RunReset(mask);
  if (device != nullptr) status.Update(device->End());
  return status;
}

absl::Status TransformedEnv::RunReset(const ResetMask& mask) {
  StepsOnDevice* const device = steps_.on_device.get();
  DeviceStepCopies* const copies = steps_.copies_to_host.get();
  if (copies != nullptr) {
    RILL_RETURN_IF_ERROR(copies->RowsToHost(FindBegun(mask)));
  }
  KeepStates();
  absl::Span<const int64_t> lanes = FindLanes(mask.lanes, lanes_found_);
  const uint8_t* there = nullptr;
  if (device != nullptr && !lanes.empty()) {
    RILL_ASSIGN_OR_RETURN(there, device->Send(mask.lanes));
  }
  // Transforms run from the environment outwards. Before each, the leaves of
  // the root that it replaces get the rows that come before it.
  for (size_t i = 0; i < transforms_.size(); ++i) {
    if (device != nullptr && lanes.empty()) break;
    RILL_RETURN_IF_ERROR(CopyRows(steps_.copies[i].before_reset, lanes, there));
    RILL_RETURN_IF_ERROR(Call(i, "OnReset", [&] {
      if (device == nullptr) {
        return acting_[i]->OnReset(mask.lanes, steps_.leaves[i], &states_[i]);
      }
      DeviceSteps::Call call = DeviceCall(i);
      call.lanes = mask.lanes;
      call.mask = there;
      return envs_internal::AsDeviceSteps(*acting_[i])
          ->OnDeviceReset(call, steps_.tensors[i], &states_[i]);
    }));
  }
  for (const int64_t lane : lanes) done_[lane] = 0;
  // A group that began on its own changed rows of the root too. No transform
  // was reset for it; the caller's copies of these lanes are renewed all the
  // same.
  if (!mask.groups.empty()) {
    lanes = FindBegun(mask);
    if (device != nullptr && !lanes.empty()) {
      RILL_ASSIGN_OR_RETURN(there, device->Send(mask_));
    }
  }
  if (lanes.empty()) return absl::OkStatus();
  RILL_RETURN_IF_ERROR(CopyRows(steps_.shown, lanes, there));
  return copies == nullptr ? absl::OkStatus() : copies->RowsToDevice(lanes);
}

// Checks what the environment cannot see: an action that it does not get, and
// an episode that a transform has ended. A wrong action has precedence.
absl::Status TransformedEnv::CheckStep() const {
  constexpr absl::string_view kCaller = "TransformedEnv::BeginStep";
  const void* done = std::memchr(done_.data(), 1, done_.size());
  if (done == nullptr && !steps_.replaces_action) return absl::OkStatus();
  if (spec().checks_actions) {
    RILL_RETURN_IF_ERROR(CheckActions(kCaller, spec(), step()));
  }
  if (done == nullptr) return absl::OkStatus();
  return FailedPrecondition(kCaller, ": lane ",
                            static_cast<const uint8_t*>(done) - done_.data(),
                            " of ", env_->name(), " is done; reset it first");
}

absl::Status TransformedEnv::BeginStep() {
  if (transforms_.empty()) return env_->BeginStep();
  StepsOnDevice* const device = steps_.on_device.get();
  if (device != nullptr) {
    RILL_RETURN_IF_ERROR(ReadEnds(/*wants_all=*/false));
  }
  RILL_RETURN_IF_ERROR(CheckStep());
  if (device != nullptr) {
    RILL_RETURN_IF_ERROR(device->Begin());
  }
  absl::Status status = RunActions();
  if (device != nullptr) status.Update(device->End());
  RILL_RETURN_IF_ERROR(status);
  failure_ = CatchExceptions([&] { return env_->BeginStep(); }, env_->name(),
                             "::BeginStep");
  // A refusal moved no lane and ends the call. A simulator that failed has
  // moved the others: the transforms must see the step, and EndStep returns the
  // error behind them.
  if (!envs_internal::IsRefusal(failure_)) return absl::OkStatus();
  RestoreStates();
  return failure_;
}

absl::Status TransformedEnv::RunActions() {
  StepsOnDevice* const device = steps_.on_device.get();
  DeviceStepCopies* const copies = steps_.copies_to_host.get();
  if (copies != nullptr) {
    RILL_RETURN_IF_ERROR(copies->ActionsToHost());
  }
  KeepStates();
  // An action comes from the caller, so the last transform is first.
  for (size_t i = transforms_.size(); i-- > 0;) {
    RILL_RETURN_IF_ERROR(Call(i, "OnAction", [&] {
      if (device == nullptr) {
        return acting_[i]->OnAction(steps_.leaves[i], &states_[i]);
      }
      return envs_internal::AsDeviceSteps(*acting_[i])
          ->OnDeviceAction(DeviceCall(i), steps_.tensors[i], &states_[i]);
    }));
  }
  absl::Status given;
  if (copies != nullptr) given = copies->ActionsToDevice();
  if (device != nullptr) given = device->LetEnvironmentWait();
  if (!given.ok()) RestoreStates();
  return given;
}

absl::Status TransformedEnv::EndStep() {
  if (transforms_.empty()) return env_->EndStep();
  if (failure_.ok()) {
    failure_ = CatchExceptions([&] { return env_->EndStep(); }, env_->name(),
                               "::EndStep");
  }
  StepsOnDevice* const device = steps_.on_device.get();
  absl::Status status;
  if (device != nullptr) status = device->Begin();
  if (steps_.copies_to_host != nullptr) {
    status = steps_.copies_to_host->StepsToHost();
  }
  if (!status.ok()) return failure_.ok() ? status : failure_;
  status = RunStep();
  if (device != nullptr) status.Update(device->End());
  RILL_RETURN_IF_ERROR(status);
  if (steps_.copies_to_host != nullptr) {
    status = steps_.copies_to_host->StepsToDevice();
  }
  return failure_.ok() ? status : failure_;
}

absl::Status TransformedEnv::RunStep() {
  StepsOnDevice* const device = steps_.on_device.get();
  for (size_t i = 0; i < transforms_.size(); ++i) {
    RILL_RETURN_IF_ERROR(CopyAll(steps_.copies[i].before_step));
    RILL_RETURN_IF_ERROR(Call(i, "OnStep", [&] {
      if (device == nullptr) {
        return acting_[i]->OnStep(steps_.leaves[i], &states_[i]);
      }
      return envs_internal::AsDeviceSteps(*acting_[i])
          ->OnDeviceStep(DeviceCall(i), steps_.tensors[i], &states_[i]);
    }));
  }
  // The transforms' own root for the next step. The caller carries the leaves
  // of step() itself, and has done so or not when that step begins.
  RILL_RETURN_IF_ERROR(CopyAll(steps_.carried));
  // Behind the last transform: one of them may have ended the episode, which
  // the environment does not know.
  if (device != nullptr) {
    std::fill(done_.begin(), done_.end(), StepsOnDevice::kUnread);
    return device->SendEnds();
  }
  std::memcpy(done_.data(), steps_.done, done_.size());
  return absl::OkStatus();
}

// --- On a device -------------------------------------------------------------

DeviceSteps::Call TransformedEnv::DeviceCall(size_t i) const {
  const StepsOnDevice& device = *steps_.on_device;
  return {.stream = device.stream(), .fault = device.fault(i)};
}

absl::Status TransformedEnv::ReadEnds(bool wants_all) const {
  RILL_ASSIGN_OR_RETURN(const auto fault,
                        steps_.on_device->ReadEnds(wants_all, &done_));
  if (!fault.has_value()) return absl::OkStatus();
  const StepTransform& transform = *transforms_[fault->transform];
  return envs_internal::AnnotateTransform(
      envs_internal::AsDeviceSteps(transform)->FaultOf(fault->fault), *env_,
      fault->transform, transform);
}

absl::Status TransformedEnv::AwaitDevice() const {
  return steps_.on_device == nullptr ? absl::OkStatus()
                                     : steps_.on_device->Await();
}

absl::StatusOr<TensorDict> TransformedEnv::Place(
    const TensorDict& state) const {
  if (steps_.on_device == nullptr) return state;
  return envs_internal::StateOn(env_->spec().device, state);
}

}  // namespace rill
