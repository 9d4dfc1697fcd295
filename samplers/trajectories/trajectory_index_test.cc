// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/trajectories/trajectory_index.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/samplers/state_bytes.h"
#include "rill/samplers/trajectories/trajectory_model.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

constexpr uint64_t kSeed = 20240722;

// Of all kinds: every row, long ones, short ones too, beginnings.
std::vector<StartRule> Rules() {
  return {{},
          {.length = 3},
          {.length = 4, .is_strict = false},
          {.length = 3, .is_strict = false, .overhang = 2},
          {.length = 2, .only_beginnings = true}};
}

void ExpectSameSet(const std::vector<TrajectoryModel::Trajectory>& trajectories,
                   const TrajectoryIndex& index, size_t rule_number,
                   const StartRule& rule) {
  const auto& set = index.starts(rule_number);
  int64_t members = 0;
  int64_t total = 0;
  for (const TrajectoryModel::Trajectory& want : trajectories) {
    const int64_t starts =
        rule.Count(static_cast<int64_t>(want.slots.size()), want.is_cut);
    const auto handle = index.Find(want.slots[0])->trajectory;
    ASSERT_EQ(set.WeightOf(handle), starts) << "rule " << rule_number;
    members += starts > 0 ? 1 : 0;
    total += starts;
  }
  ASSERT_EQ(set.size(), members);
  ASSERT_EQ(set.total(), total);
}

void ExpectSameTrajectory(const TrajectoryModel::Trajectory& want,
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
    ASSERT_TRUE(place.has_value());
    ASSERT_EQ(place->trajectory, first->trajectory);
    ASSERT_EQ(place->offset, i);
    ASSERT_EQ(index.At(first->trajectory, i), want.slots[i]);
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

void ExpectSame(const TrajectoryModel& model, const TrajectoryIndex& index) {
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
    index.AppendLane(lane, &pieces);
  }
  size_t n = 0;
  for (const TrajectoryIndex::Piece& piece : pieces) {
    for (int64_t i = 0; i < piece.slots.count; ++i, ++n) {
      ASSERT_EQ(piece.slots.first + i, live[n]);
      const auto place = index.Find(live[n]);
      ASSERT_EQ(piece.place.trajectory, place->trajectory);
      ASSERT_EQ(piece.place.offset + i, place->offset);
    }
  }
  ASSERT_EQ(n, live.size());
  const std::vector<StartRule> rules = Rules();
  for (size_t i = 0; i < rules.size(); ++i) {
    ASSERT_NO_FATAL_FAILURE(ExpectSameSet(want, index, i, rules[i]));
  }
}

std::string SavedBytes(const TrajectoryIndex& index) {
  samplers_internal::StateWriter writer("Test", 1);
  index.Save(&writer);
  return std::move(writer).Finish();
}

absl::Status LoadBytes(const std::string& bytes, TrajectoryIndex* index) {
  auto reader = samplers_internal::StateReader::Open("Test", 1, bytes);
  if (!reader.ok()) return reader.status();
  const absl::Status loaded = index->Load("Test", &*reader);
  return loaded.ok() ? reader->Finish() : loaded;
}

// A history of random writes: how long trajectories are, who writes, what is
// told, all functions of its number.
class History {
 public:
  History(uint64_t number, int64_t max_capacity)
      : number_(number),
        told_{.ends = number % 3 != 1, .ids = number % 3 != 0},
        lanes_{.count = Pick(3) + 1, .capacity = Pick(max_capacity) + 1},
        producers_(number % 2 == 0 ? 1 : Pick(4) + 1),
        rarity_(Pick(12) + 2),
        model_(lanes_, told_) {
    index_ = std::make_unique<TrajectoryIndex>(Rules());
    model_.AddObserver(index_.get());
  }

  const TrajectoryModel& model() const { return model_; }
  const TrajectoryIndex& index() const { return *index_; }
  const TrajectoryIndex& twin() const { return *twin_; }

  void Step() {
    const int64_t kind = Pick(100);
    if (kind == 0) {
      model_.Clear();
    } else if (kind < 12) {
      BeginInPlace();
    } else if (kind < 25) {
      if (model_.in_place_in_flight() > 0) model_.FinishInPlace();
    } else if (kind < 45) {
      if (model_.appends_in_flight() > 0) model_.FinishAppend();
    } else {
      BeginAppend();
      if (kind < 80) model_.FinishAll();
    }
  }

  // Another index, attached and loaded, is the same from here on.
  void SaveAndLoad() {
    model_.FinishAll();
    auto loaded = std::make_unique<TrajectoryIndex>(Rules());
    model_.Attach(loaded.get());
    const std::string bytes = SavedBytes(*index_);
    RILL_ASSERT_OK(LoadBytes(bytes, loaded.get()));
    ASSERT_EQ(SavedBytes(*loaded), bytes);
    twin_ = std::move(loaded);
    model_.GoOn(twin_.get());
  }

