// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/memmap_storage.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/base/rng.h"
#include "rill/device/device.h"
#include "rill/formats/file_tree.h"
#include "rill/formats/memmap_directory.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"
#include "rill/specs/spec.h"
#include "rill/storage/conformance/conformance_rows.h"
#include "rill/storage/conformance/storage_oracle.h"
#include "rill/storage/storage.h"
#include "rill/storage/storage_layout.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/small_disk.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using formats_internal::CopyTree;
using formats_internal::WriteInPlace;
using ::testing::AllOf;
using ::testing::HasSubstr;

using Layout = StorageLayout;
using Order = StorageOrder;

TensorDict RowsFrom(const Shape& shape, int64_t first_id) {
  return ConformanceRows(shape, SlotsFrom(first_id, shape.num_elements()));
}

// All slots of `slots`, and no other, are live and hold the oracle's rows.
void ExpectHolds(const Storage& storage, const StorageOracle& oracle,
                 absl::Span<const Slot> slots, absl::string_view when = "") {
  ASSERT_EQ(storage.cursors(), oracle.cursors()) << when;
  ASSERT_EQ(storage.size(), static_cast<int64_t>(slots.size())) << when;
  if (slots.empty()) return;
  TensorDict rows;
  RILL_ASSERT_OK(storage.Read(slots, &rows)) << when;
  RILL_ASSERT_OK(rows.CheckEqual(oracle.Rows(slots))) << when;
}

void Extend(Storage& storage, StorageOracle& oracle, int64_t first_lane,
            int64_t num_lanes, int64_t steps, int64_t first_id) {
  const Shape shape = {num_lanes, steps};
  RILL_ASSERT_OK(
      storage.Extend(RowsFrom(shape, first_id), {.first_lane = first_lane})
          .status());
  oracle.Extend(first_lane, num_lanes, steps,
                SlotsFrom(first_id, num_lanes * steps));
}

TEST(MemmapStorageTest, Example) {
  const std::string directory = FreshPath("example");
  const TensorDict batch = RowsFrom({7}, 1);
  RILL_ASSERT_OK_AND_ASSIGN(
      auto storage,
      MemmapStorage::Create({.directory = directory, .capacity = 1000}));
  RILL_ASSERT_OK(storage->Extend(batch).status());
  RILL_EXPECT_OK(storage->Sync());
  storage.reset();
  RILL_ASSERT_OK_AND_ASSIGN(storage,
                            MemmapStorage::Open({.directory = directory}));
  TensorDict rows;
  RILL_ASSERT_OK(storage->Read({0, 1, 2, 3, 4, 5, 6}, &rows));
  RILL_EXPECT_OK(rows.CheckEqual(batch));
}

TEST(MemmapStorageTest, DevicesAreRefusedWithWhatToDo) {
  const auto names_ways_out = StatusIs(
      absl::StatusCode::kInvalidArgument,
      AllOf(HasSubstr("got cuda:0, want cpu"), HasSubstr("DenseStorage"),
            HasSubstr("ToDevice"), HasSubstr("TieredStorage")));
  const std::string directory = FreshPath("device");
  EXPECT_THAT(
      MemmapStorage::Create(
          {.directory = directory, .capacity = 10, .device = Device::Cuda()}),
      names_ways_out);
  EXPECT_THAT(
      MemmapStorage::Open({.directory = directory, .device = Device::Cuda()}),
      names_ways_out);
  EXPECT_FALSE(PathExists(directory));
}

TEST(MemmapStorageTest, BadOptionsAndFullDirectoriesAreRefused) {
  const std::string directory = FreshPath("options");
  EXPECT_THAT(MemmapStorage::Create({.capacity = 1}),
              IsInvalidArgument("directory"));
  EXPECT_THAT(MemmapStorage::Open({}), IsInvalidArgument("directory"));
  EXPECT_THAT(
      MemmapStorage::Create({.directory = directory}),
      IsInvalidArgument("MemmapStorage::Create: Options::capacity: got 0"));
  EXPECT_THAT(MemmapStorage::Create(
                  {.directory = directory, .capacity = 5, .lanes = 2}),
              IsInvalidArgument("multiple of lanes"));
  EXPECT_FALSE(PathExists(directory));
  EXPECT_THAT(MemmapStorage::Open({.directory = directory}), IsNotFound());

  RILL_ASSERT_OK(CreateDirectories(directory));
  WriteInPlace(JoinPath(directory, "thesis.txt"), "years");
  EXPECT_THAT(MemmapStorage::Create({.directory = directory, .capacity = 5}),
              IsFailedPrecondition("thesis.txt"));
  EXPECT_THAT(ListDirectory(directory),
              IsOkAndHolds(::testing::ElementsAre("thesis.txt")));
}

