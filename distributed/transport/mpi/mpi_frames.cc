// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/mpi/mpi_frames.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"
#include "rill/flow/frames/frame.h"

namespace rill::mpi_internal {
namespace {

// A frame in one message; or the sizes of its pieces in units of
// kFrameAlignment, and those behind it.
constexpr int kWholeTag = 0;
constexpr int kSizesTag = 1;
constexpr int kPieceTag = 2;
// MPI counts in int: bytes are counted in units of kFrameAlignment, up to 128
// GiB.
constexpr int64_t kMaxBytes = kFrameAlignment * std::numeric_limits<int>::max();
// And zeros behind them. So few bytes are there when their message is.
using FrameSizes = std::array<int64_t, kMaxFramePieces>;
constexpr int kSizesUnits = sizeof(FrameSizes) / kFrameAlignment;

// The result of a call of MPI.
absl::Status MpiStatus(absl::string_view call, int code) {
  if (code == MPI_SUCCESS) return absl::OkStatus();
  char text[MPI_MAX_ERROR_STRING];
  int size = 0;
  MPI_Error_string(code, text, &size);
  return Unavailable("MpiTransport: ", call, ": ",
                     absl::string_view(text, static_cast<size_t>(size)));
}

}  // namespace

absl::StatusOr<PolledFrames::Place> MpiFrames::Init(Receive receive) {
  int has_begun = 0;
  MPI_Initialized(&has_begun);
  if (has_begun != 0) {
    return FailedPrecondition(
        "CreateMpiTransport: got MPI that was begun in this process before, "
        "want to begin it here; make one transport, and use MPI nowhere else");
  }
  receive_ = std::move(receive);
  int provided = 0;
  RILL_RETURN_IF_ERROR(MpiStatus(
      "MPI_Init_thread",
      MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided)));
  if (provided < MPI_THREAD_SERIALIZED) {
    return FailedPrecondition(
        "CreateMpiTransport: threads of this MPI: got level ", provided,
        ", want MPI_THREAD_SERIALIZED, ", MPI_THREAD_SERIALIZED);
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (MPI_Comm* const own : {&frames_, &pieces_}) {
    RILL_RETURN_IF_ERROR(
        MpiStatus("MPI_Comm_dup", MPI_Comm_dup(MPI_COMM_WORLD, own)));
  }
  RILL_RETURN_IF_ERROR(
      MpiStatus("MPI_Type_contiguous",
                MPI_Type_contiguous(kFrameAlignment, MPI_BYTE, &unit_)));
  RILL_RETURN_IF_ERROR(MpiStatus("MPI_Type_commit", MPI_Type_commit(&unit_)));
  Place place = {.max_bytes = kMaxBytes};
  MPI_Comm_rank(MPI_COMM_WORLD, &place.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &place.num_ranks);
  return place;
}

void MpiFrames::Finalize() {
  MPI_Type_free(&unit_);
  MPI_Comm_free(&pieces_);
  MPI_Comm_free(&frames_);
  MPI_Finalize();
}

void MpiFrames::Abandon() {
  new auto(std::move(requests_));
  new auto(std::move(owners_));
  new auto(std::move(arriving_));
}

absl::Status MpiFrames::BeginBarrier() {
  return MpiStatus("MPI_Ibarrier", MPI_Ibarrier(frames_, &barrier_));
}

absl::StatusOr<bool> MpiFrames::TestBarrier() {
  int is_done = 0;
  RILL_RETURN_IF_ERROR(
      MpiStatus("MPI_Test", MPI_Test(&barrier_, &is_done, MPI_STATUS_IGNORE)));
  return is_done != 0;
}

absl::Status MpiFrames::Step(bool* moves) {
  RILL_RETURN_IF_ERROR(Accept(moves));
  RILL_RETURN_IF_ERROR(FinishReceives(moves));
  return FinishSends(moves);
}

absl::Status MpiFrames::Send(int rank, const FramePieces& frame) {
  const auto units = [](const FramePiece& piece) {
    return static_cast<int64_t>(piece.bytes.size()) / kFrameAlignment;
  };
  if (frame.size() == 1) {
    return SendMessage(rank, kWholeTag, frame[0].bytes.data(), units(frame[0]),
                       frame[0].owner);
  }
  auto sizes = std::make_shared<FrameSizes>();
  std::transform(frame.begin(), frame.end(), sizes->begin(), units);
  RILL_RETURN_IF_ERROR(
      SendMessage(rank, kSizesTag, sizes->data(), kSizesUnits, sizes));
  for (const FramePiece& piece : frame) {
    RILL_RETURN_IF_ERROR(SendMessage(rank, kPieceTag, piece.bytes.data(),
                                     units(piece), piece.owner));
  }
  return absl::OkStatus();
}

// Synchronous sends: one that is done has been received, so that MPI_Finalize
// finds nothing on the way.
absl::Status MpiFrames::SendMessage(int rank, int tag, const void* bytes,
                                    int64_t units,
                                    std::shared_ptr<const void> owner) {
  owners_.push_back(std::move(owner));
  return MpiStatus("MPI_Issend",
                   MPI_Issend(bytes, static_cast<int>(units), unit_, rank, tag,
                              tag == kPieceTag ? pieces_ : frames_,
                              &requests_.emplace_back(MPI_REQUEST_NULL)));
}

absl::Status MpiFrames::FinishSends(bool* moves) {
  if (requests_.empty()) return absl::OkStatus();
  done_.resize(requests_.size());
  int count = 0;
  RILL_RETURN_IF_ERROR(MpiStatus(
      "MPI_Testsome",
      MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count,
                   done_.data(), MPI_STATUSES_IGNORE)));
  if (count <= 0) return absl::OkStatus();
  *moves = true;
  size_t kept = 0;
  for (size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    requests_[kept] = requests_[i];
    owners_[kept++] = std::move(owners_[i]);
  }
  requests_.resize(kept);
  owners_.resize(kept);
  return absl::OkStatus();
}

