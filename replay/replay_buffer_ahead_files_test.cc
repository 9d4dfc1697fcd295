// SPDX-License-Identifier: Apache-2.0
// Save and Open of a buffer that has made batches ahead.
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/formats/manifest.h"
#include "rill/replay/rate_limiter.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/function_transform.h"
#include "rill/transforms/testing/fake_row_counter.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kNotFound = absl::StatusCode::kNotFound;

ReplayBuffer::Options OptionsOf(int64_t prefetch) {
  ReplayBuffer::Options options;
  options.storage = MakeStorage(20, 2);
  options.sampler = *MakePrioritizedSampler();
  options.transforms.push_back(MakeFakeRowCounter());
  options.batch_size = 8;
  options.seed = 3;
  options.prefetch = prefetch;
  options.prefetch_threads = 2;
  return options;
}

TensorDict OnHost(const TensorDict& batch) {
  auto moved = batch.To(Device::Cpu());
  RILL_EXPECT_OK(moved);
  return moved.ok() ? *std::move(moved) : TensorDict();
}

TensorDict SampleOf(ReplayBuffer& buffer) {
  auto batch = buffer.Sample();
  RILL_EXPECT_OK(batch);
  return batch.ok() ? *std::move(batch) : TensorDict();
}

// Sampled twice, with priorities and a write behind the draws of those ahead.
std::unique_ptr<ReplayBuffer> WorkedBuffer(ReplayBuffer::Options options) {
  auto buffer = ReplayBuffer::Create(std::move(options));
  RILL_EXPECT_OK(buffer);
  RILL_EXPECT_OK((*buffer)->Extend(NumberedSteps(2, 10)));
  for (int i = 0; i < 2; ++i) {
    const TensorDict batch = SampleOf(**buffer);
    RILL_EXPECT_OK(
        (*buffer)->UpdatePriorities(batch, {1, 2, 3, 4, 5, 6, 7, 8}));
    RILL_EXPECT_OK((*buffer)->Extend(NumberedSteps(2, 4, 10 + 4 * i)));
  }
  return *std::move(buffer);
}

TEST(ReplayBufferAheadFilesTest, F4_OpenedHasTheBatchesThatWereMadeAhead) {
  const std::string directory = FreshPath("round_trip");
  auto saved = WorkedBuffer(OptionsOf(4));
  RILL_ASSERT_OK(saved->Save(directory));
  RILL_ASSERT_OK_AND_ASSIGN(auto same,
                            ReplayBuffer::Open(directory, OptionsOf(4)));
  RILL_ASSERT_OK_AND_ASSIGN(auto none_ahead,
                            ReplayBuffer::Open(directory, OptionsOf(0)));
  EXPECT_EQ(same->GetStats().batches_ahead, 4);
  EXPECT_EQ(same->batch_number(), saved->batch_number());
  for (int i = 0; i < 10; ++i) {
    const TensorDict want = SampleOf(*saved);
    RILL_EXPECT_OK(SampleOf(*same).CheckEqual(want)) << "batch " << i;
    RILL_EXPECT_OK(SampleOf(*none_ahead).CheckEqual(want)) << "batch " << i;
  }
  EXPECT_EQ(none_ahead->GetStats().batches_ahead, 0);
  // A save of what was opened is the same again.
  RILL_ASSERT_OK(same->Save(directory));
  RILL_ASSERT_OK_AND_ASSIGN(auto again,
                            ReplayBuffer::Open(directory, OptionsOf(4)));
  for (int i = 0; i < 6; ++i) {
    RILL_EXPECT_OK(SampleOf(*again).CheckEqual(SampleOf(*same)));
  }
}

TEST(ReplayBufferAheadFilesTest, BatchesLieWhereTheOptionsSay) {
  for (const bool is_pinned : {false, true}) {
    const auto options = [&](int64_t prefetch) {
      ReplayBuffer::Options made = OptionsOf(prefetch);
      made.pin_memory = is_pinned;
      made.pin_for = Device::Fake(0);
      if (!is_pinned) made.device = Device::Fake(0);
      return made;
    };
    const std::string directory = FreshPath("device");
    auto saved = WorkedBuffer(options(3));
    RILL_ASSERT_OK(saved->Save(directory));
    RILL_ASSERT_OK_AND_ASSIGN(auto opened,
                              ReplayBuffer::Open(directory, options(3)));
    for (int i = 0; i < 6; ++i) {
      const TensorDict batch = SampleOf(*opened);
      batch.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
        EXPECT_EQ(leaf.is_pinned(), is_pinned) << key;
        EXPECT_EQ(leaf.device(), is_pinned ? Device::Cpu() : Device::Fake(0))
            << key;
      });
      RILL_EXPECT_OK(OnHost(batch).CheckEqual(OnHost(SampleOf(*saved))));
    }
  }
}

TEST(ReplayBufferAheadFilesTest, AnotherBatchSizeIsRefused) {
  const std::string directory = FreshPath("batch_size");
  RILL_ASSERT_OK(WorkedBuffer(OptionsOf(2))->Save(directory));
  ReplayBuffer::Options options = OptionsOf(2);
  options.batch_size = 9;
  auto storage = options.storage;
  EXPECT_THAT(ReplayBuffer::Open(directory, std::move(options)),
              StatusIs(kFailedPrecondition,
                       AllOf(HasSubstr("batch_size"), HasSubstr("got 8"),
                             HasSubstr("want 9"))));
  EXPECT_EQ(storage->size(), 0);
}

