// SPDX-License-Identifier: Apache-2.0
#include "rill/specs/stacked_spec.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/tensors/test_tensors.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TensorDictSpec Agent(const LeafSpec& action) {
  TensorDictSpec spec;
  spec.Set("action", action).IgnoreError();
  spec.Set("next/seen", LeafSpec::Bounded(DType::kFloat32, {2}, 0, 1))
      .IgnoreError();
  return spec;
}

absl::StatusOr<std::vector<TensorDict>> RunExample(const TensorDictSpec& scout,
                                                   const TensorDictSpec& tank) {
  RILL_ASSIGN_OR_RETURN(const StackedSpec team,
                        StackedSpec::Create({scout, tank}));
  RILL_ASSIGN_OR_RETURN(std::vector<TensorDict> moves,
                        team.RandomList({32}, Rng(1), 0));
  return moves;
}

TEST(StackedSpecTest, Example) {
  const TensorDictSpec scout = Agent(LeafSpec::OneHot(5));
  const TensorDictSpec tank = Agent(LeafSpec::OneHot(3));
  RILL_ASSERT_OK_AND_ASSIGN(const std::vector<TensorDict> moves,
                            RunExample(scout, tank));
  EXPECT_THAT(*moves[0].Get("action"), TensorIs(DType::kBool, {32, 5}));
  EXPECT_THAT(*moves[1].Get("action"), TensorIs(DType::kBool, {32, 3}));
}

TEST(StackedSpecTest, EqualSpecsAreOneOfALargerShape) {
  const TensorDictSpec agent = Agent(LeafSpec::OneHot(3));
  RILL_ASSERT_OK_AND_ASSIGN(const StackedSpec team,
                            StackedSpec::Create({agent, agent, agent, agent}));
  EXPECT_TRUE(team.is_uniform());
  EXPECT_EQ(team.size(), 4);
  TensorDictSpec want;
  RILL_ASSERT_OK(want.Set("action", LeafSpec::OneHot(3, DType::kBool, {4})));
  RILL_ASSERT_OK(
      want.Set("next/seen", LeafSpec::Bounded(DType::kFloat32, {4, 2}, 0, 1)));
  EXPECT_THAT(team.Uniform(), IsOkAndHolds(want));
  EXPECT_THAT(want.Index(2), IsOkAndHolds(agent));
  EXPECT_THAT(team.Index(3), IsOkAndHolds(agent));
  EXPECT_THAT(team.Index(4), IsOutOfRange());
  EXPECT_EQ(team.ToString().substr(0, 5), "4 x {");
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict, team.Random({5}, Rng(1), 0));
  EXPECT_EQ(dict.batch_shape(), Shape({5}));
  RILL_EXPECT_OK(want.CheckValues("Test", dict));
  RILL_EXPECT_OK(team.CheckValues("Test", dict));
}

TEST(StackedSpecTest, ThePlaceIsThatOfAll) {
  TensorDictSpec here = Agent(LeafSpec::OneHot(3));
  TensorDictSpec there = here;
  there.set_device(Device::Fake(0));
  const auto uniform = [](std::vector<TensorDictSpec> specs) {
    return *StackedSpec::Create(std::move(specs))->Uniform();
  };
  EXPECT_EQ(uniform({there, there}).device(), Device::Fake(0));
  EXPECT_EQ(uniform({there, here}).device(), std::nullopt);
  EXPECT_THAT(there.ToString(), testing::EndsWith("} on fake:0"));
}

TEST(StackedSpecTest, BoundsAndMasksThatDifferStillStack) {
  const LeafSpec move = LeafSpec::Categorical(3);
  const TensorDictSpec free = Agent(move);
  const TensorDictSpec bound =
      Agent(*move.WithMask(MakeTensor<bool>({1, 0, 0}, {3})));
  RILL_ASSERT_OK_AND_ASSIGN(const StackedSpec team,
                            StackedSpec::Create({free, bound}));
  EXPECT_FALSE(team.is_uniform());
  EXPECT_TRUE(team.has_one_layout());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDictSpec one, team.Uniform());
  EXPECT_THAT(one.Index(0), IsOkAndHolds(free));
  EXPECT_THAT(one.Index(1), IsOkAndHolds(bound));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict,
                            team.Random({50}, Rng(1), 0));
  RILL_EXPECT_OK(one.CheckValues("Test", dict));
  TensorDict wrong = *dict.Clone();
  wrong.Find("action")->data<int64_t>()[7] = 2;  // Row 3, the bound agent.
  EXPECT_THAT(team.CheckValues("Test", wrong),
              StatusIs(kInvalid, HasSubstr("Test: spec 1: \"action\"")));
  EXPECT_FALSE(one.Contains(wrong));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict mended, team.Project(wrong));
  RILL_EXPECT_OK(team.CheckValues("Test", mended));
  EXPECT_THAT(one.Project(wrong), IsOkAndHolds(BitEqualTo(mended)));
}

