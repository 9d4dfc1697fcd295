// SPDX-License-Identifier: Apache-2.0
// Stored rows through samplers' units and their transforms together.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/sample_units.h"
#include "rill/replay/testing/watched_storage.h"
#include "rill/samplers/sample_unit.h"
#include "rill/samplers/transition_unit.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/unit_transform.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Steps 0 .. 39 over 24 slots, so those from 16 on are live. Trajectories are
// the fives. Each value of a step tells its number.
constexpr int64_t kSteps = 40;
constexpr int64_t kSlots = 24;
constexpr int64_t kFirstLive = kSteps - kSlots;
constexpr int64_t kLength = 5;

int64_t StepIn(Slot slot) { return slot >= kFirstLive ? slot : slot + kSlots; }
bool IsEnd(int64_t step) { return step % kLength == kLength - 1; }
int64_t FirstOf(int64_t step) {
  return std::max(step - step % kLength, kFirstLive);
}
int64_t LastOf(int64_t step) { return step - step % kLength + kLength - 1; }

template <typename T>
Tensor Column(int64_t width, const std::function<T(int64_t, int64_t)>& value) {
  Tensor column = *Tensor::Empty(DTypeOf<T>, {1, kSteps, width});
  const absl::Span<T> values = *column.Flat<T>();
  for (int64_t i = 0; i < kSteps * width; ++i) {
    values[i] = value(i / width, i % width);
  }
  return column;
}

float Observed(int64_t step, int64_t at) {
  return static_cast<float>(2 * step + at);
}

TensorDict Steps() {
  TensorDict steps({1, kSteps});
  const auto number = [](int64_t step, int64_t) {
    return static_cast<float>(step);
  };
  const auto ends = [](int64_t step, int64_t) { return IsEnd(step); };
  RILL_EXPECT_OK(steps.Set("observation", Column<float>(2, Observed)));
  RILL_EXPECT_OK(steps.Set("next/observation",
                           Column<float>(2, [](int64_t step, int64_t at) {
                             return 0.5f + Observed(step, at);
                           })));
  RILL_EXPECT_OK(steps.Set("next/reward", Column<float>(1, number)));
  RILL_EXPECT_OK(steps.Set("next/achieved_goal", Column<float>(1, number)));
  RILL_EXPECT_OK(
      steps.Set("desired_goal", Column<float>(1, [](int64_t step, int64_t) {
                  return static_cast<float>(1000 + step / kLength);
                })));
  RILL_EXPECT_OK(steps.Set("next/done", Column<bool>(1, ends)));
  RILL_EXPECT_OK(steps.Set("next/terminated", Column<bool>(1, ends)));
  RILL_EXPECT_OK(
      steps.Set("is_init", Column<bool>(1, [](int64_t step, int64_t) {
                  return step % kLength == 0;
                })));
  return steps;
}

// An item, and its number of rows.
struct UnitCase {
  std::string name;
  std::function<absl::StatusOr<SampleUnit>()> make;
  int64_t rows = 1;
};

const NStepReturns::Options kSteps3 = {.num_steps = 3, .gamma = 0.5};
const NStepReturns::Options kSteps2 = {.num_steps = 2, .gamma = 0.5};
StackFrames::Options FramesOf(int64_t n) {
  return {.num_frames = n, .keys = {"observation", "next/observation"}};
}

absl::StatusOr<SampleUnit> NStep() {
  return MakeTransitions({.n_step = kSteps3});
}
absl::StatusOr<SampleUnit> Frames() {
  return MakeTransitions({.frames = FramesOf(3)});
}
absl::StatusOr<SampleUnit> Hindsight() {
  HindsightRelabel::Options options;
  options.reward = [](const Tensor& achieved,
                      const Tensor& desired) -> absl::StatusOr<Tensor> {
    auto made = Tensor::Empty(DType::kFloat32, achieved.shape());
    if (!made.ok()) return made;
    for (int64_t i = 0; i < achieved.num_elements(); ++i) {
      made->data<float>()[i] =
          achieved.data<float>()[i] == desired.data<float>()[i] ? 0.0f : -1.0f;
    }
    return made;
  };
  return MakeHindsight(
      {.goals = {.strategy = HindsightStrategy::kFinal, .ratio = 0.5},
       .relabel = options});
}
absl::StatusOr<SampleUnit> Slices() {
  return MakeSlices({.slices = {.length = 3}});
}
absl::StatusOr<SampleUnit> Sequences() {
  return MakeSequences({.sequences = {.length = 2, .burn_in = 1, .period = 2}});
}

