// SPDX-License-Identifier: Apache-2.0
// Rows that Clear, Load and LoadPosition discard, and those that a killed
// writer gave up, read as zeros where the files are opened without the record.
// Tried with kills at any moment, on a full disk, and beside readers.
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/flow/sink.h"
#include "rill/formats/file_tree.h"
#include "rill/slots/live_slots.h"
#include "rill/slots/slot.h"
#include "rill/specs/spec.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage.h"
#include "rill/storage/storage_layout.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/kill_count.h"
#include "rill/testing/small_disk.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

constexpr int64_t kLanes = 3;
constexpr int64_t kLaneCapacity = 100;
constexpr int64_t kSlots = kLanes * kLaneCapacity;
// Rows of no power of two, and files that are long enough to be zeroed without
// a write.
constexpr int64_t kWidth = 150;

TensorDictSpec Spec() {
  TensorDictSpec spec;
  RILL_EXPECT_OK(
      spec.Set("wide", LeafSpec{.dtype = DType::kInt64, .shape = {kWidth}}));
  RILL_EXPECT_OK(
      spec.Set("next/id", LeafSpec{.dtype = DType::kInt64, .shape = {1}}));
  return spec;
}

// An append of [count, steps] whose rows have `value` in every element.
TensorDict Batch(int64_t count, int64_t steps, int64_t value) {
  const Shape shape = {count, steps};
  TensorDict batch(shape);
  auto wide = Tensor::Empty(DType::kInt64, shape.Concat({kWidth}));
  auto id = Tensor::Empty(DType::kInt64, shape.Concat({1}));
  std::fill_n(wide->data<int64_t>(), wide->num_elements(), value);
  std::fill_n(id->data<int64_t>(), id->num_elements(), value);
  RILL_EXPECT_OK(batch.Set("wide", *wide));
  RILL_EXPECT_OK(batch.Set("next/id", *id));
  return batch;
}

absl::Status Extend(Storage* storage, int64_t first, int64_t count,
                    int64_t steps, int64_t value = 7) {
  return storage->Extend(Batch(count, steps, value), {.first_lane = first})
      .status();
}

absl::Status GoBackTo(Storage* storage, const std::string& position) {
  return storage->LoadPosition(
      position, /*accept_newer=*/false,
      [](const PositionRows&) { return absl::OkStatus(); });
}

bool IsRowFile(absl::string_view name) {
  return absl::EndsWith(name, ".memmap") || name == "rows.bin";
}

// The values of a row, which must be whole.
void ExpectWhole(const TensorDict& rows, const std::string& when) {
  const int64_t* const ids = rows.Find("next/id")->data<int64_t>();
  const int64_t* const wide = rows.Find("wide")->data<int64_t>();
  for (int64_t row = 0; row < rows.batch_shape()[0]; ++row) {
    const int64_t* const elements = wide + row * kWidth;
    ASSERT_NE(ids[row], 0) << when << ": zeros in row " << row;
    ASSERT_EQ(std::count(elements, elements + kWidth, ids[row]), kWidth)
        << when << ": half a row, " << row;
  }
}

struct Form {
  StorageLayout layout;
  StorageOrder order;
};

class MemmapDiscardTest : public ::testing::TestWithParam<Form> {
 protected:
  void SetUp() override { options_.directory = FreshPath("discard"); }

  // Live rows are whole, all others are zeros in every file.
  void Check(const Storage& storage, const std::string& directory,
             const std::string& when);
  void Check(const Storage& storage, const std::string& when) {
    Check(storage, options_.directory, when);
  }
  // Kills a process that opens the storage and does `work` at each operation on
  // the way, until it survives. The storage must then be as it was, with
  // `before` rows, or hold `after`.
  void KillAtEachOperation(const std::function<absl::Status(Storage*)>& prepare,
                           const std::function<absl::Status(Storage*)>& work,
                           int64_t before, int64_t after);

  MemmapStorage::Options options_ = {.capacity = kSlots,
                                     .lanes = kLanes,
                                     .layout = GetParam().layout,
                                     .order = GetParam().order,
                                     .spec = Spec()};
};

