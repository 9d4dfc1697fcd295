// SPDX-License-Identifier: Apache-2.0
// The time of a sample of 256 rows by the samplers, units and storages that
// docs/choosing.md compares. There are 1M rows of CartPole's width, in episodes
// of 200 steps.
//   bazel run --config=opt //benchmarks/choices:choices_benchmark
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmark/benchmark.h"
#include "rill/base/status_macros.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/sample_units.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/selectors/consuming_selector.h"
#include "rill/samplers/selectors/mixture_selector.h"
#include "rill/samplers/selectors/ordered_selector.h"
#include "rill/samplers/selectors/staleness_selector.h"
#include "rill/samplers/selectors/without_replacement.h"
#include "rill/samplers/transition_unit.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/samplers/uniform_selector.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/list/list_storage.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage.h"
#include "rill/storage/tiered/tiered_storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

constexpr int64_t kBatch = 256;
constexpr int64_t kEpisode = 200;

using SamplerOr = absl::StatusOr<std::unique_ptr<Sampler>>;
using StorageOr = absl::StatusOr<std::unique_ptr<Storage>>;
using MakeSamplerFn = std::function<SamplerOr()>;
using MakeStorageFn = std::function<StorageOr(int64_t rows)>;

absl::StatusOr<TensorDictSpec> RowSpec(bool has_goals, bool has_versions) {
  const LeafSpec seen = LeafSpec::Unbounded(DType::kFloat32, {4});
  const LeafSpec goal = LeafSpec::Unbounded(DType::kFloat32, {2});
  const LeafSpec flag = LeafSpec::Binary({1});
  std::vector<std::pair<const char*, LeafSpec>> leaves = {
      {"observation", seen},
      {"action", LeafSpec::Unbounded(DType::kInt64, {})},
      {"next/observation", seen},
      {"next/reward", LeafSpec::Unbounded(DType::kFloat32, {1})},
      {"next/done", flag},
      {"next/terminated", flag},
      {"next/truncated", flag}};
  if (has_goals) {
    leaves.push_back({"desired_goal", goal});
    leaves.push_back({"next/achieved_goal", goal});
  }
  if (has_versions) {
    leaves.push_back(
        {"policy_version", LeafSpec::Unbounded(DType::kInt64, {1})});
  }
  TensorDictSpec spec;
  for (const auto& [key, leaf] : leaves) {
    RILL_RETURN_IF_ERROR(spec.Set(key, leaf));
  }
  return spec;
}

StorageOr Dense(int64_t rows) {
  return DenseStorage::Create({.capacity = rows});
}

absl::Status Fill(int64_t rows, const TensorDictSpec& spec,
                  ReplayBuffer* buffer) {
  RILL_ASSIGN_OR_RETURN(TensorDict episode, spec.Zero({kEpisode}));
  RILL_ASSIGN_OR_RETURN(const auto done, episode.Flat<bool>("next/done"));
  done[kEpisode - 1] = true;
  for (int64_t written = 0; written < rows; written += kEpisode) {
    if (spec.Find("policy_version") != nullptr) {
      RILL_ASSIGN_OR_RETURN(const auto version,
                            episode.Flat<int64_t>("policy_version"));
      for (int64_t& v : version) v = written / (100 * kEpisode);
    }
    RILL_RETURN_IF_ERROR(buffer->Extend(episode).status());
  }
  return absl::OkStatus();
}

absl::Status Run(benchmark::State& state, int64_t rows,
                 const MakeStorageFn& make_storage,
                 const MakeSamplerFn& make_sampler, bool has_goals,
                 bool has_versions) {
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec spec,
                        RowSpec(has_goals, has_versions));
  RILL_ASSIGN_OR_RETURN(std::shared_ptr<Storage> storage, make_storage(rows));
  RILL_ASSIGN_OR_RETURN(auto sampler, make_sampler());
  RILL_ASSIGN_OR_RETURN(auto buffer,
                        ReplayBuffer::Create({.storage = std::move(storage),
                                              .sampler = std::move(sampler),
                                              .batch_size = kBatch}));
  RILL_RETURN_IF_ERROR(Fill(rows, spec, buffer.get()));
  TensorDict batch;
  for (auto _ : state) RILL_RETURN_IF_ERROR(buffer->SampleInto(&batch));
  state.counters["rows"] = static_cast<double>(batch.batch_shape()[0]);
  return absl::OkStatus();
}

