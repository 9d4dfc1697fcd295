// SPDX-License-Identifier: Apache-2.0
// The protocol under a scheduler that chooses before every access to an atomic
// who goes on.
#include "rill/flow/weights/snapshot_pins.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/step_scheduler.h"

namespace rill::weights_internal {
namespace {

using ::testing::SizeIs;

using ModelSlot = ReaderSlot<ScheduledAtomic<uint64_t>>;

// Snapshots of two words that are their version when nobody writes them.
struct Model {
  struct Buffer {
    int64_t head = 0;
    int64_t tail = 0;
  };
  Model(size_t num_readers, int64_t reads)
      : readers(num_readers), reads(reads), buffers(num_readers + 2) {}

  void Publish(int64_t version) {
    const uint64_t newest = current.load();
    const size_t free =
        FreeBuffer(absl::MakeSpan(readers), newest, absl::MakeSpan(is_used));
    ASSERT_LT(free, buffers.size());
    buffers[free].head = version;
    StepScheduler::Step();
    buffers[free].tail = version;
    current.store(SnapshotWord(version, free));
  }

  void Read(size_t reader) {
    uint64_t word = kNoSnapshot;
    int64_t before = 0;
    for (int64_t i = 0; i < reads; ++i) {
      if (current.load() != word) {
        word = PinNewest(current, &readers[reader].pin);
      }
      const int64_t version = VersionOf(word);
      const Buffer& buffer = buffers[BufferOf(word)];
      wrong += version < before || buffer.head != version;
      StepScheduler::Step();
      wrong += buffer.tail != version;
      before = version;
      versions.insert(version);
    }
  }

  // One order of all their steps.
  void Run(uint64_t seed, int64_t publishes) {
    std::vector<std::function<void()>> bodies = {[&] {
      for (int64_t version = 1; version <= publishes; ++version) {
        Publish(version);
      }
    }};
    for (size_t reader = 0; reader < readers.size(); ++reader) {
      bodies.push_back([this, reader] { Read(reader); });
    }
    StepScheduler(seed).Run(std::move(bodies));
  }

  std::vector<ModelSlot> readers;
  int64_t reads;
  std::vector<Buffer> buffers;
  std::vector<uint8_t> is_used = std::vector<uint8_t>(buffers.size());
  ScheduledAtomic<uint64_t> current{SnapshotWord(0, 0)};
  int64_t wrong = 0;
  std::set<int64_t> versions;
};

TEST(SnapshotPinsModelTest, NoOrderOfStepsChangesWhatAReaderReads) {
  for (uint64_t seed = 0; seed < 600; ++seed) {
    Model model(1 + seed % 3, /*reads=*/6);
    model.Run(seed, /*publishes=*/8);
    ASSERT_EQ(model.wrong, 0) << "seed " << seed;
  }
}

TEST(SnapshotPinsModelTest, ReadersMeetManySnapshots) {
  std::set<int64_t> versions;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Model model(2, /*reads=*/6);
    model.Run(seed, /*publishes=*/8);
    versions.merge(model.versions);
  }
  EXPECT_THAT(versions, SizeIs(9));
}

// A reader that stops between two steps for ever holds one buffer at most.
TEST(SnapshotPinsTest, ReadersThatStoppedLeaveTheWriterABuffer) {
  Model model(3, /*reads=*/0);
  model.readers[1].pin.store(kTaking);
  model.Publish(1);
  // It is given what was the newest then.
  EXPECT_EQ(model.readers[1].pin.load(), SnapshotWord(0, 0));
  for (size_t reader : {0, 2}) {
    PinNewest(model.current, &model.readers[reader].pin);
    model.Publish(static_cast<int64_t>(reader) + 2);
  }
  // Pins that somebody wrote over name no buffer.
  model.readers[2].pin.store(kNoSnapshot - 1000);
  for (int64_t version = 5; version < 9; ++version) {
    model.Publish(version);
    const uint64_t word = model.current.load();
    EXPECT_EQ(VersionOf(word), version);
    EXPECT_NE(BufferOf(word), BufferOf(model.readers[0].pin.load()));
    EXPECT_NE(BufferOf(word), BufferOf(model.readers[1].pin.load()));
  }
}

TEST(SnapshotPinsTest, TheFirstFreeBufferIsUsed) {
  Model model(3, /*reads=*/0);
  for (int64_t version = 1; version < 5; ++version) {
    model.Publish(version);
    EXPECT_EQ(BufferOf(model.current.load()), version % 2);
  }
}

}  // namespace
}  // namespace rill::weights_internal
