// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/listen_error.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"

namespace rill {
namespace {

absl::Status ErrorOf(const char* call) {
  const int error = errno;
  const absl::Status status = absl::ErrnoToStatus(error, call);
  switch (error) {
    case EADDRINUSE:
      return absl::AlreadyExistsError(status.message());
    case EADDRNOTAVAIL:
      return absl::UnavailableError(status.message());
    default:
      return status;
  }
}

}  // namespace

absl::Status TryToListen(const std::string& host, int port) {
  addrinfo hints = {};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int error =
          getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &list);
      error != 0) {
    return InvalidArgument("host: ", gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list,
                                                                 &freeaddrinfo);
  const int listener = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0) return ErrorOf("socket");
  const int on = 1;
  (void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  absl::Status status;
  if (bind(listener, list->ai_addr, list->ai_addrlen) != 0) {
    status = ErrorOf("bind");
  } else if (listen(listener, 1) != 0) {
    status = ErrorOf("listen");
  }
  close(listener);
  return status;
}

}  // namespace rill
