// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"
#include "rill/tools/programs/inspect/find_facts.h"
#include "rill/tools/programs/inspect/saved.h"
#include "rill/tools/programs/inspect/test_steps.h"

namespace rill::inspect {
namespace {

using ::testing::IsEmpty;

// Episodes of 5 steps and nothing else, whatever is overwritten meanwhile.
TEST(FindFactsThreadsTest, BesideAWriterEpisodesAreWholeOnesOrNone) {
  const std::string path = FreshPath("beside");
  RILL_ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Storage> storage,
      MemmapStorage::Create({.directory = path, .capacity = 512, .lanes = 2}));
  RILL_ASSERT_OK(storage->Extend(MakeSteps(2, 10, 0, 5)).status());
  std::atomic<bool> is_over = false;
  std::thread writer([&] {
    for (int64_t step = 10; !is_over; step += 7) {
      RILL_EXPECT_OK(storage->Extend(MakeSteps(2, 7, step, 5)).status());
    }
  });
  int64_t complete = 0;
  // On a busy machine the writer may overwrite every episode of each round.
  for (int round = 0; round < 50 || (complete == 0 && round < 5000); ++round) {
    absl::StatusOr<Saved> saved = OpenSaved(path);
    RILL_EXPECT_OK(saved.status());
    if (!saved.ok()) break;
    AddFacts(path, {.leaves = true}, &*saved);
    EXPECT_THAT(saved->damage, IsEmpty());
    EXPECT_LE(saved->facts->live(), 512);
    const Episodes& episodes = *saved->facts->episodes;
    complete += episodes.lengths.count;
    if (episodes.lengths.count == 0) continue;
    EXPECT_EQ(episodes.lengths.min, 5);
    EXPECT_EQ(episodes.lengths.max, 5);
    EXPECT_GE(episodes.returns->min, 5);
    EXPECT_LE(episodes.returns->max, 10);
  }
  is_over = true;
  writer.join();
  EXPECT_GT(complete, 0);
}

}  // namespace
}  // namespace rill::inspect
