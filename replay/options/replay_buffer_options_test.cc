// SPDX-License-Identifier: Apache-2.0
// A reopened buffer has the options that it was saved with, or Open says which
// are others, and takes them over where it is asked to.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/formats/file_tree.h"
#include "rill/replay/options/option_changes.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/sample_units.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/replay/writers/removing_writer.h"
#include "rill/replay/writers/top_k_writer.h"
#include "rill/replay/writers/writer.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/prioritized/prioritized_selector.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/selectors/consuming_selector.h"
#include "rill/samplers/selectors/mixture_selector.h"
#include "rill/samplers/selectors/ordered_selector.h"
#include "rill/samplers/selectors/staleness_selector.h"
#include "rill/samplers/selectors/without_replacement.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/samplers/uniform_selector.h"
#include "rill/samplers/units/sequence_unit.h"
#include "rill/samplers/units/slice_unit.h"
#include "rill/samplers/units/trajectory_unit.h"
#include "rill/storage/memmap_storage.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/reward_scaling.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FieldsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;

ReplayBuffer::Options OptionsOf(std::unique_ptr<Sampler> sampler) {
  ReplayBuffer::Options options;
  options.storage = MakeStorage(/*capacity=*/64, /*lanes=*/2);
  options.sampler = std::move(sampler);
  options.batch_size = 12;
  options.seed = 5;
  return options;
}

// Steps of a buffer whose ring goes round; 0 <= `rounds`.
void Write(ReplayBuffer& buffer, int64_t rounds = 6) {
  for (int64_t round = 0; round < rounds; ++round) {
    RILL_ASSERT_OK(buffer.Extend(NumberedSteps(2, 7, 7 * round)));
  }
}

std::vector<int64_t> IndexOf(const TensorDict& batch) {
  const absl::Span<int64_t> slots = *batch.Flat<int64_t>("index");
  return {slots.begin(), slots.end()};
}

// --- Prioritized -------------------------------------------------------------

struct Prioritized {
  std::unique_ptr<Sampler> sampler;
  PrioritizedSelector* selector = nullptr;
};
Prioritized MakePrioritized(const PrioritizedOptions& options) {
  Prioritized made;
  made.sampler = *MakePrioritizedSampler(options, &made.selector);
  return made;
}

// With priorities of its own, saved.
std::unique_ptr<ReplayBuffer> SavedPrioritized(const std::string& directory,
                                               const PrioritizedOptions& given,
                                               double set_beta) {
  Prioritized made = MakePrioritized(given);
  auto buffer = *ReplayBuffer::Create(OptionsOf(std::move(made.sampler)));
  Write(*buffer);
  for (int round = 0; round < 6; ++round) {
    const TensorDict batch = *buffer->Sample();
    std::vector<float> priorities;
    for (const int64_t slot : IndexOf(batch)) {
      priorities.push_back(static_cast<float>(1 + slot % 9));
    }
    RILL_EXPECT_OK(buffer->UpdatePriorities(batch, priorities));
  }
  RILL_EXPECT_OK(made.selector->SetBeta(set_beta));
  RILL_EXPECT_OK(buffer->Save(directory));
  return buffer;
}

TEST(ReplayBufferOptionsTest, OtherAlphaIsRefusedWithBothValues) {
  const std::string directory = FreshPath("alpha");
  SavedPrioritized(directory, {.alpha = 0.7}, 0.4);
  auto options = OptionsOf(MakePrioritized({.alpha = 0.1}).sampler);
  const std::shared_ptr<Storage> storage = options.storage;
  std::vector<OptionChange> changes;
  EXPECT_THAT(
      ReplayBuffer::Open(directory, std::move(options),
                         {.changed_options = &changes}),
      StatusIs(kFailedPrecondition,
               AllOf(HasSubstr("sampler.selector (Prioritized): alpha: got 0.7 "
                               "in the directory, want 0.1"),
                     HasSubstr("accept_options"))));
  EXPECT_THAT(changes, ElementsAre(FieldsAre("sampler.selector.alpha",
                                             "Prioritized", "0.7", "0.1")));
  EXPECT_EQ(storage->size(), 0);
  RILL_EXPECT_OK(ReplayBuffer::Open(
      directory, OptionsOf(MakePrioritized({.alpha = 0.7}).sampler)));
}

