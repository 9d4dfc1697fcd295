// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/dqn_cartpole/run_folder.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rill/base/file.h"
#include "rill/base/new_directory.h"
#include "rill/base/status_macros.h"
#include "rill/telemetry/learning_curve.h"
#include "rill/telemetry/svg_plot.h"

namespace rill::dqn_cartpole {

RunFolder::RunFolder(std::string path,
                     std::unique_ptr<TensorBoardWriter> events)
    : path_(std::move(path)), events_(std::move(events)) {}

absl::StatusOr<RunFolder> RunFolder::Create(const std::string& path,
                                            absl::Time now) {
  if (PathExists(path)) {
    if (!IsDirectory(path)) {
      return FailedPrecondition("--run_dir: \"", path,
                                "\" is a file, want a folder");
    }
    RILL_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDirectory(path));
    if (!names.empty()) {
      return FailedPrecondition(
          "--run_dir: \"", path, "\" holds ", names.size(), " entries (\"",
          names[0],
          "\"), want a new or empty folder; go on with --resume, or "
          "name another folder");
    }
  }
  RILL_RETURN_IF_ERROR(
      MakeNewDirectory("RunFolder::Create", "--run_dir", path));
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<TensorBoardWriter> events,
                        TensorBoardWriter::Create(path, now, HostName()));
  return RunFolder(path, std::move(events));
}

absl::StatusOr<RunFolder> RunFolder::Resume(const std::string& path,
                                            const EventsPosition& events) {
  // Files that a killed run left half written beside those that they replace.
  RILL_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDirectory(path));
  for (const std::string& name : names) {
    for (absl::string_view file : {"checkpoint", "curve.csv", "curve.svg"}) {
      if (!absl::StartsWith(name, absl::StrCat(file, ".tmp-"))) continue;
      RILL_RETURN_IF_ERROR(RemoveAll(JoinPath(path, name)));
    }
  }
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<TensorBoardWriter> writer,
                        TensorBoardWriter::Reopen(JoinPath(path, events.file),
                                                  events.size_bytes));
  return RunFolder(path, std::move(writer));
}

absl::Status RunFolder::WriteEvents(const RunRow& row, absl::Time now) {
  const std::vector<RunFiles::Column> columns = RunColumns();
  std::vector<TensorBoardWriter::Scalar> scalars;
  // Without the steps, which are each scalar's own.
  for (int c = kEpisodes; c < kNumColumns; ++c) {
    const Column column = static_cast<Column>(c);
    // NaN stands for no value: such a scalar is left out.
    if (!std::isnan(row[column])) {
      scalars.push_back({columns[c].tag, row[column]});
    }
  }
  return events_->WriteScalars(static_cast<int64_t>(row[kSteps]), now, scalars);
}

absl::Status RunFolder::WriteCsv(const RunLog& log) const {
  return WriteFileAtomically(JoinPath(path_, "curve.csv"), log.Csv());
}

absl::Status RunFolder::WriteCurve(const RunLog& log,
                                   const Config& config) const {
  const std::string title =
      absl::StrCat("CartPole-v1, double DQN, seed ", config.seed);
  return WriteFileAtomically(
      JoinPath(path_, "curve.svg"),
      RenderSvg(PlotOf(log.Curve(title, config.solve_return))));
}

std::string RunFolder::checkpoint_path() const { return CheckpointPath(path_); }

EventsPosition RunFolder::events_position() const {
  const std::string& path = events_->path();
  return {path.substr(path.rfind('/') + 1), events_->size_bytes()};
}

std::string CheckpointPath(const std::string& run_path) {
  return JoinPath(run_path, "checkpoint");
}

std::string ChooseRunPath(int64_t seed) {
  const std::string first = absl::StrCat("runs/seed_", seed);
  std::string path = first;
  for (int64_t n = 2; PathExists(path); ++n) path = absl::StrCat(first, "_", n);
  return path;
}

}  // namespace rill::dqn_cartpole
