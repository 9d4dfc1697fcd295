// SPDX-License-Identifier: Apache-2.0
// Rows whose shapes differ; the conformance test has the rest.
#include "rill/storage/list/list_storage.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/slots/live_slots.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/ragged_tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

Tensor Filled(DType dtype, const Shape& shape, int64_t first) {
  auto tensor = Tensor::Zeros(dtype, shape);
  EXPECT_THAT(tensor, IsOk());
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    if (dtype == DType::kInt64) {
      tensor->data<int64_t>()[i] = first + i;
    } else {
      tensor->data<float>()[i] = static_cast<float>(first + i) / 4;
    }
  }
  return *tensor;
}

void SetLeaf(TensorDict& dict, absl::string_view key, Tensor tensor) {
  RILL_EXPECT_OK(dict.Set(key, std::move(tensor)));
}

// A row: id [1], tokens [n], next/points [p, 3].
TensorDict Row(int64_t id, int64_t n, int64_t p) {
  TensorDict row;
  SetLeaf(row, "id", Filled(DType::kInt64, {1}, id));
  SetLeaf(row, "tokens", Filled(DType::kInt64, {n}, 100 * id));
  SetLeaf(row, "next/points", Filled(DType::kFloat32, {p, 3}, id));
  return row;
}

std::unique_ptr<ListStorage> Make(int64_t capacity, int64_t lanes = 1) {
  return *ListStorage::Create({.capacity = capacity,
                               .lanes = lanes,
                               .ragged_leaves = {"tokens", "next/points"}});
}

absl::StatusOr<LazyStack> StackOf(std::vector<TensorDict> rows) {
  return LazyStack::Create(std::move(rows));
}

TEST(ListStorageTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto storage,
      ListStorage::Create(
          {.capacity = 1 << 20, .ragged_leaves = {"tokens", "next/points"}}));
  const TensorDict first = Row(1, 2, 1);
  const TensorDict second = Row(2, 3, 1);
  RILL_ASSERT_OK(storage->ExtendRagged({first, second}).status());
  TensorDict rows;
  RILL_ASSERT_OK(storage->Read({0, 1}, &rows));
  RILL_ASSERT_OK_AND_ASSIGN(const auto tokens, rows.Flat<int64_t>("tokens"));
  EXPECT_THAT(tokens, ElementsAre(100, 101, 0, 200, 201, 202));
  RILL_ASSERT_OK_AND_ASSIGN(const auto mask, rows.Flat<bool>("mask/tokens"));
  EXPECT_THAT(mask, ElementsAre(true, true, false, true, true, true));
  RILL_ASSERT_OK_AND_ASSIGN(const LazyStack stack,
                            storage->ReadStack({1, 0, 1}));
  RILL_ASSERT_OK_AND_ASSIGN(const LazyStack want,
                            StackOf({second, first, second}));
  RILL_EXPECT_OK(stack.CheckEqual(want));
}

TEST(ListStorageTest, WrongOptionsAreNamed) {
  EXPECT_THAT(ListStorage::Create({}), IsInvalidArgument("capacity: got 0"));
  EXPECT_THAT(ListStorage::Create({.capacity = 4, .ragged_leaves = {"a", "a"}}),
              IsInvalidArgument("\"a\" twice"));
  EXPECT_THAT(ListStorage::Create({.capacity = 4, .ragged_leaves = {"a//b"}}),
              IsInvalidArgument("ragged_leaves"));
  EXPECT_THAT(ListStorage::Create({.capacity = 4, .mask_key = ""}),
              IsInvalidArgument("mask_key"));
  EXPECT_THAT(ListStorage::Create(
                  {.capacity = 4, .ragged_leaves = {"a/b"}, .mask_key = "a"}),
              IsInvalidArgument("mask_key"));
  TensorDictSpec spec;
  RILL_ASSERT_OK(spec.Set("a", LeafSpec::Unbounded(DType::kInt64, {2})));
  EXPECT_THAT(ListStorage::Create(
                  {.capacity = 4, .ragged_leaves = {"b"}, .spec = spec}),
              IsInvalidArgument("\"b\""));
  EXPECT_THAT(ListStorage::Create(
                  {.capacity = 4, .ragged_leaves = {"a"}, .spec = spec}),
              IsInvalidArgument("not ragged"));
}

