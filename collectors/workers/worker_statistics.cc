// SPDX-License-Identifier: Apache-2.0
// Saved entries, where there are statistics: `statistics/start`, and for worker
// I `statistics/I/now` and, where it has some, `statistics/I/carried`.
#include "rill/collectors/workers/worker_statistics.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/episodes/vec_norm.h"

namespace rill::workers_internal {
namespace {

// The leaves of `layout` in a dictionary that has them below `prefix`.
absl::StatusOr<TensorDict> LeavesOf(const TensorDict& layout,
                                    const TensorDict& dict,
                                    absl::string_view prefix) {
  TensorDict found = layout;
  for (const std::string& key : layout.LeafKeys()) {
    const Tensor* const leaf = dict.Find(absl::StrCat(prefix, key));
    if (leaf == nullptr) {
      return FailedPrecondition("statistics: \"", prefix, key,
                                "\": got none, want those of a worker");
    }
    RILL_ASSIGN_OR_RETURN(Tensor copy, leaf->Clone());
    RILL_RETURN_IF_ERROR(found.Set(key, std::move(copy)));
  }
  RILL_RETURN_IF_ERROR(CheckTransformState("statistics", layout, found));
  return found;
}

}  // namespace

absl::StatusOr<WorkerStatistics> WorkerStatistics::Create(
    const TensorDict& fresh, int64_t workers, int64_t depth) {
  WorkerStatistics made;
  made.fresh_ = fresh;
  made.start_ = fresh;
  made.workers_.assign(workers, {fresh, fresh, TensorDict()});
  // Says which leaf is in no form that can be merged.
  RILL_RETURN_IF_ERROR(made.Merged().status()) << "statistics of transforms";
  if (!fresh.empty()) {
    RILL_ASSIGN_OR_RETURN(made.slots_,
                          StatisticsSlots::Create(fresh, workers, depth));
  }
  return made;
}

absl::StatusOr<TensorDict> WorkerStatistics::Read(int64_t worker,
                                                  int64_t sequence) const {
  if (slots_ == nullptr) return TensorDict();
  RILL_ASSIGN_OR_RETURN(TensorDict read, slots_->Read(worker, sequence));
  const TensorDict& carried = workers_[worker].carried;
  if (carried.empty()) return read;
  return MergeVecNorm(read, carried);
}

void WorkerStatistics::HandOut(int64_t worker, TensorDict statistics) {
  if (slots_ == nullptr) return;
  workers_[worker].before =
      std::exchange(workers_[worker].now, std::move(statistics));
}

TensorDict WorkerStatistics::TakeBack(int64_t worker) {
  if (slots_ == nullptr) return {};
  return std::exchange(workers_[worker].now, workers_[worker].before);
}

const TensorDict& WorkerStatistics::Of(int64_t worker) const {
  return slots_ == nullptr ? fresh_ : workers_[worker].now;
}

void WorkerStatistics::Replace(int64_t worker) {
  if (slots_ != nullptr) workers_[worker].carried = TensorDict();
}

absl::StatusOr<TensorDict> WorkerStatistics::MergeAll(
    const TensorDict& start, const std::vector<Worker>& workers) const {
  std::vector<TensorDict> states;
  states.reserve(workers.size());
  for (const Worker& worker : workers) states.push_back(worker.now);
  return MergeVecNormSince(start, states);
}

absl::StatusOr<TensorDict> WorkerStatistics::Merged() const {
  return MergeAll(start_, workers_);
}

absl::Status WorkerStatistics::Check(const TensorDict& states) const {
  RILL_RETURN_IF_ERROR(CheckTransformState("statistics", fresh_, states));
  for (const std::string& key : fresh_.Keys()) {
    // Names of the transforms, which have no layout.
    const TensorDict* const own = fresh_.FindDict(key);
    for (const std::string& i : own->Keys()) {
      const std::string name = absl::StrCat(key, "/", i, "/name");
      const auto want = fresh_.GetNonTensor(name);
      const auto got = states.GetNonTensor(name);
      if (got.ok() && want.ok() && *got == *want) continue;
      return FailedPrecondition("statistics: \"", name, "\": got ",
                                got.ok() ? got->json : "none", ", want ",
                                want.ok() ? want->json : "none");
    }
  }
  const absl::Status sound = MergeVecNorm(fresh_, states).status();
  return sound.ok() ? sound : FailedPrecondition(sound.message());
}

absl::Status WorkerStatistics::Restart(
    const TensorDict& states,
    const std::vector<std::vector<TensorDict*>>& waiting) {
  if (slots_ == nullptr) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(const TensorDict copy, states.Clone());
  std::vector<Worker> workers(workers_.size(), {copy, copy, TensorDict()});
  for (size_t i = 0; i < workers.size(); ++i) {
    for (TensorDict* const batch : waiting[i]) {
      RILL_ASSIGN_OR_RETURN(workers[i].carried,
                            VecNormSince(*batch, workers_[i].now));
      RILL_ASSIGN_OR_RETURN(*batch, MergeVecNorm(copy, workers[i].carried));
    }
  }
  start_ = copy;
  workers_ = std::move(workers);
  return absl::OkStatus();
}

void WorkerStatistics::Save(StateWriter* state) const {
  if (slots_ == nullptr) return;
  state->Entry("statistics/start", start_.Clone());
  for (size_t i = 0; i < workers_.size(); ++i) {
    const std::string key = absl::StrCat("statistics/", i);
    state->Entry(key + "/now", workers_[i].now.Clone());
    if (workers_[i].carried.empty()) continue;
    state->Entry(key + "/carried", workers_[i].carried.Clone());
  }
}

absl::Status WorkerStatistics::Load(
    const StateReader& state,
    const std::vector<const TensorDict*>& collectors) {
  if (slots_ == nullptr) return absl::OkStatus();
  TensorDict start = fresh_;
  std::vector<Worker> workers(workers_.size());
  const bool is_saved = state.dict().FindDict("statistics") != nullptr;
  if (is_saved) {
    RILL_ASSIGN_OR_RETURN(start,
                          LeavesOf(fresh_, state.dict(), "statistics/start/"));
  }
  for (size_t i = 0; i < workers.size(); ++i) {
    const std::string key = absl::StrCat("statistics/", i);
    if (is_saved) {
      RILL_ASSIGN_OR_RETURN(
          workers[i].now,
          LeavesOf(fresh_, state.dict(), absl::StrCat(key, "/now/")));
    } else {
      RILL_ASSIGN_OR_RETURN(workers[i].now,
                            LeavesOf(fresh_, *collectors[i], "env/"));
    }
    workers[i].before = workers[i].now;
    if (state.dict().FindDict(key + "/carried") == nullptr) continue;
    RILL_ASSIGN_OR_RETURN(
        workers[i].carried,
        LeavesOf(fresh_, state.dict(), absl::StrCat(key, "/carried/")));
  }
  const absl::Status sound = MergeAll(start, workers).status();
  if (!sound.ok()) return FailedPrecondition(sound.message());
  start_ = std::move(start);
  workers_ = std::move(workers);
  return absl::OkStatus();
}

}  // namespace rill::workers_internal
