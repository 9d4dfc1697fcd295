// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/trajectories/trajectory_index.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/state/saved_state.h"
#include "rill/samplers/trajectories/trajectory_history.h"
#include "rill/slots/testing/storage_model.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

constexpr uint64_t kSeed = 20240722;

// RILL_INDEX_ROUNDS of the environment: how many times as many random
// histories, 56,000 operations each time.
uint64_t Rounds() {
  uint64_t rounds = 1;
  if (const char* const text = std::getenv("RILL_INDEX_ROUNDS")) {
    EXPECT_TRUE(absl::SimpleAtoi(text, &rounds) && rounds > 0)
        << "RILL_INDEX_ROUNDS: got \"" << text << "\", want a number above 0";
  }
  return rounds;
}

// Rules of all kinds: every row, long ones, short ones too, beginnings.
std::vector<StartRule> Rules() {
  return {{},
          {.length = 3},
          {.length = 4, .is_strict = false},
          {.length = 3, .is_strict = false, .overhang = 2},
          {.length = 2, .only_first = true, .needs_beginning = true},
          {.only_first = true, .needs_end = true, .keeps_longest = true}};
}

void ExpectSameSet(const std::vector<StorageModel::Trajectory>& trajectories,
                   const TrajectoryIndex& index, size_t rule_number,
                   const StartRule& rule) {
  const auto& set = index.starts(rule_number);
  int64_t members = 0;
  int64_t total = 0;
  int64_t longest = 0;
  for (const StorageModel::Trajectory& want : trajectories) {
    const int64_t starts = rule.Count(static_cast<int64_t>(want.slots.size()),
                                      want.is_cut, want.is_closed);
    const auto handle = index.Find(want.slots[0])->trajectory;
    if (set.WeightOf(handle) != starts) FAIL() << "rule " << rule_number;
    members += starts > 0 ? 1 : 0;
    total += starts;
    if (starts > 0 && rule.keeps_longest) {
      longest = std::max(longest, static_cast<int64_t>(want.slots.size()));
    }
  }
  ASSERT_EQ(set.size(), members);
  ASSERT_EQ(set.total(), total);
  ASSERT_EQ(index.LongestWithStarts(rule_number), longest);
}

void ExpectSameTrajectory(const StorageModel::Trajectory& want,
                          const TrajectoryIndex& index) {
  const auto rows = static_cast<int64_t>(want.slots.size());
  const auto first = index.Find(want.slots[0]);
  ASSERT_TRUE(first.has_value());
  const TrajectoryIndex::Trajectory got = index.Get(first->trajectory);
  ASSERT_EQ(got.lane, want.lane);
  ASSERT_EQ(got.rows, rows);
  ASSERT_EQ(got.id, want.id);
  ASSERT_EQ(got.is_closed, want.is_closed);
  ASSERT_EQ(got.is_cut, want.is_cut) << "at slot " << want.slots[0];
  for (int64_t i = 0; i < rows; ++i) {
    const auto place = index.Find(want.slots[i]);
    const bool is_right =
        place.has_value() && place->trajectory == first->trajectory &&
        place->offset == i && index.At(first->trajectory, i) == want.slots[i];
    ASSERT_TRUE(is_right) << "row " << i << " of slot " << want.slots[0];
  }
  std::vector<Slot> slots;
  index.AppendSlots(first->trajectory, rows / 3, rows - rows / 3, &slots);
  ASSERT_EQ(slots,
            std::vector<Slot>(want.slots.begin() + rows / 3, want.slots.end()));
  std::vector<SlotRange> ranges;
  index.AppendRanges(first->trajectory, 0, rows, &ranges);
  slots.clear();
  for (const SlotRange& range : ranges) {
    for (int64_t i = 0; i < range.count; ++i) slots.push_back(range.first + i);
  }
  ASSERT_EQ(slots, want.slots);
}

void ExpectSame(const StorageModel& model, const TrajectoryIndex& index) {
  const auto want = model.Trajectories();
  ASSERT_EQ(index.num_trajectories(), static_cast<int64_t>(want.size()));
  for (const auto& trajectory : want) {
    ASSERT_NO_FATAL_FAILURE(ExpectSameTrajectory(trajectory, index));
  }
  const std::vector<Slot> live = model.Live();
  ASSERT_EQ(index.num_rows(), static_cast<int64_t>(live.size()));
  int64_t found = 0;
  for (Slot slot = -1; slot <= model.lanes().num_slots(); ++slot) {
    found += index.Find(slot).has_value() ? 1 : 0;
  }
  ASSERT_EQ(found, index.num_rows());
  std::vector<TrajectoryIndex::Piece> pieces;
  for (int64_t lane = 0; lane < model.lanes().count; ++lane) {
    index.AppendLane(lane, model.lanes().capacity, &pieces);
  }
  size_t n = 0;
  for (const TrajectoryIndex::Piece& piece : pieces) {
    for (int64_t i = 0; i < piece.slots.count; ++i, ++n) {
      const auto place = index.Find(live[n]);
      const bool is_right = piece.slots.first + i == live[n] &&
                            piece.place.trajectory == place->trajectory &&
                            piece.place.offset + i == place->offset;
      ASSERT_TRUE(is_right) << "slot " << live[n];
    }
  }
  ASSERT_EQ(n, live.size());
  const std::vector<StartRule> rules = Rules();
  for (size_t i = 0; i < rules.size(); ++i) {
    ASSERT_NO_FATAL_FAILURE(ExpectSameSet(want, index, i, rules[i]));
  }
}

