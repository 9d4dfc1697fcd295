// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/structure/select.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/device/device.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/fake_environment.h"
#include "rill/transforms/conformance/step_transform_conformance.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"
#include "rill/transforms/structure/rename.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;
constexpr auto kNotFound = absl::StatusCode::kNotFound;

// With leaves that no one needs, at two depths.
TensorDictSpec WithInfo() {
  TensorDictSpec spec = TedSpec();
  for (const char* key : {"info/a", "info/b", "next/info/a", "next/info/b",
                          "extra", "next/extra"}) {
    RILL_EXPECT_OK(spec.Set(key, LeafSpec::Unbounded(DType::kFloat32, {2})));
  }
  return spec;
}

TensorDict Batch() {
  TensorDict batch = *WithInfo().Random({3}, Rng(1, RngStream::kUser), 0);
  RILL_EXPECT_OK(batch.Set("note", NonTensor{"1"}));
  RILL_EXPECT_OK(batch.SetDimNames({"time"}));
  return batch;
}

// A gather by the transform's plan gives what Forward gives.
template <typename Transform>
void ExpectPlanIsForward(const Transform& transform) {
  const TensorDict rows = *WithInfo().Random({3}, Rng(2, RngStream::kUser), 0);
  TensorDict batch = rows;
  RILL_ASSERT_OK(transform.Forward(&batch, nullptr));
  GatherPlan plan;
  for (const std::string& key : rows.LeafKeys()) {
    plan.leaves.push_back({.key = key, .from = key});
  }
  transform.Extend(&plan);
  TensorDict gathered({3});
  for (const GatherPlan::Leaf& leaf : plan.leaves) {
    EXPECT_TRUE(leaf.maps.empty());
    RILL_ASSERT_OK(gathered.Set(leaf.key, *rows.Get(leaf.from)));
  }
  RILL_EXPECT_OK(gathered.CheckEqual(batch));
}

template <typename Transform>
std::vector<std::string> StepKeys(const Transform& transform) {
  auto plan = transform.PlanSteps(WithInfo());
  RILL_EXPECT_OK(plan);
  return plan.ok() ? plan->spec.LeafKeys() : std::vector<std::string>();
}

// --- Select ------------------------------------------------------------------

TEST(SelectTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto select,
      Select::Create({.selected_keys = {"observation", "action", "next"}}));
  EXPECT_EQ(select->name(), "Select");
}

TEST(SelectTest, KeepsTheSelectedTheRewardsAndTheFlags) {
  auto select = *Select::Create({.selected_keys = {"info", "next/extra"}});
  TensorDict batch = Batch();
  RILL_ASSERT_OK(select->Forward(&batch, nullptr));
  EXPECT_THAT(
      batch.LeafKeys(),
      UnorderedElementsAre("info/a", "info/b", "next/extra", "next/reward",
                           "done", "terminated", "truncated", "next/done",
                           "next/terminated", "next/truncated"));
  EXPECT_FALSE(batch.Contains("note"));
  EXPECT_THAT(batch.dim_names(), ElementsAre("time"));
  ExpectPlanIsForward(*select);
  ExpectPlanIsForward(**Select::Create({.selected_keys = {"next", "action"}}));
}

TEST(SelectTest, RewardsAndFlagsGoWhereTheyAreNotToBeKept) {
  auto select = *Select::Create({.selected_keys = {"extra", "note"},
                                 .keep_rewards = false,
                                 .keep_dones = false});
  TensorDict batch = Batch();
  RILL_ASSERT_OK(select->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Keys(), UnorderedElementsAre("extra", "note"));
}

TEST(SelectTest, StepsKeepTheTwinsAndWhatEnvironmentsNeed) {
  EXPECT_THAT(
      StepKeys(**Select::Create({.selected_keys = {"next/info/a"},
                                 .keep_rewards = false,
                                 .keep_dones = false})),
      UnorderedElementsAre("info/a", "next/info/a", "action", "next/reward",
                           "done", "terminated", "truncated", "next/done",
                           "next/terminated", "next/truncated"));
}

TEST(SelectTest, MissingKeysAreAnError) {
  auto select = *Select::Create({.selected_keys = {"inf"}});
  TensorDict batch = Batch();
  EXPECT_THAT(select->Forward(&batch, nullptr),
              StatusIs(kNotFound, HasSubstr("Select")));
  EXPECT_THAT(
      select->ForwardSpec(WithInfo()),
      StatusIs(kNotFound, AllOf(HasSubstr("\"inf\""), HasSubstr("info/a"))));
  EXPECT_THAT(select->PlanSteps(WithInfo()).status(), StatusIs(kNotFound));
}

