// SPDX-License-Identifier: Apache-2.0
// Runs of GymnasiumEnv leave nothing, however they end.
#include <signal.h>
#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/envs/env.h"
#include "rill/envs/gymnasium/testing/fake_gymnasium.h"
#include "rill/testing/process_traces.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Lt;
using ::testing::SizeIs;

const auto* const kNeedsNumpy =
    ::testing::AddGlobalTestEnvironment(new NeedsNumpy());

constexpr int kRuns = 25;  // Of each of four kinds.

bool IsShared(const std::string& mapping) {
  return absl::StrContains(mapping, "rill_gymnasium") ||
         absl::StrContains(mapping, "/dev/shm");
}

absl::StatusOr<std::unique_ptr<Env>> Begin(const std::string& fault) {
  RILL_ASSIGN_OR_RETURN(
      auto env,
      MakeFakeGymnasiumEnv(
          {.id = "Count-v0",
           .lanes = 2,
           .kwargs = absl::StrCat(R"({"faults": {"1": ")", fault, R"("}})")}));
  RILL_RETURN_IF_ERROR(env->Reset(std::vector<uint8_t>{1, 1}));
  return env;
}

absl::Status StepUntilError(Env& env) {
  for (;;) RILL_RETURN_IF_ERROR(env.Step());
}

// Each ends a run in its own way.
void EndByError() {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, Begin("raise"));
  EXPECT_THAT(StepUntilError(*env).message(), HasSubstr("no such step"));
}

void EndBySignal() {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, Begin("signal"));
  EXPECT_THAT(StepUntilError(*env).message(), HasSubstr("signal 11"));
}

void EndBySigkill() {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, Begin(""));
  const std::vector<pid_t> children = ChildProcesses();
  ASSERT_THAT(children, SizeIs(1));
  kill(children[0], SIGKILL);
  EXPECT_THAT(StepUntilError(*env).message(), HasSubstr("signal 9"));
}

void EndInTheMiddleOfAStep() {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, Begin(""));
  RILL_ASSERT_OK(env->BeginStep());
}

TEST(GymnasiumLeakTest, RunsLeaveNothingHoweverTheyEnd) {
  const std::vector<std::function<void()>> kinds = {
      EndByError, EndBySignal, EndBySigkill, EndInTheMiddleOfAStep};
  for (const auto& run : kinds) run();  // What is made once is made here.
  const auto descriptors = NamesIn("/proc/self/fd");
  const auto shared = NamesIn("/dev/shm");
  const auto mappings = MappingsOf("");
  for (const auto& run : kinds) {
    for (int i = 0; i < kRuns; ++i) run();
  }
  EXPECT_THAT(ChildProcesses(), IsEmpty());
  EXPECT_EQ(NamesIn("/proc/self/fd"), descriptors);
  const auto after = MappingsOf("");
  EXPECT_THAT(std::count_if(after.begin(), after.end(), IsShared), 0);
  // The allocator has mappings of its own, and other processes have shared
  // memory; what a kind of run leaves is there kRuns times.
  EXPECT_THAT(after.size(), Lt(mappings.size() + kRuns));
  std::vector<std::string> fresh;
  const auto shared_after = NamesIn("/dev/shm");
  std::set_difference(shared_after.begin(), shared_after.end(), shared.begin(),
                      shared.end(), std::back_inserter(fresh));
  EXPECT_THAT(fresh, SizeIs(Lt(kRuns)));
}

}  // namespace
}  // namespace rill
