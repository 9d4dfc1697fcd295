// SPDX-License-Identifier: Apache-2.0
// Buffers whose sampler has its priorities on a device, beside ones that have
// them on the host.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/device/current_stream.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/device_under_test.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/sample_units.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/transition_unit.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

constexpr int64_t kCapacity = 40;

using MakeUnit = SampleUnit (*)();

SampleUnit Rows() { return MakeTransitionUnit(); }
SampleUnit ThreeSteps() {
  return *MakeTransitions(
      {.n_step = NStepReturns::Options{.num_steps = 3, .gamma = 0.5}});
}
SampleUnit Slices() { return *MakeSlices({.slices = {.length = 2}}); }

ReplayBuffer::Options OptionsOf(MakeUnit unit, Device priorities,
                                std::shared_ptr<Storage> storage) {
  ReplayBuffer::Options options = {
      .storage = std::move(storage),
      .sampler = *MakePrioritizedSamplerOver(unit(), {.device = priorities}),
      .batch_size = 16,
      .seed = 3};
  if (!priorities.is_cpu()) options.device = priorities;
  return options;
}

std::unique_ptr<ReplayBuffer> Make(MakeUnit unit, Device priorities,
                                   Device rows = Device::Cpu()) {
  return *ReplayBuffer::Create(OptionsOf(
      unit, priorities,
      *DenseStorage::Create({.capacity = kCapacity, .device = rows})));
}

// One value a row, a function of slot and step.
std::vector<float> ErrorsOf(const TensorDict& batch, uint64_t step) {
  const auto slots = *batch.Find("index")->Flat<int64_t>();
  std::vector<float> errors;
  for (const int64_t slot : slots) {
    errors.push_back(4 *
                     Rng(9).UniformFloat(step, static_cast<uint32_t>(slot)));
  }
  return errors;
}

// A batch of both, with the same rows and weights; new priorities for them.
void SampleAndUpdate(ReplayBuffer& host, ReplayBuffer& device, uint64_t step) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, host.Sample());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict there, device.Sample());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got, there.To(Device::Cpu()));
  for (const char* key : {"index", "index_generation"}) {
    ASSERT_EQ(*got.Find(key)->Flat<int64_t>(),
              *want.Find(key)->Flat<int64_t>());
  }
  for (const char* key : {"priority_weight", "next/reward", "observation"}) {
    ASSERT_EQ(*got.Find(key)->Flat<float>(), *want.Find(key)->Flat<float>());
  }
  const std::vector<float> errors = ErrorsOf(want, step);
  const auto rows = static_cast<int64_t>(errors.size());
  RILL_ASSERT_OK(host.UpdatePriorities(want, errors));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor values, Tensor::From(errors, {rows}));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor on_device,
                            values.To(DeviceUnderTest()));
  RILL_ASSERT_OK(device.UpdatePriorities(there, on_device));
}

class DevicePrioritiesTest : public ::testing::TestWithParam<MakeUnit> {};

INSTANTIATE_TEST_SUITE_P(Units, DevicePrioritiesTest,
                         ::testing::Values(&Rows, &ThreeSteps, &Slices));

TEST_P(DevicePrioritiesTest, ARunIsTheHostsRun) {
  auto host = Make(GetParam(), Device::Cpu());
  auto device = Make(GetParam(), DeviceUnderTest());
  for (uint64_t step = 0; step < 12; ++step) {
    const TensorDict steps =
        NumberedSteps(1, 7, static_cast<int64_t>(7 * step));
    RILL_ASSERT_OK(host->Extend(steps).status());
    RILL_ASSERT_OK(device->Extend(steps).status());
    ASSERT_NO_FATAL_FAILURE(SampleAndUpdate(*host, *device, step));
  }
}

TEST_P(DevicePrioritiesTest, ASavedRunGoesOnInEither) {
  auto host = Make(GetParam(), Device::Cpu());
  auto device = Make(GetParam(), DeviceUnderTest());
  for (ReplayBuffer* buffer : {host.get(), device.get()}) {
    RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 50)).status());
  }
  ASSERT_NO_FATAL_FAILURE(SampleAndUpdate(*host, *device, 0));
  const std::string of_host = ::testing::TempDir() + "/of_host";
  const std::string of_device = ::testing::TempDir() + "/of_device";
  RILL_ASSERT_OK(host->Save(of_host));
  RILL_ASSERT_OK(device->Save(of_device));
  RILL_ASSERT_OK_AND_ASSIGN(
      host, ReplayBuffer::Open(
                of_device,
                OptionsOf(GetParam(), Device::Cpu(),
                          *DenseStorage::Create({.capacity = kCapacity}))));
  RILL_ASSERT_OK_AND_ASSIGN(
      device,
      ReplayBuffer::Open(
          of_host, OptionsOf(GetParam(), DeviceUnderTest(),
                             *DenseStorage::Create({.capacity = kCapacity}))));
  for (uint64_t step = 1; step < 4; ++step) {
    ASSERT_NO_FATAL_FAILURE(SampleAndUpdate(*host, *device, step));
  }
}

