// SPDX-License-Identifier: Apache-2.0
// Behaviour of DenseStorage alone; dense_storage_conformance_test has the rest.
#include "rill/storage/dense_storage.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/device/device.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"
#include "rill/specs/spec.h"
#include "rill/storage/conformance/conformance_rows.h"
#include "rill/storage/conformance/mirror_observer.h"
#include "rill/storage/conformance/storage_oracle.h"
#include "rill/storage/slot_lease.h"
#include "rill/storage/storage.h"
#include "rill/storage/storage_layout.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A batch [time] whose only leaf holds first, first + 1, ...
TensorDict Count(float first, int64_t steps) {
  TensorDict batch({steps});
  auto tensor = Tensor::Zeros(DType::kFloat32, {steps, 1});
  EXPECT_THAT(tensor, IsOk());
  for (int64_t i = 0; i < steps; ++i) {
    tensor->data<float>()[i] = first + static_cast<float>(i);
  }
  RILL_EXPECT_OK(batch.Set("observation", *tensor));
  return batch;
}

TEST(DenseStorageTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(std::unique_ptr<Storage> storage,
                            DenseStorage::Create({.capacity = 5}));
  RILL_ASSERT_OK_AND_ASSIGN(ExtendResult result, storage->Extend(Count(0, 3)));
  EXPECT_EQ(result.rows_written, 3);
  RILL_ASSERT_OK(storage->Extend(Count(3, 4)));
  EXPECT_EQ(storage->size(), 5);
  EXPECT_EQ(storage->cursors()[0].written, 7);

  TensorDict rows;
  RILL_ASSERT_OK(storage->Read({0, 1, 2, 3, 4}, &rows));
  RILL_ASSERT_OK_AND_ASSIGN(absl::Span<float> values,
                            rows.Flat<float>("observation"));
  EXPECT_THAT(values, ElementsAre(5, 6, 2, 3, 4));
}

// One step of all lanes, or of some of them, or several: against plain arrays.
TEST(DenseStorageTest, ThousandsOfLanesHoldWhatWasWritten) {
  const Lanes lanes = {.count = 3000, .capacity = 4};
  for (const StorageOrder order :
       {StorageOrder::kLaneMajor, StorageOrder::kTimeMajor}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        std::unique_ptr<Storage> storage,
        DenseStorage::Create({.capacity = lanes.num_slots(),
                              .lanes = lanes.count,
                              .order = order}));
    std::vector<float> want(lanes.num_slots());
    std::vector<int64_t> written(lanes.count);
    float value = 0;
    for (int64_t write = 0; write < 30; ++write) {
      const int64_t first = write % 5 == 3 ? 700 : 0;
      const int64_t count = write % 5 == 3 ? 1100 : lanes.count;
      const int64_t steps = write % 7 == 6 ? 3 : 1;
      TensorDict batch({count, steps});
      RILL_ASSERT_OK_AND_ASSIGN(
          Tensor tensor, Tensor::Zeros(DType::kFloat32, {count, steps, 1}));
      for (int64_t i = 0; i < count * steps; ++i) {
        const int64_t lane = first + i / steps;
        tensor.data<float>()[i] = ++value;
        want[lanes.SlotOf(lane, written[lane]++ % lanes.capacity)] = value;
      }
      RILL_ASSERT_OK(batch.Set("observation", tensor));
      RILL_ASSERT_OK(storage->Extend(batch, {.first_lane = first}).status());
      std::vector<Slot> slots;
      for (Slot slot = 0; slot < lanes.num_slots(); ++slot) {
        if (want[slot] != 0) slots.push_back(slot);
      }
      ASSERT_EQ(storage->size(), static_cast<int64_t>(slots.size()));
      TensorDict rows;
      RILL_ASSERT_OK(storage->Read(slots, &rows));
      RILL_ASSERT_OK_AND_ASSIGN(absl::Span<float> values,
                                rows.Flat<float>("observation"));
      for (size_t i = 0; i < slots.size(); ++i) {
        ASSERT_EQ(values[i], want[slots[i]]) << slots[i] << ", write " << write;
      }
    }
  }
}

// Lets rows change a few at a time, and looks at them meanwhile.
class AskedObserver final : public WriteObserver {
 public:
  explicit AskedObserver(const Storage* storage) : storage_(storage) {}

