// SPDX-License-Identifier: Apache-2.0
#include "rill/testing/allocation_counter.h"

#include <cstdint>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

struct alignas(64) Line {
  int64_t value = 7;
};

TEST(AllocationCounterTest, CountsWhatIsAllocated) {
  const AllocationCounter allocations;
  const auto text = std::make_unique<std::string>(100, 'x');
  EXPECT_EQ(allocations.count(), 2);
  const auto numbers = std::make_unique<int64_t[]>(text->size());
  EXPECT_EQ(allocations.count(), 3);
  const auto line = std::make_unique<Line>();
  EXPECT_EQ(allocations.count(), 4);
}

TEST(AllocationCounterTest, CountsTheBytesOfTensors) {
  const AllocationCounter allocations;
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor tensor,
                            Tensor::Zeros(DType::kInt64, {1000}));
  EXPECT_GE(allocations.count(), 1);
}

TEST(AllocationCounterTest, CountsNothingWhereNothingIsAllocated) {
  const AllocationCounter allocations;
  const std::string text = "short";
  EXPECT_EQ(allocations.count(), 0) << text;
}

}  // namespace
}  // namespace rill
