// SPDX-License-Identifier: Apache-2.0
#include "rill/tools/programs/inspect/storage_facts.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/consolidated.h"
#include "rill/formats/memmap_directory.h"
#include "rill/specs/spec.h"
#include "rill/storage/chunks/saved_chunks.h"
#include "rill/storage/chunks/stored_rows.h"
#include "rill/storage/directory/commit_record.h"
#include "rill/storage/directory/storage_description.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/row_reader.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tools/programs/inspect/element_text.h"
#include "rill/tools/programs/inspect/row_scan.h"

namespace rill::inspect {
namespace {

using storage_internal::ChunkShape;
using storage_internal::CommitRecord;
using storage_internal::CommitState;
using storage_internal::CommitView;
using storage_internal::LaneMark;
using storage_internal::LaneRings;
using storage_internal::StepSpan;
using storage_internal::StorageDescription;

constexpr int64_t kPieceRows = 4096;
constexpr int64_t kPieceBytes = int64_t{16} << 20;
// Of rows whose leaves are looked at, where not all are asked for.
constexpr int64_t kMaxLeafBytes = int64_t{64} << 20;
// For a record that is written while it is copied.
constexpr int kLooks = 1000;

void Note(const absl::Status& status, Saved* saved) {
  if (!status.ok()) saved->damage.push_back(std::string(status.message()));
}

// The process that has the directory's lock, by the kernel's list: a look at
// the lock itself would be in an owner's way. Empty where nobody has it, or the
// list is not there.
std::string WriterOf(const std::string& directory) {
  struct stat file;
  if (stat(JoinPath(directory, "rill.lock").c_str(), &file) != 0) return "";
  const std::string place =
      absl::StrFormat("%02x:%02x:%d", major(file.st_dev), minor(file.st_dev),
                      static_cast<int64_t>(file.st_ino));
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    // "1: FLOCK  ADVISORY  WRITE 12 08:01:131 0 EOF"; who waits has "->".
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.size() > 5 && words[1] == "FLOCK" && words[5] == place) {
      return absl::StrCat("process ", words[4]);
    }
  }
  return "";
}

// --- A storage directory -----------------------------------------------------

// The steps that are committed now.
absl::StatusOr<CommitState> ReadRecord(const std::string& path,
                                       const Lanes& lanes) {
  absl::StatusOr<CommitState> state = Internal("");
  std::string bytes, before;
  for (int i = 0; i < kLooks && !state.ok(); ++i) {
    // A record that does not check out may be torn: it was copied while it was
    // written. One that is the same twice is damaged.
    before.swap(bytes);
    RILL_ASSIGN_OR_RETURN(
        bytes, ReadFile(JoinPath(path, storage_internal::kRecordFile)));
    if (i > 0 && bytes == before) break;  // Nobody writes.
    const absl::StatusOr<CommitView> view = CommitRecord::Read(
        absl::MakeConstSpan(reinterpret_cast<const std::byte*>(bytes.data()),
                            bytes.size()),
        lanes);
    state =
        view.ok() ? absl::StatusOr<CommitState>(view->state) : view.status();
  }
  if (state.ok()) return state;
  return absl::Status(
      state.status().code(),
      absl::StrCat("\"", JoinPath(path, storage_internal::kRecordFile),
                   "\": ", state.status().message()));
}

// The first step of each lane that the appends in flight leave whole.
void SetMarks(const CommitState& state, const Lanes& lanes, Facts* facts) {
  for (int64_t lane = 0; lane < lanes.count; ++lane) {
    const LaneMark& mark = state.marks[static_cast<size_t>(lane)];
    // Rows of steps that are on their way overwrite the oldest of a full ring:
    // those are not whole any more.
    const int64_t flight =
        storage_internal::StepsInFlight(state.in_flight, lane);
    facts->written.push_back(mark.written);
    facts->oldest.push_back(std::min(
        mark.written, std::max({mark.first_live, int64_t{0},
                                mark.written + flight - lanes.capacity})));
  }
}

