// SPDX-License-Identifier: Apache-2.0
#include "rill/device/row_copy.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>

#include "absl/base/attributes.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

// How a copy goes. Columns that lie in one record are a group (FirstRecord), as
// one prefetch then serves all of them. Rows come in blocks: the lines of the
// next block are prefetched, then each column of this block is copied by a
// kernel for its width (CopyRecord). Wide rows go line by line instead
// (CopyWide). Records that are written whole and past the caches are put
// together line by line, so that no line is read before it is written
// (StreamRecord). Narrow ones are where they follow one another, some at a time
// (RunStream).

namespace rill {
namespace {

constexpr int64_t kLineBytes = 64;
// Prefetched lines must still be in the first-level cache when they are copied,
// beside the batch that is written.
constexpr int64_t kAheadBytes = 16 << 10;
// The same of runs of rows, for the second-level cache.
constexpr int64_t kRunsAheadBytes = 128 << 10;
// Behind so many lines of one row the hardware prefetcher has seen the stream.
constexpr int64_t kMaxLinesAhead = 16;
// From this width on a gather goes by lines, several rows at once.
constexpr int64_t kWideBytes = 1024;
// A scatter past the caches goes so from this width on.
constexpr int64_t kWideStoreBytes = 512;
// Rows of one block at most: their offsets are kept for all columns.
constexpr int64_t kMaxBlockRows = 256;

struct Gather {
  static constexpr int kWillWrite = 0;
  static constexpr int64_t kRowsAtOnce = 8;
  static constexpr int64_t kWideAheadBytes = 1024;
  static std::byte* To(std::byte* /*table*/, std::byte* batch) { return batch; }
  static std::byte* From(std::byte* table, std::byte* /*batch*/) {
    return table;
  }
};
struct Scatter {
  static constexpr int kWillWrite = 1;
  static constexpr int64_t kRowsAtOnce = 1;
  static constexpr int64_t kWideAheadBytes = 4096;
  static std::byte* To(std::byte* table, std::byte* /*batch*/) { return table; }
  static std::byte* From(std::byte* /*table*/, std::byte* batch) {
    return batch;
  }
};

// Copies `count` places of a column, the first of which is at column.batch; row
// i is at column.table + offsets[i].
using Kernel = void (*)(const RowColumn& column, const int64_t* offsets,
                        int64_t count);

// The column is copied: its fields would be read again for every row, as the
// bytes that are stored might be theirs. Four rows a turn.
template <typename Direction, typename CopyOne>
inline void ForEachRow(const RowColumn& column, const int64_t* offsets,
                       int64_t count, CopyOne copy_one) {
  std::byte* const table = column.table;
  std::byte* batch = column.batch;
  const int64_t stride = column.batch_stride;
  const auto copy = [&](int64_t offset, std::byte* place) {
    copy_one(Direction::To(table + offset, place),
             Direction::From(table + offset, place));
  };
  int64_t i = 0;
  for (; i + 4 <= count; i += 4, batch += 4 * stride) {
    copy(offsets[i], batch);
    copy(offsets[i + 1], batch + stride);
    copy(offsets[i + 2], batch + 2 * stride);
    copy(offsets[i + 3], batch + 3 * stride);
  }
  for (; i < count; ++i, batch += stride) copy(offsets[i], batch);
}

template <typename Direction, int64_t kWidth>
void CopyFixed(const RowColumn& column, const int64_t* offsets, int64_t count) {
  ForEachRow<Direction>(column, offsets, count,
                        [](std::byte* to, const std::byte* from) {
                          std::memcpy(to, from, kWidth);
                        });
}

// Any width: the library's memcpy.
template <typename Direction>
void CopyLong(const RowColumn& column, const int64_t* offsets, int64_t count) {
  ForEachRow<Direction>(
      column, offsets, count,
      [width = column.width](std::byte* to, const std::byte* from) {
        std::memcpy(to, from, width);
      });
}

// Widths of a few blocks: blocks, the last of which overlaps the one
// before.
template <typename Direction, int64_t kBlock>
void CopyBlocks(const RowColumn& column, const int64_t* offsets,
                int64_t count) {
  ForEachRow<Direction>(
      column, offsets, count,
      [last = column.width - kBlock](std::byte* to, const std::byte* from) {
        for (int64_t at = 0; at < last; at += kBlock) {
          std::memcpy(to + at, from + at, kBlock);
        }
        std::memcpy(to + last, from + last, kBlock);
      });
}

// `to` is aligned to a line. 16 bytes a store: every x86-64 has it, and the
// memory is the bound. Plain code elsewhere.
inline void StreamLine(std::byte* to, const std::byte* from) {
#if defined(__SSE2__)
  const __m128i* const source = reinterpret_cast<const __m128i*>(from);
  __m128i* const place = reinterpret_cast<__m128i*>(to);
  const __m128i a = _mm_loadu_si128(source);
  const __m128i b = _mm_loadu_si128(source + 1);
  const __m128i c = _mm_loadu_si128(source + 2);
  const __m128i d = _mm_loadu_si128(source + 3);
  _mm_stream_si128(place, a);
  _mm_stream_si128(place + 1, b);
  _mm_stream_si128(place + 2, c);
  _mm_stream_si128(place + 3, d);
#else
  std::memcpy(to, from, kLineBytes);
#endif
}

template <bool kPastCaches>
inline void CopyLine(std::byte* to, const std::byte* from) {
  if constexpr (kPastCaches) {
    StreamLine(to, from);
  } else {
    std::memcpy(to, from, kLineBytes);
  }
}

// Such stores are in no order with others until this: they must not be seen
// after the store that says that they are there. The thread that made them ends
// each copy with it. A mutex, a release store or a commit record then publishes
// their bytes like any others.
//
// No fence is needed before the copy. No store overtakes an older load, and
// such a load saw that the memory was handed over, or the last reader gone. A
// race detector takes these stores for plain ones, so it does not see a fence
// that is missing.
inline void EndStreaming() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

// Line by line, and several rows in turns where they are read at random: the
// hardware's prefetchers stop at every page's end, so one row alone leaves the
// memory idle. Lines to be read are fetched ahead, on into the next row.
//
// Past the caches a copy moves two bytes for each byte of the batch, not three,
// as the lines to write are not read before. Bytes that would leave the caches
// before they are used evict nothing.
template <typename Direction, bool kPastCaches>
void CopyWide(const RowColumn& column, const int64_t* offsets, int64_t count) {
  constexpr int64_t kRows = Direction::kRowsAtOnce;
  struct Row {
    std::byte* to;
    const std::byte* from;
    int64_t to_next;  // From the end of what is read to where the turn goes on.
    int64_t left;     // Bytes from `to` on.
  };
  const int64_t width = column.width;
  const int64_t ahead = std::min(Direction::kWideAheadBytes, width);
  // Up to 63 bytes may stand before a row's first line.
  const int64_t lines =
      (kPastCaches ? width - (kLineBytes - 1) : width) / kLineBytes;
  const auto row_at = [&](int64_t i) -> Row {
    std::byte* const place = column.batch + i * column.batch_stride;
    return {Direction::To(column.table + offsets[i], place),
            Direction::From(column.table + offsets[i], place), -width, width};
  };
  int64_t turns = (count + kRows - 1) / kRows;
  for (int64_t begin = 0, n; begin < count; begin += n, --turns) {
    // As many rows in each: a turn of the one or two left over is a slow one.
    n = kRows == 1 ? 1 : (count - begin + turns - 1) / turns;
    Row rows[kRows];
    for (int64_t i = 0; i < n; ++i) {
      Row& row = rows[i] = row_at(begin + i);
      const int64_t next = begin + n + i;
      if (next < count) row.to_next += row_at(next).from - row.from;
      if constexpr (kPastCaches) {
        // Streaming stores need an aligned line; the bytes before it go the
        // plain way.
        const int64_t head = static_cast<int64_t>(
            -reinterpret_cast<uintptr_t>(row.to) & (kLineBytes - 1));
        std::memcpy(row.to, row.from, head);
        row.to += head;
        row.from += head;
        row.left -= head;
      }
    }
    for (int64_t at = 0; at < lines * kLineBytes; at += kLineBytes) {
      const int64_t soon = at + ahead;
      const bool is_next = soon >= width;
      for (int64_t i = 0; i < n; ++i) {
        const Row& row = rows[i];
        __builtin_prefetch(row.from + soon + (is_next ? row.to_next : 0), 0, 2);
        CopyLine<kPastCaches>(row.to + at, row.from + at);
      }
    }
    for (int64_t i = 0; i < n; ++i) {
      const Row& row = rows[i];
      int64_t at = lines * kLineBytes;
      for (; at + kLineBytes <= row.left; at += kLineBytes) {
        CopyLine<kPastCaches>(row.to + at, row.from + at);
      }
      std::memcpy(row.to + at, row.from + at, row.left - at);
    }
  }
}

// Goes by lines. Scatters to the caches do not: memcpy is as fast.
template <typename Direction>
bool IsWide(const RowColumn& column) {
  return Direction::kWillWrite == 0
             ? column.width >= kWideBytes
             : column.past_caches && column.width >= kWideStoreBytes;
}

template <typename Direction>
Kernel ChooseKernel(const RowColumn& column) {
  const int64_t width = column.width;
  switch (width) {
    case 1:
      return CopyFixed<Direction, 1>;
    case 2:
      return CopyFixed<Direction, 2>;
    case 4:
      return CopyFixed<Direction, 4>;
    case 8:
      return CopyFixed<Direction, 8>;
    case 12:
      return CopyFixed<Direction, 12>;
    case 16:
      return CopyFixed<Direction, 16>;
    case 24:
      return CopyFixed<Direction, 24>;
    case 32:
      return CopyFixed<Direction, 32>;
    case 48:
      return CopyFixed<Direction, 48>;
    case 64:
      return CopyFixed<Direction, 64>;
    default:
      break;
  }
  if (width > 4 && width < 16) return CopyBlocks<Direction, 4>;
  if (width > 16 && width < 64) return CopyBlocks<Direction, 16>;
  if (Direction::kWillWrite != 0 && width > 64 && width < 256) {
    return CopyBlocks<Direction, 32>;
  }
  if (!IsWide<Direction>(column)) return CopyLong<Direction>;
  return column.past_caches ? CopyWide<Direction, true>
                            : CopyWide<Direction, false>;
}

// Neighbouring columns that lie in one record: [low, low + bytes) of it, and
// records are `stride` apart. One prefetch serves all of them.
struct Record {
  std::byte* low = nullptr;
  int64_t bytes = 0;
  int64_t stride = 0;
  size_t columns = 0;
  bool has_wide = false;  // A column that goes by lines.
};

template <typename Direction>
Record FirstRecord(absl::Span<const RowColumn> columns) {
  std::byte* low = columns[0].table;
  std::byte* high = low + columns[0].width;
  bool has_wide = IsWide<Direction>(columns[0]);
  size_t count = 1;
  for (; count < columns.size(); ++count) {
    const RowColumn& next = columns[count];
    std::byte* const new_low = std::min(low, next.table);
    std::byte* const new_high = std::max(high, next.table + next.width);
    if (next.table_stride != columns[0].table_stride ||
        new_high - new_low > next.table_stride) {
      break;
    }
    low = new_low;
    high = new_high;
    has_wide |= IsWide<Direction>(next);
  }
  return {low, high - low, columns[0].table_stride, count, has_wide};
}

// Where rows [begin, end) stand behind the table's start, prefetched.
template <typename Direction>
inline void Approach(const Record& record, const int64_t* rows, int64_t begin,
                     int64_t end, int64_t* offsets) {
  const int64_t stride = record.stride;
  const std::byte* const low = record.low;
  const int64_t bytes = std::min(
      record.bytes, (record.has_wide ? 1 : kMaxLinesAhead) * kLineBytes);
  for (int64_t i = begin; i < end; ++i) {
    const int64_t offset = rows[i] * stride;
    offsets[i - begin] = offset;
    const std::byte* row = low + offset;
    for (int64_t at = 0; at < bytes; at += kLineBytes) {
      __builtin_prefetch(row + at, Direction::kWillWrite);
    }
    // The row need not begin with a line, so its last byte may lie on one more.
    __builtin_prefetch(row + bytes - 1, Direction::kWillWrite);
  }
}

// Rows that come in runs of neighbours (slices): each run is a place in memory
// that nobody saw before, often on a page that the processor has no translation
// for. Row by row its out-of-order window holds one or two such runs, this way
// several. Inlined, since a call of what only prefetches is one that g++ leaves
// out.
template <typename Direction>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void ApproachRuns(
    const Record& record, absl::Span<const int64_t> rows) {
  constexpr int64_t kSkip = 4;
  const int64_t n = static_cast<int64_t>(rows.size());
  if (n <= kSkip || rows[kSkip] != rows[0] + kSkip) return;
  // Where most of a record is not wanted the lines between are not either.
  if (record.stride > record.bytes + kLineBytes) return;
  for (int64_t i = 0; i < n;) {
    const std::byte* const low = record.low + rows[i] * record.stride;
    const int64_t first = i;
    // A guess in steps of kSkip: rows between that are no neighbours cost a
    // useless prefetch, never a wrong byte.
    while (i + kSkip < n && rows[i + kSkip] == rows[i] + kSkip) i += kSkip;
    do {
      ++i;
    } while (i < n && rows[i] == rows[i - 1] + 1);
    const int64_t bytes = (i - first - 1) * record.stride + record.bytes;
    for (int64_t at = 0; at < bytes; at += kLineBytes) {
      __builtin_prefetch(low + at, Direction::kWillWrite);
    }
    __builtin_prefetch(low + bytes - 1, Direction::kWillWrite);
  }
}

// Rows from `first_place` of the batch on.
template <typename Direction>
void CopyRecord(const Record& record, absl::Span<const RowColumn> columns,
                absl::Span<const int64_t> rows, int64_t first_place) {
  constexpr size_t kMaxKernels = 64;
  Kernel kernels[kMaxKernels];
  int64_t offsets[2][kMaxBlockRows];  // Of this block and the next.
  for (size_t first = 0; first < columns.size(); first += kMaxKernels) {
    const size_t count = std::min(kMaxKernels, columns.size() - first);
    for (size_t c = 0; c < count; ++c) {
      kernels[c] = ChooseKernel<Direction>(columns[first + c]);
    }
    const int64_t n = static_cast<int64_t>(rows.size());
    const bool is_read = Direction::kWillWrite == 0;
    // As many rows as the first-level cache holds ahead. Rows that are gathered
    // by lines fetch for themselves, so their blocks may be large.
    const int64_t step =
        is_read && record.has_wide
            ? kMaxBlockRows
            : std::clamp<int64_t>(kAheadBytes / (record.bytes + kLineBytes), 1,
                                  kMaxBlockRows);
    const int64_t stretch =
        std::max<int64_t>(
            kRunsAheadBytes / std::max<int64_t>(record.stride, 1) / step, 1) *
        step;
    Approach<Direction>(record, rows.data(), 0, std::min(step, n), offsets[0]);
    int turn = 0;
    for (int64_t begin = 0; begin < n; begin += step, turn ^= 1) {
      // Lines that are written past the caches are not read before.
      if (begin % stretch == 0 && (is_read || !record.has_wide)) {
        ApproachRuns<Direction>(record, rows.subspan(begin, stretch));
      }
      const int64_t end = std::min(begin + step, n);
      Approach<Direction>(record, rows.data(), end, std::min(end + step, n),
                          offsets[turn ^ 1]);
      for (size_t c = 0; c < count; ++c) {
        RowColumn column = columns[first + c];
        column.batch = BatchPlace(column, first_place + begin);
        kernels[c](column, offsets[turn], end - begin);
      }
    }
  }
}

// Puts bytes that come one after the other into memory past the caches, line by
// line. `to` is aligned to a line. Lines to be read are fetched ahead, on into
// the batch's next place.
class LineStream {
 public:
  explicit LineStream(std::byte* to) : to_(to) {}