absl::Status MpiFrames::Accept(bool* moves) {
  for (;;) {
    int is_there = 0;
    MPI_Message message;
    MPI_Status status;
    RILL_RETURN_IF_ERROR(MpiStatus(
        "MPI_Improbe", MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, frames_,
                                   &is_there, &message, &status)));
    if (is_there == 0) return absl::OkStatus();
    *moves = true;
    // MPI may copy pieces here and now. Those of the next frame wait until this
    // one was handed on.
    if (status.MPI_TAG == kSizesTag) return AcceptPieces(&message, status);
    RILL_RETURN_IF_ERROR(AcceptWhole(&message, status));
  }
}

absl::Status MpiFrames::AcceptWhole(MPI_Message* message,
                                    const MPI_Status& status) {
  int units = 0;
  MPI_Get_count(&status, unit_, &units);
  RILL_ASSIGN_OR_RETURN(std::shared_ptr<Buffer> bytes,
                        pool_.Take(std::max(units, 0) * kFrameAlignment));
  Arriving& arriving = arriving_[status.MPI_SOURCE].emplace_back();
  arriving.frame = std::move(bytes);
  return MpiStatus(
      "MPI_Imrecv",
      MPI_Imrecv(arriving.frame->data(), units, unit_, message,
                 &arriving.requests.emplace_back(MPI_REQUEST_NULL)));
}

absl::Status MpiFrames::AcceptPieces(MPI_Message* message,
                                     const MPI_Status& status) {
  FrameSizes sizes = {};
  RILL_RETURN_IF_ERROR(MpiStatus(
      "MPI_Mrecv",
      MPI_Mrecv(sizes.data(), kSizesUnits, unit_, message, MPI_STATUS_IGNORE)));
  int64_t units = 0;
  for (const int64_t size : sizes) {
    if (size < 0 || size > std::numeric_limits<int>::max() - units) {
      return DataLoss("MpiTransport: sizes of pieces from rank ",
                      status.MPI_SOURCE, ": got ", size, " behind ", units,
                      ", want a sum in [0, ", std::numeric_limits<int>::max(),
                      "]");
    }
    units += size;
  }
  RILL_ASSIGN_OR_RETURN(std::shared_ptr<Buffer> bytes,
                        pool_.Take(units * kFrameAlignment));
  std::byte* at = bytes->data();
  Arriving& arriving = arriving_[status.MPI_SOURCE].emplace_back();
  arriving.frame = std::move(bytes);
  for (const int64_t size : sizes) {
    if (size == 0) continue;
    RILL_RETURN_IF_ERROR(MpiStatus(
        "MPI_Irecv",
        MPI_Irecv(at, static_cast<int>(size), unit_, status.MPI_SOURCE,
                  kPieceTag, pieces_,
                  &arriving.requests.emplace_back(MPI_REQUEST_NULL))));
    at += size * kFrameAlignment;
  }
  return absl::OkStatus();
}

// Blocks are handed on in the order in which they were sent, though a small one
// may be here before a large one that was first.
absl::Status MpiFrames::FinishReceives(bool* moves) {
  for (auto it = arriving_.begin(); it != arriving_.end();) {
    auto& [rank, waiting] = *it;
    while (!waiting.empty()) {
      std::vector<MPI_Request>& requests = waiting.front().requests;
      int is_done = 0;
      RILL_RETURN_IF_ERROR(MpiStatus(
          "MPI_Testall",
          MPI_Testall(static_cast<int>(requests.size()), requests.data(),
                      &is_done, MPI_STATUSES_IGNORE)));
      if (is_done == 0) break;
      *moves = true;
      receive_(rank, std::move(waiting.front().frame));
      waiting.pop_front();
    }
    it = waiting.empty() ? arriving_.erase(it) : std::next(it);
  }
  return absl::OkStatus();
}

}  // namespace rill::mpi_internal
