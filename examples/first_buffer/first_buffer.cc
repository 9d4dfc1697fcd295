// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "absl/status/status.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/sync_collector.h"
#include "rill/envs/cart_pole.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/dense_storage.h"

absl::Status Run() {
  RILL_ASSIGN_OR_RETURN(
      auto storage, rill::DenseStorage::Create({.capacity = 8000, .lanes = 4}));
  RILL_ASSIGN_OR_RETURN(
      auto buffer,
      rill::ReplayBuffer::Create({.storage = std::move(storage),
                                  .sampler = rill::MakeUniformSampler(),
                                  .batch_size = 32}));
  RILL_ASSIGN_OR_RETURN(auto env, rill::MakeCartPole({.lanes = 4}));
  RILL_ASSIGN_OR_RETURN(
      auto collector, rill::SyncCollector::Create(
                          {.env = std::move(env), .frames_per_batch = 256}));
  RILL_RETURN_IF_ERROR(collector->CollectInto(*buffer));
  RILL_ASSIGN_OR_RETURN(rill::TensorDict batch, buffer->Sample());
  std::puts(batch.DebugString().c_str());
  return absl::OkStatus();
}

int main() {
  const absl::Status status = Run();
  if (!status.ok()) std::puts(status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