TEST(ReplayBufferAheadFilesTest, DamagedBatchIsDataLossThatNamesIt) {
  const std::string directory = FreshPath("damage");
  auto buffer = WorkedBuffer(OptionsOf(2));
  for (const bool is_removed : {false, true}) {
    RILL_ASSERT_OK(buffer->Save(directory));
    const std::string batch = JoinPath(JoinPath(directory, "ahead"), "1");
    RILL_ASSERT_OK_AND_ASSIGN(const std::vector<std::string> names,
                              ListDirectory(batch));
    int64_t files = 0;
    for (const std::string& name : names) {
      const std::string path = JoinPath(batch, name);
      if (IsDirectory(path)) continue;
      ++files;
      RILL_ASSERT_OK_AND_ASSIGN(const std::string bytes, ReadFile(path));
      std::string damaged = bytes;
      damaged.back() ^= 1;
      if (is_removed) {
        RILL_ASSERT_OK(RemoveAll(path));
      } else {
        std::ofstream(path, std::ios::binary | std::ios::trunc) << damaged;
      }
      ReplayBuffer::Options options = OptionsOf(2);
      auto storage = options.storage;
      EXPECT_THAT(ReplayBuffer::Open(directory, std::move(options)),
                  StatusIs(AnyOf(kDataLoss, kNotFound), HasSubstr(name)));
      EXPECT_EQ(storage->size(), 0);
      std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    }
    EXPECT_GT(files, 3);
  }
  RILL_EXPECT_OK(ReplayBuffer::Open(directory, OptionsOf(2)));
}

// A manifest whose fields are not those that Save writes, with good checksums.
TEST(ReplayBufferAheadFilesTest, FieldsThatContradictAreErrors) {
  const std::string directory = FreshPath("fields");
  RILL_ASSERT_OK(WorkedBuffer(OptionsOf(2))->Save(directory));
  RILL_ASSERT_OK_AND_ASSIGN(const Manifest good,
                            ReadManifest(directory, "replay_buffer", 1));
  for (const auto& [field, value] :
       std::vector<std::pair<std::string, std::string>>{
           {"ahead", "-1"},
           {"ahead", "3"},
           {"ahead", "9000000000000000000"},
           {"ahead", "many"},
           {"ahead_0_items", "0"},
           {"ahead_1_number", "-4"},
           {"ahead_1_number", ""}}) {
    Manifest manifest = good;
    manifest.fields[field] = value;
    RILL_ASSERT_OK(WriteManifest(manifest, directory));
    EXPECT_THAT(ReplayBuffer::Open(directory, OptionsOf(2)),
                StatusIs(AnyOf(kDataLoss, kFailedPrecondition, kNotFound)))
        << field << " = " << value;
  }
}

// As saves were before there was prefetch.
TEST(ReplayBufferAheadFilesTest, ManifestWithoutTheFieldsOpens) {
  const std::string directory = FreshPath("old");
  auto saved = WorkedBuffer(OptionsOf(0));
  RILL_ASSERT_OK(saved->Save(directory));
  RILL_ASSERT_OK_AND_ASSIGN(const Manifest manifest,
                            ReadManifest(directory, "replay_buffer", 1));
  for (const char* field :
       {"ahead", "unit_transform", "rate_limiter_inserts"}) {
    EXPECT_FALSE(manifest.fields.contains(field)) << field;
  }
  EXPECT_FALSE(PathExists(JoinPath(directory, "ahead")));
  RILL_ASSERT_OK_AND_ASSIGN(auto opened,
                            ReplayBuffer::Open(directory, OptionsOf(2)));
  for (int i = 0; i < 5; ++i) {
    RILL_EXPECT_OK(SampleOf(*opened).CheckEqual(SampleOf(*saved)));
  }
}

TEST(ReplayBufferAheadFilesTest, CountsOfTheRateLimiterGoOn) {
  const std::string directory = FreshPath("counts");
  const auto options = [](std::shared_ptr<RateLimiter> limiter) {
    ReplayBuffer::Options made = OptionsOf(2);
    made.rate_limiter = std::move(limiter);
    return made;
  };
  std::shared_ptr<RateLimiter> old =
      *RateLimiter::Create(RateLimiter::MinSize(1));
  RILL_ASSERT_OK(WorkedBuffer(options(old))->Save(directory));
  std::shared_ptr<RateLimiter> fresh =
      *RateLimiter::Create(RateLimiter::MinSize(1));
  RILL_ASSERT_OK(ReplayBuffer::Open(directory, options(fresh)));
  const RateLimiter::Counts want = {.inserts = 36, .samples = 16};
  EXPECT_EQ(fresh->GetStats().done, want);
  RILL_EXPECT_OK(ReplayBuffer::Open(directory, OptionsOf(2)));
}

TEST(ReplayBufferAheadFilesTest, BatchThatFailedStopsASaveAndNoSampleAfter) {
  const std::string directory = FreshPath("failed");
  ReplayBuffer::Options options = OptionsOf(2);
  int call = 0;
  options.transforms.push_back(*FunctionTransform::Create(
      {.forward = [&call](TensorDict*) -> absl::Status {
        if (call++ == 2) return absl::InternalError("no such luck");
        return absl::OkStatus();
      }}));
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer,
                            ReplayBuffer::Create(std::move(options)));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(2, 10)));
  SampleOf(*buffer);
  EXPECT_THAT(buffer->Save(directory),
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("ReplayBuffer::Save: batch 2"),
                             HasSubstr("no such luck"))));
  EXPECT_FALSE(PathExists(directory));
  SampleOf(*buffer);
  EXPECT_THAT(buffer->Sample(), IsInternal());
  SampleOf(*buffer);
  RILL_EXPECT_OK(buffer->Save(directory));
}

}  // namespace
}  // namespace rill
