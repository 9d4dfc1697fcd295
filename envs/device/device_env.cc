// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/device/device_env.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/envs/device/device_flags.h"
#include "rill/envs/device/lent_array.h"
#include "rill/envs/lane_rows.h"
#include "rill/envs/lanes/lane_errors.h"
#include "rill/envs/steps/row_moves.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/state/state_dict.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

// How it works. Two rules order all work. The caller works on leaves on the
// default stream of the device, and the simulator's stream waits for that one
// before a call enqueues anything (WaitForCaller). The host waits for the
// simulator's stream before Reset and EndStep return, since the caller's loop
// needs the flags.
//
// A step enqueues the simulator's work in BeginStep. EndStep enqueues the
// copies of flags and rewards to pinned memory, waits, makes the flags on the
// host, writes them back and waits again.

namespace rill {
namespace {

using envs_internal::CheckSameArray;
using envs_internal::DeviceFlags;
using envs_internal::FindLent;
using envs_internal::RowMoves;

// Entries of a saved state.
constexpr int64_t kStateVersion = 1;
constexpr absl::string_view kRunning = "running";
constexpr absl::string_view kSimulator = "simulator";

class DeviceEnv final : public Env {
 public:
  static absl::StatusOr<std::unique_ptr<Env>> Create(
      EnvSpec spec, std::unique_ptr<DeviceSimulator> simulator,
      const DeviceEnvOptions& options);
  ~DeviceEnv() override { stream_.Synchronize().IgnoreError(); }

  absl::Status Seed(uint64_t seed) override;
  absl::Status Reset(const ResetMask& mask) override;
  absl::Status BeginStep() override;
  absl::Status EndStep() override;
  absl::StatusOr<TensorDict> SaveState() const override;
  absl::Status LoadState(const TensorDict& state) override;

 private:
  // A leaf below next that a lent array fills.
  struct Leaf {
    std::string key;  // Without "next/".
    Tensor next;
  };
  // Rows that begin together: of the lane, or of a group with own episodes.
  struct Episodes {
    std::vector<size_t> leaves;  // The observations that RowMoves moves.
    RowMoves begin;              // To the root, whose flags become false.
  };

  DeviceEnv(EnvSpec spec, TensorDict step,
            std::unique_ptr<DeviceSimulator> simulator, DeviceFlags flags,
            Stream stream, const DeviceEnvOptions& options)
      : Env(std::move(spec), std::move(step)),
        options_(options),
        simulator_(std::move(simulator)),
        flags_(std::move(flags)),
        stream_(std::move(stream)),
        running_(static_cast<size_t>(lanes()), 0) {}

  absl::Status Bind();
  absl::Status AddEpisodes(absl::string_view prefix,
                           const TensorDictSpec& flags);
  std::string Caller(absl::string_view function) const {
    return absl::StrCat(name(), "::", function);
  }
  absl::Status WaitForCaller() const;
  absl::Status BeginEpisodes(const ResetMask& mask);
  absl::StatusOr<Tensor> TakeLent(const Leaf& leaf) const;
  absl::Status ReadState();
  absl::Status FindFailedLanes(std::vector<int64_t>* failed) const;
  absl::Status WriteEnds(absl::Span<const int64_t> failed);
  absl::StatusOr<TensorDict> SaveSimulator() const;

