// SPDX-License-Identifier: Apache-2.0
// How live rows become files and come back. A save cuts them into chunks, links
// those that the last save still has, and writes the others. A load maps the
// chunks read-only and tells which rows of them are live; the storage then
// copies these into its table.
#include "rill/storage/chunks/stored_rows.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <tuple>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "rill/base/file.h"
#include "rill/base/held_directory.h"
#include "rill/base/status_macros.h"
#include "rill/formats/consolidated.h"
#include "rill/formats/manifest.h"
#include "rill/formats/memmap_directory.h"
#include "rill/formats/replaceable.h"
#include "rill/specs/layout_difference.h"
#include "rill/storage/ring/lane_rings.h"
#include "rill/storage/rows/batch_leaves.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill::storage_internal {
namespace {

constexpr char kKind[] = "storage";
// Before it all rows were in one memmap directory.
constexpr int64_t kChunksVersion = 3;
// Rows hold more than the leaves of a spec.
constexpr int64_t kRaggedVersion = 4;
constexpr char kRowsDirectory[] = "rows";
constexpr char kRaggedDirectory[] = "ragged";
// Files of a save; a load maps each of them.
constexpr size_t kMostChunks = 4096;
// Saves by others that one load may meet.
constexpr int kMostReads = 10;
// Rows that are copied into a table at a time.
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

// Writes the live rows of a chunk, lane after lane, oldest first.
absl::Status WriteChunk(const LaneRings& rings, ReadRowsFn read,
                        const ChunkShape& shape, const Chunk& chunk,
                        const std::string& path) {
  const Lanes& lanes = rings.lanes();
  const int64_t first_lane = chunk.group * shape.lanes;
  const int64_t end_lane = std::min(first_lane + shape.lanes, lanes.count);
  std::vector<Slot> slots;
  for (int64_t lane = first_lane; lane < end_lane; ++lane) {
    const StepSpan steps = LiveSteps(rings, lane, shape, chunk.number);
    for (int64_t step = steps.first; step < steps.end; ++step) {
      slots.push_back(lanes.SlotOf(lane, step % lanes.capacity));
    }
  }
  RILL_ASSIGN_OR_RETURN(const TensorDict rows, read(slots));
  return SaveConsolidated(rows, path);
}

std::string PathOf(const Chunk& chunk) {
  return JoinPath(kRowsDirectory, ChunkName(chunk));
}

absl::Status OtherField(const std::string& name, int64_t got, int64_t want,
                        absl::string_view advice = "") {
  return FailedPrecondition("Storage::Load: ", name, ": got ", got,
                            " in the directory, want this storage's ", want,
                            advice);
}

// The lanes that were saved, as many as there are here.
absl::StatusOr<Lanes> ParseLanes(const Manifest& manifest, const Lanes& lanes,
                                 const StorageLoadOptions& options) {
  RILL_ASSIGN_OR_RETURN(const int64_t count, manifest.Int("lanes"));
  RILL_ASSIGN_OR_RETURN(const int64_t capacity, manifest.Int("lane_capacity"));
  if (count != lanes.count) return OtherField("lanes", count, lanes.count);
  const int64_t most = kMaxWritten / count;
  if (capacity < 1 || capacity > most) {
    return DataLoss("Storage::Load: lane_capacity: got ", capacity,
                    ", want [1, ", most, "]");
  }
  if (capacity != lanes.capacity && !options.accept_other_capacity) {
    return OtherField("lane_capacity", capacity, lanes.capacity,
                      "; set accept_other_capacity to keep the newest rows");
  }
  return Lanes{.count = count, .capacity = capacity};
}

// As many integers >= 0 as there are lanes.
absl::StatusOr<std::vector<int64_t>> ParseSteps(absl::string_view caller,
                                                const Manifest& manifest,
                                                const std::string& name,
                                                const Lanes& lanes) {
  RILL_ASSIGN_OR_RETURN(const std::string text, manifest.Text(name));
  std::vector<int64_t> steps;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    int64_t step;
    if (!absl::SimpleAtoi(part, &step) || step < 0 || step > kMaxWritten) {
      return DataLoss(caller, ": ", name, ": got \"", part.substr(0, 80),
                      "\", want integers in [0, ", kMaxWritten, "]");
    }
    steps.push_back(step);
  }
  if (static_cast<int64_t>(steps.size()) != lanes.count) {
    return DataLoss(caller, ": ", name, ": got ", steps.size(), ", want ",
                    lanes.count);
  }
  return steps;
}

