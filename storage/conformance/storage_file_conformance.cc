// SPDX-License-Identifier: Apache-2.0
// Save and Load.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/formats/consolidated.h"
#include "rill/formats/manifest.h"
#include "rill/formats/memmap_directory.h"
#include "rill/storage/conformance/conformance_rows.h"
#include "rill/storage/conformance/storage_conformance.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

// Loads what `other` saved, and expects the same of the storage.
void LoadLike(StorageSubject& subject, StorageSubject& other,
              const std::string& directory) {
  RILL_ASSERT_OK(subject.storage().Load(directory));
  subject.oracle() = other.oracle();
  subject.Check();
}

// As all was saved before there were chunks.
Manifest SaveAsVersion1(StorageSubject& subject, const std::string& directory) {
  const StorageOracle& oracle = subject.oracle();
  RILL_EXPECT_OK(SaveMemmapDirectory(oracle.Rows(oracle.LiveSlots()),
                                     JoinPath(directory, "rows")));
  Manifest manifest{.kind = "storage", .version = 1};
  manifest.SetInt("lanes", oracle.lanes().count);
  manifest.SetInt("lane_capacity", oracle.lanes().capacity);
  manifest.fields["cursors"] = absl::StrJoin(
      oracle.cursors(), ",", [](std::string* out, const Cursor& cursor) {
        absl::StrAppend(out, cursor.written);
      });
  RILL_EXPECT_OK(WriteManifest(manifest, directory));
  return manifest;
}

TEST_P(StorageConformanceTest, SavesBeforeThereWereChunksLoad) {
  const std::string directory = FreshPath();
  for (const int64_t steps : {1, 13}) {
    RILL_ASSERT_OK(RemoveAll(directory));
    RILL_ASSERT_OK(CreateDirectories(directory));
    auto saved = Make(10, 2);
    saved->ExtendAll(steps);
    saved->Extend(1, 1, 2);
    SaveAsVersion1(*saved, directory);
    auto subject = Make(10, 2);
    subject->ExtendAll(7);
    LoadLike(*subject, *saved, directory);
    auto smaller = Make(6, 2);
    RILL_ASSERT_OK(
        smaller->storage().Load(directory, {.accept_other_capacity = true}));
    smaller->oracle() = saved->oracle().WithLaneCapacity(3);
    smaller->Check();
  }
}

// The saved form is the same for all storages: rows in logical order.
TEST_P(StorageConformanceTest, SavedRowsAreInLogicalOrder) {
  const std::string directory = FreshPath();
  auto subject = Make(10, 2);
  subject->Extend(0, 1, 8);
  subject->Extend(1, 1, 3);
  RILL_ASSERT_OK(subject->storage().Save(directory));
  const std::vector<Slot> first = {3, 4, 5, 6, 7};  // Steps 3, 4; 0, 1, 2.
  const std::vector<Slot> second = {0, 1, 2};       // Steps 5, 6, 7.
  for (const auto& [name, slots] :
       {std::pair("rows/0-0.bin", first), std::pair("rows/0-1.bin", second)}) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict rows,
                              LoadConsolidated(JoinPath(directory, name)));
    RILL_EXPECT_OK(rows.CheckEqual(subject->oracle().Rows(slots)));
  }
}

TEST_P(StorageConformanceTest, LoadBringsBackRowsSlotsAndCursors) {
  const std::string directory = FreshPath();
  for (const int64_t steps : {1, 5, 13}) {
    auto saved = Make(10, 2);
    saved->ExtendAll(steps);
    saved->Extend(1, 1, 2);
    RILL_ASSERT_OK(saved->storage().Save(directory));
    auto fresh = Make(10, 2);
    LoadLike(*fresh, *saved, directory);
    fresh->ExtendAll(2);
    fresh->Check(absl::StrCat("after ", steps));
    // Over rows that are there.
    auto full = Make(10, 2);
    full->ExtendAll(7);
    LoadLike(*full, *saved, directory);
    full->ExtendAll(2);
    full->Check(absl::StrCat("over rows, after ", steps));
  }
}