// Steps [first, end) of a lane.
struct LanePart {
  int64_t lane = 0;
  int64_t first = 0;
  int64_t end = 0;
  bool is_cut = false;  // The rows before are missing.
};

// The rows to look at, cut into pieces of many lanes or of a part of one.
std::vector<std::vector<LanePart>> PiecesOf(const Facts& facts,
                                            int64_t max_rows,
                                            int64_t piece_rows) {
  std::vector<std::vector<LanePart>> pieces;
  int64_t room = 0;
  // As many of each lane, the newest.
  const int64_t most = std::max<int64_t>(max_rows / facts.lanes.count, 1);
  for (int64_t lane = 0; lane < facts.lanes.count; ++lane) {
    const auto at = static_cast<size_t>(lane);
    const int64_t end = facts.written[at];
    int64_t first = std::max(facts.oldest[at], end - most);
    const bool is_cut = first > 0;
    for (bool is_first = true; first < end; is_first = false) {
      if (room == 0) {
        pieces.emplace_back();
        room = piece_rows;
      }
      const int64_t stop = std::min(first + room, end);
      pieces.back().push_back({lane, first, stop, is_first && is_cut});
      room -= stop - first;
      first = stop;
    }
  }
  return pieces;
}

// Less what is no longer there, by the record of now.
absl::Status CutToLive(const std::string& path, const Lanes& lanes,
                       std::vector<LanePart>* piece) {
  Facts now;
  RILL_ASSIGN_OR_RETURN(const CommitState state, ReadRecord(path, lanes));
  SetMarks(state, lanes, &now);
  for (LanePart& part : *piece) {
    const auto at = static_cast<size_t>(part.lane);
    part.end = std::max(std::min(part.end, now.written[at]), part.first);
    if (part.first >= now.oldest[at] && part.end <= now.written[at]) continue;
    part.first = std::clamp(now.oldest[at], part.first, part.end);
    if (part.end > now.written[at]) part.first = part.end;  // It was cleared.
    part.is_cut = true;
  }
  return absl::OkStatus();
}

// Reads a piece, less the rows that are overwritten meanwhile.
absl::Status ReadPiece(const std::string& path, const RowReader& storage,
                       absl::Span<const std::string> keys,
                       std::vector<LanePart>* piece, TensorDict* rows) {
  const Lanes& lanes = storage.lanes();
  std::vector<Slot> slots;
  for (int i = 0; i < kLooks; ++i) {
    slots.clear();
    for (const LanePart& part : *piece) {
      for (int64_t step = part.first; step < part.end; ++step) {
        slots.push_back(lanes.SlotOf(part.lane, step % lanes.capacity));
      }
    }
    const absl::Status status = storage.ReadLeaves(slots, keys, rows);
    if (!absl::IsOutOfRange(status)) return status;
    // Some are being overwritten, or all were cleared.
    RILL_RETURN_IF_ERROR(CutToLive(path, lanes, piece));
  }
  return Unavailable("inspect: \"", path,
                     "\": rows were overwritten faster than they were read");
}

// Calls see(part, rows [n]) with the rows of each part, less what is
// overwritten meanwhile; those of one lane come one after the other.
absl::Status SeeParts(
    const std::string& path, const RowReader& storage,
    absl::Span<const std::string> keys,
    std::vector<std::vector<LanePart>> pieces,
    absl::FunctionRef<absl::Status(const LanePart&, const TensorDict&)> see) {
  TensorDict rows;
  for (std::vector<LanePart>& piece : pieces) {
    RILL_RETURN_IF_ERROR(ReadPiece(path, storage, keys, &piece, &rows));
    // Slots of older steps had newer rows by then, or may have had.
    const std::vector<Cursor> cursors = storage.cursors();
    int64_t begin = 0;
    for (LanePart& part : piece) {
      const int64_t count = part.end - part.first;
      // A writer that has come around the ring has overwritten the steps below
      // written - capacity, maybe while they were read.
      const int64_t whole =
          std::clamp(cursors[static_cast<size_t>(part.lane)].written -
                         storage.lanes().capacity,
                     part.first, part.end);
      part.is_cut = part.is_cut || whole > part.first;
      RILL_ASSIGN_OR_RETURN(
          const TensorDict part_rows,
          rows.Slice(0, begin + whole - part.first, begin + count));
      RILL_RETURN_IF_ERROR(see(part, part_rows));
      begin += count;
    }
  }
  return absl::OkStatus();
}

