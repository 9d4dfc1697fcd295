// SPDX-License-Identifier: Apache-2.0
// What works along time, over what the units of a buffer draw: no number is
// made of two pieces.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/estimators/reward_to_go.h"
#include "rill/estimators/value_estimators.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/sample_units.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/sample_unit.h"
#include "rill/samplers/uniform_selector.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/compose.h"
#include "rill/transforms/images/cat_frames.h"
#include "rill/transforms/next_state_reconstructor.h"
#include "rill/transforms/structure/sequence_lines.h"

namespace rill {
namespace {

constexpr int64_t kSteps = 300;
constexpr int64_t kBatch = 64;
constexpr int64_t kLength = 8;
constexpr double kGamma = 0.9;
constexpr double kLambda = 0.8;

// One lane of steps: random rewards and values, an end now and then.
TensorDict Steps(uint64_t seed) {
  const Rng rng(seed);
  std::vector<double> reward, value, next_value, observation;
  std::vector<bool> done;
  for (uint32_t t = 0; t < kSteps; ++t) {
    reward.push_back(rng.UniformDouble(0, t));
    value.push_back(rng.UniformDouble(1, t));
    next_value.push_back(rng.UniformDouble(2, t));
    observation.push_back(t);
    done.push_back(rng.UniformInt(3, t, 12) == 0);
  }
  const auto column = [](const std::vector<double>& values) {
    return *Tensor::From<double>(values, {1, kSteps, 1});
  };
  const Tensor flags = *Tensor::From<bool>(done, {1, kSteps, 1});
  return *TensorDict::Create({1, kSteps},
                             {{"observation", column(observation)},
                              {"state_value", column(value)},
                              {"next/reward", column(reward)},
                              {"next/state_value", column(next_value)},
                              {"next/terminated", flags},
                              {"next/done", *flags.Clone()}});
}

using Make = std::function<std::unique_ptr<BatchTransform>()>;

absl::StatusOr<TensorDict> Draw(SampleUnit unit, const Make& transform,
                                uint64_t seed) {
  RILL_ASSIGN_OR_RETURN(auto storage,
                        DenseStorage::Create({.capacity = kSteps}));
  RILL_ASSIGN_OR_RETURN(auto sampler, MakeSampler(MakeUniformSelector(),
                                                  std::move(unit), "Test"));
  ReplayBuffer::Options options = {.storage = std::move(storage),
                                   .sampler = std::move(sampler),
                                   .batch_size = kBatch,
                                   .seed = seed};
  options.transforms.push_back(transform());
  RILL_ASSIGN_OR_RETURN(auto buffer, ReplayBuffer::Create(std::move(options)));
  RILL_RETURN_IF_ERROR(buffer->Extend(Steps(seed)).status());
  return buffer->Sample();
}

// The advantage of stored row `row` in a piece whose last row is `last`.
double PlainGae(const TensorDict& stored, int64_t row, int64_t last) {
  const auto number = [&](const char* key, int64_t at) {
    return stored.Find(key)->data<double>()[at];
  };
  double sum = 0;
  double factor = 1;
  for (int64_t t = row; t <= last; ++t) {
    const bool is_end = stored.Find("next/done")->data<bool>()[t];
    sum += factor * (number("next/reward", t) +
                     (is_end ? 0 : kGamma * number("next/state_value", t)) -
                     number("state_value", t));
    if (is_end) break;
    factor *= kGamma * kLambda;
  }
  return sum;
}

std::unique_ptr<BatchTransform> Gae() {
  return *GAE::Create({.gamma = kGamma, .lmbda = kLambda});
}

// Rows of a piece of kLength rows, as drawn; those behind an end of the
// trajectory pad.
void ExpectPiecesApart(const TensorDict& batch, uint64_t seed) {
  const TensorDict stored = Steps(seed);
  const int64_t* const index = batch.Find("index")->data<int64_t>();
  const double* const got = batch.Find("advantage")->data<double>();
  const Tensor* const mask = batch.Find("validity_mask");
  for (int64_t piece = 0; piece < kBatch; piece += kLength) {
    int64_t last = piece + kLength - 1;
    while (mask != nullptr && !mask->data<bool>()[last]) --last;
    for (int64_t row = piece; row <= last; ++row) {
      EXPECT_NEAR(got[row], PlainGae(stored, index[row], index[last]), 1e-9)
          << "row " << row << " of seed " << seed;
    }
  }
}

TEST(EstimatorsOverUnitsTest, NoSequenceRunsIntoTheNext) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RILL_ASSERT_OK_AND_ASSIGN(
        SampleUnit unit, MakeSequences({.sequences = {.length = kLength - 3,
                                                      .burn_in = 2,
                                                      .bootstrap = 1,
                                                      .needs_burn_in = true}}));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch,
                              Draw(std::move(unit), Gae, seed));
    EXPECT_EQ(batch.dim_names(), std::vector<std::string>{"time"});
    ExpectPiecesApart(batch, seed);
  }
}

