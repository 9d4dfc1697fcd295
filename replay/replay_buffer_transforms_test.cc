// SPDX-License-Identifier: Apache-2.0
// A ReplayBuffer with transforms.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/compressed/compressed_storage.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/ensemble/ensemble_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensors/shape.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/function_transform.h"
#include "rill/transforms/reward_scaling.h"
#include "rill/transforms/testing/fake_row_counter.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

using Transforms = std::vector<std::unique_ptr<BatchTransform>>;

template <typename... Each>
Transforms Listed(Each... each) {
  Transforms transforms;
  (transforms.push_back(std::move(each)), ...);
  return transforms;
}

absl::StatusOr<std::unique_ptr<ReplayBuffer>> MakeBuffer(
    Transforms transforms) {
  return ReplayBuffer::Create({.storage = MakeStorage(10),
                               .sampler = MakeUniformSampler(),
                               .transforms = std::move(transforms),
                               .batch_size = 4});
}

std::unique_ptr<BatchTransform> OnRead(FunctionTransform::Function function) {
  return *FunctionTransform::Create({.forward = std::move(function)});
}

std::unique_ptr<BatchTransform> Recorder(std::string name,
                                         std::vector<std::string>* calls) {
  return *FunctionTransform::Create({.forward =
                                         [=](TensorDict*) {
                                           calls->push_back(name + ".forward");
                                           return absl::OkStatus();
                                         },
                                     .inverse =
                                         [=](TensorDict*) {
                                           calls->push_back(name + ".inverse");
                                           return absl::OkStatus();
                                         }});
}

// Writes actions as half their value, and reads them back twice as large.
std::unique_ptr<BatchTransform> HalfActions() {
  auto times = [](TensorDict* batch, bool up) -> absl::Status {
    RILL_ASSIGN_OR_RETURN(Tensor actions, batch->Get("action"));
    RILL_ASSIGN_OR_RETURN(actions, actions.Clone());
    RILL_ASSIGN_OR_RETURN(auto values, actions.Flat<int64_t>());
    for (int64_t& value : values) value = up ? value * 2 : value / 2;
    return batch->Set("action", actions);
  };
  return *FunctionTransform::Create(
      {.forward = [=](TensorDict* batch) { return times(batch, true); },
       .inverse = [=](TensorDict* batch) { return times(batch, false); }});
}

TEST(ReplayBufferTransformsTest, ForwardInOrderInverseInReverse) {
  std::vector<std::string> calls;
  RILL_ASSERT_OK_AND_ASSIGN(
      auto buffer,
      MakeBuffer(Listed(Recorder("a", &calls), Recorder("b", &calls))));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 4)));
  RILL_ASSERT_OK(buffer->Sample());
  EXPECT_THAT(calls,
              ElementsAre("b.inverse", "a.inverse", "a.forward", "b.forward"));
}

TEST(ReplayBufferTransformsTest, InverseChangesWhatIsStoredNotTheCallersBatch) {
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer, MakeBuffer(Listed(HalfActions())));
  const TensorDict steps = NumberedSteps(1, 4);
  RILL_ASSERT_OK(buffer->Extend(steps));
  RILL_EXPECT_OK(steps.CheckEqual(NumberedSteps(1, 4)));
  TensorDict stored;
  RILL_ASSERT_OK(buffer->storage().Read({0, 1, 2, 3}, &stored));
  EXPECT_THAT(stored.Flat<int64_t>("action"),
              IsOkAndHolds(ElementsAre(0, 0, 1, 1)));
}

TEST(ReplayBufferTransformsTest, ForwardChangesTheSampleNotWhatIsStored) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto buffer, MakeBuffer(Listed(*RewardScaling::Create({.scale = -1}))));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 4)));
  for (int i = 0; i < 3; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
    RILL_ASSERT_OK_AND_ASSIGN(auto rewards, batch.Flat<float>("next/reward"));
    RILL_ASSERT_OK_AND_ASSIGN(auto actions, batch.Flat<int64_t>("action"));
    for (size_t k = 0; k < actions.size(); ++k) {
      EXPECT_EQ(rewards[k], -static_cast<float>(actions[k]));
    }
  }
}

