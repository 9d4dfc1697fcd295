// SPDX-License-Identifier: Apache-2.0
#include "rill/flow/weights/weight_store.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/tensordict/finite_check.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/allocation_counter.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kPage = 4096;

// A linear layer whose every element is `version`.
TensorDict Weights(int64_t version) {
  TensorDict weights;
  auto matrix = *Tensor::Empty(DType::kFloat64, {3, 5});
  std::fill_n(matrix.data<double>(), 15, version);
  RILL_EXPECT_OK(weights.Set("layer/weight", std::move(matrix)));
  RILL_EXPECT_OK(
      weights.Set("layer/bias", *Tensor::From<int64_t>({version}, {1})));
  RILL_EXPECT_OK(
      weights.Set("steps", *Tensor::From<int64_t>({version}, Shape())));
  return weights;
}

bool IsWhole(const WeightStore::Snapshot& snapshot) {
  bool is_whole = true;
  snapshot.weights.ForEachLeaf([&](absl::string_view, const Tensor& leaf) {
    for (int64_t i = 0; i < leaf.num_elements(); ++i) {
      is_whole &= leaf.dtype() == DType::kFloat64
                      ? leaf.data<double>()[i] == snapshot.version
                      : leaf.data<int64_t>()[i] == snapshot.version;
    }
  });
  return is_whole;
}

std::unique_ptr<WeightStore> Store(int64_t max_readers = 4) {
  return *WeightStore::Create(
      {.weights = Weights(0), .max_readers = max_readers});
}

absl::Status RunExample(const TensorDict& weights, const TensorDict& better) {
  RILL_ASSIGN_OR_RETURN(auto store, WeightStore::Create({.weights = weights}));
  RILL_ASSIGN_OR_RETURN(auto reader, store->OpenReader());  // Of a thread.
  RILL_ASSIGN_OR_RETURN(int64_t version, store->Publish(better));
  const WeightStore::Snapshot latest = reader->Latest();
  const float* bias = latest.weights.Find("bias")->data<float>();
  EXPECT_EQ(version, 1);
  EXPECT_EQ(latest.version, 1);
  EXPECT_EQ(*bias, 2.5f);
  return absl::OkStatus();
}

TEST(WeightStoreTest, Example) {
  TensorDict weights, better;
  RILL_ASSERT_OK(weights.Set("bias", *Tensor::From<float>({1.5f}, {1})));
  RILL_ASSERT_OK(better.Set("bias", *Tensor::From<float>({2.5f}, {1})));
  RILL_ASSERT_OK(RunExample(weights, better));
}

TEST(WeightStoreTest, WeightsThatAreNotFiniteAreNotPublishedWhereThatIsAsked) {
  for (const bool is_asked : {false, true}) {
    const ScopedFiniteCheck check(is_asked);
    TensorDict weights = *TensorDict::Create({}, {});
    RILL_ASSERT_OK(
        weights.Set("layer/w", *Tensor::Zeros(DType::kFloat32, {2, 3})));
    RILL_ASSERT_OK_AND_ASSIGN(
        const auto store,
        WeightStore::Create({.weights = weights, .max_readers = 1}));
    const int64_t before = store->version();
    weights.Find("layer/w")->data<float>()[4] = std::nanf("");
    const auto published = store->Publish(weights);
    EXPECT_EQ(published.ok(), !is_asked);
    EXPECT_EQ(store->version(), before + (is_asked ? 0 : 1));
    if (!is_asked) continue;
    EXPECT_THAT(published, IsInvalidArgument("WeightStore::Publish: "
                                             "\"layer/w\": got NaN or an "
                                             "infinity at [1, 1]"));
  }
}

TEST(WeightStoreTest, OtherShapesAreRefusedByBothAndWhatToDo) {
  TensorDict weights;
  RILL_ASSERT_OK(weights.Set("w", *Tensor::Zeros(DType::kFloat32, {2, 3})));
  RILL_ASSERT_OK_AND_ASSIGN(const auto store,
                            WeightStore::Create({.weights = weights}));
  RILL_ASSERT_OK(weights.Set("w", *Tensor::Zeros(DType::kFloat32, {2, 4})));
  EXPECT_THAT(store->Publish(weights),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       ::testing::AllOf(
                           HasSubstr("got float32[2, 4], want float32[2, 3]"),
                           HasSubstr("those of WeightStore::Create"))));
}

