// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/workers/worker_seed.h"

#include <cstdint>
#include <set>

#include "gtest/gtest.h"

namespace rill {
namespace {

TEST(WorkerSeedTest, NoTwoWorkersOfAnyRunsOrStartsHaveTheSame) {
  std::set<uint64_t> seeds;
  for (uint64_t run = 0; run < 20; ++run) {
    for (int64_t worker = 0; worker < 20; ++worker) {
      for (int64_t restarts = 0; restarts < 20; ++restarts) {
        EXPECT_TRUE(seeds.insert(WorkerSeed(run, worker, restarts)).second)
            << run << " " << worker << " " << restarts;
      }
    }
  }
}

TEST(WorkerSeedTest, ThatOfTheFirstWorkerIsTheRuns) {
  EXPECT_EQ(WorkerSeed(7, 0), 7);
}

// Part of the reproducibility contract.
TEST(WorkerSeedTest, StaysTheSame) {
  EXPECT_EQ(WorkerSeed(1, 1), 14517853975707256697u);
  EXPECT_EQ(WorkerSeed(1, 2, 3), 13536796333806817023u);
}

}  // namespace
}  // namespace rill
