// SPDX-License-Identifier: Apache-2.0
// Stored rows through units and their transforms. A name like S7 is the number
// of the TorchRL behaviour that a test repeats.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/sample_units.h"
#include "rill/replay/stored_trajectory.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/sample_unit.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/slice_sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/samplers/uniform_selector.h"
#include "rill/samplers/units/trajectory_unit.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/ops/shape_ops.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

template <typename T>
Tensor Column(const std::vector<T>& values) {
  Tensor column =
      *Tensor::Zeros(DTypeOf<T>, {static_cast<int64_t>(values.size()), 1});
  std::copy(values.begin(), values.end(), column.data<T>());
  return column;
}

std::unique_ptr<ReplayBuffer> Make(ReplayBuffer::Options options,
                                   const DenseStorage::Options& storage) {
  options.storage = *DenseStorage::Create(storage);
  return *ReplayBuffer::Create(std::move(options));
}

std::unique_ptr<Sampler> Over(SampleUnit unit) {
  return *MakeSampler(MakeUniformSelector(), std::move(unit), "Test");
}

template <typename T>
std::vector<T> Values(const TensorDict& batch, const char* key) {
  const Tensor* const leaf = batch.Find(key);
  if (leaf == nullptr) return {};
  const T* const values = leaf->data<T>();
  return std::vector<T>(values, values + leaf->shape().num_elements());
}

// Where the slices of `length` begin that are drawn from `rows`.
std::set<int64_t> StartsOf(const TensorDict& rows, int64_t length,
                           const EventKeys& keys = {}) {
  const auto buffer = Make({.sampler = *MakeSliceSampler({.length = length}),
                            .batch_size = 100 * length},
                           {.capacity = 6, .event_keys = keys});
  RILL_EXPECT_OK(buffer->Extend(rows));
  const TensorDict batch = *buffer->Sample();
  const std::vector<int64_t> index = Values<int64_t>(batch, "index");
  std::set<int64_t> starts;
  for (size_t i = 0; i < index.size(); ++i) {
    if (i % length == 0) {
      starts.insert(index[i]);
    } else {
      EXPECT_EQ(index[i], index[i - 1] + 1);
    }
  }
  return starts;
}

TEST(StoredTrajectoriesTest, S7_TrajectoryIdsBeforeEpisodesBeforeEnds) {
  TensorDict rows({6});
  RILL_ASSERT_OK(
      rows.Set("collector/traj_ids", Column<int64_t>({0, 0, 0, 1, 1, 1})));
  RILL_ASSERT_OK(rows.Set("episode", Column<int64_t>({0, 0, 1, 1, 1, 1})));
  EXPECT_THAT(StartsOf(rows, 2), ElementsAre(0, 1, 3, 4));
  RILL_ASSERT_OK(rows.Delete("collector"));
  EXPECT_THAT(StartsOf(rows, 2), ElementsAre(0, 2, 3, 4));
  RILL_ASSERT_OK(rows.Delete("episode"));
  RILL_ASSERT_OK(rows.Set(
      "next/done", Column<bool>({false, false, false, true, false, false})));
  EXPECT_THAT(StartsOf(rows, 2), ElementsAre(0, 1, 2, 4));
}

// Two producers take turns at random in a ring that goes round; a trajectory
// ends with the flag, or its producer just goes on to the next id.
TEST(StoredTrajectoriesTest, S7_EndsBesideIdsChangeNoSliceWhereTheyAgree) {
  const Rng rng(/*seed=*/7);
  for (uint64_t history = 0; history < 20; ++history) {
    std::vector<std::unique_ptr<ReplayBuffer>> buffers;
    for (const bool has_ends : {true, false}) {
      EventKeys keys;
      if (!has_ends) keys.ends = {};
      buffers.push_back(
          Make({.sampler = *MakeSliceSampler({.length = 3, .is_strict = false}),
                .batch_size = 60},
               {.capacity = 24, .event_keys = keys}));
    }
    int64_t ids[] = {0, 1};
    int64_t next_id = 2;
    for (uint32_t batch = 0; batch < 12; ++batch) {
      std::vector<int64_t> row_ids;
      std::vector<bool> ends;
      for (uint32_t row = 0; row < 8; ++row) {
        const Rng::Block bits = rng.Bits(history, 8 * batch + row);
        int64_t& id = ids[bits[0] % 2];
        row_ids.push_back(id);
        ends.push_back(bits[1] % 5 == 0);
        if (bits[1] % 5 <= 1) id = next_id++;
      }
      TensorDict rows({8});
      RILL_ASSERT_OK(rows.Set("collector/traj_ids", Column(row_ids)));
      RILL_ASSERT_OK(rows.Set("next/done", Column(ends)));
      std::vector<TensorDict> samples;
      for (const auto& buffer : buffers) {
        RILL_ASSERT_OK(buffer->Extend(rows));
        RILL_ASSERT_OK_AND_ASSIGN(samples.emplace_back(), buffer->Sample());
      }
      RILL_ASSERT_OK(samples[0].CheckEqual(samples[1]))
          << "history " << history << ", batch " << batch;
    }
  }
}