TEST(MemmapStorageTest, OneOwnerAtATime) {
  const std::string directory = FreshPath("owner");
  const MemmapStorage::Options options = {
      .directory = directory, .capacity = 4, .spec = ConformanceSpec()};
  RILL_ASSERT_OK_AND_ASSIGN(auto storage, MemmapStorage::Create(options));
  const auto refused =
      IsFailedPrecondition(absl::StrCat("got process ", getpid()));
  EXPECT_THAT(MemmapStorage::Open(options), refused);
  storage.reset();
  EXPECT_THAT(MemmapStorage::Create(options),
              IsFailedPrecondition("open what"));
  RILL_EXPECT_OK(MemmapStorage::Open(options).status());
}

TEST(MemmapStorageTest, OpenChecksWhatItIsToldToExpect) {
  const std::string directory = FreshPath("expect");
  MemmapStorage::Options options = {.directory = directory,
                                    .capacity = 12,
                                    .lanes = 3,
                                    .spec = ConformanceSpec()};
  RILL_ASSERT_OK(MemmapStorage::Create(options).status());
  RILL_EXPECT_OK(MemmapStorage::Open(options).status());
  options.capacity = 24;
  EXPECT_THAT(MemmapStorage::Open(options),
              IsFailedPrecondition("capacity: got 24"));
  options.lanes = 1;
  EXPECT_THAT(MemmapStorage::Open(options),
              IsFailedPrecondition("lanes: got 1"));
  options.capacity = 0;
  options.spec.Erase("action");
  EXPECT_THAT(MemmapStorage::Open(options), IsFailedPrecondition("spec"));
}

// Closed and opened again and again, in every form: an oracle's rows, slots and
// cursors.
TEST(MemmapStorageTest, ReopenedStoragesGoOn) {
  const Rng rng(11);
  int64_t id = 1;
  for (const Layout layout : {Layout::kRows, Layout::kColumns}) {
    for (const Order order : {Order::kLaneMajor, Order::kTimeMajor}) {
      for (const int64_t lanes : {1, 3}) {
        const std::string directory = FreshPath("reopened");
        StorageOracle oracle({.count = lanes, .capacity = 8});
        auto storage = MemmapStorage::Create({.directory = directory,
                                              .capacity = 8 * lanes,
                                              .lanes = lanes,
                                              .layout = layout,
                                              .order = order,
                                              .spec = ConformanceSpec()});
        RILL_ASSERT_OK(storage.status());
        for (uint64_t round = 0; round < 12; ++round) {
          const int64_t first = rng.UniformInt(round, 0, lanes);
          const int64_t count = 1 + rng.UniformInt(round, 1, lanes - first);
          const int64_t steps = 1 + rng.UniformInt(round, 2, 10);
          Extend(**storage, oracle, first, count, steps, id);
          id += count * steps;
          if (round == 7) {
            RILL_ASSERT_OK((*storage)->Clear());
            oracle.Clear();
          }
          storage->reset();
          storage = MemmapStorage::Open({.directory = directory});
          RILL_ASSERT_OK(storage.status());
          ExpectHolds(**storage, oracle, oracle.LiveSlots(),
                      absl::StrCat("round ", round));
        }
      }
    }
  }
}

