// SPDX-License-Identifier: Apache-2.0
#include "rill/flow/weights/weight_store.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "rill/base/fault_point.h"
#include "rill/base/sparse_file.h"
#include "rill/base/status_macros.h"
#include "rill/flow/channel/anonymous_memory.h"
#include "rill/flow/channel/process_id.h"
#include "rill/flow/packed_leaves.h"
#include "rill/flow/weights/snapshot_pins.h"
#include "rill/flow/weights/weight_layout.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/finite_check.h"
#include "rill/tensors/shape.h"

// snapshot_pins.h has the algorithm and its proof; here is the memory, and who
// may have which place in it. Three others were rejected. The readers of a
// sequence lock copy, and begin again while a fast writer overtakes them. A
// count of readers in each buffer stays too high for ever when a reader is
// killed. A plain pin races: between a reader's look at the latest and its pin,
// the writer may come round to that buffer. So the pin first says that it is
// being taken, and the writer sets it to the latest itself.
//
// The number of buffers is for the worst case, each reader at another snapshot.
// FreeBuffer takes the first that is free, and memory is reserved at a buffer's
// first use, so readers that keep up cost two or three.

namespace rill {
namespace {

using channel_internal::AnonymousMemory;
using channel_internal::ProcessId;
using weights_internal::BufferOf;
using weights_internal::FreeBuffer;
using weights_internal::kMaxVersion;
using weights_internal::kNoSnapshot;
using weights_internal::PinNewest;
using weights_internal::SnapshotWord;
using weights_internal::VersionOf;
using weights_internal::WeightLayout;

using Slot = weights_internal::ReaderSlot<std::atomic<uint64_t>>;
// Processes share them.
static_assert(std::atomic<uint64_t>::is_always_lock_free);

constexpr absl::string_view kCreate = "WeightStore::Create";
constexpr absl::string_view kPublish = "WeightStore::Publish";
constexpr absl::string_view kAttach = "WeightStore::AttachReader";
constexpr uint64_t kMagic = 0x31544757'4c4c4952;  // "RILLWGT1"
constexpr uint64_t kNobody = 0;
constexpr int64_t kMaxReaders = 4096;
constexpr int64_t kMaxDescriptionBytes = int64_t{1} << 24;

int64_t RoundUpToPage(int64_t bytes) {
  const int64_t page = AddressRange::PageBytes();
  return (bytes + page - 1) / page * page;
}

// The memory begins with these.
struct Sizes {
  uint64_t magic;
  int64_t max_readers;
  int64_t description_bytes;
  int64_t buffer_bytes;  // A multiple of pages.

  // Where the parts of the memory begin: this, the latest snapshot's word, the
  // readers' slots; the layout; buffers.
  int64_t description_at() const {
    return RoundUpToPage(sizeof(Slot) * (2 + max_readers));
  }
  int64_t buffers_at() const {
    return description_at() + RoundUpToPage(description_bytes);
  }
  int64_t num_buffers() const { return max_readers + 2; }
  int64_t buffer_at(int64_t i) const { return buffers_at() + i * buffer_bytes; }
  int64_t total_bytes() const { return buffer_at(num_buffers()); }

