// SPDX-License-Identifier: Apache-2.0
// SavePosition of a buffer over a MemmapStorage, and Open of it.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/replay/rate_limiter.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/replay/writers/top_k_writer.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/selectors/without_replacement.h"
#include "rill/samplers/slice_sampler.h"
#include "rill/samplers/testing/fake_prioritized_sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/slots/live_slots.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage.h"
#include "rill/storage/tiered/tiered_storage.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/testing/fake_row_counter.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kLanes = 2;
constexpr int64_t kLaneCapacity = 50;
constexpr int64_t kSteps = 5;  // A round appends so many to each lane.
constexpr int64_t kSavedRounds = 5;

using MakeSampler = std::function<std::unique_ptr<Sampler>()>;

// A directory for a storage and one for positions, of each test its own.
class ReplayBufferPositionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = FreshDirectory();
    saved_ = In("saved");
  }

  std::string In(absl::string_view name) const { return JoinPath(root_, name); }
  MemmapStorage::Options Files(absl::string_view name = "rows") const {
    return {.directory = In(name),
            .capacity = kLanes * kLaneCapacity,
            .lanes = kLanes};
  }
  // The first time there is nothing to open.
  std::shared_ptr<Storage> OpenFiles() const {
    auto storage = MemmapStorage::Open(Files());
    if (absl::IsNotFound(storage.status())) {
      storage = MemmapStorage::Create(Files());
    }
    RILL_EXPECT_OK(storage);
    return *std::move(storage);
  }
  ReplayBuffer::Options OptionsOf(std::shared_ptr<Storage> storage,
                                  const MakeSampler& sampler,
                                  int64_t prefetch = 0) const {
    ReplayBuffer::Options options;
    options.storage = std::move(storage);
    options.sampler = sampler();
    options.transforms.push_back(MakeFakeRowCounter());
    options.batch_size = 16;
    options.seed = 9;
    options.prefetch = prefetch;
    return options;
  }
  // Makes a buffer, saves its position after some rounds, and goes on.
  std::unique_ptr<ReplayBuffer> SaveAndGoOn(const MakeSampler& sampler,
                                            int64_t more_rounds) const;

  std::string root_, saved_;
};

// Appends, samples, gives priorities; the batch.
TensorDict Work(ReplayBuffer& buffer, int64_t offset = 0) {
  const int64_t written = buffer.storage().cursors()[0].written;
  RILL_EXPECT_OK(
      buffer.Extend(NumberedSteps(kLanes, kSteps, written + offset)));
  auto batch = buffer.Sample();
  RILL_EXPECT_OK(batch);
  if (!batch.ok()) return TensorDict();
  RILL_EXPECT_OK(buffer.UpdatePriorities(*batch, ActionsModulo(*batch, 11)));
  return *batch->Clone();
}

std::unique_ptr<ReplayBuffer> ReplayBufferPositionTest::SaveAndGoOn(
    const MakeSampler& sampler, int64_t more_rounds) const {
  auto buffer = ReplayBuffer::Create(OptionsOf(OpenFiles(), sampler));
  RILL_EXPECT_OK(buffer);
  for (int64_t i = 0; i < kSavedRounds; ++i) Work(**buffer);
  RILL_EXPECT_OK((*buffer)->SavePosition(saved_));
  for (int64_t i = 0; i < more_rounds; ++i) Work(**buffer);
  return *std::move(buffer);
}

// --- The same next batches ---------------------------------------------------

struct Kind {
  std::string name;
  MakeSampler sampler;
};

std::vector<Kind> Kinds() {
  return {
      {"Uniform", [] { return MakeUniformSampler(); }},
      {"Prioritized", [] { return *MakePrioritizedSampler(); }},
      {"WithoutReplacement", [] { return MakeSamplerWithoutReplacement(); }},
      {"Slices", [] { return *MakeSliceSampler({.length = 4}); }}};
}

class ReplayBufferPositionKindTest
    : public ReplayBufferPositionTest,
      public ::testing::WithParamInterface<std::tuple<Kind, int64_t>> {};

