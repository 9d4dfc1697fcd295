// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/dqn_cartpole/report/tensorboard_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/crc/crc32c.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"

namespace rill::dqn_cartpole {
namespace {

// Protobuf's wire types.
constexpr int kVarint = 0;
constexpr int kFixed64 = 1;
constexpr int kBytes = 2;
constexpr int kFixed32 = 5;

template <typename T>
void AppendRaw(std::string* out, T value) {  // x86-64 is little-endian.
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out->append(bytes, sizeof(T));
}

void AppendVarint(std::string* out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) {
    out->push_back(static_cast<char>(value | 0x80));
  }
  out->push_back(static_cast<char>(value));
}

void AppendTag(std::string* out, int field, int wire_type) {
  AppendVarint(out, static_cast<uint64_t>(field << 3 | wire_type));
}

void AppendBytes(std::string* out, int field, absl::string_view bytes) {
  AppendTag(out, field, kBytes);
  AppendVarint(out, bytes.size());
  absl::StrAppend(out, bytes);
}

std::string EventAt(absl::Time now) {
  std::string event;
  AppendTag(&event, 1, kFixed64);
  // Microseconds are whole doubles; absl::ToDoubleSeconds would round here.
  AppendRaw(&event, static_cast<double>(absl::ToUnixMicros(now)) / 1e6);
  return event;
}

uint32_t MaskedCrc(absl::string_view bytes) {
  const uint32_t crc = static_cast<uint32_t>(absl::ComputeCrc32c(bytes));
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

absl::Status ErrnoStatus(absl::string_view what, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat("TensorBoardWriter: cannot ",
                                                 what, " \"", path, "\""));
}

}  // namespace

TensorBoardWriter::TensorBoardWriter(std::string path, int fd,
                                     int64_t size_bytes)
    : path_(std::move(path)), fd_(fd), size_bytes_(size_bytes) {}

TensorBoardWriter::~TensorBoardWriter() { close(fd_); }

absl::StatusOr<std::unique_ptr<TensorBoardWriter>> TensorBoardWriter::Create(
    const std::string& directory, absl::Time now, absl::string_view host) {
  const std::string path =
      JoinPath(directory, absl::StrCat("events.out.tfevents.",
                                       absl::ToUnixSeconds(now), ".", host));
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0 && errno == EEXIST) {
    return absl::FailedPreconditionError(absl::StrCat(
        "TensorBoardWriter::Create: \"", path, "\" exists, want a new file"));
  }
  if (fd < 0) return ErrnoStatus("create", path);
  auto writer = std::unique_ptr<TensorBoardWriter>(
      new TensorBoardWriter(path, fd, /*size_bytes=*/0));
  std::string event = EventAt(now);
  AppendBytes(&event, 3, "brain.Event:2");
  RILL_RETURN_IF_ERROR(writer->AppendRecord(event));
  return writer;
}

absl::StatusOr<std::unique_ptr<TensorBoardWriter>> TensorBoardWriter::Reopen(
    const std::string& path, int64_t size_bytes) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus("open", path);
  auto writer = std::unique_ptr<TensorBoardWriter>(
      new TensorBoardWriter(path, fd, size_bytes));
  struct stat info;
  if (fstat(fd, &info) != 0) return ErrnoStatus("examine", path);
  if (info.st_size < size_bytes) {
    return absl::DataLossError(
        absl::StrCat("TensorBoardWriter::Reopen: \"", path, "\" has ",
                     info.st_size, " bytes, want at least ", size_bytes));
  }
  if (ftruncate(fd, size_bytes) != 0) return ErrnoStatus("shorten", path);
  return writer;
}

absl::Status TensorBoardWriter::WriteScalars(int64_t step, absl::Time now,
                                             absl::Span<const Scalar> scalars) {
  std::string summary;
  for (const Scalar& scalar : scalars) {
    std::string value;
    AppendBytes(&value, 1, scalar.tag);
    AppendTag(&value, 2, kFixed32);
    AppendRaw(&value, static_cast<float>(scalar.value));
    AppendBytes(&summary, 1, value);
  }
  std::string event = EventAt(now);
  AppendTag(&event, 2, kVarint);
  AppendVarint(&event, static_cast<uint64_t>(step));
  AppendBytes(&event, 5, summary);
  return AppendRecord(event);
}

absl::Status TensorBoardWriter::AppendRecord(absl::string_view event) {
  std::string record;
  AppendRaw(&record, static_cast<uint64_t>(event.size()));
  AppendRaw(&record, MaskedCrc(record));
  absl::StrAppend(&record, event);
  AppendRaw(&record, MaskedCrc(event));

  const int64_t size = static_cast<int64_t>(record.size());
  for (int64_t done = 0; done < size;) {
    const ssize_t n =
        pwrite(fd_, record.data() + done, size - done, size_bytes_ + done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const absl::Status status = ErrnoStatus("append to", path_);
      // A half record would hide all later ones from readers.
      if (ftruncate(fd_, size_bytes_) != 0) return ErrnoStatus("mend", path_);
      return status;
    }
    done += n;
  }
  size_bytes_ += size;
  return absl::OkStatus();
}

std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0') {
    return "localhost";
  }
  return name;
}

}  // namespace rill::dqn_cartpole