TEST(WeightStoreTest, VersionsCountUpFromTheFirst) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto store,
      WeightStore::Create({.weights = Weights(40), .version = 40}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto reader, store->OpenReader());
  EXPECT_EQ(store->version(), 40);
  EXPECT_EQ(reader->Latest().version, 40);
  EXPECT_TRUE(IsWhole(reader->Latest()));
  for (int64_t version = 41; version < 60; ++version) {
    EXPECT_THAT(store->Publish(Weights(version)), IsOkAndHolds(version));
    EXPECT_EQ(store->version(), version);
    EXPECT_EQ(reader->Latest().version, version);
    EXPECT_TRUE(IsWhole(reader->Latest()));
  }
}

TEST(WeightStoreTest, AVersionOfTheCallersIsAboveTheLatest) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto store,
      WeightStore::Create({.weights = Weights(4), .version = 4}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto reader, store->OpenReader());
  RILL_ASSERT_OK(store->PublishAs(9, Weights(9)));
  EXPECT_EQ(reader->Latest().version, 9);
  EXPECT_TRUE(IsWhole(reader->Latest()));
  for (const int64_t version :
       {int64_t{9}, int64_t{8}, int64_t{-1}, (int64_t{1} << 46) + 1}) {
    EXPECT_THAT(store->PublishAs(version, Weights(version)),
                IsInvalidArgument("want [10, 70368744177664]"));
  }
  EXPECT_EQ(reader->Latest().version, 9);
  EXPECT_THAT(store->Publish(Weights(10)), IsOkAndHolds(10));
}

TEST(WeightStoreTest, ASnapshotStaysUntilItsReaderAsksAgain) {
  const auto store = Store();
  std::vector<std::unique_ptr<WeightStore::Reader>> readers;
  std::vector<WeightStore::Snapshot> snapshots;
  for (int64_t i = 0; i < 4; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(auto reader, store->OpenReader());
    readers.push_back(std::move(reader));
    snapshots.push_back(readers.back()->Latest());
    RILL_ASSERT_OK(store->Publish(Weights(store->version() + 1)));
  }
  for (int64_t i = 0; i < 100; ++i) {
    RILL_ASSERT_OK(store->Publish(Weights(store->version() + 1)));
    for (int64_t reader = 0; reader < 4; ++reader) {
      ASSERT_EQ(snapshots[reader].version, reader);
      ASSERT_TRUE(IsWhole(snapshots[reader]));
    }
  }
  for (const auto& reader : readers) {
    EXPECT_EQ(reader->Latest().version, 104);
    EXPECT_TRUE(IsWhole(reader->Latest()));
  }
}

TEST(WeightStoreTest, LeavesKeepKeysAndShapesAndAreReadOnlyAndAligned) {
  TensorDict first({2});
  RILL_ASSERT_OK(first.Set("a/b", *Tensor::From<uint8_t>({1, 2}, {2, 1})));
  RILL_ASSERT_OK(first.Set("c", *Tensor::Zeros(DType::kBFloat16, {2, 0})));
  RILL_ASSERT_OK(first.Set("a/d", *Tensor::Zeros(DType::kInt16, {2, 3, 5})));
  RILL_ASSERT_OK_AND_ASSIGN(const auto store,
                            WeightStore::Create({.weights = first}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto reader, store->OpenReader());
  const WeightStore::Snapshot snapshot = reader->Latest();
  RILL_EXPECT_OK(snapshot.weights.CheckEqual(first));
  snapshot.weights.ForEachLeaf([](absl::string_view, const Tensor& leaf) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(leaf.raw_data()) % 64, 0);
    EXPECT_TRUE(leaf.is_contiguous());
    EXPECT_FALSE(leaf.is_writable());
  });
}