TEST_P(ReplayBufferPositionKindTest, GivesTheSameNextBatches) {
  const auto& [kind, prefetch] = GetParam();
  std::vector<TensorDict> want;
  {
    RILL_ASSERT_OK_AND_ASSIGN(
        auto buffer,
        ReplayBuffer::Create(OptionsOf(OpenFiles(), kind.sampler, prefetch)));
    for (int64_t i = 0; i < kSavedRounds; ++i) Work(*buffer);
    RILL_ASSERT_OK(buffer->SavePosition(saved_));
    for (int64_t i = 0; i < 4; ++i) want.push_back(Work(*buffer));
    ASSERT_EQ(buffer->size(), kLanes * 45);
  }
  // Again and again from one position, whatever came in between.
  for (int64_t time = 0; time < 3; ++time) {
    RILL_ASSERT_OK_AND_ASSIGN(
        auto buffer,
        ReplayBuffer::Open(saved_,
                           OptionsOf(OpenFiles(), kind.sampler, prefetch)));
    EXPECT_EQ(buffer->size(), kLanes * 25);
    EXPECT_EQ(buffer->storage().cursors()[1].written, 25);
    if (time == 1) {
      for (int64_t i = 0; i < 4; ++i) Work(*buffer, /*offset=*/500);
      continue;
    }
    for (const TensorDict& batch : want) {
      RILL_EXPECT_OK(Work(*buffer).CheckEqual(batch));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Samplers, ReplayBufferPositionKindTest,
                         ::testing::Combine(::testing::ValuesIn(Kinds()),
                                            ::testing::Values<int64_t>(0, 2)),
                         [](const auto& info) {
                           return absl::StrCat(
                               std::get<0>(info.param).name,
                               std::get<1>(info.param) == 0 ? "" : "Ahead");
                         });

std::unique_ptr<Sampler> Uniform() { return MakeUniformSampler(); }

TEST_F(ReplayBufferPositionTest, ReadersSeeTheRowsGo) {
  SaveAndGoOn(Uniform, 4);
  RILL_ASSERT_OK_AND_ASSIGN(const auto reader,
                            MemmapStorage::OpenReader(In("rows")));
  EXPECT_EQ(reader->size(), kLanes * 45);
  RILL_ASSERT_OK(ReplayBuffer::Open(saved_, OptionsOf(OpenFiles(), Uniform)));
  EXPECT_EQ(reader->size(), kLanes * 25);
}

TEST_F(ReplayBufferPositionTest, WorksInATieredStorage) {
  const auto tiered = [&] {
    auto below = MemmapStorage::Open(Files());
    if (absl::IsNotFound(below.status()))
      below = MemmapStorage::Create(Files());
    RILL_EXPECT_OK(below);
    auto storage = *TieredStorage::Create(
        {.below = *std::move(below), .fast_capacity = kLanes * 12});
    return std::shared_ptr<Storage>(std::move(storage));
  };
  std::vector<TensorDict> want;
  {
    RILL_ASSERT_OK_AND_ASSIGN(
        auto buffer, ReplayBuffer::Create(OptionsOf(tiered(), Uniform)));
    for (int64_t i = 0; i < kSavedRounds; ++i) Work(*buffer);
    RILL_ASSERT_OK(buffer->SavePosition(saved_));
    for (int64_t i = 0; i < 3; ++i) want.push_back(Work(*buffer));
  }
  RILL_ASSERT_OK_AND_ASSIGN(
      auto buffer, ReplayBuffer::Open(saved_, OptionsOf(tiered(), Uniform)));
  for (const TensorDict& batch : want) {
    RILL_EXPECT_OK(Work(*buffer).CheckEqual(batch));
  }
}

TEST_F(ReplayBufferPositionTest, CountsOfALimiterAreThoseOfThePosition) {
  const auto options = [&](std::shared_ptr<Storage> storage) {
    ReplayBuffer::Options made = OptionsOf(std::move(storage), Uniform);
    made.rate_limiter = *RateLimiter::Create(RateLimiter::MinSize(1));
    return made;
  };
  {
    RILL_ASSERT_OK_AND_ASSIGN(auto buffer,
                              ReplayBuffer::Create(options(OpenFiles())));
    Work(*buffer);
    RILL_ASSERT_OK(buffer->SavePosition(saved_));
    Work(*buffer);
  }
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer,
                            ReplayBuffer::Open(saved_, options(OpenFiles())));
  EXPECT_EQ(buffer->GetStats().rate_limiter->done.inserts, kLanes * kSteps);
  EXPECT_EQ(buffer->GetStats().rate_limiter->done.samples, 16);
}

// A save links chunks that it knows; those of discarded rows are not known.
TEST_F(ReplayBufferPositionTest, SavesAfterwardsHaveTheRowsThatAreThere) {
  auto storage = OpenFiles();
  {
    RILL_ASSERT_OK_AND_ASSIGN(
        auto buffer, ReplayBuffer::Create(OptionsOf(storage, Uniform)));
    for (int64_t i = 0; i < kSavedRounds; ++i) Work(*buffer);
    RILL_ASSERT_OK(buffer->SavePosition(saved_));
    for (int64_t i = 0; i < 3; ++i) Work(*buffer);
    RILL_ASSERT_OK(buffer->Save(In("full")));
  }
  RILL_ASSERT_OK_AND_ASSIGN(
      auto buffer, ReplayBuffer::Open(saved_, OptionsOf(storage, Uniform)));
  for (int64_t i = 0; i < 3; ++i) Work(*buffer, /*offset=*/500);
  RILL_ASSERT_OK(buffer->Save(In("full")));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto copy,
      ReplayBuffer::Open(
          In("full"),
          OptionsOf(MakeStorage(kLanes * kLaneCapacity, kLanes), Uniform)));
  const std::vector<Slot> slots = {0, 24, 25, 39, 75, 89};
  TensorDict want, got;
  RILL_ASSERT_OK(storage->Read(slots, &want));
  RILL_ASSERT_OK(copy->storage().Read(slots, &got));
  RILL_EXPECT_OK(got.CheckEqual(want));
  EXPECT_EQ((*want.Flat<int64_t>("action"))[2], 525);
}

