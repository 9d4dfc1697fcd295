// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/values/hash.h"

#include <cstdint>
#include <cstring>
#include <set>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/step_transform_conformance.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"
#include "rill/transforms/values/sip_hash.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

const Hash::Options kHash = {
    .in_keys = {"observation"}, .out_keys = {"state_hash"}, .seed = 3};

// The vectors of the paper's authors: the key 00..0f, the bytes 00, 01, ...
TEST(SipHashTest, HasTheValuesOfItsAuthors) {
  constexpr uint64_t kWant[] = {0x726fdb47dd0e0e31, 0x74f839c593dc67fd,
                                0x0d6c8009d9a94f5a, 0x85676696d7fb7e2d,
                                0xcf2794e0277187b7, 0x18765564cd99a68d,
                                0xcbc9466e58fee3ce, 0xab0200f58b01d137,
                                0x93f5f5799a932462, 0x9e0082df0ba9e4b0};
  std::byte bytes[10];
  for (size_t i = 0; i < 10; ++i) bytes[i] = static_cast<std::byte>(i);
  for (size_t size = 0; size < 10; ++size) {
    EXPECT_EQ(
        transforms_internal::SipHash(0x0706050403020100, 0x0f0e0d0c0b0a0908,
                                     absl::MakeConstSpan(bytes, size)),
        kWant[size])
        << size;
  }
}

TEST(HashTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto hash,
      Hash::Create({.in_keys = {"observation"}, .out_keys = {"state_hash"}}));
  EXPECT_EQ(hash->name(), "Hash");
}

TEST(HashTest, EqualRowsAndNoOthersHaveEqualHashes) {
  auto hash = *Hash::Create({.in_keys = {"a"}});
  TensorDict batch({4});
  RILL_ASSERT_OK(
      batch.Set("a", *Tensor::From<float>({1, 2, 2, 1, 1, 2, 1, 3}, {4, 2})));
  RILL_ASSERT_OK(hash->Forward(&batch, nullptr));
  EXPECT_EQ(batch.Find("a")->shape(), Shape({4, 1}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto hashes, batch.Flat<int64_t>("a"));
  EXPECT_EQ(hashes[0], hashes[2]);
  EXPECT_EQ(std::set<int64_t>(hashes.begin(), hashes.end()).size(), 3u);
}

TEST(HashTest, SeedsChangeHashesAndBytesAreThoseOfTheNumber) {
  TensorDict batch({1});
  RILL_ASSERT_OK(batch.Set("a", *Tensor::From<int16_t>({7, 8}, {1, 2})));
  std::set<int64_t> hashes;
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, UINT64_MAX}) {
    TensorDict number = batch;
    RILL_ASSERT_OK((*Hash::Create({.in_keys = {"a"}, .seed = seed}))
                       ->Forward(&number, nullptr));
    TensorDict bytes = batch;
    RILL_ASSERT_OK(
        (*Hash::Create(
             {.in_keys = {"a"}, .seed = seed, .dtype = DType::kUInt8}))
            ->Forward(&bytes, nullptr));
    EXPECT_EQ(bytes.Find("a")->shape(), Shape({1, 8}));
    EXPECT_EQ(std::memcmp(bytes.Find("a")->raw_data(),
                          number.Find("a")->raw_data(), 8),
              0);
    hashes.insert(number.Flat<int64_t>("a")->at(0));
  }
  EXPECT_EQ(hashes.size(), 3u);
}

TEST(HashTest, BadOptionsAreNamed) {
  EXPECT_THAT(Hash::Create({.in_keys = {"a"}, .dtype = DType::kInt32}),
              StatusIs(kInvalidArgument, HasSubstr("dtype: got int32")));
  EXPECT_THAT(Hash::Create({}),
              StatusIs(kInvalidArgument, HasSubstr("in_keys")));
}

}  // namespace

INSTANTIATE_TRANSFORM_CONFORMANCE(Hash, InABuffer<Hash>(kHash, TedSpec()));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(Hash,
                                       BesideAnEnvironment<Hash>(kHash,
                                                                 TedSpec()));

}  // namespace rill
