// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/workers/multi_collector_options.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rill/base/catch_exceptions.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"
#include "rill/flow/trajectory_id.h"

namespace rill::workers_internal {
namespace {

absl::Status CheckFrames(absl::string_view caller,
                         const MultiCollectorOptions& options) {
  const std::vector<int64_t>& frames = options.frames_per_worker;
  // Either the list or the one number, never both.
  const bool is_list = !frames.empty();
  const int64_t least = is_list
                            ? *std::min_element(frames.begin(), frames.end())
                            : options.frames_per_batch;
  if (least > 0 &&
      (!is_list || (options.frames_per_batch == 0 &&
                    frames.size() == static_cast<size_t>(options.workers)))) {
    return absl::OkStatus();
  }
  return InvalidArgument(
      caller, ": frames_per_batch, frames_per_worker: got ",
      options.frames_per_batch, ", [", absl::StrJoin(frames, ", "),
      "], want one of them, each number > 0, and one a worker");
}

}  // namespace

absl::Status CheckOptions(absl::string_view caller,
                          const MultiCollectorOptions& options) {
  const auto refuse = [&](absl::string_view option, auto got,
                          absl::string_view want) {
    return InvalidArgument(caller, ": ", option, ": got ", got, ", want ",
                           want);
  };
  if (options.workers < 1 || options.workers > 4096) {
    return refuse("workers", options.workers, "[1, 4096]");
  }
  if ((options.worker == nullptr) == options.worker_name.empty()) {
    return refuse("worker and worker_name",
                  options.worker == nullptr ? "none" : "both", "one of them");
  }
  RILL_RETURN_IF_ERROR(CheckFrames(caller, options));
  if (options.total_frames < 1 && options.total_frames != -1) {
    return refuse("total_frames", options.total_frames, "> 0, or -1");
  }
  if (options.init_random_frames < 0) {
    return refuse("init_random_frames", options.init_random_frames, ">= 0");
  }
  if (options.max_frames_per_traj < 1 && options.max_frames_per_traj != -1) {
    return refuse("max_frames_per_traj", options.max_frames_per_traj,
                  "> 0, or -1");
  }
  if (options.max_staleness < -1 ||
      (options.max_staleness >= 0 && options.weights == nullptr)) {
    return refuse("max_staleness", options.max_staleness,
                  ">= 0 with weights, or -1");
  }
  if (const auto share = options.preemptive_threshold;
      share.has_value() && !(*share > 0 && *share <= 1)) {
    return refuse("preemptive_threshold", *share, "(0, 1], or none");
  }
  if (options.inference != nullptr &&
      options.inference->clients() < options.workers) {
    return refuse(
        "inference", absl::StrCat(options.inference->clients(), " clients"),
        absl::StrCat("one for each of ", options.workers, " workers"));
  }
  if (options.recorder != nullptr) {
    if (options.inference != nullptr) {
      return refuse("recorder", "one beside inference",
                    "no inference: which workers a call serves is not logged");
    }
    if (options.is_interrupted != nullptr) {
      return refuse("recorder", "one beside is_interrupted",
                    "one of them: no repeat is interrupted; take Stop()");
    }
    if (options.weights != nullptr && options.weights->part() < 0) {
      return refuse("recorder", "one that weights do not have",
                    "the same in WeightStore::Options");
    }
  }
  for (const auto& [option, timeout] :
       {std::pair("start_timeout", options.start_timeout),
        std::pair("batch_timeout", options.batch_timeout),
        std::pair("step_timeout", options.step_timeout)}) {
    if (timeout > absl::ZeroDuration()) continue;
    return refuse(option, absl::FormatDuration(timeout), "> 0");
  }
  if (options.max_restarts < 0) {
    return refuse("max_restarts", options.max_restarts, ">= 0");
  }
  // Divided, not multiplied: max_restarts may be any number.
  if (const int64_t producer = options.producer.value_or(0);
      producer < 0 ||
      options.max_restarts >
          (kMaxTrajectoryProducer - producer + 1) / options.workers - 1) {
    return refuse("producer, max_restarts",
                  absl::StrCat(producer, ", ", options.max_restarts),
                  "the producer of every worker and of those started anew in "
                  "[0, 2^23)");
  }
  if (options.first_lane < 0) {
    return refuse("first_lane", options.first_lane, ">= 0");
  }
  return absl::OkStatus();
}

int64_t AskedFrames(const MultiCollectorOptions& options, int64_t worker) {
  return options.frames_per_worker.empty()
             ? ShareOf(options.frames_per_batch, options.workers)
             : options.frames_per_worker[worker];
}

absl::Time NextLook(const MultiCollectorOptions& options) {
  return options.is_interrupted == nullptr
             ? absl::InfiniteFuture()
             : Clock::Steady().Now() + absl::Milliseconds(50);
}

absl::Status CheckInterrupted(absl::string_view caller,
                              const MultiCollectorOptions& options) {
  if (options.is_interrupted == nullptr) return absl::OkStatus();
  bool is_interrupted = false;
  RILL_RETURN_IF_ERROR(CatchExceptions(
      [&] {
        is_interrupted = options.is_interrupted();
        return absl::OkStatus();
      },
      "is_interrupted"));
  if (!is_interrupted) return absl::OkStatus();
  return absl::CancelledError(
      absl::StrCat(caller, ": interrupted; call again to go on"));
}

int64_t ShareOf(int64_t all, int64_t parts) {
  return (all + parts - 1) / parts;
}

}  // namespace rill::workers_internal
