// SPDX-License-Identifier: Apache-2.0
#include "rill/benchmarks/links/link_model.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

// Rows so large that nothing else counts, on links of 1 GB/s.
LinkModel LargeRows() {
  return {.collector_rate = 1e9,
          .shard_rate = 1e9,
          .learner_rate = 1e9,
          .row_bytes = 1e6,
          .rows_a_second = 10,
          .samples_an_insert = 2,
          .weight_bytes = 1e6,
          .publish_seconds = 2,
          .collectors = 20,
          .shards = 2};
}

double ShareOf(const LinkModel& model, const std::string& way) {
  for (const LinkLoad& load : LinkLoads(model)) {
    if (load.way == way) return load.share;
  }
  ADD_FAILURE() << way;
  return 0;
}

TEST(LinkModelTest, EachLinkCarriesWhatPassesIt) {
  const LinkModel model = LargeRows();
  EXPECT_NEAR(ShareOf(model, "collector out"), 0.01, 1e-4);
  EXPECT_NEAR(ShareOf(model, "collector in"), 0.0005, 1e-6);
  EXPECT_NEAR(ShareOf(model, "shard in"), 0.1, 1e-3);
  EXPECT_NEAR(ShareOf(model, "shard out"), 0.2, 1e-3);
  EXPECT_NEAR(ShareOf(model, "learner in"), 0.4, 1e-3);
  EXPECT_NEAR(ShareOf(model, "learner out"), 0.01, 1e-3);
  for (const LinkLoad& load : LinkLoads(model)) {
    EXPECT_NEAR(load.bytes_a_second, load.share * 1e9, 1) << load.way;
  }
}

TEST(LinkModelTest, BottlenecksNameWhatMovesThem) {
  LinkModel model = LargeRows();
  EXPECT_EQ(FirstBottleneck(model).index, 4u);
  EXPECT_EQ(FirstBottleneck(model).moved_by, "");
  model.collectors = 100;
  EXPECT_EQ(FirstBottleneck(model).moved_by, "rows of 499982 B");
  model.learner_rate = 1e11;
  model.shard_rate = 0.1e9;
  EXPECT_EQ(FirstBottleneck(model).index, 3u);
  EXPECT_EQ(FirstBottleneck(model).moved_by, "21 shards");
  model.shards = 21;
  EXPECT_EQ(FirstBottleneck(model).moved_by, "");
  model.weight_bytes = 5e9;
  model.learner_rate = 1e12;
  EXPECT_EQ(FirstBottleneck(model).moved_by, "weights every 5.0 s");
  model.publish_seconds = 5;
  model.learner_rate = 2e10;
  EXPECT_EQ(FirstBottleneck(model).index, 5u);
  EXPECT_EQ(FirstBottleneck(model).moved_by, "10 relays");
}

TEST(LinkModelTest, RelaysTakeCollectorsOffTheLearner) {
  LinkModel model = LargeRows();
  model.weight_bytes = 2e8;
  const double alone = ShareOf(model, "learner out");
  model.relays = 5;
  EXPECT_NEAR(ShareOf(model, "learner out"), alone / 4, 1e-2);
  model.relays = 50;  // More than there are collectors.
  EXPECT_NEAR(ShareOf(model, "learner out"), alone, 1e-2);
}

TEST(LinkModelTest, NumbersThatAreNoneAreRefused) {
  RILL_EXPECT_OK(CheckLinkModel(LargeRows()));
  LinkModel model = LargeRows();
  model.publish_seconds = 0;
  EXPECT_THAT(CheckLinkModel(model),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("publish_seconds: got 0")));
  model = LargeRows();
  model.relays = -1;
  EXPECT_THAT(CheckLinkModel(model),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace rill
