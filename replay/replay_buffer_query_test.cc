// SPDX-License-Identifier: Apache-2.0
// Query and Iterate: the trajectories that a buffer holds.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/stored_trajectory.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

std::unique_ptr<ReplayBuffer> Make(std::shared_ptr<Storage> storage) {
  return *ReplayBuffer::Create(
      {.storage = std::move(storage), .sampler = MakeUniformSampler()});
}

std::vector<int64_t> Actions(const StoredTrajectory& trajectory) {
  const auto values = trajectory.rows.Flat<int64_t>("action");
  RILL_EXPECT_OK(values);
  return {values->begin(), values->end()};
}

bool All(const StoredTrajectory&) { return true; }

// NumberedSteps ends each batch with done.
void Write(ReplayBuffer& buffer, int64_t first, int64_t steps,
           bool is_open = false, int64_t lane = 0) {
  TensorDict rows = NumberedSteps(1, steps, first);
  if (is_open) {
    (*rows.Get("next/done")).data<bool>()[steps - 1] = false;
  }
  RILL_ASSERT_OK(buffer.Extend(rows, {.first_lane = lane}));
}

TEST(ReplayBufferQueryTest, Example) {
  const auto buffer = Make(MakeStorage(100));
  Write(*buffer, 0, 3);
  Write(*buffer, 3, 5);
  Write(*buffer, 8, 4, /*is_open=*/true);
  const auto is_rich = [](const StoredTrajectory& episode) {
    double sum = 0;
    const auto rewards = episode.rows.Flat<float>("next/reward");
    for (const float reward : *rewards) sum += reward;
    return sum > 10;
  };
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto found,
      buffer->Query({.keys = {"next/reward"}, .only_whole = true}, is_rich));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].slots, ElementsAre(3, 4, 5, 6, 7));
  EXPECT_TRUE(found[0].is_closed);
  EXPECT_FALSE(found[0].is_cut);
  EXPECT_FALSE(found[0].rows.Contains("action"));
}

TEST(ReplayBufferQueryTest, TrajectoriesComeLaneAfterLaneOldestFirst) {
  const auto buffer = Make(MakeStorage(20, 2));
  Write(*buffer, 0, 3, /*is_open=*/false, /*lane=*/1);
  Write(*buffer, 50, 4);
  Write(*buffer, 3, 9, /*is_open=*/true, /*lane=*/1);
  RILL_ASSERT_OK_AND_ASSIGN(const auto found, buffer->Query({}, All));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].lane, 0);
  EXPECT_THAT(Actions(found[0]), ElementsAre(50, 51, 52, 53));
  // A ring of ten steps has lost two.
  EXPECT_THAT(Actions(found[1]), ElementsAre(2));
  EXPECT_TRUE(found[1].is_cut);
  EXPECT_FALSE(found[2].is_closed);
  EXPECT_THAT(Actions(found[2]), ElementsAre(3, 4, 5, 6, 7, 8, 9, 10, 11));
}

TEST(ReplayBufferQueryTest, FilterAndLimit) {
  const auto buffer = Make(MakeStorage(12));
  Write(*buffer, 0, 4);
  Write(*buffer, 4, 2);
  Write(*buffer, 6, 3);
  Write(*buffer, 9, 5, /*is_open=*/true);  // Overwrites two of the first.
  const auto sizes = [&](const TrajectoryFilter& filter,
                         int64_t limit = 1 << 20) {
    std::vector<int64_t> sizes;
    const auto found = buffer->Query(filter, All, limit);
    RILL_EXPECT_OK(found);
    for (const auto& each : *found) sizes.push_back(each.slots.size());
    return sizes;
  };
  EXPECT_THAT(sizes({}), ElementsAre(2, 2, 3, 5));
  EXPECT_THAT(sizes({}, 2), ElementsAre(2, 2));
  EXPECT_THAT(sizes({}, 0), IsEmpty());
  EXPECT_THAT(sizes({.min_rows = 3}), ElementsAre(3, 5));
  EXPECT_THAT(sizes({.max_rows = 3}), ElementsAre(2, 2, 3));
  EXPECT_THAT(sizes({.only_whole = true}), ElementsAre(2, 3));
  EXPECT_THAT(buffer->Query({}, All, -1), IsInvalidArgument("-1"));
  EXPECT_THAT(buffer->Query({.keys = {"reward"}}, All),
              IsNotFound("next/reward"));
}

