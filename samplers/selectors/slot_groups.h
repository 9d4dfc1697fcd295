// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_SELECTORS_SLOT_GROUPS_H_
#define RILL_SAMPLERS_SELECTORS_SLOT_GROUPS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/base/state/saved_state.h"
#include "rill/slots/slot.h"
#include "rill/slots/slot_array.h"

namespace rill::samplers_internal {

// Slots, each in at most one numbered group, so that a uniform member of a
// group is one look-up. The order in a group depends on the history, so it is
// part of a sampler's state.
//
// Thread-safety: thread-compatible.
// Cost: O(log groups) each; 8 bytes a member and 16 a slot that was ever one.
class SlotGroups {
 public:
  // Forgets all members.
  void Reset(int64_t num_slots);
  void Clear();

  // Puts the slot into the group, out of any other.
  void Put(Slot slot, int64_t group);
  // Nothing where it is in none.
  void Remove(Slot slot);
  // Puts each member into the group that `group_of` names, in their order.
  void Regroup(absl::FunctionRef<int64_t(Slot)> group_of);

  int64_t num_slots() const { return places_.num_slots(); }
  // Members of all groups.
  int64_t size() const { return size_; }
  bool Contains(Slot slot) const;
  bool IsIn(Slot slot, int64_t group) const;
  // Members of the group; none where there is no such group.
  const std::vector<Slot>& Members(int64_t group) const;
  // Appends the first `most` of them to `slots`; returns how many there are.
  int64_t AddMembers(int64_t group, int64_t most,
                     std::vector<Slot>* slots) const;
  // Groups with members, ascending.
  const std::map<int64_t, std::vector<Slot>>& groups() const { return groups_; }

  // A part of a sampler's state: `groups` has each group and its number of
  // runs, `runs` the first slot and the length of each. Load takes the part
  // `name` of `state` and gives groups of the same slots as there are members
  // now: FAILED_PRECONDITION where those are others.
  SavedState Save() const;
  absl::StatusOr<SlotGroups> Load(const SavedState& state,
                                  absl::string_view name) const;

 private:
  struct Place {
    int64_t group = 0;
    int64_t number = 0;  // Index in the group, plus 1; 0: in none.
  };

  absl::Status PutRun(const SavedState& state, Slot first, int64_t count,
                      int64_t group, SlotGroups* loaded) const;

  std::map<int64_t, std::vector<Slot>> groups_;
  SlotArray<Place> places_;
  int64_t size_ = 0;
};

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_SELECTORS_SLOT_GROUPS_H_
