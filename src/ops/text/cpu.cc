#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <unordered_set>

#include "base/checked.h"
#include "base/rounding.h"
#include "ops/broadcast.h"
#include "ops/elementwise.h"
#include "ops/text/short_text.h"
#include "ops/text/unicode.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// Texts are short: most take two moves, which is less than a call.
[[gnu::always_inline]] inline void copy_text(const std::string& text, char* to) {
  const char* from = text.data();
  const size_t size = text.size();
  const auto copy_both_ends = [&]<size_t part>() {
    char begin[part], end[part];
    std::memcpy(begin, from, part);
    std::memcpy(end, from + size - part, part);
    std::memcpy(to, begin, part);
    std::memcpy(to + size - part, end, part);
  };
  if (size > 16)
    std::memcpy(to, from, size);
  else if (size >= 8)
    copy_both_ends.template operator()<8>();
  else if (size >= 4)
    copy_both_ends.template operator()<4>();
  else if (size >= 2)
    copy_both_ends.template operator()<2>();
  else if (size == 1)
    *to = *from;
}

void join(const std::string& a, const std::string& b, std::string& to) {
  const size_t size = a.size() + b.size();
#ifdef __x86_64__
  // By a copy: resize() fills by a masked store, which may reach over the next string, so that who reads that waits.
  static constexpr char blank[64] = {};
  if (size <= sizeof blank)
    to.assign(blank, size);
  else
#endif
    to.resize(size);
  copy_text(a, to.data());
  copy_text(b, to.data() + a.size());
}

void string_concat(KernelRun& run) {
  Tensor& z = run.output(0);
  const std::string *left = run.data<std::string>(0).data(), *right = run.data<std::string>(1).data();
  std::string* out = z.mutable_data<std::string>().data();
  Broadcast loop(z.shape(), {&run.input(0).shape(), &run.input(1).shape()});
  loop.run(run.threads(), costly_grain, [&](const BroadcastTile& tile) {
    for (int64_t row = 0; row < tile.rows; ++row) {
      const std::string* a = left + tile.first[0] + row * tile.row_stride[0];
      const std::string* b = right + tile.first[1] + row * tile.row_stride[1];
      std::string* to = out + tile.output + row * tile.columns;
      for (int64_t i = 0; i < tile.columns; ++i)
        join(a[i * tile.column_stride[0]], b[i * tile.column_stride[1]], to[i]);
    }
  });
}

class StringSplit final : public Kernel {
 public:
  explicit StringSplit(const NodeInfo& info) : delimiter_(info.node().string_attribute("delimiter", "")) {
    int64_t most = info.node().int_attribute("maxsplit", -1);
    if (most >= 0) most_splits_ = most;
  }

  void run(KernelRun& run) const override {
    auto texts = run.data<std::string>(0);
    constexpr size_t block = 256;
    std::vector<Parts> blocks(divide_up(texts.size(), block));
    run.threads().parallel_for(std::ssize(blocks), 1, [&](int64_t begin, int64_t end) {
      for (auto b = static_cast<size_t>(begin); b < static_cast<size_t>(end); ++b)
        split(texts.subspan(b * block, std::min(block, texts.size() - b * block)), blocks[b]);
    });
    int64_t most = 0;
    for (const Parts& parts : blocks) most = std::max(most, parts.most);
    if (run.wants_output(0)) {
      Shape shape = run.input(0).shape();
      shape.push_back(most);
      std::string* row = run.output(0, shape).mutable_data<std::string>().data();
      for (const Parts& parts : blocks) row = copy(parts, row, most);
    }
    if (run.wants_output(1)) {
      int64_t* count = run.output(1).mutable_data<int64_t>().data();
      for (const Parts& parts : blocks) {
        for (const Text& text : parts.texts) *count++ = text.count;
      }
    }
  }

 private:
  struct Text {
    int64_t count;     // of its parts
    WordBounds words;  // of a short text, unless its parts are listed
  };
  // Of several texts, one after the other.
  struct Parts {
    std::vector<Text> texts;
    std::vector<char> copies;  // of short texts, each with room for another one behind it
    std::vector<std::string_view> list;
    int64_t most = 0;

    const char* copy_of(size_t text) const { return copies.data() + text * short_text_size; }
    char* copy_of(size_t text) { return copies.data() + text * short_text_size; }
  };

  void split(std::span<const std::string> texts, Parts& parts) const {
    const bool at_white_space = delimiter_.empty();
    parts.texts.resize(texts.size());
    if (at_white_space)
      parts.copies.resize((texts.size() + 1) * short_text_size);
    else
      parts.list.reserve(4 * texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      Text& own = parts.texts[i];
      if (!at_white_space || !is_short(texts[i]) || !split_short(texts[i], parts.copy_of(i), own)) {
        const auto before = std::ssize(parts.list);
        if (at_white_space)
          split_at_white_space(texts[i], parts.list);
        else
          split_at_delimiter(texts[i], parts.list);
        own = {std::ssize(parts.list) - before, {}};
      }
      parts.most = std::max(parts.most, own.count);
    }
  }

  // False if it takes more than looking at bits.
  bool split_short(const std::string& text, char* copy, Text& to) const {
    std::memcpy(copy, text.data(), short_text_size);
    const bool is_ascii = find_words(text.data(), text.size(), to.words);
    to.count = to.words.count();
    return is_ascii && to.count <= most_splits_;
  }

