// SPDX-License-Identifier: Apache-2.0
// collectors/preemption_test.cc looks at those of collectors.
#include "rill/collectors/workers/joined_batch.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill::workers_internal {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
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

TEST(JoinedBatchTest, DimensionsHaveNames) {
  const TensorDictSpec spec = SpecWith("reward", DType::kFloat32);
  for (const auto& [cat, names] :
       std::vector<std::pair<CatResults, std::vector<std::string>>>{
           {CatResults::kLanes, {"lanes", "time"}},
           {CatResults::kTime, {"lanes", "time"}},
           {CatResults::kStack, {"workers", "lanes", "time"}}}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        JoinedBatch joined,
        JoinedBatch::Create(
            {.spec = spec, .cat = cat, .lanes = 2, .steps = {3, 3}}));
    RILL_ASSERT_OK(joined.Add(0, *spec.Zero({2, 3})).status());
    RILL_ASSERT_OK(joined.Add(1, *spec.Zero({2, 2})).status());
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, joined.Finish());
    EXPECT_EQ(batch.dim_names(), names);
  }
}

// A batch of one lane; a worker's rows and trajectory have its number.
TensorDict StepsOf(int64_t worker, int64_t steps) {
  TensorDict batch = *SpecWith("reward", DType::kFloat32).Zero({1, steps});
  std::fill_n(batch.Find("reward")->data<float>(), 2 * steps, worker + 1);
  std::fill_n(batch.Find("collector/traj_ids")->data<int64_t>(), steps,
              worker + 1);
  return batch;
}

TEST(JoinedBatchTest, StepsThatAreMissingAreZerosAndMarked) {
  for (const CatResults cat : {CatResults::kLanes, CatResults::kStack}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        JoinedBatch joined,
        JoinedBatch::Create({.spec = SpecWith("reward", DType::kFloat32),
                             .cat = cat,
                             .steps = {3, 3},
                             .may_be_short = true}));
    // Nothing of the longer batches is seen again.
    for (const int64_t missing : {0, 1}) {
      RILL_ASSERT_OK(joined.Add(0, StepsOf(0, 3 - 2 * missing)).status());
      RILL_ASSERT_OK(joined.Add(1, StepsOf(1, 3 - missing)).status());
    }
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, joined.Finish());
    EXPECT_EQ(batch.batch_shape(),
              cat == CatResults::kLanes ? Shape({2, 3}) : Shape({2, 1, 3}));
    EXPECT_THAT(
        batch.Flat<bool>("collector/mask"),
        IsOkAndHolds(ElementsAre(true, false, false, true, true, false)));
    EXPECT_THAT(batch.Flat<int64_t>("collector/traj_ids"),
                IsOkAndHolds(ElementsAre(1, -1, -1, 2, 2, -1)));
    EXPECT_THAT(batch.Flat<float>("reward"),
                IsOkAndHolds(ElementsAre(1, 1, 0, 0, 0, 0, 2, 2, 2, 2, 0, 0)));
  }
}

TEST(JoinedBatchTest, AlongTimeNothingIsMissing) {
  RILL_ASSERT_OK_AND_ASSIGN(
      JoinedBatch joined,
      JoinedBatch::Create({.spec = SpecWith("reward", DType::kFloat32),
                           .cat = CatResults::kTime,
                           .steps = {3, 2},
                           .may_be_short = true}));
  for (const int64_t steps : {3, 1}) {
    RILL_ASSERT_OK(joined.Add(0, StepsOf(0, steps)).status());
    RILL_ASSERT_OK(joined.Add(1, StepsOf(1, 2)).status());
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, joined.Finish());
    EXPECT_EQ(batch.batch_shape(), Shape({1, steps + 2}));
    EXPECT_FALSE(batch.Contains("collector/mask"));
    std::vector<int64_t> ids(steps, 1);
    ids.insert(ids.end(), 2, 2);
    EXPECT_THAT(batch.Flat<int64_t>("collector/traj_ids"),
                IsOkAndHolds(ElementsAreArray(ids)));
  }
}

}  // namespace
}  // namespace rill::workers_internal
