// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/ensemble/replay_buffer_ensemble.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/replay/options/option_changes.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/slice_sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/specs/spec.h"
#include "rill/storage/dense_storage.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/function_transform.h"
#include "rill/transforms/reward_scaling.h"
#include "rill/transforms/to_device.h"
#include "rill/transforms/values/finite_tensor_dict_check.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr int64_t kRows = 80;

// Member `id`, full of steps id * 1000 + slot.
std::shared_ptr<ReplayBuffer> MakeMember(
    int64_t id, std::unique_ptr<Sampler> sampler = MakeUniformSampler(),
    ReplayBuffer::Options options = {}) {
  options.storage = MakeStorage(kRows);
  options.sampler = std::move(sampler);
  options.seed = static_cast<uint64_t>(100 + id);
  auto buffer = *ReplayBuffer::Create(std::move(options));
  RILL_EXPECT_OK(buffer->Extend(NumberedSteps(1, kRows, 1000 * id)));
  return buffer;
}

std::unique_ptr<Sampler> MakePrioritized() {
  return *MakePrioritizedSampler({.alpha = 1, .beta = 1});
}

std::vector<ReplayBufferEnsemble::Member> MembersWith(
    const std::vector<double>& shares) {
  std::vector<ReplayBufferEnsemble::Member> members;
  for (size_t i = 0; i < shares.size(); ++i) {
    members.push_back({.buffer = MakeMember(static_cast<int64_t>(i)),
                       .share = shares[i],
                       .name = absl::StrCat("m", i)});
  }
  return members;
}

std::unique_ptr<ReplayBufferEnsemble> Make(
    ReplayBufferEnsemble::Options options) {
  return *ReplayBufferEnsemble::Create(std::move(options));
}

template <typename T>
std::vector<T> Numbers(const TensorDict& batch, absl::string_view key) {
  auto flat = batch.Flat<T>(key);
  RILL_EXPECT_OK(flat);
  return std::vector<T>(flat->begin(), flat->end());
}

// Rows are whole, of the member that `buffer_ids` names, in members' order.
// Returns how many each has.
std::vector<int64_t> CheckRows(const TensorDict& batch, size_t members) {
  const auto ids = Numbers<int64_t>(batch, "buffer_ids");
  const auto index = Numbers<int64_t>(batch, "index");
  const auto actions = Numbers<int64_t>(batch, "action");
  const auto rewards = Numbers<float>(batch, "next/reward");
  EXPECT_EQ(batch.Find("buffer_ids")->shape(), batch.batch_shape());
  std::vector<int64_t> counts(members);
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(actions[i], 1000 * ids[i] + index[i]);
    EXPECT_EQ(rewards[i], static_cast<float>(actions[i]));
    EXPECT_LE(i == 0 ? 0 : ids[i - 1], ids[i]);
    ++counts[static_cast<size_t>(ids[i])];
  }
  return counts;
}

absl::StatusOr<TensorDict> RunExample(std::shared_ptr<ReplayBuffer> walking,
                                      std::shared_ptr<ReplayBuffer> running,
                                      const std::vector<float>& priorities) {
  RILL_ASSIGN_OR_RETURN(
      auto ensemble,
      ReplayBufferEnsemble::Create(
          {.members = {{.buffer = walking, .share = 0.75, .name = "walk"},
                       {.buffer = running, .share = 0.25, .name = "run"}},
           .batch_size = 32}));
  RILL_ASSIGN_OR_RETURN(TensorDict batch, ensemble->Sample());
  RILL_RETURN_IF_ERROR(ensemble->UpdatePriorities(batch, priorities));
  return batch;
}

TEST(ReplayBufferEnsembleTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict batch,
      RunExample(MakeMember(0), MakeMember(1), std::vector<float>(32, 1.0f)));
  EXPECT_THAT(CheckRows(batch, 2), ElementsAre(24, 8));
  EXPECT_FALSE(batch.Contains("priority_weight"));
}

// --- Shares ------------------------------------------------------------------

