// SPDX-License-Identifier: Apache-2.0
// Priorities on a device beside a plain model with the host's sums and powers.
#include "rill/device/priorities/device_priorities.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/device/kernels/host_grid.h"
#include "rill/device/kernels/testing/thread_grid.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/samplers/prioritized/power.h"
#include "rill/samplers/sum_tree/sum_tree.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::absl_testing::StatusIs;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using Change = DevicePriorities::Change;
using Call = FakeBackend::Call;
using Operation = FakeBackend::Operation;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr uint32_t kAll =
    Change::kPriority | Change::kState | Change::kGeneration;

// Arrays of a device.
template <typename T>
class Array {
 public:
  Array(const std::vector<T>& values, Device device)
      : buffer_(*Buffer::Allocate(
            static_cast<int64_t>(sizeof(T) * (values.size() + 1)), device,
            device.is_cpu() ? MemoryKind::kPageable : MemoryKind::kDevice)) {
    if (values.empty()) return;
    RILL_EXPECT_OK(CopyBlocking(buffer_->data(), values.data(),
                                static_cast<int64_t>(sizeof(T) * values.size()),
                                device));
  }
  T* data() const { return reinterpret_cast<T*>(buffer_->data()); }

 private:
  std::shared_ptr<Buffer> buffer_;
};

// A row that may be drawn, of generation 0.
Change Row(int64_t slot, float priority) {
  return {.slot = slot,
          .generation = 1,
          .bits = std::bit_cast<uint32_t>(priority),
          .sets = kAll | Change::kOn};
}

// The promise of DevicePriorities, one slot at a time.
struct Model {
  struct Entry {
    float priority = 0;
    bool on = false;
    int64_t generation = 0;  // Plus 1.
  };

  Model(int64_t size, double alpha, double epsilon)
      : alpha(alpha), epsilon(epsilon), entries(size) {}

  void Apply(const std::vector<Change>& changes, std::optional<float> largest) {
    const std::optional<float> before = max_ever;
    for (const Change& change : changes) {
      Entry& entry = entries[change.slot];
      if ((change.sets & Change::kPriority) != 0) {
        entry.priority = (change.sets & Change::kLargest) != 0
                             ? before.value_or(1)
                             : std::bit_cast<float>(change.bits);
      }
      if ((change.sets & Change::kState) != 0) {
        entry.on = (change.sets & Change::kOn) != 0;
      }
      if ((change.sets & Change::kGeneration) != 0) {
        entry.generation = change.generation;
      }
    }
    if (largest) max_ever = std::max(max_ever.value_or(0), *largest);
  }
  void Update(const std::vector<int64_t>& slots,
              const std::vector<int64_t>& generations,
              const std::vector<float>& priorities) {
    const auto size = static_cast<int64_t>(entries.size());
    for (size_t i = 0; i < slots.size(); ++i) {
      if (slots[i] < 0 || slots[i] >= size) continue;
      Entry& entry = entries[slots[i]];
      if (generations[i] < 0 || entry.generation != generations[i] + 1) {
        continue;
      }
      if (!(priorities[i] >= 0 &&
            priorities[i] <= std::numeric_limits<float>::max())) {
        ++num_bad;
        continue;
      }
      entry.priority = priorities[i];
      max_ever = std::max(max_ever.value_or(0), priorities[i]);
    }
  }
  double Raised(double base) const {
    samplers_internal::Power({&base, 1}, alpha, {&base, 1});
    return base;
  }
  samplers_internal::SumTree Tree() const {
    samplers_internal::SumTree tree(static_cast<int64_t>(entries.size()));
    for (size_t i = 0; i < entries.size(); ++i) {
      const double base = entries[i].priority + epsilon;
      const auto slot = static_cast<int64_t>(i);
      if (entries[i].on && base != 0) tree.Set({slot}, {Raised(base)});
    }
    return tree;
  }
  double Smallest() const {
    std::optional<float> smallest;
    for (const Entry& entry : entries) {
      if (!entry.on || (entry.priority == 0 && epsilon == 0)) continue;
      smallest = std::min(smallest.value_or(entry.priority), entry.priority);
    }
    return Raised(*smallest + epsilon);
  }
  std::vector<float> Priorities() const {
    std::vector<float> priorities;
    for (const Entry& entry : entries) priorities.push_back(entry.priority);
    return priorities;
  }

