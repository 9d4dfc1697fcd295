// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/workers/held_batch.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rill/base/catch_exceptions.h"
#include "rill/base/status_macros.h"
#include "rill/tensors/shape.h"

namespace rill::workers_internal {

absl::Status Deliver(const HeldBatch& held, int64_t lanes, Sink& sink) {
  const std::optional<TensorDict>& batch = held.batch;
  const WriteInfo& info = held.info;
  return CatchExceptions(
      [&] {
        return batch.has_value()
                   ? sink.Write(*batch, info)
                   : sink.Cut(info.producer, {info.first_lane, lanes});
      },
      batch.has_value() ? "Sink::Write" : "Sink::Cut");
}

void SaveHeld(int64_t worker, const std::deque<HeldBatch>& held,
              StateWriter* state) {
  int64_t number = 0;
  for (const auto& [batch, info, statistics] : held) {
    const std::string key = absl::StrCat("held/", worker, "/", number++);
    if (!batch.has_value()) {
      state->List<int64_t>(key + "/cut", {info.producer, info.first_lane}, {2});
      continue;
    }
    // The state must not change when these are delivered.
    state->Entry(key + "/batch", batch->Clone());
    state->List<int64_t>(
        key + "/info",
        {info.producer, info.first_lane, info.policy_version, info.sequence},
        {4});
    if (statistics.empty()) continue;
    state->Entry(key + "/statistics", statistics.Clone());
  }
}

absl::StatusOr<std::deque<HeldBatch>> LoadHeld(int64_t worker,
                                               const HeldLayout& layout,
                                               const StateReader& state) {
  std::deque<HeldBatch> held;
  while (true) {
    const std::string key = absl::StrCat("held/", worker, "/", held.size());
    if (state.dict().Find(key + "/cut") != nullptr) {
      RILL_ASSIGN_OR_RETURN(const auto cut,
                            state.List<int64_t>(key + "/cut", Shape({2})));
      held.push_back(
          {std::nullopt, {.producer = cut[0], .first_lane = cut[1]}});
      continue;
    }
    const TensorDict* const batch = state.dict().FindDict(key + "/batch");
    if (batch == nullptr) return held;
    if (!layout.spec.CheckLayout("LoadState", *batch).ok()) {
      return state.DoesNotFit(
          absl::StrCat("\"", key, "\": got a batch of other leaves"));
    }
    const Shape& shape = batch->batch_shape();
    if (shape.rank() != 2 || shape[0] != layout.lanes ||
        shape[1] < layout.least_steps || shape[1] > layout.most_steps) {
      return state.DoesNotFit(
          absl::StrCat("\"", key, "\": got a batch of shape ", shape.ToString(),
                       ", want [", layout.lanes, ", ", layout.least_steps,
                       " to ", layout.most_steps, "]"));
    }
    RILL_ASSIGN_OR_RETURN(const auto info,
                          state.List<int64_t>(key + "/info", Shape({4})));
    RILL_ASSIGN_OR_RETURN(TensorDict copy, batch->Clone());
    held.push_back({std::move(copy),
                    {.producer = info[0],
                     .first_lane = info[1],
                     .policy_version = info[2],
                     .sequence = info[3]}});
    const TensorDict* const saved = state.dict().FindDict(key + "/statistics");
    if (saved == nullptr) continue;
    RILL_RETURN_IF_ERROR(layout.statistics.Check(*saved));
    RILL_ASSIGN_OR_RETURN(held.back().statistics, saved->Clone());
  }
}

}  // namespace rill::workers_internal
