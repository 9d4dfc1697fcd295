// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FLOW_CHANNEL_ANONYMOUS_MEMORY_H_
#define RILL_FLOW_CHANNEL_ANONYMOUS_MEMORY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/file_error.h"
#include "rill/base/sparse_file.h"

namespace rill::channel_internal {

// Memory that processes share by a descriptor and that has no name (a memfd),
// so nothing is left behind when they die. Its length is sealed: nobody can
// make it shorter under a mapping. It takes no memory until it is reserved.
// Thread-safety: thread-compatible; the bytes are the users' to synchronise.
// Errors begin with `caller`.
class AnonymousMemory {
 public:
  // `bytes` > 0 that read as zero. `name` is seen in /proc, by people.
  static absl::StatusOr<std::unique_ptr<AnonymousMemory>> Create(
      absl::string_view caller, const std::string& name, int64_t bytes);
  // By a descriptor that this process inherited, and that is now the object's.
  // Null, and closed, where its length may change.
  static std::unique_ptr<AnonymousMemory> Adopt(int fd);
  AnonymousMemory(const AnonymousMemory&) = delete;
  AnonymousMemory& operator=(const AnonymousMemory&) = delete;

  int fd() const { return file_.get(); }
  int64_t size_bytes() const { return size_bytes_; }

  // Memory for [offset, offset + bytes): RESOURCE_EXHAUSTED, with the bytes
  // asked and available, where there is too little, never SIGBUS later.
  absl::Status Reserve(absl::string_view caller, int64_t offset,
                       int64_t bytes) const;
  // Maps [offset, offset + bytes), a multiple of pages, to `at` in `range`.
  absl::Status Map(absl::string_view caller, const AddressRange& range,
                   int64_t at, int64_t offset, int64_t bytes,
                   bool is_writable = true) const;
  // Copies bytes from `offset` on; whether there were as many.
  bool Read(int64_t offset, absl::Span<char> to) const;

 private:
  AnonymousMemory(int fd, int64_t size_bytes)
      : file_(fd), size_bytes_(size_bytes) {}

  base_internal::FileDescriptor file_;
  int64_t size_bytes_;
};

}  // namespace rill::channel_internal

#endif  // RILL_FLOW_CHANNEL_ANONYMOUS_MEMORY_H_