TEST_P(StorageConformanceTest, StorageWithoutRowsIsSavedToo) {
  const std::string directory = FreshPath();
  auto saved = Make(6);
  RILL_ASSERT_OK(saved->storage().Save(directory));
  auto fresh = Make(6);
  fresh->ExtendAll(2);
  LoadLike(*fresh, *saved, directory);
  fresh->ExtendAll(2);
  fresh->Check();
}

TEST_P(StorageConformanceTest, LoadEndsLeases) {
  const std::string directory = FreshPath();
  auto subject = Make(6);
  subject->ExtendAll(3);
  RILL_ASSERT_OK(subject->storage().Save(directory));
  const auto lease = Lease(subject->storage(), {0, 1});
  if (!lease.has_value()) return;
  RILL_ASSERT_OK(subject->storage().Load(directory));
  EXPECT_FALSE(lease->valid());
  subject->Check();
}

TEST_P(StorageConformanceTest, LoadRefusesOtherLanesAndSpecs) {
  const std::string directory = FreshPath();
  auto saved = Make(8, 2);
  saved->ExtendAll(3);
  RILL_ASSERT_OK(saved->storage().Save(directory));
  for (const auto& [capacity, lanes, what] :
       {std::tuple(8, 1, "lanes: got 2"), std::tuple(8, 4, "want this"),
        std::tuple(10, 2, "lane_capacity: got 4")}) {
    auto other = Make(capacity, lanes);
    other->ExtendAll(1);
    EXPECT_THAT(other->storage().Load(directory), IsFailedPrecondition(what));
    other->Check();
  }
  TensorDictSpec narrow = ConformanceSpec();
  narrow.Erase("action");
  RILL_ASSERT_OK_AND_ASSIGN(auto other, GetParam().create(8, 2, narrow));
  EXPECT_THAT(other->Load(directory), IsFailedPrecondition("spec"));
  EXPECT_EQ(other->size(), 0);
}

TEST_P(StorageConformanceTest, AnotherCapacityKeepsTheNewestRowsOfEachLane) {
  const std::string directory = FreshPath();
  for (const int64_t steps : {0, 5, 23}) {
    auto saved = Make(14, 2);
    saved->ExtendAll(steps);
    saved->Extend(1, 1, 2);
    // Through lanes of these capacities, and back.
    for (const int64_t capacity : {3, 20, 9}) {
      const std::string when =
          absl::StrCat("after ", steps, " steps into ", capacity);
      RILL_ASSERT_OK(saved->storage().Save(directory));
      auto other = Make(2 * capacity, 2);
      other->ExtendAll(4);  // What it holds goes.
      if (capacity != saved->oracle().lanes().capacity) {
        EXPECT_THAT(other->storage().Load(directory),
                    IsFailedPrecondition("accept_other_capacity"));
      }
      other->Check(when);
      RILL_ASSERT_OK(
          other->storage().Load(directory, {.accept_other_capacity = true}))
          << when;
      other->oracle() = saved->oracle().WithLaneCapacity(capacity);
      other->Check(when);
      other->ExtendAll(1);
      other->Extend(1, 1, 3);
      other->Check(absl::StrCat(when, ", and a write"));
      saved = std::move(other);
    }
  }
}

TEST_P(StorageConformanceTest, AnotherCapacityIsNoOtherNumberOfLanes) {
  const std::string directory = FreshPath();
  auto saved = Make(8, 2);
  saved->ExtendAll(3);
  RILL_ASSERT_OK(saved->storage().Save(directory));
  auto other = Make(8, 4);
  other->ExtendAll(1);
  EXPECT_THAT(other->storage().Load(directory, {.accept_other_capacity = true}),
              IsFailedPrecondition("lanes: got 2"));
  other->Check();
}

