// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/workers/worker_main.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <map>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/workers/worker_loop.h"
#include "rill/collectors/workers/worker_socket.h"

namespace rill {
namespace {

constexpr absl::string_view kFlag = "--rill_worker";
// Where StartWorkerProcess puts them.
constexpr int kSocket = 3;
constexpr int kLife = 4;

// The names that this program has called WorkerMain with.
struct Names {
  absl::Mutex mutex;
  bool has_called ABSL_GUARDED_BY(mutex) = false;
  std::map<std::string, WorkerFunction> known ABSL_GUARDED_BY(mutex);
};

Names& KnownNames() {
  static Names* const names = new Names;  // Never dies.
  return *names;
}

// Whatever the worker does meanwhile.
void EndWithParent() {
  // The pipe's other end is open in the parent alone, so poll returns when that
  // has ended. PDEATHSIG would not do: it is sent when the thread that started
  // the process ends, not the parent.
  std::thread([] {
    pollfd life = {kLife, 0, 0};
    while (poll(&life, 1, -1) < 0 && errno == EINTR) {
    }
    _exit(0);
  }).detach();
}

}  // namespace

std::optional<int> WorkerMain(
    int argc, char** argv,
    const std::map<std::string, WorkerFunction>& workers) {
  int64_t max_bytes = 0;
  if (argc != 4 || argv[1] != kFlag || !absl::SimpleAtoi(argv[3], &max_bytes)) {
    Names& names = KnownNames();
    absl::MutexLock lock(&names.mutex);
    names.has_called = true;
    for (const auto& [name, function] : workers) names.known[name] = function;
    return std::nullopt;
  }
  // Not for processes that the worker starts: with a copy of the socket they
  // would hide its end from the collector.
  fcntl(kSocket, F_SETFD, FD_CLOEXEC);
  fcntl(kLife, F_SETFD, FD_CLOEXEC);
  EndWithParent();
  if (max_bytes > 0) {
    const rlimit limit = {static_cast<rlim_t>(max_bytes),
                          static_cast<rlim_t>(max_bytes)};
    // Here and not in the parent, whose own limit this must not be.
    setrlimit(RLIMIT_AS, &limit);
  }
  const auto found = workers.find(argv[2]);
  if (found == workers.end()) return 1;  // The parent has checked the name.
  workers_internal::RunWorker(workers_internal::WorkerSocket(kSocket),
                              found->second, /*is_process=*/true);
  return 0;
}

namespace workers_internal {

absl::StatusOr<WorkerFunction> FindWorkerFunction(const std::string& name) {
  Names& names = KnownNames();
  absl::MutexLock lock(&names.mutex);
  if (!names.has_called) {
    return FailedPrecondition(
        "worker_name: got a name in a program without WorkerMain, want the "
        "call first in main (collectors/workers/worker_main.h)");
  }
  const auto found = names.known.find(name);
  if (found != names.known.end()) return found->second;
  return InvalidArgument(
      "worker_name: got \"", name, "\", want one that WorkerMain was given: ",
      absl::StrJoin(names.known, ", ", [](std::string* out, const auto& entry) {
        out->append(entry.first);
      }));
}

absl::StatusOr<std::unique_ptr<ChildProcess>> StartWorkerProcess(
    const std::string& name, int64_t max_bytes, int socket, int life) {
  RILL_RETURN_IF_ERROR(FindWorkerFunction(name).status());
  return ChildProcess::Start(
      {.program = "/proc/self/exe",
       .arguments = {std::string(kFlag), name, absl::StrCat(max_bytes)},
       .descriptors = {socket, life}});
}

}  // namespace workers_internal
}  // namespace rill
