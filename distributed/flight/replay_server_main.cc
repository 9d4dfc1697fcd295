// SPDX-License-Identifier: Apache-2.0
// A replay server over Arrow Flight, from a config in JSON
// (server/server_config.h). SIGUSR1 makes a checkpoint. SIGTERM and SIGINT end
// it, with the last one.
#include <pthread.h>
#include <signal.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/log/initialize.h"
#include "absl/log/log.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/server/replay_server.h"
#include "rill/distributed/server/server_config.h"
#include "rill/distributed/transport/flight/flight_transport.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"

ABSL_FLAG(std::string, config, "", "file with the settings in JSON");
ABSL_FLAG(std::string, token_file, "",
          "file with the token that clients must send; none: all are served");
ABSL_FLAG(std::string, tls_certificate, "", "PEM file; with tls_key");
ABSL_FLAG(std::string, tls_key, "", "PEM file");
ABSL_FLAG(std::string, health, "",
          "address of a server: only asks whether it serves, with its token");
ABSL_FLAG(std::string, tls_roots, "",
          "PEM file of roots for --health; none: the system's");
ABSL_FLAG(absl::Duration, grace, absl::Seconds(30),
          "how long calls under way may take at the end");

namespace rill {
namespace {

constexpr absl::Duration kHealthTimeout = absl::Seconds(5);

// The text of the file that a flag names; "" where it names none.
absl::StatusOr<std::string> TextOf(const std::string& path) {
  if (path.empty()) return "";
  return ReadFile(path);
}

// Asks the server there, and says what it says.
absl::Status AskHealth(const std::string& address,
                       const FlightOptions& options) {
  const absl::Time deadline = Clock::System().Now() + kHealthTimeout;
  RILL_ASSIGN_OR_RETURN(const auto transport, FlightTransport::Create(options));
  RILL_ASSIGN_OR_RETURN(const auto connection,
                        transport->Connect(address, deadline));
  RILL_ASSIGN_OR_RETURN(const Message reply,
                        connection->Call("server/health", {}, deadline));
  RILL_ASSIGN_OR_RETURN(const auto status,
                        reply.values.Get<std::string>("status"));
  RILL_ASSIGN_OR_RETURN(const auto failed,
                        reply.values.Get<int64_t>("failed_checkpoints"));
  absl::PrintF("%s, %d checkpoints failed\n", status, failed);
  return absl::OkStatus();
}

absl::Status Run(const sigset_t& signals) {
  FlightOptions flight;
  RILL_ASSIGN_OR_RETURN(const std::string token,
                        TextOf(absl::GetFlag(FLAGS_token_file)));
  flight.token = std::string(absl::StripAsciiWhitespace(token));
  if (const std::string address = absl::GetFlag(FLAGS_health);
      !address.empty()) {
    RILL_ASSIGN_OR_RETURN(flight.tls_roots,
                          TextOf(absl::GetFlag(FLAGS_tls_roots)));
    return AskHealth(address, flight);
  }
  const std::string path = absl::GetFlag(FLAGS_config);
  if (path.empty()) {
    return InvalidArgument("--config: is missing, want a file");
  }
  RILL_ASSIGN_OR_RETURN(const std::string json, ReadFile(path));
  RILL_ASSIGN_OR_RETURN(ServerConfig config, ServerConfig::Parse(json));
  RILL_ASSIGN_OR_RETURN(flight.tls_certificate,
                        TextOf(absl::GetFlag(FLAGS_tls_certificate)));
  RILL_ASSIGN_OR_RETURN(flight.tls_key, TextOf(absl::GetFlag(FLAGS_tls_key)));
  RILL_ASSIGN_OR_RETURN(std::shared_ptr<Transport> transport,
                        FlightTransport::Create(flight));
  RILL_ASSIGN_OR_RETURN(
      const std::unique_ptr<ReplayServer> server,
      ReplayServer::Start(std::move(transport), std::move(config)));
  absl::PrintF("serving at %s\n", server->address());
  std::fflush(stdout);
  for (;;) {
    int signal = 0;
    sigwait(&signals, &signal);
    if (signal != SIGUSR1) break;
    const absl::Status saved = server->Checkpoint();
    LOG(INFO) << "checkpoint: " << saved;
  }
  return server->Shutdown(Clock::System().Now() + absl::GetFlag(FLAGS_grace));
}

}  // namespace
}  // namespace rill

int main(int argc, char** argv) {
  // Before threads start, which inherit it.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
    sigaddset(&signals, signal);
  }
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  absl::SetProgramUsageMessage("A replay server over Arrow Flight.");
  absl::ParseCommandLine(argc, argv);
  absl::InitializeLog();
  const absl::Status status = rill::Run(signals);
  if (!status.ok()) absl::FPrintF(stderr, "%s\n", status.ToString());
  return status.ok() ? 0 : 1;
}