  double alpha, epsilon;
  std::vector<Entry> entries;
  std::optional<float> max_ever;
  int64_t num_bad = 0;
};

class DevicePrioritiesTest : public ::testing::TestWithParam<Device> {
 protected:
  std::unique_ptr<DevicePriorities> Make(int64_t size, double alpha = 1,
                                         double epsilon = 0) {
    return *DevicePriorities::Create({.size = size,
                                      .alpha = alpha,
                                      .epsilon = epsilon,
                                      .device = GetParam()});
  }
  void Update(DevicePriorities& priorities, const std::vector<int64_t>& slots,
              const std::vector<int64_t>& generations,
              const std::vector<float>& values) {
    struct Owned {
      Array<int64_t> slots, generations;
      Array<float> values;
    };
    auto owned = std::make_shared<Owned>(Owned{
        {slots, GetParam()}, {generations, GetParam()}, {values, GetParam()}});
    RILL_ASSERT_OK(
        priorities.Update({.slots = owned->slots.data(),
                           .generations = owned->generations.data(),
                           .priorities = owned->values.data(),
                           .count = static_cast<int64_t>(slots.size())},
                          owned, stream_));
  }

  const Stream stream_ = *Stream::Create(GetParam());
};

INSTANTIATE_TEST_SUITE_P(HostAndFake, DevicePrioritiesTest,
                         ::testing::Values(Device::Cpu(), Device::Fake()));

TEST_P(DevicePrioritiesTest, Example) {
  const auto priorities = Make(1'000'000, /*alpha=*/0.6);
  RILL_ASSERT_OK(priorities->Apply({Row(7, 1), Row(40, 3)}, {}));
  Update(*priorities, {40}, {0}, {2});
  RILL_ASSERT_OK_AND_ASSIGN(const DevicePriorities::Drawn drawn,
                            priorities->Draw({.seed = 7, .count = 256}));
  EXPECT_THAT(drawn.slots, Each(AnyOf(7, 40)));
  EXPECT_EQ(drawn.slots.size(), 256u);
  EXPECT_EQ(priorities->Read()->priorities[40], 2);
}

// Random numbers of one step of a history.
class Picks {
 public:
  explicit Picks(uint64_t step) : step_(step) {}
  int64_t Below(int64_t bound) {
    return rng_.UniformInt(step_, draws_++, bound);
  }
  float Priority() {
    return Below(5) == 0 ? 0 : static_cast<float>(Below(1000)) / 64;
  }

 private:
  const Rng rng_{1};
  const uint64_t step_;
  uint32_t draws_ = 0;
};

void ApplyRandomly(Picks& pick, int64_t count, DevicePriorities& priorities,
                   Model& model) {
  std::vector<Change> changes;
  std::optional<float> largest;
  // All set the same, so that the last of equal slots is the result of all.
  const auto sets =
      static_cast<uint32_t>(pick.Below(4) == 0 ? Change::kState : kAll);
  for (int64_t i = 0; i < count; ++i) {
    Change change = Row(pick.Below(priorities.size()), pick.Priority());
    change.generation = pick.Below(3);
    change.sets = sets;
    if (pick.Below(4) > 0) change.sets |= Change::kOn;
    if (sets == kAll && pick.Below(4) == 0) {
      change.sets |= Change::kLargest;
      change.bits = 0;
    } else if (sets == kAll) {
      largest =
          std::max(largest.value_or(0), std::bit_cast<float>(change.bits));
    }
    changes.push_back(change);
  }
  const int64_t bits =
      largest ? std::bit_cast<uint32_t>(*largest) + int64_t{1} : 0;
  RILL_ASSERT_OK(priorities.Apply(changes, {.bits = bits}));
  model.Apply(changes, largest);
}

