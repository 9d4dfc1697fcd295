// SPDX-License-Identifier: Apache-2.0
#include "rill/tools/programs/inspect/watch.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/flow/decision_log.h"
#include "rill/recorder/flight_log.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage.h"
#include "rill/testing/status_matchers.h"
#include "rill/tools/programs/inspect/test_steps.h"

namespace rill::inspect {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using Kind = Decision::Kind;

std::string NewPath(absl::string_view name) {
  return ::testing::TempDir() + "/watch_" + std::string(name);
}

// A log that a job goes on writing.
class GrowingLog {
 public:
  explicit GrowingLog(std::string path) : path_(std::move(path)) {
    RILL_EXPECT_OK(encoder_.Begin({.program = "/bin/run"}, &log_));
    Add(0, Kind::kPart, {}, "weights");
  }

  void Add(int64_t ms, Kind kind, std::vector<int64_t> numbers,
           std::string text = "") {
    std::string bytes;
    RILL_EXPECT_OK(
        encoder_.Add({.decision = {.kind = kind, .numbers = std::move(numbers)},
                      .text = std::move(text),
                      .at = absl::Milliseconds(ms)},
                     &bytes));
    log_ += bytes;
    // As it lies on the disk: with space behind it.
    RILL_EXPECT_OK(WriteFileAtomically(path_, log_ + std::string(99, '\0')));
  }

 private:
  const std::string path_;
  FlightEncoder encoder_;
  std::string log_;
};

// One line of a text, without the spaces between name and value.
std::string FactOf(const std::vector<WatchSection>& sections,
                   absl::string_view name) {
  for (const WatchSection& section : sections) {
    for (const auto& [fact, value] : section.facts) {
      if (fact == name) return value;
    }
  }
  return "none";
}

TEST(WatchTest, RatesOfALogAreThoseSinceTheLastLook) {
  const std::string path = NewPath("log");
  GrowingLog log(path);
  Watch watch({path});
  log.Add(1000, Kind::kDraw, {32});
  EXPECT_EQ(FactOf(watch.Look(absl::UnixEpoch()), "draws"),
            "1, 1/s; rows 32/s");
  log.Add(1100, Kind::kDraw, {32});
  log.Add(1250, Kind::kDraw, {32});
  log.Add(1500, Kind::kPriorities, PriorityCounts::Of({0, 3, 3}).ToNumbers());
  const auto sections = watch.Look(absl::UnixEpoch());
  EXPECT_EQ(FactOf(sections, "draws"), "3, 4/s; rows 128/s");
  EXPECT_THAT(WatchText(sections),
              AllOf(HasSubstr("    0               #################### 1\n"),
                    HasSubstr("    from 2          #####")));
  // Nothing new.
  EXPECT_EQ(FactOf(watch.Look(absl::UnixEpoch()), "draws"), "3, 0/s; rows 0/s");
}

TEST(WatchTest, WaitsAndAgesAreThoseOfArrivals) {
  const std::string path = NewPath("waits");
  GrowingLog log(path);
  Watch watch({path});
  log.Add(100, Kind::kPublish, {7});
  log.Add(400, Kind::kArrival,
          Arrival{.steps = 2, .versions = {{1, 5}, {1, 7}}}.ToNumbers());
  log.Add(1000, Kind::kWrite, {0, 1, 2});
  const auto sections = watch.Look(absl::UnixEpoch());
  EXPECT_EQ(FactOf(sections, "wait for batches"), "30% of the time");
  EXPECT_EQ(FactOf(sections, "age of weights, versions"), "mean 1, 0 to 2");
  EXPECT_THAT(FactOf(sections, "events"), HasSubstr("4 in 1 s"));
}

TEST(WatchTest, AnotherLogUnderTheNameBeginsAnew) {
  const std::string path = NewPath("anew");
  Watch watch({path});
  {
    GrowingLog log(path);
    for (int i = 0; i < 9; ++i) log.Add(i, Kind::kDraw, {1});
    watch.Look(absl::UnixEpoch());
  }
  GrowingLog log(path);
  log.Add(1000, Kind::kDraw, {1});
  EXPECT_EQ(FactOf(watch.Look(absl::UnixEpoch()), "draws"), "1, 1/s; rows 1/s");
}

TEST(WatchTest, RowsAreWatchedWhileTheyAreWritten) {
  const std::string path = NewPath("rows");
  RILL_ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Storage> storage,
      MemmapStorage::Create({.directory = path, .capacity = 64, .lanes = 2}));
  RILL_ASSERT_OK(storage->Extend(MakeSteps(2, 10, 0, 5)).status());
  Watch watch({path});
  auto sections = watch.Look(absl::FromUnixSeconds(10));
  EXPECT_EQ(FactOf(sections, "live rows"), "20 of 64 in 2 lanes");
  EXPECT_EQ(FactOf(sections, "returns"), "mean 7.5, 5 to 10");
  EXPECT_EQ(FactOf(sections, "versions of rows"), "0 to 9");
  RILL_ASSERT_OK(storage->Extend(MakeSteps(2, 5, 10, 5)).status());
  sections = watch.Look(absl::FromUnixSeconds(12));
  EXPECT_EQ(FactOf(sections, "appended"), "30, 5/s");
  EXPECT_THAT(WatchHtml(sections, absl::Seconds(2)), HasSubstr("<polyline"));
}

