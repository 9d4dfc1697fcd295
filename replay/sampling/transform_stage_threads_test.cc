// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/replay/sampling/transform_stage.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/testing/fake_row_counter.h"

namespace rill::replay_internal {
namespace {

absl::StatusOr<std::unique_ptr<TransformStage>> CountingStage(
    std::function<void()> before_waiting) {
  TransformStage::Options options;
  options.transforms.push_back(MakeFakeRowCounter());
  options.sample_spec = [](const TensorDictSpec& rows) { return rows; };
  options.before_waiting = std::move(before_waiting);
  return TransformStage::Create(std::move(options));
}

// Whatever thread makes which batch when, and whichever fail: each batch that
// does not is numbered behind those before it.
TEST(TransformStageThreadsTest, BatchesLearnInTheOrderOfTheirNumbers) {
  constexpr int64_t kBatches = 60;
  constexpr int64_t kRows = 3;
  constexpr int kThreads = 4;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    RILL_ASSERT_OK_AND_ASSIGN(const auto stage, CountingStage(nullptr));
    const Rng rng(seed);
    std::vector<int64_t> kinds(
        kBatches);  // 0: is skipped, 1: fails at its end.
    for (int64_t k = 0; k < kBatches; ++k) kinds[k] = rng.UniformInt(k, 0, 4);
    std::vector<int64_t> first(kBatches, -1);
    std::atomic<int64_t> next = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (int64_t k = next++; k < kBatches; k = next++) {
          if (kinds[k] == 0) {
            stage->Skip(k);
            continue;
          }
          TensorDict batch = NumberedSteps(1, kRows);
          const absl::Status status = stage->Forward(k, &batch, [&] {
            return kinds[k] == 1 ? absl::InternalError("x") : absl::OkStatus();
          });
          if (!status.ok()) continue;
          first[k] = batch.Get("row_number")->Flat<int64_t>()->front();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    int64_t rows = 0;
    for (int64_t k = 0; k < kBatches; ++k) {
      EXPECT_EQ(first[k], kinds[k] > 1 ? rows : -1) << k;
      if (kinds[k] > 1) rows += kRows;
    }
  }
}

// It tells that earlier batches are to be made, and then waits for them.
TEST(TransformStageThreadsTest, AWriteThatLearnsWaitsForEarlierBatches) {
  std::vector<std::thread> makers;
  TransformStage* made_in = nullptr;
  std::atomic<bool> is_made = false;
  RILL_ASSERT_OK_AND_ASSIGN(const auto stage, CountingStage([&] {
                              makers.emplace_back([&] {
                                TensorDict batch = NumberedSteps(1, 2);
                                RILL_EXPECT_OK(made_in->Forward(0, &batch, [&] {
                                  is_made = true;
                                  return absl::OkStatus();
                                }));
                              });
                            }));
  made_in = stage.get();
  TensorDict rows = NumberedSteps(1, 4);
  RILL_EXPECT_OK(stage->Inverse(1, &rows).status());
  EXPECT_TRUE(is_made);
  for (std::thread& maker : makers) maker.join();
  EXPECT_EQ(makers.size(), 1);
}

}  // namespace
}  // namespace rill::replay_internal
