// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_RUN_RUN_CHECKPOINT_H_
#define RILL_REPLAY_RUN_RUN_CHECKPOINT_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/base/held_directory.h"
#include "rill/formats/manifest.h"
#include "rill/replay/options/option_changes.h"
#include "rill/replay/replay_buffer.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// One checkpoint of a whole run: replay buffers, also several on one storage,
// and dictionaries by name, such as the states of collectors and the learner's
// own. It is written as one: a directory that is replaced atomically, with
// checksums over everything (docs/formats/run_checkpoint.md). The next batches
// of an opened buffer are those that the saved one would have drawn.
//
// One point in time: while it is saved no call of these buffers runs, and
// writes, samples and updates wait. States are saved as they are given: ask a
// collector for its own between two of its batches.
//
// A storage is saved once, however many of the buffers share it, full or not;
// rows that have not changed since its last save are hard links, as
// Storage::Save says. Not for a storage that is a part of another one's
// (EnsembleStorage) under another buffer.
//
// Thread-safety: thread-safe; two savers lock buffers in the same order.
// Cost: that of each storage's Save and of the buffers' states.
//
// Example (RunCheckpointTest.Example runs it):
//   RILL_RETURN_IF_ERROR(RunCheckpoint::Save(
//       directory, {.buffers = {{"actor", actor}, {"critic", critic}},
//                   .states = {{"learner", learner}}}));
//   RILL_ASSIGN_OR_RETURN(
//       RunCheckpoint::Opened run,
//       RunCheckpoint::Open(directory, {.buffers = std::move(options),
//                                       .states = {"learner"}}));
class RunCheckpoint {
 public:
  struct Contents {
    std::map<std::string, const ReplayBuffer*> buffers = {};  // By name.
    std::map<std::string, TensorDict> states = {};
  };
  // INVALID_ARGUMENT where a buffer is null or comes twice, or there is nothing
  // to save. FAILED_PRECONDITION where something else than a checkpoint is in
  // the directory, or a writer that is none of the buffers wrote to a storage
  // meanwhile. On any error what was there stays.
  static absl::Status Save(const std::string& directory,
                           const Contents& contents);

  struct OpenOptions {
    // As ReplayBuffer::Open takes them, by the buffers' names. Those that
    // shared a storage are given one storage here, the others one each.
    std::map<std::string, ReplayBuffer::Options> buffers = {};
    std::vector<std::string> states = {};  // The names that are wanted.
    // As ReplayBuffer::OpenOptions, for all buffers.
    bool accept_other_capacity = false;
    bool accept_options = false;
    // Storages may hold rows, as those on files do. They are discarded once all
    // of the checkpoint but its rows was read and fits.
    bool discard_rows = false;
  };
  struct Opened {
    std::map<std::string, std::unique_ptr<ReplayBuffer>> buffers;
    std::map<std::string, TensorDict> states;
    // By name; those buffers only that have other options now.
    std::map<std::string, std::vector<OptionChange>> changed_options;
  };
  // NOT_FOUND where nothing was saved. FAILED_PRECONDITION where the names are
  // not those that were saved, listing what is missing and what is too much;
  // where storages are shared otherwise than they were; and as
  // ReplayBuffer::Open, with the buffer's name. DATA_LOSS where a file is
  // damaged, naming it. With an error all storages are empty, as before; with
  // `discard_rows` they are as before where rows were not begun with. Else the
  // error says how many rows were discarded.
  static absl::StatusOr<Opened> Open(const std::string& directory,
                                     OpenOptions options);

 private:
  struct Part;  // A buffer that is being opened.
  static absl::Status SaveTo(const std::string& directory,
                             const Contents& contents);
  // The buffers, where names and shared storages are those of the options.
  static absl::StatusOr<std::vector<Part>> FindParts(
      const std::string& directory, const Manifest& manifest,
      const OpenOptions& options);
  // Without rows.
  static absl::Status Create(const OpenOptions& options,
                             ReplayBuffer::Options of_buffer, Part* part);
  static absl::Status LoadRows(const std::string& directory,
                               const OpenOptions& options,
                               const HeldDirectory& held,
                               std::vector<Part>* parts);
  static absl::StatusOr<Opened> OpenHeld(const std::string& directory,
                                         OpenOptions options,
                                         const HeldDirectory& held);
};

}  // namespace rill

#endif  // RILL_REPLAY_RUN_RUN_CHECKPOINT_H_
