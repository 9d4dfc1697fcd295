// SPDX-License-Identifier: Apache-2.0
// Samples whose transforms are a part of the gather are those of transforms
// that run over the whole batch, bit for bit.
#include "rill/replay/sampling/fused_gather.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/sample_units.h"
#include "rill/replay/sampling/testing/gather_chains.h"
#include "rill/samplers/sample_unit.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/specs/spec.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/ensemble/ensemble_storage.h"
#include "rill/storage/list/list_storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/compose.h"
#include "rill/transforms/rows/row_steps.h"
#include "rill/transforms/structure/dtype_cast.h"
#include "rill/transforms/structure/select.h"
#include "rill/transforms/values/unary.h"

namespace rill {
namespace {

using ::testing::HasSubstr;
std::unique_ptr<ReplayBuffer> MakeBuffer(
    std::shared_ptr<Storage> storage, Transforms transforms,
    std::unique_ptr<Sampler> sampler = MakeUniformSampler()) {
  auto buffer = ReplayBuffer::Create({.storage = std::move(storage),
                                      .sampler = std::move(sampler),
                                      .transforms = std::move(transforms),
                                      .batch_size = 40,
                                      .seed = 4});
  RILL_EXPECT_OK(buffer);
  return buffer.ok() ? *std::move(buffer) : nullptr;
}

std::vector<std::shared_ptr<Storage>> FilledStorages(
    const TensorDictSpec& spec = RowSpec()) {
  std::vector<std::unique_ptr<Storage>> members;
  for (int i = 0; i < 2; ++i) {
    members.push_back(*DenseStorage::Create({.capacity = 50}));
  }
  std::vector<std::shared_ptr<Storage>> storages;
  storages.push_back(*DenseStorage::Create({.capacity = 100}));
  storages.push_back(*ListStorage::Create({.capacity = 100}));
  storages.push_back(*EnsembleStorage::Create(std::move(members)));
  for (const auto& storage : storages) {
    const int64_t lanes = storage->lanes().count;
    RILL_EXPECT_OK(storage->Extend(
        *spec.Random({lanes, 100 / lanes}, Rng(3, RngStream::kUser), 0)));
  }
  return storages;
}

// A fused chain's sample equals that of the same chain over the whole batch.
void ExpectSameFused(const std::function<Transforms()>& chain,
                     const TensorDictSpec& spec = RowSpec()) {
  for (const auto& storage : FilledStorages(spec)) {
    Transforms apart = chain();
    apart.push_back(Nothing());
    auto a = MakeBuffer(storage, chain());
    auto b = MakeBuffer(storage, std::move(apart));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got, a->Sample());
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, b->Sample());
    EXPECT_TRUE(a->GetStats().is_fused);
    EXPECT_FALSE(b->GetStats().is_fused);
    RILL_EXPECT_OK(got.CheckEqual(want));
  }
}

TEST(FusedGatherTest, RandomChainsMakeTheSamplesOfTransformsOneByOne) {
  const std::vector<std::shared_ptr<Storage>> storages = FilledStorages();
  int64_t steps = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Draws draws(seed), again(seed);
    Transforms fused = RandomChain(12, &draws, RowSpec());
    Transforms apart = RandomChain(12, &again, RowSpec());
    steps += static_cast<int64_t>(fused.size());
    if (fused.empty()) continue;
    apart.push_back(Nothing());
    const auto& storage = storages[seed % storages.size()];
    auto a = MakeBuffer(storage, std::move(fused));
    auto b = MakeBuffer(storage, std::move(apart));
    EXPECT_TRUE(a->GetStats().is_fused);
    EXPECT_FALSE(b->GetStats().is_fused);
    TensorDict got, want;
    for (int batch = 0; batch < 3; ++batch) {
      RILL_ASSERT_OK(a->SampleInto(&got));
      RILL_ASSERT_OK(b->SampleInto(&want));
      RILL_ASSERT_OK(got.CheckEqual(want)) << "seed " << seed;
    }
  }
  EXPECT_GT(steps, 120);  // The chains are chains.
}

