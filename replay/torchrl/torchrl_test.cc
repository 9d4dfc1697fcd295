// SPDX-License-Identifier: Apache-2.0
// Behaviour that users of TorchRL's checkpoints count on. The numbers are those
// that our notes on TorchRL give each statement. How TorchRL itself reads our
// directories is tried by tools/peer_exchange.
#include "rill/replay/torchrl/torchrl.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/formats/file_tree.h"
#include "rill/replay/options/option_changes.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::rill::formats_internal::CopyTree;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TorchRlReplayBuffer Fixture(const std::string& name) {
  const std::string path = FreshPath(absl::StrCat("replay_torchrl_", name));
  RILL_EXPECT_OK(CopyTree(
      absl::StrCat("formats/torchrl/testdata/replay_buffer/", name), path));
  return *ReadTorchRlReplayBuffer(path);
}

// Through a directory: what is written is what is read.
TorchRlReplayBuffer Exchanged(const TorchRlReplayBuffer& saved) {
  const std::string path = FreshPath("replay_torchrl_exchanged");
  RILL_EXPECT_OK(WriteTorchRlReplayBuffer(saved, path));
  return *ReadTorchRlReplayBuffer(path);
}

TensorDict Floats(const std::string& key, const std::vector<float>& values,
                  const Shape& shape) {
  TensorDict rows(shape);
  RILL_EXPECT_OK(rows.Set(key, *Tensor::From<float>(values, shape)));
  return rows;
}

std::vector<float> ValuesOf(const TensorDict& rows, const std::string& key) {
  const auto values = rows.Flat<float>(key);
  RILL_EXPECT_OK(values.status());
  return {values->begin(), values->end()};
}

std::vector<float> AllValues(const Storage& storage, const std::string& key) {
  std::vector<Slot> slots(storage.size());
  for (size_t i = 0; i < slots.size(); ++i) slots[i] = i;
  TensorDict rows;
  RILL_EXPECT_OK(storage.Read(slots, &rows));
  return ValuesOf(rows, key);
}

std::vector<double> TreeOf(const TorchRlReplayBuffer& saved) {
  const Tensor& values = std::get<TorchRlPriorities>(saved.sampler).values;
  return {values.data<double>(), values.data<double>() + values.num_elements()};
}

TEST(TorchRlTest, Example) {
  const std::string directory = FreshPath("replay_torchrl_from");
  const std::string other = FreshPath("replay_torchrl_to");
  RILL_ASSERT_OK(
      CopyTree("formats/torchrl/testdata/replay_buffer/a", directory));
  const auto run = [&]() -> absl::Status {
    RILL_ASSIGN_OR_RETURN(TorchRlReplayBuffer saved,
                          ReadTorchRlReplayBuffer(directory));
    RILL_ASSIGN_OR_RETURN(auto buffer, OpenTorchRl(saved, {}));
    RILL_ASSIGN_OR_RETURN(TensorDict batch, buffer->Sample());
    EXPECT_EQ(batch.batch_shape(), Shape({2}));
    RILL_ASSIGN_OR_RETURN(saved, ToTorchRl(*buffer));
    RILL_RETURN_IF_ERROR(WriteTorchRlReplayBuffer(saved, other));
    return absl::OkStatus();
  };
  RILL_ASSERT_OK(run());
}

TEST(TorchRlTest, C7RowsLengthCursorCountAndBatchSizeStay) {
  const TorchRlReplayBuffer saved = Fixture("b");
  RILL_ASSERT_OK_AND_ASSIGN(const auto buffer, OpenTorchRl(saved, {}));
  const Storage& storage = buffer->storage();
  EXPECT_THAT(AllValues(storage, "obs"), ElementsAre(8, 9, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(storage.size(), 8);
  EXPECT_EQ(storage.cursors()[0].written, 10);
  EXPECT_EQ(buffer->Sample()->batch_shape(), Shape({2}));
  RILL_ASSERT_OK_AND_ASSIGN(TorchRlReplayBuffer back,
                            ToTorchRl(storage, {.batch_size = 2}));
  back.batch_size = 2;
  back.rng_state = saved.rng_state;
  back = Exchanged(back);
  RILL_EXPECT_OK(back.rows.CheckEqual(saved.rows));
  EXPECT_EQ(back.cursor, saved.cursor);
  EXPECT_EQ(back.write_count, saved.write_count);
  EXPECT_EQ(back.batch_size, saved.batch_size);
  EXPECT_THAT(back.rng_state->BitEquals(*saved.rng_state), IsOkAndHolds(true));

  RILL_ASSERT_OK(buffer->Extend(Floats("obs", {10, 11, 12}, {3})).status());
  EXPECT_THAT(AllValues(storage, "obs"),
              ElementsAre(8, 9, 10, 11, 12, 5, 6, 7));
}

TEST(TorchRlTest, C7NextExtendGoesOnWhereOneNotFullStood) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto buffer, OpenTorchRl(Fixture("c"), {}));
  RILL_ASSERT_OK(buffer->Extend(Floats("obs", {5, 6}, {2})).status());
  EXPECT_THAT(AllValues(buffer->storage(), "obs"),
              ElementsAre(0, 1, 2, 3, 4, 5, 6));
}

