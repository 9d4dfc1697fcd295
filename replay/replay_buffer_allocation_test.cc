// SPDX-License-Identifier: Apache-2.0
// Steady-state sampling allocates nothing: counted at operator new, and at the
// place where tensors get their bytes.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/sample_units.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/sample_unit.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/testing/allocation_counter.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/actions/action_chunk.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/episodes/burn_in.h"
#include "rill/transforms/episodes/next_observation_delta.h"
#include "rill/transforms/function_transform.h"
#include "rill/transforms/images/cat_frames.h"
#include "rill/transforms/next_state_reconstructor.h"
#include "rill/transforms/reward_scaling.h"
#include "rill/transforms/structure/cat_tensors.h"
#include "rill/transforms/structure/device_cast.h"
#include "rill/transforms/structure/dtype_cast.h"
#include "rill/transforms/structure/expand_as.h"
#include "rill/transforms/structure/flatten_tensor_dict.h"
#include "rill/transforms/structure/remove_empty_specs.h"
#include "rill/transforms/structure/rename.h"
#include "rill/transforms/structure/row_shapes.h"
#include "rill/transforms/structure/select.h"
#include "rill/transforms/values/finite_tensor_dict_check.h"
#include "rill/transforms/values/hash.h"
#include "rill/transforms/values/value_clips.h"

