// SPDX-License-Identifier: Apache-2.0
// Loads of saves that have many chunks: what they bring, the memory that they
// take beside it, and what they make of another save in the middle.
#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/formats/file_tree.h"
#include "rill/slots/slot.h"
#include "rill/storage/compressed/compressed_storage.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/ensemble/ensemble_storage.h"
#include "rill/storage/list/list_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/peak_memory.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

constexpr int64_t kLanes = 4;
constexpr int64_t kWidth = 1 << 14;

// From the first test on what is freed goes back at once: the allocator would
// keep some or not, by what the tests before have left of its heap.
[[maybe_unused]] const int kMapsBlocks = mallopt(M_MMAP_THRESHOLD, 64 << 10);

// Rows of noise and their numbers, from `first` on.
TensorDict Rows(int64_t lanes, int64_t steps, int64_t first) {
  TensorDict rows({lanes, steps});
  auto wide = *Tensor::Empty(DType::kUInt8, {lanes, steps, kWidth});
  auto number = *Tensor::Empty(DType::kInt64, {lanes, steps});
  auto noise = static_cast<uint64_t>(first);
  for (int64_t i = 0; i < wide.num_elements(); i += 8) {
    noise = noise * 6364136223846793005u + 1442695040888963407u;
    std::memcpy(wide.raw_data() + i, &noise, 8);
  }
  for (int64_t i = 0; i < lanes * steps; ++i) {
    number.data<int64_t>()[i] = first + i;
  }
  RILL_EXPECT_OK(rows.Set("wide", wide));
  RILL_EXPECT_OK(rows.Set("number", number));
  return rows;
}

struct Kind {
  const char* name;
  std::function<absl::StatusOr<std::unique_ptr<Storage>>(int64_t lane_capacity)>
      create;
};

absl::StatusOr<std::unique_ptr<Storage>> MakeDense(int64_t lane_capacity,
                                                   int64_t lanes = kLanes) {
  return DenseStorage::Create(
      {.capacity = lanes * lane_capacity, .lanes = lanes});
}

absl::StatusOr<std::unique_ptr<Storage>> MakeList(int64_t lane_capacity) {
  return ListStorage::Create(
      {.capacity = kLanes * lane_capacity, .lanes = kLanes});
}

absl::StatusOr<std::unique_ptr<Storage>> MakeCompressed(int64_t lane_capacity) {
  return CompressedStorage::Create(
      {.capacity = kLanes * lane_capacity, .lanes = kLanes, .block_rows = 7});
}

// Its members have one lane and three lanes.
absl::StatusOr<std::unique_ptr<Storage>> MakeEnsemble(int64_t lane_capacity) {
  std::vector<std::unique_ptr<Storage>> members;
  members.push_back(*MakeDense(lane_capacity, 1));
  members.push_back(*MakeDense(lane_capacity, kLanes - 1));
  return EnsembleStorage::Create(std::move(members));
}

std::vector<Slot> LiveSlots(const Storage& storage) {
  std::vector<Slot> slots;
  const Lanes& lanes = storage.lanes();
  for (int64_t lane = 0; lane < lanes.count; ++lane) {
    const int64_t end = storage.cursors()[lane].written;
    for (int64_t step = std::max<int64_t>(0, end - lanes.capacity); step < end;
         ++step) {
      slots.push_back(lanes.SlotOf(lane, step % lanes.capacity));
    }
  }
  return slots;
}

void ExpectSameRows(const Storage& got, const Storage& want) {
  ASSERT_EQ(got.cursors(), want.cursors());
  ASSERT_EQ(got.size(), want.size());
  TensorDict got_rows, want_rows;
  RILL_ASSERT_OK(got.Read(LiveSlots(want), &got_rows));
  RILL_ASSERT_OK(want.Read(LiveSlots(want), &want_rows));
  RILL_EXPECT_OK(got_rows.CheckEqual(want_rows));
}

class ChunkedLoadTest : public ::testing::TestWithParam<Kind> {};

