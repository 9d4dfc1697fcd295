// SPDX-License-Identifier: Apache-2.0
// The output of a ListStorage with ragged leaves, to callers and to files.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rill/base/status_macros.h"
#include "rill/formats/memmap_directory.h"
#include "rill/storage/chunks/stored_rows.h"
#include "rill/storage/list/list_storage.h"
#include "rill/tensordict/ragged_tensor.h"

namespace rill {

using storage_internal::LaneRings;
using storage_internal::LeafBatch;
using storage_internal::LeafKeys;
using storage_internal::ListRowPtr;
using storage_internal::ListRows;
using storage_internal::RaggedFn;
using storage_internal::RaggedRows;
using storage_internal::ReadRequest;
using storage_internal::RingRows;
using storage_internal::RowStore;
using storage_internal::SerializedStorage;
using storage_internal::StoredRows;
using storage_internal::StoredRun;

namespace {

// Numbers of the leaves that are wanted.
struct Wanted {
  std::vector<size_t> even;
  std::vector<size_t> ragged;
};

// The numbers of `keys`, in the order of the leaves. Errors as ReadLeaves.
absl::StatusOr<Wanted> FindWanted(const ListRows& list, const LeafKeys& keys) {
  std::vector<std::string> known;
  for (const TensorDictSpec::Leaf& leaf : list.spec.leaves()) {
    known.push_back(leaf.key);
  }
  const size_t num_even = known.size();
  for (const auto& leaf : list.ragged()) known.push_back(leaf.key);
  Wanted wanted;
  std::vector<bool> is_named(known.size(), !keys.has_value());
  for (const std::string& key :
       keys.value_or(absl::Span<const std::string>())) {
    const auto at = std::find(known.begin(), known.end(), key);
    if (at == known.end()) {
      return NotFound("Storage::ReadLeaves: keys: got \"", key,
                      "\", want some of {", absl::StrJoin(known, ", "), "}");
    }
    if (is_named[at - known.begin()]) {
      return InvalidArgument("Storage::ReadLeaves: keys: got \"", key,
                             "\" twice, want it once");
    }
    is_named[at - known.begin()] = true;
  }
  for (size_t i = 0; i < known.size(); ++i) {
    if (!is_named[i]) continue;
    if (i < num_even) {
      wanted.even.push_back(i);
    } else {
      wanted.ragged.push_back(i - num_even);
    }
  }
  return wanted;
}

// The rows of a ragged leaf, padded to the longest of them, and their mask.
absl::StatusOr<Padded> PadLeaf(const ListRows& list, size_t leaf,
                               absl::Span<const ListRowPtr> rows) {
  if (rows.empty()) {
    Padded none;
    const std::vector<int64_t> sizes(list.ragged()[leaf].rank + 1, 0);
    RILL_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(sizes));
    RILL_ASSIGN_OR_RETURN(none.values,
                          Tensor::Zeros(list.ragged()[leaf].dtype, shape));
    RILL_ASSIGN_OR_RETURN(none.mask, Tensor::Zeros(DType::kBool, {0}));
    return none;
  }
  std::vector<Tensor> tensors;
  tensors.reserve(rows.size());
  for (const ListRowPtr& row : rows) {
    RILL_ASSIGN_OR_RETURN(Tensor tensor, list.RaggedLeafOf(row, leaf));
    tensors.push_back(std::move(tensor));
  }
  return StackPadded(tensors);
}

// The even leaves that are wanted, stacked.
absl::StatusOr<TensorDict> StackEven(const ListRows& list,
                                     absl::Span<const size_t> leaves,
                                     absl::Span<const ListRowPtr> rows) {
  TensorDictSpec spec;
  for (const size_t i : leaves) {
    const TensorDictSpec::Leaf& leaf = list.spec.leaves()[i];
    RILL_RETURN_IF_ERROR(spec.Set(leaf.key, leaf.spec));
  }
  RILL_ASSIGN_OR_RETURN(TensorDict batch,
                        spec.Empty({static_cast<int64_t>(rows.size())},
                                   storage_internal::RowMemory(Device::Cpu())));
  std::vector<LeafBatch> places;
  for (const size_t i : leaves) {
    const TensorDictSpec::Leaf& leaf = list.spec.leaves()[i];
    places.push_back(
        {i, batch.Find(leaf.key)->raw_data(),
         leaf.spec.shape.num_elements() * DTypeSize(leaf.spec.dtype)});
  }
  list.Copy(rows, places);
  return batch;
}

// Elements of all rows of each ragged leaf, and their shapes.
absl::Status WriteRagged(const ListRows& list,
                         absl::Span<const ListRowPtr> rows,
                         const std::string& directory) {
  const auto n = static_cast<int64_t>(rows.size());
  TensorDictSpec spec;
  for (size_t i = 0; i < list.ragged().size(); ++i) {
    const auto& leaf = list.ragged()[i];
    int64_t total = 0;
    for (const ListRowPtr& row : rows) total += row->shapes[i].num_elements();
    RILL_RETURN_IF_ERROR(spec.Set(leaf.key + "/values",
                                  LeafSpec::Unbounded(leaf.dtype, {total})));
    RILL_RETURN_IF_ERROR(
        spec.Set(leaf.key + "/shapes",
                 LeafSpec::Unbounded(DType::kInt64, {n, leaf.rank})));
  }
  RILL_ASSIGN_OR_RETURN(const TensorDict files,
                        CreateMemmapDirectory(spec, {}, directory));
  for (size_t i = 0; i < list.ragged().size(); ++i) {
    const auto& leaf = list.ragged()[i];
    RILL_ASSIGN_OR_RETURN(const Tensor values, files.Get(leaf.key + "/values"));
    RILL_ASSIGN_OR_RETURN(const Tensor shapes, files.Get(leaf.key + "/shapes"));
    std::byte* to = values.raw_data();
    std::byte* sizes = shapes.raw_data();
    for (const ListRowPtr& row : rows) {
      for (const int64_t size : row->shapes[i].sizes()) {
        std::memcpy(sizes, &size, sizeof(size));
        sizes += sizeof(size);
      }
      RILL_ASSIGN_OR_RETURN(const Tensor tensor, list.RaggedLeafOf(row, i));
      to = std::copy_n(tensor.raw_data(), tensor.size_bytes(), to);
    }
  }
  return absl::OkStatus();
}

// Tells a list the ragged leaves of stored rows that it is about to be given:
// views, a run at a time.
class RaggedRuns {
 public:
  // `leaves` have a row for each row that was saved.
  RaggedRuns(const StoredRows& stored, std::vector<RaggedTensor> leaves,
             ListRows* list)
      : leaves_(std::move(leaves)), list_(list) {
    int64_t row = 0;
    const LaneRings& saved = stored.saved;
    for (int64_t lane = 0; lane < saved.lanes().count; ++lane) {
      // Row r + step is then the row of a step, without a search.
      const int64_t first_step =
          saved.cursors()[lane].written - saved.live(lane);
      rows_of_step_0_.push_back(row - first_step);
      row += saved.live(lane);
    }
  }