TEST(WatchTest, OfARunTheLastRowIsShown) {
  const std::string path = NewPath("run");
  RILL_ASSERT_OK(CreateDirectories(path));
  RILL_ASSERT_OK(WriteFileAtomically(path + "/curve.csv",
                                     "frames,return,loss\n1,2,3\n4,,6\n"));
  const auto sections = Watch({path}).Look(absl::UnixEpoch());
  EXPECT_EQ(FactOf(sections, "frames"), "4");
  EXPECT_EQ(FactOf(sections, "return"), "none");
  EXPECT_EQ(FactOf(sections, "loss"), "6");
  RILL_ASSERT_OK(RemoveAll(path + "/curve.csv"));
  RILL_ASSERT_OK(CreateDirectories(path + "/curve.csv"));
  EXPECT_THAT(FactOf(Watch({path}).Look(absl::UnixEpoch()), "not readable now"),
              HasSubstr("curve.csv"));
}

TEST(WatchTest, ARowThatIsBeingWrittenIsNotShownYet) {
  const std::string rows = "frames,loss\n10,0.5\n20,0.25\n";
  for (size_t bytes = 0; bytes <= rows.size(); ++bytes) {
    const std::vector<WatchSection> sections = {
        RunSection("run", absl::string_view(rows).substr(0, bytes))};
    const bool has_first = bytes >= 19, has_second = bytes == rows.size();
    EXPECT_EQ(FactOf(sections, "frames"), has_second  ? "20"
                                          : has_first ? "10"
                                                      : "none")
        << bytes;
    EXPECT_EQ(FactOf(sections, "rows"), has_first ? "none" : "none yet");
  }
}

TEST(WatchTest, CellsMayBeQuoted) {
  const WatchSection section = RunSection(
      "run", "\"mean, of \"\"ten\"\"\",\"two\nlines\",last\r\n1,\"2,5\",3\r\n");
  EXPECT_THAT(section.facts,
              ElementsAre(Pair("mean, of \"ten\"", "1"),
                          Pair("two\nlines", "2,5"), Pair("last", "3")));
}