// As if somebody had called SetAlpha on the one that was saved.
TEST(ReplayBufferOptionsTest, AcceptedAlphaRaisesTheSavedPrioritiesAnew) {
  const std::string directory = FreshPath("accepted_alpha");
  SavedPrioritized(directory, {.alpha = 0.7}, 0.4);
  Prioritized same = MakePrioritized({.alpha = 0.7});
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto want,
      ReplayBuffer::Open(directory, OptionsOf(std::move(same.sampler))));
  RILL_ASSERT_OK(same.selector->SetAlpha(2));
  Prioritized other = MakePrioritized({.alpha = 2});
  std::vector<OptionChange> changes;
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto got,
      ReplayBuffer::Open(
          directory, OptionsOf(std::move(other.sampler)),
          {.accept_options = true, .changed_options = &changes}));
  EXPECT_EQ(changes.size(), 1u);
  EXPECT_EQ(other.selector->alpha(), 2);
  for (int i = 0; i < 5; ++i) {
    RILL_EXPECT_OK((*got->Sample()).CheckEqual(*want->Sample()));
  }
}

TEST(ReplayBufferOptionsTest, WhatWasSetWhileItRanIsStateAndComesBack) {
  const std::string directory = FreshPath("set");
  SavedPrioritized(directory, {.alpha = 0.7, .beta = 0.4}, /*set_beta=*/0.9);
  Prioritized same = MakePrioritized({.alpha = 0.7, .beta = 0.4});
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto equal,
      ReplayBuffer::Open(directory, OptionsOf(std::move(same.sampler))));
  EXPECT_EQ(same.selector->beta(), 0.9);
  // One that changed leaves the others as they were saved.
  Prioritized other = MakePrioritized({.alpha = 2, .beta = 0.4});
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto opened,
      ReplayBuffer::Open(directory, OptionsOf(std::move(other.sampler)),
                         {.accept_options = true}));
  EXPECT_EQ(other.selector->alpha(), 2);
  EXPECT_EQ(other.selector->beta(), 0.9);
}

TEST(ReplayBufferOptionsTest, AnotherSelectorIsRefusedAllTheSame) {
  const std::string directory = FreshPath("selector");
  const auto sampler = [](std::unique_ptr<Selector> inner) {
    ConsumingOptions options;
    options.inner = std::move(inner);
    return *MakeConsumingSampler(std::move(options));
  };
  auto buffer = *ReplayBuffer::Create(OptionsOf(sampler(nullptr)));
  Write(*buffer);
  RILL_ASSERT_OK(buffer->Save(directory));
  EXPECT_THAT(
      ReplayBuffer::Open(directory, OptionsOf(sampler(MakeFifoSelector())),
                         {.accept_options = true}),
      StatusIs(kFailedPrecondition,
               AllOf(HasSubstr("inner: got Uniform"), HasSubstr("want Fifo"),
                     Not(HasSubstr("accept_options")))));
}

// --- Arithmetic, and batches that were made ahead ----------------------------

ReplayBuffer::Options NStepOptions(int64_t steps, double gamma, double scale,
                                   int64_t prefetch) {
  ReplayBuffer::Options options = OptionsOf(*MakeUniformSamplerOver(
      *MakeTransitions({.n_step = NStepReturns::Options{.num_steps = steps,
                                                        .gamma = gamma}})));
  options.transforms.push_back(*RewardScaling::Create({.scale = scale}));
  options.prefetch = prefetch;
  return options;
}

TEST(ReplayBufferOptionsTest, GammaStepsAndScaleAreReportedTogether) {
  const std::string directory = FreshPath("n_step");
  auto buffer = *ReplayBuffer::Create(NStepOptions(3, 0.9, 0.1, 0));
  Write(*buffer);
  RILL_ASSERT_OK(buffer->Save(directory));
  EXPECT_THAT(
      ReplayBuffer::Open(directory, NStepOptions(5, 0.5, 10, 0)),
      StatusIs(
          kFailedPrecondition,
          AllOf(HasSubstr("sampler.unit (NStep): steps: got 3 in the "
                          "directory, want 5"),
                HasSubstr(
                    "unit_transform.n_step (NStepReturns): num_steps: got 3 in "
                    "the directory, want 5"),
                HasSubstr(
                    "unit_transform.n_step (NStepReturns): gamma: got 0.9 in "
                    "the directory, want 0.5"),
                HasSubstr("transforms.0 (RewardScaling): scale: got 0.1 in "
                          "the directory, want 10"))));
  RILL_EXPECT_OK(ReplayBuffer::Open(directory, NStepOptions(3, 0.9, 0.1, 0)));
}

