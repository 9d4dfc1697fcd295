// SPDX-License-Identifier: Apache-2.0
#include "rill/flow/channel/shared_rings.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "rill/base/status_macros.h"
#include "rill/flow/channel/process_id.h"
#include "rill/flow/channel/shared_signal.h"

// Positions are bytes since the beginning, in 64 bits, which never wrap in
// practice. A ring is empty where they are equal and full where they differ by
// its size, so no byte is left unused to tell the two apart. The writer alone
// moves `committed`, the reader alone `released`. A commit is one release
// store, which the reader acquires; space is handed back in the same way. There
// is no lock that a dead process could hold.
//
// The memory: a page for Shared, one for each RingHeader, then the rings. In a
// process's addresses each ring comes twice, the second time right behind the
// first, so a record that begins near the end runs on into the copy.

namespace rill::channel_internal {
namespace {

constexpr uint64_t kMagic = 0x31474e52'4c4c4952;  // "RILLRNG1"
constexpr uint64_t kNobody = 0;
constexpr uint64_t kClosed = ~uint64_t{0};
constexpr char kName[] = "rill_channel";  // In /proc, for people.

}  // namespace

// One process's words and the other's lie on lines of their own.
struct SharedRings::Shared {
  uint64_t magic;
  uint64_t tag;
  int64_t num_rings;
  int64_t ring_bytes;
  std::atomic<uint64_t> reader;  // ProcessId.
  std::atomic<bool> is_closed;
  alignas(64) SharedSignal data;
};

struct SharedRings::RingHeader {
  alignas(64) std::atomic<uint64_t> committed;
  std::atomic<uint64_t> writer;  // ProcessId, kNobody or kClosed.
  alignas(64) std::atomic<uint64_t> released;
  std::atomic<bool> is_abandoned;
  SharedSignal space;
};

absl::StatusOr<std::shared_ptr<SharedRings>> SharedRings::Create(
    int64_t num_rings, int64_t ring_bytes, uint64_t tag) {
  constexpr absl::string_view kCreate = "SharedRings::Create";
  const int64_t page = AddressRange::PageBytes();
  if (num_rings < 1 || num_rings > kMaxRings || ring_bytes < 1 ||
      ring_bytes > kMaxRingBytes) {
    return InvalidArgument(kCreate, ": got ", num_rings, " rings of ",
                           ring_bytes, " bytes, want 1 to ", kMaxRings,
                           " of 1 to ", kMaxRingBytes);
  }
  ring_bytes = (ring_bytes + page - 1) / page * page;
  const int64_t bytes = page + num_rings * (page + ring_bytes);
  RILL_ASSIGN_OR_RETURN(auto memory,
                        AnonymousMemory::Create(kCreate, kName, bytes));
  RILL_RETURN_IF_ERROR(memory->Reserve(kCreate, 0, bytes))
      << "use smaller rings";
  std::shared_ptr<SharedRings> rings(new SharedRings(std::move(memory)));
  RILL_RETURN_IF_ERROR(rings->Map(num_rings, ring_bytes));
  Shared* const shared = rings->shared_;
  shared->tag = tag;
  shared->num_rings = num_rings;
  shared->ring_bytes = ring_bytes;
  shared->reader.store(ProcessId::Mine().word());
  shared->magic = kMagic;
  return rings;
}

absl::StatusOr<std::shared_ptr<SharedRings>> SharedRings::Attach(int fd,
                                                                 uint64_t tag) {
  constexpr absl::string_view kAttach = "SharedRings::Attach";
  auto memory = AnonymousMemory::Adopt(fd);
  const auto wrong = [&](absl::string_view what) {
    return InvalidArgument(kAttach, ": descriptor ", fd, ": got ", what,
                           ", want that of a channel of the same spec");
  };
  struct {
    uint64_t magic;
    uint64_t tag;
    int64_t num_rings;
    int64_t ring_bytes;
  } first;
  static_assert(offsetof(Shared, reader) == sizeof(first));
  if (memory == nullptr ||
      !memory->Read(
          0, absl::MakeSpan(reinterpret_cast<char*>(&first), sizeof(first)))) {
    return wrong("something else");
  }
  const int64_t page = AddressRange::PageBytes();
  const int64_t num_rings = first.num_rings;
  const int64_t ring_bytes = first.ring_bytes;
  if (first.magic != kMagic) return wrong("something else");
  if (num_rings < 1 || num_rings > kMaxRings || ring_bytes < 1 ||
      ring_bytes > kMaxRingBytes || ring_bytes % page != 0 ||
      memory->size_bytes() != page + num_rings * (page + ring_bytes)) {
    return wrong("numbers that cannot be");
  }
  // Both sides lay the leaves out by the spec, and nothing else says where they
  // are.
  if (first.tag != tag) return wrong("another spec's");
  std::shared_ptr<SharedRings> rings(new SharedRings(std::move(memory)));
  RILL_RETURN_IF_ERROR(rings->Map(num_rings, ring_bytes));
  return rings;
}

absl::Status SharedRings::Map(int64_t num_rings, int64_t ring_bytes) {
  const int64_t page = AddressRange::PageBytes();
  const int64_t header_bytes = page * (1 + num_rings);
  static_assert(sizeof(Shared) <= 4096 && sizeof(RingHeader) <= 4096);
  RILL_ASSIGN_OR_RETURN(
      range_, AddressRange::Create(header_bytes + 2 * num_rings * ring_bytes));
  std::byte* const base = range_->data();
  const auto map = [&](int64_t at, int64_t bytes, int64_t offset) {
    return memory_->Map("SharedRings", *range_, at, offset, bytes);
  };
  RILL_RETURN_IF_ERROR(map(0, header_bytes, 0));
  for (int64_t i = 0; i < num_rings; ++i) {
    const int64_t data = header_bytes + 2 * i * ring_bytes;
    const int64_t offset = header_bytes + i * ring_bytes;
    RILL_RETURN_IF_ERROR(map(data, ring_bytes, offset));
    RILL_RETURN_IF_ERROR(map(data + ring_bytes, ring_bytes, offset));
    rings_.push_back(
        {.header = reinterpret_cast<RingHeader*>(base + page * (1 + i)),
         .data = base + data});
  }
  ring_bytes_ = ring_bytes;
  shared_ = reinterpret_cast<Shared*>(base);
  return absl::OkStatus();
}

void SharedRings::CloseReader() {
  // A forked child destroys its copy of the object too; the parent reads on.
  if (ProcessId::OfWord(shared_->reader.load()) != ProcessId::Mine()) return;
  shared_->is_closed.store(true);
  for (const Ring& ring : rings_) ring.header->space.Raise();
}

absl::StatusOr<bool> SharedRings::ReaderIsGone(const RingHeader& header,
                                               bool look) const {
  if (shared_->is_closed.load() || header.is_abandoned.load() ||
      (look && !ProcessId::OfWord(shared_->reader.load()).IsAlive())) {
    return Unavailable(
        "the reader has gone, or reads this ring no more; what it had not read "
        "is lost");
  }
  return false;
}

absl::StatusOr<SharedRings::WriterState> SharedRings::OpenWriter(int64_t ring) {
  constexpr absl::string_view kOpen = "SharedRings::OpenWriter";
  if (ring < 0 || ring >= num_rings()) {
    return OutOfRange(kOpen, ": ring: got ", ring, ", want [0, ", num_rings(),
                      ")");
  }
  RingHeader& header = *rings_[ring].header;
  if (header.is_abandoned.load()) {
    return FailedPrecondition(kOpen, ": ring ", ring,
                              " was abandoned by its reader; use another");
  }
  uint64_t holder = header.writer.load();
  // compare_exchange, as two new writers may come at once: one of them gets the
  // ring.
  if ((holder != kNobody && holder != kClosed &&
       ProcessId::OfWord(holder).IsAlive()) ||
      !header.writer.compare_exchange_strong(holder,
                                             ProcessId::Mine().word())) {
    return FailedPrecondition(kOpen, ": ring ", ring, " has a writer, process ",
                              ProcessId::OfWord(holder).pid(), "; use another");
  }
  const bool has_died = holder != kNobody && holder != kClosed;
  rings_[ring].closed_as = has_died ? holder : kClosed;
  if (has_died) return WriterState::kDied;
  return holder == kClosed ? WriterState::kClosed : WriterState::kNone;
}

void SharedRings::CloseWriter(int64_t ring) {
  uint64_t mine = ProcessId::Mine().word();  // Not that of a forked copy.
  rings_[ring].header->writer.compare_exchange_strong(mine,
                                                      rings_[ring].closed_as);
  shared_->data.Raise();
}

absl::StatusOr<std::byte*> SharedRings::Reserve(int64_t ring, int64_t bytes,
                                                absl::Duration timeout) {
  if (bytes < 0 || bytes > ring_bytes_) {
    return InvalidArgument("a record of ", bytes, " bytes, want at most ",
                           ring_bytes_, ", which is what a ring holds");
  }
  RingHeader& header = *rings_[ring].header;
  // Its own, hence relaxed. `released` is acquired: the reader's loads from the
  // space come before this process's stores to it.
  const uint64_t committed = header.committed.load(std::memory_order_relaxed);
  const auto has_space = [&] {
    return committed - header.released.load(std::memory_order_acquire) +
               bytes <=
           static_cast<uint64_t>(ring_bytes_);
  };
  RILL_RETURN_IF_ERROR(ReaderIsGone(header, /*look=*/false).status());
  if (!has_space()) {
    RILL_RETURN_IF_ERROR(
        header.space.Await(timeout, [&](bool look) -> absl::StatusOr<bool> {
          if (has_space()) return true;
          return ReaderIsGone(header, look);
        }));
  }
  return rings_[ring].data + committed % ring_bytes_;
}

void SharedRings::Commit(int64_t ring, int64_t bytes) {
  std::atomic<uint64_t>& committed = rings_[ring].header->committed;
  rings_[ring].closed_as = kClosed;
  committed.store(committed.load(std::memory_order_relaxed) + bytes,
                  std::memory_order_release);
  shared_->data.Raise();
}

absl::Status SharedRings::WaitUntilReleased(int64_t ring,
                                            absl::Duration timeout) {
  RingHeader& header = *rings_[ring].header;
  return header.space.Await(timeout, [&](bool look) -> absl::StatusOr<bool> {
    if (header.released.load() == header.committed.load()) return true;
    return ReaderIsGone(header, look);
  });
}

bool SharedRings::IsReadable(const Ring& ring) const {
  return !ring.is_abandoned && ring.header->committed.load() != ring.released;
}

absl::StatusOr<absl::Span<const std::byte>> SharedRings::Readable(
    int64_t index) const {
  const Ring& ring = rings_[index];
  if (ring.is_abandoned) return absl::Span<const std::byte>();
  const uint64_t bytes =
      ring.header->committed.load(std::memory_order_acquire) - ring.released;
  // The reader's own position cannot be written over, so this bounds every span
  // by the mapping, whatever the writer's process has stored.
  if (bytes > static_cast<uint64_t>(ring_bytes_)) {
    return DataLoss(bytes, " bytes in a ring of ", ring_bytes_);
  }
  return absl::MakeConstSpan(ring.data + ring.released % ring_bytes_, bytes);
}

void SharedRings::Release(int64_t index, int64_t bytes) {
  Ring& ring = rings_[index];
  ring.released += bytes;
  ring.header->released.store(ring.released, std::memory_order_release);
  ring.header->space.Raise();
}

void SharedRings::Abandon(int64_t index) {
  rings_[index].is_abandoned = true;
  rings_[index].header->is_abandoned.store(true);
  rings_[index].header->space.Raise();
}

absl::Status SharedRings::WaitForData(absl::Duration timeout) {
  return shared_->data.Await(timeout, [&](bool look) -> absl::StatusOr<bool> {
    const auto is_readable = [&] {
      return std::any_of(rings_.begin(), rings_.end(),
                         [&](const Ring& ring) { return IsReadable(ring); });
    };
    if (is_readable()) return true;
    for (const Ring& ring : rings_) {
      const uint64_t writer = ring.header->writer.load();
      if (ring.is_abandoned || writer == kClosed) continue;
      // A ring without a writer may still get one. Alive is asked only when a
      // look is due: the kernel's answer costs microseconds.
      if (writer == kNobody || !look || ProcessId::OfWord(writer).IsAlive()) {
        return false;
      }
    }
    // A writer commits first, then goes.
    if (is_readable()) return true;
    return Unavailable("every writer has gone");
  });
}

SharedRings::WriterState SharedRings::writer_state(int64_t ring) const {
  const uint64_t writer = rings_[ring].header->writer.load();
  if (writer == kNobody) return WriterState::kNone;
  if (writer == kClosed) return WriterState::kClosed;
  return ProcessId::OfWord(writer).IsAlive() ? WriterState::kAlive
                                             : WriterState::kDied;
}

}  // namespace rill::channel_internal
