// SparseMatrixOrderingAMD and SparseMatrixSparseCholesky.
#include "base/Memory.h"
#include "runtime/kernels/sparse/Csr.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace lathe::rt {
namespace {

/// The approximate minimum degree order of Amestoy, Davis and Duff: the next row to be eliminated is always one of few neighbours. Rows
/// are eliminated in a quotient graph, which takes no more room than the matrix: an eliminated row becomes an element that stands for a
/// clique of those that are left. Rows that have come to look alike are eliminated together. Ties, which decide between orders that are
/// as good as each other, fall as they do in TensorFlow.
class MinimumDegree {
public:
  /// Of the lower part of a square matrix.
  MinimumDegree(const CsrMatrix &m, int64_t batch) : size(static_cast<int32_t>(m.rows())), nodes(m.rows() + 1), lists(m.rows() + 1, kNone) {
    for (int32_t r = 0; r < size; ++r)
      for (int32_t i = m.starts(batch)[r]; i < m.starts(batch)[r + 1]; ++i) {
        int32_t c = m.columnsOf(batch)[i];
        if (c <= r)
          nodes[r].variables.push_back(c);
        if (c < r)
          nodes[c].variables.push_back(r);
      }
    int64_t dense = std::min<int64_t>(std::max<int64_t>(16, static_cast<int64_t>(10 * std::sqrt(static_cast<double>(size)))), size - 2);
    for (int32_t r = 0; r < size; ++r) {
      Node &node = nodes[r];
      bool hasDiagonal = std::find(node.variables.begin(), node.variables.end(), r) != node.variables.end();
      node.degree = static_cast<int64_t>(node.variables.size());
      if (node.degree == 1 && hasDiagonal) {
        ++eliminated;
      } else if (node.degree > dense || !hasDiagonal) {
        // to the end of the order
        node.weight = 0;
        node.parent = size;
        ++eliminated;
      } else {
        link(r);
      }
    }
  }

  void order(int32_t *to) {
    while (eliminated < size)
      eliminate();
    postorder(to);
  }

private:
  static constexpr int32_t kNone = -1;

  struct Node {
    std::vector<int32_t> elements;  ///< of a row: cliques that it is in
    std::vector<int32_t> variables; ///< of a row: neighbours that are left
    std::vector<int32_t> clique;    ///< of an element: its rows that are left
    int64_t degree = 0, mark = 1;   ///< a mark of 0: an element that others have absorbed
    int32_t weight = 1;             ///< rows that the row stands for; 0 once another stands for it, negative while in the new clique
    int32_t parent = kNone;         ///< who absorbed it
    int32_t previous = kNone, next = kNone; ///< in the list of its degree
    int64_t hash = 0;
  };

  void link(int32_t r) {
    int32_t &head = lists[nodes[r].degree];
    if (head != kNone)
      nodes[head].previous = r;
    nodes[r].next = head;
    nodes[r].previous = kNone;
    head = r;
  }

  void unlink(int32_t r) {
    Node &node = nodes[r];
    if (node.next != kNone)
      nodes[node.next].previous = node.previous;
    if (node.previous != kNone)
      nodes[node.previous].next = node.next;
    else
      lists[node.degree] = node.next;
  }

  void absorb(int32_t element, int32_t by) {
    nodes[element].parent = by;
    nodes[element].mark = 0;
    nodes[element].clique = {};
  }

  /// Eliminates one row and those that go with it.
  void eliminate() {
    while (lists[least] == kNone)
      ++least;
    int32_t p = lists[least];
    unlink(p);
    Node &pivot = nodes[p];
    int32_t weight = pivot.weight;
    eliminated += weight;
    pivot.weight = -weight;
    makeClique(p);
    // how much of each element that touches the clique lies outside it: its mark less `now`
    for (int32_t r : pivot.clique)
      for (int32_t e : nodes[r].elements)
        if (nodes[e].mark >= now)
          nodes[e].mark += nodes[r].weight;
        else if (nodes[e].mark != 0)
          nodes[e].mark = nodes[e].degree + now + nodes[r].weight;
    for (int32_t r : pivot.clique)
      weight += update(p, r);
    largest = std::max(largest, pivot.degree);
    now += largest;
    for (int32_t r : pivot.clique)
      if (nodes[r].weight < 0)
        mergeAlike(r);
    finish(p);
    pivot.weight = weight;
  }

