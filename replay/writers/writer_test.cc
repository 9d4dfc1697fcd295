// SPDX-License-Identifier: Apache-2.0
// Behaviour of writers, and the statements about TorchRL's (W1 to W9).
#include "rill/replay/writers/writer.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/slots/generations.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;

absl::Status RunExample(std::shared_ptr<Storage> storage,
                        const TensorDict& steps) {
  const auto writer = MakeRoundRobinWriter();
  RILL_RETURN_IF_ERROR(writer->Attach(storage));
  RILL_RETURN_IF_ERROR(writer->Extend(steps).status());
  return absl::OkStatus();
}

TEST(WritersTest, Example) {
  const auto storage = MakeStorage(10);
  RILL_ASSERT_OK(RunExample(storage, NumberedSteps(1, 4)));
  EXPECT_EQ(storage->size(), 4);
}

std::vector<int64_t> ActionsOf(const Storage& storage) {
  std::vector<Slot> slots;
  for (Slot slot = 0; slot < storage.size(); ++slot) slots.push_back(slot);
  TensorDict rows;
  RILL_EXPECT_OK(storage.Read(slots, &rows));
  const int64_t* const actions = rows.Find("action")->data<int64_t>();
  return {actions, actions + slots.size()};
}

struct Attached {
  explicit Attached(int64_t capacity)
      : storage(MakeStorage(capacity)), writer(MakeRoundRobinWriter()) {
    RILL_EXPECT_OK(writer->Attach(storage));
    RILL_EXPECT_OK(storage->AddObserver(&generations));
  }
  ~Attached() { storage->RemoveObserver(&generations); }

  std::vector<int64_t> Generation() const {
    std::vector<int64_t> all;
    for (Slot slot = 0; slot < storage->capacity(); ++slot) {
      all.push_back(generations.Get(slot));
    }
    return all;
  }

  std::shared_ptr<Storage> storage;
  std::unique_ptr<Writer> writer;
  Generations generations;
};

TEST(WritersTest, W1_RowsGoRoundTheRing) {
  Attached buffer(5);
  RILL_ASSERT_OK(buffer.writer->Extend(NumberedSteps(1, 3)));
  EXPECT_THAT(ActionsOf(*buffer.storage), ElementsAre(0, 1, 2));
  RILL_ASSERT_OK(buffer.writer->Extend(NumberedSteps(1, 4, 3)));
  EXPECT_THAT(ActionsOf(*buffer.storage), ElementsAre(5, 6, 2, 3, 4));
  EXPECT_EQ(buffer.storage->size(), 5);
  EXPECT_EQ(buffer.storage->cursors()[0].written, 7);
}

TEST(WritersTest, W3_NoRowsMoveNothing) {
  Attached buffer(5);
  RILL_ASSERT_OK(buffer.writer->Extend(NumberedSteps(1, 3)));
  RILL_ASSERT_OK_AND_ASSIGN(const ExtendResult result,
                            buffer.writer->Extend(NumberedSteps(1, 0)));
  EXPECT_EQ(result.rows_written, 0);
  EXPECT_EQ(buffer.storage->cursors()[0].written, 3);
}

TEST(WritersTest, W5_W6_AFailedExtendLeavesEverythingAndNamesTheKeys) {
  Attached buffer(5);
  RILL_ASSERT_OK(buffer.writer->Extend(NumberedSteps(1, 3)));
  const std::vector<int64_t> before = buffer.Generation();
  TensorDict bad = NumberedSteps(1, 4, 3);
  RILL_ASSERT_OK(bad.Rename("action", "act"));
  EXPECT_THAT(buffer.writer->Extend(bad), IsInvalidArgument("action"));
  EXPECT_THAT(buffer.writer->Extend(TensorDict({1, 2})), IsInvalidArgument());
  EXPECT_THAT(ActionsOf(*buffer.storage), ElementsAre(0, 1, 2));
  EXPECT_EQ(buffer.storage->cursors()[0].written, 3);
  EXPECT_EQ(buffer.Generation(), before);
}

TEST(WritersTest, W8_AnEmptiedStorageStartsAnew) {
  Attached buffer(5);
  RILL_ASSERT_OK(buffer.writer->Extend(NumberedSteps(1, 7)));
  RILL_ASSERT_OK(buffer.storage->Clear());
  EXPECT_EQ(buffer.storage->size(), 0);
  EXPECT_EQ(buffer.storage->cursors()[0].written, 0);
  RILL_ASSERT_OK(buffer.writer->Extend(NumberedSteps(1, 2, 40)));
  EXPECT_THAT(ActionsOf(*buffer.storage), ElementsAre(40, 41));
}

TEST(WritersTest, W9_GenerationsCountWhatWasOverwritten) {
  Attached buffer(4);
  EXPECT_THAT(buffer.Generation(), ElementsAre(-1, -1, -1, -1));
  RILL_ASSERT_OK(buffer.writer->Extend(NumberedSteps(1, 3)));
  EXPECT_THAT(buffer.Generation(), ElementsAre(0, 0, 0, -1));
  RILL_ASSERT_OK(buffer.writer->Extend(NumberedSteps(1, 2, 3)));
  EXPECT_THAT(buffer.Generation(), ElementsAre(1, 0, 0, 0));
  RILL_ASSERT_OK(buffer.writer->WriteAt({2, 2}, *NumberedSteps(1, 2).Index(0)));
  EXPECT_EQ(buffer.generations.Get(2), 1);
  // Old handles are stale for good once the storage was emptied.
  const Draw old = {.slot = 1, .generation = 0};
  EXPECT_TRUE(buffer.generations.IsCurrent(old));
  RILL_ASSERT_OK(buffer.storage->Clear());
  EXPECT_FALSE(buffer.generations.IsCurrent(old));
  RILL_ASSERT_OK(buffer.writer->Extend(NumberedSteps(1, 4)));
  EXPECT_FALSE(buffer.generations.IsCurrent(old));
}

TEST(WritersTest, AnImmutableOneRefusesEveryWrite) {
  const auto storage = MakeStorage(5);
  RILL_ASSERT_OK(storage->Extend(NumberedSteps(1, 3)));
  const auto writer = MakeImmutableWriter();
  RILL_ASSERT_OK(writer->Attach(storage));
  EXPECT_THAT(writer->Extend(NumberedSteps(1, 1)),
              IsFailedPrecondition("data set"));
  EXPECT_THAT(writer->WriteAt({0}, *NumberedSteps(1, 1).Index(0)),
              IsFailedPrecondition("WriteAt"));
  EXPECT_THAT(ActionsOf(*storage), ElementsAre(0, 1, 2));
}

TEST(WritersTest, AWriterHasOneStorage) {
  for (const auto& make : {MakeRoundRobinWriter, MakeImmutableWriter}) {
    const auto writer = make();
    const auto starts = HasSubstr(std::string(writer->name()));
    EXPECT_THAT(writer->Extend(NumberedSteps(1, 1)),
                StatusIs(kFailedPrecondition, starts));
    EXPECT_THAT(writer->Attach(nullptr),
                StatusIs(absl::StatusCode::kInvalidArgument, starts));
    RILL_ASSERT_OK(writer->Attach(MakeStorage(3)));
    EXPECT_THAT(writer->Attach(MakeStorage(3)),
                StatusIs(kFailedPrecondition, starts));
  }
}

}  // namespace
}  // namespace rill