TEST_P(ChunkedLoadTest, BringsTheRowsOfEveryChunk) {
  const std::string directory = FreshPath("chunked_load");
  for (const int64_t steps : {3, 333}) {
    RILL_ASSERT_OK_AND_ASSIGN(auto saved, MakeDense(160));
    // Lanes that are not as long as each other, one without rows.
    RILL_ASSERT_OK(saved->Extend(Rows(2, steps, 0)));
    RILL_ASSERT_OK(saved->Extend(Rows(2, 13, 5000), {.first_lane = 1}));
    RILL_ASSERT_OK(saved->Save(directory));
    EXPECT_GE(formats_internal::ListFiles(directory).size(),
              steps == 3 ? 3u : 10u);
    RILL_ASSERT_OK_AND_ASSIGN(auto loaded, GetParam().create(160));
    RILL_ASSERT_OK(loaded->Load(directory));
    ExpectSameRows(*loaded, *saved);
    for (const int64_t capacity : {37, 200}) {
      RILL_ASSERT_OK_AND_ASSIGN(auto want, MakeDense(capacity));
      RILL_ASSERT_OK_AND_ASSIGN(auto got, GetParam().create(capacity));
      for (Storage* const each : {want.get(), got.get()}) {
        RILL_ASSERT_OK(each->Load(directory, {.accept_other_capacity = true}));
        RILL_ASSERT_OK(each->Extend(Rows(kLanes, 5, 9000)));
      }
      EXPECT_EQ(got->cursors(), want->cursors());
      EXPECT_EQ(got->size(), want->size());
      TensorDict got_rows, want_rows;
      for (Slot slot = 0; slot < kLanes * capacity; ++slot) {
        if (!want->Read({slot}, &want_rows).ok()) continue;
        RILL_ASSERT_OK(got->Read({slot}, &got_rows));
        RILL_ASSERT_OK(got_rows.CheckEqual(want_rows));
      }
    }
  }
}

// Beside the rows that it makes a load has about a chunk in memory.
TEST_P(ChunkedLoadTest, TakesNoMemoryForAllRowsAtOnce) {
  const std::string directory = FreshPath("chunked_load_memory");
  constexpr int64_t kSteps = 640;
  constexpr int64_t kBytes = kLanes * kSteps * kWidth;  // 40 MiB.
  {
    RILL_ASSERT_OK_AND_ASSIGN(auto saved, MakeDense(kSteps));
    for (int64_t step = 0; step < kSteps; step += 64) {
      RILL_ASSERT_OK(saved->Extend(Rows(kLanes, 64, 1000 * step)));
    }
    RILL_ASSERT_OK(saved->Save(directory));
  }
  RILL_ASSERT_OK_AND_ASSIGN(auto loaded, GetParam().create(kSteps));
  malloc_trim(0);
  const int64_t before = AnonymousMemoryBytes();
  int64_t most = before;
  int64_t most_of_writes = before;  // An ensemble writes before it loads.
  {
    ScopedFaultHook hook([&](absl::string_view at, absl::string_view) {
      const int64_t now = AnonymousMemoryBytes();
      most = std::max(most, now);
      if (at == "file.sync" || at == "file.write") {
        most_of_writes = std::max(most_of_writes, now);
      }
      return absl::OkStatus();
    });
    RILL_ASSERT_OK(loaded->Load(directory));
  }
  most = std::max(most, AnonymousMemoryBytes());
  EXPECT_EQ(loaded->size(), kLanes * kSteps);
  EXPECT_GE(most - before, kBytes / 2);
  EXPECT_LT(most - before, kBytes + kBytes / 2);
  EXPECT_LT(most_of_writes - before, kBytes / 2);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ChunkedLoadTest,
                         ::testing::Values(Kind{"List", MakeList},
                                           Kind{"Compressed", MakeCompressed},
                                           Kind{"Ensemble", MakeEnsemble}),
                         [](const auto& info) { return info.param.name; });

// --- Another save in the middle ----------------------------------------------

// Calls `fn` at the fault point number `at` that a load comes to.
class CallAt {
 public:
  CallAt(int64_t at, std::function<void()> fn)
      : hook_([this, at, fn = std::move(fn)](absl::string_view,
                                             absl::string_view) {
          if (num_points_++ == at) fn();
          return absl::OkStatus();
        }) {}
  int64_t num_points() const { return num_points_; }

 private:
  int64_t num_points_ = 0;
  ScopedFaultHook hook_;
};

