// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_DURABLE_H_
#define RILL_STORAGE_DURABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/slots/slot.h"

namespace rill {

// How Durable::Load takes what was saved.
struct StorageLoadOptions {
  // Lanes of another capacity, which are FAILED_PRECONDITION otherwise, do: of
  // each lane the newest rows come, as many as it has slots here. Cursors go
  // on, so rows may lie in other slots than they did.
  bool accept_other_capacity = false;
};

// The rows of a position that are there now.
struct PositionRows {
  int64_t missing = 0;          // How many are not.
  std::vector<SlotRange> kept;  // Where the others lie; ascending.
};

// Makes the rows of a storage outlive its process.
// Thread-safety: thread-safe.
class Durable {
 public:
  virtual ~Durable() = default;

  // Makes what was written so far outlive a loss of power, where rows lie in
  // files; elsewhere there is nothing to do.
  virtual absl::Status Sync() { return absl::OkStatus(); }

  // Writes all live rows and cursors to `directory` (replaced atomically), in a
  // form that does not depend on layout, order or device:
  // docs/formats/storage.md. Files of rows that have not changed since this
  // storage's last Save or Load, in whatever directory, are hard links to those
  // where possible. So change no saved file in place. FAILED_PRECONDITION where
  // the directory holds files that no save wrote.
  virtual absl::Status Save(const std::string& directory) const = 0;
  // Replaces the content by what Save wrote, checked first: on any error the
  // content is as it was. FAILED_PRECONDITION where lanes, capacity or spec
  // differ, naming both sides; DATA_LOSS where files are damaged. Observers
  // receive OnClear, then OnAttach and OnWrite as when they were added.
  virtual absl::Status Load(const std::string& directory,
                            const StorageLoadOptions& options = {}) = 0;

  // A record of which rows there are now, as opaque bytes, where rows lie in
  // files that outlive the process (MemmapStorage; TieredStorage above one).
  // The rows stay there, and outlive a loss of power from here on (Sync).
  // FAILED_PRECONDITION elsewhere, and before it is known what a row holds.
  virtual absl::StatusOr<std::string> SavePosition() {
    return HasNoPosition("SavePosition");
  }
  // Goes back to the rows of a position: discards rows that were appended
  // after, if any. Values written in place since (WriteAt, Patch) stay. Where
  // rows go, observers are notified as of a Load. Then `accept` is called,
  // which must not call the storage. If it fails, its error is the result, and
  // observers are notified of all rows again. Where rows are missing,
  // FAILED_PRECONDITION names how many of how many. With `accept_newer` the
  // rows stay as they are instead, and `accept` learns which.
  // FAILED_PRECONDITION where the position is another storage's, or of rows
  // before a Clear or a Load; DATA_LOSS where the bytes are damaged. After an
  // error the rows are as they were. After a kill on the way they are that, or
  // the position's.
  using AcceptPosition = absl::FunctionRef<absl::Status(const PositionRows&)>;
  virtual absl::Status LoadPosition(absl::string_view /*position*/,
                                    bool /*accept_newer*/,
                                    AcceptPosition /*accept*/) {
    return HasNoPosition("LoadPosition");
  }

 private:
  static absl::Status HasNoPosition(absl::string_view call) {
    return FailedPrecondition(
        "Storage::", call,
        ": storage: got one whose rows do not lie in files that outlive the "
        "process, want a MemmapStorage; or Save and Load the rows");
  }
};

}  // namespace rill

#endif  // RILL_STORAGE_DURABLE_H_
