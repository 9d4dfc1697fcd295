// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/replay/replay_service.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/rng_entropy.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/replay/client_log.h"
#include "rill/distributed/replay/replay_protocol.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"
#include "rill/flow/sink.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/run/run_checkpoint.h"
#include "rill/samplers/prioritized/priority_mass.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

using namespace replay_protocol;  // NOLINT: its names alone.

constexpr absl::string_view kClientsState = "clients";
constexpr absl::string_view kLogLeaf = "log";
// For one reply. A batch that has to wait for rows comes with the next one.
constexpr absl::Duration kDrawsTake = absl::Milliseconds(10);

absl::StatusOr<int64_t> NewServerNumber() {
  RILL_ASSIGN_OR_RETURN(const auto name, RandomName());
  int64_t number;
  std::memcpy(&number, name.data(), sizeof(number));
  return number & INT64_MAX;
}

absl::StatusOr<WriteInfo> InfoOf(const SavedState& values, uint64_t source) {
  WriteInfo info = {.source = source};
  RILL_ASSIGN_OR_RETURN(info.producer, values.Get<int64_t>(kProducer));
  RILL_ASSIGN_OR_RETURN(info.first_lane, values.Get<int64_t>(kFirstLane));
  RILL_ASSIGN_OR_RETURN(info.policy_version,
                        values.Get<int64_t>(kPolicyVersion));
  RILL_ASSIGN_OR_RETURN(info.sequence, values.Get<int64_t>(kSequence));
  return info;
}

Message MakeReply(
    std::initializer_list<std::pair<absl::string_view, int64_t>> values) {
  Message reply{.values = SavedState(kReply, kVersion)};
  for (const auto& [name, value] : values) reply.values.Set(name, value);
  return reply;
}

// So many of `count` batches would not wait for the table's rate limiter.
int64_t ThatMayGo(const ReplayBuffer& table, int64_t items, int64_t count) {
  if (count == 0) return 0;
  const auto limiter = table.GetStats().rate_limiter;
  return limiter.has_value() ? std::min(limiter->may_sample / items, count)
                             : count;
}

// A table's replies say this of its priorities.
void SetMass(const ReplayBuffer& table, SavedState* values) {
  const std::optional<PriorityMass> mass = table.priority_mass();
  if (!mass.has_value()) return;
  values->Set(kPrioritySum, mass->sum);
  values->Set(kPriorityMin, mass->min);
  values->Set(kBeta, mass->beta);
}

// The priorities of a request: its leaf or its list.
absl::StatusOr<std::vector<float>> PrioritiesOf(const SavedState& values,
                                                const TensorDict& batch) {
  if (batch.Contains(kPriorityKey)) {
    RILL_ASSIGN_OR_RETURN(const auto leaf, batch.Flat<float>(kPriorityKey));
    return std::vector<float>(leaf.begin(), leaf.end());
  }
  RILL_ASSIGN_OR_RETURN(const auto list, values.Doubles(kPriorities));
  std::vector<float> priorities;
  for (const double value : list) {
    priorities.push_back(static_cast<float>(value));
  }
  return priorities;
}

}  // namespace

absl::StatusOr<std::shared_ptr<ReplayService>> ReplayService::Create(
    Tables tables) {
  if (tables.empty()) {
    return InvalidArgument("ReplayService::Create: there is no table");
  }
  for (const auto& [name, table] : tables) {
    if (table == nullptr) {
      return InvalidArgument("ReplayService::Create: table \"", name,
                             "\" is null");
    }
  }
  RILL_ASSIGN_OR_RETURN(const int64_t server_number, NewServerNumber());
  return std::shared_ptr<ReplayService>(
      new ReplayService(std::move(tables), server_number));
}

ReplayService::ReplayService(Tables tables, int64_t server_number)
    : tables_(std::move(tables)), server_number_(server_number) {
  for (const auto& [name, table] : tables_) sent_[table.get()];
}

absl::Status ReplayService::Save(const std::string& directory) const {
  RunCheckpoint::Contents contents;
  for (const auto& [name, table] : tables_)
    contents.buffers[name] = table.get();
  absl::MutexLock pause(&pause_);
  const std::string log = clients_.Save().Encode();
  std::vector<uint8_t> bytes(log.begin(), log.end());
  RILL_ASSIGN_OR_RETURN(
      Tensor leaf, Tensor::From(bytes, {static_cast<int64_t>(bytes.size())}));
  TensorDict state;
  RILL_RETURN_IF_ERROR(state.Set(kLogLeaf, std::move(leaf)));
  contents.states[std::string(kClientsState)] = std::move(state);
  return RunCheckpoint::Save(directory, contents);
}

