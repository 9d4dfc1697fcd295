// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/zip/raw_zip.h"

#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rill/formats/zip/crc32.h"
#include "rill/formats/zip/zip_layout.h"
#include "rill/formats/zip/zip_record.h"
#include "rill/testing/status_matchers.h"
#include "zlib.h"

namespace rill::formats_internal {
namespace {

template <typename T>
void Put(size_t at, T value, std::string* out) {
  std::memcpy(out->data() + at, &value, sizeof(T));
}

std::string Deflated(absl::string_view content) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8,
                         Z_DEFAULT_STRATEGY),
            Z_OK);
  std::string packed(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace

RawEntry StoredEntry(absl::string_view name, absl::string_view content) {
  return {.name = std::string(name),
          .packed = std::string(content),
          .size = static_cast<int64_t>(content.size()),
          .crc = ExtendCrc32(0, content)};
}

RawEntry DeflatedEntry(absl::string_view name, absl::string_view content) {
  RawEntry entry = StoredEntry(name, content);
  entry.method = kZipDeflated;
  entry.packed = Deflated(content);
  return entry;
}

std::string RawZip(const std::vector<RawEntry>& entries) {
  ZipLayout layout;
  std::string zip;
  for (const RawEntry& entry : entries) {
    RILL_EXPECT_OK(layout.Add(entry.name, entry.packed.size(), false));
    layout.SetCrc(layout.size() - 1, entry.crc);
    std::string header = layout.Header(layout.size() - 1);
    Put<uint16_t>(8, entry.method, &header);
    Put<int64_t>(header.size() - 16, entry.size, &header);
    absl::StrAppend(&zip, header, entry.packed);
  }
  std::string end = layout.End();
  size_t at = 0;
  for (const RawEntry& entry : entries) {
    EXPECT_LT(entry.size, int64_t{1} << 32) << "has no place in the record";
    Put<uint16_t>(at + 10, entry.method, &end);
    Put<uint32_t>(at + 24, static_cast<uint32_t>(entry.size), &end);
    at += kZipCentralBytes + entry.name.size();
  }
  return absl::StrCat(zip, end);
}

}  // namespace rill::formats_internal