// Draws of the model, as those of `priorities`.
void ExpectDraws(DevicePriorities::Request request,
                 DevicePriorities& priorities, const Model& model) {
  const samplers_internal::SumTree tree = model.Tree();
  RILL_ASSERT_OK_AND_ASSIGN(const DevicePriorities::Drawn drawn,
                            priorities.Draw(request));
  ASSERT_EQ(drawn.total, tree.total());
  EXPECT_EQ(priorities.bad().count, model.num_bad);
  if (drawn.total == 0) {
    EXPECT_TRUE(drawn.slots.empty());
    return;
  }
  const auto count = static_cast<size_t>(request.count);
  std::vector<double> targets, ratios;
  for (uint32_t i = 0; i < count; ++i) {
    const double u = Rng(request.seed, RngStream::kSampler)
                         .UniformDouble(request.batch, request.first + i);
    targets.push_back(tree.total() *
                      (request.stratified ? (i + u) / request.count : u));
  }
  std::vector<int64_t> found(count);
  tree.Find(targets, absl::MakeSpan(found));
  ASSERT_THAT(drawn.slots, ElementsAreArray(found));
  for (const int64_t slot : found) {
    ratios.push_back(tree.Get(slot) / model.Smallest());
  }
  samplers_internal::Power(ratios, -request.beta, absl::MakeSpan(ratios));
  for (size_t i = 0; i < count; ++i) {
    ASSERT_EQ(drawn.importances[i],
              std::clamp(static_cast<float>(ratios[i]),
                         std::numeric_limits<float>::min(), 1.0f));
  }
}

TEST_P(DevicePrioritiesTest, AreTheHostsOverRandomHistories) {
  for (const int64_t size : {1, 7, 8, 9, 64, 65, 513, 5000}) {
    SCOPED_TRACE(size);
    const double epsilon = size % 2 == 0 ? 0 : 1e-8;
    const auto priorities = Make(size, 0.6, epsilon);
    Model model(size, 0.6, epsilon);
    for (uint64_t step = 0; step < 24; ++step) {
      Picks pick(step + 100 * static_cast<uint64_t>(size));
      // From one place to more than a block has threads; slots repeat.
      const int64_t count = pick.Below(step % 4 == 0 ? 1500 : 40);
      const int64_t kind = pick.Below(8);
      if (kind == 0) {
        model.alpha = step % 2 == 0 ? 1 : 0.3;
        RILL_ASSERT_OK(priorities->SetAlpha(model.alpha));
      } else if (kind == 1) {
        RILL_ASSERT_OK(priorities->TurnAllOff());
        for (Model::Entry& entry : model.entries) entry.on = false;
      } else if (kind < 5) {
        ApplyRandomly(pick, count, *priorities, model);
      } else {
        std::vector<int64_t> slots, generations;
        std::vector<float> values;
        for (int64_t i = 0; i < count; ++i) {
          slots.push_back(pick.Below(size + 2) - 1);
          generations.push_back(pick.Below(3) - 1);
          const int64_t bad = pick.Below(9);
          values.push_back(bad == 0 ? kNan : bad == 1 ? -1 : pick.Priority());
        }
        Update(*priorities, slots, generations, values);
        model.Update(slots, generations, values);
      }
      ExpectDraws({.seed = 7,
                   .batch = (uint64_t{5} << 32) + step,
                   .first = 4,
                   .count = 100,
                   .beta = pick.Below(2) == 0 ? 0.4 : 1,
                   .stratified = pick.Below(2) == 0},
                  *priorities, model);
      RILL_ASSERT_OK_AND_ASSIGN(const auto contents, priorities->Read());
      ASSERT_EQ(contents.priorities, model.Priorities());
      ASSERT_EQ(contents.largest, model.max_ever);
    }
  }
}

