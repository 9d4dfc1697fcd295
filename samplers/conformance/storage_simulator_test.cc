// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/conformance/storage_simulator.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/slots/generations.h"
#include "rill/slots/live_slots.h"

namespace rill {
namespace {

using ::testing::ElementsAre;

// Keeps the last event.
class Recorder : public WriteObserver {
 public:
  void OnAttach(const Lanes&, absl::Span<const Cursor> cursors) override {
    attached = std::vector<Cursor>(cursors.begin(), cursors.end());
  }
  void OnRetire(const WriteEvent& event) override {
    retired = {event.retired.begin(), event.retired.end()};
  }
  void OnWrite(const WriteEvent& event) override {
    written = {event.written.begin(), event.written.end()};
    is_append = event.is_append;
    ends = {event.ends.begin(), event.ends.end()};
  }
  void OnClear() override { ++clears; }

  std::vector<Cursor> attached;
  std::vector<SlotRange> retired;
  std::vector<SlotRange> written;
  std::vector<uint8_t> ends;
  bool is_append = false;
  int clears = 0;
};

TEST(StorageSimulatorTest, EventsNameLanesInOrderAndWrapInTwoRanges) {
  StorageSimulator storage({.count = 2, .capacity = 4});
  Recorder recorder;
  storage.AddObserver(&recorder);
  EXPECT_EQ(recorder.attached.size(), 2u);
  storage.Append(3);
  EXPECT_THAT(recorder.retired, ElementsAre());
  EXPECT_THAT(recorder.written, ElementsAre(SlotRange{0, 3}, SlotRange{4, 3}));
  storage.Append(2);
  EXPECT_THAT(recorder.retired, ElementsAre(SlotRange{0, 1}, SlotRange{4, 1}));
  EXPECT_THAT(recorder.written, ElementsAre(SlotRange{3, 1}, SlotRange{0, 1},
                                            SlotRange{7, 1}, SlotRange{4, 1}));
  storage.Append(/*first_lane=*/1, /*num_lanes=*/1, /*steps=*/9);
  EXPECT_THAT(recorder.retired, ElementsAre(SlotRange{5, 3}, SlotRange{4, 1}));
  EXPECT_THAT(recorder.written, ElementsAre(SlotRange{6, 2}, SlotRange{4, 2}));
}

TEST(StorageSimulatorTest, OverwriteIsNoAppend) {
  StorageSimulator storage({.count = 1, .capacity = 4});
  Recorder recorder;
  storage.AddObserver(&recorder);
  storage.Append(4);
  storage.Overwrite({2, 0});
  EXPECT_FALSE(recorder.is_append);
  EXPECT_THAT(recorder.retired, ElementsAre(SlotRange{2, 1}, SlotRange{0, 1}));
  EXPECT_THAT(recorder.written, ElementsAre(SlotRange{2, 1}, SlotRange{0, 1}));
  EXPECT_EQ(storage.Generation(2), 1);
  EXPECT_EQ(storage.Generation(1), 0);
}

TEST(StorageSimulatorTest, EverySeventhStepEndsAnEpisode) {
  StorageSimulator storage({.count = 1, .capacity = 5});
  Recorder recorder;
  storage.AddObserver(&recorder);
  storage.Append(4);
  EXPECT_THAT(recorder.ends, ElementsAre(0, 0, 0, 0));
  storage.Append(4);  // Steps 4 to 7.
  EXPECT_THAT(recorder.ends, ElementsAre(0, 0, 1, 0));
  storage.Overwrite({1, 2});
  EXPECT_THAT(recorder.ends, ElementsAre(1, 0));
  storage.AttachAgain();  // Steps 3 to 7.
  EXPECT_THAT(recorder.ends, ElementsAre(0, 0, 0, 1, 0));
}

TEST(StorageSimulatorTest, OpenWriteHidesItsOldRows) {
  StorageSimulator storage({.count = 1, .capacity = 3});
  storage.Append(3);
  storage.BeginAppend(0, 1, 2);
  EXPECT_THAT(storage.Live(), ElementsAre(2));
  storage.Finish();
  EXPECT_THAT(storage.Live(), ElementsAre(0, 1, 2));
  EXPECT_EQ(storage.Generation(0), 1);
}

TEST(StorageSimulatorTest, LateObserverGetsTheLiveRowsOldestFirst) {
  StorageSimulator storage({.count = 2, .capacity = 4});
  storage.Append(/*first_lane=*/0, /*num_lanes=*/1, /*steps=*/6);
  storage.Append(1, 1, 2);
  Recorder recorder;
  storage.AddObserver(&recorder);
  EXPECT_THAT(recorder.attached, ElementsAre(Cursor{6}, Cursor{2}));
  EXPECT_THAT(recorder.written,
              ElementsAre(SlotRange{2, 2}, SlotRange{0, 2}, SlotRange{4, 2}));
}

// Two independent bookkeepings of the same events.
TEST(StorageSimulatorTest, AgreesWithLiveSlotsAndGenerations) {
  StorageSimulator storage({.count = 2, .capacity = 3});
  LiveSlots live;
  Generations generations;
  storage.AddObserver(&live);
  storage.AddObserver(&generations);
  for (int64_t steps : {1, 3, 2, 7, 1, 1, 4}) {
    storage.Append(steps % 2, 1, steps);
    storage.Overwrite(storage.Live());
    std::vector<Slot> drawn;
    for (int64_t n = 0; n < live.size(); ++n) drawn.push_back(live.Nth(n));
    EXPECT_THAT(drawn, ::testing::UnorderedElementsAreArray(storage.Live()));
    for (Slot slot : storage.Live()) {
      EXPECT_EQ(generations.Get(slot), storage.Generation(slot));
    }
  }
}

}  // namespace
}  // namespace rill