  static bool IsNumber(int64_t number, int64_t most) {
    return number >= 1 && number <= most;
  }
  bool is_possible() const {
    return IsNumber(max_readers, kMaxReaders) &&
           IsNumber(description_bytes, kMaxDescriptionBytes) &&
           IsNumber(buffer_bytes, WeightLayout::kMaxBytes) &&
           buffer_bytes % AddressRange::PageBytes() == 0;
  }
};

// A snapshot of no bytes has a page, so that each buffer has its own.
int64_t BufferBytes(const WeightLayout& layout) {
  return std::max(RoundUpToPage(layout.PackedBytes()),
                  AddressRange::PageBytes());
}

absl::StatusOr<WeightLayout> LayoutOf(const TensorDict& weights) {
  RILL_RETURN_IF_ERROR(flow_internal::CheckOnlyTensors(kCreate, weights));
  WeightLayout layout{.batch_shape = weights.batch_shape(),
                      .spec = TensorDictSpec::Of(weights)};
  const int64_t bytes = layout.PackedBytes();
  if (layout.spec.leaves().empty() || bytes < 0 ||
      bytes > WeightLayout::kMaxBytes) {
    return InvalidArgument(kCreate, ": weights: got ",
                           layout.spec.leaves().size(), " tensors of bytes ",
                           bytes, ", want at least one, and bytes of [0, ",
                           WeightLayout::kMaxBytes, "]");
  }
  return layout;
}

}  // namespace

// The memory as one process sees it.
class WeightStore::Shared {
 public:
  // Readers of other processes cannot write to the snapshots.
  static absl::StatusOr<std::shared_ptr<Shared>> Map(
      absl::string_view caller, std::unique_ptr<AnonymousMemory> memory,
      const Sizes& sizes, WeightLayout layout, bool is_writer) {
    std::shared_ptr<Shared> shared(
        new Shared(std::move(memory), sizes, std::move(layout)));
    RILL_ASSIGN_OR_RETURN(shared->range_,
                          AddressRange::Create(sizes.total_bytes()));
    const AddressRange& range = *shared->range_;
    const int64_t split = sizes.buffers_at();
    RILL_RETURN_IF_ERROR(shared->memory_->Map(caller, range, 0, 0, split));
    RILL_RETURN_IF_ERROR(shared->memory_->Map(
        caller, range, split, split, sizes.total_bytes() - split, is_writer));
    for (int64_t i = 0; i < sizes.num_buffers(); ++i) {
      RILL_ASSIGN_OR_RETURN(
          TensorDict view,
          flow_internal::ViewPackedLeaves(shared->layout_.spec,
                                          shared->layout_.batch_shape,
                                          shared->buffer(i), shared->range_));
      shared->views_.push_back(std::move(view));
    }
    return shared;
  }

  const AnonymousMemory& memory() const { return *memory_; }
  const Sizes& sizes() const { return sizes_; }
  const WeightLayout& layout() const { return layout_; }
  std::byte* buffer(int64_t i) const {
    return range_->data() + sizes_.buffer_at(i);
  }
  // The word of a process that wrote over it may name no buffer.
  const TensorDict& view(uint64_t word) const {
    return views_[BufferOf(word) % views_.size()];
  }
  std::atomic<uint64_t>& current() const {
    return *reinterpret_cast<std::atomic<uint64_t>*>(range_->data() +
                                                     sizeof(Slot));
  }
  absl::Span<Slot> slots() const {
    return absl::MakeSpan(
        reinterpret_cast<Slot*>(range_->data() + 2 * sizeof(Slot)),
        sizes_.max_readers);
  }

  // Before anybody else sees the memory.
  void Initialize() {
    new (&current()) std::atomic<uint64_t>(kNoSnapshot);
    for (Slot& slot : slots()) new (&slot) Slot();
    const std::string description = layout_.ToBytes();
    std::memcpy(range_->data() + sizes_.description_at(), description.data(),
                description.size());
    std::memcpy(range_->data(), &sizes_, sizeof(sizes_));
  }

  static absl::StatusOr<std::unique_ptr<Reader>> Open(
      absl::string_view caller, std::shared_ptr<Shared> shared) {
    const uint64_t mine = ProcessId::Mine().word();
    const absl::Span<Slot> slots = shared->slots();
    const auto take = [&](bool of_the_dead) -> int64_t {
      for (size_t i = 0; i < slots.size(); ++i) {
        uint64_t holder = slots[i].holder.load();
        if (holder != kNobody &&
            (!of_the_dead || ProcessId::OfWord(holder).IsAlive())) {
          continue;
        }
        if (slots[i].holder.compare_exchange_strong(holder, mine)) return i;
      }
      return -1;
    };
    // Free places first: to ask whether a process lives costs microseconds. A
    // dead reader's pin stays until the new Reader pins, so its buffer is kept
    // for no longer than that.
    int64_t slot = take(/*of_the_dead=*/false);
    if (slot < 0) slot = take(/*of_the_dead=*/true);
    if (slot < 0) {
      return ResourceExhausted(caller, ": readers: got ", slots.size(),
                               " of living processes, want "
                               "less; end one, or raise max_readers");
    }
    return std::unique_ptr<Reader>(new Reader(std::move(shared), slot));
  }