TEST(SelectTest, BadKeysAreNamed) {
  EXPECT_THAT(Select::Create({}),
              StatusIs(kInvalidArgument, HasSubstr("selected_keys")));
  EXPECT_THAT(Select::Create({.selected_keys = {"a", "a"}}),
              StatusIs(kInvalidArgument, HasSubstr("twice")));
  EXPECT_THAT(Exclude::Create({.excluded_keys = {"a//b"}}),
              StatusIs(kInvalidArgument, HasSubstr("excluded_keys")));
}

// --- Exclude -----------------------------------------------------------------

TEST(ExcludeTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto exclude,
                            Exclude::Create({.excluded_keys = {"next/info"}}));
  EXPECT_EQ(exclude->name(), "Exclude");
}

TEST(ExcludeTest, DropsOnOneSideAndIgnoresWhatIsMissing) {
  for (const bool inverse : {false, true}) {
    auto exclude = *Exclude::Create(
        {.excluded_keys = {"next/info", "nowhere"}, .inverse = inverse});
    TensorDict batch = Batch();
    RILL_ASSERT_OK(exclude->Forward(&batch, nullptr));
    EXPECT_EQ(batch.Contains("next/info"), inverse);
    batch = Batch();
    RILL_ASSERT_OK(exclude->Inverse(&batch, nullptr));
    EXPECT_EQ(batch.Contains("next/info"), !inverse);
    EXPECT_TRUE(batch.Contains("note"));
    EXPECT_TRUE(batch.Contains("info"));
    ExpectPlanIsForward(*exclude);
  }
}

TEST(ExcludeTest, DictionariesThatAreEmptyThenGoToo) {
  for (const bool inverse : {false, true}) {
    auto exclude =
        *Exclude::Create({.excluded_keys = {"next/info/a", "info/a", "info/b"},
                          .inverse = inverse});
    TensorDict batch = Batch();
    RILL_ASSERT_OK(inverse ? exclude->Inverse(&batch, nullptr)
                           : exclude->Forward(&batch, nullptr));
    EXPECT_FALSE(batch.Contains("info"));
    EXPECT_TRUE(batch.Contains("next/info/b"));
    ExpectPlanIsForward(*exclude);
  }
}

TEST(ExcludeTest, StepsLoseBothTwins) {
  EXPECT_THAT(
      StepKeys(**Exclude::Create({.excluded_keys = {"info", "next/extra"}})),
      TedSpec().LeafKeys());
  EXPECT_THAT(
      StepKeys(**Exclude::Create({.excluded_keys = {"info"}, .inverse = true})),
      WithInfo().LeafKeys());
}

TEST(ExcludeTest, WhatEnvironmentsNeedIsRefusedBesideOne) {
  for (const char* key :
       {"done", "next/truncated", "action", "next/reward", "next"}) {
    auto exclude = *Exclude::Create({.excluded_keys = {key}});
    EXPECT_THAT(exclude->PlanSteps(WithInfo()).status(),
                StatusIs(kInvalidArgument, HasSubstr("excluded_keys")))
        << key;
  }
  EXPECT_THAT((*Exclude::Create({.excluded_keys = {"nowhere"}}))
                  ->PlanSteps(WithInfo())
                  .status(),
              StatusIs(kNotFound));
}

// --- Rename ------------------------------------------------------------------

const Rename::Options kCopy = {.in_keys = {"observation", "info"},
                               .out_keys = {"state", "deep/info"},
                               .in_keys_inv = {"stored"},
                               .out_keys_inv = {"extra"},
                               .create_copy = true};

TEST(RenameTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto rename,
      Rename::Create({.in_keys = {"observation"}, .out_keys = {"state"}}));
  EXPECT_EQ(rename->name(), "Rename");
}

