// SPDX-License-Identifier: Apache-2.0
// Open into a storage of another capacity.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/formats/manifest.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/replay/writers/removing_writer.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/slice_sampler.h"
#include "rill/samplers/testing/fake_prioritized_sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kSteps = 23;  // Of each of two lanes.
constexpr int64_t kLaneCapacity = 10;

ReplayBuffer::Options OptionsOf(int64_t lane_capacity,
                                std::unique_ptr<Sampler> sampler,
                                int64_t prefetch = 0) {
  ReplayBuffer::Options options;
  options.storage = MakeStorage(2 * lane_capacity, 2);
  options.sampler = std::move(sampler);
  options.batch_size = 16;
  options.seed = 5;
  options.prefetch = prefetch;
  return options;
}

std::unique_ptr<ReplayBuffer> Filled(ReplayBuffer::Options options) {
  auto buffer = *ReplayBuffer::Create(std::move(options));
  RILL_EXPECT_OK(buffer->Extend(NumberedSteps(2, kSteps)));
  return buffer;
}

std::set<int64_t> ActionsDrawn(ReplayBuffer& buffer, int batches = 30) {
  std::set<int64_t> actions;
  for (int i = 0; i < batches; ++i) {
    auto batch = buffer.Sample();
    RILL_EXPECT_OK(batch);
    if (!batch.ok()) break;
    ExpectWholeSteps(*batch, buffer.storage().lanes().capacity);
    const absl::Span<int64_t> drawn = *batch->Flat<int64_t>("action");
    actions.insert(drawn.begin(), drawn.end());
  }
  return actions;
}

std::set<int64_t> NewestOfBothLanes(int64_t steps) {
  std::set<int64_t> actions;
  for (int64_t step = kSteps - steps; step < kSteps; ++step) {
    actions.insert({step, 1000 + step});
  }
  return actions;
}

TEST(ReplayBufferCapacityTest, C12_NewestRowsOfEachLaneAreKeptAndDrawn) {
  const std::string directory = FreshPath("newest");
  RILL_ASSERT_OK(
      Filled(OptionsOf(kLaneCapacity, MakeUniformSampler()))->Save(directory));
  for (const int64_t capacity : {4, 9, 11, 40}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        auto opened,
        ReplayBuffer::Open(directory, OptionsOf(capacity, MakeUniformSampler()),
                           {.accept_other_capacity = true}));
    EXPECT_EQ(ActionsDrawn(*opened),
              NewestOfBothLanes(std::min(capacity, kLaneCapacity)));
    // It goes on where the saved one stood.
    RILL_ASSERT_OK(opened->Extend(NumberedSteps(2, 3, kSteps)));
    EXPECT_EQ(opened->size(), 2 * std::min(capacity, kLaneCapacity + 3));
    ActionsDrawn(*opened);
  }
}

TEST(ReplayBufferCapacityTest, WithoutTheOptionItIsRefusedAndNamed) {
  const std::string directory = FreshPath("refused");
  RILL_ASSERT_OK(
      Filled(OptionsOf(kLaneCapacity, MakeUniformSampler()))->Save(directory));
  ReplayBuffer::Options options = OptionsOf(40, MakeUniformSampler());
  auto storage = options.storage;
  EXPECT_THAT(
      ReplayBuffer::Open(directory, std::move(options)),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("capacity: got 20"), HasSubstr("want 80"),
                     HasSubstr("accept_other_capacity"))));
  EXPECT_EQ(storage->size(), 0);
}

TEST(ReplayBufferCapacityTest, C12_PrioritiesFollowTheirRows) {
  const std::string directory = FreshPath("priorities");
  PrioritizedOptions exponents;
  exponents.epsilon = 0;
  const auto make = [&] { return *MakePrioritizedSampler(exponents); };
  for (const int64_t chosen : {19, 22, 1018}) {
    auto saved = Filled(OptionsOf(kLaneCapacity, make()));
    // Until only one row has a priority.
    while (ActionsDrawn(*saved, 1).size() > 1) {
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, saved->Sample());
      std::vector<float> priorities;
      const absl::Span<int64_t> actions = *batch.Flat<int64_t>("action");
      for (const int64_t action : actions) {
        priorities.push_back(action == chosen ? 3.0f : 0.0f);
      }
      RILL_ASSERT_OK(saved->UpdatePriorities(batch, priorities));
    }
    RILL_ASSERT_OK(saved->Save(directory));
    for (const int64_t capacity : {5, 13, 40}) {
      RILL_ASSERT_OK_AND_ASSIGN(
          auto opened,
          ReplayBuffer::Open(directory, OptionsOf(capacity, make()),
                             {.accept_other_capacity = true}));
      EXPECT_EQ(ActionsDrawn(*opened), std::set<int64_t>{chosen}) << capacity;
      // Saved again and opened as it is, it goes on the same.
      const std::string again = FreshPath("again");
      RILL_ASSERT_OK(opened->Save(again));
      RILL_ASSERT_OK_AND_ASSIGN(
          auto twin, ReplayBuffer::Open(again, OptionsOf(capacity, make())));
      for (int64_t step = kSteps; step < kSteps + 4; ++step) {
        for (ReplayBuffer* buffer : {opened.get(), twin.get()}) {
          RILL_ASSERT_OK(buffer->Extend(NumberedSteps(2, 1, step)));
        }
        RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, opened->Sample());
        RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got, twin->Sample());
        RILL_EXPECT_OK(got.CheckEqual(want));
      }
    }
  }
}

