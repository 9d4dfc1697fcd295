// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/replay/client_log.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/state/saved_state.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Time kNow = absl::UnixEpoch();

std::shared_ptr<LoggedClient> Of(ClientLog& log, absl::string_view client,
                                 absl::string_view table = "table",
                                 absl::Time now = kNow) {
  auto one = log.Of(table, client, now);
  RILL_EXPECT_OK(one.status());
  return *std::move(one);
}

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
  LoggedClient& client = *Of(log, "a");
  Applied applied;
  for (const int64_t number : {1, 1, 2, 1, 2, 3}) {
    RILL_EXPECT_OK(applied.By(client, number));
  }
  EXPECT_THAT(applied.numbers, ElementsAre(1, 2, 3));
  EXPECT_EQ(client.position(), (ClientPosition{.newest = 3, .rows = 30}));
}

TEST(ClientLogTest, AGapIsRefusedUntilItIsFilled) {
  ClientLog log;
  LoggedClient& client = *Of(log, "a");
  Applied applied;
  RILL_EXPECT_OK(applied.By(client, 1));
  EXPECT_THAT(applied.By(client, 3), StatusIs(absl::StatusCode::kAborted));
  RILL_EXPECT_OK(applied.By(client, 2));
  RILL_EXPECT_OK(applied.By(client, 3));
  EXPECT_THAT(applied.numbers, ElementsAre(1, 2, 3));
}

TEST(ClientLogTest, AFinalErrorUsesTheNumberUpAndIsRepeated) {
  ClientLog log;
  LoggedClient& client = *Of(log, "a");
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
  LoggedClient& client = *Of(log, "a");
  Applied applied{.error = absl::ResourceExhaustedError("the disk is full")};
  EXPECT_THAT(applied.By(client, 1),
              StatusIs(absl::StatusCode::kResourceExhausted));
  applied.error = absl::OkStatus();
  RILL_EXPECT_OK(applied.By(client, 1));
  EXPECT_EQ(client.position(), (ClientPosition{.newest = 1, .rows = 10}));
}

TEST(ClientLogTest, AClientGoesOnBehindWhatAServerLost) {
  ClientLog log;
  LoggedClient& client = *Of(log, "a");
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
  RILL_EXPECT_OK(applied.By(*Of(log, "a"), 1));
  RILL_EXPECT_OK(applied.By(*Of(log, "b"), 1));
  RILL_EXPECT_OK(applied.By(*Of(log, "a", "other"), 1));
  EXPECT_THAT(applied.numbers, ElementsAre(1, 1, 1));
  EXPECT_EQ(log.Count("table"), 2);
  EXPECT_EQ(log.Count("other"), 1);
}

TEST(ClientLogTest, SourcesHaveNumbersOfTheProcess) {
  ClientLog log;
  LoggedClient& a = *Of(log, "a");
  LoggedClient& b = *Of(log, "b");
  EXPECT_EQ(a.LocalSource(0), 0);
  EXPECT_EQ(a.LocalSource(7), a.LocalSource(7));
  EXPECT_NE(a.LocalSource(7), a.LocalSource(8));
  EXPECT_NE(a.LocalSource(7), b.LocalSource(7));
}

TEST(ClientLogTest, ASavedLogGoesOn) {
  ClientLog log;
  Applied applied;
  RILL_EXPECT_OK(applied.By(*Of(log, "a"), 1));
  applied.error = absl::OutOfRangeError("no such lane");
  EXPECT_FALSE(applied.By(*Of(log, "a"), 2).ok());
  applied.error = absl::OkStatus();

  ClientLog loaded;
  RILL_ASSERT_OK_AND_ASSIGN(const SavedState state,
                            SavedState::Decode(log.Save().Encode()));
  RILL_ASSERT_OK(loaded.Load(state, kNow));
  LoggedClient& client = *Of(loaded, "a");
  EXPECT_EQ(client.position(), (ClientPosition{.newest = 2, .rows = 10}));
  EXPECT_THAT(applied.By(client, 2),
              StatusIs(absl::StatusCode::kOutOfRange, "no such lane"));
  RILL_EXPECT_OK(applied.By(client, 3));
}

