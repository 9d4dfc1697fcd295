// SPDX-License-Identifier: Apache-2.0
// UpdateIfPresent: patches of rows that were sampled.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/replay/writers/writer.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/testing/fake_prioritized_sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;

std::unique_ptr<ReplayBuffer> Make(ReplayBuffer::Options options) {
  if (options.sampler == nullptr) options.sampler = MakeUniformSampler();
  return *ReplayBuffer::Create(std::move(options));
}

// Rows that say where they belong, with new values of `key`.
TensorDict PatchOf(const std::vector<int64_t>& slots,
                   const std::vector<int64_t>& generations,
                   const std::string& key, const std::vector<int64_t>& values) {
  const auto n = static_cast<int64_t>(slots.size());
  TensorDict patch({n});
  RILL_EXPECT_OK(patch.Set("index", *Tensor::From<int64_t>(slots, {n})));
  RILL_EXPECT_OK(
      patch.Set("index_generation", *Tensor::From<int64_t>(generations, {n})));
  RILL_EXPECT_OK(patch.Set(key, *Tensor::From<int64_t>(values, {n})));
  return patch;
}

std::vector<int64_t> ActionsAt(const ReplayBuffer& buffer,
                               const std::vector<Slot>& slots) {
  TensorDict rows;
  RILL_EXPECT_OK(buffer.storage().Read(slots, &rows));
  const auto values = rows.Flat<int64_t>("action");
  return {values->begin(), values->end()};
}

TEST(ReplayBufferPatchTest, WritesRowsThatAreStillThere) {
  const auto buffer = Make({.storage = MakeStorage(4)});
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 4)));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 2, 4)));
  // Slots 0 and 1 were written twice; a handle of before is stale.
  RILL_ASSERT_OK_AND_ASSIGN(
      const ReplayBuffer::PatchResult result,
      buffer->UpdateIfPresent(
          PatchOf({0, 1, 2, 3}, {0, 1, 0, -1}, "action", {90, 91, 92, 93})));
  EXPECT_THAT(result.updated, ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(result.version_rejected, ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(result.num_updated, 2);
  EXPECT_THAT(ActionsAt(*buffer, {0, 1, 2, 3}), ElementsAre(4, 91, 92, 3));
}

TEST(ReplayBufferPatchTest, RowsStayTheOnesThatWereDrawn) {
  const auto buffer = Make({.storage = MakeStorage(8),
                            .sampler = MakeFakePrioritizedSampler({}),
                            .batch_size = 16});
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 8)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
  const auto slots = batch.Flat<int64_t>("index");
  const std::vector<int64_t> index(slots->begin(), slots->end());
  const TensorDict patch = PatchOf(index, std::vector<int64_t>(16, 0), "action",
                                   std::vector<int64_t>(16, 7));
  for (int i = 0; i < 3; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const auto result,
                              buffer->UpdateIfPresent(patch));
    EXPECT_EQ(result.num_updated, 16);
  }
  // Priorities of that sample still reach them: no other row is drawn then.
  RILL_ASSERT_OK(
      buffer->UpdatePriorities(batch, std::vector<float>(16, 1e30f)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict again, buffer->Sample());
  const auto drawn = again.Flat<int64_t>("index");
  for (const int64_t slot : *drawn) {
    EXPECT_NE(std::find(index.begin(), index.end(), slot), index.end());
  }
}

