// SPDX-License-Identifier: Apache-2.0
#include "rill/specs/bound_rows.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/tensors/test_tensors.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;

BoundRows Bound(LeafUse use, const ReuseRules& rules = {}) {
  return *BoundRows::Create("Test", {{"value", DType::kFloat32, {2}, use}},
                            rules);
}

TensorDict BatchOf(const Tensor& value) {
  TensorDict batch({value.shape()[0]});
  EXPECT_THAT(batch.Set("value", value), IsOk());
  return batch;
}

const std::byte* BytesOf(const TensorDict& batch) {
  return batch.Find("value")->raw_data();
}

TEST(BoundRowsTest, Example) {
  const auto discount = [](TensorDict batch) -> absl::StatusOr<Tensor> {
    RILL_ASSIGN_OR_RETURN(
        BoundRows rows,
        BoundRows::Create("Discount",
                          {{"reward", DType::kFloat32, {1}, LeafUse::kRead},
                           {"value", DType::kFloat32, {1}, LeafUse::kWrite}}));
    RILL_RETURN_IF_ERROR(rows.Bind(&batch));
    const absl::Span<const float> reward = rows[0].As<float>();
    const absl::Span<float> value = rows[1].As<float>();
    for (size_t i = 0; i < value.size(); ++i) value[i] = 0.99f * reward[i];
    return batch.Get("value");
  };
  TensorDict batch({2});
  ASSERT_THAT(batch.Set("reward", MakeTensor<float>({1, 2}, {2, 1})), IsOk());
  EXPECT_THAT(discount(batch),
              IsOkAndHolds(TensorElementsAre<float>(0.99f, 1.98f)));
}

TEST(BoundRowsTest, ReadsWhereTheLeafLies) {
  TensorDict batch = BatchOf(Iota<float>({3, 2}));
  BoundRows rows = Bound(LeafUse::kRead);
  ASSERT_THAT(rows.Bind(batch), IsOk());
  EXPECT_EQ(rows[0].data, BytesOf(batch));
  EXPECT_EQ(rows.rows(), 3);
  EXPECT_EQ(rows[0].width, 8);
  EXPECT_EQ(rows[0].strides[0], 8);
  EXPECT_THAT(rows[0].As<float>(), ElementsAre(0, 1, 2, 3, 4, 5));
}

// --- The rule of reuse -------------------------------------------------------

TEST(BoundRowsTest, WritesInPlaceWhatNobodyElseHolds) {
  TensorDict batch = BatchOf(*Tensor::Empty(DType::kFloat32, {3, 2}));
  const std::byte* const before = BytesOf(batch);
  for (const LeafUse use : {LeafUse::kUpdate, LeafUse::kWrite}) {
    BoundRows rows = Bound(use);
    ASSERT_THAT(rows.Bind(&batch), IsOk());
    EXPECT_EQ(rows[0].data, before);
    EXPECT_EQ(BytesOf(batch), before);
  }
}

