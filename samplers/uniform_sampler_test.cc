// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/uniform_sampler.h"

#include <cstdint>
#include <set>
#include <vector>

#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/samplers/conformance/plan_checks.h"
#include "rill/samplers/conformance/sampler_conformance.h"
#include "rill/samplers/conformance/storage_simulator.h"
#include "rill/testing/chi_square.h"
#include "rill/testing/status_matchers.h"

namespace rill {

INSTANTIATE_SAMPLER_CONFORMANCE(Uniform, {.make = MakeUniformSampler});

namespace {

constexpr uint64_t kSeed = 3;

TEST(UniformSamplerTest, Example) {
  StorageSimulator storage({.count = 1, .capacity = 100});
  std::unique_ptr<Sampler> sampler = MakeUniformSampler();
  storage.AddObserver(sampler->observer());
  storage.Append(50);
  SamplePlan plan;
  RILL_ASSERT_OK(sampler->Plan({.batch_size = 32, .seed = 1}, &plan));
  EXPECT_EQ(plan.draws.size(), 32u);
}

TEST(UniformSamplerTest, DrawsEveryLiveRowEquallyOften) {
  StorageSimulator storage({.count = 3, .capacity = 8});
  auto sampler = MakeUniformSampler();
  storage.AddObserver(sampler->observer());
  storage.Append(/*first_lane=*/0, /*num_lanes=*/1, /*steps=*/11);
  storage.Append(2, 1, 5);
  std::vector<double> shares(storage.lanes().num_slots(), 0);
  for (Slot slot : storage.Live()) shares[slot] = 1.0 / 13;
  std::vector<int64_t> counts(storage.lanes().num_slots(), 0);
  for (uint64_t batch = 0; batch < 512; ++batch) {
    for (const Draw& draw : PlanOf(*sampler, 64, kSeed, batch).draws) {
      ++counts[draw.slot];
    }
  }
  EXPECT_THAT(counts, DistributedAs(shares, /*p_value=*/1e-9));
}

TEST(UniformSamplerTest, U1_DrawsAreUniformOverTheRowsThatAreThere) {
  StorageSimulator storage({.count = 1, .capacity = 1000});
  auto sampler = MakeUniformSampler();
  storage.AddObserver(sampler->observer());
  storage.Append(7);
  std::vector<int64_t> counts(7, 0);
  constexpr int64_t kBatch = 10'000;
  for (uint64_t batch = 0; batch < 100; ++batch) {
    for (const Draw& draw : PlanOf(*sampler, kBatch, kSeed, batch).draws) {
      ASSERT_LT(draw.slot, 7);
      ++counts[draw.slot];
    }
  }
  EXPECT_THAT(counts, DistributedAs(UniformProbabilities(7), 1e-9));
}

TEST(UniformSamplerTest, U2_SeedsAndBatchNumbersAreAllThereIsToRandomness) {
  StorageSimulator storage({.count = 1, .capacity = 1000});
  auto sampler = MakeUniformSampler();
  storage.AddObserver(sampler->observer());
  storage.Append(1000);
  const SamplePlan first = PlanOf(*sampler, 64, kSeed, 5);
  ExpectEqualPlans(PlanOf(*sampler, 64, kSeed, 5), first);
  EXPECT_NE(PlanOf(*sampler, 64, kSeed + 1, 5).draws, first.draws);
  EXPECT_NE(PlanOf(*sampler, 64, kSeed, 6).draws, first.draws);
  RILL_ASSERT_OK_AND_ASSIGN(const std::string state, sampler->SaveState());
  auto restored = MakeUniformSampler();
  storage.AddObserver(restored->observer());
  RILL_ASSERT_OK(restored->LoadState(state));
  ExpectEqualPlans(PlanOf(*restored, 64, kSeed, 5), first);
}

TEST(UniformSamplerTest, SuccessiveDrawsAreIndependent) {
  StorageSimulator storage({.count = 1, .capacity = 6});
  auto sampler = MakeUniformSampler();
  storage.AddObserver(sampler->observer());
  storage.Append(6);
  std::vector<int64_t> pairs(36, 0);
  for (uint64_t batch = 0; batch < 512; ++batch) {
    const SamplePlan plan = PlanOf(*sampler, 64, kSeed, batch);
    for (size_t i = 0; i < plan.draws.size(); i += 2) {
      ++pairs[plan.draws[i].slot * 6 + plan.draws[i + 1].slot];
    }
  }
  EXPECT_THAT(pairs, DistributedAs(UniformProbabilities(36), 1e-9));
}

// The draws are part of the reproducibility contract: draw i of batch b is
// UniformInt(b, i, live rows) of the sampler's stream, lane after lane, oldest
// row first.
TEST(UniformSamplerTest, DrawsAreThoseOfTheSamplersStream) {
  StorageSimulator storage({.count = 1, .capacity = 10});
  auto sampler = MakeUniformSampler();
  storage.AddObserver(sampler->observer());
  storage.Append(13);
  const Rng rng(kSeed, RngStream::kSampler);
  const SamplePlan plan = PlanOf(*sampler, 20, kSeed, 7);
  for (uint32_t i = 0; i < 20; ++i) {
    EXPECT_EQ(plan.draws[i].slot, (3 + rng.UniformInt(7, i, 10)) % 10);
  }
}

TEST(UniformSamplerTest, DrawsWithReplacement) {
  StorageSimulator storage({.count = 1, .capacity = 10});
  auto sampler = MakeUniformSampler();
  storage.AddObserver(sampler->observer());
  storage.Append(2);
  const SamplePlan plan = PlanOf(*sampler, 64, kSeed, 0);
  std::set<Slot> slots;
  for (const Draw& draw : plan.draws) slots.insert(draw.slot);
  EXPECT_THAT(slots, ::testing::ElementsAre(0, 1));
}

// docs/formats/replay_buffer.md has the bytes; old_states_test.cc has those of
// the other samplers.
TEST(UniformSamplerTest, DocumentedBytesOfVersion1Load) {
  StorageSimulator storage({.count = 1, .capacity = 4});
  auto sampler = MakeUniformSampler();
  storage.AddObserver(sampler->observer());
  storage.Append(3);
  std::string bytes;
  ASSERT_TRUE(
      absl::HexStringToBytes("52494c4c534d504c010000000e000000"
                             "556e69666f726d53616d706c65720100"
                             "00000000000004000000000000000200"
                             "00000000000003000000000000000000"
                             "0000000000000100000000000000ffff"
                             "ffffffffffffe3e14006",
                             &bytes));
  RILL_EXPECT_OK(sampler->LoadState(bytes));
  bytes.back() ^= 1;
  EXPECT_THAT(
      sampler->LoadState(bytes),
      StatusIs(absl::StatusCode::kDataLoss, ::testing::HasSubstr("checksum")));
}

TEST(UniformSamplerTest, StateIsSmallWhereRowsWereWrittenInOrder) {
  StorageSimulator storage({.count = 1, .capacity = 100000});
  auto sampler = MakeUniformSampler();
  storage.AddObserver(sampler->observer());
  storage.Append(150000);
  RILL_ASSERT_OK_AND_ASSIGN(const std::string state, sampler->SaveState());
  EXPECT_LE(state.size(), 256u);
}

}  // namespace
}  // namespace rill
