// SPDX-License-Identifier: Apache-2.0
// Only errors; collectors/preemption_test.cc looks at joined batches.
#include "rill/collectors/workers/joined_batch.h"

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/spec.h"
#include "rill/testing/status_matchers.h"

namespace rill::workers_internal {
namespace {

using ::testing::HasSubstr;

TensorDictSpec SpecWith(absl::string_view key, DType dtype) {
  TensorDictSpec spec;
  RILL_EXPECT_OK(
      spec.Set("collector/traj_ids", LeafSpec::Unbounded(DType::kInt64, {})));
  RILL_EXPECT_OK(spec.Set(key, LeafSpec::Unbounded(dtype, {2})));
  return spec;
}

TEST(JoinedBatchTest, ALeafThatIsNamedAsTheMaskIsRefused) {
  JoinedBatch::Options options = {
      .spec = SpecWith("collector/mask", DType::kInt64), .steps = {3, 3}};
  RILL_EXPECT_OK(JoinedBatch::Create(options).status());  // There is no mask.
  options.may_be_short = true;
  EXPECT_THAT(JoinedBatch::Create(options).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"collector/mask\" of the workers")));
  options.cat = CatResults::kTime;
  RILL_EXPECT_OK(JoinedBatch::Create(options).status());
}

TEST(JoinedBatchTest, ABatchOfAnotherShapeIsRefused) {
  const TensorDictSpec spec = SpecWith("reward", DType::kFloat32);
  RILL_ASSERT_OK_AND_ASSIGN(
      JoinedBatch joined,
      JoinedBatch::Create({.spec = spec, .lanes = 2, .steps = {3, 5}}));
  for (const Shape& shape :
       {Shape({2, 4}), Shape({1, 3}), Shape({2, 0}), Shape({6})}) {
    EXPECT_THAT(joined.Add(0, *spec.Zero(shape)).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("want [2, 1 to 3]")));
  }
  RILL_EXPECT_OK(joined.Add(0, *spec.Zero({2, 3})).status());
}

}  // namespace
}  // namespace rill::workers_internal