 private:
  int64_t Pick(int64_t bound) {
    return rng_.UniformInt(number_, draw_++, bound);
  }

  TrajectoryModel::Value NextValue(int64_t lane) {
    int64_t& id = ids_[{lane, Pick(producers_)}];
    // Without end flags a trajectory ends where its producer takes a new id;
    // seldom it takes one that was there before.
    const bool is_end = Pick(rarity_) == 0;
    const TrajectoryModel::Value value = {.is_end = is_end, .id = id};
    if (is_end && Pick(3) != 0) id = Pick(8) == 0 ? Pick(5) : ++last_id_;
    return value;
  }

  void BeginAppend() {
    const int64_t first = Pick(lanes_.count);
    const int64_t count = Pick(lanes_.count - first) + 1;
    const int64_t steps =
        Pick(4) == 0 ? Pick(2 * lanes_.capacity + 2) + 1 : Pick(4) + 1;
    while (model_.IsBlocked(first, count, steps)) model_.FinishAppend();
    model_.BeginAppend(first, count, steps,
                       [&](int64_t lane) { return NextValue(lane); });
  }

  void BeginInPlace() {
    const std::vector<Slot> live = model_.Live();
    if (live.empty()) return;
    std::vector<Slot> slots;
    std::vector<TrajectoryModel::Value> values;
    for (int64_t i = Pick(4); i >= 0; --i) {
      slots.push_back(live[Pick(static_cast<int64_t>(live.size()))]);
      values.push_back({.is_end = Pick(2) == 0, .id = last_id_ - Pick(4)});
    }
    model_.BeginInPlace(
        slots, values,
        {.ends = told_.ends && Pick(3) != 0, .ids = told_.ids && Pick(3) == 0});
  }

  const Rng rng_{kSeed};
  uint64_t number_;
  uint32_t draw_ = 0;
  TrajectoryModel::Told told_;
  Lanes lanes_;
  int64_t producers_;
  int64_t rarity_;
  std::map<std::pair<int64_t, int64_t>, int64_t> ids_;
  int64_t last_id_ = 0;
  TrajectoryModel model_;
  std::unique_ptr<TrajectoryIndex> index_;
  std::unique_ptr<TrajectoryIndex> twin_;
};

TEST(TrajectoryIndexTest, AgreesWithALookAtAllRowsOverRandomHistories) {
  constexpr uint64_t kHistories = 900;
  constexpr int kSteps = 150;
  for (uint64_t number = 0; number < kHistories; ++number) {
    History history(number, /*max_capacity=*/20);
    for (int step = 0; step < kSteps; ++step) {
      history.Step();
      ASSERT_NO_FATAL_FAILURE(ExpectSame(history.model(), history.index()))
          << "history " << number << " step " << step;
    }
  }
}

// Trajectories of many pieces, which have fingers to find rows by.
TEST(TrajectoryIndexTest, AgreesWithALookAtAllRowsWhereProducersTakeTurns) {
  for (const int64_t producers : {2, 3, 7}) {
    const Lanes lanes = {.count = 1, .capacity = 150 * producers};
    TrajectoryModel model(lanes, {});
    TrajectoryIndex index(Rules());
    model.AddObserver(&index);
    const Rng rng(kSeed);
    uint32_t draw = 0;
    const auto pick = [&](int64_t bound) {
      return rng.UniformInt(producers, draw++, bound);
    };
    const auto row = [&](int64_t) -> TrajectoryModel::Value {
      return {.is_end = pick(150 * producers) == 0, .id = pick(producers)};
    };
    for (int round = 0; round < 40; ++round) {
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

// Also the order of the sets: equal draws.
TEST(TrajectoryIndexTest, LoadedStateGoesOnAsTheSavedOne) {
  for (uint64_t number = 0; number < 300; ++number) {
    History history(number, /*max_capacity=*/20);
    for (int step = 0; step < 40; ++step) history.Step();
    ASSERT_NO_FATAL_FAILURE(history.SaveAndLoad()) << "history " << number;
    for (int step = 0; step < 60; ++step) {
      history.Step();
      ASSERT_EQ(SavedBytes(history.twin()), SavedBytes(history.index()))
          << "history " << number << " step " << step;
    }
    ASSERT_NO_FATAL_FAILURE(ExpectSame(history.model(), history.twin()));
  }
}

TEST(TrajectoryIndexTest, Example) {
  TrajectoryModel storage({.count = 1, .capacity = 8}, {.ids = false});
  TrajectoryIndex index(std::vector<StartRule>{{.length = 4}});
  storage.AddObserver(&index);
  storage.Append(0, {{}, {.is_end = true}, {}, {}, {}, {}});
  ASSERT_THAT(index.starts(0).members(), ::testing::SizeIs(1));
  const TrajectoryIndex::Handle t = index.starts(0).members()[0];
  EXPECT_EQ(index.At(t, index.Get(t).rows - 1), 5);
}

}  // namespace
}  // namespace rill
