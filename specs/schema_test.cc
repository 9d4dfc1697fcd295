// SPDX-License-Identifier: Apache-2.0
#include "rill/specs/schema.h"

#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/specs/field.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/test_steps.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/tensors/test_tensors.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Step = Schema<Field<"observation", float, 4>, Field<"action", int64_t>,
                    Field<"next/reward", float, 1>>;

absl::Status RunExample(TensorDict& rollout) {
  RILL_ASSIGN_OR_RETURN(auto steps, Typed<Step>::Create({32}));
  steps.Get<"observation">()[7][2] = 1.5f;
  steps.Get<"action">()[7] = 1;
  RILL_RETURN_IF_ERROR(rollout.Update(steps.dict()));
  return absl::OkStatus();
}

TEST(SchemaTest, Example) {
  TensorDict rollout({32});
  RILL_EXPECT_OK(RunExample(rollout));
  EXPECT_EQ(rollout.Find("observation")->data<float>()[7 * 4 + 2], 1.5f);
  EXPECT_EQ(rollout.Find("action")->data<int64_t>()[7], 1);
}

TEST(SchemaTest, SpecIsTheRunTimeForm) {
  EXPECT_EQ(Step::Spec().ToString(),
            "{observation: float32[4], action: int64[], next/reward: "
            "float32[1]}");
  EXPECT_EQ(&Step::Spec(), &Step::Spec());
  EXPECT_EQ(Step::kNumFields, 3);
  EXPECT_EQ(Step::IndexOf<"next/reward">(), 2);
}

TEST(SchemaTest, GetKnowsTypeAndTrailingShape) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto steps, Typed<Step>::Bind(MakeSteps(3)));
  EXPECT_EQ(steps.num_rows(), 3);
  EXPECT_EQ(steps.batch_shape(), Shape({3}));
  const auto observation = steps.Get<"observation">();
  static_assert(std::is_same_v<decltype(observation[0]), std::span<float, 4>>);
  static_assert(std::is_same_v<decltype(steps.Get<"action">()[0]), int64_t&>);
  EXPECT_THAT(observation[2], ElementsAre(20, 21, 22, 23));
  EXPECT_EQ(observation(1, 3), 13);
  EXPECT_EQ(observation.rows(), 3);
  EXPECT_EQ(observation.flat().size(), 12);
  EXPECT_EQ(steps.Get<"action">()[2], 2);
  EXPECT_EQ(steps.Get<"next/reward">()[1][0], 0.5f);
}

TEST(SchemaTest, GetSharesTheBytesOfTheDictionary) {
  const TensorDict dict = MakeSteps(3);
  RILL_ASSERT_OK_AND_ASSIGN(const auto steps, Typed<Step>::Bind(dict));
  steps.Get<"action">()[1] = 42;
  EXPECT_EQ(dict.Find("action")->data<int64_t>()[1], 42);
  EXPECT_EQ(steps.Get<"action">().data(), dict.Find("action")->data<int64_t>());
  auto moved = steps;  // Copies share too.
  EXPECT_EQ(moved.Get<"action">().data(), steps.Get<"action">().data());
}

TEST(SchemaTest, MoreBatchDimensionsAreRows) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict grid,
                            MakeSteps(6).Reshape({2, 3}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto steps, Typed<Step>::Bind(grid));
  EXPECT_EQ(steps.num_rows(), 6);
  EXPECT_EQ(steps.Get<"action">()[5], 5);
  EXPECT_EQ(steps.batch_shape(), Shape({2, 3}));
}

TEST(SchemaTest, TrailingShapesOfSeveralDimensions) {
  using Image = Schema<Field<"pixels", uint8_t, 2, 3, 4>>;
  TensorDict dict({5});
  RILL_ASSERT_OK(dict.Set("pixels", Iota<uint8_t>({5, 2, 3, 4})));
  RILL_ASSERT_OK_AND_ASSIGN(const auto images, Typed<Image>::Bind(dict));
  const auto pixels = images.Get<"pixels">();
  for (int row = 0; row < 5; ++row) {
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 3; ++j) {
        for (int k = 0; k < 4; ++k) {
          EXPECT_EQ(pixels(row, i, j, k), ((row * 2 + i) * 3 + j) * 4 + k);
        }
      }
    }
  }
  EXPECT_EQ(pixels[4].size(), 24);
}

