// SPDX-License-Identifier: Apache-2.0
#include "rill/device/kernels/kernel_launch.h"

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"
#include "rill/device/kernels/testing/scale_kernel.h"
#include "rill/device/kernels/testing/thread_grid.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::absl_testing::StatusIs;
using ::testing::HasSubstr;

// The sum of the numbers of each block: halves are added to halves, with a
// barrier between. Before that a thread sums its own numbers, and keeps the
// sum.
struct BlockSums {
  [[maybe_unused]] static constexpr const char* kName = "block_sums";
  static constexpr int kThreads = 64;
  struct Shared {
    int64_t sums[kThreads];
  };
  struct Local {
    int64_t sum;
  };

  const int64_t* numbers = nullptr;
  int64_t count = 0;
  int64_t* sums = nullptr;  // One a block.
  int64_t blocks = 0;
  // 1: as it should be. 2: every second barrier is forgotten.
  int64_t halvings_a_phase = 1;

  constexpr int64_t num_phases() const { return 3 + 6 / halvings_a_phase; }
  template <typename Thread>
  constexpr void Run(int64_t phase, const Thread& thread, Shared& shared,
                     Local& local) const {
    const int t = thread.thread;
    if (phase == 0) {
      local.sum = 0;
      for (int64_t i = thread.index(); i < count; i += thread.grid_size()) {
        local.sum += numbers[i];
      }
    } else if (phase == 1) {
      shared.sums[t] = local.sum;
    } else if (phase + 1 == num_phases()) {
      if (t == 0) sums[thread.block] = shared.sums[0];
    } else {
      for (int64_t h = 0; h < halvings_a_phase; ++h) {
        const int half = kThreads >> ((phase - 2) * halvings_a_phase + h + 1);
        if (t < half) shared.sums[t] += shared.sums[t + half];
      }
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    visit(numbers, count * static_cast<int64_t>(sizeof(int64_t)));
    visit(sums, blocks * static_cast<int64_t>(sizeof(int64_t)));
  }
};

class KernelLaunchTest : public ::testing::Test {
 protected:
  KernelLaunchTest() { std::iota(numbers_.begin(), numbers_.end(), 1); }

  BlockSums Sums(std::vector<int64_t>& sums) const {
    return {.numbers = numbers_.data(),
            .count = static_cast<int64_t>(numbers_.size()),
            .sums = sums.data(),
            .blocks = static_cast<int64_t>(sums.size())};
  }
  static int64_t Total(const std::vector<int64_t>& sums) {
    return std::accumulate(sums.begin(), sums.end(), int64_t{0});
  }

  std::vector<int64_t> numbers_ = std::vector<int64_t>(1000);
  static constexpr int64_t kTotal = 500500;
};

TEST_F(KernelLaunchTest, Example) {
  std::vector<double> values = {1, 2, 3};
  const auto n = static_cast<int64_t>(values.size());
  const auto stream = *Stream::Create(Device::Cpu());
  const Scale kernel = {.values = values.data(), .count = n, .factor = 2};
  RILL_ASSERT_OK(LaunchKernel(kernel, GridFor(n), stream));
  EXPECT_THAT(values, ::testing::ElementsAre(2, 4, 6));
}

TEST_F(KernelLaunchTest, BarriersStandBetweenPhasesInAnyOrderOfThreads) {
  for (uint64_t order = 0; order < 20; ++order) {
    std::vector<int64_t> sums(3);
    RunGridOnHost(Sums(sums), {.blocks = 3, .threads = BlockSums::kThreads},
                  order);
    EXPECT_EQ(Total(sums), kTotal) << order;
  }
}

TEST_F(KernelLaunchTest, AForgottenBarrierShowsInSomeOrder) {
  bool differs = false;
  for (uint64_t order = 1; order < 20; ++order) {
    std::vector<int64_t> sums(3);
    BlockSums kernel = Sums(sums);
    kernel.halvings_a_phase = 2;
    RunGridOnHost(kernel, {.blocks = 3, .threads = BlockSums::kThreads}, order);
    differs = differs || Total(sums) != kTotal;
  }
  EXPECT_TRUE(differs);
}

TEST_F(KernelLaunchTest, ThreadsOfTheHostAgree) {
  std::vector<int64_t> sums(5);
  RunGridOnThreads(Sums(sums), {.blocks = 5, .threads = BlockSums::kThreads});
  EXPECT_EQ(Total(sums), kTotal);
}

TEST_F(KernelLaunchTest, OnADeviceItRunsInTheOrderOfItsStream) {
  FakeBackend* const fake = FakeBackend::Install({});
  {
    const auto stream = *Stream::Create(Device::Fake());
    const auto device = *Buffer::Allocate(8 * sizeof(double), Device::Fake(),
                                          MemoryKind::kDevice);
    double values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    RILL_ASSERT_OK(CopyAsync(device->data(), values, sizeof(values), stream));
    const Scale kernel = {.values = reinterpret_cast<double*>(device->data()),
                          .count = 8,
                          .factor = 3};
    RILL_ASSERT_OK(LaunchKernel(kernel, GridFor(8, 4), stream));
    EXPECT_EQ(fake->NumPending(0, stream.handle()), 2);
    RILL_ASSERT_OK(CopyAsync(values, device->data(), sizeof(values), stream));
    RILL_ASSERT_OK(stream.Synchronize());
    for (int i = 0; i < 8; ++i) EXPECT_EQ(values[i], 3 * (i + 1));
    EXPECT_EQ(fake->Count(FakeBackend::Operation::kLaunch), 1);
  }
  EXPECT_THAT(fake->TakeMisuse(), ::testing::IsEmpty());
}

TEST_F(KernelLaunchTest, MemoryOfTheHostIsRefusedOnADevice) {
  FakeBackend::Install({});
  const auto stream = *Stream::Create(Device::Fake());
  std::vector<double> values(8);
  EXPECT_THAT(
      LaunchKernel(Scale{.values = values.data(), .count = 8}, {}, stream),
      StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(KernelLaunchTest, BadGridsAreNamed) {
  const auto stream = *Stream::Create(Device::Cpu());
  const Scale kernel;
  EXPECT_THAT(LaunchKernel(kernel, {.blocks = 0}, stream),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"scale\": blocks: got 0, want [1, 2^31)")));
  EXPECT_THAT(LaunchKernel(kernel, {.threads = 1025}, stream),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("threads: got 1025, want [1, 1024]")));
}

TEST_F(KernelLaunchTest, GridsHaveAThreadForEachItemUpToAll) {
  EXPECT_EQ(GridFor(0).blocks, 1);
  EXPECT_EQ(GridFor(256).blocks, 1);
  EXPECT_EQ(GridFor(257).blocks, 2);
  EXPECT_EQ(GridFor(int64_t{1} << 40).blocks, 4096);
}

}  // namespace
}  // namespace rill