TEST(EstimatorsOverUnitsTest, NoSliceRunsIntoTheNext) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RILL_ASSERT_OK_AND_ASSIGN(SampleUnit unit,
                              MakeSlices({.slices = {.length = kLength}}));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch,
                              Draw(std::move(unit), Gae, seed));
    EXPECT_EQ(batch.dim_names(), std::vector<std::string>{"time"});
    ExpectPiecesApart(batch, seed);
  }
}

TEST(EstimatorsOverUnitsTest, StrangersAreNoTrajectory) {
  const auto refused = IsInvalidArgument("do not follow one another");
  const auto refuses = [&](const Make& transform) {
    EXPECT_THAT(Draw(*MakeTransitions({}), transform, 1).status(), refused);
    // Windows overlap, and dilated sequences leave rows out.
    EXPECT_THAT(
        Draw(*MakeSlices({.slices = {.length = kLength},
                          .n_step = NStepReturns::Options{.num_steps = 2}}),
             transform, 1)
            .status(),
        refused);
    EXPECT_THAT(
        Draw(*MakeSequences({.sequences = {.length = kLength, .dilation = 2}}),
             transform, 1)
            .status(),
        refused);
  };
  refuses(Gae);
  refuses([] { return *TD1Estimator::Create({}); });
  refuses([] { return *TDLambdaEstimator::Create({}); });
  refuses([] { return *DensifyReward::Create({}); });
  refuses([] {
    return *CatFrames::Create({.num_frames = 2, .in_keys = {"observation"}});
  });
  refuses([] { return *NextStateReconstructor::Create({.traj_key = ""}); });
}

TEST(EstimatorsOverUnitsTest, OneStepTargetsAreThoseOfTheirRows) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict batch,
      Draw(
          *MakeTransitions({}),
          [] { return *TD0Estimator::Create({.gamma = kGamma}); }, 3));
  EXPECT_EQ(batch.dim_names(), std::vector<std::string>{"rows"});
  const TensorDict stored = Steps(3);
  for (int64_t row = 0; row < kBatch; ++row) {
    const int64_t at = batch.Find("index")->data<int64_t>()[row];
    const double value = stored.Find("next/state_value")->data<double>()[at];
    const bool is_end = stored.Find("next/terminated")->data<bool>()[at];
    EXPECT_NEAR(batch.Find("value_target")->data<double>()[row],
                stored.Find("next/reward")->data<double>()[at] +
                    (is_end ? 0 : kGamma * value),
                1e-9);
  }
}

// As lines they are apart by themselves.
TEST(EstimatorsOverUnitsTest, SequencesAreLinesOfABatch) {
  RILL_ASSERT_OK_AND_ASSIGN(SampleUnit unit,
                            MakeSequences({.sequences = {.length = kLength}}));
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict batch,
      Draw(
          std::move(unit),
          [] {
            std::vector<std::unique_ptr<BatchTransform>> both;
            both.push_back(*SequenceLines::Create({.length = kLength}));
            both.push_back(Gae());
            return *Compose::Create(std::move(both));
          },
          7));
  EXPECT_EQ(batch.batch_shape(), Shape({kBatch / kLength, kLength}));
  EXPECT_EQ(batch.dim_names(), (std::vector<std::string>{"sequences", "time"}));
  ExpectPiecesApart(batch, 7);
}

// Two sequences of one trajectory side by side have one trajectory number.
TEST(EstimatorsOverUnitsTest, ANextStateIsThatOfItsOwnSequence) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict batch,
      Draw(
          *MakeSequences({.sequences = {.length = kLength}}),
          [] { return *NextStateReconstructor::Create({.traj_key = ""}); }, 5));
  const double* const next = batch.Find("next/observation")->data<double>();
  const double* const now = batch.Find("observation")->data<double>();
  for (int64_t row = 0; row < kBatch; ++row) {
    if ((row + 1) % kLength == 0) {
      EXPECT_NE(next[row], next[row]) << row;  // NaN.
    } else if (next[row] == next[row]) {
      EXPECT_EQ(next[row], now[row] + 1) << row;
    }
  }
}

}  // namespace
}  // namespace rill