  absl::Status operator()(const StoredRun& run) const {
    const int64_t base = rows_of_step_0_[static_cast<size_t>(run.lane)];
    RaggedRows rows(leaves_.size());
    for (size_t i = 0; i < leaves_.size(); ++i) {
      for (int64_t step = run.first_step; step < run.end_step; ++step) {
        RILL_ASSIGN_OR_RETURN(Tensor row, leaves_[i].Row(base + step));
        rows[i].push_back(std::move(row));
      }
    }
    list_->SetRagged(std::move(rows));
    return absl::OkStatus();
  }

 private:
  std::vector<RaggedTensor> leaves_;
  ListRows* list_;
  std::vector<int64_t> rows_of_step_0_;  // By lane; where it would lie.
};

}  // namespace

absl::StatusOr<std::shared_ptr<RingRows>> ListStorage::PickLive(
    absl::string_view caller, absl::Span<const Slot> slots,
    std::vector<ListRowPtr>* picked) const {
  std::shared_ptr<RingRows> rows;
  RILL_RETURN_IF_ERROR(
      WithLive(caller, slots, [&](const std::shared_ptr<RingRows>& now) {
        rows = now;
        if (rows != nullptr) ListOf(rows.get())->Pick(slots, picked);
        return absl::OkStatus();
      }));
  return rows;
}

absl::Status ListStorage::ReadKeys(absl::Span<const Slot> slots, LeafKeys keys,
                                   TensorDict* out) const {
  if (options_.ragged_leaves.empty()) {
    return SerializedStorage::ReadKeys(slots, keys, out);
  }
  std::vector<ListRowPtr> picked;
  RILL_ASSIGN_OR_RETURN(
      const std::shared_ptr<RingRows> rows,
      PickLive(ReadRequest::Of(keys, out).caller, slots, &picked));
  if (rows == nullptr) {
    *out = TensorDict({0});
    return absl::OkStatus();
  }
  const ListRows& list = *ListOf(rows.get());
  RILL_ASSIGN_OR_RETURN(const Wanted wanted, FindWanted(list, keys));
  RILL_ASSIGN_OR_RETURN(TensorDict batch, StackEven(list, wanted.even, picked));
  for (const size_t i : wanted.ragged) {
    const std::string& key = list.ragged()[i].key;
    RILL_ASSIGN_OR_RETURN(Padded leaf, PadLeaf(list, i, picked));
    RILL_RETURN_IF_ERROR(batch.Set(key, std::move(leaf.values)));
    RILL_RETURN_IF_ERROR(batch.Set(absl::StrCat(options_.mask_key, "/", key),
                                   std::move(leaf.mask)));
  }
  *out = std::move(batch);
  return absl::OkStatus();
}

