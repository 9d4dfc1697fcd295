// SPDX-License-Identifier: Apache-2.0
#include "rill/telemetry/tensorboard_writer.h"

#include <unistd.h>

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
#include "rill/telemetry/append_file.h"

namespace rill {
namespace {

using ::rill::telemetry_internal::AppendFile;

constexpr char kWho[] = "TensorBoardWriter";

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

// Base 128, the lowest seven bits first; the top bit says that more follow.
void AppendVarint(std::string* out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) {
    out->push_back(static_cast<char>(value | 0x80));
  }
  out->push_back(static_cast<char>(value));
}

// In front of each field: its number, and how long its value is.
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

// TFRecord's mask: a CRC of bytes that hold CRCs themselves would be weak.
uint32_t MaskedCrc(absl::string_view bytes) {
  const uint32_t crc = static_cast<uint32_t>(absl::ComputeCrc32c(bytes));
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

// A TFRecord of `event`.
std::string RecordOf(absl::string_view event) {
  std::string record;
  AppendRaw(&record, static_cast<uint64_t>(event.size()));
  AppendRaw(&record, MaskedCrc(record));
  absl::StrAppend(&record, event);
  AppendRaw(&record, MaskedCrc(event));
  return record;
}

}  // namespace

TensorBoardWriter::TensorBoardWriter(std::unique_ptr<AppendFile> file)
    : file_(std::move(file)) {}

TensorBoardWriter::~TensorBoardWriter() = default;

absl::StatusOr<std::unique_ptr<TensorBoardWriter>> TensorBoardWriter::Create(
    const std::string& directory, absl::Time now, absl::string_view host) {
  RILL_ASSIGN_OR_RETURN(
      std::unique_ptr<AppendFile> file,
      AppendFile::Create(
          kWho, JoinPath(directory,
                         absl::StrCat("events.out.tfevents.",
                                      absl::ToUnixSeconds(now), ".", host))));
  std::string event = EventAt(now);
  AppendBytes(&event, 3, "brain.Event:2");
  RILL_RETURN_IF_ERROR(file->Append(RecordOf(event)));
  return std::unique_ptr<TensorBoardWriter>(
      new TensorBoardWriter(std::move(file)));
}

absl::StatusOr<std::unique_ptr<TensorBoardWriter>> TensorBoardWriter::Reopen(
    const std::string& path, int64_t size_bytes) {
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> file,
                        AppendFile::Reopen(kWho, path, size_bytes));
  return std::unique_ptr<TensorBoardWriter>(
      new TensorBoardWriter(std::move(file)));
}

absl::Status TensorBoardWriter::Sync() const { return file_->Sync(); }
const std::string& TensorBoardWriter::path() const { return file_->path(); }
int64_t TensorBoardWriter::size_bytes() const { return file_->size_bytes(); }

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
  return file_->Append(RecordOf(event));
}

std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0') {
    return "localhost";
  }
  return name;
}

}  // namespace rill