TEST(RenameTest, EntriesMoveAndReplaceWhatStoodThere) {
  auto rename = *Rename::Create({.in_keys = {"info", "note", "next/extra"},
                                 .out_keys = {"extra", "deep/note", "last"},
                                 .in_keys_inv = {"old"},
                                 .out_keys_inv = {"last"}});
  TensorDict batch = Batch();
  const TensorDict before = batch;
  RILL_ASSERT_OK(rename->Forward(&batch, nullptr));
  EXPECT_FALSE(batch.Contains("info"));
  EXPECT_FALSE(batch.Contains("note"));
  EXPECT_FALSE(batch.Contains("next/extra"));
  EXPECT_THAT(batch.GetNonTensor("deep/note"), IsOkAndHolds(NonTensor{"1"}));
  RILL_EXPECT_OK(batch.GetDict("extra")->CheckEqual(*before.GetDict("info")));
  RILL_ASSERT_OK(rename->Inverse(&batch, nullptr));
  EXPECT_FALSE(batch.Contains("last"));
  EXPECT_THAT(batch.Get("old")->BitEquals(*before.Get("next/extra")),
              IsOkAndHolds(true));
  ExpectPlanIsForward(**Rename::Create(
      {.in_keys = {"info", "next/extra"}, .out_keys = {"extra", "last"}}));
}

TEST(RenameTest, DictionariesThatAreEmptyThenGo) {
  auto rename = *Rename::Create({.in_keys = {"info/a", "info/b"},
                                 .out_keys = {"a", "deep/b"},
                                 .in_keys_inv = {"info/a", "b"},
                                 .out_keys_inv = {"a", "deep/b"}});
  TensorDict batch = Batch();
  RILL_ASSERT_OK(rename->Forward(&batch, nullptr));
  EXPECT_FALSE(batch.Contains("info"));
  EXPECT_TRUE(batch.Contains("deep/b"));
  ExpectPlanIsForward(*rename);
  RILL_ASSERT_OK(rename->Inverse(&batch, nullptr));
  EXPECT_FALSE(batch.Contains("deep"));
  EXPECT_TRUE(batch.Contains("info/a"));
}

TEST(RenameTest, CopiesHaveBytesOfTheirOwn) {
  auto rename = *Rename::Create(kCopy);
  TensorDict batch = Batch();
  const TensorDict before = batch;
  RILL_ASSERT_OK(rename->Forward(&batch, nullptr));
  for (const auto& [old_key, new_key] :
       std::vector<std::pair<const char*, const char*>>{
           {"observation", "state"}, {"info/b", "deep/info/b"}}) {
    EXPECT_EQ(batch.Find(old_key)->raw_data(),
              before.Find(old_key)->raw_data());
    EXPECT_NE(batch.Find(old_key)->raw_data(), batch.Find(new_key)->raw_data());
    EXPECT_THAT(batch.Find(new_key)->BitEquals(*before.Find(old_key)),
                IsOkAndHolds(true));
  }
  ExpectPlanIsForward(*rename);
}

TEST(RenameTest, ATargetBelowALeafLeavesTheBatch) {
  for (const bool copies : {false, true}) {
    auto rename = *Rename::Create({.in_keys = {"info/a", "info/b"},
                                   .out_keys = {"a", "observation/b"},
                                   .create_copy = copies});
    TensorDict batch = Batch();
    const TensorDict before = batch;
    EXPECT_THAT(
        rename->Forward(&batch, nullptr),
        StatusIs(kInvalidArgument, AllOf(HasSubstr("Rename: \"observation/b\""),
                                         HasSubstr("leaf \"observation\""))));
    RILL_EXPECT_OK(batch.CheckEqual(before));
  }
  // That leaf may be one that has gone before.
  auto rename = *Rename::Create({.in_keys = {"observation", "info/b"},
                                 .out_keys = {"o", "observation/b"}});
  TensorDict batch = Batch();
  RILL_EXPECT_OK(rename->Forward(&batch, nullptr));
  EXPECT_TRUE(batch.Contains("observation/b"));
}

TEST(RenameTest, AKeyMayComeFromOneBeforeIt) {
  auto rename =
      *Rename::Create({.in_keys = {"info", "x/b"}, .out_keys = {"x", "y"}});
  TensorDict batch = Batch();
  const TensorDictSpec spec = TensorDictSpec::Of(batch);
  RILL_ASSERT_OK(rename->Forward(&batch, nullptr));
  EXPECT_TRUE(batch.Contains("y"));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDictSpec after,
                            rename->ForwardSpec(spec));
  RILL_EXPECT_OK(after.CheckLayout("Rename", batch));
}

TEST(RenameTest, AKeyThatHasGoneWithOneBeforeItLeavesTheBatch) {
  auto rename =
      *Rename::Create({.in_keys = {"info", "info/a"}, .out_keys = {"x", "y"}});
  TensorDict batch = Batch();
  const TensorDict before = batch;
  EXPECT_THAT(rename->Forward(&batch, nullptr),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("info/a")));
  RILL_EXPECT_OK(batch.CheckEqual(before));
}

