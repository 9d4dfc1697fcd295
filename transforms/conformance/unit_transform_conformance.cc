// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/conformance/unit_transform_conformance.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "rill/base/rng.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {

void UnitTransformConformanceTest::SetUp() {
  under_test_ = GetParam()();
  unit_ = under_test_.make();
  RILL_ASSERT_OK_AND_ASSIGN(
      TensorDict store, under_test_.rows.Random({UnitTransformUnderTest::kRows},
                                                Rng(12, RngStream::kUser), 0));
  reader_.emplace(under_test_.rows, std::move(store));
}

namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Lists = std::vector<UnitTransform::Reads::List>;

constexpr int64_t kRows = UnitTransformUnderTest::kRows;

std::vector<Slot> Anchors(int64_t count, uint64_t batch) {
  const Rng rng(11, RngStream::kUser);
  std::vector<Slot> anchors;
  for (int64_t i = 0; i < count; ++i) {
    anchors.push_back(rng.UniformInt(batch, static_cast<uint32_t>(i), kRows));
  }
  return anchors;
}

Lists ListsOf(const UnitTransform& unit, const TensorDictSpec& rows) {
  auto reads = unit.PlanReads(rows);
  RILL_EXPECT_OK(reads);
  if (!reads.ok()) return {};
  Lists lists = {reads->rows};
  lists.insert(lists.end(), reads->context.begin(), reads->context.end());
  return lists;
}

// --- Specs -------------------------------------------------------------------

TEST_P(UnitTransformConformanceTest, ReadsNameLeavesOfTheRowsOnce) {
  const TensorDictSpec& rows = under_test().rows;
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDictSpec batch, unit_->BatchSpec(rows));
  std::set<std::string> filled;
  for (const auto& list : ListsOf(*unit_, rows)) {
    for (const std::string& key : list.batch) {
      EXPECT_NE(rows.Find(key), nullptr) << key;
      EXPECT_TRUE(filled.insert(key).second) << key;
      const LeafSpec* leaf = batch.Find(key);
      ASSERT_NE(leaf, nullptr) << key;
      EXPECT_EQ(leaf->dtype, rows.Find(key)->dtype) << key;
      EXPECT_EQ(leaf->shape, rows.Find(key)->shape) << key;
    }
    std::set<std::string> apart;
    for (const std::string& key : list.apart) {
      EXPECT_NE(rows.Find(key), nullptr) << key;
      EXPECT_TRUE(apart.insert(key).second) << key;
    }
  }
  RILL_ASSERT_OK_AND_ASSIGN(const UnitTransform::Reads reads,
                            unit_->PlanReads(rows));
  const SamplePlan plan = under_test().plan({7, 0, 7});
  ASSERT_EQ(reads.context.size(), plan.context.size());
  for (size_t i = 0; i < plan.context.size(); ++i) {
    if (reads.context[i].batch.empty()) continue;
    EXPECT_THAT(plan.context[i].segments, ElementsAre(0, 1, 2)) << i;
  }
}

TEST_P(UnitTransformConformanceTest, SpecPredictsWhatApplyMakes) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDictSpec want,
                            unit_->BatchSpec(reader_->spec()));
  for (const int64_t count : {0, 1, 5, 64}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        const TensorDict batch,
        reader_->Read(*unit_, under_test().plan(Anchors(count, 0))));
    RILL_EXPECT_OK(want.CheckLayout("Apply", batch)) << count;
    RILL_EXPECT_OK(want.CheckValues("Apply", batch)) << count;
  }
}

TEST_P(UnitTransformConformanceTest, RowsOfAnotherKindAreRefusedByBoth) {
  for (const TensorDictSpec::Leaf& leaf : under_test().rows.leaves()) {
    TensorDictSpec without = under_test().rows;
    without.Erase(leaf.key);
    TensorDictSpec other = under_test().rows;
    RILL_ASSERT_OK(
        other.Set(leaf.key, LeafSpec::Unbounded(DType::kComplex64, {7})));
    for (const TensorDictSpec& spec : {without, other}) {
      const absl::Status reads = unit_->PlanReads(spec).status();
      const absl::Status batch = unit_->BatchSpec(spec).status();
      EXPECT_EQ(reads.code(), batch.code()) << reads << batch;
      if (reads.ok()) continue;
      EXPECT_THAT(reads.code(), AnyOf(absl::StatusCode::kInvalidArgument,
                                      absl::StatusCode::kNotFound));
      EXPECT_THAT(reads.ToString(), HasSubstr(unit_->name()));
      EXPECT_THAT(reads.ToString(), HasSubstr(leaf.key));
    }
  }
}

