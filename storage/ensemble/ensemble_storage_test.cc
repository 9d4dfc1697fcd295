// SPDX-License-Identifier: Apache-2.0
// Behaviour of EnsembleStorage beyond the storage suite.
#include "rill/storage/ensemble/ensemble_storage.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/formats/manifest.h"
#include "rill/formats/memmap_directory.h"
#include "rill/slots/live_slots.h"
#include "rill/storage/conformance/conformance_rows.h"
#include "rill/storage/conformance/mirror_observer.h"
#include "rill/storage/conformance/storage_oracle.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/list/list_storage.h"
#include "rill/storage/memmap_storage.h"
#include "rill/tensors/dtype.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

std::unique_ptr<Storage> MakeDense(DenseStorage::Options options) {
  return *DenseStorage::Create(options);
}

// Lanes of 4 slots: 2 of the first member, 1 of the second, 3 of the third.
std::vector<std::unique_ptr<Storage>> Members(bool is_lazy) {
  std::vector<std::unique_ptr<Storage>> members;
  for (const int64_t lanes : {2, 1, 3}) {
    members.push_back(
        MakeDense({.capacity = 4 * lanes,
                   .lanes = lanes,
                   .spec = is_lazy ? TensorDictSpec() : ConformanceSpec()}));
  }
  return members;
}

std::unique_ptr<EnsembleStorage> Make(bool is_lazy = false) {
  return *EnsembleStorage::Create(Members(is_lazy));
}

// Members of one lane on the fake device.
std::unique_ptr<EnsembleStorage> MakeOnDevice(int num_members = 2) {
  std::vector<std::unique_ptr<Storage>> members;
  for (int i = 0; i < num_members; ++i) {
    members.push_back(MakeDense(
        {.capacity = 4, .device = Device::Fake(0), .spec = ConformanceSpec()}));
  }
  return *EnsembleStorage::Create(std::move(members));
}

TensorDict Batch(int64_t lanes, int64_t steps, int64_t first_id = 1) {
  return ConformanceRows({lanes, steps}, SlotsFrom(first_id, lanes * steps));
}

absl::StatusOr<TensorDict> RunExample(const TensorDict& batch) {
  std::vector<std::unique_ptr<Storage>> members;
  RILL_ASSIGN_OR_RETURN(members.emplace_back(),
                        DenseStorage::Create({.capacity = 10, .lanes = 2}));
  RILL_ASSIGN_OR_RETURN(members.emplace_back(),
                        DenseStorage::Create({.capacity = 5}));
  RILL_ASSIGN_OR_RETURN(auto storage,
                        EnsembleStorage::Create(std::move(members)));
  RILL_RETURN_IF_ERROR(storage->Extend(batch).status());
  TensorDict rows;
  RILL_RETURN_IF_ERROR(storage->Read({0, 5, 10}, &rows));
  return rows;
}

TEST(EnsembleStorageTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict rows, RunExample(Batch(3, 2)));
  const std::vector<int64_t> ids = {1, 3, 5};
  RILL_EXPECT_OK(rows.CheckEqual(ConformanceRows({3}, ids)));
}

TEST(EnsembleStorageTest, LanesOfMembersLieSideBySide) {
  auto storage = Make();
  EXPECT_EQ(storage->lanes(), (Lanes{.count = 6, .capacity = 4}));
  RILL_ASSERT_OK_AND_ASSIGN(const ExtendResult result,
                            storage->Extend(Batch(4, 5), {.first_lane = 1}));
  EXPECT_EQ(result.rows_written, 16);
  EXPECT_EQ(result.rows_dropped, 4);
  EXPECT_EQ(storage->member(0).size(), 4);
  EXPECT_EQ(storage->member(1).size(), 4);
  EXPECT_EQ(storage->member(2).size(), 8);
  std::vector<int64_t> members;
  for (Slot slot = 0; slot < 24; slot += 4) {
    members.push_back(storage->MemberOfSlot(slot));
    EXPECT_EQ(storage->MemberOfLane(slot / 4), members.back());
    EXPECT_EQ(storage->MemberOfSlot(slot + 3), members.back());
  }
  EXPECT_THAT(members, ElementsAre(0, 0, 1, 2, 2, 2));
}