SamplerOr Over(absl::StatusOr<SampleUnit> unit) {
  RILL_RETURN_IF_ERROR(unit.status());
  return MakeUniformSamplerOver(*std::move(unit));
}

absl::StatusOr<Tensor> ZeroReward(const Tensor& achieved, const Tensor&) {
  return Tensor::Zeros(DType::kFloat32, {achieved.shape()[0], 1});
}

SamplerOr Mixture() {
  std::vector<MixturePart> parts;
  parts.push_back({.selector = MakeUniformSelector(), .share = 0.75});
  parts.push_back({.selector = MakeLifoSelector(), .share = 0.25});
  RILL_ASSIGN_OR_RETURN(auto selector, MakeMixtureSelector(std::move(parts)));
  return MakeSampler(std::move(selector), MakeTransitionUnit(), "Mixture");
}

struct SamplerCase {
  const char* name;
  MakeSamplerFn make;
  bool has_goals = false;
  bool has_versions = false;
};

std::vector<SamplerCase> SamplerCases() {
  return {
      {"uniform", [] { return SamplerOr(MakeUniformSampler()); }},
      {"without_replacement",
       [] { return SamplerOr(MakeSamplerWithoutReplacement()); }},
      {"prioritized", [] { return MakePrioritizedSampler({.alpha = 0.6}); }},
      {"slices_16x16",
       [] { return Over(MakeSlices({.slices = {.length = 16}})); }},
      {"sequences_16x16",
       [] {
         return Over(
             MakeSequences({.sequences = {.length = 12, .burn_in = 4}}));
       }},
      {"3_step_returns",
       [] {
         return Over(MakeTransitions(
             {.n_step = NStepReturns::Options{.num_steps = 3}}));
       }},
      {"4_stacked_frames",
       [] {
         return Over(
             MakeTransitions({.frames = StackFrames::Options{
                                  .num_frames = 4, .keys = {"observation"}}}));
       }},
      {"hindsight",
       [] { return Over(MakeHindsight({.relabel = {.reward = ZeroReward}})); },
       /*has_goals=*/true},
      {"consuming",
       [] { return MakeConsumingSampler({.max_times_sampled = 1 << 30}); }},
      {"staleness", [] { return SamplerOr(MakeStalenessAwareSampler()); },
       /*has_goals=*/false, /*has_versions=*/true},
      {"mixture", Mixture},
  };
}

// Files of a storage, which go with the program's run.
std::string Directory(const std::string& name) {
  const auto path =
      std::filesystem::temp_directory_path() / ("rill_choices_" + name);
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
  return path.string();
}

StorageOr Files(const std::string& name, int64_t rows) {
  return MemmapStorage::Create(
      {.directory = Directory(name), .capacity = rows});
}

std::vector<std::pair<const char*, MakeStorageFn>> StorageCases() {
  return {{"memmap", [](int64_t rows) { return Files("memmap", rows); }},
          {"tiered_quarter",
           [](int64_t rows) -> StorageOr {
             RILL_ASSIGN_OR_RETURN(auto below, Files("tiered", rows));
             return TieredStorage::Create(
                 {.below = std::move(below), .fast_capacity = rows / 4});
           }},
          {"list", [](int64_t rows) -> StorageOr {
             return ListStorage::Create({.capacity = rows});
           }}};
}

void Register(const std::string& prefix, int64_t rows) {
  const auto add = [&](const std::string& name, MakeStorageFn storage,
                       SamplerCase one) {
    benchmark::RegisterBenchmark(
        (prefix + name).c_str(), [=](benchmark::State& state) {
          const absl::Status status = Run(state, rows, storage, one.make,
                                          one.has_goals, one.has_versions);
          if (!status.ok()) state.SkipWithError(status.ToString().c_str());
        });
  };
  for (const SamplerCase& one : SamplerCases()) {
    add(std::string("sampler/") + one.name, Dense, one);
  }
  for (const auto& [name, make] : StorageCases()) {
    add(std::string("storage/") + name, make, SamplerCases()[0]);
  }
}

[[maybe_unused]] const bool kRegistered =
    (Register("", 1'000'000), Register("small/", 2'000), true);

}  // namespace
}  // namespace rill