  void OnAttach(const Lanes& /*lanes*/,
                absl::Span<const Cursor> /*cursors*/) override {}
  void OnRetire(const WriteEvent& /*event*/) override { has_retired_ = true; }
  int64_t BeforeOverwrite(absl::Span<const SlotRange> rows,
                          int64_t done) override {
    EXPECT_TRUE(has_retired_);
    int64_t count = 0;
    for (const SlotRange& range : rows) {
      for (Slot slot = range.first; slot < range.first + range.count; ++slot) {
        // Written so far: the first `done`, and no other.
        EXPECT_EQ(values_[slot] >= first_new_, count++ < done) << slot;
      }
    }
    EXPECT_LT(done, count);
    // A read of these rows waits for nobody.
    TensorDict out;
    RILL_EXPECT_OK(storage_->Read({rows[0].first}, &out));
    asked_ += 1;
    return 1 + asked_ % 3;
  }
  void OnWrite(const WriteEvent& /*event*/) override { has_retired_ = false; }
  void OnClear() override {}

  void Watch(absl::Span<const float> values, float first_new) {
    values_ = values;
    first_new_ = first_new;
  }
  int64_t asked() const { return asked_; }

 private:
  const Storage* const storage_;
  absl::Span<const float> values_;
  float first_new_ = 0;
  bool has_retired_ = false;
  int64_t asked_ = 0;
};

TEST(DenseStorageTest, AnAppendAsksBeforeItOverwritesRows) {
  RILL_ASSERT_OK_AND_ASSIGN(auto storage,
                            DenseStorage::Create({.capacity = 20}));
  ASSERT_TRUE(storage->traits().asks_before_overwriting);
  RILL_ASSERT_OK(storage->Extend(Count(0, 33)));
  RILL_ASSERT_OK_AND_ASSIGN(const SlotLease all,
                            storage->Lease({.first = 0, .count = 20}));
  const Tensor* rows = all.rows().Find("observation");
  AskedObserver observer(storage.get());
  RILL_ASSERT_OK(storage->AddObserver(&observer));
  observer.Watch({rows->data<float>(), 20}, 33);
  RILL_ASSERT_OK(storage->Extend(Count(33, 6)));  // Slots 13 .. 18.
  EXPECT_EQ(observer.asked(), 3);                 // 2, 3 and 1 rows.
  observer.Watch({rows->data<float>(), 20}, 39);
  RILL_ASSERT_OK(storage->Extend(Count(39, 4)));  // 19, and 0 .. 2.
  EXPECT_GT(observer.asked(), 4);
  storage->RemoveObserver(&observer);
  for (Slot slot = 0; slot < 20; ++slot) {
    EXPECT_EQ(rows->data<float>()[slot],
              static_cast<float>(slot < 3 ? slot + 40 : slot + 20));
  }
}

// A table that no cache holds, whose rows are written past the caches.
TEST(DenseStorageTest, LargeWritesAreStoredByteForByte) {
  constexpr int64_t kCapacity = 8192;
  static constexpr int64_t kWidth = 9'001;
  const auto batch_of = [](int64_t first, int64_t rows) {
    TensorDict batch({rows});
    for (const auto& [key, width] :
         {std::pair("seen", kWidth), std::pair("state", int64_t{9}),
          std::pair("next/seen", kWidth)}) {
      auto tensor = Tensor::Empty(DType::kUInt8, {rows, width});
      EXPECT_THAT(tensor, IsOk());
      for (int64_t i = 0; i < rows * width; ++i) {
        tensor->data<uint8_t>()[i] =
            static_cast<uint8_t>((first + i / width) * 31 + i % width * 7);
      }
      RILL_EXPECT_OK(batch.Set(key, *tensor));
    }
    return batch;
  };
  for (const auto& [layout, dedup_next] :
       {std::pair(StorageLayout::kRows, false),
        std::pair(StorageLayout::kRows, true),
        std::pair(StorageLayout::kColumns, false)}) {
    RILL_ASSERT_OK_AND_ASSIGN(auto storage,
                              DenseStorage::Create({.capacity = kCapacity,
                                                    .layout = layout,
                                                    .dedup_next = dedup_next}));
    const TensorDict first = batch_of(0, 40);
    RILL_ASSERT_OK(storage->Extend(first));
    const std::vector<Slot> places = {7, 3, 39, 3};
    const TensorDict other = batch_of(100, 4);
    RILL_ASSERT_OK(storage->WriteAt(places, other));
    // One leaf of rows that have it already: the others are not touched.
    TensorDict part({20});
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict again, first.Slice(0, 10, 30));
    RILL_ASSERT_OK(part.Set("seen", *again.Find("seen")));
    std::vector<Slot> slots(40);
    std::iota(slots.begin(), slots.end(), 0);
    RILL_ASSERT_OK(
        storage->WriteAt(absl::MakeConstSpan(slots).subspan(10, 20), part));
    TensorDict rows;
    RILL_ASSERT_OK(storage->Read(slots, &rows));
    for (Slot slot = 0; slot < 40; ++slot) {
      const int64_t place = slot == 7 ? 0 : slot == 39 ? 2 : slot == 3 ? 3 : -1;
      RILL_ASSERT_OK_AND_ASSIGN(
          const TensorDict want,
          place < 0 ? first.SelectDim(0, slot) : other.SelectDim(0, place));
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got, rows.SelectDim(0, slot));
      want.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
        EXPECT_THAT(got.Find(key)->BitEquals(leaf), IsOkAndHolds(true))
            << key << " of slot " << slot;
      });
    }
  }
}

