//! The structure of a graph: components, bridges, bipartition, diameter.

use std::collections::VecDeque;

use super::Graph;

/// The distance of a node that a search did not reach.
const UNREACHED: usize = usize::MAX;

impl Graph {
    /// The connected components, each in increasing order, that of node 0 first.
    pub fn components(&self) -> Vec<Vec<usize>> {
        let mut seen = vec![false; self.nodes()];
        let mut components = Vec::new();
        for start in 0..self.nodes() {
            if seen[start] {
                continue;
            }
            seen[start] = true;
            let mut component = vec![start];
            let mut next = 0;
            while next < component.len() {
                for &j in self.neighbours(component[next]) {
                    if !std::mem::replace(&mut seen[j], true) {
                        component.push(j);
                    }
                }
                next += 1;
            }
            component.sort_unstable();
            components.push(component);
        }
        components
    }

    /// Whether every node can be reached from every other.
    pub fn is_connected(&self) -> bool {
        self.components().len() == 1
    }

    /// The edges whose loss increases the number of components, in increasing order.
    pub fn bridges(&self) -> Vec<(usize, usize)> {
        // Tarjan's low points: an edge (i, j) of the search tree is a bridge if nothing below j
        // reaches i or above by another path. The stack is explicit because paths can be long.
        let m = self.nodes();
        let (mut entered, mut low) = (vec![UNREACHED; m], vec![UNREACHED; m]);
        let (mut clock, mut bridges) = (0, Vec::new());
        for root in 0..m {
            if entered[root] != UNREACHED {
                continue;
            }
            let mut stack = vec![(root, UNREACHED, 0)];
            while let Some(&mut (i, parent, ref mut next)) = stack.last_mut() {
                if *next == 0 {
                    (entered[i], low[i]) = (clock, clock);
                    clock += 1;
                }
                if let Some(&j) = self.neighbours(i).get(*next) {
                    *next += 1;
                    if entered[j] == UNREACHED {
                        stack.push((j, i, 0));
                    } else if j != parent {
                        low[i] = low[i].min(entered[j]);
                    }
                    continue;
                }
                stack.pop();
                if parent != UNREACHED {
                    low[parent] = low[parent].min(low[i]);
                    if low[i] > entered[parent] {
                        bridges.push((i.min(parent), i.max(parent)));
                    }
                }
            }
        }
        bridges.sort_unstable();
        bridges
    }

    /// The two sides of a bipartite graph: every edge goes from one to the other.
    pub fn sides(&self) -> Option<[Vec<usize>; 2]> {
        let mut side = vec![UNREACHED; self.nodes()];
        let mut queue = VecDeque::new();
        for start in 0..self.nodes() {
            if side[start] != UNREACHED {
                continue;
            }
            side[start] = 0;
            queue.push_back(start);
            while let Some(i) = queue.pop_front() {
                for &j in self.neighbours(i) {
                    if side[j] == UNREACHED {
                        side[j] = 1 - side[i];
                        queue.push_back(j);
                    } else if side[j] == side[i] {
                        return None;
                    }
                }
            }
        }
        Some([0, 1].map(|s| (0..self.nodes()).filter(|&i| side[i] == s).collect()))
    }

    /// Whether the graph is bipartite.
    pub fn is_bipartite(&self) -> bool {
        self.sides().is_some()
    }

    /// The largest number of hops between two nodes, if the graph is connected.
    pub fn diameter(&self) -> Option<usize> {
        self.diameter_within(usize::MAX).map(|(diameter, _)| diameter)
    }

    /// Bounds of the diameter, from below and from above, by searches that visit about `work`
    /// neighbours in total; equal where that is enough. `None` if the graph is not connected.
    ///
    /// Nodes are searched from the outside in, as seen from a node c in the middle of a long path
    /// (Crescenzi et al., *Theoretical Computer Science* 514, 2013): two nodes at most r hops from c
    /// are at most 2r apart. Trees, grids and other long graphs take a few searches; random ones,
    /// where most nodes are far out, up to one per node.
    pub fn diameter_within(&self, work: usize) -> Option<(usize, usize)> {
        let mut search = Search::new(self);
        let hub = (0..self.nodes()).max_by_key(|&i| self.degree(i))?;
        // Twice from the farthest node found, to find two ends of a long path.
        let (mut longest, mut end) = (0, hub);
        for _ in 0..3 {
            let farthest = search.from(end)?;
            (longest, end) = (longest.max(farthest.hops), farthest.node);
        }
        let middle = search.halfway(end);
        search.from(middle)?;
        let around = search.rings();
        for (radius, ring) in around.iter().enumerate().rev() {
            if longest >= 2 * radius {
                return Some((longest, longest));
            }
            for &node in ring {
                if search.looked > work {
                    return Some((longest, 2 * radius));
                }
                longest = longest.max(search.from(node)?.hops);
            }
        }
        Some((longest, longest))
    }
}

/// Breadth-first searches from a node to all others, with their memory.
struct Search<'a> {
    graph: &'a Graph,
    hops: Vec<usize>,
    order: Vec<usize>, // the nodes as they were found
    looked: usize,     // neighbours, over all searches
}

/// The last node that a search found.
struct Farthest {
    node: usize,
    hops: usize,
}