 private:
  Shared(std::unique_ptr<AnonymousMemory> memory, const Sizes& sizes,
         WeightLayout layout)
      : memory_(std::move(memory)), sizes_(sizes), layout_(std::move(layout)) {}

  const std::unique_ptr<AnonymousMemory> memory_;
  const Sizes sizes_;
  const WeightLayout layout_;
  std::shared_ptr<AddressRange> range_;
  std::vector<TensorDict> views_;  // By buffer.
};

WeightStore::WeightStore(std::shared_ptr<Shared> shared, DecisionLog* recorder)
    : shared_(std::move(shared)),
      writer_(getpid()),
      recorder_(recorder),
      current_(kNoSnapshot),
      is_used_(shared_->sizes().num_buffers()),
      is_reserved_(shared_->sizes().num_buffers()) {}

WeightStore::~WeightStore() = default;

absl::StatusOr<std::unique_ptr<WeightStore>> WeightStore::Create(
    const Options& options) {
  if (options.version < 0 || options.version > kMaxVersion) {
    return InvalidArgument(kCreate, ": version: got ", options.version,
                           ", want [0, ", kMaxVersion, "]");
  }
  if (options.max_readers < 1 || options.max_readers > kMaxReaders) {
    return InvalidArgument(kCreate, ": max_readers: got ", options.max_readers,
                           ", want [1, ", kMaxReaders, "]");
  }
  RILL_ASSIGN_OR_RETURN(WeightLayout layout, LayoutOf(options.weights));
  const Sizes sizes = {
      .magic = kMagic,
      .max_readers = options.max_readers,
      .description_bytes = static_cast<int64_t>(layout.ToBytes().size()),
      .buffer_bytes = BufferBytes(layout)};
  if (!sizes.is_possible()) {
    return InvalidArgument(kCreate, ": weights: got keys and shapes of ",
                           sizes.description_bytes, " bytes, want at most ",
                           kMaxDescriptionBytes);
  }
  RILL_ASSIGN_OR_RETURN(
      auto memory,
      AnonymousMemory::Create(kCreate, "rill_weights", sizes.total_bytes()));
  RILL_RETURN_IF_ERROR(memory->Reserve(kCreate, 0, sizes.buffers_at()));
  RILL_ASSIGN_OR_RETURN(auto shared,
                        Shared::Map(kCreate, std::move(memory), sizes,
                                    std::move(layout), /*is_writer=*/true));
  shared->Initialize();
  std::unique_ptr<WeightStore> store(
      new WeightStore(std::move(shared), options.recorder));
  if (options.recorder != nullptr) {
    RILL_ASSIGN_OR_RETURN(store->part_, options.recorder->AddPart("weights"));
  }
  RILL_RETURN_IF_ERROR(store->Store(options.weights, options.version));
  return store;
}

absl::Status WeightStore::Store(const TensorDict& weights, int64_t version) {
  const Sizes& sizes = shared_->sizes();
  // By current_, this process's own copy: the word in the memory might have
  // been written over.
  const size_t buffer =
      FreeBuffer(shared_->slots(), current_, absl::MakeSpan(is_used_));
  if (is_reserved_[buffer] == 0) {
    RILL_RETURN_IF_ERROR(shared_->memory().Reserve(
        kPublish, sizes.buffer_at(buffer), sizes.buffer_bytes));
    is_reserved_[buffer] = 1;
  }
  RILL_RETURN_IF_ERROR(
      flow_internal::PackLeaves("WeightStore::Publish", shared_->layout().spec,
                                weights, shared_->buffer(buffer)));
  RILL_RETURN_IF_ERROR(FaultPoint("weights.publish", "snapshot"));
  current_ = SnapshotWord(version, buffer);
  // The one store that makes the snapshot the latest. A writer that is killed
  // before it has changed nothing that a reader looks at.
  shared_->current().store(current_);
  if (recorder_ == nullptr) return absl::OkStatus();
  return recorder_->Note(Decision::Kind::kPublish, part_, {version}, weights,
                         {});
}

absl::StatusOr<int64_t> WeightStore::Publish(const TensorDict& weights) {
  const int64_t next = VersionOf(current_) + 1;
  RILL_RETURN_IF_ERROR(PublishAs(next, weights));
  return next;
}

absl::Status WeightStore::PublishAs(int64_t version,
                                    const TensorDict& weights) {
  // A forked child has its own current_, so two writers would choose one
  // buffer.
  if (getpid() != writer_) {
    return FailedPrecondition(kPublish, ": got process ", getpid(), ", want ",
                              writer_, ", which made the store");
  }
  if (version <= VersionOf(current_) || version > kMaxVersion) {
    return InvalidArgument(kPublish, ": version: got ", version, ", want [",
                           VersionOf(current_) + 1, ", ", kMaxVersion, "]");
  }
  if (weights.batch_shape() != shared_->layout().batch_shape) {
    return InvalidArgument(kPublish, ": batch shape: got ",
                           weights.batch_shape().ToString(), ", want ",
                           shared_->layout().batch_shape.ToString());
  }
  RILL_RETURN_IF_ERROR(shared_->layout().spec.CheckLayout(kPublish, weights))
      << "keys and shapes are those of WeightStore::Create; others want "
         "another "
         "store";
  RILL_RETURN_IF_ERROR(flow_internal::CheckOnlyTensors(kPublish, weights));
  RILL_RETURN_IF_ERROR(CheckFiniteIfAsked(kPublish, weights));
  return Store(weights, version);
}

int64_t WeightStore::version() const {
  return VersionOf(shared_->current().load());
}

int WeightStore::fd() const { return shared_->memory().fd(); }

absl::StatusOr<std::unique_ptr<WeightStore::Reader>> WeightStore::OpenReader()
    const {
  return Shared::Open("WeightStore::OpenReader", shared_);
}

absl::StatusOr<std::unique_ptr<WeightStore::Reader>> WeightStore::AttachReader(
    int fd) {
  std::unique_ptr<AnonymousMemory> memory = AnonymousMemory::Adopt(fd);
  Sizes sizes;
  if (memory == nullptr ||
      !memory->Read(
          0, absl::MakeSpan(reinterpret_cast<char*>(&sizes), sizeof(sizes))) ||
      sizes.magic != kMagic) {
    return FailedPrecondition(kAttach, ": descriptor ", fd,
                              ": got something else, want that of a store");
  }
  const auto broken = [&](absl::string_view what) {
    return DataLoss(kAttach, ": descriptor ", fd, ": got ", what,
                    ", want what the store wrote; a process wrote over it");
  };
  if (!sizes.is_possible() || sizes.total_bytes() != memory->size_bytes()) {
    return broken("sizes that cannot be");
  }
  std::string description(sizes.description_bytes, '\0');
  if (!memory->Read(sizes.description_at(), absl::MakeSpan(description))) {
    return broken("no description of the weights");
  }
  auto layout = WeightLayout::FromBytes(description);
  if (!layout.ok()) return broken(layout.status().message());
  if (BufferBytes(*layout) != sizes.buffer_bytes) {
    return broken("buffers of another size than the weights");
  }
  RILL_ASSIGN_OR_RETURN(auto shared,
                        Shared::Map(kAttach, std::move(memory), sizes,
                                    *std::move(layout), /*is_writer=*/false));
  return Shared::Open(kAttach, std::move(shared));
}

WeightStore::Reader::Reader(std::shared_ptr<Shared> shared, int64_t slot)
    : shared_(std::move(shared)),
      slot_(slot),
      current_(&shared_->current()),
      word_(kNoSnapshot) {
  TakeNews();
}

WeightStore::Reader::~Reader() {
  // Not in a forked child, whose parent reads on.
  Slot& slot = shared_->slots()[slot_];
  if (slot.holder.load() != ProcessId::Mine().word()) return;
  // Before the place is free: afterwards the pin may be another reader's.
  slot.pin.store(kNoSnapshot);
  slot.holder.store(kNobody);
}

void WeightStore::Reader::Show(int64_t version, const TensorDict& weights) {
  // Latest() finds no news then.
  word_ = SnapshotWord(version, 0);
  shown_.store(word_, std::memory_order_relaxed);
  current_ = &shown_;
  version_ = version;
  weights_ = &weights;
}

void WeightStore::Reader::TakeNews() {
  word_ = PinNewest(*current_, &shared_->slots()[slot_].pin);
  version_ = VersionOf(word_);
  weights_ = &shared_->view(word_);
}

}  // namespace rill
