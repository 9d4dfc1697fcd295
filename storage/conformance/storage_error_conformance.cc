// SPDX-License-Identifier: Apache-2.0
// Calls that are refused, and that they change nothing.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/storage/conformance/conformance_rows.h"
#include "rill/storage/conformance/storage_conformance.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct BadBatch {
  std::string name;
  TensorDict batch;
  std::vector<std::string> named;  // Both sides of what is wrong.
};

TensorDict Good(const Shape& batch_shape) {
  const std::vector<int64_t> ids(batch_shape.num_elements(), 1000);
  return ConformanceRows(batch_shape, ids);
}

Tensor Zeros(DType dtype, const Shape& shape) {
  return *Tensor::Zeros(dtype, shape);
}

// Batches [2, 3] of which each is wrong in one way.
std::vector<BadBatch> BadBatches() {
  std::vector<BadBatch> bad;
  const auto add = [&bad](std::string name, std::vector<std::string> named) {
    bad.push_back({std::move(name), Good({2, 3}), std::move(named)});
    return &bad.back().batch;
  };
  RILL_EXPECT_OK(add("missing key", {"action"})->Delete("action"));
  RILL_EXPECT_OK(add("missing nested key", {"next/done"})->Delete("next/done"));
  RILL_EXPECT_OK(add("unknown key", {"extra", "observation"})
                     ->Set("extra", Zeros(DType::kInt8, {2, 3})));
  RILL_EXPECT_OK(add("unknown nested key", {"next/extra"})
                     ->Set("next/extra", Zeros(DType::kInt8, {2, 3})));
  RILL_EXPECT_OK(
      add("unknown dictionary", {"more"})->Set("more", TensorDict({2, 3})));
  RILL_EXPECT_OK(
      add("renamed key", {"action", "act"})->Rename("action", "act"));
  RILL_EXPECT_OK(
      add("value that is no tensor", {"note"})->Set("note", NonTensor{"1"}));
  RILL_EXPECT_OK(add("wider dtype", {"observation", "float64", "float32"})
                     ->Set("observation", Zeros(DType::kFloat64, {2, 3, 3})));
  RILL_EXPECT_OK(add("other size", {"observation", "[2, 3, 4]", "[2, 3, 3]"})
                     ->Set("observation", Zeros(DType::kFloat32, {2, 3, 4})));
  RILL_EXPECT_OK(add("flag without its dimension",
                     {"next/done", "bool[2, 3]", "bool[2, 3, 1]"})
                     ->Set("next/done", Zeros(DType::kBool, {2, 3})));
  return bad;
}

TEST_P(StorageConformanceTest, BatchesThatDoNotFitChangeNothing) {
  auto subject = Make(8, 2);
  subject->ExtendAll(3);
  const int64_t calls = subject->mirror().num_calls();
  for (const BadBatch& bad : BadBatches()) {
    const absl::Status status =
        subject->storage().Extend(bad.batch, {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument)
        << bad.name << ": " << status;
    for (const std::string& word : bad.named) {
      EXPECT_THAT(std::string(status.message()), HasSubstr(word)) << bad.name;
    }
    subject->Check(bad.name);
  }
  EXPECT_EQ(subject->mirror().num_calls(), calls);
}

TEST_P(StorageConformanceTest, FirstBatchesThatDoNotFitLeaveItEmpty) {
  auto subject = Make(8, 2);
  TensorDict batch = Good({2, 3});
  RILL_ASSERT_OK(batch.Set("note", NonTensor{"1"}));
  EXPECT_THAT(subject->storage().Extend(batch, {}), IsInvalidArgument("note"));
  EXPECT_THAT(subject->storage().Extend(TensorDict({2, 3}), {}),
              IsInvalidArgument());
  subject->Check();
  EXPECT_EQ(subject->storage().spec().empty(), GetParam().is_lazy);
  subject->ExtendAll(2);
  subject->Check();
}

TEST_P(StorageConformanceTest, BatchShapesAndLanesMustFit) {
  auto subject = Make(8, 2);
  subject->ExtendAll(1);
  Storage& storage = subject->storage();
  EXPECT_THAT(storage.Extend(Good({3}), {}),
              IsInvalidArgument("[lanes, time]"));
  EXPECT_THAT(storage.Extend(Good({1, 1, 3}), {}),
              IsInvalidArgument("[1, 1, 3]"));
  EXPECT_THAT(storage.Extend(Good({3, 1}), {}), IsInvalidArgument("got 3"));
  EXPECT_THAT(storage.Extend(Good({1, 1}), {.first_lane = 2}),
              IsInvalidArgument("lane 2"));
  EXPECT_THAT(storage.Extend(Good({1, 1}), {.first_lane = -1}),
              IsInvalidArgument("lane -1"));
  EXPECT_THAT(storage.Extend(Good({1, 1}), {.first_lane = INT64_MAX}),
              IsInvalidArgument("[0, 2)"));
  EXPECT_THAT(storage.Extend(TensorDict({2, INT64_MAX}), {}),
              IsInvalidArgument("[2, 9223372036854775807], want at most"));
  subject->Check();
}

TEST_P(StorageConformanceTest, WriteAtRefusesWhatDoesNotFit) {
  auto subject = Make(8, 2);
  subject->ExtendAll(3);
  const int64_t calls = subject->mirror().num_calls();
  Storage& storage = subject->storage();
  for (const Slot slot : {Slot{-1}, Slot{3}, Slot{7}, Slot{8}, INT64_MAX}) {
    EXPECT_THAT(storage.WriteAt({0, slot}, Good({2})),
                IsOutOfRange(std::to_string(slot)));
  }
  EXPECT_THAT(storage.WriteAt({0, 1}, Good({3})),
              IsInvalidArgument("[3], want [2]"));
  EXPECT_THAT(storage.WriteAt({0, 1}, TensorDict({2})),
              IsInvalidArgument("keys"));
  TensorDict extra = Good({2});
  RILL_ASSERT_OK(extra.Set("extra", Zeros(DType::kInt8, {2})));
  EXPECT_THAT(storage.WriteAt({0, 1}, extra), IsInvalidArgument("extra"));
  TensorDict other({2});
  RILL_ASSERT_OK(other.Set("action", Zeros(DType::kInt32, {2})));
  EXPECT_THAT(storage.WriteAt({0, 1}, other),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("int32"), HasSubstr("int64"))));
  subject->Check();
  EXPECT_EQ(subject->mirror().num_calls(), calls);
}

}  // namespace
}  // namespace rill
