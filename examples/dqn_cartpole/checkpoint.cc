// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/dqn_cartpole/checkpoint.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/examples/dqn_cartpole/phases.h"
#include "rill/formats/manifest.h"
#include "rill/formats/memmap_directory.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::dqn_cartpole {
namespace {

constexpr char kKind[] = "dqn_cartpole_checkpoint";
constexpr int64_t kVersion = 2;

// RunState's plain numbers, each once for both directions.
template <typename State, typename Visit>
void ForEachCounter(State& state, Visit visit) {
  visit("steps", state.steps);
  visit("updates", state.updates);
  visit("solved", state.solved);
  visit("evaluation_return", state.evaluation_return);
  visit("row_steps", state.row_steps);
  visit("row_seconds", state.row_seconds);
  visit("summed_updates", state.summed_updates);
  visit("loss_sum", state.loss_sum);
  visit("value_sum", state.value_sum);
  visit("gradient_norm_sum", state.gradient_norm_sum);
  visit("seconds", state.times.total_seconds);
  for (int phase = 0; phase < kNumPhases; ++phase) {
    visit(absl::StrCat("seconds_", PhaseName(static_cast<Phase>(phase))),
          state.times.seconds[phase]);
  }
}

std::string ToText(int64_t value) { return absl::StrCat(value); }
std::string ToText(bool value) { return value ? "true" : "false"; }
// 17 digits read back as the same double: a resumed sum goes on from the same
// bits.
std::string ToText(double value) { return absl::StrFormat("%.17g", value); }
bool FromText(const std::string& text, int64_t* value) {
  return absl::SimpleAtoi(text, value);
}
bool FromText(const std::string& text, bool* value) {
  return absl::SimpleAtob(text, value);
}
bool FromText(const std::string& text, double* value) {
  return absl::SimpleAtod(text, value);
}

absl::Status ReadCounters(const std::map<std::string, std::string>& fields,
                          RunState* state) {
  absl::Status status;
  ForEachCounter(*state, [&](const std::string& name, auto& value) {
    const auto found = fields.find(name);
    if (found != fields.end() && FromText(found->second, &value)) return;
    status.Update(DataLoss("LoadCheckpoint: \"", name, "\" is ",
                           found == fields.end()
                               ? "missing"
                               : absl::StrCat("\"", found->second, "\""),
                           ", want a number"));
  });
  return status;
}

absl::Status LoadPart(const std::string& directory, const char* part,
                      TensorDict* dict) {
  // Copied and not mapped: the next checkpoint replaces these files.
  RILL_ASSIGN_OR_RETURN(
      *dict, LoadMemmapDirectory(JoinPath(directory, part),
                                 {.mode = LoadMemmapOptions::Mode::kCopy}));
  return absl::OkStatus();
}

absl::Status WriteParts(const std::string& directory, const RunState& state,
                        const TensorDict& log, Pipeline& pipeline) {
  // All parts belong to one moment: nothing collects or learns meanwhile.
  RILL_RETURN_IF_ERROR(pipeline.replay->Save(JoinPath(directory, "replay")));
  RILL_ASSIGN_OR_RETURN(TensorDict learner, SaveLearner(*pipeline.learner));
  RILL_ASSIGN_OR_RETURN(TensorDict collector, pipeline.collector->SaveState());
  RILL_RETURN_IF_ERROR(
      SaveMemmapDirectory(learner, JoinPath(directory, "learner")));
  RILL_RETURN_IF_ERROR(
      SaveMemmapDirectory(collector, JoinPath(directory, "collector")));
  RILL_RETURN_IF_ERROR(SaveMemmapDirectory(log, JoinPath(directory, "log")));

  Manifest manifest;
  manifest.kind = kKind;
  manifest.version = kVersion;
  manifest.fields = ConfigToText(state.config);
  ForEachCounter(state, [&](const std::string& name, const auto& value) {
    manifest.fields[name] = ToText(value);
  });
  // Last: it has the checksums of all files.
  return WriteManifest(manifest, directory);
}

}  // namespace

absl::Status SaveCheckpoint(const std::string& directory, const RunState& state,
                            const TensorDict& log, Pipeline& pipeline) {
  RILL_RETURN_IF_ERROR(ReplaceDirectory(directory,
                                        [&](const std::string& temporary) {
                                          return WriteParts(temporary, state,
                                                            log, pipeline);
                                        }))
      << "while saving the checkpoint";
  return absl::OkStatus();
}

absl::StatusOr<LoadedCheckpoint> LoadCheckpoint(
    const std::string& directory, const Config& wanted,
    const std::set<std::string>& given) {
  RILL_ASSIGN_OR_RETURN(Manifest manifest,
                        ReadManifest(directory, kKind, kVersion));
  LoadedCheckpoint loaded;
  RILL_ASSIGN_OR_RETURN(Config saved, ConfigFromText(manifest.fields));
  RILL_ASSIGN_OR_RETURN(loaded.state.config,
                        MergeForResume(wanted, given, saved));
  // A damaged value is refused before memory is made by it.
  RILL_RETURN_IF_ERROR(ValidateConfig(loaded.state.config));
  RILL_RETURN_IF_ERROR(ReadCounters(manifest.fields, &loaded.state));
  TensorDict learner, collector;
  RILL_RETURN_IF_ERROR(LoadPart(directory, "learner", &learner));
  RILL_RETURN_IF_ERROR(LoadPart(directory, "collector", &collector));
  RILL_RETURN_IF_ERROR(LoadPart(directory, "log", &loaded.log));
  RILL_ASSIGN_OR_RETURN(
      loaded.pipeline,
      MakePipeline(loaded.state.config, JoinPath(directory, "replay")));
  RILL_RETURN_IF_ERROR(LoadLearner(learner, loaded.pipeline.learner.get()));
  RILL_RETURN_IF_ERROR(loaded.pipeline.collector->LoadState(collector));
  return loaded;
}

absl::Status RemoveHalfWritten(const std::string& run_dir) {
  RILL_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDirectory(run_dir));
  for (const std::string& name : names) {
    for (absl::string_view file : {"checkpoint", "curve.svg"}) {
      if (!absl::StartsWith(name, absl::StrCat(file, ".tmp-"))) continue;
      RILL_RETURN_IF_ERROR(RemoveAll(JoinPath(run_dir, name)));
    }
  }
  return absl::OkStatus();
}

}  // namespace rill::dqn_cartpole
