// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_KILLS_LEDGER_H_
#define RILL_DISTRIBUTED_KILLS_LEDGER_H_

#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace rill {

// A file that says what a program of a run knows, and stays when it is killed.
// A line has nanoseconds of the machine's steady clock, a word, and numbers.
// The file's name says who wrote it: <role>-<number>-<start>.
// Thread-safety: thread-compatible.
// Cost: a write to the file a line.
class Ledger {
 public:
  // Its first line is `begin` with the process's number.
  static absl::StatusOr<std::unique_ptr<Ledger>> Create(
      const std::string& directory, absl::string_view role, int64_t number,
      int64_t start);

  template <typename... Values>
  void Line(absl::string_view word, const Values&... values) {
    std::string line = Head(word);
    (absl::StrAppend(&line, " ", values), ...);
    Put(line);
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  explicit Ledger(std::FILE* file) : file_(file) {}

  static std::string Head(absl::string_view word);
  void Put(const std::string& line);

  const std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_KILLS_LEDGER_H_
