// SPDX-License-Identifier: Apache-2.0
#include "rill/flow/conformance/source_conformance.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "rill/flow/sink.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::_;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Pair;

MATCHER_P(AllBitEqualTo, want, "") {
  if (arg.size() != want.size()) return false;
  for (size_t i = 0; i < want.size(); ++i) {
    if (!ExplainMatchResult(BitEqualTo(want[i]), arg[i], result_listener)) {
      return false;
    }
  }
  return true;
}

// Keeps what it takes; refuses all while it is full.
struct Recorder {
  FunctionSink sink{[this](const TensorDict& batch, const WriteInfo& info) {
    if (is_full) return absl::ResourceExhaustedError("full");
    batches.push_back(*batch.Clone());
    numbers[info.producer].push_back(info.sequence);
    return absl::OkStatus();
  }};
  bool is_full = false;
  std::vector<TensorDict> batches;
  std::map<int64_t, std::vector<int64_t>> numbers;  // By producer.
};

// Those that only pad a batch, or are missing there, are masked.
int64_t StepsOf(const TensorDict& batch) {
  const auto mask = batch.Flat<bool>("collector/mask");
  return mask.ok() ? std::count(mask->begin(), mask->end(), true)
                   : batch.batch_shape().num_elements();
}

TEST_P(SourceConformanceTest, BatchesAreOfItsSpecAndAreCounted) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto source, GetParam()());
  int64_t frames = source->frames();
  EXPECT_EQ(frames, 0);
  for (int i = 0; i < 3; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, source->Next());
    EXPECT_EQ(batch.batch_shape().rank(), 2);
    RILL_EXPECT_OK(source->spec().CheckValues("Source", batch));
    frames += StepsOf(batch);
    EXPECT_EQ(source->frames(), frames);
  }
}

TEST_P(SourceConformanceTest, ARefusedBatchArrivesOnceUnderItsNumber) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto plain, GetParam()());
  RILL_ASSERT_OK_AND_ASSIGN(const auto refused, GetParam()());
  Recorder want;
  Recorder got;
  for (int i = 0; i < 3; ++i) {
    RILL_ASSERT_OK(plain->CollectInto(want.sink));
    got.is_full = true;
    for (int j = 0; j < 2; ++j) {
      EXPECT_THAT(refused->CollectInto(got.sink), IsResourceExhausted());
    }
    got.is_full = false;
    RILL_ASSERT_OK(refused->CollectInto(got.sink));
  }
  EXPECT_THAT(got.batches, AllBitEqualTo(want.batches));
  EXPECT_THAT(got.numbers, Each(Pair(_, ElementsAre(1, 2, 3))));
  EXPECT_EQ(refused->frames(), plain->frames());
}

TEST_P(SourceConformanceTest, StopCancelsOneCallAndLosesNothing) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto plain, GetParam()());
  RILL_ASSERT_OK_AND_ASSIGN(const auto stopped, GetParam()());
  for (int i = 0; i < 3; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, plain->Next());
    stopped->Stop();
    EXPECT_THAT(stopped->Next(), StatusIs(absl::StatusCode::kCancelled));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got, stopped->Next());
    EXPECT_THAT(got, BitEqualTo(want));
  }
}

TEST_P(SourceConformanceTest, ALoadedStateGoesOnWithARefusedBatch) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto first, GetParam()());
  RILL_ASSERT_OK_AND_ASSIGN(const auto second, GetParam()());
  Recorder want;
  Recorder got;
  RILL_ASSERT_OK(first->CollectInto(want.sink));
  want.batches.clear();
  want.is_full = true;
  EXPECT_FALSE(first->CollectInto(want.sink).ok());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, first->SaveState());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict copy, state.Clone());
  const int64_t frames = first->frames();
  want.is_full = false;
  for (int i = 0; i < 2; ++i) RILL_ASSERT_OK(first->CollectInto(want.sink));
  EXPECT_THAT(state, BitEqualTo(copy)) << "a saved state is a copy";
  RILL_ASSERT_OK(second->LoadState(state));
  EXPECT_EQ(second->frames(), frames);
  for (int i = 0; i < 2; ++i) RILL_ASSERT_OK(second->CollectInto(got.sink));
  EXPECT_EQ(second->frames(), first->frames());
  EXPECT_THAT(got.batches, AllBitEqualTo(want.batches));
  EXPECT_THAT(got.numbers, Each(Pair(_, ElementsAre(2, 3))));
}

TEST_P(SourceConformanceTest, AnotherStateIsRefusedAndNothingChanges) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto source, GetParam()());
  RILL_ASSERT_OK(source->Next().status());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict before, source->SaveState());
  EXPECT_THAT(source->LoadState(TensorDict()), IsFailedPrecondition());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict after, source->SaveState());
  EXPECT_THAT(after, BitEqualTo(before));
}

}  // namespace

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SourceConformanceTest);

}  // namespace rill