TEST(ReplayBufferQueryTest, ErrorsOfTheVisitorEndTheWalk) {
  const auto buffer = Make(MakeStorage(12));
  EXPECT_THAT(buffer->Query({}, All), IsOkAndHolds(IsEmpty()));
  Write(*buffer, 0, 4);
  Write(*buffer, 4, 4);
  int calls = 0;
  const auto fail = [&](const StoredTrajectory&) -> absl::StatusOr<bool> {
    ++calls;
    return absl::InternalError("mine");
  };
  EXPECT_THAT(buffer->Iterate({}, fail), IsInternal("mine"));
  EXPECT_EQ(calls, 1);
  // Nothing is left registered.
  Write(*buffer, 8, 4);
  EXPECT_THAT(buffer->Query({}, All), IsOk());
}

TEST(ReplayBufferQueryTest, VisitorsMayWrite) {
  const auto buffer = Make(MakeStorage(12));
  Write(*buffer, 0, 4);
  Write(*buffer, 4, 4);
  Write(*buffer, 8, 4);
  std::vector<std::vector<int64_t>> seen;
  const auto visit = [&](const StoredTrajectory& trajectory) {
    seen.push_back(Actions(trajectory));
    // Overwrites the trajectory that would be next.
    if (seen.size() == 1) Write(*buffer, 12, 8);
    return true;
  };
  RILL_ASSERT_OK(buffer->Iterate({}, visit));
  EXPECT_THAT(seen,
              ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(8, 9, 10, 11)));
}

TEST(ReplayBufferQueryTest, ClearMeanwhileLeavesNothing) {
  const auto buffer = Make(MakeStorage(12));
  Write(*buffer, 0, 4);
  Write(*buffer, 4, 4);
  int calls = 0;
  const auto visit = [&](const StoredTrajectory&) -> absl::StatusOr<bool> {
    ++calls;
    if (absl::Status status = buffer->Clear(); !status.ok()) return status;
    Write(*buffer, 20, 6);
    return true;
  };
  RILL_ASSERT_OK(buffer->Iterate({}, visit));
  EXPECT_EQ(calls, 1);
}

// Random episodes in a small ring against a list of what was written.
TEST(ReplayBufferQueryTest, HoldsWhatWasWritten) {
  constexpr int64_t kCapacity = 24;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Rng rng(seed);
    const auto buffer = Make(MakeStorage(kCapacity));
    std::vector<std::vector<int64_t>> written;
    int64_t next = 0;
    bool is_open = false;
    for (uint64_t step = 0; step < 60; ++step) {
      const int64_t steps = 1 + rng.UniformInt(step, 0, 9);
      if (!is_open) written.emplace_back();
      is_open = rng.UniformInt(step, 1, 3) == 0;
      Write(*buffer, next, steps, is_open);
      for (int64_t i = 0; i < steps; ++i) written.back().push_back(next + i);
      next += steps;
      std::vector<std::vector<int64_t>> want;
      for (const auto& episode : written) {
        std::vector<int64_t> live;
        for (const int64_t number : episode) {
          if (number >= next - kCapacity) live.push_back(number);
        }
        if (!live.empty()) want.push_back(live);
      }
      std::vector<std::vector<int64_t>> got;
      const auto visit = [&](const StoredTrajectory& trajectory) {
        got.push_back(Actions(trajectory));
        for (size_t i = 0; i < got.back().size(); ++i) {
          EXPECT_EQ(trajectory.slots[i], got.back()[i] % kCapacity);
        }
        return true;
      };
      RILL_ASSERT_OK(buffer->Iterate({}, visit));
      ASSERT_THAT(got, ElementsAreArray(want)) << seed << " " << step;
    }
  }
}

}  // namespace
}  // namespace rill
