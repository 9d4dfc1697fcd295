// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TOOLS_PROGRAMS_INSPECT_SAVED_H_
#define RILL_TOOLS_PROGRAMS_INSPECT_SAVED_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/formats/manifest.h"
#include "rill/formats/memmap_options.h"
#include "rill/formats/torchrl/torchrl_replay_buffer.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tools/programs/inspect/facts.h"

namespace rill::inspect {

enum class Form {
  kDirectory,     // formats/memmap_directory.h
  kTdz,           // formats/tdz_archive.h
  kConsolidated,  // formats/consolidated.h
  kState,         // base/state/saved_state.h, as a dictionary.
  kRill,          // A directory with a manifest, and others below it.
  kTorchRl,       // formats/torchrl/torchrl_replay_buffer.h
};
// "memmap directory", ".tdz archive", ...
absl::string_view FormName(Form form);

// The saved data at a path, of any writer.
struct Saved {
  Form form = Form::kDirectory;
  // For every form but kRill: a dictionary, or a lazy stack of them. Then its
  // entries that are not loaded: pickles, dtypes that are not here.
  TensorDict dict = {};
  std::optional<LazyStack> stack = {};
  std::vector<RefusedEntry> refused = {};
  // For kRill: dictionaries and directories of Rill below, and the size of each
  // other file, by path relative to this one.
  Manifest manifest = {};
  std::map<std::string, Saved> parts = {};
  std::map<std::string, int64_t> files = {};
  // A buffer of TorchRL's, whose rows are `dict` too; none where it is damaged,
  // and `files` has all there are.
  std::optional<TorchRlReplayBuffer> torchrl = {};
  // A text for each file or part of kRill and kTorchRl that cannot be read; the
  // rest is there.
  std::vector<std::string> damage = {};
  // Added by AddFacts (find_facts.h).
  std::optional<Facts> facts = {};

  // Whether anything is damaged, in its parts too.
  bool is_damaged() const;
};

// Maps it; nothing is copied. NOT_FOUND where nothing is there;
// INVALID_ARGUMENT where it is of no kind that is known (says which are); of a
// dictionary the errors of its loader. Thread-safety: thread-safe.
absl::StatusOr<Saved> OpenSaved(const std::string& path);

// The form of the file or directory at `path`, by its first and last bytes or
// by the files in it; nothing else is checked. Errors as OpenSaved.
absl::StatusOr<Form> FormOf(const std::string& path);

// The state of its sampler, for people: "prioritized, alpha 0.7, beta 0.5",
// "random or slices", ...
std::string SamplerText(const TorchRlReplayBuffer& buffer);

}  // namespace rill::inspect

#endif  // RILL_TOOLS_PROGRAMS_INSPECT_SAVED_H_
