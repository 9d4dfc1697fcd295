// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/writers/conformance/writer_conformance.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "rill/slots/generations.h"
#include "rill/slots/slot.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAreArray;
using ::testing::IsSubsetOf;
using ::testing::Not;

constexpr int64_t kCapacity = 8;

TensorDict Steps(const std::vector<int64_t>& values) {
  TensorDict steps({static_cast<int64_t>(values.size())});
  RILL_EXPECT_OK(
      steps.Set("step", *Tensor::From<int64_t>(values, steps.batch_shape())));
  return steps;
}

// A writer over a storage of its own.
struct Attached {
  explicit Attached(const WriterFactory& factory)
      : storage(*DenseStorage::Create({.capacity = kCapacity})),
        writer(factory()) {
    RILL_EXPECT_OK(writer->Attach(storage));
  }

  // `step` of the live rows, by their slots.
  std::vector<int64_t> Rows() const {
    std::vector<int64_t> rows;
    for (Slot slot = 0; slot < kCapacity; ++slot) {
      TensorDict row;
      if (!storage->Read({slot}, &row).ok() || row.Find("step") == nullptr) {
        continue;
      }
      rows.push_back(*row.Find("step")->data<int64_t>());
    }
    return rows;
  }

  const std::shared_ptr<Storage> storage;
  const std::unique_ptr<Writer> writer;
};

TEST_P(WriterConformanceTest, BelongsToOneStorage) {
  const auto writer = GetParam()();
  EXPECT_FALSE(writer->name().empty());
  EXPECT_THAT(writer->Extend(Steps({1})), IsFailedPrecondition());
  EXPECT_THAT(writer->WriteAt({0}, Steps({1})), IsFailedPrecondition());
  EXPECT_THAT(writer->Attach(nullptr), IsInvalidArgument());
  const Attached attached(GetParam());
  EXPECT_THAT(attached.writer->Attach(attached.storage),
              IsFailedPrecondition());
}

TEST_P(WriterConformanceTest, EveryRowIsStoredOrCountedAsDropped) {
  const Attached attached(GetParam());
  std::vector<int64_t> offered;
  for (const std::vector<int64_t>& values : std::vector<std::vector<int64_t>>{
           {5, 3, 9}, {1}, {8, 2, 7, 4, 6}, {12, 0, 11, 10}}) {
    const absl::StatusOr<ExtendResult> result =
        attached.writer->Extend(Steps(values));
    if (!result.ok()) {
      EXPECT_THAT(result, IsFailedPrecondition());
      EXPECT_EQ(attached.storage->size(), 0);
      return;  // It takes no rows.
    }
    offered.insert(offered.end(), values.begin(), values.end());
    const std::vector<int64_t> rows = attached.Rows();
    EXPECT_THAT(rows, IsSubsetOf(offered));
    const auto stayed =
        std::count_if(values.begin(), values.end(), [&](int64_t value) {
          return std::find(rows.begin(), rows.end(), value) != rows.end();
        });
    EXPECT_EQ(result->rows_written, stayed);
    EXPECT_EQ(result->rows_dropped,
              static_cast<int64_t>(values.size()) - stayed);
  }
  EXPECT_EQ(attached.storage->size(), kCapacity);
}

TEST_P(WriterConformanceTest, WhoAppendsAllIsTheStoragesOwnExtend) {
  const Attached attached(GetParam());
  if (!attached.writer->traits().appends_all) GTEST_SKIP() << "chooses rows";
  const Attached plain(MakeRoundRobinWriter);
  for (int64_t first = 0; first < 30; first += 5) {
    const TensorDict steps =
        Steps({first, first + 1, first + 2, first + 3, first + 4});
    RILL_ASSERT_OK(attached.writer->Extend(steps));
    RILL_ASSERT_OK(plain.storage->Extend(steps));
    EXPECT_EQ(attached.storage->cursors(), plain.storage->cursors());
    EXPECT_THAT(attached.Rows(), ElementsAreArray(plain.Rows()));
  }
  EXPECT_TRUE(attached.writer->traits().keeps_order);
}

TEST_P(WriterConformanceTest, ARefusedBatchLeavesNothing) {
  const Attached attached(GetParam());
  if (!attached.writer->Extend(Steps({1, 2, 3})).ok()) {
    GTEST_SKIP() << "takes no rows";
  }
  const std::vector<int64_t> before = attached.Rows();
  TensorDict wrong({2});
  RILL_ASSERT_OK(wrong.Set("other", *Tensor::Zeros(DType::kFloat32, {2})));
  EXPECT_THAT(attached.writer->Extend(wrong), Not(IsOk()));
  EXPECT_THAT(attached.Rows(), ElementsAreArray(before));
  RILL_EXPECT_OK(attached.writer->Extend(Steps({4})));
}

TEST_P(WriterConformanceTest, LiveRowsAreWrittenInPlace) {
  const Attached attached(GetParam());
  if (!attached.writer->Extend(Steps({1, 2, 3})).ok()) {
    GTEST_SKIP() << "takes no rows";
  }
  Generations generations;
  RILL_ASSERT_OK(attached.storage->AddObserver(&generations));
  std::vector<int64_t> want = attached.Rows();
  want[1] = 7;
  RILL_ASSERT_OK(attached.writer->WriteAt({1}, Steps({7})));
  EXPECT_THAT(attached.Rows(), ElementsAreArray(want));
  EXPECT_EQ(generations.Get(1), 1) << "another row";
  want[2] = 6;
  RILL_ASSERT_OK(
      attached.writer->WriteInPlace({2}, Steps({6}), InPlace::kPatch));
  EXPECT_THAT(attached.Rows(), ElementsAreArray(want));
  EXPECT_EQ(generations.Get(2), 0) << "the same row";
  attached.storage->RemoveObserver(&generations);
  EXPECT_THAT(attached.writer->WriteAt({kCapacity - 1}, Steps({7})),
              IsOutOfRange());
}

TEST_P(WriterConformanceTest, ALoadedWriterGoesOnAsTheSavedOne) {
  const Attached saved(GetParam());
  if (!saved.writer->Extend(Steps({5, 3, 9, 1, 8, 2, 7, 4, 6})).ok()) {
    GTEST_SKIP() << "takes no rows";
  }
  const std::string directory = ::testing::TempDir() + "/writer_conformance";
  RILL_ASSERT_OK(saved.storage->Save(directory));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string state, saved.writer->SaveState());
  const Attached loaded(GetParam());
  RILL_ASSERT_OK(loaded.storage->Load(directory));
  RILL_ASSERT_OK(loaded.writer->LoadState(state, /*changed=*/{}));
  if (!state.empty()) {
    EXPECT_THAT(loaded.writer->LoadState(state.substr(0, state.size() / 2), {}),
                StatusIs(AnyOf(absl::StatusCode::kDataLoss,
                               absl::StatusCode::kFailedPrecondition)));
  }
  for (const int64_t value : {11, 0, 10, 12}) {
    RILL_ASSERT_OK(saved.writer->Extend(Steps({value})));
    RILL_ASSERT_OK(loaded.writer->Extend(Steps({value})));
    EXPECT_THAT(loaded.Rows(), ElementsAreArray(saved.Rows()));
  }
}

}  // namespace

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(WriterConformanceTest);

}  // namespace rill
