// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/testing/numbered_steps.h"

#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "rill/storage/dense_storage.h"
#include "rill/testing/status_matchers.h"

namespace rill {

TensorDict NumberedSteps(int64_t lanes, int64_t time, int64_t first) {
  std::vector<float> observations;
  std::vector<int64_t> actions;
  std::vector<float> rewards;
  auto done = *Tensor::Zeros(DType::kBool, {lanes, time, 1});
  for (int64_t lane = 0; lane < lanes; ++lane) {
    for (int64_t t = 0; t < time; ++t) {
      const int64_t number = lane * 1000 + first + t;
      observations.insert(observations.end(), 3, static_cast<float>(number));
      actions.push_back(number);
      rewards.push_back(static_cast<float>(number));
      done.data<bool>()[lane * time + t] = t + 1 == time;
    }
  }
  return *TensorDict::Create(
      {lanes, time},
      {{"observation", *Tensor::From<float>(observations, {lanes, time, 3})},
       {"action", *Tensor::From<int64_t>(actions, {lanes, time})},
       {"next/reward", *Tensor::From<float>(rewards, {lanes, time, 1})},
       {"next/done", done}});
}

std::vector<float> ActionsModulo(const TensorDict& batch, int64_t modulo,
                                 int64_t plus) {
  std::vector<float> values;
  const absl::Span<int64_t> actions = *batch.Flat<int64_t>("action");
  for (const int64_t action : actions) {
    values.push_back(static_cast<float>(plus + action % modulo));
  }
  return values;
}

std::shared_ptr<Storage> MakeStorage(int64_t capacity, int64_t lanes) {
  return *DenseStorage::Create({.capacity = capacity, .lanes = lanes});
}

void ExpectWholeSteps(const TensorDict& sample, int64_t lane_capacity) {
  auto observations = sample.Flat<float>("observation");
  auto actions = sample.Flat<int64_t>("action");
  auto rewards = sample.Flat<float>("next/reward");
  auto slots = sample.Flat<int64_t>("index");
  ASSERT_TRUE(observations.ok() && actions.ok() && rewards.ok() && slots.ok())
      << sample.DebugString();
  for (size_t i = 0; i < actions->size(); ++i) {
    const int64_t number = (*actions)[i];
    for (size_t j = 0; j < 3; ++j) {
      EXPECT_EQ((*observations)[3 * i + j], static_cast<float>(number));
    }
    EXPECT_EQ((*rewards)[i], static_cast<float>(number));
    EXPECT_EQ((*slots)[i],
              number / 1000 * lane_capacity + number % 1000 % lane_capacity);
  }
}

}  // namespace rill
