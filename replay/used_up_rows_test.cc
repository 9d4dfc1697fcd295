// SPDX-License-Identifier: Apache-2.0
// Buffers whose new rows take the places of those that a consuming sampler has
// used up. U8 is the number of the TorchRL behaviour that is repeated.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/replay/writers/removing_writer.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/selectors/consuming_selector.h"
#include "rill/samplers/selectors/mixture_selector.h"
#include "rill/samplers/selectors/ordered_selector.h"
#include "rill/samplers/slice_sampler.h"
#include "rill/samplers/transition_unit.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/samplers/uniform_selector.h"
#include "rill/slots/slot.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;

// A buffer over a storage of `capacity` rows, each to be drawn `times` times.
std::unique_ptr<ReplayBuffer> Make(int64_t capacity, int64_t times = 1,
                                   int64_t prefetch = 0) {
  std::unique_ptr<Sampler> sampler =
      *MakeConsumingSampler({.max_times_sampled = times});
  const Sampler* const consuming = sampler.get();
  return *ReplayBuffer::Create(
      {.storage = MakeStorage(capacity),
       .sampler = std::move(sampler),
       .batch_size = 4,
       .prefetch = prefetch,
       .writer = MakeRemovingWriter({.used_up_by = consuming})});
}

void Extend(ReplayBuffer& buffer, int64_t rows, int64_t first) {
  RILL_ASSERT_OK(buffer.Extend(NumberedSteps(1, rows, first)));
}

template <typename T>
std::vector<T> Values(const TensorDict& batch, const char* key) {
  const auto values = batch.Flat<T>(key);
  RILL_EXPECT_OK(values);
  return std::vector<T>(values->begin(), values->end());
}

TEST(UsedUpRowsTest, U8_FreedSlotsComeBeforeTheCursor) {
  const auto buffer = Make(10);
  Extend(*buffer, 6, 0);
  EXPECT_EQ(buffer->items(), 6);
  std::set<int64_t> drawn;
  for (const size_t rows : {4u, 2u}) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
    const auto numbers = Values<int64_t>(batch, "action");
    EXPECT_EQ(numbers.size(), rows);
    drawn.insert(numbers.begin(), numbers.end());
  }
  EXPECT_THAT(drawn, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(buffer->items(), 0);
  EXPECT_THAT(buffer->Sample(),
              IsFailedPrecondition("got 0 of 6, want >= 1; write more rows"));
  Extend(*buffer, 2, 6);
  EXPECT_EQ(buffer->items(), 2);
  EXPECT_EQ(buffer->GetStats().items, 2);
  EXPECT_EQ(buffer->size(), 6);
  EXPECT_EQ(buffer->storage().cursors()[0].written, 6);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
  EXPECT_THAT(Values<int64_t>(batch, "action"),
              ::testing::UnorderedElementsAre(6, 7));
  for (const Slot slot : Values<int64_t>(batch, "index")) EXPECT_LT(slot, 6);
}

TEST(UsedUpRowsTest, PatchesBringNoRowBack) {
  const auto buffer = Make(10);
  Extend(*buffer, 4, 0);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict patch,
      batch.Select({"index", "index_generation", "action"}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto result, buffer->UpdateIfPresent(patch));
  EXPECT_EQ(result.num_updated, 4);
  EXPECT_EQ(buffer->items(), 0);
  EXPECT_THAT(buffer->Sample(), IsFailedPrecondition());
}

TEST(UsedUpRowsTest, RowsThatAreNotUsedUpStayWhileThereIsRoom) {
  const auto buffer = Make(8, /*times=*/2);
  Extend(*buffer, 6, 0);
  std::vector<int64_t> times(11, 0);
  // Twelve draws are left at first, then two fewer each time: never more than
  // eight rows.
  for (int64_t first = 6; first < 11; ++first) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
    for (const int64_t number : Values<int64_t>(batch, "action")) {
      ++times[number];
    }
    Extend(*buffer, 1, first);
  }
  while (buffer->items() > 0) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
    for (const int64_t number : Values<int64_t>(batch, "action")) {
      ++times[number];
    }
  }
  EXPECT_THAT(times, ::testing::Each(2));
}

