// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/leaves.h"

#include <cstdint>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
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

TEST(LeavesTest, WritableLeafSharesBytesWithOtherHolders) {
  const Tensor tensor = Count({1, 2});
  TensorDict dict = DictOf(tensor);
  RILL_ASSERT_OK_AND_ASSIGN(Tensor leaf, WritableLeaf("T::F", "x", &dict));
  leaf.data<int64_t>()[0] = 7;
  EXPECT_EQ(tensor.data<int64_t>()[0], 7);
}

TEST(LeavesTest, WritableLeafCopiesWhatCannotBeWritten) {
  const int64_t bytes[] = {1, 2};
  auto buffer = Buffer::Wrap(const_cast<int64_t*>(bytes), sizeof(bytes),
                             Device::Cpu(), MemoryKind::kPageable, nullptr,
                             /*is_writable=*/false);
  TensorDict dict = DictOf(*Tensor::View(buffer, DType::kInt64, {2, 1}, 0));
  RILL_ASSERT_OK_AND_ASSIGN(Tensor leaf, WritableLeaf("T::F", "x", &dict));
  leaf.data<int64_t>()[0] = 7;
  EXPECT_EQ(bytes[0], 1);
  EXPECT_THAT(dict.Flat<int64_t>("x"), IsOkAndHolds(ElementsAre(7, 2)));
}

TEST(LeavesTest, FreshLeafIsReusedOnlyWhereItFitsAndNobodyElseHoldsIt) {
  TensorDict dict = DictOf(Count({1, 2}));
  const std::byte* before = dict.Find("x")->raw_data();
  {
    RILL_ASSERT_OK_AND_ASSIGN(Tensor same,
                              FreshLeaf("x", DType::kInt64, {2, 1}, &dict));
    EXPECT_EQ(same.raw_data(), before);
    RILL_ASSERT_OK_AND_ASSIGN(Tensor held,
                              FreshLeaf("x", DType::kInt64, {2, 1}, &dict));
    EXPECT_NE(held.raw_data(), before);
  }
  RILL_ASSERT_OK_AND_ASSIGN(Tensor other,
                            FreshLeaf("x", DType::kFloat32, {2, 1}, &dict));
  EXPECT_EQ(dict.Find("x")->dtype(), DType::kFloat32);
}

TEST(LeavesTest, MissingLeafListsTheKeysThereAre) {
  TensorDict dict = DictOf(Count({1, 2}));
  EXPECT_THAT(WritableLeaf("T::F", "y", &dict),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("T::F"), HasSubstr("x"))));
  EXPECT_THAT(FindSpec("T::F", "y", TensorDictSpec::Of(dict)),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("\"y\""), HasSubstr("[x]"))));
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
