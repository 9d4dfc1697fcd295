// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/gymnasium/python_child.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "rill/base/clock.h"
#include "rill/base/process/poll_until.h"
#include "rill/base/status_macros.h"

// Descriptors. The socket carries commands and answers. The life pipe carries
// nothing: when the end here closes, the kernel kills the child, so a parent
// that is killed leaves none behind. The log pipe is the child's output; every
// wait reads it, since a child that fills it would block.

namespace rill::gymnasium_internal {
namespace {

constexpr size_t kMaxLog = 2000;  // The last bytes are kept.
constexpr uint32_t kMaxMessage = uint32_t{1} << 28;
constexpr absl::Duration kCloseTimeout = absl::Seconds(2);

void Close(int* fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PythonChild>> PythonChild::Start(
    const std::string& python, const char* script,
    const std::vector<std::string>& args,
    const std::vector<std::string>& environment) {
  std::unique_ptr<PythonChild> child(new PythonChild());
  int sockets[2] = {-1, -1}, life[2] = {-1, -1}, log[2] = {-1, -1};
  const bool is_made =
      socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0 &&
      pipe2(life, O_CLOEXEC) == 0 && pipe2(log, O_CLOEXEC) == 0;
  // The descriptors that were made are closed by `child` and the cleanup.
  const int error = errno;
  child->socket_ = sockets[0];
  child->life_ = life[1];
  child->log_fd_ = log[0];
  const absl::Cleanup close_theirs = [&] {
    Close(&sockets[1]);
    Close(&life[0]);
    Close(&log[1]);
  };
  if (!is_made) {
    return Unavailable("PythonChild::Start: cannot make pipes: ",
                       std::strerror(error));
  }
  fcntl(child->log_fd_, F_SETFL, O_NONBLOCK);
  // -u: output that Python buffers would be lost with a killed child.
  std::vector<std::string> arguments = {"-u", "-c", script};
  arguments.insert(arguments.end(), args.begin(), args.end());
  RILL_ASSIGN_OR_RETURN(
      child->process_,
      ChildProcess::Start({.program = python,
                           .arguments = std::move(arguments),
                           .environment = environment,
                           .descriptors = {sockets[1], life[0]},
                           .output = log[1]}));
  return child;
}

PythonChild::~PythonChild() {
  PythonChild* const self[] = {this};
  WaitForEnds(self);
  Kill();
  Close(&life_);
  Close(&log_fd_);
}

void PythonChild::EndAll(
    absl::Span<const std::unique_ptr<PythonChild>> children) {
  std::vector<PythonChild*> running;
  for (const auto& child : children) {
    if (child != nullptr) running.push_back(child.get());
  }
  WaitForEnds(running);
  for (PythonChild* child : running) child->Kill();
}

void PythonChild::WaitForEnds(absl::Span<PythonChild* const> children) {
  std::vector<pollfd> fds;
  std::vector<PythonChild*> running;
  for (PythonChild* child : children) {
    // Its end of file is the order to end. A process that was forked from this
    // one holds the socket too, which a close alone leaves open.
    if (child->socket_ >= 0) shutdown(child->socket_, SHUT_RDWR);
    Close(&child->socket_);
    if (child->process_ != nullptr && child->end_.empty()) {
      running.push_back(child);
    }
  }
  const absl::Time deadline = Clock::Steady().Now() + kCloseTimeout;
  // The time decides, not poll: a child may write without end.
  while (!running.empty() && Clock::Steady().Now() < deadline) {
    fds.clear();
    for (const PythonChild* child : running) {
      fds.push_back({child->process_->pidfd(), POLLIN, 0});
      fds.push_back({child->log_fd_, POLLIN, 0});
    }
    if (PollUntil(absl::MakeSpan(fds), deadline) < 0) return;
    for (size_t i = running.size(); i-- > 0;) {
      if (fds[2 * i + 1].revents != 0) running[i]->DrainLog();
      if (fds[2 * i].revents != 0) running.erase(running.begin() + i);
    }
  }
}

std::string PythonChild::Kill() {
  if (process_ == nullptr || !end_.empty()) return end_;
  end_ = process_->Kill();
  DrainLog();
  const absl::string_view last = absl::StripAsciiWhitespace(log_);
  if (!last.empty()) absl::StrAppend(&end_, "; its last output: ", last);
  return end_;
}

std::string PythonChild::End(absl::Time deadline) {
  if (end_.empty()) {
    process_->WaitForEnd(
        std::min(deadline, Clock::Steady().Now() + absl::Seconds(1)));
  }
  return Kill();
}

void PythonChild::DrainLog() {
  char bytes[4096];
  // Bounded: a process that writes without end must not hold this one.
  for (int i = 0; i < 64; ++i) {
    const ssize_t n = read(log_fd_, bytes, sizeof(bytes));
    if (n == 0) Close(&log_fd_);
    if (n <= 0) return;
    log_.append(bytes, static_cast<size_t>(n));
    if (log_.size() > kMaxLog) log_.erase(0, log_.size() - kMaxLog);
  }
}

// Reads no further than one message and what came with it. The bound holds
// where a child writes something else than messages to its socket.
bool PythonChild::ReadSocket() {
  char bytes[65536];
  while (!HasMessage() && inbox_.size() <= sizeof(uint32_t) + kMaxMessage) {
    const ssize_t n = recv(socket_, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    if (n == 0) return false;
    inbox_.append(bytes, static_cast<size_t>(n));
  }
  return true;
}

bool PythonChild::HasMessage() const {
  uint32_t size = 0;
  if (inbox_.size() < sizeof(size)) return false;
  std::memcpy(&size, inbox_.data(), sizeof(size));
  return inbox_.size() - sizeof(size) >= size;
}

std::string PythonChild::TakeMessage() {
  uint32_t size = 0;
  std::memcpy(&size, inbox_.data(), sizeof(size));
  std::string text = inbox_.substr(sizeof(size), size);
  inbox_.erase(0, sizeof(size) + size);
  return text;
}

absl::Status PythonChild::Send(absl::string_view bytes) {
  while (!bytes.empty()) {
    // Without the flag SIGPIPE would end this process.
    const ssize_t n = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Unavailable("child ", End());
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::Status PythonChild::SendWithDescriptor(absl::string_view text, int fd) {
  // A descriptor needs a byte to go with; it goes with the length.
  uint32_t size = static_cast<uint32_t>(text.size());
  iovec part = {&size, sizeof(size)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  if (sendmsg(socket_, &message, MSG_NOSIGNAL) !=
      static_cast<ssize_t>(sizeof(size))) {
    return Unavailable("child ", End());
  }
  return Send(text);
}

std::vector<absl::StatusOr<std::string>> PythonChild::Receive(
    absl::Span<PythonChild* const> children, absl::Time deadline,
    absl::FunctionRef<bool()> is_near) {
  std::vector<absl::StatusOr<std::string>> results(
      children.size(), absl::UnknownError("no answer"));
  // Children whose result is known; poll skips descriptors of -1.
  std::vector<bool> is_over(children.size(), false);
  std::vector<pollfd> fds;
  size_t left = children.size();
  while (left > 0) {
    fds.clear();
    for (size_t i = 0; i < children.size(); ++i) {
      const PythonChild& child = *children[i];
      fds.push_back({is_over[i] ? -1 : child.socket_, POLLIN, 0});
      fds.push_back({is_over[i] ? -1 : child.log_fd_, POLLIN, 0});
      fds.push_back({is_over[i] ? -1 : child.process_->pidfd(), POLLIN, 0});
    }
    const absl::Time until =
        is_near() ? absl::InfinitePast() : deadline;  // Past: asks only.
    const int found = PollUntil(absl::MakeSpan(fds), until);
    if (found == 0 && until != deadline) continue;
    const bool is_late = found <= 0;
    const bool is_past = is_late || Clock::Steady().Now() >= deadline;
    for (size_t i = 0; i < children.size(); ++i) {
      if (is_over[i]) continue;
      PythonChild& child = *children[i];
      if (fds[3 * i + 1].revents != 0) child.DrainLog();
      // One that has ended may have left its answer in the socket.
      const bool has_ended = fds[3 * i + 2].revents != 0;
      const bool is_open =
          (fds[3 * i].revents == 0 && !has_ended) || child.ReadSocket();
      uint32_t size = 0;
      if (child.inbox_.size() >= sizeof(size)) {
        std::memcpy(&size, child.inbox_.data(), sizeof(size));
      }
      // In this order: an answer counts, even if its child has ended since or
      // the deadline has passed.
      if (child.HasMessage()) {
        results[i] = child.TakeMessage();
      } else if (size > kMaxMessage) {
        results[i] = Unavailable(
            "child wrote to descriptor 3, which is not its own, "
            "and ",
            child.Kill());
      } else if (!is_open || has_ended) {
        results[i] = Unavailable("child ", child.End(deadline));
      } else if (is_past) {
        results[i] = absl::DeadlineExceededError(
            absl::StrCat("child gave no answer in time and ", child.Kill()));
      } else {
        continue;
      }
      is_over[i] = true;
      --left;
    }
  }
  return results;
}

}  // namespace rill::gymnasium_internal
