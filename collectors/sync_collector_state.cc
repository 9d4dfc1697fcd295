// SPDX-License-Identifier: Apache-2.0
// SaveState and LoadState of SyncCollector. A state holds:
//   `env`: that of its TransformedEnv; `root`: the leaves of the root
//   int64 []: `frames`, `next_traj_id`, `sequence` (older states have none)
//   int64 [lanes]: `traj_ids`
//   uint64 []: `seed`
//   bool []: `reset_all`, `episodes_continue`, `cut_due` (older: none)
//   `refused_batch`: the batch that a sink refused, if there is one
#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/sync_collector.h"
#include "rill/collectors/sync_collector_loop.h"
#include "rill/device/device.h"
#include "rill/flow/trajectory_id.h"
#include "rill/tensordict/state/state_dict.h"

namespace rill {
namespace {

// Frames and trajectories are counted on from here: there is room to.
constexpr int64_t kMaxCount = int64_t{1} << 62;

constexpr absl::string_view kType = "SyncCollector";
constexpr int64_t kStateVersion = 1;

absl::StatusOr<TensorDict> CopyToHost(const TensorDict& dict) {
  RILL_ASSIGN_OR_RETURN(const TensorDict copy, dict.Clone());
  return copy.To(Device::Cpu());
}

absl::Status Refuse(absl::string_view key, int64_t got,
                    absl::string_view want) {
  return FailedPrecondition("SyncCollector::LoadState: \"", key, "\": got ",
                            got, ", want ", want);
}

// Before all else, as no leaf of a state of other lanes fits.
absl::Status CheckLanes(const TensorDict& state, int64_t lanes) {
  const TensorDict* const root = state.FindDict("root");
  if (root == nullptr || root->batch_shape() == Shape({lanes})) {
    return absl::OkStatus();
  }
  return FailedPrecondition("SyncCollector::LoadState: lanes: got a state of ",
                            root->batch_shape().ToString(), ", want [", lanes,
                            "], as the environment of this collector has");
}

}  // namespace

absl::Status SyncCollector::CheckRefused(const TensorDict& batch) const {
  const absl::Status status =
      spec_.CheckLayout("SyncCollector::LoadState: refused_batch", batch);
  if (!status.ok()) return FailedPrecondition(status.message());
  const Shape& shape = batch.batch_shape();
  if (shape.rank() == 2 && shape[0] == loop_->lanes && shape[1] >= 1 &&
      shape[1] <= loop_->time) {
    return absl::OkStatus();
  }
  return FailedPrecondition(
      "SyncCollector::LoadState: \"refused_batch\": got batch shape ",
      shape.ToString(), ", want ", loop_->batch.batch_shape().ToString(),
      ", or fewer steps");
}

absl::StatusOr<TensorDict> SyncCollector::SaveState() const {
  RILL_RETURN_IF_ERROR(AwaitStream());
  absl::StatusOr<TensorDict> saved = loop_->env->SaveState();
  const bool episodes_continue = !absl::IsUnimplemented(saved.status());
  if (!episodes_continue) saved = loop_->env->SaveTransforms();
  RILL_RETURN_IF_ERROR(saved.status());
  StateWriter state(kType, kStateVersion);
  state.Entry("env", std::move(saved));
  state.Entry("root", CopyToHost(loop_->driver.root()));
  state.List<int64_t>("traj_ids", loop_->trajectory, {loop_->lanes});
  state.Set("frames", frames_);
  state.Set("next_traj_id", loop_->next_trajectory);
  state.Set("seed", loop_->seed);
  state.Set("reset_all", loop_->reset_all || !episodes_continue);
  state.Set("episodes_continue", episodes_continue);
  state.Set("sequence", loop_->sequence);
  state.Set("cut_due", loop_->is_cut_due);
  if (loop_->is_refused) state.Entry("refused_batch", CopyToHost(Made()));
  return std::move(state).Finish();
}

absl::StatusOr<TensorDict> SyncCollector::TransformStates() const {
  RILL_ASSIGN_OR_RETURN(const TensorDict statistics, loop_->env->Statistics());
  return statistics.Clone();
}

absl::Status SyncCollector::LoadTransformStates(const TensorDict& states) {
  RILL_RETURN_IF_ERROR(loop_->env->LoadStatistics(states));
  if (!states.empty()) ResetAll();
  return absl::OkStatus();
}

absl::StatusOr<TensorDict> SyncCollector::RootOf(
    const TensorDict& state) const {
  const TensorDict* root = state.FindDict("root");
  if (root == nullptr) {
    return FailedPrecondition(
        "SyncCollector::LoadState: \"root\": got none, want a dictionary");
  }
  const absl::Status layout =
      loop_->root_spec.CheckLayout("SyncCollector::LoadState", *root);
  if (layout.ok()) return *root;
  return FailedPrecondition("SyncCollector::LoadState: \"root\": ",
                            layout.message());
}

absl::Status SyncCollector::TakeRefused(const TensorDict& batch) {
  RILL_RETURN_IF_ERROR(RecordIntoOwn());
  if (batch.batch_shape() == loop_->batch.batch_shape()) {
    RILL_RETURN_IF_ERROR(loop_->batch.CopyFrom(batch));
  } else {
    RILL_ASSIGN_OR_RETURN(loop_->short_batch, batch.Clone());
    RILL_ASSIGN_OR_RETURN(loop_->short_batch,
                          loop_->short_batch.To(options_.storing_device));
  }
  RILL_ASSIGN_OR_RETURN(const Tensor versions,
                        batch.Find("policy_version")->Contiguous());
  RILL_ASSIGN_OR_RETURN(absl::Span<const int64_t> all,
                        versions.Flat<int64_t>());
  // Not saved beside the batch: its rows have the versions.
  loop_->newest_version = *std::max_element(all.begin(), all.end());
  return absl::OkStatus();
}

absl::Status SyncCollector::LoadState(const TensorDict& dict) {
  RILL_RETURN_IF_ERROR(AwaitStream());
  RILL_ASSIGN_OR_RETURN(const StateReader state,
                        StateReader::Open(kType, kStateVersion, dict));
  RILL_RETURN_IF_ERROR(CheckLanes(dict, loop_->lanes));
  RILL_ASSIGN_OR_RETURN(const auto frames, state.Get<int64_t>("frames"));
  RILL_ASSIGN_OR_RETURN(const auto next_traj_id,
                        state.Get<int64_t>("next_traj_id"));
  RILL_ASSIGN_OR_RETURN(const auto seed, state.Get<uint64_t>("seed"));
  RILL_ASSIGN_OR_RETURN(const bool reset_all, state.Get<bool>("reset_all"));
  RILL_ASSIGN_OR_RETURN(const bool episodes_continue,
                        state.Get<bool>("episodes_continue"));
  if (frames < 0 || frames > kMaxCount || frames % loop_->lanes != 0) {
    return Refuse("frames", frames,
                  absl::StrCat("a multiple of ", loop_->lanes, " lanes in [0, ",
                               kMaxCount, "]"));
  }
  RILL_ASSIGN_OR_RETURN(const auto ids,
                        state.List<int64_t>("traj_ids", Shape({loop_->lanes})));
  // A number that is given again would join two trajectories. With a reset of
  // all lanes the old ids are not used any more.
  int64_t newest = 0;
  for (const int64_t id : ids) newest = std::max(newest, TrajectoryNumber(id));
  if (next_traj_id < 0 || next_traj_id > kMaxTrajectoryNumber ||
      (next_traj_id <= newest && !reset_all)) {
    return Refuse(
        "next_traj_id", next_traj_id,
        absl::StrCat("> ", newest, ", the newest in traj_ids, in [0, ",
                     kMaxTrajectoryNumber, "]"));
  }
  int64_t sequence = 0;
  if (dict.Contains("sequence")) {
    RILL_ASSIGN_OR_RETURN(sequence, state.Get<int64_t>("sequence"));
  }
  bool is_cut_due = false;
  if (dict.Contains("cut_due")) {
    RILL_ASSIGN_OR_RETURN(is_cut_due, state.Get<bool>("cut_due"));
  }
  const TensorDict* const refused = dict.FindDict("refused_batch");
  if (sequence < (refused == nullptr ? 0 : 1) || sequence > kMaxCount) {
    return Refuse(
        "sequence", sequence,
        absl::StrCat("in [0, ", kMaxCount, "], and >= 1 with a refused batch"));
  }
  if (refused != nullptr) {
    RILL_RETURN_IF_ERROR(CheckRefused(*refused));
  }
  // All that can refuse comes before the first change but for the environment's
  // own state, which is loaded first.
  // In version 0 its entries stood beside these.
  const TensorDict* env = &dict;
  if (state.version() > 0) {
    RILL_ASSIGN_OR_RETURN(env, state.Dict("env"));
  }
  RILL_RETURN_IF_ERROR(loop_->env->CheckState(*env));
  RILL_ASSIGN_OR_RETURN(const TensorDict root, RootOf(dict));
  if (episodes_continue) {
    RILL_RETURN_IF_ERROR(loop_->env->LoadState(*env));
  } else {
    RILL_RETURN_IF_ERROR(loop_->env->LoadTransforms(*env));
    // Not the episodes that this seed began with.
    const Rng fresh(seed, RngStream::kInit);
    RILL_RETURN_IF_ERROR(loop_->env->Seed(
        fresh.Bits64(static_cast<uint64_t>(frames), /*draw=*/0)));
  }
  TensorDict leaves = loop_->driver.root();
  RILL_RETURN_IF_ERROR(leaves.CopyFrom(root));
  loop_->short_batch = TensorDict();
  if (refused != nullptr) {
    RILL_RETURN_IF_ERROR(TakeRefused(*refused));
  }
  loop_->sequence = sequence;
  loop_->is_refused = refused != nullptr;
  frames_ = frames;
  loop_->SetRun({.before = frames, .during = frames_per_batch_});
  loop_->next_trajectory = next_traj_id;
  loop_->trajectory.assign(ids.begin(), ids.end());
  loop_->seed = seed;
  loop_->reset_all = reset_all;
  // A sink of the saved run holds trajectories that a reset leaves open.
  loop_->is_cut_due =
      (reset_all || options_.reset_at_each_batch || is_cut_due) && sequence > 0;
  if (!options_.producer.has_value() && next_traj_id > 0 && ids.front() >= 0) {
    // Open episodes go on under their ids, and later ones are of no other's.
    loop_->producers = ProducerNumbers::Of(TrajectoryProducer(ids.front()));
  }
  return absl::OkStatus();
}

}  // namespace rill
