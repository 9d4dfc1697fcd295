// SPDX-License-Identifier: Apache-2.0
// Save and Load of rows with ragged leaves.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/formats/file_tree.h"
#include "rill/formats/manifest.h"
#include "rill/formats/memmap_directory.h"
#include "rill/slots/slot.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/list/list_storage.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

// A row: id [1], tokens [n] of a dtype, next/words [n + 1, 2].
TensorDict Row(int64_t id, int64_t n, DType dtype = DType::kInt64) {
  TensorDict row;
  const auto set = [&](absl::string_view key, DType type, const Shape& shape) {
    auto tensor = Tensor::Zeros(type, shape);
    EXPECT_THAT(tensor, IsOk());
    for (int64_t i = 0; i < tensor->size_bytes(); ++i) {
      tensor->raw_data()[i] = static_cast<std::byte>(id + i);
    }
    RILL_EXPECT_OK(row.Set(key, *tensor));
  };
  set("id", DType::kInt64, {1});
  set("tokens", dtype, {n});
  set("next/words", DType::kInt32, {n + 1, 2});
  return row;
}

std::unique_ptr<ListStorage> Make(std::vector<std::string> ragged = {
                                      "tokens", "next/words"}) {
  return *ListStorage::Create(
      {.capacity = 10, .lanes = 2, .ragged_leaves = std::move(ragged)});
}

// Lane 0 has wrapped, lane 1 has two rows.
std::unique_ptr<ListStorage> MakeFilled(int64_t first_id = 0) {
  auto storage = Make();
  for (int64_t id = 0; id < 7; ++id) {
    RILL_EXPECT_OK(storage->ExtendRagged({Row(first_id + id, id % 4)}));
  }
  RILL_EXPECT_OK(storage->ExtendRagged(
      {Row(first_id + 8, 0), Row(first_id + 9, 11)}, {.first_lane = 1}));
  return storage;
}

LazyStack AllRows(const ListStorage& storage) {
  std::vector<Slot> live = {0, 1, 2, 3, 4, 5, 6};
  return *storage.ReadStack(live);
}

void ExpectSame(const ListStorage& got, const ListStorage& want) {
  EXPECT_EQ(got.cursors(), want.cursors());
  EXPECT_EQ(got.size(), want.size());
  RILL_EXPECT_OK(AllRows(got).CheckEqual(AllRows(want)));
}

TEST(ListStorageFilesTest, LoadBringsBackRowsOfEveryShape) {
  const std::string directory = FreshPath("list");
  const auto saved = MakeFilled();
  RILL_ASSERT_OK(saved->Save(directory));
  const auto fresh = Make();
  RILL_ASSERT_OK(fresh->Load(directory));
  ExpectSame(*fresh, *saved);
  const auto full = MakeFilled(50);
  RILL_ASSERT_OK(full->Load(directory));
  ExpectSame(*full, *saved);
  for (ListStorage* storage : {saved.get(), full.get()}) {
    RILL_ASSERT_OK(storage->ExtendRagged({Row(70, 5), Row(71, 0)}));
  }
  ExpectSame(*full, *saved);
}

TEST(ListStorageFilesTest, StoragesWithoutRowsAreSavedToo) {
  const std::string directory = FreshPath("list_empty");
  RILL_ASSERT_OK(Make()->Save(directory));
  const auto storage = MakeFilled();
  RILL_ASSERT_OK(storage->Load(directory));
  EXPECT_EQ(storage->size(), 0);
  // The spec is still known.
  EXPECT_THAT(storage->ExtendRagged({Row(1, 2, DType::kFloat32)}),
              IsInvalidArgument());
  RILL_EXPECT_OK(storage->ExtendRagged({Row(1, 2)}));
  RILL_ASSERT_OK(storage->Clear());
  RILL_ASSERT_OK(storage->Save(directory));
  const auto fresh = Make();
  RILL_ASSERT_OK(fresh->Load(directory));
  EXPECT_THAT(fresh->ExtendRagged({Row(1, 2, DType::kFloat32)}),
              IsInvalidArgument());
  RILL_EXPECT_OK(fresh->ExtendRagged({Row(1, 2)}));
}