absl::Status ScanDirectory(const std::string& path, const RowReader& storage,
                           int64_t max_rows, Facts* facts) {
  const TensorDictSpec spec = storage.spec();
  RowScan scan(
      [&](absl::string_view key) { return spec.Find(key) != nullptr; });
  if (scan.keys().empty()) return absl::OkStatus();
  int64_t lane = -1;
  RILL_RETURN_IF_ERROR(SeeParts(
      path, storage, scan.keys(), PiecesOf(*facts, max_rows, kPieceRows),
      [&](const LanePart& part, const TensorDict& rows) {
        if (part.lane != lane) {
          scan.BeginLane(/*from_first_step=*/!part.is_cut);
        } else if (part.is_cut) {
          scan.Gap();
        }
        lane = part.lane;
        return scan.Add(rows);
      }));
  scan.Finish(facts);
  return absl::OkStatus();
}

// The leaves, and the extremes of the newest rows.
absl::Status ScanLeaves(const std::string& path, const RowReader& storage,
                        int64_t max_rows, Facts* facts) {
  const TensorDictSpec spec = storage.spec();
  std::vector<std::string> keys;
  int64_t row_bytes = 1;
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    keys.push_back(leaf.key);
    row_bytes += leaf.spec.shape.num_elements() * DTypeSize(leaf.spec.dtype);
    facts->leaves.push_back({.key = leaf.key,
                             .dtype = std::string(DTypeName(leaf.spec.dtype)),
                             .shape = leaf.spec.shape.ToString()});
  }
  if (keys.empty()) return absl::OkStatus();
  if (max_rows != std::numeric_limits<int64_t>::max()) {
    max_rows = std::clamp<int64_t>(kMaxLeafBytes / row_bytes, 1, max_rows);
  }
  const int64_t piece_rows =
      std::clamp<int64_t>(kPieceBytes / row_bytes, 1, kPieceRows);
  std::vector<Summaries> summaries(keys.size());
  RILL_RETURN_IF_ERROR(
      SeeParts(path, storage, keys, PiecesOf(*facts, max_rows, piece_rows),
               [&](const LanePart&, const TensorDict& rows) -> absl::Status {
                 for (size_t i = 0; i < keys.size(); ++i) {
                   RILL_RETURN_IF_ERROR(summaries[i].Add(*rows.Find(keys[i])));
                 }
                 facts->leaf_rows += rows.batch_shape()[0];
                 return absl::OkStatus();
               }));
  for (size_t i = 0; i < keys.size(); ++i) {
    const Summary summary = summaries[i].Get();
    facts->leaves[i].min = summary.min;
    facts->leaves[i].max = summary.max;
    facts->leaves[i].nans = summary.nans;
  }
  return absl::OkStatus();
}

absl::Status LookAtRows(const std::string& path, const FactOptions& options,
                        Facts* facts) {
  RILL_ASSIGN_OR_RETURN(const std::unique_ptr<RowReader> storage,
                        MemmapStorage::OpenReader(path));
  RILL_RETURN_IF_ERROR(ScanDirectory(path, *storage, options.max_rows, facts));
  if (!options.leaves) return absl::OkStatus();
  return ScanLeaves(path, *storage, options.max_rows, facts);
}

// --- A saved storage ---------------------------------------------------------

