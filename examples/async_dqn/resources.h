// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_ASYNC_DQN_RESOURCES_H_
#define RILL_EXAMPLES_ASYNC_DQN_RESOURCES_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace rill::async_dqn {

// Processes whose parent this one is, ended or not. From /proc.
std::vector<pid_t> ChildProcesses();

// A run's share of the system at one moment, from /proc.
struct Resources {
  double resident_mb = 0;  // Of this process: VmRSS.
  // The children's proportional set size: a page that several processes share
  // counts once in all. A child that has ended counts 0.
  double children_mb = 0;
  int64_t descriptors = 0;  // Of this process.
  int64_t mappings = 0;     // Of this process.
  int64_t processes = 0;    // This one and its children.
};
Resources ReadResources();

// A line for people: "resident 33.1 MB, workers 25.4 MB, ...".
std::string FormatResources(const Resources& resources);

}  // namespace rill::async_dqn

#endif  // RILL_EXAMPLES_ASYNC_DQN_RESOURCES_H_