TEST(ReplayBufferEnsembleTest, SharesAreNeverAnItemOff) {
  const std::vector<double> shares = {0.5, 0.27, 0.13, 0.1};
  auto ensemble = Make({.members = MembersWith(shares), .batch_size = 11});
  std::vector<int64_t> items(4);
  TensorDict batch;
  for (int64_t i = 1; i <= 200; ++i) {
    RILL_ASSERT_OK(ensemble->SampleInto(&batch));
    const std::vector<int64_t> counts = CheckRows(batch, 4);
    for (size_t m = 0; m < 4; ++m) {
      items[m] += counts[m];
      ASSERT_LT(std::abs(11.0 * static_cast<double>(i) * shares[m] -
                         static_cast<double>(items[m])),
                1.0);
    }
  }
  EXPECT_EQ(ensemble->GetStats().items, items);
  EXPECT_EQ(ensemble->GetStats().batches, 200);
  EXPECT_EQ(ensemble->size(), 4 * kRows);
}

TEST(ReplayBufferEnsembleTest, SharesMayChange) {
  auto ensemble = Make({.members = MembersWith({1, 1}), .batch_size = 8});
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, ensemble->Sample());
  EXPECT_THAT(CheckRows(batch, 2), ElementsAre(4, 4));
  RILL_ASSERT_OK(ensemble->SetShares({3, 1}));
  RILL_ASSERT_OK_AND_ASSIGN(batch, ensemble->Sample());
  EXPECT_THAT(CheckRows(batch, 2), ElementsAre(6, 2));
  RILL_ASSERT_OK(ensemble->SetShares({0, 5}));
  RILL_ASSERT_OK_AND_ASSIGN(batch, ensemble->Sample());
  EXPECT_THAT(CheckRows(batch, 2), ElementsAre(0, 8));
  EXPECT_THAT(ensemble->GetStats().shares, ElementsAre(0, 1));
  for (const std::vector<double>& bad : {std::vector<double>{1},
                                         {1, 1, 1},
                                         {0, 0},
                                         {1, -1},
                                         {1, NAN},
                                         {1, INFINITY}}) {
    EXPECT_THAT(ensemble->SetShares(bad), IsInvalidArgument());
  }
  EXPECT_THAT(ensemble->GetStats().shares, ElementsAre(0, 1));
}

TEST(ReplayBufferEnsembleTest, SomeMembersABatchAreDrawnByTheirShares) {
  auto ensemble = Make({.members = MembersWith({1, 2, 3, 0}),
                        .batch_size = 4,
                        .buffers_sampled = 2,
                        .seed = 5});
  constexpr int kBatches = 3000;
  std::vector<double> drawn(4);
  TensorDict batch;
  for (int i = 0; i < kBatches; ++i) {
    RILL_ASSERT_OK(ensemble->SampleInto(&batch));
    const std::vector<int64_t> counts = CheckRows(batch, 4);
    int parts = 0;
    for (size_t m = 0; m < 4; ++m) {
      if (counts[m] == 0) continue;
      EXPECT_EQ(counts[m], 2);
      ++parts;
      ++drawn[m];
    }
    EXPECT_EQ(parts, 2);
  }
  // In either order: P(a) + sum over b of P(b) P(a) / (1 - P(b)).
  const std::vector<double> p = {1.0 / 6, 2.0 / 6, 3.0 / 6};
  for (size_t a = 0; a < 3; ++a) {
    double want = p[a];
    for (size_t b = 0; b < 3; ++b) {
      if (b != a) want += p[b] * p[a] / (1 - p[b]);
    }
    // Five standard deviations.
    EXPECT_NEAR(drawn[a] / kBatches, want,
                5 * std::sqrt(want * (1 - want) / kBatches));
  }
  EXPECT_EQ(drawn[3], 0);
}