// The chunks of a group of lanes, opened when they are needed. Those that are
// damaged are gaps.
class Chunks {
 public:
  struct Chunk {
    std::optional<TensorDict> rows;  // None where it cannot be read.
    std::vector<int64_t> begins;     // Of the rows of each lane of the group.
  };

  Chunks(const std::string& rows, const ChunkShape& shape, bool is_one,
         const LaneRings& rings, Saved* saved)
      : rows_(rows),
        shape_(shape),
        is_one_(is_one),
        rings_(rings),
        saved_(saved) {}

  // Chunk `number` of the group of `lane`. Groups come one after the other.
  const Chunk& Find(int64_t lane, int64_t number) {
    const int64_t group = lane / shape_.lanes;
    // Lanes come in order, so a group that was left does not come again: at
    // most the chunks of one group are open.
    if (group != group_) open_.clear();
    group_ = group;
    const auto [place, is_new] = open_.try_emplace(number);
    if (is_new) Open(number, &place->second);
    return place->second;
  }

  // The steps that a lane has there.
  StepSpan Steps(int64_t lane, int64_t number) const {
    return storage_internal::LiveSteps(rings_, lane, shape_, number);
  }

 private:
  void Open(int64_t number, Chunk* chunk) const {
    const int64_t first = group_ * shape_.lanes;
    const int64_t end = std::min(first + shape_.lanes, rings_.lanes().count);
    // A chunk has the live rows of its lanes one after the other; where a
    // lane's begin follows from the cursors.
    int64_t count = 0;
    for (int64_t lane = first; lane < end; ++lane) {
      chunk->begins.push_back(count);
      const StepSpan steps = Steps(lane, number);
      count += steps.end - steps.first;
    }
    const std::string path =
        is_one_
            ? rows_
            : JoinPath(rows_, storage_internal::ChunkName({group_, number, 0}));
    absl::StatusOr<TensorDict> rows =
        is_one_ ? LoadMemmapDirectory(path) : LoadConsolidated(path);
    if (rows.ok() && rows->batch_shape() == Shape({count})) {
      chunk->rows = *std::move(rows);
      return;
    }
    Note(rows.ok() ? DataLoss("inspect: \"", path, "\": got batch ",
                              rows->batch_shape().ToString(), ", want ", count,
                              " rows")
                   : rows.status(),
         saved_);
  }

  const std::string rows_;
  const ChunkShape shape_;
  const bool is_one_;  // Of versions 1 and 2: one directory of all rows.
  const LaneRings& rings_;
  Saved* const saved_;
  int64_t group_ = -1;
  std::map<int64_t, Chunk> open_;  // By number, of one group.
};