void MemmapDiscardTest::Check(const Storage& storage,
                              const std::string& directory,
                              const std::string& when) {
  LiveSlots live;
  Storage& mutable_storage = const_cast<Storage&>(storage);
  RILL_ASSERT_OK(mutable_storage.AddObserver(&live));
  std::vector<Slot> slots;
  for (int64_t n = 0; n < live.size(); ++n) slots.push_back(live.Nth(n));
  mutable_storage.RemoveObserver(&live);
  TensorDict rows;
  RILL_ASSERT_OK(storage.Read(slots, &rows)) << when;
  ExpectWhole(rows, when);
  const Lanes lanes = storage.lanes();
  int files = 0;
  for (const std::string& name : formats_internal::ListFiles(directory)) {
    if (!IsRowFile(name)) continue;
    ++files;
    RILL_ASSERT_OK_AND_ASSIGN(const std::string bytes,
                              ReadFile(JoinPath(directory, name)));
    const size_t stride = bytes.size() / lanes.num_slots();
    for (Slot slot = 0; slot < lanes.num_slots(); ++slot) {
      const int64_t row =
          GetParam().order == StorageOrder::kLaneMajor
              ? slot
              : lanes.PositionOf(slot) * lanes.count + lanes.LaneOf(slot);
      const absl::string_view stored =
          absl::string_view(bytes).substr(row * stride, stride);
      const bool is_zero =
          stored.find_first_not_of('\0') == absl::string_view::npos;
      ASSERT_EQ(is_zero, !live.Contains(slot))
          << when << ": slot " << slot << " of " << name;
    }
  }
  EXPECT_EQ(files, GetParam().layout == StorageLayout::kRows ? 1 : 2);
}

TEST_P(MemmapDiscardTest, ClearLeavesZerosAndTheirSpace) {
  RILL_ASSERT_OK_AND_ASSIGN(auto storage, MemmapStorage::Create(options_));
  for (const int64_t steps : {1, 40, 250}) {  // The last goes round.
    RILL_ASSERT_OK(Extend(storage.get(), 0, kLanes, steps));
    Check(*storage, absl::StrCat(steps, " more"));
    const int64_t disk = storage->MemoryUsage().disk;
    RILL_ASSERT_OK(storage->Clear());
    EXPECT_EQ(storage->size(), 0);
    EXPECT_EQ(storage->MemoryUsage().disk, disk);
    Check(*storage, "cleared");
  }
  RILL_ASSERT_OK(Extend(storage.get(), 1, 1, 30));
  storage.reset();
  RILL_ASSERT_OK_AND_ASSIGN(storage, MemmapStorage::Open(options_));
  EXPECT_EQ(storage->size(), 30);
  Check(*storage, "opened again");
}

// Lanes at different steps, so that kept and discarded rows lie among one
// another.
TEST_P(MemmapDiscardTest, GoingBackLeavesZerosBehindThePosition) {
  const Rng rng(9);
  for (uint64_t round = 0; round < 12; ++round) {
    options_.directory = FreshPath("discard");
    RILL_ASSERT_OK_AND_ASSIGN(auto storage, MemmapStorage::Create(options_));
    const auto extend = [&](uint32_t draw) {
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        const int64_t steps = rng.UniformInt(round, draw + lane, 50);
        RILL_ASSERT_OK(Extend(storage.get(), lane, 1, steps));
      }
    };
    extend(0);
    const int64_t size = storage->size();
    RILL_ASSERT_OK_AND_ASSIGN(const std::string position,
                              storage->SavePosition());
    extend(10);
    Check(*storage, "appended");
    RILL_ASSERT_OK(GoBackTo(storage.get(), position));
    EXPECT_EQ(storage->size(), size);
    Check(*storage, absl::StrCat("round ", round));
    if (HasFatalFailure()) return;
    extend(20);
    storage.reset();
    RILL_ASSERT_OK_AND_ASSIGN(storage, MemmapStorage::Open(options_));
    Check(*storage, "opened again");
  }
}