absl::StatusOr<std::shared_ptr<ReplayService>> ReplayService::Open(
    const std::string& directory, TableOptions tables) {
  RILL_ASSIGN_OR_RETURN(
      RunCheckpoint::Opened opened,
      RunCheckpoint::Open(directory, {.buffers = std::move(tables),
                                      .states = {std::string(kClientsState)},
                                      .discard_rows = true}));
  RILL_ASSIGN_OR_RETURN(auto service, Create(std::move(opened.buffers)));
  RILL_ASSIGN_OR_RETURN(
      const auto log,
      opened.states[std::string(kClientsState)].Flat<uint8_t>(kLogLeaf));
  RILL_ASSIGN_OR_RETURN(
      const SavedState state,
      SavedState::Decode(
          {reinterpret_cast<const char*>(log.data()), log.size()}));
  RILL_RETURN_IF_ERROR(service->clients_.Load(state, Clock::Steady().Now()));
  return service;
}

ReplayBuffer* ReplayService::table(absl::string_view name) const {
  const auto found = tables_.find(std::string(name));
  return found == tables_.end() ? nullptr : found->second.get();
}

absl::StatusOr<Message> ReplayService::Call(const CallInfo& info,
                                            const Message& request) {
  using Handler = absl::StatusOr<Message> (ReplayService::*)(const Request&);
  static constexpr std::pair<absl::string_view, Handler> kHandlers[] = {
      {kHello, &ReplayService::Hello},
      {kOperation, &ReplayService::Operation},
      {kSample, &ReplayService::Sample},
      {kUpdate, &ReplayService::UpdatePriorities},
      {kStats, &ReplayService::GetStats},
  };
  const auto* const handler =
      std::find_if(std::begin(kHandlers), std::end(kHandlers),
                   [&](const auto& one) { return one.first == info.method; });
  if (handler == std::end(kHandlers)) {
    return absl::UnimplementedError(absl::StrCat(
        "ReplayService: method: got \"", info.method, "\", want one of ",
        absl::StrJoin(kHandlers, ", ", [](std::string* out, const auto& one) {
          absl::StrAppend(out, one.first);
        })));
  }
  RILL_RETURN_IF_ERROR(request.values.CheckType(kRequest, kVersion));
  RILL_ASSIGN_OR_RETURN(const auto name,
                        request.values.Get<std::string>(kTable));
  ReplayBuffer* const found = table(name);
  if (found == nullptr) {
    return NotFound(
        "ReplayService: table: got \"", name, "\", want one of ",
        absl::StrJoin(tables_, ", ", [](std::string* out, const auto& one) {
          absl::StrAppend(out, one.first);
        }));
  }
  return (this->*handler->second)({.values = request.values,
                                   .batch = request.batch,
                                   .table_name = name,
                                   .table = *found});
}

absl::StatusOr<Message> ReplayService::Hello(const Request& request) {
  RILL_ASSIGN_OR_RETURN(const auto name,
                        request.values.Get<std::string>(kClient));
  RILL_ASSIGN_OR_RETURN(const auto newest,
                        request.values.Get<int64_t>(kNewest));
  RILL_ASSIGN_OR_RETURN(const auto rows, request.values.Get<int64_t>(kRows));
  if (newest < 0 || rows < 0) {
    return InvalidArgument("ReplayService: newest ", newest, ", rows ", rows,
                           ": want numbers >= 0");
  }
  absl::ReaderMutexLock pause(&pause_);
  RILL_ASSIGN_OR_RETURN(const ClientPosition position,
                        clients_.Resume(request.table_name, name, newest, rows,
                                        Clock::Steady().Now()));
  return MakeReply({{kServer, server_number_}, {kLost, position.lost}});
}

absl::StatusOr<Message> ReplayService::Operation(const Request& request) {
  const SavedState& values = request.values;
  RILL_ASSIGN_OR_RETURN(const auto name, values.Get<std::string>(kClient));
  RILL_ASSIGN_OR_RETURN(const auto number, values.Get<int64_t>(kNumber));
  RILL_ASSIGN_OR_RETURN(const auto kind, values.Get<int64_t>(kKind));
  RILL_ASSIGN_OR_RETURN(const auto source, values.Get<int64_t>(kSource));
  RILL_ASSIGN_OR_RETURN(const auto lanes, values.Get<int64_t>(kLanes));
  absl::ReaderMutexLock pause(&pause_);
  RILL_ASSIGN_OR_RETURN(
      const std::shared_ptr<LoggedClient> client,
      clients_.Of(request.table_name, name, Clock::Steady().Now()));
  RILL_ASSIGN_OR_RETURN(const WriteInfo info,
                        InfoOf(values, client->LocalSource(source)));
  const auto apply = [&]() -> absl::Status {
    switch (kind) {
      case kWrite:
        return request.table.Write(request.batch, info);
      case kCut:
        return request.table.Cut(info.producer,
                                 {.first = info.first_lane, .count = lanes});
      case kFlush:
        return request.table.Flush();
      default:
        return InvalidArgument("ReplayService: ", kKind, ": got ", kind,
                               ", want 0, 1 or 2");
    }
  };
  const int64_t rows =
      kind == kWrite ? request.batch.batch_shape().num_elements() : 0;
  RILL_RETURN_IF_ERROR(client->Apply(number, rows, apply));
  return MakeReply({});
}

