// SPDX-License-Identifier: Apache-2.0
// The checkpoint of a run that commit fc1c733 saved opens, and its buffers go
// on with the batches that they drew there. Since that commit the interfaces of
// transforms and of the buffer's parts have changed. A line of
// testdata/saved_run_batches is the digest of a batch.
//
// RILL_RECORD=DIRECTORY writes the checkpoint and the digests of this build.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "rill/formats/file_tree.h"
#include "rill/replay/recorded/digest.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/run/run_checkpoint.h"
#include "rill/replay/sample_units.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/list/list_storage.h"
#include "rill/storage/storage.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/reward_scaling.h"

namespace rill {
namespace {

using formats_internal::CopyTree;

constexpr int64_t kLanes = 2;
constexpr int64_t kSavedRounds = 6;  // More rows than the storages hold.
constexpr int64_t kRounds = 10;
constexpr absl::string_view kNames[] = {"lists", "prioritized", "slices"};

// "prioritized" and "slices" share a storage.
std::map<std::string, ReplayBuffer::Options> Options() {
  std::map<std::string, ReplayBuffer::Options> all;
  auto shared = MakeStorage(40, kLanes);
  ReplayBuffer::Options& prioritized = all["prioritized"];
  prioritized.storage = shared;
  prioritized.sampler = *MakePrioritizedSamplerOver(
      *MakeTransitions({.n_step = NStepReturns::Options{.num_steps = 3}}),
      {.alpha = 0.7});
  prioritized.transforms.push_back(*RewardScaling::Create({.scale = 2}));
  prioritized.batch_size = 8;
  prioritized.seed = 77;
  prioritized.prefetch = 2;
  ReplayBuffer::Options& slices = all["slices"];
  slices.storage = shared;
  slices.sampler =
      *MakeUniformSamplerOver(*MakeSlices({.slices = {.length = 3}}));
  slices.batch_size = 9;
  slices.seed = 5;
  ReplayBuffer::Options& lists = all["lists"];
  lists.storage = *ListStorage::Create({.capacity = 20});
  lists.sampler = MakeUniformSampler();
  lists.batch_size = 6;
  lists.prefetch = 1;
  return all;
}

// Writes, samples and new priorities; adds a digest for each batch.
void Work(int64_t round,
          const std::map<std::string, std::unique_ptr<ReplayBuffer>>& buffers,
          std::vector<std::string>* digests) {
  RILL_ASSERT_OK(buffers.at("prioritized")
                     ->Extend(NumberedSteps(kLanes, 7, 7 * round))
                     .status());
  RILL_ASSERT_OK(
      buffers.at("lists")->Extend(NumberedSteps(1, 5, 5 * round)).status());
  for (const absl::string_view name : kNames) {
    ReplayBuffer& buffer = *buffers.at(std::string(name));
    auto batch = buffer.Sample();
    RILL_ASSERT_OK(batch.status());
    Digest digest;
    digest.Add(*batch);
    digests->push_back(absl::StrCat(
        round, "\t", name, "\t", absl::Hex(digest.value(), absl::kZeroPad16)));
    if (name != "prioritized") continue;
    RILL_ASSERT_OK(
        buffer.UpdatePriorities(*batch, ActionsModulo(*batch, 5, /*plus=*/1)));
  }
}

void Record(const std::string& directory) {
  std::map<std::string, std::unique_ptr<ReplayBuffer>> buffers;
  RunCheckpoint::Contents contents;
  for (auto& [name, options] : Options()) {
    RILL_ASSERT_OK_AND_ASSIGN(buffers[name],
                              ReplayBuffer::Create(std::move(options)));
    contents.buffers[name] = buffers[name].get();
  }
  std::vector<std::string> digests;
  for (int64_t round = 0; round < kSavedRounds; ++round) {
    Work(round, buffers, &digests);
  }
  RILL_ASSERT_OK(
      RunCheckpoint::Save(absl::StrCat(directory, "/saved_run"), contents));
  digests.clear();
  for (int64_t round = kSavedRounds; round < kRounds; ++round) {
    Work(round, buffers, &digests);
  }
  std::ofstream file(absl::StrCat(directory, "/saved_run_batches"));
  for (const std::string& line : digests) file << line << '\n';
}

TEST(SavedRunTest, BuffersGoOnWithTheBatchesThatTheSavedOnesDrew) {
  if (const char* directory = std::getenv("RILL_RECORD")) {
    Record(directory);
    return;
  }
  // Opening refuses the links that a test's data may be.
  const std::string directory = FreshPath("saved_run");
  RILL_ASSERT_OK(CopyTree("replay/recorded/testdata/saved_run", directory));
  RILL_ASSERT_OK_AND_ASSIGN(
      const RunCheckpoint::Opened run,
      RunCheckpoint::Open(directory, {.buffers = Options()}));
  EXPECT_TRUE(run.changed_options.empty());
  std::vector<std::string> digests;
  for (int64_t round = kSavedRounds; round < kRounds; ++round) {
    Work(round, run.buffers, &digests);
  }
  std::vector<std::string> recorded;
  std::ifstream file("replay/recorded/testdata/saved_run_batches");
  for (std::string line; std::getline(file, line);) recorded.push_back(line);
  EXPECT_EQ(recorded.size(), 12u);
  EXPECT_EQ(digests, recorded);
}

}  // namespace
}  // namespace rill