// Members that hold rows when they come are seen from the start.
TEST(EnsembleStorageTest, LanesAreEndlessWhereAllMembersSaySo) {
  const EventKeys endless = {.ends = {}, .trajectories = {}};
  for (const bool all : {true, false}) {
    std::vector<std::unique_ptr<Storage>> members;
    members.push_back(MakeDense({.capacity = 4, .event_keys = endless}));
    members.push_back(
        MakeDense({.capacity = 4,
                   .event_keys = all ? endless : EventKeys{.ends = {"stop"}}}));
    RILL_ASSERT_OK_AND_ASSIGN(const auto storage,
                              EnsembleStorage::Create(std::move(members)));
    const EventKeys& keys = storage->traits().event_keys;
    EXPECT_EQ(keys.is_endless(), all);
    if (!all) {
      EXPECT_THAT(keys.ends, ElementsAre("stop"));
    }
  }
}

TEST(EnsembleStorageTest, MembersMayHoldRowsAlready) {
  auto members = Members(/*is_lazy=*/true);
  RILL_ASSERT_OK(members[2]->Extend(Batch(3, 5, 100)));
  RILL_ASSERT_OK_AND_ASSIGN(auto storage,
                            EnsembleStorage::Create(std::move(members)));
  StorageOracle oracle({.count = 6, .capacity = 4});
  oracle.Extend(3, 3, 5, SlotsFrom(100, 15));
  MirrorObserver mirror;
  RILL_ASSERT_OK(storage->AddObserver(&mirror));
  EXPECT_EQ(mirror.Compare(oracle), "");
  // Those without rows take what these are.
  TensorDict other = Batch(1, 1);
  RILL_ASSERT_OK(other.Set("extra", *Tensor::Zeros(DType::kInt8, {1, 1})));
  EXPECT_THAT(storage->Extend(other), IsInvalidArgument("extra"));
  RILL_ASSERT_OK(storage->Extend(Batch(6, 2, 200)));
  oracle.Extend(0, 6, 2, SlotsFrom(200, 12));
  EXPECT_EQ(mirror.Compare(oracle), "");
  TensorDict rows;
  RILL_ASSERT_OK(storage->Read(oracle.LiveSlots(), &rows));
  RILL_EXPECT_OK(rows.CheckEqual(oracle.Rows(oracle.LiveSlots())));
  storage->RemoveObserver(&mirror);
}

TEST(EnsembleStorageTest, WhatDoesNotFitTogetherIsRefused) {
  const auto create = [](DenseStorage::Options second) {
    std::vector<std::unique_ptr<Storage>> members;
    members.push_back(MakeDense({.capacity = 4, .spec = ConformanceSpec()}));
    members.push_back(MakeDense(std::move(second)));
    return EnsembleStorage::Create(std::move(members)).status();
  };
  EXPECT_THAT(create({.capacity = 5}),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("members[1]"), HasSubstr("of 5 slots"),
                             HasSubstr("want 4"))));
  EXPECT_THAT(create({.capacity = 4, .device = Device::Fake(0)}),
              IsInvalidArgument("rows on fake:0"));
  TensorDictSpec narrow = ConformanceSpec();
  narrow.Erase("action");
  EXPECT_THAT(create({.capacity = 4, .spec = narrow}),
              IsInvalidArgument("action"));
  EXPECT_THAT(EnsembleStorage::Create({}), IsInvalidArgument("got 0"));
  std::vector<std::unique_ptr<Storage>> none(1);
  EXPECT_THAT(EnsembleStorage::Create(std::move(none)),
              IsInvalidArgument("members[0]: got null"));
}