TEST(RenameTest, AValueAboveATargetLeavesTheBatch) {
  auto rename = *Rename::Create(
      {.in_keys = {"info/a", "info/b"}, .out_keys = {"x", "note/y"}});
  TensorDict batch = Batch();
  RILL_ASSERT_OK(batch.Set("note", NonTensor{"1"}));
  const TensorDict before = batch;
  EXPECT_THAT(rename->Forward(&batch, nullptr),
              StatusIs(kInvalidArgument, HasSubstr("\"note\"")));
  RILL_EXPECT_OK(batch.CheckEqual(before));
}

TEST(RenameTest, AResultBelowAnotherIsRefused) {
  EXPECT_THAT(Rename::Create(
                  {.in_keys = {"info/a", "info/b"}, .out_keys = {"x", "x/y"}}),
              StatusIs(kInvalidArgument, HasSubstr("\"x/y\"")));
}

// Leaf by leaf or whole, a copy is what was at the old key, and all of it.
TEST(RenameTest, CopiesOfDictionariesReplaceWhatStoodThere) {
  TensorDict leaves = Batch();
  RILL_ASSERT_OK(leaves.Set("info/deep/c", *leaves.Find("info/b")));
  TensorDict value = leaves;
  RILL_ASSERT_OK(value.Set("info/note", NonTensor{"2"}));
  TensorDict empty = leaves;
  RILL_ASSERT_OK(empty.Set("info/empty", TensorDict({3})));
  TensorDict named = leaves;
  RILL_ASSERT_OK(named.Set("info/deep", *leaves.GetDict("info/deep")));
  TensorDict moved = leaves;
  RILL_ASSERT_OK(
      moved.Set("info/deep", *leaves.FindDict("info/deep")->To(Device::Cpu())));
  TensorDict far = leaves;
  RILL_ASSERT_OK(
      far.Set("info/b", *leaves.Find("info/b")->To(Device::Fake(0))));
  const std::vector<std::pair<std::string, std::string>> keys = {
      {"info", "other"},      {"info", "next/info"}, {"info", "observation"},
      {"info", "info/deep"},  {"info/deep", "info"}, {"info/deep", "info/a"},
      {"info/b", "next/info"}};
  for (const TensorDict* before :
       {&leaves, &value, &empty, &named, &moved, &far}) {
    for (const auto& [from, to] : keys) {
      auto rename = *Rename::Create(
          {.in_keys = {from}, .out_keys = {to}, .create_copy = true});
      TensorDict want = *before;
      const TensorDict* const dict = before->FindDict(from);
      RILL_ASSERT_OK(dict != nullptr ? want.Set(to, *dict)
                                     : want.Set(to, *before->Find(from)));
      TensorDict renamed = *before;
      RILL_ASSERT_OK(rename->Forward(&renamed, nullptr)) << from << " " << to;
      RILL_EXPECT_OK(renamed.CheckEqual(want)) << from << " " << to;
      if (from != "info" || to == "info/deep") continue;
      const TensorDict* const deep = renamed.FindDict(to + "/deep");
      EXPECT_EQ(deep->device(), before->FindDict("info/deep")->device());
      EXPECT_EQ(deep->dim_names(), before->FindDict("info/deep")->dim_names());
    }
  }
}

TEST(RenameTest, StepsAreRenamedAtTheRootAndBelowNext) {
  const Rename::Options options = {.in_keys = {"observation"},
                                   .out_keys = {"state"}};
  auto rename = *Rename::Create(options);
  const TensorDictSpec spec = WithInfo();
  RILL_ASSERT_OK_AND_ASSIGN(auto environment,
                            FakeEnvironment::Create(spec, 2, rename.get()));
  RILL_ASSERT_OK(environment.Reset({1, 1}));
  RILL_ASSERT_OK(environment.Step());
  for (const auto& [old_key, new_key] :
       std::vector<std::pair<const char*, const char*>>{
           {"observation", "state"}, {"next/observation", "next/state"}}) {
    EXPECT_FALSE(environment.step().Contains(old_key));
    EXPECT_THAT(environment.step().Get(new_key)->BitEquals(
                    *environment.environment_step().Get(old_key)),
                IsOkAndHolds(true));
  }
}

