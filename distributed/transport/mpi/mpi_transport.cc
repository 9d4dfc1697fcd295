// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/mpi/mpi_transport.h"

#include <memory>

#include "absl/status/statusor.h"
#include "rill/distributed/transport/mpi/mpi_frames.h"
#include "rill/distributed/transport/ranks/polled_carrier.h"
#include "rill/distributed/transport/ranks/rank_transport.h"

namespace rill {

absl::StatusOr<std::unique_ptr<RankTransport>> CreateMpiTransport() {
  return RankTransport::Create(
      MakePolledCarrier(std::make_unique<mpi_internal::MpiFrames>()));
}

}  // namespace rill
