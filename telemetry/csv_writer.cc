// SPDX-License-Identifier: Apache-2.0
#include "rill/telemetry/csv_writer.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/telemetry/append_file.h"

namespace rill {
namespace {

using ::rill::telemetry_internal::AppendFile;

constexpr char kWho[] = "CsvWriter";

}  // namespace

void AppendCsvHeader(absl::Span<const absl::string_view> columns,
                     std::string* csv) {
  for (size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) *csv += ',';
    // RFC 4180: quoted where a reader would split it, with quotes doubled.
    if (columns[i].find_first_of(",\"\r\n") == absl::string_view::npos) {
      absl::StrAppend(csv, columns[i]);
    } else {
      absl::StrAppend(csv, "\"",
                      absl::StrReplaceAll(columns[i], {{"\"", "\"\""}}), "\"");
    }
  }
  *csv += '\n';
}

void AppendCsvRow(absl::Span<const double> values, std::string* csv) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) *csv += ',';
    // The comma is there: an empty cell.
    if (std::isnan(values[i])) continue;
    absl::StrAppendFormat(csv, "%.10g", values[i]);
  }
  *csv += '\n';
}

CsvWriter::CsvWriter(std::unique_ptr<AppendFile> file, int64_t columns)
    : file_(std::move(file)), columns_(columns) {}

CsvWriter::~CsvWriter() = default;

absl::StatusOr<std::unique_ptr<CsvWriter>> CsvWriter::Create(
    const std::string& path, absl::Span<const absl::string_view> columns) {
  if (columns.empty()) {
    return InvalidArgument(
        "CsvWriter::Create: columns: got none, want at least one");
  }
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> file,
                        AppendFile::Create(kWho, path));
  std::string header;
  AppendCsvHeader(columns, &header);
  RILL_RETURN_IF_ERROR(file->Append(header));
  return std::unique_ptr<CsvWriter>(
      new CsvWriter(std::move(file), static_cast<int64_t>(columns.size())));
}

absl::StatusOr<std::unique_ptr<CsvWriter>> CsvWriter::Reopen(
    const std::string& path, int64_t columns, int64_t size_bytes) {
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> file,
                        AppendFile::Reopen(kWho, path, size_bytes));
  return std::unique_ptr<CsvWriter>(new CsvWriter(std::move(file), columns));
}

absl::Status CsvWriter::WriteRow(absl::Span<const double> values) {
  if (static_cast<int64_t>(values.size()) != columns_) {
    return InvalidArgument("CsvWriter::WriteRow: values: got ", values.size(),
                           ", want one for each of ", columns_, " columns");
  }
  std::string row;
  AppendCsvRow(values, &row);
  return file_->Append(row);
}

absl::Status CsvWriter::Sync() const { return file_->Sync(); }
const std::string& CsvWriter::path() const { return file_->path(); }
int64_t CsvWriter::size_bytes() const { return file_->size_bytes(); }

}  // namespace rill