TEST(StackedSpecTest, DifferentSpecsStayAList) {
  const TensorDictSpec scout = Agent(LeafSpec::OneHot(5));
  TensorDictSpec tank = Agent(LeafSpec::OneHot(3));
  RILL_ASSERT_OK(tank.Set("ammo", LeafSpec::Binary({})));
  RILL_ASSERT_OK_AND_ASSIGN(const StackedSpec team,
                            StackedSpec::Create({scout, tank, scout}));
  EXPECT_FALSE(team.has_one_layout());
  EXPECT_THAT(team.Index(1), IsOkAndHolds(tank));
  EXPECT_THAT(team.Uniform(), StatusIs(kInvalid));
  EXPECT_THAT(team.Random({2}, Rng(1), 0), IsFailedPrecondition());
  RILL_ASSERT_OK_AND_ASSIGN(std::vector<TensorDict> list,
                            team.RandomList({2}, Rng(1), 0));
  RILL_EXPECT_OK(team.CheckList("Test", list));
  EXPECT_THAT(list[0], ::testing::Not(BitEqualTo(list[2])));  // Own numbers.
  list[1].Find("next/seen")->data<float>()[0] = 7;
  EXPECT_THAT(team.CheckList("Test", list),
              StatusIs(kInvalid, HasSubstr("Test: spec 1: \"next/seen\"")));
  RILL_ASSERT_OK_AND_ASSIGN(list, team.ProjectList(list));
  RILL_EXPECT_OK(team.CheckList("Test", list));
  list.pop_back();
  EXPECT_THAT(team.CheckList("Test", list),
              StatusIs(kInvalid, HasSubstr("got 2, want 3")));
  RILL_ASSERT_OK_AND_ASSIGN(list, team.ZeroList({2}));
  EXPECT_EQ(list.size(), 3);
}

TEST(StackedSpecTest, ValuesStackAtTheDimension) {
  TensorDictSpec spec;
  RILL_ASSERT_OK(spec.Set("x", LeafSpec::Unbounded(DType::kFloat32, {2, 3})));
  for (const int dim : {0, 1, 2}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        const StackedSpec team,
        StackedSpec::Create({spec, spec, spec, spec}, dim));
    RILL_ASSERT_OK_AND_ASSIGN(const std::vector<TensorDict> list,
                              team.RandomList({5}, Rng(1), 0));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict, team.StackValues(list));
    EXPECT_EQ(dict.batch_shape(), Shape({5}));
    EXPECT_EQ(dict.Find("x")->shape()[1 + dim], 4);
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDictSpec one, team.Uniform());
    RILL_EXPECT_OK(one.CheckLayout("Test", dict));
    EXPECT_THAT(
        team.Unstack(dict),
        IsOkAndHolds(ElementsAre(BitEqualTo(list[0]), BitEqualTo(list[1]),
                                 BitEqualTo(list[2]), BitEqualTo(list[3]))));
  }
  EXPECT_THAT(StackedSpec::Create({spec}, 3),
              StatusIs(kInvalid, HasSubstr("\"x\" of spec 0")));
  EXPECT_THAT(StackedSpec::Create({}), StatusIs(kInvalid));
  RILL_ASSERT_OK_AND_ASSIGN(const StackedSpec two,
                            StackedSpec::Create({spec, spec}));
  EXPECT_THAT(two.Unstack(*spec.Zero({5})->Clone()), IsOk());
  TensorDict flat({5});
  RILL_ASSERT_OK(flat.Set("x", Iota<float>({5})));
  EXPECT_THAT(two.Unstack(flat), StatusIs(kInvalid, HasSubstr("\"x\"")));
}

}  // namespace
}  // namespace rill