TEST(ReplayBufferPatchTest, OfVersionsTheHighestWins) {
  const auto buffer = Make({.storage = MakeStorage(8)});
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 8)));  // action is 0 .. 7.
  const ReplayBuffer::PatchOptions options = {.version_key = "action"};
  RILL_ASSERT_OK_AND_ASSIGN(
      auto result,
      buffer->UpdateIfPresent(PatchOf({5, 5, 6, 7, 5, 4}, {0, 0, 0, 0, 0, 3},
                                      "action", {6, 9, 6, 6, 8, 99}),
                              options));
  EXPECT_THAT(result.updated, ElementsAre(0, 1, 1, 0, 0, 0));
  EXPECT_THAT(result.version_rejected, ElementsAre(1, 0, 0, 1, 1, 0));
  EXPECT_THAT(ActionsAt(*buffer, {4, 5, 6, 7}), ElementsAre(4, 9, 6, 7));
  const TensorDict tie = PatchOf({6, 7}, {0, 0}, "action", {6, 8});
  RILL_ASSERT_OK_AND_ASSIGN(
      result, buffer->UpdateIfPresent(
                  tie, {.version_key = "action", .require_newer = true}));
  EXPECT_THAT(result.updated, ElementsAre(0, 1));
}

TEST(ReplayBufferPatchTest, ErrorsLeaveRowsAlone) {
  const auto buffer = Make({.storage = MakeStorage(4)});
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 4)));
  const TensorDict good = PatchOf({0, 1}, {0, 0}, "action", {8, 9});
  TensorDict patch = good;
  RILL_ASSERT_OK(patch.Delete("index_generation"));
  EXPECT_THAT(buffer->UpdateIfPresent(patch), IsNotFound("generation"));
  // A leaf that is not stored, also where no row is there.
  for (const int64_t generation : {0, 5}) {
    EXPECT_THAT(buffer->UpdateIfPresent(PatchOf(
                    {0, 1}, {generation, generation}, "hidden", {8, 9})),
                IsInvalidArgument("hidden"));
  }
  EXPECT_THAT(buffer->UpdateIfPresent(good, {.version_key = "version"}),
              IsNotFound("version"));
  EXPECT_THAT(ActionsAt(*buffer, {0, 1}), ElementsAre(0, 1));
  RILL_ASSERT_OK(buffer->UpdateIfPresent(good));

  const auto fixed =
      Make({.storage = MakeStorage(4), .writer = MakeImmutableWriter()});
  EXPECT_THAT(fixed->UpdateIfPresent(good), IsFailedPrecondition());
}

// Beside random writes: a patch changes a row just where the model says so.
TEST(ReplayBufferPatchTest, AgreesWithAModel) {
  constexpr int64_t kCapacity = 10;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const Rng rng(seed);
    const auto buffer = Make({.storage = MakeStorage(kCapacity)});
    std::vector<int64_t> values(kCapacity, -1);
    std::vector<int64_t> generations(kCapacity, -1);
    int64_t next = 0;
    for (uint64_t step = 0; step < 200; ++step) {
      if (step == 0 || rng.UniformInt(step, 0, 2) == 0) {
        const int64_t steps = 1 + rng.UniformInt(step, 1, 4);
        RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, steps, next)));
        for (int64_t i = 0; i < steps; ++i, ++next) {
          values[next % kCapacity] = next;
          ++generations[next % kCapacity];
        }
        continue;
      }
      std::vector<int64_t> slots, handles, news;
      for (uint32_t i = 0; i < 5; ++i) {
        slots.push_back(rng.UniformInt(step, 10 + i, kCapacity));
        handles.push_back(std::max<int64_t>(
            0, generations[slots.back()] - rng.UniformInt(step, 20 + i, 2)));
        news.push_back(rng.UniformInt(step, 30 + i, 1000));
      }
      RILL_ASSERT_OK_AND_ASSIGN(
          const auto result,
          buffer->UpdateIfPresent(PatchOf(slots, handles, "action", news)));
      for (size_t i = 0; i < slots.size(); ++i) {
        const bool is_current = handles[i] == generations[slots[i]];
        EXPECT_EQ(result.updated[i], is_current ? 1 : 0);
        if (is_current) values[slots[i]] = news[i];
      }
      for (Slot slot = 0; slot < kCapacity; ++slot) {
        if (generations[slot] < 0) continue;
        EXPECT_THAT(ActionsAt(*buffer, {slot}), ElementsAre(values[slot]));
      }
    }
  }
}

}  // namespace
}  // namespace rill
