// SPDX-License-Identifier: Apache-2.0
#include "rill/libtorch/torch_threads.h"

#include <thread>

#include "ATen/Parallel.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/libtorch/torch_call.h"

namespace rill {
namespace {

constexpr absl::string_view kCaller = "SetTorchThreads";
constexpr int kMost = 1024;

}  // namespace

absl::Status SetTorchThreads(int threads) {
  if (threads < 1 || threads > kMost) {
    return InvalidArgument(kCaller, ": threads: got ", threads, ", want [1, ",
                           kMost, "]");
  }
  return CallTorch(
      [&]() -> absl::Status {
        // Torch sets the calling thread's number, and that of all threads which
        // ask for theirs later, for the first time. So another thread sets the
        // latter; this one has asked before, and keeps its own.
        at::get_num_threads();
        at::set_num_threads(threads);
        std::thread([] { at::set_num_threads(1); }).join();
        return absl::OkStatus();
      },
      kCaller);
}

}  // namespace rill
