// SPDX-License-Identifier: Apache-2.0
#include "rill/flow/channel/record_channel.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/catch_exceptions.h"
#include "rill/base/fault_point.h"
#include "rill/base/status_macros.h"
#include "rill/flow/packed_leaves.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"

// A record is a header and the leaves of one batch, contiguous in its
// producer's ring. It counts once Commit has moved the ring's position past it,
// in one store: a producer that is killed before has sent nothing of it.
//
// All that a producer's process left in the memory is taken for foreign bytes.
// The header is copied before it is checked, as the process might change it
// between check and use. Its bytes must be exactly those that the spec makes of
// its sizes, so a view never leaves the ring.
//
// The channel remembers which lanes each producer wrote since its last cut.
// They are cut when the producer's process is found dead and its ring is empty.
// The death may be missed, so a successor's first record says that they are due
// (follows_dead). A successor that closes without a record leaves them to the
// next one, or to the reader.

namespace rill {
namespace {

using channel_internal::SharedRings;
using flow_internal::CheckOnlyTensors;
using flow_internal::kAlignment;
using flow_internal::PackedBytes;
using flow_internal::PackLeaves;
using flow_internal::ViewPackedLeaves;

// No batch has more: a foreign number above is refused before it is used.
constexpr int64_t kMaxSteps = int64_t{1} << 40;

// In front of a batch's leaves, each of which starts at a multiple of 64. With
// rank 0 it stands alone: a cut of sizes[0] lanes.
struct RecordHeader {
  int64_t bytes;  // With this header, a multiple of 64.
  int64_t rank;   // 0, 1 or 2.
  int64_t sizes[2];
  int64_t first_lane;
  int64_t policy_version;
  int64_t sequence;
  int64_t follows_dead;  // 1: the first record behind those of one that died.
};
static_assert(sizeof(RecordHeader) == kAlignment);

bool IsSize(int64_t size) { return size >= 1 && size <= kMaxSteps; }

// A hash of keys, dtypes and shapes in order, on which both ends must agree
// (FNV-1a).
uint64_t TagOf(const TensorDictSpec& spec) {
  uint64_t hash = 14695981039346656037u;
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    for (const char c : absl::StrCat(leaf.key, "\n", DTypeName(leaf.spec.dtype),
                                     leaf.spec.shape.ToString(), "\n")) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    }
  }
  return hash;
}

// Bytes of a record of `steps` steps; -1 where they do not fit in int64.
int64_t RecordBytes(const TensorDictSpec& spec, int64_t steps) {
  const int64_t bytes = PackedBytes(spec, steps);
  constexpr int64_t kMost = INT64_MAX - sizeof(RecordHeader);
  return bytes < 0 || bytes > kMost ? -1 : bytes + sizeof(RecordHeader);
}

absl::Status CheckOptions(absl::string_view caller,
                          const RecordChannel::Options& options) {
  if (options.spec.leaves().empty() || !options.spec.non_tensors().empty()) {
    return InvalidArgument(caller, ": spec: got ", options.spec.leaves().size(),
                           " tensors and ", options.spec.non_tensors().size(),
                           " other values, want tensors, and nothing else");
  }
  return absl::OkStatus();
}

class ProducerSink final : public Sink {
 public:
  ProducerSink(RecordChannel::Options options,
               std::shared_ptr<SharedRings> rings, int64_t producer,
               bool follows_dead)
      : options_(std::move(options)),
        rings_(std::move(rings)),
        producer_(producer),
        follows_dead_(follows_dead) {}
  ~ProducerSink() override { rings_->CloseWriter(producer_); }

  absl::Status Write(const TensorDict& batch, const WriteInfo& info) override {
    constexpr absl::string_view kWrite = "RecordChannel::Write";
    const Shape& shape = batch.batch_shape();
    RILL_RETURN_IF_ERROR(CheckShape(kWrite, shape));
    RILL_RETURN_IF_ERROR(options_.spec.CheckLayout(kWrite, batch));
    RILL_RETURN_IF_ERROR(CheckOnlyTensors(kWrite, batch));
    if (shape.num_elements() == 0) return absl::OkStatus();
    RILL_ASSIGN_OR_RETURN(RecordHeader header, HeaderOf(kWrite, shape));
    header.first_lane = info.first_lane;
    header.policy_version = info.policy_version;
    header.sequence = info.sequence;
    RILL_ASSIGN_OR_RETURN(
        std::byte* const record,
        rings_->Reserve(producer_, header.bytes, options_.timeout));
    RILL_RETURN_IF_ERROR(
        PackLeaves(kWrite, options_.spec, batch, record + sizeof(header)));
    std::memcpy(record, &header, sizeof(header));
    RILL_RETURN_IF_ERROR(FaultPoint("channel.commit", "record"));
    Commit(header);
    return absl::OkStatus();
  }