// 10 MB, which go past the caches: wide and narrow leaves, in every layout, and
// again into the same batch.
TEST(DenseStorageTest, LargeBatchesAreReadByteForByte) {
  constexpr int64_t kRows = 11;
  constexpr int64_t kWidth = 20'003;
  constexpr const char* kKeys[] = {"seen", "next/seen", "state"};
  const auto value = [](size_t leaf, int64_t row, int64_t at) {
    // The next observation is that of the row behind.
    const int64_t step = row + (leaf == 1 ? 1 : 0);
    return static_cast<uint8_t>((step * 31 + at * 7 + (leaf == 2 ? 5 : 0)) %
                                251);
  };
  TensorDict batch({kRows});
  for (size_t leaf = 0; leaf < 3; ++leaf) {
    const int64_t width = leaf == 2 ? 9 : kWidth;
    RILL_ASSERT_OK_AND_ASSIGN(Tensor tensor,
                              Tensor::Empty(DType::kUInt8, {kRows, width}));
    for (int64_t i = 0; i < kRows * width; ++i) {
      tensor.data<uint8_t>()[i] = value(leaf, i / width, i % width);
    }
    RILL_ASSERT_OK(batch.Set(kKeys[leaf], tensor));
  }
  for (const bool dedup_next : {false, true}) {
    for (const StorageLayout layout :
         {StorageLayout::kRows, StorageLayout::kColumns}) {
      RILL_ASSERT_OK_AND_ASSIGN(
          auto storage,
          DenseStorage::Create(
              {.capacity = kRows, .layout = layout, .dedup_next = dedup_next}));
      RILL_ASSERT_OK(storage->Extend(batch));
      TensorDict out;
      for (int64_t turn = 1; turn <= 2; ++turn) {
        std::vector<Slot> slots(256);
        for (size_t i = 0; i < slots.size(); ++i) {
          slots[i] = static_cast<int64_t>(i * i + i) * turn % kRows;
        }
        RILL_ASSERT_OK(storage->Read(slots, &out));
        for (size_t leaf = 0; leaf < 3; ++leaf) {
          RILL_ASSERT_OK_AND_ASSIGN(absl::Span<uint8_t> got,
                                    out.Flat<uint8_t>(kKeys[leaf]));
          const size_t width = got.size() / slots.size();
          for (size_t i = 0; i < got.size(); ++i) {
            ASSERT_EQ(got[i], value(leaf, slots[i / width],
                                    static_cast<int64_t>(i % width)))
                << kKeys[leaf] << " byte " << i;
          }
        }
      }
    }
  }
}

// --- Options -----------------------------------------------------------------

TEST(DenseStorageTest, WrongOptionsAreNamed) {
  EXPECT_THAT(DenseStorage::Create({}), IsInvalidArgument("capacity: got 0"));
  EXPECT_THAT(DenseStorage::Create({.capacity = -1}),
              IsInvalidArgument("capacity"));
  EXPECT_THAT(DenseStorage::Create({.capacity = 4, .lanes = 0}),
              IsInvalidArgument("lanes: got 0"));
  EXPECT_THAT(DenseStorage::Create(
                  {.capacity = int64_t{1} << 40, .lanes = int64_t{1} << 25}),
              IsInvalidArgument("lanes"));
  for (const int64_t capacity : {(int64_t{1} << 40) + 1, INT64_MAX}) {
    EXPECT_THAT(DenseStorage::Create({.capacity = capacity}),
                IsInvalidArgument(absl::StrCat("capacity: got ", capacity,
                                               ", want in [1, ")));
  }
  EXPECT_THAT(
      DenseStorage::Create({.capacity = 10, .lanes = 4}),
      IsInvalidArgument("capacity: got 10, want a multiple of lanes = 4"));
  EXPECT_THAT(DenseStorage::Create(
                  {.capacity = 4, .memory_kind = MemoryKind::kMappedFile}),
              IsInvalidArgument("memory_kind"));
  EXPECT_THAT(
      DenseStorage::Create({.capacity = 4, .memory_kind = MemoryKind::kPinned}),
      IsInvalidArgument("name a device"));
  TensorDictSpec wide;
  RILL_ASSERT_OK(wide.Set("x", LeafSpec{DType::kUInt8, {1 << 30}}));
  EXPECT_THAT(
      DenseStorage::Create({.capacity = int64_t{1} << 40, .spec = wide}),
      IsInvalidArgument("lower the capacity"));
}

