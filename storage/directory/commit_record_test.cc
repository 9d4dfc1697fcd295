// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/directory/commit_record.h"

#include <algorithm>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/testing/status_matchers.h"

namespace rill::storage_internal {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Bytes = std::vector<std::byte>;

Bytes ZerosFor(const Lanes& lanes) {
  return Bytes(CommitRecord::SizeBytes(lanes.count));
}

CommitState ReadOrDie(const Bytes& bytes, const Lanes& lanes) {
  auto view = CommitRecord::Read(bytes, lanes);
  EXPECT_THAT(view, IsOk());
  return view.ok() ? view->state : CommitState();
}

std::vector<LaneMark> NoMarks(const Lanes& lanes) {
  return std::vector<LaneMark>(lanes.count);
}

TEST(CommitRecordTest, AnAppendIsAnnouncedAndThenCommitted) {
  const Lanes lanes = {.count = 3, .capacity = 10};
  Bytes bytes = ZerosFor(lanes);
  CommitRecord record(absl::MakeSpan(bytes), lanes, NoMarks(lanes));
  EXPECT_EQ(ReadOrDie(bytes, lanes), (CommitState{NoMarks(lanes), {}}));
  record.Announce({.first = 1, .count = 2, .steps = 4});
  EXPECT_EQ(ReadOrDie(bytes, lanes),
            (CommitState{NoMarks(lanes), {{1, 2, 4}}}));
  record.Commit({.first = 1, .count = 2, .steps = 4});
  EXPECT_EQ(ReadOrDie(bytes, lanes), (CommitState{{{0}, {4}, {4}}, {}}));
  record.Announce({.first = 0, .count = 1, .steps = 25});
  EXPECT_EQ(ReadOrDie(bytes, lanes),
            (CommitState{{{0}, {4}, {4}}, {{0, 1, 25}}}));
  record.Set({{{7, 1}, {8, 2}, {9, 3}}});
  EXPECT_EQ(ReadOrDie(bytes, lanes),
            (CommitState{{{7, 1}, {8, 2}, {9, 3}}, {}}));
}

// Marks of random appends against plain addition, over many turns of the slots
// and reopenings in between.
TEST(CommitRecordTest, RandomAppendsAreLikeAddition) {
  const Lanes lanes = {.count = 600, .capacity = 7};  // More than a page.
  const Rng rng(5);
  Bytes bytes = ZerosFor(lanes);
  CommitState want = {NoMarks(lanes), {}};
  CommitRecord record(absl::MakeSpan(bytes), lanes, want.marks);
  for (uint64_t i = 0; i < 300; ++i) {
    const int64_t first = rng.UniformInt(i, 0, 600);
    const LaneSteps append = {
        .first = first,
        .count = static_cast<int64_t>(rng.UniformInt(i, 1, 600 - first)) + 1,
        .steps = static_cast<int64_t>(rng.UniformInt(i, 2, 20)) + 1};
    if (i % 50 == 49) {
      record.Set(want.marks = NoMarks(lanes));
    } else if (i % 20 == 19) {  // The writer died, another goes on.
      record.Announce(append);
      want.in_flight = {append};
      ASSERT_EQ(ReadOrDie(bytes, lanes), want);
      want = CommitRecord::Settle(want, lanes);
      record = CommitRecord(absl::MakeSpan(bytes), lanes, want.marks);
    } else {
      record.Announce(append);
      record.Commit(append);
      for (int64_t lane = first; lane < first + append.count; ++lane) {
        LaneMark& mark = want.marks[lane];
        mark.written += append.steps;
        if (mark.written - 7 >= mark.first_live) mark.first_live = 0;
      }
    }
    ASSERT_EQ(ReadOrDie(bytes, lanes), want) << i;
  }
}

TEST(CommitRecordTest, LiveReadersTellAppendsFromEverythingElse) {
  const Lanes lanes = {.count = 2, .capacity = 10};
  Bytes bytes = ZerosFor(lanes);
  CommitView view;
  EXPECT_THAT(CommitRecord::ReadLive(bytes, lanes, &view), IsDataLoss());
  CommitRecord record(absl::MakeSpan(bytes), lanes, NoMarks(lanes));
  CommitView before;
  const auto look = [&] {
    before = view;
    RILL_ASSERT_OK(CommitRecord::ReadLive(bytes, lanes, &view));
    EXPECT_EQ(view.state, ReadOrDie(bytes, lanes));
    EXPECT_GT(view.number, before.number);
    EXPECT_FALSE(CommitRecord::IsNewest(bytes, lanes, before.number));
    EXPECT_TRUE(CommitRecord::IsNewest(bytes, lanes, view.number));
  };
  look();
  record.Announce({.first = 1, .count = 1, .steps = 4});
  look();
  record.Commit({.first = 1, .count = 1, .steps = 4});
  look();
  EXPECT_EQ(view.generation, before.generation);
  EXPECT_FALSE(view.is_in_place());
  record.BeginInPlace();
  look();
  EXPECT_TRUE(view.is_in_place());
  EXPECT_EQ(view.state, before.state);
  record.EndInPlace();
  look();
  EXPECT_FALSE(view.is_in_place());
  record.Announce({.first = 0, .count = 2, .steps = 1});
  record.Commit({.first = 0, .count = 2, .steps = 1});
  look();
  EXPECT_EQ(view.state.marks, (std::vector<LaneMark>{{1}, {5}}));
  const uint64_t generation = view.generation;
  record.Set(NoMarks(lanes));
  look();
  EXPECT_NE(view.generation, generation);
  EXPECT_FALSE(view.is_in_place());
  // The owner died while it wrote in place; another goes on.
  record.BeginInPlace();
  record = CommitRecord(absl::MakeSpan(bytes), lanes, NoMarks(lanes));
  look();
  EXPECT_FALSE(view.is_in_place());
}

TEST(CommitRecordTest, SettlingDropsWhatTheAppendInFlightHadRetired) {
  const Lanes lanes = {.count = 5, .capacity = 10};
  const CommitState settled =
      CommitRecord::Settle({{{3}, {8}, {25}, {25, 20}, {25}},
                            {{.first = 0, .count = 4, .steps = 5}}},
                           lanes);
  EXPECT_THAT(settled.in_flight, IsEmpty());
  EXPECT_THAT(settled.marks,
              ElementsAre(LaneMark{3, 0},     // Nothing there to retire.
                          LaneMark{8, 3},     // Steps 0 to 2.
                          LaneMark{25, 20},   // 15 to 19.
                          LaneMark{25, 20},   // Were gone already.
                          LaneMark{25, 0}));  // Not touched.
  const CommitState all = CommitRecord::Settle(
      {{{25}, {0}}, {{.first = 0, .count = 2, .steps = 1000}}},
      {.count = 2, .capacity = 10});
  EXPECT_THAT(all.marks, ElementsAre(LaneMark{25, 25}, LaneMark{0, 0}));
  // Two after one another in one lane, one in another.
  const CommitState several =
      CommitRecord::Settle({{{25}, {25}}, {{0, 1, 2}, {1, 1, 4}, {0, 1, 3}}},
                           {.count = 2, .capacity = 10});
  EXPECT_THAT(several.marks, ElementsAre(LaneMark{25, 20}, LaneMark{25, 19}));
}

TEST(CommitRecordTest, ChangesInPlaceDoNotOverlapForEver) {
  const Lanes lanes = {.count = 1, .capacity = 4};
  Bytes bytes = ZerosFor(lanes);
  CommitRecord record(absl::MakeSpan(bytes), lanes, NoMarks(lanes));
  record.BeginInPlace();
  int joined = 0;
  for (; record.MayBeginInPlace() && joined < 100; ++joined) {
    record.BeginInPlace();
    record.EndInPlace();
  }
  EXPECT_GT(joined, 1);
  EXPECT_LT(joined, 100);
  record.EndInPlace();
  EXPECT_TRUE(record.MayBeginInPlace());
}

TEST(CommitRecordTest, ChangesInPlaceMayOverlap) {
  const Lanes lanes = {.count = 1, .capacity = 4};
  Bytes bytes = ZerosFor(lanes);
  CommitRecord record(absl::MakeSpan(bytes), lanes, NoMarks(lanes));
  const auto is_in_place = [&] {
    CommitView view;
    RILL_EXPECT_OK(CommitRecord::ReadLive(bytes, lanes, &view));
    return view.is_in_place();
  };
  record.BeginInPlace();
  record.BeginInPlace();
  record.EndInPlace();
  EXPECT_TRUE(is_in_place());
  record.Announce({0, 1, 1});
  EXPECT_TRUE(is_in_place());
  record.EndInPlace();
  EXPECT_FALSE(is_in_place());
}

// Every mixture of old and new that stores in program order can leave: the
// marks of the slot one after the other, then its header in any order.
TEST(CommitRecordTest, AtEveryStoreTheOldOrTheNewStateIsFound) {
  const Lanes lanes = {.count = 5, .capacity = 4};
  Bytes bytes = ZerosFor(lanes);
  CommitRecord record(absl::MakeSpan(bytes), lanes, NoMarks(lanes));
  const Rng rng(3);
  int64_t mixtures = 0;
  size_t most = 0;
  std::vector<LaneSteps> in_flight;
  for (int64_t i = 0; i < 30; ++i) {
    const LaneSteps append = {.first = i % 4, .count = 2, .steps = 1 + i % 6};
    {
      const Bytes before = bytes;
      const CommitState old_state = ReadOrDie(before, lanes);
      // One more, or one less, and not always the oldest of them.
      const int64_t n = static_cast<int64_t>(in_flight.size());
      if (n < 3 && (n == 0 || rng.UniformInt(i, 0, 2) == 0)) {
        record.Announce(append);
        in_flight.push_back(append);
      } else {
        const auto done = in_flight.begin() + rng.UniformInt(i, 1, n);
        record.Commit(*done);
        in_flight.erase(done);
      }
      most = std::max(most, in_flight.size());
      EXPECT_EQ(ReadOrDie(bytes, lanes).in_flight, in_flight);
      const CommitState new_state = ReadOrDie(bytes, lanes);
      ASSERT_NE(old_state, new_state);
      std::vector<size_t> marks, header;
      for (size_t at = 0; at < bytes.size(); ++at) {
        if (bytes[at] == before[at]) continue;
        (at % (bytes.size() / 2) < 128 ? header : marks).push_back(at);
      }
      for (int order = 0; order < 3; ++order) {
        if (order == 1) std::reverse(header.begin(), header.end());
        for (size_t k = header.size(); order == 2 && k > 1; --k) {
          std::swap(header[k - 1], header[rng.UniformInt(i, k, k)]);
        }
        Bytes mixed = before;
        for (const std::vector<size_t>* stores : {&marks, &header}) {
          for (const size_t at : *stores) {
            EXPECT_EQ(ReadOrDie(mixed, lanes), old_state);
            mixed[at] = bytes[at];
            ++mixtures;
          }
        }
        EXPECT_EQ(ReadOrDie(mixed, lanes), new_state);
      }
    }
  }
  EXPECT_GT(mixtures, 1000);
  EXPECT_EQ(most, kMaxAppendsInFlight);
}

TEST(CommitRecordTest, NoChangedByteIsBelieved) {
  const Lanes lanes = {.count = 3, .capacity = 9};
  Bytes bytes = ZerosFor(lanes);
  CommitRecord record(absl::MakeSpan(bytes), lanes, NoMarks(lanes));
  for (int64_t i = 0; i < 3; ++i) {
    const LaneSteps append = {.first = i, .count = 1, .steps = 300 + i};
    record.Announce(append);
    if (i == 0) record.Commit(append);
  }
  const CommitState now = ReadOrDie(bytes, lanes);
  // The content of the other slot.
  const CommitState before = {now.marks, {now.in_flight[0]}};
  int64_t found = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const int bit : {0, 3, 7}) {
      bytes[at] ^= std::byte{1} << bit;
      const CommitState read = ReadOrDie(bytes, lanes);
      EXPECT_THAT(read, AnyOf(now, before)) << at;
      found += read == before;
      bytes[at] ^= std::byte{1} << bit;
    }
  }
  EXPECT_EQ(found, 3 * (128 + 3 * 16));  // All that counts in one slot.
  // Both slots: nothing can be said.
  for (size_t slot : {size_t{0}, bytes.size() / 2}) {
    bytes[slot + 20] ^= std::byte{4};
  }
  EXPECT_THAT(CommitRecord::Read(bytes, lanes), IsDataLoss());
}

