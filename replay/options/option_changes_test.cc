// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/options/option_changes.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"

namespace rill::replay_internal {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FieldsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;

OptionValues Selector(double alpha, double beta) {
  return OptionValues().Double("alpha", alpha).Double("beta", beta);
}

// A buffer's.
OptionValues Values(absl::string_view selector, const OptionValues& options,
                    absl::string_view writer = "RoundRobinWriter") {
  OptionValues sampler;
  sampler.Part("selector", selector, options);
  OptionValues all;
  all.Part("sampler", "Mine", sampler).Part("writer", writer, {});
  return all;
}

Manifest Saved(const OptionValues& values) {
  Manifest manifest;
  SaveOptions(values, &manifest);
  return manifest;
}

TEST(OptionChangesTest, EqualOptionsAreNoChange) {
  const OptionValues values = Values("Prioritized", Selector(0.7, 1));
  EXPECT_THAT(CompareOptions(Saved(values), values), IsOkAndHolds(IsEmpty()));
}

TEST(OptionChangesTest, NothingIsComparedWhereNothingWasSaved) {
  EXPECT_THAT(CompareOptions(Manifest(), Values("Uniform", {})),
              IsOkAndHolds(IsEmpty()));
}

TEST(OptionChangesTest, EachChangeHasItsPartAndBothSides) {
  const OptionValues now = Values("Prioritized", Selector(0.1, 0.5));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto changes,
      CompareOptions(Saved(Values("Prioritized", Selector(0.7, 1))), now));
  EXPECT_THAT(
      changes,
      ElementsAre(
          FieldsAre("sampler.selector.alpha", "Prioritized", "0.7", "0.1"),
          FieldsAre("sampler.selector.beta", "Prioritized", "1", "0.5")));
  EXPECT_THAT(
      CheckChanges("Open", changes, now, /*accepts=*/false),
      StatusIs(kFailedPrecondition,
               "Open: sampler.selector (Prioritized): alpha: got 0.7 in the "
               "directory, want 0.1 as in the options; sampler.selector "
               "(Prioritized): beta: got 1 in the directory, want 0.5 as in "
               "the options (or accept_options)"));
  EXPECT_THAT(CheckChanges("Open", changes, now, /*accepts=*/true), IsOk());
  EXPECT_THAT(ChangesOf("sampler", changes),
              ElementsAre("selector.alpha", "selector.beta"));
  EXPECT_THAT(ChangesOf("writer", changes), IsEmpty());
}

TEST(OptionChangesTest, AnotherKindIsOneChangeThatIsNeverAccepted) {
  const OptionValues now = Values("Uniform", {});
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto changes,
      CompareOptions(Saved(Values("Prioritized", Selector(0.7, 1))), now));
  EXPECT_THAT(changes, ElementsAre(FieldsAre("sampler.selector", "Mine",
                                             "Prioritized", "Uniform")));
  for (const bool accepts : {false, true}) {
    EXPECT_THAT(CheckChanges("Open", changes, now, accepts),
                StatusIs(kFailedPrecondition,
                         AllOf(HasSubstr("sampler (Mine): selector: got "
                                         "Prioritized in the directory, want "
                                         "Uniform"),
                               Not(HasSubstr("accept_options")))));
  }
}

TEST(OptionChangesTest, AnotherWriterIsAccepted) {
  const OptionValues now = Values("Uniform", {}, "ImmutableWriter");
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto changes,
      CompareOptions(Saved(Values("Uniform", {}, "TopKWriter")), now));
  EXPECT_THAT(changes, ElementsAre(FieldsAre("writer", "", "TopKWriter",
                                             "ImmutableWriter")));
  EXPECT_THAT(CheckChanges("Open", changes, now, /*accepts=*/false),
              IsFailedPrecondition("accept_options"));
  EXPECT_THAT(CheckChanges("Open", changes, now, /*accepts=*/true), IsOk());
}

TEST(OptionChangesTest, WhatOneSideLacksIsAChange) {
  const OptionValues more = Values("Mine", Selector(1, 2));
  const OptionValues less = Values("Mine", OptionValues().Double("alpha", 1));
  RILL_ASSERT_OK_AND_ASSIGN(const auto gone, CompareOptions(Saved(more), less));
  EXPECT_THAT(gone,
              ElementsAre(FieldsAre("sampler.selector.beta", "Mine", "2", "")));
  RILL_ASSERT_OK_AND_ASSIGN(const auto come, CompareOptions(Saved(less), more));
  EXPECT_THAT(come,
              ElementsAre(FieldsAre("sampler.selector.beta", "Mine", "", "2")));
  EXPECT_THAT(CheckChanges("Open", come, more, /*accepts=*/false),
              IsFailedPrecondition("got nothing in the directory, want 2"));
}

TEST(OptionChangesTest, MissingFieldsAreDamage) {
  const OptionValues values = Values("Prioritized", Selector(0.7, 1));
  Manifest manifest = Saved(values);
  manifest.fields.erase("option/sampler.selector.alpha");
  EXPECT_THAT(CompareOptions(manifest, values), IsDataLoss("got 4, want 5"));
}

}  // namespace
}  // namespace rill::replay_internal
