// SPDX-License-Identifier: Apache-2.0
#include "rill/flow/sink.h"

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/flow/conformance/sink_conformance.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/test_steps.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

TEST(FunctionSinkTest, HandsBatchesAndErrorsThrough) {
  int64_t rows = 0;
  WriteInfo seen;
  FunctionSink function([&](const TensorDict& batch, const WriteInfo& info) {
    rows += batch.batch_shape()[0];
    seen = info;
    return rows > 4 ? absl::ResourceExhaustedError("full") : absl::OkStatus();
  });
  Sink& sink = function;
  RILL_EXPECT_OK(sink.Write(
      MakeSteps(3), {.producer = 1, .first_lane = 2, .policy_version = 3}));
  EXPECT_EQ(seen.producer, 1);
  EXPECT_EQ(seen.first_lane, 2);
  EXPECT_EQ(seen.policy_version, 3);
  EXPECT_THAT(sink.Write(MakeSteps(3), {}),
              StatusIs(absl::StatusCode::kResourceExhausted));
  RILL_EXPECT_OK(sink.Cut(1, {.first = 2, .count = 1}));
  RILL_EXPECT_OK(sink.Flush());
}

TEST(FunctionSinkTest, HandsCutsThroughWhereItIsGivenAFunction) {
  int64_t producer = 0;
  LaneRange lanes;
  FunctionSink sink(
      [](const TensorDict&, const WriteInfo&) { return absl::OkStatus(); },
      [&](int64_t who, LaneRange which) {
        producer = who;
        lanes = which;
        return absl::UnavailableError("busy");
      });
  EXPECT_THAT(sink.Cut(7, {.first = 2, .count = 3}),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(producer, 7);
  EXPECT_EQ(lanes, (LaneRange{.first = 2, .count = 3}));
}

SinkSubject Function() {
  const auto recorder = std::make_shared<StepRecorder>();
  return {.sink = {recorder, &recorder->sink()},
          .arrived = [recorder] { return recorder->steps(); },
          .checks_leaves = false};
}
INSTANTIATE_TEST_SUITE_P(FunctionSink, SinkConformanceTest,
                         ::testing::Values(Function));

}  // namespace
}  // namespace rill
