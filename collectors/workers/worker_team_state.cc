// SPDX-License-Identifier: Apache-2.0
// Pause, SaveState and LoadState of WorkerTeam. Entries of a state:
// - `place`, int64 [2]: frames and next worker.
// - `restarts`, int64 [workers]; `producer` (worker_producers.cc).
// - `worker/I`: the state of worker I's SyncCollector.
// - `held/I`: what worker I holds (held_batch.h).
// - `statistics`: of the rows that were delivered (worker_statistics.cc).
#include <algorithm>
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
#include "rill/tensors/shape.h"

namespace rill::workers_internal {
namespace {

constexpr absl::string_view kType = "WorkerTeam";
constexpr int64_t kStateVersion = 1;

// Older states have none: their workers had begun to count anew.
absl::StatusOr<std::vector<int64_t>> ReadEarlierFrames(const StateReader& state,
                                                       int64_t workers) {
  constexpr absl::string_view kKey = "earlier_frames";
  constexpr int64_t kMost = int64_t{1} << 61;
  if (!state.dict().Contains(kKey)) return std::vector<int64_t>(workers, 0);
  RILL_ASSIGN_OR_RETURN(const std::vector<int64_t> frames,
                        state.List<int64_t>(kKey, Shape({workers})));
  const auto [least, most] = std::minmax_element(frames.begin(), frames.end());
  if (*least >= 0 && *most <= kMost) return frames;
  return state.DoesNotFit(absl::StrCat("\"", kKey, "\": got ", *least, " to ",
                                       *most, ", want [0, 2^61]"));
}

// The place, of so many workers.
absl::StatusOr<WorkerTeam::Place> ReadPlace(const StateReader& state,
                                            int64_t workers) {
  const Tensor* const restarts = state.dict().Find("restarts");
  if (restarts != nullptr && restarts->shape().num_elements() != workers) {
    return state.DoesNotFit(absl::StrCat(
        "workers: got the state of ", restarts->shape().num_elements(),
        ", want of ", workers, "; make the collector with as many as it had"));
  }
  RILL_ASSIGN_OR_RETURN(const auto numbers,
                        state.List<int64_t>("place", Shape({2})));
  const WorkerTeam::Place place = {.frames = numbers[0],
                                   .next_worker = numbers[1]};
  if (place.frames >= 0 && place.next_worker >= 0 &&
      place.next_worker < workers) {
    return place;
  }
  return state.DoesNotFit(absl::StrCat(
      "\"place\": got ", place.frames, " frames and worker ", place.next_worker,
      ", want frames >= 0 and a worker below ", workers));
}

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
      if (has_failed) {
        End(i, DeathCause::kOther, "its answer could not be waited for");
      }
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

absl::Status WorkerTeam::AskLiving(MessageKind kind) {
  while (true) {
    for (int64_t i = 0; i < size(); ++i) {
      if (workers_[i].socket.has_value()) continue;
      RILL_RETURN_IF_ERROR(Hold(i));
    }
    const absl::Status asked = AskAll(kind, std::vector<std::string>(size()));
    if (asked.ok()) break;
    // One that ends now is replaced, and all are asked again.
    const bool has_ended = std::any_of(
        workers_.begin(), workers_.end(),
        [](const Worker& worker) { return !worker.socket.has_value(); });
    if (!absl::IsUnavailable(asked) || !has_ended) return asked;
  }
  // Each has answered, so no batch is on its way.
  for (int64_t i = 0; i < size(); ++i) {
    RILL_RETURN_IF_ERROR(Hold(i));
  }
  return absl::OkStatus();
}

absl::Status WorkerTeam::Hold(int64_t index) {
  Worker& worker = workers_[index];
  std::deque<HeldBatch> fresh;
  FunctionSink hold(
      [&](const TensorDict& batch, const WriteInfo& info) -> absl::Status {
        RILL_ASSIGN_OR_RETURN(TensorDict copy, batch.Clone());
        fresh.push_back({std::move(copy), info});
        return absl::OkStatus();
      },
      [&](int64_t producer, LaneRange lanes) {
        fresh.push_back(
            {std::nullopt, {.producer = producer, .first_lane = lanes.first}});
        return absl::OkStatus();
      });
  const TensorDict delivered = statistics_.Of(index);
  std::deque<HeldBatch> before;
  // Deliver takes held batches first, and here those of the ring are wanted.
  std::swap(before, worker.held);
  // A worker that is replaced counts on from all that it has sent.
  for (const HeldBatch& held : before) {
    if (held.batch.has_value()) statistics_.HandOut(index, held.statistics);
  }
  absl::StatusOr<bool> held = true;
  while (held.ok() && *held) {
    held = Deliver(index, hold);
    // The batch comes behind the cuts before it.
    if (held.ok() && *held) fresh.back().statistics = statistics_.Of(index);
  }
  for (HeldBatch& one : fresh) before.push_back(std::move(one));
  std::swap(before, worker.held);
  statistics_.HandOut(index, delivered);
  RILL_RETURN_IF_ERROR(held.status());
  worker.asked = 0;
  worker.arrived = 0;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> WorkerTeam::WorkerStates() {
  RILL_RETURN_IF_ERROR(AskLiving(MessageKind::kSave));
  std::vector<std::string> states;
  for (Worker& worker : workers_) {
    states.push_back(std::move(worker.answer->bytes));
  }
  return states;
}

absl::Status WorkerTeam::Pause() {
  RILL_RETURN_IF_ERROR(log_.Refuse("Pause"));
  return AskLiving(MessageKind::kPause);
}

absl::Status WorkerTeam::LoadTransformStates(const TensorDict& states) {
  RILL_RETURN_IF_ERROR(log_.Refuse("LoadTransformStates"));
  if (const absl::Status fits = statistics_.Check(states); !fits.ok()) {
    return FailedPrecondition(caller_,
                              "::LoadTransformStates: ", fits.message());
  }
  if (states.empty()) return absl::OkStatus();
  RILL_RETURN_IF_ERROR(Pause());
  RILL_ASSIGN_OR_RETURN(const std::string bytes, DictToBytes(states));
  const absl::Status asked = AskAll(MessageKind::kLoadStatistics,
                                    std::vector<std::string>(size(), bytes));
  std::vector<std::vector<TensorDict*>> waiting(size());
  for (int64_t i = 0; i < size(); ++i) {
    for (HeldBatch& held : workers_[i].held) {
      if (held.batch.has_value()) waiting[i].push_back(&held.statistics);
    }
  }
  RILL_RETURN_IF_ERROR(statistics_.Restart(states, waiting));
  // The worker that replaces one which has ended gets them too.
  return absl::IsUnavailable(asked) ? absl::OkStatus() : asked;
}

absl::StatusOr<TensorDict> WorkerTeam::SaveState(const Place& place) {
  RILL_RETURN_IF_ERROR(log_.Refuse("SaveState"));
  RILL_ASSIGN_OR_RETURN(const std::vector<std::string> states, WorkerStates());
  StateWriter state(kType, kStateVersion);
  std::vector<int64_t> restarts;
  std::vector<int64_t> earlier_frames;
  for (int64_t i = 0; i < size(); ++i) {
    restarts.push_back(workers_[i].restarts);
    earlier_frames.push_back(workers_[i].earlier_frames);
    state.Entry(absl::StrCat("worker/", i), DictFromBytes(states[i]));
    SaveHeld(i, workers_[i].held, &state);
  }
  statistics_.Save(&state);
  state.List<int64_t>("restarts", restarts, {size()});
  producers_.Save(&state);
  state.List<int64_t>("earlier_frames", earlier_frames, {size()});
  state.List<int64_t>("place", {place.frames, place.next_worker}, {2});
  return std::move(state).Finish();
}

absl::Status WorkerTeam::LoadWorkers(WorkerProducers producers,
                                     const std::vector<int64_t>& restarts,
                                     const std::vector<std::string>& states) {
  const bool are_same = producers == producers_;
  producers_ = std::move(producers);
  // Trajectories are numbered by producer, which a worker has from its start.
  for (int64_t i = 0; i < size(); ++i) {
    if (are_same && workers_[i].restarts == restarts[i]) continue;
    End(i, std::nullopt, "a state was loaded");
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
  RILL_RETURN_IF_ERROR(log_.Refuse("LoadState"));
  RILL_ASSIGN_OR_RETURN(const StateReader state,
                        StateReader::Open(kType, kStateVersion, dict));
  RILL_ASSIGN_OR_RETURN(const Place place, ReadPlace(state, size()));
  RILL_ASSIGN_OR_RETURN(const auto restarts,
                        state.List<int64_t>("restarts", Shape({size()})));
  RILL_ASSIGN_OR_RETURN(const std::vector<int64_t> earlier_frames,
                        ReadEarlierFrames(state, size()));
  RILL_ASSIGN_OR_RETURN(WorkerProducers producers,
                        WorkerProducers::Read(state, restarts, options_));
  std::vector<int64_t> frames;
  std::vector<std::string> states;
  std::vector<const TensorDict*> collectors;
  std::vector<std::deque<HeldBatch>> held(size());
  for (int64_t i = 0; i < size(); ++i) {
    RILL_ASSIGN_OR_RETURN(const TensorDict* const of_worker,
                          state.Dict(absl::StrCat("worker/", i)));
    // Without them the worker refuses its state below.
    const absl::StatusOr<int64_t> own_frames =
        state.Get<int64_t>(absl::StrCat("worker/", i, "/frames"));
    frames.push_back(earlier_frames[i] + own_frames.value_or(0));
    collectors.push_back(of_worker);
    RILL_ASSIGN_OR_RETURN(std::string bytes, DictToBytes(*of_worker));
    states.push_back(std::move(bytes));
    const int64_t most_steps = frames_per_batch(i) / lanes_;
    RILL_ASSIGN_OR_RETURN(
        held[i],
        LoadHeld(
            i,
            {.spec = spec_,
             .statistics = statistics_,
             .lanes = lanes_,
             // Only batches that may be interrupted are shorter.
             .least_steps =
                 options_.preemptive_threshold.has_value() ? 1 : most_steps,
             .most_steps = most_steps},
            state));
  }
  WorkerStatistics statistics = statistics_;
  RILL_RETURN_IF_ERROR(statistics.Load(state, collectors));
  RILL_ASSIGN_OR_RETURN(const std::vector<std::string> before, WorkerStates());
  std::vector<int64_t> restarts_before;
  for (const Worker& worker : workers_) {
    restarts_before.push_back(worker.restarts);
  }
  WorkerProducers producers_before = producers_.Clone();
  if (const absl::Status loaded =
          LoadWorkers(std::move(producers), restarts, states);
      !loaded.ok()) {
    // Some workers may have loaded: all go back to where they were.
    RILL_RETURN_IF_ERROR(
        LoadWorkers(std::move(producers_before), restarts_before, before));
    return FailedPrecondition(loaded.message());
  }
  statistics_ = std::move(statistics);
  for (int64_t i = 0; i < size(); ++i) {
    workers_[i].frames = frames[i];
    workers_[i].earlier_frames = earlier_frames[i];
    workers_[i].held = std::move(held[i]);
    for (HeldBatch& one : workers_[i].held) {
      // Saved before batches had them: its worker's count its rows already.
      if (one.batch.has_value() && one.statistics.empty()) {
        one.statistics = statistics_.Of(i);
      }
    }
  }
  return place;
}

}  // namespace rill::workers_internal