// TorchRL's view while it is written: slots in place, rows as they come.
TEST(MemmapStorageTest, ColumnsAreAMemmapDirectoryWhileTheyAreWritten) {
  for (const auto& [lanes, order, shape] :
       {std::tuple(int64_t{1}, Order::kTimeMajor, Shape({6})),
        std::tuple(int64_t{2}, Order::kTimeMajor, Shape({6, 2})),
        std::tuple(int64_t{2}, Order::kLaneMajor, Shape({2, 6}))}) {
    const std::string directory = FreshPath("columns");
    RILL_ASSERT_OK_AND_ASSIGN(
        auto storage, MemmapStorage::Create({.directory = directory,
                                             .capacity = 6 * lanes,
                                             .lanes = lanes,
                                             .layout = Layout::kColumns,
                                             .order = order,
                                             .spec = ConformanceSpec()}));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict view,
                              LoadMemmapDirectory(directory));
    EXPECT_EQ(view.batch_shape(), shape);
    const TensorDict batch = RowsFrom({lanes, 4}, 50);
    RILL_ASSERT_OK(storage->Extend(batch).status());
    const bool is_time_first = lanes > 1 && order == Order::kTimeMajor;
    for (const TensorDictSpec::Leaf& leaf : ConformanceSpec().leaves()) {
      RILL_ASSERT_OK_AND_ASSIGN(Tensor got, view.Get(leaf.key));
      RILL_ASSERT_OK_AND_ASSIGN(Tensor want, batch.Get(leaf.key));
      if (lanes == 1) {
        RILL_ASSERT_OK_AND_ASSIGN(want, want.Select(0, 0));
      } else if (is_time_first) {
        std::vector<int> dims = {1, 0};
        while (static_cast<int>(dims.size()) < want.shape().rank()) {
          dims.push_back(static_cast<int>(dims.size()));
        }
        RILL_ASSERT_OK_AND_ASSIGN(want, want.Permute(dims));
      }
      const int time = lanes == 1 || is_time_first ? 0 : 1;
      RILL_ASSERT_OK_AND_ASSIGN(got, got.Slice(time, 0, 4));
      EXPECT_THAT(got.BitEquals(want), IsOkAndHolds(true)) << leaf.key;
    }
  }
}

// Copies the directory when an append is announced and no byte of it written,
// or when all of it is: what a process killed there leaves.
class CopyingObserver : public WriteObserver {
 public:
  CopyingObserver(std::string from, std::string to, bool on_retire)
      : from_(std::move(from)), to_(std::move(to)), on_retire_(on_retire) {}
  void OnAttach(const Lanes&, absl::Span<const Cursor>) override {}
  void OnRetire(const WriteEvent&) override { Copy(on_retire_); }
  void OnWrite(const WriteEvent&) override { Copy(!on_retire_); }
  void OnClear() override {}

 private:
  void Copy(bool is_now) {
    if (!is_now) return;
    RILL_EXPECT_OK(RemoveAll(to_));
    RILL_EXPECT_OK(CopyTree(from_, to_));
  }
  std::string from_, to_;
  bool on_retire_;
};

// Live slots less the oldest `gone` of lanes [first, first + count).
std::vector<Slot> WithoutOldest(const StorageOracle& oracle, int64_t first,
                                int64_t count, int64_t gone) {
  std::vector<Slot> slots;
  std::vector<int64_t> seen(oracle.lanes().count);
  for (const Slot slot : oracle.LiveSlots()) {
    const int64_t lane = oracle.lanes().LaneOf(slot);
    const bool is_touched = lane >= first && lane < first + count;
    if (seen[lane]++ >= (is_touched ? gone : 0)) slots.push_back(slot);
  }
  return slots;
}

TEST(MemmapStorageTest, WhatAnAppendInFlightRetiresIsGoneAndNothingElse) {
  for (const Layout layout : {Layout::kRows, Layout::kColumns}) {
    for (const int64_t steps : {1, 3, 8, 20}) {
      const std::string directory = FreshPath("flight");
      const std::string copy = FreshPath("flight_copy");
      StorageOracle oracle({.count = 3, .capacity = 8});
      RILL_ASSERT_OK_AND_ASSIGN(auto storage,
                                MemmapStorage::Create({.directory = directory,
                                                       .capacity = 24,
                                                       .lanes = 3,
                                                       .layout = layout}));
      Extend(*storage, oracle, 0, 3, 11, 1);
      CopyingObserver killer(directory, copy, /*on_retire=*/true);
      RILL_ASSERT_OK(storage->AddObserver(&killer));
      RILL_ASSERT_OK(
          storage->Extend(RowsFrom({2, steps}, 900), {.first_lane = 1})
              .status());
      storage->RemoveObserver(&killer);

      const std::vector<Slot> want =
          WithoutOldest(oracle, 1, 2, std::min<int64_t>(steps, 8));
      for (int round = 0; round < 3; ++round) {  // Opening changes nothing.
        RILL_ASSERT_OK_AND_ASSIGN(storage,
                                  MemmapStorage::Open({.directory = copy}));
        ExpectHolds(*storage, oracle, want);
        storage.reset();
      }
      RILL_ASSERT_OK_AND_ASSIGN(storage,
                                MemmapStorage::Open({.directory = copy}));
      // A save keeps the gap, in this storage and in one in memory.
      const std::string saved = FreshPath("flight_saved");
      RILL_ASSERT_OK(storage->Save(saved));
      RILL_ASSERT_OK(storage->Clear());
      RILL_ASSERT_OK(storage->Load(saved));
      ExpectHolds(*storage, oracle, want);
      storage.reset();
      RILL_ASSERT_OK_AND_ASSIGN(storage,
                                MemmapStorage::Open({.directory = copy}));
      ExpectHolds(*storage, oracle, want);
      // Writing fills it.
      for (int64_t step = 0; step < 8; ++step) {
        Extend(*storage, oracle, 0, 3, 1, 1000 + 3 * step);
        const int64_t gap =
            std::max<int64_t>(0, std::min<int64_t>(steps, 8) - step - 1);
        ExpectHolds(*storage, oracle, WithoutOldest(oracle, 1, 2, gap));
      }
    }
  }
}

