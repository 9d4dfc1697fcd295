// SPDX-License-Identifier: Apache-2.0
// Which rows an Extend has written, and all rows that are there.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/replay/writers/removing_writer.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/memmap_storage.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::unique_ptr<ReplayBuffer> Make(std::shared_ptr<Storage> storage,
                                   std::unique_ptr<Writer> writer = nullptr) {
  return *ReplayBuffer::Create({.storage = std::move(storage),
                                .sampler = MakeUniformSampler(),
                                .batch_size = 4,
                                .writer = std::move(writer)});
}

// Number of a row's step.
int64_t StepAt(const ReplayBuffer& buffer, Slot slot) {
  TensorDict row;
  RILL_EXPECT_OK(buffer.storage().Read({slot}, &row));
  return row.Find("action")->data<int64_t>()[0];
}

std::vector<int64_t> StepsAt(const ReplayBuffer& buffer,
                             const std::vector<Draw>& rows) {
  std::vector<int64_t> steps;
  for (const Draw& row : rows) steps.push_back(StepAt(buffer, row.slot));
  return steps;
}

TEST(WrittenRowsTest, SlotsAndGenerationsOfLanesAroundTheRing) {
  const auto buffer = Make(MakeStorage(8, /*lanes=*/2));
  std::vector<Draw> rows = {{.slot = 99}};
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(2, 3), {}, &rows));
  EXPECT_THAT(rows, ElementsAre(Draw{0, 0}, Draw{1, 0}, Draw{2, 0}, Draw{4, 0},
                                Draw{5, 0}, Draw{6, 0}));
  RILL_ASSERT_OK(
      buffer->Extend(NumberedSteps(1, 2, 7), {.first_lane = 1}, &rows));
  EXPECT_THAT(rows, ElementsAre(Draw{7, 0}, Draw{4, 1}));
  EXPECT_THAT(StepsAt(*buffer, rows), ElementsAre(7, 8));
}

TEST(WrittenRowsTest, OfABatchLongerThanItsLaneTheRowsThatStay) {
  const auto buffer = Make(MakeStorage(4));
  std::vector<Draw> rows;
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 10), {}, &rows));
  EXPECT_THAT(StepsAt(*buffer, rows), ElementsAre(6, 7, 8, 9));
  EXPECT_EQ(rows[0].slot, 2);
}

TEST(WrittenRowsTest, RowsOfAWriterThatReplacesOthers) {
  const auto buffer = Make(MakeStorage(4), MakeRemovingWriter());
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 3)));
  std::vector<Draw> rows;
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 3, 3), {}, &rows));
  EXPECT_THAT(StepsAt(*buffer, rows), ElementsAre(3, 4, 5));
  EXPECT_THAT(rows, ElementsAre(Draw{3, 0}, Draw{0, 1}, Draw{1, 1}));
}

TEST(WrittenRowsTest, FailedExtendLeavesNone) {
  const auto buffer = Make(MakeStorage(4));
  std::vector<Draw> rows = {{.slot = 1}};
  EXPECT_FALSE(buffer->Extend(TensorDict({1, 2}), {}, &rows).ok());
  EXPECT_THAT(rows, IsEmpty());
}

// They are what UpdatePriorities takes: of rows that are gone it is ignored.
TEST(WrittenRowsTest, PrioritiesOfRowsThatWereJustWritten) {
  PrioritizedSelector* selector = nullptr;
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto buffer,
      ReplayBuffer::Create({.storage = MakeStorage(4),
                            .sampler = *MakePrioritizedSampler({}, &selector),
                            .batch_size = 4}));
  std::vector<Draw> rows;
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 3), {}, &rows));
  RILL_ASSERT_OK(buffer->UpdatePriorities(rows, {3, 4, 5}));
  EXPECT_THAT(selector->Priorities(), ElementsAre(3, 4, 5, 0));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 2, 3)));
  RILL_ASSERT_OK(buffer->UpdatePriorities(rows, {6, 7, 8}));
  EXPECT_THAT(selector->Priorities(), ElementsAre(5, 7, 8, 5));
}

// Each thread gets its own rows, also beside others.
TEST(WrittenRowsTest, WritersSideBySideAreToldTheirOwn) {
  constexpr int64_t kThreads = 4;
  const auto buffer = Make(MakeStorage(4000));
  std::vector<std::vector<Draw>> all(kThreads);
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::vector<Draw> rows;
      for (int64_t i = 0; i < 50; ++i) {
        RILL_EXPECT_OK(
            buffer->Extend(NumberedSteps(1, 5, t * 250 + i * 5), {}, &rows));
        all[t].insert(all[t].end(), rows.begin(), rows.end());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int64_t t = 0; t < kThreads; ++t) {
    const std::vector<int64_t> steps = StepsAt(*buffer, all[t]);
    ASSERT_EQ(steps.size(), 250u);
    for (int64_t i = 0; i < 250; ++i) EXPECT_EQ(steps[i], t * 250 + i);
  }
}

// --- All rows ----------------------------------------------------------------

TEST(WrittenRowsTest, ReadAllIsOldestFirst) {
  const auto buffer = Make(MakeStorage(8, /*lanes=*/2));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(2, 6)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict rows, buffer->ReadAll());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want,
                            NumberedSteps(2, 6).Slice(1, 2, 6));
  RILL_EXPECT_OK(rows.CheckEqual(want));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict flat,
                            buffer->ReadAll(LiveRowsShape::kFlat));
  EXPECT_EQ(flat.batch_shape(), Shape({8}));
}

// Rows of one moment: no gap and no step twice, whatever is written.
TEST(WrittenRowsTest, ReadAllIsOfOneMomentBesideWrites) {
  const auto buffer = Make(MakeStorage(64));
  std::atomic<bool> is_done = false;
  std::thread writer([&] {
    for (int64_t i = 0; !is_done; i += 5) {
      RILL_EXPECT_OK(buffer->Extend(NumberedSteps(1, 5, i)));
    }
  });
  for (int round = 0; round < 200; ++round) {
    const auto rows = buffer->ReadAll(LiveRowsShape::kFlat);
    RILL_EXPECT_OK(rows);
    if (!rows.ok() || rows->num_leaves() == 0) continue;
    const auto steps = rows->Flat<int64_t>("action");
    RILL_EXPECT_OK(steps);
    for (size_t i = 1; i < steps->size(); ++i) {
      EXPECT_EQ((*steps)[i], (*steps)[i - 1] + 1);
    }
  }
  is_done = true;
  writer.join();
}

// --- Directories -------------------------------------------------------------

TEST(WrittenRowsTest, SavesIntoMissingParentsNameThePath) {
  const std::string root = JoinPath(::testing::TempDir(), "missing_parents");
  RILL_ASSERT_OK(RemoveAll(root));
  const std::string path = JoinPath(root, "at/all");
  RILL_ASSERT_OK_AND_ASSIGN(
      std::shared_ptr<Storage> files,
      MemmapStorage::Create(
          {.directory = JoinPath(::testing::TempDir(), "missing_parents_rows"),
           .capacity = 4}));
  const auto buffer = Make(files);
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 2)));
  const auto refuses = [&](const char* caller) {
    return StatusIs(
        absl::StatusCode::kNotFound,
        AllOf(HasSubstr(caller), HasSubstr("directory: got \"" + path + "\"")));
  };
  EXPECT_THAT(buffer->Save(path), refuses("ReplayBuffer::Save"));
  EXPECT_THAT(buffer->SavePosition(path),
              refuses("ReplayBuffer::SavePosition"));
  EXPECT_FALSE(PathExists(root));
}

}  // namespace
}  // namespace rill