std::string SavedBytes(const TrajectoryIndex& index) {
  SavedState state("Test", 1);
  index.Save(&state);
  return state.Encode();
}

absl::Status LoadBytes(const std::string& bytes, TrajectoryIndex* index) {
  const absl::StatusOr<SavedState> state = SavedState::Decode(bytes);
  if (!state.ok()) return state.status();
  return index->Load(*state, {});
}

// Another index that attaches to the rows of a history, loads the state of
// `index` and goes on.
std::unique_ptr<TrajectoryIndex> Load(const TrajectoryIndex& index,
                                      StorageModel* model) {
  model->FinishAll();
  auto loaded = std::make_unique<TrajectoryIndex>(Rules());
  model->Attach(loaded.get());
  const std::string bytes = SavedBytes(index);
  RILL_EXPECT_OK(LoadBytes(bytes, loaded.get()));
  EXPECT_EQ(SavedBytes(*loaded), bytes);
  model->GoOn(loaded.get());
  return loaded;
}

TEST(TrajectoryIndexTest, AgreesWithALookAtAllRowsOverRandomHistories) {
  constexpr int kSteps = 150;
  const uint64_t histories = 240 * Rounds();
  for (uint64_t number = 0; number < histories; ++number) {
    TrajectoryHistory history(number, /*max_capacity=*/20);
    TrajectoryIndex index(Rules());
    history.model().AddObserver(&index);
    for (int step = 0; step < kSteps; ++step) {
      history.Step();
      ASSERT_NO_FATAL_FAILURE(ExpectSame(history.model(), index))
          << "history " << number << " step " << step;
    }
  }
}

// Trajectories of many pieces, which have fingers to find rows by.
TEST(TrajectoryIndexTest, AgreesWithALookAtAllRowsWhereProducersTakeTurns) {
  for (const int64_t producers : {2, 3, 7}) {
    const Lanes lanes = {.count = 1, .capacity = 150 * producers};
    StorageModel model(lanes, {});
    TrajectoryIndex index(Rules());
    model.AddObserver(&index);
    const Rng rng(kSeed);
    uint32_t draw = 0;
    const auto pick = [&](int64_t bound) {
      return rng.UniformInt(producers, draw++, bound);
    };
    const auto row = [&](int64_t) -> StorageModel::Value {
      return {.is_end = pick(150 * producers) == 0, .id = pick(producers)};
    };
    for (int round = 0; round < 16; ++round) {
      model.Append(0, 1, pick(60) + 1, row);
      model.Append(0, 1, 1, row);
      ASSERT_NO_FATAL_FAILURE(ExpectSame(model, index));
      // Near the end, or anywhere.
      const std::vector<Slot> live = model.Live();
      const auto rows = static_cast<int64_t>(live.size());
      const int64_t far = pick(4) == 0 ? rows : std::min<int64_t>(rows, 100);
      model.WriteInPlace({live[rows - 1 - pick(far)]}, {row(0)}, {});
      ASSERT_NO_FATAL_FAILURE(ExpectSame(model, index)) << "round " << round;
    }
  }
}

// Producers 1, 2 and 3 take turns; what is dropped holds the beginnings of 1
// and 2 and, between its end and its next beginning, nothing of 3.
TEST(TrajectoryIndexTest, BatchLongerThanItsLaneCutsAllThatBeginInItsFront) {
  StorageModel model({.count = 1, .capacity = 5}, {});
  TrajectoryIndex index(Rules());
  model.AddObserver(&index);
  model.Append(0, {{.id = 1},
                   {.id = 3},
                   {.id = 2},
                   {.is_end = true, .id = 3},
                   {.id = 1},
                   {.id = 2},
                   {.is_end = true, .id = 3},
                   {.id = 1},
                   {.id = 4}});
  const auto is_cut = [&](Slot slot) {
    return index.Get(index.Find(slot)->trajectory).is_cut;
  };
  EXPECT_TRUE(is_cut(4));   // Of 1.
  EXPECT_TRUE(is_cut(0));   // Of 2.
  EXPECT_FALSE(is_cut(1));  // Of 3.
  EXPECT_FALSE(is_cut(3));  // Of 4.
  ASSERT_NO_FATAL_FAILURE(ExpectSame(model, index));
}