// TorchRL would go over the end that it does not look at. So does a storage
// that gets ids alone.
TEST(StoredTrajectoriesTest, S7_AnEndInsideOfAnIdIsAnEndUnlessToldOtherwise) {
  TensorDict rows({6});
  RILL_ASSERT_OK(
      rows.Set("collector/traj_ids", Column<int64_t>({0, 0, 0, 0, 0, 0})));
  RILL_ASSERT_OK(rows.Set(
      "next/done", Column<bool>({false, false, true, false, false, false})));
  EXPECT_THAT(StartsOf(rows, 3), ElementsAre(0, 3));
  EXPECT_THAT(StartsOf(rows, 3, {.ends = {}}), ElementsAre(0, 1, 2, 3));
}

TEST(StoredTrajectoriesTest, S8_OnlyTruncationsAreStored) {
  TensorDict rows({6});
  RILL_ASSERT_OK(
      rows.Set("next/truncated",
               Column<bool>({false, false, true, false, false, true})));
  EXPECT_THAT(
      StartsOf(rows, 3, {.ends = {"next/terminated", "next/truncated"}}),
      ElementsAre(0, 3));
}

// Rows of one lane, each with its number as "step", with some of the flags and
// ids stored. What ends trajectories is known beside them.
struct Told {
  bool done = false;
  bool terminated = false;
  bool truncated = false;
  bool ids = false;
  bool ends_nothing = false;

  std::string ToString() const {
    return absl::StrCat("done ", done, ", terminated ", terminated,
                        ", truncated ", truncated, ", ids ", ids);
  }
};

class ToldRows {
 public:
  ToldRows(uint64_t seed, const Told& told) : rng_(seed), told_(told) {}

  // The next `count` rows; some of them end their trajectory, in a way that is
  // stored.
  TensorDict Next(int64_t count) {
    std::vector<int64_t> steps, ids;
    std::vector<float> numbers;
    std::vector<bool> done, terminated, truncated;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t step = static_cast<int64_t>(trajectory_.size());
      const Rng::Block bits = rng_.Bits(0, static_cast<uint32_t>(step));
      const bool tells_both = told_.done || told_.ids;
      const bool may_terminate = tells_both || told_.terminated;
      const bool may_truncate = tells_both || told_.truncated;
      const bool is_end = !told_.ends_nothing && bits[0] % 4 == 0;
      const bool terminates =
          is_end && may_terminate && (!may_truncate || bits[1] % 2 == 0);
      steps.push_back(step);
      numbers.push_back(static_cast<float>(step));
      ids.push_back(open_);
      done.push_back(is_end);
      terminated.push_back(terminates);
      truncated.push_back(is_end && !terminates);
      trajectory_.push_back(open_);
      if (is_end) ++open_;
    }
    TensorDict rows({count});
    RILL_EXPECT_OK(rows.Set("step", Column(steps)));
    RILL_EXPECT_OK(rows.Set("observation", Column(numbers)));
    RILL_EXPECT_OK(rows.Set("next/reward", Column(numbers)));
    RILL_EXPECT_OK(rows.Set("next/achieved_goal", Column(numbers)));
    RILL_EXPECT_OK(rows.Set(
        "desired_goal",
        Column(std::vector<float>(static_cast<size_t>(count), -1.0f))));
    if (told_.done) {
      RILL_EXPECT_OK(rows.Set("next/done", Column(done)));
    }
    if (told_.terminated) {
      RILL_EXPECT_OK(rows.Set("next/terminated", Column(terminated)));
    }
    if (told_.truncated) {
      RILL_EXPECT_OK(rows.Set("next/truncated", Column(truncated)));
    }
    if (told_.ids) {
      RILL_EXPECT_OK(rows.Set("collector/traj_ids", Column(ids)));
    }
    return rows;
  }

  int64_t size() const { return static_cast<int64_t>(trajectory_.size()); }
  int64_t TrajectoryOf(int64_t step) const {
    return trajectory_[static_cast<size_t>(step)];
  }
  // The step `by` behind, or before where it is negative, or the last of that
  // way that is stored and of the trajectory.
  int64_t Near(int64_t step, int64_t by, int64_t oldest) const {
    const int64_t one = by < 0 ? -1 : 1;
    for (; by != 0; by -= one) {
      const int64_t next = step + one;
      if (next < oldest || next >= size() ||
          TrajectoryOf(next) != TrajectoryOf(step)) {
        break;
      }
      step = next;
    }
    return step;
  }

 private:
  const Rng rng_;
  const Told told_;
  std::vector<int64_t> trajectory_;  // Of each step.
  int64_t open_ = 0;
};

