// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_PARTS_BUFFER_CHECKPOINT_H_
#define RILL_REPLAY_PARTS_BUFFER_CHECKPOINT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/base/held_directory.h"
#include "rill/base/option_values.h"
#include "rill/formats/manifest.h"
#include "rill/replay/open_options.h"
#include "rill/replay/parts/write_path.h"
#include "rill/replay/sampling/sample_queue.h"
#include "rill/replay/sampling/transform_stage.h"
#include "rill/samplers/sampler.h"
#include "rill/slots/slot.h"
#include "rill/storage/storage.h"
#include "rill/transforms/unit_transform.h"

namespace rill::replay_internal {

// A replay buffer's parts to and from files: docs/formats/replay_buffer.md.
//
// Thread-safety: none of it may go beside another call of the buffer: its owner
//   holds the pause alone. It has no lock and calls one part after the other.
class BufferCheckpoint {
 public:
  // All required but `unit`; they outlive this.
  struct Parts {
    Storage* storage = nullptr;
    Sampler* sampler = nullptr;
    const UnitTransform* unit = nullptr;  // Null: the sampler has none.
    WritePath* writes = nullptr;
    SampleQueue* samples = nullptr;
    TransformStage* transforms = nullptr;
  };
  // How a save treats the rows. With kShared the caller saves them, with other
  // buffers' beside them.
  enum class Rows { kCopied, kInPlace, kShared };

  explicit BufferCheckpoint(const Parts& parts) : parts_(parts) {}

  // --- Save (buffer_checkpoint_save.cc) ---

  // Replaces the saved buffer at `directory` by this one, as a whole or not at
  // all. FAILED_PRECONDITION where something else is there, another buffer
  // wrote to the storage meanwhile, or `rows` cannot be saved so; names
  // `caller`.
  absl::Status Replace(absl::string_view caller, const std::string& directory,
                       Rows rows) const;
  // The same into a directory that is there and empty.
  absl::Status SaveTo(const std::string& directory, Rows rows) const;

  // --- Open ---

  // Loads what Replace wrote into the buffer that `make` makes with the saved
  // seed. Errors as ReplayBuffer::Open; the new buffer goes then.
  static absl::Status Open(
      const std::string& directory, const BufferOpenOptions& options,
      absl::FunctionRef<absl::StatusOr<const BufferCheckpoint*>(uint64_t seed)>
          make);

  // The steps of Open, for a caller that loads several buffers
  // (run/run_checkpoint.h). Reads what SaveTo wrote; of kShared rows where it
  // is a part of a whole run, else of others. `sums` as ReadManifest.
  static absl::StatusOr<Manifest> ReadSave(const std::string& directory,
                                           bool is_part, FileSums* sums);
  static absl::StatusOr<uint64_t> SeedOf(const Manifest& manifest);
  // A save that was compared with this buffer.
  struct Saved {
    bool is_position = false;
    Lanes lanes = {};
    // Options that are others now, without their part's name.
    std::vector<std::string> changed_sampler = {};
    std::vector<std::string> changed_writer = {};
    // Its batches were made by other options: they are drawn anew.
    bool drops_ahead = false;
    std::string limiter = "";  // Its state; empty: none.
  };
  // Compares, and loads what does not depend on rows.
  absl::StatusOr<Saved> Prepare(const std::string& directory,
                                const Manifest& manifest,
                                const BufferOpenOptions& options) const;
  // The storage's rows would be lost, but for those of a position.
  absl::Status CheckHasNoRows(const Saved& saved) const;
  // Loads the state that belongs to the storage's rows, which the storage has
  // loaded.
  absl::Status LoadOfRows(const std::string& directory,
                          const Manifest& manifest, const Saved& saved,
                          const HeldDirectory& held) const;
  // Loads the rate limiter's counts; last, since others may share it.
  absl::Status LoadCounts(const Saved& saved) const;

 private:
  absl::Status SaveAhead(const std::string& directory,
                         Manifest* manifest) const;
  absl::Status Load(const std::string& directory, const Manifest& manifest,
                    const BufferOpenOptions& options,
                    const HeldDirectory& held) const;
  // The rows are those of the save, or some of them where they have `moved`.
  absl::Status LoadOfRows(const std::string& directory,
                          const Manifest& manifest, const Saved& saved,
                          const MovedRows* moved,
                          const HeldDirectory& held) const;
  absl::Status LoadPosition(const std::string& directory,
                            const Manifest& manifest, const Saved& saved,
                            bool accept_newer, const HeldDirectory& held) const;
  absl::Status LoadAhead(const std::string& directory,
                         const Manifest& manifest) const;
  // Options of sampler, unit, transforms and writer.
  OptionValues PartOptions() const;

  const Parts parts_;
};

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_PARTS_BUFFER_CHECKPOINT_H_
