// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/mujoco/mujoco_model.h"

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mujoco/mujoco.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/envs/mujoco/mujoco_call.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kBall[] = R"(
  <mujoco>
    <option timestep="0.004"/>
    <worldbody><body><freejoint/><geom size="0.1"/></body></worldbody>
  </mujoco>)";

TEST(MujocoModelTest, Example) {
  const std::string path = JoinPath(testing::TempDir(), "scene.xml");
  RILL_ASSERT_OK(WriteFileAtomically(path, kBall));
  const auto example = [&]() -> absl::Status {
    RILL_ASSIGN_OR_RETURN(auto model, LoadMujocoModel(path));
    const double dt = model->opt.timestep;
    EXPECT_EQ(dt, 0.004);
    EXPECT_EQ(model->nq, 7);
    return absl::OkStatus();
  };
  RILL_EXPECT_OK(example());
}

TEST(MujocoModelTest, TheTextAloneIsAModelToo) {
  RILL_ASSERT_OK_AND_ASSIGN(MujocoModel model, ParseMujocoModel(kBall));
  EXPECT_EQ(model->nv, 6);
}

TEST(MujocoModelTest, AMissingFileIsNamed) {
  EXPECT_THAT(LoadMujocoModel("/no/such/model.xml"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("there is no file \"/no/such/model.xml\"")));
}

TEST(MujocoModelTest, WhatDoesNotLoadComesWithMujocosReason) {
  const std::string path = JoinPath(testing::TempDir(), "broken.xml");
  RILL_ASSERT_OK(WriteFileAtomically(
      path, "<mujoco>\n<worldbody><bodyy/></worldbody></mujoco>"));
  EXPECT_THAT(LoadMujocoModel(path),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(path), HasSubstr("unrecognized element"),
                             HasSubstr("bodyy"), HasSubstr("line 2"))));
  for (const char* text : {"", "<mujoco>", "no xml", "<mujoco></mujoco>x<"}) {
    EXPECT_THAT(ParseMujocoModel(text),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << text;
  }
  // The engine, not the parser, finds that this has too little memory.
  EXPECT_THAT(ParseMujocoModel(R"(
      <mujoco>
        <size memory="1"/>
        <worldbody><body><freejoint/><geom size="0.1"/></body></worldbody>
      </mujoco>)"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("stack overflow")));
}

TEST(MujocoCallTest, AFatalErrorIsAStatusAndTheNextCallIsFine) {
  RILL_ASSERT_OK_AND_ASSIGN(MujocoModel model, ParseMujocoModel(kBall));
  const std::unique_ptr<mjData, void (*)(mjData*)> data(
      mj_makeData(model.get()), &mj_deleteData);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(
        envs_internal::CallMujoco([] { mju_error("joint %d came off", 7); }),
        StatusIs(absl::StatusCode::kInternal,
                 HasSubstr("MuJoCo: joint 7 came off")));
    RILL_EXPECT_OK(
        envs_internal::CallMujoco([&] { mj_step(model.get(), data.get()); }));
  }
  EXPECT_GT(data->time, 0);
}

// Other code keeps its own handler of MuJoCo's messages.
std::string* said = nullptr;
void Remember(const char* text) { *said = text; }

TEST(MujocoCallTest, OthersKeepTheirHandlers) {
  std::string text;
  said = &text;
  mju_user_warning = &Remember;
  RILL_EXPECT_OK(
      envs_internal::CallMujoco([] { mju_warning("inside a call"); }));
  EXPECT_EQ(text, "");
  mju_warning("outside");
  EXPECT_EQ(text, "outside");
  mju_user_warning = nullptr;
}

}  // namespace
}  // namespace rill
