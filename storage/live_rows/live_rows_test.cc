// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/live_rows/live_rows.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/storage/conformance/conformance_rows.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Ids of a lane's steps tell both.
std::vector<int64_t> IdsOf(int64_t lane, int64_t first, int64_t end) {
  std::vector<int64_t> ids;
  for (int64_t step = first; step < end; ++step) {
    ids.push_back(1 + lane * 1000 + step);
  }
  return ids;
}

void Append(Storage& storage, int64_t lane, int64_t first, int64_t steps) {
  RILL_ASSERT_OK(storage.Extend(
      ConformanceRows({1, steps}, IdsOf(lane, first, first + steps)),
      {.first_lane = lane}));
}

TEST(LiveRowsTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto storage,
                            DenseStorage::Create({.capacity = 8, .lanes = 2}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict none, ReadLiveRows(*storage));
  EXPECT_EQ(none.batch_shape(), Shape({2, 0}));
  for (int64_t lane = 0; lane < 2; ++lane) Append(*storage, lane, 0, 6);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict rows, ReadLiveRows(*storage));
  std::vector<int64_t> ids = IdsOf(0, 2, 6);
  for (const int64_t id : IdsOf(1, 2, 6)) ids.push_back(id);
  RILL_EXPECT_OK(rows.CheckEqual(ConformanceRows({2, 4}, ids)));
}

TEST(LiveRowsTest, OldestFirstInEveryLaneAfterAnyWrites) {
  const Rng rng(/*seed=*/3);
  const std::string directory = FreshPath("live_rows");
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto storage,
      MemmapStorage::Create(
          {.directory = directory, .capacity = 21, .lanes = 3}));
  std::vector<int64_t> written(3, 0);
  for (uint64_t round = 0; round < 60; ++round) {
    const int64_t lane = rng.UniformInt(round, 0, 3);
    const int64_t steps = 1 + rng.UniformInt(round, 1, 10);
    ASSERT_NO_FATAL_FAILURE(Append(*storage, lane, written[lane], steps));
    written[lane] += steps;
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < 3; ++i) {
      const int64_t first = std::max<int64_t>(written[i] - 7, 0);
      for (const int64_t id : IdsOf(i, first, written[i])) ids.push_back(id);
    }
    const auto n = static_cast<int64_t>(ids.size());
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict rows,
                              ReadLiveRows(*storage, LiveRowsShape::kFlat));
    RILL_ASSERT_OK(rows.CheckEqual(ConformanceRows({n}, ids)));
    // Another process sees the same.
    RILL_ASSERT_OK_AND_ASSIGN(const auto reader,
                              MemmapStorage::OpenReader(directory));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict seen,
                              ReadLiveRows(*reader, LiveRowsShape::kFlat));
    RILL_ASSERT_OK(seen.CheckEqual(rows));
  }
}

TEST(LiveRowsTest, LanesOfDifferentLengthsAreNamed) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto storage,
                            DenseStorage::Create({.capacity = 8, .lanes = 2}));
  Append(*storage, 0, 0, 3);
  Append(*storage, 1, 0, 2);
  EXPECT_THAT(ReadLiveRows(*storage),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("rows of lane 1: got 2, want 3"),
                             HasSubstr("kFlat"))));
}

// Live rows are fewer than the cursor says, as after a kill.
TEST(LiveRowsTest, RowsThatTheRingHasLostAreLeftOut) {
  const std::string directory = FreshPath("live_rows_lost");
  RILL_ASSERT_OK_AND_ASSIGN(const auto small,
                            DenseStorage::Create({.capacity = 10}));
  Append(*small, 0, 0, 17);
  RILL_ASSERT_OK(small->Save(directory));
  RILL_ASSERT_OK_AND_ASSIGN(const auto large,
                            DenseStorage::Create({.capacity = 40}));
  RILL_ASSERT_OK(large->Load(directory, {.accept_other_capacity = true}));
  ASSERT_EQ(large->cursors()[0].written, 17);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict rows, ReadLiveRows(*large));
  RILL_EXPECT_OK(rows.CheckEqual(ConformanceRows({1, 10}, IdsOf(0, 7, 17))));
}

}  // namespace
}  // namespace rill
