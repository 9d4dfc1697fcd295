// SPDX-License-Identifier: Apache-2.0
// DenseStorage in every form passes both suites.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/device/testing/device_under_test.h"
#include "rill/flow/sink.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/spec.h"
#include "rill/storage/conformance/storage_conformance.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/slot_lease.h"
#include "rill/storage/storage.h"
#include "rill/storage/storage_layout.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/wrong_parts.h"

namespace rill {
namespace {

StorageCase Case(StorageLayout layout, StorageOrder order, Device device,
                 bool is_lazy, bool dedup_next) {
  StorageCase one;
  one.name = absl::StrCat(
      layout == StorageLayout::kRows ? "Rows" : "Columns",
      order == StorageOrder::kLaneMajor ? "LaneMajor" : "TimeMajor",
      device.is_cpu() ? "Cpu" : "Device", is_lazy ? "Lazy" : "Given",
      dedup_next ? "Dedup" : "");
  one.is_lazy = is_lazy;
  one.has_leases = !dedup_next;
  one.create = [=](int64_t capacity, int64_t lanes,
                   const TensorDictSpec& spec) {
    return DenseStorage::Create({.capacity = capacity,
                                 .lanes = lanes,
                                 .layout = layout,
                                 .order = order,
                                 .device = device,
                                 .spec = spec,
                                 .dedup_next = dedup_next});
  };
  return one;
}

std::vector<StorageCase> DenseCases() {
  std::vector<StorageCase> cases;
  for (const StorageLayout layout :
       {StorageLayout::kRows, StorageLayout::kColumns}) {
    for (const StorageOrder order :
         {StorageOrder::kLaneMajor, StorageOrder::kTimeMajor}) {
      for (const bool is_lazy : {false, true}) {
        for (const Device device : {Device::Cpu(), DeviceUnderTest()}) {
          cases.push_back(Case(layout, order, device, is_lazy, false));
        }
        cases.push_back(Case(layout, order, Device::Cpu(), is_lazy, true));
      }
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Dense, RowReaderConformanceTest,
                         ::testing::ValuesIn(DenseCases()), StorageCaseName);
INSTANTIATE_TEST_SUITE_P(Dense, StorageConformanceTest,
                         ::testing::ValuesIn(DenseCases()), StorageCaseName);

// --- Storages that break a promise -------------------------------------------

// A DenseStorage, changed.
class WrongStorage : public Storage {
 public:
  explicit WrongStorage(std::unique_ptr<Storage> right)
      : Storage(right->traits()), right_(std::move(right)) {}

  int64_t size() const override { return right_->size(); }
  std::vector<Cursor> cursors() const override { return right_->cursors(); }
  TensorDictSpec spec() const override { return right_->spec(); }
  absl::Status ReadInto(absl::Span<const Slot> slots,
                        absl::Span<const size_t> leaves,
                        absl::Span<const BoundLeaf> places) const override {
    return right_->ReadInto(slots, leaves, places);
  }
  absl::StatusOr<SlotLease> Lease(SlotRange range) const override {
    return right_->Lease(range);
  }
  absl::StatusOr<ExtendResult> Extend(const TensorDict& batch,
                                      const WriteInfo& info) override {
    return right_->Extend(batch, info);
  }
  absl::Status WriteInPlace(absl::Span<const Slot> slots,
                            const TensorDict& rows, InPlace kind) override {
    return right_->WriteInPlace(slots, rows, kind);
  }
  absl::Status Clear() override { return right_->Clear(); }
  absl::Status AddObserver(WriteObserver* observer) override {
    return right_->AddObserver(observer);
  }
  void RemoveObserver(WriteObserver* observer) override {
    right_->RemoveObserver(observer);
  }
  StorageUsage MemoryUsage() const override { return right_->MemoryUsage(); }
  absl::Status Save(const std::string& directory) const override {
    return right_->Save(directory);
  }
  absl::Status Load(const std::string& directory,
                    const StorageLoadOptions& options) override {
    return right_->Load(directory, options);
  }

 protected:
  Storage& right() const { return *right_; }
  absl::Status ReadKeys(absl::Span<const Slot> slots,
                        std::optional<absl::Span<const std::string>> keys,
                        TensorDict* out) const override {
    return keys.has_value() ? right_->ReadLeaves(slots, *keys, out)
                            : right_->Read(slots, out);
  }

 private:
  const std::unique_ptr<Storage> right_;
};

using Keys = std::optional<absl::Span<const std::string>>;

struct ReadsTheFirstSlotTwice final : WrongStorage {
  using WrongStorage::WrongStorage;
  absl::Status ReadKeys(absl::Span<const Slot> slots, Keys keys,
                        TensorDict* out) const override {
    std::vector<Slot> others(slots.begin(), slots.end());
    if (others.size() > 1) others[1] = others[0];
    return WrongStorage::ReadKeys(others, keys, out);
  }
};
struct ReadsAllLeaves final : WrongStorage {
  using WrongStorage::WrongStorage;
  absl::Status ReadKeys(absl::Span<const Slot> slots, Keys,
                        TensorDict* out) const override {
    return right().Read(slots, out);
  }
};
struct MakesTensorsAnew final : WrongStorage {
  using WrongStorage::WrongStorage;
  absl::Status ReadKeys(absl::Span<const Slot> slots, Keys keys,
                        TensorDict* out) const override {
    TensorDict made;
    const absl::Status status = WrongStorage::ReadKeys(slots, keys, &made);
    if (status.ok()) *out = made;
    return status;
  }
};
struct EmptiesOutBeforeItLooks final : WrongStorage {
  using WrongStorage::WrongStorage;
  absl::Status ReadKeys(absl::Span<const Slot> slots, Keys keys,
                        TensorDict* out) const override {
    *out = TensorDict();
    return WrongStorage::ReadKeys(slots, keys, out);
  }
};
struct LendsTheRowsThatItReads final : WrongStorage {
  using WrongStorage::WrongStorage;
  absl::Status ReadKeys(absl::Span<const Slot> slots, Keys keys,
                        TensorDict* out) const override {
    if (slots.empty()) return WrongStorage::ReadKeys(slots, keys, out);
    const auto count = static_cast<int64_t>(slots.size());
    auto lease = right().Lease({slots[0], count});
    if (!lease.ok()) return lease.status();
    *out = lease->rows();
    return absl::OkStatus();
  }
};
struct ReadsIntoPlacesByTheirOrder final : WrongStorage {
  using WrongStorage::WrongStorage;
  absl::Status ReadInto(absl::Span<const Slot> slots,
                        absl::Span<const size_t> leaves,
                        absl::Span<const BoundLeaf> places) const override {
    std::vector<size_t> sorted(leaves.begin(), leaves.end());
    std::sort(sorted.begin(), sorted.end());
    return right().ReadInto(slots, sorted, places);
  }
};

struct KeepsTheOldestOfALongBatch final : WrongStorage {
  using WrongStorage::WrongStorage;
  absl::StatusOr<ExtendResult> Extend(const TensorDict& batch,
                                      const WriteInfo& info) override {
    const int64_t steps = batch.batch_shape()[1];
    const int64_t kept = std::min(steps, lanes().capacity);
    auto result = right().Extend(*batch.Slice(1, 0, kept), info);
    if (result.ok())
      result->rows_dropped = batch.batch_shape()[0] * (steps - kept);
    return result;
  }
};
struct WritesARefusedBatchOver final : WrongStorage {
  using WrongStorage::WrongStorage;
  absl::StatusOr<ExtendResult> Extend(const TensorDict& batch,
                                      const WriteInfo& info) override {
    auto result = right().Extend(batch, info);
    if (result.ok()) {
      last = batch;
    } else {
      RILL_RETURN_IF_ERROR(right().Extend(last, info).status());
    }
    return result;
  }
  TensorDict last;
};
struct FirstOfARepeatedSlotWins final : WrongStorage {
  using WrongStorage::WrongStorage;
  absl::Status WriteInPlace(absl::Span<const Slot> slots,
                            const TensorDict& rows, InPlace kind) override {
    const std::vector<Slot> back(slots.rbegin(), slots.rend());
    std::vector<int64_t> order;
    for (size_t i = slots.size(); i > 0; --i) {
      order.push_back(static_cast<int64_t>(i - 1));
    }
    return right().WriteInPlace(back, *rows.Gather(order), kind);
  }
};
struct ReplacesWhatItShallPatch final : WrongStorage {
  using WrongStorage::WrongStorage;
  absl::Status WriteInPlace(absl::Span<const Slot> slots,
                            const TensorDict& rows, InPlace) override {
    return right().WriteAt(slots, rows);
  }
};
struct NeverClears final : WrongStorage {
  using WrongStorage::WrongStorage;
  absl::Status Clear() override { return absl::OkStatus(); }
};
struct TakesNoMemory final : WrongStorage {
  using WrongStorage::WrongStorage;
  StorageUsage MemoryUsage() const override { return {}; }
};
struct KeepsWhatItHasAtALoad final : WrongStorage {
  using WrongStorage::WrongStorage;
  absl::Status Load(const std::string& directory,
                    const StorageLoadOptions& options) override {
    if (size() > 0) return absl::OkStatus();
    return right().Load(directory, options);
  }
};
struct RemovesTheOldSaveFirst final : WrongStorage {
  using WrongStorage::WrongStorage;
  absl::Status Save(const std::string& directory) const override {
    RILL_RETURN_IF_ERROR(RemoveAll(directory));
    return right().Save(directory);
  }
};

// Passes events on, changed.
class WrongEvents : public WriteObserver {
 public:
  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override {
    to->OnAttach(lanes, cursors);
  }
  void OnRetire(const WriteEvent& event) override { to->OnRetire(event); }
  void OnWrite(const WriteEvent& event) override { to->OnWrite(event); }
  void OnClear() override { to->OnClear(); }
  WriteObserver* to = nullptr;
};
struct RetiresAfterTheWrite final : WrongEvents {
  void OnRetire(const WriteEvent&) override {}
  void OnWrite(const WriteEvent& event) override {
    to->OnWrite(event);
    if (!event.retired.empty()) to->OnRetire(event);
  }
};
struct WithoutEnds final : WrongEvents {
  void OnWrite(const WriteEvent& event) override {
    WriteEvent other = event;
    const std::vector<uint8_t> none(event.ends.size(), 0);
    other.ends = none;
    to->OnWrite(other);
  }
};
struct WithoutFirstRows final : WrongEvents {
  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override {
    to->OnAttach(lanes, cursors);
    is_new = !cursors.empty() && cursors[0].written > 0;
  }
  void OnWrite(const WriteEvent& event) override {
    if (!std::exchange(is_new, false)) to->OnWrite(event);
  }
  bool is_new = false;
};
template <typename Events>
struct Tells final : WrongStorage {
  using WrongStorage::WrongStorage;
  absl::Status AddObserver(WriteObserver* observer) override {
    Events& one = events[observer];
    one.to = observer;
    return right().AddObserver(&one);
  }
  void RemoveObserver(WriteObserver* observer) override {
    if (const auto it = events.find(observer); it != events.end()) {
      right().RemoveObserver(&it->second);
      events.erase(it);
    }
  }
  std::map<WriteObserver*, Events> events;
};

using TellsOfRetiredRowsLate = Tells<RetiresAfterTheWrite>;
using TellsOfNoEnds = Tells<WithoutEnds>;
using TellsNoLateObserver = Tells<WithoutFirstRows>;

absl::StatusOr<std::unique_ptr<Storage>> MakeDense(int64_t capacity,
                                                   int64_t lanes,
                                                   const TensorDictSpec& spec) {
  return DenseStorage::Create(
      {.capacity = capacity, .lanes = lanes, .spec = spec});
}

template <typename T, typename Suite>
WrongPart<Suite> WrongOf(std::string name, std::string test, std::string says) {
  StorageCase one;
  one.name = name;
  one.create = [](int64_t capacity, int64_t lanes, const TensorDictSpec& spec)
      -> absl::StatusOr<std::unique_ptr<Storage>> {
    RILL_ASSIGN_OR_RETURN(auto right, MakeDense(capacity, lanes, spec));
    return std::make_unique<T>(std::move(right));
  };
  return {std::move(name), std::move(test), std::move(says), std::move(one)};
}

std::vector<WrongPart<RowReaderConformanceTest>> WrongReaders() {
#define RILL_WRONG(name, test, says) \
  WrongOf<name, RowReaderConformanceTest>(#name, test, says)
  return {
      RILL_WRONG(ReadsTheFirstSlotTwice, "SeesEveryWrite", "a lane"),
      RILL_WRONG(ReadsAllLeaves, "ReadLeavesGivesJustThose",
                 "rows.num_leaves()"),
      RILL_WRONG(MakesTensorsAnew, "ReadReusesTensorsThatFit", "raw_data()"),
      RILL_WRONG(EmptiesOutBeforeItLooks,
                 "DeadSlotsAreOutOfRangeAndOutIsUntouched",
                 "out.CheckEqual(before)"),
      RILL_WRONG(LendsTheRowsThatItReads, "RowsThatWereReadDoNotChange",
                 "rows.CheckEqual(before)"),
      RILL_WRONG(ReadsIntoPlacesByTheirOrder, "ReadIntoFillsLeavesThatAreBound",
                 "ReadInto"),
  };
#undef RILL_WRONG
}
RILL_REFUSES_WRONG_PARTS(RowReaderConformanceTest, WrongReaders);

std::vector<WrongPart<StorageConformanceTest>> WrongStorages() {
#define RILL_WRONG(name, test, says) \
  WrongOf<name, StorageConformanceTest>(#name, test, says)
  const std::string observers = "ObserversHearOfWritesInOrder";
  return {
      RILL_WRONG(KeepsTheOldestOfALongBatch, "ExtendWorksAtEverySize",
                 "cursors()"),
      RILL_WRONG(WritesARefusedBatchOver, "BatchesThatDoNotFitChangeNothing",
                 "reader().size()"),
      RILL_WRONG(FirstOfARepeatedSlotWins, "OfASlotNamedTwiceTheLaterRowWins",
                 "values of slot 2"),
      RILL_WRONG(ReplacesWhatItShallPatch,
                 "PatchWritesRowsAndKeepsTheirGenerations",
                 "generations.Get(slot)"),
      RILL_WRONG(NeverClears, "ClearForgetsRowsAndKeepsTheSpec", "size()"),
      RILL_WRONG(TakesNoMemory, "MemoryUsageTellsWhatToPlanFor", "row_bytes"),
      RILL_WRONG(KeepsWhatItHasAtALoad, "LoadBringsBackRowsSlotsAndCursors",
                 "cursors()"),
      RILL_WRONG(RemovesTheOldSaveFirst, "FailedSavesLeaveTheOldDirectory",
                 "Load(directory)"),
      RILL_WRONG(TellsOfRetiredRowsLate, observers, "journal.calls"),
      RILL_WRONG(TellsOfNoEnds, "ExtendWorksAtEverySize", "values of slot"),
      RILL_WRONG(TellsNoLateObserver, "LateObserversLearnOfAllLiveRows",
                 "live: "),
  };
#undef RILL_WRONG
}
RILL_REFUSES_WRONG_PARTS(StorageConformanceTest, WrongStorages);

}  // namespace
}  // namespace rill
