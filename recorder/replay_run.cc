// SPDX-License-Identifier: Apache-2.0
//
// replay_run: starts the program of a flight log once more, to repeat its run.
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "rill/base/mapped_file.h"
#include "rill/base/status_macros.h"
#include "rill/recorder/flight_log.h"

namespace rill {
namespace {

constexpr char kUsage[] =
    "usage: replay_run LOG [--program=FILE] [ARGUMENT...]\n"
    "Repeats the run of a flight log bit for bit, in one thread, up to where\n"
    "the log ends: starts the program that wrote it, with the arguments that\n"
    "it had and ARGUMENTs behind them, and with RILL_REPLAY=LOG.\n"
    "  --program=FILE  that program, where it lies elsewhere now\n";

absl::Status Start(int argc, char** argv) {
  const std::string log = argv[1];
  RILL_ASSIGN_OR_RETURN(const auto file,
                        MappedFile::Open(log, MappedFile::Mode::kReadOnly));
  RILL_ASSIGN_OR_RETURN(
      const FlightDecoder decoder,
      FlightDecoder::Create({reinterpret_cast<const char*>(file->data()),
                             static_cast<size_t>(file->size_bytes())}));
  std::string program = decoder.head().program;
  std::vector<std::string> arguments = decoder.head().arguments;
  for (int i = 2; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (absl::ConsumePrefix(&argument, "--program=")) {
      program = std::string(argument);
    } else {
      arguments.emplace_back(argument);
    }
  }
  if (program.empty()) {
    return FailedPrecondition("replay_run: \"", log,
                              "\": got a log that names no program, want "
                              "--program=FILE");
  }
  std::vector<char*> words = {program.data()};
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  setenv("RILL_REPLAY", log.c_str(), 1);
  execv(program.c_str(), words.data());
  return Unavailable("replay_run: \"", program, "\": ", std::strerror(errno),
                     "; say where it lies: --program=FILE");
}

}  // namespace
}  // namespace rill

int main(int argc, char** argv) {
  const absl::string_view first = argc < 2 ? "" : argv[1];
  if (first.empty() || first == "--help" || first == "-h") {
    std::fputs(rill::kUsage, first.empty() ? stderr : stdout);
    return first.empty() ? 1 : 0;
  }
  // It returns only where nothing was started.
  std::fprintf(stderr, "%s\n", rill::Start(argc, argv).ToString().c_str());
  return 1;
}