std::vector<UnitCase> Units() {
  return {
      {"n steps", NStep},
      {"frames", Frames},
      {"hindsight", Hindsight},
      {"slices", Slices, 3},
      {"sequences", Sequences, 3},
      {"Rainbow",
       [] {
         return MakeTransitions({.n_step = kSteps2, .frames = FramesOf(2)});
       }},
      {"n steps and frames over slices",
       [] {
         return MakeSlices({.slices = {.length = 2},
                            .n_step = kSteps2,
                            .frames = FramesOf(2)});
       },
       2},
      {"R2D2",
       [] {
         return MakeSequences({.sequences = {.length = 2, .burn_in = 1},
                               .n_step = kSteps2,
                               .frames = FramesOf(2)});
       },
       3},
  };
}

struct Filled {
  std::shared_ptr<WatchedStorage> storage;
  std::unique_ptr<ReplayBuffer> buffer;
};

Filled Fill(absl::StatusOr<SampleUnit> unit, int64_t batch_size,
            int64_t prefetch) {
  Filled filled;
  filled.storage = std::make_shared<WatchedStorage>(
      *DenseStorage::Create({.capacity = kSlots}));
  auto buffer = ReplayBuffer::Create(
      {.storage = filled.storage,
       .sampler = *MakeUniformSamplerOver(*std::move(unit)),
       .batch_size = batch_size,
       .prefetch = prefetch});
  RILL_EXPECT_OK(buffer);
  filled.buffer = *std::move(buffer);
  RILL_EXPECT_OK(filled.buffer->Extend(*Steps().Slice(1, 0, kSlots)));
  RILL_EXPECT_OK(filled.buffer->Extend(*Steps().Slice(1, kSlots, kSteps)));
  return filled;
}

template <typename T>
std::vector<T> Values(const TensorDict& batch, absl::string_view key) {
  auto values = batch.Flat<T>(key);
  RILL_EXPECT_OK(values) << key;
  if (!values.ok()) return {};
  return std::vector<T>(values->begin(), values->end());
}

std::vector<int64_t> StepsOf(const TensorDict& batch) {
  std::vector<int64_t> steps = Values<int64_t>(batch, "index");
  for (int64_t& step : steps) step = StepIn(step);
  return steps;
}