TEST(ReplayBufferTransformsTest, SampleIntoStartsFromTheStoredRowsEachTime) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto buffer,
      MakeBuffer(Listed(
          *RewardScaling::Create({.scale = -1}), OnRead([](TensorDict* batch) {
            // Two leaves over the same bytes.
            return batch->Set("next/score", *batch->Find("next/reward"));
          }))));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 4)));
  TensorDict batch;
  for (int i = 0; i < 3; ++i) {
    RILL_ASSERT_OK(buffer->SampleInto(&batch));
    RILL_ASSERT_OK_AND_ASSIGN(auto scores, batch.Flat<float>("next/score"));
    RILL_ASSERT_OK_AND_ASSIGN(auto actions, batch.Flat<int64_t>("action"));
    for (size_t k = 0; k < actions.size(); ++k) {
      EXPECT_EQ(scores[k], -static_cast<float>(actions[k]));
    }
  }
}

TEST(ReplayBufferTransformsTest, TheCallersTensorsAreFilledFromTheFirstOn) {
  auto buffer =
      *MakeBuffer(Listed(OnRead([](TensorDict*) { return absl::OkStatus(); }),
                         *RewardScaling::Create({.scale = 2})));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 10)));
  const Tensor callers = *Tensor::Zeros(DType::kFloat32, {4, 3});
  TensorDict batch({4});
  RILL_ASSERT_OK(batch.Set("observation", callers));
  for (int i = 0; i < 3; ++i) {
    RILL_ASSERT_OK(buffer->SampleInto(&batch));
    EXPECT_EQ(batch.Find("observation")->raw_data(), callers.raw_data());
  }
}

TEST(ReplayBufferTransformsTest, TransformsSeeWhereRowsLie) {
  std::vector<std::string> keys;
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer,
                            MakeBuffer(Listed(OnRead([&](TensorDict* batch) {
                              keys = batch->LeafKeys();
                              return absl::OkStatus();
                            }))));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 4)));
  RILL_ASSERT_OK(buffer->Sample());
  EXPECT_THAT(keys, IsSupersetOf({"index", "index_generation"}));
}

TEST(ReplayBufferTransformsTest, DroppedOriginsArePutBackWhereTheyStillFit) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto buffer, MakeBuffer(Listed(OnRead([](TensorDict* batch) {
        TensorDict fresh(batch->batch_shape());
        absl::Status status = fresh.Set("action", *batch->Find("action"));
        *batch = fresh;
        return status;
      }))));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 4)));
  TensorDict batch;
  for (int i = 0; i < 2; ++i) {
    RILL_ASSERT_OK(buffer->SampleInto(&batch));
    EXPECT_THAT(batch.LeafKeys(),
                ElementsAre("action", "index", "index_generation"));
    RILL_ASSERT_OK_AND_ASSIGN(auto index, batch.Flat<int64_t>("index"));
    RILL_ASSERT_OK_AND_ASSIGN(auto actions, batch.Flat<int64_t>("action"));
    EXPECT_EQ(index, actions);
  }
}

TEST(ReplayBufferTransformsTest, TransformMayChangeTheBatchShape) {
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer,
                            MakeBuffer(Listed(OnRead([](TensorDict* batch) {
                              auto square = batch->Reshape({2, 2});
                              if (square.ok()) *batch = *std::move(square);
                              return square.status();
                            }))));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 4)));
  TensorDict batch;
  for (int i = 0; i < 2; ++i) {
    RILL_ASSERT_OK(buffer->SampleInto(&batch));
    EXPECT_EQ(batch.batch_shape(), Shape({2, 2}));
    RILL_EXPECT_OK(
        buffer->UpdatePriorities(batch, std::vector<float>(4, 1.0f)));
  }
}