// The newest rows of each lane, in lanes of another capacity.
LaneRings RingsWith(const LaneRings& saved, const Lanes& lanes) {
  if (saved.lanes() == lanes) return saved;
  std::vector<int64_t> first_live(lanes.count, 0);
  for (int64_t lane = 0; lane < lanes.count; ++lane) {
    const int64_t written = saved.cursors()[lane].written;
    // A ring takes its last steps for live; these are all there are.
    if (saved.live(lane) < std::min(written, lanes.capacity)) {
      first_live[lane] = written - saved.live(lane);
    }
  }
  LaneRings rings(lanes);
  rings.Restore(saved.cursors(), first_live);
  return rings;
}

absl::Status CheckSpec(const TensorDictSpec& got, const TensorDictSpec& want) {
  if (got.empty() || want.empty()) return absl::OkStatus();
  const std::string difference = LayoutDifference(got, want);
  if (difference.empty()) return absl::OkStatus();
  return FailedPrecondition("Storage::Load: spec of the saved rows: ",
                            difference);
}

absl::Status CheckRows(const TensorDict& rows, int64_t want) {
  if (rows.batch_shape() == Shape{want} &&
      (want == 0 || rows.num_leaves() > 0)) {
    return absl::OkStatus();
  }
  return DataLoss("Storage::Load: rows: got ", rows.batch_shape().ToString(),
                  " with ", rows.num_leaves(), " leaves, want [", want,
                  "] as the cursors say");
}

// The manifest is there, so a directory without rows is damaged.
absl::StatusOr<TensorDict> OrDamaged(absl::StatusOr<TensorDict> rows) {
  if (!absl::IsNotFound(rows.status())) return rows;
  return DataLoss(rows.status().message());
}