  absl::StatusOr<TensorDict> Reserve(const Shape& shape) override {
    constexpr absl::string_view kReserve = "RecordChannel::Reserve";
    RILL_RETURN_IF_ERROR(CheckShape(kReserve, shape));
    RILL_ASSIGN_OR_RETURN(const RecordHeader header, HeaderOf(kReserve, shape));
    RILL_ASSIGN_OR_RETURN(
        std::byte* const record,
        rings_->Reserve(producer_, header.bytes, options_.timeout));
    // Nothing is committed: the next Reserve of the ring gives the same place,
    // and Write finds the leaves where they belong and copies none.
    return ViewPackedLeaves(options_.spec, shape, record + sizeof(header),
                            rings_, /*is_writable=*/true);
  }

  absl::Status Cut(int64_t /*producer*/, LaneRange lanes) override {
    if (!IsSize(lanes.count)) {
      return InvalidArgument("RecordChannel::Cut: lanes: got ", lanes.count,
                             ", want [1, ", kMaxSteps, "]");
    }
    const RecordHeader header = {.bytes = sizeof(RecordHeader),
                                 .rank = 0,
                                 .sizes = {lanes.count, 1},
                                 .first_lane = lanes.first,
                                 .policy_version = 0,
                                 .sequence = 0,
                                 .follows_dead = follows_dead_ ? 1 : 0};
    RILL_ASSIGN_OR_RETURN(
        std::byte* const record,
        rings_->Reserve(producer_, header.bytes, options_.timeout));
    std::memcpy(record, &header, sizeof(header));
    Commit(header);
    return absl::OkStatus();
  }

  absl::Status Flush() override {
    return rings_->WaitUntilReleased(producer_, options_.timeout);
  }

 private:
  static absl::Status CheckShape(absl::string_view caller, const Shape& shape) {
    if (shape.rank() == 1 || shape.rank() == 2) return absl::OkStatus();
    return InvalidArgument(caller, ": batch shape: got ", shape.ToString(),
                           ", want [lanes, time] or [time]");
  }

  absl::StatusOr<RecordHeader> HeaderOf(absl::string_view caller,
                                        const Shape& shape) const {
    const int64_t bytes = RecordBytes(options_.spec, shape.num_elements());
    if (bytes < 0 || bytes > rings_->ring_bytes()) {
      return InvalidArgument(
          caller, ": bytes of a batch of shape ", shape.ToString(), ": got ",
          bytes, ", want at most ", rings_->ring_bytes(),
          "; write fewer steps at once, or give the channel more bytes");
    }
    return RecordHeader{.bytes = bytes,
                        .rank = shape.rank(),
                        .sizes = {shape[0], shape.rank() == 2 ? shape[1] : 1},
                        .first_lane = 0,
                        .policy_version = 0,
                        .sequence = 0,
                        .follows_dead = follows_dead_ ? 1 : 0};
  }

  void Commit(const RecordHeader& header) {
    rings_->Commit(producer_, header.bytes);
    follows_dead_ = false;
  }

  const RecordChannel::Options options_;
  const std::shared_ptr<SharedRings> rings_;
  const int64_t producer_;
  bool follows_dead_;
};

absl::StatusOr<std::unique_ptr<Sink>> MakeProducer(
    const RecordChannel::Options& options,
    const std::shared_ptr<SharedRings>& rings, int64_t producer) {
  RILL_ASSIGN_OR_RETURN(const SharedRings::WriterState before,
                        rings->OpenWriter(producer));
  return std::make_unique<ProducerSink>(
      options, rings, producer, before == SharedRings::WriterState::kDied);
}

// The header of the first record of `bytes`, checked against the spec and
// against what is there. DATA_LOSS without the producer's name (Broken adds
// it).
absl::StatusOr<RecordHeader> ReadHeader(const TensorDictSpec& spec,
                                        absl::Span<const std::byte> bytes) {
  RecordHeader header;
  if (bytes.size() < sizeof(header)) {
    return DataLoss("a record of ", bytes.size(), " bytes");
  }
  std::memcpy(&header, bytes.data(), sizeof(header));
  int64_t steps;
  if (header.rank < 0 || header.rank > 2 || !IsSize(header.sizes[0]) ||
      !IsSize(header.sizes[1]) || (header.rank < 2 && header.sizes[1] != 1) ||
      (header.follows_dead != 0 && header.follows_dead != 1) ||
      __builtin_mul_overflow(header.sizes[0], header.sizes[1], &steps) ||
      header.bytes > static_cast<int64_t>(bytes.size()) ||
      header.bytes != RecordBytes(spec, header.rank == 0 ? 0 : steps)) {
    return DataLoss("a record of rank ", header.rank, ", sizes ",
                    header.sizes[0], " and ", header.sizes[1], ", and ",
                    header.bytes, " bytes");
  }
  return header;
}