  // To rows of `most` parts. Returns the row behind them.
  static std::string* copy(const Parts& parts, std::string* row, int64_t most) {
    const std::string_view* part = parts.list.data();
    for (size_t i = 0; i < parts.texts.size(); ++i, row += most) {
      const auto& [count, words] = parts.texts[i];
      if (words.begins != 0) {
        copy_words(words, parts.copy_of(i), row);
      } else {
        for (int64_t k = 0; k < count; ++k, ++part) row[k].assign(part->data(), part->size());
      }
    }
    return row;
  }

  // Always as many characters, so that the size of a word decides nothing.
  static void copy_words(const WordBounds& words, const char* from, std::string* to) {
    constexpr size_t most = short_text_size - 1;
    for (uint32_t begins = words.begins, ends = words.ends; begins != 0; begins &= begins - 1, ends &= ends - 1, ++to) {
      const auto begin = static_cast<size_t>(std::countr_zero(begins)), size = std::countr_zero(ends) - begin;
      to->assign(from + begin, most);
      if (size <= most)
        to->resize(size);
      else
        to->assign(from + begin, size);
    }
  }

  void split_at_delimiter(std::string_view text, std::vector<std::string_view>& parts) const {
    const auto before = std::ssize(parts);
    while (std::ssize(parts) - before < most_splits_) {
      size_t end = text.find(delimiter_);
      if (end == std::string_view::npos) break;
      parts.push_back(text.substr(0, end));
      text.remove_prefix(end + delimiter_.size());
    }
    parts.push_back(text);
  }

  static constexpr std::array<bool, 128> white_bytes = [] {
    std::array<bool, 128> result{};
    for (size_t byte : {0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x1C, 0x1D, 0x1E, 0x1F, 0x20}) result[byte] = true;
    return result;
  }();

  // The end of the characters from `from` on that are white space, or that are not.
  template <bool white_space>
  static size_t skip(std::string_view text, size_t from) {
    while (from < text.size()) {
      if (const auto byte = static_cast<unsigned char>(text[from]); byte < 128) {
        if (white_bytes[byte] != white_space) break;
        ++from;
        continue;
      }
      size_t next = from;
      const auto code_point = next_code_point(text, next);
      if ((code_point && is_white_space(*code_point)) != white_space) break;
      from = next;
    }
    return from;
  }

  // The end of `text` without the white space behind it; a word begins at `from`.
  static size_t end_of_words(std::string_view text, size_t from) {
    size_t end = from;
    for (; from < text.size(); from = skip<true>(text, end)) end = skip<false>(text, from);
    return end;
  }

  void split_at_white_space(std::string_view text, std::vector<std::string_view>& parts) const {
    int64_t splits = most_splits_;
    for (size_t begin = skip<true>(text, 0); begin < text.size(); --splits) {
      const size_t end = splits == 0 ? end_of_words(text, begin) : skip<false>(text, begin);
      parts.emplace_back(text.data() + begin, end - begin);
      begin = skip<true>(text, end);
    }
  }

  std::string delimiter_;
  int64_t most_splits_ = std::numeric_limits<int64_t>::max();
};

class StringNormalizer final : public Kernel {
 public:
  explicit StringNormalizer(const NodeInfo& info) {
    std::string action = info.node().string_attribute("case_change_action", "NONE");
    change_ = action == "LOWER" ? Case::lower : action == "UPPER" ? Case::upper : Case::same;
    if (info.node().int_attribute("is_case_sensitive", 0) == 0) compared_ = Case::lower;
    letters_ = letters_of(info.node().string_attribute("locale", ""));
    for (const std::string& word : info.node().strings_attribute("stopwords")) stopwords_.insert(in(compared_, word));
  }

  void run(KernelRun& run) const override {
    auto words = run.data<std::string>(0);
    std::vector<const std::string*> kept;
    kept.reserve(words.size());
    for (const std::string& word : words) {
      if (stopwords_.empty() || !stopwords_.contains(in(compared_, word))) kept.push_back(&word);
    }
    // Nothing is left: one empty string.
    const auto count = std::max<int64_t>(1, std::ssize(kept));
    auto out = run.output(0, run.input(0).rank() == 2 ? Shape{1, count} : Shape{count}).mutable_data<std::string>();
    for (size_t i = 0; i < kept.size(); ++i) out[i] = in(change_, *kept[i]);
  }

 private:
  enum class Case { same, lower, upper };
  std::string in(Case wanted, const std::string& word) const {
    if (wanted == Case::same) return word;
    return wanted == Case::lower ? to_lower(word, letters_) : to_upper(word, letters_);
  }

  Case change_, compared_ = Case::same;
  Letters letters_ = Letters::usual;
  std::unordered_set<std::string> stopwords_;
};

}  // namespace

void cpu_text(CpuKernels& list) {
  list.add_simple("StringConcat", string_concat);
  list.add("StringSplit", [](const NodeInfo& info) { return std::make_unique<StringSplit>(info); });
  list.add("StringNormalizer", [](const NodeInfo& info) { return std::make_unique<StringNormalizer>(info); });
}

}  // namespace tenon::ops