TEST(CommitRecordTest, OtherLanesSizesAndZerosAreDataLoss) {
  const Lanes lanes = {.count = 3, .capacity = 9};
  Bytes bytes = ZerosFor(lanes);
  EXPECT_THAT(CommitRecord::Read(bytes, lanes), IsDataLoss());
  CommitRecord record(absl::MakeSpan(bytes), lanes, NoMarks(lanes));
  for (const Lanes other : {Lanes{2, 9}, Lanes{3, 8}, Lanes{600, 9}}) {
    EXPECT_THAT(CommitRecord::Read(bytes, other), IsDataLoss());
  }
  EXPECT_THAT(CommitRecord::Read(absl::MakeSpan(bytes).subspan(1), lanes),
              IsDataLoss());
}

// Checksums that fit around marks that make no sense.
TEST(CommitRecordTest, MarksOutOfOrderAreDataLoss) {
  const Lanes lanes = {.count = 1, .capacity = 9};
  for (const LaneMark mark : {LaneMark{-1, 0}, LaneMark{5, 6}, LaneMark{5, -1},
                              LaneMark{(int64_t{1} << 62) + 1, 0}}) {
    Bytes bytes = ZerosFor(lanes);
    const CommitRecord record(absl::MakeSpan(bytes), lanes, {{mark}});
    EXPECT_THAT(CommitRecord::Read(bytes, lanes), IsDataLoss());
  }
  for (const LaneSteps append :
       {LaneSteps{1, 1, 1}, LaneSteps{-1, 1, 1}, LaneSteps{0, 2, 1},
        LaneSteps{0, 1, -1}, LaneSteps{0, 1, INT64_MAX},
        LaneSteps{INT64_MAX, INT64_MAX, 1}}) {
    Bytes bytes = ZerosFor(lanes);
    CommitRecord record(absl::MakeSpan(bytes), lanes, {{LaneMark{3, 0}}});
    const CommitState before = ReadOrDie(bytes, lanes);
    record.Announce(append);
    EXPECT_EQ(ReadOrDie(bytes, lanes), before);
  }
}

}  // namespace
}  // namespace rill::storage_internal
