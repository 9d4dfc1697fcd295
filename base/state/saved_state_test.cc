// SPDX-License-Identifier: Apache-2.0
#include "rill/base/state/saved_state.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/crc/crc32c.h"
#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;

absl::StatusOr<int64_t> Example() {
  SavedState state("Counter", /*version=*/1);
  state.Set("count", int64_t{7});
  RILL_ASSIGN_OR_RETURN(const int64_t count, state.Get<int64_t>("count"));
  return count;
}

TEST(SavedStateTest, Example) { EXPECT_EQ(*Example(), 7); }

SavedState Whole() {
  SavedState state("Outer", 3);
  state.Set("count", int64_t{-5});
  state.Set("share", 0.25);
  state.Set("name", std::string("a\0b", 3));
  state.Set("slots", std::vector<int64_t>{1, INT64_MIN});
  state.Set("keys", std::vector<double>{});
  SavedState inner("Inner", 1);
  inner.Set("count", int64_t{1});
  state.SetPart("inner", inner);
  state.Set("both", std::vector<SavedState>{inner, SavedState("Other", 2)});
  return state;
}

TEST(SavedStateTest, WhatIsEncodedReadsTheSame) {
  const std::string bytes = Whole().Encode();
  RILL_ASSERT_OK_AND_ASSIGN(const SavedState state, SavedState::Decode(bytes));
  RILL_ASSERT_OK(state.CheckType("Outer", 3));
  EXPECT_EQ(*state.Get<int64_t>("count"), -5);
  EXPECT_EQ(*state.Get<double>("share"), 0.25);
  EXPECT_EQ(*state.Get<std::string>("name"), std::string("a\0b", 3));
  EXPECT_THAT(*state.Ints("slots"), ElementsAre(1, INT64_MIN));
  EXPECT_THAT(*state.Doubles("keys"), ElementsAre());
  RILL_ASSERT_OK_AND_ASSIGN(const SavedState* inner,
                            state.Part("inner", "Inner", 1));
  EXPECT_EQ(*inner->Get<int64_t>("count"), 1);
  EXPECT_EQ(state.Parts("both")->size(), 2u);
  EXPECT_EQ(state.Encode(), bytes);
}

TEST(SavedStateTest, ErrorsNameTypeValueGotAndWanted) {
  const SavedState state = Whole();
  EXPECT_THAT(state.Get<int64_t>("none"),
              IsFailedPrecondition("Outer::LoadState: \"none\": got none, want "
                                   "int64"));
  EXPECT_THAT(state.Get<double>("count"),
              IsFailedPrecondition("\"count\": got int64, want float64"));
  EXPECT_THAT(
      state.Ints("keys"),
      IsFailedPrecondition("\"keys\": got a list of float64, want a list "
                           "of int64"));
  EXPECT_THAT(state.Ints("slots", 3),
              IsDataLoss("\"slots\": got 2 numbers, want a multiple of "
                         "3"));
  EXPECT_THAT(state.Part("both", "Inner", 1),
              IsFailedPrecondition("got 2 parts, want 1"));
  EXPECT_THAT(
      state.Part("inner", "Inner", 0),
      IsFailedPrecondition("got the state of Inner version 1, want that "
                           "of Inner version <= 0"));
  EXPECT_THAT(state.CheckType("Other", 3),
              IsFailedPrecondition("Outer version 3"));
}

TEST(SavedStateTest, SetReplaces) {
  SavedState state("Counter", 1);
  state.Set("count", int64_t{1});
  state.Set("count", 2.0);
  EXPECT_EQ(state.fields().size(), 1u);
  EXPECT_EQ(*state.Get<double>("count"), 2.0);
}

// docs/formats/saved_state.md has these bytes.
TEST(SavedStateTest, BytesAreTheDocumentedOnes) {
  SavedState state("Counter", 1);
  state.Set("count", int64_t{7});
  EXPECT_EQ(absl::BytesToHexString(state.Encode()),
            "52494c4c5354415401000000"
            "07000000436f756e746572"
            "0100000000000000"
            "01000000"
            "05000000636f756e74"
            "00"
            "0700000000000000"
            "f97f0637");
}

std::string WithChecksum(std::string bytes) {
  const auto sum = static_cast<uint32_t>(absl::ComputeCrc32c(bytes));
  for (int i = 0; i < 4; ++i) {
    bytes.push_back(static_cast<char>(sum >> (8 * i)));
  }
  return bytes;
}

TEST(SavedStateTest, EveryCutAndEveryChangedByteIsFound) {
  const std::string bytes = Whole().Encode();
  const std::string content = bytes.substr(0, bytes.size() - 4);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(SavedState::Decode(bytes.substr(0, size)), IsDataLoss());
    std::string changed = bytes;
    changed[size] ^= 1;
    EXPECT_THAT(SavedState::Decode(changed), IsDataLoss());
  }
  for (size_t size = 12; size < content.size(); ++size) {
    EXPECT_THAT(SavedState::Decode(WithChecksum(content.substr(0, size))),
                IsDataLoss())
        << size;
  }
  EXPECT_THAT(SavedState::Decode(WithChecksum(content + "x")), IsDataLoss());
}

TEST(SavedStateTest, PartsInOneAnotherHaveABound) {
  SavedState state("Deep", 1);
  for (int i = 0; i < 15; ++i) {
    SavedState outer("Deep", 1);
    outer.SetPart("in", std::move(state));
    state = std::move(outer);
  }
  RILL_EXPECT_OK(SavedState::Decode(state.Encode()));
  SavedState outer("Deep", 1);
  outer.SetPart("in", std::move(state));
  EXPECT_THAT(SavedState::Decode(outer.Encode()), IsDataLoss());
}

TEST(SavedStateTest, ANewerFormIsRefused) {
  std::string bytes = Whole().Encode();
  bytes.resize(bytes.size() - 4);
  bytes[8] = 2;
  EXPECT_THAT(SavedState::Decode(WithChecksum(bytes)),
              IsFailedPrecondition("form: got 2, want 1"));
}

}  // namespace
}  // namespace rill