TEST(WeightStoreTest, ALeafOfAnotherLayoutInMemoryIsCopiedInOrder) {
  TensorDict weights;
  RILL_ASSERT_OK_AND_ASSIGN(
      const Tensor matrix,
      Tensor::From<int64_t>({1, 2, 3, 4, 5, 6}, {2, 3})->Permute({1, 0}));
  RILL_ASSERT_OK(weights.Set("w", matrix));
  RILL_ASSERT_OK_AND_ASSIGN(const auto store,
                            WeightStore::Create({.weights = weights}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto reader, store->OpenReader());
  EXPECT_THAT(reader->Latest().weights.Flat<int64_t>("w"),
              IsOkAndHolds(::testing::ElementsAre(1, 4, 2, 5, 3, 6)));
}

// The last leaf's copy fails when the others have been copied.
TEST(WeightStoreTest, WeightsOfADeviceAreCopiedOrLeaveTheLatest) {
  FakeBackend* const fake = FakeBackend::Install({});
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict weights,
                            Weights(0).To(Device::Fake()));
  RILL_ASSERT_OK_AND_ASSIGN(const auto store,
                            WeightStore::Create({.weights = weights}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto reader, store->OpenReader());
  EXPECT_TRUE(IsWhole(reader->Latest()));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict better,
                            Weights(1).To(Device::Fake()));
  fake->FailNext(FakeBackend::Operation::kCopy, 3,
                 absl::UnavailableError("a device"));
  EXPECT_THAT(store->Publish(better), IsUnavailable());
  EXPECT_EQ(reader->Latest().version, 0);
  EXPECT_TRUE(IsWhole(reader->Latest()));
  fake->Recover();
  EXPECT_THAT(store->Publish(better), IsOkAndHolds(1));
  EXPECT_EQ(reader->Latest().version, 1);
  EXPECT_TRUE(IsWhole(reader->Latest()));
}

TEST(WeightStoreTest, WeightsThatDoNotFitAreRefusedByNameAndChangeNothing) {
  const auto store = Store();
  RILL_ASSERT_OK_AND_ASSIGN(const auto reader, store->OpenReader());
  const auto refuse = [&](auto change, absl::string_view name) {
    TensorDict weights = Weights(1);
    RILL_ASSERT_OK(change(&weights));
    EXPECT_THAT(store->Publish(weights), IsInvalidArgument(name));
  };
  refuse([](TensorDict* w) { return w->Delete("steps"); }, "steps");
  refuse(
      [](TensorDict* w) {
        return w->Set("more", *Tensor::Zeros(DType::kBool, {}));
      },
      "more");
  refuse(
      [](TensorDict* w) {
        return w->Set("layer/bias", *Tensor::Zeros(DType::kInt64, {2}));
      },
      "layer/bias");
  refuse(
      [](TensorDict* w) {
        return w->Set("layer/bias", *Tensor::Zeros(DType::kFloat32, {1}));
      },
      "layer/bias");
  refuse([](TensorDict* w) { return w->Set("layer/note", NonTensor{"1"}); },
         "layer/note");
  refuse(
      [](TensorDict* w) {
        *w = TensorDict({1});
        return w->Set("steps", *Tensor::Zeros(DType::kInt64, {1}));
      },
      "batch shape");
  EXPECT_EQ(store->version(), 0);
  EXPECT_EQ(reader->Latest().version, 0);
  EXPECT_TRUE(IsWhole(reader->Latest()));
}

TEST(WeightStoreTest, APublishThatFailsLeavesTheLatest) {
  const auto store = Store();
  RILL_ASSERT_OK_AND_ASSIGN(const auto reader, store->OpenReader());
  RILL_ASSERT_OK(store->Publish(Weights(1)));
  {
    const ScopedFaultHook hook("weights.publish",
                               absl::UnavailableError("a device"));
    EXPECT_THAT(store->Publish(Weights(2)), IsUnavailable());
  }
  EXPECT_EQ(store->version(), 1);
  EXPECT_EQ(reader->Latest().version, 1);
  EXPECT_TRUE(IsWhole(reader->Latest()));
  EXPECT_THAT(store->Publish(Weights(2)), IsOkAndHolds(2));
  EXPECT_TRUE(IsWhole(reader->Latest()));
}