  void Append(const std::byte* from, int64_t bytes) {
    if (held_ > 0) {
      const int64_t taken = std::min(bytes, kLineBytes - held_);
      std::memcpy(line_ + held_, from, taken);
      held_ += taken;
      from += taken;
      bytes -= taken;
      if (held_ < kLineBytes) return;
      Put(line_);
    }
    for (; bytes >= kLineBytes; bytes -= kLineBytes, from += kLineBytes) {
      __builtin_prefetch(from + Scatter::kWideAheadBytes, 0, 2);
      Put(from);
    }
    std::memcpy(line_, from, bytes);
    held_ = bytes;
  }
  // The rest of the last line becomes zero.
  void End() {
    if (held_ == 0) return;
    std::memset(line_ + held_, 0, kLineBytes - held_);
    Put(line_);
  }

 private:
  void Put(const std::byte* line) {
    StreamLine(to_, line);
    to_ += kLineBytes;
  }

  std::byte* to_;
  int64_t held_ = 0;
  alignas(kLineBytes) std::byte line_[kLineBytes];
};

constexpr size_t kMaxStreamedColumns = 64;

// The columns are all that there is of a record, which shares no line with
// another.
bool CanStream(const Record& record, absl::Span<const RowColumn> columns) {
  if (!record.has_wide || record.stride % kLineBytes != 0 ||
      reinterpret_cast<uintptr_t>(record.low) % kLineBytes != 0 ||
      columns.size() > kMaxStreamedColumns) {
    return false;
  }
  int64_t bytes = 0;
  for (const RowColumn& column : columns) {
    if (!column.past_caches || !column.whole_rows) return false;
    bytes += column.width;
  }
  return bytes == record.bytes;
}

// Column by column the lines that two columns share would be read before they
// are written.
void StreamRecord(const Record& record, absl::Span<const RowColumn> columns,
                  absl::Span<const int64_t> rows) {
  const RowColumn* in_order[kMaxStreamedColumns];
  for (size_t c = 0; c < columns.size(); ++c) in_order[c] = &columns[c];
  std::sort(in_order, in_order + columns.size(),
            [](const RowColumn* a, const RowColumn* b) {
              return a->table < b->table;
            });
  for (size_t i = 0; i < rows.size(); ++i) {
    LineStream stream(record.low + rows[i] * record.stride);
    for (size_t c = 0; c < columns.size(); ++c) {
      stream.Append(BatchPlace(*in_order[c], static_cast<int64_t>(i)),
                    in_order[c]->width);
    }
    stream.End();
  }
}

#if defined(__SSE2__)
constexpr bool kCanStream = true;
#else
constexpr bool kCanStream = false;
#endif

// Runs of fewer bytes are not worth the lines at their ends.
constexpr int64_t kMinRunBytes = 4 << 10;

// Puts narrow records that follow one another into memory past the caches. Some
// at a time are put together in the first cache, column by column, and leave it
// in whole lines.
class RunStream {
 public:
  RunStream(const Record& record, absl::Span<const RowColumn> columns)
      : record_(record), columns_(columns), block_rows_(BlockRows(record)) {
    for (size_t c = 0; c < columns.size(); ++c) {
      kernels_[c] = ChooseKernel<Scatter>(columns[c]);
    }
    for (int64_t i = 0; i < block_rows_; ++i) offsets_[i] = i * record.stride;
  }

