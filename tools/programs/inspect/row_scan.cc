// SPDX-License-Identifier: Apache-2.0
#include "rill/tools/programs/inspect/row_scan.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/tensors/dtype.h"

namespace rill::inspect {
namespace {

// A bool from a file may be any byte.
struct Flag {
  uint8_t byte;
};
template <typename T>
// The dtype that a column is read as; Flag is read as bool.
constexpr DType kColumn = DTypeOf<T>;
template <>
constexpr DType kColumn<Flag> = DType::kBool;

// One element a row, contiguous; an empty key's are none.
template <typename T>
absl::StatusOr<absl::Span<const T>> Column(const TensorDict& rows,
                                           const std::string& key,
                                           Tensor* keep) {
  if (key.empty()) return absl::Span<const T>();
  RILL_ASSIGN_OR_RETURN(Tensor leaf, rows.Get(key));
  if (leaf.num_elements() != rows.batch_shape()[0]) {
    return InvalidArgument("inspect: \"", key, "\": got ",
                           leaf.shape().ToString(), ", want one element a row");
  }
  if (leaf.dtype() != kColumn<T>) {
    RILL_ASSIGN_OR_RETURN(leaf, Cast(leaf, kColumn<T>));
  }
  RILL_ASSIGN_OR_RETURN(*keep, leaf.Contiguous());
  return absl::MakeConstSpan(keep->data<T>(),
                             static_cast<size_t>(keep->num_elements()));
}

}  // namespace

RowScan::RowScan(absl::FunctionRef<bool(absl::string_view)> has_leaf) {
  // The first of these leaves that there is becomes a key.
  const auto first = [&](std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (!has_leaf(name)) continue;
      keys_.push_back(name);
      return std::string(name);
    }
    return std::string();
  };
  for (const char* name : {"next/done", "next/terminated", "next/truncated"}) {
    if (!has_leaf(name)) continue;
    ends_.push_back(name);
    keys_.push_back(name);
  }
  id_ = first({"collector/traj_ids", "episode"});
  reward_ = first({"next/reward"});
  version_ = first({"policy_version"});
  init_ = first({"is_init"});
  has_returns_ = !reward_.empty();
}

void RowScan::BeginLane(bool from_first_step) {
  EndLane();
  next_is_whole_ = from_first_step;
}

void RowScan::Gap() {
  EndLane();
  next_is_whole_ = false;
}

void RowScan::End(const Episode& episode) {
  if (!episode.is_whole) {
    ++episodes_.partial;
    return;
  }
  episodes_.lengths.Add(static_cast<double>(episode.steps));
  returns_.Add(episode.reward);
}

void RowScan::EndLane() {
  episodes_.partial += static_cast<int64_t>(open_.size());
  open_.clear();
  last_id_.reset();
}

absl::Status RowScan::Add(const TensorDict& rows) {
  const int64_t count = rows.batch_shape()[0];
  if (count == 0 || keys_.empty()) return absl::OkStatus();
  // Owners of the columns below: the end flags, id, version, is_init, reward.
  std::vector<Tensor> keep(ends_.size() + 4);
  std::vector<absl::Span<const Flag>> ends;
  for (size_t i = 0; i < ends_.size(); ++i) {
    RILL_ASSIGN_OR_RETURN(const auto end,
                          Column<Flag>(rows, ends_[i], &keep[i]));
    ends.push_back(end);
  }
  Tensor* const rest = &keep[ends_.size()];
  RILL_ASSIGN_OR_RETURN(const auto ids, Column<int64_t>(rows, id_, &rest[0]));
  RILL_ASSIGN_OR_RETURN(const auto versions,
                        Column<int64_t>(rows, version_, &rest[1]));
  RILL_ASSIGN_OR_RETURN(const auto inits, Column<Flag>(rows, init_, &rest[2]));
  absl::Span<const double> rewards;
  if (has_returns_) {
    const auto found = Column<double>(rows, reward_, &rest[3]);
    // For good: returns of some episodes only would be taken for all.
    has_returns_ = found.ok();
    if (found.ok()) rewards = *found;
  }
  for (int64_t i = 0; i < count; ++i) {
    if (!versions.empty()) {
      const int64_t version = versions[i];
      if (!versions_) versions_.emplace(version, version);
      versions_->first = std::min(versions_->first, version);
      versions_->second = std::max(versions_->second, version);
    }
    if (ends.empty() && ids.empty()) continue;
    const int64_t id = ids.empty() ? 0 : ids[i];
    // No flag says where an episode ends, so a new id does.
    if (ends.empty() && last_id_ && *last_id_ != id) {
      End(open_[*last_id_]);
      open_.erase(*last_id_);
    }
    const auto [place, is_new] = open_.try_emplace(id);
    Episode& episode = place->second;
    if (is_new) {
      episode.is_whole =
          next_is_whole_ || (!inits.empty() && inits[i].byte != 0);
      // Only the first episode may have lost its beginning; others begin in
      // rows that are seen.
      next_is_whole_ = true;
    }
    ++episode.steps;
    if (!rewards.empty()) episode.reward += rewards[i];
    last_id_ = id;
    bool is_end = false;
    // Any of the flags: buffers may have one, two or all of them.
    for (const auto& end : ends) is_end = is_end || end[i].byte != 0;
    if (!is_end) continue;
    End(episode);
    open_.erase(place);
  }
  rows_ += count;
  return absl::OkStatus();
}

void RowScan::Finish(Facts* facts) {
  EndLane();
  facts->rows_read = rows_;
  facts->policy_versions = versions_;
  if (ends_.empty() && id_.empty()) return;
  if (has_returns_) episodes_.returns = returns_;
  facts->episodes = episodes_;
}

}  // namespace rill::inspect