// --- Rows that are missing ---------------------------------------------------

TEST_F(ReplayBufferPositionTest, RowsThatWereOverwrittenAreCounted) {
  SaveAndGoOn(Uniform, /*more_rounds=*/6);  // 55 steps of 50.
  auto storage = OpenFiles();
  const std::vector<Cursor> before = storage->cursors();
  EXPECT_THAT(
      ReplayBuffer::Open(saved_, OptionsOf(storage, Uniform)),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("got 10 of 50"), HasSubstr("accept_newer"))));
  EXPECT_EQ(storage->cursors(), before);
  EXPECT_EQ(storage->size(), kLanes * kLaneCapacity);
}

TEST_F(ReplayBufferPositionTest, AcceptNewerGoesOnFromTheNewest) {
  PrioritizedOptions exponents;
  exponents.epsilon = 0;
  const auto make = [&] { return *MakePrioritizedSampler(exponents); };
  constexpr int64_t kChosen = 20;  // A step of lane 0.
  constexpr int64_t kGone = 1003;  // One of lane 1 that is overwritten.
  {
    RILL_ASSERT_OK_AND_ASSIGN(
        auto buffer, ReplayBuffer::Create(OptionsOf(OpenFiles(), make)));
    RILL_ASSERT_OK(buffer->Extend(NumberedSteps(kLanes, 25)));
    // Until only these two are drawn.
    std::set<int64_t> drawn;
    do {
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
      std::vector<float> priorities;
      const absl::Span<int64_t> actions = *batch.Flat<int64_t>("action");
      drawn = {actions.begin(), actions.end()};
      for (const int64_t action : actions) {
        priorities.push_back(action == kChosen || action == kGone ? 3 : 0);
      }
      RILL_ASSERT_OK(buffer->UpdatePriorities(batch, priorities));
      drawn.erase(kChosen);
      drawn.erase(kGone);
    } while (!drawn.empty());
    RILL_ASSERT_OK(buffer->SavePosition(saved_));
    RILL_ASSERT_OK(buffer->Extend(NumberedSteps(kLanes, 30, 25)));
  }
  RILL_ASSERT_OK_AND_ASSIGN(
      auto buffer, ReplayBuffer::Open(saved_, OptionsOf(OpenFiles(), make),
                                      {.accept_newer = true}));
  EXPECT_EQ(buffer->size(), kLanes * kLaneCapacity);
  EXPECT_EQ(buffer->storage().cursors()[0].written, 55);
  std::set<int64_t> drawn;
  for (int i = 0; i < 60; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
    const absl::Span<int64_t> actions = *batch.Flat<int64_t>("action");
    drawn.insert(actions.begin(), actions.end());
  }
  // Those of the position keep their priorities, the others are new.
  std::set<int64_t> want = {kChosen};
  for (int64_t step = 25; step < 55; ++step) want.insert({step, 1000 + step});
  EXPECT_EQ(drawn, want);
}

