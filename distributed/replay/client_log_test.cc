// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/replay/client_log.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/state/saved_state.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;

// The operations that were carried out, in order; an error is that of the next
// operation.
struct Applied {
  std::vector<int64_t> numbers = {};
  absl::Status error = absl::OkStatus();

  absl::Status By(LoggedClient& client, int64_t number, int64_t rows = 10) {
    return client.Apply(number, rows, [&] {
      numbers.push_back(number);
      return error;
    });
  }
};

TEST(ClientLogTest, RepeatsAreCarriedOutOnce) {
  ClientLog log;
  LoggedClient& client = log.Of("table", "a");
  Applied applied;
  for (const int64_t number : {1, 1, 2, 1, 2, 3}) {
    RILL_EXPECT_OK(applied.By(client, number));
  }
  EXPECT_THAT(applied.numbers, ElementsAre(1, 2, 3));
  EXPECT_EQ(client.position(), (ClientPosition{.newest = 3, .rows = 30}));
}

TEST(ClientLogTest, AGapIsRefusedUntilItIsFilled) {
  ClientLog log;
  LoggedClient& client = log.Of("table", "a");
  Applied applied;
  RILL_EXPECT_OK(applied.By(client, 1));
  EXPECT_THAT(applied.By(client, 3), StatusIs(absl::StatusCode::kAborted));
  RILL_EXPECT_OK(applied.By(client, 2));
  RILL_EXPECT_OK(applied.By(client, 3));
  EXPECT_THAT(applied.numbers, ElementsAre(1, 2, 3));
}

TEST(ClientLogTest, AFinalErrorUsesTheNumberUpAndIsRepeated) {
  ClientLog log;
  LoggedClient& client = log.Of("table", "a");
  Applied applied{.error = absl::InvalidArgumentError("wrong leaves")};
  EXPECT_THAT(applied.By(client, 1),
              StatusIs(absl::StatusCode::kInvalidArgument, "wrong leaves"));
  applied.error = absl::OkStatus();
  EXPECT_THAT(applied.By(client, 1),
              StatusIs(absl::StatusCode::kInvalidArgument, "wrong leaves"));
  RILL_EXPECT_OK(applied.By(client, 2));
  EXPECT_EQ(client.position(), (ClientPosition{.newest = 2, .rows = 10}));
}

TEST(ClientLogTest, AnErrorOfTheMomentLeavesTheNumber) {
  ClientLog log;
  LoggedClient& client = log.Of("table", "a");
  Applied applied{.error = absl::ResourceExhaustedError("the disk is full")};
  EXPECT_THAT(applied.By(client, 1),
              StatusIs(absl::StatusCode::kResourceExhausted));
  applied.error = absl::OkStatus();
  RILL_EXPECT_OK(applied.By(client, 1));
  EXPECT_EQ(client.position(), (ClientPosition{.newest = 1, .rows = 10}));
}

TEST(ClientLogTest, AClientGoesOnBehindWhatAServerLost) {
  ClientLog log;
  LoggedClient& client = log.Of("table", "a");
  Applied applied;
  RILL_EXPECT_OK(applied.By(client, 1));
  const ClientPosition behind = {.newest = 5, .rows = 50, .lost = 40};
  EXPECT_EQ(client.Resume(5, 50), behind);
  // The greeting is repeated, and an older one comes late.
  EXPECT_EQ(client.Resume(5, 50), behind);
  EXPECT_EQ(client.Resume(2, 20), behind);
  RILL_EXPECT_OK(applied.By(client, 6));
  EXPECT_EQ(client.position(),
            (ClientPosition{.newest = 6, .rows = 60, .lost = 40}));
}

TEST(ClientLogTest, ClientsAndTablesAreApart) {
  ClientLog log;
  Applied applied;
  RILL_EXPECT_OK(applied.By(log.Of("table", "a"), 1));
  RILL_EXPECT_OK(applied.By(log.Of("table", "b"), 1));
  RILL_EXPECT_OK(applied.By(log.Of("other", "a"), 1));
  EXPECT_THAT(applied.numbers, ElementsAre(1, 1, 1));
  EXPECT_EQ(log.Count("table"), 2);
  EXPECT_EQ(log.Count("other"), 1);
}

TEST(ClientLogTest, SourcesHaveNumbersOfTheProcess) {
  ClientLog log;
  LoggedClient& a = log.Of("table", "a");
  LoggedClient& b = log.Of("table", "b");
  EXPECT_EQ(a.LocalSource(0), 0);
  EXPECT_EQ(a.LocalSource(7), a.LocalSource(7));
  EXPECT_NE(a.LocalSource(7), a.LocalSource(8));
  EXPECT_NE(a.LocalSource(7), b.LocalSource(7));
}

TEST(ClientLogTest, ASavedLogGoesOn) {
  ClientLog log;
  Applied applied;
  RILL_EXPECT_OK(applied.By(log.Of("table", "a"), 1));
  applied.error = absl::OutOfRangeError("no such lane");
  EXPECT_FALSE(applied.By(log.Of("table", "a"), 2).ok());
  applied.error = absl::OkStatus();

  ClientLog loaded;
  RILL_ASSERT_OK_AND_ASSIGN(const SavedState state,
                            SavedState::Decode(log.Save().Encode()));
  RILL_ASSERT_OK(loaded.Load(state));
  LoggedClient& client = loaded.Of("table", "a");
  EXPECT_EQ(client.position(), (ClientPosition{.newest = 2, .rows = 10}));
  EXPECT_THAT(applied.By(client, 2),
              StatusIs(absl::StatusCode::kOutOfRange, "no such lane"));
  RILL_EXPECT_OK(applied.By(client, 3));
}

TEST(ClientLogTest, AnotherStateIsRefusedAndChangesNothing) {
  ClientLog log;
  Applied applied;
  RILL_EXPECT_OK(applied.By(log.Of("table", "a"), 1));
  EXPECT_THAT(log.Load(SavedState("RateLimiter", 1)),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  SavedState client("LoggedClient", 1);
  client.Set("table", std::string("table"));
  client.Set("client", std::string("a"));
  client.Set("newest", int64_t{-1});
  client.Set("rows", int64_t{0});
  client.Set("lost", int64_t{0});
  SavedState state("ClientLog", 1);
  state.Set("clients", std::vector<SavedState>{client});
  EXPECT_THAT(log.Load(state), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_EQ(log.Of("table", "a").position().newest, 1);
}

}  // namespace
}  // namespace rill
