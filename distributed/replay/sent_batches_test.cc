// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/replay/sent_batches.h"

#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

// Two leaves of the same buffer and one of another.
TensorDict MakeBatch() {
  TensorDict batch({2});
  auto wide = Tensor::Zeros(DType::kFloat32, {4, 3});
  auto other = Tensor::Zeros(DType::kInt64, {2});
  RILL_EXPECT_OK(wide.status());
  RILL_EXPECT_OK(other.status());
  auto head = wide->Slice(0, 0, 2);
  auto tail = wide->Slice(0, 2, 4);
  RILL_EXPECT_OK(head.status());
  RILL_EXPECT_OK(tail.status());
  RILL_EXPECT_OK(batch.Set("head", *std::move(head)));
  RILL_EXPECT_OK(batch.Set("next/tail", *std::move(tail)));
  RILL_EXPECT_OK(batch.Set("other", *std::move(other)));
  return batch;
}

const std::byte* BytesOf(const TensorDict& batch) {
  const Tensor* const head = batch.Find("head");
  return head == nullptr ? nullptr : head->raw_data();
}

TEST(SentBatchesTest, ABatchIsFreeWhenNobodyHoldsATensorOfIt) {
  SentBatches sent;
  EXPECT_TRUE(sent.Take({2}).empty());
  TensorDict batch = MakeBatch();
  const std::byte* const bytes = BytesOf(batch);
  sent.Keep(batch);
  EXPECT_TRUE(sent.Take({2}).empty());
  Tensor held = *batch.Find("other");
  batch = TensorDict();
  EXPECT_TRUE(sent.Take({2}).empty());
  held = Tensor();
  TensorDict again = sent.Take({2});
  EXPECT_EQ(BytesOf(again), bytes);
  // It is the caller's, also where that one does not send it.
  again = TensorDict();
  EXPECT_TRUE(sent.Take({2}).empty());
}

TEST(SentBatchesTest, OfMoreThanSixteenOnTheirWayTheOldestIsForgotten) {
  SentBatches sent;
  std::vector<TensorDict> batches;
  for (int i = 0; i < 17; ++i) {
    batches.push_back(MakeBatch());
    sent.Keep(batches.back());
  }
  const std::byte* const second = BytesOf(batches[1]);
  batches[0] = TensorDict();
  EXPECT_TRUE(sent.Take({2}).empty());
  batches[1] = TensorDict();
  EXPECT_EQ(BytesOf(sent.Take({2})), second);
}

TEST(SentBatchesTest, OfMoreThanTwoThatAreFreeTheOldestGo) {
  SentBatches sent;
  std::vector<TensorDict> batches;
  for (int i = 0; i < 5; ++i) {
    batches.push_back(MakeBatch());
    sent.Keep(batches.back());
  }
  const std::byte* const newest = BytesOf(batches.back());
  batches.clear();
  TensorDict last = MakeBatch();
  sent.Keep(last);
  EXPECT_EQ(BytesOf(sent.Take({2})), newest);
  EXPECT_FALSE(sent.Take({2}).empty());
  EXPECT_TRUE(sent.Take({2}).empty());
}

// 262,144 bytes, of which 16 make 4 MiB.
TensorDict MakeLargeBatch() {
  TensorDict batch({64});
  RILL_EXPECT_OK(batch.Set("head", *Tensor::Zeros(DType::kUInt8, {64, 4096})));
  return batch;
}

TEST(SentBatchesTest, BehindALargeBatchMemoryOfManyIsMade) {
  SentBatches sent;
  EXPECT_TRUE(sent.Take({64}).empty());
  {
    const TensorDict first = MakeLargeBatch();
    sent.Keep(first);
  }
  std::vector<TensorDict> batches;
  for (int i = 0; i < 16; ++i) {
    batches.push_back(sent.Take({64}));
    RILL_EXPECT_OK(batches.back().CopyFrom(MakeLargeBatch()));
  }
  // One piece of memory, of which none is there twice.
  std::set<const std::byte*> begins;
  for (const TensorDict& batch : batches) begins.insert(BytesOf(batch));
  EXPECT_EQ(begins.size(), 16u);
  EXPECT_EQ(*begins.rbegin() - *begins.begin(), 15 << 18);
  // They come back like others.
  for (TensorDict& batch : batches) sent.Keep(std::exchange(batch, {}));
  for (int i = 0; i < 16; ++i) {
    batches.push_back(sent.Take({64}));
    EXPECT_TRUE(begins.contains(BytesOf(batches.back())));
  }
  // No batch is made of a shape that differs from the newest one.
  EXPECT_TRUE(sent.Take({32}).empty());
}

TEST(SentBatchesTest, WhatIsMadePushesNothingOutThatIsOnItsWay) {
  SentBatches sent;
  sent.Keep(MakeLargeBatch());
  std::vector<TensorDict> batches;
  std::set<const std::byte*> begins;
  for (int i = 0; i < 16; ++i) {
    batches.push_back(i == 0 ? sent.Take({64}) : MakeLargeBatch());
    begins.insert(BytesOf(batches.back()));
    sent.Keep(batches.back());
  }
  EXPECT_TRUE(sent.Take({64}).empty());
  batches.clear();
  EXPECT_TRUE(begins.contains(BytesOf(sent.Take({64}))));
}

TEST(SentBatchesTest, OnlyABatchOfTheShapeIsTaken) {
  SentBatches sent;
  sent.Keep(MakeBatch());
  EXPECT_TRUE(sent.Take({3}).empty());
  EXPECT_FALSE(sent.Take({2}).empty());
}

TEST(SentBatchesTest, SameBytesAreThoseOfAllLeaves) {
  const TensorDict batch = MakeBatch();
  EXPECT_TRUE(AreSameBytes(batch, batch));
  EXPECT_FALSE(AreSameBytes(batch, MakeBatch()));
  EXPECT_FALSE(AreSameBytes(batch, *batch.Slice(0, 0, 1)));
  TensorDict fewer = batch;
  RILL_ASSERT_OK(fewer.Delete("other"));
  EXPECT_FALSE(AreSameBytes(batch, fewer));
  EXPECT_FALSE(AreSameBytes(fewer, batch));
}

TEST(SentBatchesTest, BatchesOfOtherEntriesAreLeftAlone) {
  SentBatches sent;
  for (const char* const key : {"text", "next/text"}) {
    TensorDict batch = MakeBatch();
    RILL_ASSERT_OK(batch.Set(key, NonTensor{"1"}));
    sent.Keep(batch);
    EXPECT_FALSE(HasOnlyTensors(batch));
  }
  EXPECT_TRUE(sent.Take({2}).empty());
  EXPECT_FALSE(HasOnlyTensors(TensorDict()));
  EXPECT_TRUE(HasOnlyTensors(MakeBatch()));
}

}  // namespace
}  // namespace rill
