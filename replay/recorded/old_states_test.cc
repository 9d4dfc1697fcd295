// SPDX-License-Identifier: Apache-2.0
// States from before every part's state had a type, a version and names
// (docs/formats/saved_state.md). A part that loads one goes on as the part that
// saved it, whose history a test repeats.
//
// RILL_RECORD=DIRECTORY writes what this build saves. Commit bd52a55 wrote
// testdata/old_states, 7905b36 its writer.state.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/formats/consolidated.h"
#include "rill/formats/file_tree.h"
#include "rill/replay/ensemble/offline_to_online.h"
#include "rill/replay/ensemble/replay_buffer_ensemble.h"
#include "rill/replay/rate_limiter.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/replay/writers/removing_writer.h"
#include "rill/samplers/schedule.h"
#include "rill/samplers/selectors/without_replacement.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"
#include "rill/transforms/reward_scaling.h"
#include "rill/transforms/testing/fake_row_counter.h"

namespace rill {
namespace {

using formats_internal::CopyTree;

// Where to record; else null.
const char* Recording() { return std::getenv("RILL_RECORD"); }

// Loading refuses the links that a test's data may be.
std::string Recorded(absl::string_view name) {
  const std::string directory = FreshPath(absl::StrCat("old_", name));
  RILL_EXPECT_OK(CopyTree("replay/recorded/testdata/old_states", directory));
  return JoinPath(directory, name);
}

ReplayBuffer::Options BufferOptions() {
  ReplayBuffer::Options options;
  options.storage = MakeStorage(20);
  options.sampler = MakeUniformSampler();
  options.transforms.push_back(MakeFakeRowCounter());
  options.rate_limiter = *RateLimiter::Create(RateLimiter::MinSize(1));
  options.rate_limit_timeout = absl::ZeroDuration();
  options.batch_size = 4;
  return options;
}

std::shared_ptr<ReplayBuffer> FullBuffer() {
  std::shared_ptr<ReplayBuffer> buffer = *ReplayBuffer::Create(BufferOptions());
  RILL_EXPECT_OK(buffer->Extend(NumberedSteps(1, 25)).status());
  return buffer;
}

TEST(OldStatesTest, TransformsAndLimiterOfABufferGoOn) {
  const auto saved = FullBuffer();
  RILL_ASSERT_OK(saved->Sample());
  RILL_ASSERT_OK(saved->Sample());
  if (const char* to = Recording()) {
    RILL_ASSERT_OK(saved->Save(absl::StrCat(to, "/buffer")));
    return;
  }
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto opened,
      ReplayBuffer::Open(Recorded("buffer"), BufferOptions()));
  for (int i = 0; i < 3; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, saved->Sample());
    EXPECT_THAT(opened->Sample(), IsOkAndHolds(BitEqualTo(want)));
    EXPECT_EQ(opened->GetStats().rate_limiter->done,
              saved->GetStats().rate_limiter->done);
  }
}

// A state that was saved after the same batches as those of `saved` goes on as
// it in `other`.
template <typename Buffers>
void GoOn(const std::string& name, Buffers& saved, Buffers& other) {
  for (int i = 0; i < 3; ++i) RILL_ASSERT_OK(saved.Sample());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, saved.SaveState());
  if (const char* to = Recording()) {
    RILL_ASSERT_OK(SaveConsolidated(state, absl::StrCat(to, "/", name)));
    return;
  }
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict old,
                            LoadConsolidated(Recorded(name)));
  RILL_ASSERT_OK(other.LoadState(old));
  EXPECT_THAT(other.SaveState(), IsOkAndHolds(BitEqualTo(state)));
}

TEST(OldStatesTest, AnEnsembleGoesOn) {
  const auto make = [](uint64_t seed) {
    ReplayBufferEnsemble::Options options = {
        .members = {{.buffer = FullBuffer(), .share = 0.75},
                    {.buffer = FullBuffer(), .share = 0.25}},
        .batch_size = 7,
        .seed = seed};
    options.transforms.push_back(*RewardScaling::Create({.scale = 2}));
    options.transforms.push_back(MakeFakeRowCounter());
    return *ReplayBufferEnsemble::Create(std::move(options));
  };
  const auto saved = make(UINT64_MAX);
  RILL_ASSERT_OK(saved->SetShares({3, 2}));
  const auto other = make(1);
  GoOn("ensemble", *saved, *other);
}

TEST(OldStatesTest, OfflineToOnlineGoesOn) {
  const auto make = [] {
    return *OfflineToOnlineReplayBuffer::Create(
        {.offline = FullBuffer(),
         .online = FullBuffer(),
         .offline_fraction = *LinearSchedule(0.9, 0.1, 10),
         .batch_size = 7});
  };
  const auto saved = make();
  const auto other = make();
  GoOn("offline_to_online", *saved, *other);
}

TEST(OldStatesTest, AWriterThatRemovesGoesOn) {
  const auto make = [](std::shared_ptr<Storage> storage) {
    auto writer =
        MakeRemovingWriter({.remover = MakeWithoutReplacementSelector()});
    RILL_EXPECT_OK(writer->Attach(std::move(storage)));
    return writer;
  };
  const auto storage = MakeStorage(8);
  const auto saved = make(storage);
  for (int64_t first = 0; first < 12; first += 3) {
    RILL_ASSERT_OK(saved->Extend(NumberedSteps(1, 3, first)));
  }
  if (const char* to = Recording()) {
    RILL_ASSERT_OK(WriteFileAtomically(absl::StrCat(to, "/writer.state"),
                                       *saved->SaveState()));
    return;
  }
  const std::string rows = FreshPath("old_writer_rows");
  RILL_ASSERT_OK(storage->Save(rows));
  const auto other_storage = MakeStorage(8);
  const auto other = make(other_storage);
  RILL_ASSERT_OK(other_storage->Load(rows));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string old,
                            ReadFile(Recorded("writer.state")));
  RILL_ASSERT_OK(other->LoadState(old, /*changed=*/{}));
  EXPECT_EQ(*other->SaveState(), *saved->SaveState());
}

}  // namespace
}  // namespace rill