// The expected rows of each slot.
class Oracle {
 public:
  explicit Oracle(const Lanes& lanes)
      : lanes_(lanes), rows_(lanes.num_slots()), written_(lanes.count) {}

  void Append(int64_t lane, const TensorDict& row) {
    rows_[lanes_.SlotOf(lane, written_[lane]++ % lanes_.capacity)] = row;
  }
  void Set(Slot slot, absl::string_view key, const Tensor& tensor) {
    SetLeaf(*rows_[slot], key, tensor);
  }
  void Clear() { *this = Oracle(lanes_); }

  std::vector<Slot> Live() const {
    std::vector<Slot> live;
    for (Slot slot = 0; slot < lanes_.num_slots(); ++slot) {
      if (rows_[slot].has_value()) live.push_back(slot);
    }
    return live;
  }
  // The storage gives these rows, as they are and padded.
  void Check(const ListStorage& storage, const std::vector<Slot>& slots) const {
    std::vector<TensorDict> rows;
    for (const Slot slot : slots) rows.push_back(*rows_[slot]);
    RILL_ASSERT_OK_AND_ASSIGN(const LazyStack want, StackOf(rows));
    RILL_ASSERT_OK_AND_ASSIGN(const LazyStack got, storage.ReadStack(slots));
    RILL_ASSERT_OK(got.CheckEqual(want));
    TensorDict padded;
    RILL_ASSERT_OK(storage.Read(slots, &padded));
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict all, Padded(rows));
    RILL_ASSERT_OK(padded.CheckEqual(all));
    const std::vector<std::string> keys = {"next/points", "id"};
    RILL_ASSERT_OK(storage.ReadLeaves(slots, keys, &padded));
    RILL_ASSERT_OK(all.Delete("tokens"));
    RILL_ASSERT_OK(all.Delete("mask/tokens"));
    RILL_ASSERT_OK(padded.CheckEqual(all));
  }

 private:
  static absl::StatusOr<TensorDict> Padded(
      const std::vector<TensorDict>& rows) {
    TensorDict all({static_cast<int64_t>(rows.size())});
    for (const std::string key : {"id", "tokens", "next/points"}) {
      std::vector<Tensor> leaves;
      for (const TensorDict& row : rows) leaves.push_back(*row.Find(key));
      auto padded = StackPadded(leaves);
      if (!padded.ok()) return padded.status();
      SetLeaf(all, key, padded->values);
      if (key != "id") SetLeaf(all, "mask/" + key, padded->mask);
    }
    return all;
  }

  Lanes lanes_;
  std::vector<std::optional<TensorDict>> rows_;
  std::vector<int64_t> written_;
};

