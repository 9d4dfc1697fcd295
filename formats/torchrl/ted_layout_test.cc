// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/torchrl/ted_layout.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill::formats_internal {
namespace {

using ::testing::ElementsAreArray;

struct Ring {
  int64_t lanes, capacity, steps, cursor;
  TensorDict rows;  // [steps, lanes]
  // The expected layout, built trajectory by trajectory.
  std::vector<int64_t> obs, action, lengths, expanded_lengths;
};

// Numbered steps; where one ends, the next observation is another one.
Ring RandomRing(const Rng& rng, uint32_t round) {
  Ring ring;
  ring.lanes = rng.UniformInt(round, 0, 3) + 1;
  ring.capacity = rng.UniformInt(round, 1, 12) + 1;
  ring.steps = rng.UniformInt(round, 2, ring.capacity) + 1;
  const bool is_full = ring.steps == ring.capacity;
  ring.cursor = is_full ? rng.UniformInt(round, 3, ring.capacity) : ring.steps;
  const int64_t rows = ring.steps * ring.lanes;
  std::vector<int64_t> obs(rows), next(rows), action(rows);
  const Shape batch = {ring.steps, ring.lanes};
  const Tensor done = *Tensor::Zeros(DType::kBool, batch.Concat({1}));
  uint32_t draw = 4;
  for (int64_t lane = 0; lane < ring.lanes; ++lane) {
    int64_t length = 0;
    for (int64_t t = 0; t < ring.steps; ++t) {
      const int64_t place = is_full ? (t + ring.cursor) % ring.capacity : t;
      const int64_t row = place * ring.lanes + lane;
      obs[row] = 100 * (lane + 1) + 2 * t;
      action[row] = 7 * obs[row];
      done.data<bool>()[row] = rng.UniformInt(round, draw++, 3) == 0;
      const bool is_end = done.data<bool>()[row] || t == ring.steps - 1;
      next[row] = obs[row] + (is_end ? 1 : 2);
      ring.obs.push_back(obs[row]);
      ring.action.push_back(action[row]);
      ++length;
      if (!is_end) continue;
      ring.obs.push_back(next[row]);
      ring.lengths.push_back(length);
      ring.expanded_lengths.push_back(length + 1);
      length = 0;
    }
    const int64_t unwritten = ring.capacity - ring.steps;
    ring.obs.resize(ring.obs.size() + unwritten);
    ring.action.resize(ring.action.size() + unwritten);
    if (unwritten == 0) continue;
    ring.lengths.push_back(unwritten);
    ring.expanded_lengths.push_back(unwritten);
  }
  ring.rows = TensorDict(batch);
  RILL_EXPECT_OK(ring.rows.Set("obs", *Tensor::From<int64_t>(obs, batch)));
  RILL_EXPECT_OK(
      ring.rows.Set("next/obs", *Tensor::From<int64_t>(next, batch)));
  RILL_EXPECT_OK(ring.rows.Set("a/b", *Tensor::From<int64_t>(action, batch)));
  RILL_EXPECT_OK(ring.rows.Set("next/done", done));
  return ring;
}

template <typename T>
std::vector<T> Values(const Tensor& tensor) {
  return {tensor.data<T>(), tensor.data<T>() + tensor.num_elements()};
}

TEST(TedLayoutTest, RandomRingsLieAsThePlainOracleSays) {
  const Rng rng(11);
  for (uint32_t round = 0; round < 300; ++round) {
    const Ring ring = RandomRing(rng, round);
    SCOPED_TRACE(absl::StrCat(ring.lanes, " x ", ring.capacity, ", ",
                              ring.steps, ", ", ring.cursor));
    RILL_ASSERT_OK_AND_ASSIGN(
        FlatTed flat,
        FlattenTed("Test", ring.rows, ring.capacity, ring.cursor, {}));
    ASSERT_EQ(flat.expanded.size(), 1);
    EXPECT_EQ(flat.expanded[0].first, "obs");
    EXPECT_THAT(Values<int64_t>(flat.expanded[0].second),
                ElementsAreArray(ring.obs));
    ASSERT_EQ(flat.plain.size(), 2);
    for (const auto& [key, leaf] : flat.plain) {
      if (key != "a/b") continue;
      EXPECT_THAT(Values<int64_t>(leaf), ElementsAreArray(ring.action));
    }
    EXPECT_THAT(Values<int64_t>(flat.lengths), ElementsAreArray(ring.lengths));
    EXPECT_THAT(Values<int64_t>(flat.expanded_lengths),
                ElementsAreArray(ring.expanded_lengths));
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict rows, UnflattenTed("Test", flat, {}));
    RILL_ASSERT_OK(rows.Delete("done"));  // Zeros at the root.
    RILL_EXPECT_OK(rows.CheckEqual(ring.rows));
    // A leaf that is one row short.
    auto& obs = flat.expanded[0].second;
    obs = *obs.Slice(0, 1, obs.shape()[0]);
    if (obs.shape()[0] == ring.capacity * ring.lanes) continue;
    EXPECT_THAT(UnflattenTed("Test", flat, {}), IsDataLoss("\"obs\""));
  }
}

// A value that is stored once could come back as something else: then it is
// refused.
TEST(TedLayoutTest, WhatWouldNotComeBackIsRefused) {
  const Rng rng(12);
  int refused = 0;
  for (uint32_t round = 0; round < 200; ++round) {
    Ring ring = RandomRing(rng, round);
    const int64_t row = rng.UniformInt(round, 90, ring.steps * ring.lanes);
    ring.rows.Find("next/obs")->data<int64_t>()[row] += 1;
    const int64_t place = row / ring.lanes;
    const bool is_newest =
        (place + 1) % ring.capacity == ring.cursor % ring.capacity;
    const bool is_end = ring.rows.Find("next/done")->data<bool>()[row];
    const auto flat =
        FlattenTed("Test", ring.rows, ring.capacity, ring.cursor, {});
    EXPECT_EQ(flat.ok(), is_newest || is_end) << flat.status();
    refused += flat.ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace rill::formats_internal
