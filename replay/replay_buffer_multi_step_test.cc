// SPDX-License-Identifier: Apache-2.0
// A ReplayBuffer with MultiStep: rows that it holds back never meet rows of
// another lane, nor those behind a cut or a clear.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/flow/sink.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/slots/slot.h"
#include "rill/specs/spec.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/compose.h"
#include "rill/transforms/episodes/multi_step.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

constexpr int64_t kSteps = 3;        // Of a window.
constexpr int64_t kCapacity = 1000;  // Of a lane.

// [lanes, time]: in each lane, observations and rewards first, first + 1, ...
TensorDict Steps(float first, int64_t time, int64_t lanes = 1,
                 const std::vector<bool>& done = {}) {
  const Shape shape = {lanes, time, 1};
  TensorDict batch({lanes, time});
  std::vector<float> now;
  std::vector<float> next;
  for (int64_t i = 0; i < lanes * time; ++i) {
    now.push_back(first + static_cast<float>(i % time));
    next.push_back(now.back() + 1);
  }
  RILL_EXPECT_OK(batch.Set("observation", *Tensor::From<float>(now, shape)));
  RILL_EXPECT_OK(batch.Set("next/reward", *Tensor::From<float>(now, shape)));
  RILL_EXPECT_OK(
      batch.Set("next/observation", *Tensor::From<float>(next, shape)));
  for (const char* key : {"next/done", "next/terminated", "next/truncated"}) {
    RILL_EXPECT_OK(batch.Set(key, *Tensor::Zeros(DType::kBool, shape)));
  }
  if (!done.empty()) {
    RILL_EXPECT_OK(batch.Set("next/done", *Tensor::From<bool>(done, shape)));
  }
  return batch;
}

// MultiStep in a Compose, as a member of a chain of one's own.
ReplayBuffer::Options OptionsOf(std::shared_ptr<Storage> storage,
                                int64_t lanes) {
  std::vector<std::unique_ptr<BatchTransform>> inner;
  inner.push_back(*MultiStep::Create({.n_steps = kSteps,
                                      .gamma = 1,
                                      .rows = TensorDictSpec::Of(Steps(0, 1)),
                                      .lanes = lanes}));
  ReplayBuffer::Options options = {.storage = std::move(storage),
                                   .sampler = MakeUniformSampler(),
                                   .batch_size = 4};
  options.transforms.push_back(*Compose::Create(std::move(inner)));
  return options;
}

std::shared_ptr<Storage> StorageOf(int64_t lanes) {
  return *DenseStorage::Create({.capacity = lanes * kCapacity, .lanes = lanes});
}

template <typename T>
std::vector<T> Stored(const ReplayBuffer& buffer, const std::string& key,
                      int64_t lane = 0) {
  std::vector<Slot> slots(static_cast<size_t>(
      buffer.storage().cursors()[static_cast<size_t>(lane)].written));
  if (slots.empty()) return {};
  std::iota(slots.begin(), slots.end(), lane * kCapacity);
  TensorDict rows;
  RILL_EXPECT_OK(buffer.storage().ReadLeaves(slots, {key}, &rows));
  auto values = rows.Flat<T>(key);
  RILL_EXPECT_OK(values);
  return std::vector<T>(values->begin(), values->end());
}

TEST(ReplayBufferMultiStepTest, ACutEndsTheWindowsOfItsLanes) {
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer,
                            ReplayBuffer::Create(OptionsOf(StorageOf(1), 1)));
  RILL_ASSERT_OK(buffer->Extend(Steps(100, 4)));
  RILL_ASSERT_OK(buffer->Cut(0, {.first = 0, .count = 1}));
  RILL_ASSERT_OK(buffer->Extend(Steps(500, 3)));
  EXPECT_THAT(Stored<float>(*buffer, "next/reward"),
              ElementsAre(303, 306, 205, 103, 1503));
  EXPECT_THAT(Stored<float>(*buffer, "next/observation"),
              ElementsAre(103, 104, 104, 104, 503));
  // The row before the held ones was the newest that was stored.
  for (const char* key : {"next/done", "next/truncated"}) {
    EXPECT_THAT(Stored<bool>(*buffer, key),
                ElementsAre(false, true, true, true, false));
  }
  EXPECT_THAT(Stored<bool>(*buffer, "next/terminated"),
              ElementsAre(false, false, false, false, false));
}

