// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/buffer_options.h"

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/device.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/replay/writers/removing_writer.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/slice_sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/testing/status_matchers.h"

namespace rill::replay_internal {
namespace {

// Options that work, but for the one that `change` sets.
absl::Status Check(void (*change)(BufferOptions&)) {
  BufferOptions options = {.storage = MakeStorage(4),
                           .sampler = MakeUniformSampler(),
                           .batch_size = 2,
                           .prefetch = 1};
  change(options);
  return CheckBufferOptions(options);
}

TEST(BufferOptionsTest, TheLastValuesOfEachRangeAreAccepted) {
  RILL_EXPECT_OK(Check([](BufferOptions& options) {
    options.batch_size = Sampler::kMaxBatchSize;
    options.prefetch = 1024;
    options.prefetch_threads = 256;
    options.rate_limit_timeout = absl::ZeroDuration();
  }));
  RILL_EXPECT_OK(Check([](BufferOptions& options) {
    options.batch_size = 0;
    options.prefetch = 0;
  }));
}

TEST(BufferOptionsTest, WhatIsMissingOrOutOfRangeIsNamed) {
  const struct {
    void (*change)(BufferOptions&);
    const char* message;
  } kCases[] = {
      {[](BufferOptions& o) { o.storage = nullptr; }, "storage: got null"},
      {[](BufferOptions& o) { o.sampler = nullptr; }, "sampler: got null"},
      {[](BufferOptions& o) { o.clock = nullptr; }, "clock: got null"},
      {[](BufferOptions& o) { o.transforms.emplace_back(); },
       "transforms[0]: got null"},
      {[](BufferOptions& o) { o.batch_size = -1; }, "batch_size: got -1"},
      {[](BufferOptions& o) { o.batch_size = Sampler::kMaxBatchSize + 1; },
       "batch_size: got"},
      {[](BufferOptions& o) { o.prefetch = -1; }, "prefetch: got -1"},
      {[](BufferOptions& o) { o.prefetch = 1025; }, "prefetch: got 1025"},
      {[](BufferOptions& o) { o.batch_size = 0; },
       "prefetch: got 1 with batch_size 0"},
      {[](BufferOptions& o) { o.prefetch_threads = 0; },
       "prefetch_threads: got 0"},
      {[](BufferOptions& o) { o.prefetch_threads = 257; },
       "prefetch_threads: got 257"},
      {[](BufferOptions& o) { o.rate_limit_timeout = -absl::Seconds(1); },
       "rate_limit_timeout: got -1s, want >= 0"},
      {[](BufferOptions& o) {
         o.pin_memory = true;
         o.pin_for = Device::Cpu();
       },
       "pin_for: got cpu"},
      {[](BufferOptions& o) {
         o.pin_memory = true;
         o.device = Device::Cpu();
       },
       "pin_memory: got true, and device cpu"},
  };
  for (const auto& test : kCases) {
    EXPECT_THAT(Check(test.change), IsInvalidArgument(test.message));
  }
}

TEST(BufferOptionsTest, PartsThatDoNotFitAreRefused) {
  EXPECT_THAT(Check([](BufferOptions& o) {
                o.sampler = *MakeSliceSampler({.length = 2});
                o.writer = MakeRemovingWriter();
              }),
              IsInvalidArgument("writer: got RemovingWriter with SliceSampler, "
                                "want one that appends"));
}

// No fake device is registered here.
TEST(BufferOptionsTest, ADeviceWithoutABackendIsAFailedPrecondition) {
  EXPECT_THAT(Check([](BufferOptions& o) { o.device = Device::Fake(0); }),
              IsFailedPrecondition("ReplayBuffer::Create: device"));
  EXPECT_THAT(Check([](BufferOptions& o) {
                o.pin_memory = true;
                o.pin_for = Device::Fake(0);
              }),
              IsFailedPrecondition("ReplayBuffer::Create: pin_memory"));
}

}  // namespace
}  // namespace rill::replay_internal
