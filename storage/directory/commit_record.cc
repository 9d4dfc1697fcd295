// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/directory/commit_record.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/crc/crc32c.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"

namespace rill::storage_internal {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr char kMagic[8] = {'R', 'I', 'L', 'L', 'R', 'E', 'C', '1'};
constexpr int64_t kPageBytes = 4096;
constexpr int64_t kMarksOffset = 128;

struct Header {
  char magic[8];
  uint64_t number;
  int64_t lanes;
  int64_t lane_capacity;
  LaneSteps in_flight;  // The first.
  uint64_t sum;         // Of the marks.
  uint64_t generation;
  // CRC of all before it and, where num_more is not 0, of all behind it.
  uint32_t crc;
  uint32_t num_more;  // In flight beside the first.
  std::array<LaneSteps, kMaxAppendsInFlight - 1> more;
};
static_assert(sizeof(Header) == kMarksOffset && offsetof(Header, crc) == 72 &&
              offsetof(Header, num_more) == 76 && offsetof(Header, more) == 80);

// The bytes of a header that carry a value.
size_t CountingBytes(const Header& header) {
  return header.num_more == 0 ? offsetof(Header, more) : sizeof(Header);
}

uint32_t CrcOf(const Header& header) {
  const char* const bytes = reinterpret_cast<const char*>(&header);
  absl::crc32c_t crc =
      absl::ComputeCrc32c(absl::string_view(bytes, offsetof(Header, crc)));
  if (header.num_more != 0) {
    constexpr size_t kMore = offsetof(Header, num_more);
    crc = absl::ExtendCrc32c(
        crc, absl::string_view(bytes + kMore, sizeof(Header) - kMore));
  }
  return static_cast<uint32_t>(crc);
}

// A mix of 64 bits that the format fixes. Sums of it change in O(1) with a
// lane.
uint64_t HashOf(int64_t lane, const LaneMark& mark) {
  uint64_t x = static_cast<uint64_t>(mark.written) * 0x9E3779B97F4A7C15u +
               std::rotl(static_cast<uint64_t>(mark.first_live), 32) *
                   0xC2B2AE3D27D4EB4Fu +
               (static_cast<uint64_t>(lane) + 1) * 0x165667B19E3779F9u;
  x = (x ^ (x >> 29)) * 0xBF58476D1CE4E5B9u;
  return x ^ (x >> 32);
}

uint64_t SumOf(absl::Span<const LaneMark> marks) {
  uint64_t sum = 0;
  for (size_t lane = 0; lane < marks.size(); ++lane) {
    sum += HashOf(static_cast<int64_t>(lane), marks[lane]);
  }
  return sum;
}

// Also for appends that a damaged file names: no sum overflows.
bool IsWithin(const LaneSteps& append, const CommitState& state) {
  const int64_t lanes = static_cast<int64_t>(state.marks.size());
  return append.steps > 0 && append.first >= 0 && append.first <= lanes &&
         append.count >= 0 && append.count <= lanes - append.first;
}

// The appends in flight are such as can be.
bool AreWithin(const CommitState& state) {
  const absl::Span<const LaneSteps> appends = state.in_flight;
  for (size_t i = 0; i < appends.size(); ++i) {
    const LaneSteps& append = appends[i];
    if (!IsWithin(append, state)) return false;
    for (int64_t lane = append.first; lane < append.end(); ++lane) {
      const int64_t written =
          state.marks[lane].written + StepsInFlight(appends.first(i), lane);
      if (append.steps > kMaxWritten - written) return false;
    }
  }
  return true;
}

// Both headers at one moment: what they were when the first was read, if they
// are so still. A slot that is being written is not whole, and its header is
// the old one, or none whose checksum fits, until it is.
struct Headers {
  Header slot[2];
};

Headers LoadHeaders(const std::byte* bytes, int64_t slot_bytes) {
  Headers headers;
  std::memcpy(&headers.slot[0], bytes, sizeof(Header));
  std::memcpy(&headers.slot[1], bytes + slot_bytes, sizeof(Header));
  return headers;
}

bool AreSame(const Headers& a, const Headers& b) {
  return std::memcmp(&a, &b, sizeof(a)) == 0;
}

// Loads before it stay before those after it.
void LoadFence() { std::atomic_thread_fence(std::memory_order_acquire); }

// Numbers go round, so that no record is one that nobody can go on from; 0 is
// that of none.
bool IsLater(uint64_t number, uint64_t than) {
  return than == 0 || (number != 0 && static_cast<int64_t>(number - than) > 0);
}

// A header whose CRC fits may still be that of other lanes, where a file was
// copied.
bool IsHeaderWhole(const Header& header, const Lanes& lanes) {
  return std::memcmp(header.magic, kMagic, sizeof(kMagic)) == 0 &&
         header.num_more <= kMaxAppendsInFlight - 1 &&
         header.crc == CrcOf(header) && header.lanes == lanes.count &&
         header.lane_capacity == lanes.capacity;
}

// Reads a slot; its number is 0 where the slot is not whole.
void ReadSlot(const std::byte* slot, const Lanes& lanes, CommitView* view) {
  // 0 until everything fits, as the bytes may be of a slot that is half
  // written.
  view->number = 0;
  Header header;
  std::memcpy(&header, slot, sizeof(header));
  if (!IsHeaderWhole(header, lanes)) return;
  CommitState& state = view->state;
  state.marks.resize(lanes.count);
  std::memcpy(state.marks.data(), slot + kMarksOffset,
              lanes.count * sizeof(LaneMark));
  view->generation = header.generation;
  state.in_flight.clear();
  if (header.in_flight.steps != 0) state.in_flight.push_back(header.in_flight);
  state.in_flight.insert(state.in_flight.end(), header.more.begin(),
                         header.more.begin() + header.num_more);
  // Marks are checked by value before their sum: the CRC covers the header
  // only, and a sum can fit by chance.
  const bool are_marks_sound = std::all_of(
      state.marks.begin(), state.marks.end(), [](const LaneMark& mark) {
        return mark.first_live >= 0 && mark.first_live <= mark.written &&
               mark.written <= kMaxWritten;
      });
  if (are_marks_sound && SumOf(state.marks) == header.sum && AreWithin(state)) {
    view->number = header.number;
  }
}

// Stores before it stay before those after it.
void Fence() { std::atomic_thread_fence(std::memory_order_release); }

int64_t SlotBytes(int64_t lanes) {
  const int64_t bytes =
      kMarksOffset + lanes * static_cast<int64_t>(sizeof(LaneMark));
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

absl::Status CheckSize(absl::Span<const std::byte> bytes, const Lanes& lanes) {
  const int64_t want = CommitRecord::SizeBytes(lanes.count);
  if (static_cast<int64_t>(bytes.size()) == want) return absl::OkStatus();
  return DataLoss("CommitRecord::Read: size: got ", bytes.size(),
                  " bytes, want ", want, " for ", lanes.count, " lanes");
}

absl::Status NoWholeSlot(const Lanes& lanes) {
  return DataLoss(
      "CommitRecord::Read: slots: got none whose checksums fit, want one of ",
      lanes.count, " lanes of ", lanes.capacity,
      "; which rows are whole is not known");
}

}  // namespace

int64_t CommitRecord::SizeBytes(int64_t lanes) { return 2 * SlotBytes(lanes); }

absl::StatusOr<CommitView> CommitRecord::Read(absl::Span<const std::byte> bytes,
                                              const Lanes& lanes) {
  RILL_RETURN_IF_ERROR(CheckSize(bytes, lanes));
  CommitView views[2];
  ReadSlot(bytes.data(), lanes, &views[0]);
  ReadSlot(bytes.data() + SlotBytes(lanes.count), lanes, &views[1]);
  CommitView& newest = views[IsLater(views[0].number, views[1].number) ? 0 : 1];
  if (newest.number == 0) return NoWholeSlot(lanes);
  return std::move(newest);
}

absl::Status CommitRecord::ReadLive(absl::Span<const std::byte> bytes,
                                    const Lanes& lanes, CommitView* view) {
  RILL_RETURN_IF_ERROR(CheckSize(bytes, lanes));
  constexpr int kTries = 1000;
  const int64_t slot_bytes = SlotBytes(lanes.count);
  for (int tries = 0; tries < kTries; ++tries) {
    const Headers before = LoadHeaders(bytes.data(), slot_bytes);
    LoadFence();
    uint64_t number[2];
    for (int slot = 0; slot < 2; ++slot) {
      number[slot] = IsHeaderWhole(before.slot[slot], lanes)
                         ? before.slot[slot].number
                         : 0;
    }
    const int newest = IsLater(number[0], number[1]) ? 0 : 1;
    ReadSlot(bytes.data() + newest * slot_bytes, lanes, view);
    // A header goes with its marks unless the disk lost some of them.
    if (view->number == 0) {
      ReadSlot(bytes.data() + (1 - newest) * slot_bytes, lanes, view);
    }
    LoadFence();
    if (!AreSame(before, LoadHeaders(bytes.data(), slot_bytes))) continue;
    return view->number == 0 ? NoWholeSlot(lanes) : absl::OkStatus();
  }
  return Unavailable("CommitRecord::ReadLive: got another state at each of ",
                     kTries, " tries, want one to read; try again");
}

bool CommitRecord::IsNewest(absl::Span<const std::byte> bytes,
                            const Lanes& lanes, uint64_t number) {
  LoadFence();  // What was copied comes before.
  const int64_t slot_bytes = SlotBytes(lanes.count);
  const Headers headers = LoadHeaders(bytes.data(), slot_bytes);
  LoadFence();
  if (!AreSame(headers, LoadHeaders(bytes.data(), slot_bytes))) return false;
  bool is_there = false;
  for (const Header& header : headers.slot) {
    if (!IsHeaderWhole(header, lanes)) continue;
    if (IsLater(header.number, number)) return false;
    is_there = is_there || header.number == number;
  }
  return is_there;
}

CommitState CommitRecord::Settle(CommitState state, const Lanes& lanes) {
  const auto appends = std::exchange(state.in_flight, {});
  for (int64_t lane = 0; !appends.empty() && lane < lanes.count; ++lane) {
    const int64_t steps = StepsInFlight(appends, lane);
    if (steps == 0) continue;
    LaneMark& mark = state.marks[lane];
    // The appends would have taken the slots of all steps before that one.
    mark.first_live = std::clamp(mark.written + steps - lanes.capacity,
                                 mark.first_live, mark.written);
  }
  return state;
}

CommitRecord::CommitRecord(absl::Span<std::byte> bytes, const Lanes& lanes,
                           absl::Span<const LaneMark> marks)
    : bytes_(bytes.data()), lanes_(lanes), slot_bytes_(SlotBytes(lanes.count)) {
  CommitView views[2];
  for (int slot = 0; slot < 2; ++slot) {
    ReadSlot(Slot(slot), lanes, &views[slot]);
  }
  current_ = IsLater(views[0].number, views[1].number) ? 0 : 1;
  number_ = views[current_].number;
  if (number_ > 0) generation_ = views[current_].generation;
  Set(marks);
}

LaneMark* CommitRecord::Marks(int index) const {
  return reinterpret_cast<LaneMark*>(Slot(index) + kMarksOffset);
}

void CommitRecord::Publish() {
  const int next = 1 - current_;
  if (++number_ == 0) number_ = 1;
  Header header = {.magic = {},
                   .number = number_,
                   .lanes = lanes_.count,
                   .lane_capacity = lanes_.capacity,
                   .in_flight = {},
                   .sum = sum_,
                   .generation = generation_,
                   .crc = 0,
                   .num_more = 0,
                   .more = {}};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  if (!in_flight_.empty()) {
    header.in_flight = in_flight_[0];
    header.num_more = static_cast<uint32_t>(in_flight_.size()) - 1;
    std::copy(in_flight_.begin() + 1, in_flight_.end(), header.more.begin());
  }
  header.crc = CrcOf(header);
  // A process that is killed leaves its stores in program order, which the
  // fences keep the compiler from changing. For a reader in another process
  // they order the CPU's stores too. The header itself needs no order: its CRC
  // does not fit before all of it is there.
  Fence();  // Marks, and rows, before the header that tells of them.
  std::memcpy(Slot(next), &header, CountingBytes(header));
  Fence();  // And it before what follows.
  current_ = next;
}

// Gives the other slot, which counts next, the marks that the last commit moved
// in this one only. All other marks are the same in both.
void CommitRecord::CatchUp() {
  std::copy_n(Marks(current_) + behind_first_, behind_count_,
              Marks(1 - current_) + behind_first_);
  behind_count_ = 0;
}

int64_t CommitRecord::FirstKept(const LaneSteps& append, int64_t lane) const {
  return Marks(current_)[lane].written + StepsInFlight(in_flight_, lane) +
         append.steps - lanes_.capacity;
}

void CommitRecord::Announce(const LaneSteps& append) {
  CatchUp();
  in_flight_.push_back(append);
  Publish();
}

void CommitRecord::Commit(const LaneSteps& append) {
  CatchUp();
  in_flight_.erase(std::find(in_flight_.begin(), in_flight_.end(), append));
  LaneMark* const marks = Marks(1 - current_);
  for (int64_t lane = append.first; lane < append.end(); ++lane) {
    LaneMark& mark = marks[lane];
    sum_ -= HashOf(lane, mark);
    mark.written += append.steps;
    // The ring alone excludes those steps from here on.
    if (mark.first_live <= mark.written - lanes_.capacity) mark.first_live = 0;
    sum_ += HashOf(lane, mark);
  }
  behind_first_ = append.first;
  behind_count_ = append.count;
  Publish();
}

void CommitRecord::StartGeneration(bool is_odd) {
  // Always a new number: readers compare it for equality.
  generation_ += (generation_ % 2 != 0) == is_odd ? 2 : 1;
}

void CommitRecord::BeginInPlace() {
  // Changes that overlap share one odd generation.
  if (++in_place_ > 1) {
    ++joined_;
    return;
  }
  CatchUp();
  StartGeneration(/*is_odd=*/true);
  Publish();
}

void CommitRecord::EndInPlace() {
  if (--in_place_ > 0) return;
  joined_ = 0;
  CatchUp();
  StartGeneration(/*is_odd=*/false);
  Publish();
}

void CommitRecord::Set(absl::Span<const LaneMark> marks) {
  StartGeneration(/*is_odd=*/in_place_ > 0);
  in_flight_.clear();
  // All marks are stored here, so the slot need not catch up first.
  std::copy(marks.begin(), marks.end(), Marks(1 - current_));
  sum_ = SumOf(marks);
  behind_first_ = 0;
  behind_count_ = lanes_.count;
  Publish();
}

}  // namespace rill::storage_internal
