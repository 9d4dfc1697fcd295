// SPDX-License-Identifier: Apache-2.0
// Transforms that are part of a gather on a device: samples are those of host
// memory, bit for bit.
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/device/testing/device_under_test.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/sample_units.h"
#include "rill/replay/sampling/testing/gather_chains.h"
#include "rill/samplers/sample_unit.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/specs/spec.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/storage_layout.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/images/resize.h"
#include "rill/transforms/images/to_tensor_image.h"
#include "rill/transforms/rows/row_step.h"
#include "rill/transforms/structure/dtype_cast.h"
#include "rill/transforms/structure/rename.h"
#include "rill/transforms/structure/select.h"

namespace rill {
namespace {

using Kind = RowStep::Kind;
using MakeUnit = std::function<absl::StatusOr<SampleUnit>()>;
using MakeChain = std::function<Transforms()>;

// 100 random steps in two lanes. A batch of 130 has more rows than that.
absl::StatusOr<std::unique_ptr<ReplayBuffer>> MakeBuffer(
    Device device, StorageLayout layout, const TensorDictSpec& spec,
    const MakeUnit& unit, Transforms transforms) {
  RILL_ASSIGN_OR_RETURN(
      auto storage,
      DenseStorage::Create(
          {.capacity = 100, .lanes = 2, .layout = layout, .device = device}));
  std::unique_ptr<Sampler> sampler = MakeUniformSampler();
  if (unit != nullptr) {
    RILL_ASSIGN_OR_RETURN(SampleUnit made, unit());
    RILL_ASSIGN_OR_RETURN(sampler, MakeUniformSamplerOver(std::move(made)));
  }
  RILL_ASSIGN_OR_RETURN(
      auto buffer, ReplayBuffer::Create({.storage = std::move(storage),
                                         .sampler = std::move(sampler),
                                         .transforms = std::move(transforms),
                                         .batch_size = 130,
                                         .seed = 4}));
  RILL_ASSIGN_OR_RETURN(const TensorDict rows,
                        spec.Random({2, 50}, Rng(3, RngStream::kUser), 0));
  RILL_RETURN_IF_ERROR(buffer->Extend(rows).status());
  return buffer;
}

// Samples of the chain on the device and in host memory; says whether the
// former was part of the gather.
void ExpectSame(const MakeChain& chain, const MakeUnit& unit, bool* is_fused,
                const TensorDictSpec& spec = RowSpec()) {
  for (const StorageLayout layout :
       {StorageLayout::kRows, StorageLayout::kColumns}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        auto there, MakeBuffer(DeviceUnderTest(), layout, spec, unit, chain()));
    RILL_ASSERT_OK_AND_ASSIGN(
        auto here, MakeBuffer(Device::Cpu(), layout, spec, unit, chain()));
    TensorDict got, want;
    for (int batch = 0; batch < 3; ++batch) {
      RILL_ASSERT_OK(there->SampleInto(&got));
      RILL_ASSERT_OK(here->SampleInto(&want));
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict host, got.To(Device::Cpu()));
      RILL_ASSERT_OK(host.CheckEqual(want));
    }
    *is_fused = there->GetStats().is_fused;
  }
}

std::unique_ptr<BatchTransform> Step(const RowStep& step, const char* key) {
  return std::make_unique<OneStep>(step, key, key);
}

TEST(FusedSamplesTest, RandomChainsMakeTheSamplesOfHostMemory) {
  int64_t steps = 0;
  int64_t num_fused = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const auto chain = [seed] {
      Draws draws(seed);
      return RandomChain(12, &draws, RowSpec());
    };
    if (chain().empty()) continue;
    steps += static_cast<int64_t>(chain().size());
    bool is_fused = false;
    ASSERT_NO_FATAL_FAILURE(ExpectSame(chain, nullptr, &is_fused))
        << "seed " << seed;
    num_fused += is_fused;
  }
  EXPECT_GT(steps, 100);
  EXPECT_GT(num_fused, 20);
}

// Frames that are joined are mapped on their way into their stacks, rows behind
// a window's end on theirs, and what the unit computes behind it.
TEST(FusedSamplesTest, UnitsAndChainsMakeTheSamplesOfHostMemory) {
  const StackFrames::Options frames = {.num_frames = 4,
                                       .keys = {"pixels", "next/pixels"},
                                       .dim = -4,
                                       .new_dim = true};
  const std::vector<MakeUnit> units = {
      [=] { return MakeTransitions({.frames = frames}); },
      [=] {
        return MakeTransitions({.n_step = NStepReturns::Options{.num_steps = 3},
                                .frames = frames});
      },
      [] {
        return MakeTransitions(
            {.n_step = NStepReturns::Options{.num_steps = 3}});
      },
      [] { return MakeSlices({.slices = {.length = 5, .is_strict = false}}); }};
  const auto chain = [] {
    Transforms chain;
    chain.push_back(Step({.kind = Kind::kUnitInterval}, "pixels"));
    chain.push_back(Step({.kind = Kind::kUnitInterval}, "next/pixels"));
    chain.push_back(Step({.scale = {2}}, "next/pixels"));
    chain.push_back(Step({.scale = {2}}, "next/reward"));
    chain.push_back(Step({.kind = Kind::kSign}, "next/reward"));
    chain.push_back(Step({.scale = {0.5}, .loc = {1}}, "observation"));
    return chain;
  };
  for (const MakeUnit& unit : units) {
    bool is_fused = false;
    ASSERT_NO_FATAL_FAILURE(ExpectSame(chain, unit, &is_fused));
    EXPECT_TRUE(is_fused);
  }
}

TEST(FusedSamplesTest, KernelsOfMapsGetGatheredRows) {
  bool is_fused = false;
  ASSERT_NO_FATAL_FAILURE(ExpectSame(
      [] {
        Transforms chain;
        chain.push_back(*ToTensorImage::Create({.in_keys = {"pixels"}}));
        chain.push_back(*Resize::Create({.w = 5, .h = 6}));
        chain.push_back(*DoubleToFloat::Create({}));
        chain.push_back(*Rename::Create(
            {.in_keys = {"info/a"}, .out_keys = {"made/info"}}));
        return chain;
      },
      nullptr, &is_fused));
  EXPECT_TRUE(is_fused);
}

// Maps that a gather cannot take run behind it, and say so.
TEST(FusedSamplesTest, WhatAUnitReadsOrMakesIsMappedBehindIt) {
  const auto n_step = [] {
    return MakeTransitions({.n_step = NStepReturns::Options{.num_steps = 3}});
  };
  bool is_fused = true;
  // Another dtype has no place in the unit's batch.
  ASSERT_NO_FATAL_FAILURE(ExpectSame(
      [] {
        Transforms chain;
        chain.push_back(Step({.kind = Kind::kCast, .dtype = DType::kFloat64},
                             "next/reward"));
        return chain;
      },
      n_step, &is_fused));
  EXPECT_FALSE(is_fused);
  // Nobody wants what the unit writes.
  ASSERT_NO_FATAL_FAILURE(ExpectSame(
      [] {
        Transforms chain;
        chain.push_back(*Exclude::Create({.excluded_keys = {"next/reward"}}));
        return chain;
      },
      n_step, &is_fused));
  EXPECT_FALSE(is_fused);
}

}  // namespace
}  // namespace rill
