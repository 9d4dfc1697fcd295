// SPDX-License-Identifier: Apache-2.0
// Readers of a memmap storage that another process writes, at full rate and
// killed in the middle: no row is ever half.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/flow/sink.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"
#include "rill/specs/spec.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage.h"
#include "rill/storage/storage_layout.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kLanes = 2;
constexpr int64_t kLaneCapacity = 32;
constexpr int64_t kWidth = 4096;  // So that a copy is likely to meet a write.

TensorDictSpec Spec() {
  TensorDictSpec spec;
  RILL_EXPECT_OK(
      spec.Set("wide", LeafSpec{.dtype = DType::kInt64, .shape = {kWidth}}));
  RILL_EXPECT_OK(
      spec.Set("next/id", LeafSpec{.dtype = DType::kInt64, .shape = {1}}));
  return spec;
}

// Every element of row i is values[i].
TensorDict Rows(const Shape& shape, absl::Span<const int64_t> values) {
  TensorDict batch(shape);
  auto wide = Tensor::Empty(DType::kInt64, shape.Concat({kWidth}));
  auto id = Tensor::Empty(DType::kInt64, shape.Concat({1}));
  for (size_t row = 0; row < values.size(); ++row) {
    std::fill_n(wide->data<int64_t>() + row * kWidth, kWidth, values[row]);
    id->data<int64_t>()[row] = values[row];
  }
  RILL_EXPECT_OK(batch.Set("wide", *wide));
  RILL_EXPECT_OK(batch.Set("next/id", *id));
  return batch;
}

// An append of `steps` to each lane of [first, first + count): a row is the
// number of its step.
TensorDict Batch(const Storage& storage, int64_t first, int64_t count,
                 int64_t steps) {
  const std::vector<Cursor> cursors = storage.cursors();
  std::vector<int64_t> values;
  for (int64_t lane = first; lane < first + count; ++lane) {
    for (int64_t step = 0; step < steps; ++step) {
      values.push_back(cursors[lane].written + step);
    }
  }
  return Rows({count, steps}, values);
}

absl::Status ExtendAll(Storage* storage, int64_t steps) {
  return storage->Extend(Batch(*storage, 0, kLanes, steps)).status();
}

// The values of rows, each of which must be whole.
std::vector<int64_t> ValuesOf(const TensorDict& rows) {
  const Tensor* const ids = rows.Find("next/id");
  const int64_t* const wide = rows.Find("wide")->data<int64_t>();
  std::vector<int64_t> values;
  for (int64_t row = 0; row < rows.batch_shape()[0]; ++row) {
    values.push_back(ids->data<int64_t>()[row]);
    const int64_t* const elements = wide + row * kWidth;
    EXPECT_EQ(std::count(elements, elements + kWidth, values.back()), kWidth)
        << "half a row: " << elements[0] << " and " << elements[kWidth - 1];
  }
  return values;
}

class MemmapReaderTest : public ::testing::TestWithParam<StorageLayout> {
 protected:
  void SetUp() override {
    options_ = {.directory = FreshPath("read"),
                .capacity = kLanes * kLaneCapacity,
                .lanes = kLanes,
                .layout = GetParam(),
                .spec = Spec()};
  }
  void TearDown() override {
    if (child_ > 0) Kill();
  }

  // Another process opens the storage and does `write` to it until killed.
  void StartWriter(
      const std::function<absl::Status(Storage*, uint64_t)>& write) {
    child_ = fork();
    ASSERT_GE(child_, 0);
    if (child_ > 0) return;
    auto storage = MemmapStorage::Open(options_);
    if (!storage.ok()) _exit(2);
    for (uint64_t i = 0;; ++i) {
      if (!write(storage->get(), i).ok()) _exit(3);
    }
  }
  void Kill() {
    int how = 0;
    kill(child_, SIGKILL);
    ASSERT_EQ(waitpid(child_, &how, 0), child_);
    EXPECT_TRUE(WIFSIGNALED(how)) << "exited with " << WEXITSTATUS(how);
    child_ = 0;
  }
  // The first append of another process is in flight when it dies.
  void DieInAppend(int64_t first, int64_t count, int64_t steps);

  MemmapStorage::Options options_;
  pid_t child_ = 0;
};

