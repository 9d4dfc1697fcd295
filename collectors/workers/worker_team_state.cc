// SPDX-License-Identifier: Apache-2.0
// Pause, SaveState and LoadState of WorkerTeam. Entries of a state:
// - `place`, int64 [2]: frames and next worker.
// - `restarts`, int64 [workers].
// - `worker/I`: the state of worker I's SyncCollector.
// - `held/I/N`: what worker I has made and nobody has taken yet, in order. A
//   batch is `batch`, and `info`, int64 [4]: producer, first lane, policy
//   version, sequence. A cut of its lanes is `cut`, int64 [2]: producer, first
//   lane.
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/workers/dict_bytes.h"
#include "rill/collectors/workers/worker_team.h"
#include "rill/flow/trajectory_id.h"
#include "rill/tensors/shape.h"

namespace rill::workers_internal {
namespace {

constexpr absl::string_view kType = "WorkerTeam";
constexpr int64_t kStateVersion = 1;

}  // namespace

absl::Status WorkerTeam::AskAll(MessageKind kind,
                                const std::vector<std::string>& bytes) {
  for (int64_t i = 0; i < size(); ++i) {
    // A command may come only behind the answer to kStart.
    while (workers_[i].socket.has_value() && !workers_[i].is_ready) {
      RILL_RETURN_IF_ERROR(Wait());
    }
  }
  for (int64_t i = 0; i < size(); ++i) {
    Worker& worker = workers_[i];
    worker.answer.reset();
    if (!worker.socket.has_value()) {
      return Error(i, Unavailable(worker.end));
    }
    worker.deadline = Clock::Steady().Now() + options_.batch_timeout;
    worker.socket->Send(kind, bytes[i], worker.deadline).IgnoreError();
  }
  absl::Status first;
  for (int64_t i = 0; i < size(); ++i) {
    Worker& worker = workers_[i];
    while (!worker.answer.has_value() && worker.socket.has_value()) {
      // Goes on after an error of one worker: the answers of all must be read,
      // or the next command would take them for its own.
      bool has_failed = false;
      first.Update(Wait(absl::InfiniteFuture(), &has_failed));
      if (has_failed) End(worker, "its answer could not be waited for");
    }
    if (!worker.socket.has_value()) {
      first.Update(Error(i, Unavailable(worker.end)));
    }
    // A worker drops what it has not begun when it answers.
    worker.asked = 0;
    worker.deadline = absl::InfiniteFuture();
  }
  return first;
}

// Takes what is in the rings into `held`, behind what is there. Called when all
// workers have answered, so that no batch is on its way.
absl::Status WorkerTeam::HoldAll() {
  for (int64_t i = 0; i < size(); ++i) {
    std::deque<Held> fresh;
    FunctionSink hold(
        [&](const TensorDict& batch, const WriteInfo& info) -> absl::Status {
          RILL_ASSIGN_OR_RETURN(TensorDict copy, batch.Clone());
          fresh.push_back({std::move(copy), info});
          return absl::OkStatus();
        },
        [&](int64_t producer, LaneRange lanes) {
          fresh.push_back({std::nullopt,
                           {.producer = producer, .first_lane = lanes.first}});
          return absl::OkStatus();
        });
    std::deque<Held> before;
    // Deliver takes held batches first, and here those of the ring are wanted.
    std::swap(before, workers_[i].held);
    absl::StatusOr<bool> held = true;
    while (held.ok() && *held && workers_[i].socket.has_value()) {
      held = Deliver(i, hold);
    }
    for (Held& one : fresh) before.push_back(std::move(one));
    std::swap(before, workers_[i].held);
    RILL_RETURN_IF_ERROR(held.status());
    workers_[i].asked = 0;
    workers_[i].arrived = 0;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> WorkerTeam::WorkerStates() {
  RILL_RETURN_IF_ERROR(
      AskAll(MessageKind::kSave, std::vector<std::string>(size())));
  RILL_RETURN_IF_ERROR(HoldAll());
  std::vector<std::string> states;
  for (Worker& worker : workers_) {
    states.push_back(std::move(worker.answer->bytes));
  }
  return states;
}

absl::Status WorkerTeam::Pause() {
  RILL_RETURN_IF_ERROR(
      AskAll(MessageKind::kPause, std::vector<std::string>(size())));
  return HoldAll();
}

absl::StatusOr<TensorDict> WorkerTeam::SaveState(const Place& place) {
  RILL_ASSIGN_OR_RETURN(const std::vector<std::string> states, WorkerStates());
  StateWriter state(kType, kStateVersion);
  std::vector<int64_t> restarts;
  for (int64_t i = 0; i < size(); ++i) {
    restarts.push_back(workers_[i].restarts);
    state.Entry(absl::StrCat("worker/", i), DictFromBytes(states[i]));
    int64_t number = 0;
    for (const Held& held : workers_[i].held) {
      const std::string key = absl::StrCat("held/", i, "/", number++);
      if (!held.batch.has_value()) {
        state.List<int64_t>(key + "/cut",
                            {held.info.producer, held.info.first_lane}, {2});
        continue;
      }
      // The state must not change when these are delivered.
      state.Entry(key + "/batch", held.batch->Clone());
      state.List<int64_t>(key + "/info",
                          {held.info.producer, held.info.first_lane,
                           held.info.policy_version, held.info.sequence},
                          {4});
    }
  }
  state.List<int64_t>("restarts", restarts, {size()});
  state.List<int64_t>("place", {place.frames, place.next_worker}, {2});
  return std::move(state).Finish();
}

absl::StatusOr<std::deque<WorkerTeam::Held>> WorkerTeam::HeldOf(
    const StateReader& state, int64_t index) const {
  const int64_t most_steps = frames_per_batch(index) / lanes_;
  // Only batches that may be interrupted are shorter.
  const int64_t least_steps = interruptor_ == nullptr ? most_steps : 1;
  std::deque<Held> held;
  while (true) {
    const std::string key = absl::StrCat("held/", index, "/", held.size());
    if (state.dict().Find(key + "/cut") != nullptr) {
      RILL_ASSIGN_OR_RETURN(const auto cut,
                            state.List<int64_t>(key + "/cut", Shape({2})));
      held.push_back(
          {std::nullopt, {.producer = cut[0], .first_lane = cut[1]}});
      continue;
    }
    const TensorDict* const batch = state.dict().FindDict(key + "/batch");
    if (batch == nullptr) return held;
    if (!spec_.CheckLayout("LoadState", *batch).ok()) {
      return state.DoesNotFit(
          absl::StrCat("\"", key, "\": got a batch of other leaves"));
    }
    const Shape& shape = batch->batch_shape();
    if (shape.rank() != 2 || shape[0] != lanes_ || shape[1] < least_steps ||
        shape[1] > most_steps) {
      return state.DoesNotFit(absl::StrCat(
          "\"", key, "\": got a batch of shape ", shape.ToString(), ", want [",
          lanes_, ", ", least_steps, " to ", most_steps, "]"));
    }
    RILL_ASSIGN_OR_RETURN(const auto info,
                          state.List<int64_t>(key + "/info", Shape({4})));
    RILL_ASSIGN_OR_RETURN(TensorDict copy, batch->Clone());
    held.push_back({std::move(copy),
                    {.producer = info[0],
                     .first_lane = info[1],
                     .policy_version = info[2],
                     .sequence = info[3]}});
  }
}

absl::Status WorkerTeam::LoadWorkers(const std::vector<int64_t>& restarts,
                                     const std::vector<std::string>& states) {
  // Trajectories are numbered by producer, which a worker has from its start.
  for (int64_t i = 0; i < size(); ++i) {
    if (workers_[i].restarts == restarts[i]) continue;
    End(workers_[i], "a state was loaded");
    // The trajectories that the ended process had open belong to the run that
    // is given up.
    FunctionSink nothing(
        [](const TensorDict&, const WriteInfo&) { return absl::OkStatus(); });
    RILL_RETURN_IF_ERROR(channel_->CutIfDead(i, &nothing));
    workers_[i].restarts = restarts[i];
    RILL_RETURN_IF_ERROR(Start(i));
  }
  return AskAll(MessageKind::kLoad, states);
}

absl::StatusOr<WorkerTeam::Place> WorkerTeam::LoadState(
    const TensorDict& dict) {
  RILL_ASSIGN_OR_RETURN(const StateReader state,
                        StateReader::Open(kType, kStateVersion, dict));
  RILL_ASSIGN_OR_RETURN(const auto numbers,
                        state.List<int64_t>("place", Shape({2})));
  const Place place = {.frames = numbers[0], .next_worker = numbers[1]};
  if (place.frames < 0 || place.next_worker < 0 ||
      place.next_worker >= size()) {
    return state.DoesNotFit(absl::StrCat(
        "\"place\": got ", place.frames, " frames and worker ",
        place.next_worker, ", want frames >= 0 and a worker below ", size()));
  }
  RILL_ASSIGN_OR_RETURN(const auto restarts,
                        state.List<int64_t>("restarts", Shape({size()})));
  std::vector<std::string> states;
  std::vector<std::deque<Held>> held(size());
  for (int64_t i = 0; i < size(); ++i) {
    RILL_ASSIGN_OR_RETURN(const TensorDict* const of_worker,
                          state.Dict(absl::StrCat("worker/", i)));
    // So that producer + i + workers * restarts fits.
    const int64_t most =
        (kMaxTrajectoryProducer - options_.producer - i) / size();
    if (restarts[i] < 0 || restarts[i] > most) {
      return state.DoesNotFit(absl::StrCat("worker ", i, ": got ", restarts[i],
                                           " restarts, want [0, ", most, "]"));
    }
    RILL_ASSIGN_OR_RETURN(std::string bytes, DictToBytes(*of_worker));
    states.push_back(std::move(bytes));
    RILL_ASSIGN_OR_RETURN(held[i], HeldOf(state, i));
  }
  RILL_ASSIGN_OR_RETURN(const std::vector<std::string> before, WorkerStates());
  std::vector<int64_t> restarts_before;
  for (const Worker& worker : workers_) {
    restarts_before.push_back(worker.restarts);
  }
  if (const absl::Status loaded = LoadWorkers(restarts, states); !loaded.ok()) {
    // Some workers may have loaded: all go back to where they were.
    RILL_RETURN_IF_ERROR(LoadWorkers(restarts_before, before));
    return FailedPrecondition(loaded.message());
  }
  for (int64_t i = 0; i < size(); ++i) workers_[i].held = std::move(held[i]);
  return place;
}

}  // namespace rill::workers_internal