// A cursor that a later member would refuse is refused before the first is
// written.
TEST(EnsembleStorageTest, CursorsOfLaterMembersAreCheckedFirst) {
  const std::string directory = JoinPath(::testing::TempDir(), "far_cursor");
  std::vector<std::unique_ptr<Storage>> members;
  for (int i = 0; i < 2; ++i) {
    members.push_back(MakeDense({.capacity = 4, .spec = ConformanceSpec()}));
    RILL_ASSERT_OK(members.back()->Extend(Batch(1, 4)));
  }
  // A save of version 1, whose rows do not say which steps they are.
  TensorDict rows;
  RILL_ASSERT_OK(members[1]->Read({0, 1, 2, 3}, &rows));
  RILL_ASSERT_OK(CreateDirectories(directory));
  RILL_ASSERT_OK(SaveMemmapDirectory(rows, JoinPath(directory, "rows")));
  Manifest manifest{.kind = "storage", .version = 1};
  manifest.SetInt("lanes", 1);
  manifest.SetInt("lane_capacity", 4);
  manifest.SetInt("cursors", kMaxWritten - 1);
  RILL_ASSERT_OK(WriteManifest(manifest, directory));
  RILL_ASSERT_OK(members[1]->Load(directory));
  RILL_ASSERT_OK_AND_ASSIGN(auto storage,
                            EnsembleStorage::Create(std::move(members)));
  EXPECT_THAT(storage->Extend(Batch(2, 2)),
              IsFailedPrecondition("cursor of lane 1"));
  EXPECT_EQ(storage->cursors()[0].written, 4);
  RILL_EXPECT_OK(storage->Extend(Batch(2, 1)));
}

TEST(EnsembleStorageTest, DeadSlotsOfLaterMembersAreFoundFirst) {
  auto storage = Make();
  RILL_ASSERT_OK(storage->Extend(Batch(6, 2)));
  const std::vector<int64_t> ids = {70, 71};
  EXPECT_THAT(storage->WriteAt({1, 10}, ConformanceRows({2}, ids)),
              StatusIs(absl::StatusCode::kOutOfRange,
                       AllOf(HasSubstr("Storage::WriteAt"), HasSubstr("got 10"),
                             HasSubstr("member 1"))));
  EXPECT_THAT(storage->WriteAt({1, 8}, ConformanceRows({1}, {70})),
              IsInvalidArgument("[1], want [2]"));
  TensorDict rows;
  RILL_ASSERT_OK(storage->Read({1}, &rows));
  RILL_EXPECT_OK(rows.CheckEqual(ConformanceRows({1}, {2})));
}

// A device that fails in the middle makes a member attach its observers anew;
// those of the ensemble are notified of all rows anew.
TEST(EnsembleStorageTest, ObserversHearAllAnewWhereADeviceFails) {
  FakeBackend* const fake = FakeBackend::Install({});
  const absl::Status failure = absl::UnavailableError("fell off the bus");
  {
    auto storage = MakeOnDevice();
    StorageOracle oracle(storage->lanes());
    MirrorObserver mirror;
    RILL_ASSERT_OK(storage->AddObserver(&mirror));
    RILL_ASSERT_OK(storage->Extend(Batch(2, 3)));
    oracle.Extend(0, 2, 3, SlotsFrom(1, 6));
    fake->FailNext(FakeBackend::Operation::kCreateEvent, 1, failure);
    EXPECT_THAT(storage->Extend(Batch(1, 1, 50), {.first_lane = 1}),
                StatusIs(failure.code(), HasSubstr("member 1")));
    EXPECT_EQ(mirror.Compare(oracle), "");
    RILL_ASSERT_OK(storage->Extend(Batch(2, 3, 60)));
    oracle.Extend(0, 2, 3, SlotsFrom(60, 6));
    EXPECT_EQ(mirror.Compare(oracle), "");
    storage->RemoveObserver(&mirror);
  }
}

TensorDict OnDevice(const TensorDict& rows) {
  return *rows.To(Device::Fake(0));
}

// Waits of the host since StartCalls, and copies to it.
std::pair<int, int> WaitsAndCopies(FakeBackend* fake) {
  std::pair<int, int> calls;
  for (const FakeBackend::Call& call : fake->TakeCalls()) {
    using Kind = FakeBackend::Call::Kind;
    calls.first += call.kind == Kind::kSynchronizeStream ||
                   call.kind == Kind::kSynchronizeEvent;
    calls.second += call.kind == Kind::kCopy && !call.to_device;
  }
  return calls;
}

// Those of writes of rows on the device that one observer sees: an append to
// both members, and a write in place to one.
std::pair<int, int> CallsOfWrites(FakeBackend* fake, WriteObserver* observer) {
  auto storage = MakeOnDevice();
  RILL_EXPECT_OK(storage->AddObserver(observer));
  const TensorDict batch = OnDevice(Batch(2, 3));
  const TensorDict row = OnDevice(ConformanceRows({1}, {9}));
  fake->RunAll();
  fake->StartCalls();
  RILL_EXPECT_OK(storage->Extend(batch));
  RILL_EXPECT_OK(storage->WriteAt({4}, row));
  const std::pair<int, int> calls = WaitsAndCopies(fake);
  TensorDict rows;
  RILL_EXPECT_OK(storage->Read({0, 4}, &rows));
  RILL_EXPECT_OK(
      rows.To(Device::Cpu())->CheckEqual(ConformanceRows({2}, {1, 9})));
  storage->RemoveObserver(observer);
  return calls;
}