// The most slots that there are, of rows that take no memory.
TEST(DenseStorageTest, RowsWithoutBytesMayBeAsManyAsThereAreSlots) {
  TensorDictSpec spec;
  RILL_ASSERT_OK(spec.Set("x", LeafSpec{DType::kFloat32, {0}}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto storage,
      DenseStorage::Create({.capacity = int64_t{1} << 40, .spec = spec}));
  TensorDict batch({3});
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor x,
                            Tensor::Zeros(DType::kFloat32, {3, 0}));
  RILL_ASSERT_OK(batch.Set("x", x));
  RILL_ASSERT_OK(storage->Extend(batch));
  EXPECT_EQ(storage->size(), 3);
}

TEST(DenseStorageTest, MemoryThatCannotBeHadIsResourceExhausted) {
  EXPECT_THAT(DenseStorage::Create(
                  {.capacity = int64_t{1} << 40, .spec = ConformanceSpec()}),
              IsResourceExhausted());
  // Lazy: the write fails, and the next one may go well.
  RILL_ASSERT_OK_AND_ASSIGN(auto storage,
                            DenseStorage::Create({.capacity = 8}));
  const TensorDict batch = Count(0, 2);
  {
    const ScopedFaultHook hook("host.allocate",
                               absl::ResourceExhaustedError("no memory"));
    EXPECT_THAT(storage->Extend(batch), IsResourceExhausted());
  }
  EXPECT_EQ(storage->size(), 0);
  EXPECT_TRUE(storage->spec().empty());
  RILL_EXPECT_OK(storage->Extend(batch));
}

TEST(DenseStorageTest, GivenSpecKeepsItsDomains) {
  TensorDictSpec spec;
  RILL_ASSERT_OK(spec.Set("action", LeafSpec::Categorical(4)));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto storage, DenseStorage::Create({.capacity = 8, .spec = spec}));
  EXPECT_EQ(storage->spec(), spec);
}

TEST(DenseStorageTest, MemoryUsageIsThatOfAllSlots) {
  TensorDictSpec spec;
  RILL_ASSERT_OK(spec.Set("seen", LeafSpec::Unbounded(DType::kUInt8, {64})));
  RILL_ASSERT_OK(spec.Set("action", LeafSpec::Unbounded(DType::kInt64, {})));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto storage,
      DenseStorage::Create(
          {.capacity = 10, .layout = StorageLayout::kColumns, .spec = spec}));
  const StorageUsage usage = storage->MemoryUsage();
  EXPECT_EQ(usage.row, 64 + 8);
  EXPECT_EQ(usage.memory, 10 * (64 + 8));
  EXPECT_EQ(usage.full, usage.memory);
  EXPECT_EQ(usage.device, 0);
  EXPECT_EQ(usage.disk, 0);
  EXPECT_EQ(usage.saved, 0);
  EXPECT_EQ(usage.disk_free, std::nullopt);
}

TEST(DenseStorageTest, RowsLieWhereTheyWereAskedTo) {
  const auto place = [](const DenseStorage::Options& options) {
    auto storage = DenseStorage::Create(options);
    EXPECT_THAT(storage, IsOk());
    RILL_EXPECT_OK((*storage)->Extend(Count(0, 2)));
    auto lease = (*storage)->Lease({0, 2});
    EXPECT_THAT(lease, IsOk());
    const Tensor rows = *lease->rows().Find("observation");
    EXPECT_EQ((*storage)->device(), rows.device());
    return std::tuple(rows.device(), rows.memory_kind());
  };
  EXPECT_EQ(place({.capacity = 4}),
            std::tuple(Device::Cpu(), MemoryKind::kPageable));
  EXPECT_EQ(place({.capacity = 4, .device = Device::Fake(1)}),
            std::tuple(Device::Fake(1), MemoryKind::kDevice));
  EXPECT_EQ(place({.capacity = 4,
                   .device = Device::Fake(0),
                   .memory_kind = MemoryKind::kPinned}),
            std::tuple(Device::Cpu(), MemoryKind::kPinned));
}

// --- Layouts -----------------------------------------------------------------