TEST(WeightStoreTest, OptionsAreChecked) {
  const auto refuse = [](const WeightStore::Options& options,
                         absl::string_view name) {
    EXPECT_THAT(WeightStore::Create(options), IsInvalidArgument(name));
  };
  refuse({.weights = Weights(0), .version = -1}, "version");
  refuse({.weights = Weights(0), .version = INT64_MAX}, "version");
  refuse({.weights = Weights(0), .max_readers = 0}, "max_readers");
  refuse({.weights = Weights(0), .max_readers = 4097}, "max_readers");
  refuse({}, "weights");
  TensorDict weights = Weights(0);
  RILL_ASSERT_OK(weights.Set("note", NonTensor{"1"}));
  refuse({.weights = weights}, "note");
}

TEST(WeightStoreTest, ReadersAreCountedAndMayOutliveTheStore) {
  auto store = Store(/*max_readers=*/2);
  RILL_ASSERT_OK_AND_ASSIGN(auto first, store->OpenReader());
  RILL_ASSERT_OK_AND_ASSIGN(auto second, store->OpenReader());
  EXPECT_THAT(store->OpenReader(), IsResourceExhausted("max_readers"));
  first.reset();
  RILL_ASSERT_OK_AND_ASSIGN(first, store->OpenReader());
  RILL_ASSERT_OK(store->Publish(Weights(1)));
  store.reset();
  EXPECT_EQ(first->Latest().version, 1);
  EXPECT_TRUE(IsWhole(first->Latest()));
  const TensorDict kept = second->Latest().weights;
  second.reset();
  EXPECT_EQ(*kept.Find("steps")->data<int64_t>(), 1);
}

TEST(WeightStoreTest, NeitherSideAllocatesInTheSteadyState) {
  const auto store = Store();
  RILL_ASSERT_OK_AND_ASSIGN(const auto reader, store->OpenReader());
  const TensorDict weights = Weights(1);
  const auto round = [&] {
    const bool is_published = store->Publish(weights).ok();
    return reader->Latest().version == store->version() && is_published;
  };
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(round());
  AllocationCounter counter;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(round());
  EXPECT_EQ(counter.count(), 0);
}

// Memory is taken only for buffers that were needed.
TEST(WeightStoreTest, ReadersThatKeepUpNeedThreeBuffers) {
  constexpr int64_t kBytes = 1 << 20;
  TensorDict weights;
  RILL_ASSERT_OK(weights.Set("w", *Tensor::Zeros(DType::kUInt8, {kBytes})));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto store,
      WeightStore::Create({.weights = weights, .max_readers = 1000}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto reader, store->OpenReader());
  for (int i = 0; i < 20; ++i) {
    RILL_ASSERT_OK(store->Publish(weights));
    reader->Latest();
  }
  struct stat info;
  ASSERT_EQ(fstat(store->fd(), &info), 0);
  EXPECT_LT(info.st_blocks * 512, 3 * kBytes + (1 << 18));
}

TEST(WeightStoreTest, SnapshotsAreWholeBesideAThreadThatPublishes) {
  const auto store = Store();
  std::atomic<bool> is_over = false;
  std::atomic<int64_t> wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      auto reader = store->OpenReader();
      int64_t before = 0;
      while (!is_over.load()) {
        const WeightStore::Snapshot snapshot = (*reader)->Latest();
        wrong += snapshot.version < before || !IsWhole(snapshot);
        before = snapshot.version;
      }
    });
  }
  // The writer's own tensors are reused, as a learner's are.
  TensorDict weights = Weights(0);
  for (int64_t version = 1; version < 20000; ++version) {
    std::fill_n(weights.Find("layer/weight")->data<double>(), 15, version);
    *weights.Find("layer/bias")->data<int64_t>() = version;
    *weights.Find("steps")->data<int64_t>() = version;
    wrong += !store->Publish(weights).ok();
  }
  is_over.store(true);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

// --- The memory of another process -------------------------------------------

absl::Status Attach(int fd) {
  return WeightStore::AttachReader(dup(fd)).status();
}

TEST(WeightStoreTest, AReaderMayAttachByTheDescriptorAlone) {
  const auto store = Store();
  RILL_ASSERT_OK(store->Publish(Weights(1)));
  RILL_ASSERT_OK_AND_ASSIGN(const auto reader,
                            WeightStore::AttachReader(dup(store->fd())));
  EXPECT_EQ(reader->Latest().version, 1);
  RILL_EXPECT_OK(reader->Latest().weights.CheckEqual(Weights(1)));
  RILL_ASSERT_OK(store->Publish(Weights(2)));
  RILL_EXPECT_OK(reader->Latest().weights.CheckEqual(Weights(2)));
  EXPECT_EQ(reader->Latest().version, 2);
}

