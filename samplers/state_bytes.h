// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_STATE_BYTES_H_
#define RILL_SAMPLERS_STATE_BYTES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace rill::samplers_internal {

// The envelope of every sampler's saved state: whose it is, of which version,
// and a checksum over all of it. docs/formats/replay_buffer.md has the bytes.
// Thread-safety: thread-compatible.

class StateWriter {
 public:
  StateWriter(absl::string_view sampler, uint32_t version);

  void Int(int64_t value);
  void Double(double value);
  // Appends the checksum; the writer is used up.
  std::string Finish() &&;

 private:
  std::string bytes_;
};

class StateReader {
 public:
  // `bytes` must outlive the reader. DATA_LOSS where it is cut, changed or no
  // sampler's state; FAILED_PRECONDITION, naming both sides, where it is
  // another sampler's or of a version above `max_version`.
  static absl::StatusOr<StateReader> Open(absl::string_view sampler,
                                          uint32_t max_version,
                                          absl::string_view bytes);

  uint32_t version() const { return version_; }
  // DATA_LOSS past the end.
  absl::StatusOr<int64_t> Int();
  absl::StatusOr<double> Double();
  // Reads over a number n and n times `ints` integers.
  absl::Status SkipList(int64_t ints = 1);
  // DATA_LOSS where bytes are left over.
  absl::Status Finish() const;
  // A DATA_LOSS of this sampler's LoadState.
  absl::Status Damaged(absl::string_view what) const;
  // A FAILED_PRECONDITION of it: the bytes are whole and of something else.
  absl::Status DoesNotFit(absl::string_view what) const;

  // Options of the sampler that had other values when it was saved
  // (Sampler::LoadOptions::changed), by name; none until this.
  void SetChangedOptions(absl::Span<const std::string> names);
  // The part, "selector" or "parts.0", that reads from here on until the object
  // goes: names below are of its options.
  class InPart {
   public:
    InPart(StateReader* reader, absl::string_view part);
    ~InPart();
    InPart(const InPart&) = delete;
    InPart& operator=(const InPart&) = delete;

   private:
    StateReader* const reader_;
    const size_t outer_size_;
  };
  bool HasChanged(absl::string_view option) const;
  bool HasChanges() const;
  // The sampler's unit has changed, so that other rows may be anchors.
  bool has_other_anchors() const { return has_other_anchors_; }

 private:
  StateReader(std::string sampler, uint32_t version, absl::string_view rest);

  std::string sampler_;
  uint32_t version_;
  absl::string_view rest_;
  std::vector<std::string> changed_;
  bool has_other_anchors_ = false;
  std::string part_;  // "selector.", what its options' names begin with.
};

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_STATE_BYTES_H_