TEST(ListStorageTest, RandomOperationsAgreeWithTheOracle) {
  for (const auto& [capacity, lanes] :
       {std::pair<int64_t, int64_t>{1, 1}, {12, 1}, {21, 3}}) {
    const Rng rng(static_cast<uint64_t>(capacity));
    const auto storage = Make(capacity, lanes);
    Oracle oracle(storage->lanes());
    LiveSlots live_slots;
    RILL_ASSERT_OK(storage->AddObserver(&live_slots));
    int64_t id = 0;
    for (uint64_t i = 0; i < 200; ++i) {
      uint32_t draw = 0;
      const auto below = [&](int64_t n) {
        return rng.UniformInt(i, draw++, n);
      };
      const std::vector<Slot> live = oracle.Live();
      const int64_t kind = below(20);
      if (kind < 10 || live.empty()) {
        const int64_t lane = below(lanes);
        std::vector<TensorDict> rows(1 + below(kind == 0 ? 3 * capacity : 4));
        for (TensorDict& row : rows) {
          row = Row(++id, below(6), below(4));
          oracle.Append(lane, row);
        }
        RILL_ASSERT_OK(storage->ExtendRagged(rows, {.first_lane = lane}));
      } else if (kind < 13) {  // A batch as elsewhere.
        const int64_t steps = 1 + below(4), n = below(6), p = below(4);
        std::vector<TensorDict> all;
        for (int64_t lane = 0; lane < lanes; ++lane) {
          std::vector<TensorDict> rows;
          for (int64_t k = 0; k < steps; ++k) {
            rows.push_back(Row(++id, n, p));
            oracle.Append(lane, rows.back());
          }
          RILL_ASSERT_OK_AND_ASSIGN(TensorDict one, Stack(rows));
          all.push_back(std::move(one));
        }
        RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, Stack(all));
        RILL_ASSERT_OK(storage->Extend(batch));
      } else if (kind < 19) {
        std::vector<Slot> slots;
        std::vector<TensorDict> rows;
        const int64_t n = below(6), p = below(4), count = 1 + below(4);
        for (int64_t k = 0; k < count; ++k) {
          slots.push_back(live[below(static_cast<int64_t>(live.size()))]);
          rows.push_back(Row(++id, n, p));
        }
        RILL_ASSERT_OK_AND_ASSIGN(const TensorDict all, Stack(rows));
        TensorDict patch(all.batch_shape());
        const int64_t which = 1 + below(7);
        const std::vector<std::string> keys = {"id", "tokens", "next/points"};
        for (size_t k = 0; k < keys.size(); ++k) {
          if ((which >> k & 1) == 0) continue;
          SetLeaf(patch, keys[k], *all.Find(keys[k]));
          for (size_t at = 0; at < slots.size(); ++at) {
            oracle.Set(slots[at], keys[k], *rows[at].Find(keys[k]));
          }
        }
        RILL_ASSERT_OK(storage->WriteAt(slots, patch));
      } else if (below(3) == 0) {
        RILL_ASSERT_OK(storage->Clear());
        oracle.Clear();
      }
      const std::vector<Slot> now = oracle.Live();
      ASSERT_EQ(storage->size(), static_cast<int64_t>(now.size()));
      ASSERT_EQ(live_slots.size(), storage->size());
      if (now.empty()) continue;
      std::vector<Slot> slots;
      for (int k = 0; k < 5; ++k) {
        slots.push_back(now[below(static_cast<int64_t>(now.size()))]);
      }
      oracle.Check(*storage, slots);
      if (i % 20 == 0) oracle.Check(*storage, now);
      if (HasFatalFailure()) return;
    }
    storage->RemoveObserver(&live_slots);
  }
}

TEST(ListStorageTest, RowsThatWereReadStayAndCannotBeWrittenTo) {
  const auto storage = Make(2);
  RILL_ASSERT_OK(storage->ExtendRagged({Row(1, 3, 0), Row(2, 0, 2)}));
  RILL_ASSERT_OK_AND_ASSIGN(const LazyStack stack, storage->ReadStack({0, 1}));
  RILL_ASSERT_OK(storage->ExtendRagged({Row(3, 1, 1), Row(4, 1, 1)}));
  RILL_ASSERT_OK_AND_ASSIGN(const LazyStack want,
                            StackOf({Row(1, 3, 0), Row(2, 0, 2)}));
  RILL_EXPECT_OK(stack.CheckEqual(want));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict row, stack.Member(0));
  EXPECT_FALSE(row.Find("tokens")->is_writable());
  EXPECT_FALSE(row.Find("id")->is_writable());
}

TEST(ListStorageTest, NoRowsAreReadAsNone) {
  const auto storage = Make(4);
  RILL_ASSERT_OK_AND_ASSIGN(const LazyStack none, storage->ReadStack({}));
  EXPECT_EQ(none.size(), 0);
  TensorDict rows;
  RILL_ASSERT_OK(storage->Read({}, &rows));
  EXPECT_EQ(rows.num_leaves(), 0);
  RILL_ASSERT_OK(storage->ExtendRagged({Row(1, 3, 2)}));
  RILL_ASSERT_OK(storage->Read({}, &rows));
  EXPECT_EQ(rows.num_leaves(), 5);
  EXPECT_EQ(rows.batch_shape(), Shape({0}));
  EXPECT_THAT(storage->ReadStack({1}), IsOutOfRange());
}

