// SPDX-License-Identifier: Apache-2.0
// The example in short.
#include "rill/examples/distributed_dqn/one_process.h"

#include <atomic>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/distributed/shards/sharded_sampler.h"
#include "rill/testing/status_matchers.h"

namespace rill::distributed_dqn {
namespace {

using ::testing::HasSubstr;

const std::atomic<bool> kGoOn = false;

TEST(OneProcessTest, ALearnerLearnsFromTwoShardsOfFourCollectors) {
  std::vector<std::string> lines;
  RILL_ASSERT_OK_AND_ASSIGN(
      const OneProcessReport report,
      RunInOneProcess(
          {.max_updates = 200,
           .evaluate_every = 100,
           .solve_return = 1e9,
           .stop = &kGoOn,
           .say = [&](const std::string& line) { lines.push_back(line); }}));
  EXPECT_EQ(report.learner.updates, 200);
  EXPECT_GT(report.learner.evaluation_return, 0);
  ASSERT_EQ(lines.size(), 3);
  EXPECT_EQ(lines[0], "serving at learner");
  EXPECT_THAT(lines[2], HasSubstr("updates 200  weights 12  return "));
  EXPECT_EQ(report.learner.samples.batches, 200);
  for (const ShardedSampler::Shard& shard : report.learner.samples.shards) {
    EXPECT_GT(shard.rows, 0);
  }
  EXPECT_EQ(report.rows_lost, 0);
  EXPECT_EQ(report.rows_stored, report.rows_acknowledged);
}

TEST(OneProcessTest, KilledShardsComeBackAndTheirLossIsCounted) {
  const std::string directory = ::testing::TempDir() + "/distributed_dqn";
  RILL_ASSERT_OK(CreateDirectories(directory));
  RILL_ASSERT_OK_AND_ASSIGN(
      const OneProcessReport report,
      RunInOneProcess({.max_updates = 600,
                       .evaluate_every = 1000,
                       .solve_return = 1e9,
                       .kill_every = absl::Milliseconds(200),
                       .checkpoint_directory = directory,
                       .stop = &kGoOn}));
  EXPECT_EQ(report.learner.updates, 600);
  EXPECT_GT(report.kills, 0);
  EXPECT_EQ(report.rows_stored, report.rows_acknowledged - report.rows_lost);
}

TEST(OneProcessTest, ARunGoesOnFromItsCheckpoints) {
  const std::string directory = ::testing::TempDir() + "/resumed";
  RILL_ASSERT_OK(CreateDirectories(directory));
  OneProcessOptions options = {
      .max_updates = 50, .checkpoint_directory = directory, .stop = &kGoOn};
  RILL_ASSERT_OK_AND_ASSIGN(const OneProcessReport first,
                            RunInOneProcess(options));
  std::vector<std::string> lines;
  options.max_updates = 80;
  options.say = [&](const std::string& line) { lines.push_back(line); };
  RILL_ASSERT_OK_AND_ASSIGN(const OneProcessReport second,
                            RunInOneProcess(options));
  EXPECT_EQ(second.learner.updates, 80);
  EXPECT_EQ(second.learner.samples.batches, 30);
  ASSERT_EQ(lines.size(), 2);
  EXPECT_EQ(lines[1], "goes on from update 50");
  EXPECT_EQ(second.rows_stored, first.rows_stored + second.rows_acknowledged);
}

TEST(OneProcessTest, CollectorsThatTheShardsCannotShareAreRefused) {
  EXPECT_THAT(RunInOneProcess({.shards = 2, .collectors = 3, .stop = &kGoOn}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("got 3 collectors and 2 shards")));
}

}  // namespace
}  // namespace rill::distributed_dqn