TEST(ListStorageFilesTest, OtherStoragesRefuseRaggedLeaves) {
  const std::string directory = FreshPath("list_ragged");
  RILL_ASSERT_OK(MakeFilled()->Save(directory));
  RILL_ASSERT_OK_AND_ASSIGN(auto dense,
                            DenseStorage::Create({.capacity = 10, .lanes = 2}));
  const auto refused = IsFailedPrecondition("ragged");
  EXPECT_THAT(dense->Load(directory), refused);
  EXPECT_THAT(Make({})->Load(directory), refused);
  EXPECT_THAT(Make({"tokens"})->Load(directory), refused);
  EXPECT_THAT(Make({"tokens", "next/letters"})->Load(directory), refused);
  const auto floats = Make();
  RILL_ASSERT_OK(floats->ExtendRagged({Row(1, 2, DType::kFloat64)}));
  EXPECT_THAT(floats->Load(directory),
              IsFailedPrecondition("float64 and rank 1"));
  EXPECT_EQ(floats->size(), 1);
  RILL_ASSERT_OK(dense->Save(directory));
  EXPECT_THAT(Make()->Load(directory), refused);
}

TEST(ListStorageFilesTest, EveryDamagedFileIsFoundAndChangesNothing) {
  const std::string directory = FreshPath("list_damage");
  RILL_ASSERT_OK(MakeFilled()->Save(directory));
  const auto storage = MakeFilled(50);
  const auto before = MakeFilled(50);
  int damaged = 0;
  for (const std::string& name : formats_internal::ListFiles(directory)) {
    const std::string path = JoinPath(directory, name);
    RILL_ASSERT_OK_AND_ASSIGN(const std::string whole, ReadFile(path));
    std::string changed = whole;
    changed[changed.size() / 2] ^= 1;
    formats_internal::WriteInPlace(path, changed);
    EXPECT_THAT(storage->Load(directory), IsDataLoss()) << name;
    formats_internal::WriteInPlace(path, whole);
    ExpectSame(*storage, *before);
    ++damaged;
  }
  EXPECT_GE(damaged, 9);
}

// With checksums that fit, from a writer that is wrong.
TEST(ListStorageFilesTest, ShapesThatDoNotFitTheValuesAreDamage) {
  const std::string directory = FreshPath("list_shapes");
  RILL_ASSERT_OK(MakeFilled()->Save(directory));
  RILL_ASSERT_OK_AND_ASSIGN(const Manifest manifest,
                            ReadManifest(directory, "storage", 4));
  const std::string path =
      JoinPath(directory, "ragged/next/words/shapes.memmap");
  RILL_ASSERT_OK_AND_ASSIGN(const std::string whole, ReadFile(path));
  const auto storage = MakeFilled(50);
  const auto before = MakeFilled(50);
  for (const int64_t size : {int64_t{-1}, int64_t{4}, INT64_MAX}) {
    std::string changed = whole;
    std::memcpy(changed.data(), &size, sizeof(size));
    formats_internal::WriteInPlace(path, changed);
    RILL_ASSERT_OK(WriteManifest(manifest, directory));
    EXPECT_THAT(storage->Load(directory), IsDataLoss("next/words")) << size;
    ExpectSame(*storage, *before);
  }
}

