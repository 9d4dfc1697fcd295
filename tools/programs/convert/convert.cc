// SPDX-License-Identifier: Apache-2.0
#include "rill/tools/programs/convert/convert.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/consolidated.h"
#include "rill/formats/memmap_directory.h"
#include "rill/formats/memmap_options.h"
#include "rill/formats/replaceable.h"
#include "rill/formats/tdz_archive.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tools/programs/convert/storage_rows.h"

namespace rill::convert {
namespace {

using inspect::Form;
using inspect::Saved;

// A replaced directory would take with it what lies in it.
absl::Status CheckApart(const std::string& in, const std::string& out) {
  const auto real = [](const std::string& path) {
    std::error_code ignored;
    // Weakly: `out` need not exist. The slash keeps "a" from being in "ab".
    return std::filesystem::weakly_canonical(path, ignored).string() + "/";
  };
  const std::string from = real(in), to = real(out);
  if (!absl::StartsWith(from, to) && !absl::StartsWith(to, from)) {
    return absl::OkStatus();
  }
  return InvalidArgument("convert: got \"", in, "\" and \"", out,
                         "\", want two paths of which none lies in the other");
}

// Only what this program could have written is replaced: another file at that
// path is more likely a slip.
absl::Status CheckMayReplace(const std::string& out, Form to) {
  if (to == Form::kDirectory) {
    return CheckReplaceable("convert", out, "meta.json");
  }
  if (!PathExists(out)) return absl::OkStatus();
  const absl::StatusOr<Form> found = inspect::FormOf(out);
  if (found.ok() && *found == to) return absl::OkStatus();
  return FailedPrecondition(
      "convert: \"", out, "\": got ",
      found.ok() ? absl::StrCat("a ", inspect::FormName(*found))
                 : std::string("something else"),
      ", want nothing or a ", inspect::FormName(to), "; name another");
}

// A conversion that left something out would be taken for the whole.
absl::Status CheckComplete(const std::string& in, const Saved& saved) {
  if (saved.form == Form::kRill) {
    return InvalidArgument(
        "convert: \"", in, "\": got a directory of Rill, which holds ",
        saved.parts.size(), " parts, want one of them",
        saved.parts.empty()
            ? std::string()
            : absl::StrCat(", e.g. \"",
                           JoinPath(in, saved.parts.begin()->first), "\""));
  }
  if (saved.form == Form::kTorchRl) {
    return InvalidArgument(
        "convert: \"", in,
        "\": got a replay buffer of TorchRL's, whose rows "
        "are in the order of its places, want its rows alone, \"",
        JoinPath(in, "storage"),
        "\", or open it with OpenTorchRl and save that");
  }
  if (!saved.refused.empty()) {
    const RefusedEntry& entry = saved.refused.front();
    return InvalidArgument("convert: \"", in, "\": entry \"", entry.key,
                           "\" would be lost: ", entry.reason);
  }
  return absl::OkStatus();
}

// Each writer puts its result beside `out` and renames it.
absl::Status Save(const Saved& saved, const std::string& out, Form to) {
  if (saved.stack) {
    if (to == Form::kTdz) return SaveTdzLazyStack(*saved.stack, out);
    if (to == Form::kDirectory) return SaveMemmapLazyStack(*saved.stack, out);
    return SaveConsolidatedLazyStack(*saved.stack, out);
  }
  if (to == Form::kTdz) return SaveTdz(saved.dict, out);
  if (to == Form::kConsolidated) return SaveConsolidated(saved.dict, out);
  return SaveMemmapDirectory(saved.dict, out);
}

// In words, for the line that the program prints.
std::string Holds(const Saved& saved) {
  if (saved.stack) {
    return absl::StrCat("lazy stack of batch ",
                        saved.stack->batch_shape().ToString(), ", ",
                        saved.stack->size(), " dictionaries");
  }
  return absl::StrCat("batch ", saved.dict.batch_shape().ToString(), ", ",
                      saved.dict.num_leaves(), " tensors, ",
                      saved.dict.size_bytes(), " bytes");
}

}  // namespace

absl::StatusOr<Form> FormFromName(absl::string_view name) {
  if (name == "directory") return Form::kDirectory;
  if (name == "tdz") return Form::kTdz;
  if (name == "consolidated") return Form::kConsolidated;
  return InvalidArgument(
      "convert: --to: got \"", name,
      "\", want \"directory\", \"tdz\", \"consolidated\", \"rows\" or "
      "\"columns\"");
}

absl::StatusOr<Form> FormFromPath(absl::string_view path) {
  const std::string ending =
      std::filesystem::path(std::string(path)).extension().string();
  if (ending.empty()) return Form::kDirectory;
  if (ending == ".tdz") return Form::kTdz;
  if (ending == ".bin" || ending == ".td") return Form::kConsolidated;
  return InvalidArgument(
      "convert: \"", path, "\": got the ending \"", ending,
      "\", want \".tdz\", \".bin\", \".td\" or none, which makes a directory; "
      "or say --to=directory, --to=tdz or --to=consolidated");
}

absl::StatusOr<std::string> Convert(const std::string& in,
                                    const std::string& out, Form to) {
  RILL_RETURN_IF_ERROR(CheckApart(in, out));
  // Asked before anything is written.
  const bool replaces = PathExists(out);
  std::string from, holds;
  if (IsStorage(in)) {
    // Before rows are read: that may take long.
    RILL_RETURN_IF_ERROR(CheckMayReplace(out, to));
    RILL_ASSIGN_OR_RETURN(holds, SaveRows(in, out, to));
    from = "storage directory";
  } else {
    RILL_ASSIGN_OR_RETURN(const Saved saved, inspect::OpenSaved(in));
    RILL_RETURN_IF_ERROR(CheckComplete(in, saved));
    RILL_RETURN_IF_ERROR(CheckMayReplace(out, to));
    RILL_RETURN_IF_ERROR(Save(saved, out, to));
    from = inspect::FormName(saved.form);
    holds = Holds(saved);
  }
  return absl::StrCat(replaces ? "replaced \"" : "wrote \"", out, "\" (",
                      inspect::FormName(to), ") from \"", in, "\" (", from,
                      "): ", holds);
}

absl::StatusOr<std::string> ConvertToStorage(const std::string& in,
                                             const std::string& out,
                                             StorageLayout layout) {
  RILL_RETURN_IF_ERROR(CheckApart(in, out));
  RILL_ASSIGN_OR_RETURN(const Saved saved, inspect::OpenSaved(in));
  RILL_RETURN_IF_ERROR(CheckComplete(in, saved));
  if (saved.stack) {
    return InvalidArgument("convert: \"", in,
                           "\": got a lazy stack, want a dictionary of steps");
  }
  RILL_RETURN_IF_ERROR(MakeStorage(saved.dict, out, layout));
  return absl::StrCat("wrote \"", out, "\" (storage directory) from \"", in,
                      "\" (", inspect::FormName(saved.form),
                      "): ", Holds(saved));
}

}  // namespace rill::convert
