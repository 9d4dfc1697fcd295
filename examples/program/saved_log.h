// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_PROGRAM_SAVED_LOG_H_
#define RILL_EXAMPLES_PROGRAM_SAVED_LOG_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/telemetry/learning_curve.h"
#include "rill/telemetry/run_files.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::examples {

// A run's files, and the points of its curve, as a state for a checkpoint: a
// resumed run so writes no row twice and draws all of its curve. All rows so
// far are on the disk when this returns.
absl::StatusOr<TensorDict> SaveLog(const RunFiles& files,
                                   const LearningCurve& curve);

// Opens the files that go on from such a state, and sets the curve's episodes
// and evaluations. Errors as RunFiles::Open; NOT_FOUND names a leaf that the
// state lacks.
absl::StatusOr<std::unique_ptr<RunFiles>> LoadLog(
    const TensorDict& state, const std::string& run_dir,
    std::vector<RunFiles::Column> columns, LearningCurve* curve);

}  // namespace rill::examples

#endif  // RILL_EXAMPLES_PROGRAM_SAVED_LOG_H_
