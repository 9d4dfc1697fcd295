// SPDX-License-Identifier: Apache-2.0
#include "rill/flow/exactly_once_sink.h"

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/flow/conformance/sink_conformance.h"
#include "rill/flow/sink.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/test_steps.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

absl::Status RunExample(Sink& buffer, const TensorDict& batch) {
  ExactlyOnceSink once(&buffer);
  RILL_RETURN_IF_ERROR(once.Write(batch, {.producer = 1, .sequence = 7}));
  RILL_RETURN_IF_ERROR(once.Write(batch, {.producer = 1, .sequence = 7}));
  return absl::OkStatus();
}

// Remembers the numbers of what arrived.
class ExactlyOnceSinkTest : public testing::Test {
 protected:
  absl::Status Write(int64_t producer, int64_t sequence) {
    return once_.Write(batch_, {.producer = producer, .sequence = sequence});
  }

  TensorDict batch_ = MakeSteps(2);
  absl::Status answer_;
  std::vector<int64_t> seen_;
  FunctionSink target_{[this](const TensorDict&, const WriteInfo& info) {
                         if (answer_.ok()) seen_.push_back(info.sequence);
                         return answer_;
                       },
                       [this](int64_t producer, LaneRange lanes) {
                         seen_.push_back(-100 * producer - lanes.first);
                         return answer_;
                       }};
  ExactlyOnceSink once_{&target_};
};

TEST_F(ExactlyOnceSinkTest, Example) {
  RILL_EXPECT_OK(RunExample(target_, batch_));
  EXPECT_THAT(seen_, ElementsAre(7));
}

TEST_F(ExactlyOnceSinkTest, ARefusedNumberHasNotArrived) {
  answer_ = absl::ResourceExhaustedError("full");
  EXPECT_THAT(Write(0, 1),
              StatusIs(absl::StatusCode::kResourceExhausted, "full"));
  EXPECT_EQ(once_.newest(0), 0);
  answer_ = absl::OkStatus();
  RILL_EXPECT_OK(Write(0, 1));
  RILL_EXPECT_OK(Write(0, 1));
  EXPECT_THAT(seen_, ElementsAre(1));
}

TEST_F(ExactlyOnceSinkTest, AGapIsRefusedByItsNumbers) {
  RILL_ASSERT_OK(Write(4, 2));
  EXPECT_THAT(Write(4, 4), IsFailedPrecondition("producer 4: got 4, want 3"));
  EXPECT_THAT(Write(4, -1), IsInvalidArgument());
  once_.Forget(4);
  RILL_EXPECT_OK(Write(4, 1));
  EXPECT_THAT(seen_, ElementsAre(2, 1));
}

TEST_F(ExactlyOnceSinkTest, WithoutANumberAllPass) {
  for (int i = 0; i < 2; ++i) RILL_ASSERT_OK(Write(0, 0));
  EXPECT_THAT(seen_, ElementsAre(0, 0));
}

TEST_F(ExactlyOnceSinkTest, CutsPassAndHaveNoNumber) {
  RILL_ASSERT_OK(Write(3, 1));
  for (int i = 0; i < 2; ++i) {
    RILL_ASSERT_OK(once_.Cut(3, {.first = 4, .count = 1}));
  }
  RILL_ASSERT_OK(Write(3, 2));
  EXPECT_THAT(seen_, ElementsAre(1, -304, -304, 2));
  answer_ = absl::UnavailableError("busy");
  EXPECT_THAT(once_.Cut(3, {}), IsUnavailable());
}

TEST_F(ExactlyOnceSinkTest, NumbersGoOnInALoadedState) {
  RILL_ASSERT_OK(Write(0, 1));
  RILL_ASSERT_OK(Write(9, 5));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, once_.SaveState());
  ExactlyOnceSink second(&target_);
  RILL_ASSERT_OK(second.LoadState(state));
  RILL_EXPECT_OK(second.Write(batch_, {.producer = 9, .sequence = 5}));
  RILL_EXPECT_OK(second.Write(batch_, {.producer = 9, .sequence = 6}));
  EXPECT_THAT(seen_, ElementsAre(1, 5, 6));
  EXPECT_THAT(second.LoadState(batch_),
              IsFailedPrecondition("\"producers\": got none"));
  EXPECT_EQ(second.newest(9), 6);
}

// Refusals on both sides of the sink: the target's, and answers that are lost
// on the way back, so that the producer offers again what has arrived.
TEST(ExactlyOncePropertyTest, EachBatchArrivesOnceInOrder) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::vector<int64_t>> seen(3);
    FunctionSink target([&](const TensorDict&, const WriteInfo& info) {
      if (random() % 3 == 0) return absl::UnavailableError("busy");
      seen[info.producer].push_back(info.sequence);
      return absl::OkStatus();
    });
    ExactlyOnceSink once(&target);
    const TensorDict batch = MakeSteps(1);
    std::vector<int64_t> next(3, 1);
    for (int i = 0; i < 1000; ++i) {
      const int64_t producer = random() % 3;
      const absl::Status status =
          once.Write(batch, {.producer = producer, .sequence = next[producer]});
      if (status.ok() && random() % 3 != 0) ++next[producer];
    }
    for (int64_t producer = 0; producer < 3; ++producer) {
      std::vector<int64_t> want;
      for (int64_t n = 1; n <= once.newest(producer); ++n) want.push_back(n);
      EXPECT_THAT(seen[producer], ElementsAreArray(want)) << "seed " << seed;
      EXPECT_GT(want.size(), 50);
    }
  }
}

SinkSubject Once() {
  struct Both {
    StepRecorder recorder;
    ExactlyOnceSink once{&recorder.sink()};
  };
  const auto both = std::make_shared<Both>();
  return {.sink = {both, &both->once},
          .arrived = [both] { return both->recorder.steps(); },
          .checks_leaves = false};
}
INSTANTIATE_TEST_SUITE_P(ExactlyOnceSink, SinkConformanceTest,
                         ::testing::Values(Once));

}  // namespace
}  // namespace rill
