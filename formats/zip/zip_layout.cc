// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/zip/zip_layout.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/formats/zip/little_endian.h"
#include "rill/formats/zip/zip_record.h"

// Follows Python's zipfile, with which TorchRL writes: which fields are wide,
// in what order the extra fields come, and from which size on.

namespace rill::formats_internal {
namespace {

constexpr uint16_t kVersion = 45;  // 4.5, which has zip64.
constexpr uint16_t kMadeByUnix = 3 << 8;
constexpr uint16_t kFlagUtf8 = 1 << 11;
constexpr uint16_t kTime = 0;             // 00:00:00 and 1980-01-01, so that
constexpr uint16_t kDate = (1 << 5) | 1;  // equal dictionaries, equal bytes.
constexpr uint32_t kAttributes = 0644u << 16;
constexpr uint32_t kSaturated32 = 0xFFFFFFFF;
// From here on TorchRL uses the wide fields.
constexpr int64_t kNarrowLimit = (int64_t{1} << 31) - 1;
constexpr int64_t kWideFieldBytes = 4 + 2 * 8;

uint16_t Flags(absl::string_view name) {
  return absl::c_all_of(name, absl::ascii_isascii) ? 0 : kFlagUtf8;
}

// The field that moves the content to a multiple of the alignment.
std::string PaddingField(int64_t padding) {
  std::string field;
  if (padding < 0) return field;
  AppendLittle<uint16_t>(kZipPaddingFieldId, &field);
  AppendLittle<uint16_t>(static_cast<uint16_t>(padding), &field);
  field.append(padding, '\0');
  return field;
}

// A field of zip64 with `values`; empty without any.
std::string WideField(const std::vector<int64_t>& values) {
  std::string field;
  if (values.empty()) return field;
  AppendLittle<uint16_t>(kZip64FieldId, &field);
  AppendLittle<uint16_t>(static_cast<uint16_t>(8 * values.size()), &field);
  for (const int64_t value : values) AppendLittle<int64_t>(value, &field);
  return field;
}

uint32_t Narrow(int64_t value, bool is_wide) {
  return is_wide ? kSaturated32 : static_cast<uint32_t>(value);
}

}  // namespace

absl::Status ZipLayout::Add(absl::string_view name, int64_t size,
                            bool is_aligned) {
  if (name.size() > 0xFFFF) {
    return InvalidArgument("ZipLayout::Add: name: got ", name.size(),
                           " bytes, want at most ", 0xFFFF);
  }
  File file{.name = std::string(name), .size = size, .header_offset = end_};
  int64_t content = end_ + kZipLocalBytes + name.size() + kWideFieldBytes;
  if (is_aligned) {
    content += 4;
    // The padding is an extra field of the header, whose own head takes 4
    // bytes. So no bytes lie between header and content, which readers would
    // not expect.
    file.padding = (kZipAlignment - content % kZipAlignment) % kZipAlignment;
    content += file.padding;
  }
  // The rest of the file must have room too.
  if (size > (int64_t{1} << 62) - content) {
    return InvalidArgument("ZipLayout::Add: size: got ", size,
                           " bytes, want fewer in a file");
  }
  end_ = content + size;
  files_.push_back(std::move(file));
  return absl::OkStatus();
}

// The fields that both records of a file share. `shown` is its size there.
void ZipLayout::AppendShared(const File& file, uint32_t shown,
                             size_t extra_bytes, std::string* out) {
  AppendLittle<uint16_t>(kVersion, out);
  AppendLittle<uint16_t>(Flags(file.name), out);
  AppendLittle<uint16_t>(0, out);  // Stored.
  AppendLittle<uint16_t>(kTime, out);
  AppendLittle<uint16_t>(kDate, out);
  AppendLittle<uint32_t>(file.crc, out);
  AppendLittle<uint32_t>(shown, out);  // As stored, and as it is.
  AppendLittle<uint32_t>(shown, out);
  AppendLittle<uint16_t>(static_cast<uint16_t>(file.name.size()), out);
  AppendLittle<uint16_t>(static_cast<uint16_t>(extra_bytes), out);
}

// Always with the wide sizes, so that its length, and with it every offset, is
// known before the content.
std::string ZipLayout::Header(int i) const {
  const File& file = files_[i];
  const std::string extra =
      PaddingField(file.padding) + WideField({file.size, file.size});
  std::string out;
  AppendLittle<uint32_t>(kZipLocalSignature, &out);
  AppendShared(file, kSaturated32, extra.size(), &out);
  return absl::StrCat(out, file.name, extra);
}

std::string ZipLayout::CentralRecord(const File& file) const {
  const bool is_size_wide = file.size > kNarrowLimit;
  const bool is_offset_wide = file.header_offset > kNarrowLimit;
  std::vector<int64_t> wide;
  if (is_size_wide) wide = {file.size, file.size};
  if (is_offset_wide) wide.push_back(file.header_offset);
  const std::string extra = WideField(wide) + PaddingField(file.padding);
  std::string out;
  AppendLittle<uint32_t>(kZipCentralSignature, &out);
  AppendLittle<uint16_t>(kVersion | kMadeByUnix, &out);
  AppendShared(file, Narrow(file.size, is_size_wide), extra.size(), &out);
  AppendLittle<uint16_t>(0, &out);  // Comment.
  AppendLittle<uint16_t>(0, &out);  // Volume.
  AppendLittle<uint16_t>(0, &out);  // Not text.
  AppendLittle<uint32_t>(kAttributes, &out);
  AppendLittle<uint32_t>(Narrow(file.header_offset, is_offset_wide), &out);
  return absl::StrCat(out, file.name, extra);
}

std::string ZipLayout::End() const {
  std::string out;
  for (const File& file : files_) absl::StrAppend(&out, CentralRecord(file));
  const int64_t count = size();
  const int64_t central_bytes = static_cast<int64_t>(out.size());
  if (count > 0xFFFF || end_ > kNarrowLimit || central_bytes > kNarrowLimit) {
    const int64_t end64 = end_ + central_bytes;
    AppendLittle<uint32_t>(kZip64EndSignature, &out);
    // Its own size, without signature and this number.
    AppendLittle<uint64_t>(kZip64EndBytes - 12, &out);
    AppendLittle<uint16_t>(kVersion, &out);
    AppendLittle<uint16_t>(kVersion, &out);
    AppendLittle<uint32_t>(0, &out);  // Volumes.
    AppendLittle<uint32_t>(0, &out);
    AppendLittle<int64_t>(count, &out);
    AppendLittle<int64_t>(count, &out);
    AppendLittle<int64_t>(central_bytes, &out);
    AppendLittle<int64_t>(end_, &out);
    AppendLittle<uint32_t>(kZip64LocatorSignature, &out);
    AppendLittle<uint32_t>(0, &out);
    AppendLittle<int64_t>(end64, &out);
    AppendLittle<uint32_t>(1, &out);
  }
  const uint16_t shown_count =
      static_cast<uint16_t>(std::min<int64_t>(count, 0xFFFF));
  AppendLittle<uint32_t>(kZipEndSignature, &out);
  AppendLittle<uint32_t>(0, &out);  // Volumes.
  AppendLittle<uint16_t>(shown_count, &out);
  AppendLittle<uint16_t>(shown_count, &out);
  AppendLittle<uint32_t>(
      static_cast<uint32_t>(std::min<int64_t>(central_bytes, kSaturated32)),
      &out);
  AppendLittle<uint32_t>(
      static_cast<uint32_t>(std::min<int64_t>(end_, kSaturated32)), &out);
  AppendLittle<uint16_t>(0, &out);  // Comment.
  return out;
}

int64_t ZipLayout::total_bytes() const {
  return end_ + static_cast<int64_t>(End().size());
}

}  // namespace rill::formats_internal
