// SPDX-License-Identifier: Apache-2.0
// Transforms beside an environment on the fake device, whose streams show each
// wait that is missing, and where they work: there or on copies, as
// docs/transforms.md says.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/device/testing/fake_device_test.h"
#include "rill/envs/device/device_env.h"
#include "rill/envs/device/testing/step_cases.h"
#include "rill/envs/device/testing/twin_envs.h"
#include "rill/envs/env.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

class DeviceStepsFakeTest : public FakeDeviceTest {
 protected:
  DeviceStepsFakeTest() : FakeDeviceTest({.run_some_seed = 7}) {}

  // By a legal action.
  int64_t WaitsOfAStep(Env& env) {
    const TensorDict action = *env.spec().action.Random(
        {TwinEnvs::kLanes}, Rng(1, RngStream::kUser), 0);
    RILL_EXPECT_OK(env.step().Find("action")->CopyFrom(*action.Find("action")));
    fake_->StartCalls();
    RILL_EXPECT_OK(env.Step());
    return TakeWaits();
  }

  // Whether the transforms of the case work on the device: a step then waits
  // for no more than that of the environment.
  bool WorksOnDevice(const TransformsUnderTest& the_case) {
    const DeviceEnvOptions options = {.check_actions = false};
    absl::StatusOr<TwinEnvs> twins = TwinEnvs::Create(the_case, options);
    RILL_EXPECT_OK(twins);
    auto bare = TwinEnvs::OnDevice(the_case.action, options);
    RILL_EXPECT_OK(bare);
    if (!twins.ok() || !bare.ok()) return false;
    const std::vector<uint8_t> all(TwinEnvs::kLanes, 1);
    for (Env* const env : {bare->get(), static_cast<Env*>(&twins->there())}) {
      RILL_EXPECT_OK(env->Reset(all));
      // Its first step copies numbers of transforms to the device.
      WaitsOfAStep(*env);
      RILL_EXPECT_OK(env->Reset(all));
    }
    return WaitsOfAStep(twins->there()) == WaitsOfAStep(**bare);
  }

  void ExpectTheHostsBits(const TransformsUnderTest& the_case) {
    for (const bool fills_in_place : {true, false}) {
      RILL_ASSERT_OK_AND_ASSIGN(
          TwinEnvs twins,
          TwinEnvs::Create(the_case, {.fills_in_place = fills_in_place}));
      RILL_ASSERT_OK(twins.ResetAll());
      for (uint64_t i = 0; i < 25; ++i) {
        RILL_ASSERT_OK(twins.Step(i)) << "step " << i;
        RILL_ASSERT_OK(twins.Reset(i)) << "reset " << i;
      }
      RILL_EXPECT_OK(twins.CompareStates());
    }
  }
};

// --- Each transform ----------------------------------------------------------

// The column *device* of those that work beside an environment.
std::map<std::string, std::string> ReadColumn() {
  std::ifstream page(absl::StrCat(std::getenv("TEST_SRCDIR"), "/",
                                  std::getenv("TEST_WORKSPACE"),
                                  "/docs/transforms.md"));
  EXPECT_TRUE(page.is_open());
  std::map<std::string, std::string> column;
  for (std::string line; std::getline(page, line);) {
    const std::vector<std::string> cells = absl::StrSplit(line, " | ");
    if (cells.size() != 5 || !absl::StartsWith(cells[0], "| `")) continue;
    const std::vector<std::string> places = absl::StrSplit(cells[2], ' ');
    bool is_beside = false;
    for (const std::string& place : places) is_beside |= place == "E";
    if (!is_beside) continue;
    absl::string_view name = cells[0];
    absl::ConsumePrefix(&name, "| `");
    absl::ConsumeSuffix(&name, "`");
    column[std::string(name)] = cells[3];
  }
  return column;
}

TEST_F(DeviceStepsFakeTest, EachTransformMakesTheHostsBits) {
  for (const TransformsUnderTest& each : StepCases()) {
    SCOPED_TRACE(each.make().back()->name());
    ExpectTheHostsBits(each);
  }
}

TEST_F(DeviceStepsFakeTest, EachTransformWorksWhereItsTableSays) {
  const std::map<std::string, std::string> column = ReadColumn();
  std::map<std::string, int> tried = {{"Timer", 1}};  // Reads a clock.
  for (const TransformsUnderTest& each : StepCases()) {
    const std::string name(each.make().back()->name());
    ++tried[name];
    ASSERT_TRUE(column.contains(name)) << name;
    const std::string& where = column.at(name);
    EXPECT_EQ(WorksOnDevice(each),
              absl::StartsWith(where, "both") ||
                  absl::EndsWith(where, "beside an environment both"))
        << name << ": " << where;
  }
  for (const auto& [name, where] : column) {
    // Others are as what they are made of.
    if (!absl::StartsWith(where, "both") && !absl::StartsWith(where, "host")) {
      continue;
    }
    EXPECT_TRUE(tried.contains(name)) << name << " has no case";
  }
}

}  // namespace
}  // namespace rill