TEST(RenameTest, WhatEnvironmentsNeedIsRefusedBesideOne) {
  const auto plan = [](const Rename::Options& options) {
    return (*Rename::Create(options))->PlanSteps(WithInfo()).status();
  };
  EXPECT_THAT(plan({.in_keys = {"done"}, .out_keys = {"end"}}),
              StatusIs(kInvalidArgument, HasSubstr("\"done\"")));
  EXPECT_THAT(plan({.in_keys = {"observation"}, .out_keys = {"done"}}),
              StatusIs(kInvalidArgument, HasSubstr("\"done\"")));
  EXPECT_THAT(plan({.in_keys_inv = {"action"}, .out_keys_inv = {"move"}}),
              StatusIs(kInvalidArgument, HasSubstr("in_keys_inv")));
  RILL_EXPECT_OK(
      plan({.in_keys = {"done"}, .out_keys = {"end"}, .create_copy = true}));
}

TEST(RenameTest, MissingKeysAreAnError) {
  auto rename = *Rename::Create({.in_keys = {"inf"},
                                 .out_keys = {"a"},
                                 .in_keys_inv = {"b"},
                                 .out_keys_inv = {"nothing"}});
  TensorDict batch = Batch();
  EXPECT_THAT(rename->Forward(&batch, nullptr),
              StatusIs(kNotFound, HasSubstr("Rename")));
  EXPECT_THAT(rename->ForwardSpec(WithInfo()),
              StatusIs(kNotFound, HasSubstr("\"inf\"")));
  EXPECT_THAT(rename->Inverse(&batch, nullptr), StatusIs(kNotFound));
  EXPECT_THAT(rename->InverseSpec(WithInfo()),
              StatusIs(kNotFound, HasSubstr("\"nothing\"")));
}

TEST(RenameTest, BadOptionsAreNamed) {
  const auto refused = [](const Rename::Options& options, const char* text) {
    EXPECT_THAT(Rename::Create(options),
                StatusIs(kInvalidArgument, HasSubstr(text)));
  };
  refused({}, "in_keys");
  refused({.in_keys = {"a"}}, "out_keys");
  refused({.in_keys = {"a"}, .out_keys = {"b", "c"}}, "out_keys");
  refused({.in_keys = {"a", "b"}, .out_keys = {"b", "c"}}, "\"b\"");
  refused({.out_keys = {"c"}, .in_keys_inv = {"a"}}, "in_keys");
  refused({.in_keys_inv = {"a"}, .out_keys_inv = {"b", "c"}}, "inverse");
}

}  // namespace

INSTANTIATE_TRANSFORM_CONFORMANCE(
    Select,
    {.make = [] { return *Select::Create({.selected_keys = {"info/a"}}); },
     .batch_spec = WithInfo(),
     .keeps_other_leaves = false});
INSTANTIATE_TRANSFORM_CONFORMANCE(
    Exclude,
    InABuffer<Exclude>({.excluded_keys = {"info/a", "next/info"}}, WithInfo()));
INSTANTIATE_TRANSFORM_CONFORMANCE(ExcludeBeforeWrites,
                                  InABuffer<Exclude>({.excluded_keys = {"info"},
                                                      .inverse = true},
                                                     WithInfo()));
INSTANTIATE_TRANSFORM_CONFORMANCE(
    Rename, InABuffer<Rename>({.in_keys = {"info", "observation"},
                               .out_keys = {"extra", "deep/state"},
                               .in_keys_inv = {"stored"},
                               .out_keys_inv = {"next/info"}},
                              WithInfo()));
INSTANTIATE_TRANSFORM_CONFORMANCE(
    RenameAndBack,
    {.make =
         [] {
           return *Rename::Create({.in_keys = {"info", "observation"},
                                   .out_keys = {"data", "deep/state"},
                                   .in_keys_inv = {"info", "observation"},
                                   .out_keys_inv = {"data", "deep/state"}});
         },
     .batch_spec = WithInfo(),
     .inverse_tolerance = 0,
     .inverts_results = true});
INSTANTIATE_TRANSFORM_CONFORMANCE(RenameACopy,
                                  InABuffer<Rename>(kCopy, WithInfo()));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    Select, BesideAnEnvironment<Select>({.selected_keys = {"observation"}},
                                        WithInfo()));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    Exclude,
    BesideAnEnvironment<Exclude>({.excluded_keys = {"info"}}, WithInfo()));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    Rename, BesideAnEnvironment<Rename>({.in_keys = {"info/a", "observation"},
                                         .out_keys = {"extra", "state"}},
                                        WithInfo()));

}  // namespace rill