TEST(TorchRlTest, C7LanesKeepTheirSteps) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto buffer, OpenTorchRl(Fixture("f"), {}));
  const Storage& storage = buffer->storage();
  EXPECT_EQ(storage.lanes(), (Lanes{.count = 2, .capacity = 10}));
  TensorDict rows;
  RILL_ASSERT_OK(storage.Read({0, 1, 2, 3, 10, 11, 12, 13}, &rows));
  EXPECT_THAT(ValuesOf(rows, "obs"), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(rows.Find("index"), nullptr);
  RILL_ASSERT_OK_AND_ASSIGN(const auto back,
                            ToTorchRl(storage, {.batch_size = 2}));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor got, back.rows.Get("obs"));
  EXPECT_THAT(got.BitEquals(*Fixture("f").rows.Find("obs")),
              IsOkAndHolds(true));
}

// Random rings of both systems' making: what goes there and back is the same
// buffer, slot by slot, and goes on as the first would have.
TEST(TorchRlTest, C7AnyRingComesBackAndGoesOnTheSame) {
  const Rng rng(5);
  for (uint32_t round = 0; round < 40; ++round) {
    const int64_t lanes = rng.UniformInt(round, 0, 3) + 1;
    const int64_t capacity = rng.UniformInt(round, 1, 9) + 1;
    const int64_t written = rng.UniformInt(round, 2, 40) + 1;
    SCOPED_TRACE(absl::StrCat(lanes, " x ", capacity, ", ", written));
    const auto first = MakeStorage(lanes * capacity, lanes);
    RILL_ASSERT_OK(first->Extend(NumberedSteps(lanes, written)).status());
    RILL_ASSERT_OK_AND_ASSIGN(const auto saved,
                              ToTorchRl(*first, {.batch_size = 2}));
    const auto second = MakeStorage(lanes * capacity, lanes);
    RILL_ASSERT_OK(FillFromTorchRl(Exchanged(saved), second.get()));
    EXPECT_EQ(second->cursors(), first->cursors());
    for (const int64_t more : {0, 1, 4}) {
      const TensorDict steps = NumberedSteps(lanes, more, written + more);
      RILL_ASSERT_OK(first->Extend(steps).status());
      RILL_ASSERT_OK(second->Extend(steps).status());
      RILL_ASSERT_OK_AND_ASSIGN(const auto a,
                                ToTorchRl(*first, {.batch_size = 2}));
      RILL_ASSERT_OK_AND_ASSIGN(const auto b,
                                ToTorchRl(*second, {.batch_size = 2}));
      RILL_EXPECT_OK(b.rows.CheckEqual(a.rows));
    }
  }
}

TEST(TorchRlTest, C8PrioritizedStatesStayTo1e7) {
  TorchRlReplayBuffer saved = Fixture("a");
  auto& priorities = std::get<TorchRlPriorities>(saved.sampler);
  priorities.max_priority = 9.5;  // Of a row that is gone.
  priorities.values = *priorities.values.Clone();
  const double given[] = {0, 1e-3, 0.5, 3, 7.25};
  for (int i = 0; i < 5; ++i) {
    priorities.values.data<double>()[i] = std::pow(given[i] + 1e-8, 0.7);
  }
  PrioritizedSelector* selector;
  RILL_ASSERT_OK_AND_ASSIGN(auto sampler, MakeTorchRlSampler(saved, &selector));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto buffer,
      OpenTorchRl(Exchanged(saved), {.sampler = std::move(sampler)}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto back,
                            ToTorchRl(*buffer, {.selector = selector}));
  const auto& got = std::get<TorchRlPriorities>(back.sampler);
  EXPECT_EQ(got.alpha, 0.7);
  EXPECT_EQ(got.beta, 0.5);
  EXPECT_EQ(got.epsilon, 1e-8);
  EXPECT_EQ(got.max_priority, 9.5);
  for (size_t i = 0; i < 8; ++i) {
    const double want = TreeOf(saved)[i];
    EXPECT_NEAR(TreeOf(back)[i], want, 1e-7 * want) << i;
  }
  // New rows get what they would have got there.
  RILL_ASSERT_OK(buffer->Extend(Floats("obs", {5}, {1})).status());
  RILL_ASSERT_OK_AND_ASSIGN(const auto more,
                            ToTorchRl(*buffer, {.selector = selector}));
  EXPECT_NEAR(TreeOf(more)[5], std::pow(9.5 + 1e-8, 0.7), 1e-6);
}

