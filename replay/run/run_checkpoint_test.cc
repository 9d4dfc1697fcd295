// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/run/run_checkpoint.h"

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/file_tree.h"
#include "rill/formats/manifest.h"
#include "rill/formats/memmap_directory.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/slice_sampler.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/reward_scaling.h"
#include "rill/transforms/testing/fake_row_counter.h"

namespace rill {
namespace {

using formats_internal::ListFiles;
using formats_internal::WriteInPlace;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr int64_t kLanes = 2;
constexpr int64_t kCapacity = 40;

ReplayBuffer::Options ActorOptions(std::shared_ptr<Storage> storage,
                                   double alpha = 0.7) {
  ReplayBuffer::Options options;
  options.storage = std::move(storage);
  options.sampler = *MakePrioritizedSampler({.alpha = alpha});
  options.transforms.push_back(MakeFakeRowCounter());
  options.transforms.push_back(*RewardScaling::Create({.scale = 2}));
  options.batch_size = 8;
  options.seed = 3;
  options.prefetch = 2;
  return options;
}

ReplayBuffer::Options CriticOptions(std::shared_ptr<Storage> storage) {
  ReplayBuffer::Options options;
  options.storage = std::move(storage);
  options.sampler = *MakeSliceSampler({.length = 2});
  options.batch_size = 6;
  options.seed = 4;
  options.prefetch = 3;
  return options;
}

std::map<std::string, ReplayBuffer::Options> SharedOptions(
    std::shared_ptr<Storage>* out = nullptr) {
  const auto storage = MakeStorage(kCapacity, kLanes);
  if (out != nullptr) *out = storage;
  std::map<std::string, ReplayBuffer::Options> options;
  options["actor"] = ActorOptions(storage);
  options["critic"] = CriticOptions(storage);
  return options;
}

TensorDict Learner(int64_t step) {
  TensorDict state;
  RILL_EXPECT_OK(state.Set("step", *Tensor::From<int64_t>({step}, Shape({1}))));
  RILL_EXPECT_OK(state.Set("policy/weight",
                           *Tensor::From<float>({0.5f, 1.5f}, Shape({2}))));
  return state;
}

struct Readers {
  std::unique_ptr<ReplayBuffer> actor, critic;