// Its blocks would be opened once for each part of a batch.
TEST(ReplayBufferTransformsTest, ChainsOverBlocksAreNotPartOfTheGather) {
  std::vector<std::unique_ptr<Storage>> members;
  members.push_back(*CompressedStorage::Create({.capacity = 10}));
  members.push_back(*DenseStorage::Create({.capacity = 10}));
  std::shared_ptr<Storage> both = *EnsembleStorage::Create(std::move(members));
  for (const auto& [storage, is_fused] :
       std::vector<std::pair<std::shared_ptr<Storage>, bool>>{
           {MakeStorage(10), true},
           {*CompressedStorage::Create({.capacity = 10}), false},
           {both, false}}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        auto buffer,
        ReplayBuffer::Create(
            {.storage = storage,
             .sampler = MakeUniformSampler(),
             .transforms = Listed(*RewardScaling::Create({.scale = 3})),
             .batch_size = 4}));
    RILL_ASSERT_OK(buffer->Extend(NumberedSteps(storage->lanes().count, 10)));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
    EXPECT_EQ(buffer->GetStats().is_fused, is_fused);
    EXPECT_EQ(batch.batch_shape(), Shape({4}));
  }
}

TEST(ReplayBufferTransformsTest, FailedTransformCostsNoOtherBatch) {
  int calls = 0;
  RILL_ASSERT_OK_AND_ASSIGN(
      auto buffer, MakeBuffer(Listed(OnRead([&](TensorDict*) {
        return ++calls == 2 ? absl::InternalError("broken") : absl::OkStatus();
      }))));
  RILL_ASSERT_OK_AND_ASSIGN(auto twin, MakeBuffer({}));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 4)));
  RILL_ASSERT_OK(twin->Extend(NumberedSteps(1, 4)));
  for (int i = 0; i < 4; ++i) {
    auto batch = buffer->Sample();
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, twin->Sample());
    if (i == 1) {
      EXPECT_THAT(batch, StatusIs(absl::StatusCode::kInternal,
                                  AllOf(HasSubstr("broken"),
                                        HasSubstr("FunctionTransform"))));
      continue;
    }
    RILL_ASSERT_OK(batch);
    RILL_EXPECT_OK(batch->CheckEqual(want));
  }
  EXPECT_EQ(calls, 4);
}

TEST(ReplayBufferTransformsTest, WhatAFailedBatchTaughtIsForgotten) {
  bool is_broken = false;
  RILL_ASSERT_OK_AND_ASSIGN(
      auto buffer,
      MakeBuffer(Listed(MakeFakeRowCounter(), OnRead([&](TensorDict*) {
                          return is_broken ? absl::InternalError("broken")
                                           : absl::OkStatus();
                        }))));
  RILL_ASSERT_OK_AND_ASSIGN(auto twin,
                            MakeBuffer(Listed(MakeFakeRowCounter())));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 1)));
  RILL_ASSERT_OK(twin->Extend(NumberedSteps(1, 1)));
  is_broken = true;
  EXPECT_THAT(buffer->Sample(), IsInternal());
  is_broken = false;
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, twin->Sample());
  RILL_EXPECT_OK(batch.CheckEqual(want));
}

TEST(ReplayBufferTransformsTest, FailedInverseWritesNothing) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto transform, FunctionTransform::Create({.inverse = [](TensorDict*) {
        return absl::InternalError("broken");
      }}));
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer,
                            MakeBuffer(Listed(std::move(transform))));
  EXPECT_THAT(buffer->Extend(NumberedSteps(1, 4)), IsInternal());
  EXPECT_EQ(buffer->size(), 0);
}

TEST(ReplayBufferTransformsTest, PipelineIsCheckedBeforeTheFirstRowIsWritten) {
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer,
                            MakeBuffer(Listed(*RewardScaling::Create(
                                {.scale = 2, .key = "next/score"}))));
  EXPECT_THAT(
      buffer->Extend(NumberedSteps(1, 4)),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("RewardScaling"), HasSubstr("next/score"))));
  EXPECT_EQ(buffer->size(), 0);
  EXPECT_TRUE(buffer->storage().spec().empty());

  auto storage = MakeStorage(10);
  RILL_ASSERT_OK(storage->Extend(NumberedSteps(1, 4)));
  EXPECT_THAT(ReplayBuffer::Create({.storage = storage,
                                    .sampler = MakeUniformSampler(),
                                    .transforms = Listed(*RewardScaling::Create(
                                        {.scale = 2, .key = "next/score"}))}),
              IsInvalidArgument("next/score"));
}

}  // namespace
}  // namespace rill