TEST(TorchRlTest, ASamplerOfOnesOwnWithOtherOptionsIsRefusedOrTakenOver) {
  const TorchRlReplayBuffer saved = Fixture("a");
  const auto options = [](double alpha) {
    ReplayBuffer::Options made;
    made.sampler = *MakePrioritizedSampler({.alpha = alpha, .beta = 0.5});
    return made;
  };
  std::vector<OptionChange> changes;
  EXPECT_THAT(OpenTorchRl(saved, options(0.1), {.changed_options = &changes}),
              IsFailedPrecondition("sampler.selector (Prioritized): alpha: got "
                                   "0.7 in the directory, want 0.1"));
  EXPECT_EQ(changes.size(), 1u);
  RILL_EXPECT_OK(OpenTorchRl(saved, options(0.1), {.accept_options = true}));
  RILL_EXPECT_OK(OpenTorchRl(saved, options(0.7)));
  // Another kind is one's own choice.
  EXPECT_THAT(OpenTorchRl(saved, {.sampler = MakeUniformSampler()}), IsOk());
}

TEST(TorchRlTest, ValuesThatDoNotFitTheRowsAreRefused) {
  const TorchRlReplayBuffer saved = Fixture("a");
  for (const Tensor& values : {Tensor(), *Tensor::Zeros(DType::kFloat64, {4}),
                               *Tensor::Zeros(DType::kFloat32, {8}),
                               *Tensor::Zeros(DType::kFloat64, {8, 1})}) {
    TorchRlReplayBuffer bad = saved;
    std::get<TorchRlPriorities>(bad.sampler).values = values;
    const auto storage = MakeStorage(8);
    EXPECT_THAT(OpenTorchRl(bad, {.storage = storage}),
                IsInvalidArgument("float64 of rank 1 in host memory, 5"));
    EXPECT_EQ(storage->size(), 0);
  }
}

TEST(TorchRlTest, OptionsAreCheckedBeforeRowsAreStored) {
  const auto storage = MakeStorage(8);
  EXPECT_THAT(OpenTorchRl(Fixture("a"), {.storage = storage, .prefetch = -1}),
              IsInvalidArgument("prefetch: got -1"));
  EXPECT_EQ(storage->size(), 0);
  EXPECT_TRUE(storage->spec().empty());
  RILL_EXPECT_OK(OpenTorchRl(Fixture("a"), {.storage = storage}));
}

TEST(TorchRlTest, AnErrorAfterTheRowsWereStoredLeavesNone) {
  TorchRlReplayBuffer saved = Fixture("a");
  std::get<TorchRlPriorities>(saved.sampler).values =
      *Tensor::From<double>(std::vector<double>(8, -1), {8});
  const auto storage = MakeStorage(8);
  EXPECT_THAT(OpenTorchRl(saved, {.storage = storage}), IsDataLoss());
  EXPECT_EQ(storage->size(), 0);
  RILL_EXPECT_OK(OpenTorchRl(Fixture("a"), {.storage = storage}));
}

TEST(TorchRlTest, ABufferThatUsesItsRowsUpGoesOnDoingSo) {
  TorchRlReplayBuffer saved = Fixture("c");  // Five rows.
  saved.sampler = {};
  saved.batch_size = 5;
  saved.consume_after_n_samples = 2;
  RILL_ASSERT_OK_AND_ASSIGN(const auto buffer,
                            OpenTorchRl(Exchanged(saved), {}));
  for (int i = 0; i < 2; ++i) RILL_EXPECT_OK(buffer->Sample());
  EXPECT_EQ(buffer->items(), 0);
}