constexpr int64_t kToldSlots = 24;

void ExpectOneTrajectory(const TensorDict& batch, const ToldRows& rows) {
  const auto steps = Values<int64_t>(batch, "step");
  ASSERT_FALSE(steps.empty());
  for (const int64_t step : steps) {
    EXPECT_EQ(rows.TrajectoryOf(step), rows.TrajectoryOf(steps[0]));
  }
}

void ExpectWindow(const TensorDict& batch, const ToldRows& rows) {
  const int64_t step = Values<int64_t>(batch, "step")[0];
  const int64_t last = rows.Near(step, 2, rows.size() - kToldSlots);
  float sum = 0;
  for (int64_t i = step; i <= last; ++i) sum += static_cast<float>(i);
  EXPECT_THAT(Values<float>(batch, "next/reward"), ElementsAre(sum));
  EXPECT_THAT(Values<int64_t>(batch, "steps_to_next_obs"),
              ElementsAre(last - step + 1));
}

void ExpectStack(const TensorDict& batch, const ToldRows& rows) {
  const int64_t step = Values<int64_t>(batch, "step")[0];
  std::vector<float> frames;
  for (const int64_t by : {-2, -1, 0}) {
    frames.push_back(
        static_cast<float>(rows.Near(step, by, rows.size() - kToldSlots)));
  }
  EXPECT_THAT(Values<float>(batch, "observation"), ElementsAreArray(frames));
}

void ExpectGoal(const TensorDict& batch, const ToldRows& rows) {
  const int64_t step = Values<int64_t>(batch, "step")[0];
  const auto goal =
      static_cast<int64_t>(Values<float>(batch, "desired_goal")[0]);
  ASSERT_GE(goal, step);
  EXPECT_EQ(rows.TrajectoryOf(goal), rows.TrajectoryOf(step));
}

absl::StatusOr<Tensor> Reached(const Tensor& achieved, const Tensor&) {
  return Tensor::Zeros(DType::kFloat32, achieved.shape());
}

// One item of each kind, and the oracle of a batch that holds one.
struct ToldUnit {
  const char* name;
  absl::StatusOr<SampleUnit> (*make)();
  int64_t rows;  // Of an item, as batch sizes count.
  void (*expect)(const TensorDict& batch, const ToldRows& rows);
};

const ToldUnit kToldUnits[] = {
    {"slices", [] { return MakeSlices({.slices = {.length = 2}}); }, 2,
     ExpectOneTrajectory},
    {"loose slices",
     [] { return MakeSlices({.slices = {.length = 4, .is_strict = false}}); },
     4, ExpectOneTrajectory},
    {"sequences",
     [] { return MakeSequences({.sequences = {.length = 3, .burn_in = 2}}); },
     5, ExpectOneTrajectory},
    {"trajectories", [] { return MakeTrajectories({}); }, 1,
     ExpectOneTrajectory},
    {"n steps",
     [] {
       return MakeTransitions(
           {.n_step = NStepReturns::Options{.num_steps = 3, .gamma = 1}});
     },
     1, ExpectWindow},
    {"frames",
     [] {
       return MakeTransitions({.frames = StackFrames::Options{
                                   .num_frames = 3, .keys = {"observation"}}});
     },
     1, ExpectStack},
    {"hindsight",
     [] {
       return MakeHindsight(
           {.goals = {.strategy = HindsightStrategy::kFuture, .ratio = 1},
            .relabel = {.reward = Reached}});
     },
     1, ExpectGoal},
};

// Whatever of flags and ids is stored, no unit goes over an end.
TEST(StoredTrajectoriesTest, NoUnitCrossesEndsWhateverOfThemIsStored) {
  for (uint32_t stored = 1; stored < 16; ++stored) {
    const Told told = {.done = (stored & 1) != 0,
                       .terminated = (stored & 2) != 0,
                       .truncated = (stored & 4) != 0,
                       .ids = (stored & 8) != 0};
    for (const ToldUnit& unit : kToldUnits) {
      SCOPED_TRACE(absl::StrCat(unit.name, ": ", told.ToString()));
      auto made = unit.make();
      RILL_ASSERT_OK(made);
      const auto buffer =
          Make({.sampler = Over(*std::move(made)), .batch_size = unit.rows},
               {.capacity = kToldSlots});
      ToldRows rows(stored, told);
      const Rng rng(/*seed=*/stored);
      for (uint32_t write = 0; write < 12 || rows.size() < 30; ++write) {
        const int64_t count = 1 + rng.Bits(1, write)[0] % 9;
        RILL_ASSERT_OK(buffer->Extend(rows.Next(count)));
      }
      for (int draw = 0; draw < 60; ++draw) {
        RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
        unit.expect(batch, rows);
        if (HasFailure()) return;
      }
      int64_t next = rows.size() - kToldSlots;
      RILL_ASSERT_OK(buffer->Iterate({}, [&](const StoredTrajectory& found) {
        const auto steps = Values<int64_t>(found.rows, "step");
        EXPECT_EQ(steps.front(), next);
        next = rows.Near(next, kToldSlots, 0) + 1;
        EXPECT_EQ(steps.back(), next - 1);
        return true;
      }));
      EXPECT_EQ(next, rows.size());
    }
  }
}

