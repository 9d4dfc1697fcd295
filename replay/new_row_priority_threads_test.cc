// SPDX-License-Identifier: Apache-2.0
// NewRowPriority::kMaxInBuffer where rows come from a storage's writers.
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/replay/writers/removing_writer.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/selectors/ordered_selector.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

struct Prioritized {
  PrioritizedSelector* selector = nullptr;
  std::unique_ptr<ReplayBuffer> buffer;
};

ReplayBuffer::Options OptionsOf(std::shared_ptr<Storage> storage,
                                std::unique_ptr<Writer> writer,
                                PrioritizedSelector** selector) {
  return {.storage = std::move(storage),
          .sampler = *MakePrioritizedSampler(
              {.new_rows = NewRowPriority::kMaxInBuffer}, selector),
          .batch_size = 4,
          .writer = std::move(writer)};
}

Prioritized Make(std::shared_ptr<Storage> storage,
                 std::unique_ptr<Writer> writer = nullptr) {
  Prioritized made;
  made.buffer = *ReplayBuffer::Create(
      OptionsOf(std::move(storage), std::move(writer), &made.selector));
  return made;
}

// Slots 0, 1, ..., each with its first row.
void Update(ReplayBuffer& buffer, const std::vector<float>& priorities) {
  const auto n = static_cast<int64_t>(priorities.size());
  TensorDict rows({n});
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor slots,
                            Tensor::Zeros(DType::kInt64, {n}));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor generations,
                            Tensor::Zeros(DType::kInt64, {n}));
  for (int64_t slot = 0; slot < n; ++slot) slots.data<int64_t>()[slot] = slot;
  RILL_ASSERT_OK(rows.Set("index", slots));
  RILL_ASSERT_OK(rows.Set("index_generation", generations));
  RILL_ASSERT_OK(buffer.UpdatePriorities(rows, priorities));
}

TEST(NewRowPriorityThreadsTest, ExtendOverTheWholeRingHandsTheLargestOn) {
  const Prioritized made = Make(MakeStorage(4));
  RILL_ASSERT_OK(made.buffer->Extend(NumberedSteps(1, 4)));
  Update(*made.buffer, {80, 50, 60, 70});
  RILL_ASSERT_OK(made.buffer->Extend(NumberedSteps(1, 4, 4)));
  EXPECT_THAT(made.selector->Priorities(), ElementsAre(80, 80, 80, 80));
}

TEST(NewRowPriorityThreadsTest, WriterThatRemovesRowsHandsTheLargestOn) {
  const Prioritized made = Make(
      MakeStorage(4), MakeRemovingWriter({.remover = MakeFifoSelector()}));
  RILL_ASSERT_OK(made.buffer->Extend(NumberedSteps(1, 4)));
  Update(*made.buffer, {80, 50, 60, 70});
  RILL_ASSERT_OK(made.buffer->Extend(NumberedSteps(1, 3, 4)));
  EXPECT_THAT(made.selector->Priorities(), ElementsAre(80, 80, 80, 70));
}

TEST(NewRowPriorityThreadsTest, OpenedBufferGoesOnWithIt) {
  const std::string directory =
      JoinPath(::testing::TempDir(), "new_row_priority");
  const Prioritized saved = Make(MakeStorage(4));
  RILL_ASSERT_OK(saved.buffer->Extend(NumberedSteps(1, 4)));
  Update(*saved.buffer, {80, 50, 60, 70});
  RILL_ASSERT_OK(saved.buffer->Save(directory));
  PrioritizedSelector* selector = nullptr;
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto opened,
      ReplayBuffer::Open(directory,
                         OptionsOf(MakeStorage(4), nullptr, &selector)));
  RILL_ASSERT_OK(opened->Extend(NumberedSteps(1, 4, 4)));
  EXPECT_THAT(selector->Priorities(), ElementsAre(80, 80, 80, 80));
}

// Whatever the order of their events, one row has the largest priority or is
// being overwritten by one that will.
TEST(NewRowPriorityThreadsTest, WritersOfLanesSideBySideKeepTheLargest) {
  constexpr int64_t kLanes = 4;
  constexpr int64_t kSteps = 8;
  const Prioritized made = Make(MakeStorage(kLanes * kSteps, kLanes));
  RILL_ASSERT_OK(made.buffer->Extend(NumberedSteps(kLanes, kSteps)));
  std::vector<float> priorities(kLanes * kSteps, 1);
  priorities[5] = 80;
  Update(*made.buffer, priorities);
  std::vector<std::thread> writers;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    writers.emplace_back([&, lane] {
      for (int64_t i = 0; i < 200; ++i) {
        const int64_t steps = 1 + (i + lane) % (kSteps + 3);
        RILL_EXPECT_OK(made.buffer->Extend(NumberedSteps(1, steps, i),
                                           {.first_lane = lane}));
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_THAT(made.selector->Priorities(), Each(80));
}

}  // namespace
}  // namespace rill
