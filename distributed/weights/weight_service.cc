// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/weights/weight_service.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"
#include "rill/flow/weights/weight_store.h"

namespace rill {

using namespace weight_protocol;  // NOLINT: its names alone.

absl::StatusOr<std::shared_ptr<WeightService>> WeightService::Create(
    Readers readers) {
  if (readers.empty()) {
    return InvalidArgument("WeightService::Create: there are no weights");
  }
  auto service = std::shared_ptr<WeightService>(new WeightService);
  absl::MutexLock lock(&service->mu_);
  for (auto& [name, reader] : readers) {
    if (reader == nullptr) {
      return InvalidArgument("WeightService::Create: the reader of \"", name,
                             "\" is null");
    }
    service->weights_[name].reader = std::move(reader);
  }
  return service;
}

absl::StatusOr<Message> WeightService::Call(const CallInfo& info,
                                            const Message& request) {
  if (info.method != kPull) {
    return absl::UnimplementedError(absl::StrCat(
        "WeightService: method: got \"", info.method, "\", want ", kPull));
  }
  RILL_RETURN_IF_ERROR(request.values.CheckType(kRequest, kVersion));
  RILL_ASSIGN_OR_RETURN(const auto name,
                        request.values.Get<std::string>(kName));
  RILL_ASSIGN_OR_RETURN(const auto have, request.values.Get<int64_t>(kHave));
  absl::MutexLock lock(&mu_);
  const auto found = weights_.find(name);
  if (found == weights_.end()) {
    return NotFound(
        "WeightService: name: got \"", name, "\", want one of ",
        absl::StrJoin(weights_, ", ", [](std::string* out, const auto& one) {
          absl::StrAppend(out, one.first);
        }));
  }
  Weights& weights = found->second;
  const WeightStore::Snapshot snapshot = weights.reader->Latest();
  Message reply{.values = SavedState(kReply, kVersion)};
  reply.values.Set(kVersionValue, snapshot.version);
  if (snapshot.version <= have) return reply;
  if (snapshot.version != weights.version) {
    RILL_ASSIGN_OR_RETURN(reply.batch, snapshot.weights.Clone());
    weights.latest = std::move(reply);
    weights.version = snapshot.version;
  }
  return weights.latest;
}

}  // namespace rill
