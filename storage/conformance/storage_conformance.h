// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_CONFORMANCE_STORAGE_CONFORMANCE_H_
#define RILL_STORAGE_CONFORMANCE_STORAGE_CONFORMANCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "rill/slots/slot.h"
#include "rill/specs/spec.h"
#include "rill/storage/conformance/mirror_observer.h"
#include "rill/storage/conformance/storage_oracle.h"
#include "rill/storage/row_reader.h"
#include "rill/storage/slot_lease.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// The test suites of every RowReader and of every Storage;
// dense_storage_conformance_test.cc has storages that they refuse. A storage's
// own test links this library and says
//   INSTANTIATE_TEST_SUITE_P(Dense, RowReaderConformanceTest,
//                            ::testing::ValuesIn(DenseCases()),
//                            StorageCaseName);
//   INSTANTIATE_TEST_SUITE_P(Dense, StorageConformanceTest,
//                            ::testing::ValuesIn(DenseCases()),
//                            StorageCaseName);
// The test of another reader of a storage's rows says the first, with
// `open_reader` in its cases.
struct StorageCase {
  std::string name;  // Letters, digits and underscores.
  // A new storage of this capacity in all. `spec` is empty where the storage
  // shall take it from the first write; a case may always give one.
  std::function<absl::StatusOr<std::unique_ptr<Storage>>(
      int64_t capacity, int64_t lanes, const TensorDictSpec& spec)>
      create;
  // Opens a reader of the rows of the storage that was created last; null: the
  // storage is read itself.
  std::function<absl::StatusOr<std::unique_ptr<RowReader>>()> open_reader;
  bool is_lazy = false;  // Create without a spec.
  // False: all leaves do not lie in place, and Lease says so.
  bool has_leases = true;
  // Not empty: there are no leases at all, and Lease says this of the rows.
  std::string no_leases;
  // False: memory follows what rows hold.
  bool has_fixed_memory = true;
  // False: some rows lie in memory and on the disk.
  bool is_in_one_place = true;
};

inline std::ostream& operator<<(std::ostream& os, const StorageCase& c) {
  return os << c.name;
}
inline std::string StorageCaseName(
    const ::testing::TestParamInfo<StorageCase>& info) {
  return info.param.name;
}

// A storage, the oracle of what it must hold and an observer that mirrors it.
// Every operation goes to storage and oracle.
class StorageSubject {
 public:
  // `reader` null: the storage itself.
  StorageSubject(std::unique_ptr<Storage> storage, const Lanes& lanes,
                 std::unique_ptr<RowReader> reader = nullptr);
  ~StorageSubject();

  Storage& storage() { return *storage_; }
  // The one to be tested.
  const RowReader& reader() const {
    return reader_ == nullptr ? *storage_ : *reader_;
  }
  StorageOracle& oracle() { return oracle_; }
  MirrorObserver& mirror() { return *mirror_; }

  // Ids that no row had so far.
  std::vector<int64_t> NewIds(int64_t count);
  // A batch [num_lanes, steps] of new rows. Returns its ids.
  std::vector<int64_t> Extend(int64_t first_lane, int64_t num_lanes,
                              int64_t steps);
  // To all lanes.
  void ExtendAll(int64_t steps) { Extend(0, oracle_.lanes().count, steps); }
  // The same with a batch of the caller's making that holds rows `ids`.
  void ExtendWith(const TensorDict& batch, int64_t first_lane,
                  absl::Span<const int64_t> ids);
  void WriteAt(absl::Span<const Slot> slots, absl::Span<const size_t> leaves,
               InPlace kind = InPlace::kReplace);
  void Clear();

  // The reader's rows, sizes and cursors, and the mirror, are the oracle's.
  void Check(const std::string& when = "");

 private:
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<RowReader> reader_;
  StorageOracle oracle_;
  std::unique_ptr<MirrorObserver> mirror_;
  int64_t next_id_ = 1;
};

class StorageConformanceTest : public ::testing::TestWithParam<StorageCase> {
 protected:
  std::unique_ptr<StorageSubject> Make(int64_t capacity, int64_t lanes = 1);
  // A lease of live slots, or, where there are none, empty and the error is as
  // it must be.
  std::optional<SlotLease> Lease(const RowReader& reader, SlotRange range);
};

// Tests of reading alone.
class RowReaderConformanceTest : public StorageConformanceTest {};

}  // namespace rill

#endif  // RILL_STORAGE_CONFORMANCE_STORAGE_CONFORMANCE_H_
