// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/ensemble/ensemble_storage.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/specs/layout_difference.h"
#include "rill/storage/ensemble/ensemble_storage_state.h"
#include "rill/storage/ring/ring_options.h"

namespace rill {

using storage_internal::BatchAssembly;
using storage_internal::kMaxLanes;
using storage_internal::kMaxSlots;
using storage_internal::ReadFrom;
using storage_internal::ReadRequest;

namespace {

constexpr absl::string_view kCreate = "EnsembleStorage::Create";

absl::Status BadMember(size_t member, const absl::AlphaNum& got,
                       const absl::AlphaNum& want) {
  return InvalidArgument(kCreate, ": members[", member, "]: got ", got,
                         ", want ", want);
}

// The lanes of all members side by side. INVALID_ARGUMENT names the first
// member that cannot be joined.
absl::StatusOr<Lanes> JoinedLanes(
    const std::vector<std::unique_ptr<Storage>>& members) {
  Lanes lanes = {.count = 0};
  TensorDictSpec spec;
  for (size_t i = 0; i < members.size(); ++i) {
    if (members[i] == nullptr) return BadMember(i, "null", "a storage");
    const Storage& member = *members[i];
    if (member.traits().ragged_leaves) {
      return BadMember(i, "rows with ragged leaves",
                       "rows of one shape; join buffers over such storages in "
                       "a ReplayBufferEnsemble, or pad the rows before they "
                       "are stored");
    }
    if (i == 0) lanes.capacity = member.lanes().capacity;
    if (member.lanes().capacity != lanes.capacity) {
      return BadMember(
          i, absl::StrCat("lanes of ", member.lanes().capacity, " slots"),
          absl::StrCat(lanes.capacity, ", as members[0]"));
    }
    if (member.device() != members[0]->device()) {
      return BadMember(
          i, absl::StrCat("rows on ", member.device().ToString()),
          absl::StrCat(members[0]->device().ToString(), ", as members[0]"));
    }
    if (spec.empty()) spec = member.spec();
    const std::string difference =
        member.spec().empty() ? "" : LayoutDifference(member.spec(), spec);
    if (!difference.empty()) {
      return InvalidArgument(kCreate, ": members[", i, "]: ", difference,
                             ", as a member before has it");
    }
    lanes.count += member.lanes().count;
    if (lanes.count > kMaxLanes || lanes.capacity > kMaxSlots / lanes.count) {
      return BadMember(i,
                       absl::StrCat(lanes.count, " lanes of ", lanes.capacity,
                                    " slots in all"),
                       absl::StrCat("at most ", kMaxLanes, " lanes and ",
                                    kMaxSlots, " slots"));
    }
  }
  if (members.empty()) {
    return InvalidArgument(kCreate, ": members: got 0, want >= 1");
  }
  return lanes;
}

absl::Status NoSlot(absl::string_view caller, Slot slot,
                    const absl::AlphaNum& want) {
  return OutOfRange(caller, ": slot: got ", slot, ", want a live one", want);
}

}  // namespace

// --- Making ------------------------------------------------------------------

EnsembleStorage::State::State(std::vector<std::unique_ptr<Storage>> all,
                              const Lanes& all_lanes)
    : lanes(all_lanes), observers(all_lanes), members(std::move(all)) {
  for (size_t i = 0; i < members.size(); ++i) {
    first_lanes.push_back(static_cast<int64_t>(members_of_lanes.size()));
    members_of_lanes.insert(members_of_lanes.end(),
                            static_cast<size_t>(members[i]->lanes().count), i);
    relays.push_back(std::make_unique<storage_internal::MemberRelay>(
        &observers, FirstSlot(i)));
  }
}

absl::Status EnsembleStorage::State::AttachRelays() {
  for (size_t i = 0; i < size(); ++i) {
    RILL_RETURN_IF_ERROR(members[i]->AddObserver(relays[i].get()))
        << kCreate << ": " << Label(i);
  }
  observers.Clear();  // Nobody is there; passes events on from now on.
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<EnsembleStorage>> EnsembleStorage::Create(
    std::vector<std::unique_ptr<Storage>> members) {
  RILL_ASSIGN_OR_RETURN(const Lanes lanes, JoinedLanes(members));
  auto state = std::make_unique<State>(std::move(members), lanes);
  {
    absl::MutexLock alone(&state->alone_mutex);
    RILL_RETURN_IF_ERROR(state->AttachRelays());
    RILL_RETURN_IF_ERROR(state->LearnSpec());
  }
  return std::unique_ptr<EnsembleStorage>(
      new EnsembleStorage(std::move(state)));
}

namespace {

// A lane is one endless trajectory where all members say so.
EventKeys JoinedKeys(const std::vector<std::unique_ptr<Storage>>& members) {
  const auto told =
      std::find_if(members.begin(), members.end(), [](const auto& member) {
        return !member->traits().event_keys.is_endless();
      });
  return (told == members.end() ? members[0] : *told)->traits().event_keys;
}

}  // namespace

EnsembleStorage::EnsembleStorage(std::unique_ptr<State> state)
    : RequestReader(
          {.lanes = state->lanes,
           .device = state->members[0]->device(),
           .has_blocks = std::any_of(
               state->members.begin(), state->members.end(),
               [](const auto& member) { return member->traits().has_blocks; }),
           .event_keys = JoinedKeys(state->members)}),
      state_(std::move(state)) {}

EnsembleStorage::~EnsembleStorage() = default;

absl::Status EnsembleStorage::State::LearnSpec() {
  if (all_know_spec) return absl::OkStatus();
  const TensorDictSpec spec = members[KnownMember()]->spec();
  if (spec.empty()) return absl::OkStatus();
  // Made once and shared: readers hold it without alone_mutex.
  if (Assembly() == nullptr) {
    RILL_ASSIGN_OR_RETURN(auto made,
                          BatchAssembly::Create(spec, members[0]->device()));
    absl::MutexLock lock(&assembly_mutex);
    assembly = std::move(made);
  }
  all_know_spec =
      std::none_of(members.begin(), members.end(),
                   [](const auto& member) { return member->spec().empty(); });
  return absl::OkStatus();
}

size_t EnsembleStorage::State::KnownMember() const {
  if (all_know_spec) return 0;
  for (size_t i = 0; i < size(); ++i) {
    if (!members[i]->spec().empty()) return i;
  }
  return 0;
}

// --- Whose -------------------------------------------------------------------

std::string EnsembleStorage::State::Label(size_t member) const {
  return absl::StrCat("member ", member, ", whose lane 0 is lane ",
                      first_lanes[member], " and whose slot 0 is slot ",
                      FirstSlot(member));
}

absl::Status EnsembleStorage::State::Explained(
    size_t member, const absl::Status& status) const {
  if (size() == 1) return status;
  RILL_RETURN_IF_ERROR(status) << "said by " << Label(member);
  return absl::OkStatus();
}

absl::Status EnsembleStorage::State::CheckSlots(
    absl::string_view caller, absl::Span<const Slot> slots) const {
  const int64_t num_slots = lanes.num_slots();
  if (storage_internal::AllInRange(slots, num_slots)) return absl::OkStatus();
  const Slot slot = *std::find_if(slots.begin(), slots.end(), [&](Slot each) {
    return each < 0 || each >= num_slots;
  });
  int64_t rows = 0;
  for (const auto& member : members) rows += member->size();
  return NoSlot(caller, slot,
                rows == 0 ? "; no row is stored"
                          : absl::StrCat(" in [0, ", num_slots, ")"));
}

absl::Status EnsembleStorage::State::CheckLive(absl::string_view caller,
                                               absl::Span<const Slot> slots,
                                               const Parts& parts) const {
  // A read of no leaves checks slots and copies nothing. Member by member
  // first; only after an error slot by slot, to name the first one that was
  // asked for.
  TensorDict nothing;
  bool is_live = true;
  for (size_t i = 0; i < size() && is_live; ++i) {
    is_live = parts[i].slots.empty() ||
              members[i]->ReadLeaves(parts[i].slots, {}, &nothing).ok();
  }
  if (is_live) return absl::OkStatus();
  for (const Slot slot : slots) {
    const size_t i = MemberOf(slot);
    const absl::Status status =
        members[i]->ReadLeaves({slot - FirstSlot(i)}, {}, &nothing);
    if (status.ok()) continue;
    return NoSlot(caller, slot,
                  absl::StrCat("; ", Explained(i, status).message()));
  }
  return absl::OkStatus();
}

size_t EnsembleStorage::State::Split(absl::Span<const Slot> slots, Parts* parts,
                                     size_t* only) const {
  parts->members.resize(size());
  for (Part& part : parts->members) {
    part.slots.clear();
    part.places.clear();
  }
  for (size_t i = 0; i < slots.size(); ++i) {
    const size_t member = MemberOf(slots[i]);
    (*parts)[member].slots.push_back(slots[i] - FirstSlot(member));
    (*parts)[member].places.push_back(static_cast<int64_t>(i));
  }
  size_t used = 0;
  for (size_t i = 0; i < size(); ++i) {
    if ((*parts)[i].slots.empty()) continue;
    ++used;
    *only = i;
  }
  return used;
}

int64_t EnsembleStorage::num_members() const {
  return static_cast<int64_t>(state_->size());
}
const Storage& EnsembleStorage::member(int64_t i) const {
  return *state_->members[static_cast<size_t>(i)];
}
int64_t EnsembleStorage::MemberOfSlot(Slot slot) const {
  return static_cast<int64_t>(state_->MemberOf(slot));
}
int64_t EnsembleStorage::MemberOfLane(int64_t lane) const {
  return static_cast<int64_t>(state_->members_of_lanes[lane]);
}

// --- Reading -----------------------------------------------------------------

EnsembleStorage::State::Parts EnsembleStorage::State::TakeParts() const {
  absl::MutexLock lock(&parts_mutex);
  if (unused.empty()) return {};
  Parts parts = std::move(unused.back());
  unused.pop_back();
  return parts;
}

void EnsembleStorage::State::GiveBack(Parts parts) const {
  absl::MutexLock lock(&parts_mutex);
  unused.push_back(std::move(parts));
}

absl::Status EnsembleStorage::State::ReadRows(
    absl::Span<const Slot> slots, const ReadRequest& request) const {
  if (size() == 1) return ReadFrom(*members[0], slots, request);
  if (slots.empty()) return ReadFrom(*members[KnownMember()], slots, request);
  RILL_RETURN_IF_ERROR(CheckSlots(request.caller, slots));
  Parts parts = TakeParts();
  const absl::Status status = ReadParts(slots, request, &parts);
  GiveBack(std::move(parts));
  return status;
}

absl::StatusOr<std::shared_ptr<const BatchAssembly>>
EnsembleStorage::State::KnownAssembly() const {
  std::shared_ptr<const BatchAssembly> known = Assembly();
  if (known != nullptr) return known;
  return BatchAssembly::Create(members[KnownMember()]->spec(),
                               members[0]->device());
}

absl::Status EnsembleStorage::State::ReadParts(absl::Span<const Slot> slots,
                                               const ReadRequest& request,
                                               Parts* parts) const {
  const auto n = static_cast<int64_t>(slots.size());
  size_t only = 0;
  // Rows of one member go straight to the caller's places. Those of several are
  // read into batches of their own and scattered from there.
  const bool is_whole = Split(slots, parts, &only) == 1;
  std::shared_ptr<const BatchAssembly> known;
  if (!is_whole) {
    RILL_ASSIGN_OR_RETURN(known, KnownAssembly());
    RILL_RETURN_IF_ERROR(parts->places.Find(known->source(), n, request));
    parts->places.Bind(known->source(), n, &parts->bound);
  }
  for (size_t i = 0; i < size(); ++i) {
    Part& part = (*parts)[i];
    if (part.slots.empty()) continue;
    const ReadRequest of_part = {.caller = request.caller,
                                 .out = &part.rows,
                                 .keys = parts->bound.wanted()};
    const absl::Status status =
        ReadFrom(*members[i], part.slots, is_whole ? request : of_part);
    if (status.ok()) continue;
    // The member's error names its own slot; the caller's is to be named.
    if (absl::IsOutOfRange(status)) {
      RILL_RETURN_IF_ERROR(CheckLive(request.caller, slots, *parts));
    }
    return Explained(i, status);
  }
  if (is_whole) return absl::OkStatus();
  for (const Part& part : parts->members) {
    if (part.slots.empty()) continue;
    RILL_RETURN_IF_ERROR(
        known->Put(part.rows, part.places, parts->places.leaves));
  }
  parts->places.Finish(request);
  return absl::OkStatus();
}

absl::Status EnsembleStorage::ReadRows(absl::Span<const Slot> slots,
                                       const ReadRequest& request) const {
  return state_->ReadRows(slots, request);
}

absl::StatusOr<SlotLease> EnsembleStorage::Lease(SlotRange range) const {
  const State& state = *state_;
  size_t member = 0;
  if (range.count == 0) {
    member = state.KnownMember();
  } else {
    RILL_RETURN_IF_ERROR(state.CheckSlots("Storage::Lease", {range.first}));
    member = state.MemberOf(range.first);
    range.first -= state.FirstSlot(member);
  }
  auto lease = state.members[member]->Lease(range);
  if (!lease.ok()) return state.Explained(member, lease.status());
  state_->lent.Add(lease->rows());
  return lease;
}

// --- What the members say ----------------------------------------------------

int64_t EnsembleStorage::size() const {
  int64_t rows = 0;
  for (const auto& member : state_->members) rows += member->size();
  return rows;
}

std::vector<Cursor> EnsembleStorage::cursors() const {
  std::vector<Cursor> all;
  for (const auto& member : state_->members) {
    const std::vector<Cursor> some = member->cursors();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

TensorDictSpec EnsembleStorage::spec() const {
  return state_->members[state_->KnownMember()]->spec();
}

StorageUsage EnsembleStorage::MemoryUsage() const {
  StorageUsage all;
  std::vector<StorageUsage> usages;
  for (const auto& member : state_->members) {
    usages.push_back(member->MemoryUsage());
    all.row = std::max(all.row, usages.back().row);
  }
  for (size_t i = 0; i < usages.size(); ++i) {
    all.memory += usages[i].memory;
    all.device += usages[i].device;
    all.disk += usages[i].disk;
    if (usages[i].disk_free.has_value()) {
      all.disk_free = std::min(*usages[i].disk_free,
                               all.disk_free.value_or(*usages[i].disk_free));
    }
    // An estimate: rows of the members that know, without gaps.
    // Members that do not know their rows yet will.
    all.full += usages[i].row == 0 ? all.row * state_->members[i]->capacity()
                                   : usages[i].full;
    all.saved += usages[i].saved;
  }
  return all;
}

absl::Status EnsembleStorage::Sync() {
  for (size_t i = 0; i < state_->size(); ++i) {
    RILL_RETURN_IF_ERROR(state_->members[i]->Sync()) << state_->Label(i);
  }
  return absl::OkStatus();
}

}  // namespace rill