TEST_P(DevicePrioritiesTest, ABadPriorityLeavesItsRowAndIsCounted) {
  const auto priorities = Make(8);
  RILL_ASSERT_OK(
      priorities->Apply({Row(0, 1), Row(1, 2), Row(2, 3), Row(3, 4)}, {}));
  Update(*priorities, {0, 1, 2, 3, 1}, {0, 0, 0, 0, 0},
         {5, -1, 6, kNan, std::numeric_limits<float>::infinity()});
  RILL_ASSERT_OK_AND_ASSIGN(const auto contents, priorities->Read());
  EXPECT_THAT(contents.priorities, ElementsAre(5, 2, 6, 4, 0, 0, 0, 0));
  EXPECT_EQ(contents.largest, 6);
  EXPECT_EQ(priorities->bad().count, 3);
  EXPECT_EQ(priorities->bad().first_slot, 1);
  EXPECT_EQ(priorities->bad().first_priority, -1);
  // The first one stays.
  Update(*priorities, {2}, {0}, {-7});
  RILL_ASSERT_OK(priorities->Read().status());
  EXPECT_EQ(priorities->bad().count, 4);
  EXPECT_EQ(priorities->bad().first_slot, 1);
}

TEST_P(DevicePrioritiesTest, StaleRowsAndEqualSlots) {
  const auto priorities = Make(4);
  RILL_ASSERT_OK(priorities->Apply({Row(0, 1), Row(1, 1)}, {}));
  RILL_ASSERT_OK(priorities->Apply(
      {{.slot = 1, .generation = 3, .sets = Change::kGeneration}}, {}));
  // Slot 2 never held a row; slots -1 and 4 are none.
  Update(*priorities, {0, 1, 1, 0, 1, 2, -1, 4}, {0, 2, 0, 0, -1, -1, 0, 0},
         {2, 3, 9, 4, 9, 9, 9, 9});
  RILL_ASSERT_OK_AND_ASSIGN(const auto contents, priorities->Read());
  EXPECT_THAT(contents.priorities, ElementsAre(4, 3, 0, 0));
  EXPECT_EQ(contents.largest, 4);
}

TEST_P(DevicePrioritiesTest, ClearForgetsAll) {
  const auto priorities = Make(4);
  RILL_ASSERT_OK(priorities->Apply({Row(0, 5)}, {.bits = 9}));
  Update(*priorities, {0}, {0}, {-1});
  RILL_ASSERT_OK(priorities->Clear());
  RILL_ASSERT_OK_AND_ASSIGN(const auto drawn, priorities->Draw({.count = 2}));
  EXPECT_EQ(drawn.total, 0);
  RILL_ASSERT_OK_AND_ASSIGN(const auto contents, priorities->Read());
  EXPECT_THAT(contents.priorities, Each(0));
  EXPECT_EQ(contents.largest, std::nullopt);
  EXPECT_EQ(priorities->bad().count, 0);
}

TEST_P(DevicePrioritiesTest, ErrorsNameWhatIsWrong) {
  EXPECT_THAT(DevicePriorities::Create({.size = 0, .device = GetParam()}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("size: got 0, want [1, ")));
  const auto priorities = Make(8);
  const auto other = *Stream::Create(Device::Fake(1));
  EXPECT_THAT(priorities->Update({.count = 1}, nullptr, other),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("got 1 rows on fake:1")));
}

// --- Order, lifetimes, faults: on the fake device ----------------------------

class PrioritiesOnFakeTest : public ::testing::Test {
 protected:
  FakeBackend* const fake_ = FakeBackend::Install({});
  std::unique_ptr<DevicePriorities> priorities_ = *DevicePriorities::Create(
      {.size = 4096, .alpha = 0.6, .device = Device::Fake()});
};