// Views of a record's leaves, whose bytes the reader may not write.
absl::StatusOr<TensorDict> ReadBatch(
    const TensorDictSpec& spec, const RecordHeader& header,
    const std::byte* record, const std::shared_ptr<SharedRings>& rings) {
  RILL_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(absl::MakeConstSpan(
                                               header.sizes, header.rank)));
  return ViewPackedLeaves(
      spec, shape, const_cast<std::byte*>(record) + sizeof(header), rings);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RecordChannel>> RecordChannel::Create(
    const Options& options) {
  RILL_RETURN_IF_ERROR(CheckOptions("RecordChannel::Create", options));
  RILL_ASSIGN_OR_RETURN(auto rings,
                        SharedRings::Create(options.producers, options.bytes,
                                            TagOf(options.spec)));
  return std::unique_ptr<RecordChannel>(
      new RecordChannel(options, std::move(rings)));
}

absl::StatusOr<std::unique_ptr<Sink>> RecordChannel::OpenProducer(
    int64_t producer) {
  return MakeProducer(options_, rings_, producer);
}

absl::StatusOr<std::unique_ptr<Sink>> RecordChannel::AttachProducer(
    int fd, int64_t producer, const Options& options) {
  RILL_RETURN_IF_ERROR(CheckOptions("RecordChannel::AttachProducer", options));
  RILL_ASSIGN_OR_RETURN(const auto rings,
                        SharedRings::Attach(fd, TagOf(options.spec)));
  return MakeProducer(options, rings, producer);
}

// UNAVAILABLE is for the caller to stop on, so cuts that are still due come
// first: Drain makes them.
absl::Status RecordChannel::Wait(absl::Duration timeout) {
  const absl::Status status = rings_->WaitForData(timeout);
  if (!absl::IsUnavailable(status)) return status;
  for (int64_t i = 0; i < producers(); ++i) {
    if (open_[i].lanes.empty()) continue;
    if (open_[i].has_ended || producer_state(i) == ProducerState::kDied) {
      return absl::OkStatus();
    }
  }
  return status;
}

// Ended for good: its lanes are cut by the next Drain.
absl::Status RecordChannel::Broken(int64_t producer, const absl::Status& why) {
  rings_->Abandon(producer);
  open_[producer].has_ended = true;
  return DataLoss(
      "RecordChannel::Drain: producer ", producer, ": got ", why.message(),
      "; its process wrote over the channel's memory and is not read any "
      "more");
}

void RecordChannel::NoteOpen(int64_t producer, LaneRange lanes) {
  std::vector<LaneRange>& open = open_[producer].lanes;
  if (std::find(open.begin(), open.end(), lanes) == open.end()) {
    open.push_back(lanes);
  }
}

absl::Status RecordChannel::CutOpen(int64_t producer, Sink* sink) {
  Open& open = open_[producer];
  // One by one: after an error of the sink the next call goes on with those
  // left.
  while (!open.lanes.empty()) {
    RILL_RETURN_IF_ERROR(CatchExceptions(
        [&] { return sink->Cut(producer, open.lanes.back()); }, "Sink::Cut"))
        << "from producer " << producer;
    open.lanes.pop_back();
  }
  open.has_ended = false;
  return absl::OkStatus();
}

bool RecordChannel::HasEnded(int64_t producer) const {
  // The state is asked first. A process commits before it dies, so a ring that
  // is found empty after the death stays so; the other way round a last batch
  // could come between.
  const bool has_died = producer_state(producer) == ProducerState::kDied;
  const auto bytes = rings_->Readable(producer);
  return has_died && bytes.ok() && bytes->empty();
}

// A question to the kernel costs microseconds, so a call asks about one
// producer, in turn. One that has just sent something need not be asked.
absl::Status RecordChannel::CutWhatEnded(absl::Span<const uint8_t> has_sent,
                                         Sink* sink) {
  int64_t looked_at = -1;
  for (int64_t turn = 1; turn <= producers(); ++turn) {
    const int64_t i = (looked_at_ + turn) % producers();
    Open& open = open_[i];
    if (open.lanes.empty()) continue;
    if (!open.has_ended && looked_at == -1 && has_sent[i] == 0) {
      looked_at = i;
      open.has_ended = HasEnded(i);
    }
    if (open.has_ended) {
      RILL_RETURN_IF_ERROR(CutOpen(i, sink));
    }
  }
  if (looked_at != -1) looked_at_ = looked_at;
  return absl::OkStatus();
}