TEST_P(MemmapDiscardTest, LoadLeavesZerosWhereItBringsNoRow) {
  RILL_ASSERT_OK_AND_ASSIGN(auto storage, MemmapStorage::Create(options_));
  RILL_ASSERT_OK(Extend(storage.get(), 0, 2, 20));
  const std::string saved = FreshPath("saved");
  RILL_ASSERT_OK(storage->Save(saved));
  RILL_ASSERT_OK(Extend(storage.get(), 0, kLanes, 70));
  RILL_ASSERT_OK(storage->Load(saved));
  EXPECT_EQ(storage->size(), 40);
  Check(*storage, "loaded");
}

// Nothing of ours reads what is not live, so it is no error.
TEST_P(MemmapDiscardTest, ADiskThatCannotZeroIsInNobodysWay) {
  RILL_ASSERT_OK_AND_ASSIGN(auto storage, MemmapStorage::Create(options_));
  RILL_ASSERT_OK(Extend(storage.get(), 0, kLanes, 20));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string position,
                            storage->SavePosition());
  RILL_ASSERT_OK(Extend(storage.get(), 0, kLanes, 20));
  {
    const ScopedFaultHook hook("file.zero", absl::DataLossError("planted"));
    RILL_ASSERT_OK(GoBackTo(storage.get(), position));
    EXPECT_EQ(storage->size(), 20 * kLanes);
    RILL_ASSERT_OK(storage->Clear());
  }
  EXPECT_EQ(storage->size(), 0);
  RILL_ASSERT_OK(Extend(storage.get(), 0, kLanes, 5));
  RILL_ASSERT_OK(storage->Clear());  // What stayed goes with the next.
  Check(*storage, "cleared twice");
}

// The zeros may come to the disk at once, so the record that expects them must
// be there before.
TEST_P(MemmapDiscardTest, ARecordThatCannotBeSyncedDiscardsNothing) {
  RILL_ASSERT_OK_AND_ASSIGN(auto storage, MemmapStorage::Create(options_));
  RILL_ASSERT_OK(Extend(storage.get(), 0, kLanes, 20));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string position,
                            storage->SavePosition());
  RILL_ASSERT_OK(Extend(storage.get(), 0, kLanes, 20));
  {
    bool is_zeroed = false;
    const ScopedFaultHook hook(
        [&](absl::string_view point, absl::string_view path) {
          is_zeroed = is_zeroed || point == "file.zero";
          return point == "file.sync" && absl::EndsWith(path, "rill.commit")
                     ? absl::DataLossError("planted")
                     : absl::OkStatus();
        });
    const auto planted = StatusIs(absl::StatusCode::kDataLoss, "planted");
    EXPECT_THAT(GoBackTo(storage.get(), position), planted);
    EXPECT_THAT(storage->Clear(), planted);
    EXPECT_FALSE(is_zeroed);
  }
  EXPECT_EQ(storage->size(), 40 * kLanes);
  Check(*storage, "refused");
  storage.reset();
  RILL_ASSERT_OK_AND_ASSIGN(storage, MemmapStorage::Open(options_));
  EXPECT_EQ(storage->size(), 40 * kLanes);
}