  const DeviceEnvOptions options_;
  const std::unique_ptr<DeviceSimulator> simulator_;
  DeviceFlags flags_;
  const Stream stream_;  // The simulator's.
  TensorDict action_;
  std::vector<Leaf> observations_;
  std::vector<Leaf> rewards_;
  std::vector<Tensor> host_rewards_;
  std::vector<Episodes> episodes_;  // The lane's, then those of own_episodes.
  RowMoves cut_off_;
  // Held until the stream has read them.
  TensorDict lent_;
  std::vector<uint8_t> running_;
  bool steps_ = false;  // Between BeginStep and EndStep.
  absl::Status begun_;  // The simulator's, of BeginStep.
};

// An error of a simulator.
absl::Status SimulatorError(absl::string_view caller, absl::string_view lanes,
                            const absl::Status& status) {
  return absl::Status(
      envs_internal::CodeOfFailure(status),
      absl::StrCat(caller, ": ", lanes, ": ", status.message()));
}

// A lent array that is to be a leaf of the step.
absl::StatusOr<Tensor> AdoptLent(const EnvSpec& spec, const TensorDict& lent,
                                 absl::string_view key, const LeafSpec& leaf) {
  RILL_ASSIGN_OR_RETURN(
      const Tensor array,
      FindLent(lent, key, Shape({spec.lanes}).Concat(leaf.shape), spec.device));
  RILL_RETURN_IF_ERROR(leaf.CheckLayout(key, {spec.lanes}, array))
      << "in DeviceSimulator::Lend";
  if (array.is_writable()) return array;
  return InvalidArgument(
      "DeviceSimulator::Lend: leaf \"", key,
      "\": got a read-only array, want one that is filled in place; or set "
      "DeviceEnvOptions::fills_in_place to false");
}

// The leaves of a step but for the flags below next.
absl::StatusOr<TensorDict> MakeLeaves(const EnvSpec& spec, bool fills_in_place,
                                      DeviceSimulator& simulator) {
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec leaves, StepSpec(spec));
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec flags, FlagSpec(spec));
  TensorDict lent;
  if (fills_in_place) {
    RILL_ASSIGN_OR_RETURN(lent, simulator.Lend());
  }
  TensorDict step({spec.lanes});
  for (const TensorDictSpec::Leaf& leaf : leaves.leaves()) {
    absl::string_view key = leaf.key;
    const bool is_next = absl::ConsumePrefix(&key, "next/");
    // DeviceFlags makes these: they are bool whatever the simulator lends.
    if (is_next && flags.Find(key) != nullptr) continue;
    Tensor tensor;
    if (is_next && fills_in_place) {
      RILL_ASSIGN_OR_RETURN(tensor, AdoptLent(spec, lent, key, leaf.spec));
    } else {
      RILL_ASSIGN_OR_RETURN(tensor, leaf.spec.Zero({spec.lanes}));
      RILL_ASSIGN_OR_RETURN(tensor, tensor.To(spec.device));
    }
    RILL_RETURN_IF_ERROR(step.Set(leaf.key, std::move(tensor)));
  }
  return step;
}

absl::StatusOr<std::unique_ptr<Env>> DeviceEnv::Create(
    EnvSpec spec, std::unique_ptr<DeviceSimulator> simulator,
    const DeviceEnvOptions& options) {
  spec.checks_actions = options.check_actions;
  RILL_ASSIGN_OR_RETURN(TensorDict step,
                        MakeLeaves(spec, options.fills_in_place, *simulator));
  RILL_ASSIGN_OR_RETURN(DeviceFlags flags, DeviceFlags::Create(spec, &step));
  RILL_ASSIGN_OR_RETURN(Stream stream,
                        Stream::Borrow(spec.device, simulator->stream()));
  auto env = absl::WrapUnique(
      new DeviceEnv(std::move(spec), std::move(step), std::move(simulator),
                    std::move(flags), std::move(stream), options));
  RILL_RETURN_IF_ERROR(env->Bind());
  return env;
}

absl::Status DeviceEnv::Bind() {
  std::vector<absl::string_view> actions;
  for (const TensorDictSpec::Leaf& leaf : spec().action.leaves()) {
    actions.push_back(leaf.key);
  }
  RILL_ASSIGN_OR_RETURN(action_, step().Select(actions));
  const auto bind = [this](const TensorDictSpec& from,
                           std::vector<Leaf>* to) -> absl::Status {
    for (const TensorDictSpec::Leaf& leaf : from.leaves()) {
      RILL_ASSIGN_OR_RETURN(Tensor next,
                            step().Get(absl::StrCat("next/", leaf.key)));
      to->push_back({.key = leaf.key, .next = std::move(next)});
    }
    return absl::OkStatus();
  };
  RILL_RETURN_IF_ERROR(bind(spec().observation, &observations_));
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec rewards, RewardSpec(spec()));
  RILL_RETURN_IF_ERROR(bind(rewards, &rewards_));
  for (const Leaf& reward : rewards_) {
    RILL_ASSIGN_OR_RETURN(
        host_rewards_.emplace_back(),
        // Pinned: a copy to pageable memory would block the host.
        Tensor::Empty(reward.next.dtype(), reward.next.shape(),
                      {spec().device, MemoryKind::kPinned}));
    cut_off_.Clear(reward.next);
  }
  for (const Leaf& observation : observations_) {
    cut_off_.Move(*step().Find(observation.key), observation.next);
  }
  RILL_RETURN_IF_ERROR(cut_off_.Bind(lanes(), spec().device));
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec flags, FlagSpec(spec()));
  RILL_RETURN_IF_ERROR(AddEpisodes("", flags));
  for (const std::string& group : spec().own_episodes) {
    RILL_RETURN_IF_ERROR(AddEpisodes(absl::StrCat(group, "/"), flags));
  }
  return absl::OkStatus();
}

