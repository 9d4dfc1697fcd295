// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/workers/worker_socket.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rill/base/process/poll_until.h"
#include "rill/base/status_macros.h"

namespace rill::workers_internal {
namespace {

struct Header {
  uint64_t bytes;  // Behind it.
  MessageKind kind;
  // Named, so that no byte of a message is undefined.
  uint32_t padding = 0;
};

absl::Status GoneError() {
  return Unavailable("the other end of the socket has gone");
}

// True if `events` are there before `deadline`.
absl::StatusOr<bool> WaitFor(int fd, int16_t events, absl::Time deadline) {
  pollfd entry = {fd, events, 0};
  const int found = PollUntil({&entry, 1}, deadline);
  if (found < 0) {
    return ResourceExhausted("poll of a socket: ", std::strerror(errno));
  }
  return found > 0;
}

}  // namespace

absl::StatusOr<std::pair<WorkerSocket, WorkerSocket>> WorkerSocket::MakePair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return ResourceExhausted("socketpair: ", std::strerror(errno));
  }
  return std::make_pair(WorkerSocket(ends[0]), WorkerSocket(ends[1]));
}

absl::Status WorkerSocket::Send(MessageKind kind, absl::string_view bytes,
                                absl::Time deadline, int descriptor) {
  const Header header = {.bytes = bytes.size(), .kind = kind};
  std::string message = Pack(header, bytes);
  absl::string_view left = message;
  while (!left.empty()) {
    iovec part = {const_cast<char*>(left.data()), left.size()};
    msghdr to = {};
    to.msg_iov = &part;
    to.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    // With the first bytes that are sent, and only those.
    if (descriptor >= 0) {
      to.msg_control = control;
      to.msg_controllen = sizeof(control);
      cmsghdr* const rights = CMSG_FIRSTHDR(&to);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(rights), &descriptor, sizeof(int));
    }
    // Never blocks in the call, so that the deadline holds. MSG_NOSIGNAL: an
    // end that has gone is an error here, no signal.
    const ssize_t sent = sendmsg(fd(), &to, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      left.remove_prefix(static_cast<size_t>(sent));
      descriptor = -1;
    } else if (errno == EAGAIN) {
      RILL_ASSIGN_OR_RETURN(const bool is_read,
                            WaitFor(fd(), POLLOUT, deadline));
      if (!is_read) {
        return absl::DeadlineExceededError(
            "the other end of the socket reads nothing");
      }
    } else if (errno != EINTR) {
      return GoneError();
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<WorkerSocket::Message>> WorkerSocket::Receive(
    absl::Time deadline) {
  while (true) {
    if (std::optional<Message> message = Take(); message.has_value()) {
      return message;
    }
    RILL_ASSIGN_OR_RETURN(const bool has_read, ReadSome(deadline));
    if (!has_read) return std::nullopt;
  }
}

uint64_t WorkerSocket::MissingBytes() const {
  Header header;
  if (inbox_.size() < sizeof(header)) return sizeof(header) - inbox_.size();
  inbox_.copy(reinterpret_cast<char*>(&header), sizeof(header));
  // Subtracted, not added: a size from outside may overflow.
  return header.bytes - (inbox_.size() - sizeof(header));
}

absl::StatusOr<bool> WorkerSocket::ReadSome(absl::Time deadline) {
  char bytes[16384];
  // Never beyond the message. The kernel joins the rest of a message with the
  // next one in one read, whose descriptor would then be taken for this one's.
  const size_t wanted = std::min<uint64_t>(MissingBytes(), sizeof(bytes));
  while (true) {
    iovec part = {bytes, wanted};
    msghdr from = {};
    from.msg_iov = &part;
    from.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    from.msg_control = control;
    from.msg_controllen = sizeof(control);
    const ssize_t n = recvmsg(fd(), &from, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n > 0) {
      const cmsghdr* const rights = CMSG_FIRSTHDR(&from);
      if (rights != nullptr && rights->cmsg_type == SCM_RIGHTS) {
        int descriptor;
        std::memcpy(&descriptor, CMSG_DATA(rights), sizeof(int));
        descriptor_ =
            std::make_unique<base_internal::FileDescriptor>(descriptor);
      }
      inbox_.append(bytes, static_cast<size_t>(n));
      return true;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) return GoneError();
    if (errno == EINTR) continue;
    RILL_ASSIGN_OR_RETURN(const bool is_there, WaitFor(fd(), POLLIN, deadline));
    if (!is_there) return false;
  }
}

std::optional<WorkerSocket::Message> WorkerSocket::Take() {
  if (MissingBytes() > 0) return std::nullopt;
  Header header = {};
  inbox_.copy(reinterpret_cast<char*>(&header), sizeof(header));
  Message message = {.kind = header.kind,
                     .bytes = inbox_.substr(sizeof(header)),
                     .descriptor = std::move(descriptor_)};
  inbox_.clear();
  return message;
}

}  // namespace rill::workers_internal
