// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_LISTEN_ERROR_H_
#define RILL_DISTRIBUTED_TRANSPORT_LISTEN_ERROR_H_

#include <string>

#include "absl/status/status.h"

namespace rill {

// Why nobody can listen there now, found out by trying; OK where one can.
// INVALID_ARGUMENT where the host has no address. ALREADY_EXISTS where the port
// is in use, UNAVAILABLE where the address is none of this machine. And
// PERMISSION_DENIED where the port is for others, else the code of the system's
// error.
absl::Status TryToListen(const std::string& host, int port);

}  // namespace rill

#endif  // RILL_DISTRIBUTED_TRANSPORT_LISTEN_ERROR_H_
