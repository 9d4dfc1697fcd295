// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/parts/buffer_parts.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "rill/replay/buffer_options.h"
#include "rill/replay/buffer_stats.h"
#include "rill/replay/sampling/sample_batches.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/testing/status_matchers.h"

namespace rill::replay_internal {
namespace {

BufferOptions OptionsOver(std::shared_ptr<Storage> storage) {
  BufferOptions options;
  options.storage = std::move(storage);
  options.sampler = MakeUniformSampler();
  options.batch_size = 3;
  return options;
}

TEST(BufferPartsTest, ARowThatIsWrittenIsDrawnAndCounted) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto parts,
                            BufferParts::Create(OptionsOver(MakeStorage(8))));
  RILL_ASSERT_OK(parts->writes->Extend(NumberedSteps(1, 5), {}, 0));
  PlacedBatch batch;
  RILL_ASSERT_OK(parts->samples->Take(3, &batch));
  ExpectWholeSteps(batch.rows, 8);
  const BufferStats stats = parts->GetStats();
  EXPECT_EQ(stats.size, 5);
  EXPECT_EQ(stats.capacity, 8);
  EXPECT_EQ(stats.items, 5);
  EXPECT_EQ(stats.rows_written, 5);
  EXPECT_EQ(stats.items_sampled, 3);
  EXPECT_EQ(stats.batches, 1);
  EXPECT_FALSE(stats.rate_limiter.has_value());
}

// Also where plans were held when they went: a write would wait for them.
TEST(BufferPartsTest, WhatGoesLeavesTheStorageToOthers) {
  const std::shared_ptr<Storage> storage = MakeStorage(8);
  for (int i = 0; i < 3; ++i) {
    BufferOptions options = OptionsOver(storage);
    options.prefetch = 4;
    RILL_ASSERT_OK_AND_ASSIGN(const auto parts,
                              BufferParts::Create(std::move(options)));
    RILL_ASSERT_OK(parts->writes->Extend(NumberedSteps(1, 8), {}, 0));
    PlacedBatch batch;
    RILL_ASSERT_OK(parts->samples->Take(3, &batch));
  }
  RILL_EXPECT_OK(storage->Extend(NumberedSteps(1, 8)));
}

TEST(BufferPartsTest, APartThatCannotBeMadeTakesTheOthersOffTheStorage) {
  const std::shared_ptr<Storage> storage = MakeStorage(8);
  BufferOptions options = OptionsOver(storage);
  options.device = Device::Fake(7);
  EXPECT_FALSE(BufferParts::Create(std::move(options)).ok());
  RILL_EXPECT_OK(storage->Extend(NumberedSteps(1, 8)));
}

}  // namespace
}  // namespace rill::replay_internal
