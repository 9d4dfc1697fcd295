// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/zip/zip_directory.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "rill/base/status_macros.h"
#include "rill/formats/json/utf8.h"
#include "rill/formats/plain_path.h"
#include "rill/formats/zip/little_endian.h"
#include "rill/formats/zip/zip_record.h"

// A zip file says most things twice, and readers differ in which of the two
// they believe. Here both must agree: the header before a content with its
// record in the central directory, and the end record with its wide form. The
// directory ends where the end record begins, and contents lie before it
// without overlap. So no byte has two meanings.
//
// Numbers are 64 bits wide and unsigned; each is compared with the bytes that
// are there before it is added to another.

namespace rill::formats_internal {
namespace {

constexpr uint64_t kSaturated32 = 0xFFFFFFFF;

// Two bits of a deflate stream are at least needed for each 258 bytes.
constexpr uint64_t kMostExpansion = 4 * 258;

constexpr uint16_t kFlagEncrypted = 1 << 0;
constexpr uint16_t kFlagSizesBehind = 1 << 3;  // A "data descriptor".
constexpr uint16_t kFlagMasked = 1 << 13;

// Bytes [offset, offset + size) of `zip`, or nothing.
std::optional<absl::string_view> Bytes(absl::string_view zip, uint64_t offset,
                                       uint64_t size) {
  if (offset > zip.size() || size > zip.size() - offset) return std::nullopt;
  return zip.substr(offset, size);
}

// One header of an entry, local or central.
struct Header {
  uint16_t flags = 0;
  uint16_t method = 0;
  uint32_t crc = 0;
  uint64_t packed_size = 0;
  uint64_t size = 0;
  uint64_t local_offset = 0;  // Of central ones.
  absl::string_view name;
  uint64_t name_size = 0;
  uint64_t extra_size = 0;
  uint64_t bytes = 0;  // Of the whole record.
};

// The fields that both records of a file share, from the flags on.
Header LoadShared(const char* at) {
  Header header;
  header.flags = LoadLittle<uint16_t>(at);
  header.method = LoadLittle<uint16_t>(at + 2);
  header.crc = LoadLittle<uint32_t>(at + 8);  // Behind time and date.
  header.packed_size = LoadLittle<uint32_t>(at + 12);
  header.size = LoadLittle<uint32_t>(at + 16);
  header.name_size = LoadLittle<uint16_t>(at + 20);
  header.extra_size = LoadLittle<uint16_t>(at + 22);
  return header;
}

std::string Shown(absl::string_view name) {
  return absl::StrCat(absl::CHexEscape(name.substr(0, 80)),
                      name.size() > 80 ? "..." : "");
}

class Parser {
 public:
  Parser(absl::string_view where, absl::string_view zip)
      : where_(where), zip_(zip) {}

  absl::StatusOr<std::vector<ZipEntry>> Parse();

 private:
  // Where the central directory lies, and how many records it has.
  struct End {
    uint64_t offset = 0;
    uint64_t size = 0;
    uint64_t count = 0;
  };
  struct Placed {  // What an entry covers.
    uint64_t begin = 0;
    uint64_t end = 0;
    size_t header = 0;
  };

  absl::Status Broken(absl::string_view what) const {
    return DataLoss(where_, ": ", what);
  }
  absl::Status BrokenEntry(absl::string_view name,
                           absl::string_view what) const {
    return Broken(absl::StrCat("entry \"", Shown(name), "\": ", what));
  }
  absl::Status Refused(absl::string_view name, absl::string_view what) const {
    return InvalidArgument(where_, ": entry \"", Shown(name), "\": ", what);
  }

  absl::StatusOr<uint64_t> FindEnd() const;
  absl::StatusOr<End> ParseEnd() const;
  absl::StatusOr<End> ParseEnd64(uint64_t locator, const End& end) const;
  absl::StatusOr<Header> ParseCentral(absl::string_view rest) const;
  absl::StatusOr<Header> ParseLocal(const Header& central) const;
  absl::Status Widen(absl::string_view extra, bool is_local,
                     Header* header) const;
  absl::Status CheckCentral(const Header& central) const;
  absl::Status CheckLocal(const Header& central, const Header& local) const;
  absl::Status CheckOverlaps(std::vector<Placed> placed,
                             const std::vector<Header>& headers) const;
  absl::Status CheckNames(std::vector<absl::string_view> names) const;