absl::Status DeviceEnv::AddEpisodes(absl::string_view prefix,
                                    const TensorDictSpec& flags) {
  Episodes episodes;
  for (size_t i = 0; i < observations_.size(); ++i) {
    const Leaf& leaf = observations_[i];
    if (!absl::StartsWith(leaf.key, prefix)) continue;
    // The i-th move of RowMoves has its source set anew for each reset.
    episodes.leaves.push_back(i);
    episodes.begin.Move(leaf.next, *step().Find(leaf.key));
  }
  for (const TensorDictSpec::Leaf& leaf : flags.leaves()) {
    if (!absl::StartsWith(leaf.key, prefix)) continue;
    episodes.begin.Clear(*step().Find(leaf.key));
  }
  RILL_RETURN_IF_ERROR(episodes.begin.Bind(lanes(), spec().device));
  episodes_.push_back(std::move(episodes));
  return absl::OkStatus();
}

absl::Status DeviceEnv::Seed(uint64_t seed) {
  RILL_RETURN_IF_ERROR(CheckIdle(name(), "Seed", steps_));
  return simulator_->Seed(seed);
}

// The simulator's work comes behind what the caller has enqueued: actions that
// are written, leaves that are read.
absl::Status DeviceEnv::WaitForCaller() const {
  RILL_ASSIGN_OR_RETURN(const Stream caller, Stream::Default(spec().device));
  return stream_.WaitFor(caller);
}

// The array that is lent for the leaf.
absl::StatusOr<Tensor> DeviceEnv::TakeLent(const Leaf& leaf) const {
  RILL_ASSIGN_OR_RETURN(
      Tensor array,
      FindLent(lent_, leaf.key, leaf.next.shape(), spec().device));
  if (options_.fills_in_place) {
    RILL_RETURN_IF_ERROR(CheckSameArray(leaf.key, array, leaf.next));
  } else if (array.dtype() != leaf.next.dtype()) {
    return InvalidArgument("DeviceSimulator::Lend: leaf \"", leaf.key,
                           "\": got ", DTypeName(array.dtype()), ", want ",
                           DTypeName(leaf.next.dtype()));
  }
  return array;
}

absl::Status DeviceEnv::Reset(const ResetMask& mask) {
  RILL_RETURN_IF_ERROR(CheckIdle(name(), "Reset", steps_));
  RILL_RETURN_IF_ERROR(CheckMask(Caller("Reset"), spec(), mask));
  RILL_RETURN_IF_ERROR(WaitForCaller());
  // The stream is waited for after an error as well: it may still read what was
  // enqueued before the error, and lent arrays are given back behind it.
  absl::Status status = BeginEpisodes(mask);
  status.Update(stream_.Synchronize());
  lent_ = TensorDict();
  for (size_t lane = 0; lane < running_.size(); ++lane) {
    if (mask.lanes[lane] != 0) running_[lane] = status.ok();
  }
  if (status.ok()) return status;
  return SimulatorError(Caller("Reset"), "the lanes of the mask", status);
}