// Dies where the append has been announced and no byte has changed.
class DiesOnRetire final : public WriteObserver {
 public:
  void OnAttach(const Lanes&, absl::Span<const Cursor>) override {}
  void OnRetire(const WriteEvent&) override { _exit(7); }
  void OnWrite(const WriteEvent&) override {}
  void OnClear() override {}
};

void MemmapReaderTest::DieInAppend(int64_t first, int64_t count,
                                   int64_t steps) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto storage = MemmapStorage::Open(options_);
    if (!storage.ok()) _exit(2);
    DiesOnRetire observer;
    (*storage)->AddObserver(&observer).IgnoreError();
    (*storage)
        ->Extend(Batch(**storage, first, count, steps), {.first_lane = first})
        .IgnoreError();
    _exit(3);
  }
  int how = 0;
  ASSERT_EQ(waitpid(child, &how, 0), child);
  ASSERT_EQ(WEXITSTATUS(how), 7);
}

TEST_P(MemmapReaderTest, SeesWhatTheOwnerHasWritten) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto owner, MemmapStorage::Create(options_));
  RILL_ASSERT_OK_AND_ASSIGN(const auto reader,
                            MemmapStorage::OpenReader(options_.directory));
  EXPECT_EQ(reader->size(), 0);
  EXPECT_EQ(reader->lanes(), owner->lanes());
  EXPECT_EQ(reader->spec().ToString(), owner->spec().ToString());
  RILL_ASSERT_OK(ExtendAll(owner.get(), 3));
  EXPECT_EQ(reader->size(), 6);
  EXPECT_THAT(reader->cursors(), ElementsAre(Cursor{3}, Cursor{3}));
  TensorDict rows;
  RILL_ASSERT_OK(reader->Read({2, 0, kLaneCapacity + 1}, &rows));
  EXPECT_THAT(ValuesOf(rows), ElementsAre(2, 0, 1));
  EXPECT_THAT(reader->Read({0, 3}, &rows), IsOutOfRange("got 3"));
  EXPECT_THAT(reader->Read({-1}, &rows), IsOutOfRange());
  EXPECT_THAT(reader->Read({2 * kLaneCapacity}, &rows), IsOutOfRange());
  RILL_ASSERT_OK(ExtendAll(owner.get(), 2 * kLaneCapacity));
  RILL_ASSERT_OK(reader->Read({0, 3, kLaneCapacity}, &rows));
  EXPECT_THAT(ValuesOf(rows), ElementsAre(64, 35, 64));
  RILL_ASSERT_OK(owner->WriteAt({3}, Rows({1}, {-7})));
  RILL_ASSERT_OK(reader->Read({3}, &rows));
  EXPECT_THAT(ValuesOf(rows), ElementsAre(-7));
  RILL_ASSERT_OK(owner->Clear());
  EXPECT_EQ(reader->size(), 0);
  RILL_ASSERT_OK(reader->Read({}, &rows));
}

TEST_P(MemmapReaderTest, LendsNoRowsAndNamesTheOwner) {
  EXPECT_THAT(MemmapStorage::OpenReader(options_.directory), IsNotFound());
  RILL_ASSERT_OK_AND_ASSIGN(const auto owner, MemmapStorage::Create(options_));
  RILL_ASSERT_OK_AND_ASSIGN(const auto reader,
                            MemmapStorage::OpenReader(options_.directory));
  EXPECT_THAT(reader->Lease({0, 0}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr(options_.directory),
                             HasSubstr(absl::StrCat("process ", getpid())))));
  RILL_ASSERT_OK(ExtendAll(owner.get(), 1));  // Readers take no lock.
}

TEST_P(MemmapReaderTest, RowsInFlightWhenTheOwnerDiedAreNotOffered) {
  {
    RILL_ASSERT_OK_AND_ASSIGN(const auto owner,
                              MemmapStorage::Create(options_));
    RILL_ASSERT_OK(ExtendAll(owner.get(), kLaneCapacity + 4));
  }
  RILL_ASSERT_OK_AND_ASSIGN(const auto reader,
                            MemmapStorage::OpenReader(options_.directory));
  DieInAppend(/*first=*/1, /*count=*/1, /*steps=*/5);
  if (HasFatalFailure()) return;
  EXPECT_EQ(reader->size(), 2 * kLaneCapacity - 5);
  TensorDict rows;
  RILL_ASSERT_OK(reader->Read({4, 8, kLaneCapacity + 9}, &rows));
  EXPECT_THAT(ValuesOf(rows), ElementsAre(4, 8, 9));
  EXPECT_THAT(reader->Read({4, kLaneCapacity + 8}, &rows),
              IsUnavailable(absl::StrCat("got ", kLaneCapacity + 8, " and 0")));
  RILL_ASSERT_OK_AND_ASSIGN(const auto owner, MemmapStorage::Open(options_));
  EXPECT_THAT(reader->Read({kLaneCapacity + 8}, &rows), IsOutOfRange());
  RILL_ASSERT_OK(ExtendAll(owner.get(), 5));
  RILL_ASSERT_OK(reader->Read({kLaneCapacity + 8}, &rows));
  EXPECT_THAT(ValuesOf(rows), ElementsAre(kLaneCapacity + 8));
}