  void makeClique(int32_t p) {
    Node &pivot = nodes[p];
    pivot.degree = 0;
    auto take = [&](int32_t r) {
      Node &row = nodes[r];
      if (row.weight <= 0)
        return;
      pivot.degree += row.weight;
      row.weight = -row.weight;
      pivot.clique.push_back(r);
      unlink(r);
    };
    for (int32_t e : pivot.elements) {
      std::for_each(nodes[e].clique.begin(), nodes[e].clique.end(), take);
      absorb(e, p);
    }
    std::for_each(pivot.variables.begin(), pivot.variables.end(), take);
    pivot.elements = {};
    pivot.variables = {};
  }

  /// Brings a row of the new clique up to date. The weight of a row that needs no more than the pivot, which goes with it; else 0.
  int32_t update(int32_t p, int32_t r) {
    Node &row = nodes[r];
    int64_t degree = 0, hash = 0;
    size_t kept = 0;
    for (int32_t e : row.elements) {
      if (nodes[e].mark == 0)
        continue;
      if (nodes[e].mark <= now) {
        absorb(e, p); // lies inside the clique
        continue;
      }
      degree += nodes[e].mark - now;
      row.elements[kept++] = e;
      hash += e;
    }
    row.elements.resize(kept);
    kept = 0;
    for (int32_t v : row.variables)
      if (nodes[v].weight > 0) {
        degree += nodes[v].weight;
        row.variables[kept++] = v;
        hash += v;
      }
    row.variables.resize(kept);
    if (degree == 0) {
      int32_t weight = -row.weight;
      row.parent = p;
      row.weight = 0;
      nodes[p].degree -= weight;
      eliminated += weight;
      return weight;
    }
    row.degree = std::min(row.degree, degree);
    // the new element comes first, and what was first comes last
    if (!row.variables.empty())
      std::rotate(row.variables.begin(), row.variables.begin() + 1, row.variables.end());
    if (row.elements.empty()) {
      row.elements.push_back(p);
    } else {
      row.elements.push_back(row.elements[0]);
      row.elements[0] = p;
    }
    row.hash = hash % size;
    int32_t &bucket = alike.try_emplace(row.hash, kNone).first->second;
    row.next = bucket;
    bucket = r;
    return 0;
  }

  /// Merges rows with the same neighbours among those that share a row's hash.
  void mergeAlike(int32_t r) {
    auto bucket = alike.find(nodes[r].hash);
    if (bucket == alike.end())
      return;
    int32_t i = bucket->second;
    alike.erase(bucket);
    for (; i != kNone && nodes[i].next != kNone; i = nodes[i].next, ++now) {
      Node &one = nodes[i];
      auto marked = [&](int32_t v) { return nodes[v].mark == now; };
      for (size_t k = 1; k < one.elements.size(); ++k)
        nodes[one.elements[k]].mark = now;
      for (int32_t v : one.variables)
        nodes[v].mark = now;
      int32_t last = i;
      for (int32_t j = one.next; j != kNone;) {
        Node &other = nodes[j];
        if (one.elements.size() == other.elements.size() && one.variables.size() == other.variables.size() &&
            std::all_of(other.elements.begin() + 1, other.elements.end(), marked) &&
            std::all_of(other.variables.begin(), other.variables.end(), marked)) {
          other.parent = i;
          one.weight += other.weight;
          other.weight = 0;
          j = other.next;
          nodes[last].next = j;
        } else {
          last = j;
          j = other.next;
        }
      }
    }
  }

  /// Puts the rows of the new clique back into the lists of degrees.
  void finish(int32_t p) {
    Node &pivot = nodes[p];
    size_t kept = 0;
    for (int32_t r : pivot.clique) {
      Node &row = nodes[r];
      if (row.weight == 0)
        continue;
      row.weight = -row.weight;
      row.degree = std::min<int64_t>(row.degree + pivot.degree - row.weight, size - eliminated - row.weight);
      link(r);
      least = std::min(least, row.degree);
      pivot.clique[kept++] = r;
    }
    pivot.clique.resize(kept);
    if (kept == 0)
      pivot.mark = 0;
  }