  static bool Takes(const Record& record, absl::Span<const RowColumn> columns) {
    if (!kCanStream || record.has_wide || record.stride < record.bytes ||
        columns.size() > kMaxStreamedColumns || BlockRows(record) == 0) {
      return false;
    }
    int64_t bytes = 0;
    for (const RowColumn& column : columns) {
      if (!column.past_caches || !column.whole_rows) return false;
      bytes += column.width;
    }
    return bytes == record.bytes;
  }

  // Rows [row, row + count) of the table, from `place` of the batch on.
  void Copy(int64_t row, int64_t place, int64_t count) {
    std::byte* line = record_.low + row * record_.stride;
    const auto before =
        static_cast<int64_t>(reinterpret_cast<uintptr_t>(line) % kLineBytes);
    line -= before;
    // Bytes between records become zero.
    if (before != before_) std::memset(block_, 0, sizeof(block_));
    before_ = before;
    int64_t held = before;  // Of the first line, others' or already there.
    while (count > 0) {
      const int64_t n = std::min(count, block_rows_);
      Assemble(place, n);
      const int64_t end = before + n * record_.stride;
      int64_t at = 0;
      if (held > 0) {
        at = kLineBytes;
        std::memcpy(line + held, block_ + held, std::min(at, end) - held);
      }
      for (; at + kLineBytes <= end; at += kLineBytes) {
        StreamLine(line + at, block_ + at);
      }
      place += n;
      count -= n;
      if (count == 0) {
        if (at < end) std::memcpy(line + at, block_ + at, end - at);
        return;
      }
      // A whole block ends as far behind a line as it began.
      std::memcpy(block_, block_ + at, before);
      line += at;
      held = 0;
    }
  }

