#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "ops/cpu_support/key_positions.h"
#include "provider/cpu_kernels.h"

namespace tenon::ops {
namespace {

// Sequences of tokens in a tree, so that all that start at one token are found in one walk.
class Ngrams {
 public:
  static constexpr int root = 0;

  // The node after `token` behind `from`, made if there is none.
  int add(int from, int token) {
    const int found = find(from, token);
    if (found >= 0) return found;
    const int added = static_cast<int>(nodes_.size());
    if (from == root) {
      if (first_.size() <= static_cast<size_t>(token)) first_.resize(static_cast<size_t>(token) + 1, -1);
      first_[static_cast<size_t>(token)] = added;
    } else {
      auto& next = nodes_[static_cast<size_t>(from)].next;
      next.insert(std::ranges::lower_bound(next, std::pair(token, 0)), {token, added});
    }
    nodes_.emplace_back();
    return added;
  }
  // -1 when no n-gram goes on like this.
  int find(int from, int token) const {
    if (from == root) return static_cast<size_t>(token) < first_.size() ? first_[static_cast<size_t>(token)] : -1;
    const auto& next = nodes_[static_cast<size_t>(from)].next;
    const auto at = std::ranges::lower_bound(next, std::pair(token, 0));
    return at != next.end() && at->first == token ? at->second : -1;
  }
  void set_ngram(int node, int ngram) { nodes_[static_cast<size_t>(node)].ngram = ngram; }
  // The n-gram that ends here, or -1.
  int ngram(int node) const { return nodes_[static_cast<size_t>(node)].ngram; }

 private:
  struct Node {
    int ngram = -1;
    std::vector<std::pair<int, int>> next;  // tokens, ascending, and the nodes behind them
  };
  std::vector<int> first_;  // the node of each token that an n-gram begins with, else -1
  std::vector<Node> nodes_ = std::vector<Node>(1);
};

class TfIdfVectorizer final : public Kernel {
 public:
  explicit TfIdfVectorizer(const NodeInfo& info)
      : shortest_(info.node().int_attribute("min_gram_length", 1)),
        longest_(info.node().int_attribute("max_gram_length", 1)),
        most_skipped_(info.node().int_attribute("max_skip_count", 0)),
        columns_(info.node().ints_attribute("ngram_indexes")),
        weights_(info.node().floats_attribute("weights")) {
    const std::string mode = info.node().string_attribute("mode", "");
    if (mode != "TF" && mode != "IDF" && mode != "TFIDF") {
      fail(ErrorCode::invalid_attribute, "mode is '{}'; it may be 'TF', 'IDF' or 'TFIDF'", mode);
    }
    counts_ = mode != "IDF";
    if (shortest_ < 1 || longest_ < shortest_ || most_skipped_ < 0) {
      fail(ErrorCode::invalid_attribute,
           "min_gram_length is {}, max_gram_length {} and max_skip_count {}: lengths go up from 1, skips from 0",
           shortest_, longest_, most_skipped_);
    }
    if (!weights_.empty() && weights_.size() != columns_.size()) {
      fail(ErrorCode::invalid_attribute, "there are {} weights for {} ngram_indexes", weights_.size(), columns_.size());
    }
    if (mode == "TF" || weights_.empty()) weights_.assign(columns_.size(), 1);
    read_pool(info.node());
  }

  void run(KernelRun& run) const override {
    const Tensor& x = run.input(0);
    if (pool_has_strings_ != (x.type() == ElementType::string)) {
      fail(ErrorCode::type_mismatch, "the pool has {}, the input has {}", pool_has_strings_ ? "strings" : "int64s",
           name_of(x.type()));
    }
    Tensor& y = run.output(0);
    auto out = y.mutable_data<float>();
    std::ranges::fill(out, 0.0f);
    const int64_t rows = x.rank() == 2 ? x.dim(0) : 1, length = x.dim(x.rank() - 1), width = y.dim(y.rank() - 1);
    run.threads().parallel_for(rows, 1 + 256 / (1 + length), [&](int64_t begin, int64_t end) {
      std::vector<int> tokens;
      for (int64_t row = begin; row < end; ++row) {
        read_tokens(x, row * length, length, tokens);
        count(tokens, out.data() + row * width);
      }
    });
  }