// All rows in one memmap directory.
absl::Status LoadRows(const std::string& directory, StoredRows* stored) {
  RILL_ASSIGN_OR_RETURN(
      TensorDict rows,
      OrDamaged(LoadMemmapDirectory(JoinPath(directory, kRowsDirectory))));
  RILL_RETURN_IF_ERROR(CheckRows(rows, stored->saved.size()));
  stored->spec = TensorDictSpec::Of(rows);
  stored->parts.push_back({.rows = std::move(rows),
                           .end_lane = stored->saved.lanes().count,
                           .end_step = kMaxWritten});
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ParseChunkField(const Manifest& manifest,
                                        const std::string& name, int64_t most) {
  RILL_ASSIGN_OR_RETURN(const int64_t value, manifest.Int(name));
  if (value >= 1 && value <= most) return value;
  return DataLoss("Storage::Load: ", name, ": got ", value, ", want [1, ", most,
                  "]");
}

absl::Status LoadChunk(const std::string& directory, const Chunk& chunk,
                       StoredRows* stored) {
  if (!stored->sums.contains(PathOf(chunk))) {
    return DataLoss("Storage::Load: \"", JoinPath(directory, PathOf(chunk)),
                    "\": got none in the manifest, want one");
  }
  RILL_ASSIGN_OR_RETURN(
      TensorDict rows,
      OrDamaged(LoadConsolidated(JoinPath(directory, PathOf(chunk)))));
  RILL_RETURN_IF_ERROR(CheckRows(rows, chunk.rows));
  const TensorDictSpec spec = TensorDictSpec::Of(rows);
  if (stored->spec.empty()) stored->spec = spec;
  if (const absl::Status same = CheckSpec(spec, stored->spec); !same.ok()) {
    return DataLoss(same.message());
  }
  const ChunkShape& shape = stored->shape;
  const int64_t lane = chunk.group * shape.lanes;
  const int64_t step = chunk.number * shape.steps;
  stored->parts.push_back(
      {.rows = std::move(rows),
       .first_lane = lane,
       .end_lane = std::min(lane + shape.lanes, stored->saved.lanes().count),
       .first_step = step,
       // Without overflow where one chunk has the steps of all times.
       .end_step = step + std::min(shape.steps, kMaxWritten - step)});
  return absl::OkStatus();
}

absl::Status LoadChunks(const std::string& directory, const Manifest& manifest,
                        StoredRows* stored) {
  if (!manifest.fields.contains("chunk_steps")) {
    return CheckRows(TensorDict({0}), stored->saved.size());
  }
  RILL_ASSIGN_OR_RETURN(stored->shape.steps,
                        ParseChunkField(manifest, "chunk_steps", kMaxWritten));
  RILL_ASSIGN_OR_RETURN(
      stored->shape.lanes,
      ParseChunkField(manifest, "chunk_lanes", stored->saved.lanes().count));
  stored->chunks =
      // More chunks than the manifest has files cannot be there. The limit
      // bounds what damaged cursors can cost.
      LiveChunks(stored->saved, stored->shape, stored->sums.size());
  if (stored->chunks.empty()) stored->chunks.push_back(Chunk());
  for (const Chunk& chunk : stored->chunks) {
    RILL_RETURN_IF_ERROR(LoadChunk(directory, chunk, stored));
  }
  stored->files = std::make_unique<SavedChunks>(
      JoinPath(directory, kRowsDirectory), stored->rings, stored->shape);
  return absl::OkStatus();
}

absl::StatusOr<StoredRows> LoadSave(const std::string& directory,
                                    const Lanes& lanes,
                                    const TensorDictSpec& spec,
                                    const StorageLoadOptions& options,
                                    bool has_ragged) {
  StoredRows stored(lanes);
  RILL_ASSIGN_OR_RETURN(
      const Manifest manifest,
      ReadManifest(directory, kKind, kRaggedVersion, &stored.sums));
  if ((manifest.version == kRaggedVersion) != has_ragged) {
    return FailedPrecondition(
        "Storage::Load: ragged leaves: got rows ",
        has_ragged ? "without" : "with",
        " such leaves in the directory, want this storage's, ",
        has_ragged ? "with" : "without",
        "; use a ListStorage with ragged_leaves as the one that "
        "saved had them");
  }
  RILL_ASSIGN_OR_RETURN(const Lanes saved,
                        ParseLanes(manifest, lanes, options));
  RILL_ASSIGN_OR_RETURN(stored.saved,
                        ReadRings("Storage::Load", manifest, saved));
  stored.rings = RingsWith(stored.saved, lanes);
  RILL_RETURN_IF_ERROR(manifest.version < kChunksVersion
                           ? LoadRows(directory, &stored)
                           : LoadChunks(directory, manifest, &stored));
  if (has_ragged) {
    RILL_ASSIGN_OR_RETURN(
        stored.ragged,
        OrDamaged(LoadMemmapDirectory(JoinPath(directory, kRaggedDirectory))));
  }
  RILL_RETURN_IF_ERROR(CheckSpec(stored.spec, spec));
  return stored;
}

Manifest ManifestOf(const LaneRings& rings) {
  Manifest manifest{.kind = kKind, .version = kChunksVersion};
  manifest.SetInt("lanes", rings.lanes().count);
  manifest.SetInt("lane_capacity", rings.lanes().capacity);
  if (!rings.first_live().empty()) {
    manifest.fields["first_live"] = absl::StrJoin(rings.first_live(), ",");
  }
  manifest.fields["cursors"] = absl::StrJoin(
      rings.cursors(), ",", [](std::string* out, const Cursor& cursor) {
        absl::StrAppend(out, cursor.written);
      });
  return manifest;
}

// Those that a save writes: one without rows, which tells the keys, where no
// row is live.
std::vector<Chunk> ChunksToSave(const LaneRings& rings, ChunkShape* shape,
                                Manifest* manifest) {
  std::vector<Chunk> chunks = LiveChunks(rings, *shape, kMostChunks);
  if (chunks.size() > kMostChunks) {
    // Lanes whose cursors are far apart share no chunk.
    *shape = {.lanes = rings.lanes().count, .steps = kMaxWritten};
    chunks = LiveChunks(rings, *shape);
  }
  manifest->SetInt("chunk_lanes", shape->lanes);
  manifest->SetInt("chunk_steps", shape->steps);
  if (chunks.empty()) chunks.push_back(Chunk());
  return chunks;
}

class TableFiller {
 public:
  explicit TableFiller(RowTable* table) : table_(table), tree_(table->spec()) {}

  // Rows [begin, begin + slots.size()) of `rows` to the slots.
  absl::Status Fill(const TensorDict& rows, int64_t begin,
                    absl::Span<const Slot> slots) {
    return ForEachPiece(
        *table_, static_cast<int64_t>(slots.size()),
        [&](int64_t from, int64_t to) -> absl::Status {
          RILL_ASSIGN_OR_RETURN(const TensorDict piece,
                                rows.Slice(0, begin + from, begin + to));
          return FillPiece(piece, slots.subspan(from, to - from));
        });
  }

 private:
  absl::Status FillPiece(const TensorDict& piece,
                         absl::Span<const Slot> slots) {
    RILL_RETURN_IF_ERROR(leaves_.Bind("Storage::Load", table_->spec(), tree_,
                                      piece, /*allow_part=*/false));
    RILL_RETURN_IF_ERROR(leaves_.Prepare(table_->device(), table_->lent(),
                                         /*batch_rank=*/1));
    const auto clear = absl::MakeCleanup([&] { leaves_.Clear(); });
    if (!table_->device().is_cpu()) {
      RILL_RETURN_IF_ERROR(
          table_->PrepareWrite(std::ssize(slots), leaves_.leaves()));
      return table_->EnqueueWrite(slots, leaves_.leaves(), /*batch_rank=*/1);
    }
    leaves_.PlaceRows(/*first=*/0, /*past_caches=*/false, &places_);
    return table_->Write(slots, places_);
  }

  RowTable* const table_;
  const SpecTree tree_;
  BatchLeaves leaves_;
  std::vector<LeafBatch> places_;
};

// Slots of one lane whose steps follow one another.
struct WantedRun {
  int64_t lane = 0;
  int64_t first_step = 0;
  int64_t end_step = 0;
  int64_t at = 0;  // Which of the rows that are wanted the first one is.
};

// By lane and step.
std::vector<WantedRun> RunsOf(const LaneRings& rings,
                              absl::Span<const Slot> slots) {
  const Lanes& lanes = rings.lanes();
  std::vector<WantedRun> runs;
  for (size_t i = 0; i < slots.size(); ++i) {
    const int64_t lane = lanes.LaneOf(slots[i]);
    const int64_t written = rings.cursors()[lane].written;
    // The last step that came to the slot.
    const int64_t behind =
        (written - 1 - lanes.PositionOf(slots[i])) % lanes.capacity;
    const int64_t step = written - 1 - behind;
    if (!runs.empty() && runs.back().lane == lane &&
        runs.back().end_step == step) {
      ++runs.back().end_step;
    } else {
      runs.push_back({lane, step, step + 1, static_cast<int64_t>(i)});
    }
  }
  std::sort(
      runs.begin(), runs.end(), [](const WantedRun& a, const WantedRun& b) {
        return std::tie(a.lane, a.first_step) < std::tie(b.lane, b.first_step);
      });
  return runs;
}

}  // namespace