// The powers of gamma in a batch.
std::vector<float> GammasOf(const TensorDict& batch) {
  const absl::Span<float> values = *batch.Flat<float>("gamma");
  return {values.begin(), values.end()};
}

TEST(ReplayBufferOptionsTest, NoBatchMixesOldAndNewGamma) {
  const std::string directory = FreshPath("ahead");
  auto saved = *ReplayBuffer::Create(NStepOptions(3, 0.9, 1, /*prefetch=*/4));
  Write(*saved);
  RILL_ASSERT_OK(saved->Sample().status());
  RILL_ASSERT_OK(saved->Save(directory));
  ASSERT_EQ(saved->GetStats().batches_ahead, 4);
  for (const int64_t prefetch : {0, 2, 6}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        const auto opened,
        ReplayBuffer::Open(directory, NStepOptions(3, 0.5, 1, prefetch),
                           {.accept_options = true}));
    // The next number is that of the first batch that was made ahead.
    EXPECT_EQ(opened->batch_number(), 1u);
    for (int i = 0; i < 8; ++i) {
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, opened->Sample());
      EXPECT_THAT(GammasOf(batch), Each(::testing::AnyOf(0.5f, 0.25f, 0.125f)));
    }
  }
}

// Where nothing was written since they were drawn, the draws are the same.
TEST(ReplayBufferOptionsTest, BatchesMadeAheadAreDrawnAnewByTheirNumbers) {
  const std::string directory = FreshPath("anew");
  auto saved = *ReplayBuffer::Create(NStepOptions(3, 0.9, 1, /*prefetch=*/4));
  Write(*saved);
  RILL_ASSERT_OK(saved->Sample().status());
  RILL_ASSERT_OK(saved->Save(directory));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto opened,
      ReplayBuffer::Open(directory, NStepOptions(3, 0.5, 1, /*prefetch=*/2),
                         {.accept_options = true}));
  for (int i = 0; i < 9; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, saved->Sample());
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got, opened->Sample());
    EXPECT_EQ(IndexOf(got), IndexOf(want)) << "batch " << i;
    EXPECT_NE(GammasOf(got), GammasOf(want)) << "batch " << i;
  }
}

// A number that was handed out is never drawn a second time.
TEST(ReplayBufferOptionsTest, NumbersThatWereHandedOutAreNotDrawnAgain) {
  const std::string directory = FreshPath("numbers");
  auto saved = *ReplayBuffer::Create(NStepOptions(3, 0.9, 1, /*prefetch=*/3));
  Write(*saved);
  RILL_ASSERT_OK(saved->Sample().status());   // 0; ahead are 1, 2, 3.
  RILL_ASSERT_OK(saved->Sample(5).status());  // 4.
  RILL_ASSERT_OK(saved->Sample().status());   // 1; ahead are 2, 3, 5.
  RILL_ASSERT_OK(saved->Save(directory));
  ASSERT_EQ(saved->batch_number(), 6u);
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto opened,
      ReplayBuffer::Open(directory, NStepOptions(3, 0.5, 1, 0),
                         {.accept_options = true}));
  EXPECT_EQ(opened->batch_number(), 5u);
  RILL_EXPECT_OK(opened->Sample().status());
}