namespace rill {
namespace {

// Allocations of 50 more samples into `batch`, which has been through some
// then.
int64_t AllocationsOfSteadySampling(ReplayBuffer& buffer, TensorDict* batch,
                                    int before = 2) {
  for (int i = 0; i < before; ++i) RILL_EXPECT_OK(buffer.SampleInto(batch));
  const AllocationCounter allocations;
  bool all_ok = true;
  for (int i = 0; i < 50; ++i) all_ok = buffer.SampleInto(batch).ok() && all_ok;
  const int64_t made = allocations.count();
  EXPECT_TRUE(all_ok);
  return made;
}

ReplayBuffer::Options OptionsOf() {
  return {.storage = MakeStorage(100),
          .sampler = MakeUniformSampler(),
          .batch_size = 64};
}

// A batch of a buffer of `options` that holds `steps`, of which no sample
// allocates once it has been through some.
TensorDict ExpectSteady(ReplayBuffer::Options options,
                        std::optional<bool> is_fused = std::nullopt,
                        const TensorDict& steps = NumberedSteps(1, 100),
                        int before = 2) {
  const auto buffer = *ReplayBuffer::Create(std::move(options));
  RILL_EXPECT_OK(buffer->Extend(steps));
  TensorDict batch;
  EXPECT_EQ(AllocationsOfSteadySampling(*buffer, &batch, before), 0);
  if (is_fused.has_value()) {
    EXPECT_EQ(buffer->GetStats().is_fused, *is_fused);
  }
  return batch;
}

TEST(ReplayBufferAllocationTest, SteadySamplingAllocatesNothing) {
  ExpectWholeSteps(ExpectSteady(OptionsOf()), /*lane_capacity=*/100);
}

TEST(ReplayBufferAllocationTest, SteadyPinnedSamplingAllocatesNothing) {
  ReplayBuffer::Options options = OptionsOf();
  options.pin_memory = true;
  options.pin_for = Device::Fake(0);
  ExpectWholeSteps(ExpectSteady(std::move(options)), /*lane_capacity=*/100);
}

TEST(ReplayBufferAllocationTest, TransformThatWorksInPlaceAllocatesNothing) {
  ReplayBuffer::Options options = OptionsOf();
  options.transforms.push_back(*RewardScaling::Create({.scale = 1}));
  ExpectWholeSteps(ExpectSteady(std::move(options)), /*lane_capacity=*/100);
}

absl::StatusOr<std::unique_ptr<Sampler>> SamplerOver(
    const TransitionsOptions& options) {
  RILL_ASSIGN_OR_RETURN(SampleUnit unit, MakeTransitions(options));
  return MakeUniformSamplerOver(std::move(unit));
}

// Keeps its chain out of the gather.
std::unique_ptr<BatchTransform> Nothing() {
  return *FunctionTransform::Create(
      {.forward = [](TensorDict*) { return absl::OkStatus(); }});
}

TEST(ReplayBufferAllocationTest, TransformsOverTheBatchAllocateNothingInPlace) {
  ReplayBuffer::Options options = OptionsOf();
  options.transforms.push_back(*RewardScaling::Create({.scale = 2}));
  options.transforms.push_back(
      *Clip::Create({.in_keys = {"observation"}, .low = 0, .high = 1}));
  options.transforms.push_back(Nothing());
  ExpectSteady(std::move(options), /*is_fused=*/false);
}

TEST(ReplayBufferAllocationTest, TransformsInTheGatherAllocateNothing) {
  ReplayBuffer::Options options = OptionsOf();
  options.transforms.push_back(*DTypeCast::Create({.dtype_in = DType::kInt64,
                                                   .dtype_out = DType::kFloat32,
                                                   .in_keys = {"action"}}));
  options.transforms.push_back(
      *Clip::Create({.in_keys = {"observation"}, .low = 0, .high = 1}));
  ExpectSteady(std::move(options), /*is_fused=*/true);
}

TEST(ReplayBufferAllocationTest, WideStacksInTheGatherAllocateNothing) {
  ReplayBuffer::Options options = OptionsOf();
  RILL_ASSERT_OK_AND_ASSIGN(options.sampler,
                            SamplerOver({.frames = StackFrames::Options{
                                             .num_frames = 4,
                                             .keys = {"pixels", "next/pixels"},
                                             .dim = -3,
                                             .new_dim = true}}));
  for (const char* key : {"pixels", "next/pixels"}) {
    options.transforms.push_back(
        *Clip::Create({.in_keys = {key}, .low = 0, .high = 1}));
  }
  TensorDict steps = NumberedSteps(1, 100);
  for (const char* key : {"pixels", "next/pixels"}) {
    RILL_ASSERT_OK(
        steps.Set(key, *Tensor::Zeros(DType::kUInt8, {1, 100, 64, 64})));
  }
  ExpectSteady(std::move(options), /*is_fused=*/true, steps);
}

TEST(ReplayBufferAllocationTest, CastsOverTheBatchAllocateNothing) {
  ReplayBuffer::Options options = OptionsOf();
  options.transforms.push_back(*DTypeCast::Create({.dtype_in = DType::kInt64,
                                                   .dtype_out = DType::kFloat32,
                                                   .in_keys = {"action"}}));
  options.transforms.push_back(Nothing());
  ExpectSteady(std::move(options), /*is_fused=*/false);
}

TEST(ReplayBufferAllocationTest, StacksInTheGatherAllocateNothing) {
  ReplayBuffer::Options options = OptionsOf();
  RILL_ASSERT_OK_AND_ASSIGN(
      options.sampler,
      SamplerOver({.frames = StackFrames::Options{.num_frames = 4,
                                                  .keys = {"observation"}}}));
  options.transforms.push_back(
      *Clip::Create({.in_keys = {"observation"}, .low = 0, .high = 1}));
  ExpectSteady(std::move(options), /*is_fused=*/true);
}

TEST(ReplayBufferAllocationTest, WindowsOfStepsAllocateNothing) {
  for (const bool is_fused : {false, true}) {
    ReplayBuffer::Options options = OptionsOf();
    RILL_ASSERT_OK_AND_ASSIGN(
        options.sampler,
        SamplerOver({.n_step = NStepReturns::Options{.num_steps = 3}}));
    if (is_fused) {
      options.transforms.push_back(
          *Clip::Create({.in_keys = {"observation"}, .low = 0, .high = 1}));
    }
    RILL_ASSERT_OK_AND_ASSIGN(auto buffer,
                              ReplayBuffer::Create(std::move(options)));
    // Ends of episodes: the rows behind a batch vary in number.
    for (int64_t i = 0; i < 10; ++i) {
      RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 10, 10 * i)));
    }
    // So does the most that was seen of them, for a while.
    TensorDict batch;
    EXPECT_EQ(AllocationsOfSteadySampling(*buffer, &batch, /*before=*/50), 0);
    EXPECT_EQ(buffer->GetStats().is_fused, is_fused);
  }
}