std::vector<std::function<absl::StatusOr<SampleUnit>()>> UnitsWith(
    const StackFrames::Options& frames) {
  return {
      [=] { return MakeTransitions({.frames = frames}); },
      [=] {
        return MakeTransitions({.n_step = NStepReturns::Options{.num_steps = 3},
                                .frames = frames});
      },
      [=] {
        return MakeSlices(
            {.slices = {.length = 5, .is_strict = false}, .frames = frames});
      }};
}

// A unit's samples through a chain are those of both one by one.
void ExpectSameOfUnit(
    const std::shared_ptr<Storage>& storage,
    const std::function<absl::StatusOr<SampleUnit>()>& make_unit,
    const std::vector<std::pair<RowStep, std::string>>& steps) {
  std::vector<TensorDict> batches;
  for (const bool is_fused : {true, false}) {
    RILL_ASSERT_OK_AND_ASSIGN(SampleUnit unit, make_unit());
    Transforms chain;
    for (const auto& [step, key] : steps) {
      chain.push_back(std::make_unique<OneStep>(step, key, key));
    }
    if (!is_fused) chain.push_back(Nothing());
    RILL_ASSERT_OK_AND_ASSIGN(auto sampler,
                              MakeUniformSamplerOver(std::move(unit)));
    auto buffer = MakeBuffer(storage, std::move(chain), std::move(sampler));
    RILL_ASSERT_OK(buffer->Sample().status());
    EXPECT_EQ(buffer->GetStats().is_fused, is_fused);
    RILL_ASSERT_OK_AND_ASSIGN(batches.emplace_back(), buffer->Sample());
  }
  RILL_EXPECT_OK(batches[0].CheckEqual(batches[1]));
}

// A unit's rows go through the chain a few draws at a time.
TEST(FusedGatherTest, UnitsAndChainsMakeTheSamplesOfBothOneByOne) {
  using Kind = RowStep::Kind;
  for (const auto& unit : UnitsWith({.num_frames = 4,
                          .keys = {"pixels", "next/pixels"},
                          .dim = -4,
                          .new_dim = true})) {
    ExpectSameOfUnit(FilledStorages()[0], unit,
                     {{{.kind = Kind::kChannelsFirst}, "pixels"},
                      {{.kind = Kind::kUnitInterval}, "pixels"},
                      {{.kind = Kind::kChannelsFirst}, "next/pixels"},
                      {{.kind = Kind::kUnitInterval}, "next/pixels"},
                      {{.scale = {2}}, "next/reward"}});
  }
}

TensorDictSpec WideSpec() {
  TensorDictSpec spec = RowSpec();
  for (const char* key : {"pixels", "next/pixels"}) {
    RILL_EXPECT_OK(spec.Set(key, LeafSpec::Unbounded(DType::kUInt8, {64, 65})));
  }
  return spec;
}

// Frames that are wide are mapped where they lie, into their places in stacks.
TEST(FusedGatherTest, StacksOfWideFramesAreThoseOfUnitAndChainOneByOne) {
  using Kind = RowStep::Kind;
  StackFrames::Options frames = {.num_frames = 4,
                                 .keys = {"next/pixels", "pixels"},
                                 .dim = -3,
                                 .new_dim = true};
  const std::vector<std::pair<RowStep, std::string>> unit_interval = {
      {{.kind = Kind::kUnitInterval}, "pixels"},
      {{.kind = Kind::kUnitInterval}, "next/pixels"},
      {{.scale = {2}}, "next/pixels"},
      {{.scale = {2}}, "next/reward"}};
  const std::vector<std::pair<RowStep, std::string>> crop = {
      {{.kind = Kind::kCrop, .height = 50, .width = 60}, "pixels"},
      {{.kind = Kind::kUnitInterval}, "next/pixels"}};
  const auto storages = FilledStorages(WideSpec());
  for (const auto& unit : UnitsWith(frames)) {
    for (const auto& storage : storages) {
      ExpectSameOfUnit(storage, unit, unit_interval);
    }
    ExpectSameOfUnit(storages[0], unit, crop);
  }
  frames.keys = {"next/pixels"};
  for (const auto& unit : UnitsWith(frames)) {
    ExpectSameOfUnit(storages[0], unit, {unit_interval[1], unit_interval[3]});
  }
  // Stacks that are not their frames one behind the other.
  frames.padding = StackFrames::Padding::kConstant;
  ExpectSameOfUnit(storages[0], UnitsWith(frames)[0],
                   {unit_interval[1], unit_interval[3]});
  frames.padding = StackFrames::Padding::kSame;
  frames.dim = -2;
  ExpectSameOfUnit(storages[0], UnitsWith(frames)[0],
                   {unit_interval[1], unit_interval[3]});
}