TEST(ReplayBufferOptionsTest, AnotherWriterLeavesBatchesThatWereMadeAhead) {
  const std::string directory = FreshPath("writer");
  const auto make = [](int64_t k, bool is_immutable = false) {
    ReplayBuffer::Options options = OptionsOf(MakeUniformSampler());
    options.storage = MakeStorage(64);
    options.prefetch = 3;
    options.writer =
        is_immutable ? MakeImmutableWriter() : *TopKWriter::Create({.k = k});
    return options;
  };
  auto saved = *ReplayBuffer::Create(make(20));
  RILL_ASSERT_OK(saved->Extend(NumberedSteps(1, 30)));
  RILL_ASSERT_OK(saved->Sample().status());
  RILL_ASSERT_OK(saved->Save(directory));
  EXPECT_THAT(ReplayBuffer::Open(directory, make(10)),
              IsFailedPrecondition("writer (TopKWriter): k: got 20 in the "
                                   "directory, want 10"));
  EXPECT_THAT(ReplayBuffer::Open(directory, make(0, true)),
              IsFailedPrecondition("writer: got TopKWriter in the directory, "
                                   "want ImmutableWriter"));
  for (const bool is_immutable : {false, true}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        const auto opened, ReplayBuffer::Open(directory, make(10, is_immutable),
                                              {.accept_options = true}));
    EXPECT_EQ(opened->GetStats().batches_ahead, 3);
    EXPECT_EQ(opened->batch_number(), 4u);
  }
}

TEST(ReplayBufferOptionsTest, RemoverTakesItsOwnAlpha) {
  const std::string directory = FreshPath("remover");
  PrioritizedSelector* selector = nullptr;
  const auto make = [&](double alpha) {
    ReplayBuffer::Options options = OptionsOf(MakeUniformSampler());
    options.storage = MakeStorage(16);
    auto remover = *PrioritizedSelector::Create({.alpha = alpha});
    selector = remover.get();
    options.writer = MakeRemovingWriter({.remover = std::move(remover)});
    return options;
  };
  auto saved = *ReplayBuffer::Create(make(0.7));
  RILL_ASSERT_OK(saved->Extend(NumberedSteps(1, 30)));
  RILL_ASSERT_OK(saved->Save(directory));
  EXPECT_THAT(ReplayBuffer::Open(directory, make(2)),
              IsFailedPrecondition("writer.remover.selector (Prioritized): "
                                   "alpha: got 0.7"));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto opened,
      ReplayBuffer::Open(directory, make(2), {.accept_options = true}));
  EXPECT_EQ(selector->alpha(), 2);
  RILL_EXPECT_OK(opened->Extend(NumberedSteps(1, 5)));
}

// --- State that depends on options -------------------------------------------

struct Kind {
  std::string name;
  std::function<std::unique_ptr<Sampler>()> saved;
  std::function<std::unique_ptr<Sampler>()> opened;
  // Its state is that of its rows: a new one over equal rows draws the same.
  bool is_of_rows = false;
};

std::unique_ptr<Sampler> Of(absl::StatusOr<std::unique_ptr<Unit>> unit,
                            std::unique_ptr<Selector> selector = nullptr) {
  RILL_EXPECT_OK(unit);
  if (selector == nullptr) selector = MakeUniformSelector();
  return *MakeSampler(std::move(selector), *std::move(unit), "Mine");
}

std::unique_ptr<Selector> MixtureOf(double share) {
  std::vector<MixturePart> parts(2);
  parts[0] = {.selector = *PrioritizedSelector::Create(), .share = share};
  parts[1] = {.selector = MakeStalenessSelector(), .share = 1};
  return *MakeMixtureSelector(std::move(parts));
}

std::unique_ptr<Selector> ConsumingOf(int64_t times) {
  return *MakeConsumingSelector({.max_times_sampled = times});
}

