// SPDX-License-Identifier: Apache-2.0
#include "rill/tools/programs/inspect/find_facts.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/torchrl/torchrl_json.h"
#include "rill/formats/torchrl/torchrl_replay_buffer.h"
#include "rill/storage/directory/row_history.h"
#include "rill/tools/programs/inspect/facts.h"
#include "rill/tools/programs/inspect/row_scan.h"
#include "rill/tools/programs/inspect/sampler_facts.h"
#include "rill/tools/programs/inspect/storage_facts.h"

// A storage's directory and a saved storage have rows (storage_facts.h). A
// saved buffer has priorities, and gets the facts of its storage; a run's
// buffers get those of the storages beside them. A position has cursors only.
// Parts come first, since what holds them takes their facts.

namespace rill::inspect {
namespace {

using storage_internal::RowLine;

// Where there are rows of these lanes and marks.
absl::Status AddPosition(const std::string& path, const Lanes& lanes,
                         Facts* facts) {
  RILL_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  RILL_ASSIGN_OR_RETURN(
      const std::vector<RowLine> lines,
      storage_internal::DecodeLines(absl::StrCat("inspect: \"", path, "\""),
                                    bytes, lanes));
  const storage_internal::LaneRings rings =
      storage_internal::RingsOf(lanes, lines.back().marks);
  facts->lanes = lanes;
  SetMarks(rings, facts);
  return absl::OkStatus();
}

void AddBuffer(const std::string& path, Saved* saved) {
  const Manifest& manifest = saved->manifest;
  if (!manifest.fields.contains("lanes")) return;
  const auto note = [saved](const absl::Status& status) {
    if (!status.ok()) saved->damage.push_back(std::string(status.message()));
  };
  const absl::StatusOr<Lanes> lanes = LanesOf(manifest, "capacity");
  if (!lanes.ok()) return note(lanes.status());
  Facts facts;
  if (const auto storage = saved->parts.find("storage");
      storage != saved->parts.end() && storage->second.facts) {
    // Moved and not copied: the report says them once, of the buffer.
    facts = *std::exchange(storage->second.facts, std::nullopt);
  } else if (manifest.Text("rows").value_or("") == "in_place") {
    note(AddPosition(JoinPath(path, "storage.position"), *lanes, &facts));
  }
  note(AddPriorities(path, *lanes, &facts));
  saved->facts = std::move(facts);
}

// The rows of a run's buffers are those of the storages beside them.
void AddRun(Saved* saved) {
  for (int64_t i = 0;; ++i) {
    const absl::StatusOr<int64_t> storage =
        saved->manifest.Int(absl::StrCat("buffer_", i, "_storage"));
    if (!storage.ok()) return;
    const auto rows = saved->parts.find(absl::StrCat("storages/", *storage));
    const auto buffer = saved->parts.find(absl::StrCat("buffers/", i));
    if (rows == saved->parts.end() || !rows->second.facts ||
        buffer == saved->parts.end() || !buffer->second.facts) {
      continue;
    }
    Facts facts = *rows->second.facts;
    facts.priorities = buffer->second.facts->priorities;
    buffer->second.facts = std::move(facts);
  }
}

// --- TorchRL's ---------------------------------------------------------------

absl::Status ScanTorchRl(const TorchRlReplayBuffer& buffer, int64_t max_rows,
                         Facts* facts) {
  const int64_t steps = buffer.steps(), lanes = buffer.lanes();
  RowScan scan(
      [&](absl::string_view key) { return buffer.rows.Find(key) != nullptr; });
  const std::vector<absl::string_view> keys(scan.keys().begin(),
                                            scan.keys().end());
  RILL_ASSIGN_OR_RETURN(TensorDict rows, buffer.rows.Select(keys));
  RILL_ASSIGN_OR_RETURN(rows, rows.Reshape({steps, lanes}));
  // In the order of age.
  // A ring that is full begins at its cursor: its rows are [oldest, steps),
  // then [0, oldest).
  const int64_t oldest = buffer.is_full() ? buffer.cursor : 0;
  // Steps of each lane that are too many, the oldest.
  const int64_t skipped = std::max<int64_t>(steps - max_rows / lanes, 0);
  for (int64_t lane = 0; lane < lanes; ++lane) {
    RILL_ASSIGN_OR_RETURN(const TensorDict one, rows.SelectDim(1, lane));
    scan.BeginLane(/*from_first_step=*/skipped == 0 &&
                   facts->oldest[lane] == 0);
    for (const auto& [begin, end] :
         {std::pair(oldest, steps), std::pair(int64_t{0}, oldest)}) {
      const int64_t before = begin == oldest ? 0 : steps - oldest;
      const int64_t first =
          std::min(end, begin + std::max<int64_t>(skipped - before, 0));
      RILL_ASSIGN_OR_RETURN(const TensorDict part, one.Slice(0, first, end));
      RILL_RETURN_IF_ERROR(scan.Add(part));
    }
  }
  scan.Finish(facts);
  return absl::OkStatus();
}

void AddTorchRl(const FactOptions& options, Saved* saved) {
  const TorchRlReplayBuffer& buffer = *saved->torchrl;
  const int64_t steps = buffer.steps(), lanes = buffer.lanes();
  Facts facts;
  facts.lanes = {.count = lanes, .capacity = buffer.capacity};
  // A count that contradicts the rows is not believed.
  const int64_t written = std::max(buffer.write_count, steps);
  facts.written.assign(static_cast<size_t>(lanes), written);
  facts.oldest.assign(static_cast<size_t>(lanes), written - steps);
  // The rows of a writer of largest values are in no order.
  if (!buffer.top_k && steps > 0) {
    if (const absl::Status status =
            ScanTorchRl(buffer, options.max_rows, &facts);
        !status.ok()) {
      saved->damage.push_back(std::string(status.message()));
    }
  }
  if (const auto* saved_priorities =
          std::get_if<TorchRlPriorities>(&buffer.sampler);
      saved_priorities != nullptr && saved_priorities->alpha > 0) {
    const Tensor& values = saved_priorities->values;
    Spread priorities;
    for (int64_t i = 0; i < std::min(values.num_elements(), steps * lanes);
         ++i) {
      priorities.Add(
          // TorchRL keeps (p + epsilon)^alpha; people gave p.
          std::pow(values.data<double>()[i], 1 / saved_priorities->alpha) -
          saved_priorities->epsilon);
    }
    facts.priorities = priorities;
  }
  saved->facts = std::move(facts);
}

// The counts that are left of a buffer whose rows cannot be read.
void AddDamagedTorchRl(const std::string& path, Saved* saved) {
  using formats_internal::kMaxTorchRlJsonBytes;
  const std::string rows = JoinPath(path, "storage/storage_metadata.json");
  const std::string writer = JoinPath(path, "writer/metadata.json");
  const auto rows_text = ReadFile(rows, kMaxTorchRlJsonBytes);
  if (!rows_text.ok()) return;
  const auto of_rows = formats_internal::ParseTorchRlStorage(rows, *rows_text);
  if (!of_rows.ok()) return;
  int64_t written = of_rows->len;
  if (const auto text = ReadFile(writer, kMaxTorchRlJsonBytes); text.ok()) {
    const auto of_writer = formats_internal::ParseTorchRlWriter(writer, *text);
    if (of_writer.ok() && of_writer->write_count) {
      written = std::max(written, *of_writer->write_count);
    }
  }
  // How many lanes there are only the rows tell.
  Facts facts = {.lanes = {.count = 1, .capacity = 0}};
  facts.written = {written};
  facts.oldest = {written - of_rows->len};
  saved->facts = std::move(facts);
}

}  // namespace

void AddFacts(const std::string& path, const FactOptions& options,
              Saved* saved) {
  for (auto& [name, part] : saved->parts) {
    AddFacts(JoinPath(path, name), options, &part);
  }
  if (saved->torchrl) {
    AddTorchRl(options, saved);
  } else if (saved->form == Form::kTorchRl) {
    AddDamagedTorchRl(path, saved);
  }
  if (saved->form != Form::kRill) return;
  if (saved->manifest.kind == "storage_directory") {
    AddStorageDirectory(path, options, saved);
  } else if (saved->manifest.kind == "storage") {
    AddSavedStorage(path, options.max_rows, saved);
  } else if (saved->manifest.kind == "replay_buffer") {
    AddBuffer(path, saved);
  } else if (saved->manifest.kind == "run_checkpoint") {
    AddRun(saved);
  }
}

}  // namespace rill::inspect
