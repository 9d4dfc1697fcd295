// SPDX-License-Identifier: Apache-2.0
#include "rill/flow/producers.h"

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/flow/trajectory_id.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

TEST(ProducersTest, NobodyIsGivenANumberThatAnotherHas) {
  const Rng rng(/*seed=*/5);
  std::vector<ProducerNumbers> sources;
  for (uint32_t i = 0; i < 2000; ++i) {
    const Rng::Block bits = rng.Bits(0, i);
    if (bits[0] % 3 == 0 && !sources.empty()) {
      std::swap(sources[bits[1] % sources.size()], sources.back());
      sources.pop_back();
      continue;
    }
    const int64_t count = 1 + bits[2] % 5;
    if (bits[0] % 3 == 1) {
      sources.push_back(ProducerNumbers::Of(bits[1] % 50, count));
      continue;
    }
    std::set<int64_t> taken;
    for (const ProducerNumbers& source : sources) {
      for (int64_t k = 0; k < source.count(); ++k) {
        taken.insert(source.first() + k);
      }
    }
    int64_t lowest = 0;
    for (int64_t k = 0; k < count; ++k) {
      if (!taken.contains(lowest + k)) continue;
      lowest += k + 1;
      k = -1;
    }
    RILL_ASSERT_OK_AND_ASSIGN(ProducerNumbers numbers,
                              ProducerNumbers::Lowest(count));
    ASSERT_EQ(numbers.first(), lowest);
    ASSERT_EQ(numbers.count(), count);
    sources.push_back(std::move(numbers));
  }
}

TEST(ProducersTest, ThereAreNotMoreThanTrajectoryIdsHold) {
  RILL_ASSERT_OK_AND_ASSIGN(const ProducerNumbers all,
                            ProducerNumbers::Lowest(kMaxTrajectoryProducer));
  RILL_ASSERT_OK_AND_ASSIGN(const ProducerNumbers last,
                            ProducerNumbers::Lowest());
  EXPECT_EQ(last.first(), kMaxTrajectoryProducer);
  EXPECT_THAT(ProducerNumbers::Lowest(), IsResourceExhausted("got 2 sources"));
}

TEST(ProducersTest, SourcesDiffer) {
  EXPECT_NE(NewSource(), 0u);
  EXPECT_NE(NewSource(), NewSource());
}

}  // namespace
}  // namespace rill