  RunCheckpoint::Contents Contents(int64_t step = 7) const {
    return {.buffers = {{"actor", actor.get()}, {"critic", critic.get()}},
            .states = {{"learner", Learner(step)}}};
  }
};

Readers MakeRun() {
  auto options = SharedOptions();
  Readers run;
  run.actor = *ReplayBuffer::Create(std::move(options["actor"]));
  run.critic = *ReplayBuffer::Create(std::move(options["critic"]));
  return run;
}

// Writes by one of them, samples of both, priorities. Returns both batches.
std::vector<TensorDict> Work(int64_t round, ReplayBuffer& actor,
                             ReplayBuffer& critic) {
  ReplayBuffer& writer = round % 3 == 0 ? critic : actor;
  RILL_EXPECT_OK(writer.Extend(NumberedSteps(kLanes, 7, 7 * round)));
  auto batch = actor.Sample();
  RILL_EXPECT_OK(batch);
  RILL_EXPECT_OK(
      actor.UpdatePriorities(*batch, ActionsModulo(*batch, 5, /*plus=*/1)));
  auto slices = *critic.Sample();
  return {*std::move(batch), std::move(slices)};
}

// A ring that is full and has gone round.
Readers WorkedRun(int64_t rounds = 9) {
  Readers run = MakeRun();
  for (int64_t round = 0; round < rounds; ++round) {
    Work(round, *run.actor, *run.critic);
  }
  EXPECT_EQ(run.actor->size(), kCapacity);
  return run;
}

void ExpectGoesOnAs(Readers& saved, RunCheckpoint::Opened& opened,
                    int64_t round = 9) {
  ReplayBuffer& actor = *opened.buffers["actor"];
  ReplayBuffer& critic = *opened.buffers["critic"];
  EXPECT_EQ(&actor.storage(), &critic.storage());
  for (const int64_t end = round + 6; round < end; ++round) {
    const auto want = Work(round, *saved.actor, *saved.critic);
    const auto got = Work(round, actor, critic);
    RILL_EXPECT_OK(got[0].CheckEqual(want[0])) << "actor, round " << round;
    RILL_EXPECT_OK(got[1].CheckEqual(want[1])) << "critic, round " << round;
  }
}

absl::Status RunExample(const std::string& directory, const ReplayBuffer* actor,
                        const ReplayBuffer* critic, const TensorDict& learner,
                        std::map<std::string, ReplayBuffer::Options> options) {
  RILL_RETURN_IF_ERROR(RunCheckpoint::Save(
      directory, {.buffers = {{"actor", actor}, {"critic", critic}},
                  .states = {{"learner", learner}}}));
  RILL_ASSIGN_OR_RETURN(
      RunCheckpoint::Opened run,
      RunCheckpoint::Open(
          directory, {.buffers = std::move(options), .states = {"learner"}}));
  return run.states["learner"].CheckEqual(learner);
}

TEST(RunCheckpointTest, Example) {
  const Readers run = WorkedRun();
  RILL_EXPECT_OK(RunExample(FreshPath("example"), run.actor.get(),
                            run.critic.get(), Learner(7), SharedOptions()));
}

// --- Round trips -------------------------------------------------------------

TEST(RunCheckpointTest, TwoBuffersOnOneFullRingGoOnBitForBit) {
  const std::string directory = FreshPath("round_trip");
  Readers run = WorkedRun();
  RILL_ASSERT_OK(RunCheckpoint::Save(directory, run.Contents()));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto opened, RunCheckpoint::Open(directory, {.buffers = SharedOptions(),
                                                   .states = {"learner"}}));
  RILL_EXPECT_OK(opened.states["learner"].CheckEqual(Learner(7)));
  EXPECT_TRUE(opened.changed_options.empty());
  ExpectGoesOnAs(run, opened);
}

TEST(RunCheckpointTest, WhatOpenedSavesAndOpensAgain) {
  const std::string directory = FreshPath("again");
  Readers run = WorkedRun();
  RILL_ASSERT_OK(RunCheckpoint::Save(directory, run.Contents()));
  for (int64_t time = 0; time < 3; ++time) {
    RILL_ASSERT_OK_AND_ASSIGN(
        auto opened, RunCheckpoint::Open(directory, {.buffers = SharedOptions(),
                                                     .states = {"learner"}}));
    ExpectGoesOnAs(run, opened, 9 + 6 * time);
    RILL_ASSERT_OK(RunCheckpoint::Save(
        directory, {.buffers = {{"actor", opened.buffers["actor"].get()},
                                {"critic", opened.buffers["critic"].get()}},
                    .states = {{"learner", Learner(time)}}}));
  }
}

TEST(RunCheckpointTest, BuffersOnTheirOwnStoragesHaveThemAgain) {
  const std::string directory = FreshPath("apart");
  const auto options = [] {
    std::map<std::string, ReplayBuffer::Options> made;
    made["a"] = ActorOptions(MakeStorage(kCapacity, kLanes));
    made["b"] = CriticOptions(MakeStorage(2 * kCapacity, kLanes));
    return made;
  };
  auto made = options();
  auto a = *ReplayBuffer::Create(std::move(made["a"]));
  auto b = *ReplayBuffer::Create(std::move(made["b"]));
  RILL_ASSERT_OK(a->Extend(NumberedSteps(kLanes, 30)));
  RILL_ASSERT_OK(b->Extend(NumberedSteps(kLanes, 10, 100)));
  RILL_ASSERT_OK(RunCheckpoint::Save(
      directory, {.buffers = {{"a", a.get()}, {"b", b.get()}}}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto opened, RunCheckpoint::Open(directory, {.buffers = options()}));
  EXPECT_EQ(opened.buffers["a"]->size(), kCapacity);
  EXPECT_EQ(opened.buffers["b"]->size(), 20);
  for (int i = 0; i < 5; ++i) {
    RILL_EXPECT_OK((*opened.buffers["a"]->Sample()).CheckEqual(*a->Sample()));
    RILL_EXPECT_OK((*opened.buffers["b"]->Sample()).CheckEqual(*b->Sample()));
  }
}

TEST(RunCheckpointTest, StatesAloneAreACheckpoint) {
  const std::string directory = FreshPath("states");
  RILL_ASSERT_OK(RunCheckpoint::Save(
      directory, {.states = {{"a", Learner(1)}, {"b/..", Learner(2)}}}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto opened, RunCheckpoint::Open(directory, {.states = {"b/..", "a"}}));
  RILL_EXPECT_OK(opened.states["b/.."].CheckEqual(Learner(2)));
}

// A state of many small leaves, as those of collectors are.
TensorDict ManyLeaves(int64_t leaves) {
  TensorDict state;
  for (int64_t i = 0; i < leaves; ++i) {
    RILL_EXPECT_OK(state.Set(absl::StrCat("worker/", i % 8, "/leaf_", i),
                             *Tensor::From<int64_t>({i, -i}, Shape({2}))));
  }
  RILL_EXPECT_OK(state.Set("worker/name", NonTensor{.json = "\"CartPole\""}));
  return state;
}

TEST(RunCheckpointTest, StatesAreOneFileWhateverTheyHold) {
  const std::string directory = FreshPath("many_leaves");
  const std::map<std::string, TensorDict> states = {
      {"collector", ManyLeaves(300)},
      {"learner", Learner(4)},
      {"nothing", TensorDict()}};
  int64_t syncs = 0;
  {
    ScopedFaultHook hook([&](absl::string_view point, absl::string_view) {
      syncs += point == "file.sync" ? 1 : 0;
      return absl::OkStatus();
    });
    RILL_ASSERT_OK(RunCheckpoint::Save(directory, {.states = states}));
  }
  EXPECT_THAT(ListFiles(directory),
              ::testing::ElementsAre("rill.json", "states.bin"));
  EXPECT_LE(syncs, 12);
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto run,
      RunCheckpoint::Open(directory,
                          {.states = {"collector", "learner", "nothing"}}));
  for (const auto& [name, state] : states) {
    RILL_EXPECT_OK(run.states.at(name).CheckEqual(state)) << name;
  }
}

// Names that mean something in that file's JSON.
TEST(RunCheckpointTest, StatesThatOneFileDoesNotTakeAreSavedAllTheSame) {
  const std::string directory = FreshPath("odd_names");
  TensorDict odd;
  RILL_ASSERT_OK(odd.Set("leaves/cls", *Tensor::From<int64_t>({5}, {1})));
  RILL_ASSERT_OK(RunCheckpoint::Save(
      directory, {.states = {{"learner", Learner(4)}, {"odd", odd}}}));
  EXPECT_FALSE(PathExists(JoinPath(directory, "states.bin")));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto run,
      RunCheckpoint::Open(directory, {.states = {"learner", "odd"}}));
  RILL_EXPECT_OK(run.states.at("learner").CheckEqual(Learner(4)));
  RILL_EXPECT_OK(run.states.at("odd").CheckEqual(odd));
}

// Version 1, up to 0.2, had a memmap directory a state. saved_run_test opens
// one with buffers.
TEST(RunCheckpointTest, StatesOfVersionOneOpen) {
  const std::string directory = FreshPath("version_one");
  RILL_ASSERT_OK(CreateDirectories(JoinPath(directory, "states")));
  RILL_ASSERT_OK(CreateDirectories(JoinPath(directory, "storages")));
  Manifest manifest{.kind = "run_checkpoint", .version = 1};
  manifest.SetInt("storages", 0);
  manifest.SetInt("buffers", 0);
  manifest.SetInt("states", 2);
  manifest.fields["state_0"] = "collector";
  manifest.fields["state_1"] = "learner";
  RILL_ASSERT_OK(
      SaveMemmapDirectory(ManyLeaves(20), JoinPath(directory, "states/0")));
  RILL_ASSERT_OK(
      SaveMemmapDirectory(Learner(4), JoinPath(directory, "states/1")));
  RILL_ASSERT_OK(WriteManifest(manifest, directory));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto run,
      RunCheckpoint::Open(directory, {.states = {"collector", "learner"}}));
  RILL_EXPECT_OK(run.states.at("collector").CheckEqual(ManyLeaves(20)));
  RILL_EXPECT_OK(run.states.at("learner").CheckEqual(Learner(4)));
  // A save over it is one of the new form.
  RILL_ASSERT_OK(
      RunCheckpoint::Save(directory, {.states = {{"learner", Learner(5)}}}));
  EXPECT_FALSE(PathExists(JoinPath(directory, "states")));
  RILL_EXPECT_OK(RunCheckpoint::Open(directory, {.states = {"learner"}}));
}