// Longer than a string holds without memory of its own.
constexpr char kLong[] = "a_name_of_more_than_15_letters";

// Transforms of whole batches that make or drop entries. Slices are in the
// order of time.
void ExpectSteadyWith(std::unique_ptr<BatchTransform> transform,
                      bool of_slices = false) {
  ReplayBuffer::Options options = OptionsOf();
  if (of_slices) {
    RILL_ASSERT_OK_AND_ASSIGN(
        options.sampler,
        MakeUniformSamplerOver(*MakeSlices({.slices = {.length = 4}})));
  }
  options.transforms.push_back(std::move(transform));
  options.transforms.push_back(Nothing());
  TensorDict steps = NumberedSteps(1, 100);
  RILL_ASSERT_OK(
      steps.Set("agents", *Tensor::Zeros(DType::kFloat32, {1, 100, 2, 3})));
  RILL_ASSERT_OK(
      steps.Set("count", *Cast(*steps.Find("action"), DType::kInt32)));
  for (const std::string& key :
       {std::string("twin"), std::string("next/observation"),
        absl::StrCat("next/", kLong), std::string("info/lives"),
        absl::StrCat("info/a_dictionary/", kLong)}) {
    RILL_ASSERT_OK(steps.Set(key, *steps.Find("observation")));
  }
  ExpectSteady(std::move(options), /*is_fused=*/false, steps, /*before=*/4);
}

TEST(ReplayBufferAllocationTest, JoinedLeavesAllocateNothing) {
  for (const bool del_keys : {true, false}) {
    ExpectSteadyWith(
        *CatTensors::Create({.in_keys = {"next/reward", "observation"},
                             .out_key = "joined",
                             .del_keys = del_keys}));
  }
  ExpectSteadyWith(*StackTensors::Create(
      {.in_keys = {"observation", "twin"}, .out_key = "two"}));
}

TEST(ReplayBufferAllocationTest, ExpandedLeavesAllocateNothing) {
  for (const char* out_key : {"", "next/rewards"}) {
    ExpectSteadyWith(*ExpandAs::Create(
        {.in_key = "next/reward", .ref_key = "agents", .out_key = out_key}));
  }
}

TEST(ReplayBufferAllocationTest, StackedFramesOfABatchAllocateNothing) {
  for (const char* out_key : {"observation", "stack"}) {
    ExpectSteadyWith(*CatFrames::Create({.num_frames = 3,
                                         .in_keys = {"observation"},
                                         .out_keys = {out_key}}),
                     /*of_slices=*/true);
  }
}

TEST(ReplayBufferAllocationTest, ChunksOfActionsAllocateNothing) {
  // The default key lies in a dictionary that rows lack.
  for (const char* key : {"vla_action/chunk", "chunk", "next/action/chunk"}) {
    ExpectSteadyWith(*ActionChunk::Create({.chunk_size = 4, .chunk_key = key}),
                     /*of_slices=*/true);
  }
}

TEST(ReplayBufferAllocationTest, MarksOfBurnInAllocateNothing) {
  ExpectSteadyWith(*BurnIn::Create({.burn_in = 4}));
}