TEST(FusedGatherTest, WideRowsAreThoseOfTransformsOneByOne) {
  using Kind = RowStep::Kind;
  ExpectSameFused(
      [] {
        Transforms chain;
        chain.push_back(std::make_unique<OneStep>(
            RowStep{.kind = Kind::kUnitInterval}, "pixels", "made/a"));
        chain.push_back(std::make_unique<OneStep>(
            RowStep{.kind = Kind::kCrop, .height = 50, .width = 60},
            "next/pixels", "next/pixels"));
        chain.push_back(std::make_unique<OneStep>(
            RowStep{.scale = {2}}, "observation", "observation"));
        return chain;
      },
      WideSpec());
}

TEST(FusedGatherTest, ATransformThatIsInsertedIsPartOfTheNextBatch) {
  const auto storage = FilledStorages()[0];
  Transforms one;
  one.push_back(std::make_unique<OneStep>(RowStep{.scale = {2}}, "next/reward",
                                          "next/reward"));
  auto buffer = MakeBuffer(storage, std::move(one));
  RILL_ASSERT_OK(buffer->Sample());
  RILL_ASSERT_OK(buffer->InsertTransform(
      0, std::make_unique<OneStep>(RowStep{.kind = RowStep::Kind::kClip},
                                   "next/reward", "next/reward")));
  EXPECT_TRUE(buffer->GetStats().is_fused);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
  RILL_ASSERT_OK_AND_ASSIGN(const auto rewards,
                            batch.Flat<float>("next/reward"));
  for (const float reward : rewards) EXPECT_EQ(reward, 0);
  RILL_ASSERT_OK(buffer->AppendTransform(Nothing()));
  EXPECT_FALSE(buffer->GetStats().is_fused);
  RILL_ASSERT_OK(buffer->Sample());
}

TEST(FusedGatherTest, OneLeafGoesIntoSeveral) {
  ExpectSameFused([] {
    Transforms chain;
    for (const char* out : {"made/a", "made/b"}) {
      chain.push_back(
          std::make_unique<OneStep>(RowStep{.scale = {2}}, "observation", out));
    }
    return chain;
  });
}

TEST(FusedGatherTest, ACastOfAllLeavesIsAPart) {
  ExpectSameFused([] {
    Transforms chain;
    chain.push_back(*DoubleToFloat::Create({}));
    return chain;
  });
}

TEST(FusedGatherTest, StoredWeightsAreLeavesLikeOthers) {
  TensorDictSpec spec = RowSpec();
  RILL_ASSERT_OK(
      spec.Set("priority_weight", LeafSpec::Unbounded(DType::kFloat32, {})));
  ExpectSameFused(
      [] {
        Transforms chain;
        chain.push_back(std::make_unique<OneStep>(
            RowStep{.scale = {2}}, "observation", "observation"));
        return chain;
      },
      spec);
}

// The buffer learns what the rows hold from the insertion.
TEST(FusedGatherTest, StoredWeightsThatAnInsertedTransformDropsStayAway) {
  std::shared_ptr<Storage> storage = *DenseStorage::Create({.capacity = 100});
  auto buffer = MakeBuffer(storage, {});
  TensorDictSpec spec = RowSpec();
  RILL_ASSERT_OK(
      spec.Set("priority_weight", LeafSpec::Unbounded(DType::kFloat32, {})));
  RILL_ASSERT_OK(
      buffer->Extend(*spec.Random({1, 100}, Rng(3, RngStream::kUser), 0)));
  RILL_ASSERT_OK(buffer->AppendTransform(
      *Exclude::Create({.excluded_keys = {"priority_weight"}})));
  RILL_ASSERT_OK(buffer->AppendTransform(Nothing()));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
  EXPECT_FALSE(buffer->GetStats().is_fused);
  EXPECT_FALSE(batch.Contains("priority_weight"));
}