TEST_P(MemmapReaderTest, ADirectoryThatIsMadeAnewIsAnother) {
  TensorDict rows;
  const auto expect_gone = [&](const RowReader& reader) {
    EXPECT_EQ(reader.size(), 0);
    EXPECT_THAT(reader.cursors(), ElementsAre(Cursor{0}, Cursor{0}));
    EXPECT_THAT(reader.Read({0}, &rows),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr(options_.directory),
                               HasSubstr("open a reader again"))));
  };
  RILL_ASSERT_OK_AND_ASSIGN(auto storage, MemmapStorage::Create(options_));
  RILL_ASSERT_OK_AND_ASSIGN(const auto reader,
                            MemmapStorage::OpenReader(options_.directory));
  RILL_ASSERT_OK(ExtendAll(storage.get(), 5));
  RILL_ASSERT_OK(reader->Read({3}, &rows));
  // A reader that has not looked since the last write is told too.
  RILL_ASSERT_OK_AND_ASSIGN(const auto second,
                            MemmapStorage::OpenReader(options_.directory));
  RILL_ASSERT_OK(ExtendAll(storage.get(), 5));
  storage.reset();
  RILL_ASSERT_OK(RemoveAll(options_.directory));
  expect_gone(*second);
  RILL_ASSERT_OK_AND_ASSIGN(storage, MemmapStorage::Create(options_));
  RILL_ASSERT_OK(storage->Extend(Rows({2, 1}, {70, 71})).status());
  expect_gone(*reader);
  RILL_ASSERT_OK_AND_ASSIGN(const auto anew,
                            MemmapStorage::OpenReader(options_.directory));
  RILL_ASSERT_OK(anew->Read({0}, &rows));
  EXPECT_THAT(ValuesOf(rows), ElementsAre(70));
  // The next owner of the same one changes nothing for a reader.
  storage.reset();
  RILL_ASSERT_OK_AND_ASSIGN(storage, MemmapStorage::Open(options_));
  RILL_ASSERT_OK(storage->Extend(Rows({2, 1}, {80, 81})).status());
  RILL_ASSERT_OK(anew->Read({1}, &rows));
  EXPECT_THAT(ValuesOf(rows), ElementsAre(80));
}

TEST_P(MemmapReaderTest, NeedsNoRightToWrite) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto owner, MemmapStorage::Create(options_));
  RILL_ASSERT_OK(ExtendAll(owner.get(), 1));
  const ScopedFaultHook hook([](absl::string_view point, absl::string_view) {
    return point == "file.lock" || point == "file.reserve"
               ? absl::PermissionDeniedError(point)
               : absl::OkStatus();
  });
  RILL_ASSERT_OK_AND_ASSIGN(const auto reader,
                            MemmapStorage::OpenReader(options_.directory));
  TensorDict rows;
  RILL_ASSERT_OK(reader->Read({0}, &rows));
}