TEST(ReplayBufferEnsembleTest, StackedBatchesHaveADimensionForMembers) {
  auto ensemble = Make(
      {.members = MembersWith({1, 1, 1}), .batch_size = 12, .stacked = true});
  TensorDict batch;
  for (int i = 0; i < 3; ++i) {
    RILL_ASSERT_OK(ensemble->SampleInto(&batch));
    EXPECT_EQ(batch.batch_shape(), Shape({3, 4}));
    EXPECT_EQ(batch.Find("observation")->shape(), Shape({3, 4, 3}));
    EXPECT_THAT(CheckRows(batch, 3), Each(4));
  }
  RILL_EXPECT_OK(ensemble->UpdatePriorities(batch, {1.0f}));
  EXPECT_THAT(ensemble->Sample(10), IsInvalidArgument("multiple of 3"));
  EXPECT_THAT(ensemble->SetShares({1, 2, 1}), IsInvalidArgument("stacked"));
  auto some = Make({.members = MembersWith({1, 5, 1}),
                    .batch_size = 12,
                    .stacked = true,
                    .buffers_sampled = 2});
  RILL_ASSERT_OK_AND_ASSIGN(batch, some->Sample());
  EXPECT_EQ(batch.batch_shape(), Shape({2, 6}));
}

// --- What a batch is ---------------------------------------------------------

TEST(ReplayBufferEnsembleTest, PartsAreTheMembersOwnSamples) {
  auto ensemble = Make({.members = MembersWith({3, 1}), .batch_size = 16});
  auto first = MakeMember(0);
  auto second = MakeMember(1);
  TensorDict batch;
  for (int i = 0; i < 4; ++i) {
    RILL_ASSERT_OK(ensemble->SampleInto(&batch));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict of_first, first->Sample(12));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict of_second, second->Sample(4));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want,
                              Cat({of_first, of_second}));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got,
                              batch.Exclude({"buffer_ids"}));
    RILL_EXPECT_OK(got.CheckEqual(want));
  }
}

TEST(ReplayBufferEnsembleTest, SampleIntoReusesTheTensors) {
  auto ensemble = Make({.members = MembersWith({1, 2}), .batch_size = 16});
  TensorDict batch;
  RILL_ASSERT_OK(ensemble->SampleInto(&batch));
  const std::byte* observation = batch.Find("observation")->raw_data();
  const std::byte* ids = batch.Find("buffer_ids")->raw_data();
  RILL_ASSERT_OK(ensemble->SampleInto(&batch));
  EXPECT_EQ(batch.Find("observation")->raw_data(), observation);
  EXPECT_EQ(batch.Find("buffer_ids")->raw_data(), ids);
  CheckRows(batch, 2);
  // But none that may not be written, as of a mapped file.
  std::vector<int64_t> mapped(16, 7);
  RILL_ASSERT_OK_AND_ASSIGN(
      const Tensor read_only,
      Tensor::View(Buffer::Wrap(mapped.data(), 16 * sizeof(int64_t),
                                Device::Cpu(), MemoryKind::kMappedFile, nullptr,
                                /*is_writable=*/false),
                   DType::kInt64, {16}, 0));
  RILL_ASSERT_OK(batch.Set("buffer_ids", read_only));
  RILL_ASSERT_OK(ensemble->SampleInto(&batch));
  EXPECT_THAT(mapped, Each(7));
  CheckRows(batch, 2);
}

// Slices of 8 rows in trajectories of 5: three of each slice only pad, or are
// not there.
TEST(ReplayBufferEnsembleTest, MembersMayHaveOtherNumbersOfRowsAndMasks) {
  for (const bool is_padded : {false, true}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        auto slices,
        MakeSliceSampler(
            {.length = 8, .is_strict = false, .is_padded = is_padded}));
    auto sliced = ReplayBuffer::Create(
        {.storage = MakeStorage(kRows), .sampler = std::move(slices)});
    RILL_ASSERT_OK(sliced);
    for (int64_t i = 0; i < 4; ++i) {
      RILL_ASSERT_OK((*sliced)->Extend(NumberedSteps(1, 5, 1000 + 5 * i)));
    }
    auto ensemble = Make(
        {.members = {{.buffer = MakeMember(0)}, {.buffer = *std::move(sliced)}},
         .batch_size = 32});
    TensorDict batch;
    for (int i = 0; i < 2; ++i) {
      RILL_ASSERT_OK(ensemble->SampleInto(&batch));
      EXPECT_THAT(CheckRows(batch, 2), ElementsAre(16, is_padded ? 16 : 10));
      EXPECT_EQ(batch.Contains("collector/mask"), is_padded);
      if (!is_padded) continue;
      const auto mask = Numbers<bool>(batch, "collector/mask");
      for (size_t row = 0; row < mask.size(); ++row) {
        EXPECT_EQ(mask[row], row < 16 || row % 8 < 5) << row;
      }
    }
  }
}