TEST(MemmapStorageTest, WhatIsAcknowledgedIsThere) {
  const std::string directory = FreshPath("acknowledged");
  const std::string copy = FreshPath("acknowledged_copy");
  StorageOracle oracle({.count = 2, .capacity = 5});
  RILL_ASSERT_OK_AND_ASSIGN(
      auto storage, MemmapStorage::Create(
                        {.directory = directory, .capacity = 10, .lanes = 2}));
  CopyingObserver killer(directory, copy, /*on_retire=*/false);
  RILL_ASSERT_OK(storage->AddObserver(&killer));
  for (int64_t i = 0; i < 6; ++i) {
    Extend(*storage, oracle, i % 2, 1, 1 + i, 100 * i);
    RILL_ASSERT_OK_AND_ASSIGN(auto reopened,
                              MemmapStorage::Open({.directory = copy}));
    ExpectHolds(*reopened, oracle, oracle.LiveSlots());
  }
}

// Every file, cut short, grown, missing or a link; texts and both slots of the
// record changed.
TEST(MemmapStorageTest, NothingThatDoesNotFitIsBelieved) {
  for (const Layout layout : {Layout::kRows, Layout::kColumns}) {
    const std::string whole = FreshPath("whole");
    {
      RILL_ASSERT_OK_AND_ASSIGN(
          auto storage,
          MemmapStorage::Create(
              {.directory = whole, .capacity = 8, .layout = layout}));
      RILL_ASSERT_OK(storage->Extend(RowsFrom({3}, 1)).status());
    }
    for (const std::string& name : formats_internal::ListFiles(whole)) {
      if (name == "rill.lock") continue;
      RILL_ASSERT_OK_AND_ASSIGN(const std::string content,
                                ReadFile(JoinPath(whole, name)));
      for (const absl::string_view how :
           {"missing", "link", "short", "long", "changed"}) {
        if (how == "changed" && (absl::StrContains(name, ".memmap") ||
                                 absl::StrContains(name, "rows.bin"))) {
          continue;  // Rows have no checksum.
        }
        const std::string path = JoinPath(whole, name);
        RILL_ASSERT_OK(RemoveAll(path));
        std::string text = content;
        if (how == "short") text.pop_back();
        if (how == "long") text.push_back('x');
        if (how == "changed") {
          for (size_t at = 20; at < text.size(); at += 100) text[at] ^= 1;
        }
        if (how == "link") {
          ASSERT_EQ(symlink("/dev/null", path.c_str()), 0);
        } else if (how != "missing") {
          WriteInPlace(path, text);
        }
        const absl::Status status =
            MemmapStorage::Open({.directory = whole}).status();
        RILL_ASSERT_OK(RemoveAll(path));
        WriteInPlace(path, content);
        EXPECT_FALSE(status.ok()) << name << " " << how;
        const absl::StatusCode want = how == "link"
                                          ? absl::StatusCode::kInvalidArgument
                                      : how == "missing" && name == "rill.json"
                                          ? absl::StatusCode::kNotFound
                                          : absl::StatusCode::kDataLoss;
        const bool is_known =
            status.code() == want ||
            (how == "link" &&
             status.code() == absl::StatusCode::kFailedPrecondition) ||
            (how == "missing" && status.code() == absl::StatusCode::kNotFound);
        EXPECT_TRUE(is_known) << name << " " << how << ": " << status;
      }
    }
    RILL_ASSERT_OK_AND_ASSIGN(auto storage,
                              MemmapStorage::Open({.directory = whole}));
    TensorDict rows;
    RILL_ASSERT_OK(storage->Read({0, 1, 2}, &rows));
    RILL_EXPECT_OK(rows.CheckEqual(RowsFrom({3}, 1)));
  }
}

