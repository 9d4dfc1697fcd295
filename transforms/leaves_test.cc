// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/leaves.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/testing/status_matchers.h"

namespace rill::transforms_internal {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor Count(const std::vector<int64_t>& values) {
  return *Tensor::From<int64_t>(values,
                                {static_cast<int64_t>(values.size()), 1});
}

TensorDict DictOf(Tensor tensor) {
  TensorDict dict({tensor.shape()[0]});
  RILL_EXPECT_OK(dict.Set("x", std::move(tensor)));
  return dict;
}

TEST(LeavesTest, UpdateLeafSharesBytesWithOtherHolders) {
  const Tensor tensor = Count({1, 2});
  TensorDict dict = DictOf(tensor);
  RILL_ASSERT_OK_AND_ASSIGN(Tensor leaf, UpdateLeaf("T::F", "x", &dict));
  leaf.data<int64_t>()[0] = 7;
  EXPECT_EQ(tensor.data<int64_t>()[0], 7);
}

TEST(LeavesTest, UpdateLeafCopiesWhatCannotBeWritten) {
  const int64_t bytes[] = {1, 2};
  auto buffer = Buffer::Wrap(const_cast<int64_t*>(bytes), sizeof(bytes),
                             Device::Cpu(), MemoryKind::kPageable, nullptr,
                             /*is_writable=*/false);
  TensorDict dict = DictOf(*Tensor::View(buffer, DType::kInt64, {2, 1}, 0));
  RILL_ASSERT_OK_AND_ASSIGN(Tensor leaf, UpdateLeaf("T::F", "x", &dict));
  leaf.data<int64_t>()[0] = 7;
  EXPECT_EQ(bytes[0], 1);
  EXPECT_THAT(dict.Flat<int64_t>("x"), IsOkAndHolds(ElementsAre(7, 2)));
}

TEST(LeavesTest, WriteLeafReusesOnlyWhatFitsAndNobodyElseHolds) {
  TensorDict dict = DictOf(Count({1, 2}));
  const std::byte* before = dict.Find("x")->raw_data();
  {
    RILL_ASSERT_OK_AND_ASSIGN(Tensor same,
                              WriteLeaf("x", DType::kInt64, {2, 1}, {}, &dict));
    EXPECT_EQ(same.raw_data(), before);
    RILL_ASSERT_OK_AND_ASSIGN(Tensor held,
                              WriteLeaf("x", DType::kInt64, {2, 1}, {}, &dict));
    EXPECT_NE(held.raw_data(), before);
  }
  RILL_ASSERT_OK_AND_ASSIGN(Tensor other,
                            WriteLeaf("x", DType::kFloat32, {2, 1}, {}, &dict));
  EXPECT_EQ(dict.Find("x")->dtype(), DType::kFloat32);
}

TEST(LeavesTest, WriteLeafReusesWhatTheCallerPassedInWhereItFits) {
  TensorDict batch({2});
  RILL_ASSERT_OK(batch.Set("a", *Tensor::Zeros(DType::kInt64, {2, 3})));
  const std::byte* place = batch.Find("a")->raw_data();
  RILL_ASSERT_OK_AND_ASSIGN(
      Tensor out,
      WriteLeaf("a", DType::kInt64, {2, 3}, {.is_passed_in = true}, &batch));
  EXPECT_EQ(out.raw_data(), place);
  RILL_ASSERT_OK_AND_ASSIGN(out, WriteLeaf("a", DType::kInt64, {2, 1},
                                           {.is_passed_in = true}, &batch));
  EXPECT_NE(out.raw_data(), place);
  EXPECT_EQ(batch.Find("a")->raw_data(), out.raw_data());
  EXPECT_EQ(out.shape(), Shape({2, 1}));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor wide,
                            Tensor::Zeros(DType::kInt64, {2, 4}));
  RILL_ASSERT_OK(batch.Set("a", *wide.Slice(1, 0, 3)));
  RILL_ASSERT_OK_AND_ASSIGN(out, WriteLeaf("a", DType::kInt64, {2, 3},
                                           {.is_passed_in = true}, &batch));
  EXPECT_TRUE(out.is_contiguous());
  EXPECT_EQ(batch.Find("a")->raw_data(), out.raw_data());
}

TEST(LeavesTest, LeavesOfAnotherTypeOrShapeAreRefusedAndStay) {
  TensorDict dict = DictOf(Count({1, 2}));
  const std::byte* const before = dict.Find("x")->raw_data();
  for (const auto& [dtype, shape] : std::vector<std::pair<DType, Shape>>{
           {DType::kInt32, {2, 1}}, {DType::kInt64, {2}}}) {
    const auto refused =
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(HasSubstr("T::F: \"x\": got int64[2, 1]"),
                       HasSubstr(DTypeName(dtype))));
    EXPECT_THAT(ReadLeaf("T::F", "x", dtype, shape, dict), refused);
    EXPECT_THAT(UpdateLeaf("T::F", "x", dtype, shape, &dict), refused);
  }
  EXPECT_EQ(dict.Find("x")->raw_data(), before);
}

TEST(LeavesTest, MissingLeafListsTheKeysThereAre) {
  TensorDict dict = DictOf(Count({1, 2}));
  EXPECT_THAT(UpdateLeaf("T::F", "y", &dict),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("T::F"), HasSubstr("x"))));
  EXPECT_THAT(FindSpec("T::F", "y", TensorDictSpec::Of(dict)),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("\"y\""), HasSubstr("[x]"))));
}

TEST(LeavesTest, TensorsOfALazyStackAreNoLeaf) {
  TensorDict member((Shape()));
  RILL_ASSERT_OK(member.Set("x", *Tensor::Zeros(DType::kFloat32, {3})));
  TensorDict batch({2});
  RILL_ASSERT_OK(batch.Set("lazy", *LazyStack::Create({member, member})));
  for (const absl::Status& status :
       {ReadLeaf("Caller", "lazy/x", batch).status(),
        UpdateLeaf("Caller", "lazy/x", &batch).status()}) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                 AllOf(HasSubstr("Caller: \"lazy/x\""),
                                       HasSubstr("ToDense"))));
  }
}

TEST(LeavesTest, FlagsAreChecked) {
  TensorDictSpec spec;
  RILL_ASSERT_OK(spec.Set("next/done", LeafSpec::Binary({1})));
  RILL_ASSERT_OK(spec.Set("flat", LeafSpec::Binary({})));
  RILL_EXPECT_OK(CheckIsFlag("F", "next/done", spec));
  EXPECT_THAT(
      CheckIsFlag("F", "flat", spec),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want bool[1]")));
  EXPECT_THAT(CheckIsFlag("F", "none", spec),
              StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace rill::transforms_internal
