// SPDX-License-Identifier: Apache-2.0
// Steady-state sampling allocates nothing: counted at operator new, and at the
// place where tensors get their bytes.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/reward_scaling.h"

namespace {

std::atomic<int64_t> allocations = 0;

void* Allocate(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* data = alignment <= alignof(std::max_align_t)
                   ? std::malloc(bytes == 0 ? 1 : bytes)
                   : std::aligned_alloc(alignment, rounded);
  if (data == nullptr) std::abort();
  return data;
}

}  // namespace

void* operator new(std::size_t bytes) {
  return Allocate(bytes, alignof(std::max_align_t));
}
void* operator new[](std::size_t bytes) {
  return Allocate(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return Allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return Allocate(bytes, static_cast<std::size_t>(alignment));
}
// All forms, so that nothing is made by one allocator and freed by the other.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return Allocate(bytes, alignof(std::max_align_t));
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return Allocate(bytes, alignof(std::max_align_t));
}
void operator delete(void* data, const std::nothrow_t&) noexcept {
  std::free(data);
}
void operator delete[](void* data, const std::nothrow_t&) noexcept {
  std::free(data);
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete[](void* data) noexcept { std::free(data); }
void operator delete(void* data, std::size_t) noexcept { std::free(data); }
void operator delete[](void* data, std::size_t) noexcept { std::free(data); }
void operator delete(void* data, std::align_val_t) noexcept { std::free(data); }
void operator delete[](void* data, std::align_val_t) noexcept {
  std::free(data);
}
void operator delete(void* data, std::size_t, std::align_val_t) noexcept {
  std::free(data);
}
void operator delete[](void* data, std::size_t, std::align_val_t) noexcept {
  std::free(data);
}

namespace rill {
namespace {

// Allocations of 50 more samples into a batch that has been through two.
int64_t AllocationsOfSteadySampling(ReplayBuffer& buffer) {
  TensorDict batch;
  RILL_EXPECT_OK(buffer.SampleInto(&batch));
  RILL_EXPECT_OK(buffer.SampleInto(&batch));
  ScopedFaultHook count_buffers([](absl::string_view point, absl::string_view) {
    if (point == "host.allocate") ++allocations;
    return absl::OkStatus();
  });
  const int64_t before = allocations;
  bool all_ok = true;
  for (int i = 0; i < 50; ++i)
    all_ok = buffer.SampleInto(&batch).ok() && all_ok;
  const int64_t made = allocations - before;
  EXPECT_TRUE(all_ok);
  ExpectWholeSteps(batch, /*lane_capacity=*/100);
  return made;
}

ReplayBuffer::Options OptionsOf() {
  return {.storage = MakeStorage(100),
          .sampler = MakeUniformSampler(),
          .batch_size = 64};
}

TEST(ReplayBufferAllocationTest, CountsAllocations) {
  const int64_t before = allocations;
  delete new int64_t(7);
  std::vector<int> made(10);
  EXPECT_GE(allocations - before, 1);
}

TEST(ReplayBufferAllocationTest, SteadySamplingAllocatesNothing) {
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer, ReplayBuffer::Create(OptionsOf()));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 100)));
  EXPECT_EQ(AllocationsOfSteadySampling(*buffer), 0);
}

TEST(ReplayBufferAllocationTest, SteadyPinnedSamplingAllocatesNothing) {
  ReplayBuffer::Options options = OptionsOf();
  options.pin_memory = true;
  options.pin_for = Device::Fake(0);
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer,
                            ReplayBuffer::Create(std::move(options)));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 100)));
  EXPECT_EQ(AllocationsOfSteadySampling(*buffer), 0);
}

TEST(ReplayBufferAllocationTest, TransformThatWorksInPlaceAllocatesNothing) {
  ReplayBuffer::Options options = OptionsOf();
  options.transforms.push_back(*RewardScaling::Create({.scale = 1}));
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer,
                            ReplayBuffer::Create(std::move(options)));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 100)));
  EXPECT_EQ(AllocationsOfSteadySampling(*buffer), 0);
}

TEST(ReplayBufferAllocationTest, SamplingBetweenWritesAllocatesNothing) {
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer, ReplayBuffer::Create(OptionsOf()));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 100)));
  const TensorDict more = NumberedSteps(1, 7, 100);
  TensorDict batch;
  RILL_ASSERT_OK(buffer->SampleInto(&batch));
  RILL_ASSERT_OK(buffer->SampleInto(&batch));
  RILL_ASSERT_OK(buffer->Extend(more));
  const int64_t before = allocations;
  RILL_EXPECT_OK(buffer->SampleInto(&batch));
  EXPECT_EQ(allocations - before, 0);
}

}  // namespace
}  // namespace rill