TEST(RunCheckpointTest, RowsThatDidNotChangeAreLinkedAgain) {
  const std::string directory = FreshPath("links");
  Readers run = WorkedRun();
  const auto inode_of = [&] {
    const std::string rows = JoinPath(directory, "storages/0/rows");
    struct stat status = {};
    EXPECT_EQ(stat(JoinPath(rows, (*ListDirectory(rows))[0]).c_str(), &status),
              0);
    return status.st_ino;
  };
  RILL_ASSERT_OK(RunCheckpoint::Save(directory, run.Contents()));
  const ino_t first = inode_of();
  RILL_ASSERT_OK(RunCheckpoint::Save(directory, run.Contents(8)));
  EXPECT_EQ(inode_of(), first);
}

TEST(RunCheckpointTest, OptionsAreComparedAndTakenOverForEachBuffer) {
  const std::string directory = FreshPath("options");
  Readers run = WorkedRun();
  RILL_ASSERT_OK(RunCheckpoint::Save(directory, run.Contents()));
  std::shared_ptr<Storage> storage;
  const auto options = [&] {
    auto made = SharedOptions(&storage);
    made["actor"] = ActorOptions(storage, /*alpha=*/0.1);
    return made;
  };
  EXPECT_THAT(RunCheckpoint::Open(
                  directory, {.buffers = options(), .states = {"learner"}}),
              StatusIs(kFailedPrecondition,
                       AllOf(HasSubstr("buffer \"actor\""),
                             HasSubstr("alpha: got 0.7 in the directory, want "
                                       "0.1"))));
  EXPECT_EQ(storage->size(), 0);
  RILL_ASSERT_OK_AND_ASSIGN(
      auto opened, RunCheckpoint::Open(directory, {.buffers = options(),
                                                   .states = {"learner"},
                                                   .accept_options = true}));
  ASSERT_EQ(opened.changed_options.size(), 1u);
  ASSERT_EQ(opened.changed_options["actor"].size(), 1u);
  EXPECT_EQ(opened.changed_options["actor"][0].option,
            "sampler.selector.alpha");
  EXPECT_EQ(opened.buffers["actor"]->GetStats().batches_ahead, 0);
  EXPECT_EQ(opened.buffers["critic"]->GetStats().batches_ahead, 3);
}