TEST(ReplayBufferCapacityTest, BatchesMadeAheadAreLeftOut) {
  const std::string directory = FreshPath("ahead");
  const auto make = [](int64_t capacity) {
    return OptionsOf(capacity, *MakePrioritizedSampler(), /*prefetch=*/3);
  };
  auto saved = Filled(make(kLaneCapacity));
  RILL_ASSERT_OK(saved->Sample());
  ASSERT_EQ(saved->GetStats().batches_ahead, 3);
  RILL_ASSERT_OK(saved->Save(directory));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto opened,
      ReplayBuffer::Open(directory, make(6), {.accept_other_capacity = true}));
  EXPECT_EQ(opened->GetStats().batches_ahead, 0);
  EXPECT_EQ(opened->batch_number(), saved->batch_number());
  // Slots and generations of what it hands out are its own.
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, opened->Sample());
  ExpectWholeSteps(batch, 6);
  RILL_EXPECT_OK(
      opened->UpdatePriorities(batch, std::vector<float>(16, 1000.0f)));
}

TEST(ReplayBufferCapacityTest, SlicesAreOfRowsThatAreThere) {
  const std::string directory = FreshPath("slices");
  const auto make = [] { return *MakeSliceSampler({.length = 4}); };
  RILL_ASSERT_OK(Filled(OptionsOf(kLaneCapacity, make()))->Save(directory));
  for (const int64_t capacity : {6, 30}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        auto opened, ReplayBuffer::Open(directory, OptionsOf(capacity, make()),
                                        {.accept_other_capacity = true}));
    for (int i = 0; i < 5; ++i) {
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, opened->Sample());
      ExpectWholeSteps(batch, capacity);
      const absl::Span<int64_t> actions = *batch.Flat<int64_t>("action");
      for (size_t k = 0; k < actions.size(); ++k) {
        EXPECT_EQ(actions[k], actions[k / 4 * 4] + static_cast<int64_t>(k % 4));
      }
    }
  }
}

TEST(ReplayBufferCapacityTest, SamplerThatCannotFollowIsNamedAndNothingStays) {
  const std::string directory = FreshPath("fake");
  RILL_ASSERT_OK(Filled(OptionsOf(kLaneCapacity, MakeFakePrioritizedSampler()))
                     ->Save(directory));
  ReplayBuffer::Options options = OptionsOf(40, MakeFakePrioritizedSampler());
  auto storage = options.storage;
  EXPECT_THAT(ReplayBuffer::Open(directory, std::move(options),
                                 {.accept_other_capacity = true}),
              IsFailedPrecondition("FakePrioritizedSampler"));
  EXPECT_EQ(storage->size(), 0);
}

// Rows of a writer that puts them anywhere, or of one with a state, are not the
// newest of a ring.
TEST(ReplayBufferCapacityTest, RowsInNoOrderOfTimeAreRefused) {
  const auto options = [](int64_t capacity, bool is_removing) {
    return ReplayBuffer::Options{
        .storage = MakeStorage(capacity),
        .sampler = MakeUniformSampler(),
        .writer = is_removing ? MakeRemovingWriter() : nullptr};
  };
  for (const bool was_removing : {true, false}) {
    const std::string directory = FreshPath("writer");
    RILL_ASSERT_OK_AND_ASSIGN(const auto saved,
                              ReplayBuffer::Create(options(8, was_removing)));
    RILL_ASSERT_OK(saved->Extend(NumberedSteps(1, 20)));
    RILL_ASSERT_OK(saved->Save(directory));
    for (const bool is_removing : {true, false}) {
      ReplayBuffer::Options other = options(12, is_removing);
      const auto storage = other.storage;
      const auto opened = ReplayBuffer::Open(directory, std::move(other),
                                             {.accept_other_capacity = true});
      if (!was_removing && !is_removing) {
        RILL_EXPECT_OK(opened);
        continue;
      }
      EXPECT_THAT(opened, IsFailedPrecondition("capacity of a buffer with a "));
      EXPECT_EQ(storage->size(), 0);
    }
  }
}

TEST(ReplayBufferCapacityTest, CapacityThatIsNoneIsDamage) {
  const std::string directory = FreshPath("none");
  RILL_ASSERT_OK(
      Filled(OptionsOf(kLaneCapacity, MakeUniformSampler()))->Save(directory));
  RILL_ASSERT_OK_AND_ASSIGN(Manifest manifest,
                            ReadManifest(directory, "replay_buffer", 9));
  for (const char* capacity : {"0", "-20", "21", "9223372036854775806"}) {
    manifest.fields["capacity"] = capacity;
    RILL_ASSERT_OK(WriteManifest(manifest, directory));
    EXPECT_THAT(
        ReplayBuffer::Open(directory, OptionsOf(40, MakeUniformSampler()),
                           {.accept_other_capacity = true}),
        IsDataLoss("capacity"));
  }
}

}  // namespace
}  // namespace rill
