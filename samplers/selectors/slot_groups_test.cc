// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/selectors/slot_groups.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/slots/slot.h"
#include "rill/testing/status_matchers.h"

namespace rill::samplers_internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;

constexpr int64_t kSlots = 40;

std::string Saved(const SlotGroups& groups) { return groups.Save().Encode(); }

absl::StatusOr<SlotGroups> LoadInto(const SlotGroups& groups,
                                    const std::string& bytes) {
  RILL_ASSIGN_OR_RETURN(SavedState part, SavedState::Decode(bytes));
  SavedState state("S", 1);
  state.SetPart("groups", std::move(part));
  return groups.Load(state, "groups");
}

std::string StateOf(std::vector<int64_t> groups, std::vector<int64_t> runs) {
  SavedState state("SlotGroups", 1);
  state.Set("groups", std::move(groups));
  state.Set("runs", std::move(runs));
  return state.Encode();
}

TEST(SlotGroupsTest, AgreesWithAMap) {
  const Rng rng(7);
  SlotGroups groups;
  groups.Reset(kSlots);
  std::map<Slot, int64_t> want;
  for (uint64_t step = 0; step < 5000; ++step) {
    const Slot slot = rng.UniformInt(step, 0, kSlots);
    const int64_t operation = rng.UniformInt(step, 1, 1000);
    if (operation == 0) {
      groups.Clear();
      want.clear();
    } else if (operation < 400) {
      groups.Remove(slot);
      want.erase(slot);
    } else {
      const int64_t group = rng.UniformInt(step, 2, 4) - 1;
      groups.Put(slot, group);
      want[slot] = group;
    }
    std::map<int64_t, std::vector<Slot>> members;
    for (const auto& [member, group] : want) members[group].push_back(member);
    ASSERT_EQ(groups.size(), static_cast<int64_t>(want.size()));
    ASSERT_EQ(groups.groups().size(), members.size());
    for (const auto& [group, slots] : members) {
      ASSERT_THAT(groups.Members(group), UnorderedElementsAreArray(slots));
    }
    for (Slot s = -1; s <= kSlots; ++s) {
      ASSERT_EQ(groups.Contains(s), want.contains(s));
      ASSERT_EQ(groups.IsIn(s, 1), want.contains(s) && want[s] == 1);
    }
  }
}

TEST(SlotGroupsTest, LoadsTheOrderThatWasSaved) {
  SlotGroups groups;
  groups.Reset(kSlots);
  for (Slot slot = 0; slot < 10; ++slot) groups.Put(slot, slot % 2);
  for (Slot slot : {0, 2, 3}) groups.Remove(slot);
  groups.Put(2, 1);

  SlotGroups same;
  same.Reset(kSlots);
  for (Slot slot = 9; slot >= 0; --slot) same.Put(slot, 5);
  for (Slot slot : {0, 3}) same.Remove(slot);
  RILL_ASSERT_OK_AND_ASSIGN(const SlotGroups loaded,
                            LoadInto(same, Saved(groups)));
  EXPECT_EQ(loaded.groups(), groups.groups());
  EXPECT_EQ(Saved(loaded), Saved(groups));
  EXPECT_THAT(loaded.Members(0), ElementsAre(8, 6, 4));
  EXPECT_THAT(loaded.Members(7), IsEmpty());
}

TEST(SlotGroupsTest, RefusesTheStateOfOtherMembers) {
  SlotGroups groups;
  groups.Reset(kSlots);
  groups.Put(3, 0);
  groups.Put(4, 0);
  SlotGroups fewer;
  fewer.Reset(kSlots);
  fewer.Put(3, 0);
  EXPECT_THAT(LoadInto(fewer, Saved(groups)), IsFailedPrecondition());
  EXPECT_THAT(LoadInto(groups, Saved(fewer)), IsFailedPrecondition());
}

TEST(SlotGroupsTest, RefusesRunsThatCannotBe) {
  SlotGroups groups;
  groups.Reset(kSlots);
  groups.Put(3, 0);
  for (const std::vector<int64_t>& run : std::vector<std::vector<int64_t>>{
           {-1, 1}, {kSlots, 1}, {0, kSlots + 1}, {3, 0}, {3, -1}}) {
    EXPECT_THAT(LoadInto(groups, StateOf({0, 1}, run)), IsDataLoss());
  }
  const std::vector<int64_t> twice = {3, 1, 3, 1};
  EXPECT_THAT(LoadInto(groups, StateOf({0, 2}, twice)), IsDataLoss());
  for (const int64_t runs : {int64_t{-1}, int64_t{2}, INT64_MAX}) {
    EXPECT_THAT(LoadInto(groups, StateOf({0, runs}, {3, 1})), IsDataLoss());
  }
  RILL_EXPECT_OK(LoadInto(groups, StateOf({0, 1}, {3, 1})));
  EXPECT_THAT(LoadInto(groups, StateOf({0, 1}, {3, 1, 4, 1})),
              IsFailedPrecondition());
}

TEST(SlotGroupsTest, RegroupKeepsTheOrder) {
  SlotGroups groups;
  groups.Reset(kSlots);
  for (const Slot slot : {7, 3, 9}) groups.Put(slot, 0);
  for (const Slot slot : {8, 2}) groups.Put(slot, 1);
  groups.Regroup([](Slot slot) { return slot % 2; });
  EXPECT_THAT(groups.Members(0), ElementsAre(8, 2));
  EXPECT_THAT(groups.Members(1), ElementsAre(7, 3, 9));
  EXPECT_EQ(groups.size(), 5);
}

}  // namespace
}  // namespace rill::samplers_internal