TEST(RunCheckpointTest, OtherCapacitiesAreTakenWhereTheyAreAccepted) {
  const std::string directory = FreshPath("capacity");
  Readers run = WorkedRun();
  RILL_ASSERT_OK(RunCheckpoint::Save(directory, run.Contents()));
  for (const bool accepts : {false, true}) {
    const auto storage = MakeStorage(kCapacity / 2, kLanes);
    std::map<std::string, ReplayBuffer::Options> options;
    options["actor"] = ActorOptions(storage);
    options["critic"] = CriticOptions(storage);
    const auto opened =
        RunCheckpoint::Open(directory, {.buffers = std::move(options),
                                        .states = {"learner"},
                                        .accept_other_capacity = accepts});
    if (!accepts) {
      EXPECT_THAT(opened, IsFailedPrecondition("capacity"));
      continue;
    }
    RILL_ASSERT_OK(opened.status());
    EXPECT_EQ(storage->size(), kCapacity / 2);
    RILL_EXPECT_OK(opened->buffers.at("actor")->Sample().status());
    RILL_EXPECT_OK(opened->buffers.at("critic")->Sample().status());
  }
}

// --- What is refused ---------------------------------------------------------

TEST(RunCheckpointTest, NamesThatAreMissingOrTooMuchAreListed) {
  const std::string directory = FreshPath("names");
  Readers run = WorkedRun();
  RILL_ASSERT_OK(RunCheckpoint::Save(directory, run.Contents()));
  std::shared_ptr<Storage> storage;
  auto options = SharedOptions(&storage);
  options["target"] = std::move(options["critic"]);
  options.erase("critic");
  EXPECT_THAT(RunCheckpoint::Open(directory, {.buffers = std::move(options),
                                              .states = {"learner"}}),
              StatusIs(kFailedPrecondition,
                       AllOf(HasSubstr("buffers: got [\"actor\", \"critic\"]"),
                             HasSubstr("missing there [\"target\"]"),
                             HasSubstr("not in the options [\"critic\"]"))));
  EXPECT_THAT(RunCheckpoint::Open(
                  directory, {.buffers = SharedOptions(), .states = {"other"}}),
              StatusIs(kFailedPrecondition,
                       AllOf(HasSubstr("states: got [\"learner\"]"),
                             HasSubstr("missing there [\"other\"]"))));
  EXPECT_EQ(storage->size(), 0);
}

