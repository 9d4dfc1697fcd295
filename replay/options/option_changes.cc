// SPDX-License-Identifier: Apache-2.0
// A saved buffer names every option of its parts, as a text. Open compares
// these with its own and never guesses which side is meant. Values that change
// while a buffer runs are no options but state of the part that has them.
#include "rill/replay/options/option_changes.h"

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "rill/base/status_macros.h"

namespace rill::replay_internal {
namespace {

constexpr char kCountField[] = "options";
constexpr absl::string_view kPrefix = "option/";
constexpr absl::string_view kWriter = "writer";

// By their names.
absl::StatusOr<std::map<std::string, std::string>> SavedOptions(
    const Manifest& manifest) {
  std::map<std::string, std::string> saved;
  RILL_ASSIGN_OR_RETURN(const int64_t count, manifest.Int(kCountField));
  for (const auto& [field, text] : manifest.fields) {
    absl::string_view name = field;
    if (absl::ConsumePrefix(&name, kPrefix)) saved[std::string(name)] = text;
  }
  if (static_cast<int64_t>(saved.size()) == count) return saved;
  return DataLoss("ReplayBuffer::Open: fields \"", kPrefix, "...\": got ",
                  saved.size(), ", want ", count);
}

// "sampler.selector" of "sampler.selector.alpha"; none of "sampler".
absl::string_view PartOf(absl::string_view option) {
  const size_t dot = option.rfind('.');
  return dot == absl::string_view::npos ? absl::string_view()
                                        : option.substr(0, dot);
}

// The part around it whose kind is another one has said it all.
bool IsBelow(absl::string_view option,
             const absl::flat_hash_set<std::string>& kinds) {
  for (option = PartOf(option); !option.empty(); option = PartOf(option)) {
    if (kinds.contains(option)) return true;
  }
  return false;
}

std::string Side(absl::string_view text) {
  return text.empty() ? "nothing" : std::string(text);
}

}  // namespace

void SaveOptions(const OptionValues& values, Manifest* manifest) {
  for (const OptionValues::Value& value : values.values()) {
    manifest->fields[absl::StrCat(kPrefix, value.name)] = value.text;
  }
  manifest->SetInt(kCountField, static_cast<int64_t>(values.values().size()));
}

absl::StatusOr<std::vector<OptionChange>> CompareOptions(
    const Manifest& manifest, const OptionValues& values) {
  std::vector<OptionChange> changes;
  // A save of a version without options says nothing of them.
  if (!manifest.fields.contains(kCountField)) return changes;
  RILL_ASSIGN_OR_RETURN(auto saved, SavedOptions(manifest));
  std::map<std::string, std::string, std::less<>> kinds;
  absl::flat_hash_set<std::string> changed_kinds;
  const auto add = [&](absl::string_view option, std::string before,
                       std::string now) {
    if (before == now || IsBelow(option, changed_kinds)) return;
    const auto kind = kinds.find(PartOf(option));
    changes.push_back({std::string(option),
                       kind == kinds.end() ? "" : kind->second,
                       std::move(before), std::move(now)});
  };
  for (const OptionValues::Value& value : values.values()) {
    // Taken out, so that only options that this side lacks are left below.
    const auto found = saved.extract(value.name);
    const std::string before = found.empty() ? "" : found.mapped();
    add(value.name, before, value.text);
    if (!value.is_kind) continue;
    kinds[value.name] = value.text;
    if (before != value.text) changed_kinds.insert(value.name);
  }
  for (const auto& [name, text] : saved) add(name, text, "");
  return changes;
}

absl::Status CheckChanges(absl::string_view caller,
                          absl::Span<const OptionChange> changes,
                          const OptionValues& values, bool accepts) {
  absl::flat_hash_set<absl::string_view> kinds;
  for (const OptionValues::Value& value : values.values()) {
    // Another writer can take over any rows, so its kind is no reason to
    // refuse.
    if (value.is_kind && value.name != kWriter) kinds.insert(value.name);
  }
  std::vector<std::string> texts;
  bool is_fixed = false;
  for (const OptionChange& change : changes) {
    const bool is_kind = kinds.contains(change.option);
    if (accepts && !is_kind) continue;
    is_fixed = is_fixed || is_kind;
    const absl::string_view part = PartOf(change.option);
    std::string where = change.option;
    if (!part.empty() && !change.kind.empty()) {
      where = absl::StrCat(part, " (", change.kind,
                           "): ", change.option.substr(part.size() + 1));
    }
    texts.push_back(absl::StrCat(where, ": got ", Side(change.saved),
                                 " in the directory, want ",
                                 Side(change.opened), " as in the options"));
  }
  if (texts.empty()) return absl::OkStatus();
  return FailedPrecondition(caller, ": ", absl::StrJoin(texts, "; "),
                            is_fixed ? "" : " (or accept_options)");
}

std::vector<std::string> ChangesOf(absl::string_view part,
                                   absl::Span<const OptionChange> changes) {
  std::vector<std::string> names;
  for (const OptionChange& change : changes) {
    absl::string_view name = change.option;
    if (absl::ConsumePrefix(&name, part) && absl::ConsumePrefix(&name, ".")) {
      names.emplace_back(name);
    }
  }
  return names;
}

}  // namespace rill::replay_internal