std::vector<Kind> Kinds() {
  const auto slices = [](int64_t length) {
    return MakeSliceUnit({.length = length});
  };
  const auto sequences = [](int64_t length, int64_t period) {
    return MakeSequenceUnit({.length = length, .period = period});
  };
  const auto strict = [](int64_t length) {
    return MakeSequenceUnit({.length = length, .end = SequenceEnd::kStrict});
  };
  return {
      // Some trajectories have 4 rows left.
      {"slice", [=] { return Of(slices(2)); }, [=] { return Of(slices(6)); },
       true},
      {"starts", [=] { return Of(slices(2)); },
       [] {
         return Of(MakeSliceUnit(
             {.length = 2, .starts = SliceStarts::kEpisodeStarts}));
       },
       false},
      {"sequence", [=] { return Of(strict(2)); }, [=] { return Of(strict(6)); },
       false},
      {"period", [=] { return Of(sequences(2, 4)); },
       [=] { return Of(sequences(2, 2)); }, false},
      {"other_period", [=] { return Of(sequences(2, 4)); },
       [=] { return Of(sequences(2, 3)); }, false},
      {"trajectory", [] { return Of(MakeTrajectoryUnit({.min_rows = 1})); },
       [] { return Of(MakeTrajectoryUnit({.min_rows = 5})); }, true},
      {"prioritized_slice",
       [=] { return Of(slices(2), *PrioritizedSelector::Create()); },
       [=] { return Of(slices(4), *PrioritizedSelector::Create()); }, false},
      {"staleness_slice",
       [=] { return Of(slices(2), MakeStalenessSelector()); },
       [=] { return Of(slices(4), MakeStalenessSelector()); }, true},
      {"consuming", [=] { return Of(slices(2), ConsumingOf(2)); },
       [=] { return Of(slices(2), ConsumingOf(4)); }, false},
      {"consuming_slice", [=] { return Of(slices(2), ConsumingOf(9)); },
       [=] { return Of(slices(3), ConsumingOf(9)); }, false},
      {"mixture", [=] { return Of(slices(2), MixtureOf(1)); },
       [=] { return Of(slices(2), MixtureOf(3)); }, false},
      {"mixture_slice", [=] { return Of(slices(2), MixtureOf(1)); },
       [=] { return Of(slices(3), MixtureOf(1)); }, false},
      {"without_replacement",
       [=] { return Of(slices(2), MakeWithoutReplacementSelector()); },
       [=] {
         return Of(slices(2),
                   MakeWithoutReplacementSelector({.shuffle = false}));
       },
       false},
  };
}

TEST(ReplayBufferOptionsTest, StatesThatDependOnOptionsAreMadeForTheNewOnes) {
  for (const Kind& kind : Kinds()) {
    SCOPED_TRACE(kind.name);
    const std::string directory = FreshPath(kind.name);
    auto saved = *ReplayBuffer::Create(OptionsOf(kind.saved()));
    Write(*saved);
    for (int i = 0; i < 3; ++i) RILL_ASSERT_OK(saved->Sample().status());
    RILL_ASSERT_OK(saved->Save(directory));
    EXPECT_THAT(ReplayBuffer::Open(directory, OptionsOf(kind.opened())),
                IsFailedPrecondition("accept_options"));
    RILL_ASSERT_OK_AND_ASSIGN(
        const auto opened,
        ReplayBuffer::Open(directory, OptionsOf(kind.opened()),
                           {.accept_options = true}));
    // Its own save is a state that opens as it is.
    const std::string again = FreshPath(absl::StrCat(kind.name, "_again"));
    RILL_ASSERT_OK(opened->Save(again));
    RILL_ASSERT_OK_AND_ASSIGN(
        const auto reopened,
        ReplayBuffer::Open(again, OptionsOf(kind.opened())));
    // Over equal rows, at the same number.
    ReplayBuffer::Options options = OptionsOf(kind.opened());
    RILL_ASSERT_OK(options.storage->Load(JoinPath(directory, "storage")));
    RILL_ASSERT_OK_AND_ASSIGN(const auto fresh,
                              ReplayBuffer::Create(std::move(options)));
    for (int i = 0; kind.is_of_rows && i < 3; ++i) {
      RILL_ASSERT_OK(fresh->Sample().status());
    }
    for (int i = 0; i < 4; ++i) {
      const auto got = opened->Sample();
      RILL_ASSERT_OK(got.status());
      ExpectWholeSteps(*got, /*lane_capacity=*/32);
      RILL_EXPECT_OK((*reopened->Sample()).CheckEqual(*got));
      if (!kind.is_of_rows) continue;
      EXPECT_EQ(IndexOf(*fresh->Sample()), IndexOf(*got)) << "batch " << i;
    }
  }
}

TEST(ReplayBufferOptionsTest, MoreTimesLetRowsBeDrawnThatWereUsedUp) {
  const std::string directory = FreshPath("times");
  const auto make = [](int64_t times) {
    return OptionsOf(*MakeConsumingSampler({.max_times_sampled = times}));
  };
  auto saved = *ReplayBuffer::Create(make(1));
  RILL_ASSERT_OK(saved->Extend(NumberedSteps(2, 6)));
  RILL_ASSERT_OK(saved->Sample().status());
  EXPECT_EQ(saved->items(), 0);
  RILL_ASSERT_OK(saved->Save(directory));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto more,
      ReplayBuffer::Open(directory, make(2), {.accept_options = true}));
  EXPECT_EQ(more->items(), 12);
  RILL_ASSERT_OK(more->Sample().status());
  EXPECT_EQ(more->items(), 0);
}