 private:
  static constexpr int64_t kBlockBytes = 8 << 10;

  // As many as make whole lines; 0 where these are too many.
  static int64_t BlockRows(const Record& record) {
    const int64_t step = kLineBytes / std::gcd(record.stride, kLineBytes);
    return std::min(kBlockBytes / record.stride, kMaxBlockRows) / step * step;
  }

  void Assemble(int64_t place, int64_t count) {
    for (size_t c = 0; c < columns_.size(); ++c) {
      RowColumn column = columns_[c];
      column.table = block_ + before_ + (column.table - record_.low);
      column.batch = BatchPlace(column, place);
      kernels_[c](column, offsets_, count);
    }
  }

  const Record record_;
  const absl::Span<const RowColumn> columns_;
  const int64_t block_rows_;
  int64_t before_ = -1;  // Bytes of a line before the first record.
  Kernel kernels_[kMaxStreamedColumns];
  int64_t offsets_[kMaxBlockRows];
  alignas(kLineBytes) std::byte block_[kBlockBytes + kLineBytes];
};

// Runs of rows go past the caches, the others as any rows do.
void StreamRuns(const Record& record, absl::Span<const RowColumn> columns,
                absl::Span<const int64_t> rows) {
  RunStream stream(record, columns);
  const auto n = static_cast<int64_t>(rows.size());
  int64_t apart = 0;  // The first row that is not copied yet.
  const auto copy_apart = [&](int64_t end) {
    if (apart == end) return;
    CopyRecord<Scatter>(record, columns, rows.subspan(apart, end - apart),
                        apart);
  };
  for (int64_t begin = 0, end; begin < n; begin = end) {
    end = begin + 1;
    while (end < n && rows[end] == rows[end - 1] + 1) ++end;
    if ((end - begin) * record.stride < kMinRunBytes) continue;
    copy_apart(begin);
    stream.Copy(rows[begin], begin, end - begin);
    apart = end;
  }
  copy_apart(n);
}

template <typename Direction>
void CopyRows(absl::Span<const RowColumn> columns,
              absl::Span<const int64_t> rows) {
  bool has_streamed = false;
  while (!columns.empty()) {
    const Record record = FirstRecord<Direction>(columns);
    const auto those = columns.first(record.columns);
    columns.remove_prefix(record.columns);
    if (record.bytes == 0) continue;
    if constexpr (Direction::kWillWrite != 0) {
      const bool are_runs = RunStream::Takes(record, those);
      if (are_runs || CanStream(record, those)) {
        are_runs ? StreamRuns(record, those, rows)
                 : StreamRecord(record, those, rows);
        has_streamed = true;
        continue;
      }
    }
    CopyRecord<Direction>(record, those, rows, /*first_place=*/0);
    has_streamed |=
        std::any_of(those.begin(), those.end(), [](const RowColumn& column) {
          return column.past_caches && IsWide<Direction>(column);
        });
  }
  if (has_streamed) EndStreaming();
}

}  // namespace

void GatherRowsOnHost(absl::Span<const RowColumn> columns,
                      absl::Span<const int64_t> rows) {
  CopyRows<Gather>(columns, rows);
}

void ScatterRowsOnHost(absl::Span<const RowColumn> columns,
                       absl::Span<const int64_t> rows) {
  CopyRows<Scatter>(columns, rows);
}

}  // namespace rill