TEST(RunCheckpointTest, StoragesAreSharedAsTheyWere) {
  const std::string shared = FreshPath("shared");
  const std::string apart = FreshPath("not_shared");
  const auto apart_options = [] {
    std::map<std::string, ReplayBuffer::Options> options;
    options["actor"] = ActorOptions(MakeStorage(kCapacity, kLanes));
    options["critic"] = CriticOptions(MakeStorage(kCapacity, kLanes));
    return options;
  };
  Readers run = WorkedRun();
  RILL_ASSERT_OK(RunCheckpoint::Save(shared, run.Contents()));
  EXPECT_THAT(RunCheckpoint::Open(
                  shared, {.buffers = apart_options(), .states = {"learner"}}),
              IsFailedPrecondition("storages of buffers \"actor\" and "
                                   "\"critic\": got one in the directory, want "
                                   "two"));
  auto made = apart_options();
  run.actor = *ReplayBuffer::Create(std::move(made["actor"]));
  run.critic = *ReplayBuffer::Create(std::move(made["critic"]));
  RILL_ASSERT_OK(RunCheckpoint::Save(apart, run.Contents()));
  EXPECT_THAT(RunCheckpoint::Open(
                  apart, {.buffers = SharedOptions(), .states = {"learner"}}),
              IsFailedPrecondition("got two in the directory, want one"));
}

TEST(RunCheckpointTest, BadContentsAreRefused) {
  const std::string directory = FreshPath("bad");
  const Readers run = MakeRun();
  EXPECT_THAT(RunCheckpoint::Save(directory, {}),
              IsInvalidArgument("got none"));
  EXPECT_THAT(RunCheckpoint::Save(directory, {.buffers = {{"a", nullptr}}}),
              IsInvalidArgument("\"a\": got null"));
  EXPECT_THAT(
      RunCheckpoint::Save(directory, {.buffers = {{"a", run.actor.get()},
                                                  {"b", run.actor.get()}}}),
      IsInvalidArgument("want each once"));
  EXPECT_FALSE(PathExists(directory));
  EXPECT_THAT(RunCheckpoint::Open(directory, {}), IsNotFound());
}