TEST(BoundRowsTest, LeavesBytesAloneThatSomebodyElseHolds) {
  const Tensor held = Iota<float>({3, 2});
  TensorDict batch = BatchOf(held);
  BoundRows rows = Bound(LeafUse::kUpdate);
  ASSERT_THAT(rows.Bind(&batch), IsOk());
  EXPECT_NE(BytesOf(batch), held.raw_data());
  EXPECT_THAT(rows[0].As<float>(), ElementsAre(0, 1, 2, 3, 4, 5));
  rows[0].As<float>()[0] = 7;
  EXPECT_THAT(held, TensorElementsAre<float>(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(batch.Find("value")->data<float>()[0], 7);
}

TEST(BoundRowsTest, WritesInPlaceWhatTheCallerPassedIn) {
  const Tensor held = Iota<float>({3, 2});
  TensorDict batch = BatchOf(held);
  BoundRows rows = Bound(LeafUse::kWrite, {.is_passed_in = true});
  ASSERT_THAT(rows.Bind(&batch), IsOk());
  EXPECT_EQ(rows[0].data, held.raw_data());
}

TEST(BoundRowsTest, LeavesReadOnlyBytesAlone) {
  std::vector<float> bytes = {1, 2, 3, 4};
  const auto buffer =
      Buffer::Wrap(bytes.data(), 16, Device::Cpu(), MemoryKind::kPageable,
                   nullptr, /*is_writable=*/false);
  TensorDict batch = BatchOf(*Tensor::View(buffer, DType::kFloat32, {2, 2}, 0));
  BoundRows rows = Bound(LeafUse::kUpdate, {.is_passed_in = true});
  ASSERT_THAT(rows.Bind(&batch), IsOk());
  rows[0].As<float>()[0] = 7;
  EXPECT_THAT(bytes, ElementsAre(1, 2, 3, 4));
}

TEST(BoundRowsTest, MakesWhatIsWrittenAndMissingOrOfAnotherLayout) {
  for (TensorDict batch : {TensorDict({3}), BatchOf(Iota<float>({3, 1})),
                           BatchOf(Iota<int64_t>({3, 2}))}) {
    BoundRows rows = Bound(LeafUse::kWrite);
    ASSERT_THAT(rows.Bind(&batch), IsOk());
    EXPECT_THAT(batch.Get("value"),
                IsOkAndHolds(TensorIs(DType::kFloat32, Shape({3, 2}))));
    EXPECT_EQ(rows[0].data, BytesOf(batch));
  }
}

TEST(BoundRowsTest, TwoLeavesOverTheSameBytesAreNotWritten) {
  const Tensor shared = Iota<float>({4, 2});
  TensorDict batch({3});
  ASSERT_THAT(batch.Set("a", *shared.Slice(0, 0, 3)), IsOk());
  ASSERT_THAT(batch.Set("b", *shared.Slice(0, 1, 4)), IsOk());
  BoundRows rows =
      *BoundRows::Create("Test",
                         {{"a", DType::kFloat32, {2}, LeafUse::kUpdate},
                          {"b", DType::kFloat32, {2}, LeafUse::kRead}},
                         {.is_passed_in = true});
  ASSERT_THAT(rows.Bind(&batch), IsOk());
  rows[0].As<float>()[2] = 7;
  EXPECT_THAT(rows[1].As<float>(), ElementsAre(2, 3, 4, 5, 6, 7));
}

TEST(BoundRowsTest, MemoryIsOfTheKindThatIsWanted) {
  TensorDict batch = BatchOf(*Tensor::Empty(DType::kFloat32, {3, 2}));
  BoundRows rows =
      Bound(LeafUse::kWrite, {.memory = {Device::Fake(), MemoryKind::kPinned}});
  FakeBackend::Install({});
  ASSERT_THAT(rows.Bind(&batch), IsOk());
  EXPECT_TRUE(batch.Find("value")->is_pinned());
}

TEST(BoundRowsTest, LentMemoryIsNotWritten) {
  const Tensor own = Iota<float>({3, 2});
  RILL_ASSERT_OK_AND_ASSIGN(
      const Tensor lent, Tensor::View(Buffer::Lend(own.buffer()), own.dtype(),
                                      own.shape(), 0, own.strides_bytes()));
  TensorDict batch = BatchOf(lent);
  BoundRows rows = Bound(LeafUse::kWrite, {.is_passed_in = true});
  ASSERT_THAT(rows.Bind(&batch), IsOk());
  EXPECT_NE(rows[0].data, own.raw_data());
  EXPECT_EQ(rows[0].data, BytesOf(batch));
}

TEST(BoundRowsTest, FilesAreWrittenUnlessTheyAreKept) {
  std::vector<float> file(6);
  const auto mapped =
      Buffer::Wrap(file.data(), 6 * sizeof(float), Device::Cpu(),
                   MemoryKind::kMappedFile, /*owner=*/nullptr);
  const Tensor leaf = *Tensor::View(mapped, DType::kFloat32, {3, 2}, 0, {8, 4});
  for (const bool keep_files : {false, true}) {
    TensorDict batch = BatchOf(leaf);
    BoundRows rows = Bound(LeafUse::kWrite,
                           {.is_passed_in = true, .keep_files = keep_files});
    ASSERT_THAT(rows.Bind(&batch), IsOk());
    EXPECT_EQ(rows[0].data == leaf.raw_data(), !keep_files);
  }
}

TEST(BoundRowsTest, ALeafMayHaveRulesOfItsOwn) {
  const Tensor columns = Iota<float>({3, 4});
  TensorDict batch({3});
  ASSERT_THAT(batch.Set("any", *columns.Select(1, 0)), IsOk());
  ASSERT_THAT(batch.Set("flat", *columns.Select(1, 1)), IsOk());
  RILL_ASSERT_OK_AND_ASSIGN(
      BoundRows rows,
      BoundRows::Create("Test",
                        {{"any", DType::kFloat32, {}, LeafUse::kWrite},
                         {"flat",
                          DType::kFloat32,
                          {},
                          LeafUse::kWrite,
                          ReuseRules{.is_passed_in = true}}},
                        {.is_passed_in = true, .allow_strides = true}));
  ASSERT_THAT(rows.Bind(&batch), IsOk());
  EXPECT_EQ(rows[0].data, columns.raw_data());
  EXPECT_FALSE(rows[0].is_flat);
  EXPECT_NE(rows[1].data, columns.raw_data() + sizeof(float));
  EXPECT_TRUE(rows[1].is_flat);
}

TEST(BoundRowsTest, TellsWhetherTheBatchHasOtherEntries) {
  TensorDict batch = BatchOf(Iota<float>({3, 2}));
  BoundRows rows = Bound(LeafUse::kRead);
  ASSERT_THAT(rows.Bind(batch), IsOk());
  EXPECT_FALSE(rows.has_others());
  ASSERT_THAT(batch.Set("next/value", Iota<float>({3, 2})), IsOk());
  ASSERT_THAT(rows.Bind(batch), IsOk());
  EXPECT_TRUE(rows.has_others());
}

// --- Strides -----------------------------------------------------------------

TEST(BoundRowsTest, RowsMayHaveAnyOuterStride) {
  // A time of [lanes, time], seen as a batch of lanes.
  const Tensor all = Iota<float>({3, 4, 2});
  TensorDict batch = BatchOf(*all.Select(1, 2));
  BoundRows rows =
      Bound(LeafUse::kWrite, {.is_passed_in = true, .allow_strides = true});
  ASSERT_THAT(rows.Bind(&batch), IsOk());
  EXPECT_FALSE(rows[0].is_flat);
  EXPECT_EQ(rows[0].data, all.raw_data() + 2 * 8);
  EXPECT_EQ(rows[0].strides[0], 4 * 8);
}

TEST(BoundRowsTest, BatchesOfTwoDimensionsHaveTwoStrides) {
  const Tensor all = Iota<float>({3, 4, 2});
  TensorDict batch({2, 4});
  ASSERT_THAT(batch.Set("value", *all.Slice(0, 0, 3, 2)), IsOk());
  BoundRows rows = Bound(LeafUse::kRead, {.allow_strides = true});
  ASSERT_THAT(rows.Bind(batch), IsOk());
  EXPECT_THAT(rows[0].strides, ElementsAre(2 * 4 * 8, 8));
  EXPECT_EQ(rows.rows(), 8);
}

TEST(BoundRowsTest, FieldsOfRecordsAreWrittenInPlace) {
  const Tensor records = Iota<float>({3, 4});
  TensorDict batch({3});
  ASSERT_THAT(batch.Set("a", *records.Slice(1, 0, 2)), IsOk());
  ASSERT_THAT(batch.Set("b", *records.Slice(1, 2, 4)), IsOk());
  BoundRows rows =
      *BoundRows::Create("Test",
                         {{"a", DType::kFloat32, {2}, LeafUse::kWrite},
                          {"b", DType::kFloat32, {2}, LeafUse::kWrite}},
                         {.is_passed_in = true, .allow_strides = true});
  ASSERT_THAT(rows.Bind(&batch), IsOk());
  EXPECT_EQ(rows[0].data, records.raw_data());
  EXPECT_EQ(rows[1].data, records.raw_data() + 8);
}

TEST(BoundRowsTest, RowsThatShareBytesAreNotWritten) {
  const Tensor all = Iota<float>({6, 2});
  // One row seen twice, rows that begin within the one before, and steps of
  // lanes that do.
  for (const auto& [shape, strides] :
       std::vector<std::pair<Shape, std::vector<int64_t>>>{
           {{3, 2}, {0, 4}}, {{3, 2}, {4, 4}}, {{2, 3, 2}, {16, 8, 4}}}) {
    TensorDict batch(shape.Prefix(shape.rank() - 1));
    ASSERT_THAT(batch.Set("value", *Tensor::View(all.buffer(), DType::kFloat32,
                                                 shape, 0, strides)),
                IsOk());
    BoundRows rows =
        Bound(LeafUse::kWrite, {.is_passed_in = true, .allow_strides = true});
    ASSERT_THAT(rows.Bind(&batch), IsOk());
    EXPECT_NE(rows[0].data, all.raw_data()) << shape.ToString();
  }
}

TEST(BoundRowsTest, StridedLeavesAreCopiedWhereRowsMustFollowOneAnother) {
  const Tensor all = Iota<float>({3, 2, 2});
  TensorDict batch = BatchOf(*all.Select(1, 1));
  BoundRows rows = Bound(LeafUse::kRead);
  ASSERT_THAT(rows.Bind(batch), IsOk());
  EXPECT_THAT(rows[0].As<float>(), ElementsAre(2, 3, 6, 7, 10, 11));
}

// --- Binding again -----------------------------------------------------------

TEST(BoundRowsTest, BindsTheSameLeavesOfAnotherBatch) {
  BoundRows rows = Bound(LeafUse::kRead);
  for (const int64_t n : {3, 1, 0, 5}) {
    TensorDict batch = BatchOf(Iota<float>({n, 2}));
    ASSERT_THAT(rows.Bind(batch), IsOk());
    EXPECT_EQ(rows.rows(), n);
    EXPECT_EQ(rows[0].As<float>().size(), static_cast<size_t>(2 * n));
  }
}

TEST(BoundRowsTest, TheSameBytesMayBeABatchOfAnotherShape) {
  const Tensor bytes = Iota<float>({12, 2});
  BoundRows rows = Bound(LeafUse::kRead, {.allow_strides = true});
  for (const int64_t n : {2, 2, 3, 4}) {
    TensorDict batch({n, 12 / n});
    ASSERT_THAT(batch.Set("value", *bytes.ViewAs({n, 12 / n, 2})), IsOk());
    ASSERT_THAT(rows.Bind(batch), IsOk());
    EXPECT_THAT(rows[0].strides, ElementsAre(12 / n * 8, 8));
  }
}

TEST(BoundRowsTest, ABatchMayBeOneRowOrNone) {
  TensorDict one;
  ASSERT_THAT(one.Set("value", Iota<float>({2})), IsOk());
  TensorDict none({0});
  ASSERT_THAT(none.Set("value", Iota<float>({0, 2})), IsOk());
  for (const LeafUse use :
       {LeafUse::kRead, LeafUse::kUpdate, LeafUse::kWrite}) {
    BoundRows rows = Bound(use);
    ASSERT_THAT(rows.Bind(&one), IsOk());
    EXPECT_EQ(rows.rows(), 1);
    EXPECT_EQ(rows[0].As<float>().size(), 2u);
    ASSERT_THAT(rows.Bind(&none), IsOk());
    EXPECT_EQ(rows[0].width, 8);
    EXPECT_EQ(rows[0].As<float>().size(), 0u);
  }
}

// After an error nothing is bound, and nothing is taken for a batch without
// rows.
TEST(BoundRowsTest, BindsABatchWithoutRowsAfterAnError) {
  BoundRows rows = *BoundRows::Create(
      "Test", {{"value", DType::kInt64, {2}}, {"other", DType::kInt64, {}}});
  TensorDict batch({0});
  ASSERT_THAT(batch.Set("value", Iota<int64_t>({0, 2})), IsOk());
  EXPECT_FALSE(rows.Bind(batch).ok());
  ASSERT_THAT(batch.Set("other", Iota<int64_t>({0})), IsOk());
  ASSERT_THAT(rows.Bind(batch), IsOk());
  EXPECT_EQ(rows[0].dtype, DType::kInt64);
  EXPECT_EQ(rows[0].width, 16);
}

// Any mix of uses, holders and layouts: what is read is what was there, and no
// byte changes that somebody else holds.
TEST(BoundRowsTest, RandomBatchesKeepTheirValuesAndTheirHolders) {
  const Rng rng(5);
  for (uint64_t round = 0; round < 300; ++round) {
    const auto draw = [&](uint64_t i, int64_t n) {
      return rng.UniformInt(round, static_cast<uint32_t>(i), n);
    };
    TensorDict batch({4});
    std::vector<BoundRows::Leaf> leaves;
    std::vector<Tensor> held;
    std::vector<std::vector<float>> want;
    for (uint64_t k = 0; k < 5; ++k) {
      const std::string key =
          absl::StrCat(k % 2 == 0 ? "" : "next/", "leaf", k);
      Tensor tensor = Iota<float>({4, 3});
      for (int64_t i = 0; i < tensor.num_elements(); ++i) {
        tensor.data<float>()[i] += 100.0f * static_cast<float>(k + 1);
      }
      if (draw(4 * k, 3) == 0) tensor = *Iota<float>({4, 2, 3}).Select(1, 1);
      ASSERT_THAT(batch.Set(key, tensor), IsOk());
      Tensor copy = *tensor.Clone();
      want.emplace_back(copy.data<float>(), copy.data<float>() + 12);
      if (draw(4 * k + 1, 2) == 0) held.push_back(tensor);
      leaves.push_back({.key = key,
                        .shape = {3},
                        .use = static_cast<LeafUse>(draw(4 * k + 2, 3))});
    }
    std::vector<Tensor> held_before;
    for (const Tensor& tensor : held) held_before.push_back(*tensor.Clone());
    BoundRows rows = *BoundRows::Create("Test", leaves);
    ASSERT_THAT(rows.Bind(&batch), IsOk());
    for (size_t k = 0; k < leaves.size(); ++k) {
      if (leaves[k].use != LeafUse::kWrite) {
        EXPECT_EQ(rows[k].As<float>(), absl::MakeConstSpan(want[k]));
      }
      if (leaves[k].use == LeafUse::kRead) continue;
      for (float& v : rows[k].As<float>()) v = -1;
      EXPECT_THAT(*batch.Find(leaves[k].key)->Flat<float>(), Each(-1));
    }
    for (size_t i = 0; i < held.size(); ++i) {
      EXPECT_THAT(held[i], BitEqualTo(held_before[i]));
    }
  }
}

// --- Errors ------------------------------------------------------------------

TEST(BoundRowsTest, RefusesBadLeavesAndLeavesTheBatchAsItWas) {
  TensorDict batch = BatchOf(Iota<float>({3, 1}));
  const TensorDict before = batch;
  EXPECT_THAT(Bound(LeafUse::kUpdate).Bind(&batch),
              StatusIs(kInvalid, AllOf(HasSubstr("Test: \"value\""),
                                       HasSubstr("float32[3, 1]"),
                                       HasSubstr("float32[3, 2]"))));
  BoundRows missing = *BoundRows::Create(
      "Test", {{"new", DType::kFloat32, {}, LeafUse::kWrite},
               {"other", DType::kFloat32, {}, LeafUse::kRead}});
  EXPECT_THAT(missing.Bind(&batch),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("Test: "), HasSubstr("other"),
                             HasSubstr("value"))));
  EXPECT_THAT(batch, BitEqualTo(before));
}