TEST_F(ReplayBufferPositionTest, AcceptNewerGoesBackWhereNothingIsMissing) {
  SaveAndGoOn(Uniform, 4);
  RILL_ASSERT_OK_AND_ASSIGN(
      auto buffer, ReplayBuffer::Open(saved_, OptionsOf(OpenFiles(), Uniform),
                                      {.accept_newer = true}));
  EXPECT_EQ(buffer->size(), kLanes * 25);
}

TEST_F(ReplayBufferPositionTest, BatchesMadeAheadOfRowsThatAreGoneAreLeftOut) {
  {
    RILL_ASSERT_OK_AND_ASSIGN(
        auto buffer, ReplayBuffer::Create(OptionsOf(OpenFiles(), Uniform, 3)));
    Work(*buffer);
    RILL_ASSERT_OK(buffer->SavePosition(saved_));
    for (int64_t i = 0; i < 11; ++i) Work(*buffer);
  }
  RILL_ASSERT_OK_AND_ASSIGN(
      auto buffer,
      ReplayBuffer::Open(saved_, OptionsOf(OpenFiles(), Uniform, 3),
                         {.accept_newer = true}));
  EXPECT_EQ(buffer->GetStats().batches_ahead, 0);
  EXPECT_EQ(buffer->batch_number(), 4);
  RILL_ASSERT_OK(buffer->Sample());
}

TEST_F(ReplayBufferPositionTest, RowsThatWereDiscardedDoNotComeBack) {
  auto buffer = SaveAndGoOn(Uniform, 2);
  RILL_ASSERT_OK(buffer->SavePosition(In("later")));  // At 35 steps.
  Work(*buffer);
  buffer.reset();
  RILL_ASSERT_OK_AND_ASSIGN(
      buffer, ReplayBuffer::Open(saved_, OptionsOf(OpenFiles(), Uniform)));
  for (int64_t i = 0; i < 3; ++i) Work(*buffer, /*offset=*/500);
  RILL_ASSERT_OK(buffer->SavePosition(In("other")));
  Work(*buffer);
  buffer.reset();
  // 40 steps are there, but 25 to 34 are others.
  EXPECT_THAT(ReplayBuffer::Open(In("later"), OptionsOf(OpenFiles(), Uniform)),
              IsFailedPrecondition("got 20 of 70"));
  RILL_ASSERT_OK_AND_ASSIGN(
      buffer, ReplayBuffer::Open(In("other"), OptionsOf(OpenFiles(), Uniform)));
  EXPECT_EQ(buffer->size(), kLanes * 40);
  buffer.reset();
  RILL_ASSERT_OK_AND_ASSIGN(
      buffer, ReplayBuffer::Open(saved_, OptionsOf(OpenFiles(), Uniform)));
  EXPECT_EQ(buffer->size(), kLanes * 25);
}

// --- What is refused ---------------------------------------------------------

TEST_F(ReplayBufferPositionTest, OtherStoragesAreRefused) {
  SaveAndGoOn(Uniform, 1);
  const auto refused = [&](std::shared_ptr<Storage> storage,
                           absl::string_view why) {
    const int64_t size = storage->size();
    for (const bool accept_newer : {false, true}) {
      EXPECT_THAT(ReplayBuffer::Open(saved_, OptionsOf(storage, Uniform),
                                     {.accept_newer = accept_newer}),
                  IsFailedPrecondition(why));
    }
    EXPECT_EQ(storage->size(), size);
  };
  RILL_ASSERT_OK_AND_ASSIGN(std::shared_ptr<Storage> other,
                            MemmapStorage::Create(Files("other")));
  refused(other, "got none");
  RILL_ASSERT_OK(other->Extend(NumberedSteps(kLanes, 40)).status());
  refused(other, "another storage");
  RILL_ASSERT_OK(other->SavePosition());
  refused(other, "another storage");
  auto in_memory = MakeStorage(kLanes * kLaneCapacity, kLanes);
  RILL_ASSERT_OK(in_memory->Extend(NumberedSteps(kLanes, 40)).status());
  refused(in_memory, "MemmapStorage");
  // The same one, with other rows.
  auto cleared = OpenFiles();
  RILL_ASSERT_OK(cleared->Clear());
  RILL_ASSERT_OK(cleared->Extend(NumberedSteps(kLanes, 40)).status());
  refused(cleared, "another storage");
}

