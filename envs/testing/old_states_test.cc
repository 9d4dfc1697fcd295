// SPDX-License-Identifier: Apache-2.0
// States of CountingEnv and TwoAgentsEnv from before states had a type, as
// commit bd52a55 saved them: docs/formats/saved_state.md, version 0.
//
// RILL_RECORD=DIRECTORY writes what this build saves.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/envs/env.h"
#include "rill/envs/testing/counting_env.h"
#include "rill/envs/testing/two_agents_env.h"
#include "rill/formats/consolidated.h"
#include "rill/formats/file_tree.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using formats_internal::CopyTree;

// The recorded state of `saved` after three steps makes the same of `other`.
void GoOn(absl::string_view name, Env& saved, Env& other) {
  RILL_ASSERT_OK(
      saved.Reset(std::vector<uint8_t>(static_cast<size_t>(saved.lanes()), 1)));
  for (int i = 0; i < 3; ++i) RILL_ASSERT_OK(saved.Step());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, saved.SaveState());
  if (const char* to = std::getenv("RILL_RECORD")) {
    RILL_ASSERT_OK(SaveConsolidated(state, absl::StrCat(to, "/", name)));
    return;
  }
  // Loading refuses the links that a test's data may be.
  const std::string directory = FreshPath(absl::StrCat("old_", name));
  RILL_ASSERT_OK(CopyTree("envs/testing/testdata/old_states", directory));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict old, LoadConsolidated(absl::StrCat(
                                                      directory, "/", name)));
  RILL_ASSERT_OK(other.LoadState(old));
  EXPECT_THAT(other.SaveState(), IsOkAndHolds(BitEqualTo(state)));
}

TEST(OldStatesTest, CountingEnvGoesOn) {
  const auto make = [] {
    return *MakeCountingEnv({.lanes = 2, .stagger_steps = 1});
  };
  GoOn("counting", *make(), *make());
}

TEST(OldStatesTest, TwoAgentsEnvGoesOn) {
  const auto make = [] { return *MakeTwoAgentsEnv({.lanes = 2}); };
  GoOn("two_agents", *make(), *make());
}

}  // namespace
}  // namespace rill
