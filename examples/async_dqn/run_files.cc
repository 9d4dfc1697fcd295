// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/async_dqn/run_files.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/telemetry/svg_plot.h"

namespace rill::async_dqn {
namespace {

struct ColumnText {
  const char* name;
  const char* tag;
};
constexpr ColumnText kColumns[kNumColumns] = {
    {"frames", "progress/frames"},
    {"episodes", "progress/episodes"},
    {"mean_return", "train/mean_return"},
    {"evaluation", "evaluate/mean_return"},
    {"updates", "progress/updates"},
    {"weights", "progress/weights"},
    {"kills", "workers/kills"},
    {"restarts", "workers/restarts"},
    {"resident_mb", "system/resident_mb"},
    {"children_mb", "system/children_mb"},
    {"descriptors", "system/descriptors"},
    {"mappings", "system/mappings"},
    {"processes", "system/processes"},
    {"seconds", "time/seconds"},
    {"frames_per_second", "time/frames_per_second"},
};

}  // namespace

RunFiles::RunFiles(std::string path, std::unique_ptr<CsvWriter> csv,
                   std::unique_ptr<TensorBoardWriter> events)
    : path_(std::move(path)),
      csv_(std::move(csv)),
      events_(std::move(events)) {}

absl::StatusOr<std::unique_ptr<RunFiles>> RunFiles::Create(
    const std::string& path, absl::Time now) {
  if (PathExists(path)) {
    return absl::FailedPreconditionError(
        absl::StrCat("--run_dir: \"", path, "\" exists, want a new folder"));
  }
  RILL_RETURN_IF_ERROR(CreateDirectories(path));
  std::vector<absl::string_view> names;
  for (const ColumnText& column : kColumns) names.push_back(column.name);
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<CsvWriter> csv,
                        CsvWriter::Create(JoinPath(path, "curve.csv"), names));
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<TensorBoardWriter> events,
                        TensorBoardWriter::Create(path, now, HostName()));
  return std::unique_ptr<RunFiles>(
      new RunFiles(path, std::move(csv), std::move(events)));
}

absl::Status RunFiles::Write(const RunRow& row, absl::Time now) {
  RILL_RETURN_IF_ERROR(csv_->WriteRow(row.values));
  std::vector<TensorBoardWriter::Scalar> scalars;
  for (int c = kFrames + 1; c < kNumColumns; ++c) {
    if (std::isnan(row.values[c])) continue;
    scalars.push_back({kColumns[c].tag, row.values[c]});
  }
  return events_->WriteScalars(static_cast<int64_t>(row[kFrames]), now,
                               scalars);
}

absl::Status RunFiles::WriteCurve(const LearningCurve& curve) const {
  return WriteFileAtomically(JoinPath(path_, "curve.svg"),
                             RenderSvg(PlotOf(curve)));
}

}  // namespace rill::async_dqn