impl<'a> Search<'a> {
    fn new(graph: &'a Graph) -> Search<'a> {
        Search { graph, hops: vec![UNREACHED; graph.nodes()], order: Vec::new(), looked: 0 }
    }

    /// Searches from a node; `None` if some node is out of reach.
    fn from(&mut self, start: usize) -> Option<Farthest> {
        let Search { graph, hops, order, looked } = self;
        hops.fill(UNREACHED);
        *looked += hops.len();
        hops[start] = 0;
        order.clear();
        order.push(start);
        let mut next = 0;
        // Stopping at the last node found makes dense graphs cheap.
        while next < order.len() && order.len() < graph.nodes() {
            let i = order[next];
            next += 1;
            let neighbours = graph.neighbours(i);
            *looked += neighbours.len();
            for &j in neighbours {
                if hops[j] == UNREACHED {
                    hops[j] = hops[i] + 1;
                    order.push(j);
                }
            }
        }
        let node = *order.last().expect("it found the start");
        (order.len() == graph.nodes()).then_some(Farthest { node, hops: hops[node] })
    }

    /// The node halfway from a node back to the start of the last search.
    fn halfway(&self, end: usize) -> usize {
        let mut node = end;
        while 2 * self.hops[node] > self.hops[end] {
            let nearer = |&&j: &&usize| self.hops[j] < self.hops[node];
            node = *self.graph.neighbours(node).iter().find(nearer).expect("on the way back");
        }
        node
    }

    /// The nodes found by the last search, by their hops.
    fn rings(&self) -> Vec<Vec<usize>> {
        let mut rings: Vec<Vec<usize>> = Vec::new();
        for &node in &self.order {
            match self.hops[node] < rings.len() {
                true => rings[self.hops[node]].push(node),
                false => rings.push(vec![node]),
            }
        }
        rings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(m: usize, edges: &[(usize, usize)]) -> Graph {
        Graph::from_edges(m, edges.iter().copied()).unwrap()
    }

    #[test]
    fn pieces() {
        let two = graph(5, &[(0, 3), (1, 4), (4, 2)]);
        assert_eq!(two.components(), [vec![0, 3], vec![1, 2, 4]]);
        assert!(!two.is_connected() && graph(1, &[]).is_connected());
        assert_eq!(two.diameter(), None);
        assert_eq!(graph(1, &[]).diameter(), Some(0));
        assert_eq!(graph(4, &[(0, 1), (1, 2), (2, 3)]).diameter(), Some(3));
        assert_eq!(graph(5, &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]).diameter(), Some(2));
    }

    /// The same, by a search from every node.
    fn plain_diameter(graph: &Graph) -> Option<usize> {
        let mut search = Search::new(graph);
        (0..graph.nodes()).map(|i| Some(search.from(i)?.hops)).try_fold(0, |a, b| Some(a.max(b?)))
    }

    #[test]
    fn diameters_are_those_of_plain_searches_and_bounds_enclose_them() {
        let mut stream =
            crate::math::random::Stream::new(1, crate::math::random::Purpose::Graph, 7);
        for _ in 0..2000 {
            let m = 1 + stream.below(14);
            let edges = (0..m).flat_map(|j| (0..j).map(move |i| (i, j)));
            let p = stream.unit();
            let edges: Vec<_> = edges.filter(|_| stream.unit() < p).collect();
            let graph = graph(m, &edges);
            let plain = plain_diameter(&graph);
            assert_eq!(graph.diameter(), plain, "{edges:?}");
            let few = graph.diameter_within(stream.below(200));
            let encloses =
                |(low, high): (usize, usize)| plain.is_some_and(|d| low <= d && d <= high);
            assert!(few.map_or(plain.is_none(), encloses), "{edges:?}: {few:?}");
        }
    }

    #[test]
    fn few_searches_are_enough_for_a_star_and_a_path() {
        let star = Graph::from_edges(100_000, (1..100_000).map(|i| (0, i))).unwrap();
        assert_eq!(star.diameter_within(3_000_000), Some((2, 2)));
        let path = Graph::from_edges(100_000, (1..100_000).map(|i| (i - 1, i))).unwrap();
        assert_eq!(path.diameter_within(3_000_000), Some((99_999, 99_999)));
    }

    #[test]
    fn bridges_of_known_graphs() {
        assert_eq!(graph(4, &[(2, 3), (0, 1), (1, 2)]).bridges(), [(0, 1), (1, 2), (2, 3)]);
        assert_eq!(graph(3, &[(0, 1), (1, 2), (2, 0)]).bridges(), []);
        // Two triangles joined by an edge, and a separate component.
        let edges = [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (4, 5), (3, 5), (6, 7)];
        assert_eq!(graph(8, &edges).bridges(), [(2, 3), (6, 7)]);
    }

    #[test]
    fn a_long_path_does_not_overflow_the_stack() {
        let path = Graph::from_edges(100_000, (1..100_000).map(|i| (i - 1, i))).unwrap();
        assert_eq!(path.bridges().len(), 99_999);
    }

    #[test]
    fn two_sides() {
        let square = graph(4, &[(0, 1), (1, 2), (2, 3), (3, 0)]);
        assert_eq!(square.sides(), Some([vec![0, 2], vec![1, 3]]));
        assert!(!graph(3, &[(0, 1), (1, 2), (2, 0)]).is_bipartite());
        assert!(graph(5, &[(0, 1), (2, 3)]).is_bipartite());
    }
}