TEST(ReplayBufferEnsembleTest, MembersWithoutWeightsHaveOnes) {
  auto weighted = MakeMember(0, MakePrioritized());
  auto ensemble =
      Make({.members = {{.buffer = weighted}, {.buffer = MakeMember(1)}},
            .batch_size = 16});
  TensorDict batch;
  std::vector<float> priorities(16, 1.0f);
  for (int i = 0; i < 4; ++i) {
    RILL_ASSERT_OK(ensemble->SampleInto(&batch));
    const auto weights = Numbers<float>(batch, "priority_weight");
    ASSERT_EQ(weights.size(), 16u);
    for (size_t row = 8; row < 16; ++row) EXPECT_EQ(weights[row], 1.0f);
    // From the second batch on the weighted member's differ.
    if (i == 3) {
      EXPECT_LT(*std::min_element(weights.begin(), weights.begin() + 8), 1.0f);
    }
    for (size_t row = 0; row < 8; ++row) {
      priorities[row] = 1.0f + static_cast<float>(row);
    }
    RILL_ASSERT_OK(ensemble->UpdatePriorities(batch, priorities));
  }
}

TEST(ReplayBufferEnsembleTest, TransformsComeAfterTheMembersAndKeepOrigins) {
  const auto make = [](const char* name, float factor, bool drops) {
    auto transform = FunctionTransform::Create(
        {.name = name, .forward = [=](TensorDict* batch) -> absl::Status {
           RILL_ASSIGN_OR_RETURN(auto rewards,
                                 batch->Flat<float>("next/reward"));
           for (float& reward : rewards) reward = reward * factor + 1;
           if (!drops) return absl::OkStatus();
           RILL_ASSIGN_OR_RETURN(*batch, batch->Select({"next/reward"}));
           return absl::OkStatus();
         }});
    RILL_EXPECT_OK(transform);
    return *std::move(transform);
  };
  ReplayBuffer::Options options;
  options.transforms.push_back(make("member", 10, false));
  ReplayBufferEnsemble::Options all = {
      .members = {{.buffer =
                       MakeMember(0, MakeUniformSampler(), std::move(options))},
                  {.buffer = MakeMember(1)}},
      .batch_size = 8};
  all.transforms.push_back(make("ensemble", 2, true));
  auto ensemble = Make(std::move(all));
  TensorDict batch;
  for (int round = 0; round < 2; ++round) {
    RILL_ASSERT_OK(ensemble->SampleInto(&batch));
    EXPECT_FALSE(batch.Contains("action"));
    const auto rewards = Numbers<float>(batch, "next/reward");
    const auto index = Numbers<int64_t>(batch, "index");
    EXPECT_THAT(Numbers<int64_t>(batch, "buffer_ids"),
                ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
    for (size_t i = 0; i < 8; ++i) {
      const auto step = static_cast<float>(index[i]);
      EXPECT_EQ(rewards[i],
                i < 4 ? 2 * (10 * step + 1) + 1 : 2 * (1000 + step) + 1);
    }
  }
}

// The second transform wants the host.
TEST(ReplayBufferEnsembleTest, AChainThatCannotWorkIsRefused) {
  for (const bool is_known : {true, false}) {
    ReplayBuffer::Options options;
    options.storage = *DenseStorage::Create(
        {.capacity = kRows,
         .spec = is_known ? TensorDictSpec::Of(NumberedSteps(1, 1))
                          : TensorDictSpec()});
    options.sampler = MakeUniformSampler();
    const std::shared_ptr<ReplayBuffer> member =
        *ReplayBuffer::Create(std::move(options));
    EXPECT_EQ(member->SampleSpec()->Find("index") != nullptr, is_known);
    ReplayBufferEnsemble::Options all = {.members = {{.buffer = member}},
                                         .batch_size = 4};
    all.transforms.push_back(*ToDevice::Create(Device::Fake(0)));
    all.transforms.push_back(*FiniteTensorDictCheck::Create());
    const auto refused =
        IsInvalidArgument("transform 1 (FiniteTensorDictCheck)");
    auto ensemble = ReplayBufferEnsemble::Create(std::move(all));
    if (is_known) {
      EXPECT_THAT(ensemble, refused);
      continue;
    }
    RILL_ASSERT_OK(ensemble);
    RILL_ASSERT_OK(member->Extend(NumberedSteps(1, kRows)));
    EXPECT_THAT((*ensemble)->Sample(), refused);
  }
}

TEST(ReplayBufferEnsembleTest, MembersPrefetch) {
  ReplayBuffer::Options ahead;
  ahead.batch_size = 12;
  ahead.prefetch = 2;
  auto busy = MakeMember(0, MakeUniformSampler(), std::move(ahead));
  auto ensemble = Make({.members = {{.buffer = busy, .share = 0.75},
                                    {.buffer = MakeMember(1), .share = 0.25}},
                        .batch_size = 16});
  auto plain = Make({.members = MembersWith({0.75, 0.25}), .batch_size = 16});
  for (int i = 0; i < 5; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, ensemble->Sample());
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, plain->Sample());
    RILL_EXPECT_OK(batch.CheckEqual(want));
    EXPECT_EQ(busy->GetStats().batches_ahead, 2);
  }
}