TEST_F(ReplayBufferPositionTest, RowsThatWereLoadedAreOthers) {
  auto buffer = SaveAndGoOn(Uniform, 0);
  RILL_ASSERT_OK(buffer->Save(In("full")));
  buffer.reset();
  auto storage = OpenFiles();
  RILL_ASSERT_OK(storage->Load(JoinPath(In("full"), "storage")));
  EXPECT_THAT(ReplayBuffer::Open(saved_, OptionsOf(storage, Uniform)),
              IsFailedPrecondition("another storage"));
}

TEST_F(ReplayBufferPositionTest, SavePositionNamesWhatItCannotDo) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto in_memory,
      ReplayBuffer::Create(OptionsOf(MakeStorage(20, kLanes), Uniform)));
  Work(*in_memory);
  EXPECT_THAT(in_memory->SavePosition(saved_),
              IsFailedPrecondition("MemmapStorage"));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto empty, ReplayBuffer::Create(OptionsOf(OpenFiles(), Uniform)));
  EXPECT_THAT(empty->SavePosition(saved_),
              IsFailedPrecondition("rows: got none"));
  RILL_ASSERT_OK_AND_ASSIGN(
      std::shared_ptr<Storage> lane,
      MemmapStorage::Create({.directory = In("lane"), .capacity = 10}));
  ReplayBuffer::Options options = OptionsOf(lane, Uniform);
  options.writer = *TopKWriter::Create({.k = 3});
  RILL_ASSERT_OK_AND_ASSIGN(auto top, ReplayBuffer::Create(std::move(options)));
  RILL_ASSERT_OK(top->Extend(NumberedSteps(1, 9)));
  EXPECT_THAT(top->SavePosition(saved_), IsFailedPrecondition("TopKWriter"));
  EXPECT_FALSE(PathExists(saved_));
}

TEST_F(ReplayBufferPositionTest, PlaceOfTheRowsIsNoPlaceForAPosition) {
  auto buffer = SaveAndGoOn(Uniform, 0);
  for (const bool in_place : {false, true}) {
    EXPECT_THAT(
        in_place ? buffer->SavePosition(In("rows")) : buffer->Save(In("rows")),
        IsFailedPrecondition("rill.commit"));
  }
  // In a folder of its own there it may lie.
  RILL_ASSERT_OK(buffer->SavePosition(JoinPath(In("rows"), "position")));
  Work(*buffer);
  buffer.reset();
  RILL_EXPECT_OK(ReplayBuffer::Open(JoinPath(In("rows"), "position"),
                                    OptionsOf(OpenFiles(), Uniform)));
}

TEST_F(ReplayBufferPositionTest, DamageIsNamedAndChangesNothing) {
  SaveAndGoOn(Uniform, 2);
  auto storage = OpenFiles();
  for (const std::string& path :
       {JoinPath(saved_, "storage.position"), JoinPath(saved_, "sampler.state"),
        JoinPath(In("rows"), "rill.history")}) {
    RILL_ASSERT_OK_AND_ASSIGN(const std::string bytes, ReadFile(path));
    std::string other = bytes;
    other[other.size() / 2] ^= 1;
    RILL_ASSERT_OK(WriteFileAtomically(path, other));
    EXPECT_THAT(ReplayBuffer::Open(saved_, OptionsOf(storage, Uniform),
                                   {.accept_newer = true}),
                IsDataLoss(path.substr(path.rfind('/') + 1)));
    EXPECT_EQ(storage->size(), kLanes * 35);
    RILL_ASSERT_OK(WriteFileAtomically(path, bytes));
  }
  RILL_EXPECT_OK(ReplayBuffer::Open(saved_, OptionsOf(storage, Uniform)));
}