// Also the order of the sets: equal draws.
TEST(TrajectoryIndexTest, LoadedStateGoesOnAsTheSavedOne) {
  const uint64_t histories = 200 * Rounds();
  for (uint64_t number = 0; number < histories; ++number) {
    TrajectoryHistory history(number, /*max_capacity=*/20);
    TrajectoryIndex index(Rules());
    history.model().AddObserver(&index);
    for (int step = 0; step < 40; ++step) history.Step();
    const auto twin = Load(index, &history.model());
    for (int step = 0; step < 60; ++step) {
      history.Step();
      ASSERT_EQ(SavedBytes(*twin), SavedBytes(index))
          << "history " << number << " step " << step;
    }
    ASSERT_NO_FATAL_FAILURE(ExpectSame(history.model(), *twin));
  }
}

// A lane of so many slots, of which `live` are, in episodes of 1,000 rows: as
// foreign flags tell of it.
void AttachEpisodes(int64_t capacity, int64_t live, TrajectoryIndex* index) {
  std::vector<uint8_t> flags(live, 0);
  for (int64_t i = 999; i < live; i += 1000) flags[i] = 1;
  const Cursor cursor = {.written = live};
  const SlotRange rows = {.first = 0, .count = live};
  WriteEvent event;
  event.written = {&rows, 1};
  event.ends = flags;
  index->OnAttach({.count = 1, .capacity = capacity}, {&cursor, 1});
  index->OnWrite(event);
}

struct Cost {
  int64_t rows = 0;
  int64_t pieces_of_write = 0;
  int64_t pieces_of_draws = 0;
  int64_t bytes = 0;
};

Cost CostOf(int64_t capacity, int64_t live) {
  TrajectoryIndex index(std::vector<StartRule>{{.length = 16}});
  AttachEpisodes(capacity, live, &index);
  const TrajectoryIndex::Work before = index.work();
  const std::vector<uint8_t> flags(1000, 0);
  const SlotRange row = {.first = live, .count = 1000};
  WriteEvent event;
  event.written = {&row, 1};
  event.ends = flags;
  index.OnWrite(event);
  const TrajectoryIndex::Work written = index.work();
  std::vector<Slot> slots;
  for (const int32_t trajectory : index.starts(0).members().subspan(0, 100)) {
    index.AppendSlots(trajectory, 100, 16, &slots);
    index.Find(slots.back());
  }
  return {.rows = written.rows - before.rows,
          .pieces_of_write = written.pieces - before.pieces,
          .pieces_of_draws = index.work().pieces - written.pieces,
          .bytes = index.memory_bytes()};
}

// S18: a sample of 5M rows costs the same in a ring of 6M and of 600M.
TEST(TrajectoryIndexTest, S18_WorkDoesNotGrowWithTheCapacity) {
  const Cost small = CostOf(/*capacity=*/6'000'000, /*live=*/5'000'000);
  const Cost large = CostOf(/*capacity=*/600'000'000, /*live=*/5'000'000);
  EXPECT_EQ(small.rows, 1000);
  EXPECT_EQ(small.rows, large.rows);
  EXPECT_EQ(small.pieces_of_write, large.pieces_of_write);
  EXPECT_EQ(small.pieces_of_draws, large.pieces_of_draws);
  EXPECT_EQ(small.bytes, large.bytes);
  // One look to draw, log2 of 5,001 to find a row: 13.
  EXPECT_LE(small.pieces_of_write, 2);
  EXPECT_LE(small.pieces_of_draws, 100 * (1 + 14));
  // 40 a trajectory, 16 a run, 17 for the rule, the last with spare room.
  EXPECT_LE(small.bytes, 5001 * (40 + 16 + 2 * 17) + 1000);
}

TEST(TrajectoryIndexTest, S18_WorkOfWritesDoesNotGrowWithTheRows) {
  const Cost few = CostOf(/*capacity=*/6'000'000, /*live=*/50'000);
  const Cost many = CostOf(/*capacity=*/6'000'000, /*live=*/5'000'000);
  EXPECT_EQ(few.rows, many.rows);
  EXPECT_EQ(few.pieces_of_write, many.pieces_of_write);
}

TEST(TrajectoryIndexTest, Example) {
  StorageModel storage({.count = 1, .capacity = 8}, {.ids = false});
  TrajectoryIndex index(std::vector<StartRule>{{.length = 4}});
  storage.AddObserver(&index);
  storage.Append(0, {{}, {.is_end = true}, {}, {}, {}, {}});
  ASSERT_THAT(index.starts(0).members(), ::testing::SizeIs(1));
  const TrajectoryIndex::Handle t = index.starts(0).members()[0];
  EXPECT_EQ(index.At(t, index.Get(t).rows - 1), 5);
}

}  // namespace
}  // namespace rill
