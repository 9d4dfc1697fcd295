// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/rows/trajectory_walk.h"

#include <cstdint>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/replay/rows/drawn_rows.h"
#include "rill/replay/stored_trajectory.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/replay/testing/watched_storage.h"
#include "rill/testing/status_matchers.h"

namespace rill::replay_internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The numbers of rows of the trajectories that are left.
std::vector<int64_t> Rest(TrajectoryWalk* walk) {
  std::vector<int64_t> rows;
  StoredTrajectory trajectory;
  for (;;) {
    const absl::StatusOr<bool> found = walk->Next(&trajectory);
    EXPECT_THAT(found, IsOk());
    if (!found.ok() || !*found) return rows;
    EXPECT_EQ(trajectory.rows.batch_shape().num_elements(),
              static_cast<int64_t>(trajectory.slots.size()));
    rows.push_back(static_cast<int64_t>(trajectory.slots.size()));
  }
}

TEST(TrajectoryWalkTest, GivesThoseThatTheFilterWantsOldestFirst) {
  const auto storage = MakeStorage(20);
  DrawnRows drawn_rows;
  for (const int64_t rows : {4, 2, 5}) {
    RILL_ASSERT_OK(storage->Extend(NumberedSteps(1, rows)));
  }
  const TrajectoryFilter all;
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto walk, TrajectoryWalk::Begin(&all, storage.get(), &drawn_rows));
  EXPECT_THAT(Rest(walk.get()), ElementsAre(4, 2, 5));
  const TrajectoryFilter long_ones = {.min_rows = 3};
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto other,
      TrajectoryWalk::Begin(&long_ones, storage.get(), &drawn_rows));
  EXPECT_THAT(Rest(other.get()), ElementsAre(4, 5));
}

TEST(TrajectoryWalkTest, RowsThatAreClearedOnTheWayAreNoError) {
  const auto storage = MakeStorage(20);
  DrawnRows drawn_rows;
  RILL_ASSERT_OK(storage->Extend(NumberedSteps(1, 4)));
  RILL_ASSERT_OK(storage->Extend(NumberedSteps(1, 4)));
  const TrajectoryFilter all;
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto walk, TrajectoryWalk::Begin(&all, storage.get(), &drawn_rows));
  StoredTrajectory trajectory;
  EXPECT_THAT(walk->Next(&trajectory), IsOk());
  RILL_ASSERT_OK(storage->Clear());
  EXPECT_THAT(Rest(walk.get()), IsEmpty());
}

// The read fails then: nobody asks with which code.
TEST(TrajectoryWalkTest, RowsThatAreClearedDuringTheirReadAreNoError) {
  WatchedStorage storage(MakeStorage(20));
  DrawnRows drawn_rows;
  RILL_ASSERT_OK(storage.Extend(NumberedSteps(1, 4), {}));
  const TrajectoryFilter all;
  RILL_ASSERT_OK_AND_ASSIGN(const auto walk,
                            TrajectoryWalk::Begin(&all, &storage, &drawn_rows));
  storage.HoldReads();
  std::thread reader([&] { EXPECT_THAT(Rest(walk.get()), IsEmpty()); });
  storage.AwaitHeldReads(1);
  RILL_EXPECT_OK(storage.Clear());
  storage.LetReads();
  reader.join();
}

TEST(TrajectoryWalkTest, AnOverwrittenTrajectoryIsGivenAsItIsThen) {
  const auto storage = MakeStorage(8);
  DrawnRows drawn_rows;
  RILL_ASSERT_OK(storage->Extend(NumberedSteps(1, 4)));
  RILL_ASSERT_OK(storage->Extend(NumberedSteps(1, 4)));
  const TrajectoryFilter all;
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto walk, TrajectoryWalk::Begin(&all, storage.get(), &drawn_rows));
  RILL_ASSERT_OK(storage->Extend(NumberedSteps(1, 2)));
  EXPECT_THAT(Rest(walk.get()), ElementsAre(2, 4));
}

TEST(TrajectoryWalkTest, AMissingKeyIsAnError) {
  const auto storage = MakeStorage(8);
  DrawnRows drawn_rows;
  RILL_ASSERT_OK(storage->Extend(NumberedSteps(1, 4)));
  const TrajectoryFilter missing = {.keys = {"missing"}};
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto walk,
      TrajectoryWalk::Begin(&missing, storage.get(), &drawn_rows));
  StoredTrajectory trajectory;
  EXPECT_THAT(walk->Next(&trajectory), IsNotFound());
}

}  // namespace
}  // namespace rill::replay_internal
