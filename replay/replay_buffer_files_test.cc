// SPDX-License-Identifier: Apache-2.0
// ReplayBuffer::Save and Open.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/formats/file_tree.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/testing/fake_prioritized_sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/reward_scaling.h"
#include "rill/transforms/testing/fake_row_counter.h"

namespace rill {
namespace {

using formats_internal::ListFiles;
using formats_internal::WriteInPlace;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;

ReplayBuffer::Options OptionsOf(int64_t capacity = 20, int64_t lanes = 2) {
  ReplayBuffer::Options options;
  options.storage = MakeStorage(capacity, lanes);
  options.sampler = MakeFakePrioritizedSampler();
  options.transforms.push_back(*RewardScaling::Create({.scale = 2}));
  options.transforms.push_back(MakeFakeRowCounter());
  options.batch_size = 8;
  options.seed = 77;
  return options;
}

// One round of writing, sampling and new priorities.
TensorDict Work(int64_t round, ReplayBuffer& buffer) {
  RILL_EXPECT_OK(buffer.Extend(NumberedSteps(2, 7, 7 * round)));
  auto batch = buffer.Sample();
  RILL_EXPECT_OK(batch);
  if (!batch.ok()) return TensorDict();
  RILL_EXPECT_OK(buffer.UpdatePriorities(*batch, ActionsModulo(*batch, 5)));
  return *std::move(batch);
}

std::unique_ptr<ReplayBuffer> WorkedBuffer() {
  auto buffer = *ReplayBuffer::Create(OptionsOf());
  for (int64_t round = 0; round < 4; ++round) Work(round, *buffer);
  return buffer;
}

void ExpectGoesOnAs(ReplayBuffer& saved, ReplayBuffer& opened) {
  EXPECT_EQ(opened.batch_number(), saved.batch_number());
  EXPECT_EQ(opened.size(), saved.size());
  for (int64_t round = 4; round < 9; ++round) {
    RILL_EXPECT_OK(Work(round, opened).CheckEqual(Work(round, saved)))
        << "round " << round;
  }
}

// --- Round trips -------------------------------------------------------------

TEST(ReplayBufferFilesTest, U2_OpenedGoesOnBitForBitAsTheSaved) {
  const std::string directory = FreshPath("round_trip");
  auto saved = WorkedBuffer();
  RILL_ASSERT_OK(saved->Save(directory));
  ReplayBuffer::Options options = OptionsOf();
  options.seed = 1;  // The saved one holds.
  RILL_ASSERT_OK_AND_ASSIGN(auto opened,
                            ReplayBuffer::Open(directory, std::move(options)));
  ExpectGoesOnAs(*saved, *opened);
}

TEST(ReplayBufferFilesTest, OpenedInAnotherLayoutGoesOnTheSame) {
  const std::string directory = FreshPath("layout");
  auto saved = WorkedBuffer();
  RILL_ASSERT_OK(saved->Save(directory));
  ReplayBuffer::Options options = OptionsOf();
  RILL_ASSERT_OK_AND_ASSIGN(
      options.storage,
      DenseStorage::Create({.capacity = 20,
                            .lanes = 2,
                            .layout = StorageLayout::kColumns,
                            .order = StorageOrder::kTimeMajor}));
  RILL_ASSERT_OK_AND_ASSIGN(auto opened,
                            ReplayBuffer::Open(directory, std::move(options)));
  ExpectGoesOnAs(*saved, *opened);
}

TEST(ReplayBufferFilesTest, EmptyBufferIsAStateToo) {
  const std::string directory = FreshPath("empty");
  RILL_ASSERT_OK_AND_ASSIGN(auto saved, ReplayBuffer::Create(OptionsOf()));
  RILL_ASSERT_OK(saved->Save(directory));
  RILL_ASSERT_OK_AND_ASSIGN(auto opened,
                            ReplayBuffer::Open(directory, OptionsOf()));
  EXPECT_EQ(opened->size(), 0);
  ExpectGoesOnAs(*saved, *opened);
}

TEST(ReplayBufferFilesTest, DirectoryHoldsWhatTheFormatPageSays) {
  const std::string directory = FreshPath("files");
  RILL_ASSERT_OK(WorkedBuffer()->Save(directory));
  EXPECT_THAT(ListDirectory(directory),
              IsOkAndHolds(ElementsAre("rill.json", "sampler.state", "storage",
                                       "transforms")));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto stateless, ReplayBuffer::Create({.storage = MakeStorage(4),
                                            .sampler = MakeUniformSampler()}));
  RILL_ASSERT_OK(stateless->Save(directory));
  EXPECT_THAT(
      ListDirectory(directory),
      IsOkAndHolds(ElementsAre("rill.json", "sampler.state", "storage")));
}

TEST(ReplayBufferFilesTest, C13_SavesOfEqualBuffersHaveEqualBytes) {
  const std::string a = FreshPath("bytes_a");
  const std::string b = FreshPath("bytes_b");
  RILL_ASSERT_OK(WorkedBuffer()->Save(a));
  RILL_ASSERT_OK(WorkedBuffer()->Save(b));
  const std::vector<std::string> files = ListFiles(a);
  EXPECT_GE(files.size(), 6u);
  for (const std::string& file : files) {
    RILL_ASSERT_OK_AND_ASSIGN(const std::string bytes,
                              ReadFile(JoinPath(a, file)));
    EXPECT_THAT(ReadFile(JoinPath(b, file)), IsOkAndHolds(bytes));
  }
}

TEST(ReplayBufferFilesTest, C13_SavesGrowWithTheRowsNotWithTheCapacity) {
  const auto bytes_saved = [](int64_t capacity, int64_t rows) {
    const std::string directory = FreshPath("bytes_by_rows");
    auto buffer = *ReplayBuffer::Create(
        {.storage = MakeStorage(capacity), .sampler = MakeUniformSampler()});
    RILL_EXPECT_OK(buffer->Extend(NumberedSteps(1, rows)));
    RILL_EXPECT_OK(buffer->Save(directory));
    int64_t bytes = 0;
    for (const std::string& file : ListFiles(directory)) {
      bytes += *FileSize(JoinPath(directory, file));
    }
    return bytes;
  };
  const int64_t small = bytes_saved(1000, 1000);
  // A few digits more of numbers.
  EXPECT_NEAR(bytes_saved(1'000'000, 1000), small, 100);
  EXPECT_NEAR(bytes_saved(1'000'000, 10'000), 10 * small, 2 * small);
}

// --- Damage ------------------------------------------------------------------

TEST(ReplayBufferFilesTest, DamageToAnyFileIsDataLossThatNamesIt) {
  const std::string directory = FreshPath("damage");
  RILL_ASSERT_OK(WorkedBuffer()->Save(directory));
  for (const std::string& name : ListFiles(directory)) {
    const std::string file = JoinPath(directory, name);
    RILL_ASSERT_OK_AND_ASSIGN(const std::string good, ReadFile(file));
    const size_t step = good.size() / 8 + 1;
    std::vector<std::string> damaged = {"", good + "x"};
    for (size_t i = 0; i < good.size(); i += step) {
      damaged.push_back(good.substr(0, i));
      damaged.push_back(good);
      damaged.back()[i] = static_cast<char>(damaged.back()[i] ^ 0x20);
    }
    for (const std::string& bad : damaged) {
      if (bad == good) continue;
      WriteInPlace(file, bad);
      ReplayBuffer::Options options = OptionsOf();
      auto storage = options.storage;
      EXPECT_THAT(ReplayBuffer::Open(directory, std::move(options)),
                  IsDataLoss(file));
      EXPECT_EQ(storage->size(), 0);
    }
    WriteInPlace(file, good);
  }
  RILL_EXPECT_OK(ReplayBuffer::Open(directory, OptionsOf()));
}

TEST(ReplayBufferFilesTest, MissingFileIsNamed) {
  const std::string directory = FreshPath("missing");
  EXPECT_THAT(ReplayBuffer::Open(directory, OptionsOf()),
              IsNotFound(directory));
  RILL_ASSERT_OK(WorkedBuffer()->Save(directory));
  for (const std::string& name : ListFiles(directory)) {
    const std::string file = JoinPath(directory, name);
    RILL_ASSERT_OK_AND_ASSIGN(const std::string good, ReadFile(file));
    RILL_ASSERT_OK(RemoveAll(file));
    EXPECT_THAT(ReplayBuffer::Open(directory, OptionsOf()),
                StatusIs(AnyOf(absl::StatusCode::kDataLoss,
                               absl::StatusCode::kNotFound),
                         HasSubstr(file)));
    WriteInPlace(file, good);
  }
}

// --- Mismatch ----------------------------------------------------------------

TEST(ReplayBufferFilesTest, OtherOptionsAreRefusedNamingBothSides) {
  const std::string directory = FreshPath("mismatch");
  RILL_ASSERT_OK(WorkedBuffer()->Save(directory));
  ReplayBuffer::Options options = OptionsOf();
  options.sampler = MakeUniformSampler();
  EXPECT_THAT(ReplayBuffer::Open(directory, std::move(options)),
              StatusIs(kFailedPrecondition,
                       AllOf(HasSubstr("got FakePrioritizedSampler"),
                             HasSubstr("want UniformSampler"))));
  EXPECT_THAT(ReplayBuffer::Open(directory, OptionsOf(/*capacity=*/40)),
              StatusIs(kFailedPrecondition, AllOf(HasSubstr("capacity: got 20"),
                                                  HasSubstr("want 40"))));
  EXPECT_THAT(ReplayBuffer::Open(directory, OptionsOf(20, /*lanes=*/4)),
              StatusIs(kFailedPrecondition,
                       AllOf(HasSubstr("lanes: got 2"), HasSubstr("want 4"))));
  options = OptionsOf();
  options.transforms.pop_back();
  EXPECT_THAT(ReplayBuffer::Open(directory, std::move(options)),
              StatusIs(kFailedPrecondition,
                       AllOf(HasSubstr("[RewardScaling, FakeRowCounter]"),
                             HasSubstr("want [RewardScaling]"))));
}

TEST(ReplayBufferFilesTest, OtherSpecIsRefusedNamingBothSides) {
  const std::string directory = FreshPath("spec");
  RILL_ASSERT_OK(WorkedBuffer()->Save(directory));
  TensorDictSpec spec = TensorDictSpec::Of(NumberedSteps(1, 1));
  RILL_ASSERT_OK(
      spec.Set("observation", LeafSpec::Unbounded(DType::kFloat32, {5})));
  ReplayBuffer::Options options = OptionsOf();
  RILL_ASSERT_OK_AND_ASSIGN(
      std::shared_ptr<Storage> storage,
      DenseStorage::Create({.capacity = 20, .lanes = 2, .spec = spec}));
  options.storage = storage;
  EXPECT_THAT(ReplayBuffer::Open(directory, std::move(options)),
              StatusIs(kFailedPrecondition,
                       AllOf(HasSubstr("observation"), HasSubstr("[5]"))));
  EXPECT_EQ(storage->size(), 0);
}

TEST(ReplayBufferFilesTest, StorageThatHoldsRowsIsLeftAlone) {
  const std::string directory = FreshPath("full");
  RILL_ASSERT_OK(WorkedBuffer()->Save(directory));
  ReplayBuffer::Options options = OptionsOf();
  auto storage = options.storage;
  RILL_ASSERT_OK(storage->Extend(NumberedSteps(2, 3)));
  EXPECT_THAT(ReplayBuffer::Open(directory, std::move(options)),
              StatusIs(kFailedPrecondition,
                       AllOf(HasSubstr("got 6"), HasSubstr("want 0"))));
  EXPECT_EQ(storage->size(), 6);
}

TEST(ReplayBufferFilesTest, OtherKindOfDirectoryIsRefused) {
  const std::string directory = FreshPath("kind");
  RILL_ASSERT_OK(WorkedBuffer()->Save(directory));
  EXPECT_THAT(
      ReplayBuffer::Open(JoinPath(directory, "storage"), OptionsOf()),
      StatusIs(AnyOf(kFailedPrecondition, absl::StatusCode::kNotFound)));
}

// --- What was there stays ----------------------------------------------------

TEST(ReplayBufferFilesTest, FailedSaveLeavesTheSavedOneAndTheBuffer) {
  const std::string directory = FreshPath("failed");
  auto saved = WorkedBuffer();
  RILL_ASSERT_OK(saved->Save(directory));
  auto twin = WorkedBuffer();
  Work(50, *saved);
  for (const char* point :
       {"file.open", "file.write", "file.sync", "file.rename"}) {
    for (int survives = 0; survives < 8; ++survives) {
      int reached = 0;
      {
        ScopedFaultHook hook([&](absl::string_view name, absl::string_view) {
          return name == point && reached++ == survives
                     ? absl::ResourceExhaustedError("disk is full")
                     : absl::OkStatus();
        });
        const absl::Status status = saved->Save(directory);
        if (reached > survives) {
          EXPECT_THAT(status, IsResourceExhausted())
              << point << " " << survives;
        }
        if (status.ok()) break;
      }
      RILL_ASSERT_OK_AND_ASSIGN(auto opened,
                                ReplayBuffer::Open(directory, OptionsOf()));
      EXPECT_EQ(opened->batch_number(), twin->batch_number());
    }
    // A save that outlived its fault replaced what was there.
    RILL_ASSERT_OK(twin->Save(directory));
  }
  RILL_ASSERT_OK_AND_ASSIGN(auto opened,
                            ReplayBuffer::Open(directory, OptionsOf()));
  ExpectGoesOnAs(*twin, *opened);
}

TEST(ReplayBufferFilesTest, SaveReplacesSavedBuffersOnly) {
  const std::string directory = FreshPath("precious");
  RILL_ASSERT_OK(CreateDirectories(directory));
  auto buffer = WorkedBuffer();
  RILL_ASSERT_OK(
      WriteFileAtomically(JoinPath(directory, "thesis.txt"), "precious"));
  EXPECT_THAT(buffer->Save(directory), IsFailedPrecondition("thesis.txt"));
  EXPECT_THAT(buffer->Save(JoinPath(directory, "thesis.txt")),
              IsFailedPrecondition("a file"));
  EXPECT_THAT(ReadFile(JoinPath(directory, "thesis.txt")),
              IsOkAndHolds("precious"));
  RILL_EXPECT_OK(buffer->Save(JoinPath(directory, "buffer")));
  RILL_EXPECT_OK(buffer->Save(JoinPath(directory, "buffer")));
}

// --- Another save in the middle ----------------------------------------------

TEST(ReplayBufferFilesTest, OpenBringsOneOfTheSavesAndNoMix) {
  const std::string directory = FreshPath("open_race");
  auto first = WorkedBuffer();
  auto second = WorkedBuffer();
  for (int64_t round = 4; round < 7; ++round) Work(round, *second);
  int64_t num_points = 1;
  int64_t num_refused = 0;
  for (int64_t at = 0; at < num_points; at += 7) {  // Saves are slow.
    RILL_ASSERT_OK(first->Save(directory));
    ReplayBuffer::Options options = OptionsOf();
    const std::shared_ptr<Storage> storage = options.storage;
    int64_t point = 0;
    absl::StatusOr<std::unique_ptr<ReplayBuffer>> opened;
    {
      ScopedFaultHook hook([&](absl::string_view, absl::string_view) {
        if (point++ == at) {
          RILL_EXPECT_OK(second->Save(directory));
        }
        return absl::OkStatus();
      });
      opened = ReplayBuffer::Open(directory, std::move(options));
    }
    num_points = std::max(num_points, point);
    if (!opened.ok()) {
      ++num_refused;
      EXPECT_THAT(opened, IsDataLoss("another save")) << at;
      EXPECT_EQ(storage->size(), 0);
      continue;
    }
    const ReplayBuffer& saved =
        (*opened)->batch_number() == first->batch_number() ? *first : *second;
    EXPECT_EQ((*opened)->batch_number(), saved.batch_number());
    EXPECT_EQ(storage->cursors(), saved.storage().cursors()) << at;
  }
  EXPECT_GT(num_refused, 1);
}

TEST(ReplayBufferFilesTest, OpenChecksRowsOnce) {
  const std::string directory = FreshPath("checks_once");
  RILL_ASSERT_OK(WorkedBuffer()->Save(directory));
  RILL_ASSERT_OK_AND_ASSIGN(const auto files,
                            ListDirectory(JoinPath(directory, "storage/rows")));
  int64_t num_mapped = 0;
  ScopedFaultHook hook([&](absl::string_view at, absl::string_view path) {
    const bool is_of_rows =
        at == "file.map" && absl::StrContains(path, "storage/rows/");
    num_mapped += is_of_rows ? 1 : 0;
    return absl::OkStatus();
  });
  RILL_ASSERT_OK(ReplayBuffer::Open(directory, OptionsOf()));
  // For its sum, and for its rows.
  EXPECT_EQ(num_mapped, 2 * static_cast<int64_t>(files.size()));
}

}  // namespace
}  // namespace rill
