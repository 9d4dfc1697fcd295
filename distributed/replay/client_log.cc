// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/replay/client_log.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/transport/final_error.h"
#include "rill/flow/producers.h"

namespace rill {
namespace {

constexpr absl::string_view kClientType = "LoggedClient";
constexpr absl::string_view kErrorType = "LoggedError";
constexpr absl::string_view kLogType = "ClientLog";
// Is there where a client was.
constexpr absl::string_view kForgotten = "forgotten";
constexpr int64_t kVersion = 1;

}  // namespace

absl::Status LoggedClient::Apply(int64_t number, int64_t rows,
                                 absl::FunctionRef<absl::Status()> apply) {
  absl::MutexLock lock(&mu_);
  if (number <= position_.newest) {
    const auto error = errors_.find(number);
    return error == errors_.end() ? absl::OkStatus() : error->second;
  }
  if (number != position_.newest + 1) {
    return absl::AbortedError(absl::StrCat("operation ", number,
                                           ": got operations up to ",
                                           position_.newest, " before it"));
  }
  const absl::Status status = apply();
  if (status.ok()) {
    position_.rows += rows;
  } else if (IsFinalError(status)) {
    errors_[number] = status;
    if (errors_.size() > kKeptErrors) errors_.erase(errors_.begin());
  } else {
    return status;
  }
  position_.newest = number;
  return status;
}

ClientPosition LoggedClient::Resume(int64_t newest, int64_t rows) {
  absl::MutexLock lock(&mu_);
  if (newest > position_.newest) {
    position_.newest = newest;
    position_.lost += rows - position_.rows;
    position_.rows = rows;
  }
  return position_;
}

uint64_t LoggedClient::LocalSource(int64_t source) {
  if (source == 0) return 0;
  absl::MutexLock lock(&mu_);
  const auto [it, is_new] = sources_.try_emplace(source, 0);
  if (is_new) it->second = NewSource();
  const uint64_t number = it->second;
  if (sources_.size() > kKeptSources) sources_.erase(sources_.begin());
  return number;
}

ClientPosition LoggedClient::position() const {
  absl::MutexLock lock(&mu_);
  return position_;
}

SavedState LoggedClient::Save() const {
  absl::MutexLock lock(&mu_);
  SavedState state(kClientType, kVersion);
  state.Set("newest", position_.newest);
  state.Set("rows", position_.rows);
  state.Set("lost", position_.lost);
  std::vector<SavedState> errors;
  for (const auto& [number, status] : errors_) {
    SavedState error(kErrorType, kVersion);
    error.Set("number", number);
    error.Set("code", static_cast<int64_t>(status.code()));
    error.Set("text", std::string(status.message()));
    errors.push_back(std::move(error));
  }
  state.Set("errors", std::move(errors));
  return state;
}

absl::Status LoggedClient::Load(const SavedState& state) {
  ClientPosition position;
  RILL_ASSIGN_OR_RETURN(position.newest, state.Get<int64_t>("newest"));
  RILL_ASSIGN_OR_RETURN(position.rows, state.Get<int64_t>("rows"));
  RILL_ASSIGN_OR_RETURN(position.lost, state.Get<int64_t>("lost"));
  if (position.newest < 0 || position.lost < 0 ||
      position.rows < position.lost) {
    return state.Damaged(absl::StrCat("newest ", position.newest, ", rows ",
                                      position.rows, ", lost ", position.lost));
  }
  RILL_ASSIGN_OR_RETURN(const auto errors, state.Parts("errors"));
  absl::MutexLock lock(&mu_);
  position_ = position;
  for (const SavedState& error : errors) {
    RILL_RETURN_IF_ERROR(error.CheckType(kErrorType, kVersion));
    RILL_ASSIGN_OR_RETURN(const auto number, error.Get<int64_t>("number"));
    RILL_ASSIGN_OR_RETURN(const auto code, error.Get<int64_t>("code"));
    RILL_ASSIGN_OR_RETURN(const auto text, error.Get<std::string>("text"));
    errors_[number] = absl::Status(static_cast<absl::StatusCode>(code), text);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<LoggedClient>> ClientLog::Of(
    absl::string_view table, absl::string_view client, absl::Time now) {
  if (client.empty() || client.size() > kLongestName) {
    return InvalidArgument("ReplayService: client: got a name of ",
                           client.size(), " bytes, want [1, ", kLongestName,
                           "]");
  }
  const Name name(table, client);
  absl::MutexLock lock(&mu_);
  if (const auto found = clients_.find(name); found != clients_.end()) {
    Entry& entry = found->second;
    entry.used = now;
    by_use_.splice(by_use_.end(), by_use_, entry.place);
    return entry.client;
  }
  if (clients_.size() >= kMostClients) {
    const auto oldest = clients_.find(by_use_.front());
    if (now - oldest->second.used < kSilence) {
      return absl::ResourceExhaustedError(
          absl::StrCat("ReplayService: client: got a new one beside ",
                       clients_.size(), ", want at most ", kMostClients,
                       " within ", absl::FormatDuration(kSilence)));
    }
    clients_.erase(oldest);
    by_use_.pop_front();
    has_forgotten_ = true;
  }
  Entry& entry = clients_[name];
  entry = {.client = std::make_shared<LoggedClient>(),
           .used = now,
           .place = by_use_.insert(by_use_.end(), name)};
  return entry.client;
}

absl::StatusOr<ClientPosition> ClientLog::Resume(absl::string_view table,
                                                 absl::string_view client,
                                                 int64_t newest, int64_t rows,
                                                 absl::Time now) {
  RILL_ASSIGN_OR_RETURN(const auto one, Of(table, client, now));
  if (newest > 0 && one->position().newest == 0) {
    absl::MutexLock lock(&mu_);
    if (has_forgotten_) {
      return FailedPrecondition(
          "ReplayService: client: got \"", client, "\" with ", newest,
          " operations that may have been forgotten, as it was silent for ",
          absl::FormatDuration(kSilence), "; begin as a new client");
    }
  }
  return one->Resume(newest, rows);
}

int64_t ClientLog::Count(absl::string_view table) const {
  absl::MutexLock lock(&mu_);
  return std::count_if(
      clients_.begin(), clients_.end(),
      [&](const auto& client) { return client.first.first == table; });
}

SavedState ClientLog::Save() const {
  absl::MutexLock lock(&mu_);
  std::vector<SavedState> clients;
  for (const auto& [name, entry] : clients_) {
    SavedState state = entry.client->Save();
    state.Set("table", name.first);
    state.Set("client", name.second);
    clients.push_back(std::move(state));
  }
  SavedState state(kLogType, kVersion);
  state.Set("clients", std::move(clients));
  if (has_forgotten_) state.Set(kForgotten, int64_t{1});
  return state;
}

absl::Status ClientLog::Load(const SavedState& state, absl::Time now) {
  RILL_RETURN_IF_ERROR(state.CheckType(kLogType, kVersion));
  RILL_ASSIGN_OR_RETURN(const auto clients, state.Parts("clients"));
  std::map<Name, Entry> loaded;
  std::list<Name> by_use;
  for (const SavedState& client : clients) {
    RILL_RETURN_IF_ERROR(client.CheckType(kClientType, kVersion));
    RILL_ASSIGN_OR_RETURN(auto table, client.Get<std::string>("table"));
    RILL_ASSIGN_OR_RETURN(auto name, client.Get<std::string>("client"));
    auto one = std::make_shared<LoggedClient>();
    RILL_RETURN_IF_ERROR(one->Load(client));
    const auto [place, is_new] = loaded.try_emplace({table, name});
    if (!is_new) {
      return state.Damaged(absl::StrCat("client \"", name, "\" twice"));
    }
    place->second = {.client = std::move(one),
                     .used = now,
                     .place = by_use.insert(by_use.end(), place->first)};
  }
  absl::MutexLock lock(&mu_);
  clients_ = std::move(loaded);
  by_use_ = std::move(by_use);
  has_forgotten_ = state.Get<int64_t>(kForgotten).ok();
  return absl::OkStatus();
}

}  // namespace rill