void MemmapDiscardTest::KillAtEachOperation(
    const std::function<absl::Status(Storage*)>& prepare,
    const std::function<absl::Status(Storage*)>& work, int64_t before,
    int64_t after) {
  for (int kill_at = 1;; ++kill_at) {
    const std::string when = absl::StrCat("killed at ", kill_at);
    options_.directory = FreshPath("discard");
    {
      RILL_ASSERT_OK_AND_ASSIGN(auto storage, MemmapStorage::Create(options_));
      RILL_ASSERT_OK(prepare(storage.get()));
      ASSERT_EQ(storage->size(), before);
    }
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto storage = MemmapStorage::Open(options_);
      if (!storage.ok()) _exit(2);
      int count = 0;
      const ScopedFaultHook hook([&](absl::string_view, absl::string_view) {
        if (++count == kill_at) kill(getpid(), SIGKILL);
        return absl::OkStatus();
      });
      _exit(work(storage->get()).ok() ? 0 : 1);
    }
    int how = 0;
    ASSERT_EQ(waitpid(child, &how, 0), child);
    RILL_ASSERT_OK_AND_ASSIGN(auto storage, MemmapStorage::Open(options_));
    if (WIFEXITED(how)) {
      EXPECT_EQ(WEXITSTATUS(how), 0);
      EXPECT_EQ(storage->size(), after);
      EXPECT_GE(kill_at, 3);
      Check(*storage, "done");
      return;
    }
    EXPECT_THAT(storage->size(), ::testing::AnyOf(before, after)) << when;
    Check(*storage, when);
    RILL_ASSERT_OK(Extend(storage.get(), 0, kLanes, 7)) << when;
    Check(*storage, when);
    if (HasFatalFailure()) return;
  }
}

TEST_P(MemmapDiscardTest, AClearThatIsKilledLeavesAllRowsOrZeros) {
  KillAtEachOperation(
      [](Storage* storage) { return Extend(storage, 0, kLanes, 60); },
      [](Storage* storage) { return storage->Clear(); }, 60 * kLanes, 0);
}

TEST_P(MemmapDiscardTest, GoingBackThatIsKilledLeavesAllRowsOrZeros) {
  std::string position;
  KillAtEachOperation(
      [&](Storage* storage) -> absl::Status {
        RILL_RETURN_IF_ERROR(Extend(storage, 0, kLanes, 30));
        RILL_ASSIGN_OR_RETURN(position, storage->SavePosition());
        RILL_RETURN_IF_ERROR(Extend(storage, 0, 1, 50));
        return Extend(storage, 1, 2, 20);
      },
      [&](Storage* storage) { return GoBackTo(storage, position); },
      30 * kLanes + 50 + 40, 30 * kLanes);
}

// At any instruction: appends, clears, ways back.
TEST_P(MemmapDiscardTest, WhatAKilledWriterGaveUpIsZeros) {
  const Rng rng(31);
  RILL_ASSERT_OK(MemmapStorage::Create(options_).status());
  const int64_t kills = KillCount();
  for (int64_t round = 0; round < kills; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto storage = MemmapStorage::Open(options_);
      if (!storage.ok()) _exit(2);
      for (uint64_t i = 0;; ++i) {
        const Rng draws(round, RngStream::kUser, i);
        const auto extend = [&](uint32_t draw) {
          const int64_t first = draws.UniformInt(0, draw, kLanes);
          const int64_t count = 1 + draws.UniformInt(1, draw, kLanes - first);
          if (!Extend(storage->get(), first, count,
                      1 + draws.UniformInt(2, draw, 30), 1 + round)
                   .ok()) {
            _exit(3);
          }
        };
        if (draws.UniformInt(0, 0, 8) == 0) {
          if (!(*storage)->Clear().ok()) _exit(4);
        }
        extend(1);
        const auto position = (*storage)->SavePosition();
        if (!position.ok()) _exit(5);
        extend(2);
        // Too old where the ring has gone round since.
        GoBackTo(storage->get(), *position).IgnoreError();
      }
    }
    volatile int64_t spins = rng.UniformInt(round, 0, 40'000'000);
    while (spins > 0) spins = spins - 1;
    ASSERT_EQ(kill(child, SIGKILL), 0);
    int how = 0;
    ASSERT_EQ(waitpid(child, &how, 0), child);
    ASSERT_TRUE(WIFSIGNALED(how)) << "exited with " << WEXITSTATUS(how);
    RILL_ASSERT_OK_AND_ASSIGN(const auto storage,
                              MemmapStorage::Open(options_));
    Check(*storage, absl::StrCat("after kill ", round));
    if (HasFatalFailure()) return;
  }
}

