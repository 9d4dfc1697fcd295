// SPDX-License-Identifier: Apache-2.0
#include "rill/telemetry/csv_writer.h"

#include <cstdint>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(CsvWriterTest, Example) {
  const std::string run_dir = FreshDirectory();
  RILL_ASSERT_OK_AND_ASSIGN(
      auto csv, CsvWriter::Create(run_dir + "/curve.csv", {"steps", "loss"}));
  RILL_ASSERT_OK(csv->WriteRow({4096, 0.25}));
  EXPECT_THAT(ReadFile(csv->path()), IsOkAndHolds("steps,loss\n4096,0.25\n"));
}

TEST(CsvWriterTest, TextHasTenDigitsAndEmptyCellsForNan) {
  std::string csv;
  AppendCsvRow({1.0 / 3, kNan, 1e12, -0.5}, &csv);
  AppendCsvRow({kNan}, &csv);
  EXPECT_EQ(csv, "0.3333333333,,1e+12,-0.5\n\n");
}

TEST(CsvWriterTest, NamesWithSeparatorsAreQuoted) {
  std::string csv;
  AppendCsvHeader({"plain", "a,b", "say \"x\"", "two\nlines"}, &csv);
  EXPECT_EQ(csv, "plain,\"a,b\",\"say \"\"x\"\"\",\"two\nlines\"\n");
}

TEST(CsvWriterTest, RowOfAnotherWidthIsRefusedAndNothingIsWritten) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto csv, CsvWriter::Create(FreshDirectory() + "/curve.csv", {"a", "b"}));
  EXPECT_THAT(csv->WriteRow({1}),
              IsInvalidArgument("got 1, want one for each of 2 columns"));
  EXPECT_THAT(ReadFile(csv->path()), IsOkAndHolds("a,b\n"));
}

TEST(CsvWriterTest, ReopenCutsOffWhatCameLater) {
  const std::string path = FreshDirectory() + "/curve.csv";
  int64_t noted = 0;
  {
    RILL_ASSERT_OK_AND_ASSIGN(auto csv, CsvWriter::Create(path, {"a"}));
    RILL_ASSERT_OK(csv->WriteRow({1}));
    noted = csv->size_bytes();
    RILL_ASSERT_OK(csv->WriteRow({22222}));
  }
  RILL_ASSERT_OK_AND_ASSIGN(auto csv,
                            CsvWriter::Reopen(path, /*columns=*/1, noted));
  RILL_ASSERT_OK(csv->WriteRow({3}));
  EXPECT_THAT(ReadFile(path), IsOkAndHolds("a\n1\n3\n"));
  EXPECT_THAT(CsvWriter::Reopen(path, 1, 7), IsDataLoss("CsvWriter::Reopen: "));
}

TEST(CsvWriterTest, CreateRefusesAnExistingFileAndNoColumns) {
  const std::string path = FreshDirectory() + "/curve.csv";
  EXPECT_THAT(CsvWriter::Create(path, {}),
              IsInvalidArgument("want at least one"));
  RILL_ASSERT_OK_AND_ASSIGN(auto csv, CsvWriter::Create(path, {"a"}));
  EXPECT_THAT(CsvWriter::Create(path, {"b"}), IsFailedPrecondition(path));
  EXPECT_THAT(ReadFile(path), IsOkAndHolds("a\n"));
}

}  // namespace
}  // namespace rill