TEST(ListStorageTest, SpecAndMemoryTellWhatRowsTake) {
  const auto storage = Make(8);
  const auto memory = [&] { return storage->MemoryUsage().memory; };
  RILL_ASSERT_OK(storage->ExtendRagged({Row(1, 1, 5), Row(2, 7, 0)}));
  const TensorDictSpec spec = storage->spec();
  EXPECT_EQ(spec.Find("tokens")->shape, Shape({7}));
  EXPECT_EQ(spec.Find("next/points")->shape, Shape({5, 3}));
  EXPECT_EQ(spec.Find("id")->shape, Shape({1}));
  EXPECT_EQ(storage->MemoryUsage().row, 8 + 7 * 8 + 15 * 4);
  const int64_t small = memory();
  RILL_ASSERT_OK(storage->ExtendRagged({Row(3, 10000, 0)}));
  EXPECT_GE(memory() - small, 80000);
  EXPECT_LT(memory() - small, 81000);
  EXPECT_GE(storage->MemoryUsage().full, 8 * 80000);
  for (int64_t id = 4; id <= 11; ++id) {
    RILL_ASSERT_OK(storage->ExtendRagged({Row(id, 1, 0)}));
  }
  EXPECT_LT(memory(), 8 * 1000);  // The large one has gone.
}

TEST(ListStorageTest, RowsThatDoNotFitChangeNothing) {
  const auto storage = Make(8);
  const auto refused = [](const auto&... words) {
    return StatusIs(kInvalidArgument, AllOf(HasSubstr(std::string(words))...));
  };
  TensorDict bad = Row(1, 2, 3);
  SetLeaf(bad, "mask/id", Filled(DType::kInt64, {1}, 0));
  EXPECT_THAT(storage->ExtendRagged({bad}), refused("mask_key", "mask/id"));
  EXPECT_TRUE(storage->spec().empty());
  TensorDict ragged_only = Row(1, 2, 3);
  RILL_ASSERT_OK(ragged_only.Delete("id"));
  EXPECT_THAT(storage->ExtendRagged({ragged_only}), refused("keys: got none"));

  RILL_ASSERT_OK(storage->ExtendRagged({Row(1, 2, 3), Row(2, 0, 1)}));
  Oracle oracle(storage->lanes());
  oracle.Append(0, Row(1, 2, 3));
  oracle.Append(0, Row(2, 0, 1));
  std::vector<std::pair<TensorDict, std::string>> bads;
  const auto add = [&](std::string named) {
    bads.push_back({Row(5, 1, 1), std::move(named)});
    return &bads.back().first;
  };
  SetLeaf(*add("\"tokens\" of row 1: got float32[2], want int64 of rank 1"),
          "tokens", Filled(DType::kFloat32, {2}, 0));
  SetLeaf(*add("\"next/points\" of row 1: got float32[2], want float32 of"),
          "next/points", Filled(DType::kFloat32, {2}, 0));
  SetLeaf(*add("id"), "id", Filled(DType::kInt64, {2}, 0));
  SetLeaf(*add("extra"), "extra", Filled(DType::kInt64, {2}, 0));
  RILL_ASSERT_OK(add("no tensor \"tokens\"")->Delete("tokens"));
  RILL_ASSERT_OK(add("id")->Delete("id"));
  bads.push_back({TensorDict({1}), "batch shape of row 1: got [1], want []"});
  for (const auto& [row, named] : bads) {
    EXPECT_THAT(storage->ExtendRagged({Row(4, 1, 1), row}), refused(named));
    oracle.Check(*storage, {0, 1});
  }
  TensorDict patch({2});
  SetLeaf(patch, "tokens", Filled(DType::kInt64, {2, 1, 1}, 0));
  EXPECT_THAT(storage->WriteAt({0, 1}, patch), refused("\"tokens\" of row 0"));
  EXPECT_THAT(storage->WriteAt({0, 1}, TensorDict({2})), refused("keys"));
  TensorDict dead({2});
  SetLeaf(dead, "tokens", Filled(DType::kInt64, {2, 4}, 0));
  EXPECT_THAT(storage->WriteAt({0, 2}, dead), IsOutOfRange());
  TensorDict out;
  EXPECT_THAT(storage->ReadLeaves({0}, {"token"}, &out),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("\"token\""), HasSubstr("tokens"),
                             HasSubstr("id"))));
  EXPECT_THAT(storage->ReadLeaves({0}, {"tokens", "tokens"}, &out),
              refused("twice"));
  oracle.Check(*storage, {0, 1});
  EXPECT_EQ(storage->cursors()[0].written, 2);
}