TEST(StoredTrajectoriesTest, RowsThatTellNoEndsAreRefusedWhereUnitsNeedThem) {
  const auto told = [](const absl::Status& status) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                 AllOf(HasSubstr("next/truncated"),
                                       HasSubstr("collector/traj_ids"),
                                       HasSubstr("endless"))));
  };
  ToldRows rows(/*seed=*/1, {});
  const TensorDict batch = rows.Next(kToldSlots);
  const std::string directory = testing::TempDir() + "/untold_rows";
  std::shared_ptr<Storage> stored =
      *DenseStorage::Create({.capacity = kToldSlots});
  std::shared_ptr<Storage> reopened =
      *MemmapStorage::Create({.directory = directory, .capacity = kToldSlots});
  for (const auto& storage : {stored, reopened}) {
    RILL_ASSERT_OK(storage->Extend(batch).status());
  }
  reopened.reset();
  RILL_ASSERT_OK_AND_ASSIGN(reopened,
                            MemmapStorage::Open({.directory = directory}));
  for (const ToldUnit& unit : kToldUnits) {
    SCOPED_TRACE(unit.name);
    const auto make = [&](std::shared_ptr<Storage> storage) {
      return ReplayBuffer::Create({.storage = std::move(storage),
                                   .sampler = Over(*unit.make()),
                                   .batch_size = unit.rows});
    };
    // Before the first write the rows are not known.
    const std::shared_ptr<Storage> empty =
        *DenseStorage::Create({.capacity = kToldSlots});
    RILL_ASSERT_OK_AND_ASSIGN(const auto first, make(empty));
    RILL_ASSERT_OK_AND_ASSIGN(const auto second, make(empty));
    told(first->Extend(batch).status());
    EXPECT_EQ(empty->size(), 0);
    EXPECT_TRUE(empty->spec().empty());
    // Somebody else writes them.
    RILL_ASSERT_OK(empty->Extend(batch).status());
    told(first->Extend(batch).status());
    told(second->Sample().status());
    // They are there before the buffer.
    told(make(stored).status());
    told(make(reopened).status());
  }
}

TEST(StoredTrajectoriesTest, AnOpenedSaveThatTellsNoEndsIsRefused) {
  ToldRows rows(/*seed=*/1, {});
  const std::string directory = testing::TempDir() + "/untold_save";
  const auto options = [](const EventKeys& keys) {
    return ReplayBuffer::Options{
        .storage =
            *DenseStorage::Create({.capacity = kToldSlots, .event_keys = keys}),
        .sampler = *MakeSliceSampler({.length = 2}),
        .batch_size = 2};
  };
  const EventKeys endless = {.ends = {}, .trajectories = {}};
  RILL_ASSERT_OK_AND_ASSIGN(const auto saved,
                            ReplayBuffer::Create(options(endless)));
  RILL_ASSERT_OK(saved->Extend(rows.Next(10)).status());
  RILL_ASSERT_OK(saved->Save(directory));
  EXPECT_THAT(ReplayBuffer::Open(directory, options({})).status(),
              IsInvalidArgument("endless"));
  RILL_ASSERT_OK_AND_ASSIGN(const auto opened,
                            ReplayBuffer::Open(directory, options(endless)));
  RILL_EXPECT_OK(opened->Sample().status());
}

// An oracle of one trajectory that never ends.
TEST(StoredTrajectoriesTest, LanesThatAreSaidToBeEndlessAreOneTrajectory) {
  for (const ToldUnit& unit : kToldUnits) {
    SCOPED_TRACE(unit.name);
    const auto buffer =
        Make({.sampler = Over(*unit.make()), .batch_size = unit.rows},
             {.capacity = kToldSlots,
              .event_keys = {.ends = {}, .trajectories = {}}});
    ToldRows rows(/*seed=*/3, {.ends_nothing = true});
    for (int i = 0; i < 5; ++i) {
      RILL_ASSERT_OK(buffer->Extend(rows.Next(7)).status());
    }
    for (int draw = 0; draw < 60; ++draw) {
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
      unit.expect(batch, rows);
    }
    RILL_ASSERT_OK_AND_ASSIGN(
        const auto found,
        buffer->Query({}, [](const StoredTrajectory&) { return true; }));
    ASSERT_EQ(found.size(), 1);
    EXPECT_EQ(found[0].slots.size(), kToldSlots);
  }
}

