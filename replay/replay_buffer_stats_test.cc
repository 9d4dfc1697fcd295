// SPDX-License-Identifier: Apache-2.0
// ReplayBuffer::GetStats: rates, memory of devices, free disk, the limiter.
#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/clock.h"
#include "rill/base/file.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/replay/rate_limiter.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/memmap_storage.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

class HeldClock : public Clock {
 public:
  absl::Time Now() const override { return now; }
  absl::Time now = absl::UnixEpoch();
};

ReplayBuffer::Options OptionsOf(std::shared_ptr<Storage> storage) {
  ReplayBuffer::Options options;
  options.storage = std::move(storage);
  options.sampler = MakeUniformSampler();
  options.batch_size = 16;
  return options;
}

TEST(ReplayBufferStatsTest, RatesAreThoseOfTheTimeBetweenTwoLooks) {
  HeldClock clock;
  ReplayBuffer::Options options = OptionsOf(MakeStorage(100));
  options.clock = &clock;
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer,
                            ReplayBuffer::Create(std::move(options)));
  clock.now += absl::Seconds(2);
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 30)));
  for (int i = 0; i < 3; ++i) RILL_ASSERT_OK(buffer->Sample());
  RILL_ASSERT_OK(buffer->Sample(12));
  clock.now += absl::Seconds(1);
  const ReplayBuffer::Stats first = buffer->GetStats();
  EXPECT_EQ(first.elapsed, absl::Seconds(3));
  EXPECT_EQ(first.items_sampled, 60);
  const ReplayBuffer::Rates since_made =
      first.RatesSince(ReplayBuffer::Stats());
  EXPECT_DOUBLE_EQ(since_made.rows_written, 10);
  EXPECT_DOUBLE_EQ(since_made.items_sampled, 20);
  EXPECT_DOUBLE_EQ(since_made.batches, 4.0 / 3);

  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 5)));
  clock.now += absl::Milliseconds(500);
  const ReplayBuffer::Stats second = buffer->GetStats();
  const ReplayBuffer::Rates between = second.RatesSince(first);
  EXPECT_DOUBLE_EQ(between.rows_written, 10);
  EXPECT_DOUBLE_EQ(between.items_sampled, 0);
  EXPECT_DOUBLE_EQ(between.batches, 0);
}

TEST(ReplayBufferStatsTest, RatesOfNoTimeAreNone) {
  ReplayBuffer::Stats stats;
  stats.rows_written = 7;
  EXPECT_EQ(stats.RatesSince(ReplayBuffer::Stats()).rows_written, 0);
  ReplayBuffer::Stats later;
  later.elapsed = absl::Seconds(1);
  EXPECT_EQ(stats.RatesSince(later).rows_written, 0);
}

TEST(ReplayBufferStatsTest, BatchesThatFailAreNotCounted) {
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer,
                            ReplayBuffer::Create(OptionsOf(MakeStorage(10))));
  EXPECT_FALSE(buffer->Sample().ok());
  EXPECT_EQ(buffer->GetStats().items_sampled, 0);
}

TEST(ReplayBufferStatsTest, ClockIsNeeded) {
  ReplayBuffer::Options options = OptionsOf(MakeStorage(10));
  options.clock = nullptr;
  EXPECT_THAT(ReplayBuffer::Create(std::move(options)),
              IsInvalidArgument("clock"));
}

TEST(ReplayBufferStatsTest, DeviceBytesAreTheStoragesAndThoseOfMadeBatches) {
  RILL_ASSERT_OK_AND_ASSIGN(
      std::shared_ptr<Storage> there,
      DenseStorage::Create({.capacity = 10, .device = Device::Fake(0)}));
  RILL_ASSERT_OK_AND_ASSIGN(auto on_device,
                            ReplayBuffer::Create(OptionsOf(there)));
  EXPECT_EQ(on_device->GetStats().device_bytes, 0);
  RILL_ASSERT_OK(on_device->Extend(NumberedSteps(1, 3)));
  const ReplayBuffer::Stats stats = on_device->GetStats();
  EXPECT_GE(stats.usage.device, 10 * stats.usage.row);
  EXPECT_EQ(stats.usage.device, stats.usage.memory);
  EXPECT_EQ(stats.device_bytes, stats.usage.device);

  ReplayBuffer::Options options = OptionsOf(MakeStorage(10));
  options.device = Device::Fake(0);
  options.prefetch = 2;
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer,
                            ReplayBuffer::Create(std::move(options)));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 10)));
  EXPECT_EQ(buffer->GetStats().device_bytes, 0);
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, buffer->Sample());
  const int64_t bytes = batch.size_bytes();
  // Saving waits until what was drawn ahead is made.
  const std::string directory = JoinPath(::testing::TempDir(), "stats");
  RILL_ASSERT_OK(RemoveAll(directory));
  RILL_ASSERT_OK(buffer->Save(directory));
  EXPECT_EQ(buffer->GetStats().usage.device, 0);
  EXPECT_EQ(buffer->GetStats().device_bytes, 2 * bytes);
  // The memory of a batch that is given back waits for one to come.
  RILL_ASSERT_OK(buffer->SampleInto(&batch));
  RILL_ASSERT_OK(buffer->Save(directory));
  EXPECT_EQ(buffer->GetStats().device_bytes, 3 * bytes);
}

TEST(ReplayBufferStatsTest, FreeDiskIsThatOfTheRowsFiles) {
  RILL_ASSERT_OK_AND_ASSIGN(auto in_memory,
                            ReplayBuffer::Create(OptionsOf(MakeStorage(10))));
  RILL_ASSERT_OK(in_memory->Extend(NumberedSteps(1, 3)));
  EXPECT_EQ(in_memory->GetStats().usage.disk_free, std::nullopt);

  const std::string directory = JoinPath(::testing::TempDir(), "free");
  RILL_ASSERT_OK(RemoveAll(directory));
  RILL_ASSERT_OK_AND_ASSIGN(
      std::shared_ptr<Storage> files,
      MemmapStorage::Create({.directory = directory, .capacity = 10}));
  EXPECT_GT(files->MemoryUsage().disk_free, 0);  // Before the first row too.
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer,
                            ReplayBuffer::Create(OptionsOf(files)));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 3)));
  EXPECT_GT(buffer->GetStats().usage.disk_free, 0);
  EXPECT_EQ(buffer->GetStats().usage.row, in_memory->GetStats().usage.row);
}

TEST(ReplayBufferStatsTest, LimitersCountsAndWaitsAreThere) {
  ReplayBuffer::Options options = OptionsOf(MakeStorage(100));
  RILL_ASSERT_OK_AND_ASSIGN(
      options.rate_limiter,
      RateLimiter::Create({.samples_per_insert = 1, .min_size_to_sample = 4}));
  options.rate_limit_timeout = absl::ZeroDuration();
  const auto limiter = options.rate_limiter;
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer,
                            ReplayBuffer::Create(std::move(options)));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 9)));
  RILL_ASSERT_OK(buffer->Sample());
  const auto stats = buffer->GetStats().rate_limiter;
  ASSERT_TRUE(stats.has_value());
  EXPECT_EQ(stats->done, limiter->GetStats().done);
  EXPECT_EQ(stats->done.inserts, 9);
  EXPECT_EQ(stats->samples.waits, limiter->GetStats().samples.waits);

  RILL_ASSERT_OK_AND_ASSIGN(auto free,
                            ReplayBuffer::Create(OptionsOf(MakeStorage(10))));
  EXPECT_FALSE(free->GetStats().rate_limiter.has_value());
}

}  // namespace
}  // namespace rill