// --- Priorities --------------------------------------------------------------

TEST(ReplayBufferEnsembleTest, PrioritiesGoToTheMemberOfTheirRow) {
  auto ensemble =
      Make({.members = {{.buffer = MakeMember(0, MakePrioritized())},
                        {.buffer = MakeMember(1, MakePrioritized())}},
            .batch_size = 8});
  TensorDict rows({4});
  RILL_ASSERT_OK(
      rows.Set("index_generation", *Tensor::Zeros(DType::kInt64, {4})));
  // Every row of both members loses its priority but one in each.
  for (int64_t slot = 0; slot < kRows; slot += 2) {
    RILL_ASSERT_OK(rows.Set(
        "index",
        *Tensor::From<int64_t>({slot, slot, slot + 1, slot + 1}, {4})));
    RILL_ASSERT_OK(
        rows.Set("buffer_ids", *Tensor::From<int64_t>({1, 0, 0, 1}, {4})));
    const auto one_at = [&](int64_t at) { return at == slot ? 1.0f : 0.0f; };
    RILL_ASSERT_OK(ensemble->UpdatePriorities(
        rows, {one_at(6), one_at(30), one_at(29), one_at(5)}));
  }
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, ensemble->Sample());
  EXPECT_THAT(Numbers<int64_t>(batch, "action"),
              ElementsAre(30, 30, 30, 30, 1006, 1006, 1006, 1006));
}

TEST(ReplayBufferEnsembleTest, PrioritiesThatDoNotFitReachNobody) {
  auto ensemble =
      Make({.members = {{.buffer = MakeMember(0, MakePrioritized())},
                        {.buffer = MakeMember(1, MakePrioritized())}},
            .batch_size = 8});
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, ensemble->Sample());
  const auto refused = [&](absl::string_view what) {
    const std::vector<float> zeros(8, 0.0f);
    EXPECT_THAT(ensemble->UpdatePriorities(batch, zeros),
                IsInvalidArgument(what));
  };
  EXPECT_THAT(ensemble->UpdatePriorities(batch, std::vector<float>(7)),
              IsInvalidArgument("7 priorities"));
  batch.Find("buffer_ids")->data<int64_t>()[7] = 2;
  refused("got 2, want [0, 2)");
  batch.Find("buffer_ids")->data<int64_t>()[7] = -1;
  refused("got -1");
  RILL_ASSERT_OK(batch.Set("buffer_ids", *Tensor::Zeros(DType::kInt32, {8})));
  refused("buffer_ids");
  RILL_ASSERT_OK(batch.Delete("buffer_ids"));
  EXPECT_THAT(ensemble->UpdatePriorities(batch, {1.0f}),
              IsNotFound("buffer_ids"));
  // All still weigh the same.
  RILL_ASSERT_OK_AND_ASSIGN(batch, ensemble->Sample());
  EXPECT_THAT(Numbers<float>(batch, "priority_weight"), Each(1.0f));
}