TEST(RunCheckpointTest, APartByItselfAndABufferAsAWholeAreRefused) {
  const std::string directory = FreshPath("parts");
  const std::string buffer = FreshPath("buffer");
  Readers run = WorkedRun();
  RILL_ASSERT_OK(RunCheckpoint::Save(directory, run.Contents()));
  RILL_ASSERT_OK(run.actor->Save(buffer));
  EXPECT_THAT(ReplayBuffer::Open(JoinPath(directory, "buffers/0"),
                                 ActorOptions(MakeStorage(kCapacity, kLanes))),
              IsFailedPrecondition("RunCheckpoint"));
  EXPECT_THAT(RunCheckpoint::Open(buffer, {}),
              IsFailedPrecondition("replay_buffer"));
}

// Writes to the storage, as others might, while its state is saved.
class WritingTransform final : public BatchTransform {
 public:
  WritingTransform(std::shared_ptr<Storage> storage, const bool* is_armed)
      : storage_(std::move(storage)), is_armed_(is_armed) {}
  absl::string_view name() const override { return "Writing"; }
  OptionValues option_values() const override {
    if (*is_armed_) {
      std::thread([this] {
        RILL_EXPECT_OK(storage_->Extend(NumberedSteps(kLanes, 1)).status());
      }).join();
    }
    return {};
  }

 private:
  const std::shared_ptr<Storage> storage_;
  const bool* const is_armed_;
};

TEST(RunCheckpointTest, AWriterBesideIsAnErrorAndTheOldStays) {
  const std::string directory = FreshPath("writer");
  bool is_armed = false;
  const auto make = [&](std::shared_ptr<Storage>* storage) {
    auto options = SharedOptions(storage);
    options["critic"].transforms.push_back(
        std::make_unique<WritingTransform>(*storage, &is_armed));
    return options;
  };
  std::shared_ptr<Storage> storage;
  auto options = make(&storage);
  Readers run;
  run.actor = *ReplayBuffer::Create(std::move(options["actor"]));
  run.critic = *ReplayBuffer::Create(std::move(options["critic"]));
  Work(0, *run.actor, *run.critic);
  RILL_ASSERT_OK(RunCheckpoint::Save(directory, run.Contents(1)));
  is_armed = true;
  EXPECT_THAT(RunCheckpoint::Save(directory, run.Contents(2)),
              StatusIs(kFailedPrecondition,
                       AllOf(HasSubstr("storage of buffer \"actor\""),
                             HasSubstr("want 0"))));
  is_armed = false;
  RILL_ASSERT_OK_AND_ASSIGN(
      auto opened, RunCheckpoint::Open(directory, {.buffers = make(&storage),
                                                   .states = {"learner"}}));
  RILL_EXPECT_OK(opened.states["learner"].CheckEqual(Learner(1)));
}

TEST(RunCheckpointTest, DamageToAnyFileIsDataLossAndStoragesStayEmpty) {
  const std::string directory = FreshPath("damage");
  Readers run = WorkedRun();
  RILL_ASSERT_OK(RunCheckpoint::Save(directory, run.Contents()));
  const std::vector<std::string> files = ListFiles(directory);
  EXPECT_GT(files.size(), 10u);
  for (const std::string& name : files) {
    const std::string file = JoinPath(directory, name);
    const std::string good = *ReadFile(file);
    if (good.empty()) continue;
    std::string bad = good;
    bad[bad.size() / 2] = static_cast<char>(bad[bad.size() / 2] ^ 1);
    WriteInPlace(file, bad);
    std::shared_ptr<Storage> storage;
    auto options = SharedOptions(&storage);
    EXPECT_THAT(RunCheckpoint::Open(directory, {.buffers = std::move(options),
                                                .states = {"learner"}}),
                IsDataLoss())
        << file;
    EXPECT_EQ(storage->size(), 0) << file;
    WriteInPlace(file, good);
  }
  RILL_EXPECT_OK(RunCheckpoint::Open(
      directory, {.buffers = SharedOptions(), .states = {"learner"}}));
}

