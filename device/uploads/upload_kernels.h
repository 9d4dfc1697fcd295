// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_UPLOADS_UPLOAD_KERNELS_H_
#define RILL_DEVICE_UPLOADS_UPLOAD_KERNELS_H_

#include <cstdint>

#include "rill/device/kernels/kernel.h"

namespace rill::device_internal {

// Copies pieces of memory, for StreamUploads (stream_uploads.h).
struct UploadKernel {
  static constexpr const char* kName = "upload";
  static constexpr int kMaxPieces = 32;
  static constexpr int64_t kWord = 8;
  using Shared = NoState;
  using Local = NoState;
  // Bytes of any type.
  using Word [[gnu::may_alias]] = uint64_t;
  using Byte [[gnu::may_alias]] = uint8_t;

  struct Piece {
    const Byte* from = nullptr;
    Byte* to = nullptr;
    int64_t bytes = 0;
    int64_t words = 0;  // Of them are copied as words: both are aligned.
  };
  Piece pieces[kMaxPieces] = {};
  int64_t count = 0;

  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    for (int64_t p = 0; p < count; ++p) {
      const Piece& piece = pieces[p];
      const Word* const from =
          static_cast<const Word*>(static_cast<const void*>(piece.from));
      Word* const to = static_cast<Word*>(static_cast<void*>(piece.to));
      for (int64_t i = thread.index(); i < piece.words;
           i += thread.grid_size()) {
        to[i] = from[i];
      }
      for (int64_t i = piece.words * kWord + thread.index(); i < piece.bytes;
           i += thread.grid_size()) {
        piece.to[i] = piece.from[i];
      }
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    for (int64_t p = 0; p < count; ++p) {
      visit(pieces[p].from, pieces[p].bytes);
      visit(pieces[p].to, pieces[p].bytes);
    }
  }
};

}  // namespace rill::device_internal

#endif  // RILL_DEVICE_UPLOADS_UPLOAD_KERNELS_H_
