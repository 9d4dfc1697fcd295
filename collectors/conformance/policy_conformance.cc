// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/conformance/policy_conformance.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "rill/envs/checking/leaf_values.h"
#include "rill/specs/legal_choices.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::Each;

constexpr uint8_t kFill = 0x3f;  // 0.75 as a float32, and 1 as a bool.

// The action and the leaves that the policy writes beside it.
TensorDictSpec WrittenLeaves(const PolicySubject& subject) {
  TensorDictSpec written = subject.policy->output_spec();
  RILL_EXPECT_OK(written.Set("action", subject.action));
  return written;
}

// What Act makes of `root`, written over bytes of `fill`; `action` and outputs
// alone.
TensorDict ActOver(uint8_t fill, const PolicySubject& subject,
                   const TensorDict& root, const ActContext& context = {}) {
  TensorDict step = root;
  TensorDict written(root.batch_shape());
  const TensorDictSpec spec = WrittenLeaves(subject);
  for (const auto& leaf : spec.leaves()) {
    auto tensor = leaf.spec.Zero(root.batch_shape());
    RILL_EXPECT_OK(tensor);
    const bool is_bool = leaf.spec.dtype == DType::kBool;
    std::memset(tensor->raw_data(), is_bool ? fill & 1 : fill,
                static_cast<size_t>(tensor->size_bytes()));
    RILL_EXPECT_OK(written.Set(leaf.key, *tensor));
    RILL_EXPECT_OK(step.Set(leaf.key, *std::move(tensor)));
  }
  // Of the environment: written by nobody here.
  auto others = Tensor::Zeros(DType::kFloat32, root.batch_shape());
  RILL_EXPECT_OK(others);
  RILL_EXPECT_OK(step.Set("next/of the environment", *others));
  RILL_EXPECT_OK(subject.policy->Act(root, context, &step));
  EXPECT_THAT(others->Flat<float>(), IsOkAndHolds(Each(0)))
      << "\"next/of the environment\" was written";
  written.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
    const Tensor* const now = step.Find(key);
    EXPECT_TRUE(now != nullptr && now->raw_data() == leaf.raw_data())
        << "\"" << key << "\": another tensor took its place";
  });
  return written;
}

// The root of the next step where no lane ends: recurrent state goes there.
TensorDict Carried(TensorDict root, const TensorDict& written) {
  written.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
    if (!absl::ConsumePrefix(&key, "next/")) return;
    EXPECT_TRUE(root.Contains(key))
        << "PolicySubject::root: \"" << key << "\" of \"next/" << key
        << "\" is missing";
    RILL_EXPECT_OK(root.Set(key, leaf));
  });
  return root;
}

// Equal but for rounding, which depends on how many rows a product has.
void ExpectNear(const TensorDict& got, const TensorDict& want,
                const std::string& when) {
  RILL_EXPECT_OK(got.CheckClose(want, /*absolute=*/1e-5, /*relative=*/1e-4))
      << when;
}

std::vector<int64_t> Lanes(int64_t begin, int64_t end) {
  std::vector<int64_t> lanes(static_cast<size_t>(end - begin));
  std::iota(lanes.begin(), lanes.end(), begin);
  return lanes;
}

TEST_P(PolicyConformanceTest, FillsEveryOutputInPlaceWithinItsSpec) {
  const PolicySubject subject = GetParam()();
  const PolicySubject again = GetParam()();
  const TensorDict written = ActOver(0, subject, subject.root);
  EXPECT_THAT(ActOver(kFill, again, again.root), BitEqualTo(written))
      << "some of it is what was there before the call";
  EXPECT_EQ(envs_internal::FirstNoValue(written), "");
  RILL_EXPECT_OK(WrittenLeaves(subject).CheckValues("Act", written));
}

// Explored or not, whatever is drawn.
TEST_P(PolicyConformanceTest, ChoosesLegalActionsAlone) {
  const PolicySubject subject = GetParam()();
  if (subject.mask_key.empty()) return;
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor mask,
                            subject.root.Get(subject.mask_key));
  const LegalChoices legal = {.key = "action",
                              .mask_key = subject.mask_key,
                              .spec = subject.action,
                              .mask = mask};
  const bool* const options = mask.data<bool>();
  ASSERT_NE(std::find(options, options + mask.num_elements(), false),
            options + mask.num_elements())
      << "the subject's mask forbids nothing";
  for (int64_t step = 0; step < 64; ++step) {
    for (const bool explore : {false, true}) {
      const TensorDict written =
          ActOver(0, subject, subject.root,
                  {.frames = 4 * step, .step = step, .explore = explore});
      RILL_ASSERT_OK(
          legal.Check(absl::StrCat("step ", step), *written.Find("action")));
    }
  }
}