TEST(DenseStorageTest, SavesMoveBetweenAllLayoutsOrdersAndDevices) {
  std::vector<DenseStorage::Options> forms;
  for (const auto layout : {StorageLayout::kRows, StorageLayout::kColumns}) {
    for (const auto order :
         {StorageOrder::kLaneMajor, StorageOrder::kTimeMajor}) {
      for (const Device device : {Device::Cpu(), Device::Fake(0)}) {
        forms.push_back({.capacity = 12,
                         .lanes = 3,
                         .layout = layout,
                         .order = order,
                         .device = device});
      }
    }
  }
  const std::string directory = FreshPath("moved");
  const std::vector<int64_t> ids = SlotsFrom(50, 3 * 6);
  for (size_t i = 0; i < forms.size(); ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(auto from, DenseStorage::Create(forms[i]));
    RILL_ASSERT_OK(from->Extend(ConformanceRows({3, 6}, ids)));
    RILL_ASSERT_OK(from->Save(directory));
    RILL_ASSERT_OK_AND_ASSIGN(
        auto to, DenseStorage::Create(forms[(3 * i + 1) % forms.size()]));
    RILL_ASSERT_OK(to->Load(directory));
    TensorDict want;
    TensorDict got;
    RILL_ASSERT_OK(from->Read(SlotsFrom(0, 12), &want));
    RILL_ASSERT_OK(to->Read(SlotsFrom(0, 12), &got));
    RILL_EXPECT_OK(got.CheckEqual(want));
    EXPECT_EQ(from->cursors(), to->cursors());
  }
}

// --- Event keys --------------------------------------------------------------

// Keeps the values of the last events.
class LastEvent : public WriteObserver {
 public:
  void OnAttach(const Lanes&, absl::Span<const Cursor>) override { ++attached; }
  void OnRetire(const WriteEvent&) override {}
  void OnWrite(const WriteEvent& event) override {
    ends.assign(event.ends.begin(), event.ends.end());
    trajectories.assign(event.trajectory_ids.begin(),
                        event.trajectory_ids.end());
    priorities.assign(event.priorities.begin(), event.priorities.end());
    versions.assign(event.policy_versions.begin(), event.policy_versions.end());
  }
  void OnClear() override {}

  int attached = 0;
  std::vector<uint8_t> ends;
  std::vector<int64_t> trajectories;
  std::vector<double> priorities;
  std::vector<int64_t> versions;
};

Tensor Flags(const std::vector<int>& values) {
  auto tensor =
      Tensor::Zeros(DType::kBool, {static_cast<int64_t>(values.size()), 1});
  EXPECT_THAT(tensor, IsOk());
  for (size_t i = 0; i < values.size(); ++i) {
    tensor->data<bool>()[i] = values[i] != 0;
  }
  return *tensor;
}

// A name like S8 is the number of the TorchRL behaviour that a test repeats.
TEST(DenseStorageTest, S8_AStepEndsWhereAnyOfTheEndKeysIsTrue) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto storage,
      DenseStorage::Create(
          {.capacity = 4,
           .event_keys = {.ends = {"terminated", "truncated", "absent"}}}));
  LastEvent last;
  RILL_ASSERT_OK(storage->AddObserver(&last));
  TensorDict batch({4});
  RILL_ASSERT_OK(batch.Set("terminated", Flags({0, 1, 0, 1})));
  RILL_ASSERT_OK(batch.Set("truncated", Flags({0, 0, 1, 1})));
  RILL_ASSERT_OK(storage->Extend(batch));
  EXPECT_THAT(last.ends, ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(last.trajectories, IsEmpty());
  EXPECT_THAT(last.priorities, IsEmpty());
  EXPECT_THAT(last.versions, IsEmpty());
  // A patch of one of the flags: the other still counts.
  TensorDict patch({2});
  RILL_ASSERT_OK(patch.Set("terminated", Flags({1, 0})));
  RILL_ASSERT_OK(storage->WriteAt({0, 2}, patch));
  EXPECT_THAT(last.ends, ElementsAre(1, 1));
  storage->RemoveObserver(&last);
}

TEST(DenseStorageTest, PatchesReportOnlyWhatTheyHold) {
  RILL_ASSERT_OK_AND_ASSIGN(auto storage,
                            DenseStorage::Create({.capacity = 4}));
  LastEvent last;
  RILL_ASSERT_OK(storage->AddObserver(&last));
  RILL_ASSERT_OK(storage->Extend(ConformanceRows({4}, {1, 2, 3, 4})));
  EXPECT_EQ(last.versions.size(), 4);
  const std::vector<size_t> leaves = {ConformanceLeafNumber("priority")};
  RILL_ASSERT_OK(
      storage->WriteAt({2, 0}, ConformanceRows({2}, {7, 8}, leaves)));
  EXPECT_THAT(last.ends, IsEmpty());
  EXPECT_THAT(last.versions, IsEmpty());
  EXPECT_THAT(last.priorities,
              ElementsAre(ConformancePriority(7), ConformancePriority(8)));
  storage->RemoveObserver(&last);
}