// --- Apply -------------------------------------------------------------------

TEST_P(UnitTransformConformanceTest, LeavesItDoesNotChangeAreAsGathered) {
  const SamplePlan plan = under_test().plan(Anchors(16, 1));
  TensorDict gathered;
  RILL_ASSERT_OK_AND_ASSIGN(const auto inputs,
                            reader_->Gather(*unit_, plan, &gathered));
  RILL_ASSERT_OK(gathered.Set(
      "index", *Tensor::Zeros(DType::kInt64, gathered.batch_shape())));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, gathered.Clone());
  RILL_ASSERT_OK(unit_->Apply(plan, inputs.rows, inputs.context, &batch));
  const std::vector<std::string>& changes = under_test().changes;
  for (const std::string& key : gathered.LeafKeys()) {
    if (std::find(changes.begin(), changes.end(), key) != changes.end()) {
      continue;
    }
    ASSERT_NE(batch.Find(key), nullptr) << key;
    EXPECT_THAT(batch.Find(key)->BitEquals(*gathered.Find(key)),
                IsOkAndHolds(true))
        << key;
  }
}

// A batch without them gets the same others, and no more of them than it had.
TEST_P(UnitTransformConformanceTest, UntouchedLeavesAreNeitherReadNorMade) {
  const SamplePlan plan = under_test().plan(Anchors(16, 1));
  TensorDict batch;
  RILL_ASSERT_OK_AND_ASSIGN(const auto inputs,
                            reader_->Gather(*unit_, plan, &batch));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict without, batch.Clone());
  std::vector<std::string> untouched;
  for (const auto& list : ListsOf(*unit_, reader_->spec())) {
    for (const std::string& key : list.untouched) {
      EXPECT_THAT(list.batch, Contains(key));
      RILL_ASSERT_OK(without.Delete(key));
      untouched.push_back(key);
    }
  }
  RILL_ASSERT_OK(unit_->Apply(plan, inputs.rows, inputs.context, &batch));
  RILL_ASSERT_OK(unit_->Apply(plan, inputs.rows, inputs.context, &without));
  for (const std::string& key : untouched) RILL_ASSERT_OK(batch.Delete(key));
  RILL_EXPECT_OK(without.CheckEqual(batch));
}

TEST_P(UnitTransformConformanceTest, ReusesTheLeavesOfABatchThatItMade) {
  const SamplePlan plan = under_test().plan(Anchors(8, 2));
  TensorDict batch;
  RILL_ASSERT_OK(reader_->ReadInto(*unit_, plan, &batch));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict first, batch.Clone());
  std::map<std::string, const std::byte*> places;
  for (const std::string& key : batch.LeafKeys()) {
    places[key] = batch.Find(key)->raw_data();
  }
  // And nothing of what was in them is left.
  for (const int fill : {0, 1}) {
    batch.ForEachLeaf([fill](absl::string_view, const Tensor& leaf) {
      std::fill_n(leaf.raw_data(), leaf.size_bytes(), std::byte(fill));
    });
    RILL_ASSERT_OK(reader_->ReadInto(*unit_, plan, &batch));
    RILL_EXPECT_OK(batch.CheckEqual(first));
    for (const std::string& key : batch.LeafKeys()) {
      EXPECT_EQ(batch.Find(key)->raw_data(), places[key]) << key;
    }
  }
}

TEST_P(UnitTransformConformanceTest, EqualTransformsMakeEqualThings) {
  const auto a = under_test().make();
  const auto b = under_test().make();
  EXPECT_FALSE(a->name().empty());
  EXPECT_EQ(a->name(), b->name());
  const SamplePlan plan = under_test().plan(Anchors(32, 3));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict of_a, reader_->Read(*a, plan));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict of_b, reader_->Read(*b, plan));
  RILL_EXPECT_OK(of_a.CheckEqual(of_b));
}

