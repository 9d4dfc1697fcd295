// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/lane_rows.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

TEST(LaneFlagsTest, SetKeepsDoneConsistent) {
  TensorDict dict({4});
  for (const char* key : {"done", "terminated", "truncated"}) {
    RILL_ASSERT_OK_AND_ASSIGN(Tensor flag, Tensor::Zeros(DType::kBool, {4, 1}));
    RILL_ASSERT_OK(dict.Set(key, std::move(flag)));
  }
  RILL_ASSERT_OK_AND_ASSIGN(LaneFlags flags, FindLaneFlags(dict));
  flags.Set(1, /*is_terminated=*/true, /*is_truncated=*/false);
  flags.Set(2, /*is_terminated=*/false, /*is_truncated=*/true);
  flags.Set(3, /*is_terminated=*/true, /*is_truncated=*/true);
  EXPECT_THAT(flags.done, ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(flags.terminated, ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(flags.truncated, ElementsAre(0, 0, 1, 1));
}

TEST(LaneMaskTest, HasOneEntryALaneAndGroup) {
  const EnvSpec spec = {
      .name = "T", .lanes = 2, .own_episodes = {"a", "b", "c"}};
  const std::vector<uint8_t> two = {1, 0}, three = {1, 0, 1}, six(6, 1);
  RILL_EXPECT_OK(CheckMask("T", spec, two));
  RILL_EXPECT_OK(CheckMask("T", spec, {two, six}));
  EXPECT_THAT(CheckMask("T", spec, three),
              StatusIs(kInvalidArgument, HasSubstr("3 entries, want one a")));
  EXPECT_THAT(CheckMask("T", spec, {two, three}),
              StatusIs(kInvalidArgument, HasSubstr("3 entries, want 6")));
}

}  // namespace
}  // namespace rill
