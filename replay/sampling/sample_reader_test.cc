// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/sampling/sample_reader.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/testing/status_matchers.h"

namespace rill::replay_internal {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

SamplePlan PlanOf(const std::vector<Slot>& slots) {
  SamplePlan plan;
  for (Slot slot : slots) {
    plan.draws.push_back({.slot = slot, .generation = 2, .weight = 0.5f});
  }
  return plan;
}

std::shared_ptr<Storage> FilledStorage() {
  auto storage = MakeStorage(10);
  RILL_EXPECT_OK(storage->Extend(NumberedSteps(1, 10)));
  return storage;
}

TEST(SampleReaderTest, ReadsTheRowsAndSaysWhereTheyLie) {
  auto storage = FilledStorage();
  SampleReader reader({.is_weighted = true});
  TensorDict out;
  RILL_ASSERT_OK(reader.Read(*storage, PlanOf({7, 0, 7}), &out));
  EXPECT_EQ(out.batch_shape(), Shape({3}));
  EXPECT_THAT(out.Flat<int64_t>("action"), IsOkAndHolds(ElementsAre(7, 0, 7)));
  EXPECT_THAT(out.Flat<int64_t>("index"), IsOkAndHolds(ElementsAre(7, 0, 7)));
  EXPECT_THAT(out.Flat<int64_t>("index_generation"),
              IsOkAndHolds(ElementsAre(2, 2, 2)));
  EXPECT_THAT(out.Flat<float>("priority_weight"),
              IsOkAndHolds(ElementsAre(0.5f, 0.5f, 0.5f)));
}

TEST(SampleReaderTest, PicksOfSeveralRowsGiveAllOfThem) {
  auto storage = FilledStorage();
  SampleReader reader({.is_weighted = true});
  SamplePlan plan;
  plan.draws = {{.slot = 3, .generation = 0, .weight = 0.25f},
                {.slot = 8, .generation = 1, .weight = 1.0f}};
  plan.rows = {3, 4, 8, 8};
  plan.segments = {0, 0, 1, 1};
  plan.generations = {0, 5, 1, 1};
  plan.mask = {1, 1, 1, 0};
  TensorDict out;
  for (int i = 0; i < 2; ++i) {
    RILL_ASSERT_OK(reader.Read(*storage, plan, &out));
    EXPECT_THAT(out.Flat<int64_t>("action"),
                IsOkAndHolds(ElementsAre(3, 4, 8, 8)));
    EXPECT_THAT(out.Flat<int64_t>("index"),
                IsOkAndHolds(ElementsAre(3, 4, 8, 8)));
    EXPECT_THAT(out.Flat<int64_t>("index_generation"),
                IsOkAndHolds(ElementsAre(0, 5, 1, 1)));
    EXPECT_THAT(out.Flat<float>("priority_weight"),
                IsOkAndHolds(ElementsAre(0.25f, 0.25f, 1.0f, 1.0f)));
    EXPECT_THAT(out.Flat<bool>("collector/mask"),
                IsOkAndHolds(ElementsAre(true, true, true, false)));
  }
}

TEST(SampleReaderTest, PlanThatContradictsItselfIsRefused) {
  auto storage = FilledStorage();
  SampleReader reader({});
  SamplePlan plan = PlanOf({1});
  plan.rows = {1, 2};
  plan.segments = {0, 1};
  plan.generations = {0, 0};
  TensorDict out;
  EXPECT_THAT(reader.Read(*storage, plan, &out), IsInternal("plan"));
  plan.segments = {0};
  EXPECT_THAT(reader.Read(*storage, plan, &out), IsInternal());
}

TEST(SampleReaderTest, SlotThatIsNotLiveIsOutOfRange) {
  auto storage = FilledStorage();
  SampleReader reader({});
  TensorDict out;
  EXPECT_THAT(reader.Read(*storage, PlanOf({10}), &out), IsOutOfRange());
}

// --- Reuse -------------------------------------------------------------------

TEST(SampleReaderTest, LeafThatIsTooMuchOrTooLittleIsPutRight) {
  auto storage = FilledStorage();
  SampleReader reader({});
  TensorDict out;
  RILL_ASSERT_OK(reader.Read(*storage, PlanOf({1, 2}), &out));
  const std::byte* before = out.Find("observation")->raw_data();
  RILL_ASSERT_OK(
      out.Set("next/extra", *Tensor::Zeros(DType::kFloat32, {2, 1})));
  RILL_ASSERT_OK(out.Set("note", NonTensor{"1"}));
  RILL_ASSERT_OK(reader.Read(*storage, PlanOf({3, 4}), &out));
  EXPECT_EQ(out.Find("observation")->raw_data(), before);
  EXPECT_FALSE(out.Contains("note"));
  EXPECT_THAT(out.LeafKeys(),
              UnorderedElementsAre("observation", "action", "next/reward",
                                   "next/done", "index", "index_generation"));
  RILL_ASSERT_OK(out.Delete("action"));
  RILL_ASSERT_OK(reader.Read(*storage, PlanOf({5, 6}), &out));
  EXPECT_THAT(out.Flat<int64_t>("action"), IsOkAndHolds(ElementsAre(5, 6)));
  EXPECT_THAT(out.Flat<int64_t>("index"), IsOkAndHolds(ElementsAre(5, 6)));
}

TEST(SampleReaderTest, LeafOfAnotherTypeOrShapeIsReplaced) {
  auto storage = FilledStorage();
  SampleReader reader({});
  const std::vector<Tensor> unfit = {
      *Tensor::Zeros(DType::kInt32, {2}), *Tensor::Zeros(DType::kInt64, {2, 1}),
      *Tensor::Zeros(DType::kInt64, {1})->Expand({2})};
  for (const Tensor& leaf : unfit) {
    for (const char* key : {"action", "index"}) {
      TensorDict out;
      RILL_ASSERT_OK(reader.Read(*storage, PlanOf({1, 2}), &out));
      RILL_ASSERT_OK(out.Set(key, leaf));
      RILL_ASSERT_OK(reader.Read(*storage, PlanOf({3, 4}), &out));
      EXPECT_THAT(out.Flat<int64_t>(key), IsOkAndHolds(ElementsAre(3, 4)));
    }
  }
}

TEST(SampleReaderTest, StoredLeavesAreReadIntoRowsAtAnyDistance) {
  auto storage = FilledStorage();
  SampleReader reader({});
  TensorDict out;
  RILL_ASSERT_OK(reader.Read(*storage, PlanOf({1, 2}), &out));
  const Tensor memory = *Tensor::Zeros(DType::kInt64, {4});
  const absl::Span<int64_t> values = *memory.Flat<int64_t>();
  RILL_ASSERT_OK(out.Set("action", *memory.Slice(0, 0, 4, 2)));
  RILL_ASSERT_OK(reader.Read(*storage, PlanOf({3, 4}), &out));
  EXPECT_THAT(values, ElementsAre(3, 0, 4, 0));
  // The same bytes, at another distance.
  RILL_ASSERT_OK(out.Set("action", *memory.Slice(0, 0, 2)));
  RILL_ASSERT_OK(reader.Read(*storage, PlanOf({5, 6}), &out));
  EXPECT_THAT(values, ElementsAre(5, 6, 4, 0));
  // A leaf that a sample adds is contiguous.
  RILL_ASSERT_OK(out.Set("index", *memory.Slice(0, 0, 4, 2)));
  RILL_ASSERT_OK(reader.Read(*storage, PlanOf({7, 8}), &out));
  EXPECT_THAT(out.Flat<int64_t>("index"), IsOkAndHolds(ElementsAre(7, 8)));
  EXPECT_THAT(out.Flat<int64_t>("action"), IsOkAndHolds(ElementsAre(7, 8)));
}

// Written in place they would overwrite one another.
TEST(SampleReaderTest, LeavesOverTheSameBytesAreReplaced) {
  auto storage = FilledStorage();
  SampleReader reader({});
  for (const auto& [key, other] :
       std::vector<std::pair<const char*, const char*>>{
           {"index", "index_generation"},
           {"action", "index"},
           {"index_generation", "action"}}) {
    TensorDict out;
    RILL_ASSERT_OK(reader.Read(*storage, PlanOf({1, 2}), &out));
    RILL_ASSERT_OK(out.Set(key, *out.Find(other)));
    RILL_ASSERT_OK(reader.Read(*storage, PlanOf({3, 4}), &out));
    EXPECT_THAT(out.Flat<int64_t>("action"), IsOkAndHolds(ElementsAre(3, 4)));
    EXPECT_THAT(out.Flat<int64_t>("index"), IsOkAndHolds(ElementsAre(3, 4)));
    EXPECT_THAT(out.Flat<int64_t>("index_generation"),
                IsOkAndHolds(ElementsAre(2, 2)));
  }
}

TEST(SampleReaderTest, RowsInPlaceAreNotWrittenOver) {
  auto storage = FilledStorage();
  SampleReader reader({});
  RILL_ASSERT_OK_AND_ASSIGN(const SlotLease lease,
                            storage->Lease({.first = 0, .count = 2}));
  TensorDict out = lease.rows();
  RILL_ASSERT_OK(reader.Read(*storage, PlanOf({8, 9}), &out));
  EXPECT_THAT(out.Flat<int64_t>("action"), IsOkAndHolds(ElementsAre(8, 9)));
  TensorDict stored;
  RILL_ASSERT_OK(storage->Read({0, 1}, &stored));
  EXPECT_THAT(stored.Flat<int64_t>("action"), IsOkAndHolds(ElementsAre(0, 1)));
}

TEST(SampleReaderTest, FilesAreNotWrittenOver) {
  auto storage = FilledStorage();
  SampleReader reader({});
  for (const char* key : {"action", "index"}) {
    std::vector<int64_t> file = {-1, -1};
    const auto mapped =
        Buffer::Wrap(file.data(), 2 * sizeof(int64_t), Device::Cpu(),
                     MemoryKind::kMappedFile, /*owner=*/nullptr);
    TensorDict out;
    RILL_ASSERT_OK(reader.Read(*storage, PlanOf({1, 2}), &out));
    RILL_ASSERT_OK(
        out.Set(key, *Tensor::View(mapped, DType::kInt64, {2}, 0, {8})));
    RILL_ASSERT_OK(reader.Read(*storage, PlanOf({3, 4}), &out));
    EXPECT_THAT(out.Flat<int64_t>(key), IsOkAndHolds(ElementsAre(3, 4)));
    EXPECT_THAT(file, ElementsAre(-1, -1));
  }
}

TEST(SampleReaderTest, ReaderHoldsNoSampleThatWasHandedOut) {
  auto storage = FilledStorage();
  SampleReader reader({});
  TensorDict first;
  RILL_ASSERT_OK(reader.Read(*storage, PlanOf({1, 2}), &first));
  TensorDict second;
  RILL_ASSERT_OK(reader.Read(*storage, PlanOf({3, 4}), &second));
  EXPECT_THAT(first.Flat<int64_t>("action"), IsOkAndHolds(ElementsAre(1, 2)));
  RILL_ASSERT_OK(reader.Read(*storage, PlanOf({5, 6}), &second));
  EXPECT_THAT(first.Flat<int64_t>("action"), IsOkAndHolds(ElementsAre(1, 2)));
}

TEST(SampleReaderTest, BatchesThatTakeTicketsKeepTheirBytes) {
  auto storage = FilledStorage();
  SampleReader reader({});
  TensorDict first;
  TensorDict second;
  RILL_ASSERT_OK(reader.Read(*storage, PlanOf({1, 2}), &first));
  RILL_ASSERT_OK(reader.Read(*storage, PlanOf({3, 4}), &second));
  RILL_ASSERT_OK(reader.Read(*storage, PlanOf({5, 6}), &first));
  const std::byte* const place = second.Find("action")->raw_data();
  RILL_ASSERT_OK(reader.Read(*storage, PlanOf({7, 8}), &second));
  EXPECT_EQ(second.Find("action")->raw_data(), place);
  EXPECT_THAT(first.Flat<int64_t>("action"), IsOkAndHolds(ElementsAre(5, 6)));
  EXPECT_THAT(second.Flat<int64_t>("action"), IsOkAndHolds(ElementsAre(7, 8)));
}

// --- Specs -------------------------------------------------------------------

TEST(SampleReaderTest, SpecSaysWhatASampleHolds) {
  auto storage = FilledStorage();
  SampleReader reader({.is_weighted = true});
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDictSpec spec,
                            reader.SampleSpec(storage->spec()));
  TensorDict out;
  RILL_ASSERT_OK(reader.Read(*storage, PlanOf({1, 2}), &out));
  RILL_EXPECT_OK(spec.CheckLayout("SampleReader", out));
  EXPECT_THAT(reader.SampleSpec(spec), IsInvalidArgument("a leaf \"index\""));
}

}  // namespace
}  // namespace rill::replay_internal