absl::StatusOr<LazyStack> ListStorage::ReadStack(
    absl::Span<const Slot> slots) const {
  std::vector<ListRowPtr> picked;
  RILL_ASSIGN_OR_RETURN(const std::shared_ptr<RingRows> rows,
                        PickLive("ListStorage::ReadStack", slots, &picked));
  std::vector<TensorDict> members;
  for (const ListRowPtr& row : picked) {
    const ListRows& list = *ListOf(rows.get());
    TensorDict member;
    for (size_t i = 0; i < list.spec.leaves().size(); ++i) {
      RILL_ASSIGN_OR_RETURN(Tensor leaf, list.EvenLeaf(row, i));
      RILL_RETURN_IF_ERROR(
          member.Set(list.spec.leaves()[i].key, std::move(leaf)));
    }
    for (size_t i = 0; i < list.ragged().size(); ++i) {
      RILL_ASSIGN_OR_RETURN(Tensor leaf, list.RaggedLeafOf(row, i));
      RILL_RETURN_IF_ERROR(member.Set(list.ragged()[i].key, std::move(leaf)));
    }
    members.push_back(std::move(member));
  }
  if (!members.empty()) return LazyStack::Create(std::move(members));
  RILL_ASSIGN_OR_RETURN(const LazyStack one, LazyStack::Create({TensorDict()}));
  return one.Slice(0, 0, 0);
}

// --- Files -------------------------------------------------------------------

RaggedFn ListStorage::RaggedOf(const LaneRings& rings,
                               const RingRows* rows) const {
  if (options_.ragged_leaves.empty()) return nullptr;
  return [rows, &rings](const std::string& directory) -> absl::Status {
    if (rows == nullptr) {
      return CreateMemmapDirectory(TensorDictSpec(), {}, directory).status();
    }
    std::vector<SlotRange> ranges;
    std::vector<Slot> slots;
    rings.LiveRanges(&ranges);
    storage_internal::ExpandRanges(ranges, &slots);
    std::vector<ListRowPtr> picked;
    ListOf(rows)->Pick(slots, &picked);
    return WriteRagged(*ListOf(rows), picked, directory);
  };
}

absl::StatusOr<SerializedStorage::PrepareRunFn> ListStorage::PrepareLoad(
    const StoredRows& stored, const RowStore* old, RowStore* fresh) const {
  if (options_.ragged_leaves.empty()) return PrepareRunFn();
  ListRows& list = *ListOf(fresh);
  std::vector<RaggedLeaf> known = list.ragged();
  if (old != nullptr) known = ListOf(old)->ragged();
  if (stored.spec.empty()) {  // Nothing was ever written there.
    list.LearnRagged(std::move(known));
    return PrepareRunFn();
  }
  const auto refuse = [&](const auto&... what) {
    return FailedPrecondition("Storage::Load: ragged leaves: got ", what...);
  };
  std::vector<RaggedLeaf> leaves;
  std::vector<RaggedTensor> rows;
  for (const std::string& key : options_.ragged_leaves) {
    const Tensor* const values = stored.ragged.Find(key + "/values");
    const Tensor* const shapes = stored.ragged.Find(key + "/shapes");
    if (values == nullptr || shapes == nullptr ||
        stored.ragged.num_leaves() !=
            static_cast<int64_t>(2 * options_.ragged_leaves.size())) {
      return refuse("{", absl::StrJoin(stored.ragged.LeafKeys(), ", "),
                    "} in the directory, want values and shapes of this "
                    "storage's {",
                    absl::StrJoin(options_.ragged_leaves, ", "), "}");
    }
    const int64_t n = stored.saved.size();
    const int64_t told = shapes->rank() == 0 ? 0 : shapes->shape()[0];
    // Before anything is made of a number that a file tells.
    auto all = told == n
                   ? RaggedTensor::Create(*values, *shapes)
                   : absl::StatusOr<RaggedTensor>(DataLoss(told, " rows"));
    if (!all.ok()) {
      return DataLoss("Storage::Load: ragged leaf \"", key, "\": got ",
                      all.status().message(), ", want shapes of ", n,
                      " rows that fit the values");
    }
    if (all->row_rank() > storage_internal::kMaxRaggedRank) {
      return DataLoss("Storage::Load: ragged leaf \"", key, "\": got rank ",
                      all->row_rank(), ", want at most ",
                      storage_internal::kMaxRaggedRank);
    }
    leaves.push_back({key, all->dtype(), all->row_rank()});
    rows.push_back(*std::move(all));
  }
  for (size_t i = 0; i < known.size(); ++i) {
    if (known[i] == leaves[i]) continue;
    return refuse("\"", leaves[i].key, "\" of ", DTypeName(leaves[i].dtype),
                  " and rank ", leaves[i].rank,
                  " in the directory, want this storage's ",
                  DTypeName(known[i].dtype), " and rank ", known[i].rank);
  }
  std::vector<Shape> largest = storage_internal::NoRoom(leaves);
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto rank = static_cast<size_t>(leaves[i].rank);
    const int64_t* sizes = rows[i].shapes().data<int64_t>();
    for (int64_t row = 0; row < rows[i].num_rows(); ++row, sizes += rank) {
      storage_internal::MakeRoom({sizes, rank}, &largest[i]);
    }
  }
  if (const absl::Status fits =
          CheckRoom("Storage::Load", leaves, largest, list);
      !fits.ok()) {
    return DataLoss(fits.message());
  }
  list.LearnRagged(std::move(leaves));
  return PrepareRunFn(RaggedRuns(stored, std::move(rows), &list));
}

}  // namespace rill
