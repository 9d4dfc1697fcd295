// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/rows/group_ends.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/specs/spec.h"
#include "rill/testing/status_matchers.h"

namespace rill::transforms_internal {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TensorDictSpec Rows(const std::vector<std::string>& keys) {
  TensorDictSpec rows;
  for (const std::string& key : keys) {
    RILL_EXPECT_OK(rows.Set(key, LeafSpec::Binary({1})));
  }
  return rows;
}

TEST(GroupEndsTest, PartsStandForADoneThatIsMissing) {
  const TensorDictSpec rows = Rows(
      {"next/done", "next/truncated", "next/a/truncated", "next/b/terminated"});
  EXPECT_THAT(EndsOf("next/done", rows), ElementsAre("next/done"));
  EXPECT_THAT(EndsOf("next/a/done", rows), ElementsAre("next/a/truncated"));
  EXPECT_THAT(EndsOf("next/b/done", rows), ElementsAre("next/b/terminated"));
  EXPECT_THAT(EndsOf("next/c/done", rows), IsEmpty());
  EXPECT_THAT(EndsOf("next/aban"
                     "done",
                     rows),
              IsEmpty());
}

TEST(GroupEndsTest, TheInnermostGroupWithFlagsEndsALeaf) {
  const TensorDictSpec rows =
      Rows({"next/done", "next/a/done", "next/a/b/c/terminated"});
  for (const char* key : {"next/reward", "observation", "next/b/reward"}) {
    EXPECT_THAT(GroupEndsOf(key, rows), IsEmpty()) << key;
  }
  for (const char* key : {"next/a/reward", "a/observation", "a/b/x"}) {
    EXPECT_THAT(GroupEndsOf(key, rows), ElementsAre("next/a/done")) << key;
  }
  EXPECT_THAT(GroupEndsOf("next/a/b/c/reward", rows),
              ElementsAre("next/a/b/c/terminated"));
}

TEST(GroupEndsTest, OtherEndsThanTheGroupsAreRefused) {
  const TensorDictSpec rows = Rows({"next/done", "next/a/done"});
  RILL_EXPECT_OK(CheckStopsAtGroupEnds("T", "next/reward", "next/done", rows));
  RILL_EXPECT_OK(
      CheckStopsAtGroupEnds("T", "next/a/reward", "next/a/done", rows));
  EXPECT_THAT(CheckStopsAtGroupEnds("T", "next/a/reward", "next/done", rows),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("T: \"next/a/reward\": got done_key "
                                       "\"next/done\""),
                             HasSubstr("\"next/a/done\""))));
}

}  // namespace
}  // namespace rill::transforms_internal