absl::Status ScanChunks(const LaneRings& rings, const ChunkShape& shape,
                        int64_t max_rows, Chunks* chunks, Facts* facts) {
  std::optional<RowScan> scan;
  const int64_t most = std::max<int64_t>(max_rows / rings.lanes().count, 1);
  for (int64_t lane = 0; lane < rings.lanes().count; ++lane) {
    const int64_t end = rings.cursors()[static_cast<size_t>(lane)].written;
    const int64_t first = std::max(end - rings.live(lane), end - most);
    bool is_gap = first > 0;
    if (scan) scan->BeginLane(!is_gap);
    for (int64_t number = first / shape.steps;
         first < end && number <= (end - 1) / shape.steps; ++number) {
      const Chunks::Chunk& chunk = chunks->Find(lane, number);
      if (!chunk.rows) {
        is_gap = true;
        if (scan) scan->Gap();
        continue;
      }
      // The leaves are known with the first chunk that can be read.
      if (!scan) {
        scan.emplace([&](absl::string_view key) {
          return chunk.rows->Find(key) != nullptr;
        });
        scan->BeginLane(!is_gap);
      }
      const std::vector<absl::string_view> keys(scan->keys().begin(),
                                                scan->keys().end());
      RILL_ASSIGN_OR_RETURN(const TensorDict needed, chunk.rows->Select(keys));
      const StepSpan steps = chunks->Steps(lane, number);
      const int64_t skipped = std::max<int64_t>(first - steps.first, 0);
      const int64_t begin =
          chunk.begins[static_cast<size_t>(lane % shape.lanes)];
      RILL_ASSIGN_OR_RETURN(
          const TensorDict part,
          needed.Slice(0, begin + skipped, begin + steps.end - steps.first));
      RILL_RETURN_IF_ERROR(scan->Add(part));
    }
  }
  if (scan) scan->Finish(facts);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Lanes> LanesOf(const Manifest& manifest,
                              const std::string& capacity) {
  RILL_ASSIGN_OR_RETURN(const int64_t count, manifest.Int("lanes"));
  RILL_ASSIGN_OR_RETURN(int64_t slots, manifest.Int(capacity));
  if (count >= 1 && capacity == "capacity") {
    slots = slots % count == 0 ? slots / count : 0;
  }
  // Divided and not multiplied: numbers from a file may overflow.
  if (count >= 1 && slots >= 1 && slots <= kMaxWritten / count) {
    return Lanes{.count = count, .capacity = slots};
  }
  return DataLoss("inspect: lanes and ", capacity, ": got ", count, " and ",
                  slots, ", want lanes with slots");
}

void SetMarks(const LaneRings& rings, Facts* facts) {
  for (int64_t lane = 0; lane < rings.lanes().count; ++lane) {
    const int64_t written = rings.cursors()[static_cast<size_t>(lane)].written;
    facts->written.push_back(written);
    facts->oldest.push_back(written - rings.live(lane));
  }
}

void AddStorageDirectory(const std::string& path, const FactOptions& options,
                         Saved* saved) {
  const absl::StatusOr<StorageDescription> description =
      storage_internal::ReadDescription("inspect", path);
  if (!description.ok()) return Note(description.status(), saved);
  Facts facts;
  facts.lanes = description->lanes;
  facts.writer = WriterOf(path);
  const absl::StatusOr<CommitState> state =
      ReadRecord(path, description->lanes);
  Note(state.status(), saved);
  if (state.ok()) {
    SetMarks(*state, description->lanes, &facts);
    Note(LookAtRows(path, options, &facts), saved);
  }
  saved->facts = std::move(facts);
}

void AddSavedStorage(const std::string& path, int64_t max_rows, Saved* saved) {
  const Manifest& manifest = saved->manifest;
  if (!manifest.fields.contains("lane_capacity")) return;
  const absl::StatusOr<Lanes> lanes = LanesOf(manifest, "lane_capacity");
  if (!lanes.ok()) return Note(lanes.status(), saved);
  const absl::StatusOr<LaneRings> rings =
      storage_internal::ReadRings("inspect", manifest, *lanes);
  if (!rings.ok()) return Note(rings.status(), saved);
  Facts facts;
  facts.lanes = *lanes;
  SetMarks(*rings, &facts);
  const absl::Status status = [&]() -> absl::Status {
    // Versions 1 and 2 have no chunks: one of all rows.
    const bool is_one = manifest.version < 3;
    ChunkShape shape = {.lanes = lanes->count, .steps = kMaxWritten};
    if (!is_one && manifest.fields.contains("chunk_steps")) {
      RILL_ASSIGN_OR_RETURN(shape.lanes, manifest.Int("chunk_lanes"));
      RILL_ASSIGN_OR_RETURN(shape.steps, manifest.Int("chunk_steps"));
      if (shape.lanes < 1 || shape.steps < 1) {
        return DataLoss("inspect: chunk_lanes and chunk_steps: got ",
                        shape.lanes, " and ", shape.steps, ", want both >= 1");
      }
    }
    Chunks chunks(JoinPath(path, "rows"), shape, is_one, *rings, saved);
    return ScanChunks(*rings, shape, max_rows, &chunks, &facts);
  }();
  Note(status, saved);
  saved->facts = std::move(facts);
}

}  // namespace rill::inspect
