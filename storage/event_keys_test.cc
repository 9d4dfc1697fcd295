// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/event_keys.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/specs/spec.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TensorDictSpec Rows(const std::vector<std::string>& keys) {
  TensorDictSpec rows;
  for (const std::string& key : keys) {
    RILL_EXPECT_OK(rows.Set(key, LeafSpec::Binary({1})));
  }
  return rows;
}

TEST(EventKeysTest, PartsCountWhereDoneIsMissing) {
  const EventKeys keys = {.ends = {"next/done", "next/guard/done", "abandone"}};
  EXPECT_THAT(
      keys.EndsOf(Rows({"next/done", "next/truncated", "next/guard/truncated",
                        "next/guard/terminated", "done"})),
      ElementsAre("next/done", "next/guard/terminated",
                  "next/guard/truncated"));
  EXPECT_THAT(keys.EndsOf(Rows({"terminated", "abanterminated"})), IsEmpty());
}

TEST(EventKeysTest, EndsOrIdsTellTrajectories) {
  const EventKeys keys;
  for (const char* key : {"next/done", "next/terminated", "next/truncated",
                          "collector/traj_ids", "episode"}) {
    EXPECT_TRUE(keys.TellTrajectories(Rows({"x", key}))) << key;
    EXPECT_THAT(keys.WantText(), HasSubstr(key));
  }
  EXPECT_FALSE(keys.TellTrajectories(Rows({"x", "done", "next/agents/done"})));
  EXPECT_FALSE(keys.is_endless());
}

TEST(EventKeysTest, NoKeysAtAllSayThatLanesAreEndless) {
  EXPECT_TRUE((EventKeys{.ends = {}, .trajectories = {}}.is_endless()));
  EXPECT_FALSE((EventKeys{.ends = {}}.is_endless()));
  const EventKeys ids = {.ends = {}};
  EXPECT_THAT(ids.WantText(),
              AllOf(HasSubstr("episode"), Not(HasSubstr("next/done"))));
}

}  // namespace
}  // namespace rill
