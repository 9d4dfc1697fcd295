// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TELEMETRY_RUN_FILES_H_
#define RILL_TELEMETRY_RUN_FILES_H_

#include <array>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "rill/telemetry/csv_writer.h"
#include "rill/telemetry/learning_curve.h"
#include "rill/telemetry/tensorboard_writer.h"

namespace rill {

// The folder that a run writes: rows of numbers as curve.csv and as TensorBoard
// events, and the learning curve as curve.svg.
//
// Thread-safety: thread-compatible.
// Cost: two write calls a row, those of CsvWriter and TensorBoardWriter.
//
// Example (RunFilesTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       auto files, RunFiles::Create(run_dir, {{"steps", "progress/steps"},
//                                              {"loss", "train/loss"}}, now));
//   RILL_RETURN_IF_ERROR(files->Write({4096, 0.25}, now));
//   RILL_ASSIGN_OR_RETURN(const std::string position, files->SavePosition());
//   // Later, in the process that goes on from the checkpoint:
//   RILL_ASSIGN_OR_RETURN(
//       files, RunFiles::Open(run_dir, {{"steps", "progress/steps"},
//                                       {"loss", "train/loss"}}, position));
class RunFiles {
 public:
  struct Column {
    std::string name;  // In the header of curve.csv.
    std::string tag;   // Of the events.
  };

  // Makes `directory`, or takes one that is empty. FAILED_PRECONDITION if it
  // holds something, INVALID_ARGUMENT without columns. The first column is the
  // step of the events.
  static absl::StatusOr<std::unique_ptr<RunFiles>> Create(
      const std::string& directory, std::vector<Column> columns,
      absl::Time now);

  // Continues the files of a run that was checkpointed: what it wrote after
  // SavePosition is cut off, so that a resumed run loses no row and writes none
  // twice. FAILED_PRECONDITION where curve.csv has other columns, DATA_LOSS
  // where a file is missing or shorter, or `position` is none; nothing has
  // changed then.
  static absl::StatusOr<std::unique_ptr<RunFiles>> Open(
      const std::string& directory, std::vector<Column> columns,
      absl::string_view position);

  // Says where the files end, for a checkpoint to keep beside the run's state.
  // All rows so far are on the disk when this returns.
  absl::StatusOr<std::string> SavePosition() const;

  // Appends a row, a value for each column, to curve.csv and to the events. NaN
  // is an empty cell and no event. INVALID_ARGUMENT for another number of
  // values; RESOURCE_EXHAUSTED on a full disk, where the row may be in
  // curve.csv alone.
  absl::Status Write(absl::Span<const double> row, absl::Time now);
  // Replaces curve.svg.
  absl::Status WriteCurve(const LearningCurve& curve) const;

 private:
  RunFiles(std::string directory, std::vector<Column> columns)
      : directory_(std::move(directory)), columns_(std::move(columns)) {}

  std::vector<absl::string_view> Names() const;

  const std::string directory_;
  const std::vector<Column> columns_;
  std::unique_ptr<CsvWriter> csv_;
  std::unique_ptr<TensorBoardWriter> events_;
};

// A row by the names of its columns, an enum that ends with kNumColumns; NaN
// where there is no value.
template <typename Column>
struct RunRow {
  RunRow() { values.fill(std::numeric_limits<double>::quiet_NaN()); }
  double& operator[](Column column) { return values[column]; }
  double operator[](Column column) const { return values[column]; }

  std::array<double, Column::kNumColumns> values;
};

}  // namespace rill

#endif  // RILL_TELEMETRY_RUN_FILES_H_
