// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/selectors/slot_groups.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"

namespace rill::samplers_internal {
namespace {

constexpr absl::string_view kType = "SlotGroups";

}  // namespace

void SlotGroups::Reset(int64_t num_slots) {
  groups_.clear();
  places_.Reset(num_slots);
  size_ = 0;
}

void SlotGroups::Clear() {
  for (const auto& [group, members] : groups_) {
    for (const Slot slot : members) places_.At(slot) = Place();
  }
  groups_.clear();
  size_ = 0;
}

void SlotGroups::Put(Slot slot, int64_t group) {
  if (IsIn(slot, group)) return;
  Remove(slot);
  std::vector<Slot>& members = groups_[group];
  members.push_back(slot);
  // Numbers count from 1: 0 says that the slot is in no group.
  places_.At(slot) = {.group = group,
                      .number = static_cast<int64_t>(members.size())};
  ++size_;
}

void SlotGroups::Remove(Slot slot) {
  const Place place = places_.Get(slot);
  if (place.number == 0) return;
  const auto group = groups_.find(place.group);
  std::vector<Slot>& members = group->second;
  // The last member takes the place of the one that goes: O(1), and an order
  // that is a function of the history. `last` may be the slot itself, so its
  // own place is cleared behind.
  const Slot last = members.back();
  members[place.number - 1] = last;
  places_.At(last).number = place.number;
  places_.At(slot) = Place();
  members.pop_back();
  if (members.empty()) groups_.erase(group);
  --size_;
}

bool SlotGroups::Contains(Slot slot) const {
  return slot >= 0 && slot < num_slots() && places_.Get(slot).number > 0;
}

bool SlotGroups::IsIn(Slot slot, int64_t group) const {
  return Contains(slot) && places_.Get(slot).group == group;
}

const std::vector<Slot>& SlotGroups::Members(int64_t group) const {
  // Never destroyed, so that it outlives every other static object.
  static const auto& none = *new std::vector<Slot>();
  const auto found = groups_.find(group);
  return found == groups_.end() ? none : found->second;
}

void SlotGroups::Regroup(absl::FunctionRef<int64_t(Slot)> group_of) {
  // All leave before the first comes back, so that the new order depends on the
  // old one alone.
  const std::map<int64_t, std::vector<Slot>> before = groups_;
  for (const auto& [group, slots] : before) {
    for (const Slot slot : slots) Remove(slot);
  }
  for (const auto& [group, slots] : before) {
    for (const Slot slot : slots) Put(slot, group_of(slot));
  }
}

int64_t SlotGroups::AddMembers(int64_t group, int64_t most,
                               std::vector<Slot>* slots) const {
  const std::vector<Slot>& all = Members(group);
  const auto count = static_cast<int64_t>(all.size());
  if (most > 0) {
    slots->insert(slots->end(), all.begin(),
                  all.begin() + std::min(most, count));
  }
  return count;
}

SavedState SlotGroups::Save() const {
  std::vector<int64_t> groups;
  std::vector<int64_t> runs;
  for (const auto& [group, members] : groups_) {
    const size_t begin = runs.size();
    // The order in a group is state, so members are saved in it. Slots that
    // follow one another are one run.
    for (const Slot slot : members) {
      if (runs.size() == begin || runs[runs.size() - 2] + runs.back() != slot) {
        runs.insert(runs.end(), {slot, 0});
      }
      ++runs.back();
    }
    groups.insert(groups.end(),
                  {group, static_cast<int64_t>(runs.size() - begin) / 2});
  }
  SavedState state(kType, 1);
  state.Set("groups", std::move(groups));
  state.Set("runs", std::move(runs));
  return state;
}

absl::StatusOr<SlotGroups> SlotGroups::Load(const SavedState& owner,
                                            absl::string_view name) const {
  RILL_ASSIGN_OR_RETURN(const SavedState* const part,
                        owner.Part(name, kType, 1));
  const SavedState& state = *part;
  SlotGroups loaded;
  loaded.Reset(num_slots());
  RILL_ASSIGN_OR_RETURN(const auto groups, state.Ints("groups", 2));
  RILL_ASSIGN_OR_RETURN(auto runs, state.Ints("runs", 2));
  for (size_t i = 0; i < groups.size(); i += 2) {
    const auto room = static_cast<int64_t>(runs.size()) / 2;
    const int64_t num_runs = groups[i + 1];
    if (num_runs < 0 || num_runs > room) {
      return state.Damaged(absl::StrCat("runs of group ", groups[i], ": got ",
                                        num_runs, ", want [0, ", room, "]"));
    }
    for (const int64_t* at = runs.data(); at < runs.data() + 2 * num_runs;
         at += 2) {
      RILL_RETURN_IF_ERROR(PutRun(state, at[0], at[1], groups[i], &loaded));
    }
    runs.remove_prefix(2 * num_runs);
  }
  // Each loaded slot is a member now and comes once, so equal sizes say that
  // the sets are equal.
  if (loaded.size() == size() && runs.empty()) return loaded;
  return state.DoesNotFit(
      absl::StrCat("slots that can be selected: got the state of ",
                   loaded.size(), ", want that of ", size()));
}

absl::Status SlotGroups::PutRun(const SavedState& state, Slot first,
                                int64_t count, int64_t group,
                                SlotGroups* loaded) const {
  if (first < 0 || first > num_slots() || count < 1 ||
      count > num_slots() - first) {
    return state.Damaged(absl::StrCat("run of slots: got ", count, " from ",
                                      first, ", want some in ", "[0, ",
                                      num_slots(), ")"));
  }
  for (Slot slot = first; slot < first + count; ++slot) {
    if (loaded->Contains(slot)) {
      return state.Damaged(
          absl::StrCat("slot ", slot, ": got it twice, want it once"));
    }
    if (!Contains(slot)) {
      return state.DoesNotFit(absl::StrCat(
          "slot ", slot, ": got the state of one that can be selected, ",
          "want that of one that cannot"));
    }
    loaded->Put(slot, group);
  }
  return absl::OkStatus();
}

}  // namespace rill::samplers_internal
