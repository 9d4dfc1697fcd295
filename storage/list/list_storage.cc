// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/list/list_storage.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rill/base/status_macros.h"
#include "rill/storage/ring/ring_options.h"
#include "rill/storage/rows/row_layout.h"
#include "rill/tensordict/key.h"
#include "rill/tensordict/ragged_tensor.h"

namespace rill {

using storage_internal::kMaxRaggedRank;
using storage_internal::ListRows;
using storage_internal::MakeRoom;
using storage_internal::NoRoom;
using storage_internal::RingRows;
using storage_internal::RowBytes;

namespace {

bool IsAtOrBelow(absl::string_view key, absl::string_view above) {
  return key == above || absl::StartsWith(key, absl::StrCat(above, "/"));
}

// One lies at, above or below the other.
bool AreOnOneWay(absl::string_view a, absl::string_view b) {
  return IsAtOrBelow(a, b) || IsAtOrBelow(b, a);
}

// The key of the dictionary that holds it; empty: the outermost.
absl::string_view ParentOf(absl::string_view key) {
  absl::string_view head;
  absl::string_view rest = key;
  absl::string_view last = key;
  while (!rest.empty()) {
    last = rest;
    SplitKeyHead(last, &head, &rest);
  }
  return last.size() == key.size()
             ? absl::string_view()
             : key.substr(0, key.size() - last.size() - 1);
}

absl::Status CheckOptions(const ListStorage::Options& options) {
  constexpr absl::string_view kCreate = "ListStorage::Create";
  RILL_RETURN_IF_ERROR(storage_internal::CheckRingOptions(
      kCreate, options.capacity, options.lanes));
  const auto refuse = [&](absl::string_view option, const auto&... what) {
    return InvalidArgument(kCreate, ": Options::", option, ": got ", what...);
  };
  RILL_RETURN_IF_ERROR(CheckKey(options.mask_key)) << kCreate << ": mask_key";
  const std::vector<std::string>& ragged = options.ragged_leaves;
  for (size_t i = 0; i < ragged.size(); ++i) {
    RILL_RETURN_IF_ERROR(CheckKey(ragged[i])) << kCreate << ": ragged_leaves";
    if (std::find(ragged.begin(), ragged.begin() + i, ragged[i]) !=
        ragged.begin() + i) {
      return refuse("ragged_leaves", "\"", ragged[i],
                    "\" twice, want each once");
    }
    for (const std::string& other : ragged) {
      if (other != ragged[i] && IsAtOrBelow(other, ragged[i])) {
        return refuse("ragged_leaves", "\"", ragged[i], "\" above \"", other,
                      "\", want leaves, of which none lies below another");
      }
    }
    if (AreOnOneWay(ragged[i], options.mask_key)) {
      return refuse("mask_key", "\"", options.mask_key,
                    "\" at, above or below the leaf \"", ragged[i],
                    "\", want a key where nothing stands");
    }
    if (options.spec.empty()) continue;
    const LeafSpec* const leaf = options.spec.Find(ragged[i]);
    if (leaf == nullptr) {
      return refuse("ragged_leaves", "\"", ragged[i],
                    "\", want leaves of the spec");
    }
    if (leaf->shape.rank() > kMaxRaggedRank) {
      return refuse("spec", "\"", ragged[i], "\" of rank ", leaf->shape.rank(),
                    ", want at most ", kMaxRaggedRank,
                    " of a ragged leaf: a batch of them has one more");
    }
  }
  if (!options.spec.empty() && options.spec.leaves().size() <= ragged.size()) {
    return refuse("ragged_leaves",
                  "all leaves of the spec, want one at least "
                  "that is not ragged");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ListStorage>> ListStorage::Create(
    Options options) {
  RILL_RETURN_IF_ERROR(CheckOptions(options));
  std::unique_ptr<ListStorage> storage(new ListStorage(std::move(options)));
  TensorDictSpec even = storage->options_.spec;
  for (const std::string& key : storage->options_.ragged_leaves)
    even.Erase(key);
  RILL_RETURN_IF_ERROR(storage->Init(even));
  return storage;
}

ListStorage::ListStorage(Options options)
    : SerializedStorage(
          {.lanes = {options.lanes, options.capacity / options.lanes},
           .ragged_leaves = !options.ragged_leaves.empty(),
           .event_keys = options.event_keys},
          "listed"),
      options_(std::move(options)) {
  if (options_.spec.empty()) return;
  for (const std::string& key : options_.ragged_leaves) {
    const LeafSpec& leaf = *options_.spec.Find(key);
    given_ragged_.push_back({key, leaf.dtype, leaf.shape.rank()});
  }
}

absl::StatusOr<std::shared_ptr<RingRows>> ListStorage::MakeRows(
    const TensorDictSpec& spec, storage_internal::EventLeaves events) const {
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    if (options_.ragged_leaves.empty() ||
        !AreOnOneWay(leaf.key, options_.mask_key)) {
      continue;
    }
    return InvalidArgument(
        "ListStorage: leaf \"", leaf.key,
        "\": got one at, above or below mask_key \"", options_.mask_key,
        "\", want nothing there; rename the leaf or the option");
  }
  RILL_ASSIGN_OR_RETURN(auto rows,
                        ListRows::Create(spec, std::move(events), lanes()));
  rows->LearnRagged(given_ragged_);
  return rows;
}

TensorDictSpec ListStorage::spec() const {
  TensorDictSpec spec;
  WithLive("", {}, [&](const std::shared_ptr<RingRows>& rows) -> absl::Status {
    if (rows == nullptr) return absl::OkStatus();
    const ListRows& list = *ListOf(rows.get());
    spec = rows->spec;
    for (size_t i = 0; i < list.ragged().size(); ++i) {
      RILL_RETURN_IF_ERROR(spec.Set(
          list.ragged()[i].key,
          LeafSpec::Unbounded(list.ragged()[i].dtype, list.largest()[i])));
    }
    return absl::OkStatus();
  }).IgnoreError();
  return spec;
}

StorageUsage ListStorage::MemoryUsage() const {
  StorageUsage usage = SerializedStorage::MemoryUsage();
  usage.row = RowBytes(spec());
  return usage;
}

// --- Writing -----------------------------------------------------------------

absl::StatusOr<TensorDict> ListStorage::EvenPart(const TensorDict& rows) const {
  TensorDict even = rows;
  for (const std::string& key : options_.ragged_leaves) {
    if (!even.Contains(key)) continue;
    RILL_RETURN_IF_ERROR(even.Delete(key));
    // And the dictionaries that held nothing else.
    for (absl::string_view above = ParentOf(key); !above.empty();
         above = ParentOf(above)) {
      const TensorDict* const dict = even.FindDict(above);
      if (dict == nullptr || !dict->empty()) break;
      RILL_RETURN_IF_ERROR(even.Delete(above));
    }
  }
  return even;
}

absl::StatusOr<storage_internal::RaggedRows> ListStorage::RaggedPart(
    absl::string_view caller, const TensorDict& rows, bool allow_part) const {
  RaggedRows ragged(options_.ragged_leaves.size());
  const Shape& batch = rows.batch_shape();
  const int64_t count = batch.num_elements();
  for (size_t i = 0; i < ragged.size(); ++i) {
    const std::string& key = options_.ragged_leaves[i];
    const Tensor* const found = rows.Find(key);
    if (found == nullptr) {
      if (allow_part && !rows.Contains(key)) continue;
      return InvalidArgument(
          caller, ": keys: got no tensor \"", key, "\", want all of {",
          absl::StrJoin(options_.ragged_leaves, ", "), "}, which are ragged");
    }
    const int rank = found->rank() - batch.rank();
    if (rank > kMaxRaggedRank) {
      return InvalidArgument(caller, ": leaf \"", key,
                             "\": rank of a row: got ", rank, ", want at most ",
                             kMaxRaggedRank, ": a batch of them has one more");
    }
    Tensor host = *found;
    if (!host.is_host()) {
      RILL_ASSIGN_OR_RETURN(host, host.To(Device::Cpu()));
    }
    RILL_ASSIGN_OR_RETURN(host, host.Contiguous());
    const Shape flat = Shape({count}).Concat(host.shape().Suffix(batch.rank()));
    RILL_ASSIGN_OR_RETURN(host, host.Reshape(flat));
    for (int64_t row = 0; row < count; ++row) {
      RILL_ASSIGN_OR_RETURN(Tensor one, host.Select(0, row));
      ragged[i].push_back(std::move(one));
    }
  }
  return ragged;
}

absl::Status ListStorage::CheckRoom(absl::string_view caller,
                                    absl::Span<const RaggedLeaf> leaves,
                                    absl::Span<const Shape> largest,
                                    const ListRows& store) {
  int64_t row = store.row_bytes;
  for (size_t i = 0; i < leaves.size(); ++i) {
    int64_t bytes = DTypeSize(leaves[i].dtype);
    bool is_too_large = false;
    for (const int64_t size : largest[i].sizes()) {
      // As Shape::Create: what has no elements has strides.
      is_too_large = is_too_large ||
                     (size > 0 && __builtin_mul_overflow(bytes, size, &bytes));
    }
    if (!is_too_large && !__builtin_add_overflow(row, bytes, &row)) continue;
    return InvalidArgument(
        caller, ": leaf \"", leaves[i].key, "\": got ", largest[i].ToString(),
        " for all rows to have room in, want a row of at most ", INT64_MAX,
        " bytes");
  }
  return absl::OkStatus();
}

absl::Status ListStorage::SetRagged(absl::string_view caller, RaggedRows rows,
                                    ListRows* store) const {
  std::vector<RaggedLeaf> leaves = store->ragged();
  if (leaves.empty()) {
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].empty()) {  // No rows.
        store->SetRagged(std::move(rows));
        return absl::OkStatus();
      }
      leaves.push_back(
          {options_.ragged_leaves[i], rows[i][0].dtype(), rows[i][0].rank()});
    }
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t row = 0; row < rows[i].size(); ++row) {
      const Tensor& tensor = rows[i][row];
      const RaggedLeaf& want = leaves[i];
      if (tensor.dtype() == want.dtype && tensor.rank() == want.rank) continue;
      return InvalidArgument(caller, ": leaf \"", want.key, "\" of row ", row,
                             ": got ", DTypeName(tensor.dtype()),
                             tensor.shape().ToString(), ", want ",
                             DTypeName(want.dtype), " of rank ", want.rank);
    }
  }
  // Room is checked for all rows together, the stored ones included: a padded
  // batch may take any of them.
  std::vector<Shape> largest =
      store->ragged().empty() ? NoRoom(leaves) : store->largest();
  for (size_t i = 0; i < rows.size(); ++i) {
    for (const Tensor& row : rows[i])
      MakeRoom(row.shape().sizes(), &largest[i]);
  }
  RILL_RETURN_IF_ERROR(CheckRoom(caller, leaves, largest, *store));
  // Learned only where all rows fit, so that an error leaves nothing behind.
  if (!leaves.empty() && store->ragged().empty()) {
    store->LearnRagged(std::move(leaves));
  }
  store->SetRagged(std::move(rows));
  return absl::OkStatus();
}

