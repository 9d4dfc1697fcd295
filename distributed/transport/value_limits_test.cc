// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/value_limits.h"

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/state/saved_state.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

SavedState Wide(int64_t count) {
  SavedState state;
  for (int64_t i = 0; i < count; ++i) state.Set(absl::StrCat(i), i);
  return state;
}

SavedState Deep(int64_t depth) {
  SavedState state;
  for (int64_t i = 1; i < depth; ++i) {
    SavedState outer;
    outer.SetPart("inner", std::move(state));
    state = std::move(outer);
  }
  return state;
}

void ExpectRefused(const SavedState& values, const char* why) {
  EXPECT_THAT(CheckValues(values),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  EXPECT_THAT(SavedState::Decode(values.Encode()),
              StatusIs(absl::StatusCode::kDataLoss));
}
void ExpectTaken(const SavedState& values) {
  RILL_EXPECT_OK(CheckValues(values));
  RILL_EXPECT_OK(SavedState::Decode(values.Encode()).status());
}

TEST(ValueLimitsTest, TheyAreThoseOfDecode) {
  ExpectTaken(Wide(kMaxValues));
  ExpectRefused(Wide(kMaxValues + 1), "got 4097 in one state");
  ExpectTaken(Deep(kMaxValueDepth));
  ExpectRefused(Deep(kMaxValueDepth + 1), "got more than 16 states");
  SavedState part;
  part.SetPart("wide", Wide(kMaxValues + 1));
  ExpectRefused(part, "got 4097 in one state");
  SavedState nameless;
  nameless.Set("", int64_t{1});
  ExpectRefused(nameless, "got an empty name");
}

}  // namespace
}  // namespace rill
