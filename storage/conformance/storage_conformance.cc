// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/conformance/storage_conformance.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "gmock/gmock.h"
#include "rill/storage/conformance/conformance_rows.h"
#include "rill/testing/status_matchers.h"

namespace rill {

StorageSubject::StorageSubject(std::unique_ptr<Storage> storage,
                               const Lanes& lanes,
                               std::unique_ptr<RowReader> reader)
    : storage_(std::move(storage)),
      reader_(std::move(reader)),
      oracle_(lanes),
      mirror_(std::make_unique<MirrorObserver>()) {
  RILL_EXPECT_OK(storage_->AddObserver(mirror_.get()));
}

StorageSubject::~StorageSubject() { storage_->RemoveObserver(mirror_.get()); }

std::vector<int64_t> StorageSubject::NewIds(int64_t count) {
  std::vector<int64_t> ids(count);
  std::iota(ids.begin(), ids.end(), next_id_);
  next_id_ += count;
  return ids;
}

std::vector<int64_t> StorageSubject::Extend(int64_t first_lane,
                                            int64_t num_lanes, int64_t steps) {
  const std::vector<int64_t> ids = NewIds(num_lanes * steps);
  ExtendWith(ConformanceRows({num_lanes, steps}, ids), first_lane, ids);
  return ids;
}

void StorageSubject::ExtendWith(const TensorDict& batch, int64_t first_lane,
                                absl::Span<const int64_t> ids) {
  const Shape& shape = batch.batch_shape();
  const int64_t num_lanes = shape.rank() == 2 ? shape[0] : 1;
  const int64_t steps = shape[shape.rank() - 1];
  const int64_t kept = std::min(steps, oracle_.lanes().capacity);
  const auto result = storage_->Extend(batch, {.first_lane = first_lane});
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->rows_written, num_lanes * kept);
  EXPECT_EQ(result->rows_dropped, num_lanes * (steps - kept));
  oracle_.Extend(first_lane, num_lanes, steps, ids);
}

void StorageSubject::WriteAt(absl::Span<const Slot> slots,
                             absl::Span<const size_t> leaves, InPlace kind) {
  const int64_t n = static_cast<int64_t>(slots.size());
  const std::vector<int64_t> ids = NewIds(n);
  RILL_ASSERT_OK(
      storage_->WriteInPlace(slots, ConformanceRows({n}, ids, leaves), kind));
  oracle_.WriteAt(slots, leaves, ids);
}

void StorageSubject::Clear() {
  RILL_ASSERT_OK(storage_->Clear());
  oracle_.Clear();
}

void StorageSubject::Check(const std::string& when) {
  const std::vector<Slot> live = oracle_.LiveSlots();
  ASSERT_EQ(reader().size(), static_cast<int64_t>(live.size())) << when;
  ASSERT_EQ(reader().cursors(), oracle_.cursors()) << when;
  ASSERT_EQ(mirror_->Compare(oracle_), "") << when;
  if (live.empty()) return;
  TensorDict rows;
  RILL_ASSERT_OK(reader().Read(live, &rows)) << when;
  RILL_ASSERT_OK(rows.CheckEqual(oracle_.Rows(live))) << when;
}

std::unique_ptr<StorageSubject> StorageConformanceTest::Make(int64_t capacity,
                                                             int64_t lanes) {
  auto storage = GetParam().create(
      capacity, lanes,
      GetParam().is_lazy ? TensorDictSpec() : ConformanceSpec());
  EXPECT_THAT(storage, IsOk());
  std::unique_ptr<RowReader> reader;
  if (GetParam().open_reader != nullptr) {
    auto opened = GetParam().open_reader();
    EXPECT_THAT(opened, IsOk());
    reader = *std::move(opened);
  }
  const Lanes want = {.count = lanes, .capacity = capacity / lanes};
  auto subject = std::make_unique<StorageSubject>(*std::move(storage), want,
                                                  std::move(reader));
  EXPECT_EQ(subject->reader().lanes(), want);
  EXPECT_EQ(subject->reader().capacity(), capacity);
  return subject;
}

std::optional<SlotLease> StorageConformanceTest::Lease(const RowReader& reader,
                                                       SlotRange range) {
  auto lease = reader.Lease(range);
  const std::string& no_leases = GetParam().no_leases;
  if (!GetParam().has_leases || !no_leases.empty()) {
    EXPECT_THAT(lease, IsFailedPrecondition(
                           no_leases.empty() ? "\"next/pixels\"" : no_leases));
    return std::nullopt;
  }
  EXPECT_THAT(lease, IsOk());
  return lease.ok() ? std::optional(*std::move(lease)) : std::nullopt;
}

// A test that links the suites may run one of them, as a reader's does, or take
// the subject alone.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StorageConformanceTest);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RowReaderConformanceTest);

}  // namespace rill