// Half of each batch goes through the rows in order, half takes any of them.
TEST(UsedUpRowsTest, RowsOfAMixtureGoWhenAllItsPartsHaveUsedThemUp) {
  std::vector<MixturePart> parts;
  parts.push_back(
      {.selector = *MakeConsumingSelector({.inner = MakeFifoSelector()}),
       .share = 1});
  parts.push_back({.selector = *MakeConsumingSelector(), .share = 1});
  std::unique_ptr<Sampler> sampler =
      *MakeSampler(*MakeMixtureSelector(std::move(parts)), MakeTransitionUnit(),
                   "OrderedAndAny");
  const Sampler* const mixture = sampler.get();
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto buffer, ReplayBuffer::Create({.storage = MakeStorage(10),
                                               .sampler = std::move(sampler),
                                               .batch_size = 4,
                                               .writer = MakeRemovingWriter(
                                                   {.used_up_by = mixture})}));
  Extend(*buffer, 6, 0);
  std::vector<int64_t> times(40, 0);
  for (int64_t first = 6; first < 40; first += 2) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
    for (const int64_t number : Values<int64_t>(batch, "action")) {
      ++times[number];
    }
    const int64_t used_up = std::count(times.begin(), times.end(), 2);
    const int64_t gone = first - buffer->size();
    EXPECT_EQ(buffer->items(), buffer->size() - (used_up - gone)) << first;
    // A patch brings none back.
    RILL_ASSERT_OK_AND_ASSIGN(
        const TensorDict patch,
        batch.Select({"index", "index_generation", "action"}));
    const int64_t before = buffer->items();
    RILL_ASSERT_OK(buffer->UpdateIfPresent(patch));
    EXPECT_EQ(buffer->items(), before);
    Extend(*buffer, 2, first);
  }
  // None went before both had it, and none was drawn by one twice.
  while (true) {
    const auto batch = buffer->Sample();
    if (!batch.ok()) break;
    for (const int64_t number : Values<int64_t>(*batch, "action")) {
      ++times[number];
    }
  }
  EXPECT_THAT(times, ::testing::Each(2));
}

// A row that is drawn ahead is used up, and is not written over before it is
// read.
TEST(UsedUpRowsTest, BatchesThatWereDrawnAheadHaveTheirRows) {
  const auto buffer = Make(8, /*times=*/1, /*prefetch=*/1);
  Extend(*buffer, 8, 0);
  std::set<int64_t> drawn;
  for (int64_t first = 8; first < 800; first += 4) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
    const auto numbers = Values<int64_t>(batch, "action");
    const auto rewards = Values<float>(batch, "next/reward");
    ASSERT_EQ(numbers.size(), 4u);
    for (size_t i = 0; i < 4; ++i) {
      ASSERT_EQ(rewards[i], static_cast<float>(numbers[i]));
      ASSERT_TRUE(drawn.insert(numbers[i]).second) << numbers[i];
    }
    Extend(*buffer, 4, first);
  }
}

TEST(UsedUpRowsTest, OpenedBufferReplacesTheRowsThatTheSavedOneWould) {
  const auto options = [](std::unique_ptr<Selector> remover) {
    return ReplayBuffer::Options{
        .storage = MakeStorage(5),
        .sampler = MakeUniformSampler(),
        .writer = MakeRemovingWriter({.remover = std::move(remover)})};
  };
  const auto numbers = [](const ReplayBuffer& buffer) {
    TensorDict rows;
    RILL_EXPECT_OK(buffer.storage().Read({0, 1, 2, 3, 4}, &rows));
    return Values<int64_t>(rows, "action");
  };
  const std::string path = ::testing::TempDir() + "/used_up_rows";
  for (const bool is_fifo : {true, false}) {
    const auto remover = [&]() -> std::unique_ptr<Selector> {
      return is_fifo ? MakeFifoSelector() : MakeUniformSelector();
    };
    const auto saved = *ReplayBuffer::Create(options(remover()));
    Extend(*saved, 5, 0);
    Extend(*saved, 3, 5);  // FIFO: slots 3 and 4 are the oldest.
    RILL_ASSERT_OK(saved->Save(path));
    RILL_ASSERT_OK_AND_ASSIGN(const auto opened,
                              ReplayBuffer::Open(path, options(remover())));
    for (int64_t first = 8; first < 20; ++first) {
      Extend(*saved, 1, first);
      Extend(*opened, 1, first);
      ASSERT_EQ(numbers(*opened), numbers(*saved)) << first;
    }
    EXPECT_THAT(ReplayBuffer::Open(path, options(MakeLifoSelector())),
                IsFailedPrecondition("LifoRemover"));
    auto ring = options(nullptr);
    ring.writer = nullptr;
    EXPECT_THAT(ReplayBuffer::Open(path, std::move(ring)),
                IsFailedPrecondition("writer: got RemovingWriter in the "
                                     "directory, want RoundRobinWriter"));
  }
}

TEST(UsedUpRowsTest, SamplersOfTrajectoriesAreRefused) {
  const auto create = [](std::unique_ptr<Sampler> sampler) {
    return ReplayBuffer::Create({.storage = MakeStorage(8),
                                 .sampler = std::move(sampler),
                                 .writer = MakeRemovingWriter()});
  };
  RILL_EXPECT_OK(create(MakeUniformSampler()));
  EXPECT_THAT(
      create(*MakeSliceSampler({.length = 2})),
      IsInvalidArgument("writer: got RemovingWriter with SliceSampler, want "
                        "one that appends, or a sampler of single rows"));
}

}  // namespace
}  // namespace rill
