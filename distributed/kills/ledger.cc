// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/kills/ledger.h"

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"

namespace rill {

absl::StatusOr<std::unique_ptr<Ledger>> Ledger::Create(
    const std::string& directory, absl::string_view role, int64_t number,
    int64_t start) {
  const std::string path =
      absl::StrCat(directory, "/", role, "-", number, "-", start);
  std::FILE* const file = std::fopen(path.c_str(), "ax");
  if (file == nullptr) {
    return absl::AlreadyExistsError(absl::StrCat("Ledger::Create: ", path));
  }
  std::unique_ptr<Ledger> ledger(new Ledger(file));
  ledger->Line("begin", getpid());
  return ledger;
}

std::string Ledger::Head(absl::string_view word) {
  return absl::StrCat(absl::ToUnixNanos(Clock::Steady().Now()), " ", word);
}

void Ledger::Put(const std::string& line) {
  std::fprintf(file_.get(), "%s\n", line.c_str());
  std::fflush(file_.get());
}

}  // namespace rill