TEST(ClientLogTest, AnotherStateIsRefusedAndChangesNothing) {
  ClientLog log;
  Applied applied;
  RILL_EXPECT_OK(applied.By(*Of(log, "a"), 1));
  EXPECT_THAT(log.Load(SavedState("RateLimiter", 1), kNow),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  SavedState client("LoggedClient", 1);
  client.Set("table", std::string("table"));
  client.Set("client", std::string("a"));
  client.Set("newest", int64_t{-1});
  client.Set("rows", int64_t{0});
  client.Set("lost", int64_t{0});
  SavedState state("ClientLog", 1);
  state.Set("clients", std::vector<SavedState>{client});
  EXPECT_THAT(log.Load(state, kNow), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_EQ(Of(log, "a")->position().newest, 1);
}

// Clients 0, 1, ... until there is no room, one a second.
void Fill(ClientLog& log) {
  for (size_t i = 0; i < ClientLog::kMostClients; ++i) {
    Of(log, absl::StrCat(i), "table", kNow + absl::Seconds(i));
  }
}

TEST(ClientLogTest, AFloodOfNamesCostsThoseWhoHaveOneNothing) {
  ClientLog log;
  Applied applied;
  for (size_t i = 0; i < ClientLog::kMostClients; ++i) {
    Of(log, absl::StrCat("flood ", i));
    if (i == 0) {
      RILL_EXPECT_OK(applied.By(*Of(log, "flood 0"), 1));
    }
  }
  EXPECT_THAT(log.Of("table", "new", kNow),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("65536 within 1h")));
  EXPECT_EQ(log.Count("table"), ClientLog::kMostClients);
  RILL_EXPECT_OK(applied.By(*Of(log, "flood 0"), 1));
  RILL_EXPECT_OK(applied.By(*Of(log, "flood 0"), 2));
  EXPECT_THAT(applied.numbers, ElementsAre(1, 2));
}

TEST(ClientLogTest, TheOneThatWasSilentForLongestMakesRoom) {
  ClientLog log;
  Fill(log);
  const absl::Time later = kNow + absl::Seconds(ClientLog::kMostClients);
  Applied applied;
  // 0 is used again, so that 1 is the oldest.
  RILL_EXPECT_OK(applied.By(*Of(log, "0", "table", later), 1));
  RILL_EXPECT_OK(applied.By(*Of(log, "new", "table", later), 1));
  EXPECT_EQ(log.Count("table"), ClientLog::kMostClients);
  EXPECT_EQ(Of(log, "0", "table", later)->position().newest, 1);
  // A client that was forgotten cannot be told from one that was lost.
  RILL_ASSERT_OK_AND_ASSIGN(const ClientPosition known,
                            log.Resume("table", "0", 5, 50, later));
  EXPECT_EQ(known.newest, 5);
  const auto expect_refused = [&](ClientLog& of, absl::Time now) {
    EXPECT_THAT(of.Resume("table", "1", 3, 30, now),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("begin as a new client")));
    RILL_EXPECT_OK(of.Resume("table", "2", 0, 0, now).status());
  };
  expect_refused(log, later);
  ClientLog loaded;
  RILL_ASSERT_OK(loaded.Load(log.Save(), later));
  expect_refused(loaded, later + ClientLog::kSilence);
}

TEST(ClientLogTest, NamesAndSourcesAreBounded) {
  ClientLog log;
  EXPECT_THAT(log.Of("table", std::string(257, 'a'), kNow),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(log.Of("table", "", kNow),
              StatusIs(absl::StatusCode::kInvalidArgument));
  LoggedClient& client = *Of(log, "a");
  const uint64_t first = client.LocalSource(1);
  const uint64_t last = client.LocalSource(5000);
  for (int64_t i = 2; i < 5000; ++i) client.LocalSource(i);
  EXPECT_EQ(client.LocalSource(5000), last);
  EXPECT_NE(client.LocalSource(1), first);
}

}  // namespace
}  // namespace rill
