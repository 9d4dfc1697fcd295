// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/stored_rows.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/manifest.h"
#include "rill/formats/memmap_directory.h"
#include "rill/formats/replaceable.h"
#include "rill/storage/batch_leaves.h"
#include "rill/storage/lane_rings.h"
#include "rill/tensordict/tensor.h"

namespace rill::storage_internal {
namespace {

constexpr char kKind[] = "storage";
// 2 where a lane has lost its oldest rows, else 1.
constexpr int64_t kVersion = 2;
constexpr char kRowsDirectory[] = "rows";
constexpr int64_t kPieceBytes = int64_t{16} << 20;

// Calls fn(begin, end) for pieces of [0, n) of about kPieceBytes each.
template <typename Fn>
absl::Status ForEachPiece(const RowTable& table, int64_t n, Fn fn) {
  const int64_t step =
      std::max<int64_t>(kPieceBytes / (table.layout().row_bytes() + 1), 1);
  for (int64_t begin = 0; begin < n; begin += step) {
    RILL_RETURN_IF_ERROR(fn(begin, std::min(begin + step, n)));
  }
  return absl::OkStatus();
}

absl::Status ReadPiece(const RowTable& table, absl::Span<const Slot> slots,
                       int64_t begin, const TensorDict& files) {
  const auto& leaves = table.spec().leaves();
  const int64_t end = begin + static_cast<int64_t>(slots.size());
  std::vector<LeafBatch> places;
  for (size_t i = 0; i < leaves.size(); ++i) {
    RILL_ASSIGN_OR_RETURN(const Tensor file, files.Get(leaves[i].key));
    RILL_ASSIGN_OR_RETURN(const Tensor piece, file.Slice(0, begin, end));
    if (table.Reaches(piece)) {
      places.push_back({i, piece.raw_data(), table.layout().leaf_bytes(i)});
    } else {
      RILL_ASSIGN_OR_RETURN(const Tensor host, table.ReadToHost(slots, i));
      RILL_RETURN_IF_ERROR(piece.CopyFrom(host));
    }
  }
  return table.Read(slots, places);
}

absl::Status WriteRows(const std::string& directory,
                       absl::Span<const Slot> slots, const RowTable* table) {
  const int64_t n = static_cast<int64_t>(slots.size());
  RILL_ASSIGN_OR_RETURN(
      const TensorDict files,
      CreateMemmapDirectory(table == nullptr ? TensorDictSpec() : table->spec(),
                            {n}, directory));
  if (table == nullptr) return absl::OkStatus();
  return ForEachPiece(*table, n, [&](int64_t begin, int64_t end) {
    return ReadPiece(*table, slots.subspan(begin, end - begin), begin, files);
  });
}

absl::Status CheckField(const Manifest& manifest, const std::string& name,
                        int64_t want) {
  RILL_ASSIGN_OR_RETURN(const int64_t got, manifest.Int(name));
  if (got == want) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("Storage::Load: ", name, ": got ", got,
                   " in the directory, want this storage's ", want));
}

// As many integers >= 0 as there are lanes.
absl::StatusOr<std::vector<int64_t>> ParseSteps(const Manifest& manifest,
                                                const std::string& name,
                                                const Lanes& lanes) {
  RILL_ASSIGN_OR_RETURN(const std::string text, manifest.Text(name));
  std::vector<int64_t> steps;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    int64_t step;
    if (!absl::SimpleAtoi(part, &step) || step < 0 || step > kMaxWritten) {
      return absl::DataLossError(
          absl::StrCat("Storage::Load: ", name, ": got \"", part.substr(0, 80),
                       "\", want integers in [0, ", kMaxWritten, "]"));
    }
    steps.push_back(step);
  }
  if (static_cast<int64_t>(steps.size()) != lanes.count) {
    return absl::DataLossError(absl::StrCat("Storage::Load: ", name, ": got ",
                                            steps.size(), ", want ",
                                            lanes.count));
  }
  return steps;
}

absl::Status ParseCursors(const Manifest& manifest, const Lanes& lanes,
                          StoredRows* stored) {
  RILL_ASSIGN_OR_RETURN(const std::vector<int64_t> cursors,
                        ParseSteps(manifest, "cursors", lanes));
  for (const int64_t written : cursors) stored->cursors.push_back({written});
  if (!manifest.fields.contains("first_live")) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(stored->first_live,
                        ParseSteps(manifest, "first_live", lanes));
  for (int64_t lane = 0; lane < lanes.count; ++lane) {
    if (stored->first_live[lane] <= cursors[lane]) continue;
    return absl::DataLossError(absl::StrCat(
        "Storage::Load: first_live: got ", stored->first_live[lane],
        ", want at most its cursor, ", cursors[lane]));
  }
  return absl::OkStatus();
}

