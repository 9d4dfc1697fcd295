// SPDX-License-Identifier: Apache-2.0
// Observers. MirrorObserver checks the contract in every other test too.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/slots/generations.h"
#include "rill/slots/live_slots.h"
#include "rill/storage/conformance/conformance_rows.h"
#include "rill/storage/conformance/mirror_observer.h"
#include "rill/storage/conformance/storage_conformance.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;

// The names and ranges of calls, in order.
class Journal : public WriteObserver {
 public:
  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override {
    calls.push_back(absl::StrCat("attach ", lanes.count, "x", lanes.capacity,
                                 " ",
                                 cursors.empty() ? -1 : cursors[0].written));
  }
  void OnRetire(const WriteEvent& event) override {
    calls.push_back((event.is_patch ? "retire patched" : "retire") +
                    Ranges(event.retired));
  }
  void OnWrite(const WriteEvent& event) override {
    calls.push_back((event.is_append  ? "append"
                     : event.is_patch ? "patch"
                                      : "overwrite") +
                    Ranges(event.written));
  }
  void OnClear() override { calls.push_back("clear"); }

  std::vector<std::string> calls;

 private:
  static std::string Ranges(absl::Span<const SlotRange> ranges) {
    std::string text;
    for (const SlotRange& range : ranges) {
      absl::StrAppend(&text, " ", range.first, "+", range.count);
    }
    return text;
  }
};

TEST_P(StorageConformanceTest, ObserversHearOfWritesInOrder) {
  auto subject = Make(4);
  Journal journal;
  RILL_ASSERT_OK(subject->storage().AddObserver(&journal));
  subject->ExtendAll(3);
  subject->ExtendAll(2);
  subject->WriteAt({0, 3, 2}, {ConformanceLeafNumber("action")});
  subject->WriteAt({1, 0}, {ConformanceLeafNumber("action")}, InPlace::kPatch);
  subject->Clear();
  subject->ExtendAll(6);
  subject->storage().RemoveObserver(&journal);
  subject->ExtendAll(1);
  // Slots in place come as they were named; dropped steps move the cursor too.
  EXPECT_THAT(journal.calls,
              ElementsAre("attach 1x4 0", "append 0+3", "retire 0+1",
                          "append 3+1 0+1", "retire 0+1 3+1 2+1",
                          "overwrite 0+1 3+1 2+1", "retire patched 1+1 0+1",
                          "patch 1+1 0+1", "clear", "append 2+2 0+2"));
}

TEST_P(StorageConformanceTest, PatchWritesRowsAndKeepsTheirGenerations) {
  auto subject = Make(8, 2);
  Generations generations;
  RILL_ASSERT_OK(subject->storage().AddObserver(&generations));
  subject->ExtendAll(4);
  subject->ExtendAll(2);
  const std::vector<Slot> slots = {0, 5, 0, 3};
  subject->WriteAt(slots, {ConformanceLeafNumber("action")}, InPlace::kPatch);
  subject->Check();
  for (Slot slot = 0; slot < 8; ++slot) {
    EXPECT_EQ(generations.Get(slot), slot % 4 < 2 ? 1 : 0) << slot;
  }
  subject->WriteAt(slots, {ConformanceLeafNumber("action")});
  EXPECT_EQ(generations.Get(0), 2);
  EXPECT_EQ(generations.Get(3), 1);
  subject->storage().RemoveObserver(&generations);
}

TEST_P(StorageConformanceTest, LateObserversLearnOfAllLiveRows) {
  for (const int64_t steps : {0, 2, 4, 7}) {
    auto subject = Make(8, 2);
    subject->ExtendAll(steps);
    MirrorObserver late;
    RILL_ASSERT_OK(subject->storage().AddObserver(&late));
    EXPECT_EQ(late.Compare(subject->oracle()), "") << steps;
    subject->Extend(1, 1, 3);
    EXPECT_EQ(late.Compare(subject->oracle()), "") << steps;
    EXPECT_EQ(subject->mirror().Compare(subject->oracle()), "") << steps;
    subject->storage().RemoveObserver(&late);
  }
}

TEST_P(StorageConformanceTest, LiveSlotsFollowTheStorage) {
  auto subject = Make(9, 3);
  LiveSlots live;
  RILL_ASSERT_OK(subject->storage().AddObserver(&live));
  for (const int64_t steps : {1, 1, 5, 2, 3, 1}) {
    subject->Extend(steps % 3, 1, steps);
    const std::vector<Slot> want = subject->oracle().LiveSlots();
    ASSERT_EQ(live.size(), static_cast<int64_t>(want.size()));
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(live.Nth(static_cast<int64_t>(i)), want[i]);
    }
  }
  subject->storage().RemoveObserver(&live);
}

TEST_P(StorageConformanceTest, ObserversAreAddedOnce) {
  auto subject = Make(4);
  EXPECT_THAT(subject->storage().AddObserver(nullptr), IsInvalidArgument());
  EXPECT_THAT(subject->storage().AddObserver(&subject->mirror()),
              IsFailedPrecondition());
  MirrorObserver stranger;
  subject->storage().RemoveObserver(&stranger);  // Without effect.
  subject->ExtendAll(2);
  subject->Check();
}

}  // namespace
}  // namespace rill