// Checks 30 batches, made ahead or not; rows come through the whole buffer.
void ForBatches(const std::function<absl::StatusOr<SampleUnit>()>& make,
                int64_t batch_size,
                const std::function<void(const TensorDict&)>& check) {
  for (const int64_t prefetch : {0, 2}) {
    Filled filled = Fill(make(), batch_size, prefetch);
    TensorDict batch;
    for (int i = 0; i < 30; ++i) {
      RILL_ASSERT_OK(filled.buffer->SampleInto(&batch));
      check(batch);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(ReplayBufferUnitsTest, NStepReturnsAreThoseOfThePlainSum) {
  ForBatches(NStep, 16, [](const TensorDict& batch) {
    std::vector<float> rewards;
    std::vector<float> observations;
    std::vector<float> next;
    std::vector<bool> ends;
    std::vector<int64_t> counts;
    for (const int64_t step : StepsOf(batch)) {
      int64_t k = 1;
      float sum = static_cast<float>(step);
      float power = 0.5f;
      while (k < 3 && !IsEnd(step + k - 1)) {
        sum += power * static_cast<float>(step + k++);
        power *= 0.5f;
      }
      rewards.push_back(sum);
      counts.push_back(k);
      ends.push_back(IsEnd(step + k - 1));
      for (const int64_t at : {0, 1}) {
        observations.push_back(Observed(step, at));
        next.push_back(0.5f + Observed(step + k - 1, at));
      }
    }
    EXPECT_EQ(Values<float>(batch, "next/reward"), rewards);
    EXPECT_EQ(Values<float>(batch, "observation"), observations);
    EXPECT_EQ(Values<float>(batch, "next/observation"), next);
    EXPECT_EQ(Values<bool>(batch, "next/done"), ends);
    EXPECT_EQ(Values<bool>(batch, "next/terminated"), ends);
    EXPECT_EQ(Values<int64_t>(batch, "steps_to_next_obs"), counts);
  });
}

TEST(ReplayBufferUnitsTest, StackedFramesAreThoseOfTheTrajectory) {
  ForBatches(Frames, 16, [](const TensorDict& batch) {
    std::vector<float> observations;
    std::vector<float> next;
    for (const int64_t step : StepsOf(batch)) {
      for (int64_t back = 2; back >= 0; --back) {
        const int64_t frame = std::max(step - back, FirstOf(step));
        for (const int64_t at : {0, 1}) {
          observations.push_back(Observed(frame, at));
          if (back < 2) next.push_back(Observed(frame, at));
        }
      }
      for (const int64_t at : {0, 1}) {
        next.push_back(0.5f + Observed(step, at));
      }
    }
    EXPECT_EQ(batch.Find("observation")->shape(), Shape({16, 6}));
    EXPECT_EQ(Values<float>(batch, "observation"), observations);
    EXPECT_EQ(Values<float>(batch, "next/observation"), next);
  });
}

// Rainbow, and R2D2 with stacked frames: each row of the batch is the sum over
// its window, and its stacks are those at the window's two ends.
TEST(ReplayBufferUnitsTest, StepsAndFramesComposeOverRowsSlicesAndSequences) {
  for (const UnitCase& test : Units()) {
    const bool is_composed = test.name == "Rainbow" || test.name == "R2D2" ||
                             test.name == "n steps and frames over slices";
    if (!is_composed) continue;
    SCOPED_TRACE(test.name);
    ForBatches(test.make, 12, [](const TensorDict& batch) {
      std::vector<float> rewards;
      std::vector<float> stacks;
      std::vector<float> next;
      std::vector<int64_t> counts;
      for (const int64_t step : StepsOf(batch)) {
        const int64_t end = std::min(step + 1, LastOf(step));
        rewards.push_back(static_cast<float>(step) +
                          0.5f * static_cast<float>(end > step ? end : 0));
        counts.push_back(end - step + 1);
        const int64_t before = std::max(step - 1, FirstOf(step));
        for (const int64_t at : {0, 1}) stacks.push_back(Observed(before, at));
        for (const int64_t at : {0, 1}) stacks.push_back(Observed(step, at));
        for (const int64_t at : {0, 1}) next.push_back(Observed(end, at));
        for (const int64_t at : {0, 1}) {
          next.push_back(0.5f + Observed(end, at));
        }
      }
      EXPECT_EQ(Values<float>(batch, "next/reward"), rewards);
      EXPECT_EQ(Values<float>(batch, "observation"), stacks);
      EXPECT_EQ(Values<float>(batch, "next/observation"), next);
      EXPECT_EQ(Values<int64_t>(batch, "steps_to_next_obs"), counts);
    });
  }
}

TEST(ReplayBufferUnitsTest, HindsightGivesTheGoalThatWasReached) {
  int64_t relabelled = 0;
  int64_t rows = 0;
  ForBatches(Hindsight, 16, [&](const TensorDict& batch) {
    const std::vector<int64_t> steps = StepsOf(batch);
    const auto goals = Values<float>(batch, "desired_goal");
    const auto rewards = Values<float>(batch, "next/reward");
    for (size_t i = 0; i < steps.size(); ++i) {
      ++rows;
      if (goals[i] >= 1000) {
        EXPECT_EQ(goals[i], static_cast<float>(1000 + steps[i] / kLength));
        EXPECT_EQ(rewards[i], static_cast<float>(steps[i]));
        continue;
      }
      ++relabelled;
      EXPECT_EQ(goals[i], static_cast<float>(LastOf(steps[i])));
      EXPECT_EQ(rewards[i], IsEnd(steps[i]) ? 0.0f : -1.0f);
    }
  });
  EXPECT_GT(relabelled, rows / 3);
  EXPECT_LT(relabelled, 2 * rows / 3);
}

TEST(ReplayBufferUnitsTest, SlicesAreMarkedWhereTheyWereCut) {
  ForBatches(Slices, 15, [](const TensorDict& batch) {
    const std::vector<int64_t> steps = StepsOf(batch);
    std::vector<bool> lasts;
    std::vector<bool> firsts;
    std::vector<bool> ends;
    std::vector<bool> done;
    for (size_t i = 0; i < steps.size(); ++i) {
      firsts.push_back(i % 3 == 0 || steps[i] % kLength == 0);
      lasts.push_back(i % 3 == 2);
      ends.push_back(IsEnd(steps[i]));
      done.push_back(lasts[i] || ends[i]);
      EXPECT_EQ(steps[i], steps[i - i % 3] + static_cast<int64_t>(i % 3));
    }
    EXPECT_EQ(Values<bool>(batch, "next/truncated"), lasts);
    EXPECT_EQ(Values<bool>(batch, "next/terminated"), ends);
    EXPECT_EQ(Values<bool>(batch, "next/done"), done);
    EXPECT_EQ(Values<bool>(batch, "is_init"), firsts);
  });
}

TEST(ReplayBufferUnitsTest, SequencesSayWhereEachRowStands) {
  ForBatches(Sequences, 15, [](const TensorDict& batch) {
    const std::vector<int64_t> steps = StepsOf(batch);
    const auto slots = Values<int64_t>(batch, "index");
    std::vector<int64_t> ids;
    std::vector<int64_t> places;
    std::vector<bool> learning;
    std::vector<bool> valid;
    std::vector<int64_t> anchors;
    for (size_t i = 0; i < steps.size(); ++i) {
      const size_t place = i % 3;
      const int64_t anchor = steps[i - place + 1];
      const int64_t want = anchor + static_cast<int64_t>(place) - 1;
      const int64_t there = std::clamp(want, FirstOf(anchor), LastOf(anchor));
      EXPECT_EQ(steps[i], there);
      EXPECT_EQ(anchor % kLength % 2, 0);
      ids.push_back(static_cast<int64_t>(i / 3));
      places.push_back(static_cast<int64_t>(place));
      learning.push_back(place > 0);
      valid.push_back(want == there);
      anchors.push_back(slots[i - place + 1]);
    }
    EXPECT_EQ(Values<int64_t>(batch, "sequence_id"), ids);
    EXPECT_EQ(Values<int64_t>(batch, "step_in_sequence"), places);
    EXPECT_EQ(Values<bool>(batch, "learning_mask"), learning);
    EXPECT_EQ(Values<bool>(batch, "validity_mask"), valid);
    EXPECT_EQ(Values<int64_t>(batch, "anchor_index"), anchors);
  });
}

// --- Halves that do not belong together --------------------------------------

absl::Status CreateWith(SampleUnit unit) {
  return ReplayBuffer::Create(
             {.storage = *DenseStorage::Create({.capacity = kSlots}),
              .sampler = *MakeUniformSamplerOver(std::move(unit)),
              .batch_size = 12})
      .status();
}

TEST(ReplayBufferUnitsTest, RowsWithAnotherUnitsArithmeticAreRefused) {
  const std::vector<UnitCase> units = Units();
  for (size_t i = 0; i < units.size(); ++i) {
    for (size_t j = 0; j < units.size(); ++j) {
      SCOPED_TRACE(units[i].name + " with " + units[j].name);
      SampleUnit unit = *units[i].make();
      SampleUnit other = *units[j].make();
      unit.arithmetic = other.arithmetic;
      // Arithmetic over rows beside fits any unit that plans the same ones, but
      // for marks of sequences, which want the unit's numbers.
      const bool has_marks =
          units[j].name == "sequences" || units[j].name == "R2D2";
      const bool fits =
          i == j || (!has_marks && unit.rows->traits().layout.context ==
                                       other.rows->traits().layout.context);
      const std::string name(unit.arithmetic->name());
      const absl::Status status = CreateWith(std::move(unit));
      if (fits) {
        RILL_EXPECT_OK(status);
      } else {
        EXPECT_THAT(status,
                    StatusIs(absl::StatusCode::kInvalidArgument,
                             AllOf(HasSubstr("ReplayBuffer::Create: sampler"),
                                   HasSubstr(name))));
      }
    }
  }
}

TEST(ReplayBufferUnitsTest, NumbersThatDifferInTheHalvesAreRefused) {
  SampleUnit unit = *MakeTransitions({.n_step = kSteps3});
  unit.arithmetic = MakeTransitions({.n_step = kSteps2})->arithmetic;
  EXPECT_THAT(CreateWith(std::move(unit)),
              IsInvalidArgument("got a unit that plans steps behind (2 rows)"
                                ", window ends (1 row), want steps behind (1 "
                                "row)"));
}

TEST(ReplayBufferUnitsTest, RowsThatNeedArithmeticAreRefusedWithout) {
  for (const UnitCase& test : Units()) {
    SCOPED_TRACE(test.name);
    SampleUnit unit = *test.make();
    unit.arithmetic = nullptr;
    const bool is_plain = unit.rows->traits().layout.context.empty();
    const absl::Status status = CreateWith(std::move(unit));
    if (is_plain) {
      RILL_EXPECT_OK(status);
    } else {
      EXPECT_THAT(status, IsInvalidArgument("has no arithmetic for them"));
    }
  }
}

TEST(ReplayBufferUnitsTest, ArithmeticOfAnotherUnitIsRefusedOverPlainRows) {
  EXPECT_THAT(CreateWith({MakeTransitionUnit(), NStep()->arithmetic}),
              IsInvalidArgument("got a unit that plans none, want steps"));
}

// --- Bytes -------------------------------------------------------------------

// Items one by one: no leaf of a row is read twice for one, but of rows that
// stand for others.
TEST(ReplayBufferUnitsTest, NoStoredByteIsReadTwiceForAnItem) {
  for (const UnitCase& test : Units()) {
    SCOPED_TRACE(test.name);
    Filled filled = Fill(test.make(), test.rows, 0);
    int64_t looked_at = 0;
    for (int i = 0; i < 200; ++i) {
      filled.storage->TakeReads();
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch,
                                filled.buffer->Sample());
      const std::vector<WatchedStorage::ReadCall> reads =
          filled.storage->TakeReads();
      // Where nothing is padded; the last row is its own goal, and one step
      // before the end two windows have one end.
      const std::vector<int64_t> steps = StepsOf(batch);
      const int64_t first = FirstOf(steps.front());
      if (test.name == "frames" && steps.front() - first < 2) continue;
      if (test.name != "n steps" && test.name != "slices" &&
          test.name != "frames" &&
          (steps.front() == first || IsEnd(steps.back()) ||
           std::set<int64_t>(steps.begin(), steps.end()).size() <
               steps.size())) {
        continue;
      }
      ++looked_at;
      std::set<std::pair<std::string, Slot>> seen;
      for (const auto& [slots, keys] : reads) {
        for (const std::string& key : keys) {
          for (const Slot slot : slots) {
            EXPECT_TRUE(seen.emplace(key, slot).second)
                << key << " of step " << StepIn(slot) << ", twice for step "
                << steps.front();
          }
        }
      }
    }
    EXPECT_GT(looked_at, 10);
  }
}

// The window's next observations but the last, for one.
TEST(ReplayBufferUnitsTest, LeafThatIsNotNeededIsNotRead) {
  Filled filled = Fill(NStep(), 1, 0);
  for (int i = 0; i < 30; ++i) {
    filled.storage->TakeReads();
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, filled.buffer->Sample());
    const int64_t steps = Values<int64_t>(batch, "steps_to_next_obs")[0];
    int64_t observations = 0;
    int64_t rewards = 0;
    for (const auto& [slots, keys] : filled.storage->TakeReads()) {
      for (const std::string& key : keys) {
        const auto rows = static_cast<int64_t>(slots.size());
        if (key == "next/observation") observations += rows;
        if (key == "next/reward") rewards += rows;
      }
    }
    EXPECT_EQ(observations, 1);
    EXPECT_EQ(rewards, steps);
  }
}

}  // namespace
}  // namespace rill