TEST(ListStorageFilesTest, RaggedLeavesOfOtherRowsAreDamage) {
  const std::string directory = FreshPath("list_rows");
  const std::string other = FreshPath("list_other_rows");
  RILL_ASSERT_OK(MakeFilled()->Save(directory));
  const auto longer = MakeFilled();
  RILL_ASSERT_OK(longer->ExtendRagged({Row(10, 1)}, {.first_lane = 1}));
  RILL_ASSERT_OK(longer->Save(other));
  RILL_ASSERT_OK_AND_ASSIGN(const Manifest manifest,
                            ReadManifest(directory, "storage", 4));
  const std::string ragged = JoinPath(directory, "ragged");
  RILL_ASSERT_OK(RemoveAll(ragged));
  RILL_ASSERT_OK(formats_internal::CopyTree(JoinPath(other, "ragged"), ragged));
  RILL_ASSERT_OK(WriteManifest(manifest, directory));
  const auto storage = MakeFilled(50);
  EXPECT_THAT(storage->Load(directory), IsDataLoss("got 8 rows"));
  ExpectSame(*storage, *MakeFilled(50));
}

TEST(ListStorageFilesTest, FailedSavesLeaveTheOldDirectory) {
  const std::string directory = FreshPath("list_fails");
  const auto old = MakeFilled();
  RILL_ASSERT_OK(old->Save(directory));
  const auto storage = MakeFilled(50);
  for (const absl::string_view part : {"ragged", "rows", "rill.json"}) {
    ScopedFaultHook hook([part](absl::string_view, absl::string_view object) {
      return absl::StrContains(object, part)
                 ? absl::ResourceExhaustedError("disk full")
                 : absl::OkStatus();
    });
    EXPECT_THAT(storage->Save(directory), IsResourceExhausted()) << part;
  }
  RILL_ASSERT_OK(storage->Load(directory));
  ExpectSame(*storage, *old);
}

TEST(ListStorageFilesTest, ShapesThatNoStorageTakesAreDamage) {
  const std::string directory = FreshPath("list_room");
  const auto make = [] {
    return *ListStorage::Create({.capacity = 4, .ragged_leaves = {"w"}});
  };
  TensorDict row;
  RILL_ASSERT_OK(row.Set("id", *Tensor::Zeros(DType::kInt64, {1})));
  RILL_ASSERT_OK(row.Set("w", *Tensor::Zeros(DType::kInt64, {0, 0})));
  const auto saved = make();
  RILL_ASSERT_OK(saved->ExtendRagged({row, row}));
  RILL_ASSERT_OK(saved->Save(directory));
  RILL_ASSERT_OK_AND_ASSIGN(const Manifest manifest,
                            ReadManifest(directory, "storage", 4));
  const std::string ragged = JoinPath(directory, "ragged");
  // Rows that have no room in one, and rows of the largest rank there is.
  constexpr int64_t kHuge = int64_t{1} << 40;
  const auto shapes_of = [&](const std::vector<int64_t>& sizes) {
    TensorDict files;
    RILL_EXPECT_OK(files.Set("w/values", *Tensor::Zeros(DType::kInt64, {0})));
    RILL_EXPECT_OK(files.Set(
        "w/shapes", *Tensor::From<int64_t>(
                        sizes, {2, static_cast<int64_t>(sizes.size()) / 2})));
    RILL_EXPECT_OK(RemoveAll(ragged));
    RILL_EXPECT_OK(SaveMemmapDirectory(files, ragged));
    RILL_EXPECT_OK(WriteManifest(manifest, directory));
  };
  const auto storage = make();
  RILL_ASSERT_OK(storage->ExtendRagged({row}));
  shapes_of({kHuge, 0, 0, kHuge});
  EXPECT_THAT(storage->Load(directory), IsDataLoss("have room in"));
  shapes_of(std::vector<int64_t>(16, 0));
  EXPECT_THAT(storage->Load(directory), IsDataLoss("rank 8, want at most 7"));
  EXPECT_EQ(storage->size(), 1);
  shapes_of({3, 0, 0, 5});
  RILL_ASSERT_OK(storage->Load(directory));
  EXPECT_EQ(storage->size(), 2);
}

}  // namespace
}  // namespace rill