TEST(WeightStoreTest, OnlyAStoresOwnDescriptorIsAttached) {
  EXPECT_THAT(Attach(-1), IsFailedPrecondition());
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  EXPECT_THAT(Attach(null), IsFailedPrecondition());
  close(null);
  const int empty = memfd_create("empty", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  EXPECT_THAT(Attach(empty), IsFailedPrecondition());  // Could be cut short.
  ASSERT_EQ(fcntl(empty, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_THAT(Attach(empty), IsFailedPrecondition());
  ASSERT_EQ(ftruncate(empty, 2 * kPage), 0);
  EXPECT_THAT(Attach(empty), IsFailedPrecondition());
  close(empty);
  const auto store = Store();
  EXPECT_NE(ftruncate(store->fd(), kPage), 0);
}

// Writes over the memory, as a process may that has gone mad.
void Overwrite(const WeightStore& store, int64_t at, int64_t number) {
  ASSERT_EQ(pwrite(store.fd(), &number, sizeof(number), at),
            static_cast<ssize_t>(sizeof(number)));
}

TEST(WeightStoreTest, AWriterOfAnythingCannotCrashWhoAttaches) {
  const auto store = Store();
  std::vector<int64_t> words(kPage / sizeof(int64_t));
  for (const int64_t begin : {int64_t{0}, kPage}) {  // Sizes; description.
    ASSERT_EQ(pread(store->fd(), words.data(), kPage, begin), kPage);
    for (int64_t i = 0; i < 40; ++i) {
      // The readers' slots and the latest word may be anything.
      if (begin == 0 && i >= 4) break;
      for (const int64_t number : {int64_t{-1}, int64_t{0}, INT64_MAX,
                                   INT64_MIN, words[i] + 1, words[i] << 8}) {
        if (number == words[i]) continue;
        Overwrite(*store, begin + 8 * i, number);
        const absl::Status status = Attach(store->fd());
        const bool has_room = begin == kPage && status.ok();
        EXPECT_TRUE(absl::IsDataLoss(status) || has_room ||
                    (i == 0 && absl::IsFailedPrecondition(status)))
            << begin << " " << i << " " << status;
      }
      Overwrite(*store, begin + 8 * i, words[i]);
    }
  }
  RILL_EXPECT_OK(Attach(store->fd()));
}

TEST(WeightStoreTest, ALargerDescriptionThanTheBuffersIsDataLoss) {
  const auto store = Store();
  std::string description(kPage, '\0');
  ASSERT_EQ(pread(store->fd(), description.data(), kPage, kPage), kPage);
  const int64_t shape[] = {2, 3, 5};  // Rank and sizes.
  const size_t at = description.find(
      std::string(reinterpret_cast<const char*>(shape), sizeof(shape)));
  ASSERT_NE(at, std::string::npos);
  Overwrite(*store, kPage + static_cast<int64_t>(at) + 8, 1 << 20);
  EXPECT_THAT(Attach(store->fd()), IsDataLoss("another size"));
}

TEST(WeightStoreTest, AWriterOfAnythingCannotCrashReadersAndTheWriter) {
  const auto store = Store();
  RILL_ASSERT_OK_AND_ASSIGN(const auto mine, store->OpenReader());
  RILL_ASSERT_OK_AND_ASSIGN(const auto other,
                            WeightStore::AttachReader(dup(store->fd())));
  for (const int64_t number : {int64_t{-1}, int64_t{-2}, int64_t{0xffff},
                               int64_t{6}, INT64_MAX, INT64_MIN}) {
    Overwrite(*store, 64, number);  // The latest snapshot's word.
    IsWhole(mine->Latest());
    IsWhole(other->Latest());
    for (int64_t slot = 0; slot < 4; ++slot) {
      Overwrite(*store, 128 + 64 * slot, number);
    }
    RILL_EXPECT_OK(store->Publish(Weights(store->version())).status());
  }
  // The writer's own count goes on.
  EXPECT_EQ(store->version(), 6);
}

}  // namespace
}  // namespace rill