 private:
  // The pool holds all 1-grams, then all 2-grams, …; ngram_counts says where each length starts.
  void read_pool(const ir::Node& node) {
    const std::vector<std::string> strings = node.strings_attribute("pool_strings");
    const std::vector<int64_t> ints = node.ints_attribute("pool_int64s");
    pool_has_strings_ = node.attribute("pool_strings") != nullptr;
    if (pool_has_strings_ == (node.attribute("pool_int64s") != nullptr)) {
      fail(ErrorCode::invalid_attribute, "one of pool_strings and pool_int64s must be given, and only one");
    }
    strings_ = KeyPositions<std::string>(strings);
    ints_ = KeyPositions<int64_t>(ints);
    std::vector<int> pool;
    pool.reserve(strings.size() + ints.size());
    for (const std::string& word : strings) pool.push_back(static_cast<int>(strings_.find(word)));
    for (int64_t number : ints) pool.push_back(static_cast<int>(ints_.find(number)));

    std::vector<int64_t> starts = node.ints_attribute("ngram_counts");
    const auto size = static_cast<int64_t>(pool.size());
    if (starts.empty() || starts[0] < 0 || !std::ranges::is_sorted(starts) || starts.back() > size) {
      fail(ErrorCode::invalid_attribute, "ngram_counts must be positions in the pool of {}, ascending", size);
    }
    starts.push_back(size);
    int64_t ngram = 0;
    for (size_t i = 0; i + 1 < starts.size(); ++i) {
      const auto length = static_cast<int64_t>(i) + 1;
      if ((starts[i + 1] - starts[i]) % length != 0) {
        fail(ErrorCode::invalid_attribute, "the pool has {} items for {}-grams, which is no multiple of {}",
             starts[i + 1] - starts[i], length, length);
      }
      for (int64_t at = starts[i]; at < starts[i + 1]; at += length) add_ngram(pool, at, length, ngram++);
    }
  }

  void add_ngram(const std::vector<int>& pool, int64_t at, int64_t length, int64_t ngram) {
    if (ngram >= static_cast<int64_t>(columns_.size())) {
      fail(ErrorCode::invalid_attribute, "the pool has more n-grams than ngram_indexes has entries, {}",
           columns_.size());
    }
    if (length < shortest_ || length > longest_) return;
    int node = Ngrams::root;
    for (int64_t k = 0; k < length; ++k) node = ngrams_.add(node, pool[static_cast<size_t>(at + k)]);
    ngrams_.set_ngram(node, static_cast<int>(ngram));
  }

  // Positions in the pool's vocabulary; -1 for what is not in it.
  void read_tokens(const Tensor& x, int64_t first, int64_t length, std::vector<int>& tokens) const {
    auto look_up = [&]<typename T, typename Known>(const T* values, const Known& known) {
      tokens.resize(static_cast<size_t>(length));
      for (int64_t i = 0; i < length; ++i)
        tokens[static_cast<size_t>(i)] = static_cast<int>(known.find(values[first + i]));
    };
    if (x.type() == ElementType::string) {
      look_up(x.data<std::string>().data(), strings_);
    } else if (x.type() == ElementType::int32) {
      look_up(x.data<int32_t>().data(), ints_);
    } else {
      look_up(x.data<int64_t>().data(), ints_);
    }
  }

  // Every n-gram whose tokens are `distance` apart, for each distance that the skips allow. 1-grams have none.
  void count(const std::vector<int>& tokens, float* row) const {
    const auto length = static_cast<int64_t>(tokens.size());
    const int64_t longest_distance = longest_ == 1 ? 1 : std::min(most_skipped_, length) + 1;
    for (int64_t distance = 1; distance <= longest_distance; ++distance) {
      const int64_t second = distance == 1 ? 0 : distance;
      for (int64_t start = 0; start + second < length; ++start) {
        int node = Ngrams::root;
        int64_t size = 1;
        for (int64_t at = start; at < length && size <= longest_; at += distance, ++size) {
          const int token = tokens[static_cast<size_t>(at)];
          node = token < 0 ? -1 : ngrams_.find(node, token);
          if (node < 0) break;
          if (size == 1 && distance > 1) continue;
          if (int ngram = ngrams_.ngram(node); ngram >= 0) add(static_cast<size_t>(ngram), row);
        }
      }
    }
  }

  void add(size_t ngram, float* row) const {
    float& feature = row[columns_[ngram]];
    feature = counts_ ? feature + weights_[ngram] : weights_[ngram];
  }

  int64_t shortest_, longest_, most_skipped_;
  std::vector<int64_t> columns_;
  std::vector<float> weights_;
  bool counts_;
  bool pool_has_strings_ = false;
  KeyPositions<std::string> strings_;
  KeyPositions<int64_t> ints_;
  Ngrams ngrams_;
};

}  // namespace

void cpu_tfidf_vectorizer(CpuKernels& list) {
  list.add("TfIdfVectorizer", [](const NodeInfo& info) { return std::make_unique<TfIdfVectorizer>(info); });
}

}  // namespace tenon::ops