TEST_F(PrioritiesOnFakeTest, AnUpdateWaitsForItsStreamAndDrawsWaitForIt) {
  const Device device = Device::Fake();
  const Stream learner = *Stream::Create(device);
  const Array<int64_t> slots({0, 1}, device), generations({0, 0}, device);
  const Array<float> errors({9, 9}, device);
  RILL_ASSERT_OK(priorities_->Apply({Row(0, 1), Row(1, 1)}, {}));
  // The network writes its errors in its stream.
  RILL_ASSERT_OK(fake_->Launch(0, learner.handle(), {{errors.data(), 8}},
                               [](absl::Span<std::byte* const> at) {
                                 auto* const to =
                                     reinterpret_cast<float*>(at[0]);
                                 to[0] = 0;
                                 to[1] = 2;
                               }));
  auto owner = std::make_shared<int>();
  const std::weak_ptr<int> is_kept = owner;
  fake_->StartCalls();
  RILL_ASSERT_OK(priorities_->Update({.slots = slots.data(),
                                      .generations = generations.data(),
                                      .priorities = errors.data(),
                                      .count = 2},
                                     std::move(owner), learner));
  for (const Call& call : fake_->TakeCalls()) {
    EXPECT_EQ(call.kind, Call::Kind::kCompute) << "no wait, no copy";
  }
  // And what it does next does not change what the update reads.
  RILL_ASSERT_OK(fake_->Launch(0, learner.handle(), {{errors.data(), 8}},
                               [](absl::Span<std::byte* const> at) {
                                 reinterpret_cast<float*>(at[0])[0] = 77;
                               }));
  // Not before the rows are there.
  while (fake_->RunOne(0, learner.handle())) {
  }
  RILL_ASSERT_OK_AND_ASSIGN(const auto drawn, priorities_->Draw({.count = 64}));
  EXPECT_THAT(drawn.slots, Each(1));
  RILL_ASSERT_OK(learner.Synchronize());
  EXPECT_FALSE(is_kept.expired());
  RILL_ASSERT_OK(priorities_->Update({}, nullptr, learner));
  EXPECT_TRUE(is_kept.expired());
  priorities_.reset();
}

TEST_F(PrioritiesOnFakeTest, RowsLiveWhereTheirEventCannotBeAsked) {
  const Device device = Device::Fake();
  const Stream learner = *Stream::Create(device);
  const Array<int64_t> slots({0, 1}, device), generations({0, 0}, device);
  RILL_ASSERT_OK(priorities_->Apply({Row(0, 1), Row(1, 1)}, {}));
  auto errors =
      std::make_shared<Array<float>>(std::vector<float>{9, 9}, device);
  const float* const data = errors->data();
  RILL_ASSERT_OK(priorities_->Update({.slots = slots.data(),
                                      .generations = generations.data(),
                                      .priorities = data,
                                      .count = 2},
                                     std::move(errors), learner));
  fake_->FailCall(1, absl::UnavailableError("planted"));
  RILL_EXPECT_OK(priorities_->Update({}, nullptr, learner));
  EXPECT_TRUE(fake_->Recover());
  RILL_EXPECT_OK(learner.Synchronize());
  EXPECT_THAT(fake_->TakeMisuse(), ::testing::IsEmpty());
  EXPECT_EQ(priorities_->Read()->priorities[1], 9);
}

TEST_F(PrioritiesOnFakeTest, ManyChangesAreOnTheirWayAtOnce) {
  std::vector<float> want(4096);
  for (int64_t i = 0; i < 20; ++i) {
    const auto priority = static_cast<float>(i + 1);
    RILL_ASSERT_OK(priorities_->Apply({Row(i, priority)}, {}));
    want[i] = priority;
  }
  EXPECT_EQ(priorities_->Read()->priorities, want);
}

TEST_F(PrioritiesOnFakeTest, AWriteThatTheDeviceLostIsNoticed) {
  for (const Operation lost : {Operation::kCopy, Operation::kLaunch}) {
    RILL_ASSERT_OK(priorities_->Clear());
    fake_->FailNext(lost, 1, absl::InternalError("planted"));
    RILL_ASSERT_OK(priorities_->Apply({Row(0, 1)}, {}));
    EXPECT_THAT(priorities_->Draw({.count = 1}),
                StatusIs(absl::StatusCode::kInternal, HasSubstr("planted")));
    fake_->Recover();
    EXPECT_THAT(priorities_->Draw({.count = 1}),
                StatusIs(absl::StatusCode::kDataLoss,
                         HasSubstr("got 0 writes there, want 1")));
    EXPECT_THAT(priorities_->Read(), StatusIs(absl::StatusCode::kDataLoss));
  }
  // A draw that fails has lost nothing.
  RILL_ASSERT_OK(priorities_->Clear());
  RILL_ASSERT_OK(priorities_->Apply({Row(0, 1)}, {}));
  RILL_ASSERT_OK(priorities_->Draw({.count = 1}).status());
  fake_->FailNext(Operation::kLaunch, 1, absl::InternalError("planted"));
  EXPECT_THAT(priorities_->Draw({.count = 1}),
              StatusIs(absl::StatusCode::kInternal));
  fake_->Recover();
  RILL_ASSERT_OK(priorities_->Draw({.count = 1}).status());
}