// --- Errors ------------------------------------------------------------------

TEST(ReplayBufferEnsembleTest, OptionsAreChecked) {
  const auto refused = [](ReplayBufferEnsemble::Options options,
                          absl::string_view what) {
    EXPECT_THAT(ReplayBufferEnsemble::Create(std::move(options)),
                IsInvalidArgument(what));
  };
  refused({}, "members: got 0");
  refused({.members = {{.buffer = MakeMember(0)}, {}}}, "members[1].buffer");
  refused({.members = MembersWith({1, -1})}, "member 1 \"m1\": got -1");
  refused({.members = MembersWith({0, 0})}, "0 > 0");
  refused({.members = MembersWith({1}), .batch_size = -1}, "batch_size");
  refused({.members = MembersWith({1}), .buffers_sampled = 2}, "[0, 1]");
  refused({.members = MembersWith({1, 0}), .buffers_sampled = 2}, "at least 2");
  refused({.members = MembersWith({1, 2}), .stacked = true}, "stacked");
  ReplayBufferEnsemble::Options options = {.members = MembersWith({1})};
  options.transforms.push_back(nullptr);
  refused(std::move(options), "transform 0");

  auto ensemble = Make({.members = MembersWith({1})});
  EXPECT_THAT(ensemble->Sample(), IsFailedPrecondition("batch_size"));
  EXPECT_THAT(ensemble->Sample(0), IsInvalidArgument());
  EXPECT_THAT(ensemble->Sample(INT64_MAX), IsInvalidArgument());
  EXPECT_THAT(ensemble->SampleInto(4, nullptr), IsInvalidArgument());
}

TEST(ReplayBufferEnsembleTest, TooFewRowsNameTheMemberAndLoseNothing) {
  auto empty = ReplayBuffer::Create(
      {.storage = MakeStorage(kRows), .sampler = MakeUniformSampler()});
  RILL_ASSERT_OK(empty);
  std::shared_ptr<ReplayBuffer> late = *std::move(empty);
  auto ensemble = Make({.members = {{.buffer = MakeMember(0), .share = 0.7},
                                    {.buffer = late, .share = 0.3, .name = "b"},
                                    {.buffer = MakeMember(2), .share = 0.3}},
                        .batch_size = 13});
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(ensemble->Sample(),
                StatusIs(kFailedPrecondition, AllOf(HasSubstr("member 1 \"b\""),
                                                    HasSubstr("3 of 13 items"),
                                                    HasSubstr("0 rows"))));
  }
  EXPECT_EQ(ensemble->GetStats().batches, 0);
  EXPECT_EQ(ensemble->member(0).batch_number(), 1u);
  RILL_ASSERT_OK(late->Extend(NumberedSteps(1, kRows, 1000)));
  // As if it had been there from the start.
  auto twin = Make({.members = MembersWith({0.7, 0.3, 0.3}), .batch_size = 13});
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, twin->Sample());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, ensemble->Sample());
  EXPECT_EQ(CheckRows(batch, 3), CheckRows(want, 3));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got, batch.Slice(0, 0, 7));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict first, want.Slice(0, 0, 7));
  RILL_EXPECT_OK(got.CheckEqual(first));
}