TEST(StoredTrajectoriesTest, SingleRowsNeedNoEndsButIterateDoes) {
  ToldRows rows(/*seed=*/1, {});
  const auto buffer = Make({.sampler = MakeUniformSampler(), .batch_size = 4},
                           {.capacity = kToldSlots});
  const auto iterate = [&] {
    return buffer->Iterate({}, [](const StoredTrajectory&) { return true; });
  };
  RILL_EXPECT_OK(iterate());  // Nothing is there.
  RILL_ASSERT_OK(buffer->Extend(rows.Next(10)).status());
  RILL_EXPECT_OK(buffer->Sample().status());
  EXPECT_THAT(iterate(),
              IsFailedPrecondition("ReplayBuffer::Iterate: rows: got "
                                   "none of \"next/done\""));
}

// --- Groups with episodes of their own ---------------------------------------

// Rows of one lane with two agents in a group; each ends episodes of its own,
// and the lane ends all of them.
class GroupRows {
 public:
  explicit GroupRows(uint64_t seed, bool has_done)
      : rng_(seed), has_done_(has_done) {}

  TensorDict Next(int64_t count) {
    std::vector<int64_t> steps;
    std::vector<float> numbers;
    std::vector<bool> done, agents_done, none(static_cast<size_t>(2 * count));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t step = static_cast<int64_t>(is_end_.size());
      const Rng::Block bits = rng_.Bits(0, static_cast<uint32_t>(step));
      steps.push_back(step);
      for (int agent = 0; agent < 2; ++agent) {
        numbers.push_back(static_cast<float>(10 * step + agent));
        agents_done.push_back(bits[static_cast<size_t>(agent)] % 5 == 0);
      }
      done.push_back(bits[2] % 7 == 0);
      is_end_.push_back(done.back() || agents_done[agents_done.size() - 1] ||
                        agents_done[agents_done.size() - 2]);
    }
    const auto pairs = [&](const auto& values) {
      return *Column(values).Reshape({count, 2, 1});
    };
    TensorDict rows({count});
    RILL_EXPECT_OK(rows.Set("step", Column(steps)));
    RILL_EXPECT_OK(rows.Set("agents/observation", pairs(numbers)));
    RILL_EXPECT_OK(rows.Set("next/agents/reward", pairs(numbers)));
    RILL_EXPECT_OK(rows.Set("next/agents/goal", pairs(numbers)));
    RILL_EXPECT_OK(rows.Set("agents/wanted", pairs(numbers)));
    RILL_EXPECT_OK(rows.Set("next/done", Column(done)));
    RILL_EXPECT_OK(rows.Set("next/agents/truncated", pairs(agents_done)));
    RILL_EXPECT_OK(rows.Set("next/agents/terminated", pairs(none)));
    if (has_done_) {
      RILL_EXPECT_OK(rows.Set("next/agents/done", pairs(agents_done)));
    }
    return rows;
  }

  int64_t size() const { return static_cast<int64_t>(is_end_.size()); }
  // The last of `count` rows that begin with `step`, before or at an end.
  int64_t LastOf(int64_t step, int64_t count) const {
    while (--count > 0 && step + 1 < size() &&
           !is_end_[static_cast<size_t>(step)]) {
      ++step;
    }
    return step;
  }
  bool HasEnd(int64_t from, int64_t before) const {
    for (; from < before; ++from) {
      if (is_end_[static_cast<size_t>(from)]) return true;
    }
    return false;
  }

 private:
  const Rng rng_;
  const bool has_done_;
  std::vector<bool> is_end_;  // Of the lane or an agent.
};

const ToldUnit kGroupUnits[] = {
    {"n steps",
     [] {
       return MakeTransitions({.n_step = NStepReturns::Options{
                                   .num_steps = 3,
                                   .gamma = 1,
                                   .reward_keys = {"next/agents/reward"}}});
     },
     1, nullptr},
    {"frames",
     [] {
       return MakeTransitions(
           {.frames = StackFrames::Options{.num_frames = 3,
                                           .keys = {"agents/observation"}}});
     },
     1, nullptr},
    {"hindsight",
     [] {
       return MakeHindsight(
           {.goals = {.strategy = HindsightStrategy::kFuture, .ratio = 1},
            .relabel = {.achieved_key = "next/agents/goal",
                        .desired_key = "agents/wanted",
                        .reward = Reached,
                        .reward_key = "next/agents/reward"}});
     },
     1, nullptr},
};

