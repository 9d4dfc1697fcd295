// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/old_state.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/crc/crc32c.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"

namespace rill::samplers_internal {
namespace {

constexpr absl::string_view kMagic = "RILLSMPL";
constexpr size_t kHeaderBytes = 16;  // Magic, version, length of the name.
constexpr size_t kChecksumBytes = 4;

uint64_t ReadUint(absl::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i > 0; --i) {
    value = value << 8 | static_cast<uint8_t>(bytes[i - 1]);
  }
  return value;
}

// Past the end, and after a length that cannot be, all is zero.
class Numbers {
 public:
  explicit Numbers(absl::string_view bytes) : rest_(bytes) {}

  bool is_good() const { return is_good_; }
  bool is_at_end() const { return is_good_ && rest_.empty(); }
  void Refuse() { is_good_ = false; }

  int64_t Int() {
    is_good_ = is_good_ && rest_.size() >= 8;
    if (!is_good_) return 0;
    const uint64_t value = ReadUint(rest_.substr(0, 8));
    rest_.remove_prefix(8);
    return static_cast<int64_t>(value);
  }
  double Double() { return std::bit_cast<double>(Int()); }
  std::vector<int64_t> Ints(int64_t count) {
    is_good_ = is_good_ && count >= 0 &&
               count <= static_cast<int64_t>(rest_.size() / 8);
    std::vector<int64_t> ints(is_good_ ? count : 0);
    for (int64_t& value : ints) value = Int();
    return ints;
  }
  // A number n, and n times `width` numbers.
  std::vector<int64_t> List(int64_t width = 1) {
    const int64_t count = Int();
    is_good_ = is_good_ && count <= static_cast<int64_t>(rest_.size() / 8);
    return Ints(is_good_ ? count * width : 0);
  }

 private:
  absl::string_view rest_;
  bool is_good_ = true;
};

SavedState UnitState(const std::string& kind, Numbers* from) {
  SavedState unit(kind, 1);
  if (kind == "Transition") return unit;
  unit.Set("rows", from->Int());
  unit.Set("trajectories", from->Int());
  unit.Set("cut", from->List());
  const int64_t sets = from->Int();
  if (sets < 0) from->Refuse();
  for (int64_t i = 0; from->is_good() && i < sets; ++i) {
    unit.Set(absl::StrCat("starts_", i), from->List());
  }
  if (kind != "Sequence") return unit;
  unit.Set("period", from->Int());
  unit.Set("lost", from->List(/*width=*/2));
  unit.Set("anchors", from->List());
  return unit;
}

// Runs of first slot, length, value and step.
template <typename T>
SavedState ArrayState(Numbers* from) {
  std::vector<int64_t> runs;
  std::vector<T> values;
  const std::vector<int64_t> all = from->List(/*width=*/4);
  for (size_t i = 0; i < all.size(); i += 4) {
    runs.insert(runs.end(), {all[i], all[i + 1], all[i + 3]});
    values.push_back(std::bit_cast<T>(all[i + 2]));
  }
  SavedState array("SlotArray", 1);
  array.Set("runs", std::move(runs));
  array.Set("values", std::move(values));
  return array;
}

SavedState GroupsState(Numbers* from) {
  std::vector<int64_t> groups;
  std::vector<int64_t> runs;
  const int64_t count = from->Int();
  if (count < 0) from->Refuse();
  for (int64_t i = 0; from->is_good() && i < count; ++i) {
    groups.push_back(from->Int());
    const std::vector<int64_t> of_group = from->List(/*width=*/2);
    groups.push_back(static_cast<int64_t>(of_group.size()) / 2);
    runs.insert(runs.end(), of_group.begin(), of_group.end());
  }
  SavedState state("SlotGroups", 1);
  state.Set("groups", std::move(groups));
  state.Set("runs", std::move(runs));
  return state;
}

void SetPriorities(Numbers* from, SavedState* state) {
  const int64_t num_slots = from->Int();
  std::vector<int64_t> blocks;
  for (int64_t slot = 0; from->is_good() && slot < num_slots;) {
    const int64_t length = from->Int();
    const int64_t room = num_slots - slot;
    if (length == 0 || length > room || length < -room) from->Refuse();
    if (!from->is_good()) break;
    blocks.push_back(length);
    // Two priorities share a number; a run has one of them.
    const std::vector<int64_t> packed =
        from->Ints(length > 0 ? length / 2 + length % 2 : 1);
    blocks.insert(blocks.end(), packed.begin(), packed.end());
    slot += length > 0 ? length : -length;
  }
  state->Set("slots", num_slots);
  state->Set("priorities", std::move(blocks));
}

SavedState SelectorState(const std::string& part, PartKind kind_of,
                         Numbers* from) {
  const std::string kind = kind_of(part);
  SavedState state(kind, 1);
  if (kind == "Prioritized") {
    state.Set("alpha", from->Double());
    state.Set("beta", from->Double());
    state.Set("largest", from->Double());
    SetPriorities(from, &state);
  } else if (kind == "WithoutReplacement") {
    state.Set("epoch", from->Int());
    state.Set("place", from->Int());
    state.Set("slots", from->Int());
    const int64_t listed = from->Int();
    state.Set("order", int64_t{listed == -1 ? 0 : listed < -1 ? 2 : 1});
    // -2 - listed does not overflow.
    state.Set("list", from->Ints(listed == -1  ? 0
                                 : listed < -1 ? -2 - listed
                                               : listed));
  } else if (kind == "Staleness") {
    state.Set("highest", from->Int());
    state.SetPart("versions", ArrayState<int64_t>(from));
    state.SetPart("anchors", GroupsState(from));
  } else if (kind == "Consuming") {
    state.Set("most", from->Int());
    state.SetPart("counts", ArrayState<int64_t>(from));
    state.SetPart("anchors", GroupsState(from));
    state.SetPart("inner",
                  SelectorState(absl::StrCat(part, ".inner"), kind_of, from));
  } else if (kind == "Mixture") {
    const int64_t count = from->Int();
    std::vector<SavedState> parts;
    bool uses_up = true;
    for (int64_t i = 0; from->is_good() && i < count; ++i) {
      parts.push_back(
          SelectorState(absl::StrCat(part, ".parts.", i), kind_of, from));
      uses_up = uses_up && parts.back().type() == "Consuming";
    }
    state.Set("parts", std::move(parts));
    if (uses_up) state.SetPart("used_up", GroupsState(from));
  } else if (kind != "Uniform" && kind != "Recent") {
    constexpr absl::string_view kOrders[] = {"Fifo", "Lifo", "MinHeap",
                                             "MaxHeap"};
    const int64_t order = from->Int();
    if (order < 0 || order > 3) {
      from->Refuse();
      return state;
    }
    state = SavedState(kOrders[order], 1);
    state.Set("steps", from->Int());
    state.SetPart("keys", ArrayState<double>(from));
  }
  return state;
}

}  // namespace