TEST(ReplayBufferEnsembleTest, WhatIsHeldGoesWithTheRowsOfAClearedMember) {
  auto empty = ReplayBuffer::Create(
      {.storage = MakeStorage(kRows), .sampler = MakeUniformSampler()});
  RILL_ASSERT_OK(empty);
  const std::shared_ptr<ReplayBuffer> late = *std::move(empty);
  auto ensemble =
      Make({.members = {{.buffer = MakeMember(0)}, {.buffer = late}},
            .batch_size = 8});
  EXPECT_THAT(ensemble->Sample(), IsFailedPrecondition());
  RILL_ASSERT_OK(late->Extend(NumberedSteps(1, kRows, 1000)));
  RILL_ASSERT_OK(ensemble->member(0).Clear());
  EXPECT_THAT(ensemble->Sample(), IsFailedPrecondition("member 0"));
  RILL_ASSERT_OK(ensemble->member(0).Extend(NumberedSteps(1, kRows, 5000)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, ensemble->Sample());
  const std::vector<int64_t> actions = Numbers<int64_t>(batch, "action");
  for (size_t i = 0; i < 4; ++i) EXPECT_GE(actions[i], 5000);
}

TEST(ReplayBufferEnsembleTest, OtherLeavesAreNamedWithTheirMembers) {
  auto odd = ReplayBuffer::Create(
      {.storage = MakeStorage(kRows), .sampler = MakeUniformSampler()});
  RILL_ASSERT_OK(odd);
  TensorDict steps = NumberedSteps(1, 10);
  RILL_ASSERT_OK(steps.Set("extra", *Tensor::Zeros(DType::kInt64, {1, 10})));
  RILL_ASSERT_OK((*odd)->Extend(steps));
  auto members = MembersWith({1, 1});
  members.push_back({.buffer = *std::move(odd), .name = "odd"});
  auto ensemble = Make({.members = std::move(members), .batch_size = 9});
  EXPECT_THAT(ensemble->Sample(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("member 0 \"m0\" and member 2 \"odd\""),
                             HasSubstr("extra"))));

  auto reserved = ReplayBuffer::Create(
      {.storage = MakeStorage(kRows), .sampler = MakeUniformSampler()});
  RILL_ASSERT_OK(reserved);
  steps = NumberedSteps(1, 10);
  RILL_ASSERT_OK(
      steps.Set("buffer_ids", *Tensor::Zeros(DType::kInt64, {1, 10})));
  RILL_ASSERT_OK((*reserved)->Extend(steps));
  ensemble =
      Make({.members = {{.buffer = *std::move(reserved)}}, .batch_size = 9});
  EXPECT_THAT(ensemble->Sample(), IsInvalidArgument("buffer_ids"));
}

// --- State and threads -------------------------------------------------------

TEST(ReplayBufferEnsembleTest, StateResumesTheSplitAndTheDraws) {
  for (const int64_t some : {0, 2}) {
    const auto make = [&](uint64_t seed) {
      return Make({.members = MembersWith({5, 2, 2}),
                   .batch_size = 10,
                   .buffers_sampled = some,
                   .seed = seed});
    };
    auto whole = make(9);
    RILL_ASSERT_OK(whole->SetShares({4, 3, 1}));
    for (int i = 0; i < 7; ++i) RILL_ASSERT_OK(whole->Sample());
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, whole->SaveState());
    auto resumed = make(1);
    RILL_ASSERT_OK(resumed->LoadState(state));
    for (int i = 0; i < 20; ++i) {
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, whole->Sample());
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got, resumed->Sample());
      EXPECT_EQ(CheckRows(got, 3), CheckRows(want, 3));
    }
    EXPECT_EQ(resumed->GetStats().items, whole->GetStats().items);
  }
}

