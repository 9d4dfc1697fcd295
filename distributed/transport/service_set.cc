// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/service_set.h"

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"

namespace rill {

absl::StatusOr<Message> ServiceSet::Call(const CallInfo& info,
                                         const Message& request) {
  const absl::string_view name = info.method.substr(0, info.method.find('/'));
  const auto found = services_.find(name);
  if (found == services_.end() || found->second == nullptr) {
    return absl::UnimplementedError(absl::StrCat(
        "ServiceSet: method: got \"", info.method, "\", want one of ",
        absl::StrJoin(services_, ", ", [](std::string* out, const auto& one) {
          absl::StrAppend(out, one.first, "/...");
        })));
  }
  return found->second->Call(info, request);
}

}  // namespace rill