std::string KindIn(const OptionValues& options, absl::string_view part) {
  for (const OptionValues::Value& value : options.values()) {
    if (value.is_kind && value.name == part) return value.text;
  }
  return "";
}

bool IsOldState(absl::string_view bytes) {
  return absl::StartsWith(bytes, kMagic);
}

absl::StatusOr<SavedState> FromOldState(absl::string_view bytes,
                                        PartKind kind) {
  const auto damaged = [](absl::string_view what) {
    return DataLoss("Sampler::LoadState: a state of version 1: ", what);
  };
  if (bytes.size() < kHeaderBytes + kChecksumBytes || !IsOldState(bytes)) {
    return damaged("got too few bytes");
  }
  const absl::string_view content =
      bytes.substr(0, bytes.size() - kChecksumBytes);
  // The checksum comes before any field is believed.
  if (ReadUint(bytes.substr(content.size())) !=
      static_cast<uint32_t>(absl::ComputeCrc32c(content))) {
    return damaged("got another checksum than that of its bytes");
  }
  const uint64_t version = ReadUint(content.substr(8, 4));
  const uint64_t name_size = ReadUint(content.substr(12, 4));
  if (name_size > content.size() - kHeaderBytes) {
    return damaged("got a name that is longer than the bytes");
  }
  const absl::string_view name = content.substr(kHeaderBytes, name_size);
  SavedState state(name, static_cast<int64_t>(version));
  if (version > 1) return state;  // CheckType says so.
  Numbers numbers(content.substr(kHeaderBytes + name_size));
  state.Set("lanes", numbers.Int());
  state.Set("capacity", numbers.Int());
  state.Set("generations", numbers.List(/*width=*/2));
  state.SetPart("unit", UnitState(kind("unit"), &numbers));
  state.SetPart("selector", SelectorState("selector", kind, &numbers));
  if (numbers.is_at_end()) return state;
  return damaged(
      "got bytes that end early or late, or a length that cannot be");
}

}  // namespace rill::samplers_internal