TEST(SchemaTest, EveryElementTypeAndEscapedKeysBind) {
  using All =
      Schema<Field<R"(a\/b)", Float16, 2>, Field<"x/y/z", bool>,
             Field<"c", std::complex<double>, 1>, Field<"none", float, 0>>;
  RILL_ASSERT_OK_AND_ASSIGN(const auto all, Typed<All>::Create({2}));
  all.Get<R"(a\/b)">()[1][1] = Float16{0x3c00};
  all.Get<"x/y/z">()[1] = true;
  EXPECT_EQ(all.dict().Find(R"(a\/b)")->data<Float16>()[3].bits, 0x3c00);
  EXPECT_EQ(all.Get<"none">().flat().size(), 0);
  EXPECT_EQ(all.Get<"none">()[1].size(), 0);
}

TEST(SchemaTest, BindNamesWhatDiffers) {
  TensorDict dict = MakeSteps(3);
  RILL_ASSERT_OK(dict.Set("extra", Iota<float>({3})));
  RILL_EXPECT_OK(Typed<Step>::Bind(dict));  // More keys are fine.
  RILL_ASSERT_OK(dict.Set("action", Iota<int32_t>({3})));
  EXPECT_THAT(Typed<Step>::Bind(dict),
              IsInvalidArgument("Typed::Bind: \"action\": got int32[3], want "
                                "int64[3]"));
  RILL_ASSERT_OK(dict.Delete("action"));
  EXPECT_THAT(Typed<Step>::Bind(dict), IsInvalidArgument("missing \"action\""));
  dict = MakeSteps(3);
  RILL_ASSERT_OK(dict.Set("next/reward", Iota<float>({3})));
  EXPECT_THAT(
      Typed<Step>::Bind(dict),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("float32[3]"), HasSubstr("float32[3, 1]"))));
}

TEST(SchemaTest, BindWantsContiguousHostMemory) {
  TensorDict dict = MakeSteps(3);
  RILL_ASSERT_OK(dict.Set("observation", *Iota<float>({4, 3}).Permute({1, 0})));
  EXPECT_THAT(Typed<Step>::Bind(dict),
              IsFailedPrecondition("\"observation\" is not contiguous"));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict there,
                            MakeSteps(3).To(Device::Fake()));
  EXPECT_THAT(Typed<Step>::Bind(there),
              IsFailedPrecondition("not in host memory"));
}

TEST(SchemaTest, CreateIsOneAllocationWithAlignedLeaves) {
  int allocations = 0;
  const ScopedFaultHook hook([&](absl::string_view, absl::string_view) {
    ++allocations;
    return absl::OkStatus();
  });
  RILL_ASSERT_OK_AND_ASSIGN(const auto steps, Typed<Step>::Create({100000}));
  EXPECT_EQ(allocations, 1);
  steps.dict().ForEachLeaf([](absl::string_view key, const Tensor& leaf) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(leaf.raw_data()) % 64, 0) << key;
  });
  EXPECT_THAT(Typed<Step>::Create({int64_t{1} << 60}), IsInvalidArgument());
}

TEST(SchemaTest, KeysAreCheckedByTheCompiler) {
  using schema_internal::AreDistinct;
  using schema_internal::IsWellFormed;
  static_assert(IsWellFormed("a"));
  static_assert(IsWellFormed("a/b"));
  static_assert(IsWellFormed(R"(a\/b\\)"));
  static_assert(!IsWellFormed(""));
  static_assert(!IsWellFormed("/a"));
  static_assert(!IsWellFormed("a/"));
  static_assert(!IsWellFormed("a//b"));
  static_assert(!IsWellFormed(R"(a\b)"));
  static_assert(!IsWellFormed(R"(a\)"));
  using Keys = std::array<std::string_view, 2>;
  static_assert(AreDistinct(Keys{"a", "ab"}));
  static_assert(!AreDistinct(Keys{"a", "a"}));
  static_assert(!AreDistinct(Keys{"a", "a/b"}));
  static_assert(!AreDistinct(Keys{"a/b", "a"}));
}

}  // namespace
}  // namespace rill
