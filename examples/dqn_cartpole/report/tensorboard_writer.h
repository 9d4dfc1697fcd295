// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_DQN_CARTPOLE_REPORT_TENSORBOARD_WRITER_H_
#define RILL_EXAMPLES_DQN_CARTPOLE_REPORT_TENSORBOARD_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace rill::dqn_cartpole {

// Appends scalars to a TensorBoard event file. No TensorFlow and no protobuf:
// the file is a sequence of TFRecords
//
//   uint64 length | uint32 masked CRC32C(length) | bytes | uint32 masked
//   CRC32C(bytes)            (little-endian; mask(c) = rotr(c, 15) +
//   0xa282ead8)
//
// whose bytes are `Event` messages: wall_time (1, double), step (2, varint),
// file_version (3, string, first record only: "brain.Event:2"), summary (5)
// with one value (1) a scalar: tag (1, string), simple_value (2, float).
//
// Thread-safety: thread-compatible.
// Cost: one write call for each WriteScalars, no buffering: TensorBoard sees
//   every record at once and a crash loses none.
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

  // Goes on with a file that was `size_bytes` long when the caller noted it;
  // what was written later is cut off. DATA_LOSS if the file is shorter.
  static absl::StatusOr<std::unique_ptr<TensorBoardWriter>> Reopen(
      const std::string& path, int64_t size_bytes);

  ~TensorBoardWriter();
  TensorBoardWriter(const TensorBoardWriter&) = delete;
  TensorBoardWriter& operator=(const TensorBoardWriter&) = delete;

  // One event with all `scalars`. All or nothing: with an error
  // (RESOURCE_EXHAUSTED on a full disk) the file ends where it ended before.
  absl::Status WriteScalars(int64_t step, absl::Time now,
                            absl::Span<const Scalar> scalars);

  const std::string& path() const { return path_; }
  int64_t size_bytes() const { return size_bytes_; }

 private:
  TensorBoardWriter(std::string path, int fd, int64_t size_bytes);
  absl::Status AppendRecord(absl::string_view event);

  std::string path_;
  int fd_;
  int64_t size_bytes_;
};

// The network name of this machine, "localhost" where it has none.
std::string HostName();

}  // namespace rill::dqn_cartpole

#endif  // RILL_EXAMPLES_DQN_CARTPOLE_REPORT_TENSORBOARD_WRITER_H_