TEST_F(PrioritiesOnFakeTest, AllocationsThatFailLeaveNothing) {
  priorities_.reset();
  const auto allocations = [this] {
    return fake_->NumAllocations(0, MemoryKind::kDevice) +
           fake_->NumAllocations(0, MemoryKind::kPinned) +
           fake_->NumStreamsAndEvents();
  };
  const int64_t before = allocations();
  for (int64_t nth = 1; nth <= 9; ++nth) {
    fake_->FailNext(Operation::kAllocate, nth,
                    absl::ResourceExhaustedError("planted"));
    EXPECT_THAT(
        DevicePriorities::Create({.size = 64, .device = Device::Fake()}),
        StatusIs(absl::StatusCode::kResourceExhausted));
    EXPECT_EQ(allocations(), before) << nth;
  }
  EXPECT_THAT(fake_->TakeMisuse(), ::testing::IsEmpty());
}

// --- The kernels have no race ------------------------------------------------

struct HostTree {
  explicit HostTree(int64_t size)
      : tree{.layout = device_internal::TreeLayoutOf(size),
             .size = size,
             .alpha = 0.6,
             .epsilon = 1e-8},
        sums(tree.layout.num_values),
        words(tree.layout.num_values),
        claims(tree.layout.num_values),
        generations(size) {
    tree.sums = sums.data();
    tree.words = words.data();
    tree.claims = claims.data();
    tree.generations = generations.data();
    tree.numbers = &numbers;
  }
  device_internal::PriorityTree tree;
  std::vector<double> sums;
  std::vector<uint32_t> words;
  std::vector<int64_t> claims, generations;
  device_internal::PriorityNumbers numbers;
};

template <typename Kernel>
void RunInOrder(const Kernel& kernel, uint64_t order) {
  const KernelGrid grid = {.blocks = 1, .threads = 64};
  if (order == 20) {
    RunGridOnThreads(kernel, grid);
  } else {
    RunGridOnHost(kernel, grid, order);
  }
}

TEST(PriorityKernelsTest, AnyOrderOfThreadsGivesTheSameTree) {
  std::vector<Change> changes;
  std::vector<int64_t> slots, generations;
  std::vector<float> priorities;
  for (uint32_t i = 0; i < 200; ++i) {
    changes.push_back(
        Row(Rng(1).UniformInt(0, i, 90), Rng(2).UniformFloat(0, i)));
    slots.push_back(Rng(3).UniformInt(0, i, 90));
    generations.push_back(0);
    priorities.push_back(i % 7 == 3 ? kNan : Rng(4).UniformFloat(0, i));
  }
  std::optional<HostTree> first;
  for (uint64_t order = 0; order < 21; ++order) {
    HostTree host(700);
    RunInOrder(device_internal::PriorityChangeKernel{.tree = host.tree,
                                                     .changes = changes.data(),
                                                     .count = 200,
                                                     .first_number = 1},
               order);
    RunInOrder(
        device_internal::PriorityUpdateKernel{.tree = host.tree,
                                              .slots = slots.data(),
                                              .generations = generations.data(),
                                              .priorities = priorities.data(),
                                              .count = 200,
                                              .first_number = 201},
        order);
    if (!first.has_value()) first.emplace(host);
    EXPECT_EQ(host.sums, first->sums) << order;
    EXPECT_EQ(host.words, first->words) << order;
    EXPECT_EQ(host.numbers.bad_slot, first->numbers.bad_slot) << order;
    EXPECT_EQ(host.numbers.num_bad, first->numbers.num_bad) << order;
  }
}

}  // namespace
}  // namespace rill
