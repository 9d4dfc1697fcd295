// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/parts/buffer_checkpoint.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/replay/buffer_options.h"
#include "rill/replay/parts/buffer_parts.h"
#include "rill/replay/sampling/sample_batches.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/testing/fake_row_counter.h"

namespace rill::replay_internal {
namespace {

using Rows = BufferCheckpoint::Rows;

constexpr int64_t kBatch = 3;

absl::StatusOr<std::unique_ptr<BufferParts>> MakeParts(uint64_t seed) {
  BufferOptions options;
  options.storage = MakeStorage(8);
  options.sampler = MakeUniformSampler();
  options.transforms.push_back(MakeFakeRowCounter());
  options.batch_size = kBatch;
  options.prefetch = 2;
  options.seed = seed;
  return BufferParts::Create(std::move(options));
}

// The slots of the next batch, and the number of its first row.
std::vector<int64_t> Next(BufferParts* parts) {
  PlacedBatch batch;
  if (!parts->samples->Take(kBatch, &batch).ok()) return {};
  const auto slots = batch.rows.Get("index")->Flat<int64_t>();
  std::vector<int64_t> next(slots->begin(), slots->end());
  next.push_back(batch.rows.Get("row_number")->Flat<int64_t>()->front());
  return next;
}

absl::Status OpenInto(const std::string& directory,
                      std::unique_ptr<BufferParts>* parts) {
  return BufferCheckpoint::Open(
      directory, {},
      [&](uint64_t seed) -> absl::StatusOr<const BufferCheckpoint*> {
        auto made = MakeParts(seed);
        if (!made.ok()) return made.status();
        *parts = *std::move(made);
        return (*parts)->checkpoint.get();
      });
}

std::string NewPath(int64_t number) {
  return JoinPath(testing::TempDir(), absl::StrCat("checkpoint_", number));
}

TEST(BufferCheckpointTest, TheOpenedPartsGoOnWhereTheSavedOnesStood) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto parts, MakeParts(7));
  RILL_ASSERT_OK(parts->writes->Extend(NumberedSteps(1, 8), {}, 0));
  for (int i = 0; i < 3; ++i) Next(parts.get());
  RILL_ASSERT_OK(parts->checkpoint->Replace("Save", NewPath(0), Rows::kCopied));
  std::unique_ptr<BufferParts> opened;
  RILL_ASSERT_OK(OpenInto(NewPath(0), &opened));
  EXPECT_EQ(opened->samples->seed(), 7);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(Next(opened.get()), Next(parts.get()));
}

TEST(BufferCheckpointTest, AnErrorOfWhoMakesTheBufferIsTheResult) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto parts, MakeParts(7));
  RILL_ASSERT_OK(parts->checkpoint->Replace("Save", NewPath(1), Rows::kCopied));
  EXPECT_THAT(BufferCheckpoint::Open(
                  NewPath(1), {},
                  [](uint64_t) -> absl::StatusOr<const BufferCheckpoint*> {
                    return absl::UnimplementedError("x");
                  }),
              StatusIs(absl::StatusCode::kUnimplemented));
}

TEST(BufferCheckpointTest, APartOfARunIsNoBufferOfItsOwn) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto parts, MakeParts(7));
  RILL_ASSERT_OK(parts->checkpoint->Replace("Save", NewPath(2), Rows::kShared));
  std::unique_ptr<BufferParts> opened;
  EXPECT_THAT(OpenInto(NewPath(2), &opened), IsFailedPrecondition());
  FileSums sums;
  RILL_EXPECT_OK(
      BufferCheckpoint::ReadSave(NewPath(2), /*is_part=*/true, &sums));
}

// Whichever operation on files fails, a save leaves the old buffer or the new
// one, whole.
TEST(BufferCheckpointTest, AtEveryFaultOfASaveOneOfTheTwoOpens) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto parts, MakeParts(7));
  const std::string directory = NewPath(3);
  RILL_ASSERT_OK(parts->writes->Extend(NumberedSteps(1, 4), {}, 0));
  int64_t size = 4;  // Of the buffer that is saved there.
  RILL_ASSERT_OK(parts->checkpoint->Replace("Save", directory, Rows::kCopied));
  RILL_ASSERT_OK(parts->writes->Extend(NumberedSteps(1, 3), {}, 0));
  bool has_failed = true;
  for (int64_t fault = 0; has_failed; ++fault) {
    int64_t points = 0;
    has_failed = false;
    {
      const ScopedFaultHook hook([&](absl::string_view, absl::string_view) {
        if (points++ != fault) return absl::OkStatus();
        has_failed = true;
        return absl::ResourceExhaustedError("injected");
      });
      const absl::Status saved =
          parts->checkpoint->Replace("Save", directory, Rows::kCopied);
      if (saved.ok()) size = 7;
    }
    std::unique_ptr<BufferParts> opened;
    RILL_ASSERT_OK(OpenInto(directory, &opened)) << fault;
    const int64_t is = opened->storage->size();
    EXPECT_TRUE(is == size || is == 7) << fault << " " << is;
    size = is;
  }
  EXPECT_EQ(size, 7);
}

}  // namespace
}  // namespace rill::replay_internal
