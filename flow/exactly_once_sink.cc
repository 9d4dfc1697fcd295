// SPDX-License-Identifier: Apache-2.0
#include "rill/flow/exactly_once_sink.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/state/state_dict.h"
#include "rill/tensors/shape.h"

namespace rill {
namespace {

constexpr absl::string_view kType = "ExactlyOnceSink";
constexpr int64_t kVersion = 1;

}  // namespace

absl::Status ExactlyOnceSink::Write(const TensorDict& batch,
                                    const WriteInfo& info) {
  const absl::MutexLock lock(&mu_);
  if (info.sequence == 0) return target_->Write(batch, info);
  if (info.sequence < 0) {
    return InvalidArgument("ExactlyOnceSink::Write: sequence of producer ",
                           info.producer, ": got ", info.sequence,
                           ", want >= 0");
  }
  const auto found = newest_.find(info.producer);
  if (found != newest_.end()) {
    if (info.sequence <= found->second) return absl::OkStatus();
    // A gap is refused: the batches between would be dropped as repeats when
    // they come. The sum found->second + 1 may overflow.
    if (info.sequence - 1 > found->second) {
      return FailedPrecondition(
          "ExactlyOnceSink::Write: sequence of producer ", info.producer,
          ": got ", info.sequence, ", want ", found->second + 1,
          "; offer the batches between again, or Forget the producer");
    }
  }
  // Under the lock: of two offers of one batch at once, the second must find
  // the number that the first leaves.
  RILL_RETURN_IF_ERROR(target_->Write(batch, info));
  newest_[info.producer] = info.sequence;
  return absl::OkStatus();
}

absl::Status ExactlyOnceSink::Cut(int64_t producer, LaneRange lanes) {
  const absl::MutexLock lock(&mu_);
  return target_->Cut(producer, lanes);
}

absl::Status ExactlyOnceSink::Flush() { return target_->Flush(); }

int64_t ExactlyOnceSink::newest(int64_t producer) const {
  const absl::MutexLock lock(&mu_);
  const auto found = newest_.find(producer);
  return found == newest_.end() ? 0 : found->second;
}

void ExactlyOnceSink::Forget(int64_t producer) {
  const absl::MutexLock lock(&mu_);
  newest_.erase(producer);
}

absl::StatusOr<TensorDict> ExactlyOnceSink::SaveState() const {
  std::vector<int64_t> producers;
  std::vector<int64_t> newest;
  {
    const absl::MutexLock lock(&mu_);
    for (const auto& [producer, number] : newest_) {
      producers.push_back(producer);
      newest.push_back(number);
    }
  }
  const Shape shape({static_cast<int64_t>(producers.size())});
  StateWriter state(kType, kVersion);
  state.List<int64_t>("producers", producers, shape);
  state.List<int64_t>("newest", newest, shape);
  return std::move(state).Finish();
}

absl::Status ExactlyOnceSink::LoadState(const TensorDict& dict) {
  RILL_ASSIGN_OR_RETURN(const StateReader state,
                        StateReader::Open(kType, kVersion, dict));
  RILL_ASSIGN_OR_RETURN(const auto producers, state.List<int64_t>("producers"));
  RILL_ASSIGN_OR_RETURN(const auto newest, state.List<int64_t>("newest"));
  if (producers.size() != newest.size()) {
    return state.DoesNotFit(absl::StrCat("\"newest\": got ", newest.size(),
                                         " numbers, want ", producers.size()));
  }
  // Apart first, so that a state that does not fit changes nothing.
  std::map<int64_t, int64_t> loaded;
  for (size_t i = 0; i < producers.size(); ++i) {
    if (newest[i] >= 1 && loaded.emplace(producers[i], newest[i]).second) {
      continue;
    }
    return state.DoesNotFit(absl::StrCat("\"newest\" of producer ",
                                         producers[i], ": got ", newest[i],
                                         ", want one number >= 1 a producer"));
  }
  const absl::MutexLock lock(&mu_);
  newest_ = std::move(loaded);
  return absl::OkStatus();
}

}  // namespace rill
