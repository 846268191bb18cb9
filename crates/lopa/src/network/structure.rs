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
        for component in self.components() {
            let distance = self.distances(component[0]);
            component.iter().for_each(|&i| side[i] = distance[i] % 2);
        }
        let crossing = self.edges().all(|(i, j)| side[i] != side[j]);
        crossing.then(|| [0, 1].map(|s| (0..self.nodes()).filter(|&i| side[i] == s).collect()))
    }

    /// Whether the graph is bipartite.
    pub fn is_bipartite(&self) -> bool {
        self.sides().is_some()
    }

    /// The largest number of hops between two nodes, if the graph is connected.
    pub fn diameter(&self) -> Option<usize> {
        let farthest = |i| self.distances(i).into_iter().max().expect("there are nodes");
        (0..self.nodes()).map(farthest).max().filter(|&d| d != UNREACHED)
    }

    /// Hops from a node to every node, [`UNREACHED`] where there is no path.
    fn distances(&self, from: usize) -> Vec<usize> {
        let mut distance = vec![UNREACHED; self.nodes()];
        distance[from] = 0;
        let (mut queue, mut missing) = (VecDeque::from([from]), self.nodes() - 1);
        // Stopping at the last node found makes dense graphs cheap.
        while let Some(i) = queue.pop_front().filter(|_| missing > 0) {
            for &j in self.neighbours(i) {
                if distance[j] == UNREACHED {
                    distance[j] = distance[i] + 1;
                    missing -= 1;
                    queue.push_back(j);
                }
            }
        }
        distance
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
