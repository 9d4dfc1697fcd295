// SPDX-License-Identifier: Apache-2.0
// What samplers' units and their transforms make together of stored rows.
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
#include "rill/replay/testing/watched_storage.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/slice_sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/samplers/uniform_selector.h"
#include "rill/samplers/units/frame_stack_unit.h"
#include "rill/samplers/units/hindsight_unit.h"
#include "rill/samplers/units/n_step_unit.h"
#include "rill/samplers/units/sequence_unit.h"
#include "rill/storage/dense_storage.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/units/hindsight_relabel.h"
#include "rill/transforms/units/n_step_returns.h"
#include "rill/transforms/units/sequence_marks.h"
#include "rill/transforms/units/slice_marks.h"
#include "rill/transforms/units/stack_frames.h"

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

struct Pair {
  std::unique_ptr<Sampler> sampler;
  std::unique_ptr<UnitTransform> transform;
};

Pair NStep() {
  return {*MakeSampler(MakeUniformSelector(), *MakeNStepUnit({.steps = 3}),
                       "NSteps"),
          *NStepReturns::Create({.num_steps = 3, .gamma = 0.5})};
}
Pair Frames() {
  return {*MakeSampler(MakeUniformSelector(),
                       *MakeFrameStackUnit({.frames = 3}), "Frames"),
          *StackFrames::Create(
              {.num_frames = 3, .keys = {"observation", "next/observation"}})};
}
Pair Hindsight() {
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
  return {
      *MakeSampler(MakeUniformSelector(),
                   *MakeHindsightUnit(
                       {.strategy = HindsightStrategy::kFinal, .ratio = 0.5}),
                   "Hindsight"),
      *HindsightRelabel::Create(options)};
}
Pair Slices() {
  return {*MakeSliceSampler({.length = 3}), *SliceMarks::Create({})};
}
Pair Sequences() {
  return {
      *MakeSampler(MakeUniformSelector(),
                   *MakeSequenceUnit({.length = 2, .burn_in = 1, .period = 2}),
                   "Sequences"),
      *SequenceMarks::Create({.length = 2, .burn_in = 1})};
}

struct Filled {
  std::shared_ptr<WatchedStorage> storage;
  std::unique_ptr<ReplayBuffer> buffer;
};

Filled Fill(Pair pair, int64_t batch_size, int64_t prefetch) {
  Filled filled;
  filled.storage = std::make_shared<WatchedStorage>(
      *DenseStorage::Create({.capacity = kSlots}));
  auto buffer =
      ReplayBuffer::Create({.storage = filled.storage,
                            .sampler = std::move(pair.sampler),
                            .unit_transform = std::move(pair.transform),
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
void ForBatches(const std::function<Pair()>& make, int64_t batch_size,
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

// --- Pairs that do not belong together ---------------------------------------

TEST(ReplayBufferUnitsTest, WrongPairIsAnErrorThatNamesBoth) {
  const std::vector<std::function<Pair()>> makes = {
      NStep,  Frames,    Hindsight,
      Slices, Sequences, [] { return Pair{MakeUniformSampler(), nullptr}; }};
  for (size_t i = 0; i < makes.size(); ++i) {
    for (size_t j = 0; j + 1 < makes.size(); ++j) {
      // Marks of slices fit all that has no context, those of sequences all
      // that has as many rows a pick.
      if (i == j || (j == 3 && i >= 3) || (j == 4 && i == 3)) continue;
      for (const int64_t prefetch : {0, 1}) {
        Pair pair = makes[i]();
        pair.transform = makes[j]().transform;
        const std::string sampler(pair.sampler->name());
        const std::string transform(pair.transform->name());
        auto buffer = ReplayBuffer::Create(
            {.storage = *DenseStorage::Create({.capacity = kSlots}),
             .sampler = std::move(pair.sampler),
             .unit_transform = std::move(pair.transform),
             .batch_size = 15,
             .prefetch = prefetch});
        RILL_ASSERT_OK(buffer);
        RILL_ASSERT_OK((*buffer)->Extend(*Steps().Slice(1, 0, kSlots)));
        EXPECT_THAT((*buffer)->Sample(),
                    StatusIs(absl::StatusCode::kInvalidArgument,
                             AllOf(HasSubstr("unit_transform"),
                                   HasSubstr(sampler), HasSubstr(transform))));
      }
    }
  }
}

// --- Bytes -------------------------------------------------------------------

// Items one by one: no leaf of a row is read twice for one, but of rows that
// stand for others.
TEST(ReplayBufferUnitsTest, EachNeededLeafOfARowIsReadOnce) {
  const std::vector<std::pair<std::function<Pair()>, int64_t>> cases = {
      {NStep, 1}, {Frames, 1}, {Hindsight, 1}, {Slices, 3}, {Sequences, 3}};
  for (const auto& [make, items] : cases) {
    const std::string name(make().transform->name());
    Filled filled = Fill(make(), items, 0);
    int64_t looked_at = 0;
    for (int i = 0; i < 60; ++i) {
      filled.storage->TakeReads();
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch,
                                filled.buffer->Sample());
      // Far from both ends of its trajectory nothing is padded.
      const int64_t anchor = StepsOf(batch)[items == 3 ? 1 : 0];
      if (name == "StackFrames" && anchor - FirstOf(anchor) < 2) continue;
      // The last row is its own goal.
      if (name == "HindsightRelabel" && IsEnd(anchor)) continue;
      if (name == "SequenceMarks" &&
          (anchor == FirstOf(anchor) || IsEnd(anchor))) {
        continue;
      }
      ++looked_at;
      std::set<std::pair<std::string, Slot>> seen;
      for (const auto& [slots, keys] : filled.storage->TakeReads()) {
        for (const std::string& key : keys) {
          for (const Slot slot : slots) {
            EXPECT_TRUE(seen.emplace(key, slot).second)
                << name << ": " << key << " of step " << StepIn(slot)
                << ", twice for step " << anchor;
          }
        }
      }
    }
    EXPECT_GT(looked_at, 10) << name;
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
