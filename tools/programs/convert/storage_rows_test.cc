// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/formats/memmap_directory.h"
#include "rill/formats/tdz_archive.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage.h"
#include "rill/storage/storage_layout.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"
#include "rill/tools/programs/convert/convert.h"
#include "rill/tools/programs/inspect/saved.h"

namespace rill::convert {
namespace {

using inspect::Form;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The steps first, first + 1, ... of each of `lanes` lanes.
TensorDict Steps(int64_t lanes, int64_t steps, int64_t first = 0) {
  TensorDict batch({lanes, steps});
  Tensor id = *Tensor::Empty(DType::kInt64, Shape({lanes, steps, 1}));
  for (int64_t i = 0; i < lanes * steps; ++i) {
    id.data<int64_t>()[i] = 1000 * (i / steps) + first + i % steps;
  }
  RILL_EXPECT_OK(batch.Set("next/reward", id));
  RILL_EXPECT_OK(
      batch.Set("flag", *Tensor::Zeros(DType::kBool, Shape({lanes, steps}))));
  return batch;
}

class StorageRowsTest : public ::testing::TestWithParam<StorageLayout> {
 protected:
  // Lanes of 5000 slots, over whose ends was written.
  void Fill(const std::string& directory, int64_t lanes) {
    RILL_ASSERT_OK_AND_ASSIGN(const auto storage,
                              MemmapStorage::Create({.directory = directory,
                                                     .capacity = lanes * 5000,
                                                     .lanes = lanes,
                                                     .layout = GetParam()}));
    RILL_ASSERT_OK(storage->Extend(Steps(lanes, 4000)).status());
    RILL_ASSERT_OK(storage->Extend(Steps(lanes, 3000, 4000)).status());
  }
};

INSTANTIATE_TEST_SUITE_P(Layouts, StorageRowsTest,
                         ::testing::Values(StorageLayout::kRows,
                                           StorageLayout::kColumns));

TEST_P(StorageRowsTest, LiveRowsComeOutOldestFirst) {
  const std::string storage = FreshPath("storage");
  Fill(storage, 2);
  const std::string directory = FreshPath("directory");
  EXPECT_THAT(
      Convert(storage, directory, Form::kDirectory),
      IsOkAndHolds(HasSubstr("batch [2, 5000], 2 tensors, 90000 bytes")));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict steps,
                            LoadMemmapDirectory(directory));
  RILL_EXPECT_OK(steps.CheckEqual(Steps(2, 5000, 2000)));
  const std::string archive = FreshPath("archive.tdz");
  RILL_ASSERT_OK(Convert(storage, archive, Form::kTdz).status());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict same, LoadTdz(archive));
  RILL_EXPECT_OK(same.CheckEqual(steps));
}

TEST_P(StorageRowsTest, LanesOfDifferentLengthsComeOutOneAfterTheOther) {
  const std::string in = FreshPath("two");
  {
    RILL_ASSERT_OK_AND_ASSIGN(const auto two,
                              MemmapStorage::Create({.directory = in,
                                                     .capacity = 20,
                                                     .lanes = 2,
                                                     .layout = GetParam()}));
    RILL_ASSERT_OK(two->Extend(Steps(2, 3)).status());
    RILL_ASSERT_OK(two->Extend(Steps(1, 1, 1003), {.first_lane = 1}).status());
  }
  const std::string out = FreshPath("out");
  EXPECT_THAT(Convert(in, out, Form::kDirectory),
              IsOkAndHolds(HasSubstr("batch [7]")));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict rows, LoadMemmapDirectory(out));
  EXPECT_THAT(*rows.Flat<int64_t>("next/reward"),
              ElementsAre(0, 1, 2, 1000, 1001, 1002, 1003));
}

TEST_P(StorageRowsTest, StepsBecomeAStorageAndComeBack) {
  const std::string in = FreshPath("in");
  RILL_ASSERT_OK(SaveMemmapDirectory(Steps(3, 50), in));
  const std::string storage = FreshPath("storage");
  RILL_ASSERT_OK(ConvertToStorage(in, storage, GetParam()).status());
  {
    RILL_ASSERT_OK_AND_ASSIGN(const auto opened,
                              MemmapStorage::Open({.directory = storage}));
    EXPECT_EQ(opened->lanes().count, 3);
    EXPECT_EQ(opened->size(), 150);
    // Its owner keeps others from converting it.
    EXPECT_THAT(Convert(storage, FreshPath("out"), Form::kDirectory),
                StatusIs(absl::StatusCode::kFailedPrecondition));
  }
  EXPECT_THAT(ConvertToStorage(in, storage, GetParam()),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  const std::string out = FreshPath("out");
  RILL_ASSERT_OK(Convert(storage, out, Form::kDirectory).status());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict back, LoadMemmapDirectory(out));
  RILL_EXPECT_OK(back.CheckEqual(Steps(3, 50)));
}

TEST_P(StorageRowsTest, WhatIsNoStepsMakesNoStorage) {
  const std::string in = FreshPath("in");
  TensorDict dict(Shape({}));
  RILL_ASSERT_OK(dict.Set("x", *Tensor::Zeros(DType::kInt8, {2})));
  RILL_ASSERT_OK(SaveMemmapDirectory(dict, in));
  const std::string storage = FreshPath("storage");
  EXPECT_THAT(ConvertToStorage(in, storage, GetParam()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("[T]")));
  dict = Steps(1, 2);
  RILL_ASSERT_OK(dict.Set("text", NonTensor{"1"}));
  RILL_ASSERT_OK(SaveMemmapDirectory(dict, in));
  EXPECT_THAT(ConvertToStorage(in, storage, GetParam()),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_FALSE(PathExists(storage));
}

}  // namespace
}  // namespace rill::convert