TEST_P(PolicyConformanceTest, LeavesTheRootAlone) {
  const PolicySubject subject = GetParam()();
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict before, subject.root.Clone());
  for (int64_t step = 0; step < 3; ++step) {
    ActOver(0, subject, subject.root, {.frames = 4 * step, .step = step});
  }
  EXPECT_THAT(subject.root, BitEqualTo(before));
}

// A resumed run acts as one that was not interrupted.
TEST_P(PolicyConformanceTest, ActsAgainAsItDidInThisContext) {
  const PolicySubject subject = GetParam()();
  const PolicySubject resumed = GetParam()();
  TensorDict root = subject.root;
  for (int64_t step = 0; step < 5; ++step) {
    const ActContext context = {.frames = 4 * step, .step = step};
    const TensorDict written = ActOver(0, subject, root, context);
    if (step >= 3) {
      EXPECT_THAT(ActOver(0, resumed, root, context), BitEqualTo(written))
          << "resumed at step " << step;
    }
    root = Carried(std::move(root), written);
  }
}

// A caller may alternate between environments.
TEST_P(PolicyConformanceTest, RemembersInTheRootAlone) {
  const PolicySubject subject = GetParam()();
  const int64_t lanes = subject.root.batch_shape()[0];
  std::vector<int64_t> order = Lanes(0, lanes);
  std::rotate(order.begin(), order.begin() + 1, order.end());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict other, subject.root.Gather(order));
  const ActContext context = {.frames = 12, .step = 3};
  const TensorDict first = ActOver(0, subject, subject.root, context);
  for (int64_t step = 0; step < 3; ++step) {
    ActOver(0, subject, other, {.frames = 4 * step, .step = step});
  }
  EXPECT_THAT(ActOver(0, subject, subject.root, context), BitEqualTo(first))
      << "the same call after calls for another environment";
}

TEST_P(PolicyConformanceTest, ALaneDependsOnItsOwnRowAlone) {
  const PolicySubject subject = GetParam()();
  const TensorDict& root = subject.root;
  const int64_t lanes = root.batch_shape()[0];
  ASSERT_GE(lanes, 4) << "PolicySubject::root";
  std::vector<int64_t> order = Lanes(0, lanes);
  std::reverse(order.begin(), order.end());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict reversed, root.Gather(order));
  EXPECT_FALSE(reversed.CheckEqual(root).ok())
      << "PolicySubject::root: lanes are equal, and hide whose row was read";
  const ActContext context = {.frames = 12, .step = 3, .explore = false};
  const TensorDict all = ActOver(0, subject, root, context);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict all_reversed, all.Gather(order));
  ExpectNear(ActOver(0, subject, reversed, context), all_reversed,
             "lanes in another order");
  if (!subject.takes_fewer_lanes) return;
  for (const auto& [begin, end] :
       {std::pair<int64_t, int64_t>(0, 1), {1, lanes}}) {
    const std::vector<int64_t> part = Lanes(begin, end);
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict rows, root.Gather(part));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, all.Gather(part));
    ExpectNear(ActOver(0, subject, rows, context), want,
               absl::StrCat("lanes [", begin, ", ", end, ") alone"));
  }
}

TEST_P(PolicyConformanceTest, ActingChangesNoVersion) {
  const PolicySubject subject = GetParam()();
  TensorDict step = subject.root;
  const TensorDictSpec spec = WrittenLeaves(subject);
  for (const auto& leaf : spec.leaves()) {
    RILL_ASSERT_OK(
        step.Set(leaf.key, *leaf.spec.Zero(subject.root.batch_shape())));
  }
  RILL_ASSERT_OK_AND_ASSIGN(const int64_t version,
                            subject.policy->Act(subject.root, {}, &step));
  EXPECT_THAT(subject.policy->Act(subject.root, {}, &step),
              IsOkAndHolds(version));
}

}  // namespace

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PolicyConformanceTest);

}  // namespace rill