TEST(ReplayBufferMultiStepTest, AStepThatHasEndedItsTrajectoryIsNotTruncated) {
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer,
                            ReplayBuffer::Create(OptionsOf(StorageOf(2), 2)));
  // Lane 0 ends, and waits for lane 1.
  RILL_ASSERT_OK(buffer->Extend(Steps(100, 2, 2, {0, 1, 0, 0})));
  RILL_ASSERT_OK(buffer->Cut(0, {.first = 0, .count = 1}));
  RILL_ASSERT_OK(buffer->Extend(Steps(102, 2, 2)));
  EXPECT_THAT(Stored<float>(*buffer, "next/reward", 0), ElementsAre(201, 101));
  EXPECT_THAT(Stored<bool>(*buffer, "next/truncated", 0),
              ElementsAre(false, false));
  EXPECT_THAT(Stored<float>(*buffer, "next/reward", 1), ElementsAre(303, 306));
}

TEST(ReplayBufferMultiStepTest, AClearForgetsHeldRows) {
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer,
                            ReplayBuffer::Create(OptionsOf(StorageOf(1), 1)));
  RILL_ASSERT_OK(buffer->Extend(Steps(100, 3)));
  RILL_ASSERT_OK(buffer->Clear());
  RILL_ASSERT_OK(buffer->Extend(Steps(500, 3)));
  EXPECT_THAT(Stored<float>(*buffer, "next/reward"), ElementsAre(1503));
}

TEST(ReplayBufferMultiStepTest, LanesThatItDoesNotKnowAreRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer,
                            ReplayBuffer::Create(OptionsOf(StorageOf(2), 1)));
  RILL_ASSERT_OK(buffer->Extend(Steps(100, 3), {.first_lane = 0}));
  EXPECT_THAT(buffer->Extend(Steps(200, 3), {.first_lane = 1}),
              IsInvalidArgument("from lane 1 on, want [lanes, T] of lanes in "
                                "[0, 1)"));
  EXPECT_EQ(buffer->size(), 1);
}

// The steps of a lane since the last clear, and which of them are last ones.
struct Lane {
  std::vector<float> rewards;
  std::vector<bool> ends;

  std::vector<float> Sums(size_t count) const {
    std::vector<float> sums(count);
    for (size_t i = 0; i < count; ++i) {
      for (size_t k = i; k < std::min(i + kSteps, rewards.size()); ++k) {
        sums[i] += rewards[k];
        if (ends[k]) break;
      }
    }
    return sums;
  }
  // Rows whose windows are whole.
  size_t Whole() const {
    size_t whole = ends.size();
    while (whole > 0 && !ends[whole - 1]) --whole;
    return std::max(whole,
                    ends.size() - std::min<size_t>(ends.size(), kSteps - 1));
  }
};

// Asynchronous workers, each with a lane, that are cut, saved and cleared.
TEST(ReplayBufferMultiStepTest, LanesOfSeveralProducersNeverMeet) {
  constexpr int64_t kLanes = 3;
  const Rng rng(11, RngStream::kUser);
  uint32_t draw = 0;
  const auto one_of = [&](int64_t n) { return rng.UniformInt(0, draw++, n); };
  const std::string directory =
      absl::StrCat(::testing::TempDir(), "/multi_step_buffer");
  std::vector<Lane> lanes(kLanes);
  RILL_ASSERT_OK_AND_ASSIGN(
      auto buffer, ReplayBuffer::Create(OptionsOf(StorageOf(kLanes), kLanes)));
  float reward = 1;
  for (int i = 0; i < 250; ++i) {
    const int64_t at = one_of(kLanes);
    Lane& lane = lanes[static_cast<size_t>(at)];
    const int64_t choice = one_of(20);
    if (choice == 0) {
      RILL_ASSERT_OK(buffer->Cut(at, {.first = at, .count = 1}));
      if (!lane.ends.empty()) lane.ends.back() = true;
      continue;  // Held rows are written by the next batch.
    }
    if (choice == 1) {
      RILL_ASSERT_OK(buffer->Save(directory));
      RILL_ASSERT_OK_AND_ASSIGN(
          buffer,
          ReplayBuffer::Open(directory, OptionsOf(StorageOf(kLanes), kLanes)));
    }
    if (choice == 2 && one_of(4) == 0) {
      RILL_ASSERT_OK(buffer->Clear());
      std::fill(lanes.begin(), lanes.end(), Lane());
    }
    const int64_t time = 1 + one_of(4);
    std::vector<bool> done;
    for (int64_t k = 0; k < time; ++k) done.push_back(one_of(6) == 0);
    RILL_ASSERT_OK(buffer->Extend(Steps(reward, time, 1, done),
                                  {.producer = at, .first_lane = at}));
    for (int64_t k = 0; k < time; ++k) {
      lane.rewards.push_back(reward++);
      lane.ends.push_back(done[static_cast<size_t>(k)]);
    }
    EXPECT_THAT(Stored<float>(*buffer, "next/reward", at),
                ElementsAreArray(lane.Sums(lane.Whole())));
  }
}

}  // namespace
}  // namespace rill