TEST(FusedGatherTest, MasksOfPaddedSlicesStay) {
  std::vector<TensorDict> batches;
  for (const bool is_fused : {true, false}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        SampleUnit unit,
        MakeSlices(
            {.slices = {.length = 5, .is_strict = false, .is_padded = true}}));
    RILL_ASSERT_OK_AND_ASSIGN(auto sampler,
                              MakeUniformSamplerOver(std::move(unit)));
    Transforms chain;
    chain.push_back(*Select::Create({.selected_keys = {"observation"}}));
    if (!is_fused) chain.push_back(Nothing());
    auto buffer =
        MakeBuffer(FilledStorages()[0], std::move(chain), std::move(sampler));
    RILL_ASSERT_OK_AND_ASSIGN(batches.emplace_back(), buffer->Sample());
    EXPECT_EQ(buffer->GetStats().is_fused, is_fused);
    EXPECT_TRUE(batches.back().Contains("collector/mask"));
  }
  RILL_EXPECT_OK(batches[0].CheckEqual(batches[1]));
}

TEST(FusedGatherTest, LeavesThatAreNotMappedMayLieAtAnyDistance) {
  Transforms chain;
  chain.push_back(std::make_unique<OneStep>(RowStep{.scale = {2}},
                                            "observation", "observation"));
  auto buffer = MakeBuffer(FilledStorages()[0], std::move(chain));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor frame,
                            Tensor::Zeros(DType::kInt32, {40, 3}));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor column, frame.Select(1, 1));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, buffer->Sample());
  RILL_ASSERT_OK(batch.Set("count", column));
  RILL_ASSERT_OK(buffer->SampleInto(&batch));
  EXPECT_EQ(batch.Find("count")->raw_data(), column.raw_data());
  EXPECT_FALSE(batch.Find("count")->is_contiguous());
}

TEST(FusedGatherTest, ChainsInsideChainsAreParts) {
  Transforms inner;
  inner.push_back(std::make_unique<OneStep>(
      RowStep{.kind = RowStep::Kind::kClip}, "next/reward", "next/reward"));
  Transforms outer;
  outer.push_back(*Compose::Create(std::move(inner)));
  auto buffer = MakeBuffer(FilledStorages()[0], std::move(outer));
  EXPECT_TRUE(buffer->GetStats().is_fused);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
  RILL_ASSERT_OK_AND_ASSIGN(const auto rewards,
                            batch.Flat<float>("next/reward"));
  for (const float reward : rewards) EXPECT_EQ(reward, 0);
}

TEST(FusedGatherTest, AnErrorNamesTheTransformAndItsPlace) {
  for (const bool is_fused : {true, false}) {
    Transforms inner, outer;
    inner.push_back(
        *Unary::Create({.in_keys = {"observation"},
                        .fn = [](const BoundLeaf&, const BoundLeaf&) {
                          return absl::InternalError("no");
                        }}));
    outer.push_back(std::make_unique<OneStep>(RowStep{.scale = {2}},
                                              "observation", "observation"));
    outer.push_back(*Compose::Create(std::move(inner)));
    if (!is_fused) outer.push_back(Nothing());
    auto buffer = MakeBuffer(FilledStorages()[0], std::move(outer));
    EXPECT_EQ(buffer->GetStats().is_fused, is_fused);
    EXPECT_THAT(buffer->Sample().status(),
                IsInternal("\"observation\": no; in transform 0 "
                           "(Unary) of Compose"));
    EXPECT_THAT(buffer->Sample().status().message(),
                HasSubstr("in transform 1 (Compose) of Compose"));
  }
}

TEST(FusedGatherTest, AChainThatCannotWorkIsRefusedWhenItIsMade) {
  Transforms bad;
  bad.push_back(std::make_unique<OneStep>(RowStep{}, "count", "count"));
  EXPECT_THAT(ReplayBuffer::Create({.storage = FilledStorages()[0],
                                    .sampler = MakeUniformSampler(),
                                    .transforms = std::move(bad),
                                    .batch_size = 4})
                  .status(),
              IsInvalidArgument("want float32 or float64"));
}

}  // namespace
}  // namespace rill
