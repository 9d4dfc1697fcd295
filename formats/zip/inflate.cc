// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/zip/inflate.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/formats/zip/crc32.h"
#include "zlib.h"

// The sizes in the directory are from outside. So the stream alone decides: it
// is inflated to its own end, in pieces, with the sum taken on the way. Bytes
// that do not fit `out` go to a buffer that is thrown away. The loop ends as
// soon as there is more than the directory has promised.

namespace rill::formats_internal {
namespace {

// zlib counts in 32 bits; and the checksum is taken of what is in the cache.
constexpr size_t kPieceBytes = size_t{256} << 10;
// For what is inflated only to be checked.
constexpr size_t kDroppedBytes = size_t{64} << 10;

// The error for a code of zlib's other than Z_OK and Z_STREAM_END; `done` bytes
// were inflated so far.
absl::Status Failure(absl::string_view where, int code, const z_stream& stream,
                     size_t done, int64_t size) {
  switch (code) {
    case Z_MEM_ERROR:
      return ResourceExhausted(where, ": got no memory to inflate it");
    case Z_BUF_ERROR:  // There always is room, so it wants more bytes.
      return DataLoss(where, ": got a deflate stream that ends after ", done,
                      " inflated bytes, want ", size);
    default:
      return DataLoss(
          where, ": got a broken deflate stream after ", done,
          " bytes: ", stream.msg != nullptr ? stream.msg : zError(code));
  }
}

}  // namespace

absl::Status InflateEntry(absl::string_view where, const ZipEntry& entry,
                          absl::string_view zip, absl::Span<char> out) {
  z_stream stream = {};
  // Negative: without the header and the trailer of zlib's own format.
  int code = inflateInit2(&stream, -MAX_WBITS);
  if (code != Z_OK) return Failure(where, code, stream, 0, entry.size);
  const absl::Cleanup end = [&stream] { inflateEnd(&stream); };
  absl::string_view packed = zip.substr(entry.offset, entry.packed_size);
  const size_t size = static_cast<size_t>(entry.size);
  std::vector<char> dropped;
  size_t done = 0;
  uint32_t crc = 0;
  while (code != Z_STREAM_END && done <= size) {
    if (stream.avail_in == 0) {
      const size_t piece = std::min(packed.size(), kPieceBytes);
      // zlib does not write there.
      stream.next_in =
          reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
      stream.avail_in = static_cast<uInt>(piece);
      packed.remove_prefix(piece);
    }
    absl::Span<char> to = out.subspan(std::min(done, out.size()), kPieceBytes);
    if (to.empty()) {
      dropped.resize(kDroppedBytes);
      to = absl::MakeSpan(dropped);
    }
    stream.next_out = reinterpret_cast<Bytef*>(to.data());
    stream.avail_out = static_cast<uInt>(to.size());
    code = inflate(&stream, Z_NO_FLUSH);
    if (code != Z_OK && code != Z_STREAM_END) {
      return Failure(where, code, stream, done, entry.size);
    }
    const size_t made = to.size() - stream.avail_out;
    crc = ExtendCrc32(crc, absl::string_view(to.data(), made));
    done += made;
  }
  if (done != size) {
    return DataLoss(where, ": got ", done > size ? "more" : absl::StrCat(done),
                    " bytes when inflated, want ", size);
  }
  if (const size_t rest = packed.size() + stream.avail_in; rest != 0) {
    return DataLoss(where, ": got ", rest,
                    " bytes behind the deflate stream, want none");
  }
  if (crc != entry.crc) {
    return DataLoss(where, ": CRC: got ", absl::Hex(crc), ", want ",
                    absl::Hex(entry.crc));
  }
  return absl::OkStatus();
}

}  // namespace rill::formats_internal
