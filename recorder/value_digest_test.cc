// SPDX-License-Identifier: Apache-2.0
#include "rill/recorder/value_digest.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill::recorder_internal {
namespace {

Tensor Numbers(std::vector<int64_t> values, Shape shape) {
  return *Tensor::From(values, shape);
}

uint32_t DigestOfOne(const char* key, Tensor tensor) {
  TensorDict dict;
  RILL_EXPECT_OK(dict.Set(key, std::move(tensor)));
  return DigestOf(dict);
}

TEST(ValueDigestTest, TellsKeysShapesDtypesAndElementsApart) {
  const uint32_t digest = DigestOfOne("x", Numbers({1, 2}, {2}));
  EXPECT_NE(digest, 0);
  EXPECT_EQ(DigestOfOne("x", Numbers({1, 2}, {2})), digest);
  EXPECT_NE(DigestOfOne("y", Numbers({1, 2}, {2})), digest);
  EXPECT_NE(DigestOfOne("x", Numbers({1, 2}, {2, 1})), digest);
  EXPECT_NE(DigestOfOne("x", Numbers({1, 3}, {2})), digest);
  EXPECT_NE(DigestOfOne("x", *Tensor::From(std::vector<uint64_t>{1, 2}, {2})),
            digest);
}

TEST(ValueDigestTest, DoesNotAskHowElementsLie) {
  const Tensor wide = Numbers({1, 9, 2, 9}, {2, 2});
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor column, wide.Slice(1, 0, 1));
  ASSERT_FALSE(column.is_contiguous());
  EXPECT_EQ(DigestOfOne("x", column),
            DigestOfOne("x", Numbers({1, 2}, {2, 1})));
}

TEST(ValueDigestTest, NoPiecesHaveNone) {
  EXPECT_EQ(DigestOf(absl::Span<const absl::string_view>()), 0);
  EXPECT_NE(DigestOf({absl::string_view("")}), 0);
  EXPECT_EQ(DigestOf({absl::string_view("ab"), absl::string_view("c")}),
            DigestOf({absl::string_view("abc")}));
}

}  // namespace
}  // namespace rill::recorder_internal