TEST_P(StorageConformanceTest, CapacityOutOfRangeIsDamage) {
  const std::string directory = FreshPath();
  auto subject = Make(6, 2);
  subject->ExtendAll(2);
  RILL_ASSERT_OK(subject->storage().Save(directory));
  RILL_ASSERT_OK_AND_ASSIGN(Manifest manifest,
                            ReadManifest(directory, "storage", 9));
  for (const char* capacity : {"0", "-3", "2305843009213693953"}) {
    manifest.fields["lane_capacity"] = capacity;
    RILL_ASSERT_OK(WriteManifest(manifest, directory));
    EXPECT_THAT(
        subject->storage().Load(directory, {.accept_other_capacity = true}),
        IsDataLoss("lane_capacity: got"));
    subject->Check(capacity);
  }
}

TEST_P(StorageConformanceTest, DamagedDirectoriesChangeNothing) {
  const std::string directory = FreshPath();
  auto saved = Make(8, 2);
  saved->ExtendAll(3);
  auto subject = Make(8, 2);
  subject->ExtendAll(2);
  EXPECT_THAT(subject->storage().Load(directory), IsNotFound());
  RILL_ASSERT_OK(saved->storage().Save(directory));
  for (const absl::string_view name : {"rill.json", "rows/0-0.bin"}) {
    const std::string path = JoinPath(directory, name);
    RILL_ASSERT_OK_AND_ASSIGN(const std::string whole, ReadFile(path));
    std::string changed = whole;
    changed[changed.size() / 2] ^= 1;
    for (const std::string& damaged :
         {changed, whole.substr(0, whole.size() / 2)}) {
      RILL_ASSERT_OK(WriteFileAtomically(path, damaged));
      EXPECT_THAT(subject->storage().Load(directory), IsDataLoss(name));
    }
    RILL_ASSERT_OK(WriteFileAtomically(path, whole));
    subject->Check(std::string(name));
  }
}

TEST_P(StorageConformanceTest, CursorsThatLeaveNoRoomAreDamage) {
  const std::string directory = FreshPath();
  auto subject = Make(6, 2);
  subject->ExtendAll(4);  // Full: the number of rows says nothing of cursors.
  RILL_ASSERT_OK(CreateDirectories(directory));
  Manifest manifest = SaveAsVersion1(*subject, directory);
  for (const char* cursors :
       {"4,9223372036854775807", "4611686018427387905,4", "4,-1", "4,x"}) {
    manifest.fields["cursors"] = cursors;
    RILL_ASSERT_OK(WriteManifest(manifest, directory));
    EXPECT_THAT(subject->storage().Load(directory), IsDataLoss("cursors: got"));
    subject->Check(cursors);
  }
  // The largest: rows load, and no step more is taken.
  manifest.fields["cursors"] = "4611686018427387904,4";
  RILL_ASSERT_OK(WriteManifest(manifest, directory));
  for (int i = 0; i < 2; ++i) {
    RILL_ASSERT_OK(subject->storage().Load(directory));
    EXPECT_EQ(subject->storage().cursors()[0].written, int64_t{1} << 62);
    RILL_ASSERT_OK(subject->storage().Save(directory));
  }
  const std::vector<int64_t> ids = {7, 8};
  EXPECT_THAT(subject->storage().Extend(ConformanceRows({2, 1}, ids), {}),
              IsFailedPrecondition("cursor of lane 0"));
  EXPECT_EQ(subject->storage().cursors()[1].written, 4);
}

TEST_P(StorageConformanceTest, FailedSavesLeaveTheOldDirectory) {
  const std::string directory = FreshPath();
  auto subject = Make(6);
  subject->ExtendAll(3);
  const StorageOracle before = subject->oracle();
  RILL_ASSERT_OK(subject->storage().Save(directory));
  subject->ExtendAll(2);
  for (const absl::string_view point :
       {"file.open", "file.reserve", "file.write", "file.sync",
        "file.rename"}) {
    const ScopedFaultHook hook(point,
                               absl::ResourceExhaustedError("disk full"));
    EXPECT_THAT(subject->storage().Save(directory), IsResourceExhausted())
        << point;
  }
  subject->Check();
  RILL_ASSERT_OK(subject->storage().Load(directory));
  subject->oracle() = before;
  subject->Check();
}

}  // namespace
}  // namespace rill
