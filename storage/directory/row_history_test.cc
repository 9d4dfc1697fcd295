// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/directory/row_history.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/slots/slot.h"
#include "rill/storage/directory/commit_record.h"
#include "rill/storage/ring/lane_rings.h"
#include "rill/testing/status_matchers.h"

namespace rill::storage_internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Lanes kLanes = {.count = 2, .capacity = 10};

RowLine LineOf(std::vector<LaneMark> marks) {
  auto line = NewLine(kLanes);
  RILL_EXPECT_OK(line);
  line->marks = std::move(marks);
  return *std::move(line);
}

TEST(RowHistoryTest, LinesHaveNamesOfTheirOwnAndNoEnd) {
  RILL_ASSERT_OK_AND_ASSIGN(const RowLine a, NewLine(kLanes));
  RILL_ASSERT_OK_AND_ASSIGN(const RowLine b, NewLine(kLanes));
  EXPECT_NE(a.name, b.name);
  EXPECT_THAT(a.marks,
              ElementsAre(LaneMark{kMaxWritten, 0}, LaneMark{kMaxWritten, 0}));
}

TEST(RowHistoryTest, BytesGiveTheLinesBack) {
  const std::vector<RowLine> lines = {LineOf({{3, 0}, {kMaxWritten, 7}}),
                                      LineOf({{0, 0}, {5, 5}})};
  EXPECT_THAT(DecodeLines("Here", EncodeLines(kLanes, lines), kLanes),
              IsOkAndHolds(lines));
}

TEST(RowHistoryTest, AnyOtherByteIsDamage) {
  const std::vector<RowLine> lines = {LineOf({{3, 0}, {4, 1}})};
  const std::string bytes = EncodeLines(kLanes, lines);
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string other = bytes;
    other[i] ^= 0x10;
    EXPECT_THAT(DecodeLines("Here", other, kLanes), IsDataLoss("Here: got"))
        << i;
    EXPECT_THAT(DecodeLines("Here", bytes.substr(0, i), kLanes), IsDataLoss())
        << i;
  }
  EXPECT_THAT(DecodeLines("Here", bytes + "x", kLanes), IsDataLoss());
}

TEST(RowHistoryTest, MarksOutOfBoundsAreDamage) {
  for (const LaneMark mark : {LaneMark{-1, 0}, LaneMark{3, 4}, LaneMark{3, -1},
                              LaneMark{kMaxWritten + 1, 0}}) {
    const RowLine line = LineOf({mark, {0, 0}});
    EXPECT_THAT(DecodeLines("Here", EncodeLines(kLanes, {line}), kLanes),
                IsDataLoss("steps"));
  }
  EXPECT_THAT(DecodeLines("Here", EncodeLines(kLanes, {}), kLanes),
              IsDataLoss());
}

TEST(RowHistoryTest, OtherLanesAreNamed) {
  const std::string bytes = EncodeLines(kLanes, {LineOf({{3, 0}, {4, 0}})});
  EXPECT_THAT(DecodeLines("Here", bytes, {.count = 4, .capacity = 5}),
              IsFailedPrecondition("2 lanes of 10 slots, want 4 of 5"));
}

// --- What is left of a position ----------------------------------------------

LaneRings Now(std::vector<LaneMark> marks) { return RingsOf(kLanes, marks); }

TEST(RowHistoryTest, RowsBehindAPositionLeaveItWhole) {
  const RowLine line = *NewLine(kLanes);
  RowLine position = line;
  position.marks = {{4, 0}, {0, 0}};
  RILL_ASSERT_OK_AND_ASSIGN(
      const FoundPosition found,
      FindPosition("Here", position, {line}, Now({{10, 0}, {3, 0}})));
  EXPECT_EQ(found.missing, 0);
  EXPECT_FALSE(found.is_here);
  EXPECT_EQ(found.rings.size(), 4);
  EXPECT_THAT(found.kept, ElementsAre(SlotRange{0, 4}));
  ASSERT_EQ(found.history.size(), 1);
  EXPECT_EQ(found.history[0], position);
}