TEST(ListStorageTest, SpecThatIsGivenFixesDtypesAndRanks) {
  TensorDictSpec spec;
  RILL_ASSERT_OK(spec.Set("id", LeafSpec::Unbounded(DType::kInt64, {1})));
  RILL_ASSERT_OK(spec.Set("tokens", LeafSpec::Unbounded(DType::kInt64, {9})));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto storage,
      ListStorage::Create(
          {.capacity = 4, .ragged_leaves = {"tokens"}, .spec = spec}));
  EXPECT_EQ(storage->spec().leaves().size(), 2u);
  TensorDict row;
  SetLeaf(row, "id", Filled(DType::kInt64, {1}, 0));
  SetLeaf(row, "tokens", Filled(DType::kFloat32, {2}, 0));
  EXPECT_THAT(storage->ExtendRagged({row}),
              IsInvalidArgument("want int64 of rank 1"));
  SetLeaf(row, "tokens", Filled(DType::kInt64, {2}, 0));
  RILL_EXPECT_OK(storage->ExtendRagged({row}));
}

// A row: id [1], w [a, b].
TensorDict Wide(int64_t id, int64_t a, int64_t b) {
  TensorDict row;
  SetLeaf(row, "id", Filled(DType::kInt64, {1}, id));
  SetLeaf(row, "w", *Tensor::Zeros(DType::kInt64, {a, b}));
  return row;
}

TEST(ListStorageTest, RowsThatNoPaddedRowCanHoldAreRefused) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto storage,
      ListStorage::Create({.capacity = 4, .ragged_leaves = {"w"}}));
  const auto refused =
      StatusIs(kInvalidArgument,
               AllOf(HasSubstr("leaf \"w\""), HasSubstr("have room in")));
  // In the first write, too, of which nothing is kept.
  EXPECT_THAT(storage->ExtendRagged({Wide(1, kHuge, 0), Wide(2, 0, kHuge)}),
              refused);
  EXPECT_TRUE(storage->spec().empty());
  RILL_ASSERT_OK(storage->ExtendRagged({Wide(1, kHuge, 0), Wide(2, 2, 3)}));
  EXPECT_EQ(storage->MemoryUsage().row, 8 + 3 * 8 * kHuge);
  EXPECT_THAT(storage->ExtendRagged({Wide(3, 0, kHuge)}), refused);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch,
                            Stack(std::vector<TensorDict>{Wide(4, 0, kHuge)}));
  EXPECT_THAT(storage->Extend(batch), refused);
  EXPECT_THAT(storage->WriteAt({1}, batch), refused);
  EXPECT_EQ(storage->size(), 2);
  EXPECT_EQ(storage->MemoryUsage().row, 8 + 3 * 8 * kHuge);
  TensorDict rows;
  RILL_EXPECT_OK(storage->Read({0}, &rows));
  RILL_EXPECT_OK(storage->Read({1}, &rows));
  EXPECT_FALSE(storage->Read({0, 1}, &rows).ok());
}

// Whether writes in place were told as new rows.
class Replacements final : public WriteObserver {
 public:
  void OnAttach(const Lanes&, absl::Span<const Cursor>) override {}
  void OnRetire(const WriteEvent&) override {}
  void OnWrite(const WriteEvent& event) override {
    if (!event.is_append) told_.push_back(event.is_replacement);
  }
  void OnClear() override {}
  const std::vector<bool>& told() const { return told_; }

 private:
  std::vector<bool> told_;
};

