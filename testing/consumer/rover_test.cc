// SPDX-License-Identifier: Apache-2.0

// Two headers called storage/<something> in one file: the project's own and
// Rill's, which carries the library's name.

#include <memory>

#include "gtest/gtest.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/dense_storage.h"
#include "storage/ring.h"

namespace {

TEST(RoverTest, OwnStorageFolderStandsBesideRills) {
  rover::Ring ring;
  ring.Add({.x = 1, .y = 2});
  EXPECT_EQ(ring.at(0).y, 2);
  auto storage = rill::DenseStorage::Create({.capacity = 16});
  ASSERT_TRUE(storage.ok()) << storage.status();
  EXPECT_EQ((*storage)->capacity(), 16);
}

TEST(RoverTest, SamplerWatchesAStorageOfRill) {
  auto storage = rill::DenseStorage::Create({.capacity = 16});
  ASSERT_TRUE(storage.ok()) << storage.status();
  std::unique_ptr<rill::Sampler> sampler = rill::MakeUniformSampler();
  ASSERT_TRUE((*storage)->AddObserver(sampler->observer()).ok());
  rill::SamplePlan plan;
  EXPECT_FALSE(sampler->Plan({.batch_size = 4}, &plan).ok());  // Still empty.
  (*storage)->RemoveObserver(sampler->observer());
}

}  // namespace