TEST(ReplayBufferEnsembleTest, StatesOfOthersChangeNothing) {
  auto ensemble = Make({.members = MembersWith({5, 2}), .batch_size = 10});
  auto other = Make({.members = MembersWith({5, 2, 2}), .batch_size = 10});
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, other->SaveState());
  EXPECT_THAT(ensemble->LoadState(state), IsFailedPrecondition());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict own, ensemble->SaveState());
  for (const char* key : {"shares", "carry", "items", "batches_and_seed"}) {
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict damaged, own.Clone());
    RILL_ASSERT_OK(damaged.Delete(key));
    EXPECT_FALSE(ensemble->LoadState(damaged).ok()) << key;
    RILL_ASSERT_OK(damaged.Set(key, *Tensor::From<double>({NAN, 0}, {2})));
    EXPECT_THAT(ensemble->LoadState(damaged), IsFailedPrecondition()) << key;
  }
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict after, ensemble->SaveState());
  RILL_EXPECT_OK(after.CheckEqual(own));
}

TEST(ReplayBufferEnsembleTest, OptionsOfAStateAreComparedOrTakenOver) {
  const auto make = [](double share, double scale, bool stacked = false) {
    ReplayBufferEnsemble::Options options = {
        .members = MembersWith({1, 1}), .batch_size = 8, .stacked = stacked};
    options.members[1].share = share;
    options.transforms.push_back(*RewardScaling::Create({.scale = scale}));
    return Make(std::move(options));
  };
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, make(1, 2)->SaveState());
  EXPECT_EQ(state.GetNonTensor("options/transforms.0.scale")->json, R"("2")");
  RILL_EXPECT_OK(make(1, 2)->LoadState(state));
  EXPECT_THAT(make(3, 10)->LoadState(state),
              StatusIs(kFailedPrecondition,
                       AllOf(HasSubstr("members.1.share: got 1 in the "
                                       "directory, want 3"),
                             HasSubstr("transforms.0 (RewardScaling): scale: "
                                       "got 2 in the directory, want 10"))));
  EXPECT_THAT(make(1, 2, true)->LoadState(state),
              IsFailedPrecondition("stacked: got false"));
  std::vector<OptionChange> changes;
  auto other = make(3, 10);
  RILL_ASSERT_OK(other->LoadState(
      state, {.accept_options = true, .changed_options = &changes}));
  EXPECT_EQ(changes.size(), 2u);
  EXPECT_THAT(other->GetStats().shares, ElementsAre(0.25, 0.75));
  // Shares that were set while it ran are state.
  auto set = make(1, 2);
  RILL_ASSERT_OK(set->SetShares({1, 3}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict of_set, set->SaveState());
  auto same = make(1, 2);
  RILL_ASSERT_OK(same->LoadState(of_set));
  EXPECT_THAT(same->GetStats().shares, ElementsAre(0.25, 0.75));
  // One from before options were saved.
  TensorDict old = state;
  RILL_ASSERT_OK(old.Delete("options"));
  RILL_EXPECT_OK(make(3, 10)->LoadState(old));
}

TEST(ReplayBufferEnsembleTest, SamplersWritersAndLearnersGoSideBySide) {
  auto members = std::vector<ReplayBufferEnsemble::Member>{
      {.buffer = MakeMember(0, MakePrioritized())},
      {.buffer = MakeMember(1, MakePrioritized())}};
  auto ensemble = Make({.members = members, .batch_size = 8});
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&ensemble] {
      TensorDict batch;
      for (int i = 0; i < 40; ++i) {
        RILL_ASSERT_OK(ensemble->SampleInto(&batch));
        EXPECT_THAT(CheckRows(batch, 2), ElementsAre(4, 4));
        RILL_ASSERT_OK(ensemble->UpdatePriorities(batch, {0.5f}));
      }
    });
  }
  threads.emplace_back([&members] {
    for (int64_t i = 0; i < 40; ++i) {
      // The same numbers again in the same slots, half of them at a time: some
      // rows are always live.
      const int64_t half = kRows / 2;
      RILL_ASSERT_OK(members[i % 2].buffer->Extend(
          NumberedSteps(1, half, 1000 * (i % 2) + i / 2 % 2 * half)));
    }
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ensemble->GetStats().batches, 80);
  EXPECT_THAT(ensemble->GetStats().items, ElementsAre(320, 320));
}

}  // namespace
}  // namespace rill