TEST(BoundRowsTest, RefusesLeavesOnAnotherDevice) {
  FakeBackend::Install({});
  const Device device = Device::Fake();
  TensorDict batch = BatchOf(*Iota<float>({3, 2}).To(device));
  EXPECT_THAT(Bound(LeafUse::kRead).Bind(batch),
              StatusIs(kPrecondition, HasSubstr("want host memory")));
  BoundRows rows =
      Bound(LeafUse::kRead, {.memory = {device, MemoryKind::kDevice}});
  ASSERT_THAT(rows.Bind(batch), IsOk());
  EXPECT_EQ(rows[0].device, device);
}

TEST(BoundRowsTest, RefusesBadKeysAndBatchesThatMayOnlyBeRead) {
  EXPECT_THAT(BoundRows::Create("Test", {{.key = "a//b"}}).status(),
              StatusIs(kInvalid, HasSubstr("Test")));
  EXPECT_THAT(BoundRows::Create("Test", {{.key = "a"}, {.key = "a"}}).status(),
              StatusIs(kInvalid, HasSubstr("twice")));
  EXPECT_THAT(
      Bound(LeafUse::kWrite)
          .Bind(static_cast<const TensorDict&>(BatchOf(Iota<float>({3, 2})))),
      StatusIs(kPrecondition, HasSubstr("want one to write")));
}

}  // namespace
}  // namespace rill