TEST(StoredTrajectoriesTest, GroupsWithEndsThatNobodyIsToldOfAreRefused) {
  for (const bool has_done : {true, false}) {
    GroupRows rows(/*seed=*/1, has_done);
    const TensorDict batch = rows.Next(kToldSlots);
    const std::shared_ptr<Storage> stored =
        *DenseStorage::Create({.capacity = kToldSlots});
    RILL_ASSERT_OK(stored->Extend(batch).status());
    for (const ToldUnit& unit : kGroupUnits) {
      SCOPED_TRACE(unit.name);
      const auto refused = StatusIs(
          absl::StatusCode::kInvalidArgument,
          AllOf(HasSubstr("of a group that ends"), HasSubstr("EventKeys::ends"),
                HasSubstr(has_done ? "\"next/agents/done\""
                                   : "\"next/agents/terminated\"")));
      const auto buffer =
          Make({.sampler = Over(*unit.make()), .batch_size = unit.rows},
               {.capacity = kToldSlots});
      EXPECT_THAT(buffer->Extend(batch).status(), refused);
      EXPECT_THAT(ReplayBuffer::Create({.storage = stored,
                                        .sampler = Over(*unit.make()),
                                        .batch_size = unit.rows})
                      .status(),
                  refused);
    }
    // Whole rows of slices hold the group's flags.
    RILL_EXPECT_OK(
        ReplayBuffer::Create({.storage = stored,
                              .sampler = *MakeSliceSampler({.length = 1}),
                              .batch_size = 2})
            .status());
  }
}

TEST(StoredTrajectoriesTest, NoUnitCrossesEndsOfAGroupThatAreNamed) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const bool has_done = seed % 2 == 0;
    GroupRows rows(seed, has_done);
    const auto make = [&](size_t unit) {
      return Make({.sampler = Over(*kGroupUnits[unit].make()), .batch_size = 1},
                  {.capacity = kToldSlots,
                   .event_keys = {.ends = {"next/done", "next/agents/done"}}});
    };
    const auto n_step = make(0), frames = make(1), hindsight = make(2);
    while (rows.size() < 40) {
      const TensorDict batch = rows.Next(1 + static_cast<int64_t>(seed));
      for (auto* const buffer : {n_step.get(), frames.get(), hindsight.get()}) {
        RILL_ASSERT_OK(buffer->Extend(batch).status());
      }
    }
    for (int draw = 0; draw < 100; ++draw) {
      RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, n_step->Sample());
      int64_t step = Values<int64_t>(batch, "step")[0];
      const int64_t last = rows.LastOf(step, 3);
      const int64_t k = last - step + 1;
      const auto sum = static_cast<float>(10 * (step + last) * k / 2);
      EXPECT_THAT(Values<float>(batch, "next/agents/reward"),
                  ElementsAre(sum, sum + static_cast<float>(k)));
      EXPECT_THAT(Values<int64_t>(batch, "steps_to_next_obs"), ElementsAre(k));

      RILL_ASSERT_OK_AND_ASSIGN(batch, frames->Sample());
      step = Values<int64_t>(batch, "step")[0];
      const auto stack = Values<float>(batch, "agents/observation");
      ASSERT_EQ(stack.size(), 6);
      for (const float frame : stack) {
        EXPECT_FALSE(rows.HasEnd(static_cast<int64_t>(frame) / 10, step));
      }

      RILL_ASSERT_OK_AND_ASSIGN(batch, hindsight->Sample());
      step = Values<int64_t>(batch, "step")[0];
      const auto goal = Values<float>(batch, "agents/wanted");
      EXPECT_FALSE(rows.HasEnd(step, static_cast<int64_t>(goal[0]) / 10));
    }
  }
}

// Ids alone were asked for.
TEST(StoredTrajectoriesTest, WithoutEndKeysPartsOfDoneDoNotCount) {
  TensorDict rows({6});
  RILL_ASSERT_OK(
      rows.Set("collector/traj_ids", Column<int64_t>({0, 0, 0, 0, 0, 0})));
  RILL_ASSERT_OK(
      rows.Set("next/terminated",
               Column<bool>({false, false, true, false, false, false})));
  EXPECT_THAT(StartsOf(rows, 3), ElementsAre(0, 3));
  EXPECT_THAT(StartsOf(rows, 3, {.ends = {}}), ElementsAre(0, 1, 2, 3));
}