absl::Status DeviceEnv::BeginEpisodes(const ResetMask& mask) {
  // The lane's own episode begins all of its groups: a group's bit counts only
  // where the lane's is not set.
  const auto lanes_of = [&](size_t i, int64_t lane) {
    if (i == 0) return mask.lanes[lane] != 0;
    return !mask.groups.empty() && mask.lanes[lane] == 0 &&
           mask.groups[(i - 1) * lanes() + lane] != 0;
  };
  std::vector<std::vector<int64_t>> rows(episodes_.size());
  bool is_empty = true;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (int64_t lane = 0; lane < lanes(); ++lane) {
      if (lanes_of(i, lane)) rows[i].push_back(lane);
    }
    is_empty = is_empty && rows[i].empty();
  }
  if (is_empty) return absl::OkStatus();
  RILL_RETURN_IF_ERROR(simulator_->Reset(mask));
  RILL_ASSIGN_OR_RETURN(lent_, simulator_->Lend());
  std::vector<Tensor> arrays;
  for (const Leaf& leaf : observations_) {
    RILL_ASSIGN_OR_RETURN(arrays.emplace_back(), TakeLent(leaf));
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].empty()) continue;
    const std::vector<size_t>& leaves = episodes_[i].leaves;
    // A copy: only lent_ keeps the arrays until the stream has read them.
    RowMoves begin = episodes_[i].begin;
    for (size_t k = 0; k < leaves.size(); ++k) {
      begin.SetFrom(k, arrays[leaves[k]]);
    }
    RILL_RETURN_IF_ERROR(begin.Run(rows[i], stream_));
  }
  return absl::OkStatus();
}

absl::Status DeviceEnv::BeginStep() {
  RILL_RETURN_IF_ERROR(CheckIdle(name(), "BeginStep", steps_));
  if (spec().checks_actions) {
    RILL_RETURN_IF_ERROR(CheckActions(Caller("Step"), spec(), step()));
  }
  RILL_RETURN_IF_ERROR(CheckRunning(Caller("Step"), running_));
  RILL_RETURN_IF_ERROR(WaitForCaller());
  // From here on the simulator may have moved, so its error is EndStep's:
  // BeginStep is all or nothing.
  steps_ = true;
  begun_ = simulator_->Step(action_);
  return absl::OkStatus();
}

absl::Status DeviceEnv::EndStep() {
  if (!steps_) return absl::OkStatus();
  steps_ = false;
  absl::Status status = begun_;
  if (status.ok()) status = ReadState();
  status.Update(stream_.Synchronize());
  lent_ = TensorDict();
  if (status.ok()) status = flags_.Resolve();
  std::vector<int64_t> failed;
  if (!status.ok()) {
    for (int64_t lane = 0; lane < lanes(); ++lane) failed.push_back(lane);
    status = SimulatorError(Caller("Step"),
                            absl::StrCat("lanes 0 to ", lanes() - 1), status);
  } else {
    status = FindFailedLanes(&failed);
  }
  // Also after an error of all lanes: flags and rows say what was cut off.
  // Where the device is lost they fail too, and the first error says more.
  status.Update(WriteEnds(failed));
  return status;
}

// Enqueues the copies of what the simulator lends: to the leaves where it does
// not fill them itself, and of flags and rewards to the host.
absl::Status DeviceEnv::ReadState() {
  RILL_ASSIGN_OR_RETURN(lent_, simulator_->Lend());
  for (const std::vector<Leaf>* leaves : {&observations_, &rewards_}) {
    for (const Leaf& leaf : *leaves) {
      RILL_ASSIGN_OR_RETURN(const Tensor array, TakeLent(leaf));
      if (options_.fills_in_place) continue;
      RILL_RETURN_IF_ERROR(leaf.next.CopyFromAsync(array, stream_));
    }
  }
  for (size_t i = 0; i < rewards_.size(); ++i) {
    RILL_RETURN_IF_ERROR(
        host_rewards_[i].CopyFromAsync(rewards_[i].next, stream_));
  }
  return flags_.Stage(lent_, stream_);
}

// The lanes with a reward that is not finite, and an error that names them.
absl::Status DeviceEnv::FindFailedLanes(std::vector<int64_t>* failed) const {
  std::string reasons;
  for (int64_t lane = 0; lane < lanes(); ++lane) {
    for (size_t i = 0; i < rewards_.size(); ++i) {
      const Tensor& rewards = host_rewards_[i];
      const int64_t width = rewards.num_elements() / lanes();
      const float* const row = rewards.data<float>() + lane * width;
      int64_t k = 0;
      while (k < width && std::isfinite(row[k])) ++k;
      if (k == width) continue;
      absl::StrAppend(&reasons, failed->empty() ? "" : "; ", "lane ", lane,
                      ": \"", rewards_[i].key, "\": got ", row[k],
                      ", want a finite number");
      failed->push_back(lane);
      break;
    }
  }
  if (failed->empty()) return absl::OkStatus();
  return Internal(Caller("Step"), ": ", reasons);
}