// A writer at full rate, killed again and again; the reader stays.
TEST_P(MemmapReaderTest, NeverReadsHalfARowBesideAWriter) {
  RILL_ASSERT_OK(MemmapStorage::Create(options_).status());
  RILL_ASSERT_OK_AND_ASSIGN(const auto reader,
                            MemmapStorage::OpenReader(options_.directory));
  const Rng rng(3);
  std::vector<int64_t> seen(kLanes * kLaneCapacity, -1);
  std::vector<Cursor> before(kLanes);
  int64_t rows_read = 0;
  for (uint64_t round = 0; round < 6; ++round) {
    StartWriter([&](Storage* storage, uint64_t i) {
      const int64_t first = rng.UniformInt(i, 0, kLanes);
      const int64_t count = 1 + rng.UniformInt(i, 1, kLanes - first);
      const int64_t steps = 1 + rng.UniformInt(i, 2, 12);
      return storage
          ->Extend(Batch(*storage, first, count, steps), {.first_lane = first})
          .status();
    });
    // Every slot is written anew, those that the dead had in flight too.
    const auto has_come_round = [&] {
      const std::vector<Cursor> now = reader->cursors();
      return std::equal(now.begin(), now.end(), before.begin(),
                        [](Cursor a, Cursor b) {
                          return a.written >= b.written + 2 * kLaneCapacity;
                        });
    };
    while (!has_come_round()) ASSERT_EQ(waitpid(child_, nullptr, WNOHANG), 0);
    TensorDict rows;
    for (uint64_t read = 0; read < 500; ++read) {
      const std::vector<Cursor> cursors = reader->cursors();
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        ASSERT_GE(cursors[lane].written, before[lane].written);
      }
      before = cursors;
      std::vector<Slot> slots;
      for (uint32_t k = 0; k < 8; ++k) {
        slots.push_back(
            rng.UniformInt(1000 * round + read, 3 + k, kLanes * kLaneCapacity));
      }
      if (read == 400) Kill();
      const absl::Status status = reader->Read(slots, &rows);
      if (!status.ok()) {
        // The dead writer had these rows in flight.
        ASSERT_THAT(status, IsUnavailable());
        ASSERT_EQ(child_, 0);
        break;
      }
      const std::vector<int64_t> values = ValuesOf(rows);
      for (size_t k = 0; k < slots.size(); ++k) {
        ASSERT_EQ(values[k] % kLaneCapacity, slots[k] % kLaneCapacity);
        ASSERT_GE(values[k], seen[slots[k]]) << "went back";
        seen[slots[k]] = values[k];
      }
      rows_read += static_cast<int64_t>(slots.size());
      if (HasFailure()) return;
    }
    if (child_ > 0) Kill();
  }
  EXPECT_GT(rows_read, 6 * 400 * 8 / 2);
}

// The same where rows are written over in place and all are forgotten at times,
// which a count of steps does not tell.
TEST_P(MemmapReaderTest, NeverReadsHalfARowThatIsWrittenInPlace) {
  RILL_ASSERT_OK(MemmapStorage::Create(options_).status());
  RILL_ASSERT_OK_AND_ASSIGN(const auto reader,
                            MemmapStorage::OpenReader(options_.directory));
  const Rng rng(4);
  std::vector<Slot> all(kLanes * kLaneCapacity);
  std::iota(all.begin(), all.end(), Slot{0});
  StartWriter([&](Storage* storage, uint64_t i) -> absl::Status {
    if (i % 64 == 0) {
      RILL_RETURN_IF_ERROR(storage->Clear());
      return ExtendAll(storage, kLaneCapacity);
    }
    std::vector<Slot> slots;
    std::vector<int64_t> values;
    for (uint32_t k = 0; k < 4; ++k) {
      slots.push_back(rng.UniformInt(i, k, kLanes * kLaneCapacity));
      values.push_back(static_cast<int64_t>(i));
    }
    RILL_RETURN_IF_ERROR(storage->WriteAt(slots, Rows({4}, values)));
    // Leaves rows alone for a while.
    TensorDict rows;
    return storage->Read(all, &rows);
  });
  while (reader->size() < kLanes * kLaneCapacity) {
    ASSERT_EQ(waitpid(child_, nullptr, WNOHANG), 0);
  }
  int64_t whole = 0;
  for (uint64_t read = 0; read < 1000; ++read) {
    std::vector<Slot> slots;
    for (uint32_t k = 0; k < 8; ++k) {
      slots.push_back(rng.UniformInt(read, 100 + k, kLanes * kLaneCapacity));
    }
    TensorDict rows;
    const absl::Status status = reader->Read(slots, &rows);
    if (status.ok()) {
      ValuesOf(rows);
      ++whole;
    } else {
      ASSERT_TRUE(absl::IsOutOfRange(status) || absl::IsUnavailable(status))
          << status;
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(whole, 0);
}

INSTANTIATE_TEST_SUITE_P(Layouts, MemmapReaderTest,
                         ::testing::Values(StorageLayout::kRows,
                                           StorageLayout::kColumns),
                         [](const auto& info) {
                           return std::string(StorageLayoutName(info.param));
                         });

}  // namespace
}  // namespace rill