TEST(WatchTest, ColumnsHaveAnEnd) {
  const std::string many(10'000, ',');
  EXPECT_TRUE(RunSection("run", many + "\n" + many + "\n").facts.empty());
  std::string ones = "1";
  for (int i = 0; i < 10'000; ++i) ones += ",1";
  EXPECT_EQ(RunSection("run", ones + "\n" + ones + "\n").facts.size(),
            kMostColumns);
}

// There is a line in the terminal and a row in the page for each thing that
// --watch is for.
TEST(WatchTest, TerminalAndPageHaveAllThatIsWatched) {
  const std::string log_path = NewPath("all_log"), rows = NewPath("all_rows");
  GrowingLog log(log_path);
  log.Add(100, Kind::kPublish, {7});
  log.Add(400, Kind::kArrival,
          Arrival{.steps = 2, .versions = {{1, 5}, {1, 7}}}.ToNumbers());
  log.Add(500, Kind::kPriorities, PriorityCounts::Of({0, 3}).ToNumbers());
  RILL_ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Storage> storage,
      MemmapStorage::Create({.directory = rows, .capacity = 64, .lanes = 2}));
  Watch watch({log_path, rows});
  std::vector<WatchSection> sections;
  for (int look = 0; look < 2; ++look) {
    RILL_ASSERT_OK(storage->Extend(MakeSteps(2, 10, 10 * look, 5)).status());
    sections = watch.Look(absl::FromUnixSeconds(look));
  }
  const std::string text = WatchText(sections);
  const std::string page = WatchHtml(sections, absl::Seconds(1));
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{
           {"live rows", "40 of 64 in 2 lanes"},            // Sizes.
           {"appended", "40, 20/s"},                        // Rates.
           {"batches of workers", "1, 0/s"},                //
           {"returns", "mean 7.5, 5 to 10"},                //
           {"age, steps", "19"},                            // Ages.
           {"versions of rows", "0 to 19"},                 //
           {"age of weights, versions", "mean 1, 0 to 2"},  //
           {"wait for batches", "0% of the time"},          // Waits.
           {"new priorities", "1, 0/s; rows 0/s"}}) {
    EXPECT_THAT(text, HasSubstr(absl::StrFormat("  %-26s%s\n", name, value)));
    EXPECT_THAT(page, HasSubstr(absl::StrCat("<td>", name, "</td><td>", value,
                                             "</td>")));
  }
  EXPECT_THAT(text, HasSubstr("    from 2          ####"));
  EXPECT_THAT(page, HasSubstr("<td>from 2</td><td><div class=\"bar\" "
                              "style=\"width:400px\">"));
}

// Numbers that no run has.
TEST(WatchTest, NumbersAtTheEndsOfTheirRangeAreShown) {
  constexpr int64_t kMany = int64_t{1} << 48;
  FlightSummary summary;
  for (int i = 0; i < 300; ++i) {
    summary.Add({.decision = {.kind = Kind::kPriorities,
                              .numbers = {kMany, kMany, 128, kMany, kMany}}});
  }
  const std::vector<WatchSection> sections = {
      LogSection("log", summary, FlightSummary())};
  EXPECT_THAT(WatchHtml(sections, absl::Seconds(1)),
              AllOf(HasSubstr("width:400px"), Not(HasSubstr("width:-"))));
  EXPECT_THAT(WatchText(sections), HasSubstr("########## 18014398509481984\n"));
}

TEST(WatchTest, WhatIsNotThereYetSaysSo) {
  const std::string path = NewPath("later");
  Watch watch({path});
  EXPECT_THAT(FactOf(watch.Look(absl::UnixEpoch()), "not readable now"),
              HasSubstr("NOT_FOUND"));
  GrowingLog log(path);
  EXPECT_THAT(FactOf(watch.Look(absl::UnixEpoch()), "events"),
              HasSubstr("1 in"));
}

TEST(WatchTest, NamesFromFilesAreText) {
  const std::vector<WatchSection> sections = {
      {.title = "<b>\x1b[2J", .facts = {{"a&b", "\"c\"\n"}}}};
  EXPECT_THAT(WatchHtml(sections, absl::Seconds(1)),
              AllOf(HasSubstr("&lt;b&gt;\\x1b[2J"), HasSubstr("a&amp;b"),
                    HasSubstr("&quot;c&quot;"), Not(HasSubstr("<b>"))));
  EXPECT_THAT(WatchText(sections), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace rill::inspect
