// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/program/evaluated_run.h"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/telemetry/progress_line.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill::examples {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// A learner of ten steps a call, whose return is what it has of them.
class EvaluatedRunTest : public ::testing::Test {
 protected:
  EvaluatedRun::Options Options(int64_t total_steps) {
    return {.title = "ten",
            .run_dir = run_dir_,
            .solve_return = 50,
            .total_steps = total_steps,
            .evaluate_every = 25,
            .checkpoint_every = 40,
            .columns = {{"half", "train/half"}},
            .stop = &stop_};
  }
  absl::StatusOr<RunResult> Run(EvaluatedRun& run) {
    ProgressLine progress(stderr, false);
    return run.Run(
        {.learn = [this]() -> absl::StatusOr<int64_t> {
           steps_ += 10;
           stop_ = steps_ == stop_at_;
           return steps_;
         },
         .evaluate = [this]() -> absl::StatusOr<EvaluatedRun::Evaluation> {
           const auto steps = static_cast<double>(steps_);
           return EvaluatedRun::Evaluation{steps, {steps / 2}};
         },
         .save = [this, &run]() -> absl::Status {
           ++saves_;
           auto state = run.SaveState();
           if (state.ok()) state_ = *state;
           return state.status();
         }},
        progress);
  }
  std::string Rows() const {
    const auto csv = ReadFile(run_dir_ + "/curve.csv");
    RILL_EXPECT_OK(csv.status());
    return csv.value_or("");
  }

  const std::string run_dir_ = FreshPath();
  std::atomic<bool> stop_ = false;
  int64_t steps_ = 0, stop_at_ = -1, saves_ = 0;
  TensorDict state_;
};

TEST_F(EvaluatedRunTest, EvaluatesSavesAndKnowsWhenItWasSolved) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto run, EvaluatedRun::Create(Options(100)));
  RILL_ASSERT_OK_AND_ASSIGN(const RunResult result, Run(*run));
  EXPECT_EQ(result.steps, 100);
  EXPECT_EQ(result.solved_at, 50);
  EXPECT_EQ(result.evaluation_return, 100);
  EXPECT_FALSE(result.was_interrupted);
  EXPECT_EQ(saves_, 3);  // At 40 and 80, and at the end.
  EXPECT_THAT(Rows(), StartsWith("steps,evaluation,half,seconds\n30,30,15,"));
  EXPECT_EQ(ReportRun(result, /*seed=*/0, 50), 0);
  EXPECT_EQ(ReportRun(RunResult{}, /*seed=*/0, 50), 1);
}

TEST_F(EvaluatedRunTest, ARunThatWasStoppedGoesOnFromItsState) {
  stop_at_ = 60;
  RILL_ASSERT_OK_AND_ASSIGN(auto run, EvaluatedRun::Create(Options(100)));
  RILL_ASSERT_OK_AND_ASSIGN(RunResult result, Run(*run));
  EXPECT_TRUE(result.was_interrupted);
  EXPECT_EQ(result.steps, 60);
  EXPECT_EQ(ReportRun(result, /*seed=*/0, 50), 0);
  stop_ = false;
  RILL_ASSERT_OK_AND_ASSIGN(
      run, EvaluatedRun::Resume(Options(100), state_, /*steps=*/60));
  RILL_ASSERT_OK_AND_ASSIGN(result, Run(*run));
  EXPECT_EQ(result.steps, 100);
  EXPECT_EQ(result.solved_at, 50);
  // Evaluations where they would have been, and none twice.
  EXPECT_THAT(Rows(), HasSubstr("\n50,50,25,"));
  EXPECT_THAT(Rows(), HasSubstr("\n80,80,40,"));
  RILL_ASSERT_OK_AND_ASSIGN(const auto points,
                            state_.Flat<double>("evaluations"));
  EXPECT_EQ(points.size(), 2 * 4);
}

TEST_F(EvaluatedRunTest, ARunThatSavesAtItsEndAloneGoesOn) {
  EvaluatedRun::Options options = Options(50);
  options.checkpoint_every = EvaluatedRun::Options().checkpoint_every;
  RILL_ASSERT_OK_AND_ASSIGN(auto run, EvaluatedRun::Create(options));
  RILL_ASSERT_OK(Run(*run));
  options.total_steps = 100;
  RILL_ASSERT_OK_AND_ASSIGN(
      run, EvaluatedRun::Resume(options, state_, /*steps=*/50));
  RILL_ASSERT_OK(Run(*run));
  EXPECT_EQ(saves_, 2);
}

TEST_F(EvaluatedRunTest, AStateOfAnotherProgramIsRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto run, EvaluatedRun::Create(Options(50)));
  RILL_ASSERT_OK(Run(*run));
  RILL_ASSERT_OK(state_.Set("counters", *Tensor::From<int64_t>({1}, {1})));
  EXPECT_THAT(EvaluatedRun::Resume(Options(100), state_, /*steps=*/50),
              IsDataLoss("counters"));
}

}  // namespace
}  // namespace rill::examples