TEST(EnsembleStorageTest, AWriteOnADeviceWaitsForFlagsThatAreReadAlone) {
  FakeBackend* const fake = FakeBackend::Install({});
  LiveSlots slots;
  EXPECT_EQ(CallsOfWrites(fake, &slots), std::make_pair(0, 0));
  MirrorObserver mirror;  // Reads all there is.
  const auto [waits, copies] = CallsOfWrites(fake, &mirror);
  EXPECT_GT(waits, 0);
  EXPECT_GT(copies, 0);
}

TEST(EnsembleStorageTest, AWriteInPlaceToSeveralMembersOnADeviceWaitsOnce) {
  FakeBackend* const fake = FakeBackend::Install({});
  auto storage = MakeOnDevice(/*num_members=*/4);
  LiveSlots observer;
  RILL_ASSERT_OK(storage->AddObserver(&observer));
  RILL_ASSERT_OK(storage->Extend(Batch(4, 3)));
  const std::vector<Slot> slots = {13, 0, 5, 12, 1, 8};
  const TensorDict rows = OnDevice(ConformanceRows({6}, SlotsFrom(50, 6)));
  fake->RunAll();
  fake->StartCalls();
  RILL_ASSERT_OK(storage->WriteAt(slots, rows));
  EXPECT_EQ(WaitsAndCopies(fake), std::make_pair(1, 0));
  TensorDict read;
  RILL_ASSERT_OK(storage->Read(slots, &read));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict host, read.To(Device::Cpu()));
  RILL_EXPECT_OK(host.CheckEqual(ConformanceRows({6}, SlotsFrom(50, 6))));
  storage->RemoveObserver(&observer);
}

// Whether they are there does not hang on the writes before.
TEST(EnsembleStorageTest, RowsThatAFailedWriteLostAreWrittenInPlaceAgain) {
  FakeBackend* const fake = FakeBackend::Install({});
  auto storage = MakeOnDevice();
  RILL_ASSERT_OK(storage->Extend(Batch(2, 3)));
  const std::vector<Slot> slots = {4, 0};
  const TensorDict rows = OnDevice(ConformanceRows({2}, SlotsFrom(50, 2)));
  fake->RunAll();
  fake->FailNext(FakeBackend::Operation::kScatterRows, 1,
                 absl::UnavailableError("fell off the bus"));
  RILL_ASSERT_OK(storage->WriteAt({0}, *rows.Slice(0, 0, 1)));
  EXPECT_THAT(Stream::Default(Device::Fake(0))->Synchronize(), IsUnavailable());
  fake->Recover();
  TensorDict read;
  EXPECT_THAT(storage->Read({0}, &read), IsUnavailable());
  // The next write of that member says so, and does nothing.
  EXPECT_THAT(storage->WriteAt(slots, rows), IsUnavailable());
  RILL_ASSERT_OK(storage->WriteAt(slots, rows));
  RILL_ASSERT_OK(storage->Read(slots, &read));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict host, read.To(Device::Cpu()));
  RILL_EXPECT_OK(host.CheckEqual(ConformanceRows({2}, SlotsFrom(50, 2))));
}

// The first member's write changes the row that the second member gets.
TEST(EnsembleStorageTest, LentRowsMayBeWrittenInPlaceToOtherMembers) {
  auto storage = Make();
  RILL_ASSERT_OK(storage->Extend(Batch(6, 4)));
  TensorDict want;
  RILL_ASSERT_OK(storage->Read({4, 5}, &want));
  RILL_ASSERT_OK_AND_ASSIGN(const SlotLease lease, storage->Lease({4, 2}));
  RILL_ASSERT_OK(storage->WriteAt({5, 8}, lease.rows()));
  TensorDict rows;
  RILL_ASSERT_OK(storage->Read({5, 8}, &rows));
  RILL_EXPECT_OK(rows.CheckEqual(want));
}