TEST(MemmapStorageTest, TheDiskIsTakenAsRowsCome) {
  const std::string directory = FreshPath("usage");
  constexpr int64_t kCapacity = 1 << 20;
  RILL_ASSERT_OK_AND_ASSIGN(auto storage,
                            MemmapStorage::Create({.directory = directory,
                                                   .capacity = kCapacity,
                                                   .spec = ConformanceSpec()}));
  const StorageUsage before = storage->MemoryUsage();
  EXPECT_GE(before.full, kCapacity * before.row);
  EXPECT_LT(before.disk, before.full / 4);
  EXPECT_EQ(before.memory, 0);
  RILL_ASSERT_OK(storage->Extend(RowsFrom({5000}, 0)).status());
  const int64_t taken = storage->MemoryUsage().disk;
  EXPECT_GE(taken, 5000 * before.row);
  EXPECT_LT(taken, before.full / 2);
  storage.reset();
  RILL_ASSERT_OK_AND_ASSIGN(storage,
                            MemmapStorage::Open({.directory = directory}));
  EXPECT_EQ(storage->MemoryUsage().disk, taken);
}

TEST(MemmapStorageTest, FullDisksChangeNothingAndKeepWhatIsStored) {
  for (const Layout layout : {Layout::kRows, Layout::kColumns}) {
    RunOnSmallDisk(2 << 20, [layout](const std::string& disk) {
      StorageOracle oracle({.count = 1, .capacity = 1 << 20});
      const std::string directory = JoinPath(disk, "storage");
      RILL_ASSERT_OK_AND_ASSIGN(
          auto storage,
          MemmapStorage::Create(
              {.directory = directory, .capacity = 1 << 20, .layout = layout}));
      int64_t steps = 0;
      absl::Status status;
      while (status.ok() && steps < (1 << 20)) {
        status = storage->Extend(RowsFrom({1000}, steps)).status();
        if (status.ok()) steps += 1000;
      }
      ASSERT_THAT(status,
                  StatusIs(absl::StatusCode::kResourceExhausted,
                           AllOf(HasSubstr("asked "), HasSubstr("free"))));
      ASSERT_GT(steps, 1000);
      EXPECT_EQ(storage->cursors()[0].written, steps);
      EXPECT_EQ(storage->size(), steps);
      // Readable, writable in place, and no less after another look.
      for (int round = 0; round < 2; ++round) {
        TensorDict rows;
        const std::vector<Slot> all = SlotsFrom(0, steps);
        RILL_ASSERT_OK(storage->Read(all, &rows));
        RILL_ASSERT_OK(rows.CheckEqual(RowsFrom({steps}, 0)));
        RILL_ASSERT_OK(storage->WriteAt(all, RowsFrom({steps}, 0)));
        storage.reset();
        RILL_ASSERT_OK_AND_ASSIGN(
            storage, MemmapStorage::Open({.directory = directory}));
      }
      EXPECT_THAT(storage->Extend(RowsFrom({200000}, 0)),
                  IsResourceExhausted());
    });
    if (IsSkipped()) return;
  }
}

