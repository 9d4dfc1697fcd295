// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_MPI_MPI_FRAMES_H_
#define RILL_DISTRIBUTED_TRANSPORT_MPI_MPI_FRAMES_H_

#include <mpi.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rill/device/buffer.h"
#include "rill/distributed/transport/ranks/block_pool.h"
#include "rill/flow/frames/frame.h"

namespace rill::mpi_internal {

// The result of a call of MPI: UNAVAILABLE with MPI's words.
absl::Status MpiStatus(absl::string_view call, int code);

// Frames between the ranks of an MPI job: what a thread of an MpiCarrier that
// has MPI does with it. A piece of a frame is a message, sent from where it is.
// Thread-safety: thread-compatible.
// Cost: Step is O(frames on their way). Nothing is copied here, and received
// frames are in memory that is used again.
// Errors: those of MPI, after which nothing is called but Abandon.
class MpiFrames {
 public:
  using Receive = std::function<void(int rank, std::shared_ptr<Buffer> frame)>;

  // MPI counts in int: bytes are counted in units of kFrameAlignment, up to 128
  // GiB.
  static constexpr int64_t kMaxBytes =
      kFrameAlignment * std::numeric_limits<int>::max();

  // Begins and ends MPI, on the same thread.
  absl::Status Init(Receive receive);
  void Finalize();

  int rank() const { return rank_; }
  int num_ranks() const { return num_ranks_; }
  MPI_Comm comm() const { return frames_; }

  absl::Status Send(int rank, const FramePieces& frame);
  // Takes what has come and lets go of what has arrived; `moves`: whether there
  // was any. It may send.
  absl::Status Step(bool* moves);
  // Whether frames are on their way, from here or to here.
  bool has_transfers() const {
    return !requests_.empty() || !arriving_.empty();
  }

  // MPI may still use frames that are on their way, and MPI_Finalize would wait
  // for ranks that may be gone: they stay for good, and it is not called.
  void Abandon();

 private:
  struct Arriving {
    std::shared_ptr<Buffer> frame;
    std::vector<MPI_Request> requests;
  };

  absl::Status SendMessage(int rank, int tag, const void* bytes, int64_t units,
                           std::shared_ptr<const void> owner);
  absl::Status FinishSends(bool* moves);
  absl::Status Accept(bool* moves);
  absl::Status AcceptWhole(MPI_Message* message, const MPI_Status& status);
  absl::Status AcceptPieces(MPI_Message* message, const MPI_Status& status);
  absl::Status FinishReceives(bool* moves);

  Receive receive_;
  int rank_ = 0;
  int num_ranks_ = 0;
  MPI_Datatype unit_ = MPI_DATATYPE_NULL;
  MPI_Comm frames_ = MPI_COMM_NULL;  // Whole ones, and the sizes of pieces.
  MPI_Comm pieces_ = MPI_COMM_NULL;
  // Messages that have not arrived, and what keeps their bytes.
  std::vector<MPI_Request> requests_;
  std::vector<std::shared_ptr<const void>> owners_;
  std::vector<int> done_;
  std::map<int, std::deque<Arriving>> arriving_;  // By rank, in order.
  // It keeps 256 MiB for the next ones.
  ranks_internal::BlockPool pool_{256 << 20};
};

}  // namespace rill::mpi_internal

#endif  // RILL_DISTRIBUTED_TRANSPORT_MPI_MPI_FRAMES_H_
