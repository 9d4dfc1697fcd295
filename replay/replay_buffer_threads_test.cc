// SPDX-License-Identifier: Apache-2.0
// Writers and samplers at once. Shows what it says under the thread sanitizer.
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/testing/fake_prioritized_sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

constexpr int64_t kLanes = 2;
constexpr int64_t kLaneCapacity = 32;
constexpr int64_t kSamples = 200;

// Every value of a row is its number, so a torn one shows.
int64_t TornRows(const TensorDict& batch) {
  auto observations = batch.Flat<float>("observation");
  auto actions = batch.Flat<int64_t>("action");
  auto rewards = batch.Flat<float>("next/reward");
  if (!observations.ok() || !actions.ok() || !rewards.ok()) return 1;
  int64_t torn = 0;
  for (size_t i = 0; i < actions->size(); ++i) {
    const auto number = static_cast<float>((*actions)[i]);
    if ((*rewards)[i] != number || (*observations)[3 * i] != number ||
        (*observations)[3 * i + 2] != number) {
      ++torn;
    }
  }
  return torn;
}

TEST(ReplayBufferThreadsTest, F3_NoTornRowsBesideWritersOfTwoBuffers) {
  auto storage = MakeStorage(kLanes * kLaneCapacity, kLanes);
  RILL_ASSERT_OK_AND_ASSIGN(
      auto uniform, ReplayBuffer::Create({.storage = storage,
                                          .sampler = MakeUniformSampler(),
                                          .batch_size = 32}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto prioritized,
      ReplayBuffer::Create({.storage = storage,
                            .sampler = MakeFakePrioritizedSampler(),
                            .batch_size = 32}));
  RILL_ASSERT_OK(uniform->Extend(NumberedSteps(kLanes, 8)));
  std::atomic<bool> is_sampling = true;
  std::atomic<int64_t> failures = 0;
  std::atomic<int64_t> torn = 0;
  auto write = [&](ReplayBuffer* buffer, int64_t lane) {
    for (int64_t i = 0; is_sampling; ++i) {
      const TensorDict steps = NumberedSteps(1, 5, i % 900);
      if (!buffer->Extend(steps, {.first_lane = lane}).ok()) ++failures;
    }
  };
  auto sample = [&](ReplayBuffer* buffer) {
    TensorDict batch;
    for (int64_t i = 0; i < kSamples; ++i) {
      if (!buffer->SampleInto(&batch).ok()) ++failures;
      torn += TornRows(batch);
      if (!buffer->UpdatePriorities(batch, std::vector<float>(32, 1.0f)).ok()) {
        ++failures;
      }
    }
  };
  std::thread first_writer(write, uniform.get(), 0);
  std::thread second_writer(write, prioritized.get(), 1);
  std::thread first_sampler(sample, uniform.get());
  std::thread second_sampler(sample, prioritized.get());
  first_sampler.join();
  second_sampler.join();
  is_sampling = false;
  first_writer.join();
  second_writer.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(torn, 0);
}

TEST(ReplayBufferThreadsTest, BatchesOfManyThreadsAreThoseOfOne) {
  auto make = [] {
    auto buffer = *ReplayBuffer::Create({.storage = MakeStorage(50),
                                         .sampler = MakeUniformSampler(),
                                         .batch_size = 8,
                                         .seed = 5});
    RILL_EXPECT_OK(buffer->Extend(NumberedSteps(1, 50)));
    return buffer;
  };
  auto serial = make();
  std::vector<std::string> want;
  for (int i = 0; i < 40; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, serial->Sample());
    want.push_back(batch.Find("index")->DebugString());
  }
  auto parallel = make();
  std::vector<std::vector<std::string>> got(4);
  std::vector<std::thread> threads;
  for (auto& mine : got) {
    threads.emplace_back([&parallel, &mine] {
      for (int i = 0; i < 10; ++i) {
        auto batch = parallel->Sample();
        if (batch.ok()) mine.push_back(batch->Find("index")->DebugString());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::string> all;
  for (const auto& mine : got) all.insert(all.end(), mine.begin(), mine.end());
  EXPECT_THAT(all, ::testing::UnorderedElementsAreArray(want));
  EXPECT_EQ(parallel->batch_number(), 40u);
}

TEST(ReplayBufferThreadsTest, ClearedByAnotherItSamplesOrSaysThatItIsEmpty) {
  auto storage = MakeStorage(16);
  RILL_ASSERT_OK_AND_ASSIGN(
      auto buffer, ReplayBuffer::Create({.storage = storage,
                                         .sampler = MakeUniformSampler(),
                                         .batch_size = 8}));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 16)));
  std::atomic<bool> is_sampling = true;
  std::thread other([&] {
    while (is_sampling) {
      RILL_EXPECT_OK(storage->Clear());
      RILL_EXPECT_OK(storage->Extend(NumberedSteps(1, 4)));
    }
  });
  for (int i = 0; i < kSamples; ++i) {
    auto batch = buffer->Sample();
    if (batch.ok()) {
      EXPECT_EQ(TornRows(*batch), 0);
    } else {
      // Cleared between the plan and the read time after time is rare, and
      // honest.
      EXPECT_THAT(batch, StatusIs(::testing::AnyOf(
                             absl::StatusCode::kFailedPrecondition,
                             absl::StatusCode::kOutOfRange)));
    }
  }
  is_sampling = false;
  other.join();
}

TEST(ReplayBufferThreadsTest, SaveBesideItsOwnWritersIsWhole) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto buffer,
      ReplayBuffer::Create({.storage = MakeStorage(16),
                            .sampler = MakeFakePrioritizedSampler(),
                            .batch_size = 8}));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 4)));
  const std::string directory =
      JoinPath(::testing::TempDir(), "save_beside_writers");
  std::atomic<bool> is_saving = true;
  std::thread writer([&] {
    for (int64_t i = 0; is_saving; ++i) {
      RILL_EXPECT_OK(buffer->Extend(NumberedSteps(1, 3, i % 900)));
    }
  });
  for (int i = 0; i < 3; ++i) {
    RILL_EXPECT_OK(buffer->Save(directory));
    auto opened =
        ReplayBuffer::Open(directory, {.storage = MakeStorage(16),
                                       .sampler = MakeFakePrioritizedSampler(),
                                       .batch_size = 8});
    RILL_EXPECT_OK(opened);
  }
  is_saving = false;
  writer.join();
}

}  // namespace
}  // namespace rill