absl::StatusOr<ExtendResult> ListStorage::Extend(const TensorDict& batch,
                                                 const WriteInfo& info) {
  constexpr absl::string_view kCaller = "Storage::Extend";
  RILL_ASSIGN_OR_RETURN(const TensorDict even, EvenPart(batch));
  RILL_ASSIGN_OR_RETURN(RaggedRows ragged, RaggedPart(kCaller, batch,
                                                      /*allow_part=*/false));
  return ExtendWith(even, info, [&](RingRows* store) {
    return SetRagged(kCaller, std::move(ragged), ListOf(store));
  });
}

absl::StatusOr<ExtendResult> ListStorage::ExtendRagged(
    absl::Span<const TensorDict> steps, const WriteInfo& info) {
  constexpr absl::string_view kCaller = "ListStorage::ExtendRagged";
  if (steps.empty()) return ExtendResult();
  std::vector<TensorDict> even;
  RaggedRows ragged(options_.ragged_leaves.size());
  for (const TensorDict& step : steps) {
    if (step.batch_shape().rank() != 0) {
      return InvalidArgument(kCaller, ": batch shape of row ", even.size(),
                             ": got ", step.batch_shape().ToString(),
                             ", want []; Extend takes batches");
    }
    RILL_ASSIGN_OR_RETURN(TensorDict part, EvenPart(step));
    even.push_back(std::move(part));
    RILL_ASSIGN_OR_RETURN(RaggedRows row,
                          RaggedPart(kCaller, step, /*allow_part=*/false));
    for (size_t i = 0; i < ragged.size(); ++i) {
      ragged[i].push_back(std::move(row[i][0]));
    }
  }
  absl::StatusOr<TensorDict> batch = Stack(even);
  RILL_RETURN_IF_ERROR(batch.status())
      << kCaller << ": leaves that are not in ragged_leaves";
  RILL_ASSIGN_OR_RETURN(batch, batch->Unsqueeze(0));
  return ExtendWith(*batch, info, [&](RingRows* store) {
    return SetRagged(kCaller, std::move(ragged), ListOf(store));
  });
}

absl::StatusOr<ExtendResult> ListStorage::ExtendRagged(const LazyStack& steps,
                                                       const WriteInfo& info) {
  return ExtendRagged(steps.members(), info);
}

absl::Status ListStorage::WriteInPlace(absl::Span<const Slot> slots,
                                       const TensorDict& rows, InPlace kind) {
  constexpr absl::string_view kCaller = "Storage::WriteAt";
  RILL_ASSIGN_OR_RETURN(const TensorDict even, EvenPart(rows));
  RILL_ASSIGN_OR_RETURN(RaggedRows ragged,
                        RaggedPart(kCaller, rows, /*allow_part=*/true));
  const std::vector<std::string>& keys = options_.ragged_leaves;
  const auto given =
      std::count_if(keys.begin(), keys.end(),
                    [&](const std::string& key) { return rows.Contains(key); });
  const bool is_whole = given == static_cast<int64_t>(keys.size());
  const auto prepare = [&](RingRows* store) {
    return SetRagged(kCaller, std::move(ragged), ListOf(store));
  };
  return WriteInPlaceWith(slots, even, kind, is_whole,
                          given == 0 ? std::optional<PrepareFn>() : prepare);
}

}  // namespace rill
