// SPDX-License-Identifier: Apache-2.0
// Batches of fixed seeds are those that commit fc1c733 recorded, bit for bit,
// before the interfaces of transforms and of the buffer's parts changed. The
// cases are every selector with every unit, and every storage. A line of
// testdata/batches is a case and the digest of its batches.
//
// RILL_RECORD=FILE writes what this build makes, for a change that means to
// make other batches and says so in CHANGELOG.md.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "rill/replay/recorded/digest.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/sample_units.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/prioritized/prioritized_selector.h"
#include "rill/samplers/selectors/consuming_selector.h"
#include "rill/samplers/selectors/mixture_selector.h"
#include "rill/samplers/selectors/ordered_selector.h"
#include "rill/samplers/selectors/recent_selector.h"
#include "rill/samplers/selectors/staleness_selector.h"
#include "rill/samplers/selectors/without_replacement.h"
#include "rill/samplers/transition_unit.h"
#include "rill/samplers/uniform_selector.h"
#include "rill/storage/compressed/compressed_storage.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/list/list_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/reward_scaling.h"

namespace rill {
namespace {

constexpr int64_t kCapacity = 96;
constexpr int64_t kLanes = 2;
constexpr int64_t kBatch = 12;  // Of slices of 4 and sequences of 3.

// Steps [2, 30] from `first`: trajectories of 5 and 7 steps, goals, priorities.
TensorDict Steps(int64_t first) {
  constexpr int64_t kTime = 30;
  const Shape shape = {kLanes, kTime};
  TensorDict steps(shape);
  const auto numbers = [&](absl::string_view key, int64_t width, float scale) {
    Tensor leaf = *Tensor::Empty(DType::kFloat32, {kLanes, kTime, width});
    for (int64_t i = 0; i < leaf.num_elements(); ++i) {
      const int64_t row = i / width;
      leaf.data<float>()[i] =
          scale * static_cast<float>((first + row % kTime) * 100 +
                                     row / kTime * 10 + i % width);
    }
    RILL_EXPECT_OK(steps.Set(key, leaf));
  };
  numbers("observation", 3, 1.0f);
  numbers("next/observation", 3, 0.5f);
  numbers("next/reward", 1, 0.01f);
  numbers("next/achieved_goal", 1, 0.1f);
  numbers("desired_goal", 1, 0.3f);
  Tensor done = *Tensor::Zeros(DType::kBool, {kLanes, kTime, 1});
  Tensor init = *Tensor::Zeros(DType::kBool, {kLanes, kTime, 1});
  Tensor version = *Tensor::Zeros(DType::kInt64, {kLanes, kTime, 1});
  Tensor priority = *Tensor::Zeros(DType::kFloat32, {kLanes, kTime, 1});
  for (int64_t i = 0; i < kLanes * kTime; ++i) {
    const int64_t length = i < kTime ? 5 : 7;
    const int64_t step = first + i % kTime;
    done.data<bool>()[i] = step % length == length - 1;
    init.data<bool>()[i] = step % length == 0;
    version.data<int64_t>()[i] = step / 10;
    priority.data<float>()[i] = static_cast<float>(1 + step * 7 % 11);
  }
  RILL_EXPECT_OK(steps.Set("next/done", done));
  RILL_EXPECT_OK(steps.Set("next/terminated", *done.Clone()));
  RILL_EXPECT_OK(steps.Set("is_init", init));
  RILL_EXPECT_OK(steps.Set("policy_version", version));
  RILL_EXPECT_OK(steps.Set("priority", priority));
  return steps;
}

using MakeStorageFunction =
    std::function<absl::StatusOr<std::shared_ptr<Storage>>()>;
using MakeSelector = std::function<std::unique_ptr<Selector>()>;
using MakeUnit = std::function<absl::StatusOr<SampleUnit>()>;

template <typename Made>
std::unique_ptr<Selector> Value(absl::StatusOr<Made> made) {
  RILL_EXPECT_OK(made);
  return *std::move(made);
}

std::map<std::string, MakeSelector> Selectors() {
  return {
      {"uniform", [] { return MakeUniformSelector(); }},
      {"prioritized",
       [] { return Value(PrioritizedSelector::Create({.alpha = 0.7})); }},
      {"without replacement", [] { return MakeWithoutReplacementSelector(); }},
      {"fifo", [] { return MakeFifoSelector(); }},
      {"lifo", [] { return MakeLifoSelector(); }},
      {"min heap", [] { return Value(MakeMinHeapSelector()); }},
      {"max heap", [] { return Value(MakeMaxHeapSelector()); }},
      {"staleness", [] { return MakeStalenessSelector(); }},
      {"recent", [] { return MakeRecentSelector(); }},
      {"consuming",
       [] { return Value(MakeConsumingSelector({.max_times_sampled = 9})); }},
      {"mixture",
       [] {
         std::vector<MixturePart> parts(2);
         parts[0] = {.selector = MakeUniformSelector(), .share = 0.75};
         parts[1] = {.selector = MakeRecentSelector(), .share = 0.25};
         return Value(MakeMixtureSelector(std::move(parts)));
       }},
  };
}

std::map<std::string, MakeUnit> Units() {
  const NStepReturns::Options n_step = {.num_steps = 3, .gamma = 0.5};
  const StackFrames::Options frames = {
      .num_frames = 2, .keys = {"observation", "next/observation"}};
  return {
      {"rows",
       []() -> absl::StatusOr<SampleUnit> { return MakeTransitionUnit(); }},
      {"n steps", [=] { return MakeTransitions({.n_step = n_step}); }},
      {"frames", [=] { return MakeTransitions({.frames = frames}); }},
      {"n steps and frames",
       [=] { return MakeTransitions({.n_step = n_step, .frames = frames}); }},
      {"slices", [] { return MakeSlices({.slices = {.length = 4}}); }},
      {"slices of n steps",
       [=] { return MakeSlices({.slices = {.length = 4}, .n_step = n_step}); }},
      {"sequences",
       [] {
         return MakeSequences(
             {.sequences = {.length = 2, .burn_in = 1, .period = 2}});
       }},
      {"sequences of n steps and frames",
       [=] {
         return MakeSequences({.sequences = {.length = 2, .burn_in = 1},
                               .n_step = n_step,
                               .frames = frames});
       }},
      {"trajectories", [] { return MakeTrajectories({}); }},
      {"hindsight",
       [] {
         HindsightRelabel::Options relabel;
         relabel.reward = [](const Tensor& achieved,
                             const Tensor& desired) -> absl::StatusOr<Tensor> {
           auto made = Tensor::Empty(DType::kFloat32, achieved.shape());
           if (!made.ok()) return made;
           for (int64_t i = 0; i < made->num_elements(); ++i) {
             made->data<float>()[i] =
                 desired.data<float>()[i] - achieved.data<float>()[i];
           }
           return made;
         };
         return MakeHindsight(
             {.goals = {.strategy = HindsightStrategy::kFuture, .ratio = 0.5},
              .relabel = relabel});
       }},
  };
}

absl::StatusOr<std::shared_ptr<Storage>> Dense() {
  return DenseStorage::Create({.capacity = kCapacity, .lanes = kLanes});
}

std::map<std::string, MakeStorageFunction> Storages() {
  return {
      {"dense columns",
       []() -> absl::StatusOr<std::shared_ptr<Storage>> {
         return DenseStorage::Create({.capacity = kCapacity,
                                      .lanes = kLanes,
                                      .layout = StorageLayout::kColumns});
       }},
      {"dense rows, time major",
       []() -> absl::StatusOr<std::shared_ptr<Storage>> {
         return DenseStorage::Create({.capacity = kCapacity,
                                      .lanes = kLanes,
                                      .layout = StorageLayout::kRows,
                                      .order = StorageOrder::kTimeMajor});
       }},
      {"compressed",
       []() -> absl::StatusOr<std::shared_ptr<Storage>> {
         return CompressedStorage::Create(
             {.capacity = kCapacity, .lanes = kLanes});
       }},
      {"list",
       []() -> absl::StatusOr<std::shared_ptr<Storage>> {
         return ListStorage::Create({.capacity = kCapacity, .lanes = kLanes});
       }},
  };
}

// Writes that wrap, draws between them, priorities that come back.
std::string DigestOf(absl::StatusOr<std::shared_ptr<Storage>> storage,
                     std::unique_ptr<Selector> selector,
                     absl::StatusOr<SampleUnit> unit, int64_t prefetch,
                     bool has_transforms) {
  RILL_EXPECT_OK(storage);
  RILL_EXPECT_OK(unit);
  if (!storage.ok() || !unit.ok()) return "";
  auto sampler = MakeSampler(std::move(selector), *std::move(unit), "Recorded");
  if (!sampler.ok()) return std::string(sampler.status().message());
  ReplayBuffer::Options options;
  options.storage = *std::move(storage);
  options.sampler = *std::move(sampler);
  options.batch_size = kBatch;
  options.prefetch = prefetch;
  options.seed = 11;
  if (has_transforms) {
    options.transforms.push_back(
        *RewardScaling::Create({.scale = 0.3, .loc = 0.7}));
  }
  auto buffer = ReplayBuffer::Create(std::move(options));
  if (!buffer.ok()) return std::string(buffer.status().message());
  Digest digest;
  for (int64_t round = 0; round < 5; ++round) {
    RILL_EXPECT_OK((*buffer)->Extend(Steps(round * 30)).status());
    for (int i = 0; i < 4; ++i) {
      auto batch = (*buffer)->Sample();
      RILL_EXPECT_OK(batch);
      if (batch.ok()) digest.Add(*batch);
    }
  }
  return absl::StrCat(absl::Hex(digest.value(), absl::kZeroPad16));
}

std::map<std::string, std::string> Make() {
  std::map<std::string, std::string> made;
  for (const auto& [selector_name, selector] : Selectors()) {
    for (const auto& [unit_name, unit] : Units()) {
      for (const int64_t prefetch : {0, 2}) {
        made[absl::StrCat(selector_name, " of ", unit_name, ", prefetch ",
                          prefetch)] =
            DigestOf(Dense(), selector(), unit(), prefetch, false);
      }
    }
  }
  for (const auto& [name, storage] : Storages()) {
    for (const auto& [unit_name, unit] : Units()) {
      made[absl::StrCat(name, ": ", unit_name)] =
          DigestOf(storage(), MakeUniformSelector(), unit(), 2, true);
    }
  }
  return made;
}

std::map<std::string, std::string> Recorded() {
  std::map<std::string, std::string> recorded;
  std::ifstream file("replay/recorded/testdata/batches");
  for (std::string line; std::getline(file, line);) {
    const size_t tab = line.find('\t');
    if (tab == std::string::npos) continue;
    recorded[line.substr(0, tab)] = line.substr(tab + 1);
  }
  return recorded;
}

TEST(RecordedBatchesTest, BatchesOfFixedSeedsAreTheRecordedOnes) {
  const std::map<std::string, std::string> made = Make();
  if (const char* path = std::getenv("RILL_RECORD")) {
    std::ofstream file(path);
    for (const auto& [name, digest] : made) {
      file << name << '\t' << digest << '\n';
    }
    return;
  }
  const std::map<std::string, std::string> recorded = Recorded();
  EXPECT_GE(recorded.size(), 200u);
  EXPECT_EQ(made.size(), recorded.size());
  for (const auto& [name, digest] : recorded) {
    const auto found = made.find(name);
    ASSERT_NE(found, made.end()) << name;
    EXPECT_EQ(found->second, digest) << name;
  }
}

}  // namespace
}  // namespace rill