TEST(DenseStorageTest, S7_TrajectoriesAreTheFirstOfTheirKeysThatRowsHave) {
  const auto ids = [](int64_t first) {
    return *Tensor::From<int64_t>({first, first, first + 1}, {3});
  };
  TensorDict ends({3});
  RILL_ASSERT_OK(ends.Set("next/done", Flags({0, 1, 0})));
  TensorDict episodes = ends;
  RILL_ASSERT_OK(episodes.Set("episode", ids(5)));
  TensorDict collected = episodes;
  RILL_ASSERT_OK(collected.Set("collector/traj_ids", ids(7)));
  const auto reported = [](const TensorDict& batch) {
    auto storage = *DenseStorage::Create({.capacity = 4});
    LastEvent last;
    RILL_EXPECT_OK(storage->AddObserver(&last));
    RILL_EXPECT_OK(storage->Extend(batch));
    storage->RemoveObserver(&last);
    EXPECT_THAT(last.ends, ElementsAre(0, 1, 0));
    return last.trajectories;
  };
  EXPECT_THAT(reported(ends), IsEmpty());
  EXPECT_THAT(reported(episodes), ElementsAre(5, 5, 6));
  EXPECT_THAT(reported(collected), ElementsAre(7, 7, 8));
}

// The rows are written, but the event for the observers cannot be read.
TEST(DenseStorageTest, ObserversAreAttachedAnewWhereTheirEventFails) {
  RILL_ASSERT_OK_AND_ASSIGN(auto storage,
                            DenseStorage::Create({.capacity = 4}));
  MirrorObserver mirror;
  RILL_ASSERT_OK(storage->AddObserver(&mirror));
  RILL_ASSERT_OK(storage->Extend(ConformanceRows({4}, {1, 2, 3, 4})));
  StorageOracle oracle({.count = 1, .capacity = 4});
  oracle.Extend(0, 1, 4, {1, 2, 3, 4});
  const TensorDict patch = ConformanceRows({2}, {7, 8});
  int64_t failures = 0;
  for (int64_t fail_at = 0; failures == fail_at; ++fail_at) {
    int64_t allocations = 0;
    ScopedFaultHook hook([&](absl::string_view point, absl::string_view) {
      return point == "host.allocate" && allocations++ == fail_at
                 ? absl::ResourceExhaustedError("injected")
                 : absl::OkStatus();
    });
    failures += storage->WriteAt({2, 0}, patch).ok() ? 0 : 1;
  }
  EXPECT_GT(failures, 0);
  std::vector<size_t> leaves(ConformanceSpec().leaves().size());
  std::iota(leaves.begin(), leaves.end(), size_t{0});
  oracle.WriteAt({2, 0}, leaves, {7, 8});
  EXPECT_EQ(mirror.Compare(oracle), "");
  storage->RemoveObserver(&mirror);
}

TEST(DenseStorageTest, EventLeavesOfAnotherFormAreRefused) {
  TensorDict batch({2});
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor numbers,
                            Tensor::Zeros(DType::kFloat32, {2, 1}));
  RILL_ASSERT_OK(batch.Set("next/done", numbers));
  RILL_ASSERT_OK_AND_ASSIGN(auto storage,
                            DenseStorage::Create({.capacity = 4}));
  EXPECT_THAT(storage->Extend(batch),
              IsInvalidArgument("EventKeys::ends: leaf \"next/done\""));
  EXPECT_TRUE(storage->spec().empty());
  RILL_ASSERT_OK_AND_ASSIGN(
      auto other,
      DenseStorage::Create({.capacity = 4, .event_keys = {.ends = {}}}));
  RILL_EXPECT_OK(other->Extend(batch));
}

TEST(DenseStorageTest, S9_SignalsWithDimensionsOfTheirOwnAreRefused) {
  const auto refusal = [](const std::string& key, DType dtype) {
    TensorDict batch({2});
    RILL_EXPECT_OK(batch.Set(key, *Tensor::Zeros(dtype, {2, 3, 1})));
    auto storage = *DenseStorage::Create({.capacity = 4});
    const absl::Status refused = storage->Extend(batch).status();
    EXPECT_EQ(storage->size(), 0);
    return refused;
  };
  EXPECT_THAT(refusal("next/done", DType::kBool),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("EventKeys::ends: leaf \"next/done\""),
                             HasSubstr("[3, 1]"), HasSubstr("bool[1]"))));
  EXPECT_THAT(
      refusal("episode", DType::kInt64),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("EventKeys::trajectories: leaf \"episode\""),
                     HasSubstr("[3, 1]"), HasSubstr("int64[1]"))));
}

// --- Long reads --------------------------------------------------------------