TEST(EnsembleStorageTest, LentRowsMayBeWrittenToOtherMembers) {
  auto storage = Make();
  RILL_ASSERT_OK(storage->Extend(Batch(6, 4)));
  // The rows of lane 1, member 0, to lanes 1 and 2: member 0 goes first.
  RILL_ASSERT_OK_AND_ASSIGN(const SlotLease lease, storage->Lease({4, 4}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict lane, lease.rows().Unsqueeze(0));
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict twice, lane.MapShape({2, 4}, [](const Tensor& leaf) {
        std::vector<int64_t> sizes(leaf.shape().sizes().begin(),
                                   leaf.shape().sizes().end());
        sizes[0] = 2;
        return leaf.Expand(*Shape::Create(sizes));
      }));
  // They go to other slots of lane 1 than those they are in.
  RILL_ASSERT_OK(storage->Extend(Batch(1, 1, 500), {.first_lane = 1}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, twice.Clone());
  RILL_ASSERT_OK(storage->Extend(twice, {.first_lane = 1}));
  TensorDict rows;
  RILL_ASSERT_OK(storage->Read({8, 9, 10, 11}, &rows));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict second, want.SelectDim(0, 1));
  RILL_EXPECT_OK(rows.CheckEqual(second));
  // Read does not write into them either.
  RILL_ASSERT_OK_AND_ASSIGN(const SlotLease target, storage->Lease({0, 2}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict before, target.rows().Clone());
  TensorDict out = target.rows();
  RILL_ASSERT_OK(storage->Read({12, 8}, &out));
  RILL_EXPECT_OK(target.rows().CheckEqual(before));
}

TEST(EnsembleStorageTest, SavesGoBetweenKinds) {
  const std::string directory = JoinPath(::testing::TempDir(), "ensemble_save");
  RILL_ASSERT_OK(RemoveAll(directory));
  StorageOracle oracle({.count = 6, .capacity = 4});
  auto storage = Make();
  RILL_ASSERT_OK(storage->Extend(Batch(4, 7), {.first_lane = 1}));
  oracle.Extend(1, 4, 7, SlotsFrom(1, 28));
  RILL_ASSERT_OK(storage->Save(directory));
  auto dense = MakeDense({.capacity = 24, .lanes = 6});
  RILL_ASSERT_OK(dense->Load(directory));
  RILL_ASSERT_OK(dense->Save(directory));
  auto again = Make(/*is_lazy=*/true);
  MirrorObserver mirror;
  RILL_ASSERT_OK(again->AddObserver(&mirror));
  RILL_ASSERT_OK(again->Load(directory));
  EXPECT_EQ(mirror.Compare(oracle), "");
  TensorDict rows;
  for (Storage* each : {dense.get(), static_cast<Storage*>(again.get())}) {
    EXPECT_EQ(each->cursors(), oracle.cursors());
    RILL_ASSERT_OK(each->Read(oracle.LiveSlots(), &rows));
    RILL_EXPECT_OK(rows.CheckEqual(oracle.Rows(oracle.LiveSlots())));
  }
  // Nothing is left beside it.
  RILL_ASSERT_OK_AND_ASSIGN(const auto names,
                            ListDirectory(::testing::TempDir()));
  for (const std::string& name : names) {
    EXPECT_THAT(name, ::testing::Not(HasSubstr(".members-")));
  }
  again->RemoveObserver(&mirror);
}

TEST(EnsembleStorageTest, LoadsThatFailBeforeTheMembersChangeNothing) {
  const std::string directory = JoinPath(::testing::TempDir(), "ensemble_load");
  auto storage = Make();
  RILL_ASSERT_OK(storage->Extend(Batch(6, 3)));
  RILL_ASSERT_OK(storage->Save(directory));
  RILL_ASSERT_OK(storage->Extend(Batch(6, 2, 300)));
  StorageOracle oracle(storage->lanes());
  oracle.Extend(0, 6, 3, SlotsFrom(1, 18));
  oracle.Extend(0, 6, 2, SlotsFrom(300, 12));
  MirrorObserver mirror;
  RILL_ASSERT_OK(storage->AddObserver(&mirror));
  const int64_t calls = mirror.num_calls();
  {
    const ScopedFaultHook hook("file.write",
                               absl::ResourceExhaustedError("disk full"));
    EXPECT_THAT(storage->Load(directory), IsResourceExhausted());
  }
  EXPECT_EQ(mirror.num_calls(), calls);
  EXPECT_EQ(mirror.Compare(oracle), "");
  RILL_ASSERT_OK(storage->Load(directory));
  EXPECT_EQ(storage->size(), 18);
  storage->RemoveObserver(&mirror);
}

TEST(EnsembleStorageTest, MemoryAndDiskAreCountedTogether) {
  const std::string directory = JoinPath(::testing::TempDir(), "ensemble_disk");
  RILL_ASSERT_OK(RemoveAll(directory));
  std::vector<std::unique_ptr<Storage>> members;
  members.push_back(MakeDense({.capacity = 40, .lanes = 2}));
  RILL_ASSERT_OK_AND_ASSIGN(
      members.emplace_back(),
      MemmapStorage::Create({.directory = directory, .capacity = 20}));
  RILL_ASSERT_OK_AND_ASSIGN(auto storage,
                            EnsembleStorage::Create(std::move(members)));
  RILL_ASSERT_OK(storage->Extend(Batch(2, 3)));
  const StorageUsage before = storage->MemoryUsage();
  EXPECT_GT(before.row, 0);
  EXPECT_GE(before.full, 60 * before.row);  // The lazy member's too.
  EXPECT_GT(before.memory, 0);
  RILL_ASSERT_OK(storage->Extend(Batch(3, 3)));
  const StorageUsage after = storage->MemoryUsage();
  EXPECT_GT(after.disk, 0);
  EXPECT_GT(after.disk_free, 0);  // The one that has files.
  EXPECT_EQ(after.memory, before.memory);
  RILL_EXPECT_OK(storage->Sync());
  TensorDict rows;
  RILL_ASSERT_OK(storage->Read({0, 40, 21}, &rows));
  const std::vector<int64_t> ids = {1, 7, 5};
  RILL_EXPECT_OK(rows.CheckEqual(ConformanceRows({3}, ids)));
}

TEST(EnsembleStorageTest, WritersOfDifferentMembersReachOneObserverInTurn) {
  auto storage = Make(/*is_lazy=*/true);
  MirrorObserver mirror;
  RILL_ASSERT_OK(storage->AddObserver(&mirror));
  std::vector<std::thread> writers;
  for (int64_t lane = 0; lane < 6; ++lane) {
    writers.emplace_back([&storage, lane] {
      for (int64_t i = 0; i < 50; ++i) {
        RILL_ASSERT_OK(storage->Extend(Batch(1, 3, 1000 * (lane + 1) + 3 * i),
                                       {.first_lane = lane}));
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  StorageOracle oracle(storage->lanes());
  for (int64_t lane = 0; lane < 6; ++lane) {
    oracle.Extend(lane, 1, 150, SlotsFrom(1000 * (lane + 1), 150));
  }
  EXPECT_EQ(mirror.Compare(oracle), "");
  storage->RemoveObserver(&mirror);
}

// A DenseStorage of one lane that does not always load or clear.
class FailingMember final : public Storage {
 public:
  enum class Failure { kNone, kLoad, kLoadThatEmpties, kClear };
  explicit FailingMember(Failure failure)
      : Storage({.lanes = {.count = 1, .capacity = 4}}), failure_(failure) {}

  int64_t size() const override { return rows_->size(); }
  std::vector<Cursor> cursors() const override { return rows_->cursors(); }
  TensorDictSpec spec() const override { return rows_->spec(); }
  StorageUsage MemoryUsage() const override { return rows_->MemoryUsage(); }
  absl::StatusOr<ExtendResult> Extend(const TensorDict& batch,
                                      const WriteInfo& info) override {
    return rows_->Extend(batch, info);
  }
  absl::Status WriteInPlace(absl::Span<const Slot> slots,
                            const TensorDict& rows, InPlace kind) override {
    return rows_->WriteInPlace(slots, rows, kind);
  }
  absl::Status ReadInto(absl::Span<const Slot> slots,
                        absl::Span<const size_t> leaves,
                        absl::Span<const BoundLeaf> places) const override {
    return rows_->ReadInto(slots, leaves, places);
  }
  absl::StatusOr<SlotLease> Lease(SlotRange range) const override {
    return rows_->Lease(range);
  }
  absl::Status Clear() override {
    if (failure_ == Failure::kClear) return absl::UnavailableError("no clear");
    return rows_->Clear();
  }
  absl::Status AddObserver(WriteObserver* observer) override {
    return rows_->AddObserver(observer);
  }
  void RemoveObserver(WriteObserver* observer) override {
    rows_->RemoveObserver(observer);
  }
  absl::Status Save(const std::string& directory) const override {
    return rows_->Save(directory);
  }
  absl::Status Load(const std::string& directory,
                    const StorageLoadOptions& options) override {
    if (failure_ == Failure::kLoadThatEmpties) {
      RILL_RETURN_IF_ERROR(rows_->Clear());
    }
    return failure_ == Failure::kLoad || failure_ == Failure::kLoadThatEmpties
               ? absl::UnavailableError("no load")
               : rows_->Load(directory, options);
  }

 private:
  absl::Status ReadKeys(absl::Span<const Slot> slots,
                        std::optional<absl::Span<const std::string>> keys,
                        TensorDict* out) const override {
    return keys ? rows_->ReadLeaves(slots, *keys, out)
                : rows_->Read(slots, out);
  }

  const Failure failure_;
  const std::unique_ptr<Storage> rows_ = MakeDense({.capacity = 4});
};

TEST(EnsembleStorageTest, LoadsThatFailInAMemberSayWhatIsLeft) {
  using Failure = FailingMember::Failure;
  const std::string directory = JoinPath(::testing::TempDir(), "ensemble_left");
  struct Case {
    Failure first;
    Failure second;
    std::string said;
    std::vector<int64_t> sizes;
  };
  const std::vector<Case> cases = {
      {Failure::kLoad, Failure::kNone, "", {2, 2}},
      {Failure::kLoadThatEmpties,
       Failure::kNone,
       "it is empty now, the others are as they were",
       {0, 2}},
      {Failure::kNone, Failure::kLoad, "the storage is empty now", {0, 0}},
      {Failure::kClear,
       Failure::kLoad,
       "the storage is empty now, but for member 0",
       {3, 0}},
  };
  auto saved = MakeDense({.capacity = 8, .lanes = 2});
  RILL_ASSERT_OK(saved->Extend(Batch(2, 3)));
  RILL_ASSERT_OK(saved->Save(directory));
  for (const Case& each : cases) {
    std::vector<std::unique_ptr<Storage>> members;
    members.push_back(std::make_unique<FailingMember>(each.first));
    members.push_back(std::make_unique<FailingMember>(each.second));
    RILL_ASSERT_OK_AND_ASSIGN(auto storage,
                              EnsembleStorage::Create(std::move(members)));
    RILL_ASSERT_OK(storage->Extend(Batch(2, 2, 40)));
    const absl::Status status = storage->Load(directory);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("no load"), HasSubstr(each.said)));
    EXPECT_EQ(absl::StrContains(status.message(), "empty"), !each.said.empty());
    EXPECT_EQ(storage->member(0).size(), each.sizes[0]) << each.said;
    EXPECT_EQ(storage->member(1).size(), each.sizes[1]) << each.said;
    if (each.sizes[1] == 2) {
      TensorDict rows;
      RILL_ASSERT_OK(storage->Read({4, 5}, &rows));
      const std::vector<int64_t> ids = {42, 43};
      RILL_EXPECT_OK(rows.CheckEqual(ConformanceRows({2}, ids)));
    }
  }
}

TEST(EnsembleStorageTest, RaggedLeavesAreRefused) {
  const auto create = [](std::vector<std::string> ragged) {
    std::vector<std::unique_ptr<Storage>> members;
    members.push_back(MakeDense({.capacity = 8}));
    members.push_back(*ListStorage::Create(
        {.capacity = 8, .ragged_leaves = std::move(ragged)}));
    return EnsembleStorage::Create(std::move(members));
  };
  EXPECT_THAT(
      create({"tokens"}),
      StatusIs(kInvalidArgument,
               AllOf(HasSubstr("members[1]"), HasSubstr("ragged leaves"),
                     HasSubstr("ReplayBufferEnsemble"))));
  RILL_EXPECT_OK(create({}));
}

}  // namespace
}  // namespace rill