absl::Status DeviceEnv::WriteEnds(absl::Span<const int64_t> failed) {
  // The rewards of failed lanes are cleared on the device by cut_off_, which
  // also copies the root's observation below next.
  for (const int64_t lane : failed) flags_.Truncate(lane);
  for (int64_t lane = 0; lane < lanes(); ++lane) {
    running_[lane] = !flags_.done(lane);
  }
  absl::Status status = flags_.Write(stream_);
  status.Update(cut_off_.Run(failed, stream_));
  status.Update(stream_.Synchronize());
  return status;
}

// --- State -------------------------------------------------------------------

// The simulator's, on the device, complete.
absl::StatusOr<TensorDict> DeviceEnv::SaveSimulator() const {
  RILL_RETURN_IF_ERROR(WaitForCaller());
  RILL_ASSIGN_OR_RETURN(TensorDict state, simulator_->SaveState());
  RILL_RETURN_IF_ERROR(stream_.Synchronize());
  const Shape want = {lanes()};
  if (state.batch_shape() == want) return state;
  return Internal("DeviceSimulator::SaveState: got batch shape ",
                  state.batch_shape().ToString(), ", want ", want.ToString());
}

absl::StatusOr<TensorDict> DeviceEnv::SaveState() const {
  RILL_RETURN_IF_ERROR(CheckIdle(name(), "SaveState", steps_));
  absl::StatusOr<TensorDict> saved = SaveSimulator();
  RILL_RETURN_IF_ERROR(saved.status()) << "in " << Caller("SaveState");
  RILL_ASSIGN_OR_RETURN(TensorDict simulator, saved->To(Device::Cpu()));
  StateWriter state(name(), kStateVersion, {lanes()});
  state.List<bool>(kRunning, running_, {lanes(), 1});
  state.Entry<TensorDict>(kSimulator, std::move(simulator));
  return std::move(state).Finish();
}

absl::Status DeviceEnv::LoadState(const TensorDict& dict) {
  RILL_RETURN_IF_ERROR(CheckIdle(name(), "LoadState", steps_));
  const std::string caller = Caller("LoadState");
  // It can load the layout that it would save now.
  RILL_ASSIGN_OR_RETURN(const TensorDict now, SaveState());
  RILL_ASSIGN_OR_RETURN(const StateReader state,
                        StateReader::Open(name(), kStateVersion, dict));
  // All that can fail comes before the simulator changes.
  RILL_ASSIGN_OR_RETURN(auto running,
                        state.List<bool>(kRunning, Shape({lanes(), 1})));
  RILL_ASSIGN_OR_RETURN(const TensorDict* const saved, state.Dict(kSimulator));
  if (const absl::Status layout = TensorDictSpec::Of(*now.FindDict(kSimulator))
                                      .CheckLayout(kSimulator, *saved);
      !layout.ok()) {
    return state.DoesNotFit(layout.message());
  }
  RILL_ASSIGN_OR_RETURN(const TensorDict simulator, saved->To(spec().device));
  RILL_RETURN_IF_ERROR(WaitForCaller());
  absl::Status status = simulator_->LoadState(simulator);
  status.Update(stream_.Synchronize());
  RILL_RETURN_IF_ERROR(status) << "in " << caller;
  running_ = std::move(running);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeDeviceEnv(
    EnvSpec spec, std::unique_ptr<DeviceSimulator> simulator,
    const DeviceEnvOptions& options) {
  if (simulator == nullptr) {
    return InvalidArgument("MakeDeviceEnv: simulator: got null, want one");
  }
  if (spec.device.is_cpu()) {
    return InvalidArgument(
        "MakeDeviceEnv: device: got cpu, want one such as cuda:0; derive from "
        "Env for simulators in host memory");
  }
  return DeviceEnv::Create(std::move(spec), std::move(simulator), options);
}

}  // namespace rill
