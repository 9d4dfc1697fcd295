// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/sources/transformed_source.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/multi_sync_collector.h"
#include "rill/collectors/sync_collector.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/collectors/workers/worker.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/testing/counting_env.h"
#include "rill/envs/testing/faulty_env.h"
#include "rill/flow/conformance/source_conformance.h"
#include "rill/flow/sink.h"
#include "rill/flow/source.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"
#include "rill/transforms/function_transform.h"
#include "rill/transforms/reward_scaling.h"
#include "rill/transforms/testing/fake_row_counter.h"

namespace rill {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<SyncCollector> CartPoles() {
  SyncCollector::Options options;
  options.producer = 0;
  options.env = *MakeCartPole({.lanes = 2});
  options.frames_per_batch = 20;
  options.seed = 3;
  return *SyncCollector::Create(std::move(options));
}

// Numbers the rows: it sees each batch once, in order.
std::unique_ptr<TransformedSource> Numbered(std::unique_ptr<Source> source) {
  TransformedSource::Options options = {.source = std::move(source)};
  options.transforms.push_back(*RewardScaling::Create({.scale = 0.5}));
  options.transforms.push_back(MakeFakeRowCounter());
  return *TransformedSource::Create(std::move(options));
}

TEST(TransformedSourceTest, Example) {
  std::unique_ptr<Source> collector = CartPoles();
  TransformedSource::Options options = {.source = std::move(collector)};
  RILL_ASSERT_OK_AND_ASSIGN(options.transforms.emplace_back(),
                            RewardScaling::Create({.scale = 0.1}));
  RILL_ASSERT_OK_AND_ASSIGN(auto scaled,
                            TransformedSource::Create(std::move(options)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, scaled->Next());
  EXPECT_THAT(*batch.Flat<float>("next/reward"), Each(0.1f));
}

TEST(TransformedSourceTest, BatchesAreTransformedInOrderAndElseTheSources) {
  const auto plain = CartPoles();
  const auto source = Numbered(CartPoles());
  for (int i = 0; i < 3; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, plain->Next());
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict got, source->Next());
    EXPECT_THAT(*got.Flat<float>("next/reward"), Each(0.5f));
    EXPECT_EQ((*got.Flat<int64_t>("row_number"))[0], i * 20);
    RILL_ASSERT_OK(got.Delete("row_number"));
    RILL_ASSERT_OK(got.Set("next/reward", *want.Get("next/reward")));
    EXPECT_THAT(got, BitEqualTo(want));
  }
}

// A refused batch is transformed from the state before it, and the source's
// bytes are as they were.
TEST(TransformedSourceTest, ARefusedBatchIsTransformedAnew) {
  const auto source = Numbered(CartPoles());
  std::vector<int64_t> first_rows;
  bool is_full = true;
  FunctionSink sink([&](const TensorDict& batch, const WriteInfo& /*info*/) {
    EXPECT_THAT(*batch.Flat<float>("next/reward"), Each(0.5f));
    first_rows.push_back((*batch.Flat<int64_t>("row_number"))[0]);
    return is_full ? absl::ResourceExhaustedError("full") : absl::OkStatus();
  });
  EXPECT_FALSE(source->CollectInto(sink).ok());
  EXPECT_FALSE(source->CollectInto(sink).ok());
  is_full = false;
  RILL_ASSERT_OK(source->CollectInto(sink));
  RILL_ASSERT_OK(source->CollectInto(sink));
  EXPECT_THAT(first_rows, ElementsAre(0, 0, 0, 20));
}

TEST(TransformedSourceTest, NumbersLanesAndCutsAreTheSources) {
  SyncCollector::Options collector;
  collector.producer = 0;
  collector.env = std::make_unique<FaultyEnv>(
      *MakeCountingEnv({.lanes = 2}), FaultyEnv::Options{.fail_step = 5});
  collector.frames_per_batch = 8;
  collector.producer = 5;
  collector.first_lane = 3;
  const auto source = Numbered(*SyncCollector::Create(std::move(collector)));
  std::vector<int64_t> numbers;
  std::vector<LaneRange> cuts;
  FunctionSink sink(
      [&](const TensorDict& /*batch*/, const WriteInfo& info) {
        EXPECT_EQ(info.producer, 5);
        EXPECT_EQ(info.first_lane, 3);
        numbers.push_back(info.sequence);
        return absl::OkStatus();
      },
      [&](int64_t producer, LaneRange lanes) {
        EXPECT_EQ(producer, 5);
        cuts.push_back(lanes);
        return absl::OkStatus();
      });
  RILL_ASSERT_OK(source->CollectInto(sink));
  EXPECT_FALSE(source->CollectInto(sink).ok());
  RILL_ASSERT_OK(source->CollectInto(sink));
  EXPECT_THAT(numbers, ElementsAre(1, 2));
  EXPECT_THAT(cuts, ElementsAre(LaneRange{.first = 3, .count = 2}));
}

// A batch that a transform refuses is one that the sink refuses.
TEST(TransformedSourceTest, WhatATransformRefusesComesAgain) {
  int calls = 0;
  TransformedSource::Options options = {.source = CartPoles()};
  options.transforms.push_back(*FunctionTransform::Create(
      {.forward = [&calls](TensorDict* /*batch*/) -> absl::Status {
        if (++calls == 1) return absl::DataLossError("once");
        return absl::OkStatus();
      }}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto source,
                            TransformedSource::Create(std::move(options)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, CartPoles()->Next());
  FunctionSink sink([&](const TensorDict& batch, const WriteInfo& info) {
    EXPECT_THAT(batch, BitEqualTo(want));
    EXPECT_EQ(info.sequence, 1);
    return absl::OkStatus();
  });
  EXPECT_THAT(source->CollectInto(sink),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("once")));
  RILL_ASSERT_OK(source->CollectInto(sink));
}

TEST(TransformedSourceTest, CreateNamesWhatDoesNotFit) {
  EXPECT_THAT(TransformedSource::Create({}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("source: got null")));
  TransformedSource::Options options = {.source = CartPoles()};
  options.transforms.push_back(*RewardScaling::Create({.key = "score"}));
  EXPECT_THAT(TransformedSource::Create(std::move(options)),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("score")));
}

TEST(TransformedSourceTest, AStateOfOtherTransformsIsRefused) {
  const auto numbered = Numbered(CartPoles());
  RILL_ASSERT_OK_AND_ASSIGN(const auto plain,
                            TransformedSource::Create({.source = CartPoles()}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, plain->SaveState());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict before, numbered->SaveState());
  EXPECT_THAT(numbered->LoadState(state),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(numbered->SaveState(), IsOkAndHolds(BitEqualTo(before)));
}

absl::StatusOr<std::unique_ptr<Source>> MakeOverOneThread() {
  return Numbered(CartPoles());
}
absl::StatusOr<std::unique_ptr<Source>> MakeOverWorkers() {
  MultiCollectorOptions options;
  options.producer = 0;
  options.workers = 2;
  options.worker = [](const WorkerContext&) -> absl::StatusOr<WorkerParts> {
    WorkerParts parts;
    RILL_ASSIGN_OR_RETURN(parts.env, MakeCartPole({.lanes = 2}));
    return parts;
  };
  options.frames_per_batch = 40;
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<Source> source,
                        MultiSyncCollector::Create(options));
  return Numbered(std::move(source));
}

INSTANTIATE_TEST_SUITE_P(TransformedSource, SourceConformanceTest,
                         ::testing::Values(MakeOverOneThread, MakeOverWorkers));

}  // namespace
}  // namespace rill