TEST_P(UnitTransformConformanceTest, ADrawIsTheSameWhateverIsBesideIt) {
  if (!unit_->traits().is_drawwise) return;
  const std::vector<Slot> anchors = Anchors(5, 7);
  const SamplePlan plan = under_test().plan(anchors);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict all, reader_->Read(*unit_, plan));
  for (size_t draw = 0; draw < anchors.size(); ++draw) {
    std::vector<int64_t> rows;
    for (int64_t row = 0; row < all.batch_shape()[0]; ++row) {
      const int64_t of = plan.segments.empty() ? row : plan.segments[row];
      if (of == static_cast<int64_t>(draw)) rows.push_back(row);
    }
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, all.Gather(rows));
    RILL_ASSERT_OK_AND_ASSIGN(
        const TensorDict got,
        reader_->Read(*unit_, under_test().plan({anchors[draw]})));
    RILL_EXPECT_OK(got.CheckEqual(want)) << "draw " << draw;
  }
}

// --- Leaves that a reader may put together itself ----------------------------

TEST_P(UnitTransformConformanceTest, JoinedLeavesAreStoredRowsAsTheyAre) {
  const SamplePlan plan = under_test().plan(Anchors(16, 5));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch,
                            reader_->Read(*unit_, plan));
  for (const auto& joined : unit_->JoinedLeaves(reader_->spec())) {
    std::vector<Slot> slots;
    RILL_ASSERT_OK(unit_->JoinedSlots(plan, joined, &slots));
    const Tensor& leaf = *batch.Find(joined.key);
    const size_t parts = joined.parts.size();
    ASSERT_EQ(slots.size(),
              static_cast<size_t>(batch.batch_shape()[0]) * parts);
    const std::byte* at = leaf.raw_data();
    for (size_t i = 0; i < slots.size(); ++i) {
      RILL_ASSERT_OK_AND_ASSIGN(
          const Tensor part,
          reader_->store().Find(joined.parts[i % parts])->Select(0, slots[i]));
      RILL_ASSERT_OK_AND_ASSIGN(const Tensor dense, part.Contiguous());
      const auto bytes = static_cast<size_t>(dense.size_bytes());
      ASSERT_EQ(std::memcmp(at, dense.raw_data(), bytes), 0)
          << joined.key << ", part " << i;
      at += bytes;
    }
    EXPECT_EQ(at, leaf.raw_data() + leaf.size_bytes()) << joined.key;
  }
}

TEST_P(UnitTransformConformanceTest, TheUnitWithoutJoinedLeavesMakesTheOthers) {
  const auto joined = unit_->JoinedLeaves(reader_->spec());
  if (joined.empty()) return;
  const SamplePlan plan = under_test().plan(Anchors(16, 6));
  const auto without = unit_->WithoutJoined();
  ASSERT_NE(without, nullptr);
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict want, reader_->Read(*unit_, plan));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDictSpec spec,
                            unit_->BatchSpec(reader_->spec()));
  for (const auto& leaf : joined) {
    RILL_ASSERT_OK(want.Delete(leaf.key));
    spec.Erase(leaf.key);
  }
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got,
                            reader_->Read(*without, plan));
  RILL_EXPECT_OK(got.CheckEqual(want));
  EXPECT_THAT(without->BatchSpec(reader_->spec()), IsOkAndHolds(spec));
}

// --- Plans that are not the unit's -------------------------------------------

template <typename List>
void BreakSegments(const List& list, int64_t draws,
                   const std::function<void(const List&)>& then) {
  if (!list.segments.empty()) {
    List broken = list;
    broken.segments.pop_back();
    then(broken);
    for (const int64_t segment : {int64_t{-1}, draws, INT64_MAX}) {
      broken = list;
      (segment < 0 ? broken.segments.front() : broken.segments.back()) =
          segment;
      then(broken);
    }
  }
  List broken = list;
  broken.segments.push_back(0);
  then(broken);
  broken = list;
  broken.mask.resize(broken.rows.size() + 1, 1);
  then(broken);
}