TEST(DevicePrioritiesOfStorageTest, RowsOnTheDeviceToo) {
  auto host = Make(&Rows, Device::Cpu());
  auto device = Make(&Rows, DeviceUnderTest(), DeviceUnderTest());
  for (uint64_t step = 0; step < 8; ++step) {
    const TensorDict steps =
        NumberedSteps(1, 7, static_cast<int64_t>(7 * step));
    RILL_ASSERT_OK(host->Extend(steps).status());
    RILL_ASSERT_OK(device->Extend(steps).status());
    ASSERT_NO_FATAL_FAILURE(SampleAndUpdate(*host, *device, step));
  }
}

// Values of a device in every place where they are taken: for a sampler of the
// host, for an `index` on the host, of host memory.
TEST(PrioritiesOfTensorsTest, WhereverTheyLie) {
  for (const Device priorities : {Device::Cpu(), DeviceUnderTest()}) {
    PrioritizedSelector* selector;
    auto buffer = *ReplayBuffer::Create(
        {.storage = MakeStorage(4),
         .sampler = *MakePrioritizedSampler({.device = priorities}, &selector),
         .batch_size = 4});
    RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 1)).status());
    TensorDict batch;
    float next = 2;
    for (const Device values : {Device::Cpu(), DeviceUnderTest()}) {
      for (const int64_t count : {4, 1}) {
        RILL_ASSERT_OK(buffer->SampleInto(&batch));
        RILL_ASSERT_OK_AND_ASSIGN(
            Tensor errors,
            Tensor::From(std::vector<float>(count, next), {count, 1}));
        RILL_ASSERT_OK_AND_ASSIGN(errors, errors.To(values));
        RILL_ASSERT_OK(buffer->UpdatePriorities(batch, errors));
        // The batch is the caller's again.
        RILL_ASSERT_OK_AND_ASSIGN(const absl::Span<int64_t> slots,
                                  batch.Find("index")->Flat<int64_t>());
        absl::c_fill(slots, 3);
        EXPECT_EQ(selector->Priorities(), std::vector<float>({next, 0, 0, 0}));
        ++next;
      }
    }
  }
}

TEST(PrioritiesOfTensorsTest, ErrorsNameWhatIsWrong) {
  auto buffer = Make(&Rows, DeviceUnderTest());
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 5)).status());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
  const auto update = [&](DType dtype, const Shape& shape) {
    const Tensor values = *Tensor::Zeros(dtype, shape)->To(DeviceUnderTest());
    return buffer->UpdatePriorities(batch, values);
  };
  EXPECT_THAT(update(DType::kFloat64, {16}),
              IsInvalidArgument("priorities: got float64, want float32"));
  EXPECT_THAT(update(DType::kFloat32, {5}),
              IsInvalidArgument("got 5 of them, want one for each of 16"));
  EXPECT_THAT(buffer->UpdatePriorities(
                  TensorDict({2}),
                  *Tensor::Zeros(DType::kFloat32, {2})->To(DeviceUnderTest())),
              IsNotFound("want a sample's"));
}

// The errors are written in a stream of the caller's.
TEST(PrioritiesOfTensorsTest, AreReadInTheCurrentStream) {
  PrioritizedSelector* selector;
  auto buffer =
      *ReplayBuffer::Create({.storage = MakeStorage(4),
                             .sampler = *MakePrioritizedSampler(
                                 {.device = DeviceUnderTest()}, &selector),
                             .batch_size = 2,
                             .device = DeviceUnderTest()});
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 1)).status());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
  RILL_ASSERT_OK_AND_ASSIGN(const Stream learner,
                            Stream::Create(DeviceUnderTest()));
  RILL_ASSERT_OK_AND_ASSIGN(
      const Tensor errors,
      Tensor::Zeros(DType::kFloat32, {2})->To(DeviceUnderTest()));
  const std::vector<float> made = {5, 5};
  RILL_ASSERT_OK(CopyAsync(errors.raw_data(), made.data(), 8, learner));
  {
    const StreamScope scope(learner);
    RILL_ASSERT_OK(buffer->UpdatePriorities(batch, errors));
  }
  EXPECT_EQ(selector->Priorities(), std::vector<float>({5, 0, 0, 0}));
}

}  // namespace
}  // namespace rill