absl::StatusOr<LaneRings> ReadRings(absl::string_view caller,
                                    const Manifest& manifest,
                                    const Lanes& lanes) {
  RILL_ASSIGN_OR_RETURN(const std::vector<int64_t> written,
                        ParseSteps(caller, manifest, "cursors", lanes));
  std::vector<int64_t> first_live;
  if (manifest.fields.contains("first_live")) {
    RILL_ASSIGN_OR_RETURN(first_live,
                          ParseSteps(caller, manifest, "first_live", lanes));
  }
  std::vector<Cursor> cursors;
  for (const int64_t steps : written) cursors.push_back({steps});
  for (size_t lane = 0; lane < first_live.size(); ++lane) {
    if (first_live[lane] <= written[lane]) continue;
    return DataLoss(caller, ": first_live: got ", first_live[lane],
                    ", want at most its cursor, ", written[lane]);
  }
  LaneRings rings(lanes);
  rings.Restore(cursors, first_live);
  return rings;
}

absl::Status ForEachRun(const StoredRows& stored, const StoredRows::Part& part,
                        RunFn fn) {
  int64_t row = 0;
  for (int64_t lane = part.first_lane; lane < part.end_lane; ++lane) {
    const int64_t written = stored.rings.cursors()[lane].written;
    const int64_t begin =
        std::max(part.first_step, written - stored.saved.live(lane));
    const int64_t end = std::max(begin, std::min(part.end_step, written));
    // `row` counts the rows that the part holds; of these `kept` is the first
    // that the loading rings, which may be smaller, still have.
    const int64_t kept =
        std::clamp(written - stored.rings.live(lane), begin, end);
    if (kept < end) {
      RILL_RETURN_IF_ERROR(fn({lane, kept, end, row + kept - begin}));
    }
    row += end - begin;
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorDict> MakeHostRows(const TensorDictSpec& spec, int64_t n,
                                        std::vector<LeafBatch>* places) {
  const Shape shape = {n};
  TensorDict rows(shape);
  places->clear();
  for (size_t i = 0; i < spec.leaves().size(); ++i) {
    const LeafSpec& wanted = spec.leaves()[i].spec;
    RILL_ASSIGN_OR_RETURN(
        Tensor leaf, Tensor::Empty(wanted.dtype, shape.Concat(wanted.shape)));
    if (leaf.num_elements() > 0) {
      places->push_back({i, leaf.raw_data(), leaf.size_bytes() / n});
    }
    RILL_RETURN_IF_ERROR(rows.Set(spec.leaves()[i].key, std::move(leaf)));
  }
  return rows;
}

absl::Status SaveStoredRows(const std::string& directory,
                            const LaneRings& rings, const TensorDictSpec& spec,
                            ReadRowsFn read, const ChunkLinks* links,
                            const RaggedFn& ragged) {
  RILL_RETURN_IF_ERROR(
      // Refuses a directory of other files before anything is written.
      CheckReplaceable("Storage::Save", directory, kManifestFile));
  Manifest manifest = ManifestOf(rings);
  if (ragged != nullptr) manifest.version = kRaggedVersion;
  const ChunkShape wanted = ChunkShape::Of(rings.lanes(), RowBytes(spec));
  ChunkShape shape = wanted;
  std::vector<Chunk> chunks;  // None where there are no keys.
  if (!spec.empty()) chunks = ChunksToSave(rings, &shape, &manifest);
  // In another shape no chunk is as it was counted.
  const bool may_link = links != nullptr && !spec.empty() && shape == wanted;
  const SavedChunks* const last = may_link ? links->last->get() : nullptr;
  std::unique_ptr<SavedChunks> saved;
  RILL_RETURN_IF_ERROR(ReplaceDirectory(
      directory, [&](const std::string& fresh) -> absl::Status {
        const std::string folder = JoinPath(fresh, kRowsDirectory);
        RILL_RETURN_IF_ERROR(CreateDirectories(folder));
        FileSums sums;
        for (const Chunk& chunk : chunks) {
          const std::string path = JoinPath(fresh, PathOf(chunk));
          const FileSum* const linked =
              last == nullptr
                  ? nullptr
                  : last->Link(chunk, rings, *links->overwrites, path);
          if (linked != nullptr) {
            sums[PathOf(chunk)] = *linked;
          } else {
            RILL_RETURN_IF_ERROR(WriteChunk(rings, read, shape, chunk, path));
          }
        }
        if (ragged != nullptr) {
          RILL_RETURN_IF_ERROR(ragged(JoinPath(fresh, kRaggedDirectory)));
        }
        RILL_RETURN_IF_ERROR(WriteManifest(manifest, fresh, &sums));
        if (!may_link) return absl::OkStatus();
        // Opened under its present name; the descriptor follows the directory
        // through the rename.
        saved = std::make_unique<SavedChunks>(folder, rings, shape);
        for (const Chunk& chunk : chunks) {
          saved->Add(chunk, links->overwrites->Of(chunk), sums[PathOf(chunk)]);
        }
        return absl::OkStatus();
      }));
  // After a failed save the chunks of the one before are still known.
  if (links != nullptr) *links->last = std::move(saved);
  return absl::OkStatus();
}

absl::StatusOr<StoredRows> LoadStoredRows(const std::string& directory,
                                          const Lanes& lanes,
                                          const TensorDictSpec& spec,
                                          const StorageLoadOptions& options,
                                          bool has_ragged) {
  for (int i = 0; i < kMostReads; ++i) {
    // Another process may exchange the directory between two files. The
    // mapped files count only where the path still leads to the same one.
    const HeldDirectory held(directory);
    absl::StatusOr<StoredRows> stored =
        LoadSave(directory, lanes, spec, options, has_ragged);
    if (held.IsStillThere()) return stored;
  }
  return DataLoss("Storage::Load: \"", directory, "\": got another save ",
                  kMostReads,
                  " times while it was read, want one that stays so long; "
                  "load it again");
}

std::unique_ptr<SavedChunks> ChunksOf(StoredRows stored,
                                      const OverwriteCounts& overwrites) {
  const bool is_same = stored.saved.lanes() == stored.rings.lanes() &&
                       stored.shape == overwrites.shape();
  if (!is_same || stored.files == nullptr) return nullptr;
  for (const Chunk& chunk : stored.chunks) {
    stored.files->Add(chunk, overwrites.Of(chunk),
                      stored.sums.at(PathOf(chunk)));
  }
  return std::move(stored.files);
}

absl::StatusOr<TensorDict> ReadStored(const StoredRows& stored,
                                      absl::Span<const Slot> slots) {
  std::vector<LeafBatch> places;
  RILL_ASSIGN_OR_RETURN(
      const TensorDict all,
      MakeHostRows(stored.spec, static_cast<int64_t>(slots.size()), &places));
  const std::vector<WantedRun> wanted = RunsOf(stored.rings, slots);
  if (wanted.empty()) return all;
  for (const StoredRows::Part& part : stored.parts) {
    const auto lane_at = [&](int64_t lane) {
      return std::lower_bound(
          wanted.begin(), wanted.end(), lane,
          [](const WantedRun& run, int64_t end) { return run.lane < end; });
    };
    auto next = lane_at(part.first_lane);
    const auto end_of_part = lane_at(part.end_lane);
    // `wanted` is sorted by lane, so the runs of a part's lanes are one span. A
    // part of which no step is wanted is passed over without a look at its
    // rows.
    const bool is_wanted =
        std::any_of(next, end_of_part, [&](const WantedRun& run) {
          return run.first_step < part.end_step &&
                 run.end_step > part.first_step;
        });
    if (!is_wanted) continue;
    const auto copy = [&](const StoredRun& run) -> absl::Status {
      while (next != end_of_part && next->lane < run.lane) ++next;
      for (auto each = next; each != end_of_part && each->lane == run.lane;
           ++each) {
        const int64_t first = std::max(run.first_step, each->first_step);
        const int64_t end = std::min(run.end_step, each->end_step);
        if (first >= end) continue;
        const int64_t row = run.row + first - run.first_step;
        const int64_t at = each->at + first - each->first_step;
        RILL_ASSIGN_OR_RETURN(const TensorDict from,
                              part.rows.Slice(0, row, row + end - first));
        RILL_ASSIGN_OR_RETURN(TensorDict to,
                              all.Slice(0, at, at + end - first));
        RILL_RETURN_IF_ERROR(to.CopyFrom(from));
      }
      return absl::OkStatus();
    };
    RILL_RETURN_IF_ERROR(ForEachRun(stored, part, copy));
  }
  return all;
}

absl::Status FillTable(const StoredRows& stored, RowTable* table) {
  const Lanes& lanes = stored.rings.lanes();
  TableFiller filler(table);
  for (const StoredRows::Part& part : stored.parts) {
    std::vector<Slot> slots;  // Of rows [begin, ...) of the part.
    int64_t begin = 0;
    const auto add = [&](const StoredRun& run) -> absl::Status {
      // Runs that lie one behind the other in the part are one copy, so many
      // short lanes cost no more than a long one.
      if (run.row != begin + static_cast<int64_t>(slots.size())) {
        RILL_RETURN_IF_ERROR(filler.Fill(part.rows, begin, slots));
        slots.clear();
      }
      if (slots.empty()) begin = run.row;
      for (int64_t step = run.first_step; step < run.end_step; ++step) {
        slots.push_back(lanes.SlotOf(run.lane, step % lanes.capacity));
      }
      return absl::OkStatus();
    };
    RILL_RETURN_IF_ERROR(ForEachRun(stored, part, add));
    RILL_RETURN_IF_ERROR(filler.Fill(part.rows, begin, slots));
  }
  return table->AwaitWrites();
}

}  // namespace rill::storage_internal