absl::StatusOr<Message> ReplayService::Sample(const Request& request) {
  RILL_ASSIGN_OR_RETURN(const auto batch_size,
                        request.values.Get<int64_t>(kBatchSize));
  const absl::StatusOr<int64_t> count = request.values.Get<int64_t>(kCount);
  if (count.ok() && (*count < 1 || *count > kMostCount)) {
    return InvalidArgument("ReplayService: ", kCount, ": got ", *count,
                           ", want [1, ", kMostCount, "]");
  }
  Message reply = MakeReply({{kSize, request.table.size()}});
  std::vector<int64_t> rows;
  RILL_ASSIGN_OR_RETURN(reply.batch,
                        Draw(request, batch_size, count.value_or(1), &rows));
  const Shape& shape = reply.batch.batch_shape();
  RILL_ASSIGN_OR_RETURN(const Tensor server,
                        ServerNumbers(shape.num_elements()));
  RILL_ASSIGN_OR_RETURN(Tensor shaped, server.Reshape(shape));
  RILL_RETURN_IF_ERROR(reply.batch.Set(kServerKey, std::move(shaped)));
  if (count.ok()) reply.values.Set(kBatchRows, std::move(rows));
  SetMass(request.table, &reply.values);
  return reply;
}

absl::StatusOr<TensorDict> ReplayService::Draw(const Request& request,
                                               int64_t batch_size,
                                               int64_t count,
                                               std::vector<int64_t>* rows) {
  const int64_t items =
      batch_size == 0 ? request.table.batch_size() : batch_size;
  const absl::Time end = Clock::Steady().Now() + kDrawsTake;
  SentBatches& sent = sent_.at(&request.table);
  // Each batch is drawn at its place in this, where one that fits is free.
  TensorDict all;
  if (items > 0 && items <= INT64_MAX / count) {
    all = sent.Take({count * items});
  }
  bool lie_in_place = !all.empty();
  std::vector<TensorDict> batches;
  do {
    TensorDict place;
    if (!all.empty()) {
      const auto begin = static_cast<int64_t>(batches.size()) * items;
      RILL_ASSIGN_OR_RETURN(place, all.Slice(0, begin, begin + items));
    }
    TensorDict batch = place;
    const absl::Status drawn =
        batch_size == 0 ? request.table.SampleInto(&batch)
                        : request.table.SampleInto(batch_size, &batch);
    if (!drawn.ok()) {
      if (batches.empty()) return drawn;
      break;  // The next request meets it.
    }
    lie_in_place = lie_in_place && AreSameBytes(place, batch);
    rows->push_back(batch.batch_shape().sizes()[0]);
    batches.push_back(std::move(batch));
    // One that is drawn waits for no other.
    if (batches.size() == 1) {
      count = 1 + ThatMayGo(request.table, items, count - 1);
    }
  } while (static_cast<int64_t>(batches.size()) < count &&
           Clock::Steady().Now() < end);
  if (batches.size() == 1) {
    all = std::move(batches[0]);
  } else if (lie_in_place) {
    const auto drawn = static_cast<int64_t>(batches.size()) * items;
    RILL_ASSIGN_OR_RETURN(all, all.Slice(0, 0, drawn));
  } else {
    RILL_ASSIGN_OR_RETURN(all, Cat(batches));
  }
  batches.clear();
  sent.Keep(all);
  return all;
}

absl::StatusOr<Tensor> ReplayService::ServerNumbers(int64_t rows) {
  absl::MutexLock lock(&server_numbers_mu_);
  if (!server_numbers_.has_value() || server_numbers_->num_elements() < rows) {
    RILL_ASSIGN_OR_RETURN(server_numbers_,
                          Tensor::Empty(DType::kInt64, {rows}));
    std::fill_n(server_numbers_->data<int64_t>(), rows, server_number_);
  }
  return server_numbers_->Slice(0, 0, rows);
}

absl::StatusOr<Message> ReplayService::UpdatePriorities(
    const Request& request) {
  RILL_ASSIGN_OR_RETURN(const auto servers,
                        request.batch.Flat<int64_t>(kServerKey));
  RILL_ASSIGN_OR_RETURN(const std::vector<float> priorities,
                        PrioritiesOf(request.values, request.batch));
  const int64_t rows = static_cast<int64_t>(servers.size());
  const int64_t own =
      std::count(servers.begin(), servers.end(), server_number_);
  if (own == 0) return MakeReply({{kStale, rows}});
  if (own != rows) {
    return InvalidArgument("ReplayService: ", kServerKey, ": ", own, " of ",
                           rows, " rows are this server's, want all or none");
  }
  RILL_RETURN_IF_ERROR(
      request.table.UpdatePriorities(request.batch, priorities));
  return MakeReply({{kStale, 0}});
}

absl::StatusOr<Message> ReplayService::GetStats(const Request& request) {
  Message reply =
      MakeReply({{kSize, request.table.size()},
                 {kCapacity, request.table.capacity()},
                 {kBatches, static_cast<int64_t>(request.table.batch_number())},
                 {kClients, clients_.Count(request.table_name)},
                 {kServer, server_number_}});
  SetMass(request.table, &reply.values);
  return reply;
}

}  // namespace rill