TEST(DenseStorageTest, ReadsOfManyMiBAreWhole) {
  // 1.2 MB a row and 40 bytes a row: one row a stay, and some 26,000.
  for (const int64_t width : {int64_t{300000}, int64_t{10}}) {
    const int64_t capacity = width > 10 ? 4 : 40000;
    TensorDict batch({capacity});
    RILL_ASSERT_OK_AND_ASSIGN(
        const Tensor numbers,
        Tensor::Zeros(DType::kFloat32, {capacity, width}));
    for (int64_t i = 0; i < capacity * width; ++i) {
      numbers.data<float>()[i] = static_cast<float>(i % 9973);
    }
    RILL_ASSERT_OK(batch.Set("observation", numbers));
    RILL_ASSERT_OK_AND_ASSIGN(auto storage,
                              DenseStorage::Create({.capacity = capacity}));
    RILL_ASSERT_OK(storage->Extend(batch));
    std::vector<Slot> slots;
    for (Slot slot = capacity; slot > 0; --slot) slots.push_back(slot - 1);
    TensorDict rows;
    RILL_ASSERT_OK(storage->Read(slots, &rows));
    RILL_ASSERT_OK_AND_ASSIGN(const absl::Span<float> got,
                              rows.Flat<float>("observation"));
    for (int64_t i = 0; i < capacity; ++i) {
      ASSERT_EQ(
          std::memcmp(&got[i * width], &numbers.data<float>()[slots[i] * width],
                      width * sizeof(float)),
          0)
          << "row " << i << " of " << width;
    }
    slots.back() = capacity;
    EXPECT_THAT(storage->Read(slots, &rows), IsOutOfRange());
  }
}

// --- Failing devices ---------------------------------------------------------

class FailingDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fake_ = FakeBackend::Install({});
    auto storage =
        DenseStorage::Create({.capacity = 4, .device = Device::Fake(0)});
    RILL_ASSERT_OK(storage);
    storage_ = *std::move(storage);
    RILL_ASSERT_OK(storage_->AddObserver(&last_));
    RILL_ASSERT_OK(storage_->Extend(ConformanceRows({3}, {1, 2, 3})));
    fake_->RunAll();
    last_.attached = 0;
  }
  void TearDown() override {
    storage_->RemoveObserver(&last_);
    storage_.reset();
    EXPECT_EQ(fake_->NumAllocations(0, MemoryKind::kDevice), 0);
    EXPECT_EQ(fake_->NumStreamsAndEvents(), 0);
    EXPECT_THAT(fake_->TakeMisuse(), IsEmpty());
  }
  void ExpectUnchanged() {
    EXPECT_EQ(storage_->size(), 3);
    TensorDict rows;
    RILL_ASSERT_OK(storage_->Read({0, 1, 2}, &rows));
    RILL_EXPECT_OK(rows.CheckEqual(ConformanceRows({3}, {1, 2, 3})));
  }

  const absl::Status failure_ = absl::UnavailableError("fell off the bus");
  FakeBackend* fake_ = nullptr;
  std::unique_ptr<Storage> storage_;
  LastEvent last_;
};

TEST_F(FailingDeviceTest, StagingThatFailsDisturbsNobody) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto storage, DenseStorage::Create({.capacity = 4,
                                          .device = Device::Fake(0),
                                          .spec = TensorDictSpec::Of(
                                              ConformanceRows({1}, {0}))}));
  for (int nth = 1; nth <= 2; ++nth) {  // Pinned memory, and a device's.
    fake_->FailNext(FakeBackend::Operation::kAllocate, nth, failure_);
    EXPECT_EQ(storage->Extend(ConformanceRows({2}, {4, 5})).status(), failure_);
    EXPECT_EQ(storage->size(), 0);
  }
  RILL_EXPECT_OK(storage->Extend(ConformanceRows({2}, {4, 5})));
}

TEST_F(FailingDeviceTest, AWriteThatFailsHalfwayAttachesObserversAgain) {
  // Behind a look at the write before.
  fake_->FailCall(2, failure_);
  EXPECT_EQ(storage_->Extend(ConformanceRows({2}, {4, 5})).status(), failure_);
  EXPECT_TRUE(fake_->Recover());
  EXPECT_EQ(last_.attached, 1);
  EXPECT_THAT(last_.versions, ElementsAre(3, 6, 9));
  fake_->FailCall(1, failure_);
  EXPECT_EQ(storage_->WriteAt({1}, ConformanceRows({1}, {9})), failure_);
  EXPECT_TRUE(fake_->Recover());
  EXPECT_EQ(last_.attached, 2);
  ExpectUnchanged();
}