  absl::string_view where_;
  absl::string_view zip_;
  uint64_t central_ = 0;  // Where the contents end.
};

// The end record is the last thing in the file, behind it a comment only, of at
// most 64 KiB. From the end backwards. A record counts only if its comment
// reaches to the end of the file exactly, so one inside a comment is not taken.
absl::StatusOr<uint64_t> Parser::FindEnd() const {
  if (zip_.size() >= kZipEndBytes) {
    const uint64_t last = zip_.size() - kZipEndBytes;
    const uint64_t first = last - std::min<uint64_t>(last, 0xFFFF);
    for (uint64_t at = last;; --at) {
      if (LoadLittle<uint32_t>(zip_.data() + at) == kZipEndSignature &&
          LoadLittle<uint16_t>(zip_.data() + at + 20) == last - at) {
        return at;
      }
      if (at == first) break;
    }
  }
  return Broken(absl::StrCat("got ", zip_.size(),
                             " bytes without the end of a zip file; it is none "
                             "or was cut short"));
}

absl::StatusOr<Parser::End> Parser::ParseEnd() const {
  RILL_ASSIGN_OR_RETURN(const uint64_t at, FindEnd());
  const char* const record = zip_.data() + at;
  const uint16_t disk = LoadLittle<uint16_t>(record + 4);
  const uint16_t central_disk = LoadLittle<uint16_t>(record + 6);
  const uint16_t count_here = LoadLittle<uint16_t>(record + 8);
  End end;
  end.count = LoadLittle<uint16_t>(record + 10);
  end.size = LoadLittle<uint32_t>(record + 12);
  end.offset = LoadLittle<uint32_t>(record + 16);
  // Where the central directory must end: at the first of the end records.
  uint64_t limit = at;
  if (at >= kZip64LocatorBytes &&
      LoadLittle<uint32_t>(record - kZip64LocatorBytes) ==
          kZip64LocatorSignature) {
    const uint64_t locator = at - kZip64LocatorBytes;
    RILL_ASSIGN_OR_RETURN(end, ParseEnd64(locator, end));
    limit = LoadLittle<uint64_t>(zip_.data() + locator + 8);
  } else if (disk != 0 || central_disk != 0 || count_here != end.count) {
    return InvalidArgument(
        where_, ": got one of several volumes, want a whole zip file");
  }
  if (end.size > limit || end.offset != limit - end.size) {
    return Broken(absl::StrCat("central directory: got ", end.size,
                               " bytes at ", end.offset, ", want it to end at ",
                               limit));
  }
  // Bounds the loop over the records by the bytes that there are.
  if (end.count > end.size / kZipCentralBytes) {
    return Broken(absl::StrCat(
        "central directory: got ", end.count, " entries in ", end.size,
        " bytes, want at most ", end.size / kZipCentralBytes));
  }
  return end;
}

// The wide form of the end record, which the one at the end must not
// contradict.
absl::StatusOr<Parser::End> Parser::ParseEnd64(uint64_t locator,
                                               const End& narrow) const {
  const uint64_t at = LoadLittle<uint64_t>(zip_.data() + locator + 8);
  const auto record = Bytes(zip_.substr(0, locator), at, kZip64EndBytes);
  if (!record || LoadLittle<uint32_t>(record->data()) != kZip64EndSignature ||
      LoadLittle<uint64_t>(record->data() + 4) != locator - at - 12) {
    return Broken(absl::StrCat("got no zip64 end record at ", at,
                               ", want one that ends at ", locator));
  }
  if (LoadLittle<uint32_t>(record->data() + 16) != 0 ||
      LoadLittle<uint32_t>(record->data() + 20) != 0) {
    return InvalidArgument(
        where_, ": got one of several volumes, want a whole zip file");
  }
  End end;
  end.count = LoadLittle<uint64_t>(record->data() + 32);
  end.size = LoadLittle<uint64_t>(record->data() + 40);
  end.offset = LoadLittle<uint64_t>(record->data() + 48);
  const auto contradicts = [](uint64_t low, uint64_t high, uint64_t saturated) {
    return low != saturated && low != high;
  };
  if (contradicts(narrow.count, end.count, 0xFFFF) ||
      contradicts(narrow.size, end.size, kSaturated32) ||
      contradicts(narrow.offset, end.offset, kSaturated32)) {
    return Broken("the end records of zip and zip64 contradict each other");
  }
  return end;
}

// Takes the sizes that did not fit from the zip64 field, and checks that the
// fields fill `extra`.
absl::Status Parser::Widen(absl::string_view extra, bool is_local,
                           Header* header) const {
  // In this order, each only where it did not fit.
  std::vector<uint64_t*> wanted;
  if (header->size == kSaturated32) wanted.push_back(&header->size);
  if (header->packed_size == kSaturated32) {
    wanted.push_back(&header->packed_size);
  }
  if (!is_local && header->local_offset == kSaturated32) {
    wanted.push_back(&header->local_offset);
  }
  // A field that nobody asks for, or a second one, is passed over.
  bool is_found = wanted.empty();
  while (!extra.empty()) {
    const auto head = Bytes(extra, 0, 4);
    const uint64_t size =
        head ? uint64_t{LoadLittle<uint16_t>(head->data() + 2)} : 0;
    const auto field = Bytes(extra, 4, size);
    if (!head || !field) {
      return BrokenEntry(header->name, "an extra field was cut short");
    }
    if (LoadLittle<uint16_t>(head->data()) == kZip64FieldId && !is_found) {
      if (field->size() < 8 * wanted.size()) {
        return BrokenEntry(header->name, "the zip64 field was cut short");
      }
      for (size_t i = 0; i < wanted.size(); ++i) {
        *wanted[i] = LoadLittle<uint64_t>(field->data() + 8 * i);
      }
      is_found = true;
    }
    extra.remove_prefix(4 + size);
  }
  if (is_found) return absl::OkStatus();
  return BrokenEntry(header->name, "got no zip64 field, want the sizes in it");
}

// The record at the beginning of `rest`, with its fields widened.
absl::StatusOr<Header> Parser::ParseCentral(absl::string_view rest) const {
  const auto record = Bytes(rest, 0, kZipCentralBytes);
  if (!record || LoadLittle<uint32_t>(record->data()) != kZipCentralSignature) {
    return Broken(absl::StrCat("central directory: got no entry ", rest.size(),
                               " bytes before its end"));
  }
  const char* const at = record->data();
  Header header = LoadShared(at + 8);
  header.bytes = kZipCentralBytes + header.name_size + header.extra_size +
                 LoadLittle<uint16_t>(at + 32);  // The comment.
  if (header.bytes > rest.size()) {
    return Broken("central directory: an entry was cut short");
  }
  header.local_offset = LoadLittle<uint32_t>(at + 42);
  header.name = rest.substr(kZipCentralBytes, header.name_size);
  RILL_RETURN_IF_ERROR(
      Widen(rest.substr(kZipCentralBytes + header.name_size, header.extra_size),
            /*is_local=*/false, &header));
  return header;
}

// The header in front of an entry's content. It must lie before the central
// directory, all of it.
absl::StatusOr<Header> Parser::ParseLocal(const Header& central) const {
  const absl::string_view contents = zip_.substr(0, central_);
  const auto record = Bytes(contents, central.local_offset, kZipLocalBytes);
  if (!record || LoadLittle<uint32_t>(record->data()) != kZipLocalSignature) {
    return BrokenEntry(central.name,
                       absl::StrCat("got no header at ", central.local_offset));
  }
  Header header = LoadShared(record->data() + 6);
  header.bytes = kZipLocalBytes + header.name_size + header.extra_size;
  const auto whole = Bytes(contents, central.local_offset, header.bytes);
  if (!whole) return BrokenEntry(central.name, "its header was cut short");
  header.name = whole->substr(kZipLocalBytes, header.name_size);
  RILL_RETURN_IF_ERROR(Widen(whole->substr(kZipLocalBytes + header.name_size),
                             /*is_local=*/true, &header));
  return header;
}

// Refuses an entry for its name, its method or its flags, and one whose sizes
// contradict each other. Looks at the directory alone. Folders' names end with
// a slash.
absl::Status Parser::CheckCentral(const Header& central) const {
  const absl::string_view plain = absl::StripSuffix(central.name, "/");
  if (!IsUtf8(central.name) || !IsPlainRelativePath(plain)) {
    return Refused(
        central.name,
        "name: want a relative path in UTF-8 that does not lead out");
  }
  if ((central.flags & (kFlagEncrypted | kFlagMasked)) != 0) {
    return Refused(central.name, "got it encrypted, want it plain");
  }
  if (central.method != kZipStored && central.method != kZipDeflated) {
    return Refused(
        central.name,
        absl::StrCat("method: got ", central.method, " (",
                     ZipMethodName(central.method),
                     "), want 0 (stored) or 8 (deflate); unpack it and pack it "
                     "again with `zip -0 -r`, or save it without compression"));
  }
  if (central.method == kZipStored && central.size != central.packed_size) {
    return BrokenEntry(central.name,
                       absl::StrCat("got ", central.packed_size,
                                    " stored bytes, want ", central.size));
  }
  return absl::OkStatus();
}

// That both records of an entry agree, and its content lies before the central
// directory. ParseLocal has checked that the header does, so `room` is not
// below 0.
absl::Status Parser::CheckLocal(const Header& central,
                                const Header& local) const {
  // A writer that did not know the sizes leaves zeros here and a record of them
  // behind the content. That record is not looked at: the directory has them.
  const bool may_be_zero = (central.flags & kFlagSizesBehind) != 0 &&
                           local.crc == 0 && local.size == 0 &&
                           local.packed_size == 0;
  constexpr uint16_t kCompared = kFlagEncrypted | kFlagSizesBehind;
  const bool is_equal = local.crc == central.crc &&
                        local.size == central.size &&
                        local.packed_size == central.packed_size;
  if (local.name != central.name || local.method != central.method ||
      (local.flags & kCompared) != (central.flags & kCompared) ||
      !(is_equal || may_be_zero)) {
    return BrokenEntry(
        central.name,
        absl::StrCat("its header and the central directory contradict each "
                     "other: got \"",
                     Shown(local.name), "\", method ", local.method, ", ",
                     local.size, " bytes, CRC ", absl::Hex(local.crc),
                     ", want method ", central.method, ", ", central.size,
                     " bytes, CRC ", absl::Hex(central.crc)));
  }
  const uint64_t room = central_ - central.local_offset - local.bytes;
  if (central.packed_size > room) {
    return BrokenEntry(
        central.name,
        absl::StrCat("got ", room, " bytes before the central directory, want ",
                     central.packed_size));
  }
  // A file is too small for the product to wrap around.
  if (central.size > central.packed_size * kMostExpansion) {
    return BrokenEntry(
        central.name,
        absl::StrCat("size: got ", central.size, " bytes out of ",
                     central.packed_size, " deflated ones, want at most ",
                     central.packed_size * kMostExpansion));
  }
  return absl::OkStatus();
}

// Headers count too. After sorting, an overlap is one of neighbours.
absl::Status Parser::CheckOverlaps(std::vector<Placed> placed,
                                   const std::vector<Header>& headers) const {
  std::sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  for (size_t i = 1; i < placed.size(); ++i) {
    if (placed[i].begin < placed[i - 1].end) {
      return BrokenEntry(
          headers[placed[i].header].name,
          absl::StrCat("it starts at ", placed[i].begin, " inside \"",
                       Shown(headers[placed[i - 1].header].name), "\""));
    }
  }
  return absl::OkStatus();
}

absl::Status Parser::CheckNames(std::vector<absl::string_view> names) const {
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return absl::OkStatus();
  return BrokenEntry(*twice, "got it twice");
}

absl::StatusOr<std::vector<ZipEntry>> Parser::Parse() {
  RILL_ASSIGN_OR_RETURN(const End end, ParseEnd());
  central_ = end.offset;
  absl::string_view rest = zip_.substr(end.offset, end.size);
  std::vector<ZipEntry> entries;
  std::vector<Header> headers;
  std::vector<Placed> placed;
  std::vector<absl::string_view> names;
  for (uint64_t i = 0; i < end.count; ++i) {
    RILL_ASSIGN_OR_RETURN(const Header central, ParseCentral(rest));
    rest.remove_prefix(central.bytes);
    RILL_RETURN_IF_ERROR(CheckCentral(central));
    RILL_ASSIGN_OR_RETURN(const Header local, ParseLocal(central));
    RILL_RETURN_IF_ERROR(CheckLocal(central, local));
    const uint64_t content = central.local_offset + local.bytes;
    placed.push_back(
        {central.local_offset, content + central.packed_size, headers.size()});
    headers.push_back(central);
    names.push_back(central.name);
    if (absl::EndsWith(central.name, "/")) continue;
    entries.push_back({.name = std::string(central.name),
                       .crc = central.crc,
                       .offset = static_cast<int64_t>(content),
                       .packed_size = static_cast<int64_t>(central.packed_size),
                       .size = static_cast<int64_t>(central.size),
                       .is_deflated = central.method == kZipDeflated});
  }
  if (!rest.empty()) {
    return Broken(absl::StrCat("central directory: got ", rest.size(),
                               " bytes behind its ", end.count, " entries"));
  }
  RILL_RETURN_IF_ERROR(CheckOverlaps(std::move(placed), headers));
  RILL_RETURN_IF_ERROR(CheckNames(std::move(names)));
  return entries;
}

}  // namespace

absl::StatusOr<std::vector<ZipEntry>> ParseZipDirectory(absl::string_view where,
                                                        absl::string_view zip) {
  return Parser(where, zip).Parse();
}

}  // namespace rill::formats_internal