absl::Status CheckSpec(const TensorDictSpec& got, const TensorDictSpec& want) {
  if (got.empty() || want.empty()) return absl::OkStatus();
  bool is_same = got.leaves().size() == want.leaves().size();
  for (const TensorDictSpec::Leaf& leaf : want.leaves()) {
    const LeafSpec* const found = got.Find(leaf.key);
    is_same = is_same && found != nullptr && found->dtype == leaf.spec.dtype &&
              found->shape == leaf.spec.shape;
  }
  if (is_same) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("Storage::Load: spec: got ", got.ToString(),
                   " in the directory, want this storage's ", want.ToString()));
}

}  // namespace

absl::Status SaveStoredRows(const std::string& directory,
                            const LaneRings& rings,
                            absl::Span<const Slot> slots,
                            const RowTable* table) {
  RILL_RETURN_IF_ERROR(
      CheckReplaceable("Storage::Save", directory, kManifestFile));
  Manifest manifest;
  manifest.kind = kKind;
  manifest.version = 1;
  manifest.SetInt("lanes", rings.lanes().count);
  manifest.SetInt("lane_capacity", rings.lanes().capacity);
  if (!rings.first_live().empty()) {
    manifest.version = kVersion;
    manifest.fields["first_live"] = absl::StrJoin(rings.first_live(), ",");
  }
  manifest.fields["cursors"] = absl::StrJoin(
      rings.cursors(), ",", [](std::string* out, const Cursor& cursor) {
        absl::StrAppend(out, cursor.written);
      });
  return ReplaceDirectory(
      directory, [&](const std::string& fresh) -> absl::Status {
        RILL_RETURN_IF_ERROR(
            WriteRows(JoinPath(fresh, kRowsDirectory), slots, table));
        return WriteManifest(manifest, fresh);
      });
}

absl::StatusOr<StoredRows> LoadStoredRows(const std::string& directory,
                                          const Lanes& lanes,
                                          const TensorDictSpec& spec) {
  StoredRows stored;
  RILL_ASSIGN_OR_RETURN(const Manifest manifest,
                        ReadManifest(directory, kKind, kVersion));
  RILL_RETURN_IF_ERROR(CheckField(manifest, "lanes", lanes.count));
  RILL_RETURN_IF_ERROR(CheckField(manifest, "lane_capacity", lanes.capacity));
  RILL_RETURN_IF_ERROR(ParseCursors(manifest, lanes, &stored));
  auto rows = LoadMemmapDirectory(JoinPath(directory, kRowsDirectory));
  if (!rows.ok()) {
    // The manifest is there, so a directory without rows is damaged.
    return rows.status().code() == absl::StatusCode::kNotFound
               ? absl::DataLossError(rows.status().message())
               : rows.status();
  }
  stored.rows = *std::move(rows);
  LaneRings rings(lanes);
  rings.Restore(stored.cursors, stored.first_live);
  const int64_t live = rings.size();
  if (!(stored.rows.batch_shape() == Shape{live}) ||
      (live > 0 && stored.rows.num_leaves() == 0)) {
    return absl::DataLossError(absl::StrCat(
        "Storage::Load: rows: got ", stored.rows.batch_shape().ToString(),
        " with ", stored.rows.num_leaves(), " leaves, want [", live,
        "] as the cursors say"));
  }
  RILL_RETURN_IF_ERROR(CheckSpec(TensorDictSpec::Of(stored.rows), spec));
  return stored;
}

absl::Status FillTable(const TensorDict& rows, absl::Span<const Slot> slots,
                       RowTable* table) {
  const SpecTree tree(table->spec());
  BatchLeaves leaves;
  std::vector<LeafBatch> places;
  const int64_t n = static_cast<int64_t>(slots.size());
  return ForEachPiece(
      *table, n, [&](int64_t begin, int64_t end) -> absl::Status {
        RILL_ASSIGN_OR_RETURN(const TensorDict piece,
                              rows.Slice(0, begin, end));
        RILL_RETURN_IF_ERROR(leaves.Bind("Storage::Load", table->spec(), tree,
                                         piece, /*allow_part=*/false));
        RILL_RETURN_IF_ERROR(leaves.Prepare(*table, /*batch_rank=*/1));
        places.clear();
        for (const BatchLeaf& leaf : leaves.leaves()) {
          places.push_back({leaf.leaf, leaf.ready->raw_data(),
                            leaf.ready->strides_bytes()[0]});
        }
        absl::Status written =
            table->Write(slots.subspan(begin, end - begin), places);
        leaves.Clear();
        return written;
      });
}

}  // namespace rill::storage_internal
