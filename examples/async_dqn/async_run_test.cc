// SPDX-License-Identifier: Apache-2.0
// The example in short: a tenth of its length, workers killed ten times as
// often.
#include "rill/examples/async_dqn/async_run.h"

#include <cstddef>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rill/collectors/workers/worker_main.h"
#include "rill/examples/async_dqn/worker.h"
#include "rill/testing/process_traces.h"
#include "rill/testing/status_matchers.h"

namespace rill::async_dqn {
namespace {

TEST(AsyncRunTest, KilledWorkersBreakNoSliceAndLeaveNothing) {
  const auto descriptors = NamesIn("/proc/self/fd");
  const size_t mappings = MappingsOf("memfd").size();
  RILL_ASSERT_OK_AND_ASSIGN(
      const RunReport report,
      RunAsyncDqn({.replay_directory = ::testing::TempDir() + "/async_dqn",
                   .workers = 3,
                   .kill_every = absl::Milliseconds(100),
                   .max_frames = 5'000,
                   .solve_return = 1e9}));
  EXPECT_GE(report.frames, 5'000);
  EXPECT_GT(report.updates, 900);
  EXPECT_GT(report.kills, 0);
  EXPECT_GT(report.restarts, 0);
  EXPECT_GT(report.cuts, 0);
  EXPECT_GT(report.slices, 1000);
  EXPECT_EQ(report.broken_slices, 0);
  EXPECT_EQ(NamesIn("/proc/self/fd"), descriptors);
  EXPECT_EQ(MappingsOf("memfd").size(), mappings);
}

}  // namespace
}  // namespace rill::async_dqn

int main(int argc, char** argv) {
  const std::optional<int> worker = rill::WorkerMain(
      argc, argv, {{"async_dqn", rill::async_dqn::MakeWorker}});
  if (worker.has_value()) return *worker;
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