// At every operation on the way: nothing is there, nobody is in the way of the
// next, and where files grow rows and cursors are as they were.
TEST(MemmapStorageTest, InjectedFailuresLeaveWhatWasThere) {
  for (const Layout layout : {Layout::kRows, Layout::kColumns}) {
    const std::string directory = FreshPath("faults");
    const MemmapStorage::Options options = {.directory = directory,
                                            .capacity = 10,
                                            .layout = layout,
                                            .spec = ConformanceSpec()};
    int failures = 0;
    for (int fail_at = 1;; ++fail_at) {
      int count = 0;
      const ScopedFaultHook hook([&](absl::string_view, absl::string_view) {
        return ++count == fail_at ? absl::ResourceExhaustedError("planted")
                                  : absl::OkStatus();
      });
      const auto storage = MemmapStorage::Create(options);
      if (storage.ok()) break;
      EXPECT_THAT(storage,
                  StatusIs(absl::StatusCode::kResourceExhausted, "planted"));
      ++failures;
    }
    EXPECT_GE(failures, 8);

    RILL_ASSERT_OK_AND_ASSIGN(auto storage, MemmapStorage::Open(options));
    StorageOracle oracle({.count = 1, .capacity = 10});
    {
      const ScopedFaultHook hook("file.reserve",
                                 absl::ResourceExhaustedError("planted"));
      EXPECT_THAT(storage->Extend(RowsFrom({3}, 1)),
                  StatusIs(absl::StatusCode::kResourceExhausted, "planted"));
      ExpectHolds(*storage, oracle, {});
    }
    Extend(*storage, oracle, 0, 1, 3, 1);
    storage.reset();
    {
      const ScopedFaultHook hook(
          [](absl::string_view point, absl::string_view) {
            return point == "file.reserve" || point == "file.map"
                       ? absl::ResourceExhaustedError("planted")
                       : absl::OkStatus();
          });
      EXPECT_THAT(MemmapStorage::Open(options),
                  StatusIs(absl::StatusCode::kResourceExhausted, "planted"));
    }
    RILL_ASSERT_OK_AND_ASSIGN(storage, MemmapStorage::Open(options));
    ExpectHolds(*storage, oracle, oracle.LiveSlots());
    const ScopedFaultHook hook("file.sync", absl::DataLossError("planted"));
    EXPECT_THAT(storage->Sync(),
                StatusIs(absl::StatusCode::kDataLoss, "planted"));
  }
}

// Kills at every operation on the way. The next process makes the storage, or
// opens it where the dead one was done.
TEST(MemmapStorageTest, KilledCreationsAreInNobodysWay) {
  const MemmapStorage::Options options = {.directory = FreshPath("creation"),
                                          .capacity = 10,
                                          .layout = Layout::kColumns,
                                          .spec = ConformanceSpec()};
  int opened = 0;
  for (int kill_at = 1;; ++kill_at) {
    RILL_ASSERT_OK(RemoveAll(options.directory));
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      int count = 0;
      const ScopedFaultHook hook([&](absl::string_view, absl::string_view) {
        if (++count == kill_at) kill(getpid(), SIGKILL);
        return absl::OkStatus();
      });
      _exit(MemmapStorage::Create(options).ok() ? 0 : 1);
    }
    int how = 0;
    ASSERT_EQ(waitpid(child, &how, 0), child);
    if (WIFEXITED(how)) {
      EXPECT_EQ(WEXITSTATUS(how), 0);
      EXPECT_GE(kill_at, 8);
      break;
    }
    auto storage = MemmapStorage::Create(options);
    if (storage.status().code() == absl::StatusCode::kFailedPrecondition) {
      storage = MemmapStorage::Open(options);
      ++opened;
    }
    RILL_ASSERT_OK(storage.status()) << kill_at;
    RILL_ASSERT_OK((*storage)->Extend(RowsFrom({3}, 1)).status());
  }
  EXPECT_GE(opened, 1);
}

// A directory that was copied has holes where its rows are zeros; writing there
// takes space first.
TEST(MemmapStorageTest, SparseCopiesAreReservedWhenOpened) {
  const std::string directory = FreshPath("sparse");
  TensorDict zeros({1000});
  RILL_ASSERT_OK(
      zeros.Set("x", *Tensor::Zeros(DType::kFloat32, Shape({1000, 256}))));
  {
    RILL_ASSERT_OK_AND_ASSIGN(
        auto storage, MemmapStorage::Create({.directory = directory,
                                             .capacity = 1000,
                                             .layout = Layout::kColumns}));
    RILL_ASSERT_OK(storage->Extend(zeros).status());
  }
  const std::string path = JoinPath(directory, "x.memmap");
  RILL_ASSERT_OK(RemoveAll(path));
  WriteInPlace(path, "");
  ASSERT_EQ(truncate(path.c_str(), 1000 * 1024), 0);
  RILL_ASSERT_OK(MemmapStorage::Open({.directory = directory}).status());
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_GE(info.st_blocks * 512, 1000 * 1024);
}

}  // namespace
}  // namespace rill
