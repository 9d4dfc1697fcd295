// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_MPI_MPI_FRAMES_H_
#define RILL_DISTRIBUTED_TRANSPORT_MPI_MPI_FRAMES_H_

#include <mpi.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/device/buffer.h"
#include "rill/distributed/transport/ranks/block_pool.h"
#include "rill/distributed/transport/ranks/polled_carrier.h"
#include "rill/flow/frames/frame.h"

namespace rill::mpi_internal {

// Frames between the ranks of an MPI job. A piece of a frame is a message, sent
// from where it is.
// Thread-safety: thread-compatible.
// Cost: Step is O(frames on their way). Nothing is copied here, and received
// frames are in memory that is used again.
// Errors: those of MPI, UNAVAILABLE with MPI's words; FAILED_PRECONDITION where
// MPI was begun before or takes one thread only.
class MpiFrames final : public PolledFrames {
 public:
  absl::StatusOr<Place> Init(Receive receive) override;
  absl::Status Send(int rank, const FramePieces& frame) override;
  absl::Status Step(bool* moves) override;
  bool has_transfers() const override {
    return !requests_.empty() || !arriving_.empty();
  }
  absl::Status BeginBarrier() override;
  absl::StatusOr<bool> TestBarrier() override;

  void Finalize() override;
  // MPI may still use frames that are on their way, and MPI_Finalize would wait
  // for ranks that may be gone: they stay for good, and it is not called.
  void Abandon() override;

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
  MPI_Datatype unit_ = MPI_DATATYPE_NULL;
  MPI_Comm frames_ = MPI_COMM_NULL;  // Whole ones, and the sizes of pieces.
  MPI_Comm pieces_ = MPI_COMM_NULL;
  MPI_Request barrier_ = MPI_REQUEST_NULL;
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
