// SPDX-License-Identifier: Apache-2.0
#include "rill/telemetry/run_files.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/telemetry/svg_plot.h"

namespace rill {
namespace {

constexpr char kCsvFile[] = "curve.csv";
constexpr char kEventPrefix[] = "events.out.tfevents.";
constexpr char kPosition[] = "RunFiles1";

}  // namespace

absl::StatusOr<std::unique_ptr<RunFiles>> RunFiles::Create(
    const std::string& directory, std::vector<Column> columns, absl::Time now) {
  if (PathExists(directory)) {
    const auto names = ListDirectory(directory);
    if (!names.ok() || !names->empty()) {
      return FailedPrecondition("RunFiles::Create: directory: \"", directory,
                                "\" exists, want a new folder or an empty one");
    }
  }
  RILL_RETURN_IF_ERROR(CreateDirectories(directory));
  auto files = absl::WrapUnique(new RunFiles(directory, std::move(columns)));
  RILL_ASSIGN_OR_RETURN(
      files->csv_,
      CsvWriter::Create(JoinPath(directory, kCsvFile), files->Names()));
  RILL_ASSIGN_OR_RETURN(files->events_,
                        TensorBoardWriter::Create(directory, now, HostName()));
  return files;
}

// Position: kPosition, bytes of curve.csv, bytes and name of the event file,
// with a space between.
absl::StatusOr<std::unique_ptr<RunFiles>> RunFiles::Open(
    const std::string& directory, std::vector<Column> columns,
    absl::string_view position) {
  const std::vector<std::string> parts = absl::StrSplit(position, ' ');
  int64_t csv_bytes = -1;
  int64_t event_bytes = -1;
  if (parts.size() != 4 || parts[0] != kPosition ||
      !absl::SimpleAtoi(parts[1], &csv_bytes) ||
      !absl::SimpleAtoi(parts[2], &event_bytes) || csv_bytes < 0 ||
      event_bytes < 0 || !absl::StartsWith(parts[3], kEventPrefix) ||
      absl::StrContains(parts[3], '/')) {
    return DataLoss("RunFiles::Open: position: got \"",
                    absl::CHexEscape(position.substr(0, 80)),
                    "\", want one of SavePosition");
  }
  const std::string csv = JoinPath(directory, kCsvFile);
  const std::string events = JoinPath(directory, parts[3]);
  // Both are looked at before one is cut.
  for (const auto& [path, want] :
       {std::pair(csv, csv_bytes), std::pair(events, event_bytes)}) {
    const auto got = FileSize(path);
    if (got.ok() && *got >= want) continue;
    return DataLoss("RunFiles::Open: \"", path, "\": got ",
                    got.ok() ? absl::StrCat(*got, " bytes") : "no file",
                    ", want ", want, " or more, as at the checkpoint");
  }
  auto files = absl::WrapUnique(new RunFiles(directory, std::move(columns)));
  std::string header;
  AppendCsvHeader(files->Names(), &header);
  RILL_ASSIGN_OR_RETURN(const std::string rows, ReadFile(csv));
  if (!absl::StartsWith(rows, header)) {
    return FailedPrecondition(
        "RunFiles::Open: columns: got ", absl::StripSuffix(header, "\n"),
        ", want those of \"", csv, "\", ", rows.substr(0, rows.find('\n')));
  }
  RILL_ASSIGN_OR_RETURN(
      files->csv_,
      CsvWriter::Reopen(csv, static_cast<int64_t>(files->columns_.size()),
                        csv_bytes));
  RILL_ASSIGN_OR_RETURN(files->events_,
                        TensorBoardWriter::Reopen(events, event_bytes));
  return files;
}

absl::StatusOr<std::string> RunFiles::SavePosition() const {
  RILL_RETURN_IF_ERROR(csv_->Sync());
  RILL_RETURN_IF_ERROR(events_->Sync());
  const std::string& path = events_->path();
  return absl::StrCat(kPosition, " ", csv_->size_bytes(), " ",
                      events_->size_bytes(), " ",
                      path.substr(path.rfind('/') + 1));
}

std::vector<absl::string_view> RunFiles::Names() const {
  std::vector<absl::string_view> names;
  for (const Column& column : columns_) names.push_back(column.name);
  return names;
}

absl::Status RunFiles::Write(absl::Span<const double> row, absl::Time now) {
  RILL_RETURN_IF_ERROR(csv_->WriteRow(row));
  std::vector<TensorBoardWriter::Scalar> scalars;
  // WriteRow has checked that there is a value for each column.
  for (size_t i = 1; i < columns_.size(); ++i) {
    if (std::isnan(row[i])) continue;
    scalars.push_back({columns_[i].tag, row[i]});
  }
  return events_->WriteScalars(static_cast<int64_t>(row[0]), now, scalars);
}

absl::Status RunFiles::WriteCurve(const LearningCurve& curve) const {
  return WriteFileAtomically(JoinPath(directory_, "curve.svg"),
                             RenderSvg(PlotOf(curve)));
}

}  // namespace rill