TEST(RowHistoryTest, NothingBehindItIsHere) {
  const RowLine line = *NewLine(kLanes);
  RowLine position = line;
  position.marks = {{14, 0}, {3, 0}};
  RILL_ASSERT_OK_AND_ASSIGN(
      const FoundPosition found,
      FindPosition("Here", position, {line}, Now({{14, 0}, {3, 0}})));
  EXPECT_EQ(found.missing, 0);
  EXPECT_TRUE(found.is_here);
}

TEST(RowHistoryTest, RowsThatWereOverwrittenAreMissing) {
  const RowLine line = *NewLine(kLanes);
  RowLine position = line;
  position.marks = {{14, 0}, {3, 0}};  // Steps 4 to 13, 0 to 2.
  RILL_ASSERT_OK_AND_ASSIGN(
      FoundPosition found,
      FindPosition("Here", position, {line}, Now({{17, 0}, {12, 0}})));
  EXPECT_EQ(found.missing, 3 + 2);
  EXPECT_THAT(found.kept,
              ElementsAre(SlotRange{0, 4}, SlotRange{7, 3}, SlotRange{12, 1}));
  RILL_ASSERT_OK_AND_ASSIGN(
      found, FindPosition("Here", position, {line}, Now({{99, 0}, {99, 0}})));
  EXPECT_EQ(found.missing, 13);
  EXPECT_THAT(found.kept, IsEmpty());
  // One that a killed writer was about to overwrite.
  RILL_ASSERT_OK_AND_ASSIGN(
      found, FindPosition("Here", position, {line}, Now({{14, 5}, {3, 0}})));
  EXPECT_EQ(found.missing, 1);
}

TEST(RowHistoryTest, RowsThatTheStorageDoesNotHaveYetAreMissing) {
  const RowLine line = *NewLine(kLanes);
  RowLine position = line;
  position.marks = {{8, 0}, {3, 0}};
  RILL_ASSERT_OK_AND_ASSIGN(
      const FoundPosition found,
      FindPosition("Here", position, {line}, Now({{6, 0}, {3, 0}})));
  EXPECT_EQ(found.missing, 2);
}

TEST(RowHistoryTest, ALineEndsWhereTheStorageWentBackTo) {
  RowLine first = LineOf({{4, 0}, {4, 0}});
  const RowLine second = *NewLine(kLanes);
  const LaneRings now = Now({{9, 0}, {9, 0}});
  // Before the end: both lines have it.
  RowLine position = first;
  position.marks = {{3, 0}, {4, 0}};
  RILL_ASSERT_OK_AND_ASSIGN(
      FoundPosition found,
      FindPosition("Here", position, {first, second}, now));
  EXPECT_EQ(found.missing, 0);
  EXPECT_THAT(found.history, ElementsAre(position));
  // Behind it: those rows are no more, others have their steps.
  position.marks = {{6, 0}, {4, 0}};
  RILL_ASSERT_OK_AND_ASSIGN(
      found, FindPosition("Here", position, {first, second}, now));
  EXPECT_EQ(found.missing, 2);
  // On the line that goes on.
  RowLine later = second;
  later.marks = {{6, 0}, {4, 0}};
  RILL_ASSERT_OK_AND_ASSIGN(found,
                            FindPosition("Here", later, {first, second}, now));
  EXPECT_EQ(found.missing, 0);
  EXPECT_THAT(found.history, ElementsAre(first, later));
}

TEST(RowHistoryTest, AnotherStoragesPositionIsRefused) {
  const RowLine line = *NewLine(kLanes);
  const RowLine position = LineOf({{1, 0}, {1, 0}});
  for (const auto& history :
       {std::vector<RowLine>(), std::vector<RowLine>{line}}) {
    EXPECT_THAT(FindPosition("Here", position, history, Now({{1, 0}, {1, 0}})),
                IsFailedPrecondition("another storage"));
  }
}

TEST(RowHistoryTest, AHistoryHasAnEnd) {
  std::vector<RowLine> history;
  for (int64_t i = 1; i <= 64; ++i) history.push_back(LineOf({{i, 0}, {i, 0}}));
  RILL_ASSERT_OK_AND_ASSIGN(
      const FoundPosition found,
      FindPosition("Here", history.back(), history, Now({{70, 0}, {70, 0}})));
  EXPECT_EQ(found.history.size(), 63);
  EXPECT_EQ(found.history.front(), history[1]);
}

}  // namespace
}  // namespace rill::storage_internal
