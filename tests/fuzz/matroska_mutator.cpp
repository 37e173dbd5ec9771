// The mutator of matroska_fuzz (an option byte, then a file). It knows Matroska elements: it changes, moves, repeats
// and nests them, and keeps the sizes around them right or makes one too small or too large.

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

// Weak: other engines than libFuzzer have none, and do not call a mutator either.
extern "C" [[gnu::weak]] std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

using Bytes = std::vector<std::uint8_t>;

/// An element: its name, and either what it holds or elements.
struct Node {
  Bytes id;
  Bytes content;
  std::vector<Node> children;
  std::size_t size_bytes = 0;  ///< of its length as it was written; 0: as few as it takes
  bool open_ended = false;
  int lie = 0;  ///< what its length says more than is true
};

constexpr std::uint32_t kMasters[] = {0x18538067, 0x1F43B675, 0xA0, 0x1654AE6B, 0xAE, 0x1549A966, 0x1941A469, 0x61A7};

std::uint32_t number_of(const Bytes& id) {
  std::uint32_t number = 0;
  for (const std::uint8_t b : id) number = number << 8 | b;
  return number;
}

std::vector<Node> parse(const Bytes& in) {
  std::vector<Node> all;
  for (std::size_t at = 0; at < in.size();) {
    Node node;
    std::size_t id_bytes = 1;
    while (id_bytes < 4 && (in[at] & 0x80u >> (id_bytes - 1)) == 0) ++id_bytes;
    if (at + id_bytes >= in.size()) break;
    node.id.assign(in.begin() + static_cast<std::ptrdiff_t>(at),
                   in.begin() + static_cast<std::ptrdiff_t>(at + id_bytes));
    at += id_bytes;
    std::size_t size_bytes = 1;
    while (size_bytes < 8 && (in[at] & 0x80u >> (size_bytes - 1)) == 0) ++size_bytes;
    if (at + size_bytes > in.size()) break;
    std::uint64_t length = in[at] & (0xFFu >> size_bytes);
    bool ones = length == (0xFFu >> size_bytes);
    for (std::size_t i = 1; i < size_bytes; ++i) {
      ones = ones && in[at + i] == 0xFF;
      length = length << 8 | in[at + i];
    }
    at += size_bytes;
    node.size_bytes = size_bytes;
    node.open_ended = ones;
    const std::size_t there =
        static_cast<std::size_t>(std::min<std::uint64_t>(ones ? in.size() : length, in.size() - at));
    node.content.assign(in.begin() + static_cast<std::ptrdiff_t>(at),
                        in.begin() + static_cast<std::ptrdiff_t>(at + there));
    at += there;
    if (std::find(std::begin(kMasters), std::end(kMasters), number_of(node.id)) != std::end(kMasters))
      node.children = parse(node.content);
    all.push_back(std::move(node));
  }
  return all;
}

void write(const std::vector<Node>& nodes, Bytes& out) {
  for (const Node& node : nodes) {
    Bytes content = node.content;
    if (!node.children.empty()) {
      content.clear();
      write(node.children, content);
    }
    out.insert(out.end(), node.id.begin(), node.id.end());
    const std::uint64_t length = content.size() + static_cast<std::uint64_t>(static_cast<std::int64_t>(node.lie));
    std::size_t bytes = std::clamp<std::size_t>(node.size_bytes, 1, 8);
    while (bytes < 8 && (length >> 7 * bytes) != 0) ++bytes;
    const std::uint64_t coded = node.open_ended ? UINT64_MAX : length;
    for (std::size_t i = 0; i < bytes; ++i) {
      const auto b = static_cast<std::uint8_t>(coded >> 8 * (bytes - 1 - i));
      out.push_back(i == 0 ? static_cast<std::uint8_t>((b & (0xFFu >> bytes)) | 0x100u >> bytes) : b);
    }
    out.insert(out.end(), content.begin(), content.end());
  }
}

void collect(std::vector<Node>& nodes, std::vector<std::vector<Node>*>& lists) {
  if (!nodes.empty()) lists.push_back(&nodes);
  for (Node& node : nodes) collect(node.children, lists);
}

void change(std::vector<Node>& list, std::vector<std::vector<Node>*>& lists, std::mt19937& random) {
  const std::size_t at = random() % list.size();
  Node& node = list[at];
  switch (random() % 8) {
    case 0: list.erase(list.begin() + static_cast<std::ptrdiff_t>(at)); break;
    case 1: list.insert(list.begin() + static_cast<std::ptrdiff_t>(at), Node(node)); break;
    case 2: node.lie = static_cast<int>(random() % 64) - 32; break;
    case 3: node.open_ended = !node.open_ended; break;
    case 4: node.size_bytes = 1 + random() % 8; break;
    case 5: {  // another element of the file, here
      const std::vector<Node>& from = *lists[random() % lists.size()];
      Node other = from[random() % from.size()];
      list.insert(list.begin() + static_cast<std::ptrdiff_t>(at), std::move(other));
      break;
    }
    case 6: {  // a block of its own in a group, or any element in another
      Node inner = node;
      if (number_of(inner.id) == 0xA3) inner.id = {0xA1};
      Node group;
      group.id = {0xA0};
      group.children.push_back(std::move(inner));
      node = std::move(group);
      break;
    }
    default: {
      const std::vector<Node>& from = *lists[random() % lists.size()];
      Bytes id = from[random() % from.size()].id;
      node.id = std::move(id);
    }
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  std::mt19937 random(seed);
  if (size < 2 || random() % 4 == 0) return LLVMFuzzerMutate(data, size, max_size);
  std::vector<Node> nodes = parse(Bytes(data + 1, data + size));
  for (unsigned times = 1 + random() % 4; times > 0; --times) {
    std::vector<std::vector<Node>*> lists;
    collect(nodes, lists);
    if (lists.empty()) return LLVMFuzzerMutate(data, size, max_size);
    change(*lists[random() % lists.size()], lists, random);
  }
  Bytes out(1, data[0]);
  write(nodes, out);
  out.resize(std::min(out.size(), max_size));
  std::copy(out.begin(), out.end(), data);
  return out.size();
}
