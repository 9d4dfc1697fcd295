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
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/telemetry/svg_plot.h"

namespace rill {

absl::StatusOr<std::unique_ptr<RunFiles>> RunFiles::Create(
    const std::string& directory, std::vector<Column> columns, absl::Time now) {
  if (PathExists(directory)) {
    return FailedPrecondition("RunFiles::Create: directory: \"", directory,
                              "\" exists, want a new folder");
  }
  RILL_RETURN_IF_ERROR(CreateDirectories(directory));
  auto files = absl::WrapUnique(new RunFiles(directory, std::move(columns)));
  std::vector<absl::string_view> names;
  for (const Column& column : files->columns_) names.push_back(column.name);
  RILL_ASSIGN_OR_RETURN(
      files->csv_, CsvWriter::Create(JoinPath(directory, "curve.csv"), names));
  RILL_ASSIGN_OR_RETURN(files->events_,
                        TensorBoardWriter::Create(directory, now, HostName()));
  return files;
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