TEST(ListStorageTest, OnlyAWriteOfAllLeavesMakesOtherRows) {
  const auto storage = Make(4);
  RILL_ASSERT_OK(storage->ExtendRagged({Row(1, 2, 3), Row(2, 0, 1)}));
  Replacements replacements;
  RILL_ASSERT_OK(storage->AddObserver(&replacements));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict all,
                            Stack(std::vector<TensorDict>{Row(3, 1, 1)}));
  TensorDict even = all;
  RILL_ASSERT_OK(even.Delete("tokens"));
  TensorDict part = even;
  RILL_ASSERT_OK(even.Delete("next"));
  TensorDict ragged = all;
  RILL_ASSERT_OK(ragged.Delete("id"));
  for (const TensorDict& rows : {even, part, ragged, all}) {
    RILL_ASSERT_OK(storage->WriteAt({1}, rows));
  }
  RILL_ASSERT_OK(storage->Patch({1}, all));
  EXPECT_THAT(replacements.told(),
              ElementsAre(false, false, false, true, false));
  storage->RemoveObserver(&replacements);
  // Without ragged leaves a write of all even leaves writes all.
  RILL_ASSERT_OK_AND_ASSIGN(const auto plain,
                            ListStorage::Create({.capacity = 4}));
  RILL_ASSERT_OK(plain->Extend(all));
  Replacements others;
  RILL_ASSERT_OK(plain->AddObserver(&others));
  RILL_ASSERT_OK(plain->WriteAt({0}, all));
  EXPECT_THAT(others.told(), ElementsAre(true));
  plain->RemoveObserver(&others);
}

TEST(ListStorageTest, MasksStandWhereNoLeafIsOnTheWay) {
  const auto create = [](std::vector<std::string> ragged, std::string mask_key,
                         TensorDictSpec spec = {}) {
    return ListStorage::Create({.capacity = 4,
                                .ragged_leaves = std::move(ragged),
                                .mask_key = std::move(mask_key),
                                .spec = std::move(spec)});
  };
  EXPECT_THAT(create({"a"}, "a"), IsInvalidArgument("mask_key"));
  EXPECT_THAT(create({"a"}, "a/mask"),
              IsInvalidArgument("below the leaf \"a\""));
  EXPECT_THAT(create({"a/b", "c"}, "a"), IsInvalidArgument("mask_key"));
  EXPECT_THAT(create({"b", "b/c"}, "mask"),
              IsInvalidArgument("\"b\" above \"b/c\""));
  RILL_EXPECT_OK(create({"a"}, "a_mask"));
  TensorDictSpec spec;
  RILL_ASSERT_OK(spec.Set("a", LeafSpec::Unbounded(DType::kInt64, {2})));
  RILL_ASSERT_OK(spec.Set("id", LeafSpec::Unbounded(DType::kInt64, {1})));
  EXPECT_THAT(create({"a"}, "id/mask", spec), IsInvalidArgument("leaf \"id\""));
  // The same, of rows that come without a spec.
  RILL_ASSERT_OK_AND_ASSIGN(const auto storage, create({"tokens"}, "id/mask"));
  EXPECT_THAT(storage->ExtendRagged({Row(1, 2, 3)}),
              IsInvalidArgument("mask_key \"id/mask\""));
  EXPECT_TRUE(storage->spec().empty());
}

TEST(ListStorageTest, RaggedLeavesLeaveADimensionForTheBatch) {
  const Shape largest = {1, 1, 2, 1, 1, 1, 1, 1};
  ASSERT_EQ(largest.rank(), Shape::kMaxRank);
  const auto refused = [](absl::string_view what) {
    return StatusIs(kInvalidArgument, AllOf(HasSubstr(std::string(what)),
                                            HasSubstr("at most 7")));
  };
  TensorDictSpec spec;
  RILL_ASSERT_OK(spec.Set("id", LeafSpec::Unbounded(DType::kInt64, {1})));
  RILL_ASSERT_OK(
      spec.Set("tokens", LeafSpec::Unbounded(DType::kInt64, largest)));
  EXPECT_THAT(ListStorage::Create(
                  {.capacity = 4, .ragged_leaves = {"tokens"}, .spec = spec}),
              refused("Options::spec"));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto storage,
      ListStorage::Create({.capacity = 4, .ragged_leaves = {"tokens"}}));
  TensorDict row;
  SetLeaf(row, "id", Filled(DType::kInt64, {1}, 0));
  SetLeaf(row, "tokens", Filled(DType::kInt64, largest, 0));
  EXPECT_THAT(storage->ExtendRagged({row}), refused("\"tokens\""));
  EXPECT_TRUE(storage->spec().empty());
  SetLeaf(row, "tokens", Filled(DType::kInt64, largest.Prefix(7), 0));
  RILL_ASSERT_OK(storage->ExtendRagged({row, row}));
  TensorDict rows;
  RILL_EXPECT_OK(storage->Read({0, 1}, &rows));
}

}  // namespace
}  // namespace rill