std::vector<SamplePlan> BrokenPlans(const SamplePlan& plan) {
  std::vector<SamplePlan> plans;
  const int64_t draws = static_cast<int64_t>(plan.draws.size());
  BreakSegments<SamplePlan>(plan, draws, [&plans](const SamplePlan& broken) {
    plans.push_back(broken);
  });
  for (size_t i = 0; i < plan.context.size(); ++i) {
    BreakSegments<SamplePlan::Context>(plan.context[i], draws,
                                       [&](const SamplePlan::Context& broken) {
                                         plans.push_back(plan);
                                         plans.back().context[i] = broken;
                                       });
    plans.push_back(plan);
    plans.back().context[i].rows.push_back(0);
    plans.back().context[i].segments.push_back(draws - 1);
  }
  plans.push_back(plan);
  plans.back().context.emplace_back();
  if (!plan.context.empty()) {
    plans.push_back(plan);
    plans.back().context.pop_back();
  }
  plans.push_back(plan);
  plans.back().draws.clear();
  plans.push_back(plan);
  plans.back().rows.push_back(0);
  plans.back().segments.push_back(draws - 1);
  return plans;
}

TEST_P(UnitTransformConformanceTest, BrokenPlansAreErrors) {
  const SamplePlan plan = under_test().plan(Anchors(6, 4));
  TensorDict gathered;
  RILL_ASSERT_OK_AND_ASSIGN(const auto inputs,
                            reader_->Gather(*unit_, plan, &gathered));
  const std::vector<SamplePlan> broken = BrokenPlans(plan);
  for (size_t i = 0; i < broken.size(); ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, gathered.Clone());
    EXPECT_THAT(unit_->Apply(broken[i], inputs.rows, inputs.context, &batch),
                StatusIs(absl::StatusCode::kInternal, HasSubstr(unit_->name())))
        << "plan " << i;
    for (const auto& joined : unit_->JoinedLeaves(reader_->spec())) {
      std::vector<Slot> slots;
      EXPECT_THAT(
          unit_->JoinedSlots(broken[i], joined, &slots),
          StatusIs(absl::StatusCode::kInternal, HasSubstr(unit_->name())))
          << "plan " << i;
    }
  }
}

TEST_P(UnitTransformConformanceTest, InputsOfAnotherKindAreErrors) {
  const SamplePlan plan = under_test().plan(Anchors(6, 4));
  TensorDict gathered;
  RILL_ASSERT_OK_AND_ASSIGN(const auto inputs,
                            reader_->Gather(*unit_, plan, &gathered));
  const auto apply = [&](const FakeSampleReader::Gathered& wrong) {
    TensorDict batch = *gathered.Clone();
    return unit_->Apply(plan, wrong.rows, wrong.context, &batch).code();
  };
  const auto is_error =
      AnyOf(absl::StatusCode::kInternal, absl::StatusCode::kNotFound,
            absl::StatusCode::kInvalidArgument);
  for (size_t i = 0; i <= inputs.context.size(); ++i) {
    auto wrong = inputs;
    TensorDict& part = i == 0 ? wrong.rows : wrong.context[i - 1];
    const TensorDict right = part;
    for (const std::string& key : right.LeafKeys()) {
      const Shape shape = right.batch_shape().Concat({9});
      RILL_ASSERT_OK(part.Set(key, *Tensor::Zeros(DType::kComplex64, shape)));
      EXPECT_THAT(apply(wrong), is_error) << i << " " << key;
      // That may mean that it is not stored.
      RILL_ASSERT_OK(part.Delete(key));
      EXPECT_THAT(apply(wrong), AnyOf(absl::StatusCode::kOk, is_error)) << key;
      part = right;
    }
    part = TensorDict();
    EXPECT_THAT(apply(wrong), is_error) << i;
  }
}

TEST_P(UnitTransformConformanceTest, RowsBehindAListMeanNothing) {
  const SamplePlan plan = under_test().plan(Anchors(6, 4));
  TensorDict want;
  RILL_ASSERT_OK_AND_ASSIGN(auto inputs, reader_->Gather(*unit_, plan, &want));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict got, want.Clone());
  RILL_ASSERT_OK(unit_->Apply(plan, inputs.rows, inputs.context, &want));
  for (TensorDict& list : inputs.context) {
    RILL_ASSERT_OK_AND_ASSIGN(list, Cat({list, list}));
  }
  RILL_ASSERT_OK(unit_->Apply(plan, inputs.rows, inputs.context, &got));
  RILL_EXPECT_OK(got.CheckEqual(want));
}

}  // namespace

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(UnitTransformConformanceTest);

}  // namespace rill