TEST(ReplayBufferAllocationTest, LeavesWithLongNamesAllocateNothing) {
  for (const std::string& key :
       {std::string(kLong), "next/other_" + std::string(kLong),
        absl::StrCat(kLong, "/", kLong)}) {
    ExpectSteadyWith(
        *ActionChunk::Create(
            {.chunk_size = 4, .chunk_key = key, .pad_key = key + "_pad"}),
        /*of_slices=*/true);
    ExpectSteadyWith(
        *Hash::Create({.in_keys = {"observation"}, .out_keys = {key}}));
    ExpectSteadyWith(*CatTensors::Create(
        {.in_keys = {"twin", absl::StrCat("next/", kLong)}, .out_key = key}));
  }
}

TEST(ReplayBufferAllocationTest, EntriesThatAreDroppedAllocateNothing) {
  for (const char* key : {"twin", "info", "info/a_dictionary", "next"}) {
    ExpectSteadyWith(*Exclude::Create({.excluded_keys = {key}}));
    ExpectSteadyWith(*Select::Create({.selected_keys = {"action", key}}));
  }
  ExpectSteadyWith(*RemoveEmptySpecs::Create());
}

TEST(ReplayBufferAllocationTest, EntriesThatAreRenamedAllocateNothing) {
  for (const char* from : {"twin", "info", "info/a_dictionary"}) {
    for (const std::string to : {"other", kLong, "next/other"}) {
      SCOPED_TRACE(std::string(from) + " " + to);
      ExpectSteadyWith(*Rename::Create({.in_keys = {from}, .out_keys = {to}}));
    }
  }
  for (const char* from : {"twin", "info", "info/a_dictionary", "next"}) {
    for (const char* to : {"other", kLong, "new/other"}) {
      SCOPED_TRACE(std::string(from) + " copied to " + to);
      ExpectSteadyWith(*Rename::Create(
          {.in_keys = {from}, .out_keys = {to}, .create_copy = true}));
    }
  }
}

TEST(ReplayBufferAllocationTest, CastsOfAllLeavesAllocateNothing) {
  ExpectSteadyWith(*DTypeCast::Create(
      {.dtype_in = DType::kFloat32, .dtype_out = DType::kFloat64}));
}

TEST(ReplayBufferAllocationTest, PinnedBatchesAllocateNothing) {
  ExpectSteadyWith(*PinMemory::Create({.pin_for = Device::Fake(0)}));
}

TEST(ReplayBufferAllocationTest, OtherShapesAllocateNothing) {
  for (const char* out_key : {"agents", kLong}) {
    ExpectSteadyWith(*FlattenObservation::Create({.first_dim = -2,
                                                  .last_dim = -1,
                                                  .in_keys = {"agents"},
                                                  .out_keys = {out_key}}));
  }
  ExpectSteadyWith(*FlattenTensorDict::Create({.inverse = false}));
}

TEST(ReplayBufferAllocationTest, NextObservationsAndChecksAllocateNothing) {
  for (const char* key : {"observation", "twin"}) {
    ExpectSteadyWith(
        *NextStateReconstructor::Create({.keys = {key}, .traj_key = ""}),
        /*of_slices=*/true);
  }
  // Counts of a dtype that is cast.
  ExpectSteadyWith(*NextStateReconstructor::Create(
      {.traj_key = "", .step_count_key = "count"}));
  ExpectSteadyWith(*NextObservationDelta::Create({}));
  ExpectSteadyWith(*FiniteTensorDictCheck::Create());
}

TEST(ReplayBufferAllocationTest, SamplingBetweenWritesAllocatesNothing) {
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer, ReplayBuffer::Create(OptionsOf()));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 100)));
  const TensorDict more = NumberedSteps(1, 7, 100);
  TensorDict batch;
  RILL_ASSERT_OK(buffer->SampleInto(&batch));
  RILL_ASSERT_OK(buffer->SampleInto(&batch));
  RILL_ASSERT_OK(buffer->Extend(more));
  const AllocationCounter allocations;
  RILL_EXPECT_OK(buffer->SampleInto(&batch));
  EXPECT_EQ(allocations.count(), 0);
}

}  // namespace
}  // namespace rill
