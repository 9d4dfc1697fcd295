// SPDX-License-Identifier: Apache-2.0
// The state of a collector that commit fc1c733 saved, before the interfaces of
// transforms changed, loads, and the next batch is the one that it collected
// there.
//
// RILL_RECORD=DIRECTORY writes state and batch of this build.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/sync_collector.h"
#include "rill/envs/cart_pole.h"
#include "rill/formats/consolidated.h"
#include "rill/formats/file_tree.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"
#include "rill/transforms/reward_sum.h"
#include "rill/transforms/step_counter.h"

namespace rill {
namespace {

using formats_internal::CopyTree;

absl::StatusOr<std::unique_ptr<SyncCollector>> MakeCollector(uint64_t seed) {
  SyncCollector::Options options;
  options.producer = 0;
  RILL_ASSIGN_OR_RETURN(options.env, MakeCartPole({.lanes = 3}));
  RILL_ASSIGN_OR_RETURN(auto counter, StepCounter::Create({.max_steps = 9}));
  RILL_ASSIGN_OR_RETURN(auto sum, RewardSum::Create({}));
  options.transforms.push_back(std::move(counter));
  options.transforms.push_back(std::move(sum));
  options.frames_per_batch = 3 * 25;
  options.seed = seed;
  return SyncCollector::Create(std::move(options));
}

void Record(const std::string& directory) {
  RILL_ASSERT_OK_AND_ASSIGN(auto collector, MakeCollector(11));
  for (int i = 0; i < 3; ++i) RILL_ASSERT_OK(collector->Next().status());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, collector->SaveState());
  RILL_ASSERT_OK(SaveConsolidated(state, absl::StrCat(directory, "/state")));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict next, collector->Next());
  RILL_ASSERT_OK(SaveConsolidated(next, absl::StrCat(directory, "/next")));
}

// Loading refuses the links that a test's data may be.
absl::StatusOr<TensorDict> Recorded(const std::string& name) {
  const std::string directory = FreshPath(absl::StrCat("saved_state_", name));
  RILL_RETURN_IF_ERROR(CopyTree("collectors/testdata/saved_state", directory));
  return LoadConsolidated(absl::StrCat(directory, "/", name));
}

TEST(SavedStateTest, ACollectorGoesOnWhereTheSavedOneStood) {
  if (const char* directory = std::getenv("RILL_RECORD")) {
    Record(directory);
    return;
  }
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, Recorded("state"));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict next, Recorded("next"));
  RILL_ASSERT_OK_AND_ASSIGN(auto collector, MakeCollector(12));
  RILL_ASSERT_OK(collector->LoadState(state));
  EXPECT_EQ(collector->frames(), 3 * collector->frames_per_batch());
  EXPECT_THAT(collector->Next(), IsOkAndHolds(BitEqualTo(next)));
}

}  // namespace
}  // namespace rill