  /// Rows in the order of the tree of who absorbed whom, children first.
  void postorder(int32_t *to) {
    std::vector<int32_t> child(size + 1, kNone), sibling(size + 1, kNone), stack;
    // of the children those that stand for rows come first
    for (bool stands : {false, true})
      for (int32_t r = size; r >= 0; --r)
        if ((nodes[r].weight > 0) == stands && nodes[r].parent != kNone) {
          sibling[r] = child[nodes[r].parent];
          child[nodes[r].parent] = r;
        }
    int32_t at = 0;
    for (int32_t root = 0; root <= size; ++root) {
      if (nodes[root].parent != kNone)
        continue;
      stack.push_back(root);
      while (!stack.empty()) {
        int32_t r = stack.back(), first = child[r];
        if (first != kNone) {
          child[r] = sibling[first];
          stack.push_back(first);
          continue;
        }
        stack.pop_back();
        // the root of those that were put to the end is no row
        if (r != size)
          to[at++] = r;
      }
    }
  }

  const int32_t size;
  std::vector<Node> nodes;
  std::vector<int32_t> lists; ///< by degree: the first row that has it
  std::unordered_map<int64_t, int32_t> alike; ///< by hash: the first row of the new clique that has it
  int64_t least = 0, largest = 0, now = 2, eliminated = 0;
};

absl::Status orderingAmd(KernelContext &context) {
  LATHE_TRY_VALUE(in, csrInput(context, 0));
  LATHE_TRY(checkSquare(*in));
  if (in->rows() > memoryBudget() / 256)
    return absl::ResourceExhaustedError(absl::StrCat("there is no memory to order ", in->rows(), " rows"));
  int64_t n = in->rows();
  LATHE_TRY_VALUE(out, context.allocateOutput(0, in->rank() == 2 ? std::vector<int64_t>{n} : std::vector<int64_t>{in->batches(), n}));
  for (int64_t b = 0; b < in->batches(); ++b)
    MinimumDegree(*in, b).order(out.template data<int32_t>() + b * n);
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(SparseMatrixOrderingAMD, orderingAmd);

/// L of P A P' = L L*, row after row, where P puts row permutation[k] in place k. Only the lower part of A is read.
template <typename T>
class Cholesky {
public:
  Cholesky(const CsrMatrix &m, int64_t batch, const int32_t *permutation) : size(m.rows()) {
    std::vector<int32_t> place(size);
    for (int64_t k = 0; k < size; ++k)
      place[permutation[k]] = static_cast<int32_t>(k);
    // the lower part of the permuted matrix: a counting sort of its entries by row
    auto visit = [&](auto fn) {
      for (int64_t r = 0; r < size; ++r)
        for (int32_t i = m.starts(batch)[r]; i < m.starts(batch)[r + 1]; ++i) {
          int32_t c = m.columnsOf(batch)[i], x = place[r], y = place[c];
          if (c > r)
            continue;
          T value = m.valuesOf<T>(batch)[i];
          fn(std::max(x, y), std::min(x, y), x < y ? conjugated(value) : value);
        }
    };
    starts.assign(size + 1, 0);
    visit([&](int32_t row, int32_t, T) { ++starts[row + 1]; });
    for (int64_t r = 0; r < size; ++r)
      starts[r + 1] += starts[r];
    columns.resize(starts[size]);
    values.resize(starts[size]);
    std::vector<int32_t> next(starts.begin(), starts.end() - 1);
    visit([&](int32_t row, int32_t column, T value) {
      columns[next[row]] = column;
      values[next[row]++] = value;
    });
    findTree();
  }

  /// Number of entries of L.
  int64_t count() {
    int64_t n = 0;
    forget();
    for (int32_t k = 0; k < size; ++k)
      n += static_cast<int64_t>(pattern(k).size()) + 1;
    return n;
  }

  /// Writes L, whose columns ascend in each row. False when a pivot is not positive.
  bool factor(int32_t *toStarts, int32_t *toColumns, T *toValues) {
    // L by columns beside L by rows: a row of L is solved for with the columns that the rows above it have made
    std::vector<int64_t> begin(size + 1), end;
    forget();
    for (int32_t k = 0; k < size; ++k)
      for (int32_t j : pattern(k))
        ++begin[j + 1];
    for (int64_t j = 0; j < size; ++j)
      begin[j + 1] += begin[j];
    end.assign(begin.begin(), begin.end() - 1);
    std::vector<int32_t> below(begin[size]);
    std::vector<T> made(begin[size]), x(size);
    std::vector<decltype(std::abs(T()))> diagonal(size);
    forget();
    int32_t at = 0;
    for (int32_t k = 0; k < size; ++k) {
      auto pivot = std::real(T());
      for (int32_t i = starts[k]; i < starts[k + 1]; ++i)
        if (columns[i] == k)
          pivot += std::real(values[i]);
        else
          x[columns[i]] += conjugated(values[i]);
      for (int32_t j : pattern(k)) {
        T v = x[j] / diagonal[j];
        x[j] = T();
        for (int64_t i = begin[j]; i < end[j]; ++i)
          x[below[i]] -= made[i] * v;
        pivot -= std::real(v * conjugated(v));
        below[end[j]] = k;
        made[end[j]++] = conjugated(v);
        toColumns[at] = j;
        toValues[at++] = conjugated(v);
      }
      if (pivot <= 0)
        return false;
      diagonal[k] = std::sqrt(pivot);
      toColumns[at] = k;
      toValues[at++] = diagonal[k];
      toStarts[k + 1] = at;
    }
    return true;
  }

private:
  /// Parents in the elimination tree: the next row with an entry in a row's column of L.
  void findTree() {
    parent.assign(size, -1);
    std::vector<int32_t> ancestor(size, -1);
    for (int32_t k = 0; k < size; ++k)
      for (int32_t i = starts[k]; i < starts[k + 1]; ++i)
        for (int32_t j = columns[i], up; j != -1 && j < k; j = up) {
          up = ancestor[j];
          ancestor[j] = k;
          if (up == -1)
            parent[j] = k;
        }
  }

  void forget() { seen.assign(size, -1); }

  /// The columns of row k of L but for the diagonal, ascending: what the entries of row k of A reach in the tree.
  const std::vector<int32_t> &pattern(int32_t k) {
    reached.clear();
    seen[k] = k;
    for (int32_t i = starts[k]; i < starts[k + 1]; ++i)
      for (int32_t j = columns[i]; j != -1 && seen[j] != k; j = parent[j]) {
        seen[j] = k;
        reached.push_back(j);
      }
    std::sort(reached.begin(), reached.end());
    return reached;
  }

  int64_t size;
  std::vector<int32_t> starts, columns, parent, seen, reached;
  std::vector<T> values;
};

absl::Status checkPermutation(const CsrMatrix &m, const Tensor &permutation) {
  int64_t rank = m.rank(), n = m.rows();
  if (permutation.rank() + 1 != rank)
    return invalid("sparse matrix must have the same rank as permutation; got: ", rank, " != ", permutation.rank(), " + 1.");
  if (permutation.dim(rank - 2) != n)
    return invalid("permutation must have the same number of elements in each batch as the number of rows in sparse matrix; got: ",
                   permutation.dim(rank - 2), " != ", n);
  if (rank == 3 && permutation.dim(0) != m.batches())
    return invalid("permutation must have the same batch size as sparse matrix; got: ", permutation.dim(0), " != ", m.batches());
  std::vector<int64_t> seen(n, -1);
  for (int64_t i = 0; i < permutation.numElements(); ++i) {
    int32_t row = permutation.data<int32_t>()[i];
    if (row < 0 || row >= n || seen[row] == i / n)
      return invalid("permutation[", i, "] = ", row, " is outside of the rows or repeated");
    seen[row] = i / n;
  }
  return absl::OkStatus();
}

absl::Status sparseCholesky(KernelContext &context) {
  DType type = *attrOf<DType>(*context.node, "type");
  LATHE_TRY_VALUE(in, csrInput(context, 0, type));
  Tensor permutation = context.input(1);
  LATHE_TRY(checkSquare(*in));
  LATHE_TRY(checkPermutation(*in, permutation));
  return withCsrType(type, [&](auto zero) -> absl::Status {
    using T = decltype(zero);
    auto solver = [&](int64_t b) { return Cholesky<T>(*in, b, permutation.data<int32_t>() + b * in->rows()); };
    std::vector<int64_t> counts;
    for (int64_t b = 0; b < in->batches(); ++b)
      counts.push_back(solver(b).count());
    LATHE_TRY_VALUE(out, CsrMatrix::allocate(type, in->dims, counts));
    for (int64_t b = 0; b < in->batches(); ++b)
      if (!solver(b).factor(out->starts(b), out->columnsOf(b), out->template valuesOf<T>(b)))
        return invalid("Sparse Cholesky factorization failed for batch index ", b, ". The input might not be valid.");
    context.setOutput(0, csrTensor(out));
    return absl::OkStatus();
  });
}
LATHE_HOST_FUNCTION(SparseMatrixSparseCholesky, sparseCholesky);

} // namespace
} // namespace lathe::rt