// The rows of a storage stay, or the error says how many were discarded.
TEST(RunCheckpointTest, RowsThatDamageCostsAreCounted) {
  const std::string directory = FreshPath("discards");
  Readers run = WorkedRun();
  RILL_ASSERT_OK(RunCheckpoint::Save(directory, run.Contents()));
  int64_t kept = 0;
  int64_t lost = 0;
  for (const std::string& name : ListFiles(directory)) {
    const std::string file = JoinPath(directory, name);
    const std::string good = *ReadFile(file);
    if (good.empty()) continue;
    std::string bad = good;
    bad[bad.size() / 2] = static_cast<char>(bad[bad.size() / 2] ^ 1);
    WriteInPlace(file, bad);
    std::shared_ptr<Storage> storage;
    auto options = SharedOptions(&storage);
    RILL_ASSERT_OK((*ReplayBuffer::Create(ActorOptions(storage)))
                       ->Extend(NumberedSteps(kLanes, 5)));
    ASSERT_EQ(storage->size(), 10);
    const absl::Status status =
        RunCheckpoint::Open(directory, {.buffers = std::move(options),
                                        .states = {"learner"},
                                        .discard_rows = true})
            .status();
    EXPECT_THAT(status, IsDataLoss()) << file;
    const bool is_lost = storage->size() == 0;
    EXPECT_EQ(storage->size(), is_lost ? 0 : 10) << file;
    EXPECT_EQ(absl::StrContains(status.message(),
                                "; the 10 rows that storages held before are "
                                "discarded"),
              is_lost)
        << file << ": " << status;
    ++(is_lost ? lost : kept);
    WriteInPlace(file, good);
  }
  EXPECT_GT(kept, 0);
  EXPECT_GT(lost, 0);
}

TEST(RunCheckpointTest, AFaultAtAnyStepLeavesTheOldOne) {
  const std::string directory = FreshPath("faults");
  Readers run = WorkedRun();
  RILL_ASSERT_OK(RunCheckpoint::Save(directory, run.Contents(1)));
  const RunCheckpoint::Contents contents = run.Contents(2);
  int64_t operations = 0;
  // Every third, as there are many.
  for (int64_t fail_at = 1;; fail_at += 3) {
    operations = 0;
    absl::Status status;
    {
      ScopedFaultHook hook([&](absl::string_view, absl::string_view) {
        return ++operations == fail_at
                   ? absl::ResourceExhaustedError("disk full")
                   : absl::OkStatus();
      });
      status = RunCheckpoint::Save(directory, contents);
    }
    if (status.ok()) break;
    const auto opened = RunCheckpoint::Open(
        directory, {.buffers = SharedOptions(), .states = {"learner"}});
    RILL_ASSERT_OK(opened.status()) << "operation " << fail_at;
    const TensorDict& learner = opened->states.at("learner");
    // The last operation comes behind the exchange.
    EXPECT_TRUE(learner.CheckEqual(Learner(1)).ok() ||
                learner.CheckEqual(Learner(2)).ok());
  }
  EXPECT_GT(operations, 40);
}

// --- Threads -----------------------------------------------------------------

// All buffers wait for a save, and it for them, also while writes of one wait
// for gathers of the other.
TEST(RunCheckpointTest, SavesGoOnBesideBothBuffers) {
  const std::string directory = FreshPath("threads");
  Readers run = WorkedRun();
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    for (int64_t i = 0; i < 200; ++i) {
      RILL_EXPECT_OK(
          run.actor->Extend(NumberedSteps(kLanes, 5, 100 + 5 * i)).status());
      RILL_EXPECT_OK(run.critic->Sample().status());
    }
  });
  threads.emplace_back([&] {
    for (int64_t i = 0; i < 200; ++i) {
      RILL_EXPECT_OK(run.actor->Sample().status());
      RILL_EXPECT_OK(
          run.critic->Extend(NumberedSteps(1, 5, 5000 + 5 * i)).status());
    }
  });
  for (const std::string& each : {directory, FreshPath("threads_2")}) {
    threads.emplace_back([&run, each] {
      for (int64_t i = 0; i < 5; ++i) {
        RILL_EXPECT_OK(RunCheckpoint::Save(each, run.Contents(i)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  RILL_EXPECT_OK(RunCheckpoint::Open(
      directory, {.buffers = SharedOptions(), .states = {"learner"}}));
}

}  // namespace
}  // namespace rill