TEST(TorchRlTest, C8PrioritiesFollowTheirRowsAroundTheRing) {
  const auto storage = MakeStorage(8, 2);
  RILL_ASSERT_OK(storage->Extend(NumberedSteps(2, 7)).status());
  RILL_ASSERT_OK_AND_ASSIGN(TorchRlReplayBuffer saved,
                            ToTorchRl(*storage, {.batch_size = 2}));
  TorchRlPriorities priorities = {.alpha = 1, .epsilon = 0};
  std::vector<double> values;
  for (int64_t i = 0; i < 8; ++i) values.push_back(1 << i);
  priorities.values = *Tensor::From<double>(values, {8});
  saved.sampler = priorities;
  for (const int64_t capacity : {8, 16, 4}) {
    PrioritizedSelector* selector;
    RILL_ASSERT_OK_AND_ASSIGN(auto sampler,
                              MakeTorchRlSampler(saved, &selector));
    RILL_ASSERT_OK_AND_ASSIGN(
        const auto buffer,
        OpenTorchRl(saved, {.storage = MakeStorage(capacity, 2),
                            .sampler = std::move(sampler)}));
    // The row of lane l and place p has the value 1 << (2 p + l), and holds
    // step number p or p + 4.
    RILL_ASSERT_OK_AND_ASSIGN(const auto back,
                              ToTorchRl(*buffer, {.selector = selector}));
    const auto actions = back.rows.Flat<int64_t>("action");
    RILL_ASSERT_OK(actions.status());
    EXPECT_EQ(actions->size(),
              static_cast<size_t>(std::min<int64_t>(8, capacity)));
    for (size_t i = 0; i < actions->size(); ++i) {
      const int64_t lane = (*actions)[i] / 1000;
      const int64_t place = (*actions)[i] % 1000 % 4;
      EXPECT_EQ(TreeOf(back)[i], 1 << (2 * place + lane)) << capacity;
    }
  }
}

// The saved epoch has 5 rows; those at places 2, 1 and 3 are left, in this
// order.
TEST(TorchRlTest, C7TheRestOfAnEpochComesInItsOrder) {
  const TorchRlReplayBuffer saved = Fixture("c");
  const auto slots_of = [](ReplayBuffer& buffer, int64_t rows) {
    std::vector<int64_t> slots;
    const auto batch = buffer.Sample(rows);
    RILL_EXPECT_OK(batch);
    if (batch.ok()) {
      const auto index = *batch->Flat<int64_t>("index");
      slots.assign(index.begin(), index.end());
    }
    return slots;
  };
  RILL_ASSERT_OK_AND_ASSIGN(const auto buffer, OpenTorchRl(saved, {}));
  EXPECT_THAT(slots_of(*buffer, 2), ElementsAre(2, 1));
  EXPECT_THAT(slots_of(*buffer, 2), ElementsAre(3));
  EXPECT_THAT(slots_of(*buffer, 9),
              ::testing::UnorderedElementsAre(0, 1, 2, 3, 4));
  // Rows that lie elsewhere are gone through from the beginning, and so are
  // those of a buffer that has grown.
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto larger,
      OpenTorchRl(saved, {.storage = MakeStorage(2 * saved.capacity)}));
  EXPECT_EQ(slots_of(*larger, 9).size(), 5u);
}

TEST(TorchRlTest, C11PeersDirectoriesBecomeBuffersThatSample) {
  for (const char* name : {"a", "b", "c", "c2", "d", "e", "f", "h", "k", "l"}) {
    SCOPED_TRACE(name);
    const TorchRlReplayBuffer saved = Fixture(name);
    RILL_ASSERT_OK_AND_ASSIGN(const auto buffer, OpenTorchRl(saved, {}));
    EXPECT_EQ(buffer->size(), saved.steps() * saved.lanes());
    RILL_EXPECT_OK(buffer->Sample().status());
    RILL_ASSERT_OK_AND_ASSIGN(const auto back, ToTorchRl(*buffer));
    for (const std::string& key : back.rows.LeafKeys()) {
      RILL_ASSERT_OK_AND_ASSIGN(const Tensor got, back.rows.Get(key));
      EXPECT_THAT(got.BitEquals(*saved.rows.Find(key)), IsOkAndHolds(true));
    }
  }
}

