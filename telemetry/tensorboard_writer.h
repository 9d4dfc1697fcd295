// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TELEMETRY_TENSORBOARD_WRITER_H_
#define RILL_TELEMETRY_TENSORBOARD_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace rill {
namespace telemetry_internal {
class AppendFile;
}  // namespace telemetry_internal

// Appends scalars to a TensorBoard event file. No TensorFlow and no protobuf:
// the file is a sequence of TFRecords
//
//   uint64 length | uint32 mask(CRC32C(length)) | bytes |
//   uint32 mask(CRC32C(bytes))
//
// Numbers are little-endian; mask(c) = rotr(c, 15) + 0xa282ead8. The bytes are
// `Event` messages: wall_time (1, double), step (2, varint), file_version (3,
// string "brain.Event:2", in the first record alone) and summary (5). A summary
// has a value (1) for each scalar: tag (1, string), simple_value (2, float).
//
// Thread-safety: thread-compatible.
// Cost: one write call for each WriteScalars, no buffering: TensorBoard sees
//   every record at once and a crash loses none.
//
// Example (TensorBoardWriterTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto events,
//                         TensorBoardWriter::Create(run_dir, now, HostName()));
//   RILL_RETURN_IF_ERROR(events->WriteScalars(
//       /*step=*/4096, now, {{"train/loss", 0.5}, {"train/return", 210}}));
class TensorBoardWriter {
 public:
  struct Scalar {
    absl::string_view tag;  // "train/loss": the part before "/" is its group.
    double value = 0;
  };

  // Creates `directory`/events.out.tfevents.<seconds of now>.<host> with the
  // version record. FAILED_PRECONDITION if it exists; NOT_FOUND or
  // PERMISSION_DENIED where the directory cannot be written.
  static absl::StatusOr<std::unique_ptr<TensorBoardWriter>> Create(
      const std::string& directory, absl::Time now, absl::string_view host);

  // Continues a file that was `size_bytes` long when the caller noted it, and
  // cuts off what was written later. DATA_LOSS if the file is shorter.
  static absl::StatusOr<std::unique_ptr<TensorBoardWriter>> Reopen(
      const std::string& path, int64_t size_bytes);

  ~TensorBoardWriter();
  TensorBoardWriter(const TensorBoardWriter&) = delete;
  TensorBoardWriter& operator=(const TensorBoardWriter&) = delete;

  // One event with all `scalars`. All or nothing: with an error
  // (RESOURCE_EXHAUSTED on a full disk) the file ends where it ended before.
  absl::Status WriteScalars(int64_t step, absl::Time now,
                            absl::Span<const Scalar> scalars);

  // What was written is on the disk when this returns.
  absl::Status Sync() const;

  const std::string& path() const;
  int64_t size_bytes() const;

 private:
  explicit TensorBoardWriter(
      std::unique_ptr<telemetry_internal::AppendFile> file);

  std::unique_ptr<telemetry_internal::AppendFile> file_;
};

// The network name of this machine, "localhost" where it has none.
std::string HostName();

}  // namespace rill

#endif  // RILL_TELEMETRY_TENSORBOARD_WRITER_H_