TEST_F(FailingDeviceTest,
       AWriteThatFailsLaterIsTheErrorOfTheNextAndOfReadsOfItsRows) {
  fake_->FailNext(FakeBackend::Operation::kScatterRows, 1, failure_);
  RILL_EXPECT_OK(storage_->Extend(ConformanceRows({1}, {4})));
  TensorDict rows;
  const auto says_so =
      StatusIs(failure_.code(), AllOf(HasSubstr("its rows are undefined"),
                                      HasSubstr("fell off the bus")));
  EXPECT_THAT(storage_->Read({3}, &rows), says_so);
  fake_->Recover();
  EXPECT_THAT(storage_->Read({3}, &rows), says_so);
  EXPECT_THAT(storage_->Read({0, 3}, &rows), says_so);
  RILL_EXPECT_OK(storage_->Read({0, 1, 2}, &rows));
  EXPECT_THAT(storage_->WriteAt({3}, ConformanceRows({1}, {4})), says_so);
  RILL_EXPECT_OK(storage_->WriteAt({3}, ConformanceRows({1}, {4})));
  RILL_ASSERT_OK(storage_->Read({3, 0}, &rows));
  RILL_EXPECT_OK(rows.CheckEqual(ConformanceRows({2}, {4, 1})));
  fake_->FailNext(FakeBackend::Operation::kScatterRows, 1, failure_);
  RILL_EXPECT_OK(storage_->Extend(ConformanceRows({1}, {5})));
  fake_->RunAll();
  fake_->Recover();
  EXPECT_THAT(storage_->Extend(ConformanceRows({1}, {6})).status(), says_so);
  RILL_EXPECT_OK(storage_->Extend(ConformanceRows({1}, {6})));
  EXPECT_EQ(storage_->cursors()[0].written, 6);
  RILL_ASSERT_OK(storage_->Read({1, 2}, &rows));
  RILL_EXPECT_OK(rows.CheckEqual(ConformanceRows({2}, {6, 3})));
  EXPECT_THAT(storage_->Read({0}, &rows), says_so);
}

// Nor does a lease take the error away: from the next lease, or the next write.
TEST_F(FailingDeviceTest, AWriteThatFailsLaterIsTheErrorOfEachLeaseOfItsRows) {
  fake_->FailNext(FakeBackend::Operation::kScatterRows, 1, failure_);
  RILL_EXPECT_OK(storage_->Extend(ConformanceRows({1}, {4})));
  fake_->RunAll();
  fake_->Recover();
  const auto says_so =
      StatusIs(failure_.code(), HasSubstr("its rows are undefined"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(storage_->Lease({3, 1}), says_so);
    EXPECT_THAT(storage_->Lease({2, 2}), says_so);
    RILL_ASSERT_OK_AND_ASSIGN(const SlotLease lease, storage_->Lease({0, 3}));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict rows,
                              lease.rows().To(Device::Cpu()));
    RILL_EXPECT_OK(rows.CheckEqual(ConformanceRows({3}, {1, 2, 3})));
  }
  EXPECT_THAT(storage_->WriteAt({3}, ConformanceRows({1}, {4})), says_so);
  RILL_EXPECT_OK(storage_->WriteAt({3}, ConformanceRows({1}, {4})));
  RILL_EXPECT_OK(storage_->Lease({3, 1}));
}

TEST_F(FailingDeviceTest, AReadThatFailsLeavesOutAlone) {
  fake_->FailNext(FakeBackend::Operation::kGatherRows, 1, failure_);
  TensorDict out = Count(5, 2);
  EXPECT_EQ(storage_->Read({0, 1}, &out), failure_);
  RILL_EXPECT_OK(out.CheckEqual(Count(5, 2)));
  fake_->Recover();
  ExpectUnchanged();
}

TEST_F(FailingDeviceTest, ALoadThatFailsLeavesTheRows) {
  const std::string directory = FreshPath("failing");
  RILL_ASSERT_OK_AND_ASSIGN(auto other, DenseStorage::Create({.capacity = 4}));
  RILL_ASSERT_OK(other->Extend(ConformanceRows({4}, {6, 7, 8, 9})));
  RILL_ASSERT_OK(other->Save(directory));
  for (const auto operation : {FakeBackend::Operation::kAllocate,
                               FakeBackend::Operation::kScatterRows}) {
    fake_->FailNext(operation, 1, failure_);
    EXPECT_THAT(storage_->Load(directory),
                StatusIs(failure_.code(), HasSubstr(failure_.message())));
    fake_->Recover();
    ExpectUnchanged();
  }
  EXPECT_EQ(last_.attached, 0);
  RILL_EXPECT_OK(storage_->Load(directory));
  EXPECT_EQ(storage_->size(), 4);
}

}  // namespace
}  // namespace rill