// C12: TorchRL wants the same capacity.
TEST(TorchRlTest, C12NewestRowsGoIntoAnotherCapacity) {
  const auto load = [](int64_t capacity) {
    const auto storage = MakeStorage(capacity);
    RILL_EXPECT_OK(FillFromTorchRl(Fixture("b"), storage.get()));
    return storage;
  };
  EXPECT_THAT(AllValues(*load(3), "obs"),
              ::testing::UnorderedElementsAre(7, 8, 9));
  EXPECT_THAT(AllValues(*load(100), "obs"),
              ElementsAre(2, 3, 4, 5, 6, 7, 8, 9));
}

TEST(TorchRlTest, SamplersAreOfTheSavedKind) {
  const std::pair<const char*, const char*> kinds[] = {
      {"a", "Prioritized"},
      {"b", "Uniform"},
      {"c", "SamplerWithoutReplacement"}};
  for (const auto& [fixture, name] : kinds) {
    PrioritizedSelector* selector;
    RILL_ASSERT_OK_AND_ASSIGN(const auto sampler,
                              MakeTorchRlSampler(Fixture(fixture), &selector));
    EXPECT_THAT(std::string(sampler->name()), HasSubstr(name));
    EXPECT_EQ(selector != nullptr, std::string(fixture) == "a");
  }
}

TEST(TorchRlTest, TheBatchSizeIsTheBuffersOrTheOneThatIsNamed) {
  const auto storage = MakeStorage(8);
  RILL_ASSERT_OK(storage->Extend(NumberedSteps(1, 3)).status());
  const auto make = [&](int64_t batch_size) {
    return *ReplayBuffer::Create({.storage = storage,
                                  .sampler = *MakeTorchRlSampler(Fixture("f")),
                                  .batch_size = batch_size});
  };
  const auto with = make(6);
  EXPECT_EQ(with->batch_size(), 6);
  EXPECT_EQ(Exchanged(*ToTorchRl(*with)).batch_size, 6);
  EXPECT_EQ(Exchanged(*ToTorchRl(*with, {.batch_size = 5})).batch_size, 5);
  EXPECT_EQ(Exchanged(*ToTorchRl(*make(0), {.batch_size = 5})).batch_size, 5);
  const auto refused = IsInvalidArgument("Options::batch_size: got 0");
  EXPECT_THAT(ToTorchRl(*make(0)), refused);
  EXPECT_THAT(ToTorchRl(*storage, {}), refused);
  EXPECT_THAT(ToTorchRl(*storage, {.batch_size = -1}), IsInvalidArgument());
}

TEST(TorchRlTest, WhatCannotBeIsRefused) {
  TorchRlReplayBuffer saved = Fixture("a");
  const auto used = MakeStorage(8);
  RILL_ASSERT_OK(used->Extend(NumberedSteps(1, 1)).status());
  EXPECT_THAT(FillFromTorchRl(saved, used.get()),
              IsFailedPrecondition("empty"));
  EXPECT_THAT(FillFromTorchRl(saved, MakeStorage(8, 2).get()),
              IsFailedPrecondition("lanes"));
  EXPECT_THAT(ToTorchRl(*MakeStorage(8), {.batch_size = 2}),
              IsFailedPrecondition("got 0"));
  const auto uneven = MakeStorage(8, 2);
  RILL_ASSERT_OK(uneven->Extend(NumberedSteps(1, 1)).status());
  EXPECT_THAT(ToTorchRl(*uneven, {.batch_size = 2}), IsFailedPrecondition());
  auto& priorities = std::get<TorchRlPriorities>(saved.sampler);
  for (const double bad : {std::nan(""), -1.0, 1e300}) {
    priorities.values = *priorities.values.Clone();
    priorities.values.data<double>()[2] = bad;
    EXPECT_THAT(OpenTorchRl(saved, {}), IsDataLoss("row 2"));
  }
}

// A count from outside that nobody could have written.
TEST(TorchRlTest, CountsThatContradictTheCursorAreLeftOut) {
  TorchRlReplayBuffer saved = Fixture("b");
  for (const int64_t count : {int64_t{11}, int64_t{1}, int64_t{1} << 62}) {
    saved.write_count = count;
    const auto storage = MakeStorage(8);
    RILL_ASSERT_OK(FillFromTorchRl(saved, storage.get()));
    EXPECT_EQ(storage->cursors()[0].written, 10);
    EXPECT_THAT(AllValues(*storage, "obs"),
                ElementsAre(8, 9, 2, 3, 4, 5, 6, 7));
  }
}

}  // namespace
}  // namespace rill