// --- Saves from before options were saved ------------------------------------

ReplayBuffer::Options OldOptions(double alpha, double scale,
                                 PrioritizedSelector** selector = nullptr) {
  ReplayBuffer::Options options;
  options.storage = MakeStorage(/*capacity=*/20, /*lanes=*/2);
  options.sampler = *MakePrioritizedSampler({.alpha = alpha}, selector);
  options.transforms.push_back(*RewardScaling::Create({.scale = scale}));
  options.batch_size = 4;
  options.seed = 9;
  options.prefetch = 2;
  return options;
}

// testdata/buffer_before_options is what the release before this one saved of
// this history.
TEST(ReplayBufferOptionsTest, OldSavesOpenAsTheyDidAndNothingIsCompared) {
  const std::string directory = FreshPath("old");
  RILL_ASSERT_OK(formats_internal::CopyTree(
      "replay/options/testdata/buffer_before_options", directory));
  auto same = *ReplayBuffer::Create(OldOptions(0.7, 2));
  for (int64_t round = 0; round < 3; ++round) {
    RILL_ASSERT_OK(same->Extend(NumberedSteps(2, 7, 7 * round)));
    const TensorDict batch = *same->Sample();
    RILL_ASSERT_OK(
        same->UpdatePriorities(batch, ActionsModulo(batch, 5, /*plus=*/1)));
  }
  RILL_ASSERT_OK_AND_ASSIGN(const auto opened,
                            ReplayBuffer::Open(directory, OldOptions(0.7, 2)));
  for (int i = 0; i < 6; ++i) {
    RILL_EXPECT_OK((*opened->Sample()).CheckEqual(*same->Sample()));
  }
  PrioritizedSelector* selector = nullptr;
  std::vector<OptionChange> changes;
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto other,
      ReplayBuffer::Open(directory, OldOptions(0.1, 10, &selector),
                         {.changed_options = &changes}));
  EXPECT_TRUE(changes.empty());
  EXPECT_EQ(selector->alpha(), 0.7);
}

// --- Positions ---------------------------------------------------------------

TEST(ReplayBufferOptionsTest, PositionsCompareAndTakeOverToo) {
  const std::string directory = FreshPath("position");
  const std::string files = FreshPath("position_files");
  const auto make = [&](double alpha, PrioritizedSelector** selector) {
    Prioritized made = MakePrioritized({.alpha = alpha});
    *selector = made.selector;
    ReplayBuffer::Options options = OptionsOf(std::move(made.sampler));
    options.storage = nullptr;
    options.prefetch = 2;
    return options;
  };
  PrioritizedSelector* selector = nullptr;
  {
    auto options = make(0.7, &selector);
    RILL_ASSERT_OK_AND_ASSIGN(
        options.storage, MemmapStorage::Create(
                             {.directory = files, .capacity = 64, .lanes = 2}));
    RILL_ASSERT_OK_AND_ASSIGN(const auto buffer,
                              ReplayBuffer::Create(std::move(options)));
    RILL_ASSERT_OK(buffer->Extend(NumberedSteps(2, 7)));
    RILL_ASSERT_OK(buffer->Sample().status());
    RILL_ASSERT_OK(buffer->SavePosition(directory));
  }
  for (const bool accepts : {false, true}) {
    auto options = make(2, &selector);
    RILL_ASSERT_OK_AND_ASSIGN(options.storage,
                              MemmapStorage::Open({.directory = files}));
    const auto opened = ReplayBuffer::Open(directory, std::move(options),
                                           {.accept_options = accepts});
    if (!accepts) {
      EXPECT_THAT(opened, IsFailedPrecondition("alpha: got 0.7"));
      continue;
    }
    RILL_ASSERT_OK(opened.status());
    EXPECT_EQ(selector->alpha(), 2);
    EXPECT_EQ((*opened)->batch_number(), 1u);
    RILL_EXPECT_OK((*opened)->Sample().status());
  }
}

}  // namespace
}  // namespace rill