TEST(StoredTrajectoriesTest, S11_BuffersOfOneStorageSeeWritesInPlace) {
  RILL_ASSERT_OK_AND_ASSIGN(std::shared_ptr<Storage> storage,
                            DenseStorage::Create({.capacity = 6}));
  const auto make = [&] {
    return *ReplayBuffer::Create({.storage = storage,
                                  .sampler = *MakeSliceSampler({.length = 3}),
                                  .batch_size = 300});
  };
  const auto one = make(), other = make();
  const auto draws_over_two_and_three = [](ReplayBuffer& buffer) {
    const auto index = Values<int64_t>(*buffer.Sample(), "index");
    for (size_t i = 0; i + 1 < index.size(); ++i) {
      if (i % 3 != 2 && index[i] == 2) return true;
    }
    return false;
  };
  TensorDict rows({6});
  RILL_ASSERT_OK(rows.Set(
      "next/done", Column<bool>({false, false, false, false, false, true})));
  RILL_ASSERT_OK(one->Extend(rows));
  TensorDict flag({1});
  for (const bool is_end : {false, true, false, true}) {
    RILL_ASSERT_OK(flag.Set("next/done", Column<bool>({is_end})));
    RILL_ASSERT_OK(one->WriteAt({2}, flag));
    EXPECT_EQ(draws_over_two_and_three(*one), !is_end);
    EXPECT_EQ(draws_over_two_and_three(*other), !is_end);
  }
}

// Two producers take turns; a batch longer than the ring drops the beginnings
// of both, and none of those that begin later.
TEST(StoredTrajectoriesTest, BatchLongerThanTheRingLeavesOnlyWholeOnesWhole) {
  for (const int64_t lanes : {1, 2}) {
    const auto buffer =
        Make({.sampler = Over(*MakeTrajectoryUnit({.only_complete = true})),
              .batch_size = 100},
             {.capacity = 6 * lanes, .lanes = lanes});
    std::vector<int64_t> ids;
    std::vector<bool> ends;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      ids.insert(ids.end(), {1, 2, 3, 1, 2, 1, 2, 4, 4});
      // The first row of 3 is its last; 1 and 2 end behind what is dropped.
      ends.insert(ends.end(),
                  {false, false, true, false, false, true, true, false, true});
    }
    TensorDict rows({9 * lanes});
    RILL_ASSERT_OK(rows.Set("collector/traj_ids", Column<int64_t>(ids)));
    RILL_ASSERT_OK(rows.Set("next/done", Column<bool>(ends)));
    RILL_ASSERT_OK_AND_ASSIGN(rows, rows.Reshape({lanes, 9}));
    RILL_ASSERT_OK(buffer->Extend(rows));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
    for (const int64_t id : Values<int64_t>(batch, "collector/traj_ids")) {
      ASSERT_EQ(id, 4) << lanes << " lanes";
    }
  }
}

TEST(StoredTrajectoriesTest, S14_MaskOfTheBatchIsBoolARow) {
  const auto buffer =
      Make({.sampler = *MakeSliceSampler(
                {.length = 4, .is_strict = false, .is_padded = true}),
            .batch_size = 80},
           {.capacity = 12});
  TensorDict rows({12});
  Tensor done = Column<bool>(std::vector<bool>(12, false));
  done.data<bool>()[1] = true;  // Trajectories of 2 and 10 rows.
  RILL_ASSERT_OK(rows.Set("next/done", done));
  RILL_ASSERT_OK(buffer->Extend(rows));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
  const auto index = Values<int64_t>(batch, "index");
  const Tensor* const mask = batch.Find("collector/mask");
  ASSERT_NE(mask, nullptr);
  EXPECT_EQ(mask->dtype(), DType::kBool);
  EXPECT_EQ(mask->shape(), Shape({80}));
  for (size_t i = 0; i < 80; ++i) {
    const bool is_padding = index[i - i % 4] == 0 && i % 4 >= 2;
    EXPECT_EQ(mask->data<bool>()[i], !is_padding) << i;
  }
}

TEST(StoredTrajectoriesTest, ATransposedBatchIsNotWritten) {
  const auto buffer =
      Make({.sampler = *MakeSliceSampler({.length = 2}), .batch_size = 4},
           {.capacity = 8, .lanes = 2});
  TensorDict steps({2, 3});
  RILL_ASSERT_OK(
      steps.Set("next/done", *Tensor::Zeros(DType::kBool, {2, 3, 1})));
  RILL_ASSERT_OK(steps.SetDimNames({"lanes", "time"}));
  RILL_EXPECT_OK(buffer->Extend(steps));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict two, steps.Slice(1, 0, 2));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict transposed,
                            ops::Transpose(two, 0, 1));
  EXPECT_THAT(buffer->Extend(transposed),
              IsInvalidArgument("(time, lanes): want [lanes, time]"));
  EXPECT_EQ(buffer->size(), 6);
}