TEST_F(ReplayBufferPositionTest, SamplerThatCannotFollowLeavesTheRows) {
  const auto fake = [] { return MakeFakePrioritizedSampler(); };
  SaveAndGoOn(fake, 6);
  auto storage = OpenFiles();
  EXPECT_THAT(ReplayBuffer::Open(saved_, OptionsOf(storage, fake),
                                 {.accept_newer = true}),
              IsFailedPrecondition("FakePrioritizedSampler"));
  EXPECT_EQ(storage->size(), kLanes * kLaneCapacity);
}

TEST_F(ReplayBufferPositionTest, WhatIsNotAcceptedIsUndone) {
  SaveAndGoOn(Uniform, 2);
  auto storage = OpenFiles();
  RILL_ASSERT_OK_AND_ASSIGN(const std::string position,
                            ReadFile(JoinPath(saved_, "storage.position")));
  LiveSlots live;
  RILL_ASSERT_OK(storage->AddObserver(&live));
  EXPECT_THAT(storage->LoadPosition(position, false,
                                    [&](const PositionRows& rows) {
                                      EXPECT_EQ(rows.missing, 0);
                                      EXPECT_EQ(live.size(), kLanes * 25);
                                      return absl::InternalError("no");
                                    }),
              StatusIs(absl::StatusCode::kInternal, "no"));
  EXPECT_EQ(storage->size(), kLanes * 35);
  EXPECT_EQ(live.size(), kLanes * 35);
  storage->RemoveObserver(&live);
  storage.reset();
  EXPECT_EQ(OpenFiles()->size(), kLanes * 35);
}

// --- Failures and kills ------------------------------------------------------

TEST_F(ReplayBufferPositionTest, OpenThatFailsOnFilesChangesNothing) {
  SaveAndGoOn(Uniform, 2);
  auto storage = OpenFiles();
  bool is_done = false;
  int64_t fail_at = 0;
  while (!is_done) {
    ++fail_at;
    int64_t operations = 0;
    {
      ScopedFaultHook hook([&](absl::string_view, absl::string_view) {
        return ++operations == fail_at ? absl::ResourceExhaustedError("full")
                                       : absl::OkStatus();
      });
      is_done = ReplayBuffer::Open(saved_, OptionsOf(storage, Uniform)).ok();
    }
    // Only the sync of its folder fails after the history was renamed.
    ASSERT_EQ(storage->size(), kLanes * (is_done ? 25 : 35)) << fail_at;
  }
  EXPECT_GT(fail_at, 5);
}

TEST_F(ReplayBufferPositionTest, KilledOnTheWayItStandsHereOrThere) {
  std::vector<TensorDict> want;
  {
    auto buffer = SaveAndGoOn(Uniform, 0);
    for (int64_t i = 0; i < 2; ++i) want.push_back(Work(*buffer));
  }
  int64_t here = 0;
  bool is_there = false;
  bool is_done = false;
  for (int64_t kill_at = 1; !is_done; ++kill_at) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      int64_t operations = 0;
      ScopedFaultHook hook([&](absl::string_view, absl::string_view) {
        if (++operations == kill_at) kill(getpid(), SIGKILL);
        return absl::OkStatus();
      });
      auto storage = MemmapStorage::Open(Files());
      if (!storage.ok()) _exit(2);
      const bool is_open =
          ReplayBuffer::Open(saved_, OptionsOf(*std::move(storage), Uniform))
              .ok();
      _exit(is_open ? 0 : 3);
    }
    int how = 0;
    ASSERT_EQ(waitpid(child, &how, 0), child);
    is_done = WIFEXITED(how) && WEXITSTATUS(how) == 0;
    ASSERT_TRUE(is_done || WIFSIGNALED(how)) << WEXITSTATUS(how);
    const int64_t size = OpenFiles()->size();
    is_there = is_there || is_done || size == kLanes * 25;
    ASSERT_EQ(size, kLanes * (is_there ? 25 : 35)) << kill_at;
    here += is_there ? 0 : 1;
  }
  EXPECT_GT(here, 5);
  // Whatever has happened, the position is there.
  RILL_ASSERT_OK_AND_ASSIGN(
      auto buffer, ReplayBuffer::Open(saved_, OptionsOf(OpenFiles(), Uniform)));
  for (const TensorDict& batch : want) {
    RILL_EXPECT_OK(Work(*buffer).CheckEqual(batch));
  }
}

}  // namespace
}  // namespace rill
