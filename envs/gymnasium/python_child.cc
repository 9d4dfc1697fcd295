// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/gymnasium/python_child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "rill/base/clock.h"
#include "rill/base/process/poll_until.h"

namespace rill::gymnasium_internal {
namespace {

constexpr size_t kMaxLog = 2000;  // The last bytes are kept.
constexpr uint32_t kMaxMessage = uint32_t{1} << 28;
constexpr absl::Duration kCloseTimeout = absl::Seconds(2);

void Close(int* fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

// Away from the numbers that the child gets its descriptors by.
int Above10(int* fd) {
  const int moved = fcntl(*fd, F_DUPFD_CLOEXEC, 10);
  Close(fd);
  return *fd = moved;
}

absl::Status StartError(absl::string_view what, int error) {
  return absl::UnavailableError(
      absl::StrCat("PythonChild::Start: ", what, ": ", std::strerror(error)));
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
  child->socket_ = sockets[0];
  child->life_ = life[1];
  child->log_fd_ = log[0];
  const auto close_theirs = [&] {
    Close(&sockets[1]);
    Close(&life[0]);
    Close(&log[1]);
  };
  if (!is_made || Above10(&sockets[1]) < 0 || Above10(&life[0]) < 0 ||
      Above10(&log[1]) < 0) {
    const int error = errno;
    close_theirs();
    return StartError("cannot make pipes", error);
  }
  fcntl(child->log_fd_, F_SETFL, O_NONBLOCK);

  std::vector<char*> argv = {const_cast<char*>(python.c_str()),
                             const_cast<char*>("-u"), const_cast<char*>("-c"),
                             const_cast<char*>(script)};
  for (const std::string& arg : args) {
    argv.push_back(const_cast<char*>(arg.c_str()));
  }
  argv.push_back(nullptr);
  std::vector<char*> envp;
  for (const std::string& entry : environment) {
    const absl::string_view name(entry.data(), entry.find('=') + 1);
    const auto is_same = [&](const char* other) {
      return absl::string_view(other).substr(0, name.size()) == name;
    };
    envp.erase(std::remove_if(envp.begin(), envp.end(), is_same), envp.end());
    envp.push_back(const_cast<char*>(entry.c_str()));
  }
  const size_t num_own = envp.size();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const absl::string_view text(*entry);
    const absl::string_view name = text.substr(0, text.find('=') + 1);
    const bool is_replaced =
        std::any_of(envp.begin(), envp.begin() + num_own, [&](char* own) {
          return absl::string_view(own).substr(0, name.size()) == name;
        });
    if (!is_replaced) envp.push_back(*entry);
  }
  envp.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, log[1], 1);
  posix_spawn_file_actions_adddup2(&actions, log[1], 2);
  posix_spawn_file_actions_adddup2(&actions, sockets[1], 3);
  posix_spawn_file_actions_adddup2(&actions, life[0], 4);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  const int error = posix_spawnp(&child->pid_, python.c_str(), &actions,
                                 &attributes, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close_theirs();
  if (error != 0) {
    child->pid_ = -1;
    return StartError(absl::StrCat("cannot run \"", python, "\""), error);
  }
  child->pidfd_ = static_cast<int>(syscall(SYS_pidfd_open, child->pid_, 0));
  if (child->pidfd_ < 0) return StartError("pidfd_open", errno);
  return child;
}

PythonChild::~PythonChild() {
  PythonChild* const self[] = {this};
  WaitForEnds(self);
  Kill();
  Close(&pidfd_);
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
    Close(&child->socket_);
    if (child->pid_ > 0 && !child->is_reaped_ && child->pidfd_ >= 0) {
      running.push_back(child);
    }
  }
  const absl::Time deadline = Clock::Steady().Now() + kCloseTimeout;
  // The time decides, not poll: a child may write without end.
  while (!running.empty() && Clock::Steady().Now() < deadline) {
    fds.clear();
    for (const PythonChild* child : running) {
      fds.push_back({child->pidfd_, POLLIN, 0});
      fds.push_back({child->log_fd_, POLLIN, 0});
    }
    PollUntil(absl::MakeSpan(fds), deadline);
    for (size_t i = running.size(); i-- > 0;) {
      if (fds[2 * i + 1].revents != 0) running[i]->DrainLog();
      if (fds[2 * i].revents != 0) running.erase(running.begin() + i);
    }
  }
}

std::string PythonChild::Kill() {
  if (pid_ <= 0 || is_reaped_) return end_;
  // Not reaped yet, so the number is still the child's; its group, because an
  // environment may have processes of its own.
  siginfo_t info = {};
  const bool ended =
      waitid(P_PID, pid_, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      info.si_pid == pid_;
  kill(-pid_, SIGKILL);
  kill(pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  is_reaped_ = true;
  DrainLog();
  if (!ended) {
    end_ = "was killed";
  } else if (WIFEXITED(status)) {
    end_ = absl::StrCat("ended with exit status ", WEXITSTATUS(status));
  } else {
    end_ = absl::StrCat("ended by signal ", WTERMSIG(status));
  }
  const absl::string_view last = absl::StripAsciiWhitespace(log_);
  if (!last.empty()) absl::StrAppend(&end_, "; its last output: ", last);
  return end_;
}

std::string PythonChild::End(absl::Time deadline) {
  if (is_reaped_) return end_;
  pollfd end = {pidfd_, POLLIN, 0};
  PollUntil({&end, 1},
            std::min(deadline, Clock::Steady().Now() + absl::Seconds(1)));
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
    const ssize_t n = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::UnavailableError(absl::StrCat("child ", End()));
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::Status PythonChild::SendWithDescriptor(absl::string_view text, int fd) {
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
    return absl::UnavailableError(absl::StrCat("child ", End()));
  }
  return Send(text);
}

std::vector<absl::StatusOr<std::string>> PythonChild::Receive(
    absl::Span<PythonChild* const> children, absl::Time deadline) {
  std::vector<absl::StatusOr<std::string>> results(
      children.size(), absl::UnknownError("no answer"));
  std::vector<bool> is_over(children.size(), false);
  std::vector<pollfd> fds;
  size_t left = children.size();
  while (left > 0) {
    fds.clear();
    for (size_t i = 0; i < children.size(); ++i) {
      const PythonChild& child = *children[i];
      fds.push_back({is_over[i] ? -1 : child.socket_, POLLIN, 0});
      fds.push_back({is_over[i] ? -1 : child.log_fd_, POLLIN, 0});
      fds.push_back({is_over[i] ? -1 : child.pidfd_, POLLIN, 0});
    }
    const bool is_late = PollUntil(absl::MakeSpan(fds), deadline) == 0;
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
      if (child.HasMessage()) {
        results[i] = child.TakeMessage();
      } else if (size > kMaxMessage) {
        results[i] = absl::UnavailableError(
            absl::StrCat("child wrote to descriptor 3, which is not its own, "
                         "and ",
                         child.Kill()));
      } else if (!is_open || has_ended) {
        results[i] =
            absl::UnavailableError(absl::StrCat("child ", child.End(deadline)));
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