absl::StatusOr<bool> RecordChannel::DeliverFirst(
    int64_t producer, absl::Span<const std::byte>* bytes, Sink* sink) {
  const auto header = ReadHeader(options_.spec, *bytes);
  if (!header.ok()) return Broken(producer, header.status());
  if (header->follows_dead != 0) {
    RILL_RETURN_IF_ERROR(CutOpen(producer, sink));
  }
  const bool is_batch = header->rank != 0;
  const LaneRange lanes = {.first = header->first_lane,
                           .count = header->rank == 1 ? 1 : header->sizes[0]};
  if (is_batch) {
    const auto batch = ReadBatch(options_.spec, *header, bytes->data(), rings_);
    if (!batch.ok()) return Broken(producer, batch.status());
    const WriteInfo info = {.producer = producer,
                            .first_lane = header->first_lane,
                            .policy_version = header->policy_version,
                            .sequence = header->sequence,
                            .source = source_};
    RILL_RETURN_IF_ERROR(CatchExceptions(
        [&] { return sink->Write(*batch, info); }, "Sink::Write"))
        << "from producer " << producer;
    NoteOpen(producer, lanes);
  } else {
    RILL_RETURN_IF_ERROR(CatchExceptions(
        [&] { return sink->Cut(producer, lanes); }, "Sink::Cut"))
        << "from producer " << producer;
    std::erase(open_[producer].lanes, lanes);
  }
  // Only now may the producer overwrite the bytes. With an error above, the
  // record stays the first of its ring and is handed on again.
  rings_->Release(producer, header->bytes);
  *bytes = bytes->subspan(header->bytes);
  return is_batch;
}

absl::StatusOr<int64_t> RecordChannel::Drain(Sink* sink) {
  struct Part {
    int64_t producer;
    absl::Span<const std::byte> bytes;
  };
  // The records that are there now and no more: a fast producer cannot keep the
  // call from its end. Producers alternate, so that none waits behind all
  // records of another.
  std::vector<Part> parts;
  std::vector<uint8_t> has_sent(open_.size());
  for (int64_t i = 0; i < producers(); ++i) {
    const auto bytes = rings_->Readable(i);
    if (!bytes.ok()) return Broken(i, bytes.status());
    if (bytes->empty()) continue;
    parts.push_back({i, *bytes});
    has_sent[i] = 1;
  }
  RILL_RETURN_IF_ERROR(CutWhatEnded(has_sent, sink));
  int64_t batches = 0;
  while (!parts.empty()) {
    for (size_t i = 0; i < parts.size();) {
      RILL_ASSIGN_OR_RETURN(
          const bool is_batch,
          DeliverFirst(parts[i].producer, &parts[i].bytes, sink));
      batches += is_batch ? 1 : 0;
      if (parts[i].bytes.empty()) {
        parts.erase(parts.begin() + i);
      } else {
        ++i;
      }
    }
  }
  return batches;
}

absl::StatusOr<bool> RecordChannel::DrainOne(int64_t producer, Sink* sink) {
  RILL_RETURN_IF_ERROR(CheckProducer("RecordChannel::DrainOne", producer));
  auto bytes = rings_->Readable(producer);
  if (!bytes.ok()) return Broken(producer, bytes.status());
  while (!bytes->empty()) {
    RILL_ASSIGN_OR_RETURN(const bool is_batch,
                          DeliverFirst(producer, &*bytes, sink));
    if (is_batch) return true;
  }
  return false;
}

absl::Status RecordChannel::CutIfDead(int64_t producer, Sink* sink) {
  RILL_RETURN_IF_ERROR(CheckProducer("RecordChannel::CutIfDead", producer));
  Open& open = open_[producer];
  open.has_ended = open.has_ended || HasEnded(producer);
  return open.has_ended ? CutOpen(producer, sink) : absl::OkStatus();
}

absl::Status RecordChannel::CheckProducer(absl::string_view caller,
                                          int64_t producer) const {
  if (producer >= 0 && producer < producers()) return absl::OkStatus();
  return OutOfRange(caller, ": producer: got ", producer, ", want [0, ",
                    producers(), ")");
}

RecordChannel::ProducerState RecordChannel::producer_state(
    int64_t producer) const {
  switch (rings_->writer_state(producer)) {
    case SharedRings::WriterState::kNone:
      return ProducerState::kNone;
    case SharedRings::WriterState::kAlive:
      return ProducerState::kAlive;
    case SharedRings::WriterState::kClosed:
      return ProducerState::kClosed;
    case SharedRings::WriterState::kDied:
      return ProducerState::kDied;
  }
  return ProducerState::kNone;
}

}  // namespace rill
