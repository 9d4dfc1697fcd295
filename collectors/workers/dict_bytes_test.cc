// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/workers/dict_bytes.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill::workers_internal {
namespace {

using ::testing::HasSubstr;

TensorDict Nested() {
  TensorDict inner({2, 3});
  RILL_EXPECT_OK(inner.Set("empty", *Tensor::Zeros(DType::kBool, {2, 3, 0})));
  RILL_EXPECT_OK(inner.Set(
      "x", *Tensor::From<int16_t>({1, 2, 3, 4, 5, 6}, Shape({2, 3}))));
  TensorDict dict({2});
  RILL_EXPECT_OK(dict.Set("y", *Tensor::From<double>({0.5, -1}, Shape({2}))));
  RILL_EXPECT_OK(dict.Set("inner", std::move(inner)));
  RILL_EXPECT_OK(dict.Set("none", TensorDict({2})));
  RILL_EXPECT_OK(dict.Set("name", NonTensor{"\"Reward\""}));
  return dict;
}

TEST(DictBytesTest, ADictionaryComesBackAsItWas) {
  RILL_ASSERT_OK_AND_ASSIGN(const std::string bytes, DictToBytes(Nested()));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict back, DictFromBytes(bytes));
  EXPECT_THAT(back, BitEqualTo(Nested()));
  EXPECT_EQ(back.FindDict("inner")->batch_shape(), Shape({2, 3}));
}

TEST(DictBytesTest, EveryPrefixIsRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(const std::string bytes, DictToBytes(Nested()));
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(DictFromBytes(bytes.substr(0, size)),
                StatusIs(absl::StatusCode::kDataLoss))
        << size;
  }
  EXPECT_THAT(DictFromBytes(bytes + "x"),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST(DictBytesTest, AKindThatIsNotWrittenIsRefused) {
  TensorDict dict;
  RILL_ASSERT_OK(dict.Set("name", NonTensor{"\"Reward\""}));
  RILL_ASSERT_OK_AND_ASSIGN(std::string bytes, DictToBytes(dict));
  // Behind rank, number of entries, and the key.
  char& kind = bytes[8 + 8 + 8 + 4];
  ASSERT_EQ(kind, 2);
  kind = 3;
  EXPECT_THAT(DictFromBytes(bytes),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("a kind")));
}

TEST(DictBytesTest, AnyBytesGiveADictionaryOrAStatus) {
  RILL_ASSERT_OK_AND_ASSIGN(const std::string bytes, DictToBytes(Nested()));
  const Rng rng(1);
  int refused = 0;
  for (uint64_t i = 0; i < 20000; ++i) {
    std::string other = bytes;
    const auto at = rng.UniformInt(i, 0, static_cast<int64_t>(bytes.size()));
    other[at] = static_cast<char>(rng.UniformInt(i, 1, 256));
    const auto dict = DictFromBytes(other);
    refused += dict.ok() ? 0 : 1;
    if (!dict.ok()) {
      EXPECT_THAT(dict, StatusIs(absl::StatusCode::kDataLoss));
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(DictBytesTest, AnotherKindOfEntryIsNamed) {
  TensorDict dict({2});
  RILL_ASSERT_OK(
      dict.Set("text", *NonTensorStack::Create({2}, {"\"a\"", "\"b\""})));
  EXPECT_THAT(DictToBytes(dict), StatusIs(absl::StatusCode::kUnimplemented,
                                          HasSubstr("\"text\"")));
}

}  // namespace
}  // namespace rill::workers_internal
