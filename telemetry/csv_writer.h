// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TELEMETRY_CSV_WRITER_H_
#define RILL_TELEMETRY_CSV_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace rill {
namespace telemetry_internal {
class AppendFile;
}  // namespace telemetry_internal

// Numbers as lines of CSV (RFC 4180, but with "\n"): a header of names, then
// values in ten significant digits. NaN is an empty cell, as programs that draw
// curves expect. Both append one line to `csv`.
void AppendCsvHeader(absl::Span<const absl::string_view> columns,
                     std::string* csv);
void AppendCsvRow(absl::Span<const double> values, std::string* csv);

// Appends rows to a CSV file while a run makes them.
//
// Thread-safety: thread-compatible.
// Cost: one write call a row, without buffering: who follows the file sees
//   whole rows, and a crash loses none.
//
// Example (CsvWriterTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       auto csv,
//       CsvWriter::Create(run_dir + "/curve.csv", {"steps", "loss"}));
//   RILL_RETURN_IF_ERROR(csv->WriteRow({4096, 0.25}));
class CsvWriter {
 public:
  // A new file with its header. INVALID_ARGUMENT without columns,
  // FAILED_PRECONDITION if the file exists; NOT_FOUND or PERMISSION_DENIED
  // where its folder cannot be written.
  static absl::StatusOr<std::unique_ptr<CsvWriter>> Create(
      const std::string& path, absl::Span<const absl::string_view> columns);

  // Continues a file of `columns` columns that was `size_bytes` long when the
  // caller noted it, and cuts off what was written later. DATA_LOSS if the file
  // is shorter.
  static absl::StatusOr<std::unique_ptr<CsvWriter>> Reopen(
      const std::string& path, int64_t columns, int64_t size_bytes);

  ~CsvWriter();
  CsvWriter(const CsvWriter&) = delete;
  CsvWriter& operator=(const CsvWriter&) = delete;

  // INVALID_ARGUMENT unless there is a value for each column. All or nothing:
  // with an error (RESOURCE_EXHAUSTED on a full disk) the file ends where it
  // ended before.
  absl::Status WriteRow(absl::Span<const double> values);

  // What was written is on the disk when this returns.
  absl::Status Sync() const;

  const std::string& path() const;
  int64_t size_bytes() const;

 private:
  CsvWriter(std::unique_ptr<telemetry_internal::AppendFile> file,
            int64_t columns);

  std::unique_ptr<telemetry_internal::AppendFile> file_;
  int64_t columns_;
};

}  // namespace rill

#endif  // RILL_TELEMETRY_CSV_WRITER_H_