// Three environments with episodes of 31, 32 and 33 steps.
TEST(StoredTrajectoriesTest, M3_BatchesOfSlicesHaveOneEndASlice) {
  const auto buffer =
      Make({.sampler = Over(*MakeSlices({.slices = {.length = 32}})),
            .batch_size = 128},
           {.capacity = 201, .lanes = 3});
  constexpr int64_t kSteps = 50;
  for (int64_t rollout = 0; rollout < 50; ++rollout) {
    TensorDict steps({3, kSteps});
    Tensor done = *Tensor::Zeros(DType::kBool, {3, kSteps, 1});
    for (int64_t i = 0; i < 3 * kSteps; ++i) {
      const int64_t step = rollout * kSteps + i % kSteps + 1;
      done.data<bool>()[i] = step % (31 + i / kSteps) == 0;
    }
    RILL_ASSERT_OK(steps.Set("next/done", done));
    RILL_ASSERT_OK(buffer->Extend(steps));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
    std::vector<bool> wanted(128, false);
    for (size_t end = 31; end < 128; end += 32) wanted[end] = true;
    EXPECT_THAT(Values<bool>(batch, "next/done"), ElementsAreArray(wanted));
    EXPECT_THAT(Values<bool>(batch, "next/truncated"),
                ElementsAreArray(wanted));
  }
}

TEST(StoredTrajectoriesTest, T3_T4_NStepReturnsOfARing) {
  TensorDict rows({5});
  const Tensor ends = Column<bool>({false, false, true, false, false});
  RILL_ASSERT_OK(rows.Set("next/observation", Column<float>({1, 2, 3, 4, 5})));
  RILL_ASSERT_OK(rows.Set("next/reward", Column<float>({1, 2, 3, 4, 5})));
  RILL_ASSERT_OK(rows.Set("next/done", ends));
  RILL_ASSERT_OK(rows.Set("next/terminated", ends));
  const auto buffer = Make(
      {.sampler = Over(*MakeTransitions(
           {.n_step = NStepReturns::Options{.num_steps = 2, .gamma = 0.9}})),
       .batch_size = 100},
      {.capacity = 5});
  // The ring has turned: what was there before is gone.
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict old, rows.Slice(0, 0, 3));
  RILL_ASSERT_OK(buffer->Extend(old));
  RILL_ASSERT_OK(buffer->Extend(rows));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
  const auto index = Values<int64_t>(batch, "index");
  const auto rewards = Values<float>(batch, "next/reward");
  const auto observations = Values<float>(batch, "next/observation");
  const auto steps = Values<int64_t>(batch, "steps_to_next_obs");
  const auto gammas = Values<float>(batch, "gamma");
  const auto terminated = Values<bool>(batch, "next/terminated");
  std::set<int64_t> seen;
  for (size_t i = 0; i < 100; ++i) {
    const int64_t row = (index[i] + 2) % 5;
    seen.insert(row);
    EXPECT_FLOAT_EQ(rewards[i], (std::vector{2.8f, 4.7f, 3.f, 8.5f, 5.f})[row]);
    EXPECT_EQ(observations[i], (std::vector{2.f, 3.f, 3.f, 5.f, 5.f})[row]);
    EXPECT_EQ(steps[i], (std::vector{2, 2, 1, 2, 1})[row]);
    EXPECT_FLOAT_EQ(gammas[i], steps[i] == 2 ? 0.81f : 0.9f);
    EXPECT_EQ(terminated[i], row == 1 || row == 2);
  }
  EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3, 4));
}

TEST(StoredTrajectoriesTest, T5_StacksOfFramesOfARing) {
  TensorDict rows({6});
  RILL_ASSERT_OK(rows.Set("observation", Column<float>({1, 2, 3, 4, 5, 6})));
  RILL_ASSERT_OK(rows.Set(
      "next/done", Column<bool>({false, false, true, false, false, false})));
  const std::vector<std::vector<float>> same = {
      {1, 1, 1}, {1, 1, 2}, {1, 2, 3}, {4, 4, 4}, {4, 4, 5}, {4, 5, 6}};
  const std::vector<std::vector<float>> constant = {
      {0, 0, 1}, {0, 1, 2}, {1, 2, 3}, {0, 0, 4}, {0, 4, 5}, {4, 5, 6}};
  for (const bool is_same : {true, false}) {
    const auto buffer = Make(
        {.sampler = Over(*MakeTransitions(
             {.frames =
                  StackFrames::Options{
                      .num_frames = 3,
                      .keys = {"observation"},
                      .padding = is_same ? StackFrames::Padding::kSame
                                         : StackFrames::Padding::kConstant}})),
         .batch_size = 100},
        {.capacity = 6});
    RILL_ASSERT_OK(buffer->Extend(rows));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
    const auto index = Values<int64_t>(batch, "index");
    const auto frames = Values<float>(batch, "observation");
    ASSERT_EQ(frames.size(), 300u);
    for (size_t i = 0; i < 100; ++i) {
      EXPECT_THAT((std::vector<float>(&frames[3 * i], &frames[3 * i] + 3)),
                  ElementsAreArray((is_same ? same : constant)[index[i]]));
    }
  }
}

}  // namespace
}  // namespace rill