TEST(LoadBesideSavesTest, BringsOneOfTheSavesAndNoMix) {
  const std::string directory = FreshPath("load_race");
  const std::string again = FreshPath("load_race_again");
  std::vector<std::unique_ptr<Storage>> saved;
  for (const int64_t first : {0, 7000}) {
    RILL_ASSERT_OK_AND_ASSIGN(saved.emplace_back(), MakeDense(80));
    RILL_ASSERT_OK(saved.back()->Extend(Rows(kLanes, 80, first)));
  }
  const auto load = [&](int64_t at, Storage& loaded) {
    RILL_EXPECT_OK(saved[0]->Save(directory));
    const CallAt other(at, [&] { RILL_ASSERT_OK(saved[1]->Save(directory)); });
    RILL_EXPECT_OK(loaded.Load(directory)) << at;
    return other.num_points();
  };
  RILL_ASSERT_OK_AND_ASSIGN(auto alone, MakeDense(80));
  const int64_t num_points = load(-1, *alone);
  int64_t num_new = 0;
  for (int64_t at = 0; at < num_points; ++at) {
    if (at % 23 != 0 && at < num_points - 2) continue;  // Saves are slow.
    RILL_ASSERT_OK_AND_ASSIGN(auto loaded, MakeDense(80));
    load(at, *loaded);
    TensorDict rows;
    RILL_ASSERT_OK(loaded->Read({0}, &rows));
    const bool is_new = rows.Find("number")->data<int64_t>()[0] != 0;
    num_new += is_new ? 1 : 0;
    ExpectSameRows(*loaded, *saved[is_new ? 1 : 0]);
    // The next save links files that hold these rows too.
    RILL_ASSERT_OK(loaded->Save(again));
    RILL_ASSERT_OK_AND_ASSIGN(auto second, MakeDense(80));
    RILL_ASSERT_OK(second->Load(again)) << at;
    ExpectSameRows(*second, *loaded);
    if (HasFailure()) return;
  }
  EXPECT_GT(num_new, 1);
}

TEST(LoadBesideSavesTest, RaggedLeavesAreOfTheSameSave) {
  const std::string directory = FreshPath("load_race_ragged");
  const auto make = [] {
    return *ListStorage::Create({.capacity = 4, .ragged_leaves = {"tokens"}});
  };
  std::vector<std::unique_ptr<ListStorage>> saved;
  for (const int64_t id : {1, 2}) {
    TensorDict row;
    RILL_ASSERT_OK(row.Set("id", *Tensor::From<int64_t>({id}, {1})));
    RILL_ASSERT_OK(row.Set("tokens", *Tensor::From<int64_t>({id, id}, {2})));
    saved.push_back(make());
    RILL_ASSERT_OK(saved.back()->ExtendRagged({row, row, row}));
  }
  int64_t num_points = 1;
  for (int64_t at = 0; at < num_points; ++at) {
    RILL_ASSERT_OK(saved[0]->Save(directory));
    const auto loaded = make();
    {
      const CallAt other(at,
                         [&] { RILL_ASSERT_OK(saved[1]->Save(directory)); });
      RILL_ASSERT_OK(loaded->Load(directory)) << at;
      num_points = std::max(num_points, other.num_points());
    }
    TensorDict rows;
    RILL_ASSERT_OK(loaded->Read({0, 1, 2}, &rows));
    EXPECT_EQ(rows.Find("id")->data<int64_t>()[0],
              rows.Find("tokens")->data<int64_t>()[0])
        << at;
  }
  EXPECT_GT(num_points, 5);
}

TEST(LoadBesideSavesTest, SavesWithoutAnEndAreAnErrorThatChangesNothing) {
  const std::string directory = FreshPath("load_race_endless");
  RILL_ASSERT_OK_AND_ASSIGN(auto saved, MakeDense(20));
  RILL_ASSERT_OK(saved->Extend(Rows(kLanes, 20, 0)));
  RILL_ASSERT_OK(saved->Save(directory));
  RILL_ASSERT_OK_AND_ASSIGN(auto loaded, MakeDense(20));
  RILL_ASSERT_OK(loaded->Extend(Rows(kLanes, 3, 100)));
  RILL_ASSERT_OK_AND_ASSIGN(auto before, MakeDense(20));
  RILL_ASSERT_OK(before->Extend(Rows(kLanes, 3, 100)));
  {
    ScopedFaultHook hook([&](absl::string_view, absl::string_view path) {
      if (absl::EndsWith(path, "rill.json")) {
        RILL_EXPECT_OK(saved->Save(directory));
      }
      return absl::OkStatus();
    });
    EXPECT_THAT(loaded->Load(directory), IsDataLoss("another save"));
  }
  ExpectSameRows(*loaded, *before);
  RILL_EXPECT_OK(loaded->Load(directory));
}

}  // namespace
}  // namespace rill