TEST_P(MemmapDiscardTest, SpaceOfDiscardedRowsIsThereOnAFullDisk) {
  RunOnSmallDisk(1 << 20, [&](const std::string& disk) {
    options_.directory = JoinPath(disk, "storage");
    options_.capacity = 64 * kSlots;
    RILL_ASSERT_OK_AND_ASSIGN(auto storage, MemmapStorage::Create(options_));
    RILL_ASSERT_OK(Extend(storage.get(), 0, 1, 60));
    RILL_ASSERT_OK_AND_ASSIGN(const std::string position,
                              storage->SavePosition());
    RILL_ASSERT_OK(
        WriteFileAtomically(JoinPath(disk, "room"), std::string(8192, 'r')));
    int64_t steps = 0;
    while (Extend(storage.get(), 0, 1, 20).ok()) steps += 20;
    ASSERT_GT(steps, 20);
    // Somebody else takes the rest.
    {
      std::string rest(1 << 16, 'r');
      for (int i = 0; !rest.empty(); ++i) {
        const std::string path = JoinPath(disk, absl::StrCat("rest", i));
        if (!WriteFileAtomically(path, rest).ok()) rest.resize(rest.size() / 2);
      }
    }
    const auto full = IsResourceExhausted("free");
    // The history is a new file, for which there may be no room: then all is as
    // it was.
    const absl::Status back = GoBackTo(storage.get(), position);
    EXPECT_EQ(storage->size(), back.ok() ? 60 : 60 + steps) << back;
    Check(*storage, options_.directory, "gone back");
    RILL_ASSERT_OK(RemoveAll(JoinPath(disk, "room")));
    RILL_ASSERT_OK(storage->Clear());
    Check(*storage, options_.directory, "cleared");
    ASSERT_THAT(
        WriteFileAtomically(JoinPath(disk, "rest"), std::string(1 << 20, 'r')),
        full);
    RILL_ASSERT_OK(Extend(storage.get(), 0, 1, 60 + steps));
    EXPECT_THAT(Extend(storage.get(), 1, 1, 64 * kLaneCapacity), full);
    Check(*storage, options_.directory, "full again");
  });
}

// Readers of the same process that are copying when rows are discarded.
TEST_P(MemmapDiscardTest, NobodyReadsZerosOfALiveRow) {
  RILL_ASSERT_OK_AND_ASSIGN(auto storage, MemmapStorage::Create(options_));
  RILL_ASSERT_OK(Extend(storage.get(), 0, kLanes, 10));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string position,
                            storage->SavePosition());
  std::atomic<bool> is_over = false;
  std::thread reader([&] {
    TensorDict rows;
    std::vector<Slot> slots;
    for (Slot slot = 0; slot < kSlots; ++slot) {
      if (slot % kLaneCapacity < 50) slots.push_back(slot);
    }
    while (!is_over) {
      const absl::Status status = storage->Read(slots, &rows);
      if (status.ok()) {
        ExpectWhole(rows, "read");
      } else {
        ASSERT_THAT(status, IsOutOfRange());
      }
    }
  });
  for (int round = 0; round < 50; ++round) {
    RILL_EXPECT_OK(Extend(storage.get(), 0, kLanes, 60));
    RILL_EXPECT_OK(GoBackTo(storage.get(), position));
  }
  for (int round = 0; round < 50; ++round) {
    RILL_EXPECT_OK(storage->Clear());
    RILL_EXPECT_OK(Extend(storage.get(), 0, kLanes, 60));
  }
  is_over = true;
  reader.join();
}

INSTANTIATE_TEST_SUITE_P(
    Forms, MemmapDiscardTest,
    ::testing::Values(Form{StorageLayout::kRows, StorageOrder::kLaneMajor},
                      Form{StorageLayout::kRows, StorageOrder::kTimeMajor},
                      Form{StorageLayout::kColumns, StorageOrder::kLaneMajor},
                      Form{StorageLayout::kColumns, StorageOrder::kTimeMajor}),
    [](const auto& info) {
      return absl::StrCat(StorageLayoutName(info.param.layout),
                          info.param.order == StorageOrder::kLaneMajor
                              ? "LaneMajor"
                              : "TimeMajor");
    });

}  // namespace
}  // namespace rill
